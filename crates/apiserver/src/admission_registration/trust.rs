//! Whom a webhook's `caBundle` trusts, or the machine if there is none.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::sync::{Arc, LazyLock};
use x509_parser::prelude::{FromDer, X509Certificate};

/// TLS that trusts the certificates of a `caBundle`, or the authorities of the machine if there is none.
pub(super) fn tls(bundle: &str) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|why| format!("TLS: {why}"))?;
    let mut config = if bundle.is_empty() {
        config.with_root_certificates(of_machine()?).with_no_client_auth()
    } else {
        let bundle = Arc::new(Bundle::read(bundle, &provider)?);
        config.dangerous().with_custom_certificate_verifier(bundle).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
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

/// The certificates of a `caBundle`. A webhook is trusted if one of them signed its certificate, or is its certificate:
/// Go's TLS takes both, and bundles with the webhook's own certificate are common, those of envtest among them.
#[derive(Debug)]
struct Bundle {
    certificates: Vec<CertificateDer<'static>>,
    signers: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl Bundle {
    fn read(bundle: &str, provider: &Arc<CryptoProvider>) -> Result<Bundle, String> {
        let pem = STANDARD.decode(bundle).map_err(|_| "the caBundle is no base64".to_owned())?;
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<_, _>>()
            .map_err(|_| "the caBundle is no PEM".to_owned())?;
        if certificates.is_empty() {
            return Err("the caBundle has no certificate".to_owned());
        }
        let wrong = |why: String| format!("a certificate of the caBundle: {why}");
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|why| wrong(why.to_string()))?;
        }
        let signers =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
                .build()
                .map_err(|why| wrong(why.to_string()))?;
        Ok(Bundle { certificates, signers, provider: Arc::clone(provider) })
    }
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.certificates.iter().any(|named| named.as_ref() == end_entity.as_ref()) {
            let signers = &self.signers;
            return signers.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            );
        }
        check_use(end_entity, now)?;
        rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether a certificate that is trusted by itself may be used for a server, and now.
fn check_use(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (_, read) = X509Certificate::from_der(certificate)
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < read.validity().not_before.timestamp() {
        return Err(Error::InvalidCertificate(CertificateError::NotValidYet));
    }
    if now > read.validity().not_after.timestamp() {
        return Err(Error::InvalidCertificate(CertificateError::Expired));
    }
    let usage = read
        .extended_key_usage()
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    // Without the extension a certificate is for everything.
    if usage.is_some_and(|usage| !usage.value.server_auth && !usage.value.any) {
        return Err(Error::InvalidCertificate(CertificateError::InvalidPurpose));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa,
        KeyPair,
    };

    const DAY_SECONDS: u64 = 86_400;

    /// What a test makes of an authority and of a certificate that it signed.
    struct Made {
        authority: String,
        leaf: CertificateDer<'static>,
        leaf_pem: String,
    }

    fn made(purpose: ExtendedKeyUsagePurpose) -> Made {
        let key = || KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, key()).expect("an authority");
        let mut leaf = CertificateParams::new(["hook.example.com".to_owned()]).expect("a name");
        leaf.extended_key_usages = vec![purpose];
        leaf.not_before = time::OffsetDateTime::from_unix_timestamp(1_000_000_000).expect("a time");
        leaf.not_after = leaf.not_before + time::Duration::DAY;
        let leaf = leaf.signed_by(&key(), &authority).expect("a certificate");
        Made { authority: authority.pem(), leaf: leaf.der().clone(), leaf_pem: leaf.pem() }
    }

    fn check(bundle: &str, leaf: &CertificateDer<'_>, name: &str, at: u64) -> Result<(), String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let bundle = Bundle::read(&STANDARD.encode(bundle), &provider)?;
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(at));
        let checked = bundle.verify_server_cert(leaf, &[], &name, &[], now);
        checked.map(drop).map_err(|why| format!("{why:?}"))
    }

    const HOOK: &str = "hook.example.com";
    const NOW: u64 = 1_000_000_000 + DAY_SECONDS / 2;

    #[test]
    fn a_certificate_is_trusted_by_its_authority_and_by_itself() {
        let hook = made(ExtendedKeyUsagePurpose::ServerAuth);
        assert_eq!(check(&hook.authority, &hook.leaf, HOOK, NOW), Ok(()));
        assert_eq!(check(&hook.leaf_pem, &hook.leaf, HOOK, NOW), Ok(()));
        let both = format!("{}{}", hook.authority, hook.leaf_pem);
        assert_eq!(check(&both, &hook.leaf, HOOK, NOW), Ok(()));
    }

    #[test]
    fn a_certificate_that_is_trusted_by_itself_is_still_checked() {
        let hook = made(ExtendedKeyUsagePurpose::ServerAuth);
        let refused = |name: &str, at| check(&hook.leaf_pem, &hook.leaf, name, at).expect_err(name);
        assert!(refused("other.example.com", NOW).contains("NotValidForName"));
        assert!(refused(HOOK, NOW - DAY_SECONDS).contains("NotValidYet"));
        assert!(refused(HOOK, NOW + DAY_SECONDS).contains("Expired"));
        let client = made(ExtendedKeyUsagePurpose::ClientAuth);
        let refused =
            check(&client.leaf_pem, &client.leaf, HOOK, NOW).expect_err("it is a client's");
        assert!(refused.contains("InvalidPurpose"));
    }

    #[test]
    fn another_certificate_of_the_same_authority_is_not_trusted() {
        let (first, second) =
            (made(ExtendedKeyUsagePurpose::ServerAuth), made(ExtendedKeyUsagePurpose::ServerAuth));
        assert!(check(&first.leaf_pem, &second.leaf, HOOK, NOW).is_err());
        assert!(check(&first.authority, &second.leaf, HOOK, NOW).is_err());
    }

    #[test]
    fn a_bundle_that_has_nothing_says_so() {
        let bundle = |text: &str| tls(&STANDARD.encode(text)).expect_err("it has nothing");
        assert_eq!(bundle("nonsense"), "the caBundle has no certificate");
        assert_eq!(tls("%").expect_err("it is none"), "the caBundle is no base64");
    }
}
