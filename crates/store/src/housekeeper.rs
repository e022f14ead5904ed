//! The housekeeper: a thread that drops old history, writes checkpoints, and removes what they
//! replace.
//!
//! It alone moves history out of memory, so a checkpoint that it writes sees one floor from start
//! to end.

use crate::checkpoint::{self, CheckpointId, checkpoint_name, checkpoint_of};
use crate::log;
use crate::shared::Shared;
use crate::{Revision, Stop};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use tokio::sync::oneshot;

/// Something to do.
pub(crate) enum Task {
    /// Drop what was superseded at or before the floor, which has been raised already.
    Compact(oneshot::Sender<()>),
    /// Raise the floors of those who have most history, until it fits into its budget.
    Shrink,
    /// Write a checkpoint if there is anything that the last one has not, however little.
    Checkpoint(oneshot::Sender<io::Result<()>>),
    /// End.
    End,
}

/// The thread's own things.
pub(crate) struct Housekeeper {
    /// What it shares.
    pub(crate) shared: Arc<Shared>,
    /// What to do.
    pub(crate) tasks: Receiver<Task>,
    /// The checkpoints that may be relied on, oldest first.
    pub(crate) checkpoints: Vec<Revision>,
    /// How much had been logged when the last one was written.
    pub(crate) logged_at_checkpoint: u64,
}

impl Housekeeper {
    /// Works until told to end.
    pub(crate) fn run(mut self) {
        let _ending = Ending(Arc::clone(&self.shared));
        while let Ok(task) = self.tasks.recv() {
            match task {
                Task::Compact(done) => {
                    self.shared.index.trim();
                    // Whoever has gone away need not be informed.
                    let _ = done.send(());
                    self.consider_checkpoint();
                }
                Task::Shrink => {
                    self.shrink();
                    self.consider_checkpoint();
                }
                Task::Checkpoint(done) => {
                    let _ = done.send(self.checkpoint());
                }
                Task::End => return,
            }
        }
    }

    fn shrink(&self) {
        let (index, budget) = (&self.shared.index, self.shared.options.history_bytes);
        if index.history_bytes() > budget {
            index.shrink(budget / 2);
        }
    }

    fn consider_checkpoint(&mut self) {
        let options = &self.shared.options;
        let logged = self.shared.counters.logged_bytes.load(Ordering::Relaxed);
        let due = options.checkpoint_bytes.max(self.shared.index.live_bytes());
        if logged.saturating_sub(self.logged_at_checkpoint) > due {
            // It is counted if it fails, and tried again when the floor has moved on.
            let _ = self.checkpoint();
        }
    }

    fn checkpoint(&mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let revision = shared.index.floor();
        if self.checkpoints.last().is_some_and(|last| *last >= revision) || revision == 0 {
            return Ok(());
        }
        let logged = shared.counters.logged_bytes.load(Ordering::Relaxed);
        let id = CheckpointId { store: shared.store, revision };
        let give_up = || shared.is_closing.load(Ordering::Relaxed) || shared.check().is_err();
        let written = checkpoint::write(shared.disk.as_ref(), &shared.index, id, &give_up);
        if let Err(error) = written {
            shared.counters.failed_checkpoints.fetch_add(1, Ordering::Relaxed);
            return Err(error);
        }
        self.checkpoints.push(revision);
        self.logged_at_checkpoint = logged;
        shared.counters.checkpoint.store(revision, Ordering::Relaxed);
        self.remove_replaced()
    }

    /// Keeps the two newest checkpoints, and the log since the older one. With only one there is no
    /// second way to what it holds but the log from its beginning.
    fn remove_replaced(&mut self) -> io::Result<()> {
        let disk = self.shared.disk.as_ref();
        let Some(older) = self.checkpoints.len().checked_sub(2) else { return Ok(()) };
        self.checkpoints.drain(..older);
        for name in disk.list()? {
            let Some(revision) = checkpoint_of(&name) else { continue };
            if !self.checkpoints.contains(&revision) {
                disk.remove(&checkpoint_name(revision))?;
            }
        }
        let left = log::remove_before(disk, self.checkpoints[0])?;
        self.shared.counters.segments.store(left as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Says that the thread has ended, also if it panicked.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let reason = "the housekeeping thread failed".to_owned();
            self.0.queue.refuse_all(&reason);
            self.0.stop(Stop::Failed(reason));
        }
        self.0.ended.send_modify(|ended| *ended += 1);
    }
}
