//! Seeds of the simulation, and breakages that it must find. Few of them: for more there is the crate's own
//! program, which is built with optimizations.

mod fleet;
mod identities;
mod nodes;
mod rollouts;

use interlock_simulation::{Flaw, Search, SimulatedWorld, Summary, run, run_many};
use std::ops::RangeInclusive;

fn search(world: SimulatedWorld, seeds: RangeInclusive<u64>, flaw: Flaw) -> Summary {
    run_many(&Search { world, seeds, time: None, flaw }, &|_| {})
}

/// Every promise is kept in the first so many seeds.
fn kept(world: SimulatedWorld, seeds: u64) -> Summary {
    let summary = search(world, 1..=seeds, Flaw::None);
    if let Some(red) = &summary.red {
        panic!("{red}");
    }
    assert_eq!(summary.seeds, seeds);
    eprintln!("{seeds} seeds in {:?}\n{}", summary.took, summary.counts);
    summary
}

/// A breakage does harm in one of these seeds: at present, in the first of them.
fn is_found(world: SimulatedWorld, flaw: Flaw, seeds: RangeInclusive<u64>) {
    let summary = search(world, seeds.clone(), flaw);
    let Some(red) = summary.red else { panic!("{flaw:?} was not found in the seeds {seeds:?}") };
    eprintln!("{flaw:?} was found in seed {}: {}", red.seed, red.broken);
}

/// A seed is the same history each time that it is run, and another one than the next seed.
fn is_one_history(world: SimulatedWorld, seed: u64) {
    let history = |seed| run(world, seed, Flaw::None).map(|told| (told.history, told));
    let once = history(seed);
    assert_eq!(once, history(seed));
    assert_ne!(once, history(seed + 1));
}
