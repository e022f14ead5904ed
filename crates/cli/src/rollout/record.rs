//! The record of a cluster, its report and its requests, as the hub has them.

use super::Common;
use crate::hub::Hub;
use crate::words::did_you_mean;
use anyhow::bail;
use interlock_api::placement::WorkloadCluster;
use interlock_api::rollouts::{
    ClusterRollout, ClusterUpdate, Requested, RolloutReport, record_name,
};
use kube::ResourceExt;
use kube::api::Api;

/// Finds the hub. Nothing is asked yet.
pub(super) async fn open(common: &Common) -> anyhow::Result<Hub> {
    Hub::open(&common.location, "rollouts").await
}

/// A cluster and all that the hub knows of its updates.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// The name of the cluster.
    pub(super) cluster: String,
    /// None: there was no request yet.
    pub(super) record: Option<ClusterRollout>,
    /// None: there was no request yet.
    pub(super) report: Option<RolloutReport>,
}

/// All clusters, by name, those without any request too.
pub(super) async fn all(hub: &Hub) -> anyhow::Result<Vec<Known>> {
    let clusters: Vec<WorkloadCluster> =
        hub.list(&Api::all(hub.client.clone()), "clusters").await?;
    let records: Vec<ClusterRollout> =
        hub.list(&Api::all(hub.client.clone()), "records of clusters").await?;
    let reports: Vec<RolloutReport> =
        hub.list(&Api::all(hub.client.clone()), "reports of agents").await?;
    Ok(together(&clusters, &records, &reports))
}

/// Each cluster with its record and its report, by name. Those of a cluster that had the name before are not its own.
pub(crate) fn together(
    clusters: &[WorkloadCluster],
    records: &[ClusterRollout],
    reports: &[RolloutReport],
) -> Vec<Known> {
    let mut known: Vec<Known> = clusters
        .iter()
        .map(|cluster| {
            let (name, uid) = (cluster.name_any(), cluster.uid().unwrap_or_default());
            let is_of = |of: &interlock_api::placement::Ref| of.name == name && of.uid == uid;
            Known {
                record: records.iter().find(|it| is_of(&it.spec.cluster)).cloned(),
                report: reports.iter().find(|it| is_of(&it.spec.cluster)).cloned(),
                cluster: name,
            }
        })
        .collect();
    known.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    known
}

/// One cluster.
pub(super) async fn one(hub: &Hub, name: &str) -> anyhow::Result<Known> {
    let clusters: Api<WorkloadCluster> = Api::all(hub.client.clone());
    let found = clusters.get_opt(name).await;
    let Some(cluster) = found.map_err(|error| hub.told(error, "read the WorkloadCluster"))? else {
        let all: Vec<WorkloadCluster> = hub.list(&clusters, "clusters").await?;
        let known: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
        bail!("there is no WorkloadCluster `{name}`{}", did_you_mean(name, &known))
    };
    let called = record_name(name, &cluster.uid().unwrap_or_default());
    let records: Api<ClusterRollout> = Api::all(hub.client.clone());
    let record = records.get_opt(&called).await;
    let reports: Api<RolloutReport> = Api::all(hub.client.clone());
    let report = reports.get_opt(&called).await;
    Ok(Known {
        cluster: name.to_owned(),
        record: record.map_err(|error| hub.told(error, "read the ClusterRollout"))?,
        report: report.map_err(|error| hub.told(error, "read the RolloutReport"))?,
    })
}

impl Known {
    /// Whether anybody ever asked for an update of the cluster.
    pub(crate) fn has_requests(&self) -> bool {
        let status = self.record.as_ref().and_then(|record| record.status.as_ref());
        status.is_some_and(|status| status.last_version > 0 || !status.requests.is_empty())
    }

    /// The requests that the record has, the newest first.
    pub(super) fn requests(&self) -> Vec<Requested> {
        let status = self.record.as_ref().and_then(|record| record.status.as_ref());
        let mut requests = status.map(|status| status.requests.clone()).unwrap_or_default();
        requests.sort_by_key(|request| std::cmp::Reverse(request.version));
        requests
    }
}

/// A request, as people name it: in the namespace of the option, or with it in front.
pub(super) async fn request(
    hub: &Hub,
    namespace: &str,
    name: &str,
) -> anyhow::Result<ClusterUpdate> {
    let (namespace, name) = name.split_once('/').unwrap_or((namespace, name));
    let updates: Api<ClusterUpdate> = Api::namespaced(hub.client.clone(), namespace);
    let found = updates.get_opt(name).await;
    if let Some(update) = found.map_err(|error| hub.told(error, "read the ClusterUpdate"))? {
        return Ok(update);
    }
    let all: Vec<ClusterUpdate> = hub.list(&updates, "requests").await?;
    let known: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
    bail!("namespace {namespace} has no ClusterUpdate `{name}`{}", did_you_mean(name, &known))
}
