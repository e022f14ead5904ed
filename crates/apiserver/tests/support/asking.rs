//! A small client that asks a server in process, for tests: whole answers, and watches line by line.
#![allow(dead_code)]

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body::Body as _;
use interlock_apiserver::access::identity::MASTERS;
use interlock_apiserver::access::{Identity, Scope};
use interlock_apiserver::{Body, Caller, Server};
use serde_json::Value;
use std::pin::Pin;
use std::time::Duration;

/// No test waits longer for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(180);

/// An answer that was read whole.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
    /// The body as JSON, or null.
    pub(crate) json: Value,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The names of the items of a list.
    pub(crate) fn names(&self) -> Vec<String> {
        let items = self.json["items"].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .map(|item| item["metadata"]["name"].as_str().unwrap_or("").to_owned())
            .collect()
    }
}

/// Somebody who asks a server.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) server: Server,
    pub(crate) caller: Caller,
    pub(crate) headers: Vec<(String, String)>,
    /// What is before each path: `/clusters/a`.
    pub(crate) prefix: String,
}

impl Asker {
    /// Somebody whom the wiring vouches for.
    pub(crate) fn known(server: &Server, identity: Identity) -> Self {
        let caller = Caller { identity: Some(identity), ..Caller::default() };
        Asker { server: server.clone(), caller, headers: Vec::new(), prefix: String::new() }
    }

    /// Whoever may do anything.
    pub(crate) fn admin(server: &Server) -> Self {
        let groups = vec![MASTERS.to_owned()];
        Asker::known(server, Identity::authenticated("admin", groups, Scope::Hub))
    }

    /// A user of the hub, with these groups.
    pub(crate) fn user(server: &Server, name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Asker::known(server, Identity::authenticated(name, groups, Scope::Hub))
    }

    /// Whoever shows nothing.
    pub(crate) fn nobody(server: &Server) -> Self {
        let caller = Caller::default();
        Asker { server: server.clone(), caller, headers: Vec::new(), prefix: String::new() }
    }

    /// Whoever shows a token.
    pub(crate) fn with_token(server: &Server, token: &str) -> Self {
        Asker::nobody(server).with_header("authorization", &format!("Bearer {token}"))
    }

    /// Whoever shows a certificate that TLS has checked.
    pub(crate) fn with_certificate(server: &Server, der: Vec<u8>) -> Self {
        let caller = Caller { certificate: Some(der), ..Caller::default() };
        Asker { caller, ..Asker::nobody(server) }
    }

    #[must_use]
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub(crate) fn in_cluster(mut self, name: &str) -> Self {
        self.prefix = format!("/clusters/{name}");
        self
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> Request<Body> {
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).expect("a method of a test"))
            .uri(format!("{}{path}", self.prefix));
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        for (name, value) in &self.headers {
            request = request.header(name.as_str(), value.as_str());
        }
        let body = if body.is_empty() { Body::default() } else { Body::whole(body.to_vec()) };
        request.body(body).expect("a request of a test")
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let asked = self.server.handle(request, &self.caller);
        let answer = tokio::time::timeout(DEADLINE, asked).await.expect("an answer in time");
        read(answer).await
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> Answer {
        self.send(self.request(method, path, content_type, body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, "application/json", body.to_string().as_bytes()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.ask("PUT", path, "application/json", body.to_string().as_bytes()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.ask("PATCH", path, "application/merge-patch+json", body.as_bytes()).await
    }

    pub(crate) async fn apply(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.ask("PATCH", path, "application/apply-patch+yaml", body.as_bytes()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.ask("DELETE", path, "", b"").await
    }

    /// Makes something that must succeed.
    pub(crate) async fn make(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body).await;
        assert_eq!(answer.code, 201, "POST {}{path}: {}", self.prefix, answer.text());
        answer.json
    }

    /// Starts a watch; the code, and the stream.
    pub(crate) async fn watch(&self, path: &str) -> (u16, Lines) {
        let answer = self.server.handle(self.request("GET", path, "", b""), &self.caller).await;
        (answer.status().as_u16(), Lines { body: answer.into_body(), left: Vec::new() })
    }

    /// Asks again and again until the answer is as it should be.
    pub(crate) async fn until(&self, path: &str, is_right: impl Fn(&Answer) -> bool) -> Answer {
        let began = std::time::Instant::now();
        loop {
            let answer = self.get(path).await;
            if is_right(&answer) {
                return answer;
            }
            assert!(began.elapsed() < DEADLINE, "GET {path} stays {}", answer.text());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Reads an answer whole.
pub(crate) async fn read(answer: http::Response<Body>) -> Answer {
    let (parts, mut body) = answer.into_parts();
    let mut bytes = Vec::new();
    while let Some(part) = next_part(&mut body).await {
        bytes.extend_from_slice(&part);
    }
    let json = serde_json::from_slice(&bytes).unwrap_or_default();
    Answer { code: parts.status.as_u16(), headers: parts.headers, bytes: bytes.into(), json }
}

async fn next_part(body: &mut Body) -> Option<Bytes> {
    let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
    let frame = tokio::time::timeout(DEADLINE, frame).await.expect("more of the answer in time")?;
    Some(frame.expect("a body cannot fail").into_data().unwrap_or_default())
}

/// The lines of a watch.
pub(crate) struct Lines {
    body: Body,
    left: Vec<u8>,
}

impl Lines {
    /// The next event.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.left.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.left.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("an event is JSON"));
            }
            let part = next_part(&mut self.body).await?;
            self.left.extend_from_slice(&part);
        }
    }
}

/// A small generator of numbers: the same ones for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        // A seed of zero would stay zero for ever.
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from((self.next() >> 11) % bound.max(1) as u64).expect("below a usize")
    }

    /// Whether something happens that does so in one of so many cases.
    pub(crate) fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
