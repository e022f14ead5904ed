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

/// A namespace of a logical cluster, by the id of the cluster.
type Place = (String, String);

/// Keeps the status of quotas right, for as long as the server runs.
pub(super) async fn run(server: Server) {
    loop {
        let Ok(newest) = server.storage().store.newest().await else { return };
        let Ok(changes) = server.storage().store.watch(KeyRange::everything(), newest).await else {
            continue;
        };
        let mut known = everywhere(&server).await;
        for place in known.clone() {
            count(&server, &place).await;
        }
        follow(&server, changes, &mut known).await;
        if server.readiness().is_err() {
            return;
        }
    }
}

/// Counts everything once.
pub(super) async fn round(server: &Server) {
    for place in everywhere(server).await {
        count(server, &place).await;
    }
}

async fn follow(
    server: &Server,
    mut changes: impl interlock_store::Changes,
    known: &mut HashSet<Place>,
) {
    let table = quota::table();
    let mut waiting: HashSet<Place> = HashSet::new();
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
                    for place in std::mem::take(&mut waiting) {
                        if !count(server, &place).await {
                            known.remove(&place);
                        }
                    }
                    continue;
                }
            }
        };
        let Ok(batch) = batch else { return };
        for change in &batch.changes {
            let (cluster, namespace, _) = storage::parts(&change.key.row);
            let place = (cluster.to_owned(), namespace.to_owned());
            if change.key.table == table && change.after.is_some() {
                known.insert(place.clone());
            }
            if known.contains(&place) {
                waiting.insert(place);
            }
        }
    }
}

/// All namespaces that have quotas.
async fn everywhere(server: &Server) -> HashSet<Place> {
    let range = KeyRange::prefix(quota::table(), "");
    let Ok(page) = server.storage().range(range, None, usize::MAX).await else {
        return HashSet::new();
    };
    let place = |row: &str| {
        let (cluster, namespace, _) = storage::parts(row);
        (cluster.to_owned(), namespace.to_owned())
    };
    page.items.iter().map(|item| place(&item.key.row)).collect()
}

/// Counts one namespace, and says whether it still has quotas.
async fn count(server: &Server, place: &Place) -> bool {
    let (cluster, namespace) = place;
    let Some(cluster) = server.clusters().with_id(cluster) else { return false };
    if let Err(status) = count_again(server, &cluster, namespace).await {
        tracing::warn!(namespace, because = %status.message, "cannot count what a quota is about");
        return true;
    }
    has_quotas(server, &cluster.id, namespace).await.unwrap_or(true)
}
