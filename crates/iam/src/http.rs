//! One request over one connection, with a deadline.
//!
//! Each call has a connection of its own. A connection that is kept may be closed by the other side
//! just when a request is written to it, and then nobody knows whether the request arrived: such a
//! call costs the controllers a minute, a new connection costs a few milliseconds.

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

/// Longer answers are not read.
const MOST_BYTES: usize = 8 << 20;

/// Why an address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL.
    #[error("{0:?} is not a URL: write https://<host>[:<port>]")]
    NotAUrl(String),
    /// Requests would be readable on the way.
    #[error(
        "refusing {0}: without TLS, requests may go to loopback addresses only, unless it is allowed explicitly"
    )]
    InTheClear(String),
    /// No certificates to trust.
    #[error("no TLS connection can be made: {0}")]
    Tls(String),
}

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    is_tls: bool,
    host: String,
    port: u16,
    /// The Host header.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

impl Endpoint {
    /// The endpoint in a URL. Without TLS, only this machine is spoken to, unless `allow_http`.
    pub fn of(url: &str, allow_http: bool) -> Result<Endpoint, EndpointError> {
        let not_a_url = || EndpointError::NotAUrl(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| not_a_url())?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(not_a_url()),
        };
        let authority = uri.authority().ok_or_else(not_a_url)?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(not_a_url());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if !is_tls && !allow_http && !is_loopback(&host) {
            return Err(EndpointError::InTheClear(url.to_owned()));
        }
        Ok(Endpoint {
            is_tls,
            port: authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            host,
        })
    }

    /// The URL of the endpoint.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// How a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Nothing of it was sent.
    NotSent(String),
    /// It may have arrived: no answer in time.
    Late,
    /// It may have arrived: the connection broke.
    Broken(String),
}

/// What sends requests.
#[derive(Clone)]
pub struct Http {
    tls: TlsConnector,
}

impl Http {
    /// Trusts what the machine trusts, and these certificates.
    pub fn new(more: &[CertificateDer<'static>]) -> Result<Http, EndpointError> {
        let mut roots = RootCertStore::empty();
        // A machine without certificates can still be spoken to by those that are given.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        for certificate in more {
            let wrong = |error: rustls::Error| EndpointError::Tls(error.to_string());
            roots.add(certificate.clone()).map_err(wrong)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| EndpointError::Tls(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Http { tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Sends a request once, and reads the whole answer.
    pub async fn exchange(
        &self,
        endpoint: &Endpoint,
        request: Request<Full<Bytes>>,
        deadline: Duration,
    ) -> Result<Response<Bytes>, Failure> {
        let until = Instant::now() + deadline;
        let late = |_| Failure::NotSent("no connection within the deadline".to_owned());
        let connected =
            tokio::time::timeout_at(until, TcpStream::connect((&*endpoint.host, endpoint.port)));
        let stream = connected.await.map_err(late)?.map_err(|error| {
            Failure::NotSent(format!("cannot connect to {}: {error}", endpoint.authority))
        })?;
        let _ = stream.set_nodelay(true);
        if !endpoint.is_tls {
            return send(stream, request, until).await;
        }
        let name = ServerName::try_from(endpoint.host.clone())
            .map_err(|error| Failure::NotSent(format!("{}: {error}", endpoint.host)))?;
        let shaken = tokio::time::timeout_at(until, self.tls.connect(name, stream));
        let stream = shaken.await.map_err(late)?.map_err(|error| {
            Failure::NotSent(format!("no TLS connection to {}: {error}", endpoint.authority))
        })?;
        send(stream, request, until).await
    }
}

async fn send<S>(
    stream: S,
    request: Request<Full<Bytes>>,
    until: Instant,
) -> Result<Response<Bytes>, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let not_sent = |error: hyper::Error| Failure::NotSent(error.to_string());
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(not_sent)?;
    let broken = |error: &dyn std::fmt::Display| Failure::Broken(error.to_string());
    let mut answered = pin!(async {
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MOST_BYTES).collect().await;
        let body = body.map_err(|error| broken(&error))?.to_bytes();
        Ok(Response::from_parts(head, body))
    });
    let mut connection = pin!(connection);
    let exchange = async {
        tokio::select! {
            answer = &mut answered => return answer,
            // The last bytes may have been read already.
            _ = &mut connection => {}
        }
        answered.await
    };
    tokio::time::timeout_at(until, exchange).await.unwrap_or(Err(Failure::Late))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_only_this_machine_is_spoken_to() {
        let of = |url: &str| Endpoint::of(url, false).map(|endpoint| endpoint.url());
        assert_eq!(of("https://iam.amazonaws.com"), Ok("https://iam.amazonaws.com/".to_owned()));
        assert!(of("http://127.0.0.1:5000").is_ok());
        assert!(of("http://[::1]:5000").is_ok());
        assert!(of("http://localhost:4566/").is_ok());
        assert!(matches!(of("http://example.com"), Err(EndpointError::InTheClear(_))));
        assert!(matches!(of("http://127.0.0.1.example.com"), Err(EndpointError::InTheClear(_))));
        assert!(Endpoint::of("http://example.com", true).is_ok());
        for wrong in ["", "iam.amazonaws.com", "ftp://x", "https://", "https://a:b@c"] {
            assert!(matches!(of(wrong), Err(EndpointError::NotAUrl(_))), "{wrong}");
        }
    }
}
