//! What the mover is asked, and told to do.

use super::{gone, on};
use crate::outside::{Folder, Job, Keep, Mover, MoverAction};
use crate::sync::decide::Begin;
use crate::sync::intent::Intent;
use crate::sync::observe::Scene;
use crate::sync::snapshots;
use crate::sync::work::Way;
use interlock_kernel::{Importance, Read, Step};

pub(super) fn ask(scene: &Scene) -> Step<Mover> {
    let reads = scene.task.questions().into_iter().map(Read::Ask).collect();
    Step::LiveRead { reads, because: "asking the mover for its progress".to_owned() }
}

pub(super) fn begin(scene: &Scene, intent: &Intent, how: Begin) -> Step<Mover> {
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

pub(super) fn forget(intent: &Intent) -> Step<Mover> {
    let forget = MoverAction::Forget(intent.sync_id());
    Step::outside(forget, "the result of the sync is in the status")
}

pub(super) fn forget_earlier(intent: &Intent) -> Step<Mover> {
    on(intent.earlier_sync_id().as_ref(), |earlier| {
        Step::outside(MoverAction::Forget(earlier.clone()), "a later attempt has begun")
    })
}
