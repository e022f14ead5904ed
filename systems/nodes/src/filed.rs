//! How the objects of nodes are filed: a step asks an index, never all nodes.
//!
//! All of them read raw objects, since a broken object is filed under what can be read of it.

use crate::kinds::{DPU_REPORT, NODE_CLAIM, NODE_FENCE, PHYSICAL_NODE, WORKLOAD_CLUSTER};
use interlock_api::nodes::condition::BOUND;
use interlock_kernel::{Index, Object};
use kube_core::DynamicObject;
use serde_json::Value;

/// The reason of the condition `Bound` of a claim that found no node.
pub(crate) const NO_NODE_AVAILABLE: &str = "NoNodeAvailable";
/// The one value of an index that files what something is true of.
pub(crate) const YES: &str = "yes";
/// The value that every node in the pool is filed under.
pub(crate) const ANY: &str = "*";

/// PhysicalNodes by the uid of the tenant that they are, or were last, assigned to.
pub(crate) const NODES_BY_TENANT: Index = Index {
    name: "by-tenant",
    kind: PHYSICAL_NODE,
    values: |node| text(&node.data["status"]["assignment"]["tenant"]["uid"]),
};

/// PhysicalNodes that a tenant has now, by the uid of the tenant.
pub(crate) const NODES_HELD_BY: Index = Index {
    name: "held-by",
    kind: PHYSICAL_NODE,
    values: |node| match phase(node) {
        "Bound" | "Draining" => (NODES_BY_TENANT.values)(node),
        _ => Vec::new(),
    },
};

/// PhysicalNodes by the uid of the tenant and the name of the claim that they are, or were last, assigned to.
pub(crate) const NODES_BY_CLAIM: Index = Index {
    name: "by-claim",
    kind: PHYSICAL_NODE,
    values: |node| claim_of(node).into_iter().collect(),
};

/// PhysicalNodes that are in the pool: all of them under [`ANY`], and by what a claim selects nodes by.
pub(crate) const NODES_IN_POOL: Index =
    Index { name: "in-pool", kind: PHYSICAL_NODE, values: in_pool };

/// PhysicalNodes by each port that they are wired to, as [`port_key`] has it.
pub(crate) const NODES_BY_WIRE: Index = Index {
    name: "by-wire",
    kind: PHYSICAL_NODE,
    values: |node| {
        let dpus = items(&node.data["spec"]["dpus"]);
        dpus.map(|dpu| port_key(word(&dpu["rack"]), word(&dpu["dpu"]), word(&dpu["port"])))
            .collect()
    },
};

/// PhysicalNodes by their rack.
pub(crate) const NODES_BY_RACK: Index =
    Index { name: "by-rack", kind: PHYSICAL_NODE, values: |node| text(&node.data["spec"]["rack"]) };

/// PhysicalNodes by the uid of the cluster on them.
pub(crate) const NODES_BY_CLUSTER: Index = Index {
    name: "by-cluster",
    kind: PHYSICAL_NODE,
    values: |node| text(&node.data["status"]["cluster"]["uid"]),
};

/// NodeClaims by the name of each node that they list.
pub(crate) const CLAIMS_BY_NODE: Index = Index {
    name: "by-node",
    kind: NODE_CLAIM,
    values: |claim| {
        let mut names: Vec<String> =
            items(&claim.data["status"]["nodes"]).flat_map(|entry| text(&entry["name"])).collect();
        names.sort_unstable();
        names.dedup();
        names
    },
};

/// Files under [`YES`] the NodeClaims that want more nodes than they list: a node that came into the pool concerns
/// them.
pub(crate) const CLAIMS_WAITING: Index = Index {
    name: "waiting",
    kind: NODE_CLAIM,
    values: |claim| {
        let wanted = claim.data["spec"]["count"].as_u64().unwrap_or(1);
        let listed = items(&claim.data["status"]["nodes"]);
        let listed = listed.filter(|entry| entry["state"] != "Released").count() as u64;
        let is_waiting = listed < wanted && claim.metadata.deletion_timestamp.is_none();
        is_waiting.then(|| YES.to_owned()).into_iter().collect()
    },
};

/// Files under [`YES`] the NodeClaims that say that no node is available: what they say of the pool changes with it.
pub(crate) const CLAIMS_SHORT: Index = Index {
    name: "short",
    kind: NODE_CLAIM,
    values: |claim| {
        let mut said = items(&claim.data["status"]["conditions"]);
        let is_short = said.any(|it| it["type"] == BOUND && it["reason"] == NO_NODE_AVAILABLE);
        is_short.then(|| YES.to_owned()).into_iter().collect()
    },
};

/// NodeFences by the name of the node that they name.
pub(crate) const FENCES_BY_NODE: Index = Index {
    name: "by-node",
    kind: NODE_FENCE,
    values: |fence| text(&fence.data["spec"]["node"]["name"]),
};

/// DpuReports by the uid of each node that they report of.
pub(crate) const REPORTS_BY_NODE: Index = Index {
    name: "by-node",
    kind: DPU_REPORT,
    values: |report| {
        let ports = items(&report.data["status"]["ports"]);
        let mut uids: Vec<String> = ports.flat_map(|port| text(&port["node"]["uid"])).collect();
        uids.sort_unstable();
        uids.dedup();
        uids
    },
};

/// WorkloadClusters by the uid of each node that they name: as a machine of theirs, or as one that wants them drained.
pub(crate) const CLUSTERS_BY_NODE: Index = Index {
    name: "by-node",
    kind: WORKLOAD_CLUSTER,
    values: |cluster| {
        let machines = items(&cluster.data["spec"]["machines"]);
        let mut uids: Vec<String> = machines.flat_map(|it| text(&it["node"]["uid"])).collect();
        let drains = items(&cluster.data["spec"]["drains"]);
        uids.extend(
            drains.filter_map(|it| Some(drained_node(it["requester"].as_str()?)?.to_owned())),
        );
        uids.sort_unstable();
        uids.dedup();
        uids
    },
};

/// The prefix of every [`requester`].
const REQUESTER: &str = "nodes/";

/// Who wants a cluster drained: a node, at the epoch that is to end.
pub(crate) fn requester(node_uid: &str, epoch: i64) -> String {
    format!("{REQUESTER}{node_uid}/{epoch}")
}

/// The uid of the node that wants a cluster drained; None: somebody else does.
pub(crate) fn drained_node(requester: &str) -> Option<&str> {
    requester.strip_prefix(REQUESTER)?.split('/').next()
}

/// What a node is filed under in [`NODES_BY_CLAIM`].
pub(crate) fn claim_key(tenant_uid: &str, claim: &str) -> String {
    format!("{tenant_uid}/{claim}")
}

/// What a node is filed under in [`NODES_BY_WIRE`].
pub(crate) fn port_key(rack: &str, dpu: &str, port: &str) -> String {
    format!("{rack}.{dpu}/{port}")
}

/// What the nodes of a rack are filed under in [`NODES_IN_POOL`].
pub(crate) fn rack_key(rack: &str) -> String {
    format!("rack={rack}")
}

/// What the nodes at a DPU are filed under in [`NODES_IN_POOL`].
pub(crate) fn dpu_key(dpu: &str) -> String {
    format!("dpu={dpu}")
}

/// What the nodes with a label are filed under in [`NODES_IN_POOL`].
pub(crate) fn label_key(key: &str, value: &str) -> String {
    format!("label={key}={value}")
}

/// The name of the claim that a node names, if the tenant is this one.
pub(crate) fn claim_named_by(node: &Object, tenant_uid: &str) -> Option<String> {
    let assignment = &node.data["status"]["assignment"];
    let is_ours = assignment["tenant"]["uid"] == *tenant_uid;
    assignment["claim"]["name"].as_str().filter(|_| is_ours).map(str::to_owned)
}

/// Whether a node is in the pool.
pub(crate) fn is_in_pool(node: &DynamicObject) -> bool {
    phase(node) == "Available"
}

fn claim_of(node: &DynamicObject) -> Option<String> {
    let assignment = &node.data["status"]["assignment"];
    Some(claim_key(assignment["tenant"]["uid"].as_str()?, assignment["claim"]["name"].as_str()?))
}

fn in_pool(node: &DynamicObject) -> Vec<String> {
    if !is_in_pool(node) {
        return Vec::new();
    }
    let mut values = vec![ANY.to_owned()];
    values.extend(node.data["spec"]["rack"].as_str().map(rack_key));
    values.extend(
        items(&node.data["spec"]["dpus"]).filter_map(|dpu| dpu["dpu"].as_str()).map(dpu_key),
    );
    let labels = node.metadata.labels.iter().flatten();
    values.extend(labels.map(|(key, value)| label_key(key, value)));
    values.sort_unstable();
    values.dedup();
    values
}

fn phase(node: &DynamicObject) -> &str {
    node.data["status"]["phase"].as_str().unwrap_or("Releasing")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn text(value: &Value) -> Vec<String> {
    value.as_str().map(str::to_owned).into_iter().collect()
}
