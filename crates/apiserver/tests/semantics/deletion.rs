//! Deletion: what holds an object, what must hold for it to go, and many at once.

use crate::support::{Api, MAPS, fields, names, text, version};
use serde_json::{Value, json};

async fn held(api: &Api, name: &str) -> Value {
    let body = json!({"metadata": {"name": name, "finalizers": ["example.com/hold"]}});
    api.post(MAPS, &body).await.made()
}

#[tokio::test]
async fn what_nothing_holds_is_gone_at_once() {
    let api = Api::new().await;
    let made = api.config_map("a", json!({})).await;
    let path = format!("{MAPS}/a");
    let answer = api.delete(&path).await.ok();
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Success")));
    let details = json!({"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]});
    assert_eq!(answer["details"], details);
    api.get(&path).await.refused(404, "NotFound");
    let again = api.config_map("a", json!({})).await;
    assert_ne!(again["metadata"]["uid"], made["metadata"]["uid"]);
}

#[tokio::test]
async fn a_finalizer_holds_an_object_until_it_is_taken_off() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    held(&api, "a").await;
    let going = api.delete(&path).await.ok();
    assert_eq!(going["kind"], "ConfigMap");
    let metadata = &going["metadata"];
    assert!(metadata["deletionTimestamp"].is_string());
    assert_eq!(metadata["deletionGracePeriodSeconds"], 0);
    assert_eq!(metadata["finalizers"], json!(["example.com/hold"]));
    let again = api.delete(&path).await.ok();
    assert_eq!(again, going, "a second request changes nothing");
    let changed = api.merge(&path, &json!({"data": {"k": "v"}})).await.ok();
    assert_eq!(changed["metadata"]["deletionTimestamp"], metadata["deletionTimestamp"]);
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    let status = api.merge(&path, &more).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["metadata.finalizers"]);
    let mut watch =
        api.watch(&format!("{MAPS}?watch=true&resourceVersion={}", version(&changed))).await;
    let freed = api.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(freed["metadata"].get("finalizers"), None);
    api.get(&path).await.refused(404, "NotFound");
    let gone = watch.expect("DELETED", "a").await;
    assert_eq!(gone["metadata"]["deletionTimestamp"], metadata["deletionTimestamp"]);
}

#[tokio::test]
async fn nobody_can_forge_or_undo_a_deletion() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    held(&api, "a").await;
    let forged = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    assert_eq!(api.merge(&path, &forged).await.ok()["metadata"].get("deletionTimestamp"), None);
    let going = api.delete(&path).await.ok();
    let undone = json!({"metadata": {"deletionTimestamp": null}});
    let still = api.merge(&path, &undone).await.ok();
    assert_eq!(still["metadata"]["deletionTimestamp"], going["metadata"]["deletionTimestamp"]);
}

#[tokio::test]
async fn preconditions_say_which_object_is_meant() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    let made = api.config_map("a", json!({})).await;
    let other = json!({"preconditions": {"uid": "another"}});
    let status = api.delete_with(&path, &other).await.refused(409, "Conflict");
    let uid = text(&made["metadata"]["uid"]);
    assert_eq!(
        status["message"],
        format!(
            "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (another) \
             does not match the UID in record ({uid}). The object might have been deleted and then \
             recreated"
        )
    );
    let old = json!({"preconditions": {"resourceVersion": "1"}});
    api.delete_with(&path, &old).await.refused(409, "Conflict");
    let right = json!({
        "kind": "DeleteOptions", "apiVersion": "v1",
        "preconditions": {"uid": uid, "resourceVersion": made["metadata"]["resourceVersion"]},
    });
    api.delete_with(&path, &right).await.ok();
    api.get(&path).await.refused(404, "NotFound");
}

#[tokio::test]
async fn options_of_a_deletion_must_make_sense() {
    let api = Api::new().await;
    api.config_map("a", json!({})).await;
    let path = format!("{MAPS}/a");
    let never = json!({"propagationPolicy": "Never"});
    let status = api.delete_with(&path, &never).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["propagationPolicy"]);
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    api.delete_with(&path, &both).await.refused(422, "Invalid");
    api.delete_with(&path, &json!({"kind": "ConfigMap"})).await.refused(400, "BadRequest");
    api.delete_with(&path, &json!({"dryRun": "All"})).await.refused(400, "BadRequest");
    api.delete(&format!("{path}?propagationPolicy=Never")).await.refused(422, "Invalid");
    api.get(&path).await.ok();
}

/// Found by client-go, which reads and deletes collections by pages: `limit` and `continue` were ignored, and all was
/// deleted.
#[tokio::test]
async fn a_collection_is_deleted_page_by_page_like_the_list_that_it_is() {
    let api = Api::new().await;
    for name in ["a", "b", "c", "d"] {
        let body = json!({"metadata": {"name": name, "labels": {"paged": "yes"}}});
        api.post(MAPS, &body).await.made();
    }
    let path = format!("{MAPS}?labelSelector=paged&limit=1");
    let shown = api.get(&path).await.ok();
    let gone = api.delete(&path).await.ok();
    assert_eq!(gone["items"], shown["items"]);
    assert_eq!(names(&gone), ["a"]);
    let token = text(&gone["metadata"]["continue"]);
    let gone = api.delete(&format!("{path}&continue={token}")).await.ok();
    assert_eq!(names(&gone), ["b"]);
    api.delete(&format!("{MAPS}?continue=nonsense")).await.refused(400, "BadRequest");
    let listed = api.get(&format!("{MAPS}?labelSelector=paged")).await.ok();
    assert_eq!(names(&listed), ["c", "d"]);
    // A list as of a version that is past names what is deleted now.
    let version = text(&listed["metadata"]["resourceVersion"]).to_owned();
    api.post(MAPS, &json!({"metadata": {"name": "e", "labels": {"paged": "yes"}}})).await.made();
    let exact = format!("resourceVersion={version}&resourceVersionMatch=Exact");
    let gone = api.delete(&format!("{MAPS}?labelSelector=paged&{exact}")).await.ok();
    assert_eq!(names(&gone), ["c", "d"]);
    assert_eq!(names(&api.get(&format!("{MAPS}?labelSelector=paged")).await.ok()), ["e"]);
}

/// As upstream, which has no such path: a namespace that a client forgot would be all of them.
#[tokio::test]
async fn nobody_deletes_in_all_namespaces_at_once() {
    let api = Api::new().await;
    api.config_map("a", json!({})).await;
    api.delete("/api/v1/configmaps").await.refused(405, "MethodNotAllowed");
    api.get(&format!("{MAPS}/a")).await.ok();
    crate::custom::widgets(&api).await;
    api.delete("/apis/example.com/v1/widgets").await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_collection_goes_as_far_as_it_is_selected() {
    let api = Api::new().await;
    for (name, tier) in [("a", "web"), ("b", "db"), ("c", "web")] {
        let body = json!({"metadata": {"name": name, "labels": {"tier": tier}}});
        api.post(MAPS, &body).await.made();
    }
    held(&api, "held").await;
    let dry = api.delete(&format!("{MAPS}?labelSelector=tier&dryRun=All")).await.ok();
    assert_eq!(names(&dry), ["a", "b", "c"]);
    let gone = api.delete(&format!("{MAPS}?labelSelector=tier%3Dweb")).await.ok();
    assert_eq!(gone["kind"], "ConfigMapList");
    assert_eq!(names(&gone), ["a", "c"]);
    let left = names(&api.get(MAPS).await.ok());
    assert_eq!(left, ["b", "held", "kube-root-ca.crt"]);
    let gone = api.delete(&format!("{MAPS}?fieldSelector=metadata.name%3Db")).await.ok();
    assert_eq!(names(&gone), ["b"]);
    let gone = api.delete(MAPS).await.ok();
    assert_eq!(names(&gone), ["held", "kube-root-ca.crt"]);
    let held = api.get(&format!("{MAPS}/held")).await.ok();
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    api.delete(&format!("{MAPS}?fieldSelector=data.k%3Dv")).await.refused(400, "BadRequest");
}

#[tokio::test]
async fn an_object_whose_deletion_is_asked_for_moves_its_generation() {
    let api = Api::new().await;
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let body = json!({
        "metadata": {"name": "a", "finalizers": ["example.com/hold"]}, "revision": 1, "data": {},
    });
    api.post(path, &body).await.made();
    assert_eq!(api.delete(&format!("{path}/a")).await.ok()["metadata"].get("generation"), None);
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let body = json!({
        "metadata": {"name": "a", "finalizers": ["example.com/hold"]},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
    });
    assert_eq!(api.post(budgets, &body).await.made()["metadata"]["generation"], 1);
    let going = api.delete(&format!("{budgets}/a")).await.ok();
    assert_eq!(going["metadata"]["generation"], 2);
}
