//! What sources and destinations have in common: when a sync is due, its intent, its place at the
//! repository, its images, and what the status says of it.
//!
//! # One sync
//!
//! 1. **Intent.** It is due: its name, its image's name and the tag that it answers are written onto
//!    the object, before anything else. The name is made of the object's uid and of the version that
//!    the intent replaced, so no two syncs ever share one, and whoever crashes repeats this one.
//! 2. **Effects.** Image, place, mover; each is known by a name that is in the intent.
//! 3. **Status.** One write says that the sync is over, by its name, and how it ended.
//! 4. **Leftovers** go, one a step, and the intent last.
//!
//! Whatever is done for an intent rests on a fresh look at the object, made after the mover was
//! asked: a mover that knows nothing of a sync that is over is not told to begin it again.

pub mod cron;
pub mod facts;
pub mod model;
pub mod trigger;

pub(crate) mod filed;
pub(crate) mod images;
pub(crate) mod intent;
pub(crate) mod repository;
pub(crate) mod slots;
pub(crate) mod steps;
pub(crate) mod task;
#[cfg(test)]
pub(crate) mod testing;

/// Which replications are served in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// VolSync's own movers, and ours. There must be no VolSync operator beside.
    Own,
    /// Ours only, by `spec.external.provider`: a VolSync operator leaves them alone.
    External,
}

/// FNV-1a: the same on every machine and in every version, and a guard against nobody.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
