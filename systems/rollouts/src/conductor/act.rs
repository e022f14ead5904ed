//! The decision as one write, one live read, or a reason to wait.

use super::decide::Decision;
use super::findings::{Around, findings};
use super::observe::{Scene, request_address};
use super::{candidate, sweep};
use crate::kinds::{
    BUNDLE_REVISION, CLUSTER_ROLLOUT, CLUSTER_UPDATE, ROLLOUT_REPORT, WORKLOAD_CLUSTER,
};
use crate::record::{Change, Numbered, Record, Started, Why, wait};
use interlock_api::placement::{Drain, WorkloadClusterSpec};
use interlock_api::rollouts::{
    ClusterRolloutStatus, ClusterUpdateSpec, DRAIN_PREFIX, FINALIZER_ROLLOUT, PreflightTarget,
    Requested, UpdatePhase, drain_requester, event,
};
use interlock_kernel::metadata::{
    name_of, namespace_of, put_finalizer, take_finalizer_off, uid_of,
};
use interlock_kernel::{
    Address, Event, Importance, Name, Nothing, Object, Place, Read, Step, Write, read_part,
};
use serde_json::json;

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::Wait(because, seconds) => {
            Step::Wait { because: because.to_owned(), at_most: wait(seconds) }
        }
        Decision::ReadCluster => read(vec![cluster_read(scene)], "a cache proves no absence"),
        Decision::ReadRecord => {
            read(vec![record_read(scene)], "what is undone rests on the record")
        }
        Decision::ReadRequest(uid) => read_requests(scene, &[uid]),
        Decision::ReadRequests(uids) => read_requests(scene, &uids),
        Decision::ReadCandidate => on_candidate(scene, |update, record| {
            read(candidate::reads(update, record), "a request is numbered as it is now")
        }),
        Decision::ReadParts(parts) => read_parts(scene, &parts),
        Decision::ReadUnnamed(digest) => {
            read(sweep::reads(&digest), "what is deleted must have no name in any record")
        }
        Decision::AddFinalizer(uid) => add_finalizer(scene, &uid),
        Decision::CreateRecord => create_record(scene),
        Decision::CreateReport => create_report(scene),
        Decision::CreatePart(part) => create_part(scene, part),
        Decision::AddDrain => on_record(scene, |record| add_drain(scene, record)),
        Decision::RemoveDrains => on_record(scene, |record| remove_drains(scene, record)),
        Decision::DeletePart(digest) => delete_part(scene, &digest),
        Decision::TakeFinalizerOff => on_record(scene, |record| {
            let change = take_finalizer_off(&record.object, FINALIZER_ROLLOUT);
            let write = Write::patch(Place::HUB, &CLUSTER_ROLLOUT, &record.object, change);
            Step::write(write, "the record is being deleted, and no request is in it any more")
        }),
        change => on_record(scene, |record| write_record(scene, record, change)),
    }
}

fn on_record(scene: &Scene, write: impl FnOnce(&Record) -> Step<Nothing>) -> Step<Nothing> {
    scene.record.as_ref().map_or_else(|| Step::rest("there is no record"), write)
}

fn on_candidate(
    scene: &Scene,
    write: impl FnOnce(&Object, &Record) -> Step<Nothing>,
) -> Step<Nothing> {
    on_record(scene, |record| match &scene.candidate {
        Some(update) => write(update, record),
        None => Step::rest("there is no such request"),
    })
}

fn read(reads: Vec<Read<Nothing>>, because: &str) -> Step<Nothing> {
    Step::LiveRead { reads, because: because.to_owned() }
}

fn cluster_read(scene: &Scene) -> Read<Nothing> {
    let name = Name::cluster_wide(&scene.of.name);
    Read::Object(Address::new(Place::HUB, &WORKLOAD_CLUSTER, name))
}

fn record_address(scene: &Scene) -> Address {
    Address::new(Place::HUB, &CLUSTER_ROLLOUT, Name::cluster_wide(&scene.name))
}

fn record_read(scene: &Scene) -> Read<Nothing> {
    Read::Object(record_address(scene))
}

fn read_requests(scene: &Scene, uids: &[String]) -> Step<Nothing> {
    on_record(scene, |record| {
        let entries = uids.iter().filter_map(|uid| record.status.request(uid));
        let reads = entries.map(|entry| Read::Object(request_address(entry))).collect();
        read(reads, "the cache does not show the request, which proves nothing")
    })
}

fn read_parts(scene: &Scene, parts: &[u32]) -> Step<Nothing> {
    let digest = scene.seen.digest.as_deref().unwrap_or_default();
    let reads = parts.iter().map(|part| Read::Object(candidate::part_address(digest, *part)));
    read(reads.collect(), "a request is numbered once all of its bundle is at the hub")
}

fn add_finalizer(scene: &Scene, uid: &str) -> Step<Nothing> {
    let Some(update) = scene.updates.iter().find(|update| uid_of(update) == uid) else {
        return Step::rest("there is no such request");
    };
    let change = put_finalizer(update, FINALIZER_ROLLOUT);
    let write = Write::patch(Place::HUB, &CLUSTER_UPDATE, update, change);
    Step::write(write, "the request is held until it has ended")
}

fn create_record(scene: &Scene) -> Step<Nothing> {
    let object = json!({
        "metadata": { "finalizers": [FINALIZER_ROLLOUT] },
        "spec": { "cluster": scene.of },
    });
    let write = Write::Create { address: record_address(scene), object };
    Step::write(write, format!("cluster {} is asked for the first time", scene.of))
}

fn create_report(scene: &Scene) -> Step<Nothing> {
    let address = Address::new(Place::HUB, &ROLLOUT_REPORT, Name::cluster_wide(&scene.name));
    let object = json!({ "spec": { "cluster": scene.of } });
    Step::write(Write::Create { address, object }, "the agent of the cluster fills it")
}

fn create_part(scene: &Scene, number: u32) -> Step<Nothing> {
    let Some(part) = scene.seen.parts.iter().find(|part| part.part == number) else {
        return Step::rest("there is no such part");
    };
    let address = candidate::part_address(&part.digest, part.part);
    let write = Write::Create { address, object: json!({ "spec": part }) };
    Step::write(write, format!("part {} of {} of the bundle is missing", number + 1, part.parts))
}

fn delete_part(scene: &Scene, digest: &str) -> Step<Nothing> {
    let Some(part) = &scene.part else { return Step::rest("there is no such part") };
    let because = format!("no record names bundle {digest} for an hour");
    Step::write(Write::delete_seen(Place::HUB, &BUNDLE_REVISION, part), because)
}

fn write_drains(scene: &Scene, drains: &[Drain], because: String) -> Step<Nothing> {
    let Some(cluster) = &scene.cluster_object else { return Step::rest("there is no cluster") };
    let change = json!({ "spec": { "drains": drains } });
    Step::write(Write::patch(Place::HUB, &WORKLOAD_CLUSTER, cluster, change), because)
}

fn drains(scene: &Scene) -> Vec<Drain> {
    let spec = scene
        .cluster_object
        .as_ref()
        .and_then(|cluster| read_part::<WorkloadClusterSpec>(cluster, "spec").ok().flatten());
    spec.map(|spec| spec.drains).unwrap_or_default()
}

fn add_drain(scene: &Scene, record: &Record) -> Step<Nothing> {
    let Some(entry) = record.queued() else { return Step::rest("no request waits") };
    let requester = drain_requester(&entry.uid);
    let asked = format!("{}/{}", entry.namespace, entry.name);
    let reason = format!("ClusterUpdate {asked} updates the cluster once it is drained");
    let drains: Vec<Drain> =
        drains(scene).into_iter().chain([Drain { requester, reason: reason.clone() }]).collect();
    let said = Said { importance: Importance::Normal, reason: event::DRAINING, note: reason };
    let event = tells(scene, record, entry, said);
    write_drains(scene, &drains, format!("request {asked} asks for a drained cluster"))
        .telling(event)
}

/// Takes away what was asked for requests that neither wait nor are in flight.
fn remove_drains(scene: &Scene, record: &Record) -> Step<Nothing> {
    let active = record.status.active.as_ref().map(|active| drain_requester(&active.uid));
    let queued = record.queued().map(|queued| drain_requester(&queued.uid));
    let needed = [active, queued];
    let mut drains = drains(scene);
    drains.retain(|drain| {
        !drain.requester.starts_with(DRAIN_PREFIX)
            || needed.iter().flatten().any(|requester| *requester == drain.requester)
    });
    write_drains(
        scene,
        &drains,
        "the request that the cluster was drained for has ended".to_owned(),
    )
}

fn spec_of(scene: &Scene, uid: &str) -> Option<ClusterUpdateSpec> {
    let update = scene.updates.iter().find(|update| uid_of(update) == uid)?;
    read_part::<ClusterUpdateSpec>(update, "spec").ok().flatten()
}

/// A change of the record: one write of its whole status, over the version that was seen.
fn write_record(scene: &Scene, record: &Record, decision: Decision) -> Step<Nothing> {
    let change = Change { status: record.status.clone(), now: scene.now };
    let next = match changed(scene, record, change, decision) {
        Ok(next) => next,
        Err(because) => return Step::rest(because),
    };
    let around = Around::of(record, &next, &scene.report, &scene.cluster);
    let found = findings(&around);
    let write = record.write(next.clone(), &found, scene.now);
    let moved = next.requests.iter().rev().find(|entry| {
        record.status.request(&entry.uid).map(|before| before.phase) != Some(entry.phase)
    });
    match moved {
        Some(entry) => {
            let note = match &entry.next {
                Some(next) => format!("{}. next: {next}", entry.message),
                None => entry.message.clone(),
            };
            let (importance, reason) = (importance(entry.phase), entry.phase.as_str());
            let said = Said { importance, reason, note };
            let because =
                format!("version {} is {}: {}", entry.version, entry.phase, entry.message);
            Step::write(write, because).telling(tells(scene, record, entry, said))
        }
        None => {
            let step = Step::write(write, because(record, &next));
            match token_raised(record, &next) {
                Some(note) => {
                    let (about, uid) = (record_address(scene), uid_of(&record.object).to_owned());
                    let (importance, reason) = (Importance::Warning, event::TOKEN_RAISED);
                    step.telling(Event { about, uid, importance, reason, note })
                }
                None => step,
            }
        }
    }
}

/// What happened if a record got another token and no request moved: it was older than what the agent has seen.
fn token_raised(before: &Record, after: &ClusterRolloutStatus) -> Option<String> {
    let (was, is) = (before.status.target.token, after.target.token);
    (was != is).then(|| {
        format!(
            "the token was {was} and is {is} now: the cluster has seen a newer token than the record, so the record \
             or the hub was restored from an older state; requests that were sent since then may be missing"
        )
    })
}

fn importance(phase: UpdatePhase) -> Importance {
    match phase {
        UpdatePhase::Rejected
        | UpdatePhase::Failed
        | UpdatePhase::RollingBack
        | UpdatePhase::RolledBack
        | UpdatePhase::RollbackFailed => Importance::Warning,
        UpdatePhase::Pending
        | UpdatePhase::Queued
        | UpdatePhase::Applying
        | UpdatePhase::Verifying
        | UpdatePhase::Superseded
        | UpdatePhase::Cancelled
        | UpdatePhase::Succeeded => Importance::Normal,
    }
}

/// Why a record changes in which no request comes to another phase.
fn because(before: &Record, after: &ClusterRolloutStatus) -> &'static str {
    if before.status.target.token != after.target.token {
        return "the fence on the cluster is newer than the record";
    }
    if before.status.preflight != after.preflight {
        return "the agent is to check the request that waits";
    }
    if before.status.active != after.active {
        return "the rollback took too long, and is tried again";
    }
    if before.status.requests.len() != after.requests.len() {
        return "entries beyond the history are dropped";
    }
    if before.status.unnamed != after.unnamed {
        return "nothing is left of a bundle without a name";
    }
    "the record is to say what is true"
}

/// The record after a decision; the error: there is nothing that the decision could be about.
fn changed(
    scene: &Scene,
    record: &Record,
    change: Change,
    decision: Decision,
) -> Result<ClusterRolloutStatus, &'static str> {
    let queued = || record.queued().ok_or("no request waits");
    Ok(match decision {
        Decision::Number(phase, why) => number(scene, change, phase, &why)?,
        Decision::RaiseToken(token) => change.raise(token),
        Decision::RollBack(why, is_proof) => change.roll_back(&why, is_proof),
        Decision::EndQueued(phase, why) => change.end_queued(&queued()?.uid, phase, &why),
        Decision::FoundThere => change.found_there(&queued()?.uid, &Why::NothingToChange),
        Decision::NamePreflight => name_preflight(scene, queued()?, change)?,
        Decision::Start => start(scene, queued()?, change)?,
        Decision::Verify => change.verify(),
        Decision::Succeed => change.succeed(),
        Decision::EndRolledBack => change.rolled_back(),
        Decision::TryAgain => change.try_again(),
        Decision::GiveUp(why, is_proof) => change.give_up(&why, is_proof),
        Decision::EndAll(why) => change.end_all(&why),
        Decision::Forget(uids) => change.forget(&uids),
        Decision::Swept(digest) => change.swept(&digest),
        Decision::Explain(why) => change.explain(&queued()?.uid, &why),
        Decision::Say => change.status,
        _ => return Err("the decision is not about the record"),
    })
}

fn number(
    scene: &Scene,
    change: Change,
    phase: UpdatePhase,
    why: &Why,
) -> Result<ClusterRolloutStatus, &'static str> {
    let request = scene.seen.request.as_ref().ok_or("the request was not read")?;
    Ok(change.number(&Numbered {
        uid: uid_of(request),
        namespace: namespace_of(request),
        name: name_of(request),
        digest: scene.seen.digest.clone(),
        phase,
        why,
    }))
}

fn name_preflight(
    scene: &Scene,
    queued: &Requested,
    change: Change,
) -> Result<ClusterRolloutStatus, &'static str> {
    let spec = spec_of(scene, &queued.uid).ok_or("the cache does not show the request")?;
    let digest = queued.digest.clone().unwrap_or_default();
    let (uid, mode, force) = (queued.uid.clone(), spec.preflight, spec.force);
    Ok(change.name(PreflightTarget { uid, digest, mode, force }))
}

fn start(
    scene: &Scene,
    queued: &Requested,
    change: Change,
) -> Result<ClusterRolloutStatus, &'static str> {
    let spec = spec_of(scene, &queued.uid).ok_or("the cache does not show the request")?;
    let started = Started {
        digest: queued.digest.clone().unwrap_or_default(),
        soak_seconds: spec.soak_seconds,
        deadline_seconds: spec.deadline_seconds,
        force: spec.force,
        prune_data: spec.prune_data,
    };
    Ok(change.start(&queued.uid, started))
}

/// What an event says.
struct Said {
    importance: Importance,
    reason: &'static str,
    note: String,
}

/// An event about a request; about the record, if the cache does not show the request.
fn tells(scene: &Scene, record: &Record, entry: &Requested, said: Said) -> Event {
    let Said { importance, reason, note } = said;
    let update = scene.updates.iter().find(|update| uid_of(update) == entry.uid);
    let (about, uid) = match update {
        Some(update) => {
            (Address::new(Place::HUB, &CLUSTER_UPDATE, Name::of(update)), uid_of(update))
        }
        None => (record_address(scene), uid_of(&record.object)),
    };
    Event { about, uid: uid.to_owned(), importance, reason, note }
}
