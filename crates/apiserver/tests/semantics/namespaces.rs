//! Namespaces: what they come with, and how they go.

use crate::custom::{WIDGETS_GROUP, widgets};
use crate::support::{Answer, Api, names, text};
use serde_json::{Value, json};

async fn hold(api: &Api, namespace: &str) {
    let body = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    api.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &body).await.made();
}

fn condition<'a>(object: &'a Value, sort: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == sort)
}

#[tokio::test]
async fn a_namespace_is_usable_when_it_is_made() {
    let api = Api::new().await;
    let made = api.namespace("n").await;
    assert_eq!(made["metadata"]["labels"]["kubernetes.io/metadata.name"], "n");
    assert_eq!(made["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(made["status"]["phase"], "Active");
    api.get("/api/v1/namespaces/n/serviceaccounts/default").await.ok();
    let authority = api.get("/api/v1/namespaces/n/configmaps/kube-root-ca.crt").await.ok();
    assert!(authority["data"]["ca.crt"].is_string());
    let own = api.get("/api/v1/namespaces").await.ok();
    assert_eq!(names(&own), ["default", "kube-system", "n"]);
    api.get("/api/v1/namespaces/default/serviceaccounts/default").await.ok();
}

#[tokio::test]
async fn what_every_namespace_has_comes_back() {
    let api = Api::new().await;
    api.namespace("n").await;
    let account = "/api/v1/namespaces/n/serviceaccounts/default";
    let first = api.get(account).await.ok();
    api.delete(account).await.ok();
    let second = api.until(account, |answer| answer.code == 200).await.ok();
    assert_ne!(second["metadata"]["uid"], first["metadata"]["uid"]);
    let authority = "/api/v1/namespaces/n/configmaps/kube-root-ca.crt";
    let right = api.get(authority).await.ok();
    api.merge(authority, &json!({"data": {"ca.crt": "forged", "more": "x"}})).await.ok();
    api.until(authority, |answer| answer.body["data"] == right["data"]).await;
    api.delete(authority).await.ok();
    api.until(authority, |answer| answer.body["data"] == right["data"]).await;
}

#[tokio::test]
async fn an_empty_namespace_goes_by_itself() {
    let api = Api::new().await;
    api.namespace("n").await;
    let going = api.delete("/api/v1/namespaces/n").await.ok();
    assert_eq!(going["kind"], "Namespace");
    assert_eq!(going["status"]["phase"], "Terminating");
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    api.until_gone("/api/v1/namespaces/n").await;
    api.get("/api/v1/namespaces/n/serviceaccounts/default").await.refused(404, "NotFound");
    let again = api.namespace("n").await;
    assert_ne!(again["metadata"]["uid"], going["metadata"]["uid"]);
    let maps = api.get("/api/v1/namespaces/n/configmaps").await.ok();
    assert_eq!(names(&maps), ["kube-root-ca.crt"]);
}

#[tokio::test]
async fn a_namespace_that_is_being_deleted_takes_in_nothing_new() {
    let api = Api::new().await;
    api.namespace("n").await;
    hold(&api, "n").await;
    api.delete("/api/v1/namespaces/n").await.ok();
    let body = json!({"metadata": {"name": "late"}});
    let status = api.post("/api/v1/namespaces/n/configmaps", &body).await.refused(403, "Forbidden");
    assert_eq!(
        status["message"],
        "configmaps \"late\" is forbidden: unable to create new content in namespace n because it \
         is being terminated"
    );
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["reason"], "NamespaceTerminating");
    assert_eq!(cause["field"], "metadata.namespace");
    assert_eq!(cause["message"], "namespace n is being terminated");
    // What is there can still be changed.
    let held = "/api/v1/namespaces/n/configmaps/held";
    api.merge(held, &json!({"data": {"k": "v"}})).await.ok();
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}});
    let path = "/api/v1/namespaces/n/configmaps/late?fieldManager=me";
    api.apply(path, &applied).await.refused(403, "Forbidden");
}

#[tokio::test]
async fn what_holds_a_namespace_is_named_and_waited_for() {
    let api = Api::new().await;
    widgets(&api).await;
    api.namespace("n").await;
    hold(&api, "n").await;
    let widget = json!({"metadata": {"name": "w", "finalizers": ["example.com/other"]}});
    let path = format!("{WIDGETS_GROUP}/namespaces/n/widgets");
    api.post(&path, &widget).await.made();
    let free = json!({"metadata": {"name": "free"}});
    api.post("/api/v1/namespaces/n/configmaps", &free).await.made();
    api.delete("/api/v1/namespaces/n").await.ok();
    let is_reported = |answer: &Answer| {
        condition(&answer.body, "NamespaceFinalizersRemaining")
            .is_some_and(|condition| condition["status"] == "True")
    };
    let namespace = api.until("/api/v1/namespaces/n", is_reported).await.ok();
    let left = condition(&namespace, "NamespaceContentRemaining").expect("it is there");
    assert_eq!(left["reason"], "SomeResourcesRemain");
    assert_eq!(
        left["message"],
        "Some resources are remaining: configmaps. has 1 resource instances, widgets.example.com \
         has 1 resource instances"
    );
    let holding = condition(&namespace, "NamespaceFinalizersRemaining").expect("it is there");
    assert_eq!(holding["reason"], "SomeFinalizersRemain");
    assert_eq!(
        holding["message"],
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource \
         instances, example.com/other in 1 resource instances"
    );
    api.until_gone("/api/v1/namespaces/n/configmaps/free").await;
    let no_finalizers = json!({"metadata": {"finalizers": null}});
    api.merge("/api/v1/namespaces/n/configmaps/held", &no_finalizers).await.ok();
    api.merge(&format!("{path}/w"), &no_finalizers).await.ok();
    api.until_gone("/api/v1/namespaces/n").await;
}

#[tokio::test]
async fn a_namespace_has_finalizers_of_two_sorts() {
    let api = Api::new().await;
    let body = json!({"metadata": {"name": "n", "finalizers": ["example.com/hold"]}});
    api.post("/api/v1/namespaces", &body).await.made();
    let path = "/api/v1/namespaces/n";
    api.delete(path).await.ok();
    let is_empty = |answer: &Answer| {
        answer.body["spec"]
            .get("finalizers")
            .is_none_or(|list| list.as_array().is_some_and(Vec::is_empty))
    };
    api.until(path, is_empty).await.ok();
    api.merge(path, &json!({"metadata": {"finalizers": null}})).await.ok();
    api.until_gone(path).await;
    // One whose own finalizer is somebody else's goes when they say so.
    let body = json!({"metadata": {"name": "m"}, "spec": {"finalizers": ["example.com/mine"]}});
    let made = api.post("/api/v1/namespaces", &body).await.made();
    assert_eq!(made["spec"]["finalizers"], json!(["example.com/mine", "kubernetes"]));
    api.delete("/api/v1/namespaces/m").await.ok();
    let only_mine =
        |answer: &Answer| answer.body["spec"]["finalizers"] == json!(["example.com/mine"]);
    let mut waiting = api.until("/api/v1/namespaces/m", only_mine).await.ok();
    waiting["spec"]["finalizers"] = json!([]);
    api.put("/api/v1/namespaces/m/finalize", &waiting).await.ok();
    api.until_gone("/api/v1/namespaces/m").await;
}

#[tokio::test]
async fn namespaces_go_one_by_one() {
    let api = Api::new().await;
    api.delete("/api/v1/namespaces").await.refused(405, "MethodNotAllowed");
    let kept = api.get("/api/v1/namespaces").await.ok();
    assert_eq!(names(&kept), ["default", "kube-system"]);
}

#[tokio::test]
async fn nothing_slips_into_a_namespace_that_is_being_deleted() {
    let api = Api::new().await;
    for round in 0..5 {
        let name = format!("n{round}");
        api.namespace(&name).await;
        let maps = format!("/api/v1/namespaces/{name}/configmaps");
        let writer = {
            let (api, maps) = (api.clone(), maps.clone());
            tokio::spawn(async move {
                let mut made = 0;
                loop {
                    let body = json!({"metadata": {"generateName": "x-"}});
                    let answer = api.post(&maps, &body).await;
                    if answer.code != 201 {
                        return (made, answer);
                    }
                    made += 1;
                }
            })
        };
        tokio::task::yield_now().await;
        api.delete(&format!("/api/v1/namespaces/{name}")).await.ok();
        let (_, refusal) = writer.await.expect("the writer is refused in the end");
        assert!(matches!(refusal.code, 403 | 404), "{}", text(&refusal.body["message"]));
        api.until_gone(&format!("/api/v1/namespaces/{name}")).await;
        assert_eq!(names(&api.get(&maps).await.ok()).len(), 0);
    }
}

#[tokio::test]
async fn labels_of_pod_security_are_answered_with_a_warning() {
    let api = Api::new().await;
    let namespaces = "/api/v1/namespaces";
    let labels = json!({
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/enforce-version": "v1.35",
        "pod-security.kubernetes.io/warn": "privileged",
    });
    let answer = api.post(namespaces, &json!({"metadata": {"name": "n", "labels": labels}})).await;
    let [warning] = &answer.warnings()[..] else { panic!("{:?}", answer.warnings()) };
    let why = "does not enforce Pod Security labels: \
               pod-security.kubernetes.io/enforce=restricted has no effect";
    assert!(warning.contains(why), "{warning}");
    assert!(warning.contains("use a ValidatingAdmissionPolicy"), "{warning}");
    answer.made();
    let audit = json!({"metadata": {"labels": {
        "pod-security.kubernetes.io/audit": "baseline", "pod-security.kubernetes.io/enforce": null,
    }}});
    let answer = api.merge(&format!("{namespaces}/n"), &audit).await;
    let [warning] = &answer.warnings()[..] else { panic!("{:?}", answer.warnings()) };
    assert!(warning.contains("pod-security.kubernetes.io/audit=baseline"), "{warning}");
    let privileged =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/audit": "privileged"}}});
    let answer = api.merge(&format!("{namespaces}/n"), &privileged).await;
    assert!(answer.warnings().is_empty(), "{:?}", answer.warnings());
    answer.ok();
}
