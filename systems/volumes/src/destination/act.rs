//! A decision about a destination as one step.

use super::decide::{Decision, Hopeless, Why};
use super::observe::Scene;
use super::work::{Target, Way, Work};
use crate::kinds::{CLAIM, SNAPSHOT_KIND};
use crate::objects::{finalizers_with, has_finalizer, owner_reference};
use crate::outside::{Failure, Job, Mover, MoverDeed, Outcome, Reason, Sync};
use crate::sync::images::{self, Taken, claim_address};
use crate::sync::intent::Intent;
use crate::sync::repository::Flaw;
use crate::sync::slots;
use crate::sync::steps::{
    LOOK_FOR_PLACE, ask, ask_after, at_rest, back_off_left, broken_intent, delete_image, forget,
    forget_earlier, give_slot_back, let_go, look, over, perform, renew, retry, take_slot,
    wait_for_image,
};
use crate::sync::task::Saying;
use interlock_api::names::{ANNOTATION_LATEST_IMAGE_UID, FINALIZER_IMAGES};
use interlock_api::volumes::condition::HEALTHY;
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Importance, Place, Step, Write};
use serde_json::json;

pub(super) fn act(scene: &Scene<'_>, decision: Decision) -> Step<Mover> {
    let task = &scene.task;
    let Some(intent) = scene.task.current() else { return without_intent(scene, decision) };
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::AskMover => ask(task),
        Decision::Look => look(task, None),
        Decision::MakeTarget => make_target(scene),
        Decision::TakeSlot => take_slot(task, intent, &scene.slot),
        Decision::Begin => begin(scene, intent),
        Decision::TakeImage => take_image(scene, intent),
        Decision::Publish => {
            let change = json!({ ANNOTATION_LATEST_IMAGE_UID: scene.product_uid() });
            let change = json!({"metadata": {"annotations": change}});
            Step::write(task.write_main(change), "the image is ready, and is the latest")
        }
        Decision::Finish => finish(scene, intent),
        Decision::ForgetEarlier => forget_earlier(intent),
        Decision::Forget => forget(intent),
        Decision::GiveSlotBack => give_slot_back(&scene.slot),
        Decision::Retry => retry(task, intent, (scene.mover.as_ref(), &scene.basis())),
        Decision::Renew => renew(task, intent.clone(), &scene.basis()),
        Decision::GiveUp(why) => give_up(scene, intent, why),
        Decision::DeleteTarget => match &scene.claim {
            Some(claim) => Step::write(
                Write::delete(Place::CLUSTER, &CLAIM, claim),
                "the claim was made for one sync",
            ),
            None => Step::rest("the claim is gone"),
        },
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
        Decision::Look => look(task, None),
        Decision::WriteIntent => write_intent(scene),
        Decision::DeleteImage => delete_image(task, scene.spare()),
        Decision::LetGo => let_go(task),
        Decision::AskMover
        | Decision::MakeTarget
        | Decision::TakeSlot
        | Decision::Begin
        | Decision::TakeImage
        | Decision::Publish
        | Decision::Finish
        | Decision::ForgetEarlier
        | Decision::Forget
        | Decision::GiveSlotBack
        | Decision::Retry
        | Decision::Renew
        | Decision::GiveUp(_)
        | Decision::DeleteTarget
        | Decision::RemoveIntent => Step::rest("it was about a sync that is not there"),
    }
}

fn write_intent(scene: &Scene<'_>) -> Step<Mover> {
    let task = &scene.task;
    let places = match &scene.opened {
        Ok(Some(opened)) => slots::places_of(opened.address()),
        Ok(None) | Err(_) => slots::places_of(slots::COPIES),
    };
    let intent = Intent {
        tag: task.when.as_ref().ok().and_then(|when| when.tag()).map(str::to_owned),
        places,
        basis: scene.basis(),
        ..Intent::new(&task.object, task.now)
    };
    let metadata = match has_finalizer(&task.object, FINALIZER_IMAGES) {
        true => json!({}),
        false => json!({"finalizers": finalizers_with(&task.object, FINALIZER_IMAGES)}),
    };
    Step::write(task.write_intent(&intent, metadata), "a sync is due")
}

fn make_target(scene: &Scene<'_>) -> Step<Mover> {
    let task = &scene.task;
    let Ok(Work { target: Target::Own { capacity, access_modes, class }, .. }) = &scene.work else {
        return Step::rest("somebody else makes the claim");
    };
    let mut spec = json!({
        "accessModes": access_modes, "resources": {"requests": {"storage": capacity}},
    });
    if let Some(class) = class {
        spec["storageClassName"] = json!(class);
    }
    let name = scene.claim_name();
    let owner = owner_reference(&task.kind, &task.object);
    let write = Write::Create {
        address: claim_address(task.namespace(), &name),
        object: json!({"metadata": {"ownerReferences": [owner]}, "spec": spec}),
    };
    Step::write(write, "there is no volume to write into").telling(task.tells(
        Importance::Normal,
        "PersistentVolumeClaimCreated",
        format!("claim {name} is what is written into"),
    ))
}

fn begin(scene: &Scene<'_>, intent: &Intent) -> Step<Mover> {
    let task = &scene.task;
    let Some(job) = job(scene) else {
        return Step::rest("what the mover needs is not there any more");
    };
    let deed = MoverDeed::Begin { id: intent.sync_id(), job: Box::new(job) };
    let note = format!("attempt {} to write claim {}", intent.attempt, scene.claim_name());
    perform(deed, "everything that the mover needs is there").telling(task.tells(
        Importance::Normal,
        "TransferStarted",
        note,
    ))
}

fn job(scene: &Scene<'_>) -> Option<Job> {
    let work = scene.work.as_ref().ok()?;
    let into = images::volume_of(scene.claim.as_ref()?)?.to_owned();
    let allow_empty = scene.task.allows_empty();
    match &work.way {
        Way::Restore { choice, deletes_other_files, digest, .. } => Some(Job::Restore {
            into,
            repository: scene.opened.as_ref().ok()?.as_ref()?.repository.clone(),
            choice: choice.clone(),
            delete_other_files: *deletes_other_files,
            digest: digest.clone(),
            allow_empty,
        }),
        Way::CopyOf(_) => {
            let image = scene.copied.as_ref().ok()?.as_ref()?;
            Some(Job::Copy {
                into,
                cluster: scene.here.uid.to_string(),
                image: images::handle_of(image),
                digest: images::content_of(image).map(|content| content.digest),
                allow_empty,
            })
        }
        Way::Copy { cluster, image, digest } => Some(Job::Copy {
            into,
            cluster: cluster.clone(),
            image: image.clone(),
            digest: digest.clone(),
            allow_empty,
        }),
    }
}

fn take_image(scene: &Scene<'_>, intent: &Intent) -> Step<Mover> {
    let task = &scene.task;
    let class = scene.work.as_ref().ok().and_then(|work| work.snapshot_class.as_deref());
    let claim = scene.claim_name();
    let taken = Taken {
        owner: (&task.kind, &task.object),
        name: &intent.image,
        sync: &intent.id,
        claim: &claim,
        class,
    };
    let note = format!("image {} of claim {claim} is being taken", intent.image);
    Step::write(images::take(task.namespace(), &taken), "all of the data is there")
        .telling(task.tells(Importance::Normal, "VolumeSnapshotCreated", note))
}

fn finish(scene: &Scene<'_>, intent: &Intent) -> Step<Mover> {
    let task = &scene.task;
    let outcome = match &scene.mover {
        Some(Sync::Done(outcome)) => (**outcome).clone(),
        _ => Outcome::default(),
    };
    let content = scene.image.as_ref().and_then(|image| images::content_of(image));
    let content = content.unwrap_or_else(|| outcome.content.clone());
    let image = scene.product_uid().map(|_| &intent.image);
    let product = json!({
        "image": image, "imageUID": scene.product_uid(),
        // A mover that died since does not know it any more.
        "snapshotID": outcome.snapshot,
        "digest": Some(&content.digest).filter(|digest| !digest.is_empty()),
        "files": content.files.to_string(), "bytes": content.bytes.to_string(),
    });
    let latest = match image {
        Some(name) => {
            json!({"apiGroup": SNAPSHOT_KIND.group, "kind": SNAPSHOT_KIND.kind, "name": name})
        }
        None => json!({"apiGroup": "", "kind": CLAIM.kind, "name": scene.claim_name()}),
    };
    let mut say = task.done(intent, &outcome, product).and(task.accepted(&ignored(scene)));
    say.status.insert("latestImage".to_owned(), latest);
    over(task, say)
}

fn give_up(scene: &Scene<'_>, intent: &Intent, why: Hopeless) -> Step<Mover> {
    let task = &scene.task;
    let say = match why {
        Hopeless::MoverFailed => match &scene.mover {
            Some(Sync::Failed(failure)) if failure.reason == Reason::SizeMismatch => {
                task.gave_up(intent, &too_small(scene, failure))
            }
            Some(Sync::Failed(failure)) => task.gave_up(intent, failure),
            _ => return Step::rest("it did not fail"),
        },
        Hopeless::Empty => {
            let what = "what was brought back has nothing in it, and is not published; annotate \
                        the destination with interlock.dev/allow-empty=true if that is meant";
            task.ended_badly(intent, &Flaw::new("ImageEmpty", what))
        }
        Hopeless::UselessImage => {
            let what = format!(
                "image {}, taken here of what was brought, is gone or not of this sync; a new \
                 trigger brings it again",
                intent.image
            );
            task.ended_badly(intent, &Flaw::new("ImageLost", what))
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

/// What is brought does not fit: the mover knows folders, and people know claims.
fn too_small(scene: &Scene<'_>, failure: &Failure) -> Failure {
    let (claim, said) = (scene.claim_name(), &failure.message);
    let advice = match scene.work.as_ref().map(|work| &work.target) {
        Ok(Target::Given(_)) => "name a larger one in destinationPVC",
        Ok(Target::Own { .. }) | Err(_) => "delete it, and ask for more capacity",
    };
    let message = format!("claim {claim} is too small: {said}; {advice}");
    Failure { reason: failure.reason, message }
}

/// What has no effect: fields, and keys of the Secret.
fn ignored(scene: &Scene<'_>) -> Vec<String> {
    let Ok(Work { ignored, way, .. }) = &scene.work else { return Vec::new() };
    let opened = scene.opened.as_ref().ok().and_then(Option::as_ref);
    let keys = opened.iter().flat_map(|opened| &opened.ignored);
    let secret = match way {
        Way::Restore { secret, .. } => secret.as_str(),
        Way::Copy { .. } | Way::CopyOf(_) => "",
    };
    let keys = keys.map(|key| format!("key {key} of Secret {secret}"));
    ignored.iter().cloned().chain(keys).collect()
}

fn nothing(scene: &Scene<'_>, why: Why) -> Step<Mover> {
    let task = &scene.task;
    let accepted = || task.accepted(&ignored(scene));
    let Some(intent) = scene.task.current() else { return idle(scene, why) };
    let running = |what: &str| task.running(intent, what).and(accepted());
    match why {
        Why::NotDue | Why::Refused | Why::Hindered | Why::BrokenIntent | Why::Held | Why::Going => {
            idle(scene, why)
        }
        Why::BacksOff => {
            let left = back_off_left(task, intent);
            task.wait(task.backing_off(intent).and(accepted()), Some(left))
        }
        Why::TargetNotBound => task.wait(running("the claim has no volume yet"), None),
        Why::ImageNotReady => {
            wait_for_image(task, running("the image is being taken"), scene.image.as_ref())
        }
        Why::SlotsFull => {
            task.wait(running("all places at the repository are taken"), Some(LOOK_FOR_PLACE))
        }
        Why::Runs => {
            let say: Saying = match &scene.mover {
                Some(Sync::Runs(progress)) => task.progressing(intent, *progress).and(accepted()),
                Some(_) | None => running("the mover runs"),
            };
            task.wait(say, Some(ask_after(task, intent)))
        }
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
        Why::BrokenIntent => broken_intent(task),
        Why::Held => {
            let what = format!("it goes once nobody holds its images: {}", scene.holders());
            let mut say = task.idle(scene.due);
            say.status.clear();
            say.findings = vec![Finding::fails(HEALTHY, "ImageHeld", what.clone())];
            say.because = what;
            task.wait(say, None)
        }
        Why::Going => Step::rest("it is being deleted"),
        Why::NotDue
        | Why::BacksOff
        | Why::TargetNotBound
        | Why::ImageNotReady
        | Why::SlotsFull
        | Why::Runs => at_rest(task, scene.due, task.accepted(&ignored(scene))),
    }
}
