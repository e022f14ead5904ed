//! The reasons of the events that rollouts writes, beside one for each phase that a request reaches.

/// A request waits until the namespaces of its cluster have moved away.
pub const DRAINING: &str = "Draining";
/// The API server of a cluster refused an object.
pub const REFUSED: &str = "Refused";
/// An object of the target failed.
pub const UNHEALTHY: &str = "Unhealthy";
/// The cluster differed from its verified target, and is as the target has it again.
pub const DRIFT_REPAIRED: &str = "DriftRepaired";
/// A write of an older target took effect after the target had been verified, and was taken back.
pub const LATE_WRITE_REMOVED: &str = "LateWriteRemoved";
/// The record of a cluster was older than its report, and got a newer token.
pub const TOKEN_RAISED: &str = "TokenRaised";
