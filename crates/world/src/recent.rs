//! What a thread asked about last: all promises are asked about one state, and all rules about one step, one after
//! the other, and each begins with what is true there.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// A state without what programs believe: see [`crate::world::whole`].
type Whole = [u32; 8];

/// The world, the state, and the number of what is true there.
type Known = (u64, Whole, u32);

thread_local! {
    /// The two ends of a step.
    static RECENT: Cell<[Known; 2]> = const { Cell::new([(0, [0; 8], 0); 2]) };
}

/// A number for a world, from 1 on: no two worlds of a process share one.
pub(crate) fn next_world() -> u64 {
    static WORLDS: AtomicU64 = AtomicU64::new(1);
    WORLDS.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn find(world: u64, whole: &Whole) -> Option<u32> {
    let is_it = |known: &&Known| known.0 == world && known.1 == *whole;
    RECENT.get().iter().find(is_it).map(|known| known.2)
}

pub(crate) fn keep(world: u64, whole: Whole, truth: u32) {
    let [last, _] = RECENT.get();
    RECENT.set([(world, whole, truth), last]);
}
