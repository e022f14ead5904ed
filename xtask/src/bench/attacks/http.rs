//! HTTP/1.1 on one connection, as little as a measurement needs: no TLS, whose cost would be the client's.

use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer that takes longer never comes. A large body waits half a minute before it is refused.
const TIMEOUT: Duration = Duration::from_secs(90);
/// So much of a body is kept: enough for every object that is read here.
const KEPT: usize = 1 << 20;

/// Where a server is, and who asks it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// `127.0.0.1:1234`.
    pub(super) address: String,
    /// What every path begins with: `/clusters/NAME`.
    pub(super) root: String,
    pub(super) token: String,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) content: &'a str,
    pub(super) accept: &'a str,
    pub(super) body: &'a [u8],
}

impl<'a> Ask<'a> {
    pub(super) fn get(path: &'a str) -> Ask<'a> {
        Ask { method: "GET", path, content: "", accept: "application/json", body: b"" }
    }

    pub(super) fn post(path: &'a str, body: &'a [u8]) -> Ask<'a> {
        Ask { method: "POST", content: "application/json", body, ..Ask::get(path) }
    }

    pub(super) fn merge(path: &'a str, body: &'a [u8]) -> Ask<'a> {
        Ask { method: "PATCH", content: "application/merge-patch+json", body, ..Ask::get(path) }
    }

    pub(super) fn accepting(mut self, accept: &'a str) -> Ask<'a> {
        self.accept = accept;
        self
    }

    pub(super) fn of_type(mut self, content: &'a str) -> Ask<'a> {
        self.content = content;
        self
    }
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The beginning of the body.
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json(&self) -> anyhow::Result<serde_json::Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("{} with no JSON", self.status))
    }

    /// Must be one of success.
    pub(super) fn good(self) -> anyhow::Result<Answer> {
        if self.status >= 300 {
            bail!("{}: {}", self.status, String::from_utf8_lossy(&self.body));
        }
        Ok(self)
    }
}

/// One connection, which stays open.
pub(super) struct Http {
    stream: BufReader<TcpStream>,
    place: Place,
}

impl Http {
    pub(super) fn connect(place: &Place) -> anyhow::Result<Http> {
        let stream = TcpStream::connect(&place.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Http { stream: BufReader::new(stream), place: place.clone() })
    }

    /// Sends a request and reads the whole answer. An error is a connection that the server closed.
    pub(super) fn ask(&mut self, ask: Ask<'_>) -> anyhow::Result<Answer> {
        let Place { address, root, token } = &self.place;
        let mut head = format!(
            "{} {root}{} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\naccept: {}\r\n",
            ask.method, ask.path, ask.accept
        );
        if !ask.body.is_empty() {
            head +=
                &format!("content-type: {}\r\ncontent-length: {}\r\n", ask.content, ask.body.len());
        }
        head += "\r\n";
        let mut whole = head.into_bytes();
        whole.extend_from_slice(ask.body);
        // A server that refuses a body may have closed its side: its answer is read all the same.
        let sent = self.stream.get_mut().write_all(&whole);
        let answer = self.answer();
        match (sent, answer) {
            (_, Ok(answer)) => Ok(answer),
            (Err(error), _) => Err(error.into()),
            (Ok(()), Err(error)) => Err(error),
        }
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the connection was closed");
        }
        Ok(line.trim_end().to_owned())
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.with_context(|| format!("no status in {first:?}"))?;
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse()?;
            }
            is_chunked |= name.eq_ignore_ascii_case("transfer-encoding") && value == "chunked";
        }
        let mut body = Vec::new();
        if !is_chunked {
            self.take(length, &mut body)?;
            return Ok(Answer { status, body });
        }
        loop {
            let size = usize::from_str_radix(self.line()?.trim(), 16)?;
            self.take(size, &mut body)?;
            self.line()?;
            if size == 0 {
                return Ok(Answer { status, body });
            }
        }
    }

    /// Reads so many bytes, and keeps those that there is room for.
    fn take(&mut self, mut left: usize, body: &mut Vec<u8>) -> anyhow::Result<()> {
        let mut piece = [0; 16 * 1024];
        while left > 0 {
            let room = left.min(piece.len());
            let read = self.stream.read(&mut piece[..room])?;
            if read == 0 {
                bail!("the connection was closed in the middle of an answer");
            }
            let keep = read.min(KEPT.saturating_sub(body.len()));
            body.extend_from_slice(&piece[..keep]);
            left -= read;
        }
        Ok(())
    }
}
