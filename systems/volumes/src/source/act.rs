//! A decision about a source as one step.

use super::decide::{Decision, Hopeless, Why};
use super::observe::{Scene, permit_address};
use super::work::{Backup, Way, Work};
use crate::keeper::keep::{self, keep};
use crate::kinds::{DESTINATION, POD};
use crate::objects::{finalizers_with, has_finalizer, uid_of};
use crate::outside::{Failure, Folder, Job, Keep, Mover, MoverDeed, Outcome, Reason, Sync};
use crate::sync::images::{self, Taken};
use crate::sync::intent::Intent;
use crate::sync::repository::Flaw;
use crate::sync::slots;
use crate::sync::steps::{
    LOOK_FOR_PLACE, ask, ask_after, at_rest, back_off_left, broken_intent, delete_image, forget,
    forget_earlier, give_slot_back, let_go, look, over, perform, renew, retry, take_slot,
    wait_for_image,
};
use crate::sync::task::Saying;
use interlock_api::names::FINALIZER_IMAGES;
use interlock_kernel::{Importance, Place, Step};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

pub(super) fn act(scene: &Scene<'_>, decision: Decision) -> Step<Mover> {
    let task = &scene.task;
    let Some(intent) = scene.task.current() else { return without_intent(scene, decision) };
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::AskMover => ask(task),
        Decision::Look => look(task, permit_address(task)),
        Decision::TakeImage => take_image(scene, intent),
        Decision::TakeSlot => take_slot(task, intent, &scene.slot),
        Decision::Begin => begin(scene, intent),
        Decision::ForgetEarlier => forget_earlier(intent),
        Decision::Forget => forget(intent),
        Decision::GiveSlotBack => give_slot_back(&scene.slot),
        Decision::Retry => {
            let next = Intent { unlock: unlock(scene), ..intent.clone() };
            retry(task, &next, (scene.mover.as_ref(), &scene.basis()))
        }
        Decision::Renew => {
            renew(task, Intent { unlock: unlock(scene), ..intent.clone() }, &scene.basis())
        }
        Decision::GiveUp(why) => give_up(scene, intent, why),
        Decision::LeaveToOwner => leave_to_owner(scene, intent),
        Decision::Finish => finish(scene, intent),
        Decision::RemoveIntent => Step::write(task.remove_intent(), "nothing is left of the sync"),
        Decision::WriteIntent | Decision::DeleteImage | Decision::LetGo => {
            without_intent(scene, decision)
        }
    }
}

fn without_intent(scene: &Scene<'_>, decision: Decision) -> Step<Mover> {
    let task = &scene.task;
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::Look => look(task, permit_address(task)),
        Decision::WriteIntent => write_intent(scene),
        Decision::DeleteImage => delete_image(task, scene.spare()),
        Decision::LetGo => let_go(task),
        Decision::AskMover
        | Decision::TakeImage
        | Decision::TakeSlot
        | Decision::Begin
        | Decision::ForgetEarlier
        | Decision::Forget
        | Decision::GiveSlotBack
        | Decision::Retry
        | Decision::Renew
        | Decision::GiveUp(_)
        | Decision::LeaveToOwner
        | Decision::Finish
        | Decision::RemoveIntent => Step::rest("it was about a sync that is not there"),
    }
}

fn write_intent(scene: &Scene<'_>) -> Step<Mover> {
    let task = &scene.task;
    let opened = scene.opened.as_ref().ok().and_then(Option::as_ref);
    let intent = Intent {
        tag: task.when.as_ref().ok().and_then(|when| when.tag()).map(str::to_owned),
        places: opened.map(|opened| slots::places_of(opened.address())).unwrap_or_default(),
        basis: scene.basis(),
        unlock: unlock(scene),
        ..Intent::new(&task.object, task.now)
    };
    // Images that outlive their sync must not be lost with the object.
    let metadata = match scene.is_image_only() && !has_finalizer(&task.object, FINALIZER_IMAGES) {
        true => json!({"finalizers": finalizers_with(&task.object, FINALIZER_IMAGES)}),
        false => json!({}),
    };
    Step::write(task.write_intent(&intent, metadata), "a sync is due")
}

/// The word that asks for the removal of dead locks.
fn unlock(scene: &Scene<'_>) -> Option<String> {
    let Way::Backup(backup) = &scene.work.as_ref().ok()?.way else { return None };
    Some(&backup.tidy.as_ref()?.unlock).filter(|word| !word.is_empty()).cloned()
}

fn take_image(scene: &Scene<'_>, intent: &Intent) -> Step<Mover> {
    let task = &scene.task;
    let Ok(work) = &scene.work else { return Step::rest("it is not supported") };
    let taken = Taken {
        owner: (&task.kind, &task.object),
        name: &intent.image,
        sync: &intent.id,
        claim: &work.claim,
        class: work.snapshot_class.as_deref(),
    };
    let note = format!("image {} of claim {} is being taken", intent.image, work.claim);
    Step::write(images::take(task.namespace(), &taken), "the sync needs an image")
        .telling(task.tells(Importance::Normal, "VolumeSnapshotCreated", note))
}

fn begin(scene: &Scene<'_>, intent: &Intent) -> Step<Mover> {
    let task = &scene.task;
    let Some((job, claim)) = job(scene) else {
        return Step::rest("what the mover needs is not there any more");
    };
    let is_tidying = scene.work.as_ref().is_ok_and(|work| matches!(work.way, Way::Tidy { .. }));
    let is_direct = scene.image.is_none() && !is_tidying;
    let deed = MoverDeed::Begin { id: intent.sync_id(), job: Box::new(job) };
    let step = perform(deed, "everything that the mover needs is there");
    if is_direct && is_in_use(scene, &claim) {
        let note = format!(
            "claim {claim} is read while it is in use: the backup is of no one moment; \
             copyMethod Snapshot takes one"
        );
        return step.telling(task.tells(Importance::Warning, "NotPointInTime", note));
    }
    let what = if is_tidying { "tidy the repository of" } else { "back up" };
    let note = format!("attempt {} to {what} claim {claim}", intent.attempt);
    step.telling(task.tells(Importance::Normal, "TransferStarted", note))
}

fn job(scene: &Scene<'_>) -> Option<(Job, String)> {
    let work = scene.work.as_ref().ok()?;
    let opened = scene.opened.as_ref().ok()?.as_ref()?;
    let backup = match &work.way {
        Way::Image => return None,
        Way::Backup(backup) => backup,
        Way::Tidy { left, .. } => {
            let job = Job::Tidy { repository: opened.repository.clone(), left: left.clone() };
            return Some((job, work.claim.clone()));
        }
    };
    let from = match &scene.image {
        Some(image) if work.takes_image => Folder::Image(images::handle_of(image)),
        Some(_) | None => Folder::Volume(images::volume_of(scene.claim.as_ref()?)?.to_owned()),
    };
    let job = Job::Backup {
        from,
        repository: opened.repository.clone(),
        mark: backup.mark.clone(),
        allow_empty: scene.task.allows_empty(),
        keep: kept(scene, backup),
    };
    Some((job, work.claim.clone()))
}

/// What stays in the repository after the backup.
fn kept(scene: &Scene<'_>, backup: &Backup) -> Option<Keep> {
    let intent = scene.task.current()?;
    let tidy = backup.tidy.as_ref()?;
    let object = &scene.task.object;
    let created = object.metadata.creation_timestamp.as_ref().map(|created| created.0);
    let restic = scene.status.restic.clone().unwrap_or_default();
    let wanted = keep::Wanted {
        retain: tidy.retain.as_ref(),
        prune_interval_days: tidy.prune_interval_days,
        last_pruned: restic.last_pruned.map(|time| time.0).or(created),
        unlocks: intent.unlock.as_ref().is_some_and(|word| *word != restic.last_unlocked),
    };
    let namespace = Some(scene.task.namespace());
    let destinations = scene.view.list(Place::CLUSTER, &DESTINATION, namespace);
    // As of the beginning: what is said of it at the end must be what was done.
    Some(keep(&wanted, &destinations, intent.began.0))
}

fn is_in_use(scene: &Scene<'_>, claim: &str) -> bool {
    let pods = scene.view.list(Place::CLUSTER, &POD, Some(scene.task.namespace()));
    pods.iter().any(|pod| {
        let is_over = matches!(pod.data["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let volumes = pod.data["spec"]["volumes"].as_array().into_iter().flatten();
        let mut claims = volumes.map(|volume| &volume["persistentVolumeClaim"]["claimName"]);
        !is_over && claims.any(|name| name == claim)
    })
}

fn give_up(scene: &Scene<'_>, intent: &Intent, why: Hopeless) -> Step<Mover> {
    let task = &scene.task;
    let say = match why {
        Hopeless::MoverFailed => match &scene.mover {
            // The mover knows folders, and people know claims.
            Some(Sync::Failed(Failure { reason: Reason::SourceEmpty, .. })) => {
                task.gave_up(intent, &empty(scene))
            }
            Some(Sync::Failed(failure)) => task.gave_up(intent, failure),
            _ => return Step::rest("it did not fail"),
        },
        Hopeless::Empty => task.gave_up(intent, &empty(scene)),
        Hopeless::UselessImage => {
            let what = format!("image {} is gone, or not of this sync", intent.image);
            task.ended_badly(intent, &Flaw::new("ImageGone", what))
        }
        Hopeless::Refused => {
            let flaw = scene.work.as_ref().err().cloned().unwrap_or_default();
            let mut say = task.ended_badly(intent, &Flaw::new("NotSupported", flaw.clone()));
            say.findings.extend(task.refused(&flaw).findings);
            say
        }
    };
    over(task, say)
}

/// The namespace left before the mover began.
fn leave_to_owner(scene: &Scene<'_>, intent: &Intent) -> Step<Mover> {
    let ends = Intent { basis: scene.basis(), ..intent.clone() };
    over(&scene.task, scene.task.ended_badly(&ends, &scene.not_here()))
}

/// Nothing begins here until the namespace comes back.
fn not_here(scene: &Scene<'_>) -> Step<Mover> {
    let mut say = scene.task.hindered(&scene.not_here());
    say.status.insert("nextSyncTime".to_owned(), Value::Null);
    scene.task.wait(say, None)
}

/// There is nothing to back up: most likely by accident.
fn empty(scene: &Scene<'_>) -> Failure {
    let claim = scene.work.as_ref().map_or("", |work| work.claim.as_str());
    let message = format!(
        "claim {claim} has nothing in it, so nothing was saved; if that is meant, annotate the \
         source: interlock.dev/allow-empty=true"
    );
    Failure { reason: Reason::SourceEmpty, message }
}

fn finish(scene: &Scene<'_>, intent: &Intent) -> Step<Mover> {
    let task = &scene.task;
    let Ok(work) = &scene.work else { return give_up(scene, intent, Hopeless::Refused) };
    let outcome = match &scene.mover {
        Some(Sync::Done(outcome)) => (**outcome).clone(),
        _ => Outcome::default(),
    };
    let product = match (&work.way, &scene.image) {
        (Way::Image, Some(image)) => {
            let content = images::content_of(image).unwrap_or_default();
            json!({
                "image": intent.image, "imageUID": uid_of(image), "snapshotID": null,
                "digest": content.digest,
                "files": content.files.to_string(), "bytes": content.bytes.to_string(),
            })
        }
        (Way::Tidy { .. }, _) => json!({}),
        // An image of an earlier sync is not the product of this one.
        (Way::Image | Way::Backup(_), _) => json!({
            "image": null, "imageUID": null, "snapshotID": outcome.snapshot,
            "digest": Some(&outcome.content.digest).filter(|digest| !digest.is_empty()),
            "files": outcome.content.files.to_string(),
            "bytes": outcome.content.bytes.to_string(),
        }),
    };
    let mut say = task.done(intent, &outcome, product).and(task.accepted(&ignored(scene)));
    if let Way::Backup(backup) = &work.way
        && let Some(restic) = restic_status(scene, backup)
    {
        say.status.insert("restic".to_owned(), restic);
    }
    over(task, say)
}

/// What `status.restic` says after a backup.
fn restic_status(scene: &Scene<'_>, backup: &Backup) -> Option<Value> {
    let keep = kept(scene, backup)?;
    let mut status = json!({ "lastUnlocked": scene.task.current()?.unlock });
    if keep.prune {
        status["lastPruned"] = json!(Time(scene.task.now));
    }
    Some(status)
}

/// What has no effect: fields, and keys of the Secret.
fn ignored(scene: &Scene<'_>) -> Vec<String> {
    let Ok(Work { ignored, way, .. }) = &scene.work else { return Vec::new() };
    let opened = scene.opened.as_ref().ok().and_then(Option::as_ref);
    let keys = opened.iter().flat_map(|opened| &opened.ignored);
    let secret = match way {
        Way::Backup(backup) => backup.secret.as_str(),
        Way::Tidy { secret, .. } => secret,
        Way::Image => "",
    };
    let keys = keys.map(|key| format!("key {key} of Secret {secret}"));
    ignored.iter().cloned().chain(keys).collect()
}

fn nothing(scene: &Scene<'_>, why: Why) -> Step<Mover> {
    let task = &scene.task;
    let accepted = || task.accepted(&ignored(scene));
    let Some(intent) = scene.task.current() else { return idle(scene, why) };
    match why {
        Why::NotDue | Why::Refused | Why::NotHere | Why::BrokenIntent | Why::Held | Why::Going => {
            idle(scene, why)
        }
        Why::Hindered => match scene.hindrance() {
            Some(flaw) => task.wait(task.hindered(&flaw).and(accepted()), None),
            None => Step::rest("something was in the way"),
        },
        Why::BacksOff => {
            let left = back_off_left(task, intent);
            task.wait(task.backing_off(intent).and(accepted()), Some(left))
        }
        Why::ImageNotReady => {
            let say = task.running(intent, "the image is being taken").and(accepted());
            wait_for_image(task, say, scene.image.as_ref())
        }
        Why::SlotsFull => task.wait(
            task.running(intent, "all places at the repository are taken").and(accepted()),
            Some(LOOK_FOR_PLACE),
        ),
        Why::Runs => {
            task.wait(running(scene, intent).and(accepted()), Some(ask_after(task, intent)))
        }
    }
}

fn running(scene: &Scene<'_>, intent: &Intent) -> Saying {
    match &scene.mover {
        Some(Sync::Runs(progress)) => scene.task.progressing(intent, *progress),
        _ => scene.task.running(intent, "the mover runs"),
    }
}

/// Nothing is to be done, and no sync is on its way.
fn idle(scene: &Scene<'_>, why: Why) -> Step<Mover> {
    let task = &scene.task;
    match why {
        Why::Refused => match &scene.work {
            Err(flaw) => task.wait(task.refused(flaw), None),
            Ok(_) => Step::rest("it is supported after all"),
        },
        Why::Hindered => match scene.hindrance() {
            Some(flaw) => task.wait(task.hindered(&flaw).and(task.accepted(&ignored(scene))), None),
            None => Step::rest("something was in the way"),
        },
        Why::NotHere => not_here(scene),
        Why::BrokenIntent => broken_intent(task),
        Why::Held => Step::rest("it goes once nobody holds an image of it"),
        Why::Going => Step::rest("it is being deleted"),
        Why::NotDue | Why::BacksOff | Why::ImageNotReady | Why::SlotsFull | Why::Runs => {
            at_rest(task, scene.due, task.accepted(&ignored(scene)))
        }
    }
}
