//! What is done about a ForceRelease: one write to the grant, or one answer.

use super::decide::{Decision, Refusal, StartsFrom};
use super::observe::{Scene, grant_address, incoming, is_untouched};
use crate::kinds::FORCE_RELEASE;
use crate::record::{GrantRecord, ref_to};
use interlock_api::placement::condition::{
    AT_MOST_ONE_GIVEN_UP, DATA_LOSS_BOUND, FENCED, OWNER_UNREACHABLE, PLACED,
};
use interlock_api::placement::{
    Attestation, Claim, CopyState, DataCopy, Fill, ForceOutcome, Phase, Pin, Snapshot,
};
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{Address, Event, Importance, Name, Nothing, Place, Read, Step, Write};
use jiff::Timestamp;
use serde_json::json;

/// The one effect of a decision.
pub(crate) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match (decision, &scene.grant) {
        (Decision::Nothing, _) => Step::rest("the ForceRelease has an outcome"),
        (Decision::LiveRead, _) => Step::LiveRead {
            reads: vec![Read::Object(grant_address(&scene.spec))],
            because: "a refusal is final, so it needs a live read".to_owned(),
        },
        (Decision::Refuse(refusal), _) => refuse(scene, refusal),
        (Decision::Fence(starts_from), Some(grant)) => fence(scene, grant, &starts_from),
        (Decision::MarkApplied, Some(grant)) => applied(scene, grant),
        (Decision::Fence(_) | Decision::MarkApplied, None) => Step::rest("there is no such grant"),
    }
}

fn answer(scene: &Scene, outcome: ForceOutcome, because: &str) -> Write {
    let change = json!({"status": {"outcome": outcome, "because": because}});
    Write::patch_status(Place::HUB, &FORCE_RELEASE, &scene.object, change)
}

fn refuse(scene: &Scene, refusal: Refusal) -> Step<Nothing> {
    let spec = &scene.spec;
    let because = match refusal {
        Refusal::NoSuchGrant => format!("there is no grant {}", spec.grant),
        Refusal::OtherGrant => {
            format!("grant {} is another one: its uid is not {}", spec.grant, spec.grant.uid)
        }
        Refusal::OtherOwner => {
            let grant = scene.grant.as_ref();
            let owner = grant.and_then(|grant| grant.status.owner.as_ref());
            match owner {
                Some(owner) if owner.name == spec.owner.name => format!(
                    "the owner is cluster {owner} with uid {}; the ForceRelease names uid {}",
                    owner.uid, spec.owner.uid
                ),
                Some(owner) => {
                    format!("the owner is {owner}; the ForceRelease names {}", spec.owner)
                }
                None => format!("the grant has no owner; the ForceRelease names {}", spec.owner),
            }
        }
        Refusal::OtherEpoch(epoch) => {
            format!("the epoch is {epoch}; the ForceRelease names {}", spec.epoch)
        }
        Refusal::NotHeld => "the grant has no owner, so there is nothing to release".to_owned(),
    };
    let write = answer(scene, ForceOutcome::Refused, &because);
    let note = format!("Refused: {because}. next: interlock status");
    Step::write(write, because).telling(event(scene, "ForceRefused", note))
}

fn applied(scene: &Scene, grant: &GrantRecord) -> Step<Nothing> {
    let owner = &scene.spec.owner;
    let because = if scene.is_fenced_by_it() {
        format!("cluster {owner} is declared gone at epoch {}", scene.spec.epoch)
    } else {
        let by = grant.status.fenced_by.as_ref().map(|by| by.name.as_str());
        format!("cluster {owner} was declared gone already, by {}", by.unwrap_or("another"))
    };
    let note = format!("{because}; the next cluster starts from the last snapshots");
    let write = answer(scene, ForceOutcome::Applied, &because);
    Step::write(write, because).telling(event(scene, "ForceApplied", note))
}

/// The event is on the namespace, or, where nobody knows of one, whoever asked.
fn event(scene: &Scene, reason: &'static str, note: String) -> Event {
    let grant = scene.grant.as_ref().filter(|grant| grant.uid() == scene.spec.grant.uid);
    if let Some(grant) = grant {
        return grant.tells(Importance::Warning, reason, note);
    }
    let about = Address::new(Place::HUB, &FORCE_RELEASE, Name::of(&scene.object));
    let uid = uid_of(&scene.object).to_owned();
    Event { about, uid, importance: Importance::Warning, reason, note }
}

fn fence(scene: &Scene, grant: &GrantRecord, starts_from: &[StartsFrom]) -> Step<Nothing> {
    let spec = &scene.spec;
    let left = grant.status.claims.iter().zip(starts_from);
    let left: Vec<(&Claim, Option<&Pin>)> =
        left.map(|(claim, from)| (claim, pin_of(grant, claim, *from))).collect();
    // Whoever is next fills the claim from its pin: that the owner had filled it counts no more.
    let claims = left.iter().map(|(claim, pin)| match pin {
        Some(_) => Claim { fill: Fill::Waiting, ..(*claim).clone() },
        None => (*claim).clone(),
    });
    let bound = loss_bound(grant, &left, scene.now);
    let change = json!({
        "because": null,
        "fencedBy": ref_to(&scene.object),
        // Whoever gives the owner its rights in the cloud takes those of this epoch back. An epoch that
        // was ended by force stays ended, so the number never falls.
        "fencedEpoch": grant.status.epoch.max(grant.status.fenced_epoch.unwrap_or(0)),
        "claims": claims.collect::<Vec<Claim>>(),
        "pins": left.iter().filter_map(|(_, pin)| *pin).collect::<Vec<&Pin>>(),
        "copies": copies_left(grant),
        "conditions": grant.conditions_with(&findings(scene, grant, &bound), scene.now),
    });
    let write = grant.write_phase(Phase::Fenced, scene.now, change);
    let because = format!(
        "{} declares cluster {} gone ({}): {}",
        spec.requester, spec.owner, spec.attestation, spec.reason
    );
    let note = format!("{because}. {bound}");
    Step::write(write, because).telling(event(scene, "DataLossDeclared", note))
}

fn pin_of<'a>(grant: &'a GrantRecord, claim: &'a Claim, from: StartsFrom) -> Option<&'a Pin> {
    match from {
        StartsFrom::Incoming => incoming(grant, claim),
        StartsFrom::Last => claim.last_snapshot.as_ref(),
        StartsFrom::Nothing => None,
    }
}

fn copies_left(grant: &GrantRecord) -> Vec<DataCopy> {
    let Some(owner) = &grant.status.owner else { return grant.status.copies.clone() };
    let mut copies = grant.status.copies.clone();
    copies.retain(|copy| !(copy.cluster.is_same(owner) && copy.state == CopyState::Live));
    let (cluster, epoch) = (owner.clone(), grant.status.epoch);
    copies.push(DataCopy { cluster, epoch, state: CopyState::Unclosed });
    copies
}

fn findings(scene: &Scene, grant: &GrantRecord, bound: &str) -> Vec<Finding> {
    let spec = &scene.spec;
    let told = format!(
        "{} declared cluster {} gone at epoch {} ({}): {}",
        spec.requester, spec.owner, spec.epoch, spec.attestation, spec.reason
    );
    let mut findings = vec![
        Finding::holds(FENCED, "ForceRelease", told),
        Finding::holds(DATA_LOSS_BOUND, "LastSnapshots", bound),
        Finding::fails(
            PLACED,
            "Fenced",
            "the owner was declared gone; the grant is released for the next cluster",
        ),
    ];
    if conditions::is_true(&grant.status.conditions, OWNER_UNREACHABLE) {
        let message = "the owner was declared gone; the controller does not wait for it any more";
        findings.push(Finding::fails(OWNER_UNREACHABLE, "Fenced", message));
    }
    if spec.attestation == Attestation::AcceptDivergence {
        let message = format!(
            "{} accepted, by force release {}, that cluster {} may still write: at most one writer \
             is not promised until that cluster has closed epoch {}",
            spec.requester,
            name_of(&scene.object),
            spec.owner,
            spec.epoch
        );
        findings.push(Finding::holds(AT_MOST_ONE_GIVEN_UP, "AcceptDivergence", message));
    }
    findings
}

/// What may be lost, claim by claim: the snapshot that is left, and how old it is.
fn loss_bound(grant: &GrantRecord, left: &[(&Claim, Option<&Pin>)], now: Timestamp) -> String {
    let bounds: Vec<String> = left
        .iter()
        .map(|(claim, pin)| {
            let bound = match is_untouched(grant, claim) {
                true => "nothing is lost: the owner had not begun to write".to_owned(),
                false => bound(*pin, now),
            };
            format!("claim {}: {bound}", claim.name)
        })
        .collect();
    if bounds.is_empty() {
        return "The namespace has no claims, so no data is given up".to_owned();
    }
    bounds.join("; ")
}

fn bound(left: Option<&Pin>, now: Timestamp) -> String {
    match left {
        None => "there is no snapshot; the data stays on the cluster that is gone".to_owned(),
        Some(Pin { snapshot: Snapshot::Fresh {}, .. }) => {
            "there is no snapshot; everything written to the claim is given up".to_owned()
        }
        Some(Pin { snapshot: Snapshot::InPlace { cluster, .. }, .. }) => {
            format!("there is no snapshot; the data is on cluster {cluster} only")
        }
        Some(pin) => {
            let seconds = now.as_second().saturating_sub(pin.taken.0.as_second()).max(0);
            let (taken, age) = (pin.taken.0, age(seconds));
            format!("last snapshot of {taken}, {age} old; what was written since is given up")
        }
    }
}

fn age(seconds: i64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, _) => format!("{hours}h{minutes}m"),
    }
}
