//! The embedded store: a handle to its index and its threads.

use crate::committer::Committer;
use crate::cursor::Cursor;
use crate::disk::{DirectoryLock, Disk, MemoryDisk};
use crate::housekeeper::{Housekeeper, Task};
use crate::queue::Pending;
use crate::recovery::{self, Recovered};
use crate::restore::lock_directory;
use crate::shared::{Beginning, Shared, locked};
use crate::{
    CommitError, KeyRange, OpenError, Options, Page, ReadError, Recovery, Refusal, Revision, Stats,
    Stop, Store, Transaction,
};
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// As in etcd.
const MOST_OPERATIONS: usize = 128;
const MOST_BYTES: usize = 3 << 19;

/// A store on the local disk. Clones are handles to the same store; it ends with the last of them,
/// or when it is closed.
#[derive(Clone)]
pub struct Embedded {
    shared: Arc<Shared>,
    life: Arc<Life>,
    recovery: Arc<Recovery>,
}

/// What ends when the last handle goes.
struct Life {
    shared: Arc<Shared>,
    housekeeping: Sender<Task>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    lock: Mutex<Option<DirectoryLock>>,
}

impl Embedded {
    /// Opens the store in a directory, which is made if it is not there. Reads all of it, so it
    /// blocks.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Embedded, OpenError> {
        let (disk, lock) = lock_directory(directory.as_ref())?;
        Embedded::on(Arc::new(disk), Some(lock), options)
    }

    /// A store that is gone with the last handle to it, for tests. All else is the same.
    pub fn in_memory() -> Embedded {
        let disk = Arc::new(MemoryDisk::default());
        // The log takes memory too.
        let options = Options {
            segment_bytes: 4 << 20,
            checkpoint_bytes: 8 << 20,
            reserve_bytes: 0,
            ..Options::default()
        };
        let opened = Embedded::on(disk, None, options);
        opened.expect("an empty store in memory has nothing that could be damaged")
    }

    /// Opens the store on a disk.
    pub(crate) fn on(
        disk: Arc<dyn Disk>,
        lock: Option<DirectoryLock>,
        options: Options,
    ) -> Result<Embedded, OpenError> {
        let recovered = recovery::recover(&disk, options.segment_bytes)?;
        let Recovered { index, log, store, checkpoints, segments, log_bytes, report } = recovered;
        let shared = Arc::new(Shared::new(Beginning { index, options, disk, store }));
        shared.counters.segments.store(segments as u64, Ordering::Relaxed);
        shared.counters.logged_bytes.store(log_bytes, Ordering::Relaxed);
        let checkpoint = checkpoints.last().copied().unwrap_or(0);
        shared.counters.checkpoint.store(checkpoint, Ordering::Relaxed);
        let (housekeeping, tasks) = mpsc::channel();
        let housekeeper = Housekeeper {
            shared: Arc::clone(&shared),
            tasks,
            checkpoints,
            logged_at_checkpoint: 0,
        };
        let committer = Committer::new(Arc::clone(&shared), log, housekeeping.clone());
        // What was replayed may be more than history may take.
        let _ = housekeeping.send(Task::Shrink);
        let life = Life {
            shared: Arc::clone(&shared),
            housekeeping,
            threads: Mutex::default(),
            lock: Mutex::new(lock),
        };
        life.start("store-commit", move || committer.run())?;
        life.start("store-keeping", move || housekeeper.run())?;
        Ok(Embedded { shared, life: Arc::new(life), recovery: Arc::new(report) })
    }

    /// What was found when it was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// What it says about itself.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// The oldest revision at which everything can be read.
    pub fn floor(&self) -> Revision {
        self.shared.index.floor()
    }

    /// The bytes of all rows of an owner and their newest values. The owner of a row is what comes before
    /// its first slash.
    pub fn live_bytes_of(&self, owner: &str) -> u64 {
        self.shared.index.live_bytes_of(owner)
    }

    /// How many tables take memory.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> usize {
        self.shared.index.tables().len()
    }

    /// Waits until the store has stopped, and says why. If it failed, the process should end.
    pub async fn stopped(&self) -> Stop {
        let mut stopped = self.shared.stopped();
        let stop = stopped.wait_for(Option::is_some).await;
        stop.ok().and_then(|stop| stop.clone()).unwrap_or(Stop::Closed)
    }

    /// Why the store has stopped, if it has.
    pub fn stop_reason(&self) -> Option<Stop> {
        self.shared.stopped().borrow().clone()
    }

    /// Commits what waits, then stops, and lets go of the directory.
    pub async fn close(&self) {
        self.life.end();
        let mut ended = self.shared.ended.subscribe();
        // The sender lives as long as this handle.
        let _ = ended.wait_for(|ended| *ended == 2).await;
        drop(locked(&self.life.lock).take());
    }

    /// Writes a checkpoint of the state at the floor now, if the newest one is older. This happens
    /// by itself as the log grows; asking for it makes the next start quicker.
    pub async fn checkpoint(&self) -> io::Result<()> {
        let (done, waits) = oneshot::channel();
        let stopped = || io::Error::other("the store has stopped");
        self.life.housekeeping.send(Task::Checkpoint(done)).map_err(|_| stopped())?;
        waits.await.unwrap_or_else(|_| Err(stopped()))
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let revision = self.shared.index.published();
        formatter.debug_struct("Embedded").field("revision", &revision).finish_non_exhaustive()
    }
}

impl Store for Embedded {
    type Changes = Cursor;

    /// If the future is dropped once it was polled, the write may stand all the same.
    async fn commit(&self, transaction: Transaction) -> Result<Revision, CommitError> {
        let bytes = check_limits(&transaction).map_err(CommitError::Refused)?;
        let (answer, waits) = oneshot::channel();
        let pending = Pending { transaction, bytes, answer };
        self.shared.queue.push(pending).map_err(CommitError::Refused)?;
        waits.await.unwrap_or(Err(CommitError::OutcomeUnknown))
    }

    async fn range(
        &self,
        range: KeyRange,
        at: Option<Revision>,
        limit: usize,
    ) -> Result<Page, ReadError> {
        self.shared.check()?;
        self.shared.index.range(&range, at, limit)
    }

    async fn watch(&self, range: KeyRange, after: Revision) -> Result<Cursor, ReadError> {
        Cursor::new(Arc::clone(&self.shared), range, after)
    }

    /// A floor at or below the present one changes nothing.
    async fn compact(&self, floor: Revision) -> Result<(), ReadError> {
        self.shared.check()?;
        let newest = self.shared.index.published();
        if floor > newest {
            return Err(ReadError::NotYet { newest });
        }
        self.shared.index.raise_floor(floor);
        let (done, waits) = oneshot::channel();
        let task = Task::Compact(done);
        self.life.housekeeping.send(task).map_err(|_| ReadError::Unavailable)?;
        waits.await.map_err(|_| ReadError::Unavailable)
    }

    async fn newest(&self) -> Result<Revision, ReadError> {
        self.shared.check()?;
        Ok(self.shared.index.published())
    }
}

/// The size of a transaction, if it may be committed at all.
fn check_limits(transaction: &Transaction) -> Result<usize, Refusal> {
    let count = transaction.operations.len().max(transaction.guards.len());
    if count > MOST_OPERATIONS {
        let text = format!("{count} operations or guards, but at most {MOST_OPERATIONS} may be");
        return Err(Refusal::TooLarge(text));
    }
    let size = |operation: &crate::Operation| {
        let key = operation.key();
        let value = match operation {
            crate::Operation::Put(_, value) => value.len(),
            crate::Operation::Delete(_) => 0,
        };
        key.table.len() + key.row.len() + value
    };
    let bytes = transaction.operations.iter().map(size).sum();
    if bytes > MOST_BYTES {
        let text = format!("the write has {bytes} bytes, but at most {MOST_BYTES} may be");
        return Err(Refusal::TooLarge(text));
    }
    let mut tables = HashSet::new();
    let mut operations = transaction.operations.iter();
    if transaction.operations.len() > 1
        && let Some(twice) = operations.find(|operation| !tables.insert(&*operation.key().table))
    {
        return Err(Refusal::TwoInOneTable(twice.key().table.to_string()));
    }
    Ok(bytes)
}

impl Life {
    fn start(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
        let started = thread::Builder::new().name(name.to_owned()).spawn(work);
        let failed = |source| OpenError::Io { doing: format!("start the thread {name}"), source };
        locked(&self.threads).push(started.map_err(failed)?);
        Ok(())
    }

    fn end(&self) {
        self.shared.is_closing.store(true, Ordering::Relaxed);
        self.shared.queue.close(&Stop::Closed.to_string());
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end();
        for thread in locked(&self.threads).drain(..) {
            // A thread that panicked has stopped the store and said so.
            let _ = thread.join();
        }
    }
}
