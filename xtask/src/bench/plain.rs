//! An API server over plain HTTP, as an administrator with a token: small requests, one connection each.

use anyhow::{Context, bail};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// How many objects are listed at a time.
const PAGE: usize = 500;

pub(crate) struct Plain {
    address: SocketAddr,
    token: String,
}

impl Plain {
    pub(crate) fn new(address: SocketAddr, token: &str) -> Plain {
        Plain { address, token: token.to_owned() }
    }

    pub(crate) fn kubeconfig(&self) -> String {
        let Plain { address, token } = self;
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: hub\n\
             clusters:\n- name: hub\n  cluster: {{server: \"http://{address}\"}}\n\
             contexts:\n- name: hub\n  context: {{cluster: hub, user: operator}}\n\
             users:\n- name: operator\n  user: {{token: {token}}}\n"
        )
    }

    /// All objects of a list, page by page.
    pub(crate) fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let (mut all, mut token) = (Vec::new(), String::new());
        loop {
            let page = self.must("GET", &format!("{path}?limit={PAGE}&continue={token}"), None)?;
            all.extend(page["items"].as_array().cloned().unwrap_or_default());
            match page["metadata"]["continue"].as_str().filter(|next| !next.is_empty()) {
                Some(next) => next.clone_into(&mut token),
                None => return Ok(all),
            }
        }
    }

    /// What the server counts.
    pub(crate) fn metrics(&self) -> anyhow::Result<String> {
        let (status, page) = self.text("GET", "/metrics", None)?;
        if status != 200 {
            bail!("/metrics: {status}");
        }
        Ok(page)
    }

    /// The answer; an error if the request is refused.
    pub(crate) fn must(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let (status, answer) = self.call(method, path, body)?;
        if !(200..300).contains(&status) {
            bail!("{method} {path}: {status} {answer}");
        }
        Ok(answer)
    }

    /// The status and the answer; null if that is no JSON.
    pub(crate) fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(u16, Value)> {
        let (status, text) = self.text(method, path, body)?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::Null)))
    }

    fn text(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(u16, String)> {
        let kind =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len(),
        );
        let mut stream = TcpStream::connect(self.address).context("cannot reach the hub")?;
        stream.write_all(request.as_bytes())?;
        // A server of HTTP 1.0 sends no chunks: the answer ends with the connection.
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).context("the hub does not answer")?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP")?;
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).context("no status")?;
        Ok((status, body.to_owned()))
    }
}
