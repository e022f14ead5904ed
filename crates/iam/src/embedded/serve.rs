//! Connections: HTTP/1.1 on loopback.

use super::Iam;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use interlock_store::Store;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Longer requests are refused.
const MOST_BYTES: usize = 1 << 20;
/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);

/// Why the server cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address.
    #[error("cannot listen on {address}")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Session credentials would be readable on the way.
    #[error("refusing to listen on {0} without TLS: only loopback addresses may be served")]
    InTheClear(SocketAddr),
}

/// A server that listens; it is served by `run`.
pub struct Listening<S> {
    iam: Arc<Iam<S>>,
    listener: TcpListener,
    address: SocketAddr,
}

impl<S: Store> Listening<S> {
    /// Takes a loopback address.
    pub async fn on(iam: Arc<Iam<S>>, address: SocketAddr) -> Result<Listening<S>, ListenError> {
        if !address.ip().is_loopback() {
            return Err(ListenError::InTheClear(address));
        }
        let bind = |source| ListenError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        Ok(Listening { iam, listener, address })
    }

    /// The address that was taken: with port 0, the machine has chosen one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is dropped. Calls that are under way then are still carried out.
    pub async fn run(self) {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(because = %error, "cannot take a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            let iam = Arc::clone(&self.iam);
            tokio::spawn(async move {
                let service = service_fn(move |request| answer(Arc::clone(&iam), request));
                let mut builder = http1::Builder::new();
                builder.timer(TokioTimer::new()).header_read_timeout(HEAD).auto_date_header(false);
                // A connection that breaks is the client's business.
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }
}

async fn answer<S: Store>(
    iam: Arc<Iam<S>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MOST_BYTES).collect().await else {
        let response = Response::builder().status(413).body(Full::default());
        return Ok(response.unwrap_or_default());
    };
    let request = Request::from_parts(parts, body.to_bytes());
    // A client that hangs up does not undo half a call.
    let handled = tokio::spawn(async move { iam.handle(request).await }).await;
    let failed = || Response::builder().status(500).body(Bytes::new()).unwrap_or_default();
    Ok(handled.unwrap_or_else(|_| failed()).map(Full::new))
}
