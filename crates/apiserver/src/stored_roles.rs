//! The roles and bindings of a logical cluster, read from the store and compiled.

use crate::access::RoleSet;
use crate::object;
use crate::status::Status;
use crate::storage::{self, Owner, Storage};
use interlock_store::{KeyRange, Versioned};
use serde_json::Value;

/// Roles that are larger together are compiled beside the threads that serve everybody.
const COMPILED_AT_ONCE_BYTES: usize = 256 * 1024;

/// The roles of the cluster with this id, as they are now.
pub(crate) async fn compiled(cluster: &str, storage: &Storage) -> Result<RoleSet, Status> {
    let prefix = storage::prefix(Owner::Cluster(cluster), None);
    let all = async |plural: &str| {
        let table = storage::table_of("rbac.authorization.k8s.io", plural, "-");
        let range = KeyRange::prefix(table, prefix.as_str());
        let page = storage.range(range, None, usize::MAX).await;
        page.map(|page| page.items).map_err(storage::read_refused)
    };
    let stored = Stored {
        roles: all("roles").await?,
        cluster_roles: all("clusterroles").await?,
        bindings: all("rolebindings").await?,
        cluster_bindings: all("clusterrolebindings").await?,
    };
    if stored.bytes() <= COMPILED_AT_ONCE_BYTES {
        return Ok(stored.compiled());
    }
    let compiled = tokio::task::spawn_blocking(move || stored.compiled()).await;
    compiled.map_err(|_| Status::internal("the roles cannot be compiled"))
}

/// As they are stored.
struct Stored {
    roles: Vec<Versioned>,
    cluster_roles: Vec<Versioned>,
    bindings: Vec<Versioned>,
    cluster_bindings: Vec<Versioned>,
}

impl Stored {
    fn bytes(&self) -> usize {
        let all = [&self.roles, &self.cluster_roles, &self.bindings, &self.cluster_bindings];
        all.into_iter().flatten().map(|item| item.value.bytes().len()).sum()
    }

    fn compiled(&self) -> RoleSet {
        let decoded =
            |items: &[Versioned]| -> Vec<Value> { items.iter().map(object::decode).collect() };
        RoleSet::compile(
            decoded(&self.roles).iter(),
            decoded(&self.cluster_roles).iter(),
            decoded(&self.bindings).iter(),
            decoded(&self.cluster_bindings).iter(),
        )
    }
}
