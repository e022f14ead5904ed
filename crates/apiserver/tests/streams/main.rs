//! Streams of pods: what the server does with a request before and after it asks whoever runs the pods.

#[path = "../support/asking.rs"]
mod asking;
mod commands;
mod elsewhere;
mod fake;
mod forward;
mod kubectl;
mod logs;
mod refusals;
mod wire;

use asking::Asker;
use fake::Fake;
use interlock_apiserver::streams::Registration;
use interlock_apiserver::{Config, Server};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

/// A logical cluster with a pod that runs, and somebody who runs it.
pub(crate) struct Scene {
    pub(crate) admin: Asker,
    pub(crate) fake: Arc<Fake>,
    registration: Option<Registration>,
}

impl Scene {
    pub(crate) async fn new() -> Scene {
        Scene::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Scene {
        let server = Server::start(config).await.expect("a server");
        let clusters = "/apis/interlock.dev/v1alpha1/logicalclusters";
        Asker::admin(&server).make(clusters, &json!({"metadata": {"name": "west"}})).await;
        let fake = Arc::new(Fake::default());
        let streams: Arc<Fake> = Arc::clone(&fake);
        let registration = Some(server.register_pods("west", streams));
        let admin = Asker::admin(&server).in_cluster("west");
        let scene = Scene { admin, fake, registration };
        scene.pod("web", &running()).await;
        scene
    }

    /// Makes a pod with one container, `web`, in this state.
    pub(crate) async fn pod(&self, name: &str, status: &Value) {
        let pod = json!({
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        });
        self.admin.make(PODS, &pod).await;
        let path = format!("{PODS}/{name}/status");
        let answer = self.admin.merge(&path, &json!({"status": status})).await;
        assert_eq!(answer.code, 200, "{}", answer.text());
    }

    pub(crate) fn nobody_runs_pods_any_more(&mut self) {
        drop(self.registration.take());
    }

    /// A user who may do these things, and nothing else.
    pub(crate) async fn user(&self, name: &str, rights: &[(&str, &str)]) -> Asker {
        let rules: Vec<Value> = rights
            .iter()
            .map(|(verb, resource)| {
                json!({"apiGroups": [""], "verbs": [verb], "resources": [resource]})
            })
            .collect();
        let metadata = json!({"name": name});
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let role = json!({"metadata": metadata, "rules": rules});
        self.admin.make(&format!("{rbac}/clusterroles"), &role).await;
        let binding = json!({
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
        });
        self.admin.make(&format!("{rbac}/clusterrolebindings"), &binding).await;
        let hub = Asker::admin(&self.admin.server);
        let group = format!("may-enter-{name}");
        let may_enter = json!({"metadata": {"name": group}, "rules": [{
            "apiGroups": ["interlock.dev"], "verbs": ["access"],
            "resources": ["logicalclusters"], "resourceNames": ["west"],
        }]});
        hub.make(&format!("{rbac}/clusterroles"), &may_enter).await;
        let binding = json!({
            "metadata": {"name": group},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": group},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
        });
        hub.make(&format!("{rbac}/clusterrolebindings"), &binding).await;
        Asker::user(&self.admin.server, name, &["system:authenticated"]).in_cluster("west")
    }
}

pub(crate) fn running() -> Value {
    let state = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    json!({
        "phase": "Running",
        "containerStatuses": [{
            "name": "web", "image": "web:1", "imageID": "", "ready": true, "restartCount": 0,
            "state": state,
        }],
    })
}
