//! The hub and the control planes of tenants, as the commands about machines need them.

use crate::connection::{from_secret, in_logical_cluster};
use crate::location::{Found, Location};
use crate::words::did_you_mean;
use anyhow::{Context, anyhow, bail};
use interlock_api::nodes::{DpuReport, PhysicalNode, Plane, Rack, Tenant};
use interlock_nodes::kinds::LEASE_NAMESPACE;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// How many objects are asked for at a time.
const PAGE: u32 = 500;
/// A hub that does not answer is not waited for.
const CONNECT: Duration = Duration::from_secs(5);

/// The hub.
pub(crate) struct Hub {
    pub(super) client: Client,
    config: kube::Config,
    source: String,
    /// Who asks, for the record.
    pub(super) user: String,
}

impl Hub {
    /// Finds the hub. Nothing is asked yet.
    pub(crate) async fn open(location: &Location) -> anyhow::Result<Hub> {
        let Found { source, mut config, user } = location.find().await?;
        config.connect_timeout = Some(CONNECT);
        let client = Client::try_from(config.clone());
        let client = client.with_context(|| format!("cannot make a client of {source}"))?;
        Ok(Hub { client, config, source, user })
    }

    /// All machines, by name.
    pub(crate) async fn nodes(&self) -> anyhow::Result<Vec<PhysicalNode>> {
        let mut nodes = self.list::<PhysicalNode>(&self.client, "machines").await?;
        nodes.sort_by_key(ResourceExt::name_any);
        Ok(nodes)
    }

    /// What all DPUs report.
    pub(crate) async fn reports(&self) -> anyhow::Result<Vec<DpuReport>> {
        self.list(&self.client, "reports of DPUs").await
    }

    /// All racks.
    pub(crate) async fn racks(&self) -> anyhow::Result<Vec<Rack>> {
        self.list(&self.client, "racks").await
    }

    /// All tenants, by name.
    pub(crate) async fn tenants(&self) -> anyhow::Result<Vec<Tenant>> {
        let mut tenants = self.list::<Tenant>(&self.client, "tenants").await?;
        tenants.sort_by_key(ResourceExt::name_any);
        Ok(tenants)
    }

    /// All Leases of Interlock: those of DPUs are among them.
    pub(crate) async fn leases(&self) -> anyhow::Result<Vec<Lease>> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), LEASE_NAMESPACE);
        self.pages(&leases, "the Leases of DPUs").await
    }

    /// A machine, as the hub itself has it now.
    pub(super) async fn node(&self, name: &str) -> anyhow::Result<PhysicalNode> {
        let nodes: Api<PhysicalNode> = Api::all(self.client.clone());
        let found = nodes.get_opt(name).await;
        if let Some(node) = found.map_err(|error| self.told(error, "read the PhysicalNode"))? {
            return Ok(node);
        }
        let known: Vec<String> = self.nodes().await?.iter().map(ResourceExt::name_any).collect();
        bail!("there is no PhysicalNode `{name}`{}", did_you_mean(name, &known))
    }

    /// A tenant by its name.
    pub(super) async fn tenant(&self, name: &str) -> anyhow::Result<Tenant> {
        let tenants: Api<Tenant> = Api::all(self.client.clone());
        let found = tenants.get_opt(name).await;
        if let Some(tenant) = found.map_err(|error| self.told(error, "read the Tenant"))? {
            return Ok(tenant);
        }
        let all = self.tenants().await?;
        let known: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
        bail!("there is no Tenant `{name}`{}", did_you_mean(name, &known))
    }

    /// A client of the control plane of a tenant.
    pub(super) async fn plane(&self, tenant: &Tenant) -> anyhow::Result<Client> {
        let name = tenant.name_any();
        let config = match &tenant.spec.plane {
            Plane::LogicalCluster(cluster) => in_logical_cluster(self.config.clone(), cluster),
            Plane::KubeconfigSecret(key) => from_secret(&self.client, key).await,
        };
        let mut config =
            config.with_context(|| format!("cannot reach the control plane of tenant {name}"))?;
        config.connect_timeout = Some(CONNECT);
        let client = Client::try_from(config);
        client.with_context(|| format!("cannot make a client of the control plane of {name}"))
    }

    async fn list<K>(&self, at: &Client, what: &str) -> anyhow::Result<Vec<K>>
    where
        K: Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        self.pages(&Api::all(at.clone()), what).await
    }

    async fn pages<K>(&self, api: &Api<K>, what: &str) -> anyhow::Result<Vec<K>>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let mut params = ListParams::default().limit(PAGE);
        let mut items = Vec::new();
        loop {
            let page = api.list(&params).await;
            let page = page.map_err(|error| self.told(error, &format!("list {what}")))?;
            items.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                None => return Ok(items),
                Some(token) => params = params.continue_token(&token),
            }
        }
    }

    /// What went wrong, for people.
    pub(super) fn told(&self, error: kube::Error, what: &str) -> anyhow::Error {
        match error {
            kube::Error::Api(status) if status.code == 404 => anyhow!(
                "cannot {what}: the API server does not serve the kinds of nodes\nnext: interlock up, \
                 or kubectl apply -f the output of `interlock manifests`"
            ),
            kube::Error::Api(status) => anyhow!("cannot {what}: {}", status.message),
            other => anyhow!(
                "cannot {what}: the hub does not answer ({}): {other}\nnext: interlock up, or name \
                 another one with --kubeconfig FILE",
                self.source
            ),
        }
    }
}
