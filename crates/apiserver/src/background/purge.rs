//! Emptying a namespace, a kind or a whole logical cluster: what holds an object is honoured, the rest goes fast.

use crate::call::own_call_for;
use crate::clusters::Cluster;
use crate::object;
use crate::request::DeleteOptions;
use crate::resource::Resource;
use crate::server::Server;
use crate::status::Status;
use crate::storage::{self, NotCommitted, Owner};
use interlock_store::{Guard, KeyRange, Operation, Transaction, Versioned};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What could not be removed yet.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// How many objects were found, held or not.
    pub(super) found: usize,
    /// How many objects of each resource are left: `pods.` or `widgets.example.com`.
    pub(super) resources: BTreeMap<String, usize>,
    /// How many objects each finalizer holds.
    pub(super) finalizers: BTreeMap<String, usize>,
}

impl Held {
    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// What is left, as a condition's message says it.
    pub(super) fn what_is_left(&self) -> String {
        let list: Vec<String> = self
            .resources
            .iter()
            .map(|(resource, count)| format!("{resource} has {count} resource instances"))
            .collect();
        format!("Some resources are remaining: {}", list.join(", "))
    }

    /// Who holds what is left in a namespace or cluster, as a condition's message says it; empty if nobody does.
    pub(super) fn who_holds_it(&self, place: &str) -> String {
        if self.finalizers.is_empty() {
            return String::new();
        }
        format!("Some content in the {place} has finalizers remaining: {}", self.holders())
    }

    /// The finalizers, and how many objects each holds.
    pub(super) fn holders(&self) -> String {
        let list: Vec<String> = self
            .finalizers
            .iter()
            .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
            .collect();
        list.join(", ")
    }
}

/// Removes the objects of these resources from a cluster, or from one of its namespaces, for as long as what is being
/// emptied is as it was seen: another one of its name keeps all it has. None if somebody changed something meanwhile:
/// then nothing is known of what is left.
pub(super) async fn purge(
    server: &Server,
    cluster: &Arc<Cluster>,
    namespace: Option<&str>,
    resources: &[Arc<Resource>],
    while_as_seen: &Guard,
) -> Result<Option<Held>, Status> {
    let mut held = Held::default();
    let mut free: Vec<Vec<Versioned>> = Vec::new();
    for resource in resources {
        let prefix = storage::prefix(Owner::Cluster(&cluster.id), namespace);
        let range = KeyRange::prefix(storage::table(resource), prefix);
        let page =
            server.storage().range(range, None, usize::MAX).await.map_err(storage::read_refused)?;
        held.found += page.items.len();
        let mut gone_at_once = Vec::new();
        for item in page.items {
            let object = object::decode(&item);
            if is_free(resource, &object) {
                gone_at_once.push(item);
            } else if !mark(server, cluster, resource, &object, &mut held).await? {
                return Ok(None);
            }
        }
        if !gone_at_once.is_empty() {
            free.push(gone_at_once);
        }
    }
    Ok(remove(server, cluster, free, while_as_seen).await?.then_some(held))
}

/// Whether nothing can hold an object.
fn is_free(resource: &Resource, object: &Value) -> bool {
    let is_pod = resource.group.is_empty() && &*resource.plural == "pods";
    object::finalizers(object).next().is_none() && !is_pod
}

/// Asks for the deletion of an object that may be held. False if another one of its name is there by now.
async fn mark(
    server: &Server,
    cluster: &Arc<Cluster>,
    resource: &Arc<Resource>,
    object: &Value,
    held: &mut Held,
) -> Result<bool, Status> {
    let call = own_call_for(server, cluster, Arc::clone(resource))
        .for_name(object::name(object), object::namespace(object));
    let uid = Some(object::uid(object).to_owned());
    let written = match call.delete_with(&DeleteOptions { uid, ..Default::default() }).await {
        Ok(written) => written,
        Err(status) if status.code == 404 => return Ok(true),
        Err(status) if status.code == 409 => return Ok(false),
        Err(status) => return Err(status),
    };
    if call.deletion_answer(&written).is_some() {
        return Ok(true);
    }
    // With the dot also where there is no group, as upstream writes it.
    let shown = format!("{}.{}", resource.plural, resource.group);
    *held.resources.entry(shown).or_default() += 1;
    for finalizer in object::finalizers(&written.object) {
        *held.finalizers.entry(finalizer.to_owned()).or_default() += 1;
    }
    Ok(true)
}

/// Removes objects, one of each table in one commit: two of one table could not share a revision. False if somebody
/// touched one of them: the next round sees what is left.
async fn remove(
    server: &Server,
    cluster: &Arc<Cluster>,
    mut tables: Vec<Vec<Versioned>>,
    while_as_seen: &Guard,
) -> Result<bool, Status> {
    const MOST_TOGETHER: usize = 100;
    loop {
        let mut plan =
            Transaction { guards: vec![while_as_seen.clone()], ..Transaction::default() };
        for table in tables.iter_mut().take(MOST_TOGETHER) {
            if let Some(item) = table.pop() {
                plan.guards.push(Guard::At(item.key.clone(), item.modified));
                plan.operations.push(Operation::Delete(item.key));
            }
        }
        tables.retain(|table| !table.is_empty());
        if plan.operations.is_empty() {
            return Ok(true);
        }
        match server.commit(cluster, plan).await {
            Ok(_) => {}
            Err(NotCommitted::Guard(_)) => return Ok(false),
            Err(NotCommitted::Refused(status)) => return Err(status),
        }
    }
}
