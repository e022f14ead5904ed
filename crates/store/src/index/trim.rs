//! Dropping history: below the floor that all share, and below that of an owner who has too much.

use super::{Index, Order, Record, TableCell, TableState, writing};
use crate::Revision;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// How many changes are dropped while a table is locked.
const DROPPED_AT_ONCE: usize = 256;
/// The same for the order of all changes.
const ORDERED_AT_ONCE: usize = 8192;

impl Index {
    /// Moves the floor of all up, if it is up. What lies below it can no longer be read from now on.
    pub(crate) fn raise_floor(&self, floor: Revision) {
        self.shared_floor.fetch_max(floor, Ordering::AcqRel);
        self.floor.fetch_max(floor, Ordering::AcqRel);
    }

    /// Moves up the floors of those who have most history, until all of it takes no more than so
    /// many bytes, and drops what lies below.
    pub(crate) fn shrink(&self, bytes: u64) {
        let published = self.published();
        let mut over = self.owners.over(bytes);
        let mut floors = vec![0; over.len()];
        for change in &self.order().changes {
            if change.revision > published || over.iter().all(|(_, excess)| *excess == 0) {
                break;
            }
            let of = over.iter().position(|(owner, _)| std::ptr::eq(&**owner, &*change.owner));
            if let Some(of) = of.filter(|of| over[*of].1 > 0) {
                over[of].1 = over[of].1.saturating_sub(change.cost);
                floors[of] = change.revision;
            }
        }
        for ((owner, _), floor) in over.iter().zip(floors) {
            owner.raise_floor(floor);
            self.floor.fetch_max(floor, Ordering::AcqRel);
        }
        drop(over);
        self.trim();
    }

    /// Drops the history at or below the floors. Only one thread may do this, and only after they
    /// were raised.
    pub(crate) fn trim(&self) {
        let floors = Floors { shared: self.shared_floor(), highest: self.floor() };
        for table in self.tables() {
            while self.trim_front(&table, floors) {}
            self.trim_between(&table, floors);
        }
        while trim_order_front(&mut writing(&self.order), floors) {}
        trim_order_between(&mut writing(&self.order), floors);
        // A table that nobody needs leaves nothing behind: tables come and go with those who own
        // them.
        let mut tables = writing(&self.tables);
        tables.retain(|_, table| {
            let is_needed = || {
                let state = table.read();
                !state.rows.is_empty() || !state.changes.is_empty()
            };
            std::sync::Arc::strong_count(table) > 1 || is_needed()
        });
        if tables.capacity() > 4 * tables.len() + 64 {
            tables.shrink_to_fit();
        }
        drop(tables);
        self.owners.forget_empty(floors.shared);
    }

    /// Drops some of the oldest changes of a table; false if there is none to drop.
    fn trim_front(&self, table: &TableCell, floors: Floors) -> bool {
        let is_over = |state: &TableState| {
            state.changes.front().is_none_or(|record| !floors.has_passed_record(record))
        };
        if is_over(&table.read()) {
            return false;
        }
        let mut state = writing(&table.inner);
        let mut dropped = Vec::new();
        while dropped.len() < DROPPED_AT_ONCE && !is_over(&state) {
            let Some(record) = state.changes.pop_front() else { break };
            state.forget(&record, floors);
            dropped.push(record);
        }
        state.tidy(floors);
        drop(state);
        self.uncount(&dropped);
        true
    }

    /// Drops changes of owners whose floor is higher than that of others, from between those that
    /// are kept.
    fn trim_between(&self, table: &TableCell, floors: Floors) {
        let is_below = |record: &&Record| record.revision() <= floors.highest;
        let state = table.read();
        let mut old = state.changes.iter().take_while(is_below);
        if !old.any(|record| floors.has_passed_record(record)) {
            return;
        }
        drop(state);
        let mut state = writing(&table.inner);
        let mut dropped = Vec::new();
        let mut kept = VecDeque::with_capacity(state.changes.len());
        for record in std::mem::take(&mut state.changes) {
            if floors.has_passed_record(&record) {
                state.forget(&record, floors);
                dropped.push(record);
            } else {
                kept.push_back(record);
            }
        }
        state.changes = kept;
        state.tidy(floors);
        drop(state);
        self.uncount(&dropped);
    }

    /// The values go outside the lock.
    fn uncount(&self, dropped: &[Record]) {
        let mut bytes = 0;
        for record in dropped {
            bytes += record.cost();
            record.owner.drop_history(record.cost());
        }
        self.history_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Below what history is dropped.
#[derive(Clone, Copy)]
struct Floors {
    /// Of everybody.
    shared: Revision,
    /// Of the owner who keeps least.
    highest: Revision,
}

impl Floors {
    fn of_owner(self, floor: Revision) -> Revision {
        self.shared.max(floor)
    }

    fn has_passed_record(self, record: &Record) -> bool {
        record.revision() <= self.of_owner(record.owner.floor())
    }
}

impl TableState {
    fn forget(&mut self, record: &Record, floors: Floors) {
        self.rows.forget(&record.row, floors.of_owner(record.owner.floor()));
        let revision = record.revision();
        self.trimmed = self.trimmed.max(revision);
        if revision <= floors.shared {
            self.trimmed_of_all = self.trimmed_of_all.max(revision);
        } else {
            self.trimmed_of.insert(record.owner.name().into(), revision);
        }
    }

    fn tidy(&mut self, floors: Floors) {
        let newest = &mut self.trimmed_of_all;
        self.trimmed_of.retain(|_, revision| {
            let is_kept = *revision > floors.shared;
            if !is_kept {
                *newest = (*newest).max(*revision);
            }
            is_kept
        });
        if self.changes.capacity() > 4 * self.changes.len() + 64 {
            self.changes.shrink_to_fit();
        }
    }
}

fn trim_order_front(order: &mut Order, floors: Floors) -> bool {
    let mut dropped = Vec::new();
    while let Some(change) = order.changes.front()
        && dropped.len() < ORDERED_AT_ONCE
        && change.revision <= floors.of_owner(change.owner.floor())
    {
        order.trimmed = order.trimmed.max(change.revision);
        dropped.extend(order.changes.pop_front());
    }
    if order.changes.capacity() > 4 * order.changes.len() + 1024 {
        order.changes.shrink_to_fit();
    }
    !dropped.is_empty()
}

fn trim_order_between(order: &mut Order, floors: Floors) {
    let mut trimmed = order.trimmed;
    let old = order.changes.partition_point(|change| change.revision <= floors.highest);
    let is_dropped =
        |change: &super::Ordered| change.revision <= floors.of_owner(change.owner.floor());
    if !order.changes.range(..old).any(is_dropped) {
        return;
    }
    order.changes.retain(|change| {
        let is_kept = !is_dropped(change);
        if !is_kept {
            trimmed = trimmed.max(change.revision);
        }
        is_kept
    });
    order.trimmed = trimmed;
}
