//! Definitions of custom kinds: served at once when they are made, gone with their objects when they go.

use crate::custom::{DEFINITIONS, WIDGETS, WIDGETS_GROUP, definition, widgets};
use crate::support::{Answer, Api, fields, names, text};
use serde_json::{Value, json};

fn condition(object: &Value, sort: &str) -> Value {
    let list = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = list.into_iter().find(|condition| condition["type"] == sort);
    found.map_or(Value::Null, |condition| condition["status"].clone())
}

fn path() -> String {
    format!("{DEFINITIONS}/widgets.example.com")
}

#[tokio::test]
async fn a_kind_is_served_when_its_definition_is_answered() {
    let api = Api::new().await;
    api.get(WIDGETS).await.refused(404, "NotFound");
    let made = api.post(DEFINITIONS, &definition()).await.made();
    assert_eq!(condition(&made, "Established"), "True");
    assert_eq!(condition(&made, "NamesAccepted"), "True");
    assert_eq!(made["status"]["acceptedNames"]["kind"], "Widget");
    assert_eq!(made["status"]["acceptedNames"]["listKind"], "WidgetList");
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    let list = api.get(WIDGETS).await.ok();
    assert_eq!(list["kind"], "WidgetList");
    assert_eq!(names(&list).len(), 0);
    let resources = api.get(WIDGETS_GROUP).await.ok();
    let mut found: Vec<String> = resources["resources"]
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|resource| text(&resource["name"]))
        .collect();
    found.sort();
    assert_eq!(found, ["widgets", "widgets/scale", "widgets/status"]);
    let groups = api.get("/apis").await.ok();
    let has_group = |groups: &Value| {
        groups["groups"]
            .as_array()
            .is_some_and(|list| list.iter().any(|group| group["name"] == "example.com"))
    };
    assert!(has_group(&groups));
    let document = api.get("/openapi/v3/apis/example.com/v1").await.ok();
    assert!(document["components"]["schemas"].get("com.example.v1.Widget").is_some());
    api.delete(&path()).await.ok();
    api.until_gone(&path()).await;
    // The store knows a moment before the rest of the process does.
    api.until_gone(WIDGETS).await;
    api.get(WIDGETS).await.refused(404, "NotFound");
    assert!(!has_group(&api.get("/apis").await.ok()));
    api.get("/openapi/v3/apis/example.com/v1").await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_definition_takes_its_objects_along() {
    let api = Api::new().await;
    widgets(&api).await;
    api.namespace("n").await;
    for place in [WIDGETS, &format!("{WIDGETS_GROUP}/namespaces/n/widgets")] {
        api.post(place, &json!({"metadata": {"name": "a"}})).await.made();
    }
    let mut watch = api.watch(&format!("{WIDGETS}?watch=true")).await;
    watch.expect("ADDED", "a").await;
    let going = api.delete(&path()).await.ok();
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    watch.expect("DELETED", "a").await;
    api.until_gone(&path()).await;
    widgets(&api).await;
    let all = api.get(&format!("{WIDGETS_GROUP}/widgets")).await.ok();
    assert_eq!(names(&all).len(), 0, "a kind that was made again starts empty");
}

#[tokio::test]
async fn a_held_object_holds_its_definition() {
    let api = Api::new().await;
    widgets(&api).await;
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}});
    api.post(WIDGETS, &held).await.made();
    api.delete(&path()).await.ok();
    let is_terminating = |answer: &Answer| answer.body["metadata"]["deletionTimestamp"].is_string();
    api.until(&format!("{WIDGETS}/a"), is_terminating).await;
    let late = api.post(WIDGETS, &json!({"metadata": {"name": "late"}})).await;
    late.refused(405, "MethodNotAllowed");
    let told = |answer: &Answer| condition(&answer.body, "Terminating") == "True";
    api.until(&path(), told).await;
    api.post(DEFINITIONS, &definition()).await.refused(409, "AlreadyExists");
    api.merge(&format!("{WIDGETS}/a"), &json!({"metadata": {"finalizers": null}})).await.ok();
    api.until_gone(&path()).await;
}

#[tokio::test]
async fn a_definition_that_makes_no_sense_is_refused() {
    let api = Api::new().await;
    let refused = async |change: &dyn Fn(&mut Value)| {
        let mut changed = definition();
        change(&mut changed);
        let status = api.post(DEFINITIONS, &changed).await.refused(422, "Invalid");
        fields(&status)
    };
    let found = refused(&|it| it["metadata"]["name"] = json!("other.example.com")).await;
    assert_eq!(found, ["metadata.name"]);
    let found = refused(&|it| it["spec"]["scope"] = json!("Everywhere")).await;
    assert_eq!(found, ["spec.scope"]);
    let found = refused(&|it| it["spec"]["versions"][0]["storage"] = json!(false)).await;
    assert!(found.contains(&"spec.versions".to_owned()), "{found:?}");
    let found = refused(&|it| {
        it["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"] = json!("array");
    })
    .await;
    assert!(!found.is_empty());
    let found = refused(&|it| {
        let schema = &mut it["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let rules = &mut schema["properties"]["spec"]["x-kubernetes-validations"];
        rules[0]["rule"] = json!("self.nothing == 1");
    })
    .await;
    assert!(found[0].ends_with("x-kubernetes-validations[0].rule"), "{found:?}");
    let found = refused(&|it| {
        let schema = &mut it["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["spec"]["properties"]["replicas"]["default"] = json!("many");
    })
    .await;
    assert!(found[0].ends_with(".default"), "{found:?}");
    assert_eq!(names(&api.get(DEFINITIONS).await.ok()).len(), 0);
}

#[tokio::test]
async fn names_that_are_taken_are_not_given_twice() {
    let api = Api::new().await;
    widgets(&api).await;
    let mut other = definition();
    other["metadata"]["name"] = json!("wonders.example.com");
    other["spec"]["names"] = json!({"plural": "wonders", "kind": "Widget", "shortNames": ["wd"]});
    let made = api.post(DEFINITIONS, &other).await.made();
    assert_eq!(condition(&made, "NamesAccepted"), "False");
    assert_eq!(condition(&made, "Established"), "False");
    let wonders = "/apis/example.com/v1/namespaces/default/wonders";
    api.get(wonders).await.refused(404, "NotFound");
    let renamed = json!({"spec": {"names": {
        "kind": "Wonder", "listKind": "WonderList", "singular": "wonder", "shortNames": ["wo"],
    }}});
    let path = format!("{DEFINITIONS}/wonders.example.com");
    let renamed = api.merge(&path, &renamed).await.ok();
    assert_eq!(condition(&renamed, "Established"), "True", "{renamed}");
    assert_eq!(api.get(wonders).await.ok()["kind"], "WonderList");
}

#[tokio::test]
async fn a_name_that_comes_free_is_given_to_who_waits_for_it() {
    let api = Api::new().await;
    widgets(&api).await;
    let mut other = definition();
    other["metadata"]["name"] = json!("wonders.example.com");
    other["spec"]["names"] = json!({"plural": "wonders", "kind": "Widget", "singular": "wonder"});
    api.post(DEFINITIONS, &other).await.made();
    api.delete(&path()).await.ok();
    api.until_gone(&path()).await;
    let is_there = |answer: &Answer| condition(&answer.body, "Established") == "True";
    api.until(&format!("{DEFINITIONS}/wonders.example.com"), is_there).await;
    api.get("/apis/example.com/v1/namespaces/default/wonders").await.ok();
}

#[tokio::test]
async fn a_changed_definition_counts_at_once() {
    let api = Api::new().await;
    widgets(&api).await;
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas";
    let stricter = json!([{"op": "add", "path": format!("{place}/maximum"), "value": 5}]);
    let changed = api.json_patch(&path(), &stricter).await.ok();
    assert_eq!(changed["metadata"]["generation"], 2);
    assert_eq!(condition(&changed, "Established"), "True");
    let body = json!({"metadata": {"name": "a"}, "spec": {"replicas": 6}});
    api.post(WIDGETS, &body).await.refused(422, "Invalid");
    let scope = api.merge(&path(), &json!({"spec": {"scope": "Cluster"}})).await;
    assert!(fields(&scope.refused(422, "Invalid")).contains(&"spec.scope".to_owned()));
    let unserved = json!([{"op": "replace", "path": "/spec/versions/0/served", "value": false}]);
    api.json_patch(&path(), &unserved).await.ok();
    api.get(WIDGETS).await.refused(404, "NotFound");
}

#[tokio::test]
async fn kinds_without_namespaces_live_in_none() {
    let api = Api::new().await;
    let mut wide = definition();
    wide["spec"]["scope"] = json!("Cluster");
    api.post(DEFINITIONS, &wide).await.made();
    let path = "/apis/example.com/v1/widgets";
    let made = api.post(path, &json!({"metadata": {"name": "a"}})).await.made();
    assert_eq!(made["metadata"].get("namespace"), None);
    api.get(&format!("{path}/a")).await.ok();
    api.get(WIDGETS).await.refused(404, "NotFound");
}

#[tokio::test]
async fn an_object_of_a_kind_can_follow_its_definition_without_a_pause() {
    let api = Api::new().await;
    for _ in 0..5 {
        widgets(&api).await;
        api.post(WIDGETS, &json!({"metadata": {"name": "a"}})).await.made();
        api.delete(&path()).await.ok();
        api.until_gone(&path()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_sees_a_definition_established_can_use_its_kind() {
    let api = Api::new().await;
    for round in 0..20 {
        let mut watch = api.watch(&format!("{DEFINITIONS}?watch=true")).await;
        let maker = {
            let api = api.clone();
            tokio::spawn(async move { widgets(&api).await })
        };
        let seen = watch.expect("ADDED", "widgets.example.com").await;
        assert_eq!(condition(&seen, "Established"), "True");
        let made = api.post(WIDGETS, &json!({"metadata": {"name": "a"}})).await;
        assert_eq!(made.code, 201, "round {round}: {}", made.body);
        maker.await.expect("the definition is made");
        api.delete(&path()).await.ok();
        api.until_gone(&path()).await;
    }
}
