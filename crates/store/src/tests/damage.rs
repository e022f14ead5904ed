//! Bits that flip and files that vanish: noticed, named, and never served.

use super::sequences::small;
use super::{now, put, transaction};
use crate::checkpoint::checkpoint_of;
use crate::disk::Disk;
use crate::disk::simulated::{Fault, SimulatedDisk};
use crate::frame::Frame;
use crate::log::{SEGMENT_HEADER, SegmentHeader, segment_name, segments};
use crate::{Changes, Embedded, KeyRange, OpenError, Options, Revision, Store};
use std::sync::Arc;

fn open(disk: &SimulatedDisk) -> Result<Embedded, OpenError> {
    let options = Options { segment_bytes: 1 << 10, ..small() };
    Embedded::on(Arc::new(disk.clone()), None, options)
}

async fn write(store: &Embedded, count: usize) {
    for _ in 0..count {
        let revision = store.newest().await.expect("it runs") + 1;
        let row = format!("{}", revision % 7);
        let value = format!("{revision}").repeat(30);
        let written = store.commit(transaction(vec![put("t", &row, &value)])).await;
        assert_eq!(written.expect("the disk is in order"), revision);
    }
}

/// Forty revisions in several segments, without a checkpoint.
async fn log_only() -> (SimulatedDisk, Vec<Revision>) {
    let disk = SimulatedDisk::new(Fault::None);
    let store = open(&disk).expect("the disk is in order");
    write(&store, 40).await;
    store.close().await;
    let segments = segments(&disk).expect("the disk is in order");
    assert!(segments.len() > 2);
    (disk, segments)
}

/// Two checkpoints and the log since the first.
async fn with_checkpoints() -> (SimulatedDisk, Vec<String>) {
    let disk = SimulatedDisk::new(Fault::None);
    let store = open(&disk).expect("the disk is in order");
    for floor in [10, 20, 30] {
        write(&store, 10).await;
        store.compact(floor).await.expect("it is not in the future");
        store.checkpoint().await.expect("the disk is in order");
    }
    write(&store, 5).await;
    store.close().await;
    let names = disk.list().expect("the disk is in order");
    let names: Vec<_> = names.into_iter().filter(|it| checkpoint_of(it).is_some()).collect();
    assert_eq!(names.len(), 2);
    (disk, names)
}

/// Where each frame of a segment begins, and the revision before it.
fn frames(disk: &SimulatedDisk, segment: Revision) -> Vec<(usize, Revision)> {
    let bytes = disk.contents(&segment_name(segment));
    let id = SegmentHeader::read(&bytes).expect("it has a header").segment;
    let (mut at, mut found) = (SEGMENT_HEADER, Vec::new());
    while let Some(frame) = Frame::read(&bytes[at..], id) {
        found.push((at, frame.place.first_revision - 1));
        at += frame.length;
    }
    found.push((at, 0));
    found
}

fn flipped(disk: &SimulatedDisk, name: &str, byte: usize) -> SimulatedDisk {
    let disk = disk.after_kill();
    disk.flip_bit(name, byte);
    disk
}

#[tokio::test]
async fn a_flipped_bit_in_an_older_segment_is_named_and_refused() {
    let (disk, segments) = log_only().await;
    let name = segment_name(segments[1]);
    let frames = frames(&disk, segments[1]);
    for pair in frames.windows(2) {
        for byte in (pair[0].0..pair[1].0).step_by(11) {
            let disk = flipped(&disk, &name, byte);
            let before = disk.contents(&name);
            let Err(OpenError::Damaged { file, offset, last_good, .. }) = open(&disk) else {
                panic!("byte {byte} was flipped unnoticed")
            };
            assert_eq!((file, offset, last_good), (name.clone(), pair[0].0 as u64, pair[0].1));
            assert_eq!(disk.contents(&name), before, "evidence was destroyed");
        }
    }
    for byte in 0..SEGMENT_HEADER {
        assert!(matches!(open(&flipped(&disk, &name, byte)), Err(OpenError::Damaged { .. })));
    }
}

#[tokio::test]
async fn a_flipped_bit_in_the_middle_of_the_last_segment_is_refused_too() {
    let (disk, segments) = log_only().await;
    let last = *segments.last().expect("there are some");
    let frames = frames(&disk, last);
    assert!(frames.len() > 3);
    for pair in frames[..frames.len() - 1].windows(2) {
        for byte in pair[0].0..pair[1].0 {
            let refused = open(&flipped(&disk, &segment_name(last), byte)).err();
            let Some(OpenError::Damaged { offset, last_good, .. }) = refused else {
                panic!("byte {byte} was flipped unnoticed")
            };
            assert_eq!((offset, last_good), (pair[0].0 as u64, pair[0].1));
        }
    }
}

#[tokio::test]
async fn a_bad_last_frame_counts_as_torn_and_is_cut_and_reported() {
    let (disk, segments) = log_only().await;
    let last = *segments.last().expect("there are some");
    let frames = frames(&disk, last);
    let (start, end) = (frames[frames.len() - 2].0, frames[frames.len() - 1].0);
    for byte in start..end {
        let disk = flipped(&disk, &segment_name(last), byte);
        let store = open(&disk).expect("a torn write is no damage");
        let torn = store.recovery().torn.clone().expect("it was torn");
        assert_eq!((torn.offset, torn.bytes), (start as u64, (end - start) as u64));
        assert_eq!((torn.after, store.recovery().revision), (39, 39));
        assert_eq!(disk.contents(&segment_name(last)).len(), start);
        write(&store, 1).await;
        store.close().await;
        assert_eq!(open(&disk).expect("the cut was durable").recovery().torn, None);
    }
}

#[tokio::test]
async fn only_what_comes_after_the_checkpoint_is_replayed() {
    let (disk, _) = with_checkpoints().await;
    let store = open(&disk).expect("the disk is in order");
    let recovery = store.recovery();
    assert_eq!((recovery.checkpoint, recovery.transactions, recovery.revision), (30, 5, 35));
    assert_eq!((&recovery.torn, recovery.damaged.len()), (&None, 0));
}

#[tokio::test]
async fn a_damaged_checkpoint_is_passed_over_for_the_older_one() {
    let (disk, names) = with_checkpoints().await;
    for byte in (0..disk.contents(&names[1]).len()).step_by(7) {
        let store = open(&flipped(&disk, &names[1], byte)).expect("there is an older checkpoint");
        assert_eq!(store.recovery().checkpoint, 20);
        assert_eq!(store.recovery().damaged.len(), 1);
        assert_eq!(store.newest().await, Ok(35));
        let page = store.range(KeyRange::prefix("t", ""), Some(25), 99).await;
        assert_eq!(page.expect("it is above the floor").items.len(), 7);
        let mut cursor = store.watch(KeyRange::everything(), 20).await.expect("it is the floor");
        let batch = now(cursor.next()).expect("there are changes").expect("they are kept");
        assert_eq!(batch.changes.len(), 15);
    }
}

#[tokio::test]
async fn with_both_checkpoints_damaged_the_store_refuses_and_names_them() {
    let (disk, names) = with_checkpoints().await;
    let disk = flipped(&flipped(&disk, &names[0], 100), &names[1], 100);
    let error = open(&disk).expect_err("the log alone is not enough").to_string();
    assert!(error.contains(&names[0]) && error.contains(&names[1]), "{error}");
}

#[tokio::test]
async fn the_only_checkpoint_is_not_needed_if_it_is_damaged() {
    let disk = SimulatedDisk::new(Fault::None);
    let store = open(&disk).expect("the disk is in order");
    write(&store, 20).await;
    store.compact(15).await.expect("it is not in the future");
    store.checkpoint().await.expect("the disk is in order");
    store.close().await;
    disk.flip_bit("state-00000000000000000015", 60);
    let store = open(&disk).expect("the log goes back to the beginning");
    assert_eq!((store.recovery().checkpoint, store.recovery().transactions), (0, 20));
}

#[tokio::test]
async fn a_missing_file_is_noticed() {
    let (disk, segments) = log_only().await;
    for segment in &segments[..segments.len() - 1] {
        let disk = disk.after_kill();
        disk.remove(&segment_name(*segment)).expect("the disk is in order");
        assert!(matches!(open(&disk), Err(OpenError::Damaged { .. })), "{segment}");
    }
    disk.remove("store").expect("the disk is in order");
    assert!(matches!(open(&disk), Err(OpenError::Damaged { .. })));

    let (disk, _) = with_checkpoints().await;
    for segment in crate::log::segments(&disk).expect("the disk is in order") {
        disk.remove(&segment_name(segment)).expect("the disk is in order");
    }
    assert!(matches!(open(&disk), Err(OpenError::Damaged { last_good: 30, .. })));
}

#[tokio::test]
async fn another_format_is_refused() {
    let (disk, _) = log_only().await;
    let text = b"interlock-store format 2 id 0123456789abcdef\n";
    crate::disk::write_whole(&disk, "store", text).expect("the disk is in order");
    assert!(matches!(open(&disk), Err(OpenError::Format { found }) if found == "2"));
}

#[tokio::test]
async fn a_segment_of_another_store_is_refused() {
    let (disk, segments) = log_only().await;
    let (other, _) = log_only().await;
    let name = segment_name(segments[0]);
    let mut file = disk.create(&name).expect("the disk is in order");
    file.write_at(0, &other.contents(&name)).expect("the disk is in order");
    assert!(matches!(open(&disk), Err(OpenError::Damaged { offset: 0, last_good: 0, .. })));
}
