//! What clients ask first: version, discovery and OpenAPI.

use crate::custom::widgets;
use crate::support::{Api, text};
use serde_json::Value;

#[tokio::test]
async fn the_version_looks_like_a_release() {
    let api = Api::new().await;
    let version = api.get("/version").await.ok();
    assert_eq!((text(&version["major"]), text(&version["minor"])), ("1".into(), "35".into()));
    assert!(text(&version["gitVersion"]).starts_with("v1.35."));
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(api.get(path).await.ok(), Value::from("ok"));
    }
}

#[tokio::test]
async fn a_kind_names_what_can_be_done_to_it() {
    let api = Api::new().await;
    let core = api.get("/api/v1").await.ok();
    assert_eq!(core["kind"], "APIResourceList");
    let resource = |name: &str| {
        let list = core["resources"].as_array().expect("it is a list");
        list.iter().find(|one| one["name"] == name).cloned().unwrap_or_default()
    };
    let maps = resource("configmaps");
    assert_eq!((&maps["kind"], &maps["namespaced"]), (&"ConfigMap".into(), &true.into()));
    let verbs = maps["verbs"].as_array().expect("it is a list");
    for verb in ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    {
        assert!(verbs.iter().any(|one| one == verb), "{verb}");
    }
    assert_eq!(resource("namespaces")["namespaced"], false);
    assert_ne!(resource("pods/eviction"), Value::Null);
    assert_ne!(resource("serviceaccounts/token"), Value::Null);
}

#[tokio::test]
async fn discovery_in_one_piece_is_sent_once() {
    let api = Api::new().await;
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let answer = api.get_as("/apis", accept).await;
    let tag = answer.headers["etag"].to_str().expect("it is text").to_owned();
    assert!(answer.headers["vary"].to_str().is_ok_and(|vary| vary.contains("Accept")));
    assert!(
        answer.headers["content-type"].to_str().is_ok_and(|form| form.contains("apidiscovery"))
    );
    assert_eq!(answer.ok()["kind"], "APIGroupDiscoveryList");
    let headers = [("accept", accept), ("if-none-match", tag.as_str())];
    assert_eq!(api.request("GET", "/apis", &headers, "").await.code, 304);
    widgets(&api).await;
    let changed = api.request("GET", "/apis", &headers, "").await.ok();
    let groups = changed["items"].as_array().expect("it is a list");
    assert!(groups.iter().any(|group| group["metadata"]["name"] == "example.com"));
    assert_eq!(api.get("/apis").await.ok()["kind"], "APIGroupList");
}

#[tokio::test]
async fn kubectl_finds_in_openapi_that_the_server_validates() {
    let api = Api::new().await;
    widgets(&api).await;
    let index = api.get("/openapi/v3").await.ok();
    for (name, path) in [
        ("api/v1", "/api/v1/namespaces/{namespace}/configmaps/{name}"),
        ("apis/apps/v1", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
        ("apis/example.com/v1", "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"),
    ] {
        let url = text(&index["paths"][name]["serverRelativeURL"]);
        assert!(url.starts_with(&format!("/openapi/v3/{name}?hash=")), "{url}");
        let document = api.get(&url).await.ok();
        let patch = &document["paths"][path]["patch"];
        let parameters = patch["parameters"].as_array().expect("it has parameters");
        for parameter in ["fieldValidation", "dryRun", "fieldManager", "force"] {
            assert!(parameters.iter().any(|one| one["name"] == parameter), "{name} {parameter}");
        }
        assert!(patch.get("x-kubernetes-group-version-kind").is_some(), "{name}");
    }
    let before = text(&index["paths"]["apis/example.com/v1"]["serverRelativeURL"]);
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/colour";
    let patch = serde_json::json!([{"op": "add", "path": place, "value": {"type": "string"}}]);
    api.json_patch(definition, &patch).await.ok();
    let index = api.get("/openapi/v3").await.ok();
    assert_ne!(text(&index["paths"]["apis/example.com/v1"]["serverRelativeURL"]), before);
}
