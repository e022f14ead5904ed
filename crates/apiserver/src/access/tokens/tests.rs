use super::*;
use std::os::unix::fs::PermissionsExt;

const NOW: i64 = 1_794_729_448;

fn issuer() -> (tempfile::TempDir, TokenKey) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let issuer = load(directory.path(), "https://hub").expect("writable");
    (directory, issuer)
}

fn load(directory: &Path, issuer: &str) -> Result<TokenKey, TokenError> {
    let key = TokenKey::load_or_create(directory)?;
    key.reached_at(issuer);
    Ok(key)
}

fn spec() -> TokenSpec {
    TokenSpec {
        cluster: "c1".into(),
        namespace: "ci".into(),
        name: "builder".into(),
        uid: "u-1".into(),
        audiences: vec![],
        lifetime_seconds: 3600,
        bound: None,
        node: None,
        warn_after_seconds: None,
    }
}

/// A token with claims of one's own, signed as ours are.
fn forged(issuer: &TokenKey, header: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut claims = issuer.claims(&spec(), NOW, &SystemRandom::new()).expect("complete");
    change(&mut claims);
    let signed = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims.to_string()));
    let signature = issuer.key.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
    format!("{signed}.{}", BASE64.encode(signature))
}

#[test]
fn what_was_issued_is_what_is_read() {
    let (_directory, issuer) = issuer();
    let mut spec = spec();
    spec.audiences = vec!["vault".into(), "https://hub/issuers/c1".into()];
    spec.bound = Some(Bound {
        kind: BoundKind::Pod,
        object: Reference { name: "p".into(), uid: "pu".into() },
    });
    spec.node = Some(Reference { name: "n".into(), uid: String::new() });
    spec.warn_after_seconds = Some(600);
    let token = issuer.issue(&spec, NOW).expect("signed");
    let claims = issuer.verify(&token, None, NOW).expect("good");
    assert_eq!(claims.audiences, ["https://hub/issuers/c1"]);
    assert_eq!(claims.account(), ServiceAccount { namespace: "ci", name: "builder", uid: "u-1" });
    assert_eq!((claims.bound.clone(), claims.node.clone()), (spec.bound, spec.node));
    assert_eq!(claims.expires_at_seconds, NOW + 3600);
    assert_eq!(claims.warn_after_seconds, Some(NOW + 600));
    let identity = claims.identity();
    assert_eq!(identity.user, "system:serviceaccount:ci:builder");
    assert_eq!(identity.scope, crate::access::Scope::Cluster("c1".into()));
    assert_eq!(identity.extra["authentication.kubernetes.io/pod-name"], ["p"]);
    assert_eq!(identity.extra["authentication.kubernetes.io/node-name"], ["n"]);
    assert!(identity.extra[CREDENTIAL_ID][0].starts_with("JTI="));
}

#[test]
fn a_token_without_audiences_is_for_the_server() {
    let (_directory, issuer) = issuer();
    let token = issuer.issue(&spec(), NOW).expect("signed");
    assert!(issuer.verify(&token, None, NOW).is_ok());
    assert_eq!(issuer.verify(&token, Some(&["vault"]), NOW), Err(TokenRefusal::WrongAudience));
    assert_eq!(issuer.verify(&token, Some(&[]), NOW), Err(TokenRefusal::WrongAudience));
    let other = Some(["https://hub/issuers/c2"].as_slice());
    assert_eq!(issuer.verify(&token, other, NOW), Err(TokenRefusal::WrongAudience));
}

#[test]
fn time_has_five_minutes_of_leeway_and_no_more() {
    let (_directory, issuer) = issuer();
    let token = issuer.issue(&spec(), NOW).expect("signed");
    let at = |now| issuer.verify(&token, None, now).map(drop);
    assert_eq!(at(NOW + 3600 + 299), Ok(()));
    assert_eq!(at(NOW + 3600 + 300), Err(TokenRefusal::Expired));
    assert_eq!(at(NOW - 300), Ok(()));
    assert_eq!(at(NOW - 301), Err(TokenRefusal::NotYetValid));
    assert_eq!(at(i64::MAX), Err(TokenRefusal::Expired));
    assert_eq!(at(i64::MIN), Err(TokenRefusal::NotYetValid));
}

#[test]
fn the_key_survives_a_restart_and_belongs_to_the_owner_alone() {
    let (directory, first) = issuer();
    let token = first.issue(&spec(), NOW).expect("signed");
    let second = load(directory.path(), "https://hub").expect("readable");
    assert!(second.verify(&token, None, NOW).is_ok());
    let path = directory.path().join("service-account.key");
    let mode = std::fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::write(&path, "broken").expect("writable");
    let refused = load(directory.path(), "https://hub");
    assert!(matches!(refused, Err(TokenError::Content { .. })));
}

#[test]
fn tokens_of_another_key_are_nothing() {
    let (_directory, here) = issuer();
    let (_other, there) = issuer();
    let token = there.issue(&spec(), NOW).expect("signed");
    assert_eq!(here.verify(&token, None, NOW), Err(TokenRefusal::Invalid));
}

#[test]
fn a_server_that_moved_to_another_url_knows_its_tokens() {
    let (directory, here) = issuer();
    let token = here.issue(&spec(), NOW).expect("signed");
    let moved = load(directory.path(), "https://other:8443/").expect("readable");
    assert_eq!(moved.issuer("c1"), "https://other:8443/issuers/c1");
    let claims = moved.verify(&token, None, NOW).expect("the key is the same");
    assert_eq!(claims.audiences, [IN_CLUSTER]);
    assert!(here.verify(&moved.issue(&spec(), NOW).expect("signed"), None, NOW).is_ok());
}

#[test]
fn the_header_cannot_choose_an_algorithm() {
    let (_directory, issuer) = issuer();
    let token = issuer.issue(&spec(), NOW).expect("signed");
    let (_, rest) = token.split_once('.').expect("three parts");
    let (payload, _) = rest.split_once('.').expect("three parts");
    for header in [r#"{"alg":"none"}"#, r#"{"alg":"HS256"}"#, r#"{"alg":"ES256"}"#, "{}"] {
        for signature in ["", "AAAA"] {
            let forged = format!("{}.{payload}.{signature}", BASE64.encode(header));
            let refused = issuer.verify(&forged, None, NOW);
            assert_eq!(refused, Err(TokenRefusal::Invalid), "{header}");
        }
    }
    let signed = forged(&issuer, r#"{"alg":"none"}"#, |_| ());
    assert_eq!(issuer.verify(&signed, None, NOW), Err(TokenRefusal::Invalid));
}

#[test]
fn a_token_without_a_cluster_an_end_or_an_account_is_nothing() {
    let (_directory, issuer) = issuer();
    let header = r#"{"alg":"ES256"}"#;
    assert!(issuer.verify(&forged(&issuer, header, |_| ()), None, NOW).is_ok());
    for (field, value) in [
        (CLUSTER_CLAIM, json!(null)),
        (CLUSTER_CLAIM, json!("")),
        ("exp", json!(null)),
        ("exp", json!("never")),
        ("exp", json!(1e300)),
        ("aud", json!({})),
        ("jti", json!(7)),
        ("iss", json!("https://elsewhere")),
        ("iss", json!("https://hub/issuers/c2")),
        ("iss", json!("https://hub/issuersc1")),
        ("iss", json!("https://hub/clusters/c1")),
        ("iss", json!("issuers/c1")),
        ("kubernetes.io", json!([])),
        ("kubernetes.io", json!({"namespace": "ci", "serviceaccount": {"name": "b", "uid": ""}})),
    ] {
        let token = forged(&issuer, header, |claims| claims[field] = value.clone());
        let refused = issuer.verify(&token, None, NOW);
        assert_eq!(refused, Err(TokenRefusal::Invalid), "{field}: {value}");
    }
}

#[test]
fn garbage_is_refused_and_never_panics() {
    let (_directory, issuer) = issuer();
    let good = issuer.issue(&spec(), NOW).expect("signed");
    let alphabet: Vec<char> = "abcXYZ019-_.=+/ {}\"\0ä".chars().collect();
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits") % bound
    };
    for round in 0..3000 {
        let mut token: Vec<char> = if round % 2 == 0 { good.chars().collect() } else { vec![] };
        for _ in 0..=next(6) {
            let place = next(token.len() + 1);
            let letter = alphabet[next(alphabet.len())];
            match next(3) {
                0 if place < token.len() => token[place] = letter,
                1 if place < token.len() => token.truncate(place),
                _ => token.insert(place, letter),
            }
        }
        let token: String = token.into_iter().collect();
        if token != good {
            assert_eq!(issuer.verify(&token, None, NOW), Err(TokenRefusal::Invalid));
        }
    }
    let long = format!("{}.{}", "a".repeat(MAX_TOKEN_BYTES), good);
    assert_eq!(issuer.verify(&long, None, NOW), Err(TokenRefusal::Invalid));
}

#[test]
fn the_public_key_is_published_and_the_private_one_is_not() {
    let (directory, issuer) = issuer();
    let keys = issuer.key_set();
    assert_eq!(keys["keys"][0]["x"].as_str().map(str::len), Some(43));
    assert_eq!(keys["keys"][0]["y"].as_str().map(str::len), Some(43));
    let document = issuer.discovery("c1");
    assert_eq!(document["issuer"], "https://hub/issuers/c1");
    assert_eq!(document["jwks_uri"], "https://hub/issuers/c1/openid/v1/jwks");
    let key = std::fs::read_to_string(directory.path().join("service-account.key")).expect("there");
    let secret = key.lines().nth(1).expect("a body");
    assert!(!format!("{issuer:?} {keys}").contains(secret));
}

#[test]
fn ids_of_tokens_are_random_uuids() {
    let random = SystemRandom::new();
    let (one, two) = (random_uuid(&random).expect("random"), random_uuid(&random).expect("random"));
    assert_ne!(one, two);
    assert_eq!(one.len(), 36);
    assert_eq!(&one[14..15], "4");
    assert!("89ab".contains(&one[19..20]));
}

#[test]
fn a_key_can_live_in_memory_only() {
    let key = TokenKey::generate().expect("random");
    let token = key.issue(&spec(), NOW).expect("signed");
    assert!(key.verify(&token, None, NOW).is_ok());
    let issuer = format!("{IN_CLUSTER}/issuers/root");
    assert_eq!(key.own_audiences("root"), [issuer, IN_CLUSTER.to_owned()]);
}
