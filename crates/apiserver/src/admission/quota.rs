//! ResourceQuotas: what the objects of a namespace use together, and that it never is more than the quota.
//!
//! A write that uses more is committed together with the quota's new `status.used`, under a guard on the quota:
//! of two writes that would both fit alone, the second is counted again. What was deleted is given back by a
//! background controller that counts everything again.

mod count;
mod scopes;
mod usage;

pub(crate) use count::{count_again, has_quotas};

use super::amounts::{Amounts, amounts, sum};
use crate::behaviour::read::at;
use crate::call::Call;
use crate::object;
use crate::resource::Resource;
use crate::server::Server;
use crate::status::Status;
use crate::storage::{self, NotCommitted, Owner};
use interlock_store::{Guard, KeyRange, Operation, Table, Transaction, Versioned};
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

/// What is committed along with a write that uses more of a quota.
#[derive(Default)]
pub(crate) struct Charge {
    /// The quotas must be as they were when the write was counted.
    pub(crate) guards: Vec<Guard>,
    /// What is used with the write.
    pub(crate) operations: Vec<Operation>,
    /// Held until the write is committed.
    #[expect(dead_code, reason = "held, not read")]
    lock: Option<OwnedMutexGuard<()>>,
}

/// The table of quotas.
pub(crate) fn table() -> Table {
    storage::table_of("", "resourcequotas", "-")
}

/// The quotas of a namespace, as they are now.
async fn quotas(server: &Server, cluster: &str, namespace: &str) -> Result<Vec<Versioned>, Status> {
    let prefix = storage::prefix(Owner::Cluster(cluster), Some(namespace));
    let page = server.storage().range(KeyRange::prefix(table(), prefix), None, usize::MAX).await;
    Ok(page.map_err(storage::read_refused)?.items)
}

/// Charges the quotas of the namespace for a new or changed object, or refuses it.
pub(crate) async fn charge(
    call: &Call,
    old: Option<&Value>,
    new: &Value,
) -> Result<Charge, Status> {
    let is_counted = call.resource.is_namespaced
        && !call.is_own
        && (call.subresource.is_empty() || call.subresource == "resize");
    if !is_counted || quotas(&call.server, &call.cluster.id, &call.namespace).await?.is_empty() {
        return Ok(Charge::default());
    }
    let lock = call.server.quota_locks().take(&call.cluster.id, &call.namespace).await;
    let mut charge = Charge { lock: Some(lock), ..Charge::default() };
    let is_itself = storage::table(&call.resource) == table();
    for stored in quotas(&call.server, &call.cluster.id, &call.namespace).await? {
        let Some(changed) = charged(call, &stored, old, new).await? else { continue };
        let guard = Guard::At(stored.key.clone(), stored.modified);
        let put = Operation::Put(stored.key.clone(), object::encode(&changed));
        if charge.operations.is_empty() && !is_itself {
            charge.guards.push(guard);
            charge.operations.push(put);
        } else if !call.dry_run {
            // One transaction holds one quota. The others are charged before: what is charged in vain is given
            // back when the quota is counted again.
            match call.server.commit(&call.cluster, Transaction::one(guard, put)).await {
                Ok(_) => {}
                Err(NotCommitted::Refused(status)) => return Err(status),
                Err(NotCommitted::Guard(_)) => {
                    return Err(call.conflict("the quota was changed; please try again"));
                }
            }
        }
    }
    Ok(charge)
}

/// A quota with what the write uses more of it; none if it uses nothing more.
async fn charged(
    call: &Call,
    stored: &Versioned,
    old: Option<&Value>,
    new: &Value,
) -> Result<Option<Value>, Status> {
    let mut quota = object::decode(stored);
    let hard = amounts(at(&quota, "spec.hard"));
    let refused = |why: String| {
        let (group, plural) = (&call.resource.group, &call.resource.plural);
        Err(Status::forbidden(group, plural, object::name(new), why))
    };
    let more = delta(&call.resource, &quota, old, new);
    let more: Amounts = more.into_iter().filter(|(name, _)| hard.contains_key(name)).collect();
    if scopes::takes(&quota, &call.resource, new)
        && let Some(why) = usage::unspecified(&call.resource, &hard, new)
    {
        return refused(format!("failed quota: {}: {why}", object::name(&quota)));
    }
    if more.is_empty() {
        return Ok(None);
    }
    let mut used = amounts(at(&quota, "status.used"));
    if more.keys().any(|name| !used.contains_key(name)) {
        used = count::used(&call.server, &call.cluster, &call.namespace, &quota).await?;
    }
    let mut exceeded: Vec<&String> = Vec::new();
    let mut after = used.clone();
    for (name, amount) in &more {
        let total = used.get(name).map_or_else(|| amount.clone(), |held| sum(held, amount));
        if hard.get(name).is_some_and(|most| total > *most) {
            exceeded.push(name);
        }
        after.insert(name.clone(), total);
    }
    if !exceeded.is_empty() {
        let shown = |all: &Amounts| {
            let parts = exceeded.iter().map(|name| {
                let amount = all.get(*name).map_or_else(|| "0".to_owned(), ToString::to_string);
                format!("{name}={amount}")
            });
            parts.collect::<Vec<_>>().join(",")
        };
        return refused(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            object::name(&quota),
            shown(&more),
            shown(&used),
            shown(&hard)
        ));
    }
    count::set_status(&mut quota, &after);
    Ok(Some(quota))
}

/// What an object uses more than before, as far as a quota is about it.
fn delta(resource: &Resource, quota: &Value, old: Option<&Value>, new: &Value) -> Amounts {
    if !scopes::takes(quota, resource, new) {
        return Amounts::new();
    }
    let mut more = usage::of(resource, new);
    if let Some(old) = old.filter(|old| scopes::takes(quota, resource, old)) {
        for (name, amount) in usage::of(resource, old) {
            if let Some(now) = more.get_mut(&name) {
                *now = now.with_nanos(now.nanos().saturating_sub(amount.nanos()));
            }
        }
    }
    more.retain(|_, amount| amount.nanos() > 0);
    more
}

/// Amounts as an object has them.
fn as_value(all: &Amounts) -> Value {
    all.iter().map(|(name, amount)| (name.clone(), json!(amount.to_string()))).collect()
}
