//! Long work, on threads of its own.

use super::error::{Failure, Reason};
use super::progress::{Cancellation, Counters};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tracing::error;

/// One piece of long work: how far it is, and how it can be given up.
#[derive(Debug, Default)]
pub(super) struct Job {
    pub(super) counters: Counters,
    pub(super) cancellation: Cancellation,
}

/// What became of a job.
#[derive(Clone, Debug)]
pub(super) enum Stage<T> {
    Runs(Arc<Job>),
    Done(T),
    Failed(Failure),
}

/// A few threads that are there while there is work for them.
#[derive(Debug)]
pub(super) struct Lane {
    most: usize,
    queue: Mutex<Queue>,
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    threads: usize,
}

type Work = Box<dyn FnOnce() + Send>;

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} waiting, {} threads", self.waiting.len(), self.threads)
    }
}

impl Lane {
    pub(super) fn new(most: usize) -> Arc<Lane> {
        Arc::new(Lane { most, queue: Mutex::default(), idle: Condvar::new() })
    }

    /// Does this work as soon as a thread is free. It fails only if there can be no thread.
    pub(super) fn run(self: &Arc<Lane>, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut queue = self.queue();
        queue.waiting.push_back(Box::new(work));
        if queue.threads >= self.most {
            return Ok(());
        }
        let lane = Arc::clone(self);
        let spawned =
            std::thread::Builder::new().name("volumes".to_owned()).spawn(move || lane.work());
        match spawned {
            Ok(_) => queue.threads += 1,
            Err(error) if queue.threads == 0 => {
                queue.waiting.pop_back();
                return Err(error);
            }
            // Those that there are will come to it.
            Err(_) => {}
        }
        Ok(())
    }

    /// Waits until all is done.
    pub(super) fn wait(&self) {
        let mut queue = self.queue();
        while queue.threads > 0 {
            queue = self.idle.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work(&self) {
        while let Some(work) = self.next() {
            // A mistake in one piece of work must not stop the others.
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                error!("work on a volume panicked");
            }
        }
    }

    fn next(&self) -> Option<Work> {
        let mut queue = self.queue();
        let next = queue.waiting.pop_front();
        if next.is_none() {
            queue.threads -= 1;
            self.idle.notify_all();
        }
        next
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a job that panicked came to.
pub(super) fn panicked() -> Failure {
    Failure::new(Reason::SnapshotFailed, "a mistake in the program ended it: see the log")
}
