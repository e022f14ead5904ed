//! Seeds of the simulation, and breakages that it must find.

use interlock_simulation::{Flaw, run};
use std::ops::RangeInclusive;

/// How many seeds are run where nobody says otherwise.
const SEEDS: u64 = 40;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn every_promise_is_kept_in_every_seed() {
    let seeds: Vec<u64> = match number("INTERLOCK_SEED") {
        Some(seed) => vec![seed],
        None => (number("INTERLOCK_FIRST").unwrap_or(1)
            ..=number("INTERLOCK_SEEDS").unwrap_or(SEEDS))
            .collect(),
    };
    let began = std::time::Instant::now();
    let (mut events, mut versions) = (0, 0);
    for seed in &seeds {
        match run(*seed, Flaw::None) {
            Ok(told) => {
                events += told.events;
                versions += told.version;
            }
            Err(broken) => panic!("{broken}"),
        }
    }
    eprintln!(
        "{} seeds, {events} events told, {versions} versions written, {:?}",
        seeds.len(),
        began.elapsed()
    );
}

#[test]
fn one_seed_is_one_history() {
    let once = run(7, Flaw::None);
    assert_eq!(once, run(7, Flaw::None));
    assert_ne!(once, run(8, Flaw::None));
}

/// A breakage must be found in one of these seeds.
fn is_found(flaw: Flaw, seeds: RangeInclusive<u64>) {
    if number("INTERLOCK_SEED").is_some() {
        return;
    }
    let is_safety = |broken: &String| !broken.contains("calm rounds") && !broken.contains("broke:");
    let broken = |seed| run(seed, flaw).err().filter(is_safety).map(|broken| (seed, broken));
    let found = seeds.clone().find_map(broken);
    let (_, broken) =
        found.unwrap_or_else(|| panic!("{flaw:?} was not found in the seeds {seeds:?}"));
    let told = if number("INTERLOCK_STORY").is_some() { usize::MAX } else { 1 };
    let told: Vec<&str> = broken.lines().take(told).collect();
    eprintln!("{flaw:?} found by {}", told.join("\n"));
}

#[test]
fn a_machine_that_says_gone_too_early_is_found() {
    is_found(Flaw::GoneTooEarly, 1..=20);
}

#[test]
fn a_person_who_says_off_of_a_machine_that_is_on_is_found() {
    is_found(Flaw::FalseAttestation, 1..=20);
}

#[test]
fn a_boot_id_that_outlives_its_boot_is_found() {
    is_found(Flaw::BootIdStays, 1..=20);
}

#[test]
fn a_scheduler_that_does_not_wait_is_found() {
    is_found(Flaw::SchedulerDoesNotWait, 1..=20);
}

#[test]
fn a_syncer_that_acknowledges_before_it_closes_is_found() {
    is_found(Flaw::SyncerAcknowledgesFirst, 1..=20);
}
