//! The order in which steps were decided. Each is recorded when it has ended, so one may come late. One with an effect is
//! recorded before that, too: if its process died, that is all that is known of it.

use super::LONGEST_STEP;
use interlock_kernel::{End, Record};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Steps that an earlier one may still follow.
#[derive(Default)]
pub(super) struct Order {
    waiting: BTreeMap<(Timestamp, u64), Record>,
    /// Tells apart what was decided at one time, in the order in which it came.
    came: u64,
    /// What was decided before is not put in order any more.
    begins: Option<Timestamp>,
}

impl Order {
    /// Takes a step; those that no earlier one can follow any more, in order.
    pub(super) fn put(&mut self, record: Record) -> Vec<Record> {
        if self.begins.is_some_and(|begins| record.time < begins) {
            return Vec::new();
        }
        match self.under_way(&record) {
            Some(waiting) => *waiting = record,
            None => {
                self.came += 1;
                self.waiting.insert((record.time, self.came), record);
            }
        }
        let newest = self.waiting.last_key_value().map(|((time, _), _)| *time);
        let until = newest.and_then(|newest| newest.checked_sub(LONGEST_STEP).ok());
        until.map(|until| self.until(until)).unwrap_or_default()
    }

    /// The step whose end this is, where it was when it was under way.
    fn under_way(&mut self, ended: &Record) -> Option<&mut Record> {
        let decided_then = self.waiting.range_mut((ended.time, 0)..=(ended.time, u64::MAX));
        let is_it = |waiting: &&mut Record| {
            waiting.end == End::UnderWay
                && waiting.controller == ended.controller
                && waiting.subject == ended.subject
                && waiting.at == ended.at
        };
        decided_then.map(|(_, waiting)| waiting).find(is_it)
    }

    /// Those that were decided before a time.
    pub(super) fn until(&mut self, time: Timestamp) -> Vec<Record> {
        let later = self.waiting.split_off(&(time, 0));
        std::mem::replace(&mut self.waiting, later).into_values().collect()
    }

    /// Those that were decided up to a time; those after it are left out.
    pub(super) fn leave_out_after(&mut self, time: Timestamp) -> Vec<Record> {
        self.waiting.retain(|(decided, _), _| *decided <= time);
        self.all()
    }

    /// Takes only steps from now on that were decided at a time or later.
    pub(super) fn begin_at(&mut self, time: Timestamp) {
        self.begins = self.begins.max(Some(time));
    }

    /// All.
    pub(super) fn all(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.waiting).into_values().collect()
    }
}
