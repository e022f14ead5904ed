//! How what takes its time goes on and ends on the disks: volumes, snapshots, and copies between
//! machines; and what programs ask of both.

use super::disk::{BUSY, Disks, Job, Numbers, Volume, Whose, Work, alike, content, named};
use super::flaws::Flaw;
use crate::engine::line::{Errand, Gate, Way};
use interlock_shell::Driver;
use interlock_volumes::outside::{
    Disk, DiskAction, DiskQuestion, Failure, Job as MoverJob, Made, Mover, MoverAction, Outcome,
    Progress, Reason, Sync, SyncId,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What became of a copy.
#[derive(Debug, Clone)]
pub(crate) enum Ended {
    Done(Outcome),
    Failed(Failure),
}

impl Disks {
    /// One step of something; None: it is over, and its program knows.
    pub(crate) fn go_on(&mut self, place: usize, mut job: Job) -> Option<Job> {
        self.changes += 1;
        let whose = Whose { place, instance: job.instance };
        if job.is_over {
            self.tell(whose, &job.work);
            return None;
        }
        if self.is_failing() {
            let reason = self.some_reason(&job.work);
            self.note_failure(whose, &job.work, reason);
            return None;
        }
        let is_done = match self.work_on(place, &mut job) {
            Ok(is_done) => is_done,
            Err(reason) => {
                self.note_failure(whose, &job.work, reason);
                return None;
            }
        };
        if is_done && !self.chance.once_in(3) {
            self.tell(whose, &job.work);
            return None;
        }
        job.is_over = is_done;
        Some(job)
    }

    /// Whether all of it is on the disk now.
    fn work_on(&mut self, place: usize, job: &mut Job) -> Result<bool, Reason> {
        let is_last = job.left == 0;
        job.left = job.left.saturating_sub(1);
        job.done += 1;
        match &mut job.work {
            Work::Volume { handle, from } => {
                let numbers = match from {
                    None => Numbers::new(),
                    Some(snapshot) => {
                        let found = self.all[place].snapshots.get(&*snapshot);
                        found.cloned().ok_or(Reason::SourceMissing)?
                    }
                };
                if is_last {
                    let volume = Volume { numbers, of: from.clone(), used_by: None };
                    self.all[place].volumes.insert(handle.clone(), volume);
                }
                Ok(is_last)
            }
            Work::Snapshot { handle, volume, taken } => {
                if taken.is_none() {
                    let found = self.all[place].volumes.get(&*volume);
                    *taken = Some(found.ok_or(Reason::SourceMissing)?.numbers.clone());
                }
                if let Some(taken) = taken.clone().filter(|_| is_last) {
                    self.all[place].snapshots.insert(handle.clone(), taken);
                }
                Ok(is_last)
            }
            Work::Copy { into, snapshot, had, .. } => {
                let all = self.read(snapshot.0, &snapshot.1)?;
                let written = match (self.flaw, is_last) {
                    (Flaw::CopyIsEmpty, _) => 0,
                    (Flaw::DoneBeforeAllIsCopied, _) => all.len() / 2,
                    (_, true) => all.len(),
                    (_, false) => all.len() * job.done / (job.done + job.left + 1),
                };
                let volume =
                    self.all[place].volumes.get_mut(&*into).ok_or(Reason::SourceMissing)?;
                volume.numbers = all[..written.max(*had).min(all.len())].to_vec();
                Ok(is_last)
            }
        }
    }

    /// Reads a snapshot of any machine that has power.
    fn read(&mut self, place: usize, handle: &str) -> Result<Numbers, Reason> {
        let disk = &self.all[place];
        if disk.is_off {
            return Err(Reason::SourceUnreadable);
        }
        let found = disk.snapshots.get(handle).cloned();
        found.ok_or_else(|| {
            self.broken.push(format!("snapshot {handle} is gone while it is copied"));
            Reason::SourceMissing
        })
    }

    /// Its program knows that it is over.
    fn tell(&mut self, whose: Whose, work: &Work) {
        let Work::Copy { id, snapshot, .. } = work else { return };
        self.copied += 1;
        // The snapshot may be gone since, if nobody needs it any more; what was read is what counts.
        let read = self.all[snapshot.0].snapshots.get(&snapshot.1).map(|numbers| content(numbers));
        let now = Some(self.clock.now());
        let outcome = Outcome {
            snapshot: None,
            content: read.unwrap_or_default(),
            began: now,
            ended: now,
            log: String::new(),
        };
        let key = (whose.instance, id.clone());
        self.all[whose.place].syncs.insert(key, Ended::Done(outcome));
    }

    /// Its program knows that it failed.
    pub(crate) fn note_failure(&mut self, whose: Whose, work: &Work, reason: Reason) {
        self.failures += 1;
        let failure = Failure { reason, message: format!("it failed: {}", reason.word()) };
        let disk = &mut self.all[whose.place];
        let question = match work {
            Work::Volume { handle, .. } => DiskQuestion::Volume(handle.clone()),
            Work::Snapshot { handle, .. } => DiskQuestion::Snapshot(handle.clone()),
            Work::Copy { id, .. } => {
                let key = (whose.instance, id.clone());
                disk.syncs.insert(key, Ended::Failed(failure));
                return;
            }
        };
        disk.failed.insert((whose.instance, named(&question)), failure);
    }

    /// Something that may heal.
    fn some_reason(&self, work: &Work) -> Reason {
        let reasons: &[Reason] = match work {
            Work::Volume { .. } => &[Reason::TargetFull, Reason::SnapshotFailed],
            Work::Snapshot { .. } => &[
                Reason::TargetFull,
                Reason::FreezeTooLong,
                Reason::SnapshotFailed,
                Reason::SourceUnreadable,
            ],
            Work::Copy { .. } => &[
                Reason::TargetFull,
                Reason::RepositoryUnreachable,
                Reason::SourceUnreadable,
                Reason::MoverFailed,
            ],
        };
        self.chance.one_of(reasons).copied().unwrap_or(Reason::MoverFailed)
    }

    /// How far a copy is, as one program sees it.
    pub(crate) fn sync_state(&self, whose: Whose, id: &SyncId) -> Sync {
        let disk = &self.all[whose.place];
        let id = name(id);
        let is_it = |job: &Job| matches!(&job.work, Work::Copy { id: known, .. } if *known == id);
        if disk.jobs.iter().any(|job| job.instance == whose.instance && is_it(job)) {
            return Sync::Runs(Progress::default());
        }
        match disk.syncs.get(&(whose.instance, id)) {
            None => Sync::Unknown,
            Some(Ended::Done(outcome)) => Sync::Done(Box::new(outcome.clone())),
            Some(Ended::Failed(failure)) => Sync::Failed(failure.clone()),
        }
    }

    /// Begins a copy, or forgets one.
    pub(crate) fn do_by_mover(&mut self, whose: Whose, action: MoverAction) -> Result<(), String> {
        self.changes += 1;
        match action {
            MoverAction::Begin { id, job } => match *job {
                MoverJob::Copy { into, cluster, snapshot, digest, allow_empty } => {
                    let source = self.all.iter().position(|disk| disk.cluster == cluster);
                    let Some(source) = source else {
                        return Err(format!("there is no cluster {cluster}"));
                    };
                    let wanted =
                        Wanted { id, into, snapshot: (source, snapshot), digest, allow_empty };
                    self.begin_copy(whose, wanted)
                }
                MoverJob::Backup { .. } | MoverJob::Restore { .. } | MoverJob::Tidy { .. } => {
                    self.broken.push("a move goes through a repository, and none was asked".into());
                    Err("there are no repositories here".to_owned())
                }
            },
            MoverAction::Forget(id) => {
                self.all[whose.place].syncs.remove(&(whose.instance, name(&id)));
                Ok(())
            }
        }
    }

    fn begin_copy(&mut self, whose: Whose, wanted: Wanted) -> Result<(), String> {
        let Wanted { id, into, snapshot, digest, allow_empty } = wanted;
        if matches!(self.sync_state(whose, &id), Sync::Runs(_) | Sync::Done(_)) {
            return Ok(());
        }
        let source = &self.all[snapshot.0];
        let there = self.all[whose.place].volumes.get(&into);
        let had = match (there, source.snapshots.get(&snapshot.1)) {
            (Some(volume), Some(found)) => alike(&volume.numbers, found),
            _ => 0,
        };
        let id_of_sync = name(&id);
        let work =
            Work::Copy { id: id_of_sync, into: into.clone(), snapshot: snapshot.clone(), had };
        let in_the_way = match (source.is_off, source.snapshots.get(&snapshot.1)) {
            (true, _) => Some(Reason::SourceUnreadable),
            (false, None) => Some(Reason::SourceMissing),
            (false, Some(found)) => {
                let is_other = digest.is_some_and(|digest| digest != content(found).digest);
                let is_empty = found.is_empty() && !allow_empty;
                let empty = is_empty.then_some(Reason::SourceEmpty);
                is_other.then_some(Reason::DigestMismatch).or(empty)
            }
        };
        let volume = self.all[whose.place].volumes.get(&into);
        let used_by = volume.and_then(|volume| volume.used_by.clone());
        let is_missing = volume.is_none().then_some(Reason::SourceMissing);
        if let Some(reason) = in_the_way.or(is_missing) {
            self.note_failure(whose, &work, reason);
            return Ok(());
        }
        if self.is_volume_held(whose.place, &into) {
            return Err(format!("{into}: {BUSY}"));
        }
        if let Some(used_by) = used_by {
            self.broken.push(format!("a mover writes to {into}, which pods of {used_by} wrote to"));
        }
        self.begin(whose, work);
        Ok(())
    }
}

/// A copy that is asked for.
struct Wanted {
    id: SyncId,
    into: String,
    snapshot: (usize, String),
    digest: Option<String>,
    allow_empty: bool,
}

/// The name of one attempt.
fn name(SyncId { id, attempt }: &SyncId) -> String {
    format!("{id}.{attempt}")
}

/// What the volume controllers of a cluster have of its disk and of its mover.
#[derive(Clone)]
pub(crate) struct OnDisk {
    /// All disks.
    pub(crate) disks: Arc<Mutex<Disks>>,
    /// Which program this is, on which machine.
    pub(crate) whose: Whose,
    /// Where questions and actions wait.
    pub(crate) gate: Arc<Gate>,
}

impl OnDisk {
    fn disks(&self) -> MutexGuard<'_, Disks> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its turn; then it is asked, and sometimes nobody hears the answer.
    async fn asked<T>(&self, ask: impl FnOnce(&Disks) -> T) -> Result<T, String> {
        match self.gate.turn(Errand::Any).await {
            Way::Through | Way::LeftBehind => Ok(ask(&self.disks())),
            Way::RequestLost | Way::ReplyLost => Err("there is no answer".to_owned()),
        }
    }

    async fn done(
        &self,
        perform: impl FnOnce(&mut Disks) -> Result<(), String>,
    ) -> Result<(), String> {
        match self.gate.turn(Errand::Any).await {
            Way::RequestLost => Err("it could not be done".to_owned()),
            Way::Through | Way::LeftBehind => perform(&mut self.disks()),
            Way::ReplyLost => {
                perform(&mut self.disks())?;
                Err("nobody says whether it was done".to_owned())
            }
        }
    }
}

impl Driver<Disk> for OnDisk {
    async fn ask(&self, question: DiskQuestion) -> Result<Made, String> {
        self.asked(|disks| disks.state(self.whose, &question)).await
    }

    async fn perform(&self, action: DiskAction) -> Result<(), String> {
        self.done(|disks| disks.perform(self.whose, action)).await
    }
}

impl Driver<Mover> for OnDisk {
    async fn ask(&self, id: SyncId) -> Result<Sync, String> {
        self.asked(|disks| disks.sync_state(self.whose, &id)).await
    }

    async fn perform(&self, action: MoverAction) -> Result<(), String> {
        self.done(|disks| disks.do_by_mover(self.whose, action)).await
    }
}
