//! Quotas: what is used is counted again when objects come, change and go.

use crate::admission::quota::{self, count_again, has_quotas};
use crate::server::Server;
use crate::storage;
use interlock_store::{KeyRange, Store};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

/// Changes are gathered for so long: a namespace is counted once for many of them.
const GATHERING: Duration = Duration::from_millis(20);

/// A namespace of a logical cluster whose quotas are counted.
#[derive(Clone, PartialEq, Eq, Hash)]
struct QuotaNamespace {
    cluster_id: String,
    namespace: String,
}

impl QuotaNamespace {
    /// The namespace of what is stored in a row.
    fn of_row(row: &str) -> Self {
        let (cluster, namespace, _) = storage::parts(row);
        QuotaNamespace { cluster_id: cluster.to_owned(), namespace: namespace.to_owned() }
    }
}

/// Keeps the status of quotas right, for as long as the server runs.
pub(super) async fn run(server: Server) {
    loop {
        let Ok(newest) = server.storage().store.newest().await else { return };
        let Ok(changes) = server.storage().store.watch(KeyRange::everything(), newest).await else {
            continue;
        };
        let mut known = everywhere(&server).await;
        for counted in known.clone() {
            count(&server, &counted).await;
        }
        follow(&server, changes, &mut known).await;
        if server.readiness().is_err() {
            return;
        }
    }
}

/// Counts everything once.
pub(super) async fn round(server: &Server) {
    for counted in everywhere(server).await {
        count(server, &counted).await;
    }
}

async fn follow(
    server: &Server,
    mut changes: impl interlock_store::Changes,
    known: &mut HashSet<QuotaNamespace>,
) {
    let table = quota::table();
    let mut waiting: HashSet<QuotaNamespace> = HashSet::new();
    let mut due = Instant::now();
    loop {
        let batch = if waiting.is_empty() {
            let batch = changes.next().await;
            due = Instant::now() + GATHERING;
            batch
        } else {
            match tokio::time::timeout_at(due, changes.next()).await {
                Ok(batch) => batch,
                Err(_) => {
                    for counted in std::mem::take(&mut waiting) {
                        if !count(server, &counted).await {
                            known.remove(&counted);
                        }
                    }
                    continue;
                }
            }
        };
        let Ok(batch) = batch else { return };
        for change in &batch.changes {
            let counted = QuotaNamespace::of_row(&change.key.row);
            if change.key.table == table && change.after.is_some() {
                known.insert(counted.clone());
            }
            if known.contains(&counted) {
                waiting.insert(counted);
            }
        }
    }
}

/// All namespaces that have quotas.
async fn everywhere(server: &Server) -> HashSet<QuotaNamespace> {
    let range = KeyRange::prefix(quota::table(), "");
    let Ok(page) = server.storage().range(range, None, usize::MAX).await else {
        return HashSet::new();
    };
    page.items.iter().map(|item| QuotaNamespace::of_row(&item.key.row)).collect()
}

/// Counts one namespace, and says whether it still has quotas.
async fn count(server: &Server, counted: &QuotaNamespace) -> bool {
    let QuotaNamespace { cluster_id, namespace } = counted;
    let Some(cluster) = server.clusters().with_id(cluster_id) else { return false };
    if let Err(status) = count_again(server, &cluster, namespace).await {
        tracing::warn!(namespace, because = %status.message, "cannot count what a quota is about");
        return true;
    }
    has_quotas(server, &cluster.id, namespace).await.unwrap_or(true)
}
