//! Which policies a write is judged by, and that they stay in force until it is committed.
//!
//! A write holds the policies of its cluster from before it is judged until it is committed; whoever changes a
//! policy or a binding waits for those writes, and holds up the next ones. So no write is committed after a
//! policy that it was not judged by.

use super::compiled::{Compiled, all};
use super::policy::PolicySet;
use crate::clusters::Cluster;
use crate::handlers::call::Call;
use crate::server::Server;
use crate::status::Status;
use crate::storage::{self, NotCommitted, Storage};
use interlock_store::{Revision, Transaction};
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
        cluster: &Cluster,
        storage: &Storage,
    ) -> Result<Arc<PolicySet>, Status> {
        let begun = match self.compiled.get() {
            Ok(set) => return Ok(set),
            Err(begun) => begun,
        };
        let policies = all("validatingadmissionpolicies", cluster, storage).await?;
        let bindings = all("validatingadmissionpolicybindings", cluster, storage).await?;
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

    async fn shared(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.lock).read_owned().await
    }
}

/// What a write holds from before it is judged until it is committed.
pub(crate) enum Held {
    /// Nothing: no policy judges it.
    Nothing,
    /// The policies stay as they are.
    Shared(#[expect(dead_code, reason = "held, not read")] OwnedRwLockReadGuard<()>),
    /// No other write is under way: what is written here is a parameter that policies find by its labels.
    Alone(OwnedRwLockWriteGuard<()>),
}

/// Holds the policies for a write.
pub(crate) async fn hold(call: &Call) -> Result<Held, Status> {
    if super::is_exempt(call) {
        return Ok(Held::Nothing);
    }
    let policies = &call.cluster.policies;
    let shared = policies.shared().await;
    let set = policies.get(&call.cluster, call.server.storage()).await?;
    if !set.finds_by_labels(&call.resource) {
        return Ok(Held::Shared(shared));
    }
    drop(shared);
    Ok(Held::Alone(policies.alone().await))
}

impl Held {
    /// Commits, and lets go.
    pub(crate) async fn commit(
        self,
        server: &Server,
        cluster: &Arc<Cluster>,
        plan: Transaction,
    ) -> Result<Revision, NotCommitted> {
        let Held::Alone(alone) = self else {
            return server.commit(cluster, plan).await;
        };
        // A client that goes away must not let others in before the write is there.
        let (server, cluster) = (server.clone(), Arc::clone(cluster));
        let committed = tokio::spawn(async move {
            let revision = server.commit(&cluster, plan).await;
            drop(alone);
            revision
        });
        committed.await.unwrap_or_else(|_| Err(NotCommitted::Refused(storage::outcome_unknown())))
    }
}
