//! Parameters of policies: where they come from, and that no write is committed against an old one.

use crate::support::{Api, MAPS, text, version};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// A policy about secrets whose parameter is a config map.
async fn enforce(api: &Api, expression: &str, reference: Value) {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"],
        "operations": ["CREATE", "UPDATE"],
    });
    let policy = json!({"metadata": {"name": "limit"}, "spec": {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{
            "expression": expression,
            "messageExpression": "'at least ' + params.data.least",
        }],
    }});
    api.post(POLICIES, &policy).await.made();
    let binding = json!({"metadata": {"name": "limit"}, "spec": {
        "policyName": "limit", "validationActions": ["Deny"], "paramRef": reference,
    }});
    api.post(BINDINGS, &binding).await.made();
}

const AT_LEAST: &str = "int(object.metadata.annotations.token) >= int(params.data.least)";

fn secret(name: &str, token: u64) -> Value {
    json!({"metadata": {"name": name, "annotations": {"token": token.to_string()}}})
}

#[tokio::test]
async fn a_parameter_is_found_by_its_name() {
    let api = Api::new().await;
    let reference = json!({
        "name": "least", "namespace": "default", "parameterNotFoundAction": "Deny",
    });
    enforce(&api, AT_LEAST, reference).await;
    let status = api.post(SECRETS, &secret("a", 5)).await.refused(422, "Invalid");
    let missing = "denied request: failed to configure binding: no params found for policy \
                   binding with `Deny` parameterNotFoundAction";
    assert!(text(&status["message"]).ends_with(missing), "{status}");
    api.config_map("least", json!({"least": "5"})).await;
    api.post(SECRETS, &secret("a", 5)).await.made();
    let status = api.post(SECRETS, &secret("b", 4)).await.refused(422, "Invalid");
    assert!(text(&status["message"]).ends_with("denied request: at least 5"), "{status}");
    let allow = json!({"spec": {"paramRef": {"parameterNotFoundAction": "Allow"}}});
    api.merge(&format!("{BINDINGS}/limit"), &allow).await.ok();
    api.delete(&format!("{MAPS}/least")).await.ok();
    api.post(SECRETS, &secret("b", 4)).await.made();
}

#[tokio::test]
async fn parameters_are_found_by_their_labels_in_the_namespace_of_the_object() {
    let api = Api::new().await;
    let reference = json!({
        "selector": {"matchLabels": {"limit": "yes"}}, "parameterNotFoundAction": "Allow",
    });
    enforce(&api, AT_LEAST, reference).await;
    api.post(SECRETS, &secret("a", 0)).await.made();
    for (name, least) in [("three", "3"), ("seven", "7")] {
        let map = json!({"metadata": {"name": name, "labels": {"limit": "yes"}},
            "data": {"least": least}});
        api.post(MAPS, &map).await.made();
    }
    for token in [0, 6] {
        let status = api.post(SECRETS, &secret("b", token)).await.refused(422, "Invalid");
        assert!(text(&status["message"]).ends_with("at least 7"), "{status}");
    }
    api.post(SECRETS, &secret("b", 7)).await.made();
    api.namespace("other").await;
    api.post("/api/v1/namespaces/other/secrets", &secret("b", 0)).await.made();
}

#[tokio::test]
async fn whoever_binds_a_parameter_must_be_able_to_read_it() {
    let api = Api::new().await;
    let role = json!({"metadata": {"name": "policies"}, "rules": [
        {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}]});
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await.made();
    let bound = json!({"metadata": {"name": "policies"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "policies"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}]});
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &bound).await.made();
    let policy = json!({"metadata": {"name": "spy"}, "spec": {
        "paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"], "operations": ["CREATE"]}]},
        "validations": [{"expression": "false", "messageExpression": "string(params.data.key)"}],
    }});
    let eve = api.as_user("eve", &[]);
    let status = eve.post(POLICIES, &policy).await.refused(422, "Invalid");
    assert!(text(&status["message"]).contains("must have \"get\" permission"), "{status}");
    api.post(POLICIES, &policy).await.made();
    let binding = json!({"metadata": {"name": "spy"}, "spec": {"policyName": "spy",
        "validationActions": ["Deny"], "paramRef": {"name": "a", "namespace": "default",
        "parameterNotFoundAction": "Deny"}}});
    let status = eve.post(BINDINGS, &binding).await.refused(422, "Invalid");
    assert!(text(&status["message"]).contains("does not have \"get\" permission"), "{status}");
}

/// Writers carry the token that they saw last; the parameter only ever rises. Each write that was committed after
/// the parameter rose must carry a token that is at least as high.
async fn race(reference: Value, rounds: u64) {
    let api = Api::new().await;
    enforce(&api, AT_LEAST, reference).await;
    let least = json!({"metadata": {"name": "least", "labels": {"limit": "yes"}},
        "data": {"least": "0"}});
    let first = version(&api.post(MAPS, &least).await.made());
    let is_over = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for writer in 0..4_u64 {
        let (api, is_over) = (api.clone(), Arc::clone(&is_over));
        writers.push(tokio::spawn(async move {
            let (mut committed, mut refused, mut round) = (Vec::new(), 0_u64, 0_u64);
            while !is_over.load(Ordering::Relaxed) {
                round += 1;
                let seen = api.get(&format!("{MAPS}/least")).await.ok();
                let token = text(&seen["data"]["least"]).parse().expect("it is a number");
                tokio::task::yield_now().await;
                let name = format!("s-{writer}-{round}");
                let answer = api.post(SECRETS, &secret(&name, token)).await;
                match answer.code {
                    201 => committed.push((version(&answer.body), token)),
                    // A write conflict with the parameter, or so many of them that the server gave up.
                    422 | 409 => refused += 1,
                    _ => panic!("{answer:?}"),
                }
            }
            (committed, refused)
        }));
    }
    // When the parameter rose, and to what.
    let mut rises = vec![(first, 0)];
    for token in 1..=rounds {
        let raise = json!({"data": {"least": token.to_string()}});
        let raised = api.merge(&format!("{MAPS}/least"), &raise).await.ok();
        rises.push((version(&raised), token));
        tokio::task::yield_now().await;
    }
    is_over.store(true, Ordering::Relaxed);
    let (mut all, mut turned_away) = (0, 0);
    for writer in writers {
        let (committed, refused) = writer.await.expect("a writer ends");
        turned_away += refused;
        for (revision, token) in committed {
            let place = rises.partition_point(|(at, _)| *at <= revision);
            let (at, least) = rises[place - 1];
            assert!(
                token >= least,
                "a write with token {token} was committed at {revision}, after {least} at {at}"
            );
            all += 1;
        }
    }
    assert!(all > 0 && turned_away > 0, "{all} committed and {turned_away} refused: no race");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_write_is_committed_against_an_old_parameter() {
    let reference = json!({
        "name": "least", "namespace": "default", "parameterNotFoundAction": "Deny",
    });
    race(reference, 10_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_write_is_committed_against_an_old_parameter_that_was_found_by_labels() {
    let reference = json!({
        "selector": {"matchLabels": {"limit": "yes"}}, "parameterNotFoundAction": "Deny",
    });
    race(reference, 2_000).await;
}

/// The policy comes and goes while others write: whatever was committed while it was there obeys it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_write_is_committed_after_a_binding_that_it_was_not_judged_by() {
    let api = Api::new().await;
    let policy = json!({"metadata": {"name": "none"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["secrets"], "operations": ["CREATE"]}]},
        "validations": [{"expression": "false"}],
    }});
    api.post(POLICIES, &policy).await.made();
    let binding = json!({"metadata": {"name": "none"},
        "spec": {"policyName": "none", "validationActions": ["Deny"]}});
    let is_over = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for writer in 0..4_u64 {
        let (api, is_over) = (api.clone(), Arc::clone(&is_over));
        writers.push(tokio::spawn(async move {
            let (mut committed, mut round) = (Vec::new(), 0_u64);
            while !is_over.load(Ordering::Relaxed) {
                round += 1;
                let answer = api.post(SECRETS, &secret(&format!("s-{writer}-{round}"), 0)).await;
                if answer.code == 201 {
                    committed.push(version(&answer.body));
                }
            }
            committed
        }));
    }
    let mut periods = Vec::new();
    for _ in 0..500 {
        let from = version(&api.post(BINDINGS, &binding).await.made());
        tokio::task::yield_now().await;
        // Not later than what the store shows just before the binding is deleted.
        let until = version(&api.get(&format!("{BINDINGS}/none")).await.ok());
        let list = api.get("/api/v1/namespaces/default/configmaps?limit=1").await.ok();
        let until =
            until.max(text(&list["metadata"]["resourceVersion"]).parse().expect("a number"));
        periods.push(from..=until);
        api.delete(&format!("{BINDINGS}/none")).await.ok();
        tokio::task::yield_now().await;
    }
    is_over.store(true, Ordering::Relaxed);
    let mut all = 0;
    for writer in writers {
        for revision in writer.await.expect("a writer ends") {
            assert!(!periods.iter().any(|period| period.contains(&revision)), "{revision}");
            all += 1;
        }
    }
    assert!(all > 0, "nothing was written");
}
