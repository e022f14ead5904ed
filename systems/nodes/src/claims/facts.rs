//! What is known of a claim and its machines.

use interlock_api::nodes::{DpuName, NodeEntry, NodePhase, OrphanPolicy};
use interlock_kernel::conditions::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// The time.
    pub now: Time,
    /// The name of the tenant.
    pub tenant_name: String,
    /// The tenant; None: the cache shows none of its uid.
    pub tenant: Option<Tenant>,
    /// The claim, as the cache shows it.
    pub claim: Option<Claim>,
    /// The claim, as the control plane of the tenant itself showed it in this step.
    pub live: Live,
    /// The nodes whose assignment names a claim of this name and this tenant, by name.
    pub held: Vec<Node>,
    /// The node that the claim chooses next, if one fits.
    pub candidate: Option<Candidate>,
    /// How many nodes are in the pool, and how many of them fail on which part of the selector.
    pub shortage: String,
}

/// The tenant.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Tenant {
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Its network, if it has one already.
    pub vni: Option<u32>,
    /// The most nodes that it may have.
    pub quota: Option<u32>,
    /// How many it has.
    pub held: u32,
    /// What happens to a node whose claim is gone.
    pub orphans: OrphanPolicy,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Claim {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether it has our finalizer.
    pub has_finalizer: bool,
    /// What it asks for, or what is wrong with that.
    pub wanted: Result<Wanted, String>,
    /// Its nodes, in its order.
    pub entries: Vec<Entry>,
    /// What its conditions say.
    pub said: Vec<Condition>,
}

/// What a claim asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Wanted {
    /// How many nodes.
    pub count: usize,
    /// How many it names; 0: it takes any.
    pub names: usize,
}

/// An entry of a claim.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Entry {
    /// What it says.
    pub says: NodeEntry,
    /// For how many seconds it has been in its state.
    pub age_seconds: i64,
    /// Its node.
    pub node: Seen,
}

/// The node of an entry.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub enum Seen {
    /// The cache shows no node of that name and uid, and the hub itself was not asked.
    Unseen,
    /// The cache does not show the node yet, and the hub itself does.
    Behind,
    /// The hub itself showed no node of that name and uid.
    Gone,
    /// It is this one.
    There(Box<Node>),
}

/// A node, seen from a claim.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Its phase.
    pub phase: NodePhase,
    /// The last epoch that was given.
    pub epoch: i64,
    /// The highest epoch that is revoked.
    pub floor: i64,
    /// Its assignment, if it names this tenant.
    pub assignment: Option<Assigned>,
    /// Whether a cluster is on it.
    pub has_cluster: bool,
    /// Whether all its DPUs had it programmed at some time since it was assigned.
    pub was_programmed: bool,
    /// Whether all its DPUs have it programmed.
    pub is_ready: bool,
    /// Whether it is what the claim selects, and in order.
    pub is_fit: bool,
    /// Whether it says that its claim is missing.
    pub says_missing: bool,
    /// The DPUs that it is wired through.
    pub dpus: Vec<DpuName>,
}

/// An assignment to a claim of this tenant.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Assigned {
    /// The uid of the claim.
    pub claim_uid: String,
    /// The epoch that was given with it.
    pub epoch: i64,
    /// The network.
    pub vni: u32,
}

/// The claim, as a live read showed it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub enum Live {
    /// It was not read.
    NotRead,
    /// There is none of that name.
    Gone,
    /// There is one.
    There {
        /// Its identity.
        uid: String,
        /// Whether it is being deleted.
        is_terminating: bool,
        /// Its nodes.
        entries: Vec<NodeEntry>,
    },
}

/// A node that a claim may choose.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
}

impl Node {
    /// The epoch at which a claim holds it: assigned, and above the floor.
    pub(super) fn held_by(&self, claim_uid: &str) -> Option<&Assigned> {
        let assignment = self.assignment.as_ref().filter(|it| it.claim_uid == claim_uid)?;
        (self.phase.is_assigned() && assignment.epoch > self.floor).then_some(assignment)
    }

    /// Whether its record names a claim at an epoch, held or not.
    pub(super) fn names(&self, claim_uid: &str, epoch: i64) -> bool {
        self.assignment.as_ref().is_some_and(|it| it.claim_uid == claim_uid && it.epoch == epoch)
    }
}

impl Entry {
    /// Its node, if the cache shows it.
    pub(super) fn node(&self) -> Option<&Node> {
        match &self.node {
            Seen::There(node) => Some(node),
            Seen::Unseen | Seen::Behind | Seen::Gone => None,
        }
    }
}
