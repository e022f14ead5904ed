//! Validating webhooks: which writes they are asked about, what they see, and what they refuse.

use super::{Hook, MUTATING, VALIDATING, rule};
use crate::clusters::CLUSTERS;
use crate::custom::{DEFINITIONS, definition};
use crate::support::{Api, MAPS, text};
use interlock_apiserver::Config;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test]
async fn a_webhook_sees_the_write_as_upstream_shows_it() {
    let (api, hook) = (Api::new().await, Hook::allowing().await);
    hook.validates(&api, json!({})).await;
    let alice = api.as_user("alice", &["system:masters"]);
    let made = alice.post(&format!("{MAPS}?fieldManager=me"), &map("a")).await.made();
    alice.merge(&format!("{MAPS}/a"), &json!({"data": {"b": "c"}})).await.ok();
    let [created, updated] = &hook.asked()[..] else { panic!("{:?}", hook.asked()) };
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    for asked in [created, updated] {
        assert!(!text(&asked["uid"]).is_empty());
        assert_eq!((&asked["kind"], &asked["requestKind"]), (&kind, &kind));
        assert_eq!((&asked["resource"], &asked["requestResource"]), (&resource, &resource));
        assert_eq!((&asked["name"], &asked["namespace"]), (&json!("a"), &json!("default")));
        assert_eq!(asked["userInfo"]["username"], "alice");
        assert_eq!(asked["dryRun"], false);
    }
    assert_ne!(created["uid"], updated["uid"]);
    assert_eq!(
        (&created["operation"], &updated["operation"]),
        (&json!("CREATE"), &json!("UPDATE"))
    );
    assert_eq!(created["oldObject"], Value::Null);
    assert_eq!(created["object"]["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(created["options"]["kind"], "CreateOptions");
    assert_eq!(created["options"]["fieldManager"], "me");
    assert_eq!(updated["oldObject"], made);
    assert_eq!(updated["object"]["data"], json!({"b": "c"}));
}

#[tokio::test]
async fn a_denial_is_in_upstreams_words() {
    let api = Api::new().await;
    let hook = Hook::answering(|asked| match asked["name"].as_str() {
        Some("told") => json!({
            "allowed": false, "warnings": ["mind the name"],
            "status": {
                "code": 403, "reason": "Forbidden", "message": "not this name",
                "details": {"causes": [{"reason": "FieldValueInvalid", "message": "no", "field": "a"}]},
            },
        }),
        Some("reason") => json!({"allowed": false, "status": {"reason": "Conflict", "code": 409}}),
        Some("own-word") => json!({"allowed": false, "status": {"message": "x", "reason": "Odd"}}),
        Some("polite") => json!({"allowed": false, "status": {"code": 200, "message": "hm"}}),
        _ => json!({"allowed": false}),
    })
    .await;
    hook.validates(&api, json!({})).await;
    let denied =
        |rest: &str| format!("admission webhook \"guard.example.com\" denied the request{rest}");
    let answer = api.post(MAPS, &map("told")).await;
    assert_eq!(answer.warnings(), ["299 - \"mind the name\""]);
    let status = answer.refused(403, "Forbidden");
    assert_eq!(status["message"], denied(": not this name"));
    assert_eq!(status["details"]["causes"][0]["field"], "a");
    let status = api.post(MAPS, &map("reason")).await.refused(409, "Conflict");
    assert_eq!(status["message"], denied(": Conflict"));
    let status = api.post(MAPS, &map("own-word")).await.refused(400, "");
    assert_eq!(status["message"], denied(": x"));
    let status = api.post(MAPS, &map("polite")).await.refused(400, "");
    assert_eq!(status["message"], denied(": hm"));
    let status = api.post(MAPS, &map("silent")).await.refused(400, "");
    assert_eq!(status["message"], denied(" without explanation"));
    for name in ["told", "reason", "silent"] {
        api.get(&format!("{MAPS}/{name}")).await.refused(404, "NotFound");
    }
}

#[tokio::test]
async fn what_a_webhook_says_reaches_the_client_and_the_audit_log() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Config { data_directory: Some(directory.path().to_owned()), ..Config::default() };
    let api = Api::with(config).await;
    let hook = Hook::answering(
        |_| json!({"allowed": true, "warnings": ["old"], "auditAnnotations": {"seen": "yes"}}),
    )
    .await;
    hook.validates(&api, json!({})).await;
    let answer = api.post(MAPS, &map("a")).await;
    assert_eq!(answer.warnings(), ["299 - \"old\""]);
    answer.made();
    api.server.stop().await;
    let log = std::fs::read_to_string(directory.path().join("audit.log")).expect("an audit log");
    assert!(log.contains("\"guard.example.com/seen\":\"yes\""), "{log}");
}

#[tokio::test]
async fn selectors_and_conditions_choose_the_writes() {
    let (api, hook) = (Api::new().await, Hook::allowing().await);
    let guarded = json!({"metadata": {"name": "guarded", "labels": {"guard": "on"}}});
    api.post("/api/v1/namespaces", &guarded).await.made();
    hook.validates(
        &api,
        json!({
            "namespaceSelector": {"matchLabels": {"guard": "on"}},
            "objectSelector": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
            "matchConditions": [
                {"name": "user", "expression": "request.userInfo.username != 'robot'"},
                {"name": "name", "expression": "!object.metadata.name.startsWith('free-')"},
                {"name": "right", "expression": "authorizer.requestResource.check('get').allowed()"},
            ],
        }),
    )
    .await;
    let maps = "/api/v1/namespaces/guarded/configmaps";
    api.config_map("elsewhere", json!({})).await;
    let skipped = json!({"metadata": {"name": "skipped", "labels": {"skip": "1"}}});
    api.post(maps, &skipped).await.made();
    api.post(maps, &map("free-a")).await.made();
    api.as_user("robot", &["system:masters"]).post(maps, &map("by-robot")).await.made();
    assert!(hook.asked().is_empty(), "{:?}", hook.names());
    api.post(maps, &map("asked")).await.made();
    // A label of the old object or of the new one is enough.
    api.json_patch(
        &format!("{maps}/skipped"),
        &json!([{"op": "remove", "path": "/metadata/labels/skip"}]),
    )
    .await
    .ok();
    assert_eq!(hook.names(), ["asked", "skipped"]);
    let missing = api.post("/api/v1/namespaces/none/configmaps", &map("a")).await;
    missing.refused(404, "NotFound");
}

#[tokio::test]
async fn a_condition_that_cannot_be_evaluated_follows_the_failure_policy() {
    let (api, hook) = (Api::new().await, Hook::allowing().await);
    let broken = json!([{"name": "data", "expression": "object.data.missing == 'a'"}]);
    hook.validates(&api, json!({"matchConditions": broken})).await;
    let status = api.post(MAPS, &map("a")).await.refused(403, "Forbidden");
    assert!(text(&status["message"]).contains("no such key"), "{status}");
    let ignore = json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]);
    api.json_patch(&format!("{VALIDATING}/guard"), &ignore).await.ok();
    api.post(MAPS, &map("a")).await.made();
    assert!(hook.asked().is_empty());
}

#[tokio::test]
async fn subresources_are_asked_about_under_their_own_names() {
    let (api, hook) = (Api::new().await, Hook::allowing().await);
    let pod = json!({
        "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a:1"}]},
    });
    api.post(PODS, &pod).await.made();
    let deployment = json!({
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod["spec"]},
        },
    });
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    api.post(deployments, &deployment).await.made();
    api.post(DEFINITIONS, &definition()).await.made();
    let resources = ["pods/eviction", "pods/status", "*/scale", "serviceaccounts/token"];
    let rules = json!([rule(&resources, &["*"])]);
    hook.validates(&api, json!({"rules": rules})).await;
    api.merge(&format!("{PODS}/a"), &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    api.merge(&format!("{PODS}/a/status"), &json!({"status": {"message": "m"}})).await.ok();
    api.merge(&format!("{deployments}/a/scale"), &json!({"spec": {"replicas": 3}})).await.ok();
    let applied = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"},
        "spec": {"replicas": 4},
    });
    let scale = format!("{deployments}/a/scale?fieldManager=me&force=true");
    api.apply(&scale, &applied).await.ok();
    let account = "/api/v1/namespaces/default/serviceaccounts/default/token";
    api.post(account, &json!({"spec": {"audiences": []}})).await.made();
    let eviction = json!({"metadata": {"name": "a"}});
    api.post(&format!("{PODS}/a/eviction"), &eviction).await.made();
    let asked = hook.asked();
    let shown: Vec<(String, String, String)> = asked
        .iter()
        .map(|asked| {
            (text(&asked["operation"]), text(&asked["subResource"]), text(&asked["kind"]["kind"]))
        })
        .collect();
    let expected = [
        ("UPDATE", "status", "Pod"),
        ("UPDATE", "scale", "Scale"),
        ("UPDATE", "scale", "Scale"),
        ("CREATE", "token", "TokenRequest"),
        ("CREATE", "eviction", "Eviction"),
    ];
    let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(shown, expected);
    assert_eq!(asked[1]["object"]["spec"]["replicas"], 3);
    assert_eq!(asked[1]["oldObject"]["spec"]["replicas"], 1);
    assert_eq!(asked[2]["object"]["spec"]["replicas"], 4);
}

#[tokio::test]
async fn a_deletion_is_refused_by_a_webhook_one_by_one() {
    let api = Api::new().await;
    let hook = Hook::answering(|asked| {
        assert_eq!(asked["object"], Value::Null);
        json!({"allowed": asked["oldObject"]["data"]["keep"] != "yes"})
    })
    .await;
    hook.validates(&api, json!({"rules": [rule(&["configmaps"], &["DELETE"])]})).await;
    api.config_map("free", json!({})).await;
    api.config_map("kept", json!({"keep": "yes"})).await;
    let options = json!({"gracePeriodSeconds": 0});
    api.delete_with(&format!("{MAPS}/kept"), &options).await.refused(400, "");
    api.delete(&format!("{MAPS}/free")).await.ok();
    assert_eq!(hook.asked()[0]["options"]["gracePeriodSeconds"], 0);
    api.config_map("a", json!({})).await;
    api.delete(MAPS).await.refused(400, "");
    api.get(&format!("{MAPS}/kept")).await.ok();
    api.get(&format!("{MAPS}/a")).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_dry_run_is_shown_as_one() {
    let (api, hook) = (Api::new().await, Hook::allowing().await);
    hook.validates(&api, json!({"rules": [rule(&["*/*"], &["*"])]})).await;
    api.post(&format!("{MAPS}?dryRun=All"), &map("a")).await.made();
    api.get(&format!("{MAPS}/a")).await.refused(404, "NotFound");
    let asked = hook.asked();
    assert_eq!(
        (&asked[0]["dryRun"], &asked[0]["options"]["dryRun"]),
        (&json!(true), &json!(["All"]))
    );
}

#[tokio::test]
async fn configurations_and_policies_are_never_subject_to_webhooks() {
    let api = Api::new().await;
    let hook = Hook::answering(|_| json!({"allowed": false})).await;
    hook.validates(&api, json!({"rules": [rule(&["*/*"], &["*"])]})).await;
    hook.mutates(&api, "change", json!({"rules": [rule(&["*/*"], &["*"])]})).await;
    api.post(MAPS, &map("a")).await.refused(400, "");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    api.merge(&format!("{VALIDATING}/guard"), &label).await.ok();
    api.delete(&format!("{VALIDATING}/guard")).await.ok();
    api.delete(&format!("{MUTATING}/change")).await.ok();
    api.post(MAPS, &map("a")).await.made();
}

#[tokio::test]
async fn a_write_that_a_policy_refuses_is_shown_to_no_webhook() {
    let (api, hook) = (Api::new().await, Hook::allowing().await);
    hook.validates(&api, json!({})).await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"metadata": {"name": "no"}, "spec": {
        "matchConstraints": {"resourceRules": [rule(&["configmaps"], &["CREATE"])]},
        "validations": [{"expression": "object.metadata.name != 'a'"}],
    }});
    api.post(&format!("{group}/validatingadmissionpolicies"), &policy).await.made();
    let binding = json!({
        "metadata": {"name": "no"}, "spec": {"policyName": "no", "validationActions": ["Deny"]},
    });
    api.post(&format!("{group}/validatingadmissionpolicybindings"), &binding).await.made();
    api.post(MAPS, &map("a")).await.refused(422, "Invalid");
    api.post(MAPS, &map("b")).await.made();
    assert_eq!(hook.names(), ["b"]);
}

#[tokio::test]
async fn another_version_of_a_custom_kind_is_shown_as_the_rule_names_it() {
    let (api, hook) = (Api::new().await, Hook::allowing().await);
    let mut widgets = definition();
    let mut second = widgets["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    widgets["spec"]["versions"].as_array_mut().expect("a list").push(second);
    api.post(DEFINITIONS, &widgets).await.made();
    let only_first = json!([{
        "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"],
        "operations": ["CREATE"],
    }]);
    hook.validates(&api, json!({"rules": only_first})).await;
    let exact = hook.configuration("exact", json!({"rules": only_first, "matchPolicy": "Exact"}));
    let other = Hook::allowing().await;
    let mut exact_config = exact;
    exact_config["webhooks"][0]["clientConfig"] = json!({
        "url": format!("https://{}/", other.address), "caBundle": other.bundle,
    });
    api.post(VALIDATING, &exact_config).await.made();
    let second = "/apis/example.com/v2/namespaces/default/widgets";
    api.post(second, &json!({"metadata": {"name": "a"}})).await.made();
    let asked = hook.asked();
    assert_eq!(asked[0]["object"]["apiVersion"], "example.com/v1");
    assert_eq!(asked[0]["kind"]["version"], "v1");
    assert_eq!(asked[0]["requestKind"]["version"], "v2");
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn webhooks_of_one_cluster_are_not_asked_about_another() {
    let (api, hook) = (Api::new().await, Hook::allowing().await);
    hook.validates(&api, json!({"rules": [rule(&["*/*"], &["*"])]})).await;
    api.post(CLUSTERS, &map("one")).await.made();
    api.in_cluster("one").config_map("a", json!({})).await;
    api.config_map("b", json!({})).await;
    assert_eq!(hook.names(), ["one", "b"]);
}
