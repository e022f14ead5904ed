//! Watches: cursors into the list of changes of one table, or of all.

use crate::index::TableCell;
use crate::shared::Shared;
use crate::{Batch, Change, Changes, KeyRange, ReadError, Revision};
use std::fmt;
use std::sync::Arc;

/// No batch has more changes, except that a transaction is not divided.
const MOST_CHANGES: usize = 1024;
/// Nor more bytes, except that one change may have as many as it likes: a slow watcher keeps what it was
/// given from being forgotten.
const MOST_BYTES: usize = 1 << 20;
/// How many changes are read while a table is locked.
const READ_AT_ONCE: usize = 4096;

/// A watch of the embedded store: a place in its history. It holds no changes, so a slow watcher
/// costs nothing; once what it has not seen is compacted, it gets an error.
pub struct Cursor {
    shared: Arc<Shared>,
    range: KeyRange,
    source: Source,
    seen: Revision,
}

impl fmt::Debug for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Cursor");
        shown.field("range", &self.range).field("seen", &self.seen).finish_non_exhaustive()
    }
}

enum Source {
    Table(Arc<TableCell>),
    Everything,
}

impl Cursor {
    /// A cursor after a revision, which must neither be compacted nor in the future.
    pub(crate) fn new(
        shared: Arc<Shared>,
        range: KeyRange,
        after: Revision,
    ) -> Result<Self, ReadError> {
        shared.check()?;
        let source = match &range.table {
            Some(name) => Source::Table(shared.index.table(name)),
            None => Source::Everything,
        };
        let newest = shared.index.published();
        if after > newest {
            return Err(ReadError::NotYet { newest });
        }
        // Only now, when the table cannot go away any more.
        let floor = shared.index.floor_of(&range);
        if after < floor {
            return Err(ReadError::Compacted { floor });
        }
        Ok(Cursor { shared, range, source, seen: after })
    }

    /// How far the watcher has seen: the newest revision if no change in its range waits to be
    /// handed out, else that of the last batch. Never waits; for the progress marks of an idle
    /// watch.
    pub fn progress(&mut self) -> Revision {
        // An error will be reported by `next`.
        while let Ok(Look { seen, changes, is_at_end }) = self.look(1) {
            if !changes.is_empty() {
                break;
            }
            self.seen = seen;
            if is_at_end {
                break;
            }
        }
        self.seen
    }

    /// What comes next, if it is there already.
    fn take(&mut self) -> Result<Option<Batch>, ReadError> {
        loop {
            self.shared.check()?;
            let Look { changes, seen, is_at_end } = self.look(MOST_CHANGES)?;
            self.seen = seen;
            if !changes.is_empty() {
                return Ok(Some(Batch { changes, seen }));
            }
            if is_at_end {
                return Ok(None);
            }
        }
    }

    fn look(&self, most: usize) -> Result<Look, ReadError> {
        match &self.source {
            Source::Table(table) => self.look_at_table(table, most),
            Source::Everything => self.look_at_everything(most),
        }
    }

    fn compacted(&self) -> ReadError {
        ReadError::Compacted { floor: self.shared.index.floor_of(&self.range) }
    }

    fn is_wanted(&self, row: &str) -> bool {
        row.starts_with(&*self.range.prefix)
            && self.range.after.as_deref().is_none_or(|after| row > after)
    }

    fn look_at_table(&self, table: &TableCell, most: usize) -> Result<Look, ReadError> {
        // All that is published was applied before, so it is in the list that is read afterwards.
        let newest = self.shared.index.published();
        let state = table.read();
        if self.seen < state.trimmed_in(&self.range) {
            return Err(self.compacted());
        }
        let mut look = Look { changes: Vec::new(), seen: self.seen, is_at_end: false };
        let first = state.changes.partition_point(|record| record.revision() <= self.seen);
        let mut bytes = 0;
        for record in state.changes.range(first..).take(READ_AT_ONCE) {
            if record.revision() > newest {
                break;
            }
            if look.changes.len() == most || bytes >= MOST_BYTES {
                return Ok(look);
            }
            look.seen = record.revision();
            if self.is_wanted(&record.row) {
                bytes += record.before.bytes() + record.after.bytes();
                look.changes.push(record.change(&table.name));
            }
        }
        let is_more = |last: Revision| state.changes.len() - first > READ_AT_ONCE && last < newest;
        if !is_more(look.seen) {
            look.seen = newest.max(look.seen);
            look.is_at_end = true;
        }
        Ok(look)
    }

    fn look_at_everything(&self, most: usize) -> Result<Look, ReadError> {
        let newest = self.shared.index.published();
        let mut look = Look { changes: Vec::new(), seen: newest.max(self.seen), is_at_end: true };
        let order = self.shared.index.order();
        if self.seen < order.trimmed {
            return Err(self.compacted());
        }
        let first = order.changes.partition_point(|change| change.revision <= self.seen);
        let mut found: Vec<(Revision, Arc<TableCell>)> = Vec::new();
        for change in order.changes.range(first..) {
            if change.revision > newest {
                break;
            }
            if let Some((last, _)) = found.last()
                && found.len() >= most
                && *last < change.revision
            {
                look.seen = *last;
                look.is_at_end = false;
                break;
            }
            found.push((change.revision, Arc::clone(&change.table)));
        }
        drop(order);
        for (revision, table) in found {
            look.changes.extend(self.change_of(&table, revision)?);
        }
        Ok(look)
    }

    /// What happened to a table at a revision, if it is wanted.
    fn change_of(
        &self,
        table: &TableCell,
        revision: Revision,
    ) -> Result<Option<Change>, ReadError> {
        let state = table.read();
        let at = state.changes.binary_search_by_key(&revision, |record| record.revision());
        let record =
            at.ok().and_then(|at| state.changes.get(at)).ok_or_else(|| self.compacted())?;
        Ok(self.is_wanted(&record.row).then(|| record.change(&table.name)))
    }
}

/// What lies after a cursor.
struct Look {
    changes: Vec<Change>,
    // All up to here was read.
    seen: Revision,
    // Whether that is all there is.
    is_at_end: bool,
}

impl Changes for Cursor {
    /// Waits for changes in the range, so a batch is never empty; `progress` says how far an idle
    /// watch has seen.
    async fn next(&mut self) -> Result<Batch, ReadError> {
        loop {
            let shared = Arc::clone(&self.shared);
            let table = match &self.source {
                Source::Table(table) => Some(Arc::clone(table)),
                Source::Everything => None,
            };
            let bell = table.as_ref().map_or(&shared.index.anything, |table| &table.changed);
            // Made before looking, so that what is published in between rings it.
            let rung = bell.notified();
            if let Some(batch) = self.take()? {
                return Ok(batch);
            }
            rung.await;
        }
    }
}
