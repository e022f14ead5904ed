//! Transactions: what must be true, and what then becomes true.

use crate::{Key, Revision};

/// Operations that happen together at one revision, if every guard holds.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    /// What must be true.
    pub guards: Vec<Guard>,
    /// What then becomes true. At most one operation for each table.
    pub operations: Vec<Operation>,
    /// Who shares fairly with whom: a batch is filled in turn from each group of writers.
    pub fairness: u64,
}

/// Something that must be true of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// There is no such key.
    Absent(Key),
    /// The key was last written at this revision.
    At(Key, Revision),
}

/// One change.
#[derive(Clone)]
pub enum Operation {
    /// Writes a value.
    Put(Key, Vec<u8>),
    /// Removes the key. Removing what is not there changes nothing.
    Delete(Key),
}

impl Operation {
    /// The key that changes.
    pub fn key(&self) -> &Key {
        match self {
            Operation::Put(key, _) | Operation::Delete(key) => key,
        }
    }
}

impl std::fmt::Debug for Operation {
    // Values may be secrets: only their size is shown.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Operation::Put(key, value) => write!(formatter, "put {key} ({} bytes)", value.len()),
            Operation::Delete(key) => write!(formatter, "delete {key}"),
        }
    }
}

impl Transaction {
    /// A transaction that changes one key.
    pub fn one(guard: Guard, operation: Operation) -> Self {
        Transaction { guards: vec![guard], operations: vec![operation], fairness: 0 }
    }
}
