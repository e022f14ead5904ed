//! What the volume controllers of a cluster ask of this machine's disk and of its movers.

use super::repositories::Repositories;
use interlock_outside::volumes::{
    self as disk, Copying, LocalVolumes, NewCopy, NewVolume, Volumes,
};
use interlock_shell::Driver;
use interlock_volumes::outside::{
    Content, Disk, DiskAction, DiskQuestion, Failure, Job, Made, Mover, MoverAction, Outcome,
    Progress, Reason, Sync, SyncId,
};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The volumes and snapshots of one cluster, as folders of this machine, and what copies between them.
#[derive(Clone)]
pub(crate) struct OnThisDisk {
    volumes: Arc<LocalVolumes>,
    /// Failures that are in an object by now, and are not told again.
    told: Arc<Mutex<HashMap<DiskQuestion, disk::Failure>>>,
    repositories: Repositories,
}

impl OnThisDisk {
    pub(super) fn new(volumes: Arc<LocalVolumes>) -> Self {
        let repositories = Repositories::new(Arc::clone(&volumes));
        OnThisDisk { volumes, told: Arc::default(), repositories }
    }

    fn told(&self) -> MutexGuard<'_, HashMap<DiskQuestion, disk::Failure>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far a volume or a snapshot is; a failure that was reported is as if nobody had tried.
    fn state(&self, question: &DiskQuestion) -> Result<disk::Made, disk::Error> {
        let made = match question {
            DiskQuestion::Volume(handle) => self.volumes.volume_state(handle)?,
            DiskQuestion::Snapshot(handle) => self.volumes.snapshot_state(handle)?,
        };
        Ok(match made {
            disk::Made::Failed(why) if self.told().get(question) == Some(&why) => {
                disk::Made::Missing
            }
            made => made,
        })
    }

    /// Runs something that reads or syncs files, where it holds nobody up.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OnThisDisk) -> Result<T, disk::Error> + Send + 'static,
    ) -> Result<T, String> {
        let own = self.clone();
        match tokio::task::spawn_blocking(move || work(&own)).await {
            Ok(done) => done.map_err(|error| super::driver::in_words(&error)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn do_to_disk(&self, action: DiskAction) -> Result<(), disk::Error> {
        match action {
            DiskAction::MakeVolume { handle, namespace: owner, capacity, from } => {
                self.told().remove(&DiskQuestion::Volume(handle.clone()));
                let from = from.map(|(handle, digest)| disk::FromSnapshot { handle, digest });
                let capacity_bytes = capacity;
                self.volumes.make_volume(&NewVolume { handle, owner, capacity_bytes, from })
            }
            DiskAction::TakeSnapshot { handle, volume } => {
                self.told().remove(&DiskQuestion::Snapshot(handle.clone()));
                self.volumes.take_snapshot(&handle, &volume)
            }
            DiskAction::Forget(question) => {
                if let disk::Made::Failed(why) = self.state(&question)? {
                    self.told().insert(question, why);
                }
                Ok(())
            }
            DiskAction::DeleteVolume(handle) => self.volumes.delete_volume(&handle),
            DiskAction::DeleteSnapshot(handle) => self.volumes.delete_snapshot(&handle),
        }
    }
}

impl Driver<Disk> for OnThisDisk {
    async fn ask(&self, question: DiskQuestion) -> Result<Made, String> {
        Ok(match self.aside(move |own| own.state(&question)).await? {
            disk::Made::Missing => Made::Missing,
            disk::Made::Making(far) => Made::Making(progress(far)),
            disk::Made::Whole(found) => Made::Whole(content(found)),
            disk::Made::Failed(why) => Made::Failed(failure(why)),
        })
    }

    async fn perform(&self, action: DiskAction) -> Result<(), String> {
        self.aside(move |own| own.do_to_disk(action)).await
    }
}

impl Driver<Mover> for OnThisDisk {
    async fn ask(&self, id: SyncId) -> Result<Sync, String> {
        if let Some(sync) = self.repositories.state(&id) {
            return Ok(sync);
        }
        Ok(match self.volumes.copy_state(&name(&id)) {
            Copying::Unknown => Sync::Unknown,
            Copying::Runs(far) => Sync::Runs(progress(far)),
            Copying::Done(done) => Sync::Done(Box::new(Outcome {
                snapshot: None,
                content: content(done.content),
                began: Some(timestamp(done.began)),
                ended: Some(timestamp(done.ended)),
                log: String::new(),
            })),
            Copying::Failed(why) => Sync::Failed(failure(why)),
        })
    }

    async fn perform(&self, action: MoverAction) -> Result<(), String> {
        match action {
            MoverAction::Begin { id, job } => match *job {
                Job::Copy { into, cluster, snapshot, digest, allow_empty } => {
                    let copy = NewCopy { into, cluster, snapshot, digest, allow_empty };
                    self.aside(move |own| own.volumes.begin_copy(&name(&id), &copy)).await
                }
                job @ (Job::Backup { .. } | Job::Restore { .. } | Job::Tidy { .. }) => {
                    self.repositories.begin(&id, job).map_err(|error| error.to_string())
                }
            },
            MoverAction::Forget(id) => {
                self.repositories.forget(&id);
                self.aside(move |own| {
                    own.volumes.forget_copy(&name(&id));
                    Ok(())
                })
                .await
            }
        }
    }
}

/// The name of one attempt.
fn name(SyncId { id, attempt }: &SyncId) -> String {
    format!("{id}.{attempt}")
}

fn progress(disk::Progress { bytes, of_bytes, files }: disk::Progress) -> Progress {
    Progress { bytes, of_bytes, files }
}

fn content(disk::Content { files, bytes, digest }: disk::Content) -> Content {
    Content { files, bytes, digest }
}

pub(super) fn failure(disk::Failure { reason, message }: disk::Failure) -> Failure {
    let reason = match reason {
        disk::Reason::SourceUnreadable => Reason::SourceUnreadable,
        disk::Reason::SourceEmpty => Reason::SourceEmpty,
        disk::Reason::SourceMissing => Reason::SourceMissing,
        disk::Reason::TargetFull => Reason::TargetFull,
        disk::Reason::SizeMismatch => Reason::SizeMismatch,
        disk::Reason::FreezeTooLong => Reason::FreezeTooLong,
        disk::Reason::DigestMismatch => Reason::DigestMismatch,
        disk::Reason::SnapshotFailed => Reason::SnapshotFailed,
        disk::Reason::Cancelled => Reason::MoverFailed,
    };
    Failure { reason, message }
}

fn timestamp(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH)
}
