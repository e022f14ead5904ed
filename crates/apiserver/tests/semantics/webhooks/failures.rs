//! Webhooks that hang, talk nonsense, hang up or call back: bounded, clear, and nobody else waits.

use super::{Hook, MUTATING, Reply, VALIDATING, rule};
use crate::clusters::CLUSTERS;
use crate::support::{Api, MAPS, text};
use interlock_apiserver::Config;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

async fn replying(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Hook {
    Hook::replying(move |_| {
        let reply = reply();
        Box::pin(async move { reply })
    })
    .await
}

/// The write is refused with the reason, or passes if the webhook may be skipped.
async fn fails(hook: &Hook, why: &str) {
    let api = Api::new().await;
    let quick = json!({"timeoutSeconds": 1});
    for path in [VALIDATING, MUTATING] {
        api.post(path, &hook.configuration("guard", quick.clone())).await.made();
        let status = api.post(MAPS, &map("a")).await.refused(500, "InternalError");
        let message = text(&status["message"]);
        let begins = "Internal error occurred: failed calling webhook \"guard.example.com\": ";
        assert!(message.starts_with(begins), "{message}");
        assert!(message.contains(why), "{message}");
        assert_eq!(status["details"]["causes"][0]["message"], message[25..]);
        let skipped = json!([
            {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"},
        ]);
        api.json_patch(&format!("{path}/guard"), &skipped).await.ok();
        api.post(MAPS, &map("a")).await.made();
        api.delete(&format!("{path}/guard")).await.ok();
        api.delete(&format!("{MAPS}/a")).await.ok();
    }
}

#[tokio::test]
async fn a_webhook_that_hangs_is_given_up_after_its_timeout() {
    let hook = replying(|| Reply::Hang).await;
    fails(&hook, "?timeout=1s\": context deadline exceeded").await;
}

#[tokio::test]
async fn a_webhook_that_talks_nonsense_is_a_failure() {
    fails(&replying(|| Reply::Plain(200, b"yes".to_vec())).await, "the answer is no JSON").await;
    fails(&replying(|| Reply::Plain(200, b"{}".to_vec())).await, "webhook response was absent")
        .await;
    fails(&Hook::babbling(b"hello\r\n").await, "failed to call webhook").await;
    let other = || Reply::Review(json!({"uid": "other", "allowed": true}));
    fails(&replying(other).await, "expected response.uid=").await;
    let half = || Reply::Review(json!({"allowed": true, "patchType": "JSONPatch"}));
    fails(&replying(half).await, "received invalid webhook response: ").await;
}

#[tokio::test]
async fn a_validating_webhook_may_not_patch() {
    let (api, hook) = (Api::new().await, Hook::patching(json!([])).await);
    hook.validates(&api, json!({})).await;
    let status = api.post(MAPS, &map("a")).await.refused(500, "InternalError");
    let why = "received invalid webhook response: validating webhook may not return response.patch";
    assert!(text(&status["message"]).ends_with(why), "{status}");
}

#[tokio::test]
async fn a_webhook_that_hangs_up_or_sends_elsewhere_is_a_failure() {
    fails(&replying(|| Reply::Close).await, "failed to call webhook: Post \"https://127.0.0.1:")
        .await;
    let elsewhere = Hook::allowing().await;
    let to = format!("https://{}/hook", elsewhere.address);
    let redirecting = replying(move || Reply::Redirect(to.clone())).await;
    fails(&redirecting, "the webhook answered with status 302").await;
    assert!(elsewhere.asked().is_empty());
    fails(&replying(|| Reply::Plain(503, Vec::new())).await, "status 503").await;
}

#[tokio::test]
async fn an_answer_that_never_ends_is_cut_off() {
    let huge = replying(|| Reply::Plain(200, vec![b' '; 8 * 1024 * 1024])).await;
    let api = Api::new().await;
    huge.validates(&api, json!({})).await;
    let status = api.post(MAPS, &map("a")).await.refused(500, "InternalError");
    assert!(text(&status["message"]).contains("the answer is larger than"), "{status}");
}

#[tokio::test]
async fn a_webhook_with_a_certificate_of_somebody_else_is_not_asked() {
    let (mut hook, other) = (Hook::allowing().await, Hook::allowing().await);
    hook.bundle = other.bundle;
    fails(&hook, "TLS: invalid peer certificate").await;
    assert!(hook.asked().is_empty());
    hook.bundle = "bm8=".to_owned();
    fails(&hook, "the caBundle has no certificate").await;
}

#[tokio::test]
async fn nobody_listens() {
    let mut hook = Hook::allowing().await;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    hook.address = closed.local_addr().expect("it listens");
    drop(closed);
    fails(&hook, "failed to call webhook: Post \"https://127.0.0.1:").await;
}

#[tokio::test]
async fn an_update_that_lost_a_race_is_shown_again() {
    let api = Api::new().await;
    api.config_map("a", json!({})).await;
    let (other, calls) = (api.clone(), Arc::new(AtomicUsize::new(0)));
    // The webhook writes the object while it is asked about it: the write must be made again.
    let hook = Hook::replying(move |_| {
        let (other, calls) = (other.clone(), Arc::clone(&calls));
        Box::pin(async move {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                let faster = json!({"metadata": {"annotations": {"faster": "yes"}}});
                let mine = other.as_user("robot", &["system:masters"]);
                mine.merge(&format!("{MAPS}/a"), &faster).await.ok();
            }
            Reply::Review(json!({"allowed": true}))
        })
    })
    .await;
    let others = json!([{"name": "others", "expression": "request.userInfo.username != 'robot'"}]);
    hook.validates(&api, json!({"matchConditions": others})).await;
    let changed = api.merge(&format!("{MAPS}/a"), &json!({"data": {"a": "b"}})).await.ok();
    assert_eq!(changed["metadata"]["annotations"]["faster"], "yes");
    let asked = hook.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0]["oldObject"]["metadata"].get("annotations"), None);
    assert_eq!(asked[1]["oldObject"]["metadata"]["annotations"]["faster"], "yes");
}

#[tokio::test]
async fn a_webhook_that_calls_itself_through_the_server_ends() {
    let api = Api::new().await;
    let (inner, count) = (api.clone(), Arc::new(AtomicUsize::new(0)));
    let hook = Hook::replying(move |_| {
        let (inner, count) = (inner.clone(), Arc::clone(&count));
        Box::pin(async move {
            // Each call writes another config map, for which it is called again.
            let name = format!("inner-{}", count.fetch_add(1, Ordering::SeqCst));
            let answer = inner.post(MAPS, &map(&name)).await;
            Reply::Review(json!({"allowed": answer.code == 201}))
        })
    })
    .await;
    hook.validates(&api, json!({"timeoutSeconds": 5})).await;
    let began = Instant::now();
    let answer = api.post(MAPS, &map("outer")).await;
    assert!(matches!(answer.code, 400 | 500), "{}", answer.body);
    // One call after the other waits for the next one, until there is no place left.
    assert!(hook.asked().len() <= 64, "{}", hook.asked().len());
    assert!(began.elapsed() < Duration::from_secs(120));
    api.delete(&format!("{VALIDATING}/guard")).await.ok();
    api.post(MAPS, &map("outer")).await.made();
}

#[tokio::test]
async fn a_neighbour_is_served_while_fifty_webhooks_hang() {
    let reach = "127.0.0.1".parse().expect("a network");
    let api = Api::with(Config { tenant_webhooks: reach, ..Config::default() }).await;
    for name in ["slow", "neighbour"] {
        api.post(CLUSTERS, &map(name)).await.made();
    }
    let slow = api.in_cluster("slow");
    let hook = replying(|| Reply::Hang).await;
    hook.validates(&slow, json!({"rules": [rule(&["configmaps"], &["CREATE"])]})).await;
    let hanging: Vec<_> = (0..50)
        .map(|number| {
            let slow = slow.clone();
            tokio::spawn(async move { slow.post(MAPS, &map(&format!("a-{number}"))).await.code })
        })
        .collect();
    while hook.asked().len() < 50 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // None of these waits for a webhook: each would take as long as its timeout.
    let began = Instant::now();
    api.in_cluster("neighbour").config_map("a", json!({})).await;
    api.config_map("a", json!({})).await;
    slow.post("/api/v1/namespaces", &map("b")).await.made();
    slow.get(MAPS).await.ok();
    // Whoever changes a policy waits for the writes under way, but not for those that ask a webhook.
    let policy = json!({"metadata": {"name": "any"}, "spec": {
        "matchConstraints": {"resourceRules": [rule(&["secrets"], &["CREATE"])]},
        "validations": [{"expression": "true"}],
    }});
    let group = "/apis/admissionregistration.k8s.io/v1";
    slow.post(&format!("{group}/validatingadmissionpolicies"), &policy).await.made();
    slow.delete(&format!("{VALIDATING}/guard")).await.ok();
    slow.post(MAPS, &map("free")).await.made();
    assert!(began.elapsed() < Duration::from_secs(25), "somebody waited for a webhook");
    assert!(hanging.iter().all(|task| !task.is_finished()));
    hanging.into_iter().for_each(|task| task.abort());
}

#[tokio::test]
async fn a_cluster_has_so_many_writes_that_wait_for_webhooks_and_no_more() {
    let api = Api::new().await;
    let hook = replying(|| Reply::Hang).await;
    hook.validates(&api, json!({})).await;
    let hanging: Vec<_> = (0..64)
        .map(|number| {
            let api = api.clone();
            tokio::spawn(async move { api.post(MAPS, &map(&format!("a-{number}"))).await.code })
        })
        .collect();
    while hook.asked().len() < 64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let status = api.post(MAPS, &map("one-more")).await.refused(429, "TooManyRequests");
    assert!(text(&status["message"]).contains("wait for admission webhooks"), "{status}");
    assert_eq!(hook.asked().len(), 64);
    hanging.into_iter().for_each(|task| task.abort());
}
