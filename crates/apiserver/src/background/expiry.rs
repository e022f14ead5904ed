//! Events go an hour after they were first seen: an hour of the process's time, whatever the clock says.

use crate::server::Server;
use crate::storage;
use interlock_store::{
    Changes as _, Guard, Key, KeyRange, Operation, Revision, Store, Transaction,
};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long an event is kept.
const KEPT: Duration = Duration::from_secs(3600);
/// How often old events are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// When each event was last written, as far as this process has seen.
type Seen = HashMap<Key, (Revision, Instant)>;

/// Sweeps old events out, for as long as the server runs.
pub(super) async fn run(server: Server) {
    let range = KeyRange::prefix(storage::table_of("", "events", "-"), "");
    let mut seen = Seen::new();
    loop {
        let Ok(page) = server.storage().range(range.clone(), None, usize::MAX).await else {
            return;
        };
        for item in page.items {
            seen.entry(item.key).or_insert((item.modified, Instant::now()));
        }
        let Ok(mut changes) = server.storage().store.watch(range.clone(), page.revision).await
        else {
            continue;
        };
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            tokio::select! {
                batch = changes.next() => {
                    let Ok(batch) = batch else { break };
                    for change in batch.changes {
                        match change.after {
                            Some(after) => seen.insert(change.key, (after.modified, Instant::now())),
                            None => seen.remove(&change.key),
                        };
                    }
                }
                _ = sweep.tick() => sweep_out(&server, &mut seen).await,
            }
        }
        if server.readiness().is_err() {
            return;
        }
    }
}

async fn sweep_out(server: &Server, seen: &mut Seen) {
    let old: Vec<(Key, Revision)> = seen
        .iter()
        .filter(|(_, (_, at))| at.elapsed() >= KEPT)
        .map(|(key, (modified, _))| (key.clone(), *modified))
        .collect();
    for (key, modified) in old {
        let guard = Guard::At(key.clone(), modified);
        // An event that changed meanwhile is young again; one that is gone is no longer ours.
        let plan = Transaction::one(guard, Operation::Delete(key.clone()));
        let _ = server.storage().commit(plan).await;
        seen.remove(&key);
    }
}
