//! A crash at each call to the disk: recovery keeps every promise, whatever became of unsynced
//! data.

use super::model::{Model, happened, is, outcome, page};
use super::sequences::small;
use super::{Random, all, now, put, random_transaction, transaction};
use crate::disk::simulated::{Fault, Loss, SimulatedDisk};
use crate::{
    Changes, CommitError, Embedded, KeyRange, Options, Refusal, Revision, Store, Transaction,
};
use std::sync::Arc;

fn options() -> Options {
    Options { segment_bytes: 3 << 10, ..small() }
}

fn open(disk: &SimulatedDisk) -> Result<Embedded, crate::OpenError> {
    Embedded::on(Arc::new(disk.clone()), None, options())
}

/// What the world outside knows.
struct Known {
    model: Model,
    // Sent, but not answered with anything certain.
    unknown: Vec<Transaction>,
    has_ended: bool,
}

/// Commits, compacts and writes checkpoints until all is done or the store has stopped.
async fn work(store: &Embedded, seed: u64) -> Known {
    let mut random = Random(seed);
    let mut known = Known { model: Model::new(), unknown: Vec::new(), has_ended: false };
    for step in 0..40 {
        let count = 1 + random.below(3);
        let newest = known.model.newest();
        let sent: Vec<_> = (0..count).map(|_| random_transaction(&mut random, newest)).collect();
        let answers = all(sent.iter().map(|it| store.commit(it.clone())).collect()).await;
        for (transaction, answer) in sent.iter().zip(&answers) {
            know(&mut known, transaction, answer);
        }
        if !known.unknown.is_empty() || store.newest().await.is_err() {
            known.has_ended = true;
            return known;
        }
        // What anyone reads is what was acknowledged: there is nothing else that could be lost.
        assert_eq!(store.newest().await, Ok(known.model.newest()));
        if step % 5 == 4 {
            let floor = known.model.newest().saturating_sub(random.below(6));
            if store.compact(floor).await.is_ok() {
                known.model.floor = known.model.floor.max(floor);
            }
            // It may fail, and nothing depends on it.
            let _ = store.checkpoint().await;
        }
    }
    known
}

fn know(known: &mut Known, transaction: &Transaction, answer: &Result<Revision, CommitError>) {
    match answer {
        Err(CommitError::OutcomeUnknown) => known.unknown.push(transaction.clone()),
        // Nothing was written, says the store.
        Err(CommitError::Refused(Refusal::Stopped(_) | Refusal::DiskNearlyFull)) => {}
        // It may be reported what is durable while others of its batch wait, but only that.
        Err(CommitError::GuardFailed { key, current }) if !known.unknown.is_empty() => {
            let state = known.model.states.last().expect("there is always one");
            assert_eq!(current.as_ref().map(is), state.get(key).cloned(), "it is not durable");
        }
        answer => {
            assert!(known.unknown.is_empty(), "an answer rests on what is not durable");
            let expected = known.model.commit(transaction);
            assert_eq!(outcome(answer), Some(expected), "{transaction:?}");
        }
    }
}

/// Everything that section "promises" of the documentation says about a recovered store.
async fn check_promises(store: &Embedded, known: &mut Known, what: &str) {
    let revision = store.newest().await.expect("it was just opened");
    let acknowledged = known.model.newest();
    assert!(
        revision >= acknowledged,
        "{what}: {acknowledged} was acknowledged, {revision} is there"
    );
    for transaction in std::mem::take(&mut known.unknown) {
        if known.model.newest() < revision {
            let _ = known.model.commit(&transaction);
        }
    }
    assert_eq!(known.model.newest(), revision, "{what}: a revision out of nowhere");
    let floor = store.floor();
    assert!(floor <= known.model.floor, "{what}: the floor rose by itself");
    known.model.floor = floor;
    for at in floor..=revision {
        for table in ["a", "b", "c"] {
            let range = KeyRange::prefix(table, "");
            let found = store.range(range.clone(), Some(at), usize::MAX).await;
            let expected = known.model.range(&range, Some(at), usize::MAX);
            assert_eq!(found.map(|it| page(&it)), expected, "{what}: revision {at}");
        }
    }
    let everything = KeyRange::everything();
    let mut cursor =
        store.watch(everything.clone(), floor).await.expect("the floor can be watched");
    let expected = known.model.changes_after(&everything, floor);
    let mut found = Vec::new();
    while let Some(batch) = now(cursor.next()) {
        found.extend(batch.expect("nothing is compacted").changes.iter().map(happened));
    }
    assert_eq!(found, expected, "{what}: a resumed watch");
}

async fn check_writable(store: &Embedded, known: &mut Known, what: &str) {
    let write = transaction(vec![put("a", "written", "after"), put("c", "written", "after")]);
    let expected = known.model.commit(&write);
    let answer = store.commit(write).await;
    assert_eq!(outcome(&answer), Some(expected), "{what}: the first write afterwards");
}

/// Recovers, and again after the power failed in the recovered store: once when it had only been
/// read, and once when it had been written to. What was served or acknowledged must be durable,
/// whatever else is gone.
async fn recover(disk: SimulatedDisk, known: &mut Known, what: &str) {
    let open = |disk: &SimulatedDisk| open(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let only_read = disk.after_kill();
    let store = open(&only_read);
    check_promises(&store, known, what).await;
    drop(store);
    let store = open(&only_read.after_power_loss(Loss::Everything));
    assert_eq!(store.newest().await, Ok(known.model.newest()), "{what}: what was served is lost");
    check_promises(&store, known, what).await;

    let store = open(&disk);
    check_promises(&store, known, what).await;
    check_writable(&store, known, what).await;
    drop(store);
    let disk = disk.after_power_loss(Loss::Everything);
    let store = open(&disk);
    check_promises(&store, known, what).await;
    check_writable(&store, known, what).await;
    store.close().await;
    check_promises(&open(&disk), known, what).await;
}

async fn recorded_calls(seed: u64) -> u64 {
    let disk = SimulatedDisk::new(Fault::None);
    let store = open(&disk).expect("the disk is in order");
    let known = work(&store, seed).await;
    assert!(!known.has_ended);
    assert!(store.stats().checkpoint > 0, "no checkpoint was written");
    let segments = crate::log::segments(&disk).expect("the disk is in order");
    assert!(segments[0] > 1, "no segment was removed");
    store.close().await;
    disk.calls()
}

fn nothing_known() -> Known {
    Known { model: Model::new(), unknown: Vec::new(), has_ended: true }
}

#[tokio::test]
async fn a_crash_at_any_call_to_the_disk_breaks_no_promise() {
    let mut crashes = 0;
    for seed in [3, 7] {
        let calls = recorded_calls(seed).await;
        assert!(calls > 80, "the recorded run has shrunk to {calls} calls");
        for call in 1..=calls {
            let disk = SimulatedDisk::new(Fault::Crash(call));
            let known = match open(&disk) {
                Ok(store) => work(&store, seed).await,
                Err(_) => nothing_known(),
            };
            let losses = [Loss::Everything, Loss::Nothing, Loss::Some(call), Loss::Some(call * 31)];
            for loss in losses {
                let what = format!("seed {seed}, crash at call {call}, losing {loss:?}");
                let Known { model, unknown, has_ended } = &known;
                let (model, unknown) = (model.clone(), unknown.clone());
                let mut known = Known { model, unknown, has_ended: *has_ended };
                recover(disk.after_power_loss(loss), &mut known, &what).await;
                crashes += 1;
            }
        }
    }
    assert!(crashes > 600, "only {crashes} crashes were tried");
}

#[tokio::test]
async fn a_kill_at_any_call_followed_by_power_loss_loses_nothing_that_was_served() {
    let calls = recorded_calls(11).await;
    for call in 1..=calls {
        let disk = SimulatedDisk::new(Fault::Crash(call));
        let mut known = match open(&disk) {
            Ok(store) => work(&store, 11).await,
            Err(_) => nothing_known(),
        };
        recover(disk.after_kill(), &mut known, &format!("killed at call {call}")).await;
    }
}

#[tokio::test]
async fn a_failure_of_any_call_stops_the_store_or_leaves_it_whole() {
    for seed in [5, 13] {
        let calls = recorded_calls(seed).await;
        for call in 1..=calls {
            let disk = SimulatedDisk::new(Fault::Fail(call));
            let mut known = match open(&disk) {
                Ok(store) => work(&store, seed).await,
                Err(_) => nothing_known(),
            };
            let what = format!("seed {seed}, failure of call {call}");
            // The disk works on, and the next process reads what may be in memory only.
            recover(disk.after_kill(), &mut known, &what).await;
        }
    }
}

#[tokio::test]
async fn a_disk_that_fills_up_at_any_call_and_has_room_again_loses_nothing() {
    let (mut runs, mut ended) = (0, 0);
    for (seed, length) in [(5, 1), (17, 3), (19, 9)] {
        let calls = recorded_calls(seed).await;
        for call in 1..=calls {
            let disk = SimulatedDisk::new(Fault::Full(call, length));
            let what = format!("seed {seed}, full for {length} calls from {call}");
            let mut known = match open(&disk) {
                Ok(store) => work(&store, seed).await,
                Err(_) => nothing_known(),
            };
            disk.set_fault(Fault::None);
            runs += 1;
            ended += u64::from(known.has_ended);
            recover(disk.after_power_loss(Loss::Some(call)), &mut known, &what).await;
        }
    }
    // Only where the name of a new segment could not be made durable is there no way but to stop.
    assert!(ended * 4 < runs, "{ended} of {runs} stores did not go on");
}
