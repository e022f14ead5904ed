//! The index: everything that is stored, with its recent history, in memory.
//!
//! Only the committer adds to it, and only what is durable; only the housekeeper takes old history
//! away. Readers pick the versions of a published revision, so they never see half of a batch.

mod owners;
mod read;
mod rows;
mod trim;

pub(crate) use owners::owner_of_range;
pub(crate) use rows::{Rows, Version};

use crate::{Change, Key, KeyRange, Revision, Table, Value, Versioned};
use owners::{Owner, Owners, owner_of};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::Notify;

/// What a change costs in memory besides the value that it superseded: its record, its place in the
/// order of all changes, and the superseded version.
const CHANGE_OVERHEAD: u64 = 128;

/// All tables.
pub(crate) struct Index {
    tables: RwLock<HashMap<Table, Arc<TableCell>>>,
    order: RwLock<Order>,
    /// Rung when anything at all was published.
    pub(crate) anything: Notify,
    owners: Owners,
    published: AtomicU64,
    /// At and above this, everything can be read.
    floor: AtomicU64,
    /// Below this, nothing can be read. Between the two, it depends on the owner.
    shared_floor: AtomicU64,
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
    /// The revision of the last change that is no longer listed, whoever made it.
    pub(crate) trimmed: Revision,
    /// The same for the changes that everybody has lost.
    trimmed_of_all: Revision,
    /// The same for the changes that an owner has lost beyond that.
    trimmed_of: HashMap<Box<str>, Revision>,
    /// The revision of the last change that was made.
    pub(crate) last: Revision,
}

impl TableState {
    /// The revision of the last change in a range that is no longer listed; or a later one, where the
    /// range is of more than one owner.
    pub(crate) fn trimmed_in(&self, range: &KeyRange) -> Revision {
        match owner_of_range(range) {
            None => self.trimmed,
            Some(owner) => {
                self.trimmed_of_all.max(self.trimmed_of.get(owner).copied().unwrap_or(0))
            }
        }
    }
}

/// One row, before and after one revision.
pub(crate) struct Record {
    pub(crate) row: Arc<str>,
    owner: Arc<Owner>,
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
    owner: Arc<Owner>,
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
            owners: Owners::default(),
            published: AtomicU64::new(revision),
            floor: AtomicU64::new(revision),
            shared_floor: AtomicU64::new(revision),
            keys: AtomicU64::new(0),
            live_bytes: AtomicU64::new(0),
            history_bytes: AtomicU64::new(0),
        }
    }

    /// The newest revision that anyone may see.
    pub(crate) fn published(&self) -> Revision {
        self.published.load(Ordering::Acquire)
    }

    /// The oldest revision at which everything can be read.
    pub(crate) fn floor(&self) -> Revision {
        self.floor.load(Ordering::Acquire)
    }

    /// The revision below which nothing can be read.
    fn shared_floor(&self) -> Revision {
        self.shared_floor.load(Ordering::Acquire)
    }

    /// The oldest revision at which a range can be read. It is lower than the floor where the range is
    /// of one owner who has kept more history than others.
    pub(crate) fn floor_of(&self, range: &KeyRange) -> Revision {
        let Some(owner) = owner_of_range(range) else { return self.floor() };
        let of_owner = self.owners.find(owner).map_or(0, |owner| owner.floor());
        // Read last: an owner is forgotten only when it has no floor of its own above this one.
        self.shared_floor().max(of_owner)
    }

    /// The bytes of all rows of an owner and their newest values.
    pub(crate) fn live_bytes_of(&self, owner: &str) -> u64 {
        self.owners.find(owner).map_or(0, |owner| owner.live_bytes())
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
        let mut owner = self.owners.of("");
        for (row, version) in rows {
            keys += 1;
            let size = (row.len() + version.bytes()) as u64;
            bytes += size;
            // They come in order: mostly it is the same one.
            if owner.name() != owner_of(&row) {
                owner = self.owners.of(&row);
            }
            owner.count_live(size, 0);
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
            let (owner, cost) = self.apply_one(&table, row, version);
            ordered.push(Ordered { revision, table, owner, cost });
        }
        writing(&self.order).changes.extend(ordered);
    }

    fn apply_one(&self, table: &TableCell, row: Arc<str>, version: Version) -> (Arc<Owner>, u64) {
        let owner = self.owners.of(&row);
        let new_bytes = version.bytes();
        let (revision, is_live) = (version.modified, version.value.is_some());
        let mut state = writing(&table.inner);
        let (before, row) = state.rows.put(row, version.clone());
        let row_bytes = row.len();
        let (was_live, old_bytes) = (before.value.is_some(), before.bytes());
        let record = Record { row, owner: Arc::clone(&owner), before, after: version };
        let cost = record.cost();
        state.changes.push_back(record);
        state.last = revision;
        drop(state);
        let size =
            |is_live: bool, bytes: usize| if is_live { (row_bytes + bytes) as u64 } else { 0 };
        let (live_after, live_before) = (size(is_live, new_bytes), size(was_live, old_bytes));
        self.live_bytes.fetch_add(live_after, Ordering::Relaxed);
        self.live_bytes.fetch_sub(live_before, Ordering::Relaxed);
        owner.count_live(live_after, live_before);
        owner.add_history(cost);
        self.keys.fetch_add(u64::from(is_live), Ordering::Relaxed);
        self.keys.fetch_sub(u64::from(was_live), Ordering::Relaxed);
        self.history_bytes.fetch_add(cost, Ordering::Relaxed);
        (owner, cost)
    }

    /// Lets everyone see what was applied, up to a revision.
    pub(crate) fn publish(&self, revision: Revision) {
        self.published.store(revision, Ordering::Release);
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
