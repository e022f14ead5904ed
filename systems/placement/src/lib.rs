//! Placement: a namespace runs on one cluster at a time, and takes its data along.
//!
//! * `seed`: the kcpStorage specification as its author wrote it, defects included.
//! * `fixed`: the smallest correction of it, with labels alone.
//! * `spec`: the protocol, with epochs, data, crashes, stale news and power loss.
//! * `lease`: the next stage, in which an owner that cannot be reached is taken over.

pub mod fixed;
pub mod lease;
pub mod seed;
pub mod spec;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![seed::ENTRY, fixed::ENTRY, spec::ENTRY, spec::LIVE_ENTRY, lease::ENTRY, lease::LIVE_ENTRY]
}
