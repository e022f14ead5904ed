//! Events: one stored object with two faces, kept for an hour.

use crate::support::{Api, names, text};
use serde_json::{Value, json};

const NEW: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const CORE: &str = "/api/v1/namespaces/default/events";

/// What kube-rs' recorder sends.
fn recorded() -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": "a.1", "namespace": "default"},
        "action": "Moving", "reason": "Moved", "type": "Normal", "note": "moved to b",
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "reportingController": "rollouts.interlock.dev", "reportingInstance": "hub-0",
        "regarding": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a",
                      "namespace": "default", "uid": "u-1"},
    })
}

#[tokio::test]
async fn what_is_written_in_the_new_form_is_read_in_the_old_one() {
    let api = Api::new().await;
    let made = api.post(NEW, &recorded()).await.made();
    assert_eq!(made["apiVersion"], "events.k8s.io/v1");
    assert_eq!(made["note"], "moved to b");
    assert_eq!(made["regarding"]["name"], "a");
    for field in ["message", "involvedObject", "source", "reportingComponent"] {
        assert_eq!(made.get(field), None, "{field}");
    }
    let core = api.get(&format!("{CORE}/a.1")).await.ok();
    assert_eq!((&core["apiVersion"], &core["kind"]), (&json!("v1"), &json!("Event")));
    assert_eq!(core["message"], "moved to b");
    assert_eq!(core["involvedObject"]["uid"], "u-1");
    assert_eq!(core["reportingComponent"], "rollouts.interlock.dev");
    for field in ["note", "regarding", "reportingController"] {
        assert_eq!(core.get(field), None, "{field}");
    }
    assert_eq!(core["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(api.get(&format!("{NEW}/a.1")).await.ok(), made);
    // It is one object: its name is taken in both forms.
    let again = json!({
        "metadata": {"name": "a.1"}, "involvedObject": {"namespace": "default"},
    });
    api.post(CORE, &again).await.refused(409, "AlreadyExists");
}

#[tokio::test]
async fn what_is_written_in_the_old_form_is_read_in_the_new_one() {
    let api = Api::new().await;
    let core = json!({
        "metadata": {"name": "b.1"}, "message": "started", "reason": "Started", "count": 3,
        "involvedObject": {"kind": "Pod", "name": "b", "namespace": "default"},
        "source": {"component": "kubelet", "host": "node-1"},
        "firstTimestamp": "2030-01-01T00:00:00Z", "lastTimestamp": "2030-01-01T00:01:00Z",
        "type": "Warning",
    });
    api.post(CORE, &core).await.made();
    let new = api.get(&format!("{NEW}/b.1")).await.ok();
    assert_eq!(new["note"], "started");
    assert_eq!(new["regarding"]["name"], "b");
    assert_eq!(new["deprecatedCount"], 3);
    assert_eq!(new["deprecatedSource"], json!({"component": "kubelet", "host": "node-1"}));
    assert_eq!(new["deprecatedLastTimestamp"], "2030-01-01T00:01:00Z");
    let listed = api.get(NEW).await.ok();
    // The list says for all of them what kind they are.
    let mut in_list = new.clone();
    for field in ["kind", "apiVersion"] {
        in_list.as_object_mut().expect("an object").remove(field);
    }
    assert_eq!(listed["items"][0], in_list);
}

#[tokio::test]
async fn a_series_is_patched_onto_an_event() {
    let api = Api::new().await;
    api.post(NEW, &recorded()).await.made();
    let series = json!({"series": {
        "count": 2, "lastObservedTime": "2030-01-01T00:05:00.000000Z",
    }});
    let patched = api.merge(&format!("{NEW}/a.1"), &series).await.ok();
    assert_eq!(patched["series"]["count"], 2);
    assert_eq!(patched["note"], "moved to b");
    let core = api.get(&format!("{CORE}/a.1")).await.ok();
    assert_eq!(core["series"]["count"], 2);
    let forged = api.merge(&format!("{NEW}/a.1"), &json!({"note": "something else"})).await;
    forged.refused(422, "Invalid");
}

#[tokio::test]
async fn events_are_found_by_what_they_are_about() {
    let api = Api::new().await;
    api.post(NEW, &recorded()).await.made();
    let mut other = recorded();
    other["metadata"]["name"] = json!("b.1");
    other["regarding"]["name"] = json!("b");
    other["regarding"]["uid"] = json!("u-2");
    api.post(NEW, &other).await.made();
    // As `kubectl describe` asks.
    let describe = "involvedObject.name%3Da,involvedObject.namespace%3Ddefault,\
                    involvedObject.kind%3DConfigMap,involvedObject.uid%3Du-1";
    let found = api.get(&format!("{CORE}?fieldSelector={describe}&limit=500")).await.ok();
    assert_eq!(names(&found), ["a.1"]);
    assert_eq!(found["items"][0]["message"], "moved to b");
    let found = api.get(&format!("{CORE}?fieldSelector=involvedObject.name%3Dnobody")).await.ok();
    assert_eq!(names(&found).len(), 0);
    let found = api.get(&format!("{CORE}?fieldSelector=reason%3DMoved,type%3DNormal")).await.ok();
    assert_eq!(names(&found), ["a.1", "b.1"]);
    let found = api.get(&format!("{NEW}?fieldSelector=regarding.name%3Db")).await.ok();
    assert_eq!(names(&found), ["b.1"]);
    let path = format!("{NEW}?fieldSelector=reportingController%3Drollouts.interlock.dev");
    assert_eq!(names(&api.get(&path).await.ok()), ["a.1", "b.1"]);
    api.get(&format!("{CORE}?fieldSelector=note%3Dx")).await.refused(400, "BadRequest");
}

#[tokio::test]
async fn both_forms_are_watched() {
    let api = Api::new().await;
    let mut new = api.watch(&format!("{NEW}?watch=true")).await;
    let mut core = api.watch(&format!("{CORE}?watch=true")).await;
    api.post(NEW, &recorded()).await.made();
    let seen = new.expect("ADDED", "a.1").await;
    assert_eq!(
        (&seen["apiVersion"], &seen["note"]),
        (&json!("events.k8s.io/v1"), &json!("moved to b"))
    );
    let seen = core.expect("ADDED", "a.1").await;
    assert_eq!((&seen["apiVersion"], &seen["message"]), (&json!("v1"), &json!("moved to b")));
    api.delete(&format!("{CORE}/a.1")).await.ok();
    new.expect("DELETED", "a.1").await;
    core.expect("DELETED", "a.1").await;
}

#[tokio::test]
async fn an_event_must_be_whole() {
    let api = Api::new().await;
    let refused = async |field: &str| {
        let mut event = recorded();
        event.as_object_mut().expect("it is an object").remove(field);
        let status = api.post(NEW, &event).await.refused(422, "Invalid");
        text(&status["message"])
    };
    for field in ["reportingController", "reportingInstance", "action", "reason", "eventTime"] {
        let message = refused(field).await;
        assert!(message.contains(field), "{field}: {message}");
    }
}

#[tokio::test]
async fn an_event_goes_after_an_hour() {
    let api = Api::new().await;
    api.post(NEW, &recorded()).await.made();
    api.config_map("kept", json!({})).await;
    let path = format!("{CORE}/a.1");
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    loop {
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let answer = api.get(&path).await;
        if answer.code == 404 {
            break;
        }
        // Time that is paused runs ahead of the store's own thread.
        assert!(began.elapsed().as_secs() < 24 * 3600, "it is still there");
    }
    assert!(began.elapsed().as_secs() >= 3590, "{:?}", began.elapsed());
    api.get("/api/v1/namespaces/default/configmaps/kept").await.ok();
}
