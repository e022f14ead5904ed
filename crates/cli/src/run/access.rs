//! Who is who in `interlock up`: each part has a name of its own, and a role that allows what it
//! does.

use anyhow::Context;
use interlock_apiserver::access::identity::{MASTERS, Scope};
use interlock_apiserver::{Identity, Server};
use interlock_programs::Account;
use interlock_programs::roles::{self, Grant, OfCluster};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// The logical cluster that is the hub.
pub(crate) const HUB: &str = "root";

/// Somebody who acts in a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who<'a> {
    /// Whoever started it all: makes clusters, kinds and roles.
    Owner,
    /// What fills the caches that all controllers share.
    Caches,
    /// An account of a program that works at the hub only.
    OfHub(Account),
    /// An account of the agent of a cluster.
    OfCluster(Account, &'a str),
    /// An account of a tenant or of a DPU.
    Of(Account, &'a str),
}

impl fmt::Display for Who<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Owner => f.write_str("system:interlock:up"),
            Who::Caches => f.write_str(roles::CACHES_USER),
            Who::OfHub(account) => f.write_str(&account.user(None)),
            Who::OfCluster(account, name) | Who::Of(account, name) => {
                f.write_str(&account.user(Some(name)))
            }
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
}

/// Lets the controllers of the hub, of cloud identities, of updates and of machines do what they do, and their caches be filled.
pub(crate) async fn allow_at_hub(hub: &Client) -> anyhow::Result<()> {
    grant(hub, &roles::at_hub()).await?;
    grant(hub, &roles::of_identities_at_hub()).await?;
    grant(hub, &roles::of_rollouts_at_hub()).await?;
    grant(hub, &roles::machines::at_hub()).await
}

/// Lets the agent of a cluster do what it does, at the hub and on the cluster.
pub(crate) async fn allow_for_cluster(
    hub: &Client,
    cluster: &Client,
    grants: &OfCluster,
) -> anyhow::Result<()> {
    grant(hub, &grants.at_hub).await?;
    grant(cluster, &grants.on_cluster).await
}

/// Takes away at the hub what the agent of a cluster was allowed there.
pub(crate) async fn forbid_for_cluster(hub: &Client, name: &str) -> anyhow::Result<()> {
    for Grant { role, .. } in roles::of_cluster(name, name, &[]).at_hub {
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

/// Makes roles, and binds them.
pub(crate) async fn grant(client: &Client, grants: &[Grant]) -> anyhow::Result<()> {
    for grant in grants {
        let [role, binding] = grant.written();
        apply::<ClusterRole>(client, &grant.role, &role).await?;
        apply::<ClusterRoleBinding>(client, &grant.role, &binding).await?;
    }
    Ok(())
}

async fn apply<K: Rbac>(client: &Client, name: &str, object: &Value) -> anyhow::Result<()> {
    let api: Api<K> = Api::all(client.clone());
    let params = PatchParams::apply("interlock").force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.map(|_| ()).with_context(|| format!("cannot create the role or binding {name}"))
}
