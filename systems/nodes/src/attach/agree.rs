//! Whether the hub and the control plane of a tenant say the same of a machine, and what would be right if they do not.
//!
//! What a DpuAttachment says is a tenant's: it may be invented. What it may learn from a refusal is the tenant's, too;
//! whose a machine is otherwise is for the hub alone.

use crate::outside::{Entry, Tag};
use crate::wired::Wired;
use interlock_api::nodes::{Assignment, DpuName, LABEL_DPU, Ref, attachment_name};
use interlock_kernel::conditions::Condition;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Whom a step serves.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Serves {
    /// The DPU that it runs on.
    pub here: DpuName,
    /// The tenant whose control plane it reads. It says so itself: nothing in that control plane does.
    pub tenant: Ref,
}

/// What an attachment asks for.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// The node.
    pub node: Ref,
    /// The DPU.
    pub dpu: DpuName,
    /// The claim.
    pub claim: Ref,
    /// The epoch.
    pub epoch: i64,
    /// The addresses, sorted.
    pub addresses: Vec<IpAddr>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether it stays until its entry is gone.
    pub has_finalizer: bool,
    /// What its status says.
    pub conditions: Vec<Condition>,
}

/// What is to be open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Given {
    /// The port.
    pub port: String,
    /// What for.
    pub entry: Entry,
}

/// Why nothing is to be open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Disagreement {
    /// The epoch is revoked.
    Superseded {
        /// The floor of the node.
        floor: i64,
    },
    /// The attachment is not what the hub has given.
    Refused(Refusal),
}

/// Why an attachment is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// One word.
    pub reason: &'static str,
    /// What would be right: for the tenant.
    pub message: String,
    /// The same with all that the hub knows.
    pub at_hub: String,
}

impl Refusal {
    fn of(reason: &'static str, message: String) -> Refusal {
        Refusal { reason, at_hub: message.clone(), message }
    }
}

/// What is wrong with an attachment, whatever the hub says; None: nothing.
pub(super) fn flaw(wanted: &Wanted, serves: &Serves) -> Option<Refusal> {
    let (name, here) = (&wanted.name, &serves.here);
    let right = attachment_name(&wanted.node.name, &wanted.dpu.dpu, wanted.epoch);
    if wanted.dpu != *here {
        let message = format!(
            "DpuAttachment {name} is for DPU {}, and its label {LABEL_DPU} says {here}: the label must be {}",
            shown(&wanted.dpu),
            wanted.dpu
        );
        return Some(Refusal::of("Misplaced", message));
    }
    if *name != right {
        // Two attachments of one epoch would take the port from each other.
        let message = format!("DpuAttachment {name} must be named {right}, as its spec says");
        return Some(Refusal::of("Misnamed", message));
    }
    let address = wanted.addresses.iter().find(|address| !is_usable(address))?;
    let message = format!(
        "DpuAttachment {name}: no machine sends from {address}; addresses are those of one machine each"
    );
    Some(Refusal::of("AddressNotUsable", message))
}

/// Compares an attachment with the node that it names, as the hub has it; None: the hub has none.
pub(super) fn agree(
    wanted: &Wanted,
    node: Option<&Wired>,
    serves: &Serves,
) -> Result<Given, Disagreement> {
    if let Some(flaw) = flaw(wanted, serves) {
        return Err(Disagreement::Refused(flaw));
    }
    let node = node.filter(|node| node.uid == wanted.node.uid).ok_or_else(|| {
        let at_hub = match node {
            Some(node) => format!("its uid is {}", node.uid),
            None => "there is no such PhysicalNode".to_owned(),
        };
        not_assigned(wanted, serves, &at_hub)
    })?;
    if node.floor >= wanted.epoch {
        return Err(Disagreement::Superseded { floor: node.floor });
    }
    let assignment = assignment(wanted, node, serves)?;
    let misplaced: Vec<String> = node.misplaced().map(shown).collect();
    if !misplaced.is_empty() {
        let message = format!(
            "node {} is in rack {}, and its spec names {}: the platform team must correct spec.dpus",
            node.name,
            node.rack,
            misplaced.join(", ")
        );
        let refusal = Refusal::of("ConfigurationInconsistent", message);
        return Err(Disagreement::Refused(refusal));
    }
    let Some(wire) = &node.port else {
        let dpus: Vec<String> = node.dpus.iter().map(shown).collect();
        let message = format!(
            "node {} is not wired through DPU {}, but through {}: delete DpuAttachment {}",
            node.name,
            shown(&serves.here),
            dpus.join(", "),
            wanted.name
        );
        return Err(Disagreement::Refused(Refusal::of("Misplaced", message)));
    };
    Ok(Given {
        port: wire.port.clone(),
        entry: Entry {
            tag: Tag {
                node: node.uid.clone(),
                tenant: serves.tenant.uid.clone(),
                claim: wanted.claim.uid.clone(),
                attachment: wanted.uid.clone(),
                epoch: wanted.epoch,
            },
            vni: assignment.vni,
            mac: wire.mac.clone(),
            addresses: wanted.addresses.clone(),
        },
    })
}

/// The assignment of the node, if it is exactly what the attachment names.
fn assignment<'a>(
    wanted: &Wanted,
    node: &'a Wired,
    serves: &Serves,
) -> Result<&'a Assignment, Disagreement> {
    let Some(assignment) = node.assigned() else {
        let at_hub = format!("it is {} at epoch {}", node.phase, node.epoch);
        return Err(not_assigned(wanted, serves, &at_hub));
    };
    if assignment.tenant.uid != serves.tenant.uid {
        let Assignment { tenant, epoch, .. } = assignment;
        let at_hub = format!("it is assigned to tenant {} at epoch {epoch}", tenant.name);
        return Err(not_assigned(wanted, serves, &at_hub));
    }
    if assignment.epoch != wanted.epoch {
        let message = format!(
            "node {} is assigned at epoch {}, and DpuAttachment {} names epoch {}: delete it",
            node.name, assignment.epoch, wanted.name, wanted.epoch
        );
        return Err(Disagreement::Refused(Refusal::of("WrongEpoch", message)));
    }
    if assignment.claim.uid != wanted.claim.uid {
        let message = format!(
            "node {} is assigned to NodeClaim {} with uid {}, and DpuAttachment {} names {} with uid {}: delete it",
            node.name,
            assignment.claim.name,
            assignment.claim.uid,
            wanted.name,
            wanted.claim.name,
            wanted.claim.uid
        );
        return Err(Disagreement::Refused(Refusal::of("WrongClaim", message)));
    }
    Ok(assignment)
}

/// The same words for a node that does not exist and for one of another tenant: a tenant learns nothing of others.
fn not_assigned(wanted: &Wanted, serves: &Serves, at_hub: &str) -> Disagreement {
    let message = format!(
        "node {} with uid {} is not assigned to this tenant at epoch {}: only what a NodeClaim lists as Bound in \
         status.nodes is programmed; delete DpuAttachment {}",
        wanted.node.name, wanted.node.uid, wanted.epoch, wanted.name
    );
    let at_hub = format!(
        "tenant {} asks for node {} with uid {} at epoch {} in DpuAttachment {}, and the node is not assigned to it: \
         {at_hub}",
        serves.tenant.name, wanted.node.name, wanted.node.uid, wanted.epoch, wanted.name
    );
    Disagreement::Refused(Refusal { reason: "NotAssigned", message, at_hub })
}

/// `r1/d1`
fn shown(dpu: &DpuName) -> String {
    format!("{}/{}", dpu.rack, dpu.dpu)
}

/// Whether a machine can send from an address.
fn is_usable(address: &IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || is_broadcast)
}
