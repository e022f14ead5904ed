//! Placement: a namespace runs on one cluster at a time, and takes its data along.
//!
//! * `seed`: the kcpStorage specification as its author wrote it, defects included.

pub mod seed;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![seed::ENTRY]
}
