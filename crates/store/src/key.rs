//! Keys: a table, and a row in it.

use std::fmt;
use std::sync::Arc;

/// The name of a table: all keys of one sort of thing. Ranges and watches are within one.
pub type Table = Arc<str>;

/// A table and a row. Rows are in byte order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Which table.
    pub table: Table,
    /// Which row in it.
    pub row: Arc<str>,
}

impl Key {
    /// The key of a row in a table.
    pub fn new(table: impl Into<Table>, row: impl Into<Arc<str>>) -> Self {
        Key { table: table.into(), row: row.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.table, self.row)
    }
}

/// The rows of one table (or of all tables) whose names begin with a prefix, from a row on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// Which table; none means every table, which only a watch may ask for.
    pub table: Option<Table>,
    /// What the rows begin with; empty means all rows.
    pub prefix: Arc<str>,
    /// The first row that is not skipped is the first one greater than this.
    pub after: Option<Arc<str>>,
}

impl KeyRange {
    /// Every row of a table that begins with a prefix.
    pub fn prefix(table: impl Into<Table>, prefix: impl Into<Arc<str>>) -> Self {
        KeyRange { table: Some(table.into()), prefix: prefix.into(), after: None }
    }

    /// Everything there is; for watches.
    pub fn everything() -> Self {
        KeyRange { table: None, prefix: Arc::from(""), after: None }
    }

    /// The same rows, but only those that come after this one.
    #[must_use]
    pub fn after(mut self, row: impl Into<Arc<str>>) -> Self {
        self.after = Some(row.into());
        self
    }

    /// Whether a key is in the range.
    pub fn contains(&self, key: &Key) -> bool {
        self.table.as_ref().is_none_or(|table| *table == key.table)
            && key.row.starts_with(&*self.prefix)
            && self.after.as_ref().is_none_or(|after| key.row > *after)
    }
}
