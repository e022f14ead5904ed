//! Disks that fill up or fail while the store runs.

use super::sequences::small;
use super::{all, now, put, transaction};
use crate::disk::simulated::{Fault, SimulatedDisk};
use crate::{
    Changes, CommitError, Embedded, Guard, Key, KeyRange, Operation, Options, ReadError, Refusal,
    Stop, Store, Transaction,
};
use std::sync::Arc;

fn open(disk: &SimulatedDisk) -> Embedded {
    let options = Options { reserve_bytes: 1000, ..small() };
    Embedded::on(Arc::new(disk.clone()), None, options).expect("the disk is in order")
}

fn refusal(answer: Result<u64, CommitError>) -> Refusal {
    match answer {
        Err(CommitError::Refused(refusal)) => refusal,
        other => panic!("it was not refused: {other:?}"),
    }
}

async fn one(store: &Embedded, operation: Operation) -> Result<u64, CommitError> {
    store.commit(transaction(vec![operation])).await
}

#[tokio::test]
async fn on_a_nearly_full_disk_only_what_barely_uses_room_is_taken() {
    let disk = SimulatedDisk::new(Fault::None);
    let text = "x".repeat(500);
    let store = open(&disk);
    one(&store, put("leases", "a", &text)).await.expect("there is room");
    store.close().await;
    disk.set_free_bytes(999);
    let store = open(&disk);
    let refused = one(&store, put("leases", "b", "")).await;
    assert_eq!(refusal(refused), Refusal::DiskNearlyFull);
    assert!(store.stats().is_disk_nearly_full);
    let grown = one(&store, put("leases", "a", &text.repeat(2))).await;
    assert_eq!(refusal(grown), Refusal::DiskNearlyFull);
    one(&store, put("leases", "a", &format!("{text} renewed"))).await.expect("it barely grows");
    one(&store, Operation::Delete(Key::new("leases", "a"))).await.expect("it frees room");
    disk.set_free_bytes(1000);
    one(&store, put("leases", "b", &text)).await.expect("there is room again");
    assert!(!store.stats().is_disk_nearly_full);
}

#[tokio::test]
async fn when_the_disk_is_full_nothing_of_the_batch_is_taken_and_the_store_goes_on() {
    let disk = SimulatedDisk::new(Fault::None);
    let store = open(&disk);
    one(&store, put("t", "a", "1")).await.expect("there is room");
    disk.set_fault(Fault::Full(disk.calls() + 1, 1));
    assert_eq!(refusal(one(&store, put("t", "a", "2")).await), Refusal::DiskNearlyFull);
    assert_eq!(store.newest().await, Ok(1));
    assert_eq!(one(&store, put("t", "a", "3")).await.expect("there is room"), 2);
    let disk = disk.after_kill();
    let page = open(&disk).range(KeyRange::prefix("t", ""), None, 9).await.expect("it runs");
    assert_eq!(page.items[0].value.bytes(), b"3");
}

#[tokio::test]
async fn after_a_failed_sync_the_outcome_is_unknown_and_everything_stops() {
    let disk = SimulatedDisk::new(Fault::None);
    let store = open(&disk);
    one(&store, put("t", "a", "1")).await.expect("the disk is in order");
    let mut cursor = store.watch(KeyRange::prefix("t", ""), 1).await.expect("it runs");
    disk.set_fault(Fault::Fail(disk.calls() + 2));
    // Whether they are in one batch or not: the first may be durable, the second is not.
    let guarded = Transaction::one(Guard::Absent(Key::new("t", "b")), put("t", "b", "2"));
    let answers = all(vec![store.commit(guarded.clone()), store.commit(guarded)]).await;
    assert!(matches!(answers[0], Err(CommitError::OutcomeUnknown)));
    assert!(matches!(answers[1], Err(CommitError::Refused(Refusal::Stopped(_)))), "{answers:?}");
    let Stop::Failed(reason) = store.stopped().await else { panic!("it was not closed") };
    assert!(reason.contains("sync the log"), "{reason}");
    assert_eq!(store.stop_reason(), Some(Stop::Failed(reason.clone())));
    assert_eq!(refusal(one(&store, put("t", "c", "3")).await), Refusal::Stopped(reason));
    assert_eq!(store.newest().await, Err(ReadError::Unavailable));
    assert_eq!(cursor.next().await.err(), Some(ReadError::Unavailable));
    let range = KeyRange::prefix("t", "");
    assert_eq!(store.range(range.clone(), None, 1).await.err(), Some(ReadError::Unavailable));
    assert!(store.watch(range, 1).await.is_err());
    assert_eq!(store.compact(1).await, Err(ReadError::Unavailable));
    store.close().await;
}

#[tokio::test]
async fn a_refusal_that_rests_on_a_write_of_its_batch_waits_for_the_sync() {
    let disk = SimulatedDisk::new(Fault::None);
    let store = open(&disk);
    let guarded = Transaction::one(Guard::Absent(Key::new("t", "a")), put("t", "a", "1"));
    // The first keeps the committer busy, so that the others make one batch.
    let first = store.commit(transaction(vec![put("u", "x", "")]));
    let answers = all(vec![first, store.commit(guarded.clone()), store.commit(guarded)]).await;
    assert!(matches!(answers[1], Ok(2)));
    let Err(CommitError::GuardFailed { current: Some(current), .. }) = &answers[2] else {
        panic!("the guard held: {answers:?}")
    };
    assert_eq!(current.modified, 2);
}

#[tokio::test]
async fn a_checkpoint_that_cannot_be_written_is_counted_and_stops_nothing() {
    let disk = SimulatedDisk::new(Fault::None);
    let store = open(&disk);
    one(&store, put("t", "a", "1")).await.expect("the disk is in order");
    store.compact(1).await.expect("it is not in the future");
    disk.set_fault(Fault::Fail(disk.calls() + 3));
    assert!(store.checkpoint().await.is_err());
    assert_eq!((store.stats().failed_checkpoints, store.stats().checkpoint), (1, 0));
    one(&store, put("t", "a", "2")).await.expect("the log is not concerned");
    disk.set_fault(Fault::None);
    store.checkpoint().await.expect("the disk is in order again");
    assert_eq!(store.stats().checkpoint, 1);
    assert!(now(store.stopped()).is_none());
}
