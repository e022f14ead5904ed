//! What a claim says of itself: a reason, a sentence, and what a person does next.

use super::facts::{Facts, Node, Seen};
use crate::filed::NO_NODE_AVAILABLE;
use interlock_api::nodes::condition::{ACCEPTED, BOUND, NETWORK_READY};
use interlock_api::nodes::{EntryState, NodeEntry};
use interlock_kernel::conditions::Finding;

/// How many nodes one message names.
const NAMED: usize = 5;

/// Why a claim gets no further node, whatever is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    reason: &'static str,
    message: String,
    next: String,
}

/// Why the claim gets no further node; None: it is accepted.
pub(super) fn refusal(facts: &Facts) -> Option<Refusal> {
    let claim = facts.claim.as_ref()?;
    let tenant_name = &facts.tenant_name;
    let refused = |reason, message, next: String| Some(Refusal { reason, message, next });
    let wanted = match &claim.wanted {
        Ok(wanted) => wanted,
        Err(because) => {
            let message = format!("NodeClaim {} cannot be read: {because}", claim.name);
            return refused(
                "InvalidSpec",
                message,
                format!("correct spec of NodeClaim {}", claim.name),
            );
        }
    };
    if wanted.names > 0 && wanted.names < wanted.count {
        let message = format!(
            "spec.nodeNames names {} nodes, and spec.count is {}",
            wanted.names, wanted.count
        );
        let next =
            format!("name at least {} nodes, or set spec.count to {}", wanted.count, wanted.names);
        return refused("TooFewNames", message, next);
    }
    let Some(tenant) = &facts.tenant else {
        let message = format!("the hub has no Tenant {tenant_name} for this control plane");
        return refused(
            "UnknownTenant",
            message,
            format!("ask the platform team for Tenant {tenant_name}"),
        );
    };
    if tenant.is_terminating {
        let message = format!("Tenant {tenant_name} is being deleted");
        return refused("TenantTerminating", message, "delete the NodeClaim".to_owned());
    }
    let counted = |state: EntryState| matches!(state, EntryState::Bound | EntryState::Releasing);
    let has = claim.entries.iter().filter(|entry| counted(entry.says.state)).count();
    let quota = tenant.quota.filter(|quota| tenant.held >= *quota && has < wanted.count)?;
    let message = format!(
        "Tenant {tenant_name} may have {quota} nodes and has {}; NodeClaim {} wants {} more",
        tenant.held,
        claim.name,
        wanted.count - has
    );
    let next = format!(
        "delete another NodeClaim, or ask the platform team for a higher spec.nodeQuota of Tenant {tenant_name}"
    );
    refused("OverQuota", message, next)
}

/// The conditions of a claim that has these entries.
pub(super) fn findings(facts: &Facts, entries: &[NodeEntry]) -> Vec<Finding> {
    let accepted = match refusal(facts) {
        Some(Refusal { reason, message, next }) => {
            Finding::fails(ACCEPTED, reason, message).next(next)
        }
        None => Finding::holds(ACCEPTED, "Accepted", "the claim is served as it is written"),
    };
    let bound = bound(facts, entries);
    vec![accepted, bound, network(facts, entries)]
}

fn bound(facts: &Facts, entries: &[NodeEntry]) -> Finding {
    let Some(claim) = &facts.claim else {
        return Finding::fails(BOUND, "Missing", "there is no claim");
    };
    let of = |state: EntryState| -> Vec<&str> {
        entries.iter().filter(|it| it.state == state).map(|it| it.name.as_str()).collect()
    };
    let bound = of(EntryState::Bound).len();
    if claim.is_terminating {
        let message = "the claim is being deleted; its nodes are released first";
        return Finding::fails(BOUND, "Terminating", message);
    }
    let refusal = refusal(facts);
    let Ok(wanted) = &claim.wanted else {
        return Finding::fails(
            BOUND,
            "NotAccepted",
            "the claim is not accepted; see condition Accepted",
        );
    };
    let so_far = format!("{bound} of {} nodes are bound", wanted.count);
    if bound >= wanted.count {
        return Finding::holds(BOUND, "Bound", so_far);
    }
    if refusal.is_some() {
        return Finding::fails(BOUND, "NotAccepted", format!("{so_far}; see condition Accepted"));
    }
    if facts.tenant.as_ref().is_some_and(|tenant| tenant.vni.is_none()) {
        let message = format!("{so_far}; tenant {} has no network yet", facts.tenant_name);
        return Finding::fails(BOUND, "NetworkPending", message);
    }
    let (chosen, releasing) = (of(EntryState::Chosen), of(EntryState::Releasing));
    if !chosen.is_empty() {
        return Finding::fails(BOUND, "Binding", format!("{so_far}; chosen: {}", named(&chosen)));
    }
    if bound + releasing.len() >= wanted.count {
        let message = format!("{so_far}; not released completely: {}", named(&releasing));
        return Finding::fails(BOUND, "Releasing", message);
    }
    // The pool was not searched in this step: the next one does.
    if facts.shortage.is_empty() {
        return Finding::fails(BOUND, "Choosing", so_far);
    }
    let next = format!(
        "wait for a node, or change spec.selector and spec.nodeNames of NodeClaim {}",
        claim.name
    );
    Finding::fails(BOUND, NO_NODE_AVAILABLE, format!("{so_far}; {}", facts.shortage)).next(next)
}

fn network(facts: &Facts, entries: &[NodeEntry]) -> Finding {
    let bound: Vec<&NodeEntry> =
        entries.iter().filter(|it| it.state == EntryState::Bound).collect();
    if bound.is_empty() {
        return Finding::fails(NETWORK_READY, "NotBound", "no node is bound");
    }
    let is_ready = |entry: &&NodeEntry| node_of(facts, entry).is_some_and(|node| node.is_ready);
    let waiting: Vec<&str> =
        bound.iter().filter(|entry| !is_ready(entry)).map(|entry| entry.name.as_str()).collect();
    if waiting.is_empty() {
        let message = format!("all DPUs have {} nodes programmed", bound.len());
        return Finding::holds(NETWORK_READY, "Programmed", message);
    }
    let message = format!("not all DPUs have it programmed: {}", named(&waiting));
    Finding::fails(NETWORK_READY, "Programming", message)
}

fn node_of<'a>(facts: &'a Facts, entry: &NodeEntry) -> Option<&'a Node> {
    let of_entries = facts.claim.iter().flat_map(|claim| &claim.entries);
    let seen = of_entries.filter_map(|it| match &it.node {
        Seen::There(node) => Some(&**node),
        Seen::Unseen | Seen::Behind | Seen::Gone => None,
    });
    seen.chain(&facts.held).find(|node| node.uid == entry.uid)
}

fn named(names: &[&str]) -> String {
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
