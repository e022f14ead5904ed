//! What is never done to snapshots while claims are filled from them.

use super::{Keeper, Promise, is_done, may_be_done, named};
use interlock_kernel::Record;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A snapshot that is held stays.
pub(super) const HELD_STAYS: Promise = Promise {
    name: "HeldStays",
    sentence: "the data of a snapshot is not deleted while a claim that is being filled holds the snapshot",
    keeper: || Box::<Held>::default(),
};

/// A hold lasts as long as it is needed.
pub(super) const HELD_WHILE_FILLED: Promise = Promise {
    name: "HeldWhileFilled",
    sentence: "a claim drops its hold on a snapshot only after the temporary claim is gone for certain",
    keeper: || Box::<Filled>::default(),
};

/// A claim that is filled, and what is decided about it.
struct Filling<'a> {
    /// The claim on its cluster.
    claim: String,
    /// What a step is about.
    facts: &'a Value,
    decision: &'a str,
}

/// Names are unique on a cluster only.
fn on_cluster(record: &Record, name: &str) -> String {
    let cluster = record.at.get("cluster").map_or("", String::as_str);
    format!("{cluster} {name}")
}

fn filling(record: &Record) -> Option<Filling<'_>> {
    let facts = record.facts.get("Claim").filter(|_| record.controller == "volumes/populator")?;
    let decision = named(&record.decision, &["Claim"])?.as_str()?;
    Some(Filling { claim: on_cluster(record, &record.subject), facts, decision })
}

impl Filling<'_> {
    /// Whether the claim has nothing to do with a snapshot from now on.
    fn is_over(&self) -> bool {
        matches!(self.decision, "Unpin" | "UnmarkFilled" | "UnmarkDeleted")
    }

    /// Whether a live read shows no temporary claim. A person may have deleted it.
    fn has_none_for_certain(&self) -> bool {
        let is_fresh = self.facts["is_fresh"] == true;
        is_fresh && matches!(self.facts["prime"].as_str(), Some("None" | "Foreign"))
    }
}

/// The claims that hold each snapshot.
#[derive(Default)]
struct Held(BTreeMap<String, BTreeSet<String>>);

impl Held {
    /// Notes who holds which snapshot after a step of the populator.
    fn note(&mut self, record: &Record, of: &Filling<'_>) {
        let name = record.effect.as_ref().and_then(|effect| effect.name.as_deref());
        let snapshot = on_cluster(record, name.unwrap_or_default());
        if of.decision == "Hold" && is_done(record) {
            self.0.entry(snapshot).or_default().insert(of.claim.clone());
            return;
        }
        let drops = |held: &String| of.decision == "DropHold" && *held == snapshot;
        if may_be_done(record) {
            self.0.retain(|held, claims| {
                if of.is_over() || drops(held) {
                    claims.remove(&of.claim);
                }
                !claims.is_empty()
            });
        }
    }
}

/// Whether a step deletes the data of a snapshot that somebody may hold. One whose holds are gone from it, although no
/// claim dropped them, was released by a person, who may do so.
fn deletes_unasked(record: &Record) -> bool {
    if record.controller != "volumes/storage-snapshot" || !is_done(record) {
        return false;
    }
    let (decision, facts) = (&record.decision, &record.facts);
    let is_free = |facts: &Value| facts["is_deleting"] == true && facts["is_held"] == false;
    match (decision["Snapshot"].as_str(), decision["Orphan"].as_str()) {
        (Some("Delete"), _) => !is_free(&facts["Snapshot"]),
        (_, Some("DeleteSnapshot")) => facts["Orphan"]["is_left_for_certain"] != true,
        _ => false,
    }
}

impl Keeper for Held {
    fn hear(&mut self, record: &Record) -> Result<(), String> {
        if let Some(of) = filling(record) {
            self.note(record, &of);
        }
        if !deletes_unasked(record) {
            return Ok(());
        }
        let snapshot = on_cluster(record, &record.subject);
        let claims = self.0.get(&snapshot).into_iter().flatten();
        let claims: Vec<&str> = claims.map(String::as_str).collect();
        match claims.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "the data of snapshot {snapshot} is deleted while claim {} holds it",
                claims.join(", ")
            )),
        }
    }
}

/// The claims whose temporary claims were made.
#[derive(Default)]
struct Filled(BTreeSet<String>);

impl Keeper for Filled {
    fn hear(&mut self, record: &Record) -> Result<(), String> {
        let Some(of) = filling(record) else { return Ok(()) };
        if of.decision == "Pour" && is_done(record) {
            self.0.insert(of.claim);
            return Ok(());
        }
        let is_early = of.decision == "DropHold" && is_done(record) && !of.has_none_for_certain();
        let ends = of.is_over() || of.decision == "DropHold";
        let was_filled = ends && may_be_done(record) && self.0.remove(&of.claim);
        match is_early && was_filled {
            true => Err(format!(
                "claim {} drops its hold while its temporary claim may be filled from the snapshot",
                of.claim
            )),
            false => Ok(()),
        }
    }
}
