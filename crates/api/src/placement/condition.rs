//! The types of the conditions that placement writes.

/// WorkloadCluster: new grants may go there.
pub const READY: &str = "Ready";
/// WorkloadCluster: the syncer's heartbeat is fresh.
pub const REACHABLE: &str = "Reachable";
/// WorkloadCluster: what runs the workloads there answers.
pub const RUNTIME_READY: &str = "RuntimeReady";
/// WorkloadCluster: the cloud knows the issuer of the cluster's tokens, and no other cluster has the same.
pub const ISSUER_READY: &str = "IssuerReady";
/// WorkloadCluster: nothing is left on it; only while it is being deleted.
pub const EMPTIED: &str = "Emptied";
/// WorkloadCluster: nothing is held there, and nothing is to come; only while somebody wants it drained.
pub const DRAINED: &str = "Drained";
/// WorkloadCluster: `interlock up` runs its agent; only there once it could not.
pub const SERVED: &str = "Served";

/// Placement: the rules can be followed as they are written.
pub const ACCEPTED: &str = "Accepted";

/// Grant: a cluster fits, or the message says for each cluster why not.
pub const PLACED: &str = "Placed";
/// Grant: the owner runs the workloads.
pub const RUNNING: &str = "Running";
/// Grant: nothing of the namespace runs on the cluster that it leaves.
pub const STOPPED: &str = "Stopped";
/// Grant: the last copy of every claim is complete.
pub const DATA_SYNCED: &str = "DataSynced";
/// Grant: every claim is filled at the owner.
pub const FILLED: &str = "Filled";
/// Grant: the owner sends no heartbeat; the message says since when, and the command that ends it.
pub const OWNER_UNREACHABLE: &str = "OwnerUnreachable";
/// Grant: the owner was declared gone by a ForceRelease.
pub const FENCED: &str = "Fenced";
/// Grant: what a forced release may have lost: the last snapshot of each claim and its age.
pub const DATA_LOSS_BOUND: &str = "DataLossBound";
/// Grant: a cluster kept writing after its last copy; the message names it and the epoch.
pub const DIVERGED: &str = "Diverged";
/// Grant: somebody accepted that two clusters may write; the message says who.
pub const AT_MOST_ONE_GIVEN_UP: &str = "AtMostOneGivenUp";
/// Grant: the cloud roles of the namespace trust the owner; the message names one that does not yet.
pub const RIGHTS_READY: &str = "RightsReady";
