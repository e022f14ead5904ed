//! Pods of one logical cluster that run in another one, under other rights and policies.

use crate::PODS;
use crate::asking::Asker;
use crate::wire::{Client, Reached, V5};
use interlock_apiserver::Status;
use interlock_apiserver::streams::{Answer, PodPlace, PodPlaces, Registration};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const SHOP: &str = "/api/v1/namespaces/shop/pods";
const EXEC: &str = "exec?command=cat&stdin=true&stdout=true";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// Somebody who says that every pod runs there.
struct Says(Mutex<Result<PodPlace, Status>>);

impl Says {
    fn now(&self, place: Result<PodPlace, Status>) {
        *self.0.lock().expect("no panic") = place;
    }
}

impl PodPlaces for Says {
    fn place(&self, _: Value) -> Answer<PodPlace> {
        let place = self.0.lock().expect("no panic").clone();
        Box::pin(async move { place })
    }
}

/// A pod `web` of namespace `shop` of the root cluster, that runs as the pod `web` of namespace `default` in west.
struct Placed {
    reached: Reached,
    hub: Asker,
    says: Arc<Says>,
    _registration: Registration,
}

impl Placed {
    async fn new() -> Placed {
        let reached = Reached::new().await;
        let hub = Asker::admin(&reached.scene.admin.server);
        hub.make("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await;
        let containers = json!([{"name": "web", "image": "web:1"}]);
        let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": containers}});
        hub.make(SHOP, &pod).await;
        let there = reached.scene.admin.get(&format!("{PODS}/web")).await.json;
        let uid = there["metadata"]["uid"].as_str().expect("it has one").to_owned();
        let (cluster, namespace) = ("west".to_owned(), "default".to_owned());
        let says = Arc::new(Says(Mutex::new(Ok(PodPlace { cluster, namespace, uid }))));
        let places: Arc<Says> = Arc::clone(&says);
        let _registration = hub.server.register_pod_places("root", places);
        Placed { reached, hub, says, _registration }
    }

    /// Lets somebody do these things in the namespace of the root cluster, and nothing anywhere else.
    async fn allow(&self, subject: &Value, rights: &[(&str, &str)]) {
        let rule = |(verb, resource): &(&str, &str)| json!({"apiGroups": [""], "verbs": [verb], "resources": [resource]});
        let rules: Vec<Value> = rights.iter().map(rule).collect();
        let role = json!({"metadata": {"name": "reader"}, "rules": rules});
        self.hub.make(&format!("{RBAC}/namespaces/shop/roles"), &role).await;
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"},
            "subjects": [subject],
        });
        self.hub.make(&format!("{RBAC}/namespaces/shop/rolebindings"), &binding).await;
    }

    async fn allow_reader(&self, rights: &[(&str, &str)]) {
        let group = "rbac.authorization.k8s.io";
        self.allow(&json!({"apiGroup": group, "kind": "User", "name": "reader"}), rights).await;
    }

    async fn exec_as(&self, token: &str) -> (String, Client) {
        self.reached.websocket_at(token, &format!("{SHOP}/web/{EXEC}"), V5).await
    }

    /// Refuses commands in west to all others than this user.
    async fn allow_only(&self, user: &str) {
        let expression = format!("request.userInfo.username == '{user}'");
        let policy = json!({"metadata": {"name": "none"}, "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec"],
                "operations": ["CONNECT"],
            }]},
            "validations": [{"expression": expression}],
        }});
        let there = &self.reached.scene.admin;
        there.make(&format!("{ADMISSION}/validatingadmissionpolicies"), &policy).await;
        let binding = json!({"metadata": {"name": "none"},
            "spec": {"policyName": "none", "validationActions": ["Deny"]}});
        there.make(&format!("{ADMISSION}/validatingadmissionpolicybindings"), &binding).await;
    }
}

#[tokio::test]
async fn a_request_goes_on_to_the_pod_that_runs() {
    let placed = Placed::new().await;
    let answer = placed.hub.get(&format!("{SHOP}/web/log?tailLines=2")).await;
    assert_eq!((answer.code, answer.text().as_str()), (200, "\"one\"\n\"two\"\n"));
    let (head, mut client) = placed.exec_as("admin-token").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert_eq!(client.next().await.as_deref(), Some(&[1][..]), "it runs");
    client.send(b"\x00hello").await;
    assert_eq!(client.next().await.as_deref(), Some(&b"\x01hello"[..]));
    let fake = &placed.reached.scene.fake;
    let logs: Vec<_> = fake.logs.lock().expect("no panic").iter().map(|it| it.0.clone()).collect();
    let commands = fake.commands.lock().expect("no panic").clone();
    assert_eq!(logs, [commands[0].0.clone()], "both are about one container");
    let place = placed.says.0.lock().expect("no panic").clone().expect("it runs");
    let of = &commands[0].0;
    let found = (of.namespace.as_str(), of.pod.as_str(), of.container.as_str(), &of.uid);
    assert_eq!(found, ("default", "web", "web", &place.uid));
}

#[tokio::test]
async fn the_rights_are_those_in_the_cluster_that_was_asked() {
    let placed = Placed::new().await;
    placed.allow_reader(&[("get", "pods/log"), ("get", "pods/exec")]).await;
    let reader = Asker::user(&placed.hub.server, "reader", &[]);
    assert_eq!(reader.get(&format!("{SHOP}/web/log")).await.code, 200);
    let (head, _) = placed.exec_as("reader-token").await;
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    // Where it runs they have none, and whoever has none at the hub does not even learn of the pod.
    let there = reader.clone().in_cluster("west").get(&format!("{PODS}/web/log")).await;
    assert_eq!(there.code, 403, "{}", there.text());
    let stranger = Asker::user(&placed.hub.server, "stranger", &[]);
    assert_eq!(stranger.get(&format!("{SHOP}/web/log")).await.code, 403);
    assert!(placed.reached.scene.fake.commands.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn what_the_policies_where_it_runs_refuse_is_refused() {
    let placed = Placed::new().await;
    placed.allow_reader(&[("create", "pods/exec"), ("get", "pods/exec")]).await;
    let (head, client) = placed.exec_as("reader-token").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    drop(client);
    placed.allow_only("admin").await;
    let (head, _) = placed.exec_as("reader-token").await;
    assert!(head.starts_with("HTTP/1.1 422 "), "{head}");
    let (head, _) = placed.exec_as("admin-token").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
}

#[tokio::test]
async fn an_account_of_one_cluster_is_nobody_by_its_name_in_the_other() {
    let placed = Placed::new().await;
    let accounts = "/api/v1/namespaces/shop/serviceaccounts";
    placed.hub.make(accounts, &json!({"metadata": {"name": "ci"}})).await;
    let account = json!({"kind": "ServiceAccount", "name": "ci", "namespace": "shop"});
    placed.allow(&account, &[("create", "pods/exec"), ("get", "pods/exec")]).await;
    let request = json!({"spec": {"expirationSeconds": 600}});
    let made = placed.hub.make(&format!("{accounts}/ci/token"), &request).await;
    let token = made["status"]["token"].as_str().expect("a token").to_owned();
    let (head, client) = placed.exec_as(&token).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    drop(client);
    // West lets in the account of this name, which is one of its own.
    placed.allow_only("system:serviceaccount:shop:ci").await;
    let (head, _) = placed.exec_as(&token).await;
    assert!(head.starts_with("HTTP/1.1 422 "), "{head}");
}

#[tokio::test]
async fn a_pod_that_cannot_be_reached_says_why() {
    let placed = Placed::new().await;
    let place = placed.says.0.lock().expect("no panic").clone().expect("it runs");
    let log = format!("{SHOP}/web/log");
    for (said, code, word) in [
        (Err(Status::bad_request("the namespace is moving")), 400, "the namespace is moving"),
        (Ok(PodPlace { uid: "another".to_owned(), ..place.clone() }), 409, "another pod web"),
        (Ok(PodPlace { cluster: "root".to_owned(), ..place.clone() }), 503, "try again"),
        (Ok(PodPlace { cluster: "nowhere".to_owned(), ..place.clone() }), 503, "try again"),
        (Ok(PodPlace { namespace: "none".to_owned(), ..place.clone() }), 404, "not found"),
    ] {
        placed.says.now(said);
        let answer = placed.hub.get(&log).await;
        assert!(answer.code == code && answer.text().contains(word), "{}", answer.text());
    }
    assert!(placed.reached.scene.fake.logs.lock().expect("no panic").is_empty());
    // The state of the pod is that where it runs.
    placed.says.now(Ok(place));
    let over = json!({"status": {"phase": "Succeeded"}});
    let path = format!("{PODS}/web/status");
    assert_eq!(placed.reached.scene.admin.merge(&path, &over).await.code, 200);
    let (head, _) = placed.exec_as("admin-token").await;
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
}
