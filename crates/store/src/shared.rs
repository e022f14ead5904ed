//! What the store's threads and its handles share.

use crate::disk::Disk;
use crate::index::Index;
use crate::queue::Queue;
use crate::{Options, ReadError, Revision, Stats, Stop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// What everyone has a hand on.
pub(crate) struct Shared {
    pub(crate) index: Index,
    pub(crate) queue: Queue,
    pub(crate) counters: Counters,
    pub(crate) options: Options,
    pub(crate) disk: Arc<dyn Disk>,
    /// The store's id.
    pub(crate) store: u64,
    /// Whether the threads are to end soon.
    pub(crate) is_closing: AtomicBool,
    /// How many of the threads have ended.
    pub(crate) ended: watch::Sender<usize>,
    is_stopped: AtomicBool,
    stop: watch::Sender<Option<Stop>>,
}

/// Numbers for `Stats`.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) segments: AtomicU64,
    pub(crate) logged_bytes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) batches: [AtomicU64; 11],
    pub(crate) last_sync_nanoseconds: AtomicU64,
    pub(crate) checkpoint: AtomicU64,
    pub(crate) failed_checkpoints: AtomicU64,
    pub(crate) is_disk_nearly_full: AtomicBool,
}

/// What a store begins with.
pub(crate) struct Beginning {
    pub(crate) index: Index,
    pub(crate) options: Options,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) store: u64,
}

impl Shared {
    /// Puts it together.
    pub(crate) fn new(beginning: Beginning) -> Self {
        let Beginning { index, options, disk, store } = beginning;
        Shared {
            index,
            queue: Queue::new(options.waiting_transactions),
            counters: Counters::default(),
            options,
            disk,
            store,
            is_closing: AtomicBool::new(false),
            ended: watch::Sender::new(0),
            is_stopped: AtomicBool::new(false),
            stop: watch::Sender::new(None),
        }
    }

    /// Ends all reading and watching, and says why. The first reason stands.
    pub(crate) fn stop(&self, reason: Stop) {
        // Whoever learns of it must find it true.
        self.is_stopped.store(true, Ordering::Release);
        self.stop.send_if_modified(|stop| {
            let is_first = stop.is_none();
            stop.get_or_insert(reason);
            is_first
        });
        self.index.anything.notify_waiters();
        for table in self.index.tables() {
            table.changed.notify_waiters();
        }
    }

    /// Nothing if the store runs.
    pub(crate) fn check(&self) -> Result<(), ReadError> {
        if self.is_stopped.load(Ordering::Acquire) { Err(ReadError::Unavailable) } else { Ok(()) }
    }

    /// Why it stopped, if it has.
    pub(crate) fn stopped(&self) -> watch::Receiver<Option<Stop>> {
        self.stop.subscribe()
    }

    /// The numbers as they are.
    pub(crate) fn stats(&self) -> Stats {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        Stats {
            revision: self.index.published(),
            floor: self.index.floor(),
            keys: self.index.keys(),
            live_bytes: self.index.live_bytes(),
            history_bytes: self.index.history_bytes(),
            segments: number(&counters.segments),
            logged_bytes: number(&counters.logged_bytes),
            syncs: number(&counters.syncs),
            commits: number(&counters.commits),
            batches: std::array::from_fn(|size| number(&counters.batches[size])),
            last_sync: Duration::from_nanos(number(&counters.last_sync_nanoseconds)),
            checkpoint: number(&counters.checkpoint) as Revision,
            failed_checkpoints: number(&counters.failed_checkpoints),
            is_disk_nearly_full: counters.is_disk_nearly_full.load(Ordering::Relaxed),
        }
    }
}

/// Locks, also after a panic: the store has stopped then, and what is left to do is to clean up.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
