//! The authority's own key, and what it signs.

use super::encoding::ClientCertificate;
use super::on_disk::{Facts, write_pair};
use super::presented;
use super::{CertificateAndKey, CertificateError, content, in_file};
use crate::access::{LEEWAY_SECONDS, private_file};
use base64::Engine;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::BTreeSet;
use std::path::Path;
use time::OffsetDateTime;

const DAY: i64 = 86_400;
const AUTHORITY_DAYS: i64 = 3650;
const LEAF_DAYS: i64 = 365;

/// The authority's key and name: what it takes to sign.
pub(super) struct Signer {
    issuer: Issuer<'static, KeyPair>,
    /// The authority's name, as its certificate writes it.
    pub(super) name: Vec<u8>,
    pub(super) certificate_pem: String,
    pub(super) certificate_der: CertificateDer<'static>,
}

impl Signer {
    pub(super) fn load_or_create(
        directory: &Path,
        now_seconds: i64,
    ) -> Result<Signer, CertificateError> {
        let (certificate_path, key_path) = (directory.join("ca.crt"), directory.join("ca.key"));
        let Some(certificate_pem) =
            private_file::read(&certificate_path).map_err(in_file(&certificate_path))?
        else {
            return Signer::create(directory, now_seconds);
        };
        let mismatch = || CertificateError::AuthorityMismatch { path: directory.to_owned() };
        let key_pem =
            private_file::read(&key_path).map_err(in_file(&key_path))?.ok_or_else(mismatch)?;
        let key = KeyPair::from_pem(&key_pem).map_err(|_| content(&key_path, "key"))?;
        if !key.is_compatible(&rcgen::PKCS_ECDSA_P256_SHA256) {
            return Err(content(&key_path, "ECDSA P-256 key"));
        }
        let facts = Facts::of_pem(&certificate_pem)
            .ok_or_else(|| content(&certificate_path, "certificate"))?;
        if facts.public_key != key.public_key_raw() {
            return Err(mismatch());
        }
        if facts.not_after + LEEWAY_SECONDS < now_seconds {
            return Err(CertificateError::AuthorityExpired { path: certificate_path });
        }
        Signer::new(&certificate_path, certificate_pem, key)
    }

    fn create(directory: &Path, now_seconds: i64) -> Result<Signer, CertificateError> {
        // The name holds the time, so that a client which has seen an older authority does not take
        // one for the other.
        let name = format!("interlock-ca-{now_seconds}");
        let mut parameters = parameters(&name, now_seconds, AUTHORITY_DAYS);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(making(&name))?;
        let certificate_pem = parameters.self_signed(&key).map_err(making(&name))?.pem();
        let pair = CertificateAndKey {
            certificate_pem: certificate_pem.clone(),
            key_pem: key.serialize_pem(),
        };
        write_pair(directory, "ca", &pair)?;
        Signer::new(&directory.join("ca.crt"), certificate_pem, key)
    }

    fn new(path: &Path, certificate_pem: String, key: KeyPair) -> Result<Signer, CertificateError> {
        let unusable = || content(path, "certificate");
        let certificate_der =
            CertificateDer::from_pem_slice(certificate_pem.as_bytes()).map_err(|_| unusable())?;
        let (_, parsed) =
            x509_parser::parse_x509_certificate(&certificate_der).map_err(|_| unusable())?;
        let name = parsed.subject().as_raw().to_vec();
        let issuer = Issuer::from_ca_cert_der(&certificate_der, key).map_err(|_| unusable())?;
        Ok(Signer { issuer, name, certificate_pem, certificate_der })
    }

    /// A certificate for serving under these names and addresses.
    pub(super) fn serving(
        &self,
        names: BTreeSet<String>,
        now_seconds: i64,
    ) -> Result<CertificateAndKey, CertificateError> {
        let mut parameters = parameters("interlock", now_seconds, LEAF_DAYS);
        let names: Vec<String> = names.into_iter().collect();
        parameters.subject_alt_names =
            CertificateParams::new(names).map_err(making("interlock"))?.subject_alt_names;
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(making("interlock"))?;
        let certificate = parameters.signed_by(&key, &self.issuer).map_err(making("interlock"))?;
        Ok(CertificateAndKey { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }

    /// A certificate for a client.
    pub(super) fn client(
        &self,
        subject: &ClientSubject<'_>,
        now_seconds: i64,
    ) -> Result<CertificateAndKey, CertificateError> {
        let is_printable = |text: &str| {
            !text.is_empty() && !text.chars().any(char::is_control) && text.len() <= 1024
        };
        if !is_printable(subject.user) || !subject.groups.iter().all(|group| is_printable(group)) {
            return Err(CertificateError::BadName { what: "an empty, long or unprintable name" });
        }
        let uri = subject
            .cluster_id
            .map(|id| {
                presented::cluster_uri(id)
                    .ok_or(CertificateError::BadName { what: "the id of this logical cluster" })
            })
            .transpose()?;
        let certificate = ClientCertificate {
            user: subject.user,
            groups: subject.groups,
            uri,
            not_before: moment(now_seconds.saturating_sub(LEEWAY_SECONDS)),
            not_after: moment(now_seconds.saturating_add(LEAF_DAYS * DAY)),
            issuer_name: &self.name,
        };
        let key = KeyPair::generate().map_err(making(subject.user))?;
        let der = certificate.sign(&key, &self.issuer).map_err(making(subject.user))?;
        Ok(CertificateAndKey { certificate_pem: pem_of(&der), key_pem: key.serialize_pem() })
    }
}

/// Whom a client certificate is for.
pub(super) struct ClientSubject<'a> {
    pub(super) user: &'a str,
    pub(super) groups: &'a [String],
    pub(super) cluster_id: Option<&'a str>,
}

fn parameters(common_name: &str, now_seconds: i64, days: i64) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    parameters.not_before = moment(now_seconds.saturating_sub(LEEWAY_SECONDS));
    parameters.not_after = moment(now_seconds.saturating_add(days * DAY));
    parameters
}

/// Clocks far outside the range of certificates are cut to it.
fn moment(unix_seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(unix_seconds.clamp(0, 253_402_300_799))
        .expect("years 1970 to 9999 are in range")
}

fn making(subject: &str) -> impl FnOnce(rcgen::Error) -> CertificateError + use<> {
    let subject = subject.to_owned();
    move |source| CertificateError::Make { subject, source }
}

fn pem_of(der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in lines {
        pem.push_str(&line);
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}
