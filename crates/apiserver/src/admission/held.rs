//! Which policies a write is judged by, and that they stay in force until it is committed.
//!
//! A write holds the policies of its cluster from before it is judged until it is committed; whoever changes a
//! policy or a binding waits for those writes, and holds up the next ones. So no write is committed after a
//! policy that it was not judged by.

use crate::call::Call;
use crate::clusters::Cluster;
use crate::server::Server;
use crate::status::Status;
use crate::storage::{self, NotCommitted};
use interlock_store::{Revision, Transaction};
use std::sync::Arc;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard};

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
    let set = policies.get(&call.cluster.id, call.server.storage()).await?;
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
