//! What is too large is refused at its limit, and what is just small enough is served.

use crate::asking::Asker;
use bytes::Bytes;
use http::Request;
use http_body::{Body as HttpBody, Frame};
use interlock_apiserver::Server;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn admin() -> Asker {
    Asker::admin(&Server::in_memory().await.expect("a server"))
}

fn map_of(bytes: usize) -> Value {
    json!({"metadata": {"name": "a"}, "data": {"x": "x".repeat(bytes)}})
}

/// A body without end, which counts how much of it was taken.
struct Endless {
    taken: Arc<AtomicUsize>,
}

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.taken.fetch_add(64 * 1024, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b' '; 64 * 1024])))))
    }
}

#[tokio::test]
async fn a_body_is_kept_up_to_three_mebibytes_and_read_up_to_a_bound() {
    let admin = admin().await;
    let taken = Arc::new(AtomicUsize::new(0));
    let request = Request::builder()
        .method("POST")
        .uri(CONFIG_MAPS)
        .header("content-type", "application/json")
        .body(Endless { taken: Arc::clone(&taken) })
        .expect("a request");
    let answer = crate::asking::read(admin.server.handle(request, &admin.caller).await).await;
    assert_eq!((answer.code, &answer.json["reason"]), (413, &json!("RequestEntityTooLarge")));
    let taken = taken.load(Ordering::Relaxed);
    // What is too much is passed over, so that the client gets its answer; but not for ever.
    assert!(taken <= (3 + 16) * 1024 * 1024 + 128 * 1024, "{taken} bytes were read");
    let answer = admin.post(CONFIG_MAPS, &map_of(3 * 1024 * 1024)).await;
    assert_eq!(answer.code, 413, "{}", answer.text());
}

#[tokio::test]
async fn an_object_may_take_a_mebibyte_and_a_half() {
    let admin = admin().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret =
        |bytes: usize| json!({"metadata": {"name": "a"}, "stringData": {"x": "x".repeat(bytes)}});
    // A release of Helm: a mebibyte before it is encoded.
    assert_eq!(admin.post(secrets, &secret(1024 * 1024)).await.code, 201);
    let role = |count: usize| {
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": vec!["x".repeat(1000); count]}]);
        json!({"metadata": {"name": format!("r{count}")}, "rules": rules})
    };
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    assert_eq!(admin.post(roles, &role(1000)).await.code, 201);
    let answer = admin.post(roles, &role(1600)).await;
    assert_eq!(answer.code, 413, "{}", answer.text());
    assert_eq!(admin.get(&format!("{roles}/r1600")).await.code, 404);
    // A small step that makes it too large is refused in the same way.
    let patch = json!({"metadata": {"annotations": {"x": "y"}}, "rules": role(1600)["rules"]});
    let path = format!("{roles}/r1000");
    assert_eq!(admin.merge(&path, &patch).await.code, 413);
    assert_eq!(admin.get(&path).await.json["metadata"]["annotations"], Value::Null);
}

#[tokio::test]
async fn a_json_patch_has_at_most_ten_thousand_operations() {
    let admin = admin().await;
    admin.make(CONFIG_MAPS, &map_of(1)).await;
    let path = format!("{CONFIG_MAPS}/a");
    let patch = |count: usize| -> Vec<u8> {
        let one = json!({"op": "replace", "path": "/data/x", "value": "z"});
        Value::Array(vec![one; count]).to_string().into_bytes()
    };
    let kind = "application/json-patch+json";
    assert_eq!(admin.ask("PATCH", &path, kind, &patch(10_000)).await.code, 200);
    let answer = admin.ask("PATCH", &path, kind, &patch(10_001)).await;
    assert_eq!((answer.code, &answer.json["reason"]), (413, &json!("RequestEntityTooLarge")));
    // Copies that double an object again and again.
    let doubling: Vec<Value> = (0..60)
        .map(|step| json!({"op": "copy", "from": "/data", "path": format!("/data/{step}")}))
        .collect();
    let answer =
        admin.ask("PATCH", &path, kind, Value::Array(doubling).to_string().as_bytes()).await;
    assert_eq!(answer.code, 422, "{}", answer.text());
}

#[tokio::test]
async fn a_long_selector_is_taken_and_a_longer_one_refused() {
    let admin = admin().await;
    let mut map = map_of(1);
    let labels: serde_json::Map<String, Value> =
        (0..1000).map(|number| (format!("label-{number}"), json!(format!("v{number}")))).collect();
    map["metadata"]["labels"] = Value::Object(labels);
    admin.make(CONFIG_MAPS, &map).await;
    let selector = |bytes: usize| {
        let parts: Vec<String> =
            (0..).map(|number| format!("label-{number}%3Dv{number}")).take(1000).collect();
        let mut text = String::new();
        for part in parts {
            if text.replace("%3D", "=").len() + part.len() > bytes {
                break;
            }
            text = if text.is_empty() { part } else { format!("{text},{part}") };
        }
        text
    };
    let long = selector(16 * 1024);
    assert!(long.len() > 15 * 1024);
    let answer = admin.get(&format!("{CONFIG_MAPS}?labelSelector={long}")).await;
    assert_eq!(answer.names(), ["a"], "{}", answer.text());
    let longer = format!("{long},{}", "x".repeat(2000));
    let answer = admin.get(&format!("{CONFIG_MAPS}?labelSelector={longer}")).await;
    assert_eq!(answer.code, 400, "{}", answer.text());
}

#[tokio::test]
async fn deep_values_are_refused_and_never_overflow_the_stack() {
    let admin = admin().await;
    let nested = |open: &str, close: &str, levels: usize| {
        format!(
            "{{\"metadata\":{{\"name\":\"deep\"}},\"x\":{}1{}}}",
            open.repeat(levels),
            close.repeat(levels)
        )
    };
    for levels in [100, 127, 128, 1000, 100_000, 500_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
            for kind in ["application/json", "application/yaml", "application/apply-patch+yaml"] {
                let body = nested(open, close, levels);
                let method = if kind.contains("patch") { "PATCH" } else { "POST" };
                let path = if method == "POST" {
                    CONFIG_MAPS.to_owned()
                } else {
                    format!("{CONFIG_MAPS}/deep?fieldManager=test")
                };
                let answer = admin.ask(method, &path, kind, body.as_bytes()).await;
                if levels > 128 {
                    assert!(
                        matches!(answer.code, 400 | 413),
                        "{levels} {open} {kind}: {}",
                        answer.code
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn whatever_is_stored_can_be_read_by_those_who_stop_at_128_levels() {
    let admin = admin().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    admin.make(definitions, &crate::bodies::open_definition("things")).await;
    let things = "/apis/example.com/v1/namespaces/default/things";
    let (mut taken, mut refused) = (0, 0);
    for levels in 90..130 {
        for (name, is_list) in [("list", true), ("map", false)] {
            let deep = (0..levels).fold(json!(1), |inner, _| {
                if is_list { json!([inner]) } else { json!({"a": inner}) }
            });
            let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing",
                               "metadata": {"name": format!("{name}-{levels}")}, "spec": deep});
            // Written out by hand where it is too deep for a value to be parsed back.
            let answer = admin.post(things, &thing).await;
            assert!(matches!(answer.code, 201 | 400), "{levels}: {}", answer.text());
            if answer.code == 201 {
                taken += 1
            } else {
                refused += 1
            }
            let path = format!("{things}/{name}-{levels}?fieldManager=test");
            let applied = admin.apply(&path, &thing).await;
            assert!(matches!(applied.code, 200 | 201 | 400), "{levels}: {}", applied.text());
        }
    }
    assert!(taken > 20 && refused > 10, "{taken} were taken, {refused} refused");
    let list = admin.get(things).await;
    assert!(list.names().len() >= taken, "the list cannot be read");
    let include = format!("{things}?includeObject=Object");
    let table = admin.clone().with_header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    assert!(table.get(&include).await.json["rows"].is_array(), "the table cannot be read");
    for who in [&admin, &table] {
        let (_, mut events) = who.watch(&format!("{include}&watch=true")).await;
        for _ in 0..taken {
            // The reader fails on an event that it cannot read.
            events.next().await.expect("an event");
        }
    }
    // And they can still be changed: what cannot be decoded would be lost.
    for name in list.names() {
        let label = json!({"metadata": {"labels": {"x": "y"}}});
        let answer = admin.merge(&format!("{things}/{name}"), &label).await;
        assert!(answer.code == 400 || !answer.json["spec"].is_null(), "{name}: {}", answer.text());
    }
}
