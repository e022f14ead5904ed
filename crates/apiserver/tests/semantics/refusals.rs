//! Bad input: every refusal says what was wrong, and nothing partly wrong is stored.

use crate::custom::{DEFINITIONS, WIDGETS, definition};
use crate::support::{Api, MAPS, fields, names, text};
use serde_json::json;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

#[tokio::test]
async fn a_body_that_cannot_be_read_is_400() {
    let api = Api::new().await;
    for body in [
        "",
        "{",
        "nonsense",
        "[]",
        "5",
        "null",
        "{\"metadata\": 5}",
        "{\"metadata\":{\"name\":\"a\"}} x",
        "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":5}}",
        "{\"metadata\":{\"name\":5}}",
        "\u{feff}{",
    ] {
        let status = api.request("POST", MAPS, &JSON, body).await.refused(400, "BadRequest");
        assert!(!text(&status["message"]).is_empty());
    }
    let status = api.request("POST", MAPS, &JSON, "{\n  \"metadata\": }").await;
    let message = text(&status.refused(400, "BadRequest")["message"]);
    assert!(message.contains("line 2"), "the position is named: {message}");
    let bytes: &'static [u8] = b"{\"metadata\":{\"name\":\"\xff\"}}";
    api.request("POST", MAPS, &JSON, bytes).await.refused(400, "BadRequest");
    assert_eq!(names(&api.get(MAPS).await.ok()), ["kube-root-ca.crt"]);
}

#[tokio::test]
async fn an_object_must_be_what_and_where_the_path_says() {
    let api = Api::new().await;
    api.config_map("a", json!({})).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}});
    api.post(MAPS, &secret).await.refused(400, "BadRequest");
    let version = json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "b"}});
    api.post(MAPS, &version).await.refused(400, "BadRequest");
    let elsewhere = json!({"metadata": {"name": "b", "namespace": "kube-system"}});
    let status = api.post(MAPS, &elsewhere).await.refused(400, "BadRequest");
    assert_eq!(
        status["message"],
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let other = json!({"metadata": {"name": "b"}});
    let status = api.put(&format!("{MAPS}/a"), &other).await.refused(400, "BadRequest");
    assert_eq!(
        status["message"],
        "the name of the object (b) does not match the name on the URL (a)"
    );
    api.put(&format!("{MAPS}/a"), &json!({"metadata": {}})).await.refused(400, "BadRequest");
}

#[tokio::test]
async fn a_content_type_that_nobody_knows_is_415() {
    let api = Api::new().await;
    for content_type in ["text/plain", "application/xml", "multipart/form-data"] {
        let headers = [("content-type", content_type)];
        let answer = api.request("POST", MAPS, &headers, "{}").await;
        answer.refused(415, "UnsupportedMediaType");
    }
}

#[tokio::test]
async fn what_is_too_large_is_413() {
    let api = Api::new().await;
    let large = |bytes: usize| json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(bytes)}});
    let status = api.post(MAPS, &large(4 << 20)).await.refused(413, "RequestEntityTooLarge");
    assert!(text(&status["message"]).contains("3145728"), "{status}");
    // A config map has a limit of its own.
    let status = api.post(MAPS, &large((1 << 20) + 1)).await;
    assert!(matches!(status.code, 413 | 422), "{}", status.body);
    let path = DEFINITIONS;
    let mut free = definition();
    free["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    api.post(path, &free).await.made();
    let widget = |bytes: usize| json!({"metadata": {"name": "a"}, "free": "x".repeat(bytes)});
    api.post(WIDGETS, &widget(2 << 20)).await.refused(413, "RequestEntityTooLarge");
    api.get(&format!("{WIDGETS}/a")).await.refused(404, "NotFound");
    api.post(WIDGETS, &widget(1 << 20)).await.made();
    let secrets = "/api/v1/namespaces/default/secrets";
    let release = json!({
        "metadata": {"name": "sh.helm.release.v1.a.v1"}, "type": "helm.sh/release.v1",
        "data": {"release": "QUFB".repeat((1 << 20) / 4 - 64)},
    });
    api.post(secrets, &release).await.made();
}

#[tokio::test]
async fn what_is_too_deep_is_400() {
    let api = Api::new().await;
    let deep = format!("{}{}", "{\"a\":".repeat(5000), "1");
    api.request("POST", MAPS, &JSON, deep).await.refused(400, "BadRequest");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    api.request("POST", MAPS, &JSON, deep).await.refused(400, "BadRequest");
    let yaml = [("content-type", "application/yaml")];
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    api.request("POST", MAPS, &yaml, deep).await.refused(400, "BadRequest");
    let bomb = "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n";
    api.request("POST", MAPS, &yaml, bomb).await.refused(400, "BadRequest");
}

#[tokio::test]
async fn a_rule_that_costs_too_much_refuses_the_object() {
    let api = Api::new().await;
    let mut costly = definition();
    let list = json!({"type": "array", "items": {"type": "integer"}});
    costly["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object", "properties": {"list": list},
            "x-kubernetes-validations": [{
                "rule": "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))",
            }],
        }},
    });
    // Upstream estimates the cost of the rule and refuses the definition; we refuse what is too costly to check.
    let made = api.post(DEFINITIONS, &costly).await;
    if made.code == 201 {
        let numbers: Vec<u32> = (0..2000).collect();
        let body = json!({"metadata": {"name": "a"}, "spec": {"list": numbers}});
        let status = api.post(WIDGETS, &body).await.refused(422, "Invalid");
        assert_eq!(fields(&status), ["spec"]);
        let few = json!({"metadata": {"name": "a"}, "spec": {"list": [1, 2, 3]}});
        api.post(WIDGETS, &few).await.made();
    } else {
        made.refused(422, "Invalid");
    }
}

#[tokio::test]
async fn paths_that_lead_nowhere_are_404_and_verbs_that_do_not_fit_are_405() {
    let api = Api::new().await;
    for path in [
        "/api/v2/configmaps",
        "/apis/nowhere.com/v1/things",
        "/api/v1/nothings",
        "/nowhere",
        "/apis/apps/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/configmaps/a/b/c",
        "/apis/apps/v2",
        "/api/v1/namespaces/default/pods/a/nothing",
    ] {
        let status = api.get(path).await.refused(404, "NotFound");
        assert!(!text(&status["message"]).is_empty());
    }
    api.post("/api/v1/configmaps", &json!({})).await.refused(405, "MethodNotAllowed");
    api.put(MAPS, &json!({})).await.refused(405, "MethodNotAllowed");
    api.request("OPTIONS", MAPS, &[], "").await.refused(405, "MethodNotAllowed");
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    api.get(reviews).await.refused(405, "MethodNotAllowed");
    api.post("/version", &json!({})).await.refused(405, "MethodNotAllowed");
}

#[tokio::test]
async fn every_problem_of_an_object_is_reported_at_once() {
    let api = Api::new().await;
    let body = json!({
        "metadata": {"name": "a", "labels": {"-x": "y"}, "annotations": {"b c": "d"}},
        "spec": {"containers": [{"image": "web:1", "ports": [{"containerPort": 70000}]}]},
    });
    let path = "/api/v1/namespaces/default/pods";
    let status = api.post(path, &body).await.refused(422, "Invalid");
    let found = fields(&status);
    for field in [
        "metadata.labels",
        "metadata.annotations",
        "spec.containers[0].name",
        "spec.containers[0].ports[0].containerPort",
    ] {
        assert!(found.iter().any(|one| one == field), "{field} in {found:?}");
    }
}

#[tokio::test]
async fn values_of_secrets_are_never_repeated() {
    let api = Api::new().await;
    let path = "/api/v1/namespaces/default/secrets";
    let planted = "aHVudGVyMi1wbGFudGVk";
    let bodies = [
        json!({"metadata": {"name": "a"}, "data": {"k k": planted}}),
        json!({"metadata": {"name": "a"}, "data": {"k": format!("{planted}!!")}}),
        json!({"metadata": {"name": "A"}, "data": {"k": planted}}),
        json!({"metadata": {"name": "a"}, "type": "kubernetes.io/tls", "data": {"k": planted}}),
    ];
    for body in &bodies {
        let answer = api.post(path, body).await;
        assert!(matches!(answer.code, 400 | 422), "{}", answer.body);
        assert!(!answer.body.to_string().contains(planted), "{}", answer.body);
    }
    api.post(path, &json!({"metadata": {"name": "a"}, "data": {"k": planted}})).await.made();
    let patch = json!([{"op": "test", "path": "/data/k", "value": "other"}]);
    let answer = api.json_patch(&format!("{path}/a"), &patch).await;
    assert!(!answer.body.to_string().contains(planted), "{}", answer.body);
    let broken = api.merge(&format!("{path}/a"), &json!({"data": {"k": 5}})).await;
    assert!(!broken.body.to_string().contains(planted), "{}", broken.body);
}
