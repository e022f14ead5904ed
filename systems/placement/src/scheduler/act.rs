//! What the scheduler does about a decision: one write to the hub, over the version that it saw.

use super::decide::{Begin, Decision, For, Giving, News, Tell, Why};
use super::findings::{ambiguous, finding, granted, heard_again, stopping};
use super::observe::{Scene, cluster_address, grant_address, namespace_address};
use super::policy;
use crate::kinds::{GRANT, NAMESPACE};
use crate::record::{GrantRecord, ref_to};
use interlock_api::names::FINALIZER_GRANT;
use interlock_api::placement::condition::{
    DATA_SYNCED, FENCED, FILLED, RIGHTS_READY, RUNNING, STOPPED,
};
use interlock_api::placement::{
    Claim, CopyState, DataCopy, Fill, Phase, Pin, Ref, RevokedBecause, Snapshot,
};
use interlock_kernel::conditions::{Condition, Finding};
use interlock_kernel::metadata::{name_of, put_finalizer, take_finalizer_off, uid_of};
use interlock_kernel::{
    Address, Event, Importance, Name, Nothing, Object, Place, Read, Step, Write,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use std::time::Duration;

/// How long to wait for a place among the moves, should nobody say that there is one.
const MOVES_WAIT: Duration = Duration::from_secs(30);
/// How long until the room on clusters is checked again: it changes without a word.
const ROOM_WAIT: Duration = Duration::from_secs(60);

/// The one effect of a decision.
pub(crate) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match (decision, &scene.grant, &scene.namespace) {
        (Decision::Nothing(why), None, _) => Step::rest(resting(why)),
        (Decision::ReadGrant, ..) => Step::LiveRead {
            reads: vec![Read::Object(grant_address(&scene.grant_name))],
            because: "the namespace is being deleted, and the cache may not show its grant yet"
                .to_owned(),
        },
        (Decision::ReadCluster(place), ..) => Step::LiveRead {
            reads: vec![Read::Object(cluster_address(&scene.cluster(place).name))],
            because: "nothing is granted to a cluster that is being deleted or drained".to_owned(),
        },
        (Decision::PutFinalizer, _, Some(namespace)) => {
            let change = put_finalizer(namespace, FINALIZER_GRANT);
            change_namespace(
                namespace,
                change,
                "the namespace must not be deleted while a cluster owns it",
            )
        }
        (Decision::TakeFinalizerOff, _, Some(namespace)) => {
            let change = take_finalizer_off(namespace, FINALIZER_GRANT);
            change_namespace(namespace, change, "no cluster has data of the namespace")
        }
        (Decision::CreateGrant, _, Some(namespace)) => create(scene, namespace),
        (Decision::CreateAmbiguousGrant, _, Some(namespace)) => {
            create(scene, namespace).telling(ambiguity(scene, namespace))
        }
        (decision, Some(grant), _) => with_grant(scene, grant, decision),
        (decision, None, _) => about_nothing(&decision),
    }
}

fn with_grant(scene: &Scene, grant: &GrantRecord, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Nothing(why) => Step::Rest { because: because(scene, grant, why) },
        Decision::Wait(why, news) => {
            Step::Wait { because: because(scene, grant, why), at_most: at_most(news) }
        }
        Decision::Tell(told) => tell(scene, grant, &told),
        Decision::ReadNamespace => Step::LiveRead {
            reads: vec![Read::Object(namespace_address(grant))],
            because: "the namespace is not in the cache; only a live read can show that it is gone"
                .to_owned(),
        },
        Decision::Untarget => {
            let write = grant.write_spec(json!({ "target": null }));
            Step::write(write, "the target cluster is being deleted or drained")
        }
        Decision::UpdatePolicy => {
            let write = grant.write_spec(policy::change(scene, grant));
            Step::write(write, "the Placement has changed")
        }
        Decision::Target(place) => target(scene, grant, place, json!({})),
        Decision::TargetWithPolicy(place) => {
            target(scene, grant, place, policy::change(scene, grant))
        }
        Decision::ListClaims(places) => list_claims(scene, grant, &places),
        Decision::Grant(giving) => give(scene, grant, &giving),
        Decision::Revoke(because) => revoke(scene, grant, because),
        Decision::BeginDeleting => {
            let change = json!({"because": null});
            let write = grant.write_phase(Phase::Deleting, scene.now, change);
            Step::write(write, "the namespace is being deleted, and the grant has no owner")
        }
        Decision::DeleteGrant => {
            let write = Write::delete(Place::HUB, &GRANT, &grant.object);
            Step::write(write, "no cluster has anything of the namespace")
        }
        decision @ (Decision::ReadGrant
        | Decision::ReadCluster(_)
        | Decision::PutFinalizer
        | Decision::TakeFinalizerOff
        | Decision::CreateGrant
        | Decision::CreateAmbiguousGrant) => about_nothing(&decision),
    }
}

fn about_nothing(decision: &Decision) -> Step<Nothing> {
    Step::rest(format!("the object of {decision:?} does not exist any more"))
}

fn at_most(news: For) -> Duration {
    match news {
        For::Moves => MOVES_WAIT,
        For::Room => ROOM_WAIT,
    }
}

fn resting(why: Why) -> String {
    match why {
        Why::NamespaceUnknown => {
            "the namespace is not in the cache; only a live read can show that it is gone"
        }
        Why::Unplaced => "the namespace has no label interlock.dev/placed=true",
        Why::CopiesLeft => "the cache does not show the grant of the namespace yet",
        Why::ClusterTerminating => "the target cluster is being deleted; the cache will show it",
        Why::ClusterDraining => "the target cluster is being drained; the cache will show it",
        _ => "the namespace has no grant",
    }
    .to_owned()
}

fn change_namespace(namespace: &Object, change: Value, because: &str) -> Step<Nothing> {
    let write = Write::patch(Place::HUB, &NAMESPACE, namespace, change);
    Step::write(write, because)
}

fn create(scene: &Scene, namespace: &Object) -> Step<Nothing> {
    let mut spec = policy::said(scene);
    spec["namespace"] = json!(ref_to(namespace));
    let address = grant_address(&scene.grant_name);
    let write = Write::Create { address, object: json!({ "spec": spec }) };
    Step::write(
        write,
        format!("namespace {} has the label interlock.dev/placed=true", name_of(namespace)),
    )
}

fn ambiguity(scene: &Scene, namespace: &Object) -> Event {
    Event {
        about: Address::new(Place::HUB, &NAMESPACE, Name::of(namespace)),
        uid: uid_of(namespace).to_owned(),
        importance: Importance::Warning,
        reason: "PlacementAmbiguous",
        note: ambiguous(scene).unwrap_or_default(),
    }
}

fn target(scene: &Scene, grant: &GrantRecord, place: usize, mut spec: Value) -> Step<Nothing> {
    let desired = scene.cluster(place);
    spec["target"] = json!(desired);
    let because = match scene.asked_for() {
        Some(name) => format!("cluster {name} is the desired cluster of the namespace"),
        None => format!("cluster {desired} fits best"),
    };
    Step::write(grant.write_spec(spec), because)
}

/// Every claim that is listed has a pin, and a new one begins empty.
fn list_claims(scene: &Scene, grant: &GrantRecord, places: &[usize]) -> Step<Nothing> {
    let mut claims = grant.status.claims.clone();
    let mut pins = grant.status.pins.clone();
    let mut names = Vec::new();
    for claim in places.iter().filter_map(|place| scene.claims.get(*place)) {
        let Ref { name, uid } = ref_to(claim);
        let claim = Claim { name, uid, ..Claim::default() };
        pins.retain(|pin| pin.claim_uid != claim.uid);
        pins.push(fresh(scene, &claim, grant.status.epoch));
        names.push(claim.name.clone());
        claims.push(claim);
    }
    let write = grant.write_status(json!({"claims": claims, "pins": pins}));
    Step::write(
        write,
        format!("the grant lists the claims that its owner may create: {}", names.join(", ")),
    )
}

fn fresh(scene: &Scene, claim: &Claim, epoch: i64) -> Pin {
    Pin {
        claim: claim.name.clone(),
        claim_uid: claim.uid.clone(),
        epoch,
        taken: Time(scene.now),
        files: 0,
        bytes: 0,
        digest: String::new(),
        snapshot: Snapshot::Fresh {},
    }
}

fn give(scene: &Scene, grant: &GrantRecord, giving: &Giving) -> Step<Nothing> {
    let cluster = scene.cluster(giving.to);
    let status = &grant.status;
    let epoch = status.epoch.saturating_add(1);
    let mut pins = status.pins.clone();
    pins.retain(|pin| grant.lists(&pin.claim_uid));
    let mut claims = Vec::new();
    for (claim, begin) in status.claims.iter().zip(&giving.begins) {
        if *begin == Begin::Empty {
            pins.push(fresh(scene, claim, epoch));
        }
        let last_snapshot = match begin {
            Begin::InPlace => claim.last_snapshot.clone(),
            Begin::Pinned | Begin::Empty => None,
        };
        claims.push(Claim { fill: Fill::Waiting, last_snapshot, progress: None, ..claim.clone() });
    }
    let change = json!({
        "owner": cluster,
        "epoch": epoch,
        "because": null,
        "claims": claims,
        "pins": pins,
        "copies": copies_with_live(grant, &cluster, epoch, &giving.taken_over),
        "conditions": conditions_given(scene, grant, giving),
    });
    let write = grant.write_phase(Phase::Granted, scene.now, change);
    let note = format!(
        "cluster {cluster} owns the namespace at epoch {epoch}; the syncer fills the claims, then \
         starts the pods"
    );
    Step::write(write, format!("the grant has no owner, and cluster {cluster} is its target"))
        .telling(grant.tells(Importance::Normal, "Granted", note))
}

fn conditions_given(scene: &Scene, grant: &GrantRecord, giving: &Giving) -> Vec<Condition> {
    let cluster = scene.cluster(giving.to);
    let epoch = grant.status.epoch.saturating_add(1);
    let mut found = vec![granted(scene, Some(&cluster), epoch)];
    if giving.is_owner_back {
        found.push(heard_again());
    }
    if giving.is_fence_over {
        found.push(Finding::fails(
            FENCED,
            "Granted",
            format!("cluster {cluster} owns the namespace now"),
        ));
    }
    let mut conditions = grant.conditions_with(&found, scene.now);
    // What the owner before said of itself does not hold of the next one.
    let said = [RUNNING, STOPPED, DATA_SYNCED, FILLED, RIGHTS_READY];
    conditions.retain(|condition| !said.contains(&condition.type_.as_str()));
    conditions
}

/// The copies with that of the new owner, which takes the place of those of these states there.
fn copies_with_live(
    grant: &GrantRecord,
    cluster: &Ref,
    epoch: i64,
    taken_over: &[CopyState],
) -> Vec<DataCopy> {
    let mut copies = grant.status.copies.clone();
    copies.retain(|copy| !(copy.cluster.is_same(cluster) && taken_over.contains(&copy.state)));
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
    let write = grant.write_phase(Phase::Revoking, scene.now, change);
    let why = match because {
        RevokedBecause::Move => "another cluster is desired, and it fits",
        RevokedBecause::Drain => "the owner is draining, and another cluster fits",
        RevokedBecause::Deletion => "the namespace is being deleted",
    };
    Step::write(write, why).telling(grant.tells(Importance::Normal, "Revoking", note))
}

/// What is said, in words: the reason why nothing is done, first.
fn findings(scene: &Scene, grant: &GrantRecord, told: &Tell) -> Vec<Finding> {
    let mut found: Vec<Finding> = finding(scene, grant, told.why).into_iter().collect();
    if told.is_owner_back {
        found.push(heard_again());
    }
    found
}

fn because(scene: &Scene, grant: &GrantRecord, why: Why) -> String {
    finding(scene, grant, why).map_or_else(|| resting(why), |found| found.message)
}

/// The reason is the first thing that was not said before.
fn tell(scene: &Scene, grant: &GrantRecord, told: &Tell) -> Step<Nothing> {
    let found = findings(scene, grant, told);
    let is_new = |found: &&Finding| !found.is_in(&grant.status.conditions);
    let because = found.iter().find(is_new).map_or_else(String::new, |found| found.message.clone());
    let conditions = grant.conditions_with(&found, scene.now);
    let write = grant.write_status(json!({ "conditions": conditions }));
    let step = Step::write(write, because.clone());
    match told.event {
        Some(news) => step.telling(event(scene, grant, news, because)),
        None => step,
    }
}

fn event(scene: &Scene, grant: &GrantRecord, news: News, because: String) -> Event {
    match news {
        News::PlacementAmbiguous => {
            let note = ambiguous(scene).unwrap_or_default();
            grant.tells(Importance::Warning, "PlacementAmbiguous", note)
        }
        News::OwnerUnreachable => grant.tells(Importance::Warning, "OwnerUnreachable", because),
        News::MoveQueued => grant.tells(Importance::Normal, "MoveDelayed", because),
        News::MoveDelayed => grant.tells(Importance::Warning, "MoveDelayed", because),
    }
}
