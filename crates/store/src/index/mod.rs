//! The index: everything that is stored, with its recent history, in memory.
//!
//! Only the committer adds to it, and only what is durable; only the housekeeper takes old history
//! away. Readers pick the versions of a published revision, so they never see half of a batch.

mod read;
mod rows;

pub(crate) use rows::{Rows, Version};

use crate::{Change, Key, Revision, Table, Value, Versioned};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::Notify;

/// What a change costs in memory besides the value that it superseded: its record, its place in the
/// order of all changes, and the superseded version.
const CHANGE_OVERHEAD: u64 = 128;
/// How many changes are dropped while a table is locked.
const DROPPED_AT_ONCE: usize = 256;

/// All tables.
pub(crate) struct Index {
    tables: RwLock<HashMap<Table, Arc<TableCell>>>,
    order: RwLock<Order>,
    /// Rung when anything at all was published.
    pub(crate) anything: Notify,
    published: AtomicU64,
    floor: AtomicU64,
    keys: AtomicU64,
    live_bytes: AtomicU64,
    history_bytes: AtomicU64,
}

/// One table, for as long as anyone needs it.
pub(crate) struct TableCell {
    /// Its name.
    pub(crate) name: Table,
    inner: RwLock<TableState>,
    /// Rung when a change of this table was published.
    pub(crate) changed: Notify,
}

/// The rows of a table, and what happened to them since the floor.
#[derive(Default)]
pub(crate) struct TableState {
    /// The rows.
    pub(crate) rows: Rows,
    /// In order of revision, at most one for each.
    pub(crate) changes: VecDeque<Record>,
    /// The revision of the last change that is no longer listed.
    pub(crate) trimmed: Revision,
    /// The revision of the last change that was made.
    pub(crate) last: Revision,
}

/// One row, before and after one revision.
pub(crate) struct Record {
    pub(crate) row: Arc<str>,
    pub(crate) before: Version,
    pub(crate) after: Version,
}

impl Record {
    /// When it happened.
    pub(crate) fn revision(&self) -> Revision {
        self.after.modified
    }

    fn cost(&self) -> u64 {
        CHANGE_OVERHEAD + self.before.bytes() as u64
    }

    /// The change as a watcher gets it.
    pub(crate) fn change(&self, table: &Table) -> Change {
        let key = Key { table: Arc::clone(table), row: Arc::clone(&self.row) };
        Change {
            revision: self.revision(),
            before: versioned(&key, &self.before),
            after: versioned(&key, &self.after),
            key,
        }
    }
}

/// A version as a reader gets it; none if there is no value.
pub(crate) fn versioned(key: &Key, version: &Version) -> Option<Versioned> {
    let value = Arc::clone(version.value.as_ref()?);
    let (created, modified) = (version.created, version.modified);
    Some(Versioned { key: key.clone(), created, modified, value })
}

/// All changes of all tables in order, for those who watch everything. A transaction has one for
/// each table.
#[derive(Default)]
pub(crate) struct Order {
    /// Which table changed when.
    pub(crate) changes: VecDeque<Ordered>,
    /// The revision of the last change that is no longer listed.
    pub(crate) trimmed: Revision,
}

/// That a table changed.
pub(crate) struct Ordered {
    pub(crate) revision: Revision,
    pub(crate) table: Arc<TableCell>,
    cost: u64,
}

/// A change that is durable and is to be applied, or that will be.
pub(crate) struct Planned {
    pub(crate) table: Arc<TableCell>,
    pub(crate) row: Arc<str>,
    pub(crate) version: Version,
}

// A thread that panicked with a lock has stopped the store; nobody reads what it left behind.
fn reading<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn writing<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl TableCell {
    /// Looks at the table. Not for long: the committer waits.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, TableState> {
        reading(&self.inner)
    }
}

impl Index {
    /// An empty index at a revision.
    pub(crate) fn at(revision: Revision) -> Self {
        Index {
            tables: RwLock::default(),
            order: RwLock::new(Order { trimmed: revision, ..Order::default() }),
            anything: Notify::new(),
            published: AtomicU64::new(revision),
            floor: AtomicU64::new(revision),
            keys: AtomicU64::new(0),
            live_bytes: AtomicU64::new(0),
            history_bytes: AtomicU64::new(0),
        }
    }

    /// The newest revision that anyone may see.
    pub(crate) fn published(&self) -> Revision {
        self.published.load(Ordering::Acquire)
    }

    /// The oldest revision that can be read.
    pub(crate) fn floor(&self) -> Revision {
        self.floor.load(Ordering::Acquire)
    }

    /// How many keys there are.
    pub(crate) fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    /// The bytes of all rows and their newest values.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes.load(Ordering::Relaxed)
    }

    /// The memory that history takes, about.
    pub(crate) fn history_bytes(&self) -> u64 {
        self.history_bytes.load(Ordering::Relaxed)
    }

    /// All changes of all tables. Not for long: the committer waits.
    pub(crate) fn order(&self) -> RwLockReadGuard<'_, Order> {
        reading(&self.order)
    }

    /// A table, if it is known.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<TableCell>> {
        reading(&self.tables).get(name).cloned()
    }

    /// A table, made if need be.
    pub(crate) fn table(&self, name: &str) -> Arc<TableCell> {
        if let Some(cell) = self.find(name) {
            return cell;
        }
        let mut tables = writing(&self.tables);
        if let Some(cell) = tables.get(name) {
            return Arc::clone(cell);
        }
        let name: Table = Arc::from(name);
        let cell = Arc::new(TableCell {
            name: Arc::clone(&name),
            inner: RwLock::default(),
            changed: Notify::new(),
        });
        tables.insert(name, Arc::clone(&cell));
        cell
    }

    /// All tables, by name.
    pub(crate) fn tables(&self) -> Vec<Arc<TableCell>> {
        let mut tables: Vec<_> = reading(&self.tables).values().cloned().collect();
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        tables
    }

    /// Adds rows from a checkpoint. They come in order; says whether they did.
    pub(crate) fn load(
        &self,
        table: &TableCell,
        rows: impl Iterator<Item = (Arc<str>, Version)>,
    ) -> bool {
        let mut state = writing(&table.inner);
        let (mut keys, mut bytes) = (0, 0);
        for (row, version) in rows {
            keys += 1;
            bytes += (row.len() + version.bytes()) as u64;
            state.last = state.last.max(version.modified);
            if !state.rows.append(row, version) {
                return false;
            }
        }
        self.keys.fetch_add(keys, Ordering::Relaxed);
        self.live_bytes.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// Applies changes, which must be durable, in order. Nobody sees them before they are
    /// published.
    pub(crate) fn apply(&self, planned: Vec<Planned>) {
        let mut ordered = Vec::with_capacity(planned.len());
        for Planned { table, row, version } in planned {
            let revision = version.modified;
            let cost = self.apply_one(&table, row, version);
            ordered.push(Ordered { revision, table, cost });
        }
        writing(&self.order).changes.extend(ordered);
    }

    fn apply_one(&self, table: &TableCell, row: Arc<str>, version: Version) -> u64 {
        let new_bytes = version.bytes();
        let (revision, is_live) = (version.modified, version.value.is_some());
        let mut state = writing(&table.inner);
        let (before, row) = state.rows.put(row, version.clone());
        let row_bytes = row.len();
        let (was_live, old_bytes) = (before.value.is_some(), before.bytes());
        let record = Record { row, before, after: version };
        let cost = record.cost();
        state.changes.push_back(record);
        state.last = revision;
        drop(state);
        let size =
            |is_live: bool, bytes: usize| if is_live { (row_bytes + bytes) as u64 } else { 0 };
        self.live_bytes.fetch_add(size(is_live, new_bytes), Ordering::Relaxed);
        self.live_bytes.fetch_sub(size(was_live, old_bytes), Ordering::Relaxed);
        self.keys.fetch_add(u64::from(is_live), Ordering::Relaxed);
        self.keys.fetch_sub(u64::from(was_live), Ordering::Relaxed);
        self.history_bytes.fetch_add(cost, Ordering::Relaxed);
        cost
    }

    /// Lets everyone see what was applied, up to a revision.
    pub(crate) fn publish(&self, revision: Revision) {
        self.published.store(revision, Ordering::Release);
    }

    /// Moves the floor up, if it is up. What lies below it can no longer be read from now on.
    pub(crate) fn raise_floor(&self, floor: Revision) {
        self.floor.fetch_max(floor, Ordering::AcqRel);
    }

    /// The lowest floor above which the history takes no more than so many bytes.
    pub(crate) fn floor_for(&self, bytes: u64) -> Revision {
        let published = self.published();
        let mut over = self.history_bytes().saturating_sub(bytes);
        for change in &self.order().changes {
            if over == 0 || change.revision > published {
                return change.revision.saturating_sub(1).min(published);
            }
            over = over.saturating_sub(change.cost);
        }
        published
    }

    /// Drops the history at or below the floor. Only one thread may do this, and only after
    /// `raise_floor`.
    pub(crate) fn trim(&self) {
        let floor = self.floor();
        for table in self.tables() {
            while self.trim_some(&table, floor) {}
        }
        loop {
            let mut order = writing(&self.order);
            let count = order.changes.partition_point(|change| change.revision <= floor);
            let Some(count) = count.checked_sub(1).map(|last| last.min(8191) + 1) else { break };
            order.trimmed = order.changes[count - 1].revision;
            let dropped: Vec<_> = order.changes.drain(..count).collect();
            if order.changes.capacity() > 4 * order.changes.len() + 1024 {
                order.changes.shrink_to_fit();
            }
            drop(order);
            drop(dropped);
        }
        // A table that nobody needs leaves nothing behind: tables come and go with those who own
        // them.
        let mut tables = writing(&self.tables);
        tables.retain(|_, table| {
            let is_needed = || {
                let state = table.read();
                !state.rows.is_empty() || !state.changes.is_empty()
            };
            Arc::strong_count(table) > 1 || is_needed()
        });
        if tables.capacity() > 4 * tables.len() + 64 {
            tables.shrink_to_fit();
        }
    }

    fn trim_some(&self, table: &TableCell, floor: Revision) -> bool {
        let is_over = |state: &TableState| {
            state.changes.front().is_none_or(|record| record.revision() > floor)
        };
        if is_over(&table.read()) {
            return false;
        }
        let mut state = writing(&table.inner);
        let mut dropped = Vec::new();
        while dropped.len() < DROPPED_AT_ONCE && !is_over(&state) {
            let Some(record) = state.changes.pop_front() else { break };
            state.rows.forget(&record.row, floor);
            state.trimmed = record.revision();
            dropped.push(record);
        }
        if state.changes.capacity() > 4 * state.changes.len() + 64 {
            state.changes.shrink_to_fit();
        }
        drop(state);
        // The values go outside the lock.
        let cost = dropped.iter().map(Record::cost).sum();
        self.history_bytes.fetch_sub(cost, Ordering::Relaxed);
        true
    }

    /// The newest version of a key. For the committer, for whom all that was applied is durable.
    pub(crate) fn newest(&self, key: &Key) -> Version {
        let Some(table) = self.find(&key.table) else { return Version::ABSENT };
        let state = table.read();
        state.rows.get(&key.row).map_or(Version::ABSENT, |entry| entry.newest.clone())
    }
}

/// A value for the index.
pub(crate) fn shared_value(bytes: impl Into<Box<[u8]>>) -> Arc<Value> {
    Arc::new(Value::new(bytes))
}
