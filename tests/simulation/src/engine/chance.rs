//! Chance and time, both out of a seed and of nothing else.

use jiff::{SignedDuration, Timestamp};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The first instant of every simulation.
const BEGINNING: i64 = 1_800_000_000;

/// Numbers that look random and are the same for the same seed (splitmix64).
#[derive(Debug)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    /// The numbers of a seed.
    pub(crate) fn of(seed: u64) -> Chance {
        Chance(AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d))
    }

    /// The next number.
    pub(crate) fn number(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one, or 0.
    pub(crate) fn below(&self, end: usize) -> usize {
        (self.number() % (end.max(1) as u64)) as usize
    }

    /// Whether something happens that happens once in so many times.
    pub(crate) fn once_in(&self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these, if there is one.
    pub(crate) fn one_of<'a, T>(&self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

/// A clock that only the simulation moves.
#[derive(Debug, Default)]
pub(crate) struct SimulatedClock(AtomicI64);

impl SimulatedClock {
    /// What time it is.
    pub(crate) fn now(&self) -> Timestamp {
        let since = SignedDuration::from_millis(self.0.load(Ordering::Relaxed));
        let beginning = Timestamp::from_second(BEGINNING).expect("the beginning is a time");
        beginning.checked_add(since).expect("no simulation takes a thousand years")
    }

    /// The same in seconds, in few digits.
    pub(crate) fn seconds(&self) -> i64 {
        self.0.load(Ordering::Relaxed) / 1000
    }

    /// Time passes.
    pub(crate) fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1000, Ordering::Relaxed);
    }
}
