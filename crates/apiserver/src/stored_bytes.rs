//! How much a logical cluster may store: a limit on the bytes of all its objects, so that no tenant fills the memory
//! that all share.
//!
//! New objects are refused at the limit. Objects that are there may still grow a little, so that leases are renewed and
//! statuses written; deletions always work.

use crate::clusters::{Cluster, name_in};
use crate::limits::Writing;
use crate::object;
use crate::server::Server;
use crate::status::Status;
use crate::storage;
use interlock_store::{Key, Operation, Transaction, Versioned};
use serde_json::Value;
use std::sync::Arc;

/// Objects that are there may use so much of the limit beyond it: a sixteenth.
const GROWTH_SHARE: u64 = 16;

impl Server {
    /// Counts a write against the limit of its cluster until it is done, or refuses it.
    pub(crate) async fn check_stored_bytes(
        &self,
        cluster: &Arc<Cluster>,
        plan: &Transaction,
    ) -> Result<Option<Writing>, Status> {
        let Some(limit) = self.stored_bytes_limit(cluster) else { return Ok(None) };
        let mut bytes = 0;
        for operation in &plan.operations {
            if let Operation::Put(key, value) = operation {
                bytes += (key.row.len() + value.len()) as u64;
            }
        }
        let (writing, under_way) = cluster.under_way.begin(bytes);
        let used = self.storage().store.live_bytes_of(&cluster.id).saturating_add(under_way);
        if used.saturating_add(bytes) <= limit {
            return Ok(Some(writing));
        }
        for operation in &plan.operations {
            if let Operation::Put(key, value) = operation {
                let old = self.storage().get(key).await?;
                check_one(&Grown { key, old, value, used, limit })?;
            }
        }
        Ok(Some(writing))
    }

    /// How many bytes a cluster may store; None for the hub's own.
    fn stored_bytes_limit(&self, cluster: &Cluster) -> Option<u64> {
        if cluster.is_root() {
            return None;
        }
        let own = cluster.stored_bytes_limit();
        Some(own.unwrap_or(self.config().limits.stored_bytes_per_cluster))
    }
}

/// A write of one object to a cluster that is near its limit.
struct Grown<'a> {
    key: &'a Key,
    old: Option<Versioned>,
    value: &'a [u8],
    used: u64,
    limit: u64,
}

fn check_one(grown: &Grown<'_>) -> Result<(), Status> {
    let new_bytes = (grown.key.row.len() + grown.value.len()) as u64;
    let (old_bytes, limit) = match &grown.old {
        None => (0, grown.limit),
        Some(old) => (
            (grown.key.row.len() + old.value.bytes().len()) as u64,
            grown.limit.saturating_add(grown.limit / GROWTH_SHARE),
        ),
    };
    let growth = new_bytes.saturating_sub(old_bytes);
    if growth == 0 || grown.used.saturating_add(growth) <= limit || begins_deletion(grown) {
        return Ok(());
    }
    let (cluster, _, name) = storage::parts(&grown.key.row);
    let mut table = grown.key.table.split('/');
    let group = table.next().filter(|group| *group != "core").unwrap_or_default();
    let why = format!(
        "exceeded quota of bytes: the logical cluster {:?} stores {} bytes, and this write adds {growth}, but its \
         limit is {}; delete objects, or have storageLimitBytes of the LogicalCluster raised",
        name_in(cluster),
        grown.used,
        grown.limit,
    );
    Err(Status::forbidden(group, table.next().unwrap_or_default(), name, why))
}

/// Whether the object is to be deleted by this write, and was not before.
fn begins_deletion(grown: &Grown<'_>) -> bool {
    let Some(old) = &grown.old else { return false };
    let is_deleting = serde_json::from_slice::<Value>(grown.value)
        .is_ok_and(|object| object::is_deleting(&object));
    is_deleting && !object::is_deleting(&object::decode(old))
}
