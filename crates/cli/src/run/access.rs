//! Who is who in `interlock up`: each part has a name of its own, and a role that allows what it
//! does.

use super::roles::{self, Rules, cluster_role, cluster_role_binding};
use anyhow::Context;
use interlock_apiserver::access::identity::{MASTERS, Scope};
use interlock_apiserver::{Identity, Server};
use interlock_kernel::{Kind, Place};
use interlock_programs::{Account, accounts};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;

/// The logical cluster that is the hub.
pub(crate) const HUB: &str = "root";

/// The role of those who enter a logical cluster; with the name of the cluster behind it.
const ENTER: &str = "interlock:enter";

/// Somebody who acts in a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who<'a> {
    /// Whoever started it all: makes clusters, kinds and roles.
    Owner,
    /// What fills the caches that all controllers share.
    Caches,
    /// An account of the hub's program.
    OfHub(Account),
    /// An account of the agent of a cluster.
    OfCluster(Account, &'a str),
}

impl fmt::Display for Who<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Owner => f.write_str("system:interlock:up"),
            Who::Caches => f.write_str("system:interlock:caches"),
            Who::OfHub(account) => write!(f, "system:interlock:{account}"),
            Who::OfCluster(account, cluster) => write!(f, "system:interlock:{account}:{cluster}"),
        }
    }
}

impl Who<'_> {
    /// A client of a logical cluster, with no socket in between.
    pub(crate) fn client(self, server: &Server, cluster: &str) -> Client {
        let groups = match self {
            Who::Owner => vec![MASTERS.to_owned()],
            _ => Vec::new(),
        };
        let identity = Identity::authenticated(self.to_string(), groups, Scope::Hub);
        Client::new(server.service(identity).in_cluster(cluster), "default")
    }

    fn subject(self) -> Value {
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": self.to_string()})
    }
}

/// Lets the hub's controllers do what they do, and their caches be filled.
pub(crate) async fn allow_at_hub(hub: &Client) -> anyhow::Result<()> {
    grant(hub, roles::CACHES, &Rules::of_caches(Place::HUB, &[]), &[Who::Caches]).await?;
    let rooms = roles::of_hub();
    for account in accounts(&rooms).into_keys() {
        let rules = Rules::of(&rooms, account, Place::HUB);
        grant(hub, account.role(), &rules, &[Who::OfHub(account)]).await?;
    }
    Ok(())
}

/// Lets the agent of a cluster do what it does, at the hub and on the cluster.
pub(crate) async fn allow_for_cluster(
    (hub, cluster): (&Client, &Client),
    (name, logical_cluster): (&str, &str),
    further: &[Kind],
) -> anyhow::Result<()> {
    let rooms = roles::of_agent(true, further);
    let accounts = accounts(&rooms);
    let mut who: Vec<Who<'_>> = accounts.keys().map(|of| Who::OfCluster(*of, name)).collect();
    who.push(Who::Caches);
    let enter = Rules::to_enter(logical_cluster);
    grant(hub, &format!("{ENTER}:{name}"), &enter, &who).await?;
    for (account, places) in accounts {
        let (who, role) = ([Who::OfCluster(account, name)], account.role());
        if places.contains(&Place::HUB) {
            let own = Rules::of(&rooms, account, Place::HUB).and(Rules::of_syncer_of(name));
            grant(hub, &format!("{role}:{name}"), &own, &who).await?;
        }
        grant(cluster, role, &Rules::of(&rooms, account, Place::CLUSTER), &who).await?;
    }
    let cached = format!("{}:{name}", roles::CACHES);
    grant(hub, &cached, &Rules::of_caches(Place::HUB, further), &[Who::Caches]).await?;
    let cached = Rules::of_caches(Place::CLUSTER, further);
    grant(cluster, roles::CACHES, &cached, &[Who::Caches]).await
}

/// Takes away at the hub what the agent of a cluster was allowed there.
pub(crate) async fn forbid_for_cluster(hub: &Client, name: &str) -> anyhow::Result<()> {
    let accounts = accounts(&roles::of_agent(true, &[]));
    let at_hub = accounts.iter().filter(|(_, places)| places.contains(&Place::HUB));
    let roles = at_hub.map(|(account, _)| account.role()).chain([ENTER, roles::CACHES]);
    for role in roles {
        let role = format!("{role}:{name}");
        delete::<ClusterRoleBinding>(hub, &role).await?;
        delete::<ClusterRole>(hub, &role).await?;
    }
    Ok(())
}

/// A role, or the binding of one.
trait Rbac:
    Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
    + Clone
    + DeserializeOwned
    + fmt::Debug
{
}

impl Rbac for ClusterRole {}
impl Rbac for ClusterRoleBinding {}

async fn delete<K: Rbac>(client: &Client, name: &str) -> anyhow::Result<()> {
    let api: Api<K> = Api::all(client.clone());
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => {
            Err(error).with_context(|| format!("cannot delete the role or binding {name}"))
        }
    }
}

/// Makes a role, and binds these to it.
async fn grant(client: &Client, name: &str, rules: &Rules, to: &[Who<'_>]) -> anyhow::Result<()> {
    apply::<ClusterRole>(client, name, &cluster_role(name, rules)).await?;
    let mut binding = cluster_role_binding(name, name, &Value::Null);
    binding["subjects"] = to.iter().map(|who| who.subject()).collect();
    apply::<ClusterRoleBinding>(client, name, &binding).await
}

async fn apply<K: Rbac>(client: &Client, name: &str, object: &Value) -> anyhow::Result<()> {
    let api: Api<K> = Api::all(client.clone());
    let params = PatchParams::apply("interlock").force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.map(|_| ()).with_context(|| format!("cannot make the role or binding {name}"))
}
