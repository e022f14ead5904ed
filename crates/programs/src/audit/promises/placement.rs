//! What placement never does.

use super::{Keeper, Promise, is_done, may_be_done, number, text};
use interlock_kernel::Record;
use std::collections::BTreeMap;

const SYNCER: &str = "placement/syncer";
const SCHEDULER: &str = "placement/scheduler";
const FENCING: &str = "placement/fencing";

/// No two clusters have a permit for one namespace.
pub(super) const ONE_PERMIT: Promise = Promise {
    name: "OnePermit",
    sentence: "at most one cluster has a permit for a namespace at any time",
    keeper: || Box::<Permits>::default(),
};

/// No grant has two owners.
pub(super) const ONE_OWNER: Promise = Promise {
    name: "OneOwner",
    sentence: "a grant is given to a cluster only after the one before acknowledged, or was declared gone",
    keeper: || Box::<Owners>::default(),
};

/// Epochs grow.
pub(super) const EPOCHS_GROW: Promise = Promise {
    name: "EpochsGrow",
    sentence: "no epoch of a namespace is permitted after a later one, and none on two clusters",
    keeper: || Box::<Epochs>::default(),
};

/// What a syncer decided, of which grant, on which cluster.
struct Of<'a> {
    grant: &'a str,
    cluster: &'a str,
}

fn of_syncer(record: &Record) -> Option<Of<'_>> {
    let grant = text(&record.facts, "/at/grant").filter(|_| record.controller == SYNCER)?;
    Some(Of { grant, cluster: text(&record.facts, "/at/cluster")? })
}

/// The epoch that a step of a syncer permitted, if it surely did.
fn permitted(record: &Record) -> Option<i64> {
    record.decision.get("Permit")?.as_i64().filter(|_| is_done(record))
}

/// The grant whose owner is declared gone, and up to which epoch.
fn fenced(record: &Record) -> Option<(&str, i64)> {
    let is_fence = record.controller == FENCING && record.decision.get("Fence").is_some();
    let name =
        record.effect.as_ref().filter(|_| is_fence && may_be_done(record))?.name.as_deref()?;
    Some((name, number(&record.facts, "/epoch")?))
}

/// The grant that is deleted: one that has its name later is another.
fn deleted(record: &Record) -> Option<&str> {
    let is_deletion = record.controller == SCHEDULER
        && text(&record.decision, "/Grant") == Some("DeleteGrant")
        && may_be_done(record);
    record.effect.as_ref().filter(|_| is_deletion)?.name.as_deref()
}

/// The epochs that are permitted, by grant and cluster.
#[derive(Default)]
struct Permits(BTreeMap<String, BTreeMap<String, i64>>);

impl Keeper for Permits {
    fn hear(&mut self, record: &Record) -> Result<(), String> {
        if let Some((grant, epoch)) = fenced(record) {
            if let Some(permits) = self.0.get_mut(grant) {
                permits.retain(|_, permitted| *permitted > epoch);
            }
            return Ok(());
        }
        let Some(Of { grant, cluster }) = of_syncer(record) else { return Ok(()) };
        let permits = self.0.entry(grant.to_owned()).or_default();
        if let Some(epoch) = permitted(record) {
            let other = permits.iter().find(|(other, _)| *other != cluster);
            let other = other.map(|(other, epoch)| (other.clone(), *epoch));
            permits.insert(cluster.to_owned(), epoch);
            let Some((other, before)) = other else { return Ok(()) };
            return Err(format!(
                "epoch {epoch} of {grant} is permitted on {cluster} while epoch {before} is permitted \
                 on {other}"
            ));
        }
        let ends = matches!(record.decision.as_str(), Some("Withdraw" | "DeleteNamespace"))
            || record.decision.get("Close").is_some()
            || record.decision.get("CreateHere").is_some();
        if ends && may_be_done(record) {
            permits.remove(cluster);
        }
        Ok(())
    }
}

/// The grants that have an owner.
#[derive(Default)]
struct Owners(BTreeMap<String, u64>);

impl Keeper for Owners {
    fn hear(&mut self, record: &Record) -> Result<(), String> {
        let ends = |record: &Record| {
            let is_handed = record.decision.get("Acknowledge").is_some()
                || record.decision.as_str() == Some("AcknowledgeDeletion");
            is_handed && may_be_done(record)
        };
        if let Some(Of { grant, .. }) = of_syncer(record).filter(|_| ends(record)) {
            self.0.remove(grant);
        }
        if let Some((grant, _)) = fenced(record) {
            self.0.remove(grant);
        }
        if let Some(grant) = deleted(record) {
            self.0.remove(grant);
        }
        let is_given = record.controller == SCHEDULER
            && record.decision.pointer("/Grant/Grant").is_some()
            && is_done(record);
        let Some(effect) = record.effect.as_ref().filter(|_| is_given) else { return Ok(()) };
        let grant = effect.name.clone().unwrap_or_default();
        match self.0.insert(grant.clone(), record.number) {
            None => Ok(()),
            Some(before) => {
                Err(format!("grant {grant} was given in step {before}, and not handed over since"))
            }
        }
    }
}

/// The highest epoch that was permitted of each grant, and where.
#[derive(Default)]
struct Epochs(BTreeMap<String, (i64, String)>);

impl Keeper for Epochs {
    fn hear(&mut self, record: &Record) -> Result<(), String> {
        if let Some(grant) = deleted(record) {
            self.0.remove(grant);
        }
        let Some(Of { grant, cluster }) = of_syncer(record) else { return Ok(()) };
        let Some(epoch) = permitted(record) else { return Ok(()) };
        let before = self.0.insert(grant.to_owned(), (epoch, cluster.to_owned()));
        match before {
            Some((before, there)) if before > epoch || before == epoch && there != cluster => {
                Err(format!(
                    "epoch {epoch} of {grant} is permitted on {cluster} after epoch {before} was on \
                     {there}"
                ))
            }
            Some(_) | None => Ok(()),
        }
    }
}
