//! Connections to the API server as the admin of a kubeconfig: TLS with a client's certificate, HTTP/1.1 or
//! HTTP/2.

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clap::ValueEnum;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How requests travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// One request at a time on a connection that stays.
    Http1,
    /// Many at once, as client-go does.
    H2,
}

/// Where the server is, and who we are.
pub struct Access {
    address: String,
    /// Who shows no certificate shows this.
    token: Option<HeaderValue>,
    http1: TlsConnector,
    h2: TlsConnector,
}

/// A request: what to do, where, and with what.
pub struct Ask<'a> {
    pub method: Method,
    pub path: &'a str,
    pub content_type: &'static str,
    pub body: Bytes,
}

/// A connection.
pub struct Connection {
    sender: Sender,
    token: Option<HeaderValue>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    H2(http2::SendRequest<Full<Bytes>>),
}

impl Access {
    /// Reads a kubeconfig that Interlock wrote, or one with a token in its place.
    pub fn read(kubeconfig: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(kubeconfig).context("cannot read the kubeconfig")?;
        let field = |name: &str| {
            let mut lines = text.lines().map(str::trim);
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value.with_context(|| format!("the kubeconfig has no {name}"))
        };
        let pem = |name: &str| anyhow::Ok(STANDARD.decode(field(name)?)?);
        let mut roots = RootCertStore::empty();
        let authorities = match field("certificate-authority") {
            Ok(file) => std::fs::read(file)?,
            Err(_) => pem("certificate-authority-data")?,
        };
        for authority in CertificateDer::pem_slice_iter(&authorities) {
            roots.add(authority?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let token =
            field("token").ok().map(|token| format!("Bearer {token}").parse()).transpose()?;
        let config = match &token {
            Some(_) => config.with_no_client_auth(),
            None => {
                let certificates = pem("client-certificate-data")?;
                let certificates: Result<Vec<_>, _> =
                    CertificateDer::pem_slice_iter(&certificates).collect();
                let key = PrivateKeyDer::from_pem_slice(&pem("client-key-data")?)?;
                config.with_client_auth_cert(certificates?, key)?
            }
        };
        let speaking = |protocol: &[u8]| {
            let mut config = config.clone();
            config.alpn_protocols = vec![protocol.to_vec()];
            TlsConnector::from(Arc::new(config))
        };
        let server = field("server")?.trim_matches('"');
        let address = server.strip_prefix("https://").context("the server has no TLS")?.to_owned();
        Ok(Access { address, token, http1: speaking(b"http/1.1"), h2: speaking(b"h2") })
    }

    /// Connects.
    pub async fn connect(&self, protocol: Protocol) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(&self.address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        let host = self.address.rsplit_once(':').map_or(&*self.address, |(host, _)| host);
        let name = ServerName::try_from(host.to_owned())?;
        let tls = match protocol {
            Protocol::Http1 => &self.http1,
            Protocol::H2 => &self.h2,
        };
        let stream = TokioIo::new(tls.connect(name, stream).await?);
        let sender = match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(stream).await?;
                tokio::spawn(connection);
                Sender::Http1(sender)
            }
            Protocol::H2 => {
                let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                    // As large as client-go's.
                    .initial_stream_window_size(4 << 20)
                    .initial_connection_window_size(1 << 30)
                    .handshake(stream)
                    .await?;
                tokio::spawn(connection);
                Sender::H2(sender)
            }
        };
        Ok(Connection { sender, token: self.token.clone() })
    }

    /// A connection for each worker with HTTP/1.1, one for every eight with HTTP/2.
    pub async fn connections(
        &self,
        protocol: Protocol,
        workers: usize,
    ) -> anyhow::Result<Vec<Connection>> {
        let mut connections: Vec<Connection> = Vec::with_capacity(workers);
        for worker in 0..workers {
            let shared = connections.get(worker / 8 * 8).and_then(Connection::another);
            connections.push(match shared {
                Some(shared) => shared,
                None => self.connect(protocol).await?,
            });
        }
        Ok(connections)
    }
}

impl Connection {
    /// Another user of the same connection, if it can have more than one at a time.
    pub fn another(&self) -> Option<Connection> {
        match &self.sender {
            Sender::Http1(_) => None,
            Sender::H2(sender) => {
                let sender = Sender::H2(sender.clone());
                Some(Connection { sender, token: self.token.clone() })
            }
        }
    }

    /// Sends a request; the answer's body is still to come.
    pub async fn send(&mut self, ask: Ask<'_>) -> anyhow::Result<Response<Incoming>> {
        let mut request = Request::new(Full::new(ask.body));
        *request.method_mut() = ask.method;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(ask.content_type));
        headers.insert("user-agent", HeaderValue::from_static("bench"));
        if let Some(token) = &self.token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        match &mut self.sender {
            Sender::Http1(sender) => {
                headers.insert(HOST, HeaderValue::from_static("bench"));
                *request.uri_mut() = ask.path.parse()?;
                sender.ready().await?;
                Ok(sender.send_request(request).await?)
            }
            Sender::H2(sender) => {
                *request.uri_mut() = format!("https://bench{}", ask.path).parse()?;
                sender.ready().await?;
                Ok(sender.send_request(request).await?)
            }
        }
    }

    /// Asks, and reads the whole answer, which must be a good one.
    pub async fn ask(&mut self, ask: Ask<'_>) -> anyhow::Result<Bytes> {
        let what = format!("{} {}", ask.method, ask.path);
        let (head, body) = self.send(ask).await?.into_parts();
        let bytes = body.collect().await?.to_bytes();
        if !head.status.is_success() {
            bail!("{what}: {}: {}", head.status, String::from_utf8_lossy(&bytes));
        }
        Ok(bytes)
    }

    /// Reads a path.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Bytes> {
        let body = Bytes::new();
        self.ask(Ask { method: Method::GET, path, content_type: "application/json", body }).await
    }
}
