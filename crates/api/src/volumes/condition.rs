//! The types of the conditions that volumes write, and VolSync's reasons.

/// VolSync's condition: whether a sync runs.
pub const SYNCHRONIZING: &str = "Synchronizing";
/// Whether everything that the object asks for is supported.
pub const ACCEPTED: &str = "interlock.dev/Accepted";
/// Whether the last thing that was tried went well.
pub const HEALTHY: &str = "interlock.dev/Healthy";

/// A sync runs.
pub const SYNC_IN_PROGRESS: &str = "SyncInProgress";
/// The next sync comes by itself.
pub const WAITING_FOR_SCHEDULE: &str = "WaitingForSchedule";
/// The next sync comes when somebody sets another tag.
pub const WAITING_FOR_MANUAL: &str = "WaitingForManual";
/// The sync is over, and what it needed goes.
pub const CLEANING_UP: &str = "CleaningUp";
/// It cannot go on.
pub const ERROR: &str = "Error";
