//! Workloads: Deployments and the like make pods on embedded clusters, never more than they may.
//!
//! Real clusters have controllers of their own, and there none of these run.
//!
//! * `template`, `slots`, `owned`, `pod`, `status`: what a pod is made of, its name, whose it is, and what it says.
//! * `deployment`, `replicaset`, ...: the controllers.
//! * `permit`: pods that controllers make in a placed namespace. `surge`: the sizes of a Deployment's ReplicaSets.
//! * `world`: the shipped controllers of Deployments and ReplicaSets, explored as they are.

pub mod cronjob;
pub mod daemonset;
pub mod deployment;
pub mod disruption;
pub mod endpoints;
pub mod job;
pub mod kinds;
pub mod live;
pub mod node;
pub mod owned;
pub mod permit;
pub mod pod;
#[cfg(test)]
mod recorded;
pub mod replicaset;
pub mod revisions;
#[cfg(test)]
mod search;
pub mod share;
pub mod slots;
pub mod statefulset;
pub mod status;
pub mod surge;
pub mod template;
pub mod world;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![permit::ENTRY, surge::ENTRY, world::ENTRY]
}
