//! Workloads: Deployments and the like make pods on embedded clusters, never more than they may.
//!
//! Real clusters have controllers of their own, and there none of these run.

pub mod endpoints;
pub mod kinds;
pub mod node;
pub mod owned;
pub mod pod;
pub mod slots;
pub mod status;
pub mod template;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    Vec::new()
}
