//! The locks of ResourceQuotas: the server has one set of them, for writes and for the background controller.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Writers of one namespace wait for each other by one of so many locks.
const LOCK_COUNT: usize = 64;

/// Lets those who charge or count one namespace's quotas wait for each other.
pub(crate) struct QuotaLocks(Vec<Arc<Mutex<()>>>);

impl Default for QuotaLocks {
    fn default() -> Self {
        QuotaLocks((0..LOCK_COUNT).map(|_| Arc::default()).collect())
    }
}

impl QuotaLocks {
    /// Waits until nobody else charges or counts the quotas of a namespace.
    pub(crate) async fn take(&self, cluster: &str, namespace: &str) -> OwnedMutexGuard<()> {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let hash = hasher.hash_one((cluster, namespace));
        let place = usize::try_from(hash % LOCK_COUNT as u64).unwrap_or_default();
        Arc::clone(&self.0[place]).lock_owned().await
    }
}
