//! Objects of custom kinds: defaults, pruning, rules, columns and versions.

use crate::support::{Api, METADATA, TABLE, fields, names, text, version};
use serde_json::{Value, json};

/// The path of definitions.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The path of the group.
pub(crate) const WIDGETS_GROUP: &str = "/apis/example.com/v1";
/// The widgets of the namespace `default`.
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// The definition of widgets.
pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema()},
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "string", "jsonPath": ".spec.size"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                ],
            }],
        },
    })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "x-kubernetes-validations": [{
                    "rule": "!has(self.size) || self.size != 'small' || self.replicas <= 3",
                    "message": "a small widget has at most three replicas",
                }],
                "properties": {
                    "size": {"type": "string", "default": "medium",
                             "enum": ["small", "medium", "large"],
                             "x-kubernetes-validations": [{
                                 "rule": "self == oldSelf", "message": "the size stays",
                             }]},
                    "replicas": {"type": "integer", "minimum": 0, "default": 1},
                    "port": {"x-kubernetes-int-or-string": true},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set",
                             "items": {"type": "string"}},
                    "parts": {"type": "array", "x-kubernetes-list-type": "map",
                              "x-kubernetes-list-map-keys": ["name"],
                              "items": {"type": "object", "required": ["name"], "properties": {
                                  "name": {"type": "string"}, "count": {"type": "integer"}}}},
                },
            },
            "status": {
                "type": "object",
                "properties": {
                    "replicas": {"type": "integer"}, "selector": {"type": "string"},
                    "phase": {"type": "string"},
                },
            },
        },
    })
}

/// Serves widgets.
pub(crate) async fn widgets(api: &Api) {
    api.post(DEFINITIONS, &definition()).await.made();
}

async fn widget(api: &Api, name: &str, spec: Value) -> Value {
    api.post(WIDGETS, &json!({"metadata": {"name": name}, "spec": spec})).await.made()
}

#[tokio::test]
async fn what_is_not_said_gets_its_default_and_what_is_not_known_is_dropped() {
    let api = Api::new().await;
    widgets(&api).await;
    let spec = json!({
        "unknown": 1, "free": {"anything": {"goes": true}}, "port": "http",
        "parts": [{"name": "a", "unknown": 2}],
    });
    let body = json!({
        "metadata": {"name": "a", "unknown": 3}, "spec": spec, "status": {"phase": "Forged"},
        "unknown": 4,
    });
    let made = api.post(&format!("{WIDGETS}?fieldValidation=Ignore"), &body).await.made();
    assert_eq!(made["kind"], "Widget");
    assert_eq!(made["apiVersion"], "example.com/v1");
    assert_eq!(
        made["spec"],
        json!({
            "size": "medium", "replicas": 1, "port": "http", "parts": [{"name": "a"}],
            "free": {"anything": {"goes": true}},
        })
    );
    assert_eq!(made.get("unknown"), None);
    assert_eq!(made["metadata"].get("unknown"), None);
    assert_eq!(made.get("status"), None, "a new object has no status");
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(api.get(&format!("{WIDGETS}/a")).await.ok(), made);
}

#[tokio::test]
async fn defaults_that_came_later_are_read_but_not_stored() {
    let api = Api::new().await;
    widgets(&api).await;
    let made = widget(&api, "a", json!({})).await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/colour";
    let patch = json!([{"op": "add", "path": place,
                        "value": {"type": "string", "default": "red"}}]);
    api.json_patch(&path, &patch).await.ok();
    let read = api.get(&format!("{WIDGETS}/a")).await.ok();
    assert_eq!(read["spec"]["colour"], "red");
    assert_eq!(version(&read), version(&made));
    let listed = api.get(WIDGETS).await.ok();
    assert_eq!(listed["items"][0]["spec"]["colour"], "red");
    let mut watch = api.watch(&format!("{WIDGETS}?watch=true")).await;
    assert_eq!(watch.expect("ADDED", "a").await["spec"]["colour"], "red");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let changed = api.merge(&format!("{WIDGETS}/a"), &labelled).await.ok();
    assert_eq!(changed["spec"]["colour"], "red");
}

#[tokio::test]
async fn the_schema_is_kept_to() {
    let api = Api::new().await;
    widgets(&api).await;
    let refused = async |spec: Value| {
        let body = json!({"metadata": {"name": "a"}, "spec": spec});
        api.post(WIDGETS, &body).await.refused(422, "Invalid")
    };
    let status = refused(json!({"replicas": -1, "size": "huge"})).await;
    assert_eq!(fields(&status), ["spec.replicas", "spec.size"]);
    let message = text(&status["message"]);
    assert!(
        message.contains(
            "spec.size: Unsupported value: \"huge\": supported values: \"small\", \"medium\", \
             \"large\""
        ),
        "{message}"
    );
    assert!(
        message.contains(
            "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or \
             equal to 0"
        ),
        "{message}"
    );
    assert_eq!(status["details"]["kind"], "Widget");
    assert_eq!(status["details"]["group"], "example.com");
    let status = refused(json!({"replicas": "many"})).await;
    assert!(
        text(&status["message"]).contains(
            "spec.replicas: Invalid value: \"string\": spec.replicas in body must be of type \
             integer: \"string\""
        ),
        "{status}"
    );
    let status = refused(json!({"tags": ["a", "a"]})).await;
    assert!(text(&status["message"]).contains("spec.tags[1]: Duplicate value: \"a\""), "{status}");
    let status = refused(json!({"parts": [{"name": "a"}, {"name": "a"}]})).await;
    assert!(text(&status["message"]).contains("spec.parts[1]: Duplicate value"), "{status}");
    let status = refused(json!({"parts": [{"count": 1}]})).await;
    assert!(text(&status["message"]).contains("spec.parts[0].name: Required value"), "{status}");
    assert_eq!(names(&api.get(WIDGETS).await.ok()).len(), 0);
}

#[tokio::test]
async fn rules_are_kept_to_also_between_old_and_new() {
    let api = Api::new().await;
    widgets(&api).await;
    let body = json!({"metadata": {"name": "a"}, "spec": {"size": "small", "replicas": 4}});
    let status = api.post(WIDGETS, &body).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["spec"]);
    let message = text(&status["message"]);
    assert!(message.contains("a small widget has at most three replicas"), "{message}");
    widget(&api, "a", json!({"size": "small", "replicas": 3})).await;
    let path = format!("{WIDGETS}/a");
    let status = api.merge(&path, &json!({"spec": {"size": "large"}})).await;
    let status = status.refused(422, "Invalid");
    assert_eq!(fields(&status), ["spec.size"]);
    assert!(text(&status["message"]).contains("the size stays"), "{status}");
    api.merge(&path, &json!({"spec": {"replicas": 2}})).await.ok();
}

#[tokio::test]
async fn an_update_must_say_which_version_it_saw() {
    let api = Api::new().await;
    widgets(&api).await;
    let made = widget(&api, "a", json!({})).await;
    let path = format!("{WIDGETS}/a");
    let blind = json!({"metadata": {"name": "a"}, "spec": {"replicas": 2}});
    let status = api.put(&path, &blind).await.refused(422, "Invalid");
    assert_eq!(fields(&status), ["metadata.resourceVersion"]);
    let mut seen = made.clone();
    seen["spec"]["replicas"] = json!(2);
    let put = api.put(&path, &seen).await.ok();
    assert_eq!(put["metadata"]["generation"], 2);
    api.put(&path, &seen).await.refused(409, "Conflict");
    let mut status = put.clone();
    status["status"] = json!({"phase": "Running"});
    status["spec"]["replicas"] = json!(9);
    let with_status = api.put(&format!("{path}/status"), &status).await.ok();
    assert_eq!(with_status["status"]["phase"], "Running");
    assert_eq!(with_status["spec"]["replicas"], 2);
    assert_eq!(with_status["metadata"]["generation"], 2);
    let again = api.merge(&path, &json!({"status": {"phase": "Forged"}})).await.ok();
    assert_eq!(again, with_status);
}

#[tokio::test]
async fn the_columns_of_the_definition_make_the_table() {
    let api = Api::new().await;
    widgets(&api).await;
    widget(&api, "a", json!({"size": "small", "replicas": 2})).await;
    let table = api.get_as(WIDGETS, TABLE).await.ok();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let columns = table["columnDefinitions"].as_array().expect("it has columns");
    let columns: Vec<String> = columns.iter().map(|column| text(&column["name"])).collect();
    assert_eq!(columns, ["Name", "Size", "Replicas"]);
    assert_eq!(table["rows"][0]["cells"], json!(["a", "small", 2]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let one = api.get_as(&format!("{WIDGETS}/a?includeObject=Object"), TABLE).await.ok();
    assert_eq!(one["rows"][0]["object"]["kind"], "Widget");
    let one = api.get_as(&format!("{WIDGETS}/a?includeObject=None"), TABLE).await.ok();
    assert_eq!(one["rows"][0]["object"], json!(null));
    let metadata = api.get_as(&format!("{WIDGETS}/a"), METADATA).await.ok();
    assert_eq!(metadata["kind"], "PartialObjectMetadata");
    assert_eq!(metadata.get("spec"), None);
}

#[tokio::test]
async fn all_versions_show_the_same_objects() {
    let api = Api::new().await;
    let mut both = definition();
    let mut second = both["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    let mut hidden = second.clone();
    hidden["name"] = json!("v3");
    hidden["served"] = json!(false);
    both["spec"]["versions"].as_array_mut().expect("it is a list").extend([second, hidden]);
    let made = api.post(DEFINITIONS, &both).await.made();
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    let in_v2 = "/apis/example.com/v2/namespaces/default/widgets";
    let body = json!({"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "a"}});
    let made = api.post(in_v2, &body).await.made();
    assert_eq!(made["apiVersion"], "example.com/v2");
    let first = api.get(&format!("{WIDGETS}/a")).await.ok();
    assert_eq!(first["apiVersion"], "example.com/v1");
    assert_eq!(first["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(api.get(in_v2).await.ok()["items"][0]["apiVersion"], "example.com/v2");
    let mut watch = api.watch(&format!("{in_v2}?watch=true")).await;
    assert_eq!(watch.expect("ADDED", "a").await["apiVersion"], "example.com/v2");
    api.get("/apis/example.com/v3/namespaces/default/widgets").await.refused(404, "NotFound");
    api.post(WIDGETS, &body).await.refused(400, "BadRequest");
    // The version in which objects are stored can change; those that are there stay readable.
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let swap = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    let swapped = api.json_patch(&path, &swap).await.ok();
    assert_eq!(swapped["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(api.get(&format!("{WIDGETS}/a")).await.ok()["apiVersion"], "example.com/v1");
    let changed = api.merge(&format!("{in_v2}/a"), &json!({"spec": {"replicas": 3}})).await.ok();
    assert_eq!(changed["apiVersion"], "example.com/v2");
    assert_eq!(api.get(&format!("{WIDGETS}/a")).await.ok()["spec"]["replicas"], 3);
}

#[tokio::test]
async fn a_custom_resource_says_its_kind_and_version() {
    let api = Api::new().await;
    widgets(&api).await;
    let whole =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    let headers = [("content-type", "application/json")];
    let path = format!("{WIDGETS}/a");
    for (field, why) in [
        ("kind", "Object 'Kind' is missing"),
        (
            "apiVersion",
            "the API version in the data () does not match the expected API version (example.com/v1)",
        ),
    ] {
        for value in [Value::Null, json!("")] {
            let mut body = whole.clone();
            body[field] = value;
            for (method, path) in [("POST", WIDGETS), ("PUT", path.as_str())] {
                let answer = api.request(method, path, &headers, body.to_string()).await;
                let status = answer.refused(400, "BadRequest");
                let message = status["message"].as_str().unwrap_or_default();
                assert!(message.contains(why), "{method} {body}: {message}");
            }
        }
    }
    api.request("POST", WIDGETS, &headers, whole.to_string()).await.made();
    // A built-in kind is taken as what the URL says, as upstream has it.
    let map = json!({"metadata": {"name": "a"}}).to_string();
    api.request("POST", crate::support::MAPS, &headers, map).await.made();
}
