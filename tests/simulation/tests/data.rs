//! Moves with their data: breakages of the mover and of what holds its snapshots, which the simulation
//! must find.

use interlock_simulation::{Flaw, Search, SimulatedWorld, run, run_many};

/// A breakage must do harm in one of the first so many seeds.
fn is_found(flaw: Flaw, seeds: u64) {
    let summary = run_many(
        &Search { world: SimulatedWorld::Fleet, seeds: 1..=seeds, time: None, flaw },
        &|_| {},
    );
    let Some(red) = summary.red else { panic!("{flaw:?} was not found in {seeds} seeds") };
    eprintln!("{flaw:?} was found in seed {}: {}", red.seed, red.broken);
}

#[test]
fn one_seed_with_data_is_one_history() {
    let once = run(SimulatedWorld::Fleet, 8, Flaw::None).map(|told| (told.history, told));
    assert_eq!(once, run(SimulatedWorld::Fleet, 8, Flaw::None).map(|told| (told.history, told)));
}

#[test]
fn a_mover_that_says_done_before_all_is_copied_is_found() {
    is_found(Flaw::DoneBeforeAllIsCopied, 20);
}

#[test]
fn a_copy_that_is_empty_is_found() {
    is_found(Flaw::CopyIsEmpty, 20);
}

#[test]
fn a_snapshot_that_is_not_held_is_found() {
    is_found(Flaw::SnapshotIsNotHeld, 60);
}
