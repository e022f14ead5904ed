//! A decision about a sync as one step.

use super::decide::{Begin, Decision, Finish, Hopeless, Next, Product, Say, Why};
use super::intent::Intent;
use super::observe::Scene;
use super::repository::Unhealthy;
use super::snapshots::{self, Taken, claim_address};
use super::trigger::Due;
use super::words::{self, saying};
use super::work::{Target, Way, Work};
use super::{Direction, destination, slots, source};
use crate::kinds::{CLAIM, SNAPSHOT_KIND};
use crate::objects::{change, finalizers_with, owner_reference, take_finalizer_off, uid_of};
use crate::outside::{Failure, Folder, Job, Keep, Mover, MoverAction, Outcome, Sync};
use interlock_api::names::{ANNOTATION_LATEST_IMAGE_UID, FINALIZER_SNAPSHOTS};
use interlock_kernel::{Importance, Object, Place, Read, Step, Write};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use std::time::Duration;

/// How often a mover is asked that began just now: most have little to do.
const ASK_SOON: Duration = Duration::from_millis(250);
/// How often a mover is asked: its end is no news that the API brings.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How often a sync that waits for a slot reads the slots again: no watch event may announce a free one.
const REQUEUE_FOR_SLOT: Duration = Duration::from_secs(10);

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Mover> {
    let task = &scene.task;
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::Say(what) => say(scene, what),
        Decision::LiveRead => Step::LiveRead {
            reads: scene.truth.clone(),
            because: "the cache may be behind".to_owned(),
        },
        Decision::WriteIntent { keeps } => write_intent(scene, keeps),
        Decision::MakeTarget => make_target(scene),
        Decision::Publish(product) => {
            let uid = product_snapshot(scene, product).map(|snapshot| uid_of(snapshot));
            let change = json!({"metadata": {"annotations": {ANNOTATION_LATEST_IMAGE_UID: uid}}});
            Step::write(task.write_main(change), "the snapshot is ready, and is the latest")
        }
        Decision::GiveSlotBack => match &scene.slot {
            slots::Slot::Mine(lease) => {
                Step::write(slots::give_back(lease), "the slot at the repository is released")
            }
            slots::Slot::NotNeeded | slots::Slot::Free(_) | slots::Slot::Full => gone(),
        },
        Decision::DeleteSnapshot(place) => on(scene.snapshots.get(place), |snapshot| {
            // The very version that was seen: one that somebody has taken hold of since stays.
            let write = Write::delete_seen(Place::CLUSTER, &SNAPSHOT_KIND, snapshot);
            Step::write(write, "the snapshot is not needed any more")
        }),
        Decision::LeaveSnapshot(place) => {
            on(scene.snapshots.get(place), |snapshot| leave_snapshot(scene, snapshot))
        }
        Decision::DeleteTarget => on(scene.claim.as_ref(), |claim| {
            let write = Write::delete(Place::CLUSTER, &CLAIM, claim);
            Step::write(write, "the claim was made for one sync")
        }),
        Decision::RemoveIntent => {
            Step::write(task.remove_intent(), "all objects of the sync are deleted")
        }
        Decision::LetGo => {
            let write = take_finalizer_off(&task.kind, &task.object, FINALIZER_SNAPSHOTS);
            Step::write(write, "no snapshot of the object is left")
        }
        Decision::AskMover
        | Decision::TakeSnapshot
        | Decision::TakeSlot
        | Decision::Begin(_)
        | Decision::Finish(_)
        | Decision::ForgetEarlier
        | Decision::Forget
        | Decision::Retry
        | Decision::Renew
        | Decision::GiveUp(_) => on(task.current(), |intent| act_on_sync(scene, intent, decision)),
    }
}

/// The decisions about the sync that is on its way.
fn act_on_sync(scene: &Scene, intent: &Intent, decision: Decision) -> Step<Mover> {
    let task = &scene.task;
    match decision {
        Decision::AskMover => {
            let reads = task.questions().into_iter().map(Read::Ask).collect();
            Step::LiveRead { reads, because: "asking the mover for its progress".to_owned() }
        }
        Decision::TakeSnapshot => take_snapshot(scene, intent),
        Decision::TakeSlot => match scene.slot {
            slots::Slot::Free(place) => {
                let write = slots::take(&intent.places, place, &intent.id, &task.title());
                Step::write(write, "a slot at the repository is free")
            }
            slots::Slot::NotNeeded | slots::Slot::Mine(_) | slots::Slot::Full => gone(),
        },
        Decision::Begin(how) => begin(scene, intent, how),
        Decision::Finish(how) => finish(scene, intent, how),
        Decision::ForgetEarlier => on(intent.earlier_sync_id().as_ref(), |earlier| {
            Step::outside(MoverAction::Forget(earlier.clone()), "a later attempt has begun")
        }),
        Decision::Forget => Step::outside(
            MoverAction::Forget(intent.sync_id()),
            "the result of the sync is in the status",
        ),
        Decision::Retry => on(failure(scene).as_ref(), |failure| {
            let note = format!("attempt {} failed: {}", intent.attempt, failure.message);
            write_next(scene, intent.next(failure, task.now), "the sync is tried again")
                .telling(task.tells(Importance::Warning, "TransferFailed", note))
        }),
        Decision::Renew => {
            let next = Intent { after: None, ..intent.clone() };
            write_next(scene, next, "the spec or the Secret has changed")
        }
        Decision::GiveUp(why) => give_up(scene, intent, why),
        Decision::Nothing(_)
        | Decision::Say(_)
        | Decision::LiveRead
        | Decision::WriteIntent { .. }
        | Decision::MakeTarget
        | Decision::Publish(_)
        | Decision::GiveSlotBack
        | Decision::DeleteSnapshot(_)
        | Decision::LeaveSnapshot(_)
        | Decision::DeleteTarget
        | Decision::RemoveIntent
        | Decision::LetGo => gone(),
    }
}

/// The step about something that was decided upon, and so was seen.
fn on<T>(thing: Option<&T>, act: impl FnOnce(&T) -> Step<Mover>) -> Step<Mover> {
    thing.map_or_else(gone, act)
}

fn gone() -> Step<Mover> {
    Step::rest("the object does not exist any more")
}

fn nothing(scene: &Scene, why: Why) -> Step<Mover> {
    let because = match (why, scene.direction) {
        (Why::Terminating, _) => "the object is being deleted".to_owned(),
        (Why::Held, Direction::Source) => {
            "the object is deleted once its snapshots have no holder".to_owned()
        }
        (Why::NotDue(Next::Change), _) => {
            "the sync was given up, and nothing has changed since".to_owned()
        }
        _ => saying(scene, why).map(|saying| saying.because).unwrap_or_default(),
    };
    match at_most(scene, why) {
        Some(at_most) => Step::Wait { because, at_most },
        None => Step::Rest { because },
    }
}

/// How long it waits: some things are no news that the API brings.
fn at_most(scene: &Scene, why: Why) -> Option<Duration> {
    let task = &scene.task;
    match (why, scene.due) {
        (Why::NotDue(Next::Scheduled | Next::Minute), Due::At(then)) => {
            Duration::try_from(then.duration_since(task.now)).ok()
        }
        (Why::BacksOff, _) => {
            let left = task.current().and_then(|intent| intent.backs_off(task.now));
            Some(left.and_then(|left| Duration::try_from(left).ok()).unwrap_or(ASK_AGAIN))
        }
        (Why::SnapshotNotReady(_), _) => scene.left_to_begin(),
        (Why::SlotsFull, _) => Some(REQUEUE_FOR_SLOT),
        (Why::Runs { .. }, _) => {
            let began = task.current().map_or(task.now, |intent| intent.began.0);
            let is_young = task.now.duration_since(began).as_secs() < 5;
            Some(if is_young { ASK_SOON } else { ASK_AGAIN })
        }
        (
            Why::NotDue(_)
            | Why::Refused
            | Why::Hindered
            | Why::NotHere
            | Why::BrokenIntent
            | Why::Held
            | Why::Terminating
            | Why::TargetNotBound,
            _,
        ) => None,
    }
}

fn say(scene: &Scene, what: Say) -> Step<Mover> {
    let Some(mut saying) = saying(scene, what.why) else { return gone() };
    if what.mends {
        saying = saying.mended();
    }
    if what.tells_ignored {
        saying = saying.telling_ignored(scene);
    }
    saying.step(&scene.task)
}

fn write_intent(scene: &Scene, keeps: bool) -> Step<Mover> {
    let task = &scene.task;
    let places = match (&scene.opened, scene.direction) {
        (Some(opened), _) => slots::places_of(opened.address()),
        (None, Direction::Source) => String::new(),
        (None, Direction::Destination) => slots::places_of(slots::COPIES),
    };
    let intent = Intent {
        tag: task.when.as_ref().ok().and_then(|when| when.tag()).map(str::to_owned),
        places,
        basis: scene.basis.clone(),
        unlock: scene.unlock(),
        ..Intent::new(&task.object, task.now)
    };
    let metadata = match keeps {
        true => json!({"finalizers": finalizers_with(&task.object, FINALIZER_SNAPSHOTS)}),
        false => json!({}),
    };
    Step::write(task.write_intent(&intent, metadata), "a sync is due")
}

/// The intent of the next attempt, which rests on what is so now.
fn write_next(scene: &Scene, next: Intent, because: &str) -> Step<Mover> {
    let next = Intent { basis: scene.basis.clone(), unlock: scene.unlock(), ..next };
    Step::write(scene.task.write_intent(&next, json!({})), because)
}

fn make_target(scene: &Scene) -> Step<Mover> {
    let task = &scene.task;
    let Ok(Work { target: Target::Own { capacity, access_modes, class }, .. }) = &scene.work else {
        return gone();
    };
    let mut spec = json!({
        "accessModes": access_modes, "resources": {"requests": {"storage": capacity}},
    });
    if let Some(class) = class {
        spec["storageClassName"] = json!(class);
    }
    let name = &scene.claim_name;
    let owner = owner_reference(&task.kind, &task.object);
    let write = Write::Create {
        address: claim_address(task.namespace(), name),
        object: json!({"metadata": {"ownerReferences": [owner]}, "spec": spec}),
    };
    Step::write(write, "the destination has no volume to write to").telling(task.tells(
        Importance::Normal,
        "PersistentVolumeClaimCreated",
        format!("the destination writes to claim {name}"),
    ))
}

fn take_snapshot(scene: &Scene, intent: &Intent) -> Step<Mover> {
    let (task, claim) = (&scene.task, &scene.claim_name);
    let taken = Taken {
        owner: (&task.kind, &task.object),
        name: &intent.snapshot,
        sync: &intent.id,
        claim,
        class: scene.work.as_ref().ok().and_then(|work| work.snapshot_class.as_deref()),
    };
    let because = match scene.direction {
        Direction::Source => "the sync needs a snapshot",
        Direction::Destination => "all data is restored",
    };
    let note = format!("snapshot {} of claim {claim} is being taken", intent.snapshot);
    Step::write(snapshots::take(task.namespace(), &taken), because).telling(task.tells(
        Importance::Normal,
        "VolumeSnapshotCreated",
        note,
    ))
}

/// The snapshot belongs to the object no more, and so does not go with it.
fn leave_snapshot(scene: &Scene, snapshot: &Object) -> Step<Mover> {
    let owners = snapshot.metadata.owner_references.iter().flatten();
    let others: Vec<_> = owners.filter(|owner| owner.uid != scene.task.uid()).collect();
    let write = change(&SNAPSHOT_KIND, snapshot, json!({"metadata": {"ownerReferences": others}}));
    Step::write(write, "the snapshot has the label do-not-delete, and is not deleted")
}

fn begin(scene: &Scene, intent: &Intent, how: Begin) -> Step<Mover> {
    let (task, claim) = (&scene.task, &scene.claim_name);
    let Some((job, what)) = job(scene, how) else { return gone() };
    let action = MoverAction::Begin { id: intent.sync_id(), job: Box::new(job) };
    let step = Step::outside(action, "the mover can start");
    if how.warns {
        let note = format!(
            "claim {claim} is read while it is in use, so the backup is not consistent; use \
             copyMethod Snapshot"
        );
        return step.telling(task.tells(Importance::Warning, "NotPointInTime", note));
    }
    let note = format!("attempt {} to {what} claim {claim}", intent.attempt);
    step.telling(task.tells(Importance::Normal, "TransferStarted", note))
}

/// What the mover is to do, and that in a word; None: what it needs is not there any more.
fn job(scene: &Scene, how: Begin) -> Option<(Job, &'static str)> {
    let repository = || scene.opened.as_ref().map(|opened| opened.repository.clone());
    let volume = || snapshots::volume_of(scene.claim.as_ref()?).map(str::to_owned);
    let allow_empty = scene.task.allows_empty();
    match &scene.work.as_ref().ok()?.way {
        Way::Snapshot => None,
        Way::Backup { mark, .. } => {
            let from = match how.reads_snapshot {
                true => Folder::Snapshot(snapshots::handle_of(scene.snapshot.as_ref()?)),
                false => Folder::Volume(volume()?),
            };
            let keep = scene.keep.clone().zip(how.tidying).map(|(keep, tidying)| Keep {
                prune: tidying.prunes,
                unlock: tidying.unlocks,
                ..keep
            });
            let (repository, mark) = (repository()?, mark.clone());
            Some((Job::Backup { from, repository, mark, allow_empty, keep }, "back up"))
        }
        Way::Tidy(left) => {
            let job = Job::Tidy { repository: repository()?, left: left.clone() };
            Some((job, "tidy the repository of"))
        }
        Way::Restore { choice, deletes_other_files, digest } => {
            let job = Job::Restore {
                into: volume()?,
                repository: repository()?,
                choice: choice.clone(),
                delete_other_files: *deletes_other_files,
                digest: digest.clone(),
                allow_empty,
            };
            Some((job, "write"))
        }
        Way::CopyOf(_) => {
            let snapshot = scene.copied.as_ref()?;
            let job = Job::Copy {
                into: volume()?,
                cluster: scene.cluster_uid.clone(),
                snapshot: snapshots::handle_of(snapshot),
                digest: snapshots::content_of(snapshot).map(|content| content.digest),
                allow_empty,
            };
            Some((job, "write"))
        }
        Way::Copy { cluster, snapshot, digest } => {
            let (cluster, snapshot, digest) = (cluster.clone(), snapshot.clone(), digest.clone());
            Some((Job::Copy { into: volume()?, cluster, snapshot, digest, allow_empty }, "write"))
        }
    }
}

fn finish(scene: &Scene, intent: &Intent, how: Finish) -> Step<Mover> {
    let task = &scene.task;
    let outcome = match &scene.mover {
        Some(Sync::Done(outcome)) => (**outcome).clone(),
        // A mover that died since does not know it any more.
        _ => Outcome::default(),
    };
    let product = product(scene, intent, how.product, &outcome);
    let mut say = task.done(intent, &outcome, product).and(words::accept(scene));
    if how.tells_ignored {
        say = say.telling_ignored(scene);
    }
    if let Some(tidying) = how.tidying {
        let mut restic = json!({ "lastUnlocked": intent.unlock });
        if tidying.prunes {
            restic["lastPruned"] = json!(Time(task.now));
        }
        say.status.insert("restic".to_owned(), restic);
    }
    let latest = match how.product {
        Product::LatestSnapshot => json!({
            "apiGroup": SNAPSHOT_KIND.group, "kind": SNAPSHOT_KIND.kind, "name": intent.snapshot,
        }),
        Product::Volume => json!({"apiGroup": "", "kind": CLAIM.kind, "name": scene.claim_name}),
        Product::VolumeSnapshot | Product::Snapshot | Product::Nothing => return say.step(task),
    };
    say.status.insert("latestImage".to_owned(), latest);
    say.step(task)
}

/// The snapshot that a sync brought, if it did.
fn product_snapshot(scene: &Scene, product: Product) -> Option<&Object> {
    match product {
        Product::VolumeSnapshot | Product::LatestSnapshot => scene.snapshot.as_ref(),
        Product::Snapshot | Product::Nothing | Product::Volume => None,
    }
}

/// What a sync brought, in `status.external`.
fn product(scene: &Scene, intent: &Intent, product: Product, outcome: &Outcome) -> Value {
    if product == Product::Nothing {
        return json!({});
    }
    // No mover has a part in the snapshot of a source.
    let none = Outcome::default();
    let outcome = if product == Product::VolumeSnapshot { &none } else { outcome };
    let snapshot = product_snapshot(scene, product);
    let content = snapshot.and_then(|snapshot| snapshots::content_of(snapshot));
    let content = content.unwrap_or_else(|| outcome.content.clone());
    // Of what not read into there is no digest. A source says of each snapshot what is in it.
    let is_known = |digest: &&String| product == Product::VolumeSnapshot || !digest.is_empty();
    let digest = Some(&content.digest).filter(is_known);
    json!({
        "snapshot": snapshot.map(|_| &intent.snapshot), "snapshotUID": snapshot.map(|snapshot| uid_of(snapshot)),
        "snapshotID": outcome.snapshot,
        "digest": digest,
        "files": content.files.to_string(), "bytes": content.bytes.to_string(),
    })
}

/// Why the mover failed.
fn failure(scene: &Scene) -> Option<Failure> {
    match &scene.mover {
        Some(Sync::Failed(failure)) => Some(failure.clone()),
        Some(_) | None => None,
    }
}

fn give_up(scene: &Scene, intent: &Intent, why: Hopeless) -> Step<Mover> {
    let task = &scene.task;
    let reported = |failure: &Failure| match scene.direction {
        Direction::Source => source::reported(scene, failure),
        Direction::Destination => destination::reported(scene, failure),
    };
    let failure = failure(scene).map(|failure| reported(&failure));
    let flaw = match (why, scene.direction) {
        (Hopeless::MoverFailed, _) => {
            failure.map(|failure| Unhealthy::new(failure.reason.word(), failure.message))
        }
        (Hopeless::RetriesExhausted, _) => failure.map(|failure| intent.exhausted(&failure)),
        (Hopeless::Empty, Direction::Source) => Some(source::empty(scene)),
        (Hopeless::Empty, Direction::Destination) => Some(destination::empty()),
        (Hopeless::UselessSnapshot, Direction::Source) => Some(source::useless(intent)),
        (Hopeless::UselessSnapshot, Direction::Destination) => Some(destination::useless(intent)),
        (Hopeless::Refused, _) => {
            scene.work.as_ref().err().map(|flaw| Unhealthy::new("NotSupported", flaw))
        }
        (Hopeless::NotHere, _) => Some(source::not_here(task)),
    };
    on(flaw.as_ref(), |flaw| {
        let mut say = match why {
            // It begins anew when the namespace is back.
            Hopeless::NotHere => {
                task.ended_badly(&Intent { basis: scene.basis.clone(), ..intent.clone() }, flaw)
            }
            _ => task.ended_badly(intent, flaw),
        };
        if why == Hopeless::Refused {
            say.findings.extend(task.refused(&flaw.message).findings);
        }
        say.step(task)
    })
}
