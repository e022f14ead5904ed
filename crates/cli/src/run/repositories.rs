//! Syncs through restic repositories, each on a thread of its own.

use interlock_outside::volumes::{Held, LocalVolumes, digest_of};
use interlock_restic::{self as restic, Settings, Sort, Watch};
use interlock_volumes::outside::{
    Choice, Content, Failure, Folder, Job, Keep, LeftByMoves, Mark, Outcome, Progress, Reason,
    Repository, Sync, SyncId,
};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The syncs of one cluster that go through repositories. What is known of them goes with this
/// program: one that was under way then is unknown, and is begun again.
#[derive(Clone)]
pub(super) struct Repositories {
    volumes: Arc<LocalVolumes>,
    syncs: Arc<Mutex<HashMap<SyncId, State>>>,
}

enum State {
    Runs(Watch),
    Ended(Result<Outcome, Failure>),
}

impl Repositories {
    pub(super) fn new(volumes: Arc<LocalVolumes>) -> Self {
        Repositories { volumes, syncs: Arc::default() }
    }

    fn syncs(&self) -> MutexGuard<'_, HashMap<SyncId, State>> {
        self.syncs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far a sync is; None: it is not one of these, or was not begun by this program.
    pub(super) fn state(&self, id: &SyncId) -> Option<Sync> {
        Some(match self.syncs().get(id)? {
            State::Runs(watch) => {
                let restic::Progress { bytes, of_bytes, files } = watch.progress();
                Sync::Runs(Progress { bytes, of_bytes, files })
            }
            State::Ended(Ok(outcome)) => Sync::Done(Box::new(outcome.clone())),
            State::Ended(Err(failure)) => Sync::Failed(failure.clone()),
        })
    }

    /// Begins a sync. One that was begun under this name is left alone.
    pub(super) fn begin(&self, id: &SyncId, job: Job) -> Result<(), std::io::Error> {
        let watch = Watch::default();
        let mut syncs = self.syncs();
        if syncs.contains_key(id) {
            return Ok(());
        }
        let (own, of, seen) = (self.clone(), id.clone(), watch.clone());
        let named = thread::Builder::new().name(format!("sync-{}", id.id));
        named.spawn(move || {
            let ended = own.run(job, &seen);
            own.syncs().insert(of, State::Ended(ended));
        })?;
        syncs.insert(id.clone(), State::Runs(watch));
        Ok(())
    }

    /// Forgets a sync that has ended.
    pub(super) fn forget(&self, id: &SyncId) {
        let mut syncs = self.syncs();
        if matches!(syncs.get(id), Some(State::Ended(_))) {
            syncs.remove(id);
        }
    }

    fn run(&self, job: Job, watch: &Watch) -> Result<Outcome, Failure> {
        match job {
            Job::Backup { from, repository, mark, allow_empty, keep } => {
                let settings = settings(&repository)?;
                let (folder, sort) = match &from {
                    Folder::Volume(handle) => (self.volumes.read_volume(handle), Sort::Volume),
                    Folder::Snapshot(handle) => {
                        (self.volumes.read_snapshot(handle), Sort::Snapshot)
                    }
                };
                let folder = held(folder)?;
                let is_move = matches!(mark, Mark::Move(_));
                let job = restic::Backup {
                    folder: folder.path().to_owned(),
                    sort,
                    mark: match mark {
                        Mark::Volsync => restic::Mark::Volsync,
                        Mark::Move(tags) => restic::Mark::Move(tags),
                    },
                    allow_empty,
                    unlock: keep.as_ref().is_some_and(|keep| keep.unlock),
                };
                let made = restic::backup(&settings, &job, watch).map_err(failure)?;
                // If this fails, the next attempt finds nothing new to back up, and tidies again.
                if let Some(keep) = keep {
                    restic::tidy(&settings, &tidy(keep), watch).map_err(failure)?;
                }
                let digest = match is_move {
                    // Nobody writes to it: whoever restores it must get the same.
                    true => Some(digest(&folder)?),
                    false => None,
                };
                Ok(outcome(made, digest))
            }
            Job::Restore {
                into,
                repository,
                choice,
                delete_other_files,
                digest: wanted,
                allow_empty,
            } => {
                let settings = settings(&repository)?;
                let folder = held(self.volumes.write_volume(&into))?;
                let job = restic::Restore {
                    into: folder.path().to_owned(),
                    choice: match choice {
                        Choice::Newest { as_of, previous } => {
                            restic::Choice::Newest { as_of, previous }
                        }
                        Choice::Id(id) => restic::Choice::Id(id),
                    },
                    delete_other_files,
                    allow_empty,
                    capacity_bytes: folder.capacity_bytes(),
                    unlock: false,
                };
                let made = restic::restore(&settings, &job, watch).map_err(failure)?;
                let Some(wanted) = wanted else { return Ok(outcome(made, None)) };
                let found = digest(&folder)?;
                if found != wanted {
                    return Err(Failure {
                        reason: Reason::DigestMismatch,
                        message: format!(
                            "the data restored from snapshot {} has the digest {found} where \
                             {wanted} was expected; it is not used",
                            made.snapshot
                        ),
                    });
                }
                Ok(outcome(made, Some(found)))
            }
            Job::Tidy { repository, left: LeftByMoves { claim, before_epoch, pinned } } => {
                let settings = settings(&repository)?;
                let began = Timestamp::now();
                let left = restic::LeftByMoves { claim, before_epoch, pinned };
                let tidied = restic::tidy_moves(&settings, &left, watch).map_err(failure)?;
                let log = format!(
                    "{} snapshots of earlier moves were deleted, {} remain, {} bytes are free",
                    tidied.forgotten.len(),
                    tidied.kept,
                    tidied.freed
                );
                let (began, ended) = (Some(began), Some(Timestamp::now()));
                Ok(Outcome { began, ended, log, ..Outcome::default() })
            }
            Job::Copy { .. } => Err(Failure {
                reason: Reason::MoverFailed,
                message: "a copy goes through no repository".to_owned(),
            }),
        }
    }
}

fn settings(repository: &Repository) -> Result<Settings, Failure> {
    Settings::from_secret(&repository.settings, repository.authority.as_deref()).map_err(failure)
}

fn held(held: Result<Held, interlock_outside::volumes::Error>) -> Result<Held, Failure> {
    held.map_err(|error| Failure {
        reason: Reason::MoverFailed,
        message: super::driver::in_words(&error),
    })
}

/// What is in a folder, to be held against what others say of it.
fn digest(folder: &Held) -> Result<String, Failure> {
    digest_of(folder.path()).map(|content| content.digest).map_err(super::storage::failure)
}

fn tidy(keep: Keep) -> restic::Tidy {
    let Keep { last, hourly, daily, weekly, monthly, yearly, within, pinned, prune, unlock } = keep;
    let keep = restic::Keep { last, hourly, daily, weekly, monthly, yearly, within };
    restic::Tidy { keep, pinned, prune, unlock }
}

/// What is in a repository is checked against its own hashes; moves have a digest of ours besides.
fn outcome(made: restic::Outcome, digest: Option<String>) -> Outcome {
    let (files, bytes, digest) = (made.files, made.bytes, digest.unwrap_or_default());
    Outcome {
        snapshot: Some(made.snapshot),
        content: Content { files, bytes, digest },
        began: Some(made.began),
        ended: Some(made.ended),
        log: made.log,
    }
}

fn failure(restic::Failure { reason, message }: restic::Failure) -> Failure {
    let reason = match reason {
        restic::Reason::SecretIncomplete | restic::Reason::RepositoryNotSupported => {
            Reason::RepositoryNotSupported
        }
        restic::Reason::RepositoryMissing => Reason::RepositoryMissing,
        restic::Reason::WrongPassword => Reason::WrongPassword,
        restic::Reason::RepositoryLocked => Reason::RepositoryLocked,
        restic::Reason::RepositoryDamaged => Reason::RepositoryDamaged,
        restic::Reason::RepositoryUnreachable => Reason::RepositoryUnreachable,
        restic::Reason::NoEligibleSnapshot => Reason::NoEligibleSnapshot,
        restic::Reason::SourceMissing => Reason::SourceMissing,
        restic::Reason::SourceUnreadable => Reason::SourceUnreadable,
        restic::Reason::SourceEmpty => Reason::SourceEmpty,
        restic::Reason::TargetFull => Reason::TargetFull,
        restic::Reason::SizeMismatch => Reason::SizeMismatch,
        restic::Reason::Cancelled | restic::Reason::MoverFailed => Reason::MoverFailed,
    };
    Failure { reason, message }
}
