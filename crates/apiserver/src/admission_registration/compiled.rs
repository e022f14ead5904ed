//! What is compiled of the configurations of one cluster: when it is first asked for, and again after a change.

use super::GROUP;
use crate::status::Status;
use crate::storage::{self, Owner, Storage};
use interlock_store::{KeyRange, Versioned};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Compiled once, until a change.
pub(crate) struct Compiled<T>(Mutex<Known<T>>);

struct Known<T> {
    set: Option<Arc<T>>,
    /// What was compiled before the last change: what did not change is not compiled again.
    before: Option<Arc<T>>,
    changes: u64,
}

/// Something has to be compiled.
pub(crate) struct Begun<T> {
    /// What was compiled before the last change.
    pub(crate) before: Option<Arc<T>>,
    changes: u64,
}

impl<T> Default for Compiled<T> {
    fn default() -> Self {
        Compiled(Mutex::new(Known { set: None, before: None, changes: 0 }))
    }
}

impl<T> Compiled<T> {
    /// What is compiled already, or what to begin with.
    pub(crate) fn get(&self) -> Result<Arc<T>, Begun<T>> {
        let known = self.known();
        match &known.set {
            Some(set) => Ok(Arc::clone(set)),
            None => Err(Begun { before: known.before.clone(), changes: known.changes }),
        }
    }

    /// Keeps what was compiled. What changed while we read must not be hidden by what we read before.
    pub(crate) fn keep(&self, begun: &Begun<T>, set: T) -> Arc<T> {
        let set = Arc::new(set);
        let mut known = self.known();
        if known.changes == begun.changes {
            known.set = Some(Arc::clone(&set));
            known.before = None;
        }
        set
    }

    /// A configuration changed.
    pub(crate) fn forget(&self) {
        let mut known = self.known();
        if let Some(set) = known.set.take() {
            known.before = Some(set);
        }
        known.changes += 1;
    }

    // A thread that panicked while it held the lock left whole values behind.
    fn known(&self) -> MutexGuard<'_, Known<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All configurations of one kind in a cluster.
pub(crate) async fn all(
    plural: &str,
    cluster_id: &str,
    storage: &Storage,
) -> Result<Vec<Versioned>, Status> {
    let table = storage::table_of(GROUP, plural, "-");
    let prefix = storage::prefix(Owner::Cluster(cluster_id), None);
    let range = KeyRange::prefix(table, prefix.as_str());
    let found = storage.range(range, None, usize::MAX).await.map_err(storage::read_refused)?;
    Ok(found.items)
}
