//! Logical clusters: each an API of its own, in one process.

use crate::custom::{DEFINITIONS, WIDGETS, WIDGETS_GROUP, definition, widgets};
use crate::support::{Answer, Api, MAPS, names, text, version};
use interlock_apiserver::Config;
use serde_json::{Value, json};

pub(crate) const CLUSTERS: &str = "/apis/interlock.dev/v1alpha1/logicalclusters";

/// A new logical cluster, and its administrator.
pub(crate) async fn cluster(api: &Api, name: &str) -> Api {
    let made = api.post(CLUSTERS, &json!({"metadata": {"name": name}})).await.made();
    assert_eq!(made["status"]["phase"], "Ready");
    assert_eq!(made["status"]["url"], format!("/clusters/{name}"));
    api.in_cluster(name)
}

/// A server whose hub publishes widgets.
async fn hub() -> Api {
    Api::with(Config { hub_definitions: vec![definition()], ..Config::default() }).await
}

#[tokio::test]
async fn a_cluster_is_usable_when_it_is_made() {
    let api = Api::new().await;
    let tenant = cluster(&api, "t1").await;
    assert_eq!(names(&tenant.get("/api/v1/namespaces").await.ok()), ["default"]);
    tenant.get("/api/v1/namespaces/default/serviceaccounts/default").await.ok();
    tenant.get(&format!("{MAPS}/kube-root-ca.crt")).await.ok();
    tenant.config_map("a", json!({})).await;
    tenant.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/view").await.ok();
    tenant.get("/version").await.ok();
    tenant.get("/api").await.ok();
    tenant.get(CLUSTERS).await.refused(404, "NotFound");
}

#[tokio::test]
async fn clusters_do_not_see_each_other() {
    let api = Api::new().await;
    let (first, second) = (cluster(&api, "t1").await, cluster(&api, "t2").await);
    let mut watch = second.watch(&format!("{MAPS}?watch=true")).await;
    watch.expect("ADDED", "kube-root-ca.crt").await;
    first.config_map("a", json!({"whose": "first"})).await;
    first.namespace("n").await;
    widgets(&first).await;
    second.get(&format!("{MAPS}/a")).await.refused(404, "NotFound");
    api.get(&format!("{MAPS}/a")).await.refused(404, "NotFound");
    second.get("/api/v1/namespaces/n").await.refused(404, "NotFound");
    second.get(WIDGETS).await.refused(404, "NotFound");
    first.get(WIDGETS).await.ok();
    second.config_map("a", json!({"whose": "second"})).await;
    assert_eq!(watch.expect("ADDED", "a").await["data"]["whose"], "second");
    assert_eq!(first.get(&format!("{MAPS}/a")).await.ok()["data"]["whose"], "first");
    // Owners are looked for in the same cluster only: this one is not there.
    let owner = first.get(&format!("{MAPS}/a")).await.ok();
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner["metadata"]["uid"],
    });
    let child = json!({"metadata": {"name": "child", "ownerReferences": [reference]}});
    second.post(MAPS, &child).await.made();
    second.until_gone(&format!("{MAPS}/child")).await;
}

#[tokio::test]
async fn a_page_of_one_cluster_is_none_of_another() {
    let api = Api::new().await;
    let (first, second) = (cluster(&api, "t1").await, cluster(&api, "t2").await);
    for name in ["a", "b", "c"] {
        first.config_map(name, json!({})).await;
        second.config_map(name, json!({})).await;
    }
    let page = first.get(&format!("{MAPS}?limit=1")).await.ok();
    let path = format!("{MAPS}?limit=1&continue={}", text(&page["metadata"]["continue"]));
    second.get(&path).await.refused(400, "BadRequest");
    assert_eq!(names(&first.get(&path).await.ok()), ["b"]);
}

#[tokio::test]
async fn what_is_not_there_and_what_is_not_for_you_look_the_same() {
    let api = Api::new().await;
    cluster(&api, "t1").await;
    let ann = api.as_user("ann", &[]);
    let there = ann.in_cluster("t1").get(MAPS).await.refused(403, "Forbidden");
    let missing = ann.in_cluster("t2").get(MAPS).await.refused(403, "Forbidden");
    assert_eq!(
        text(&there["message"]).replace("t1", "x"),
        text(&missing["message"]).replace("t2", "x")
    );
    api.in_cluster("t2").get(MAPS).await.refused(403, "Forbidden");
    let role = json!({
        "metadata": {"name": "enter"},
        "rules": [{"apiGroups": ["interlock.dev"], "resources": ["logicalclusters"],
                   "resourceNames": ["t1"], "verbs": ["access"]}],
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    api.post(&format!("{rbac}/clusterroles"), &role).await.made();
    let binding = json!({
        "metadata": {"name": "enter"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "enter"},
    });
    api.post(&format!("{rbac}/clusterrolebindings"), &binding).await.made();
    let status = ann.in_cluster("t1").get(MAPS).await.refused(403, "Forbidden");
    assert!(text(&status["message"]).contains("cannot list resource"), "{status}");
    let mut view = binding.clone();
    view["metadata"]["name"] = json!("view");
    view["roleRef"]["name"] = json!("view");
    api.in_cluster("t1").post(&format!("{rbac}/clusterrolebindings"), &view).await.made();
    ann.in_cluster("t1").get(MAPS).await.ok();
    ann.get(MAPS).await.refused(403, "Forbidden");
}

#[tokio::test]
async fn a_token_of_one_cluster_is_worth_nothing_in_another() {
    let api = Api::new().await;
    let tenant = cluster(&api, "t1").await;
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let answer = tenant.post(path, &json!({"spec": {}})).await.made();
    let token = text(&answer["status"]["token"]);
    let here = api.with_token(&token, &format!("/clusters/t1{MAPS}")).await;
    here.refused(403, "Forbidden");
    api.with_token(&token, MAPS).await.refused(401, "Unauthorized");
    cluster(&api, "t2").await;
    let there = api.with_token(&token, &format!("/clusters/t2{MAPS}")).await;
    there.refused(401, "Unauthorized");
}

#[tokio::test]
async fn the_kinds_of_the_hub_are_served_in_each_cluster() {
    let api = hub().await;
    let tenant = cluster(&api, "t1").await;
    for one in [&api, &tenant] {
        let made = one.post(WIDGETS, &json!({"metadata": {"name": "a"}, "spec": {}})).await.made();
        assert_eq!(made["spec"]["size"], "medium");
        let groups = one.get("/apis").await.ok();
        assert!(
            groups["groups"]
                .as_array()
                .is_some_and(|list| { list.iter().any(|group| group["name"] == "example.com") })
        );
    }
    let applied = tenant
        .apply(&format!("{DEFINITIONS}/widgets.example.com?fieldManager=crds"), &definition())
        .await;
    let applied = applied.made();
    assert!(applied["status"]["conditions"].as_array().is_some_and(|list| {
        list.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    }));
    tenant.get(&format!("{WIDGETS}/a")).await.ok();
    let again = tenant
        .apply(&format!("{DEFINITIONS}/widgets.example.com?fieldManager=crds"), &definition())
        .await;
    assert_eq!(version(&again.ok()), version(&applied));
    // Taking the copy away takes nothing away that is the hub's.
    let path = format!("{DEFINITIONS}/widgets.example.com");
    tenant.delete(&path).await.ok();
    tenant.until_gone(&path).await;
    tenant.get(&format!("{WIDGETS}/a")).await.ok();
}

#[tokio::test]
async fn a_tenant_cannot_put_its_own_kinds_in_the_place_of_the_hubs() {
    let api = hub().await;
    let tenant = cluster(&api, "t1").await;
    let mut forged = definition();
    forged["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    tenant.post(DEFINITIONS, &forged).await.refused(403, "Forbidden");
    let mut other = definition();
    other["metadata"]["name"] = json!("gadgets.example.com");
    other["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget"});
    tenant.post(DEFINITIONS, &other).await.refused(403, "Forbidden");
    let mut ours = definition();
    ours["metadata"]["name"] = json!("widgets.interlock.dev");
    ours["spec"]["group"] = json!("interlock.dev");
    tenant.post(DEFINITIONS, &ours).await.refused(403, "Forbidden");
    tenant.post(DEFINITIONS, &definition()).await.made();
    let looser = json!({"spec": {"preserveUnknownFields": false, "scope": "Cluster"}});
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let answer = tenant.merge(&path, &looser).await;
    assert!(matches!(answer.code, 403 | 422), "{}", answer.body);
}

#[tokio::test]
async fn one_list_and_one_watch_can_be_of_all_clusters() {
    let api = hub().await;
    let (first, second) = (cluster(&api, "t1").await, cluster(&api, "t2").await);
    for (one, name) in [(&api, "in-root"), (&first, "in-first"), (&second, "in-second")] {
        one.post(WIDGETS, &json!({"metadata": {"name": name}})).await.made();
    }
    let everywhere = api.in_cluster("*");
    let all = format!("{WIDGETS_GROUP}/widgets");
    let list = everywhere.get(&all).await.ok();
    let mut found: Vec<(String, String)> = list["items"]
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|item| {
            let cluster = &item["metadata"]["annotations"]["kcp.io/cluster"];
            (text(cluster), text(&item["metadata"]["name"]))
        })
        .collect();
    found.sort();
    let expected = [("root", "in-root"), ("t1", "in-first"), ("t2", "in-second")];
    assert_eq!(found, expected.map(|(cluster, name)| (cluster.to_owned(), name.to_owned())));
    let mut watch =
        everywhere.watch(&format!("{all}?watch=true&resourceVersion={}", version(&list))).await;
    second.merge(&format!("{WIDGETS}/in-second"), &json!({"spec": {"replicas": 2}})).await.ok();
    let seen = watch.expect("MODIFIED", "in-second").await;
    assert_eq!(seen["metadata"]["annotations"]["kcp.io/cluster"], "t2");
    let stored = second.get(&format!("{WIDGETS}/in-second")).await.ok();
    assert_eq!(stored["metadata"].get("annotations"), None, "it is never stored");
    everywhere.post(WIDGETS, &json!({})).await.refused(405, "MethodNotAllowed");
    everywhere.get(&format!("{WIDGETS}/in-root")).await.refused(405, "MethodNotAllowed");
    let ann = api.as_user("ann", &[]);
    let role = json!({
        "metadata": {"name": "lists"},
        "rules": [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["list"]}],
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    api.post(&format!("{rbac}/clusterroles"), &role).await.made();
    let binding = json!({
        "metadata": {"name": "lists"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lists"},
    });
    api.post(&format!("{rbac}/clusterrolebindings"), &binding).await.made();
    ann.get(&all).await.ok();
    ann.in_cluster("*").get(&all).await.refused(403, "Forbidden");
    let more = json!({"rules": [{"apiGroups": ["example.com"], "resources": ["widgets"],
                                 "verbs": ["list", "wildcard"]}]});
    api.merge(&format!("{rbac}/clusterroles/lists"), &more).await.ok();
    ann.in_cluster("*").get(&all).await.ok();
}

#[tokio::test]
async fn a_list_of_all_clusters_is_paged_too() {
    let api = hub().await;
    for name in ["t1", "t2", "t3"] {
        let tenant = cluster(&api, name).await;
        for widget in ["a", "b"] {
            tenant.post(WIDGETS, &json!({"metadata": {"name": widget}})).await.made();
        }
    }
    let everywhere = api.in_cluster("*");
    let (mut seen, mut token) = (0, String::new());
    loop {
        let path = format!("{WIDGETS_GROUP}/widgets?limit=4&continue={token}");
        let page = everywhere.get(&path).await.ok();
        seen += names(&page).len();
        match page["metadata"].get("continue") {
            Some(next) => token = text(next),
            None => break,
        }
    }
    assert_eq!(seen, 6);
    let inside = everywhere.get(&format!("{WIDGETS}?limit=10")).await.ok();
    assert_eq!(names(&inside).len(), 6, "a namespace of all clusters");
}

#[tokio::test]
async fn a_cluster_is_deleted_with_all_that_is_in_it() {
    let api = Api::new().await;
    let tenant = cluster(&api, "t1").await;
    tenant.config_map("a", json!({})).await;
    tenant.namespace("n").await;
    widgets(&tenant).await;
    tenant.post(WIDGETS, &json!({"metadata": {"name": "w"}})).await.made();
    let first = api.get(&format!("{CLUSTERS}/t1")).await.ok();
    api.delete(&format!("{CLUSTERS}/t1")).await.ok();
    api.until_gone(&format!("{CLUSTERS}/t1")).await;
    tenant.until(MAPS, |answer| answer.code == 403).await;
    let tenant = cluster(&api, "t1").await;
    let second = api.get(&format!("{CLUSTERS}/t1")).await.ok();
    assert_ne!(second["status"]["id"], first["status"]["id"], "an id is never used again");
    tenant.get(&format!("{MAPS}/a")).await.refused(404, "NotFound");
    tenant.get("/api/v1/namespaces/n").await.refused(404, "NotFound");
    tenant.get(WIDGETS).await.refused(404, "NotFound");
    widgets(&tenant).await;
    assert_eq!(names(&tenant.get(WIDGETS).await.ok()).len(), 0);
}

fn condition(object: &Value, sort: &str) -> Value {
    let list = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    list.into_iter().find(|condition| condition["type"] == sort).unwrap_or_default()
}

#[tokio::test]
async fn what_holds_a_cluster_is_named_and_waited_for() {
    let api = Api::new().await;
    let tenant = cluster(&api, "t1").await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    tenant.post(MAPS, &held).await.made();
    let path = format!("{CLUSTERS}/t1");
    let going = api.delete(&path).await.ok();
    assert_eq!(going["status"]["phase"], "Terminating");
    let status = tenant.post(MAPS, &json!({"metadata": {"name": "late"}})).await;
    status.refused(403, "Forbidden");
    let late = json!({"metadata": {"name": "late"}});
    tenant.post("/api/v1/namespaces", &late).await.refused(403, "Forbidden");
    let told = |answer: &Answer| condition(&answer.body, "FinalizersRemaining") != Value::Null;
    let told = api.until(&path, told).await.ok();
    let message = text(&condition(&told, "FinalizersRemaining")["message"]);
    assert!(message.contains("example.com/hold in 1 resource instances"), "{message}");
    let message = text(&condition(&told, "ContentRemaining")["message"]);
    assert!(message.contains("configmaps. has 1 resource instances"), "{message}");
    tenant.merge(&format!("{MAPS}/held"), &json!({"metadata": {"finalizers": null}})).await.ok();
    api.until_gone(&path).await;
}

#[tokio::test]
async fn names_of_clusters_are_labels_and_the_root_is_taken() {
    let api = Api::new().await;
    for name in ["root", "Not-A-Name", "a.b", "-a"] {
        let answer = api.post(CLUSTERS, &json!({"metadata": {"name": name}})).await;
        answer.refused(422, "Invalid");
    }
    cluster(&api, "t1").await;
    let again = api.post(CLUSTERS, &json!({"metadata": {"name": "t1"}})).await;
    again.refused(409, "AlreadyExists");
    let forged = json!({"status": {"id": "root", "phase": "Ready"}});
    let path = format!("{CLUSTERS}/t1");
    let before = api.get(&path).await.ok();
    let after = api.merge(&format!("{path}/status"), &forged).await.ok();
    assert_eq!(after["status"]["id"], before["status"]["id"]);
    let free = json!({"metadata": {"finalizers": null}});
    api.merge(&path, &free).await;
    api.delete(&path).await.ok();
    api.until_gone(&path).await;
}

#[tokio::test]
async fn many_clusters_come_and_go() {
    let api = Api::new().await;
    for number in 0..30 {
        let tenant = cluster(&api, &format!("t{number}")).await;
        tenant.config_map("a", json!({})).await;
    }
    assert_eq!(api.server.cluster_names().len(), 31);
    api.delete(CLUSTERS).await.ok();
    // The store knows a moment before the rest of the process does.
    let all_gone = |answer: &Answer| {
        answer.body["items"] == json!([]) && api.server.cluster_names().len() == 1
    };
    api.until(CLUSTERS, all_gone).await;
}
