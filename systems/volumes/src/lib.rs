//! Volumes: a claim is filled from the latest snapshot, and that snapshot stays until it is.
//!
//! * [`world`]: the shipped controllers as they are, in every order of events.
//! * `seed`: the VolSyncPopulator specification as its author wrote it, defects included.
//! * `fixed`: the whole flow, with claims, volumes, and a hold on the snapshot in use.
//! * `spec`: the protocol, with readiness, deletion, holds and healing.
//! * `hold`: the hold alone.
//! * `populator`: fills claims, each from one snapshot that stays until it is filled.
//! * `storage`: volumes and snapshots as folders of the machine.
//! * [`keeper`]: what stays in a repository, and whose places at it are free.
//! * [`sync`]: takes snapshots of a claim on a trigger and brings them to where they are to go, and back
//!   into a volume.
//! * [`measure`]: what is counted of sources and destinations, under VolSync's names.
//! * [`outside`]: what is asked of the machine and the mover, and done to them.

mod filed;
pub mod fixed;
pub mod hold;
pub mod keeper;
pub mod kinds;
pub mod measure;
mod objects;
pub mod outside;
pub mod populator;
mod retention;
pub mod seed;
pub mod spec;
pub mod storage;
pub mod sync;
#[cfg(test)]
mod testing;
pub mod world;

use interlock_checker::Entry;

/// The models of this system, by name.
pub fn models() -> Vec<Entry> {
    vec![world::ENTRY, seed::ENTRY, fixed::ENTRY, spec::ENTRY, hold::ENTRY]
}
