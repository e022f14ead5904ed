//! The reasons of the events that rollouts writes, beside one for each phase that a request reaches.

/// A request waits until the namespaces of its cluster have moved away.
pub const DRAINING: &str = "Draining";
/// The API server of a cluster refused an object.
pub const REFUSED: &str = "Refused";
/// Objects of a request did not get healthy.
pub const UNHEALTHY: &str = "Unhealthy";
/// An object that somebody else had changed was put right.
pub const DRIFT_REPAIRED: &str = "DriftRepaired";
/// A write of an older target came after the cluster had been verified, and was taken back.
pub const LATE_WRITE_REMOVED: &str = "LateWriteRemoved";
/// The record of a cluster was older than its report, and got a newer token.
pub const TOKEN_RAISED: &str = "TokenRaised";
/// A BundleRevision that no record names was deleted.
pub const REVISION_DELETED: &str = "RevisionDeleted";
