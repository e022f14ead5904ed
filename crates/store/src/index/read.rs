//! Reading the index: the rows of a range at a revision.

use super::{Index, TableCell, TableState, Version, versioned};
use crate::{Key, KeyRange, Page, ReadError, Revision};
use std::sync::Arc;

/// How many rows are read while the table is locked.
const READ_AT_ONCE: usize = 512;

impl Index {
    /// The rows of a range at a revision, or at the newest.
    pub(crate) fn range(
        &self,
        range: &KeyRange,
        at: Option<Revision>,
        limit: usize,
    ) -> Result<Page, ReadError> {
        loop {
            let newest = self.published();
            let revision = at.unwrap_or(newest);
            if revision > newest {
                return Err(ReadError::NotYet { newest });
            }
            match self.range_at(range, revision, limit) {
                // The floor has passed the reader who only wanted the newest: there is a newer one by
                // now.
                Err(ReadError::Compacted { .. }) if at.is_none() => {}
                result => return result,
            }
        }
    }

    fn range_at(
        &self,
        range: &KeyRange,
        revision: Revision,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let mut page = Page { items: Vec::new(), revision, remaining: 0 };
        self.check_floor(range, revision)?;
        let tables = match &range.table {
            Some(name) => self.find(name).into_iter().collect(),
            None => self.tables(),
        };
        for table in tables {
            self.read_table(&table, range, &mut page, limit)?;
        }
        Ok(page)
    }

    fn read_table(
        &self,
        table: &TableCell,
        range: &KeyRange,
        page: &mut Page,
        limit: usize,
    ) -> Result<(), ReadError> {
        let mut rest = range.clone();
        loop {
            let state = table.read();
            // History is dropped only after the floor was raised, so what is above it is complete.
            self.check_floor(range, page.revision)?;
            let wanted = (limit - page.items.len()).min(READ_AT_ONCE);
            let last = table.take_rows(&state, &rest, page, wanted);
            if let Some(last) = last {
                rest.after = Some(last);
            }
            if page.items.len() >= limit {
                page.remaining += count(&state, &rest, page.revision);
                return Ok(());
            }
            if rest.after == range.after || state.rows.start_of(&rest) >= state.rows.end_of(&rest) {
                return Ok(());
            }
        }
    }

    fn check_floor(&self, range: &KeyRange, revision: Revision) -> Result<(), ReadError> {
        let floor = self.floor_of(range);
        if revision < floor { Err(ReadError::Compacted { floor }) } else { Ok(()) }
    }
}

impl TableCell {
    /// Adds rows to the page until enough were read or taken, and returns the last one read.
    fn take_rows(
        &self,
        state: &TableState,
        range: &KeyRange,
        page: &mut Page,
        wanted: usize,
    ) -> Option<Arc<str>> {
        let (start, end) = (state.rows.start_of(range), state.rows.end_of(range));
        let stop = page.items.len() + wanted;
        let mut last = None;
        for entry in state.rows.between(start, end).take(READ_AT_ONCE) {
            if page.items.len() == stop {
                break;
            }
            if let Some(version) = entry.at(page.revision) {
                let key = Key { table: Arc::clone(&self.name), row: Arc::clone(&entry.row) };
                page.items.extend(versioned(&key, version));
            }
            last = Some(&entry.row);
        }
        last.cloned()
    }
}

/// How many rows of a range there were at a revision. Quick if nothing has changed since.
fn count(state: &TableState, range: &KeyRange, revision: Revision) -> usize {
    let (start, end) = (state.rows.start_of(range), state.rows.end_of(range));
    if state.last <= revision {
        return state.rows.live_between(start, end);
    }
    state.rows.between(start, end).filter(|entry| entry.at(revision).is_some()).count()
}

impl TableState {
    /// Rows with their versions at a revision, from the first one after a row: so many at a time.
    pub(crate) fn slice(&self, range: &KeyRange, revision: Revision) -> Slice {
        let (start, end) = (self.rows.start_of(range), self.rows.end_of(range));
        let mut slice = Slice { items: Vec::new(), last: None };
        for entry in self.rows.between(start, end).take(READ_AT_ONCE) {
            let version = entry.at(revision);
            slice.items.extend(version.map(|it| (Arc::clone(&entry.row), it.clone())));
            slice.last = Some(Arc::clone(&entry.row));
        }
        slice
    }
}

/// Some rows of a table.
pub(crate) struct Slice {
    /// Those that were there.
    pub(crate) items: Vec<(Arc<str>, Version)>,
    /// The last one that was read; none if there was none left.
    pub(crate) last: Option<Arc<str>>,
}
