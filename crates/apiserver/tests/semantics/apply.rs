//! Server-side apply: who owns which field, and what happens when two want one.

use crate::custom::{DEFINITIONS, WIDGETS, definition, widgets};
use crate::support::{Api, MAPS, text, version};
use serde_json::{Value, json};

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

async fn applied(api: &Api, manager: &str, object: &Value) -> crate::support::Answer {
    let name = text(&object["metadata"]["name"]);
    api.apply(&format!("{MAPS}/{name}?fieldManager={manager}"), object).await
}

fn entry<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries.iter().find(|entry| entry["manager"] == manager)
}

#[tokio::test]
async fn an_apply_makes_what_is_not_there() {
    let api = Api::new().await;
    let made = applied(&api, "one", &map("a", json!({"k": "v"}))).await.made();
    assert_eq!(made["data"], json!({"k": "v"}));
    let entries = made["metadata"]["managedFields"].as_array().expect("it has managers");
    assert_eq!(entries.len(), 1);
    let one = entry(&made, "one").expect("it is a manager");
    assert_eq!((&one["operation"], &one["apiVersion"]), (&json!("Apply"), &json!("v1")));
    assert_eq!(one["fieldsType"], "FieldsV1");
    assert_eq!(one["fieldsV1"], json!({"f:data": {"f:k": {}}}));
    assert!(one["time"].is_string());
    assert_eq!(one.get("subresource"), None);
    let again = applied(&api, "one", &map("a", json!({"k": "v"}))).await.ok();
    assert_eq!(again, made, "an apply that changes nothing keeps the version");
}

#[tokio::test]
async fn what_a_manager_no_longer_applies_goes() {
    let api = Api::new().await;
    applied(&api, "one", &map("a", json!({"k": "v", "old": "x"}))).await.made();
    applied(&api, "two", &map("a", json!({"theirs": "y"}))).await.ok();
    let changed = applied(&api, "one", &map("a", json!({"k": "v"}))).await.ok();
    assert_eq!(changed["data"], json!({"k": "v", "theirs": "y"}));
    assert_eq!(
        entry(&changed, "two").expect("it stays")["fieldsV1"],
        json!({"f:data": {"f:theirs": {}}})
    );
}

#[tokio::test]
async fn two_that_want_one_field_are_in_conflict() {
    let api = Api::new().await;
    let made = applied(&api, "one", &map("a", json!({"k": "1"}))).await.made();
    let wanted = map("a", json!({"k": "2"}));
    let status = applied(&api, "two", &wanted).await.refused(409, "Conflict");
    let message = text(&status["message"]);
    assert!(
        message.starts_with("Apply failed with 1 conflict: conflict with \"one\""),
        "{message}"
    );
    assert_eq!(
        status["details"]["causes"],
        json!([{
            "reason": "FieldManagerConflict", "message": "conflict with \"one\"",
            "field": ".data.k",
        }])
    );
    assert_eq!(version(&api.get(&format!("{MAPS}/a")).await.ok()), version(&made));
    let forced = api.apply(&format!("{MAPS}/a?fieldManager=two&force=true"), &wanted).await.ok();
    assert_eq!(forced["data"]["k"], "2");
    assert!(entry(&forced, "one").is_none_or(|one| one["fieldsV1"].get("f:data").is_none()));
    // The same value is wanted by both: then both own it.
    let shared = applied(&api, "one", &wanted).await.ok();
    for manager in ["one", "two"] {
        let owned = &entry(&shared, manager).expect("it owns something")["fieldsV1"];
        assert_eq!(owned["f:data"]["f:k"], json!({}), "{manager}");
    }
}

#[tokio::test]
async fn whoever_updates_owns_what_they_changed() {
    let api = Api::new().await;
    applied(&api, "one", &map("a", json!({"k": "1", "other": "x"}))).await.made();
    let path = format!("{MAPS}/a");
    let patch = json!({"data": {"k": "2"}});
    let changed = api.merge(&format!("{path}?fieldManager=editor"), &patch).await.ok();
    let editor = entry(&changed, "editor").expect("it owns something");
    assert_eq!(editor["operation"], "Update");
    assert_eq!(editor["fieldsV1"], json!({"f:data": {"f:k": {}}}));
    assert_eq!(
        entry(&changed, "one").expect("it stays")["fieldsV1"],
        json!({"f:data": {"f:other": {}}})
    );
    let status = applied(&api, "one", &map("a", json!({"k": "1"}))).await;
    let status = status.refused(409, "Conflict");
    let message = text(&status["details"]["causes"][0]["message"]);
    assert!(message.starts_with("conflict with \"editor\" using v1"), "{message}");
    // Who does not say a name is known by the program.
    let changed = api.merge(&path, &json!({"data": {"more": "y"}})).await.ok();
    assert!(entry(&changed, "tester").is_some());
}

#[tokio::test]
async fn managed_fields_can_be_forgotten_but_not_lost() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    applied(&api, "one", &map("a", json!({"k": "1"}))).await.made();
    for nothing in
        [json!({"metadata": {"managedFields": []}}), json!({"metadata": {"managedFields": null}})]
    {
        let kept = api.merge(&path, &nothing).await.ok();
        assert!(entry(&kept, "one").is_some(), "{nothing}");
    }
    let forget = json!({"metadata": {"managedFields": [{}]}});
    let forgotten = api.merge(&path, &forget).await.ok();
    assert!(entry(&forgotten, "one").is_none(), "{forgotten}");
    let mut stripped = api.get(&path).await.ok();
    stripped["metadata"].as_object_mut().expect("it is an object").remove("managedFields");
    stripped["data"]["k"] = json!("2");
    // What nobody has applied since is not tracked, until somebody applies again.
    let put = api.put(&path, &stripped).await.ok();
    assert_eq!(put["metadata"].get("managedFields"), None);
    let again = applied(&api, "one", &map("a", json!({"new": "x"}))).await.ok();
    assert!(entry(&again, "before-first-apply").is_some(), "{again}");
    assert!(entry(&again, "one").is_some());
    let broken = json!({"metadata": {"managedFields": [{"manager": "x", "operation": "Dance"}]}});
    let answer = api.merge(&path, &broken).await;
    assert!(matches!(answer.code, 200 | 422), "{}", answer.body);
}

#[tokio::test]
async fn an_apply_must_say_who_and_what() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a");
    api.apply(&path, &map("a", json!({}))).await.refused(422, "Invalid");
    let named = format!("{path}?fieldManager=one");
    api.apply(&named, &json!({"metadata": {"name": "a"}})).await.refused(400, "BadRequest");
    api.apply(&named, &map("b", json!({}))).await.refused(400, "BadRequest");
    let mut managed = map("a", json!({}));
    managed["metadata"]["managedFields"] = json!([{"manager": "x"}]);
    api.apply(&named, &managed).await.refused(400, "BadRequest");
    api.get(&path).await.refused(404, "NotFound");
    api.merge(&format!("{path}?force=true"), &json!({})).await.refused(422, "Invalid");
}

#[tokio::test]
async fn an_apply_can_come_as_yaml() {
    let api = Api::new().await;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{MAPS}/a?fieldManager=one");
    let made = api.request("PATCH", &path, &headers, yaml).await.made();
    assert_eq!(made["data"]["k"], "v");
}

#[tokio::test]
async fn a_dry_apply_says_what_would_be() {
    let api = Api::new().await;
    let path = format!("{MAPS}/a?fieldManager=one&dryRun=All");
    let would = api.apply(&path, &map("a", json!({"k": "v"}))).await.made();
    assert_eq!(would["data"]["k"], "v");
    api.get(&format!("{MAPS}/a")).await.refused(404, "NotFound");
    let made = applied(&api, "one", &map("a", json!({"k": "1"}))).await.made();
    let would = api.apply(&path, &map("a", json!({"k": "2"}))).await.ok();
    assert_eq!(would["data"]["k"], "2");
    assert_eq!(api.get(&format!("{MAPS}/a")).await.ok(), made);
    let other = format!("{MAPS}/a?fieldManager=two&dryRun=All");
    api.apply(&other, &map("a", json!({"k": "3"}))).await.refused(409, "Conflict");
}

#[tokio::test]
async fn an_apply_can_name_the_version_it_is_for() {
    let api = Api::new().await;
    let made = applied(&api, "one", &map("a", json!({"k": "1"}))).await.made();
    applied(&api, "one", &map("a", json!({"k": "2"}))).await.ok();
    let mut stale = map("a", json!({"k": "3"}));
    stale["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    applied(&api, "one", &stale).await.refused(409, "Conflict");
}

#[tokio::test]
async fn lists_with_keys_are_shared_element_by_element() {
    let api = Api::new().await;
    widgets(&api).await;
    let widget = |parts: Value| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
            "spec": {"parts": parts},
        })
    };
    let path = format!("{WIDGETS}/a?fieldManager=");
    let made = api.apply(&format!("{path}one"), &widget(json!([{"name": "x", "count": 1}]))).await;
    let made = made.made();
    assert_eq!(
        entry(&made, "one").expect("it is a manager")["fieldsV1"],
        json!({"f:spec": {"f:parts": {"k:{\"name\":\"x\"}": {
            ".": {}, "f:name": {}, "f:count": {},
        }}}})
    );
    let both = api.apply(&format!("{path}two"), &widget(json!([{"name": "y"}]))).await.ok();
    assert_eq!(both["spec"]["parts"], json!([{"name": "x", "count": 1}, {"name": "y"}]));
    let left = api.apply(&format!("{path}one"), &widget(json!([]))).await.ok();
    assert_eq!(left["spec"]["parts"], json!([{"name": "y"}]));
    let third = widget(json!([{"name": "y", "count": 5}]));
    api.apply(&format!("{path}three"), &third).await.ok();
    let status =
        api.apply(&format!("{path}two"), &widget(json!([{"name": "y", "count": 6}]))).await;
    let status = status.refused(409, "Conflict");
    assert_eq!(status["details"]["causes"][0]["field"], ".spec.parts[name=\"y\"].count");
}

#[tokio::test]
async fn the_status_is_applied_through_its_own_door() {
    let api = Api::new().await;
    widgets(&api).await;
    let widget = |rest: Value| {
        let mut widget = json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
        });
        for (key, value) in rest.as_object().expect("it is an object") {
            widget[key] = value.clone();
        }
        widget
    };
    let path = format!("{WIDGETS}/a?fieldManager=one");
    let both = widget(json!({"spec": {"replicas": 2}, "status": {"phase": "Forged"}}));
    let made = api.apply(&path, &both).await.made();
    assert_eq!(made.get("status"), None);
    let status = format!("{WIDGETS}/a/status?fieldManager=one");
    let both = widget(json!({"spec": {"replicas": 9}, "status": {"phase": "Running"}}));
    let seen = api.apply(&status, &both).await.ok();
    assert_eq!(seen["status"]["phase"], "Running");
    assert_eq!(seen["spec"]["replicas"], 2);
    let entries = seen["metadata"]["managedFields"].as_array().expect("it has managers");
    let of_status: Vec<&Value> =
        entries.iter().filter(|entry| entry["subresource"] == "status").collect();
    assert_eq!(of_status.len(), 1, "{entries:?}");
    assert_eq!(of_status[0]["fieldsV1"], json!({"f:status": {"f:phase": {}}}));
    let missing = format!("{WIDGETS}/b/status?fieldManager=one");
    let mut other = both.clone();
    other["metadata"]["name"] = json!("b");
    api.apply(&missing, &other).await.refused(404, "NotFound");
}

#[tokio::test]
async fn built_in_and_definition_objects_are_applied_alike() {
    let api = Api::new().await;
    let path = format!("{DEFINITIONS}/widgets.example.com?fieldManager=one");
    let made = api.apply(&path, &definition()).await.made();
    let conditions = made["status"]["conditions"].as_array().expect("it is established");
    assert!(conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True"));
    let again = api.apply(&path, &definition()).await.ok();
    assert_eq!(version(&again), version(&made));
    api.get(WIDGETS).await.ok();
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}},
    });
    let path = "/api/v1/namespaces/default/services/a?fieldManager=one";
    let made = api.apply(path, &service).await.made();
    assert_eq!(made["spec"]["ports"][0]["protocol"], "TCP");
    let again = api.apply(path, &service).await.ok();
    assert_eq!(version(&again), version(&made));
}
