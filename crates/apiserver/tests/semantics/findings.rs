//! What kube-apiserver 1.35 does and this server once did otherwise: one test for each finding.

use crate::custom::{WIDGETS, widgets};
use crate::support::{Api, MAPS, METADATA, TABLE, fields, names, text, version};
use serde_json::{Value, json};

const FLOWS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const TABLE_BETA: &str = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    })
}

/// Found by sending the same requests to kube-apiserver: `cargo xtask differential`.
#[tokio::test]
async fn answers_are_alike_in_what_clients_see() {
    let api = Api::new().await;
    let deployment = json!({
        "apiVersion": null, "kind": null, "metadata": {"name": "a", "labels": {"a": "b"}},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "main", "image": "i"}]},
            },
        },
    });
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let made = api.post(deployments, &deployment).await.made();
    // Structs that upstream always writes are nobody's: only what is in them is owned.
    let spec = &made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
    assert_eq!(spec.get("."), None, "{spec}");
    assert_eq!(spec["f:strategy"].get("."), None, "{spec}");
    assert_eq!(spec["f:template"]["f:spec"]["f:containers"].get("."), None, "{spec}");
    let other = json!({"kind": "Thing", "metadata": {"name": "b"}});
    let status = api.post(deployments, &other).await.refused(400, "BadRequest");
    assert_eq!(
        status["message"],
        "Thing in version \"v1\" cannot be handled as a Deployment: no kind \"Thing\" is registered \
         for version \"apps/v1\" in scheme \"pkg/runtime/scheme.go:111\""
    );
    let status = api.get_as(deployments, METADATA).await.refused(406, "NotAcceptable");
    assert_eq!(
        status["message"],
        "you requested PartialObjectMetadata, but the requested object is a list \
         (*apps.DeploymentList)"
    );
    let by_field = format!("{deployments}?fieldSelector=spec.a%3Db");
    let status = api.get(&by_field).await.refused(400, "BadRequest");
    assert_eq!(
        status["message"],
        "\"spec.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
    let endpoints = api.get("/api/v1/namespaces/default/endpoints").await;
    assert!(endpoints.warnings()[0].contains("v1 Endpoints is deprecated in v1.33+"));
    let jobs = api.delete("/apis/batch/v1/namespaces/default/jobs/none").await;
    assert!(jobs.warnings()[0].contains("child pods are preserved by default"));
    let gone = api.request("DELETE", deployments, &[], "").await.ok();
    assert_eq!(gone["items"][0].get("kind"), None);
    let limits = json!({"metadata": {"name": "l"}, "spec": {"limits": [{"type": ""}]}});
    let ranges = "/api/v1/namespaces/default/limitranges";
    api.post(ranges, &limits).await.refused(422, "Invalid");
}

#[tokio::test]
async fn flow_schemas_and_priority_levels_are_there_and_can_be_written() {
    let api = Api::new().await;
    let level = api.get(&format!("{LEVELS}/global-default")).await.ok();
    assert_eq!(level["spec"]["limited"]["nominalConcurrencyShares"], 20);
    let levels = api.get(LEVELS).await.ok();
    assert_eq!(names(&levels).len(), 8);
    let body = json!({
        "metadata": {"generateName": "e2e-", "labels": {"e2e": "yes"}},
        "spec": {
            "matchingPrecedence": 10_000, "priorityLevelConfiguration": {"name": "global-default"},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": "nobody"}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }],
        },
    });
    let answer = api.post(FLOWS, &body).await;
    assert!(answer.warnings()[0].contains("have no effect"), "{:?}", answer.warnings());
    let made = answer.made();
    let path = format!("{FLOWS}/{}", text(&made["metadata"]["name"]));
    let patch = json!({"spec": {"matchingPrecedence": 9_999}});
    let patched = api.merge(&path, &patch).await.ok();
    assert_eq!(patched["spec"]["matchingPrecedence"], 9_999);
    assert_eq!(patched["metadata"]["generation"], 2);
    let status = json!({"status": {"conditions": [{"type": "A", "status": "False"}]}});
    let patched = api.merge(&format!("{path}/status"), &status).await.ok();
    assert_eq!(patched["status"]["conditions"][0]["type"], "A");
    assert_eq!(patched["metadata"]["generation"], 2);
    api.delete(&format!("{FLOWS}?labelSelector=e2e%3Dyes")).await.ok();
    api.get(&path).await.refused(404, "NotFound");
    let mut wrong = body.clone();
    wrong["spec"]["matchingPrecedence"] = json!(10_001);
    let refused = api.post(FLOWS, &wrong).await.refused(422, "Invalid");
    assert_eq!(fields(&refused), ["spec.matchingPrecedence"]);
    let fixed = json!({"spec": {"matchingPrecedence": 5}});
    api.merge(&format!("{FLOWS}/exempt"), &fixed).await.refused(422, "Invalid");
}

#[tokio::test]
async fn each_group_and_version_has_an_api_service_that_can_only_be_read() {
    let api = Api::new().await;
    widgets(&api).await;
    let all = api.get("/apis/apiregistration.k8s.io/v1/apiservices").await.ok();
    let all = names(&all);
    for wanted in ["v1.", "v1.apps", "v2.autoscaling", "v1.apiregistration.k8s.io"] {
        assert!(all.iter().any(|name| name == wanted), "{wanted} in {all:?}");
    }
    let one = api.get("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps").await.ok();
    assert_eq!(one["status"]["conditions"][0]["reason"], "Local");
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    api.post(path, &json!({"metadata": {"name": "v1.a"}})).await.refused(405, "MethodNotAllowed");
    let found = api.get("/apis/apiregistration.k8s.io/v1").await.ok();
    assert_eq!(found["resources"][0]["verbs"], json!(["get", "list", "watch"]));
}

#[tokio::test]
async fn an_autoscaler_is_one_object_in_both_versions() {
    let api = Api::new().await;
    let old = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    let new = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let body = json!({"metadata": {"name": "web"}, "spec": {
        "maxReplicas": 5, "targetCPUUtilizationPercentage": 70,
        "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}}});
    let made = api.post(old, &body).await.made();
    assert_eq!(made["apiVersion"], "autoscaling/v1");
    assert_eq!(made["spec"]["targetCPUUtilizationPercentage"], 70);
    let seen = api.get(&format!("{new}/web")).await.ok();
    let target = &seen["spec"]["metrics"][0]["resource"]["target"];
    assert_eq!(target, &json!({"type": "Utilization", "averageUtilization": 70}));
    let patch = json!({"spec": {"targetCPUUtilizationPercentage": 60}});
    let patched = api.merge(&format!("{old}/web"), &patch).await.ok();
    assert_eq!(patched["spec"]["targetCPUUtilizationPercentage"], 60);
    let table = api.get_as(old, TABLE).await.ok();
    assert_eq!(table["rows"][0]["cells"][2], "cpu: <unknown>/60%");
}

#[tokio::test]
async fn what_every_cluster_has_from_the_start_has_a_version_and_a_time() {
    let api = Api::new().await;
    for path in [
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/view",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/exempt",
        "/apis/networking.k8s.io/v1/servicecidrs/kubernetes",
        "/api/v1/namespaces/default/services/kubernetes",
    ] {
        let found = api.get(path).await.ok();
        assert!(version(&found) > 0, "{path}");
        assert!(!text(&found["metadata"]["creationTimestamp"]).starts_with("1970"), "{path}");
        assert!(!text(&found["metadata"]["uid"]).is_empty(), "{path}");
    }
    let service = api.get("/api/v1/namespaces/default/services/kubernetes").await.ok();
    assert_eq!(service["spec"]["ports"][0]["port"], 443);
    let everywhere = api.get("/api/v1/services").await.ok();
    assert_eq!(names(&everywhere), ["kubernetes"]);
    let elsewhere = api.get("/api/v1/namespaces/kube-system/services").await.ok();
    assert_eq!(names(&elsewhere), [""; 0]);
    api.delete("/api/v1/namespaces/default/services/kubernetes").await.refused(403, "Forbidden");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    api.merge("/api/v1/namespaces/default/services/kubernetes", &label).await.ok();
    let everywhere = api.get("/api/v1/services").await.ok();
    assert_eq!(names(&everywhere), ["kubernetes"]);
    assert_eq!(everywhere["items"][0]["metadata"]["labels"]["a"], "b");
}

#[tokio::test]
async fn objects_in_lists_of_built_in_kinds_do_not_name_their_kind() {
    let api = Api::new().await;
    widgets(&api).await;
    api.config_map("a", json!({})).await;
    let list = api.get(MAPS).await.ok();
    assert_eq!(list["kind"], "ConfigMapList");
    for item in list["items"].as_array().expect("a list") {
        assert_eq!((item.get("kind"), item.get("apiVersion")), (None, None));
        assert!(version(item) > 0);
    }
    let roles = api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles").await.ok();
    assert_eq!(roles["items"][0].get("kind"), None);
    api.post(WIDGETS, &json!({"metadata": {"name": "a"}})).await.made();
    assert_eq!(api.get(WIDGETS).await.ok()["items"][0]["kind"], "Widget");
}

#[tokio::test]
async fn tables_come_in_the_old_version_too_and_bookmarks_are_rows() {
    let api = Api::new().await;
    api.config_map("a", json!({})).await;
    let table = api.get_as(MAPS, TABLE_BETA).await.ok();
    assert_eq!(table["apiVersion"], "meta.k8s.io/v1beta1");
    assert_eq!(table["rows"][0]["object"]["apiVersion"], "meta.k8s.io/v1beta1");
    let path = format!(
        "{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
         &allowWatchBookmarks=true&fieldSelector=metadata.name%3Da"
    );
    let mut watch = api.watch_as(&path, TABLE).await;
    let first = watch.next().await;
    assert_eq!(first["type"], "ADDED");
    assert!(!first["object"]["columnDefinitions"].is_null());
    let mark = watch.next().await;
    assert_eq!(mark["type"], "BOOKMARK");
    let row = &mark["object"]["rows"][0];
    let annotation = &row["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"];
    assert_eq!(annotation, "true", "{mark}");
    assert!(mark["object"]["columnDefinitions"].is_null());
}

#[tokio::test]
async fn a_timeout_that_cannot_be_read_is_refused() {
    let api = Api::new().await;
    api.get(&format!("{MAPS}?timeout=invalid")).await.refused(400, "BadRequest");
    api.get(&format!("{MAPS}?timeout=5")).await.refused(400, "BadRequest");
    api.get(&format!("{MAPS}?timeout=34s")).await.ok();
}

#[tokio::test]
async fn health_lists_every_check() {
    let api = Api::new().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        let answer = api.get(&format!("{path}?verbose=1")).await;
        assert_eq!(answer.code, 200);
        assert_eq!(api.get(&format!("{path}/etcd")).await.code, 200);
        assert_ne!(api.get(&format!("{path}/nonsense")).await.code, 200);
    }
}

#[tokio::test]
async fn an_update_of_what_is_not_there_makes_only_some_kinds() {
    let api = Api::new().await;
    widgets(&api).await;
    let body = |kind: &str| json!({"kind": kind, "metadata": {"name": "a"}});
    for (path, kind) in [
        (DEPLOYMENTS, "Deployment"),
        (MAPS, "ConfigMap"),
        (WIDGETS, "Widget"),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "PodDisruptionBudget"),
    ] {
        let mut wanted = body(kind);
        if kind == "Deployment" {
            wanted = deployment("a");
        }
        api.put(&format!("{path}/a"), &wanted).await.refused(404, "NotFound");
    }
    for (path, mut wanted) in [
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", body("ClusterRole")),
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", body("Lease")),
        ("/api/v1/namespaces/default/endpoints", body("Endpoints")),
    ] {
        wanted["metadata"]["resourceVersion"] = json!("7");
        let answer = api.put(&format!("{path}/a"), &wanted).await;
        assert_eq!(answer.code, 201, "{path}: {}", answer.body);
    }
    let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a";
    let refused = api.put(lease, &body("Lease")).await.refused(422, "Invalid");
    assert_eq!(fields(&refused), ["metadata.resourceVersion"]);
}

#[tokio::test]
async fn what_the_schema_does_not_know_cannot_be_applied() {
    let api = Api::new().await;
    let mut unknown = deployment("a");
    unknown["spec"]["nonsense"] = json!(1);
    for validation in ["Strict", "Warn", "Ignore"] {
        let path = format!("{DEPLOYMENTS}/a?fieldManager=me&fieldValidation={validation}");
        let answer = api.apply(&path, &unknown).await;
        assert_eq!(answer.code, 500);
        let expected = "failed to create typed patch object (default/a; apps/v1, \
                        Kind=Deployment): .spec.nonsense: field not declared in schema";
        assert_eq!(answer.body["message"], expected);
    }
}

#[tokio::test]
async fn a_scale_is_applied_and_its_owner_is_noted() {
    let api = Api::new().await;
    let path = format!("{DEPLOYMENTS}/a");
    api.apply(&format!("{path}?fieldManager=owner"), &deployment("a")).await.made();
    let scale = |replicas: i64| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"},
            "spec": {"replicas": replicas}})
    };
    let scaler = format!("{path}/scale?fieldManager=scaler");
    let refused = api.apply(&scaler, &scale(5)).await.refused(409, "Conflict");
    assert_eq!(fields(&refused), [".spec.replicas"]);
    let scaled = api.apply(&format!("{scaler}&force=true"), &scale(5)).await.ok();
    assert_eq!((&scaled["kind"], &scaled["spec"]["replicas"]), (&json!("Scale"), &json!(5)));
    let whole = api.get(&path).await.ok();
    assert_eq!(whole["spec"]["replicas"], 5);
    assert_eq!(whole["metadata"]["generation"], 2);
    let entries = whole["metadata"]["managedFields"].as_array().expect("a list");
    let entry = entries.iter().find(|entry| entry["manager"] == "scaler").expect("an owner");
    assert_eq!(entry["subresource"], "scale");
    assert_eq!(entry["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    let mut wrong = scale(-1);
    api.apply(&scaler, &wrong).await.refused(422, "Invalid");
    wrong["kind"] = json!("Deployment");
    api.apply(&scaler, &wrong).await.refused(400, "BadRequest");
}

#[tokio::test]
async fn events_are_owned_by_the_names_that_their_writers_know() {
    let api = Api::new().await;
    let newer = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"},
        "eventTime": "2024-01-01T00:00:00.000000Z", "action": "A", "reason": "R", "type": "Normal",
        "reportingController": "test.example/c", "reportingInstance": "c-1", "note": "one",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    });
    let made = api.apply(&format!("{newer}/a?fieldManager=me"), &event).await.made();
    assert_eq!(made["note"], "one");
    let owned = &made["metadata"]["managedFields"][0]["fieldsV1"];
    assert!(owned.get("f:note").is_some() && owned.get("f:regarding").is_some(), "{owned}");
    assert!(owned.get("f:message").is_none(), "{owned}");
    let mut changed = event.clone();
    changed["metadata"]["labels"] = json!({"a": "b"});
    let again = api.apply(&format!("{newer}/a?fieldManager=me"), &changed).await.ok();
    assert_eq!(again["metadata"]["labels"]["a"], "b");
    assert_eq!(again["metadata"]["managedFields"].as_array().map(Vec::len), Some(1));
    // Through the other face the same field has another name, and the same owner.
    let older = "/api/v1/namespaces/default/events";
    let patch = json!({"message": "three"});
    let seen = api.merge(&format!("{older}/a?fieldManager=you"), &patch).await.ok();
    let entries = seen["metadata"]["managedFields"].as_array().expect("a list").clone();
    let of = |manager: &str| {
        let found = entries.iter().find(|entry| entry["manager"] == manager);
        found.map(|entry| entry["fieldsV1"].clone()).expect("an owner")
    };
    assert_eq!(of("you"), json!({"f:message": {}}));
    let refused = api.apply(&format!("{newer}/a?fieldManager=me"), &event).await;
    assert_eq!(fields(&refused.refused(409, "Conflict")), [".note"]);
}

#[tokio::test]
async fn a_write_of_the_status_does_not_count_as_a_change_of_what_is_wanted() {
    let api = Api::new().await;
    api.post(DEPLOYMENTS, &deployment("a")).await.made();
    let patch = json!({"metadata": {"annotations": {"a": "b"}}});
    let patched = api.merge(&format!("{DEPLOYMENTS}/a/status"), &patch).await.ok();
    assert_eq!(patched["metadata"]["annotations"]["a"], "b");
    assert_eq!(patched["metadata"]["generation"], 1);
}

#[tokio::test]
async fn addresses_are_names_of_addresses() {
    let api = Api::new().await;
    let path = "/apis/networking.k8s.io/v1/ipaddresses";
    let body = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"parentRef": {"group": "a", "name": "b",
            "resource": "c", "namespace": "d"}}})
    };
    api.post(path, &body("fe80::42:1dff:fe84:f9e2")).await.made();
    api.post(path, &body("255.255.255.255")).await.made();
    api.get(&format!("{path}/fe80::42:1dff:fe84:f9e2")).await.ok();
    for wrong in ["fe80:0::1", "010.0.0.1", "a", "::ffff:1.2.3.4"] {
        let refused = api.post(path, &body(wrong)).await.refused(422, "Invalid");
        assert_eq!(fields(&refused), ["metadata.name"], "{wrong}");
    }
}

/// A request made with openssl for CN=me, O=devs.
const REQUEST: &str = "\
LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1INENBUUF3SERFTE1Ba0dBMVVFQXd3Q2JXVXhEVEFM\
QmdOVkJBb01CR1JsZG5Nd1dUQVRCZ2NxaGtqTwpQUUlCQmdncWhrak9QUU1CQndOQ0FBUVlCditXMnJ0R3dCNVlKK3MxUzN4\
UU42RHhBTWtGWTdPRGd2ZXZROFpOCk1KRGhMZXd0RWJCeUZDdy9USEh1VEFYc0V6ak9kbndEVWtuNVZDdXBJeWJqb0FBd0Nn\
WUlLb1pJemowRUF3SUQKU1FBd1JnSWhBTWd4OVBza0tFZFlvQkEyaTU1TnNOWGRHUkErSEpBbkk3bUVoUmV1UE5FYUFpRUE0\
d1p3aDU4Qwo4UVNjTjNFeCt3SmJpeVRRNkNoV2R2eHl6bmxyU0FZNVJQbz0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVT\
VC0tLS0tCg==";

#[tokio::test]
async fn an_approval_may_carry_annotations() {
    let api = Api::new().await;
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = json!({"metadata": {"name": "a"}, "spec": {
        "request": REQUEST,
        "signerName": "example.com/a", "usages": ["client auth"]}});
    api.post(path, &request).await.made();
    let patch = json!({"metadata": {"annotations": {"patchedapproval": "true"}},
        "status": {"conditions": [{"type": "ApprovalPatch", "status": "True", "reason": "e2e"}]}});
    let patched = api.merge(&format!("{path}/a/approval"), &patch).await.ok();
    assert_eq!(patched["metadata"]["annotations"]["patchedapproval"], "true");
    assert_eq!(patched["status"]["conditions"][0]["type"], "ApprovalPatch");
}

#[tokio::test]
async fn a_cron_job_is_in_a_time_zone_that_there_is() {
    let api = Api::new().await;
    let path = "/apis/batch/v1/namespaces/default/cronjobs";
    let body = |name: &str, zone: &str| {
        json!({"metadata": {"name": name}, "spec": {"schedule": "* * * * *", "timeZone": zone,
            "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never",
                "containers": [{"name": "a", "image": "a"}]}}}}}})
    };
    api.post(path, &body("a", "Europe/Berlin")).await.made();
    let refused = api.post(path, &body("b", "bad-time-zone")).await.refused(422, "Invalid");
    assert_eq!(fields(&refused), ["spec.timeZone"]);
}

#[tokio::test]
async fn no_operation_of_the_documents_has_an_empty_list_of_parameters() {
    let api = Api::new().await;
    widgets(&api).await;
    let index = api.get("/openapi/v3").await.ok();
    for path in index["paths"].as_object().expect("paths").keys() {
        let document = api.get(&format!("/openapi/v3/{path}")).await.ok();
        assert!(!document.to_string().contains("\"parameters\":[]"), "{path}");
    }
}

#[tokio::test]
async fn null_in_a_map_of_strings_is_the_empty_string() {
    let api = Api::new().await;
    widgets(&api).await;
    let body = json!({"metadata": {"name": "a", "labels": {"l": null}}, "data": {"k": null}});
    let made = api.post(MAPS, &body).await.made();
    assert_eq!(made["data"], json!({"k": ""}));
    assert_eq!(made["metadata"]["labels"], json!({"l": ""}));
    let widget = json!({"metadata": {"name": "a", "annotations": {"l": null}}});
    let made = api.post(WIDGETS, &widget).await.made();
    assert_eq!(made["metadata"]["annotations"], json!({"l": ""}));
}

#[tokio::test]
async fn finalizers_of_built_in_kinds_say_whose_they_are() {
    let api = Api::new().await;
    widgets(&api).await;
    let body = |finalizer: &str| json!({"metadata": {"name": "a", "finalizers": [finalizer]}});
    let refused = api.post(MAPS, &body("mine")).await.refused(422, "Invalid");
    assert_eq!(fields(&refused), ["metadata.finalizers[0]"]);
    api.post(MAPS, &body("example.com/mine")).await.made();
    let answer = api.post(WIDGETS, &body("mine")).await;
    assert!(answer.warnings()[0].contains("prefer a domain-qualified"), "{:?}", answer.warnings());
    answer.made();
}

#[tokio::test]
async fn a_watch_without_the_first_state_begins_now() {
    let api = Api::new().await;
    api.config_map("a", json!({})).await;
    let path = format!(
        "{MAPS}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan\
         &resourceVersion=0"
    );
    let mut watch = api.watch(&path).await;
    api.config_map("b", json!({})).await;
    watch.expect("ADDED", "b").await;
}

#[tokio::test]
async fn jobs_and_replication_controllers_let_their_pods_go_if_nothing_is_said() {
    let api = Api::new().await;
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "a", "image": "a"}]}});
    let job = json!({"metadata": {"name": "a"}, "spec": {"template": template}});
    let path = "/apis/batch/v1/namespaces/default/jobs";
    let made = api.post(path, &job).await.made();
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "a",
        "uid": made["metadata"]["uid"], "controller": true}]);
    let dependent = json!({"metadata": {"name": "d", "ownerReferences": owner}});
    api.post(MAPS, &dependent).await.made();
    api.delete(&format!("{path}/a")).await.ok();
    api.until_gone(&format!("{path}/a")).await;
    let left = api.get(&format!("{MAPS}/d")).await.ok();
    assert_eq!(left["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn a_definition_says_that_it_is_being_deleted_and_what_can_be_selected() {
    let api = Api::new().await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "color": {"type": "string"}, "count": {"type": "integer"}, "list": {"type": "array",
        "items": {"type": "string"}}}}}});
    let definition = |selectable: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "paints.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "paints", "kind": "Paint"},
                "versions": [{"name": "v1", "served": true, "storage": true, "deprecated": true,
                    "selectableFields": selectable, "schema": {"openAPIV3Schema": schema}}],
            },
        })
    };
    for wrong in [".metadata.name", ".spec.list", ".spec.nothing", "spec.color"] {
        let body = definition(json!([{"jsonPath": wrong}]));
        api.post(path, &body).await.refused(422, "Invalid");
    }
    let selectable = json!([{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.count"}]);
    let made = api.post(path, &definition(selectable)).await.made();
    assert_eq!(made["metadata"].get("finalizers"), None);
    let paints = "/apis/example.com/v1/namespaces/default/paints";
    for (name, color) in [("a", "red"), ("b", "blue")] {
        let body = json!({"apiVersion": "example.com/v1", "kind": "Paint",
            "metadata": {"name": name, "finalizers": ["example.com/hold"]},
            "spec": {"color": color, "count": 3}});
        let answer = api.post(paints, &body).await;
        assert_eq!(answer.warnings(), ["299 - \"example.com/v1 Paint is deprecated\""]);
        answer.made();
    }
    let red = api.get(&format!("{paints}?fieldSelector=spec.color%3Dred,spec.count%3D3")).await;
    assert_eq!(names(&red.ok()), ["a"]);
    api.get(&format!("{paints}?fieldSelector=spec.list%3Da")).await.refused(400, "BadRequest");
    let gone = api.delete(&format!("{path}/paints.example.com")).await.ok();
    let conditions = gone["status"]["conditions"].as_array().expect("a list");
    let found = conditions.iter().find(|condition| condition["type"] == "Terminating");
    assert_eq!(found.expect("it is being deleted")["status"], "True");
    let holders = json!(["customresourcecleanup.apiextensions.k8s.io"]);
    assert_eq!(gone["metadata"]["finalizers"], holders);
    for name in ["a", "b"] {
        api.merge(&format!("{paints}/{name}"), &json!({"metadata": {"finalizers": null}})).await;
    }
    api.until_gone(&format!("{path}/paints.example.com")).await;
}

#[tokio::test]
async fn a_pod_may_give_itself_less_than_no_time_and_gets_a_second() {
    let api = Api::new().await;
    let path = "/api/v1/namespaces/default/pods";
    let body = json!({"metadata": {"name": "a"}, "spec": {"terminationGracePeriodSeconds": -1,
        "nodeName": "n", "containers": [{"name": "a", "image": "a"}]}});
    api.post(path, &body).await.made();
    let deleted = api.delete(&format!("{path}/a")).await.ok();
    assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], 1);
}

#[tokio::test]
async fn where_a_pod_may_run_is_checked() {
    let api = Api::new().await;
    let path = "/api/v1/namespaces/default/pods";
    let body = json!({"metadata": {"name": "a"}, "spec": {
        "containers": [
            {"name": "a", "image": "a", "ports": [{"containerPort": 80, "hostPort": 80}]},
            {"name": "b", "image": "a", "ports": [{"containerPort": 80, "hostPort": 80}]},
        ],
        "tolerations": [{"key": "a", "operator": "Near"}],
        "topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule"}],
        "hostAliases": [{"ip": "nowhere"}],
    }});
    let refused = api.post(path, &body).await.refused(422, "Invalid");
    assert_eq!(
        fields(&refused),
        [
            "spec.tolerations[0].operator",
            "spec.topologySpreadConstraints[0].maxSkew",
            "spec.hostAliases[0].ip",
            "spec.containers[1].ports[0].hostPort",
        ]
    );
    let node =
        json!({"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "x"}]}});
    let refused = api.post("/api/v1/nodes", &node).await.refused(422, "Invalid");
    assert_eq!(fields(&refused), ["spec.taints[0].effect"]);
    let endpoints =
        json!({"metadata": {"name": "e"}, "subsets": [{"addresses": [{"ip": "127.0.0.1"}]}]});
    let refused = api.post("/api/v1/namespaces/default/endpoints", &endpoints).await;
    assert_eq!(fields(&refused.refused(422, "Invalid")), ["subsets[0].addresses[0].ip"]);
}

#[tokio::test]
async fn a_new_claim_has_a_status_that_can_be_added_to() {
    let api = Api::new().await;
    let path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let made = api.post(path, &json!({"metadata": {"name": "a"}, "spec": {}})).await.made();
    assert_eq!(made["status"], json!({}));
    let patch = json!([{"op": "add", "path": "/status/allocation", "value": {}}]);
    let patched = api.json_patch(&format!("{path}/a/status"), &patch).await.ok();
    assert!(patched["status"]["allocation"].is_object(), "{patched}");
}

#[tokio::test]
async fn a_kind_that_keeps_everything_is_any_object_in_the_second_document() {
    let api = Api::new().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "bags.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "bags", "kind": "Bag"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    api.post(path, &definition).await.made();
    let document = api.get("/openapi/v2").await.ok();
    let kind = json!([{"group": "example.com", "version": "v1", "kind": "Bag"}]);
    let expected = json!({"type": "object", "x-kubernetes-group-version-kind": kind});
    assert_eq!(document["definitions"]["com.example.v1.Bag"], expected);
}
