//! The rows of a table in order, each with its newest version and those superseded since the floor.
//!
//! It is a list of short sorted lists, each of which knows how many of its rows are alive. That
//! takes less memory than a tree of pointers, is walked quickly, and says how many rows there are
//! between two places without looking at each: a page of a list must say how many more there are.

use crate::{KeyRange, Revision, Value};
use std::collections::VecDeque;
use std::sync::Arc;

/// No chunk is longer.
const LONGEST_CHUNK: usize = 256;

/// One version of a row. Without a value it says that the row was deleted, or was never there.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    /// When the row came into being.
    pub(crate) created: Revision,
    /// When this version was written.
    pub(crate) modified: Revision,
    /// What it says; none if the row was deleted.
    pub(crate) value: Option<Arc<Value>>,
}

impl Version {
    /// What a row is before it is first written.
    pub(crate) const ABSENT: Version = Version { created: 0, modified: 0, value: None };

    /// How many bytes of value it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.value.as_ref().map_or(0, |value| value.bytes().len())
    }
}

/// A row with all of its versions that are kept.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its name.
    pub(crate) row: Arc<str>,
    /// Its newest version.
    pub(crate) newest: Version,
    // Most rows have no history, and pay one word for it.
    older: Option<Box<History>>,
}

#[derive(Debug, Default)]
struct History {
    versions: VecDeque<Version>,
}

impl Entry {
    /// What the row was at a revision; none if it was not there.
    pub(crate) fn at(&self, revision: Revision) -> Option<&Version> {
        let version = if self.newest.modified <= revision {
            &self.newest
        } else {
            let versions = &self.older.as_ref()?.versions;
            let later = versions.partition_point(|version| version.modified <= revision);
            versions.get(later.checked_sub(1)?)?
        };
        version.value.is_some().then_some(version)
    }

    fn is_live(&self) -> bool {
        self.newest.value.is_some()
    }

    fn supersede(&mut self, version: Version) -> Version {
        let before = std::mem::replace(&mut self.newest, version);
        self.older.get_or_insert_default().versions.push_back(before.clone());
        before
    }

    fn forget(&mut self, floor: Revision) {
        let Some(history) = &mut self.older else { return };
        let versions = &mut history.versions;
        while let Some(next) = versions.get(1).or(Some(&self.newest))
            && !versions.is_empty()
            && next.modified <= floor
        {
            versions.pop_front();
        }
        if versions.is_empty() {
            self.older = None;
        }
    }
}

#[derive(Debug, Default)]
struct Chunk {
    entries: Vec<Entry>,
    live: usize,
}

impl Chunk {
    fn of(entries: Vec<Entry>) -> Self {
        let live = entries.iter().filter(|entry| entry.is_live()).count();
        Chunk { entries, live }
    }
}

/// A place between two rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    chunk: usize,
    entry: usize,
}

/// All rows of a table.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    // None of them is empty.
    chunks: Vec<Chunk>,
}

impl Rows {
    /// Whether there is no row, not even a deleted one.
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The row, if any version of it is kept.
    pub(crate) fn get(&self, row: &str) -> Option<&Entry> {
        let position = self.first_not(|other| other < row);
        self.entry(position).filter(|entry| *entry.row == *row)
    }

    /// Writes a version of a row, and returns the one before it and the row's name as it is kept.
    pub(crate) fn put(&mut self, row: Arc<str>, version: Version) -> (Version, Arc<str>) {
        let at = self.first_not(|other| *other < *row);
        let is_live = version.value.is_some();
        if let Some(chunk) = self.chunks.get_mut(at.chunk)
            && let Some(entry) = chunk.entries.get_mut(at.entry)
            && entry.row == row
        {
            chunk.live -= usize::from(entry.is_live());
            chunk.live += usize::from(is_live);
            return (entry.supersede(version), Arc::clone(&entry.row));
        }
        self.insert(at, Entry { row: Arc::clone(&row), newest: version, older: None });
        (Version::ABSENT, row)
    }

    /// Adds a row that comes after all others, without history. Says whether it does come after
    /// them.
    pub(crate) fn append(&mut self, row: Arc<str>, version: Version) -> bool {
        let end = self.end();
        let last = self.chunks.last().and_then(|chunk| chunk.entries.last());
        if last.is_some_and(|last| last.row >= row) {
            return false;
        }
        self.insert(end, Entry { row, newest: version, older: None });
        true
    }

    /// Drops what was superseded at or before the floor, and the row itself if it was deleted by
    /// then.
    pub(crate) fn forget(&mut self, row: &str, floor: Revision) {
        let at = self.first_not(|other| other < row);
        let Some(chunk) = self.chunks.get_mut(at.chunk) else { return };
        let Some(entry) = chunk.entries.get_mut(at.entry).filter(|entry| *entry.row == *row) else {
            return;
        };
        entry.forget(floor);
        if entry.is_live() || entry.older.is_some() || entry.newest.modified > floor {
            return;
        }
        chunk.entries.remove(at.entry);
        self.tidy(at.chunk);
    }

    /// Where a range begins.
    pub(crate) fn start_of(&self, range: &KeyRange) -> Position {
        let after = range.after.as_deref();
        self.first_not(|row| *row < *range.prefix || after.is_some_and(|after| row <= after))
    }

    /// Where a range ends.
    pub(crate) fn end_of(&self, range: &KeyRange) -> Position {
        self.first_not(|row| *row < *range.prefix || row.starts_with(&*range.prefix))
    }

    /// The rows between two places, in order.
    pub(crate) fn between(&self, from: Position, to: Position) -> impl Iterator<Item = &Entry> {
        let last = if to.entry > 0 { to.chunk + 1 } else { to.chunk };
        (from.chunk..last).flat_map(move |index| {
            let entries = self.chunks.get(index).map_or(&[][..], |chunk| &chunk.entries);
            let end = if index == to.chunk { to.entry } else { entries.len() };
            let start = if index == from.chunk { from.entry } else { 0 };
            entries.get(start..end).unwrap_or(&[]).iter()
        })
    }

    /// How many rows between two places are there now.
    pub(crate) fn live_between(&self, from: Position, to: Position) -> usize {
        if from >= to {
            return 0;
        }
        let live = |entries: &[Entry]| entries.iter().filter(|entry| entry.is_live()).count();
        let whole: usize = self.chunks[from.chunk..to.chunk].iter().map(|chunk| chunk.live).sum();
        let before = self.chunks.get(from.chunk).map_or(0, |it| live(&it.entries[..from.entry]));
        let tail = self.chunks.get(to.chunk).map_or(0, |chunk| live(&chunk.entries[..to.entry]));
        whole + tail - before
    }

    fn entry(&self, at: Position) -> Option<&Entry> {
        self.chunks.get(at.chunk)?.entries.get(at.entry)
    }

    fn end(&self) -> Position {
        match self.chunks.last() {
            None => Position { chunk: 0, entry: 0 },
            Some(last) => Position { chunk: self.chunks.len() - 1, entry: last.entries.len() },
        }
    }

    /// The first place whose row is not among those that come first. The end is the place after the
    /// last row of the last chunk for an insertion, and the beginning of the chunk after it for
    /// everyone else.
    fn first_not(&self, comes_first: impl Fn(&str) -> bool) -> Position {
        let chunk = self.chunks.partition_point(|chunk| {
            chunk.entries.last().is_some_and(|entry| comes_first(&entry.row))
        });
        let entry = self
            .chunks
            .get(chunk)
            .map_or(0, |chunk| chunk.entries.partition_point(|entry| comes_first(&entry.row)));
        Position { chunk, entry }
    }

    fn insert(&mut self, at: Position, entry: Entry) {
        let at = if at.chunk == self.chunks.len() { self.end() } else { at };
        let is_at_end = at == self.end();
        let Some(chunk) = self.chunks.get_mut(at.chunk) else {
            self.chunks.push(Chunk::of(vec![entry]));
            return;
        };
        if chunk.entries.len() < LONGEST_CHUNK {
            chunk.live += usize::from(entry.is_live());
            chunk.entries.insert(at.entry, entry);
            return;
        }
        if is_at_end {
            // Rows that arrive in order fill their chunks.
            self.chunks.push(Chunk::of(vec![entry]));
            return;
        }
        let mut left = std::mem::take(&mut chunk.entries);
        let mut right = left.split_off(LONGEST_CHUNK / 2);
        match at.entry.checked_sub(left.len()) {
            Some(place) => right.insert(place, entry),
            None => left.insert(at.entry, entry),
        }
        *chunk = Chunk::of(left);
        self.chunks.insert(at.chunk + 1, Chunk::of(right));
    }

    /// After a removal: gives memory back, and joins short chunks.
    fn tidy(&mut self, index: usize) {
        let length = self.chunks[index].entries.len();
        if length == 0 {
            self.chunks.remove(index);
            return;
        }
        if length > LONGEST_CHUNK / 4 {
            return;
        }
        let first = index.saturating_sub(1);
        if let Some(neighbour) = self.chunks.get(first + 1)
            && neighbour.entries.len() + self.chunks[first].entries.len() <= LONGEST_CHUNK / 2
        {
            let joined = self.chunks.remove(first + 1);
            let chunk = &mut self.chunks[first];
            chunk.live += joined.live;
            chunk.entries.extend(joined.entries);
            return;
        }
        self.chunks[index].entries.shrink_to(length * 2);
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
