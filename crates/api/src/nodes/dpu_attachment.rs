//! The DpuAttachment: a tenant wants a machine programmed in one of its DPUs, for one epoch.

use super::{DpuName, LABEL_CLAIM_UID, LABEL_DPU, LABEL_NODE, Ref, attachment_name};
use interlock_kernel::conditions::Condition;
use kube_derive::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What is to be programmed. The spec is immutable: an epoch has its own attachments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "DpuAttachment",
    plural = "dpuattachments",
    shortname = "da",
    category = "interlock",
    status = "DpuAttachmentStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A DpuAttachment asks a DPU to open the port of a machine for one epoch. The DPU opens it only if the hub has assigned the machine to this tenant and this claim at this epoch.",
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.node.name"),
    printcolumn(name = "Rack", type_ = "string", json_path = ".spec.rack"),
    printcolumn(name = "DPU", type_ = "string", json_path = ".spec.dpu"),
    printcolumn(name = "Epoch", type_ = "integer", json_path = ".spec.epoch"),
    printcolumn(
        name = "Programmed",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Programmed\")].status",
        description = "Whether the DPU has the port open for it"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Programmed\")].reason",
        description = "Why, in one word"
    ),
    printcolumn(name = "Claim", type_ = "string", json_path = ".spec.claim.name", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new(
        "self.metadata.name == self.spec.node.name + '.' + self.spec.dpu + '.' + string(self.spec.epoch)"
    )
    .message(Message::Expression(
        "'a DpuAttachment is named <node>.<dpu>.<epoch>: name this one ' \
         + self.spec.node.name + '.' + self.spec.dpu + '.' + string(self.spec.epoch)".to_owned()
    )),
    attr = "x_kube(crates(kube_core = \"::kube_core\"))",
    crates(kube = "::kube_derive", kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self == oldSelf")
        .message("a DpuAttachment cannot be edited; its epoch has no other one")
)]
pub struct DpuAttachmentSpec {
    /// The PhysicalNode at the hub.
    pub node: Ref,
    /// The rack of the DPU.
    #[schemars(length(min = 1, max = 31))]
    pub rack: String,
    /// The name of the DPU in the rack.
    #[schemars(length(min = 1, max = 31))]
    pub dpu: String,
    /// The NodeClaim.
    pub claim: Ref,
    /// The epoch of the assignment.
    #[schemars(range(min = 1))]
    pub epoch: i64,
    /// The addresses that the machine may send from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", length(max = 16), inner(length(min = 2, max = 45)))]
    #[x_kube(validation = Rule::new("self.all(a, isIP(a))")
        .message("addresses are IP addresses, as in 10.0.0.1 or fd00::1"))]
    pub addresses: Vec<IpAddr>,
}

/// The observed state of the attachment; only its DPU writes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "::kube_core"))]
pub struct DpuAttachmentStatus {
    /// Programmed and Superseded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

impl DpuAttachmentSpec {
    /// The name of the attachment.
    pub fn object_name(&self) -> String {
        attachment_name(&self.node.name, &self.dpu, self.epoch)
    }

    /// The DPU.
    pub fn dpu_name(&self) -> DpuName {
        DpuName::new(self.rack.as_str(), self.dpu.as_str())
    }

    /// The labels of the attachment, by which its DPU selects it.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let labels = [
            (LABEL_DPU, self.dpu_name().to_string()),
            (LABEL_NODE, self.node.name.clone()),
            (LABEL_CLAIM_UID, self.claim.uid.clone()),
        ];
        labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}
