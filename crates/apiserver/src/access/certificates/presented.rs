//! Reading a client certificate: who it names, and whether it is good for one logical cluster only.

use super::CertificateError;
use crate::access::identity::{CREDENTIAL_ID, Identity, Scope};
use ring::digest;
use std::fmt::Write;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::x509::AttributeTypeAndValue;

/// What a subject alternative name begins with that ties a certificate to a logical cluster.
const CLUSTER_URI: &str = "interlock://cluster/";
/// Every URI of ours. One that we do not understand must not be read as "no cluster named".
const OUR_URIS: &str = "interlock:";

/// The subject alternative name of a certificate for this cluster.
pub(super) fn cluster_uri(cluster_id: &str) -> Option<String> {
    is_cluster_id(cluster_id).then(|| format!("{CLUSTER_URI}{cluster_id}"))
}

/// The identity that a certificate names. Its signature must have been checked before.
pub(super) fn identity_of(certificate_der: &[u8]) -> Result<Identity, CertificateError> {
    let (rest, certificate) = x509_parser::parse_x509_certificate(certificate_der)
        .map_err(|_| CertificateError::Unreadable)?;
    if !rest.is_empty() {
        return Err(CertificateError::Unreadable);
    }
    let mut user = String::new();
    for name in certificate.subject().iter_common_name() {
        // Where there are several, the last one counts, as upstream.
        user = text(name)?;
    }
    if user.is_empty() {
        return Err(CertificateError::NoCommonName);
    }
    let mut groups = Vec::new();
    for organization in certificate.subject().iter_organization() {
        groups.push(text(organization)?);
    }
    let mut identity = Identity::authenticated(user, groups, scope_of(&certificate)?);
    identity.extra.insert(CREDENTIAL_ID.to_owned(), vec![fingerprint(certificate_der)]);
    Ok(identity)
}

fn text(value: &AttributeTypeAndValue<'_>) -> Result<String, CertificateError> {
    value.as_str().map(str::to_owned).map_err(|_| CertificateError::Unreadable)
}

/// The hub, unless exactly one cluster is named. Anything that could be read in two ways is
/// refused.
fn scope_of(certificate: &X509Certificate<'_>) -> Result<Scope, CertificateError> {
    let names = certificate.subject_alternative_name().map_err(|_| CertificateError::Unreadable)?;
    let mut cluster = None;
    for name in names.iter().flat_map(|extension| &extension.value.general_names) {
        let uri = match name {
            GeneralName::URI(uri) => *uri,
            GeneralName::Invalid(..) => return Err(CertificateError::Unreadable),
            _ => continue,
        };
        if !uri.trim_start().to_ascii_lowercase().starts_with(OUR_URIS) {
            continue;
        }
        let id = uri.strip_prefix(CLUSTER_URI).filter(|id| is_cluster_id(id));
        match (id, &cluster) {
            (Some(id), None) => cluster = Some(id.to_owned()),
            (Some(_), Some(_)) | (None, _) => return Err(CertificateError::UnclearCluster),
        }
    }
    Ok(cluster.map_or(Scope::Hub, Scope::Cluster))
}

fn is_cluster_id(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn fingerprint(certificate_der: &[u8]) -> String {
    let mut text = "X509SHA256=".to_owned();
    for byte in digest::digest(&digest::SHA256, certificate_der).as_ref() {
        write!(text, "{byte:02x}").expect("a String takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    fn certificate(user: &str, groups: &[&str], uris: &[&str]) -> Vec<u8> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, user);
        for group in groups {
            parameters.distinguished_name.push(DnType::OrganizationName, *group);
        }
        for uri in uris {
            parameters
                .subject_alt_names
                .push(SanType::URI((*uri).try_into().expect("plain ASCII")));
        }
        let key = KeyPair::generate().expect("ring makes keys");
        parameters.self_signed(&key).expect("a complete certificate").der().to_vec()
    }

    #[test]
    fn a_certificate_without_a_cluster_is_the_hubs() {
        let identity = identity_of(&certificate("alice", &["dev"], &["https://example.com"]))
            .expect("a good certificate");
        assert_eq!(identity.user, "alice");
        assert_eq!(identity.groups, ["dev", "system:authenticated"]);
        assert_eq!(identity.scope, Scope::Hub);
        assert!(identity.extra[CREDENTIAL_ID][0].starts_with("X509SHA256="));
    }

    #[test]
    fn a_certificate_that_names_a_cluster_is_good_for_that_one_only() {
        let identity = identity_of(&certificate("alice", &[], &["interlock://cluster/c-17"]))
            .expect("a good certificate");
        assert_eq!(identity.scope, Scope::Cluster("c-17".into()));
    }

    #[test]
    fn a_cluster_that_is_not_named_clearly_is_refused_and_never_the_hub() {
        for uris in [
            &["interlock://cluster/"][..],
            &["interlock://cluster/a/b"],
            &["interlock://cluster/a b"],
            &["interlock://clusters/a"],
            &["interlock:cluster/a"],
            &["INTERLOCK://cluster/a"],
            &["Interlock://Cluster/a"],
            &[" interlock://cluster/a"],
            &["interlock://cluster/a", "interlock://cluster/b"],
            &["interlock://cluster/a", "interlock://cluster/a"],
        ] {
            let refused = identity_of(&certificate("alice", &["system:masters"], uris));
            assert!(matches!(refused, Err(CertificateError::UnclearCluster)), "{uris:?}");
        }
    }

    #[test]
    fn a_certificate_without_a_name_is_refused() {
        let refused = identity_of(&certificate("", &["system:masters"], &[]));
        assert!(matches!(refused, Err(CertificateError::NoCommonName)));
    }

    #[test]
    fn a_cluster_id_that_could_be_read_in_two_ways_gets_no_certificate() {
        assert_eq!(cluster_uri("c1").as_deref(), Some("interlock://cluster/c1"));
        for id in ["", "a/b", "a b", "a\0", "ä", "a?b"] {
            assert_eq!(cluster_uri(id), None, "{id:?}");
        }
    }

    #[test]
    fn damaged_certificates_are_refused_or_read_but_never_panic() {
        let good = certificate("alice", &["dev"], &["interlock://cluster/c1"]);
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..4 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let place = usize::try_from(state >> 8).expect("64 bits") % bytes.len();
                bytes[place] = (state & 0xff) as u8;
            }
            bytes.truncate(usize::try_from(state >> 32).expect("32 bits") % (good.len() + 1));
            let _ = identity_of(&bytes);
        }
    }
}
