//! How a webhook is called: one HTTPS connection for each call, one answer, nothing followed.

use super::resolve;
use crate::behaviour::read::{integer, is_set, text};
use crate::handlers::call::Call;
use crate::http::{BODY_LIMIT_BYTES, Body};
use ::http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use ::http::{Request, StatusCode, Uri};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body::Body as HttpBody;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The port of HTTPS.
const HTTPS: u16 = 443;

/// Whom a webhook's configuration says to call.
#[derive(Debug)]
pub(super) struct Target {
    address: Result<Address, String>,
    tls: Result<Arc<ClientConfig>, String>,
}

/// Where a webhook is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// The name that its certificate must have.
    pub(super) host: String,
    pub(super) port: u16,
    path: String,
    /// The service that it is behind; none if the host is an ordinary one.
    pub(super) service: Option<ServiceName>,
}

/// A service of the logical cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServiceName {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Address {
    /// Where the URL of a webhook leads.
    fn of_url(url: &str) -> Result<Address, String> {
        let uri: Uri =
            url.parse().map_err(|why| format!("the URL {url:?} cannot be read: {why}"))?;
        let host = uri.host().unwrap_or_default();
        // The brackets of an IPv6 address are not part of it.
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if uri.scheme_str() != Some("https") || host.is_empty() {
            return Err(format!("the URL {url:?} must be https://host[/path]"));
        }
        Ok(Address {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(HTTPS),
            path: uri.path().to_owned(),
            service: None,
        })
    }

    fn of_service(service: &Value) -> Address {
        let (namespace, name) = (text(service, "namespace"), text(service, "name"));
        let port = integer(service, "port").and_then(|port| u16::try_from(port).ok());
        let path = text(service, "path");
        let slash = if path.starts_with('/') { "" } else { "/" };
        Address {
            host: format!("{name}.{namespace}.svc"),
            port: port.unwrap_or(HTTPS),
            path: format!("{slash}{path}"),
            service: Some(ServiceName { namespace: namespace.to_owned(), name: name.to_owned() }),
        }
    }

    fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == HTTPS && self.service.is_none() {
            return host;
        }
        format!("{host}:{}", self.port)
    }
}

impl Target {
    /// What `clientConfig` says.
    pub(super) fn read(config: &Value) -> Target {
        let address = if is_set(config, "service") {
            Ok(Address::of_service(&config["service"]))
        } else {
            Address::of_url(text(config, "url"))
        };
        Target { address, tls: tls(text(config, "caBundle")) }
    }

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

    /// What is called, for messages.
    pub(super) fn shown(&self, timeout_seconds: u64) -> String {
        match &self.address {
            Ok(address) => {
                let (authority, path) = (address.authority(), &address.path);
                format!("Post \"https://{authority}{path}?timeout={timeout_seconds}s\"")
            }
            Err(_) => "Post".to_owned(),
        }
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

/// TLS that trusts the authorities of a `caBundle`, or those of the machine if there is none.
fn tls(bundle: &str) -> Result<Arc<ClientConfig>, String> {
    let roots = if bundle.is_empty() { of_machine()? } else { in_bundle(bundle)? };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| format!("TLS: {why}"))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn in_bundle(bundle: &str) -> Result<Arc<RootCertStore>, String> {
    let pem = STANDARD.decode(bundle).map_err(|_| "the caBundle is no base64".to_owned())?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|_| "the caBundle is no PEM".to_owned())?;
        roots.add(certificate).map_err(|why| format!("a certificate of the caBundle: {why}"))?;
    }
    if roots.is_empty() {
        return Err("the caBundle has no certificate".to_owned());
    }
    Ok(Arc::new(roots))
}

/// The authorities that the machine trusts, read once.
fn of_machine() -> Result<Arc<RootCertStore>, String> {
    static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    if ROOTS.is_empty() {
        return Err("the webhook has no caBundle, and this machine trusts no authorities: set \
                    clientConfig.caBundle"
            .to_owned());
    }
    Ok(Arc::clone(&ROOTS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_url_says_host_port_and_path() {
        let address = Address::of_url("https://[::1]:8443/a/b").expect("it is one");
        assert_eq!((&*address.host, address.port, &*address.path), ("::1", 8443, "/a/b"));
        assert_eq!(address.authority(), "[::1]:8443");
        let address = Address::of_url("https://hook.example.com").expect("it is one");
        assert_eq!((&*address.authority(), address.port), ("hook.example.com", 443));
        assert_eq!(address.path, "/");
        for url in ["http://example.com", "https://", "example.com", "", "https://exa mple"] {
            assert!(Address::of_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_service_is_known_by_its_name_in_the_cluster() {
        let address = Address::of_service(&json!({"namespace": "a", "name": "hook", "path": "x"}));
        assert_eq!((&*address.host, address.port, &*address.path), ("hook.a.svc", 443, "/x"));
    }
}
