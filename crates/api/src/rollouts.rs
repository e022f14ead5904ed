//! What runs on a cluster, one update at a time: the kinds of the system rollouts.
//!
//! A [`ClusterUpdate`] asks; the status of the [`ClusterRollout`] of its cluster decides, and nothing else does. The
//! agent of the cluster follows its target and answers in a [`RolloutReport`]. A [`BundleRevision`] holds what is
//! applied, and a [`FleetUpdate`] asks for many clusters.

#![allow(
    unreachable_pub,
    reason = "the derived schemas hold a copy of each struct inside of a function, with its pub"
)]
#![allow(
    clippy::duplicated_attributes,
    reason = "every printer column has a type, and several have the same"
)]

mod bundle_revision;
mod cluster_rollout;
mod cluster_update;
pub mod condition;
pub mod event;
mod fleet_update;
mod record;
mod rollout_report;

pub use crate::placement::Ref;
pub use bundle_revision::{BundleRevision, BundleRevisionSpec, part_name};
pub use cluster_rollout::{
    ClusterRollout, ClusterRolloutSpec, DriftPolicy, FencePolicy, FirstInstallFailure, Rollback,
};
pub use cluster_update::{
    ClusterUpdate, ClusterUpdateSpec, ClusterUpdateStatus, ConfigMapSource, PackedSource,
    PreflightMode, RawObject, Source,
};
pub use fleet_update::{
    FleetChild, FleetPhase, FleetUpdate, FleetUpdateSpec, FleetUpdateStatus, OnClusterUnreachable,
    OnFailure, Partition,
};
pub use record::{
    Active, BadDigest, ClusterRolloutStatus, Good, PreflightTarget, Requested, Target, Unnamed,
    UpdatePhase,
};
pub use rollout_report::{
    FailedObject, FenceMode, FenceReport, ObjectCounts, PreflightReport, RolloutReport,
    RolloutReportSpec, RolloutReportStatus, Verdict,
};

/// On a ClusterUpdate: it stays until its request has ended.
pub const FINALIZER_ROLLOUT: &str = "interlock.dev/rollout";

/// On each object that a rollout brought to a cluster: the uid of the WorkloadCluster.
pub const LABEL_ROLLOUT: &str = "interlock.dev/rollout";
/// On a ClusterUpdate that a FleetUpdate made: the uid of the FleetUpdate.
pub const LABEL_FLEET_UPDATE: &str = "interlock.dev/fleet-update";
/// On an object of a rollout: its own group, kind, namespace and name. In the copy of somebody else it names the
/// original, and so the copy is not ours.
pub const ANNOTATION_ID: &str = "interlock.dev/id";
/// On an object of a rollout: the token that it was written under last.
pub const ANNOTATION_TOKEN: &str = "interlock.dev/token";
/// On an object of a rollout: the digest of its content in the bundle.
pub const ANNOTATION_CONTENT: &str = "interlock.dev/content";
/// On an object of a bundle: the wave that it belongs to, a number; absent: by its kind.
pub const ANNOTATION_WAVE: &str = "interlock.dev/wave";

/// The field manager of what the agent writes on its cluster.
pub const ROLLOUT_MANAGER: &str = "interlock-rollouts";
/// The user that the agent writes as: the fence is for this user alone.
pub const APPLIER_USER: &str = "interlock-applier";
/// The namespace of the fence; no bundle has objects there.
pub const SYSTEM_NAMESPACE: &str = "interlock-system";
/// The ConfigMap with the fence of a cluster.
pub const FENCE_NAME: &str = "rollout-fence";
/// The ValidatingAdmissionPolicy of the fence, and its binding.
pub const FENCE_POLICY: &str = "interlock-rollout-fence";

/// How an entry of [`ClusterUpdateSpec::drain_first`] is called in `WorkloadCluster.spec.drains`: this and the uid of
/// the request.
pub const DRAIN_PREFIX: &str = "rollouts/";

/// The most bytes that a bundle has in its canonical form.
pub const MOST_BUNDLE_BYTES: usize = 8 << 20;
/// The most bytes of a bundle that is written in the request itself.
pub const MOST_INLINE_BYTES: usize = 512 << 10;

/// The name of the record of a cluster, and of its report: `<cluster>-<8 of its uid>`, so that a cluster which is
/// made again under its name gets another record. Whoever finds one by this name compares the whole uid.
pub fn record_name(cluster: &str, uid: &str) -> String {
    crate::names::grant_name(cluster, uid)
}

/// The entry in `WorkloadCluster.spec.drains` of a request.
pub fn drain_requester(uid: &str) -> String {
    format!("{DRAIN_PREFIX}{uid}")
}
