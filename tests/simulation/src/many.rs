//! Many seeds, on all cores: each seed is a world of its own, in one thread.

use crate::{Counts, Flaw, Red, SimulatedWorld, run};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What many lives were like.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// How many seeds ran to their end.
    pub seeds: u64,
    /// What happened in them, together.
    pub counts: Counts,
    /// The first seed in which a promise was broken.
    pub red: Option<Red>,
    /// How long it took.
    pub took: Duration,
}

/// Which seeds to run, and what counts as broken.
#[derive(Debug, Clone)]
pub struct Search {
    /// The world.
    pub world: SimulatedWorld,
    /// The seeds, in their order.
    pub seeds: RangeInclusive<u64>,
    /// No seed is begun after so long; None: all seeds are run.
    pub time: Option<Duration>,
    /// What is broken on purpose. Then only harm counts, not what comes late.
    pub flaw: Flaw,
}

impl Search {
    fn counts(&self, red: &Red) -> bool {
        self.flaw == Flaw::None || red.is_harm()
    }
}

/// Runs seeds until one is red, all are done, or the time is up; `progress` is called after each.
///
/// Seeds are taken in their order and each that was begun is ended, so the red one is the first
/// there is, however many cores there are.
pub fn run_many(search: &Search, progress: &(dyn Fn(&Summary) + Sync)) -> Summary {
    let began = Instant::now();
    let seeds = &search.seeds;
    let is_time_up = || search.time.is_some_and(|time| began.elapsed() >= time);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (next, is_over) = (AtomicU64::new(*seeds.start()), AtomicBool::new(false));
    let together = Mutex::new(Summary::default());
    let work = || {
        while !is_over.load(Ordering::SeqCst) && !is_time_up() {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            if seed > *seeds.end() {
                return;
            }
            let ended = run(search.world, seed, search.flaw);
            let mut together = together.lock().unwrap_or_else(PoisonError::into_inner);
            together.seeds += 1;
            together.took = began.elapsed();
            match ended {
                Ok(told) => together.counts += told.counts,
                Err(red) if search.counts(&red) => {
                    is_over.store(true, Ordering::SeqCst);
                    if together.red.as_ref().is_none_or(|known| known.seed > red.seed) {
                        together.red = Some(red);
                    }
                }
                Err(_) => {}
            }
            progress(&together);
        }
    };
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let mut together = together.into_inner().unwrap_or_else(PoisonError::into_inner);
    together.took = began.elapsed();
    together
}
