//! Counts what a namespace uses, from its objects.

use super::{as_value, quotas, scopes, usage};
use crate::admission::amounts::{Amounts, add, amounts};
use crate::behaviour::read::at;
use crate::clusters::Cluster;
use crate::object;
use crate::resource::Resource;
use crate::server::Server;
use crate::status::Status;
use crate::storage::{self, NotCommitted, Owner};
use interlock_quantity::Quantity;
use interlock_store::{Guard, KeyRange, Operation, Transaction};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// Whether a namespace has quotas.
pub(crate) async fn has_quotas(
    server: &Server,
    cluster: &str,
    namespace: &str,
) -> Result<bool, Status> {
    Ok(!quotas(server, cluster, namespace).await?.is_empty())
}

/// Counts all quotas of a namespace again, and says in their status what is used.
pub(crate) async fn count_again(
    server: &Server,
    cluster: &Arc<Cluster>,
    namespace: &str,
) -> Result<(), Status> {
    let _lock = server.quota_locks().take(&cluster.id, namespace).await;
    for stored in quotas(server, &cluster.id, namespace).await? {
        let quota = object::decode(&stored);
        let used = used(server, cluster, namespace, &quota).await?;
        let mut changed = quota.clone();
        set_status(&mut changed, &used);
        if is_same(&quota, &changed) {
            continue;
        }
        let guard = Guard::At(stored.key.clone(), stored.modified);
        let put = Operation::Put(stored.key.clone(), object::encode(&changed));
        match server.commit(cluster, Transaction::one(guard, put)).await {
            // Whoever changed it lets it be counted once more.
            Ok(_) | Err(NotCommitted::Guard(_)) => {}
            Err(NotCommitted::Refused(status)) => return Err(status),
        }
    }
    Ok(())
}

/// Whether two states of a quota say the same; amounts may be written in two ways.
fn is_same(one: &Value, other: &Value) -> bool {
    ["status.hard", "status.used"]
        .iter()
        .all(|path| at(one, path).is_object() && amounts(at(one, path)) == amounts(at(other, path)))
}

/// Says in a quota's status what is used.
pub(super) fn set_status(quota: &mut Value, used: &Amounts) {
    let hard = at(quota, "spec.hard").clone();
    let names: HashSet<&String> =
        hard.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    let mut shown = used.clone();
    shown.retain(|name, _| names.contains(name));
    let shown = as_value(&shown);
    let hard = if hard.is_object() { hard } else { json!({}) };
    quota["status"] = json!({"hard": hard, "used": shown});
}

/// What the objects of a namespace use of what a quota is about.
pub(super) async fn used(
    server: &Server,
    cluster: &Arc<Cluster>,
    namespace: &str,
    quota: &Value,
) -> Result<Amounts, Status> {
    let hard = amounts(at(quota, "spec.hard"));
    let zero = Quantity::parse("0").expect("zero is a quantity");
    let mut total: Amounts = hard.keys().map(|name| (name.clone(), zero.clone())).collect();
    let mut seen = HashSet::new();
    for resource in server.clusters().served(cluster) {
        // Two versions of one kind are the same objects.
        let table = storage::table(&resource);
        if !resource.is_namespaced || !concerns(&hard, &resource) || !seen.insert(table.clone()) {
            continue;
        }
        let prefix = storage::prefix(Owner::Cluster(&cluster.id), Some(namespace));
        let page = server.storage().range(KeyRange::prefix(table, prefix), None, usize::MAX).await;
        for item in page.map_err(storage::read_refused)?.items {
            let object = object::decode(&item);
            if scopes::takes(quota, &resource, &object) {
                let mut used = usage::of(&resource, &object);
                used.retain(|name, _| hard.contains_key(name));
                add(&mut total, &used);
            }
        }
    }
    Ok(total)
}

/// Whether a quota is about objects of a resource at all.
fn concerns(hard: &Amounts, resource: &Resource) -> bool {
    let counted = crate::status::qualified(&resource.group, &resource.plural);
    if hard.contains_key(&format!("count/{counted}")) {
        return true;
    }
    if !resource.group.is_empty() {
        return false;
    }
    let plural = &*resource.plural;
    hard.keys().any(|name| match plural {
        "pods" => {
            !name.starts_with("count/")
                && !name.starts_with("services")
                && name != "requests.storage"
                && !name.contains(".storageclass.storage.k8s.io/")
        }
        "services" => name == plural || name.starts_with("services."),
        "persistentvolumeclaims" => {
            name == plural
                || name == "requests.storage"
                || name.contains(".storageclass.storage.k8s.io/")
        }
        _ => name == plural,
    })
}
