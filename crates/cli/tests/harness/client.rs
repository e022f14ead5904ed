//! HTTP/1.1 in the clear over one connection that is kept, as much of it as the tests need.

use super::{TIMEOUT, TOKEN};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A client with one connection.
pub(crate) struct Client {
    address: SocketAddr,
    token: Option<String>,
    acts_as: Option<String>,
    stream: Option<BufReader<TcpStream>>,
}

/// What the server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// The resourceVersion of the object or the list.
    pub(crate) fn version(&self) -> u64 {
        version(&self.json())
    }
}

/// The resourceVersion of an object or a list.
pub(crate) fn version(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no version in {object}"))
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, why.to_owned())
}

/// What the head of an answer says.
struct Head {
    status: u16,
    length: usize,
    is_chunked: bool,
}

fn read_head(stream: &mut BufReader<TcpStream>) -> io::Result<Head> {
    let mut line = String::new();
    let mut next = |stream: &mut BufReader<TcpStream>| -> io::Result<String> {
        line.clear();
        if stream.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Err(broken("the connection ended in the head of an answer"));
        }
        Ok(line.trim_end().to_owned())
    };
    let first = next(stream)?;
    let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| broken("no status line"))?;
    let mut head = Head { status, length: 0, is_chunked: false };
    loop {
        let line = next(stream)?.to_ascii_lowercase();
        if line.is_empty() {
            return Ok(head);
        }
        if let Some(length) = line.strip_prefix("content-length: ") {
            head.length = length.parse().map_err(|_| broken("no length"))?;
        }
        head.is_chunked |= line == "transfer-encoding: chunked";
    }
}

/// The body of a chunked answer.
struct Chunked {
    stream: BufReader<TcpStream>,
    left: usize,
}

impl Read for Chunked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(broken("the connection ended between two chunks"));
            }
            self.left = usize::from_str_radix(line.trim(), 16).map_err(|_| broken("no chunk"))?;
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = buffer.len().min(self.left);
        let read = self.stream.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(broken("the connection ended in a chunk"));
        }
        self.left -= read;
        if self.left == 0 {
            self.stream.read_exact(&mut [0; 2])?;
        }
        Ok(read)
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Client {
        Client { address, token: Some(TOKEN.to_owned()), acts_as: None, stream: None }
    }

    /// The same, but as somebody else, or as nobody.
    pub(crate) fn with_token(mut self, token: Option<&str>) -> Client {
        self.token = token.map(str::to_owned);
        self
    }

    /// The same, but as a user whom whoever has the token impersonates.
    pub(crate) fn acting_as(mut self, user: &str) -> Client {
        self.acts_as = Some(user.to_owned());
        self
    }

    fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> io::Result<()> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            self.stream = Some(BufReader::new(stream));
        }
        let stream = self.stream.as_mut().expect("it was just made");
        let body = body.map(ToString::to_string).unwrap_or_default();
        let authorization = match &self.token {
            Some(token) => format!("Authorization: Bearer {token}\r\n"),
            None => String::new(),
        };
        let acts_as = match &self.acts_as {
            Some(user) => format!("Impersonate-User: {user}\r\n"),
            None => String::new(),
        };
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: crash-test\r\n{authorization}{acts_as}\
             Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len(),
        );
        stream.get_mut().write_all(request.as_bytes())
    }

    /// One request. After an error nobody knows whether it was carried out.
    pub(crate) fn call(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> io::Result<Answer> {
        let answer = self.send(method, path, body).and_then(|()| self.answer());
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let mut stream = self.stream.take().ok_or_else(|| broken("no connection"))?;
        let head = read_head(&mut stream)?;
        let mut text = String::new();
        if head.is_chunked {
            let mut body = Chunked { stream, left: 0 };
            body.read_to_string(&mut text)?;
            self.stream = Some(body.stream);
            // The empty line after the last chunk.
            self.stream.as_mut().expect("it was just put back").read_line(&mut String::new())?;
        } else {
            let mut body = vec![0; head.length];
            stream.read_exact(&mut body)?;
            text = String::from_utf8(body).map_err(|_| broken("no text"))?;
            self.stream = Some(stream);
        }
        Ok(Answer { status: head.status, text })
    }

    /// A request that must succeed; its body.
    pub(crate) fn must(&mut self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = self.call(method, path, body);
        let answer = answer.unwrap_or_else(|why| panic!("{method} {path}: {why}"));
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text);
        answer.json()
    }

    /// Only the request: the answer is for nobody.
    pub(crate) fn send_and_leave(mut self, method: &str, path: &str, body: Option<&Value>) {
        self.send(method, path, body).expect("the server listens");
    }

    /// Starts a watch on a connection of its own.
    pub(crate) fn watch(mut self, path: &str) -> io::Result<Watch> {
        self.send("GET", path, None)?;
        let mut stream = self.stream.take().ok_or_else(|| broken("no connection"))?;
        let head = read_head(&mut stream)?;
        if head.status != 200 {
            return Err(io::Error::other(format!("a watch is answered with {}", head.status)));
        }
        Ok(Watch { lines: BufReader::new(Chunked { stream, left: 0 }) })
    }
}

/// A watch in progress.
pub(crate) struct Watch {
    lines: BufReader<Chunked>,
}

impl Watch {
    /// The next event; none when the server has ended the stream properly.
    pub(crate) fn next(&mut self) -> io::Result<Option<Value>> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if !line.ends_with('\n') {
            return Err(broken("half of an event"));
        }
        serde_json::from_str(&line).map(Some).map_err(|_| broken("no event"))
    }
}
