//! The nodes system.

pub mod seed;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![seed::ENTRY]
}
