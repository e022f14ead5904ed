//! The queue before the committer: bounded, and fair between groups of writers.

use crate::{CommitError, Refusal, Revision, Transaction};
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// What the writer awaits.
pub(crate) type Answer = Result<Revision, CommitError>;

/// A transaction that waits, and who waits for it.
pub(crate) struct Pending {
    pub(crate) transaction: Transaction,
    pub(crate) bytes: usize,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// How much a batch may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimit {
    pub(crate) transactions: usize,
    pub(crate) bytes: usize,
}

/// What waits, in one line for each group of writers.
pub(crate) struct Queue {
    lines: Mutex<Lines>,
    arrived: Condvar,
    room: usize,
}

#[derive(Default)]
struct Lines {
    groups: HashMap<u64, VecDeque<Pending>>,
    turns: VecDeque<u64>,
    waiting: usize,
    closed: Option<String>,
    is_committer_idle: bool,
}

impl Queue {
    /// A queue with room for so many.
    pub(crate) fn new(room: usize) -> Self {
        Queue { lines: Mutex::default(), arrived: Condvar::new(), room: room.max(1) }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the line of its group. A group may take half of the room, so that others get in.
    pub(crate) fn push(&self, pending: Pending) -> Result<(), Refusal> {
        let group = pending.transaction.fairness;
        let mut lines = self.lines();
        if let Some(reason) = &lines.closed {
            return Err(Refusal::Stopped(reason.clone()));
        }
        let of_group = lines.groups.get(&group).map_or(0, VecDeque::len);
        if lines.waiting >= self.room || of_group > self.room / 2 {
            return Err(Refusal::Busy);
        }
        let Lines { groups, turns, .. } = &mut *lines;
        let line = groups.entry(group).or_default();
        if line.is_empty() {
            turns.push_back(group);
        }
        line.push_back(pending);
        lines.waiting += 1;
        let wake = std::mem::take(&mut lines.is_committer_idle);
        drop(lines);
        if wake {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// All that waits, up to the limit, in turn from each group. Waits until there is something;
    /// none once the queue is closed and empty.
    pub(crate) fn take(&self, limit: BatchLimit) -> Option<Vec<Pending>> {
        let mut lines = self.lines();
        while lines.waiting == 0 {
            if lines.closed.is_some() {
                return None;
            }
            lines.is_committer_idle = true;
            lines = self.arrived.wait(lines).unwrap_or_else(PoisonError::into_inner);
        }
        Some(lines.take(limit))
    }

    /// Lets nobody in any more. What waits already is still taken.
    pub(crate) fn close(&self, reason: &str) {
        self.lines().closed.get_or_insert_with(|| reason.to_owned());
        self.arrived.notify_all();
    }

    /// Lets nobody in any more, and sends away all who wait.
    pub(crate) fn refuse_all(&self, reason: &str) {
        self.close(reason);
        let everything = BatchLimit { transactions: usize::MAX, bytes: usize::MAX };
        let sent_away = self.lines().take(everything);
        for pending in sent_away {
            let refusal = Refusal::Stopped(reason.to_owned());
            // Whoever has gone away need not be informed.
            let _ = pending.answer.send(Err(CommitError::Refused(refusal)));
        }
    }
}

impl Lines {
    fn take(&mut self, limit: BatchLimit) -> Vec<Pending> {
        let mut batch = Vec::with_capacity(self.waiting.min(limit.transactions));
        let mut bytes = 0_usize;
        while batch.len() < limit.transactions
            && let Some(group) = self.turns.pop_front()
        {
            let line = self.groups.entry(group).or_default();
            let Some(pending) = line.pop_front() else { continue };
            if !batch.is_empty() && bytes.saturating_add(pending.bytes) > limit.bytes {
                line.push_front(pending);
                self.turns.push_front(group);
                break;
            }
            bytes = bytes.saturating_add(pending.bytes);
            if line.is_empty() {
                self.groups.remove(&group);
            } else {
                self.turns.push_back(group);
            }
            batch.push(pending);
        }
        self.waiting -= batch.len();
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: BatchLimit = BatchLimit { transactions: 4, bytes: 100 };

    fn pending(fairness: u64, bytes: usize) -> Pending {
        let transaction = Transaction { fairness, ..Transaction::default() };
        Pending { transaction, bytes, answer: oneshot::channel().0 }
    }

    fn taken(queue: &Queue) -> Vec<(u64, usize)> {
        let batch = queue.take(LIMIT).expect("something waits");
        batch.iter().map(|pending| (pending.transaction.fairness, pending.bytes)).collect()
    }

    #[test]
    fn a_group_that_floods_the_queue_gets_its_turn_and_no_more() {
        let queue = Queue::new(100);
        for bytes in 1..=5 {
            queue.push(pending(1, bytes)).expect("there is room");
        }
        queue.push(pending(2, 10)).expect("there is room");
        queue.push(pending(3, 20)).expect("there is room");
        assert_eq!(taken(&queue), [(1, 1), (2, 10), (3, 20), (1, 2)]);
        assert_eq!(taken(&queue), [(1, 3), (1, 4), (1, 5)]);
    }

    #[test]
    fn a_group_cannot_take_all_the_room() {
        let queue = Queue::new(10);
        let accepted = (0..20).filter(|_| queue.push(pending(1, 1)).is_ok()).count();
        assert!(accepted < 10);
        queue.push(pending(2, 1)).expect("there is room for others");
    }

    #[test]
    fn a_full_queue_refuses() {
        let queue = Queue::new(4);
        let refused = (0..9).filter_map(|group| queue.push(pending(group, 1)).err()).count();
        assert_eq!(refused, 5);
    }

    #[test]
    fn a_batch_ends_before_it_is_too_large_but_is_never_empty() {
        let queue = Queue::new(10);
        for bytes in [500, 60, 60] {
            queue.push(pending(1, bytes)).expect("there is room");
        }
        assert_eq!(taken(&queue), [(1, 500)]);
        assert_eq!(taken(&queue), [(1, 60)]);
        assert_eq!(taken(&queue), [(1, 60)]);
    }

    #[test]
    fn a_closed_queue_is_emptied_and_then_ends() {
        let queue = Queue::new(10);
        queue.push(pending(1, 1)).expect("there is room");
        queue.close("closing");
        assert_eq!(queue.push(pending(1, 1)), Err(Refusal::Stopped("closing".to_owned())));
        assert_eq!(taken(&queue).len(), 1);
        assert!(queue.take(LIMIT).is_none());
    }
}
