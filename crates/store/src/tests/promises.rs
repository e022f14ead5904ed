//! What callers rely on, one sentence each.

use super::{all, now, put, transaction};
use crate::{
    Changes, CommitError, Embedded, Guard, Key, KeyRange, Operation, Options, ReadError, Refusal,
    Revision, Stop, Store, Transaction,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

async fn write(store: &Embedded, table: &str, row: &str, value: &str) -> Revision {
    let written = store.commit(transaction(vec![put(table, row, value)])).await;
    written.expect("a disk in memory does not fail")
}

async fn delete(store: &Embedded, table: &str, row: &str) -> Revision {
    let operation = Operation::Delete(Key::new(table, row));
    store.commit(transaction(vec![operation])).await.expect("a disk in memory does not fail")
}

fn refusal(answer: Result<Revision, CommitError>) -> Refusal {
    match answer {
        Err(CommitError::Refused(refusal)) => refusal,
        other => panic!("it was not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_recreated_key_is_a_new_one() {
    let store = Embedded::in_memory();
    write(&store, "t", "a", "1").await;
    write(&store, "t", "a", "2").await;
    delete(&store, "t", "a").await;
    write(&store, "t", "a", "3").await;
    let page = store.range(KeyRange::prefix("t", "a"), None, 1).await.expect("it runs");
    assert_eq!((page.items[0].created, page.items[0].modified), (4, 4));
    let page = store.range(KeyRange::prefix("t", "a"), Some(2), 1).await.expect("it runs");
    assert_eq!((page.items[0].created, page.items[0].modified), (1, 2));
}

#[tokio::test]
async fn what_changes_nothing_takes_no_revision() {
    let store = Embedded::in_memory();
    assert_eq!(delete(&store, "t", "a").await, 0);
    assert_eq!(write(&store, "t", "a", "1").await, 1);
    assert_eq!(delete(&store, "t", "b").await, 1);
    let check =
        Transaction { guards: vec![Guard::At(Key::new("t", "a"), 1)], ..Default::default() };
    assert_eq!(store.commit(check).await.expect("the guard holds"), 1);
}

#[tokio::test]
async fn transactions_beyond_the_limits_are_refused() {
    let store = Embedded::in_memory();
    let many = (0..129).map(|index| put(&format!("{index}"), "a", "")).collect();
    assert!(matches!(refusal(store.commit(transaction(many)).await), Refusal::TooLarge(_)));
    let large = transaction(vec![put("t", "a", &"x".repeat(3 << 19))]);
    assert!(matches!(refusal(store.commit(large).await), Refusal::TooLarge(_)));
    let twice = transaction(vec![put("t", "a", ""), put("u", "a", ""), put("t", "b", "")]);
    let refused = refusal(store.commit(twice).await);
    assert_eq!(refused, Refusal::TwoInOneTable("t".to_owned()));
    let most = (0..128).map(|index| put(&format!("{index}"), "a", "")).collect();
    assert_eq!(store.commit(transaction(most)).await.expect("it is within the limits"), 1);
    let largest = transaction(vec![put("t", "a", &"x".repeat((3 << 19) - 2))]);
    assert_eq!(store.commit(largest).await.expect("it is within the limits"), 2);
}

#[tokio::test]
async fn pages_of_one_revision_hang_together_while_others_write() {
    let store = Embedded::in_memory();
    for index in 0..1200 {
        write(&store, "t", &format!("{index:04}"), "old").await;
    }
    let (mut rows, mut after, mut at) = (Vec::new(), None, None);
    loop {
        let mut range = KeyRange::prefix("t", "");
        range.after = after;
        let page = store.range(range, at, 100).await.expect("it is above the floor");
        rows.extend(page.items.iter().map(|item| item.key.row.to_string()));
        assert_eq!(page.remaining, 1200 - rows.len());
        assert!(page.items.iter().all(|item| item.value.bytes() == b"old"));
        if page.remaining == 0 {
            break;
        }
        at = Some(page.revision);
        after = page.items.last().map(|item| Arc::clone(&item.key.row));
        delete(&store, "t", &format!("{:04}", rows.len() + 50)).await;
        write(&store, "t", &format!("{:04}", rows.len() + 51), "new").await;
        write(&store, "t", &format!("{:04}x", rows.len() + 52), "new").await;
    }
    assert!(rows.is_sorted());
}

struct Rings(AtomicUsize);

impl Wake for Rings {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_watcher_is_woken_by_its_own_table_only() {
    let store = Embedded::in_memory();
    let mut cursor = store.watch(KeyRange::prefix("mine", ""), 0).await.expect("it runs");
    let rings = Arc::new(Rings(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&rings));
    let mut next = Box::pin(cursor.next());
    assert!(next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    write(&store, "others", "a", "").await;
    write(&store, "others", "a", "").await;
    assert_eq!(rings.0.load(Ordering::SeqCst), 0);
    write(&store, "mine", "a", "").await;
    let batch = next.await.expect("it runs");
    assert_eq!((batch.seen, batch.changes.len()), (3, 1));
}

#[tokio::test]
async fn a_wait_that_is_given_up_loses_nothing() {
    let store = Embedded::in_memory();
    let mut cursor = store.watch(KeyRange::prefix("t", ""), 0).await.expect("it runs");
    for revision in 1..50 {
        assert!(now(cursor.next()).is_none());
        write(&store, "t", "a", "").await;
        let batch = cursor.next().await.expect("it runs");
        assert_eq!(batch.changes[0].revision, revision);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_that_is_about_to_wait_is_woken_all_the_same() {
    let store = Embedded::in_memory();
    let mut cursors = Vec::new();
    for range in [KeyRange::prefix("t", ""), KeyRange::everything()] {
        cursors.push(store.watch(range, 0).await.expect("it runs"));
    }
    let (saw, mut seen) = tokio::sync::mpsc::unbounded_channel();
    for mut cursor in cursors {
        let saw = saw.clone();
        tokio::spawn(async move {
            while let Ok(batch) = cursor.next().await {
                let _ = saw.send(batch.seen);
            }
        });
    }
    for revision in 1..=3000 {
        // Each write waits for the watchers, so one that was not woken is never woken.
        write(&store, "t", "a", "").await;
        for _ in 0..2 {
            let seen = tokio::time::timeout(std::time::Duration::from_secs(180), seen.recv()).await;
            assert_eq!(seen.expect("a watcher sleeps on"), Some(revision));
        }
    }
}

#[tokio::test]
async fn many_changes_come_in_several_batches_without_dividing_a_transaction() {
    let store = Embedded::in_memory();
    let writes = (0..1500).map(|_| transaction(vec![put("t", "a", ""), put("u", "a", "")]));
    all(writes.map(|it| store.commit(it)).collect()).await;
    let mut cursor = store.watch(KeyRange::everything(), 0).await.expect("it runs");
    let (mut revision, mut batches) = (0, 0);
    while let Some(batch) = now(cursor.next()) {
        let batch = batch.expect("it runs");
        for pair in batch.changes.chunks(2) {
            revision += 1;
            assert!(pair.iter().all(|change| change.revision == revision) && pair.len() == 2);
        }
        assert_eq!(batch.seen, revision);
        batches += 1;
    }
    assert_eq!((revision, batches), (1500, 3));
}

#[tokio::test]
async fn an_idle_watcher_makes_progress_and_a_slow_one_gets_what_it_missed() {
    let store = Embedded::in_memory();
    let mut idle = store.watch(KeyRange::prefix("quiet", ""), 0).await.expect("it runs");
    let mut slow = store.watch(KeyRange::prefix("busy", ""), 0).await.expect("it runs");
    let mut slow_everywhere = store.watch(KeyRange::everything(), 0).await.expect("it runs");
    for _ in 0..10 {
        write(&store, "busy", "a", "").await;
    }
    assert_eq!((idle.progress(), slow.progress()), (10, 0));
    store.compact(5).await.expect("it is not in the future");
    assert!(now(idle.next()).is_none());
    assert_eq!(slow.next().await.err(), Some(ReadError::Compacted { floor: 5 }));
    assert_eq!(slow_everywhere.next().await.err(), Some(ReadError::Compacted { floor: 5 }));
    let busy = KeyRange::prefix("busy", "");
    let refused = store.watch(busy.clone(), 4).await.err();
    assert_eq!(refused, Some(ReadError::Compacted { floor: 5 }));
    let mut resumed = store.watch(busy.clone(), 5).await.expect("the floor can be watched");
    assert_eq!(resumed.next().await.expect("it runs").changes.len(), 5);
    assert_eq!(store.watch(busy, 11).await.err(), Some(ReadError::NotYet { newest: 10 }));
}

#[tokio::test]
async fn history_beyond_its_budget_moves_the_floor() {
    let directory = Directory::new("budget");
    let options = Options { history_bytes: 100 << 10, reserve_bytes: 0, ..Options::default() };
    let store = Embedded::open(&directory.0, options).expect("the disk is in order");
    let value = "x".repeat(10 << 10);
    for _ in 0..40 {
        write(&store, "t", "a", &value).await;
    }
    // The housekeeper is asked for this once a writer has its answer, so it may come after a compaction.
    let began = std::time::Instant::now();
    while store.stats().history_bytes > 100 << 10 {
        assert!(began.elapsed().as_secs() < 60, "{} bytes", store.stats().history_bytes);
        store.compact(0).await.expect("it runs");
    }
    assert!(store.floor() > 20, "the floor is at {}", store.floor());
    let page = store.range(KeyRange::prefix("t", ""), Some(store.floor()), 1).await;
    assert_eq!(page.expect("the floor can be read").items.len(), 1);
}

/// Writes until the history of one owner was cut, and returns the revision before the first write.
async fn flood(store: &Embedded, row: &str) -> u64 {
    let before = store.newest().await.expect("it runs");
    let value = "x".repeat(10 << 10);
    for _ in 0..40 {
        write(store, "t", row, &value).await;
    }
    let began = std::time::Instant::now();
    while store.stats().history_bytes > 100 << 10 {
        assert!(began.elapsed().as_secs() < 60, "{} bytes", store.stats().history_bytes);
        // It waits for what the housekeeper was asked for before.
        store.compact(0).await.expect("it runs");
    }
    before
}

#[tokio::test]
async fn one_owners_flood_does_not_cost_the_others_their_history() {
    let directory = Directory::new("owners");
    let options = Options { history_bytes: 100 << 10, reserve_bytes: 0, ..Options::default() };
    let store = Embedded::open(&directory.0, options.clone()).expect("the disk is in order");
    write(&store, "t", "quiet/a", "1").await;
    write(&store, "t", "noisy/a", "1").await;
    let quiet = KeyRange::prefix("t", "quiet/");
    let mut slow = store.watch(quiet.clone(), 1).await.expect("it runs");
    let mut slow_everybody = store.watch(KeyRange::prefix("t", ""), 1).await.expect("it runs");
    write(&store, "t", "quiet/a", "2").await;
    write(&store, "t", "quiet/b", "3").await;
    let before = flood(&store, "noisy/a").await;
    assert!(store.floor() > before + 20, "the floor is at {}", store.floor());
    // The quiet one reads and resumes from before the flood; the noisy one, and who looks at all, do not.
    let page = store.range(quiet.clone(), Some(1), 10).await.expect("its history is kept");
    assert_eq!((page.items.len(), page.items[0].value.bytes()), (1, &b"1"[..]));
    let batch = slow.next().await.expect("it did not lose anything");
    let seen: Vec<_> =
        batch.changes.iter().map(|change| (change.revision, &*change.key.row)).collect();
    assert_eq!(seen, [(3, "quiet/a"), (4, "quiet/b")]);
    let mut resumed = store.watch(quiet.clone(), 1).await.expect("it may resume");
    assert_eq!(resumed.next().await.expect("it runs").changes.len(), 2);
    let compacted = Some(ReadError::Compacted { floor: store.floor() });
    let noisy = KeyRange::prefix("t", "noisy/");
    assert_eq!(store.watch(noisy.clone(), before).await.err(), compacted);
    assert_eq!(store.range(noisy.clone(), Some(before), 1).await.err(), compacted);
    assert_eq!(slow_everybody.next().await.err(), compacted);
    assert_eq!(store.watch(KeyRange::everything(), before).await.err(), compacted);
    let mut resumed = store.watch(noisy, store.floor()).await.expect("the floor can be watched");
    assert!(!resumed.next().await.expect("it runs").changes.is_empty());
    // A checkpoint, written at the floor, has everything; compaction is for all.
    store.checkpoint().await.expect("there is room");
    store.compact(store.floor()).await.expect("it is not in the future");
    assert_eq!(store.watch(quiet.clone(), 1).await.err(), compacted);
    assert_eq!(store.range(quiet.clone(), Some(1), 10).await.err(), compacted);
    store.close().await;
    let store = Embedded::open(&directory.0, options).expect("the disk is in order");
    let page = store.range(quiet, None, 10).await.expect("it runs");
    let found: Vec<_> = page
        .items
        .iter()
        .map(|item| (&*item.key.row, item.created, item.modified, item.value.bytes()))
        .collect();
    assert_eq!(found, [("quiet/a", 1, 3, &b"2"[..]), ("quiet/b", 4, 4, &b"3"[..])]);
}

#[tokio::test]
async fn what_is_alive_is_counted_for_each_owner_also_after_a_start() {
    let directory = Directory::new("alive");
    let options = Options { reserve_bytes: 0, ..Options::default() };
    let store = Embedded::open(&directory.0, options.clone()).expect("the disk is in order");
    write(&store, "t", "one/a", "12345").await;
    write(&store, "u", "one/b", "1").await;
    write(&store, "t", "two/a", "1").await;
    write(&store, "t", "flat", "1").await;
    write(&store, "u", "one/b", "123").await;
    delete(&store, "t", "two/a").await;
    let of = |store: &Embedded| ["one", "two", ""].map(|owner| store.live_bytes_of(owner));
    let expected = [5 + 5 + 5 + 3, 0, 5];
    assert_eq!(of(&store), expected);
    store.close().await;
    let store = Embedded::open(&directory.0, options.clone()).expect("the disk is in order");
    assert_eq!(of(&store), expected, "from the log");
    store.compact(5).await.expect("it is not in the future");
    store.checkpoint().await.expect("there is room");
    store.close().await;
    let store = Embedded::open(&directory.0, options).expect("the disk is in order");
    assert_eq!(of(&store), expected, "from a checkpoint and the log");
    assert_eq!(store.stats().live_bytes, expected.iter().sum::<u64>());
}

#[tokio::test]
async fn a_batch_of_large_changes_is_short() {
    let store = Embedded::in_memory();
    let value = "x".repeat(400 << 10);
    for _ in 0..6 {
        write(&store, "t", "a", &value).await;
    }
    let mut cursor = store.watch(KeyRange::prefix("t", ""), 0).await.expect("it runs");
    let mut sizes = Vec::new();
    while let Some(batch) = now(cursor.next()) {
        sizes.push(batch.expect("it runs").changes.len());
    }
    assert_eq!(sizes.iter().sum::<usize>(), 6);
    assert!(sizes.iter().all(|size| *size <= 3), "{sizes:?}");
}

#[tokio::test]
async fn what_was_deleted_leaves_nothing_behind_once_it_is_compacted() {
    let store = Embedded::in_memory();
    write(&store, "kept", "a", "1").await;
    let mut last = 0;
    for index in 0..200 {
        write(&store, &format!("table {index}"), "a", "1").await;
        last = delete(&store, &format!("table {index}"), "a").await;
    }
    // Once this is answered, the committer has let go of the tables that it had changed before.
    write(&store, "kept", "a", "2").await;
    store.compact(last + 1).await.expect("it is not in the future");
    assert_eq!(store.tables(), 1);
    assert_eq!((store.stats().keys, store.stats().history_bytes), (1, 0));
}

/// Reads two tables at one revision again and again: what was written together is read together.
async fn read_pairs(store: Embedded, until: Revision) {
    loop {
        let left = store.range(KeyRange::prefix("left", ""), None, 100).await.expect("it runs");
        let at = Some(left.revision);
        let right = match store.range(KeyRange::prefix("right", ""), at, 100).await {
            Err(ReadError::Compacted { .. }) => continue,
            right => right.expect("it runs"),
        };
        let facts = |item: &crate::Versioned| {
            (item.key.row.clone(), item.created, item.modified, item.value.bytes().to_vec())
        };
        let left_facts: Vec<_> = left.items.iter().map(facts).collect();
        assert_eq!(left_facts, right.items.iter().map(facts).collect::<Vec<_>>());
        if left.revision >= until {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Follows all changes; whenever it is too slow, it starts again from the newest revision.
async fn follow(store: Embedded, until: Revision) {
    let mut seen = 0;
    while seen < until {
        let watched = store.watch(KeyRange::everything(), seen).await;
        let Ok(mut cursor) = watched else {
            seen = store.newest().await.expect("it runs");
            continue;
        };
        while seen < until
            && let Ok(batch) = cursor.next().await
        {
            for pair in batch.changes.chunks(2) {
                seen += 1;
                assert!(pair.len() == 2 && pair.iter().all(|change| change.revision == seen));
            }
            assert_eq!(batch.seen, seen);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn what_was_written_together_is_seen_together_while_everything_moves() {
    const WRITES: Revision = 8000;
    let store = Embedded::in_memory();
    let mut tasks = Vec::new();
    for writer in 0..8 {
        let store = store.clone();
        tasks.push(tokio::spawn(async move {
            for index in 0..WRITES / 8 {
                let row = format!("{}", (writer * 3 + index) % 20);
                let value = format!("{writer} {index}");
                let both = vec![put("left", &row, &value), put("right", &row, &value)];
                let revision = store.commit(transaction(both)).await.expect("it runs");
                if index % 7 == 0 {
                    store.compact(revision.saturating_sub(50)).await.expect("it runs");
                }
            }
        }));
    }
    for _ in 0..2 {
        tasks.push(tokio::spawn(read_pairs(store.clone(), WRITES)));
        tasks.push(tokio::spawn(follow(store.clone(), WRITES)));
    }
    for task in tasks {
        task.await.expect("it holds");
    }
}

#[tokio::test]
async fn closing_commits_what_waits_and_lets_go_of_the_directory() {
    let directory = Directory::new("close");
    let open = || Embedded::open(&directory.0, Options::default());
    let store = open().expect("the disk is in order");
    let Err(crate::OpenError::Locked { holder }) = open() else { panic!("it was opened twice") };
    assert_eq!(holder, format!("process {}", std::process::id()));
    let mut waiting: Vec<_> = (0..20)
        .map(|index| Box::pin(store.commit(transaction(vec![put("t", &format!("{index}"), "")]))))
        .collect();
    for commit in &mut waiting {
        let _ = commit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    store.close().await;
    let committed = all(waiting).await.into_iter().filter(Result::is_ok).count();
    assert_eq!(committed, 20);
    let refused = store.commit(transaction(vec![put("t", "late", "")])).await;
    assert_eq!(refusal(refused), Refusal::Stopped("the store was closed".to_owned()));
    assert_eq!(store.stopped().await, Stop::Closed);
    assert_eq!(store.newest().await, Err(ReadError::Unavailable));
    let again = open().expect("the directory is free again");
    assert_eq!(again.recovery().revision, 20);
    drop(again);
    assert!(open().is_ok(), "dropping the last handle closes too");
}

#[tokio::test]
async fn a_commit_that_nobody_waits_for_still_stands() {
    let store = Embedded::in_memory();
    assert!(now(store.commit(transaction(vec![put("t", "a", "")]))).is_none_or(|it| it.is_ok()));
    write(&store, "t", "b", "").await;
    assert_eq!(
        store.range(KeyRange::prefix("t", ""), None, 9).await.expect("it runs").items.len(),
        2
    );
}

#[tokio::test]
async fn a_restored_store_has_the_data_and_another_history() {
    let (from, to) = (Directory::new("restore-from"), Directory::new("restore-to"));
    let store = Embedded::open(&from.0, Options::default()).expect("the disk is in order");
    write(&store, "t", "a", "1").await;
    write(&store, "u", "b", "2").await;
    let restore = || Embedded::restore(&from.0, &to.0, crate::Damage::Refuse);
    assert!(matches!(restore(), Err(crate::OpenError::Locked { .. })));
    store.close().await;
    let restored = restore().expect("it is closed now");
    assert_eq!((restored.last_good, restored.revision), (2, 1_000_000_002));
    assert!(restore().is_err(), "the directory is taken");
    let store = Embedded::open(&to.0, Options::default()).expect("it was just made");
    assert_eq!((store.newest().await, store.floor()), (Ok(1_000_000_002), 1_000_000_002));
    let page = store.range(KeyRange::prefix("t", ""), None, 9).await.expect("it runs");
    assert_eq!((page.items[0].modified, page.items[0].value.bytes()), (1, &b"1"[..]));
    let old = store.watch(KeyRange::everything(), 2).await.err();
    assert_eq!(old, Some(ReadError::Compacted { floor: 1_000_000_002 }));
    assert_eq!(write(&store, "t", "a", "3").await, 1_000_000_003);
    store.close().await;
    let store = Embedded::open(&to.0, Options::default()).expect("it is in order");
    assert_eq!(store.newest().await, Ok(1_000_000_003));
}

#[tokio::test]
async fn damage_can_be_given_up_in_a_restored_store() {
    let (from, to) = (Directory::new("damaged-from"), Directory::new("damaged-to"));
    let store = Embedded::open(&from.0, Options::default()).expect("the disk is in order");
    for value in ["1", "2", "3"] {
        write(&store, "t", "a", value).await;
    }
    store.close().await;
    let segment = from.0.join("log-00000000000000000001");
    let mut bytes = std::fs::read(&segment).expect("it is there");
    let frame = crate::log::SEGMENT_HEADER + crate::frame::FRAME_HEADER + 15;
    bytes[frame + 30] ^= 1;
    std::fs::write(&segment, bytes).expect("it can be written");
    assert!(matches!(
        Embedded::open(&from.0, Options::default()),
        Err(crate::OpenError::Damaged { last_good: 1, .. })
    ));
    let refused = Embedded::restore(&from.0, &to.0, crate::Damage::Refuse);
    assert!(matches!(refused, Err(crate::OpenError::Damaged { .. })));
    let restored = Embedded::restore(&from.0, &to.0, crate::Damage::Discard);
    let restored = restored.expect("the rest is given up");
    assert_eq!(restored.last_good, 1);
    assert!(restored.given_up.is_some());
}

/// A directory of its own, removed in the end.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("interlock-store-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
