use super::*;
use crate::access::Scope;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

fn alice() -> Identity {
    Identity::authenticated("alice", vec!["dev".into()], Scope::Hub)
}

fn event<'a>(verb: &'a str, uri: &str, identity: &'a Identity) -> AuditEvent<'a> {
    AuditEvent {
        stage: Stage::ResponseComplete,
        id: "id-1".into(),
        verb,
        uri: uri.into(),
        identity,
        impersonated: None,
        source: Some(IpAddr::from([10, 0, 0, 1])),
        user_agent: "kubectl/v1.35.0",
        resource: None,
        code: 201,
        cluster: "team-a",
        received: Timestamp::from_second(1_794_729_448).expect("in range"),
        took: Duration::from_micros(1500),
        annotations: std::collections::BTreeMap::new(),
    }
}

fn lines(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("there");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

#[test]
fn a_request_becomes_one_line_in_upstreams_form() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("audit.log");
    let log = AuditLog::open(path.clone(), Options::default()).expect("writable");
    let identity = alice();
    let secret = ResourceRequest {
        version: "v1".into(),
        resource: "secrets".into(),
        namespace: Some("a".into()),
        name: Some("s".into()),
        ..ResourceRequest::default()
    };
    let mut event = event("create", "/api/v1/namespaces/a/secrets?fieldManager=x", &identity);
    event.resource = Some(&secret);
    log.record(&event);
    log.flush();
    assert_eq!(
        lines(&path),
        [json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "auditID": "id-1", "stage": "ResponseComplete",
            "requestURI": "/api/v1/namespaces/a/secrets?fieldManager=x", "verb": "create",
            "user": {"username": "alice", "groups": ["dev", "system:authenticated"]},
            "sourceIPs": ["10.0.0.1"], "userAgent": "kubectl/v1.35.0",
            "objectRef": {"resource": "secrets", "namespace": "a", "name": "s", "apiVersion": "v1"},
            "responseStatus": {"metadata": {}, "code": 201},
            "requestReceivedTimestamp": "2026-11-15T07:57:28.000000Z",
            "stageTimestamp": "2026-11-15T07:57:28.001500Z",
            "annotations": {"interlock.dev/cluster": "team-a"},
        })]
    );
    let mode = std::fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn credentials_in_a_uri_are_not_written() {
    for (uri, written) in [
        ("/api?access_token=hunter2&limit=5", "/api?access_token=removed&limit=5"),
        ("/api?Token=hunter2", "/api?Token=removed"),
        ("/api?api-key=hunter2&x", "/api?api-key=removed&x"),
        ("/api?to%6ben=hunter2", "/api?to%6ben=removed"),
        ("https://user:hunter2@host/api?a=b", "/api?a=b"),
        ("https://user:hunter2@host", "/"),
        ("/api?continue=abc&watch=true", "/api?continue=abc&watch=true"),
        ("/proxy/http://x", "/proxy/http://x"),
    ] {
        let cleaned = without_credentials(uri);
        assert_eq!(cleaned, written);
        assert!(!cleaned.contains("hunter2"));
    }
}

#[test]
fn long_texts_are_cut_between_letters() {
    let identity = alice();
    let line = line_of(&event("get", &format!("/{}", "ä".repeat(5000)), &identity));
    assert!(line.len() < 3000);
    assert!(serde_json::from_str::<Value>(&line).is_ok());
}

#[test]
fn reads_are_left_out_first_and_the_gap_is_said() {
    let identity = alice();
    let log = AuditLog {
        shared: Arc::default(),
        refusals: Mutex::default(),
        waiting_lines: 2,
        writer: Mutex::default(),
    };
    for _ in 0..5 {
        log.record(&event("get", "/", &identity));
    }
    for _ in 0..20 {
        log.record(&event("create", "/", &identity));
    }
    assert_eq!(log.shared.lock().lines.len(), 16);
    assert_eq!(log.stats().dropped, 9);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("audit.log");
    let file = RotatingFile::open(path.clone(), 1 << 20, 1).expect("writable");
    log.shared.lock().is_closing = true;
    write_lines(&log.shared, file);
    let lines = lines(&path);
    assert_eq!(lines.len(), 17);
    assert_eq!(lines[0]["annotations"][DROPPED], "9");
    assert_eq!(log.stats().written, 16);
}

#[test]
fn closing_writes_what_waits_and_later_records_are_left_out() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("audit.log");
    let log = AuditLog::open(path.clone(), Options::default()).expect("writable");
    let identity = alice();
    for _ in 0..1000 {
        log.record(&event("create", "/", &identity));
    }
    log.close();
    log.record(&event("create", "/", &identity));
    log.close();
    assert_eq!(lines(&path).len(), 1000);
    assert_eq!(log.stats(), Stats { written: 1000, dropped: 1, failed: 0 });
}

#[test]
fn the_log_is_continued_after_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("audit.log");
    let identity = alice();
    for _ in 0..2 {
        let log = AuditLog::open(path.clone(), Options::default()).expect("writable");
        log.record(&event("create", "/", &identity));
    }
    assert_eq!(lines(&path).len(), 2);
}

#[test]
fn whoever_acts_for_somebody_else_is_written_down_with_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("audit.log");
    let log = AuditLog::open(path.clone(), Options::default()).expect("writable");
    let (alice, other) = (alice(), Identity::anonymous());
    log.record(&AuditEvent { impersonated: Some(&other), ..event("create", "/", &alice) });
    log.close();
    let line: Value = serde_json::from_str(
        std::fs::read_to_string(path).expect("it was written").lines().next().expect("a line"),
    )
    .expect("a line is JSON");
    assert_eq!(line["user"], alice.user_info());
    assert_eq!(line["impersonatedUser"], other.user_info());
}

#[test]
fn no_address_makes_it_panic_and_no_credential_stays() {
    let pieces = [
        "/api",
        "?",
        "&",
        "=",
        "token=hunter2",
        "%74oken=hunter2",
        "://",
        "a:hunter2@b",
        "#",
        "x=y",
        "ü",
    ];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..20_000 {
        let mut uri = "/api?".to_owned();
        for _ in 0..6 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let piece = pieces[usize::try_from(state >> 40).expect("24 bits") % pieces.len()];
            uri.push_str(piece);
        }
        without_credentials(&uri);
        let with_token =
            format!("/api?x=y&{}token=hunter2&z", if state & 1 == 0 { "access_" } else { "" });
        assert!(!without_credentials(&with_token).contains("hunter2"));
    }
}
