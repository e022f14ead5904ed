//! Placement: a namespace runs on one cluster at a time, and takes its data along.
//!
//! The rooms of its controllers, each `observe`, `decide`, `act`:
//!
//! * `scheduler`: which cluster, and when it may change hands.
//! * `syncer`: one per cluster; fill, permit, run, stop, close, hand over.
//! * `fencing`: an owner that cannot be asked is declared gone, by name and epoch.
//! * `runtime`: pods as processes, stopped for certain.
//! * `heartbeat`: the heartbeat of a cluster.
//!
//! * `claims`: the labels that mirror a grant, and claims that stay while a cluster has them.
//! * `clusters`: heartbeats, and clusters that stay while they have something.
//! * `departed`: the finalizers of clusters that are gone for good.
//!
//! They all work on `kinds`: the kinds, and how their objects are filed.
//!
//! What they are held against:
//!
//! * `world`: these controllers as they are, in a hostile world in which every order of events is tried.
//! * `seed`: the kcpStorage specification as its author wrote it, defects included.
//! * `fixed`: the smallest correction of it, with labels alone.
//! * `spec`: the protocol, with epochs, data, crashes, stale news and power loss.
//! * `lease`: the next stage, in which an owner that cannot be reached is taken over.

pub mod claims;
pub mod clusters;
pub mod departed;
pub mod fencing;
pub mod fixed;
pub mod heartbeat;
pub mod kinds;
pub mod lease;
mod record;
pub mod runtime;
pub mod scheduler;
pub mod seed;
pub mod spec;
pub mod syncer;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod together;
pub mod world;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![
        world::ENTRY,
        seed::ENTRY,
        fixed::ENTRY,
        spec::ENTRY,
        spec::LIVE_ENTRY,
        lease::ENTRY,
        lease::LIVE_ENTRY,
    ]
}
