//! What is written about a cluster: one write a step, over the version that was seen.

use super::decide::{Conditions, Decision, Drained, Why};
use super::findings::findings;
use super::observe::{Scene, address, is_here};
use crate::kinds::{GRANT, WORKLOAD_CLUSTER};
use interlock_api::names::{ANNOTATION_FORGET_COPIES, FINALIZER_LIVE_GRANTS};
use interlock_api::placement::CopyState;
use interlock_api::placement::condition::{DRAINED, EMPTIED};
use interlock_kernel::conditions::{Finding, with_all};
use interlock_kernel::metadata::{name_of, put_finalizer, take_finalizer_off, uid_of};
use interlock_kernel::{Event, Importance, Nothing, Place, Read, Step, Write};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// The one effect of a decision.
pub(crate) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    let cluster = &scene.cluster;
    match decision {
        Decision::PutFinalizer => {
            let change = put_finalizer(cluster, FINALIZER_LIVE_GRANTS);
            Step::write(
                main(scene, change),
                "the WorkloadCluster must not be deleted while the cluster has grants or data",
            )
        }
        Decision::TakeFinalizerOff => {
            let change = take_finalizer_off(cluster, FINALIZER_LIVE_GRANTS);
            Step::write(main(scene, change), "the cluster owns no grant and has no data")
        }
        Decision::Stamp(conditions) => stamp(scene, &conditions),
        Decision::Tell(conditions) => tell(scene, &conditions),
        Decision::ForgetCopies(states) => forget(scene, &states),
        Decision::RefuseToForget => refuse(scene),
        Decision::TakeAnnotationOff => {
            Step::write(take_annotation_off(scene), "the copy to forget does not exist")
        }
        Decision::ReadGrants => Step::LiveRead {
            reads: vec![Read::List { place: Place::HUB, kind: GRANT, namespace: None }],
            because: "removing the finalizer is final, so it needs a live read".to_owned(),
        },
        Decision::ReadClusterAndGrants => Step::LiveRead {
            reads: vec![
                Read::Object(address(name_of(cluster))),
                Read::List { place: Place::HUB, kind: GRANT, namespace: None },
            ],
            because: "somebody relies on the cluster to be empty, so it needs a live read"
                .to_owned(),
        },
        Decision::WaitForSilence { seconds } => Step::Wait {
            because: "the syncer sent a heartbeat recently".to_owned(),
            at_most: Duration::from_secs(u64::try_from(seconds).unwrap_or(1)),
        },
        Decision::Nothing(why) => Step::rest(resting(why)),
    }
}

fn resting(why: Why) -> &'static str {
    match why {
        Why::Silent => "the syncer sends no heartbeat, and the conditions say so",
        Why::CacheBehind => {
            "the cluster is being deleted, and a grant is left that the cache does not show yet"
        }
        Why::GrantsLeft => {
            "the cluster is being deleted and sends no heartbeat, and it still has grants"
        }
        Why::Gone => "the cluster is being deleted",
    }
}

fn main(scene: &Scene, change: Value) -> Write {
    Write::patch(Place::HUB, &WORKLOAD_CLUSTER, &scene.cluster, change)
}

/// The status with these conditions, and what else changes.
fn status(scene: &Scene, conditions: &Conditions, mut change: Value) -> Write {
    let (findings, generation) = (findings(scene, conditions), scene.cluster.metadata.generation);
    let mut all = with_all(&scene.status.conditions, &findings, scene.now, generation);
    if conditions.left.is_none() {
        all.retain(|condition| condition.type_ != EMPTIED);
    }
    if conditions.drained.is_none() {
        all.retain(|condition| condition.type_ != DRAINED);
    }
    let told = scene.status.drained.iter().filter(|told| scene.drains.contains(*told)).cloned();
    let told: Vec<String> = match conditions.drained {
        Some(Drained::Empty) => scene.drains.iter().cloned().collect(),
        Some(Drained::NotYet(_)) | None => told.collect(),
    };
    if told != scene.status.drained {
        change["drained"] = json!(told);
    }
    change["conditions"] = json!(all);
    change["grants"] = json!(i32::try_from(scene.owned).unwrap_or(i32::MAX));
    let change = json!({ "status": change });
    Write::patch_status(Place::HUB, &WORKLOAD_CLUSTER, &scene.cluster, change)
}

/// The reason is the first thing that was not said before.
fn tell(scene: &Scene, conditions: &Conditions) -> Step<Nothing> {
    let found = findings(scene, conditions);
    let is_new = |found: &&Finding| !found.is_in(&scene.status.conditions);
    let because = found.iter().find(is_new).map_or_else(
        || "others need the cluster empty, or nobody does".to_owned(),
        |found| found.message.clone(),
    );
    Step::write(status(scene, conditions, json!({})), because)
}

fn stamp(scene: &Scene, conditions: &Conditions) -> Step<Nothing> {
    let sequence = scene.status.heartbeat.as_ref().map_or(0, |heartbeat| heartbeat.sequence);
    // Whole seconds are what the wire has.
    let now = Timestamp::from_second(scene.now.as_second()).unwrap_or(scene.now);
    let change = json!({
        "heartbeat": {"receivedSequence": sequence, "receivedAt": now.to_string()},
    });
    Step::write(status(scene, conditions, change), "the syncer sent a heartbeat")
}

fn take_annotation_off(scene: &Scene) -> Write {
    main(scene, json!({"metadata": {"annotations": {ANNOTATION_FORGET_COPIES: null}}}))
}

fn forget(scene: &Scene, states: &[CopyState]) -> Step<Nothing> {
    let cluster = name_of(&scene.cluster);
    let Some(grant) = &scene.forgotten else {
        return Step::rest("the copy to forget does not exist");
    };
    let mut copies = grant.status.copies.clone();
    copies.retain(|copy| !(is_here(copy, &scene.cluster) && states.contains(&copy.state)));
    let write = grant.write_status(json!({ "copies": copies }));
    let note = format!("a person gave up what cluster {cluster} still has of this namespace");
    Step::write(write, note.clone()).telling(grant.tells(
        Importance::Warning,
        "CopyForgotten",
        note,
    ))
}

fn refuse(scene: &Scene) -> Step<Nothing> {
    let name = name_of(&scene.cluster);
    let grant = scene.forgotten.as_ref();
    let namespace = grant.map(|grant| grant.spec.namespace.name.as_str()).unwrap_or_default();
    let note = format!(
        "Refused: cluster {name} owns namespace {namespace}, and the copy of an owner is not \
         forgotten. next: interlock move {namespace}, or interlock force-release {namespace}"
    );
    let event = Event {
        about: address(name),
        uid: uid_of(&scene.cluster).to_owned(),
        importance: Importance::Warning,
        reason: "ForgetRefused",
        note,
    };
    Step::write(take_annotation_off(scene), "the copy of an owner is not forgotten").telling(event)
}
