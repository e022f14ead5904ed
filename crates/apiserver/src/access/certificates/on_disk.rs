//! Certificates and keys as they lie on disk, and what must be known about them to keep them.

use super::{CertificateAndKey, CertificateError, in_file};
use crate::access::private_file;
use rcgen::KeyPair;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use x509_parser::extensions::GeneralName;

/// The key first: a certificate is never there without its key.
pub(super) fn write_pair(
    directory: &Path,
    name: &str,
    pair: &CertificateAndKey,
) -> Result<(), CertificateError> {
    for (extension, text) in [("key", &pair.key_pem), ("crt", &pair.certificate_pem)] {
        let path = directory.join(format!("{name}.{extension}"));
        private_file::replace(&path, text.as_bytes()).map_err(in_file(&path))?;
    }
    Ok(())
}

/// A pair on disk, if both files are there and belong together.
pub(super) fn read_pair(
    directory: &Path,
    name: &str,
) -> Result<Option<CertificateAndKey>, CertificateError> {
    let mut texts = Vec::new();
    for extension in ["crt", "key"] {
        let path = directory.join(format!("{name}.{extension}"));
        let Some(text) = private_file::read(&path).map_err(in_file(&path))? else {
            return Ok(None);
        };
        texts.push(text);
    }
    let key_pem = texts.pop().unwrap_or_default();
    let certificate_pem = texts.pop().unwrap_or_default();
    let belongs = match (Facts::of_pem(&certificate_pem), KeyPair::from_pem(&key_pem)) {
        (Some(facts), Ok(key)) => facts.public_key == key.public_key_raw(),
        (None, _) | (_, Err(_)) => false,
    };
    Ok(belongs.then_some(CertificateAndKey { certificate_pem, key_pem }))
}

/// What must be known about a certificate to decide whether it is still the right one.
pub(super) struct Facts {
    pub(super) public_key: Vec<u8>,
    pub(super) not_after: i64,
    pub(super) issuer: Vec<u8>,
    pub(super) names: BTreeSet<String>,
}

impl Facts {
    pub(super) fn of_pem(pem: &str) -> Option<Facts> {
        Facts::of_der(CertificateDer::from_pem_slice(pem.as_bytes()).ok()?.as_ref())
    }

    fn of_der(der: &[u8]) -> Option<Facts> {
        let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
        let names = certificate.subject_alternative_name().ok()?;
        let names = names.iter().flat_map(|names| &names.value.general_names);
        Some(Facts {
            public_key: certificate.public_key().subject_public_key.data.to_vec(),
            not_after: certificate.validity().not_after.timestamp(),
            issuer: certificate.issuer().as_raw().to_vec(),
            names: names.filter_map(name_text).collect(),
        })
    }
}

fn name_text(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let address = match bytes.len() {
                4 => IpAddr::from(<[u8; 4]>::try_from(*bytes).ok()?),
                _ => IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?),
            };
            Some(address.to_string())
        }
        _ => None,
    }
}
