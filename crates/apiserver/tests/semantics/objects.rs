//! Creating, reading and replacing: what the server fills in, and what it refuses.

use crate::support::{Api, MAPS, fields, text, version};
use serde_json::json;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(name: &str) -> serde_json::Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    })
}

#[tokio::test]
async fn a_new_object_gets_what_only_the_server_gives() {
    let api = Api::new().await;
    let sent = json!({
        "metadata": {
            "name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z",
            "generation": 7, "deletionTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/x",
        },
        "data": {"k": "v"},
    });
    let made = api.post(MAPS, &sent).await.made();
    assert_eq!(made["kind"], "ConfigMap");
    assert_eq!(made["apiVersion"], "v1");
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_eq!(made["data"], json!({"k": "v"}));
    let metadata = &made["metadata"];
    assert_eq!(text(&metadata["uid"]).len(), 36, "{metadata}");
    assert_ne!(metadata["creationTimestamp"], "2001-01-01T00:00:00Z");
    for field in ["deletionTimestamp", "selfLink", "generation"] {
        assert_eq!(metadata.get(field), None, "{field}");
    }
    assert_eq!(api.get(&format!("{MAPS}/a")).await.ok(), made);
}

#[tokio::test]
async fn an_object_can_be_called_what_the_server_likes() {
    let api = Api::new().await;
    let sent = json!({"metadata": {"generateName": "web-"}});
    let first = api.post(MAPS, &sent).await.made();
    let second = api.post(MAPS, &sent).await.made();
    let (first, second) = (text(&first["metadata"]["name"]), text(&second["metadata"]["name"]));
    assert_ne!(first, second);
    for name in [&first, &second] {
        assert!(name.starts_with("web-") && name.len() == "web-".len() + 5, "{name}");
    }
    let status = api.post(MAPS, &json!({"metadata": {}})).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["metadata.name"]);
    assert_eq!(
        status["message"],
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"
    );
}

#[tokio::test]
async fn a_name_can_be_given_once() {
    let api = Api::new().await;
    api.config_map("a", json!({})).await;
    let again = api.post(MAPS, &json!({"metadata": {"name": "a"}})).await;
    let status = again.refused(409, "AlreadyExists");
    assert_eq!(status["message"], "configmaps \"a\" already exists");
    assert_eq!(status["details"], json!({"name": "a", "kind": "configmaps"}));
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let api = Api::new().await;
    let status = api.get(&format!("{DEPLOYMENTS}/a")).await.refused(404, "NotFound");
    assert_eq!(status["message"], "deployments.apps \"a\" not found");
    assert_eq!(status["details"], json!({"name": "a", "group": "apps", "kind": "deployments"}));
    let body = json!({"metadata": {"name": "a"}});
    api.put(&format!("{MAPS}/a"), &body).await.refused(404, "NotFound");
    api.merge(&format!("{MAPS}/a"), &body).await.refused(404, "NotFound");
    api.delete(&format!("{MAPS}/a")).await.refused(404, "NotFound");
    let elsewhere = api.post("/api/v1/namespaces/nowhere/configmaps", &body).await;
    let status = elsewhere.refused(404, "NotFound");
    assert_eq!(status["message"], "namespaces \"nowhere\" not found");
}

#[tokio::test]
async fn the_generation_moves_when_what_is_wanted_does() {
    let api = Api::new().await;
    let made = api.post(DEPLOYMENTS, &deployment("a")).await.made();
    assert_eq!(made["metadata"]["generation"], 1);
    let path = format!("{DEPLOYMENTS}/a");
    let labelled = api.merge(&path, &json!({"metadata": {"labels": {"x": "y"}}})).await.ok();
    assert_eq!(labelled["metadata"]["generation"], 1);
    let status = json!({"status": {"replicas": 1, "observedGeneration": 1}});
    let seen = api.merge(&format!("{path}/status"), &status).await.ok();
    assert_eq!(seen["metadata"]["generation"], 1);
    assert_eq!(seen["status"]["replicas"], 1);
    let scaled = api.merge(&path, &json!({"spec": {"replicas": 2}})).await.ok();
    assert_eq!(scaled["metadata"]["generation"], 2);
    assert_eq!(scaled["status"]["replicas"], 1);
    let forged = api.merge(&path, &json!({"metadata": {"generation": 99}})).await.ok();
    assert_eq!(forged["metadata"]["generation"], 2);
}

#[tokio::test]
async fn each_door_writes_only_what_is_behind_it() {
    let api = Api::new().await;
    api.post(DEPLOYMENTS, &deployment("a")).await.made();
    let path = format!("{DEPLOYMENTS}/a");
    let both = json!({"spec": {"replicas": 5}, "status": {"replicas": 5}});
    let seen = api.merge(&format!("{path}/status"), &both).await.ok();
    assert_eq!((&seen["spec"]["replicas"], &seen["status"]["replicas"]), (&json!(1), &json!(5)));
    let both = json!({"spec": {"replicas": 7}, "status": {"replicas": 7}});
    let wanted = api.merge(&path, &both).await.ok();
    assert_eq!(
        (&wanted["spec"]["replicas"], &wanted["status"]["replicas"]),
        (&json!(7), &json!(5))
    );
    api.get(&format!("{MAPS}/kube-root-ca.crt/status")).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_write_that_rests_on_an_old_version_is_a_conflict() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    let mut first = api.config_map("a", json!({"k": "1"})).await;
    let mut second = first.clone();
    second["data"]["k"] = json!("2");
    api.put(&path, &second).await.ok();
    first["data"]["k"] = json!("3");
    let status = api.put(&path, &first).await.refused(409, "Conflict");
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please \
         apply your changes to the latest version and try again"
    );
    assert_eq!(status["details"], json!({"name": "a", "kind": "configmaps"}));
    let stale = json!({"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}});
    api.merge(&path, &stale).await.refused(409, "Conflict");
    let other = json!({"metadata": {"name": "a", "uid": "another"}});
    api.put(&path, &other).await.refused(409, "Conflict");
    assert_eq!(api.get(&path).await.ok()["data"]["k"], "2");
}

#[tokio::test]
async fn who_names_no_version_overwrites_what_is_there() {
    let api = Api::new().await;
    let made = api.config_map("a", json!({"k": "1", "gone": "x"})).await;
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "2"}});
    let put = api.put(&format!("{MAPS}/a"), &body).await.ok();
    assert_eq!(put["data"], json!({"k": "2"}));
    for field in ["uid", "creationTimestamp"] {
        assert_eq!(put["metadata"][field], made["metadata"][field]);
    }
    assert!(version(&put) > version(&made));
}

#[tokio::test]
async fn kinds_that_must_not_be_overwritten_blindly_want_a_version() {
    let api = Api::new().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let body = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}});
    let made = api.post(leases, &body).await.made();
    let status = api.put(&format!("{leases}/a"), &body).await.refused(422, "Invalid");
    assert_eq!(
        status["message"],
        "Lease.coordination.k8s.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: \
         must be specified for an update"
    );
    assert_eq!(fields(&status), ["metadata.resourceVersion"]);
    let mut renewed = made.clone();
    renewed["spec"]["renewTime"] = json!("2030-01-01T00:00:00.000000Z");
    let renewed = api.put(&format!("{leases}/a"), &renewed).await.ok();
    assert_eq!(renewed["spec"]["renewTime"], "2030-01-01T00:00:00.000000Z");
    api.put(&format!("{leases}/a"), &made).await.refused(409, "Conflict");
}

#[tokio::test]
async fn a_write_that_changes_nothing_keeps_the_version() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    let made = api.config_map("a", json!({"k": "v"})).await;
    assert_eq!(api.put(&path, &made).await.ok(), made);
    assert_eq!(api.merge(&path, &json!({"data": {"k": "v"}})).await.ok(), made);
    assert_eq!(api.json_patch(&path, &json!([])).await.ok(), made);
    assert_eq!(api.get(&path).await.ok(), made);
}

#[tokio::test]
async fn versions_are_one_rising_number_for_all_kinds() {
    let api = Api::new().await;
    let mut last = 0;
    for number in 0..5 {
        let map = api.config_map(&format!("a{number}"), json!({})).await;
        let namespace = api.namespace(&format!("n{number}")).await;
        assert!(last < version(&map) && version(&map) < version(&namespace));
        last = version(&namespace);
    }
}

#[tokio::test]
async fn a_bad_name_is_named_in_the_refusal() {
    let api = Api::new().await;
    let answer = api.post(MAPS, &json!({"metadata": {"name": "Not_a_name"}})).await;
    let status = answer.refused(422, "Invalid");
    assert_eq!(fields(&status), ["metadata.name"]);
    assert_eq!(status["details"]["kind"], "ConfigMap");
    assert_eq!(status["details"]["name"], "Not_a_name");
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueInvalid");
    let message = text(&status["message"]);
    assert!(
        message.starts_with(
            "ConfigMap \"Not_a_name\" is invalid: metadata.name: Invalid value: \"Not_a_name\": a \
             lowercase RFC 1123 subdomain must consist of"
        ),
        "{message}"
    );
    let labelled = json!({"metadata": {"name": "a", "labels": {"a b": "c", "x": "not ok"}}});
    let status = api.post(MAPS, &labelled).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["metadata.labels", "metadata.labels"]);
    let dotted = api.post("/api/v1/namespaces", &json!({"metadata": {"name": "a.b"}})).await;
    dotted.refused(422, "Invalid");
}

#[tokio::test]
async fn a_new_object_cannot_have_a_version() {
    let api = Api::new().await;
    let sent = json!({"metadata": {"name": "a", "resourceVersion": "5"}});
    let status = api.post(MAPS, &sent).await.refused(400, "BadRequest");
    assert_eq!(status["message"], "resourceVersion should not be set on objects to be created");
    api.get(&format!("{MAPS}/a")).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_and_stores_nothing() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    let sent = json!({"metadata": {"name": "a"}, "data": {"k": "1"}});
    let would = api.post(&format!("{MAPS}?dryRun=All"), &sent).await.made();
    assert_eq!(would["data"]["k"], "1");
    assert_eq!(would["metadata"].get("resourceVersion"), None);
    api.get(&path).await.refused(404, "NotFound");
    let made = api.config_map("a", json!({"k": "1"})).await;
    api.post(&format!("{MAPS}?dryRun=All"), &sent).await.refused(409, "AlreadyExists");
    let mut other = made.clone();
    other["data"]["k"] = json!("2");
    assert_eq!(api.put(&format!("{path}?dryRun=All"), &other).await.ok()["data"]["k"], "2");
    let patch = json!({"data": {"k": "3"}});
    assert_eq!(api.merge(&format!("{path}?dryRun=All"), &patch).await.ok()["data"]["k"], "3");
    api.delete(&format!("{path}?dryRun=All")).await.ok();
    api.delete_with(&path, &json!({"dryRun": ["All"]})).await.ok();
    assert_eq!(api.get(&path).await.ok(), made);
    let half = api.post(&format!("{MAPS}?dryRun=Some"), &sent).await;
    assert_eq!(fields(&half.refused(422, "Invalid")), ["dryRun"]);
}

#[tokio::test]
async fn what_is_immutable_stays() {
    let api = Api::new().await;
    let sent = json!({"metadata": {"name": "a"}, "data": {"k": "1"}, "immutable": true});
    api.post(MAPS, &sent).await.made();
    let path = format!("{MAPS}/a");
    let status = api.merge(&path, &json!({"data": {"k": "2"}})).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["data"]);
    api.merge(&path, &json!({"metadata": {"labels": {"x": "y"}}})).await.ok();
    api.post(DEPLOYMENTS, &deployment("a")).await.made();
    let other = json!({"spec": {
        "selector": {"matchLabels": {"app": "other"}},
        "template": {"metadata": {"labels": {"app": "other"}}},
    }});
    let status = api.merge(&format!("{DEPLOYMENTS}/a"), &other).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["spec.selector"]);
    assert!(text(&status["message"]).ends_with("field is immutable"), "{status}");
}

#[tokio::test]
async fn a_lease_moves_from_hand_to_hand() {
    let api = Api::new().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let body = json!({
        "metadata": {"name": "leader"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                 "acquireTime": "2030-01-01T00:00:00.000000Z"},
    });
    let held = api.post(leases, &body).await.made();
    let path = format!("{leases}/leader");
    let mut by_b = held.clone();
    by_b["spec"]["holderIdentity"] = json!("b");
    let mut by_c = held.clone();
    by_c["spec"]["holderIdentity"] = json!("c");
    api.put(&path, &by_b).await.ok();
    api.put(&path, &by_c).await.refused(409, "Conflict");
    assert_eq!(api.get(&path).await.ok()["spec"]["holderIdentity"], "b");
    let bad = json!({"spec": {"leaseDurationSeconds": 0}});
    let status = api.merge(&path, &bad).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["spec.leaseDurationSeconds"]);
}

#[tokio::test]
async fn many_writers_of_one_object_lose_nothing() {
    let api = Api::new().await;
    api.config_map("a", json!({})).await;
    let path = format!("{MAPS}/a");
    let writers: Vec<_> = (0..20)
        .map(|number| {
            let (api, path) = (api.clone(), path.clone());
            tokio::spawn(async move {
                let patch = json!({"data": {format!("k{number}"): "v"}});
                api.merge(&path, &patch).await.ok();
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no writer fails");
    }
    let data = api.get(&path).await.ok()["data"].clone();
    assert_eq!(data.as_object().map(serde_json::Map::len), Some(20));
}
