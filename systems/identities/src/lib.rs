//! Identities: a service account gets a role and a policy in the cloud, and they stay as asked for.
//!
//! * `seed`: the IrsaOperator specification as its author wrote it, defects included.
//! * `fixed`: one effect per pass, a worker that is always given back, and repair after drift.
//! * `spec`: the protocol, with drift, crashes and deletion.
//! * `late_create`: when absence in the cloud may be believed.

pub mod fixed;
pub mod late_create;
mod queue;
pub mod seed;
pub mod spec;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![seed::ENTRY, fixed::ENTRY, spec::ENTRY, late_create::ENTRY]
}
