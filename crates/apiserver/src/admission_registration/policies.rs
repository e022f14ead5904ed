//! The admission policies of one cluster, compiled when they are first needed, and the lock that writes hold them by.

use super::compiled::{Compiled, all};
use super::policy::PolicySet;
use crate::status::Status;
use crate::storage::Storage;
use std::sync::Arc;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The admission policies of one cluster, read when they are first asked for.
#[derive(Default)]
pub(crate) struct Policies {
    lock: Arc<RwLock<()>>,
    compiled: Compiled<PolicySet>,
}

impl Policies {
    /// The policies as they are now.
    pub(crate) async fn get(
        &self,
        cluster_id: &str,
        storage: &Storage,
    ) -> Result<Arc<PolicySet>, Status> {
        let begun = match self.compiled.get() {
            Ok(set) => return Ok(set),
            Err(begun) => begun,
        };
        let policies = all("validatingadmissionpolicies", cluster_id, storage).await?;
        let bindings = all("validatingadmissionpolicybindings", cluster_id, storage).await?;
        let set = PolicySet::read(&policies, &bindings, begun.before.as_deref());
        Ok(self.compiled.keep(&begun, set))
    }

    /// One of them changed.
    pub(crate) fn forget(&self) {
        self.compiled.forget();
    }

    /// Waits until no write is under way, and holds up the next ones.
    pub(crate) async fn alone(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.lock).write_owned().await
    }

    /// Waits until nobody changes a policy, and holds up those who want to.
    pub(crate) async fn shared(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.lock).read_owned().await
    }
}
