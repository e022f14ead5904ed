//! The forms in which objects come and go: tables, metadata only, YAML, protobuf.

use crate::support::{Api, MAPS, METADATA, METADATA_LIST, TABLE, names, text, version};
use serde_json::{Value, json};

/// Objects as client-go encodes them: a name, the bytes in hexadecimal, and the JSON that they mean.
const ENCODED: &str = include_str!("../../src/protobuf/encoded.txt");
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn encoded() -> Vec<(Vec<u8>, Value)> {
    let lines: Vec<&str> = ENCODED.lines().collect();
    let of_three = |three: &[&str]| {
        let bytes = (0..three[1].len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&three[1][at..at + 2], 16).expect("it is hexadecimal"))
            .collect();
        (bytes, serde_json::from_str(three[2]).expect("it is JSON"))
    };
    lines.chunks(3).map(of_three).collect()
}

fn encoded_kind(kind: &str) -> (Vec<u8>, Value) {
    let mut all = encoded().into_iter();
    all.find(|(_, object)| object["kind"] == kind).expect("there is one of this kind")
}

#[tokio::test]
async fn a_table_is_what_a_person_sees() {
    let api = Api::new().await;
    api.config_map("a", json!({"k": "v"})).await;
    let answer = api.get_as(MAPS, TABLE).await;
    let table = answer.ok();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert!(version(&table) > 0);
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(2));
    assert_eq!(table["rows"][0]["cells"][0], "a");
    assert_eq!(table["rows"][0]["cells"][1], 1);
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "a");
    let one = api.get_as(&format!("{MAPS}/a"), TABLE).await.ok();
    assert_eq!(one["rows"].as_array().map(Vec::len), Some(1));
    // kubectl offers both, the table first.
    let both = format!("{TABLE},application/json");
    assert_eq!(api.get_as(MAPS, &both).await.ok()["kind"], "Table");
    let page = api.get_as(&format!("{MAPS}?limit=1"), TABLE).await.ok();
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let path = format!("{MAPS}?limit=1&continue={}", text(&page["metadata"]["continue"]));
    assert_eq!(api.get_as(&path, TABLE).await.ok()["rows"].as_array().map(Vec::len), Some(1));
    api.get_as(&format!("{MAPS}?includeObject=Some"), TABLE).await.refused(422, "Invalid");
}

#[tokio::test]
async fn metadata_alone_is_enough_for_some() {
    let api = Api::new().await;
    let made = api.config_map("a", json!({"k": "v"})).await;
    let one = api.get_as(&format!("{MAPS}/a"), METADATA).await.ok();
    assert_eq!(
        one,
        json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": made["metadata"],
        })
    );
    let list = api.get_as(MAPS, METADATA_LIST).await.ok();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(names(&list), ["a", "kube-root-ca.crt"]);
    assert_eq!(list["items"][0].get("data"), None);
    let headers = [("content-type", "application/merge-patch+json"), ("accept", METADATA)];
    let patch = json!({"metadata": {"labels": {"a": "b"}}}).to_string();
    let path = format!("{MAPS}/a");
    let patched = api.request("PATCH", &path, &headers, patch).await.ok();
    assert_eq!(patched["kind"], "PartialObjectMetadata");
    assert_eq!(patched["metadata"]["labels"], json!({"a": "b"}));
}

#[tokio::test]
async fn a_form_that_nobody_can_make_is_406() {
    let api = Api::new().await;
    let chair = "application/json;as=Chair;v=v1;g=meta.k8s.io";
    let table = "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io";
    for accept in ["text/html", chair, table] {
        let status = api.get_as(MAPS, accept).await.refused(406, "NotAcceptable");
        assert!(text(&status["message"]).contains("application/json"), "{status}");
    }
    for accept in ["*/*", "application/*", "text/html, */*;q=0.1", &format!("{table},*/*")] {
        api.get_as(MAPS, accept).await.ok();
    }
    // Upstream has no protobuf for custom kinds, either.
    let definitions = "/apis/interlock.dev/v1alpha1/logicalclusters";
    api.get_as(definitions, PROTOBUF).await.refused(406, "NotAcceptable");
    let answer = api.get_as(definitions, &format!("{PROTOBUF},application/json")).await;
    assert_eq!(answer.headers["content-type"], "application/json");
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn objects_lists_and_watches_come_as_protobuf() {
    let api = Api::new().await;
    let made = api.config_map("a", json!({"k": "a value"})).await;
    let path = format!("{MAPS}/a");
    let (kind, object) = api.bytes(&path, PROTOBUF).await;
    assert_eq!(kind, PROTOBUF);
    assert!(object.starts_with(b"k8s\0") && holds(&object, "a value"));
    // What was read can be written back, and is no change.
    let put = api.request("PUT", &path, &[("content-type", PROTOBUF)], object).await.ok();
    assert_eq!(put, made);
    let (kind, list) = api.bytes(MAPS, &format!("{PROTOBUF},application/json")).await;
    assert_eq!(kind, PROTOBUF);
    assert!(list.starts_with(b"k8s\0") && holds(&list, "ConfigMapList"));
    let metadata =
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let (kind, metadata) = api.bytes(&path, metadata).await;
    assert_eq!(kind, PROTOBUF);
    assert!(holds(&metadata, "PartialObjectMetadata") && !holds(&metadata, "a value"));
    // Errors are JSON, which clients of protobuf read.
    api.get_as(&format!("{MAPS}/none"), PROTOBUF).await.refused(404, "NotFound");
}

#[tokio::test]
async fn changes_come_as_protobuf_with_their_length() {
    let api = Api::new().await;
    let since = version(&api.get(MAPS).await.ok());
    let path = format!("{MAPS}?watch=true&fieldSelector=metadata.name%3Da&resourceVersion={since}");
    let mut watch = api.watch_as(&path, PROTOBUF).await;
    api.config_map("a", json!({"k": "v"})).await;
    api.delete(&format!("{MAPS}/a")).await.ok();
    for event in ["ADDED", "DELETED"] {
        let frame = watch.frame().await;
        assert!(holds(&frame, event) && holds(&frame, "k8s\0"), "{frame:?}");
    }
    // The end of a watch that cannot go on is an event like any other.
    let later = format!("{MAPS}?watch=true&resourceVersion=999999");
    let mut watch = api.watch_as(&later, PROTOBUF).await;
    let frame = watch.frame().await;
    assert!(holds(&frame, "ERROR") && holds(&frame, "Expired"), "{frame:?}");
}

#[tokio::test]
async fn objects_come_as_yaml_too() {
    let api = Api::new().await;
    let yaml = "metadata:\n  name: a\ndata:\n  k: \"1\"\n  long: |\n    two\n    lines\n";
    let headers = [("content-type", "application/yaml")];
    let made = api.request("POST", MAPS, &headers, yaml).await.made();
    assert_eq!(made["data"], json!({"k": "1", "long": "two\nlines\n"}));
    let alias = "metadata:\n  name: b\n  labels: &x {a: b}\n  annotations: *x\n";
    api.request("POST", MAPS, &headers, alias).await.refused(400, "BadRequest");
}

#[tokio::test]
async fn kubectl_sends_protobuf_and_reads_json() {
    let api = Api::new().await;
    let headers = [("content-type", PROTOBUF), ("accept", "application/json")];
    let (bytes, object) = encoded_kind("Namespace");
    let made = api.request("POST", "/api/v1/namespaces", &headers, bytes).await.made();
    assert_eq!(made["metadata"]["name"], object["metadata"]["name"]);
    let (bytes, object) = encoded_kind("ConfigMap");
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    let name = text(&object["metadata"]["name"]);
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    let mut plain = object.clone();
    plain["metadata"] = json!({"name": name});
    let made = api.post(&maps, &plain).await.made();
    assert_eq!(made["data"], object["data"]);
    let seen = object["metadata"].get("resourceVersion").is_some();
    let put = api.request("PUT", &format!("{maps}/{name}"), &headers, bytes.clone()).await;
    assert_eq!(put.code, if seen { 409 } else { 200 }, "{}", put.body);
    let cut = bytes[..bytes.len() - 3].to_vec();
    api.request("POST", &maps, &headers, cut).await.refused(400, "BadRequest");
    let (wrong_kind, _) = encoded_kind("Namespace");
    api.request("POST", &maps, &headers, wrong_kind).await.refused(400, "BadRequest");
}

#[tokio::test]
async fn every_encoded_object_is_taken_or_refused_for_a_reason() {
    let api = Api::new().await;
    let groups = api.get("/apis").await.ok();
    let mut taken = 0;
    for (bytes, object) in encoded() {
        let api_version = text(&object["apiVersion"]);
        let root = match api_version.as_str() {
            "v1" => "/api/v1".to_owned(),
            other => format!("/apis/{other}"),
        };
        let resources = api.get(&root).await;
        let Some(list) = resources.body["resources"].as_array() else { continue };
        let of_kind = list.iter().find(|resource| {
            resource["kind"] == object["kind"] && !text(&resource["name"]).contains('/')
        });
        let Some(resource) = of_kind else { continue };
        let plural = text(&resource["name"]);
        let path = if resource["namespaced"] == true {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
            api.post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
            format!("{root}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{plural}")
        };
        let answer = api.request("POST", &path, &[("content-type", PROTOBUF)], bytes).await;
        assert!(matches!(answer.code, 201 | 400 | 403 | 409 | 422), "{path}: {}", answer.body);
        if answer.code == 201 {
            taken += 1;
            let stored = answer.body["metadata"]["name"].as_str().map(str::to_owned);
            if let Some(name) = stored.filter(|_| answer.body["metadata"]["uid"].is_string()) {
                let read = api.get(&format!("{path}/{name}")).await.ok();
                assert_eq!(read, answer.body, "{path}");
            }
        }
    }
    assert!(taken >= 14, "{taken} were taken; {}", groups["kind"]);
}

#[tokio::test]
async fn answers_can_be_indented() {
    let api = Api::new().await;
    let answer = api.get(&format!("{MAPS}?pretty=true")).await;
    answer.ok();
}
