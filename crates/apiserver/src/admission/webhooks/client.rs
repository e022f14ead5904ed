//! How a webhook is called: one HTTPS connection for each call, one answer, nothing followed.

use super::resolve;
use crate::admission_registration::target::{Address, Target};
use crate::call::Call;
use crate::http::{BODY_LIMIT_BYTES, Body};
use ::http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use ::http::{Request, StatusCode};
use bytes::Bytes;
use http_body::Body as HttpBody;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

impl Target {
    /// Posts a question, and gives the answer's body. The caller limits the time.
    pub(super) async fn post(
        &self,
        call: &Call,
        question: Vec<u8>,
        timeout_seconds: u64,
    ) -> Result<Vec<u8>, String> {
        let address = self.address.as_ref().map_err(Clone::clone)?;
        let tls = self.tls.as_ref().map_err(Clone::clone)?;
        let stream = connect(call, address, tls).await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|why| format!("HTTP: {why}"))?;
        let _connection = Ended(tokio::spawn(async move {
            // What breaks the connection is said to whoever waits for the answer.
            let _ = connection.await;
        }));
        let request = Request::post(format!("{}?timeout={timeout_seconds}s", address.path))
            .header(HOST, address.authority())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "interlock-apiserver-admission")
            .body(Body::whole(question))
            .map_err(|why| why.to_string())?;
        let response = sender.send_request(request).await.map_err(|why| format!("HTTP: {why}"))?;
        if response.status() != StatusCode::OK {
            return Err(format!(
                "the webhook answered with status {}; only 200 OK is an answer, and redirects are \
                 not followed",
                response.status()
            ));
        }
        read_answer(response.into_body()).await
    }
}

/// A task that ends with whoever waits for it.
struct Ended(JoinHandle<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn connect(
    call: &Call,
    address: &Address,
    tls: &Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, String> {
    let name = ServerName::try_from(address.host.clone())
        .map_err(|_| format!("{:?} is no host name", address.host))?;
    let stream = first_of(resolve::addresses(call, address).await?).await?;
    // A question is one piece: it must not wait for the next packet.
    let _ = stream.set_nodelay(true);
    let connector = TlsConnector::from(Arc::clone(tls));
    connector.connect(name, stream).await.map_err(|why| format!("TLS: {why}"))
}

/// A connection to the first address that takes one.
async fn first_of(addresses: Vec<SocketAddr>) -> Result<TcpStream, String> {
    let mut problem = "no address".to_owned();
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(why) => problem = format!("dial tcp {address}: {why}"),
        }
    }
    Err(problem)
}

async fn read_answer(body: Incoming) -> Result<Vec<u8>, String> {
    let mut body = std::pin::pin!(body);
    let mut gathered = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await
    {
        let frame = frame.map_err(|why| format!("the answer broke off: {why}"))?;
        let Ok(data): Result<Bytes, _> = frame.into_data() else { continue };
        if gathered.len() + data.len() > BODY_LIMIT_BYTES {
            return Err(format!("the answer is larger than {BODY_LIMIT_BYTES} bytes"));
        }
        gathered.extend_from_slice(&data);
    }
    Ok(gathered)
}
