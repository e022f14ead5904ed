//! What mistakes are made of: bent facts, views that lie, and other writes.

use super::super::first::{BANK_VOLUME, TARGET_VOLUME};
use super::lie::{Lie, live_reads as lied, with};
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT_KIND, SOURCE, VOLUME};
use crate::objects::{text, uid_of};
use crate::outside::{
    Choice, Disk, DiskAction, Job, Mover, MoverAction, Repository, Sync as Answer, SyncId,
};
use crate::populator::decide as fill;
use crate::populator::{self, Populator};
use crate::storage::claim::decide as bind;
use crate::storage::{Claims, Volumes};
use crate::sync::Replication;
use crate::sync::decide as sync;
use crate::sync::intent::Intent;
use interlock_api::names::ANNOTATION_SYNC;
use interlock_kernel::metadata::is_of;
use interlock_kernel::{
    Action, Bent, Controller, LiveReads, Name, Nothing, Object, Observed, Place, Read, Room, Step,
    Subject, View, Write,
};
use interlock_world::{rewritten, unguarded};
use serde_json::json;
use std::collections::BTreeMap;

/// What the populator decides about a claim of which it knows something else.
pub(super) fn filled(facts: &populator::Facts, bend: fn(&mut fill::Facts)) -> populator::Decision {
    let mut facts = facts.clone();
    if let populator::Facts::Claim(facts) = &mut facts {
        bend(facts);
    }
    Populator::decide(&facts)
}

/// What is decided about a sync of which something else is known.
pub(super) fn synced(facts: &sync::Facts, bend: fn(&mut sync::Facts)) -> sync::Decision {
    let mut facts = facts.clone();
    bend(&mut facts);
    Replication::decide(&facts)
}

/// The sync that is under way, if there is one.
pub(super) fn syncing(facts: &mut sync::Facts, bend: fn(&mut sync::Sync)) {
    if let Some(sync) = &mut facts.sync {
        bend(sync);
    }
}

type SyncSeen = Observed<sync::Facts, <Replication as Room>::Scene>;
type FillSeen = Observed<populator::Facts, populator::Scene>;

/// Every snapshot looks ready.
pub(super) fn snapshots_look_ready<R: Room>(
    room: &R,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<R::Outside>,
) -> Observed<R::Facts, R::Scene> {
    room.observe(subject, &Lie { view, alter: &ready }, &lied(live_reads, &ready))
}

fn ready(object: &Object) -> Option<Object> {
    if !is_of(object, &SNAPSHOT_KIND) {
        return Some(object.clone());
    }
    Some(with(object, |snapshot| snapshot.data["status"]["readyToUse"] = json!(true)))
}

/// The tag of a sync looks like the one that is set now.
pub(super) fn tag_of_now(
    room: &Replication,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Mover>,
) -> SyncSeen {
    let alter = |object: &Object| {
        let intent = Intent::read(object).ok().flatten();
        let is_own = is_of(object, &SOURCE) || is_of(object, &DESTINATION);
        let Some(intent) = intent.filter(|_| is_own) else { return Some(object.clone()) };
        let tag = text(&object.data, &["spec", "trigger", "manual"]).to_owned();
        let now = Intent { tag: Some(tag), ..intent };
        Some(with(object, |object| {
            let notes = object.metadata.annotations.get_or_insert_default();
            notes.insert(ANNOTATION_SYNC.to_owned(), now.text());
        }))
    };
    room.observe(subject, &Lie { view, alter: &alter }, &lied(live_reads, &alter))
}

/// A snapshot, and who holds it, as the cache shows it, whatever a live read found.
pub(super) fn snapshot_from_the_cache<R: Room>(
    room: &R,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<R::Outside>,
) -> Observed<R::Facts, R::Scene> {
    let mut fewer = lied(live_reads, &|object| Some(object.clone()));
    fewer.objects.retain(|address, _| address.kind != SNAPSHOT_KIND);
    room.observe(subject, view, &fewer)
}

/// The snapshots of an object that is being deleted as the cache shows them, taken for a live list.
pub(super) fn lists_from_the_cache(
    room: &Replication,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Mover>,
) -> SyncSeen {
    let mut fewer = lied(live_reads, &|object| Some(object.clone()));
    fewer.lists.clear();
    let mut seen = room.observe(subject, view, &fewer);
    if let Observed::Seen { facts, .. } = &mut seen {
        facts.are_snapshots_fresh = true;
    }
    seen
}

/// A volume looks as if it were for whichever claim has the name now.
pub(super) fn by_name(
    room: &Claims,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Disk>,
) -> Observed<bind::Facts, <Claims as Room>::Scene> {
    let alter = |object: &Object| {
        let of = &object.data["spec"]["claimRef"];
        let name = Name::within(text(of, &["namespace"]), text(of, &["name"]));
        let claim =
            is_of(object, &VOLUME).then(|| view.get(Place::CLUSTER, &CLAIM, &name)).flatten();
        let Some(claim) = claim else { return Some(object.clone()) };
        Some(with(object, |volume| {
            volume.data["spec"]["claimRef"]["uid"] = json!(uid_of(&claim));
        }))
    };
    room.observe(subject, &Lie { view, alter: &alter }, &lied(live_reads, &alter))
}

/// A volume that was handed to a claim which is not bound yet is not seen.
pub(super) fn hides_handed(
    room: &Populator,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> FillSeen {
    let alter = |object: &Object| {
        let owner = &object.data["spec"]["claimRef"];
        let name = Name::within(text(owner, &["namespace"]), text(owner, &["name"]));
        let is_waiting = |claim: &Object| {
            is_of(object, &VOLUME)
                && Name::of(claim).to_string() == **subject
                && text(&claim.data, &["spec", "volumeName"]).is_empty()
        };
        let owner = view.get(Place::CLUSTER, &CLAIM, &name);
        (!owner.as_ref().is_some_and(is_waiting)).then(|| object.clone())
    };
    room.observe(subject, &Lie { view, alter: &alter }, &lied(live_reads, &alter))
}

/// A snapshot is deleted whatever became of it since it was seen.
pub(super) fn deletes_unseen(
    room: &Replication,
    scene: &<Replication as Room>::Scene,
    decision: sync::Decision,
) -> Step<Mover> {
    rewritten(room.act(scene, decision), |write| {
        if let Write::Delete { resource_version, .. } = write {
            *resource_version = None;
        }
    })
}

/// A volume is to stay, but nothing says so.
pub(super) fn keeps_without_retain(
    room: &Populator,
    scene: &populator::Scene,
    decision: populator::Decision,
) -> Step<Nothing> {
    let is_keep = matches!(decision, populator::Decision::Claim(fill::Decision::Keep { .. }));
    let step = room.act(scene, decision);
    if !is_keep {
        return step;
    }
    rewritten(step, |write| {
        if let Write::Patch { change, .. } = write {
            change["spec"] = json!({});
        }
    })
}

/// A volume that does not change hands any more is kept, whatever is noted on it.
pub(super) fn settles_to_stay(
    room: &Populator,
    scene: &populator::Scene,
    decision: populator::Decision,
) -> Step<Nothing> {
    use populator::orphan;
    let is_settle = matches!(
        decision,
        populator::Decision::Claim(fill::Decision::Settle { .. })
            | populator::Decision::Orphan(orphan::Decision::Settle { .. })
    );
    let step = room.act(scene, decision);
    if !is_settle {
        return step;
    }
    rewritten(step, |write| {
        if let Write::Patch { change, .. } = write {
            change["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain");
        }
    })
}

/// A hold is put on whatever is there under the name of the snapshot.
pub(super) fn unguarded_hold(
    room: &Populator,
    scene: &populator::Scene,
    decision: populator::Decision,
) -> Step<Nothing> {
    let is_hold = matches!(decision, populator::Decision::Claim(fill::Decision::Hold));
    let step = room.act(scene, decision);
    if is_hold { unguarded(step, |_| true) } else { step }
}

/// Another volume is deleted than the one that was decided on.
pub(super) fn deletes_another(
    room: &Volumes,
    scene: &<Volumes as Room>::Scene,
    decision: <Volumes as Room>::Decision,
) -> Step<Disk> {
    let mut step = room.act(scene, decision);
    if let Step::Act(effect) = &mut step
        && let Action::Outside(DiskAction::DeleteVolume(handle)) = &mut effect.action
    {
        *handle = BANK_VOLUME.to_owned();
    }
    step
}

/// The step that would write the intent of a sync begins its mover first.
pub(super) fn begins_before_its_intent(
    room: &Bent<Replication>,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Mover>,
) -> Step<Mover> {
    let step = room.step(subject, view, live_reads);
    let Some(id) = intended(&step) else { return step };
    match live_reads.answers.get(&id) {
        None => Step::LiveRead { reads: vec![Read::Ask(id)], because: "does it run".to_owned() },
        Some(Answer::Unknown) => {
            let repository = Repository { settings: BTreeMap::new(), authority: None };
            let job = Box::new(Job::Restore {
                into: TARGET_VOLUME.to_owned(),
                repository,
                choice: Choice::Newest { as_of: None, previous: 0 },
                delete_other_files: false,
                digest: None,
                allow_empty: false,
            });
            Step::outside(MoverAction::Begin { id, job }, "the intent can wait")
        }
        Some(_) => step,
    }
}

/// The sync whose intent a step writes.
fn intended(step: &Step<Mover>) -> Option<SyncId> {
    let Step::Act(effect) = step else { return None };
    let Action::Write(Write::Patch { change, .. }) = &effect.action else { return None };
    let note = change["metadata"]["annotations"][ANNOTATION_SYNC].as_str()?;
    let intent: Intent = serde_json::from_str(note).ok()?;
    (intent.attempt == 1).then(|| intent.sync_id())
}
