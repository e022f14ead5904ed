//! Secrets come out where they are asked for, and nowhere else: not in logs, not in the audit log, not in refusals.

#[path = "support/asking.rs"]
mod asking;

use asking::{Answer, Asker};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interlock_apiserver::{Config, Server};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// What is planted. Nothing else looks like it, and it is no base64.
const PLANTED: &str = "planted-secret:value";

/// Everything that was logged, by anybody, at any level.
static LOGGED: Mutex<String> = Mutex::new(String::new());

/// A subscriber that keeps everything it gets.
struct Keeping;

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Keeping {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        span.record(&mut Line(&mut logged));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        values.record(&mut Line(&mut logged));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        logged.push('\n');
        event.record(&mut Line(&mut logged));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Everything in which the planted value could be recognised.
fn leaks(text: &str, planted: &str) -> bool {
    let encoded = STANDARD.encode(planted);
    text.contains(planted)
        || text.contains(encoded.trim_end_matches('='))
        || text.contains(&format!("{:?}", planted.as_bytes()))
}

fn assert_refused_quietly(what: &str, answer: &Answer) {
    assert!(answer.code >= 400, "{what} was not refused: {}", answer.text());
    assert_quiet(what, answer);
}

fn assert_quiet(what: &str, answer: &Answer) {
    assert!(!leaks(&answer.text(), PLANTED), "{what}: {}", answer.text());
    for (name, value) in &answer.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        assert!(!leaks(&value, PLANTED), "{what}: {name}: {value}");
    }
}

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Secrets that cannot be stored, each for another reason.
fn broken() -> Vec<(&'static str, Value)> {
    let encoded = STANDARD.encode(PLANTED);
    let named = |mut object: Value| {
        object["apiVersion"] = json!("v1");
        object["kind"] = json!("Secret");
        if object.get("metadata").is_none() {
            object["metadata"] = json!({"name": "broken"});
        }
        object
    };
    vec![
        ("data that is no base64", named(json!({"data": {"a": format!("{PLANTED}!")}}))),
        ("data that is a list", named(json!({"data": [PLANTED]}))),
        ("data that is a text", named(json!({"data": PLANTED}))),
        ("an entry that is an object", named(json!({"data": {"a": {"b": PLANTED}}}))),
        ("an entry that is a list", named(json!({"stringData": {"a": [PLANTED]}}))),
        ("stringData that is a text", named(json!({"stringData": PLANTED}))),
        ("a wrong key", named(json!({"data": {"a b": encoded}}))),
        ("a wrong key in stringData", named(json!({"stringData": {"a/b": PLANTED}}))),
        (
            "a type that wants more",
            named(json!({"type": "kubernetes.io/tls", "stringData": {"x": PLANTED}})),
        ),
        (
            "a docker config that is none",
            named(json!({"type": "kubernetes.io/dockerconfigjson",
                         "stringData": {".dockerconfigjson": PLANTED}})),
        ),
        (
            "a docker config of the old form that is none",
            named(
                json!({"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": PLANTED}}),
            ),
        ),
        (
            "a wrong name",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "A_B"},
                                "stringData": {"a": PLANTED}}),
        ),
        (
            "a text where a switch is",
            named(json!({"immutable": PLANTED, "stringData": {"a": PLANTED}})),
        ),
        ("a type that is an object", named(json!({"type": {"a": PLANTED}}))),
        ("too large", named(json!({"stringData": {"a": PLANTED.repeat(60_000)}}))),
    ]
}

async fn plant(admin: &Asker) {
    for (what, secret) in broken() {
        let body = secret.to_string();
        for kind in ["application/json", "application/yaml"] {
            let answer = admin.ask("POST", SECRETS, kind, body.as_bytes()).await;
            assert_refused_quietly(what, &answer);
            let answer = admin.ask("PUT", &format!("{SECRETS}/good"), kind, body.as_bytes()).await;
            assert_refused_quietly(what, &answer);
        }
        let path = format!("{SECRETS}/good?fieldManager=test&fieldValidation=Strict");
        for kind in [
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
        ] {
            let answer = admin.ask("PATCH", &path, kind, body.as_bytes()).await;
            assert_refused_quietly(&format!("{what} as {kind}"), &answer);
        }
    }
}

async fn plant_in_patches(admin: &Asker) {
    let path = format!("{SECRETS}/good");
    let encoded = STANDARD.encode(PLANTED);
    for operation in [
        json!({"op": "test", "path": "/data/a", "value": PLANTED}),
        json!({"op": "test", "path": "/data/nothing", "value": encoded}),
        json!({"op": "replace", "path": "/data/a/b", "value": PLANTED}),
        json!({"op": "replace", "path": "/data/a", "value": {"x": PLANTED}}),
        json!({"op": "add", "path": "/data/new", "value": PLANTED}),
        json!({"op": "move", "from": "/data/a", "path": "/metadata/uid"}),
        json!({"op": "move", "from": "/data/a", "path": "/metadata/name"}),
        json!({"op": "move", "from": "/data/a", "path": "/metadata/namespace"}),
        json!({"op": "add", "path": "/metadata/labels", "value": {"x": format!("{PLANTED}!")}}),
        json!({"op": "copy", "from": "/data", "path": "/metadata/labels"}),
        json!({"op": "copy", "from": "/data/a", "path": "/kind"}),
        json!({"op": "copy", "from": "/data/a", "path": "/apiVersion"}),
        json!({"op": "copy", "from": "/data/a", "path": "/type"}),
        json!({"op": "add", "path": "/metadata/finalizers", "value": [PLANTED]}),
        json!({"op": "copy", "from": "/data/a", "path": "/immutable"}),
        json!({"op": "copy", "from": "/data", "path": "/type"}),
        json!({"op": "nothing", "path": "/data/a", "value": PLANTED}),
        json!({"op": "add", "path": 7, "value": PLANTED}),
    ] {
        let patch = json!([operation]).to_string();
        let answer =
            admin.ask("PATCH", &path, "application/json-patch+json", patch.as_bytes()).await;
        assert_refused_quietly(&operation.to_string(), &answer);
    }
    for body in [
        format!("{{\"data\": {{\"a\": \"{PLANTED}\""),
        format!("{{\"data\": {{\"a\": \"{PLANTED}\"}}}} trailing"),
        format!("{{\"data\": {{\"a\": {PLANTED}}}}}"),
        format!("[\"{PLANTED}\"]"),
        format!("\"{PLANTED}\""),
        format!("data:\n  a: {PLANTED}\n b: [\n"),
        format!("data: &a {PLANTED}\nb: *a\n"),
    ] {
        for kind in [
            "application/json",
            "application/yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
            "application/vnd.kubernetes.protobuf",
        ] {
            let method = if kind.contains("patch") { "PATCH" } else { "PUT" };
            let path = format!("{path}?fieldManager=test");
            let answer = admin.ask(method, &path, kind, body.as_bytes()).await;
            assert_refused_quietly(&format!("{body} as {kind}"), &answer);
        }
    }
    // What is accepted with a warning warns without the value.
    let body = json!({"data": {"a": encoded}, "unknown": PLANTED}).to_string();
    let doubled = format!("{},\"data\":{{\"a\":\"{encoded}\"}}}}", &body[..body.len() - 1]);
    let answer =
        admin.ask("PATCH", &path, "application/merge-patch+json", doubled.as_bytes()).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    for value in answer.headers.get_all("warning") {
        assert!(!leaks(&String::from_utf8_lossy(value.as_bytes()), PLANTED), "{value:?}");
    }
}

/// Credentials that are wrong, or right and shown in the wrong place.
async fn plant_credentials(server: &Server, admin: &Asker) -> String {
    for header in [format!("Bearer {PLANTED}"), format!("Basic {PLANTED}"), PLANTED.to_owned()] {
        let asker = Asker::nobody(server).with_header("authorization", &header);
        assert_refused_quietly(&header, &asker.get(SECRETS).await);
        assert_refused_quietly(&header, &asker.post(SECRETS, &json!({})).await);
    }
    let review = "/apis/authentication.k8s.io/v1/tokenreviews";
    let asked = json!({"spec": {"token": PLANTED, "audiences": 7}});
    assert_refused_quietly("a review that cannot be read", &admin.post(review, &asked).await);
    let request = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let answer = admin.post(request, &json!({})).await;
    assert_eq!(answer.code, 201);
    let token = answer.json["status"]["token"].as_str().expect("a token").to_owned();
    let holder = Asker::with_token(server, &token);
    for path in ["/api", SECRETS, "/clusters/nowhere/api", &format!("/api?access_token={token}")] {
        let answer = holder.get(path).await;
        assert!(!answer.text().contains(&token), "{path}");
    }
    let answer = holder.post(SECRETS, &json!({"metadata": {"name": "x"}})).await;
    assert_eq!(answer.code, 403);
    assert!(!answer.text().contains(&token));
    let asked = json!({"spec": {"token": token, "audiences": "x"}});
    assert!(!admin.post(review, &asked).await.text().contains(&token));
    token
}

#[tokio::test]
async fn a_planted_secret_is_in_no_log_no_audit_line_and_no_refusal() {
    tracing::subscriber::set_global_default(Keeping).expect("nobody else listens");
    tracing::info!(planted = "a word that must be found", "the subscriber listens");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Config { data_directory: Some(directory.path().to_owned()), ..Config::default() };
    let server = Server::start(config).await.expect("a server");
    let admin = Asker::admin(&server);
    let good = json!({
        "metadata": {"name": "good", "annotations": {"example.com/note": PLANTED}},
        "data": {"a": STANDARD.encode(PLANTED)}, "stringData": {"b": PLANTED},
    });
    let made = admin.make(SECRETS, &good).await;
    assert_eq!(made["data"]["b"], STANDARD.encode(PLANTED), "it is shown to whoever may see it");
    plant(&admin).await;
    plant_in_patches(&admin).await;
    let token = plant_credentials(&server, &admin).await;
    for accept in [
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ] {
        let mut shown =
            admin.clone().with_header("accept", accept).get(&format!("{SECRETS}/good")).await;
        // The annotation was planted in the open.
        shown.bytes =
            shown.text().replace(&format!("\"example.com/note\":\"{PLANTED}\""), "").into();
        assert!(!leaks(&shown.text(), PLANTED), "{accept}: {}", shown.text());
    }
    // A deletion, and one that is held: the collector and the purge log what they cannot do.
    admin
        .merge(
            &format!("{SECRETS}/good"),
            &json!({"metadata": {"finalizers": ["example.com/held"]}}),
        )
        .await;
    admin.delete(&format!("{SECRETS}/good")).await;
    admin.delete("/api/v1/namespaces/default").await;
    server.stop().await;
    let audited =
        std::fs::read_to_string(directory.path().join("audit.log")).expect("an audit log");
    assert!(audited.lines().count() > 50, "the audit log was written");
    assert!(!leaks(&audited, PLANTED), "{audited}");
    assert!(!audited.contains(&token));
    let logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(logged.contains("a word that must be found"), "the subscriber heard nothing");
    assert!(!leaks(&logged, PLANTED), "{logged}");
    assert!(!logged.contains(&token));
}
