//! Volumes: a claim is filled from the latest image, and that image stays until it is.
//!
//! * `seed`: the VolSyncPopulator specification as its author wrote it, defects included.
//! * `fixed`: the whole flow, with claims, volumes, and a hold on the image in use.
//! * `spec`: the protocol, with readiness, deletion, holds and healing.
//! * `hold`: the hold alone.

pub mod fixed;
pub mod hold;
pub mod seed;
pub mod spec;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![seed::ENTRY, fixed::ENTRY, spec::ENTRY, hold::ENTRY]
}
