//! What the scheduler does about a decision: one write to the hub, over the version that it saw.

use super::decide::{Decision, Misfit, Why};
use super::findings::{ambiguous, findings, granted, heard_again, stopping};
use super::observe::{Scene, cluster_address, grant_address, namespace_address};
use crate::kinds::{GRANT, MOVES_FULL, NAMESPACE};
use crate::record::{GrantRecord, finalizers_with, finalizers_without, name_of, ref_to, uid_of};
use interlock_api::names::FINALIZER_GRANT;
use interlock_api::placement::condition::{
    DATA_SYNCED, FENCED, FILLED, OWNER_UNREACHABLE, PLACED, RUNNING, STOPPED,
};
use interlock_api::placement::{
    Claim, CopyState, DataCopy, Fill, Image, Phase, Pin, Ref, RevokedBecause,
};
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::{Event, Importance, Nothing, Object, Part, Place, Read, Step, Write};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use std::time::Duration;

/// How long to wait for a place among the moves, should nobody say that there is one.
const MOVES_WAIT: Duration = Duration::from_secs(30);
/// How long until the room on clusters is looked at again: it changes without a word.
const ROOM_WAIT: Duration = Duration::from_secs(60);

/// The one effect of a decision.
pub(crate) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match (decision, &scene.grant, &scene.namespace) {
        (Decision::Nothing(why), None, _) => Step::rest(resting(why)),
        (Decision::Nothing(why), Some(grant), _) => nothing(scene, grant, why),
        (Decision::LookForGrant, ..) => Step::Look {
            reads: vec![Read::Object(grant_address(&scene.grant_name))],
            because: "the namespace goes, and the cache may not know its grant yet".to_owned(),
        },
        (Decision::LookForNamespace, Some(grant), _) => Step::Look {
            reads: vec![Read::Object(namespace_address(grant))],
            because: "its namespace is not in the cache, which proves nothing".to_owned(),
        },
        (Decision::LookAtCluster(place), ..) => Step::Look {
            reads: vec![Read::Object(cluster_address(&scene.cluster(place).name))],
            because: "a cluster that is being deleted may be let go at any time".to_owned(),
        },
        (Decision::Untarget, Some(grant), _) => {
            let write = grant.write_spec(json!({ "target": null }));
            Step::write(write, "the cluster that was to have it is being deleted")
        }
        (Decision::PutFinalizer, _, Some(namespace)) => {
            let finalizers = finalizers_with(namespace, FINALIZER_GRANT);
            set_finalizers(namespace, finalizers, "it must not vanish while a cluster has it")
        }
        (Decision::TakeFinalizerOff, _, Some(namespace)) => {
            let finalizers = finalizers_without(namespace, FINALIZER_GRANT);
            set_finalizers(namespace, finalizers, "no cluster has anything of it")
        }
        (Decision::CreateGrant, _, Some(namespace)) => create(scene, namespace),
        (Decision::Target(place), Some(grant), _) => target(scene, grant, place),
        (Decision::ListClaims, Some(grant), _) => list_claims(scene, grant),
        (Decision::Grant(place), Some(grant), _) => give(scene, grant, place),
        (Decision::Revoke(because), Some(grant), _) => revoke(scene, grant, because),
        (Decision::BeginDeleting, Some(grant), _) => {
            let change = json!({"because": null});
            let write = grant.write_phase((Phase::Deleting, scene.now), change);
            Step::write(write, "the namespace goes, and nobody has it")
        }
        (Decision::DeleteGrant, Some(grant), _) => {
            let write = Write::delete(Place::HUB, &GRANT, &grant.object);
            Step::write(write, "nothing of its namespace is left anywhere")
        }
        (decision, ..) => Step::rest(format!("{decision:?} is about something that is not there")),
    }
}

fn resting(why: Why) -> String {
    match why {
        Why::NamespaceUnknown => "its namespace is not in the cache, which proves nothing",
        Why::Unplaced => "its namespace does not ask to be placed",
        Why::CopiesLeft => "the cache does not show its grant yet",
        Why::ClusterGoes => "the cluster that is to have it goes; the cache will show it",
        _ => "there is no grant to do anything about",
    }
    .to_owned()
}

fn set_finalizers(namespace: &Object, finalizers: Vec<String>, because: &str) -> Step<Nothing> {
    let change = json!({"metadata": {"finalizers": finalizers}});
    let write = Write::patch(Place::HUB, &NAMESPACE, namespace, (Part::Main, change));
    Step::write(write, because)
}

/// What a grant takes over from the Placement that counts.
fn policy(scene: &Scene) -> Value {
    let spec = scene.rules.as_ref().map(|rules| rules.spec.clone()).unwrap_or_default();
    json!({"onUnreachable": spec.on_unreachable, "volumes": spec.volumes})
}

fn create(scene: &Scene, namespace: &Object) -> Step<Nothing> {
    let mut spec = policy(scene);
    spec["namespace"] = json!(ref_to(namespace));
    let address = grant_address(&scene.grant_name);
    let write = Write::Create { address, object: json!({ "spec": spec }) };
    let step = Step::write(write, format!("namespace {} asks to be placed", name_of(namespace)));
    match (ambiguous(scene), event_on(namespace)) {
        (Some(note), event) => step.telling(Event { note, ..event }),
        (None, _) => step,
    }
}

fn event_on(namespace: &Object) -> Event {
    use interlock_kernel::{Address, Name};
    Event {
        about: Address::new(Place::HUB, &NAMESPACE, Name::of(namespace)),
        uid: uid_of(namespace).to_owned(),
        importance: Importance::Warning,
        reason: "PlacementAmbiguous",
        note: String::new(),
    }
}

fn target(scene: &Scene, grant: &GrantRecord, place: usize) -> Step<Nothing> {
    let wished = scene.cluster(place);
    let mut spec = policy_change(scene, grant).unwrap_or_else(|| json!({}));
    spec["target"] = json!(wished);
    let because = match scene.asked_for() {
        Some(name) => format!("the namespace asks for cluster {name}"),
        None => format!("cluster {wished} fits best"),
    };
    Step::write(grant.write_spec(spec), because)
}

/// What the Placement says now, if the grant says something else. A merge patch leaves out what it
/// does not name, so what the Placement has no more is named as null.
fn policy_change(scene: &Scene, grant: &GrantRecord) -> Option<Value> {
    let mut wanted = policy(scene);
    let have = json!({"onUnreachable": grant.spec.on_unreachable, "volumes": grant.spec.volumes});
    if wanted == have {
        return None;
    }
    let volumes = wanted["volumes"].as_object_mut()?;
    for key in ["repository", "syncSchedule"] {
        volumes.entry(key).or_insert(Value::Null);
    }
    let classes = volumes.entry("storageClasses").or_insert_with(|| json!({}));
    for class in grant.spec.volumes.storage_classes.keys() {
        if classes.get(class).is_none() {
            classes[class] = Value::Null;
        }
    }
    Some(wanted)
}

/// Every claim that is listed has a pin, and a new one begins empty.
fn list_claims(scene: &Scene, grant: &GrantRecord) -> Step<Nothing> {
    let mut claims = grant.status.claims.clone();
    let mut pins = grant.status.pins.clone();
    let mut names = Vec::new();
    for claim in scene.unlisted() {
        let Ref { name, uid } = ref_to(claim);
        pins.retain(|pin| pin.claim_uid != uid);
        pins.push(fresh(&name, &uid, (grant.status.epoch, scene)));
        names.push(name.clone());
        claims.push(Claim { name, uid, ..Claim::default() });
    }
    let write = grant.write_status(json!({"claims": claims, "pins": pins}));
    Step::write(
        write,
        format!("a cluster may make a claim once it is listed: {}", names.join(", ")),
    )
}

fn fresh(claim: &str, uid: &str, (epoch, scene): (i64, &Scene)) -> Pin {
    Pin {
        claim: claim.to_owned(),
        claim_uid: uid.to_owned(),
        epoch,
        taken: Time(scene.now),
        files: 0,
        bytes: 0,
        digest: String::new(),
        image: Image::Fresh {},
    }
}

fn give(scene: &Scene, grant: &GrantRecord, place: usize) -> Step<Nothing> {
    let cluster = scene.cluster(place);
    let status = &grant.status;
    let epoch = status.epoch.saturating_add(1);
    let mut pins = status.pins.clone();
    pins.retain(|pin| grant.lists(&pin.claim_uid));
    for claim in &status.claims {
        if !pins.iter().any(|pin| pin.claim_uid == claim.uid) {
            pins.push(fresh(&claim.name, &claim.uid, (epoch, scene)));
        }
    }
    let is_in_place = |claim: &Claim| {
        let mut in_place = pins.iter().filter(|pin| matches!(pin.image, Image::InPlace { .. }));
        in_place.any(|pin| pin.claim_uid == claim.uid)
    };
    let claims: Vec<Claim> = status
        .claims
        .iter()
        .map(|claim| Claim {
            fill: Fill::Waiting,
            // The pin is newer than any image before it, unless the volume itself is the pin: then
            // the last image is all there is elsewhere.
            last_image: claim.last_image.clone().filter(|_| is_in_place(claim)),
            progress: None,
            ..claim.clone()
        })
        .collect();
    let mut found = vec![granted(scene, Some(&cluster), epoch)];
    found.extend(heard_again(grant));
    if conditions::is_true(&status.conditions, FENCED) {
        found.push(Finding::fails(FENCED, "Granted", format!("cluster {cluster} has it now")));
    }
    let mut conditions = grant.conditions_with(&found, scene.now);
    // What the owner before said of itself does not hold of the next one.
    let said = [RUNNING, STOPPED, DATA_SYNCED, FILLED];
    conditions.retain(|condition| !said.contains(&condition.type_.as_str()));
    let change = json!({
        "owner": cluster,
        "epoch": epoch,
        "because": null,
        "claims": claims,
        "pins": pins,
        "copies": copies_with_live(grant, &cluster, epoch),
        "conditions": conditions,
    });
    let write = grant.write_phase((Phase::Granted, scene.now), change);
    let note =
        format!("cluster {cluster} has it now, at epoch {epoch}; it fills the claims, then starts");
    Step::write(write, format!("nobody has it, and cluster {cluster} is to have it"))
        .telling(grant.tells(Importance::Normal, "Granted", note))
}

/// A copy that nobody needs is taken over with the grant. One that is alone in having something is
/// kept beside it, until a person has said what becomes of it.
fn copies_with_live(grant: &GrantRecord, cluster: &Ref, epoch: i64) -> Vec<DataCopy> {
    let mut copies = grant.status.copies.clone();
    copies.retain(|copy| {
        !copy.cluster.is_same(cluster)
            || matches!(copy.state, CopyState::Diverged | CopyState::Unclosed)
    });
    copies.push(DataCopy { cluster: cluster.clone(), epoch, state: CopyState::Live });
    copies
}

fn revoke(scene: &Scene, grant: &GrantRecord, because: RevokedBecause) -> Step<Nothing> {
    let finding = stopping(grant, Some(because));
    let note = finding.message.clone();
    let change = json!({
        "because": because,
        "conditions": grant.conditions_with(&[finding], scene.now),
    });
    let write = grant.write_phase((Phase::Revoking, scene.now), change);
    let why = match because {
        RevokedBecause::Move => "another cluster is wished, and it fits",
        RevokedBecause::Drain => "its cluster is to be emptied, and another one fits",
        RevokedBecause::Deletion => "its namespace is being deleted",
    };
    Step::write(write, why).telling(grant.tells(Importance::Normal, "Revoking", note))
}

/// Nothing is done about it; what a person must know is written down once.
fn nothing(scene: &Scene, grant: &GrantRecord, why: Why) -> Step<Nothing> {
    if why == Why::Placed
        && let Some(change) = policy_change(scene, grant)
    {
        return Step::write(grant.write_spec(change), "the placement says something else now");
    }
    let found = findings(scene, grant, why);
    let Some(first) = found.iter().find(|found| !found.is_in(&grant.status.conditions)) else {
        return rest(scene, why, &found);
    };
    let conditions = grant.conditions_with(&found, scene.now);
    let write = grant.write_status(json!({ "conditions": conditions }));
    let step = Step::write(write, first.message.clone());
    match event(scene, grant, first) {
        Some(event) => step.telling(event),
        None => step,
    }
}

fn rest(scene: &Scene, why: Why, found: &[Finding]) -> Step<Nothing> {
    let because = match found.first() {
        Some(found) => found.message.clone(),
        None => resting(why),
    };
    let is_small = |misfit: &Option<Misfit>| matches!(misfit, Some(Misfit::TooSmall { .. }));
    match why {
        Why::MovesFull => Step::Wait { because, at_most: MOVES_WAIT },
        Why::NoneFits | Why::WishDoesNotFit(_) | Why::DataElsewhere
            if scene.facts.clusters.iter().any(|cluster| is_small(&cluster.misfit)) =>
        {
            Step::Wait { because, at_most: ROOM_WAIT }
        }
        _ => Step::Rest { because },
    }
}

/// An event comes with the first word of something new, and not with every other wording of it.
fn event(scene: &Scene, grant: &GrantRecord, found: &Finding) -> Option<Event> {
    let before = conditions::find(&grant.status.conditions, found.kind);
    if found.kind == PLACED && found.holds == Some(true) {
        let note = ambiguous(scene)?;
        let was_told = before.is_some_and(|before| before.message.contains(&note));
        return (!was_told).then(|| grant.tells(Importance::Warning, "PlacementAmbiguous", note));
    }
    let is_news = before.is_none_or(|before| before.reason != found.reason);
    let reason = match found.kind {
        OWNER_UNREACHABLE if found.holds == Some(true) => "OwnerUnreachable",
        PLACED if grant.is_held() && found.reason != "Moving" => "MoveDelayed",
        _ => return None,
    };
    let importance =
        if found.reason == MOVES_FULL { Importance::Normal } else { Importance::Warning };
    is_news.then(|| grant.tells(importance, reason, found.message.clone()))
}
