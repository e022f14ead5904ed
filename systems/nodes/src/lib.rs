//! Nodes: a machine is programmed for one tenant at a time, in all its DPUs together.
//!
//! * `seed`: the dpu_multi_tenant specification as its authors wrote it, defects included.
//! * `fixed`: the seed with a two-phase reclaim.
//! * `spec`: the protocol, with an epoch per assignment and a floor per revocation.
//! * `epoch`: epoch and floor alone.
//! * `one_holder`: what the protocol looks like from outside.
//! * `kinds`: the kinds of the system, and where their objects are.
//! * `outside`: what is asked of a DPU and done to it.

pub mod epoch;
pub mod fixed;
pub mod kinds;
pub mod one_holder;
pub mod outside;
pub mod seed;
pub mod spec;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![seed::ENTRY, fixed::ENTRY, spec::ENTRY, epoch::ENTRY, one_holder::ENTRY]
}
