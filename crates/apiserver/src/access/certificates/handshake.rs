//! The TLS side: which certificate the server shows, and which certificates it takes from clients.

use crate::access::LEEWAY_SECONDS;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The certificate that the server shows. It is exchanged while connections are open; those keep
/// the old one.
pub(super) struct Serving {
    current: RwLock<Arc<CertifiedKey>>,
}

impl Serving {
    pub(super) fn new(certificate: CertifiedKey) -> Self {
        Serving { current: RwLock::new(Arc::new(certificate)) }
    }

    pub(super) fn replace(&self, certificate: CertifiedKey) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certificate);
    }

    pub(super) fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Serving")
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Why there can be no TLS.
pub(super) type HandshakeError = Box<dyn std::error::Error + Send + Sync>;

/// A server configuration: client certificates are taken but not demanded, HTTP/2 is preferred.
pub(super) fn server_config(
    serving: Arc<Serving>,
    authorities: &[CertificateDer<'static>],
) -> Result<rustls::ServerConfig, HandshakeError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone())?;
    }
    let strict =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(Lenient { strict }))
        .with_cert_resolver(serving);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The usual check of client certificates, except that clocks may disagree by a few minutes.
#[derive(Debug)]
struct Lenient {
    strict: Arc<dyn ClientCertVerifier>,
}

impl ClientCertVerifier for Lenient {
    fn offer_client_auth(&self) -> bool {
        self.strict.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.strict.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.strict.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let at = |time| self.strict.verify_client_cert(end_entity, intermediates, time);
        let leeway = LEEWAY_SECONDS.unsigned_abs();
        match at(now) {
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::Expired | rustls::CertificateError::ExpiredContext { .. },
            )) => at(moment(now.as_secs().saturating_sub(leeway))),
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::NotValidYet
                | rustls::CertificateError::NotValidYetContext { .. },
            )) => at(moment(now.as_secs().saturating_add(leeway))),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.strict.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.strict.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.strict.supported_verify_schemes()
    }
}

fn moment(unix_seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(unix_seconds))
}
