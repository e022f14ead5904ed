//! One tenant cannot starve another: each attack has a neighbour beside it, who is answered.

#[path = "../support/asking.rs"]
mod asking;
mod bodies;
mod others;
mod stored;
mod unread;

use asking::Asker;
use interlock_apiserver::limits::Caps;
use interlock_apiserver::{Config, Server};
use serde_json::json;

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server with two tenants.
pub(crate) struct Tenants {
    pub(crate) server: Server,
    /// Attacks.
    pub(crate) loud: Asker,
    /// Wants to be served.
    pub(crate) quiet: Asker,
}

impl Tenants {
    pub(crate) async fn with(caps: Caps) -> Tenants {
        let config = Config { limits: caps, ..Config::default() };
        Tenants::of(Server::start(config).await.expect("a server")).await
    }

    pub(crate) async fn of(server: Server) -> Tenants {
        let (loud, quiet) = (tenant(&server, "loud").await, tenant(&server, "quiet").await);
        Tenants { server, loud, quiet }
    }

    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let answer = Asker::admin(&self.server).get("/metrics").await;
        let text = answer.text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
    }

    /// The neighbour reads and writes.
    pub(crate) async fn neighbour_is_served(&self) {
        let map = json!({"metadata": {"generateName": "served-"}});
        self.quiet.make(CONFIG_MAPS, &map).await;
        let list = self.quiet.get(CONFIG_MAPS).await;
        assert_eq!(list.code, 200, "{}", list.text());
        assert!(!list.names().is_empty());
    }
}

/// Whoever may do anything in a new logical cluster, and shows a token: the limits do not take them for the hub.
async fn tenant(server: &Server, cluster: &str) -> Asker {
    let clusters = "/apis/interlock.dev/v1alpha1/logicalclusters";
    Asker::admin(server).make(clusters, &json!({"metadata": {"name": cluster}})).await;
    let admin = Asker::admin(server).in_cluster(cluster);
    let subject = json!({"kind": "ServiceAccount", "name": "default", "namespace": "default"});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    let binding = json!({"metadata": {"name": "tenant"}, "subjects": [subject], "roleRef": role});
    admin.make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let token = admin.make(path, &json!({})).await["status"]["token"].clone();
    Asker::with_token(server, token.as_str().expect("a token")).in_cluster(cluster)
}

/// Fills a tenant's cluster with ConfigMaps of this size.
pub(crate) async fn fill(who: &Asker, count: usize, bytes: usize) {
    for number in 0..count {
        let name = format!("large-{number}");
        let map = json!({"metadata": {"name": name}, "data": {"x": "y".repeat(bytes)}});
        who.make(CONFIG_MAPS, &map).await;
    }
}
