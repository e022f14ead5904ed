//! With whose credentials a process enters the control planes of tenants.

use crate::connection::{from_kubeconfig, from_secret};
use crate::run::install::NAMESPACE;
use anyhow::Context;
use interlock_api::placement::SecretKey;
use kube::config::Kubeconfig;
use kube::{Client, Config};
use std::path::PathBuf;

/// Where the kubeconfigs of the control planes of tenants come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Planes {
    /// From the Secrets that the Tenants name; a logical cluster of the hub's server is entered as whoever this
    /// process is at the hub.
    OfTenants,
    /// From a folder with one file for each tenant, which has the name of the tenant.
    Folder(PathBuf),
    /// From a Secret of the hub, in the namespace of what is Interlock's alone, with one entry for each tenant.
    Secret(String),
}

impl Planes {
    /// The kubeconfig that is for this process alone, if it has such. A tenant without one is not served: who has
    /// credentials of its own must not use those of others.
    pub(crate) async fn own(&self, hub: &Client, tenant: &str) -> anyhow::Result<Option<Config>> {
        match self {
            Planes::OfTenants => Ok(None),
            Planes::Folder(folder) => {
                let path = folder.join(tenant);
                let file = Kubeconfig::read_from(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                from_kubeconfig(file).await.map(Some)
            }
            Planes::Secret(name) => {
                let (namespace, name) = (NAMESPACE.to_owned(), name.clone());
                let key = SecretKey { namespace, name, key: tenant.to_owned() };
                from_secret(hub, &key).await.map(Some)
            }
        }
    }
}
