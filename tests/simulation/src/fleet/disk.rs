//! Disks that are not there: volumes, snapshots and the mover's copies are data. All machines have one,
//! and a copy reads the snapshot of another machine, as on one computer.
//!
//! What is in a volume are the numbers that its pods wrote, each used once in a whole life. What is
//! whole stays, whatever dies; what is being made, and what a program knows of it, is gone with that
//! program or with the power. A copy writes into a volume that is there, so a part of it stays.

use super::flaws::Flaw;
use crate::engine::chance::{Chance, SimulatedClock};
use interlock_volumes::outside::{
    Content, DiskAction, DiskQuestion, Failure, Made, Progress, Reason,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is in a volume or a snapshot.
pub(crate) type Numbers = Vec<u64>;

/// How often, once in so many steps, something on a disk fails in times of trouble.
const FAILS: usize = 9;
/// What is refused is refused because somebody else has it; the next step tries again.
pub(crate) const BUSY: &str = "somebody else has it";

/// A volume that is whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct Volume {
    /// What is in it.
    pub(crate) numbers: Numbers,
    /// The snapshot that it was made of, by its handle.
    pub(crate) of: Option<String>,
    /// The namespace on the cluster whose pods wrote to it.
    pub(crate) used_by: Option<String>,
}

/// Something that takes its time.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// The program that does it.
    pub(crate) instance: u64,
    /// What it is.
    pub(crate) work: Work,
    /// How many passings of time it still takes.
    pub(crate) left: usize,
    /// How many it took.
    pub(crate) done: usize,
    /// It is all on the disk, and nobody is informed yet.
    pub(crate) is_over: bool,
}

/// What is done on a disk.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// A volume is made, empty or of a snapshot.
    Volume { handle: String, from: Option<String> },
    /// A snapshot is taken; until all of it is read whoever writes to the volume is frozen.
    Snapshot { handle: String, volume: String, taken: Option<Numbers> },
    /// A volume is brought to what a snapshot has, which is on the machine at this place. So much of it
    /// was in the volume already, and is not written again.
    Copy { id: String, into: String, snapshot: (usize, String), had: usize },
}

/// The program that asks, and the place of its machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whose {
    pub(crate) place: usize,
    pub(crate) instance: u64,
}

/// The disk of one machine.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// The uid of its cluster.
    pub(crate) cluster: String,
    pub(crate) is_off: bool,
    pub(crate) volumes: BTreeMap<String, Volume>,
    pub(crate) snapshots: BTreeMap<String, Numbers>,
    pub(crate) jobs: Vec<Job>,
    /// What programs know of what failed, each for itself.
    pub(crate) failed: BTreeMap<(u64, String), Failure>,
    /// What programs know of copies that are over, each for itself.
    pub(crate) syncs: BTreeMap<(u64, String), super::mover::Ended>,
}

/// The disks of all machines, and what must be in them.
pub(crate) struct Disks {
    pub(crate) all: Vec<Disk>,
    /// Whether nothing fails any more.
    pub(crate) is_calm: bool,
    /// Volumes that were deleted since somebody looked: where, which, and whose pods wrote to it.
    pub(crate) deleted_volumes: Vec<(usize, String, Option<String>)>,
    /// Snapshots that were deleted since somebody looked, or were to be and are read.
    pub(crate) unwanted_snapshots: Vec<String>,
    /// How much was done, so that it is seen that something changed.
    pub(crate) changes: u64,
    /// How many copies came to their end, and how many of anything failed.
    pub(crate) copied: u64,
    pub(crate) failures: u64,
    /// By namespace on the cluster and claim: every number that was acknowledged and not given up.
    must: BTreeMap<(String, String), Numbers>,
    numbered: u64,
    pub(crate) chance: Arc<Chance>,
    pub(crate) clock: Arc<SimulatedClock>,
    pub(crate) flaw: Flaw,
    pub(crate) broken: Vec<String>,
}

impl Disks {
    /// No disks yet.
    pub(crate) fn new(clock: &Arc<SimulatedClock>, chance: &Arc<Chance>, flaw: Flaw) -> Disks {
        Disks {
            all: Vec::new(),
            is_calm: false,
            deleted_volumes: Vec::new(),
            unwanted_snapshots: Vec::new(),
            changes: 0,
            copied: 0,
            failures: 0,
            must: BTreeMap::new(),
            numbered: 0,
            chance: Arc::clone(chance),
            clock: Arc::clone(clock),
            flaw,
            broken: Vec::new(),
        }
    }

    /// A further machine has a disk.
    pub(crate) fn add(&mut self, cluster: &str) {
        self.all.push(Disk { cluster: cluster.to_owned(), ..Disk::default() });
    }

    /// Promises that a disk saw broken.
    pub(crate) fn take_broken(&mut self) -> Vec<String> {
        std::mem::take(&mut self.broken)
    }

    /// Every number of a claim that was acknowledged, and that nobody gave up.
    pub(crate) fn must(&self, namespace: &str, claim: &str) -> &[u64] {
        self.must.get(&(namespace.to_owned(), claim.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// A person gave up what is not in these numbers.
    pub(crate) fn give_up_all_but(&mut self, namespace: &str, claim: &str, left: Numbers) {
        self.must.insert((namespace.to_owned(), claim.to_owned()), left);
    }

    /// A process is about to start on a volume: it must have all that was acknowledged.
    pub(crate) fn mount(
        &mut self,
        place: usize,
        handle: &str,
        namespace: &str,
        claim: &str,
    ) -> Result<(), String> {
        let Some(volume) = self.all[place].volumes.get(handle) else {
            return Err(format!("volume {handle} of claim {claim} is not there"));
        };
        let lacking = lacking(&volume.numbers, self.must(namespace, claim));
        if let Some(lacking) = lacking {
            self.broken.push(format!("a pod of {namespace} starts on {handle}, which {lacking}"));
        }
        if self.is_copied_into(place, handle) {
            self.broken
                .push(format!("a pod of {namespace} starts on {handle}, which is copied to"));
        }
        Ok(())
    }

    /// A process writes its next number, unless it is frozen.
    pub(crate) fn write(&mut self, place: usize, handle: &str, namespace: &str, claim: &str) {
        if self.is_frozen(place, handle) {
            return;
        }
        self.changes += 1;
        self.numbered += 1;
        let key = (namespace.to_owned(), claim.to_owned());
        let must = self.must.entry(key).or_default();
        let Some(volume) = self.all[place].volumes.get_mut(handle) else {
            self.broken
                .push(format!("a pod of {namespace} writes to {handle}, which is not there"));
            return;
        };
        if let Some(lacking) = lacking(&volume.numbers, must) {
            self.broken.push(format!("a pod of {namespace} writes to {handle}, which {lacking}"));
        }
        volume.numbers.push(self.numbered);
        volume.used_by = Some(namespace.to_owned());
        must.push(self.numbered);
    }

    fn is_frozen(&self, place: usize, handle: &str) -> bool {
        self.all[place].jobs.iter().any(|job| match &job.work {
            Work::Snapshot { volume, taken: None, .. } => volume == handle,
            Work::Snapshot { .. } | Work::Volume { .. } | Work::Copy { .. } => false,
        })
    }

    /// Whether a mover writes to a volume.
    pub(crate) fn is_copied_into(&self, place: usize, handle: &str) -> bool {
        let jobs = self.all[place].jobs.iter().filter(|job| !job.is_over);
        jobs.clone().any(|job| matches!(&job.work, Work::Copy { into, .. } if into == handle))
    }

    fn is_volume_read(&self, place: usize, handle: &str) -> bool {
        let jobs = self.all[place].jobs.iter().filter(|job| !job.is_over);
        jobs.clone()
            .any(|job| matches!(&job.work, Work::Snapshot { volume, .. } if volume == handle))
    }

    /// Whether somebody has a volume, to read or to write it.
    pub(crate) fn is_volume_held(&self, place: usize, handle: &str) -> bool {
        self.is_copied_into(place, handle) || self.is_volume_read(place, handle)
    }

    /// Whether somebody reads a snapshot, on this machine or from another one.
    pub(crate) fn is_snapshot_read(&self, place: usize, handle: &str) -> bool {
        self.all.iter().enumerate().any(|(at, disk)| {
            disk.jobs.iter().filter(|job| !job.is_over).any(|job| match &job.work {
                Work::Volume { from, .. } => at == place && from.as_deref() == Some(handle),
                Work::Copy { snapshot, .. } => snapshot.0 == place && snapshot.1 == handle,
                Work::Snapshot { .. } => false,
            })
        })
    }

    /// How far a volume or a snapshot is, as one program sees it.
    pub(crate) fn state(&self, whose: Whose, question: &DiskQuestion) -> Made {
        let disk = &self.all[whose.place];
        let mut jobs = disk.jobs.iter().filter(|job| job.is_about(question));
        let is_mine = |job: &&Job| job.instance == whose.instance;
        if jobs.clone().any(|job| is_mine(&job)) {
            return Made::Making(Progress::default());
        }
        let whole = match question {
            DiskQuestion::Volume(handle) => disk.volumes.get(handle).map(|found| &found.numbers),
            DiskQuestion::Snapshot(handle) => disk.snapshots.get(handle),
        };
        if let Some(whole) = whole {
            return Made::Whole(content(whole));
        }
        if let Some(failure) = disk.failed.get(&(whose.instance, named(question))) {
            return Made::Failed(failure.clone());
        }
        match jobs.any(|job| !job.is_over) {
            true => Made::Making(Progress::default()),
            false => Made::Missing,
        }
    }

    /// Does something to a disk, or begins to.
    pub(crate) fn perform(&mut self, whose: Whose, action: DiskAction) -> Result<(), String> {
        self.changes += 1;
        match action {
            DiskAction::MakeVolume { handle, from, .. } => self.make_volume(whose, handle, from),
            DiskAction::TakeSnapshot { handle, volume } => {
                self.take_snapshot(whose, handle, volume)
            }
            DiskAction::Forget(question) => {
                self.all[whose.place].failed.remove(&(whose.instance, named(&question)));
                Ok(())
            }
            DiskAction::DeleteVolume(handle) => self.delete_volume(whose, handle),
            DiskAction::DeleteSnapshot(handle) => self.delete_snapshot(whose, handle),
        }
    }

    /// Whether there is nothing to begin: it is there, or somebody makes it.
    fn is_begun(&mut self, whose: Whose, question: &DiskQuestion) -> bool {
        self.all[whose.place].failed.remove(&(whose.instance, named(question)));
        !matches!(self.state(whose, question), Made::Missing)
    }

    fn make_volume(
        &mut self,
        whose: Whose,
        handle: String,
        from: Option<(String, String)>,
    ) -> Result<(), String> {
        let question = DiskQuestion::Volume(handle.clone());
        if self.is_begun(whose, &question) {
            return Ok(());
        }
        let work =
            Work::Volume { handle, from: from.as_ref().map(|(snapshot, _)| snapshot.clone()) };
        if let Some((snapshot, digest)) = from {
            let Some(found) = self.all[whose.place].snapshots.get(&snapshot) else {
                self.note_failure(whose, &work, Reason::SourceMissing);
                return Ok(());
            };
            if !digest.is_empty() && content(found).digest != digest {
                self.note_failure(whose, &work, Reason::DigestMismatch);
                return Ok(());
            }
        }
        self.begin(whose, work);
        Ok(())
    }

    fn take_snapshot(
        &mut self,
        whose: Whose,
        handle: String,
        volume: String,
    ) -> Result<(), String> {
        let question = DiskQuestion::Snapshot(handle.clone());
        if self.is_begun(whose, &question) {
            return Ok(());
        }
        let is_there = self.all[whose.place].volumes.contains_key(&volume);
        if is_there && self.is_copied_into(whose.place, &volume) {
            return Err(format!("{volume}: {BUSY}"));
        }
        let work = Work::Snapshot { handle, volume, taken: None };
        match is_there {
            true => self.begin(whose, work),
            false => self.note_failure(whose, &work, Reason::SourceMissing),
        }
        Ok(())
    }

    /// One that is being made by the same program is given up; one that anybody has stays.
    fn delete_volume(&mut self, whose: Whose, handle: String) -> Result<(), String> {
        let question = DiskQuestion::Volume(handle.clone());
        if self.give_up(whose, &question) {
            return Ok(());
        }
        let is_made = self.all[whose.place].jobs.iter().any(|job| job.is_about(&question));
        if is_made || self.is_volume_held(whose.place, &handle) {
            return Err(format!("{handle}: {BUSY}"));
        }
        if let Some(volume) = self.all[whose.place].volumes.remove(&handle) {
            self.deleted_volumes.push((whose.place, handle, volume.used_by));
        }
        Ok(())
    }

    fn delete_snapshot(&mut self, whose: Whose, handle: String) -> Result<(), String> {
        let question = DiskQuestion::Snapshot(handle.clone());
        if self.give_up(whose, &question) {
            return Ok(());
        }
        let is_made = self.all[whose.place].jobs.iter().any(|job| job.is_about(&question));
        self.unwanted_snapshots.push(handle.clone());
        if is_made || self.is_snapshot_read(whose.place, &handle) {
            return Err(format!("{handle}: {BUSY}"));
        }
        self.all[whose.place].snapshots.remove(&handle);
        Ok(())
    }

    fn give_up(&mut self, whose: Whose, question: &DiskQuestion) -> bool {
        let disk = &mut self.all[whose.place];
        disk.failed.remove(&(whose.instance, named(question)));
        let before = disk.jobs.len();
        disk.jobs
            .retain(|job| job.is_over || job.instance != whose.instance || !job.is_about(question));
        disk.jobs.len() < before
    }

    /// Begins something. Much of it has little to do, and is over before anybody asks.
    pub(crate) fn begin(&mut self, whose: Whose, work: Work) {
        let left = [0, 0, 1, 1, 2, 3][self.chance.below(6)];
        let job = Job { instance: whose.instance, work, left, done: 0, is_over: false };
        self.all[whose.place].jobs.push(job);
        if left == 0 && self.chance.once_in(2) {
            let job = self.all[whose.place].jobs.pop();
            let going_on = job.and_then(|job| self.go_on(whose.place, job));
            self.all[whose.place].jobs.extend(going_on);
        }
    }

    /// Time passed: whatever takes its time goes on by one step, and may fail.
    pub(crate) fn tick(&mut self) {
        for place in 0..self.all.len() {
            for job in std::mem::take(&mut self.all[place].jobs) {
                let going_on = self.go_on(place, job);
                self.all[place].jobs.extend(going_on);
            }
        }
    }

    /// Whether a step fails by chance.
    pub(crate) fn is_failing(&self) -> bool {
        !self.is_calm && self.chance.once_in(FAILS)
    }

    /// A program died: what it made is gone, but for what is whole, and so is all that it knew.
    pub(crate) fn lost_program(&mut self, whose: Whose) {
        self.changes += 1;
        let disk = &mut self.all[whose.place];
        disk.jobs.retain(|job| job.instance != whose.instance);
        disk.failed.retain(|(instance, _), _| *instance != whose.instance);
        disk.syncs.retain(|(instance, _), _| *instance != whose.instance);
    }

    /// The power fails: what a copy wrote last may not have come to the disk.
    pub(crate) fn power_off(&mut self, place: usize) {
        self.changes += 1;
        let disk = &mut self.all[place];
        disk.is_off = true;
        disk.failed.clear();
        disk.syncs.clear();
        for job in std::mem::take(&mut disk.jobs) {
            if let Work::Copy { into, had, .. } = job.work
                && let Some(volume) = disk.volumes.get_mut(&into).filter(|_| !job.is_over)
            {
                let new = volume.numbers.len().saturating_sub(had);
                volume.numbers.truncate(had + self.chance.below(new + 1));
            }
        }
    }

    /// The power is back.
    pub(crate) fn power_on(&mut self, place: usize) {
        self.all[place].is_off = false;
    }
}

impl Job {
    /// Whether it makes this.
    fn is_about(&self, question: &DiskQuestion) -> bool {
        match (&self.work, question) {
            (Work::Volume { handle, .. }, DiskQuestion::Volume(asked))
            | (Work::Snapshot { handle, .. }, DiskQuestion::Snapshot(asked)) => handle == asked,
            _ => false,
        }
    }
}

/// How many numbers two have in common, from the first on.
pub(crate) fn alike(one: &[u64], other: &[u64]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// What a volume has too little or too much, in words.
pub(crate) fn lacking(numbers: &[u64], must: &[u64]) -> Option<String> {
    if numbers == must {
        return None;
    }
    let alike = alike(numbers, must);
    let (has, all) = (numbers.len(), must.len());
    Some(format!("has {has} numbers, {alike} of the {all} that were acknowledged"))
}

/// The name of what a question is about.
pub(crate) fn named(question: &DiskQuestion) -> String {
    match question {
        DiskQuestion::Volume(handle) => format!("volume {handle}"),
        DiskQuestion::Snapshot(handle) => format!("snapshot {handle}"),
    }
}

/// What is in a volume or a snapshot, as it is reported.
pub(crate) fn content(numbers: &[u64]) -> Content {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for number in numbers {
        digest = (digest ^ number).wrapping_mul(0x0100_0000_01b3);
    }
    let files = numbers.len() as u64;
    Content { files, bytes: files * 1024, digest: format!("{files}-{digest:016x}") }
}
