//! The committer: the one thread that decides, writes and publishes.
//!
//! A batch is all that arrived while the last one was being made durable. Guards are checked
//! against the index and against the earlier transactions of the batch; the batch becomes one
//! frame, one write and one sync; then it is applied, published and answered. Nobody learns of a
//! write before it is durable, not even through a refusal: one that rests on a write of the same
//! batch waits for the sync.

use crate::frame::{FrameBuilder, LoggedOperation};
use crate::housekeeper::Task;
use crate::index::{Index, Planned, TableCell, Version, shared_value, versioned};
use crate::log::{AppendError, Log};
use crate::queue::{Answer, BatchLimit, Pending};
use crate::shared::Shared;
use crate::{CommitError, Guard, Key, Operation, Refusal, Revision, Stop, Transaction};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

const BATCH: BatchLimit = BatchLimit { transactions: 1024, bytes: 8 << 20 };
/// A write that grows what is stored by no more than this barely uses room.
const BARELY_BYTES: usize = 128;
/// How often the room on the disk is read, in time and in bytes.
const ROOM_INTERVAL: Duration = Duration::from_millis(500);
const ROOM_BYTES: u64 = 4 << 20;

/// The thread's own things.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    log: Log,
    frame: FrameBuilder,
    housekeeping: Sender<Task>,
    room_seen: Option<(Instant, u64)>,
}

/// A batch that is being decided.
struct Batch {
    planned: Vec<Planned>,
    // Which of the planned changes is the newest of a key.
    by_key: HashMap<Key, usize>,
    revision: Revision,
    waiting: Vec<(oneshot::Sender<Answer>, Decided)>,
}

/// The answer to a transaction if the batch becomes durable.
enum Decided {
    /// It is in the batch.
    Committed(Revision),
    /// It is not, but the reason is.
    Rests(Answer),
}

/// What is at a key, and whether that is durable yet.
struct Current {
    version: Version,
    is_durable: bool,
}

impl Batch {
    fn current(&self, index: &Index, key: &Key) -> Current {
        match self.by_key.get(key) {
            Some(at) => Current { version: self.planned[*at].version.clone(), is_durable: false },
            None => Current { version: index.newest(key), is_durable: true },
        }
    }
}

impl Committer {
    /// A committer that appends to a log.
    pub(crate) fn new(shared: Arc<Shared>, log: Log, housekeeping: Sender<Task>) -> Self {
        Committer { shared, log, frame: FrameBuilder::new(), housekeeping, room_seen: None }
    }

    /// Works until the queue is closed or the disk fails.
    pub(crate) fn run(mut self) {
        let ending = Ending {
            shared: Arc::clone(&self.shared),
            housekeeping: self.housekeeping.clone(),
            has_finished: AtomicBool::new(false),
        };
        while let Some(pending) = self.shared.queue.take(BATCH)
            && self.commit(pending)
        {}
        ending.has_finished.store(true, Ordering::Relaxed);
    }

    /// Decides and commits a batch. Says whether there can be another.
    fn commit(&mut self, pending: Vec<Pending>) -> bool {
        self.look_at_room();
        let mut batch = Batch {
            planned: Vec::with_capacity(pending.len()),
            by_key: HashMap::new(),
            revision: self.shared.index.published(),
            waiting: Vec::with_capacity(pending.len()),
        };
        self.frame.clear();
        let first_revision = batch.revision + 1;
        for pending in pending {
            self.decide(&mut batch, pending);
        }
        if self.frame.transactions() == 0 {
            return true;
        }
        let started = Instant::now();
        match self.append(first_revision) {
            Ok(()) => {
                self.count(started.elapsed());
                self.publish(batch);
                true
            }
            Err(AppendError::Full) => {
                self.set_nearly_full(true);
                for (answer, _) in batch.waiting {
                    // Whoever has gone away need not be informed, here and below.
                    let _ = answer.send(Err(CommitError::Refused(Refusal::DiskNearlyFull)));
                }
                true
            }
            Err(AppendError::Broken(reason)) => {
                self.fail(batch, &reason);
                false
            }
        }
    }

    /// Stops the store, since nobody knows what is durable.
    fn fail(&self, batch: Batch, reason: &str) {
        // Before the answers: whoever is woken must not find what was there before.
        self.shared.stop(Stop::Failed(reason.to_owned()));
        self.shared.queue.refuse_all(reason);
        for (answer, decided) in batch.waiting {
            let _ = answer.send(Err(match decided {
                Decided::Committed(_) => CommitError::OutcomeUnknown,
                // What it rests on may never have been, so it is not reported it.
                Decided::Rests(_) => CommitError::Refused(Refusal::Stopped(reason.to_owned())),
            }));
        }
    }

    fn append(&mut self, first_revision: Revision) -> Result<(), AppendError> {
        if self.log.is_due(self.frame.length()) {
            self.log.rotate(first_revision)?;
            self.shared.counters.segments.fetch_add(1, Ordering::Relaxed);
        }
        self.log.append(&mut self.frame, first_revision)
    }

    fn decide(&mut self, batch: &mut Batch, pending: Pending) {
        let Pending { transaction, answer, .. } = pending;
        match self.decide_one(batch, transaction) {
            Ok(decided) => batch.waiting.push((answer, decided)),
            // It rests only on what is durable already.
            Err(now) => {
                let _ = answer.send(now);
            }
        }
    }

    /// Adds a transaction to the batch; or an error, which is the answer that can be given at once.
    fn decide_one(
        &mut self,
        batch: &mut Batch,
        transaction: Transaction,
    ) -> Result<Decided, Answer> {
        let index = &self.shared.index;
        for guard in &transaction.guards {
            let (key, expected) = match guard {
                Guard::Absent(key) => (key, None),
                Guard::At(key, revision) => (key, Some(*revision)),
            };
            let current = batch.current(index, key);
            let found = current.version.value.as_ref().map(|_| current.version.modified);
            if found == expected {
                continue;
            }
            let (key, current_version) = (key.clone(), versioned(key, &current.version));
            let refused = Err(CommitError::GuardFailed { key, current: current_version });
            return if current.is_durable { Err(refused) } else { Ok(Decided::Rests(refused)) };
        }
        let changes = self.changes(batch, transaction.operations);
        if changes.is_empty() {
            // As in etcd, what changes nothing takes no revision.
            let unchanged = Ok(batch.revision);
            let is_first = batch.planned.is_empty();
            return if is_first { Err(unchanged) } else { Ok(Decided::Rests(unchanged)) };
        }
        if self.shared.counters.is_disk_nearly_full.load(Ordering::Relaxed) && !is_modest(&changes)
        {
            return Err(Err(CommitError::Refused(Refusal::DiskNearlyFull)));
        }
        self.add(batch, changes);
        Ok(Decided::Committed(batch.revision))
    }

    /// What the operations change, and what is there now.
    fn changes(&self, batch: &Batch, operations: Vec<Operation>) -> Vec<(Planned, Key, Version)> {
        let mut changes = Vec::with_capacity(operations.len());
        let revision = batch.revision + 1;
        for operation in operations {
            let (key, value) = match operation {
                Operation::Put(key, value) => (key, Some(shared_value(value))),
                Operation::Delete(key) => (key, None),
            };
            let before = batch.current(&self.shared.index, &key).version;
            if value.is_none() && before.value.is_none() {
                continue;
            }
            let created = if before.value.is_some() { before.created } else { revision };
            let table = self.shared.index.table(&key.table);
            let version = Version { created, modified: revision, value };
            changes.push((Planned { table, row: Arc::clone(&key.row), version }, key, before));
        }
        changes
    }

    fn add(&mut self, batch: &mut Batch, changes: Vec<(Planned, Key, Version)>) {
        batch.revision += 1;
        self.frame.transaction(changes.len());
        for (planned, key, _) in changes {
            self.frame.operation(LoggedOperation {
                table: &planned.table.name,
                row: &planned.row,
                value: planned.version.value.as_ref().map(|value| value.bytes()),
            });
            batch.by_key.insert(key, batch.planned.len());
            batch.planned.push(planned);
        }
    }

    /// Makes a durable batch visible, and answers.
    fn publish(&self, batch: Batch) {
        let index = &self.shared.index;
        let mut touched: Vec<Arc<TableCell>> = Vec::new();
        for planned in &batch.planned {
            if !touched.iter().rev().take(8).any(|table| Arc::ptr_eq(table, &planned.table)) {
                touched.push(Arc::clone(&planned.table));
            }
        }
        index.apply(batch.planned);
        index.publish(batch.revision);
        for (answer, decided) in batch.waiting {
            let _ = answer.send(match decided {
                Decided::Committed(revision) => Ok(revision),
                Decided::Rests(result) => result,
            });
        }
        for table in touched {
            table.changed.notify_waiters();
        }
        index.anything.notify_waiters();
        if index.history_bytes() > self.shared.options.history_bytes {
            // The housekeeper reads again before it acts, so asking twice does no harm.
            let _ = self.housekeeping.send(Task::Shrink);
        }
    }

    fn count(&self, took: Duration) {
        let counters = &self.shared.counters;
        let transactions = u64::from(self.frame.transactions());
        let size = transactions.ilog2().min(10) as usize;
        counters.batches[size].fetch_add(1, Ordering::Relaxed);
        counters.syncs.fetch_add(1, Ordering::Relaxed);
        counters.commits.fetch_add(transactions, Ordering::Relaxed);
        counters.logged_bytes.fetch_add(self.frame.length() as u64, Ordering::Relaxed);
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        counters.last_sync_nanoseconds.store(took, Ordering::Relaxed);
    }

    fn look_at_room(&mut self) {
        let logged = self.shared.counters.logged_bytes.load(Ordering::Relaxed);
        let is_low = self.shared.counters.is_disk_nearly_full.load(Ordering::Relaxed);
        let is_fresh = |(when, bytes): (Instant, u64)| {
            logged - bytes < ROOM_BYTES && when.elapsed() < ROOM_INTERVAL
        };
        if !is_low && self.room_seen.is_some_and(is_fresh) {
            return;
        }
        self.room_seen = Some((Instant::now(), logged));
        // A disk that cannot say how much room it has is written to until it is full.
        let room = self.shared.disk.free_bytes().unwrap_or(u64::MAX);
        self.set_nearly_full(room < self.shared.options.reserve_bytes);
    }

    fn set_nearly_full(&self, is_nearly_full: bool) {
        self.shared.counters.is_disk_nearly_full.store(is_nearly_full, Ordering::Relaxed);
    }
}

/// Whether a transaction frees room, or barely uses any: such go on when the disk is nearly full.
fn is_modest(changes: &[(Planned, Key, Version)]) -> bool {
    let is_new = |(planned, _, before): &(Planned, Key, Version)| {
        planned.version.value.is_some() && before.value.is_none()
    };
    let after: usize = changes.iter().map(|(planned, ..)| planned.version.bytes()).sum();
    let before: usize = changes.iter().map(|(.., before)| before.bytes()).sum();
    !changes.iter().any(is_new) && after <= before + BARELY_BYTES
}

/// Says that the thread has ended, also if it panicked.
struct Ending {
    shared: Arc<Shared>,
    housekeeping: Sender<Task>,
    has_finished: AtomicBool,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let stop = match self.has_finished.load(Ordering::Relaxed) {
            true => Stop::Closed,
            false => Stop::Failed("the committing thread failed".to_owned()),
        };
        self.shared.queue.refuse_all(&stop.to_string());
        self.shared.stop(stop);
        // The housekeeper may have ended first.
        let _ = self.housekeeping.send(Task::End);
        self.shared.ended.send_modify(|ended| *ended += 1);
    }
}
