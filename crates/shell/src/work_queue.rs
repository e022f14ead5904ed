//! The work queue of the kernel on the clock of this process: those who wait for a turn are woken.

use crate::metrics::Counts;
use interlock_kernel::{Limits, Queue, Subject};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

pub(crate) struct WorkQueue {
    queue: Mutex<Queue<Subject>>,
    changed: Notify,
    started: Instant,
    counts: Arc<Counts>,
}

impl WorkQueue {
    pub(crate) fn new(limits: Limits, counts: Arc<Counts>) -> Self {
        WorkQueue {
            queue: Mutex::new(Queue::new(limits)),
            changed: Notify::new(),
            started: Instant::now(),
            counts,
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<Subject>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the queue. If there is a turn more, or an earlier one, one of those who wait is woken:
    /// all of them would find that there is something for one.
    fn change<T>(&self, change: impl FnOnce(&mut Queue<Subject>, Duration) -> T) -> T {
        let mut queue = self.queue();
        let (ready, wakes_at) = (queue.ready(), queue.wakes_at());
        let changed = change(&mut queue, self.started.elapsed());
        self.counts.queued(queue.ready() as i64 - ready as i64);
        let is_earlier = queue.wakes_at().is_some_and(|at| wakes_at.is_none_or(|was| at < was));
        let is_news = queue.ready() > ready || is_earlier;
        drop(queue);
        if is_news {
            self.changed.notify_one();
        }
        changed
    }

    pub(crate) fn add(&self, subject: Subject) {
        self.change(|queue, _| queue.add(subject));
    }

    pub(crate) fn add_after(&self, subject: Subject, wait: Duration) {
        self.change(|queue, now| queue.add_after(subject, wait, now));
    }

    /// A turn within this time, unless it has one within another, longer one.
    pub(crate) fn add_unless_due(&self, subject: Subject, wait: Duration, enough: Duration) {
        self.change(|queue, now| queue.add_unless_due(subject, now + wait, now + enough));
    }

    pub(crate) fn failed(&self, subject: &Subject) -> Duration {
        self.change(|queue, now| queue.failed(subject, now))
    }

    pub(crate) fn succeeded(&self, subject: &Subject) {
        self.queue().succeeded(subject);
    }

    pub(crate) fn done(&self, subject: &Subject) {
        self.change(|queue, _| queue.done(subject));
    }

    /// Whether nothing is to be done now: no turn is under way and none is due.
    pub(crate) fn is_resting(&self) -> bool {
        let queue = self.queue();
        queue.ready() == 0 && queue.running() == 0
    }

    /// The next subject, once there is one.
    pub(crate) async fn next(&self) -> Subject {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed, even one before the wait below begins.
            changed.as_mut().enable();
            let wakes_at = {
                let mut queue = self.queue();
                let before = queue.ready();
                let next = queue.next(self.started.elapsed());
                self.counts.queued(queue.ready() as i64 - before as i64);
                let wakes_at = queue.wakes_at();
                if let Some(subject) = next {
                    // Whoever waits for a time may wait for this one: another has to wait for the
                    // next.
                    if wakes_at.is_some() {
                        self.changed.notify_one();
                    }
                    return subject;
                }
                wakes_at
            };
            match wakes_at {
                None => changed.await,
                Some(at) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(self.started + at) => {}
                },
            }
        }
    }
}

impl Drop for WorkQueue {
    fn drop(&mut self) {
        self.counts.queued(-(self.queue().ready() as i64));
    }
}
