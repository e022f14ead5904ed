//! How the objects of rollouts are filed: a step asks an index, never all clusters.
//!
//! All of them read raw objects, since a broken object is filed under what can be read of it.

use crate::kinds::{CLUSTER_ROLLOUT, CLUSTER_UPDATE, WORKLOAD_CLUSTER};
use interlock_api::rollouts::{DRAIN_PREFIX, LABEL_FLEET_UPDATE, record_name};
use interlock_kernel::Index;
use interlock_kernel::metadata::{label, name_of, uid_of};
use kube_core::DynamicObject;
use serde_json::Value;

/// WorkloadClusters by the name of their record.
pub(crate) const CLUSTERS_BY_RECORD: Index = Index {
    name: "by-record",
    kind: WORKLOAD_CLUSTER,
    values: |cluster| vec![record_name(name_of(cluster), uid_of(cluster))],
};

/// Records by the name of their cluster.
pub(crate) const RECORDS_BY_CLUSTER: Index = Index {
    name: "by-cluster",
    kind: CLUSTER_ROLLOUT,
    values: |record| text(&record.data["spec"]["cluster"]["name"]),
};

/// Records by the uid of each request that they have an entry of.
pub(crate) const RECORDS_BY_REQUEST: Index = Index {
    name: "by-request",
    kind: CLUSTER_ROLLOUT,
    values: |record| {
        let entries = record.data["status"]["requests"].as_array().into_iter().flatten();
        entries.flat_map(|entry| text(&entry["uid"])).collect()
    },
};

/// Requests by the name of their cluster.
pub(crate) const UPDATES_BY_CLUSTER: Index = Index {
    name: "by-cluster",
    kind: CLUSTER_UPDATE,
    values: |update| text(&update.data["spec"]["cluster"]),
};

/// Requests by the uid of the FleetUpdate that made them.
pub(crate) const UPDATES_BY_FLEET: Index = Index {
    name: "by-fleet",
    kind: CLUSTER_UPDATE,
    values: |update| label(update, LABEL_FLEET_UPDATE).map(str::to_owned).into_iter().collect(),
};

/// The uids of the requests for which a cluster is to be drained.
pub(crate) fn drained_for(cluster: &DynamicObject) -> Vec<String> {
    let entries = cluster.data["spec"]["drains"].as_array().into_iter().flatten();
    let requesters = entries.filter_map(|entry| entry["requester"].as_str());
    requesters.filter_map(|it| it.strip_prefix(DRAIN_PREFIX)).map(str::to_owned).collect()
}

/// The uids of the requests for which a cluster says that it is drained.
pub(crate) fn is_drained_for(cluster: &DynamicObject) -> Vec<String> {
    let entries = cluster.data["status"]["drained"].as_array().into_iter().flatten();
    let requesters = entries.filter_map(Value::as_str);
    requesters.filter_map(|it| it.strip_prefix(DRAIN_PREFIX)).map(str::to_owned).collect()
}

fn text(value: &Value) -> Vec<String> {
    value.as_str().map(str::to_owned).into_iter().collect()
}
