//! HTTP/1.1 in the clear, one connection for each request: as much of it as a person at the hub needs.

use anyhow::{Context, bail};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A server that is stopped does not answer, and must not stop who asks.
const TIMEOUT: Duration = Duration::from_secs(5);

/// An administrator of the hub.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// What the server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Client {
    /// One request. After an error nobody knows whether it was carried out.
    pub(crate) fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Answer> {
        let mut stream = TcpStream::connect_timeout(&self.address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let body = body.map(ToString::to_string).unwrap_or_default();
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len(),
        );
        stream.write_all(request.as_bytes())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        answer(&bytes).with_context(|| format!("{method} {path}"))
    }

    /// A request that must succeed; what it answers.
    pub(crate) fn must(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let answer = self.call(method, path, body)?;
        if answer.status >= 300 {
            bail!("{method} {path}: {} {}", answer.status, answer.body);
        }
        Ok(answer.body)
    }

    /// An object; null if it is not there.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Value> {
        let answer = self.call("GET", path, None)?;
        match answer.status {
            200 => Ok(answer.body),
            404 => Ok(Value::Null),
            status => bail!("GET {path}: {status} {}", answer.body),
        }
    }
}

fn answer(bytes: &[u8]) -> anyhow::Result<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").context("half of an answer")?;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let rest = &bytes[end + 4..];
    let is_chunked = head.lines().any(|line| line.trim() == "transfer-encoding: chunked");
    let body = if is_chunked { chunks(rest)? } else { rest.to_vec() };
    let body = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    Ok(Answer { status: status.context("no status line")?, body })
}

fn chunks(mut rest: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").context("no chunk")?;
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end])?.trim(), 16)?;
        if length == 0 {
            return Ok(body);
        }
        let chunk = rest.get(end + 2..end + 2 + length).context("half of a chunk")?;
        body.extend_from_slice(chunk);
        rest = rest.get(end + 4 + length..).context("half of a chunk")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_chunks_is_put_together() {
        let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n";
        let answer = answer(bytes).expect("it is whole");
        assert_eq!((answer.status, &answer.body["a"]), (200, &Value::from(1)));
        assert!(super::answer(b"HTTP/1.1 200 OK\r\n").is_err());
    }
}
