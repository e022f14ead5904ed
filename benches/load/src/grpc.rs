//! Unary gRPC calls over HTTP/2 in the clear: five bytes before each message, the outcome in the trailers.

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HeaderValue, TE};
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// A connection. Clones share it.
#[derive(Clone)]
pub struct Channel {
    sender: SendRequest<Full<Bytes>>,
    base: String,
}

impl Channel {
    /// Connects.
    pub async fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            // Large enough that flow control is in nobody's way.
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(1 << 30)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(connection);
        Ok(Channel { sender, base: format!("http://{address}") })
    }

    /// Calls a method, and returns the message that it answers with.
    pub async fn call(&mut self, method: &str, message: &[u8]) -> anyhow::Result<Bytes> {
        let mut body = Vec::with_capacity(message.len() + 5);
        body.push(0);
        body.extend_from_slice(&u32::try_from(message.len())?.to_be_bytes());
        body.extend_from_slice(message);
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = format!("{}{method}", self.base).parse()?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?;
        let trailers = body.trailers().unwrap_or(&head.headers);
        let outcome = trailers.get("grpc-status").map_or(&b""[..], HeaderValue::as_bytes);
        if outcome != b"0" {
            let why = trailers.get("grpc-message").map(|text| text.to_str().unwrap_or_default());
            bail!("{method} failed: {}", why.unwrap_or("no outcome was reported"));
        }
        let bytes = body.to_bytes();
        if bytes.len() < 5 {
            bail!("{method} answered without a message");
        }
        Ok(bytes.slice(5..))
    }
}
