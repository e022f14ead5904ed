//! Rollouts: a cluster goes from version to version, one change at a time, and never stays between.
//!
//! * `seed`: the UpdateCluster specification as its author wrote it, defects included.
//! * `fixed`: a lock with an owner, and an end for every request and for the work.
//! * `spec`: the protocol, with a fence that late writes cannot pass.
//! * `requests`: the record of a cluster, in which every request ends. `drain`: an update of a drained cluster.
//! * `lifecycle`: the life of a request alone, under a lease.
//! * `world`: the shipped conductor and mirror, explored as they are; `applier::world`: the applier;
//!   `fleet::world`: requests for many clusters.

pub mod applier;
pub mod bundle;
pub mod conductor;
pub mod drain;
pub mod fence;
mod filed;
pub mod fixed;
pub mod fleet;
pub mod health;
pub mod kinds;
pub mod lifecycle;
pub mod mirror;
pub mod record;
pub mod requests;
#[cfg(test)]
mod search;
pub mod seed;
mod selector;
pub mod spec;
#[cfg(test)]
mod testing;
pub mod world;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![
        seed::ENTRY,
        fixed::ENTRY,
        spec::ENTRY,
        lifecycle::ENTRY,
        requests::ENTRY,
        drain::ENTRY,
        world::ENTRY,
        applier::world::ENTRY,
        fleet::world::ENTRY,
    ]
}
