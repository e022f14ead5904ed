//! The types of the conditions that rollouts writes.

/// ClusterRollout: no request is in flight, and the cluster is at the last good version. FleetUpdate: all clusters are.
pub const READY: &str = "Ready";
/// ClusterRollout and FleetUpdate: a request is in flight or waits.
pub const PROGRESSING: &str = "Progressing";
/// ClusterRollout: a rollback failed, and the cluster is at no known version. FleetUpdate: a cluster failed.
pub const DEGRADED: &str = "Degraded";
/// ClusterRollout: objects on the cluster differ from what was applied.
pub const DRIFTED: &str = "Drifted";
/// ClusterRollout: the agent of the cluster sent a heartbeat recently.
pub const TARGET_REACHABLE: &str = "TargetReachable";
/// ClusterRollout: late writes of older targets are refused by the API servers of the cluster.
pub const FENCE_IN_FORCE: &str = "FenceInForce";
/// ClusterUpdate: the request has ended, and how.
pub const COMPLETE: &str = "Complete";
