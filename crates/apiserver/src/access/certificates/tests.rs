use super::*;
use crate::access::Scope;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// 2026-11-15, so that the certificates are good for the clock of the machine that runs the test.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.expect("after 1970").as_secs()).expect("64 bits")
}

fn authority(directory: &Path) -> Authority {
    Authority::load_or_create(directory, CertificateOptions::default(), now())
        .expect("a fresh directory")
}

fn identity(pair: &CertificateAndKey) -> Identity {
    let der = CertificateDer::from_pem_slice(pair.certificate_pem.as_bytes()).expect("PEM");
    identity_of(&der).expect("a good certificate")
}

#[test]
fn the_first_start_makes_everything_and_the_second_keeps_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let first = authority(directory.path());
    let second = authority(directory.path());
    assert_eq!(first.admin(), second.admin());
    assert_eq!(first.serving.current().cert, second.serving.current().cert);
    assert_eq!(
        first.server_authority_pem().expect("ours"),
        second.server_authority_pem().expect("ours")
    );
    let admin = identity(&second.admin());
    assert_eq!(admin.user, "interlock-admin");
    assert_eq!(admin.groups, ["system:masters", "system:authenticated"]);
    assert_eq!(admin.scope, Scope::Hub);
}

#[test]
fn only_the_owner_may_read_any_of_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let authority = authority(directory.path());
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(authority.directory()), 0o700);
    for entry in fs::read_dir(authority.directory()).expect("readable") {
        let path = entry.expect("readable").path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
    }
}

#[test]
fn certificates_near_their_end_are_renewed_without_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let authority = authority(directory.path());
    let before = (authority.admin(), authority.serving.current().cert.clone());
    let nothing = Renewed { serving: false, admin: false };
    assert_eq!(authority.renew(now() + 300 * 86_400).expect("works"), nothing);
    let both = Renewed { serving: true, admin: true };
    assert_eq!(authority.renew(now() + 340 * 86_400).expect("works"), both);
    assert_ne!(before.0, authority.admin());
    assert_ne!(before.1, authority.serving.current().cert);
    assert_eq!(authority.renew(now() + 340 * 86_400).expect("works"), nothing);
}

#[test]
fn a_new_name_makes_a_new_serving_certificate_and_a_known_one_does_not() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let first = authority(directory.path());
    let with = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let options = CertificateOptions { names, ..CertificateOptions::default() };
        Authority::load_or_create(directory.path(), options, now())
    };
    let same = with(&["localhost", "::1", "127.0.0.1"]).expect("known names");
    assert_eq!(first.serving.current().cert, same.serving.current().cert);
    let other = with(&["10.1.2.3", "hub.example.com", "FE80::1"]).expect("good names");
    let facts =
        Facts::of_pem(&fs::read_to_string(directory.path().join("pki/serving.crt")).unwrap())
            .expect("ours");
    for name in ["10.1.2.3", "hub.example.com", "fe80::1", "kubernetes.default.svc", "localhost"] {
        assert!(facts.names.contains(name), "{name}");
    }
    assert_ne!(first.serving.current().cert, other.serving.current().cert);
    assert!(matches!(with(&["no good"]), Err(CertificateError::BadName { .. })));
}

#[test]
fn a_key_that_a_crash_left_alone_is_made_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let pki = directory.path().join("pki");
    fs::create_dir(&pki).expect("writable");
    fs::write(pki.join("ca.key"), "half a key").expect("writable");
    let first = authority(directory.path());
    fs::remove_file(pki.join("serving.crt")).expect("there");
    fs::write(pki.join("admin.key"), "torn").expect("writable");
    let second = authority(directory.path());
    assert_ne!(first.admin(), second.admin());
}

#[test]
fn an_authority_that_lost_its_key_is_not_replaced_silently() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let other = tempfile::tempdir().expect("a temporary directory");
    authority(directory.path());
    authority(other.path());
    let load = || {
        Authority::load_or_create(directory.path(), CertificateOptions::default(), now())
            .expect_err("must not start")
    };
    fs::copy(other.path().join("pki/ca.key"), directory.path().join("pki/ca.key")).expect("there");
    assert!(matches!(load(), CertificateError::AuthorityMismatch { .. }));
    fs::remove_file(directory.path().join("pki/ca.key")).expect("there");
    assert!(matches!(load(), CertificateError::AuthorityMismatch { .. }));
}

#[test]
fn an_expired_authority_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    authority(directory.path());
    let late = now() + 4000 * 86_400;
    let refused = Authority::load_or_create(directory.path(), CertificateOptions::default(), late);
    assert!(matches!(refused, Err(CertificateError::AuthorityExpired { .. })));
}

#[test]
fn a_client_certificate_says_user_groups_and_cluster() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let authority = authority(directory.path());
    let groups = ["dev".to_owned(), "on call, ü".to_owned(), "c".to_owned()];
    let pair =
        authority.client_certificate("alice", &groups, Some("c9"), now()).expect("good names");
    let alice = identity(&pair);
    assert_eq!(alice.user, "alice");
    assert_eq!(alice.groups, ["dev", "on call, ü", "c", "system:authenticated"]);
    assert_eq!(alice.scope, Scope::Cluster("c9".into()));
    for (user, cluster) in [("", None), ("a\nb", None), ("a", Some("c/d")), ("a", Some(""))] {
        let refused = authority.client_certificate(user, &[], cluster, now());
        assert!(matches!(refused, Err(CertificateError::BadName { .. })), "{user:?} {cluster:?}");
    }
}

/// Shakes hands in memory. Returns the client's certificate as the server saw it, and the protocol.
fn shake_hands(
    server: &Authority,
    trusted: &Authority,
    client: Option<&CertificateAndKey>,
) -> Result<(Option<Identity>, Option<Vec<u8>>), rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(trusted.signer.certificate_der.clone()).expect("a good authority");
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring knows them")
        .with_root_certificates(roots);
    let mut config = match client {
        None => builder.with_no_client_auth(),
        Some(pair) => builder.with_client_auth_cert(
            certificates_in(Path::new("client"), pair.certificate_pem.as_bytes()).expect("PEM"),
            PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).expect("PEM"),
        )?,
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from("kubernetes.default.svc").expect("a host name");
    let mut client = ClientConnection::new(Arc::new(config), name)?;
    let mut server = ServerConnection::new(server.server_config().expect("complete"))?;
    for _ in 0..10 {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).expect("memory");
        server.read_tls(&mut wire.as_slice()).expect("memory");
        server.process_new_packets()?;
        let mut wire = Vec::new();
        server.write_tls(&mut wire).expect("memory");
        client.read_tls(&mut wire.as_slice()).expect("memory");
        client.process_new_packets()?;
    }
    assert!(!server.is_handshaking());
    let shown = server.peer_certificates().and_then(|chain| chain.first());
    let identity = shown.map(|der| identity_of(der).expect("a good certificate"));
    Ok((identity, server.alpn_protocol().map(<[u8]>::to_vec)))
}

#[test]
fn clients_with_and_without_a_certificate_can_connect() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = authority(directory.path());
    let (nobody, protocol) = shake_hands(&server, &server, None).expect("trusted");
    assert_eq!(nobody, None);
    assert_eq!(protocol.as_deref(), Some(&b"h2"[..]));
    let (admin, _) = shake_hands(&server, &server, Some(&server.admin())).expect("trusted");
    assert_eq!(admin.expect("shown").user, ADMIN);
    let groups = ["a".to_owned(), "b".to_owned()];
    let pair = server.client_certificate("bob", &groups, Some("c1"), now()).expect("good names");
    let (bob, _) = shake_hands(&server, &server, Some(&pair)).expect("trusted");
    assert_eq!(bob.expect("shown").scope, Scope::Cluster("c1".into()));
}

#[test]
fn certificates_of_another_authority_are_refused_on_both_sides() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (server, stranger) = (authority(here.path()), authority(there.path()));
    assert!(shake_hands(&server, &stranger, None).is_err());
    assert!(shake_hands(&server, &server, Some(&stranger.admin())).is_err());
}

#[test]
fn an_expired_client_certificate_has_five_minutes_of_grace() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = authority(directory.path());
    let year = 365 * 86_400;
    for (expired_for, is_taken) in [(100, true), (400, false)] {
        let issued = now() - year - expired_for;
        let pair = server.client_certificate("late", &[], None, issued).expect("good names");
        let taken = shake_hands(&server, &server, Some(&pair)).is_ok();
        assert_eq!(taken, is_taken, "{expired_for} seconds late");
    }
    for (too_early, is_taken) in [(500, true), (700, false)] {
        let pair =
            server.client_certificate("early", &[], None, now() + too_early).expect("good names");
        let taken = shake_hands(&server, &server, Some(&pair)).is_ok();
        assert_eq!(taken, is_taken, "{too_early} seconds early");
    }
}

#[test]
fn given_files_are_served_and_read_again() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let other = authority(there.path());
    let file = |name: &str| there.path().join("pki").join(name);
    let files = ServingFiles {
        certificate: file("serving.crt"),
        key: file("serving.key"),
        authority: Some(file("ca.crt")),
    };
    let options = CertificateOptions {
        serving: Some(files),
        client_authorities: vec![file("ca.crt")],
        ..CertificateOptions::default()
    };
    let server = Authority::load_or_create(here.path(), options, now()).expect("good files");
    let (admin, _) = shake_hands(&server, &other, Some(&other.admin())).expect("trusted");
    assert_eq!(admin.expect("shown").user, ADMIN);
    assert_eq!(
        server.server_authority_pem().expect("readable"),
        other.server_authority_pem().expect("ours")
    );
    other.renew(now() + 340 * 86_400).expect("works");
    let renewed = server.renew(now()).expect("works");
    assert_eq!(renewed, Renewed { serving: true, admin: false });
}

#[test]
fn no_key_is_printed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let authority = authority(directory.path());
    let printed = format!("{authority:?} {:?} {:?}", authority.admin(), authority.serving);
    assert!(!printed.contains("PRIVATE"), "{printed}");
    let key = authority.admin().key_pem;
    let secret = key.lines().nth(1).expect("a PEM has a body");
    assert!(!printed.contains(secret));
}
