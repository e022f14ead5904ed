//! What is outside of the API: the volumes and snapshots of a cluster, its movers, and a repository.
//!
//! It answers as the real drivers do. Whatever takes long is begun by a action, ends by itself, and may
//! end badly ([`Storage::endings`]); what is begun twice is begun once; whoever dies leaves nothing
//! half made, but a volume that a mover was writing to is as the mover left it.
//!
//! Any world whose machines have a [`Storage`] can run the volume controllers: [`Stores`].

use crate::outside::{
    Content, Disk, DiskAction, DiskQuestion, Failure, Folder, Job, Made, Mover, MoverAction,
    Outcome, Progress, Reason, Sync, SyncId,
};
use interlock_world::Driver;
use std::collections::{BTreeMap, BTreeSet};

/// The writes that are in something, by number.
pub type Data = BTreeSet<i64>;

/// Stands in a volume for whatever a mover that has not ended wrote to it.
pub const TORN: i64 = -1;

/// A machine that has volumes.
pub trait Stores: Clone + 'static {
    /// Its volumes, snapshots and movers.
    fn storage(&self) -> &Storage;
    /// The same machine with other ones.
    #[must_use]
    fn with_storage(&self, storage: Storage) -> Self;
}

/// The volumes, snapshots and movers of one cluster, and the repository that it saves to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Storage {
    /// The uid of the cluster.
    pub cluster: String,
    /// By handle.
    pub volumes: BTreeMap<String, Thing>,
    /// By handle.
    pub snapshots: BTreeMap<String, Thing>,
    /// By sync and attempt; one that is not here is unknown.
    pub movers: BTreeMap<(String, u32), Attempt>,
    /// The snapshots in the repository, the newest last.
    pub repository: Vec<(String, Data)>,
}

/// A volume or a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Thing {
    /// It is being made.
    Making(Copied),
    /// It is there.
    Whole(Copied),
    /// It could not be made.
    Failed(Reason),
}

/// What is in a volume or a snapshot, or will be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Copied {
    /// The writes.
    pub data: Data,
    /// The snapshot that a volume was made of, or the volume that a snapshot was taken of.
    pub of: Option<String>,
}

/// One attempt of a mover.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Attempt {
    /// It writes a volume, with this in the end.
    Writes {
        /// The volume.
        into: String,
        /// What it is brought to.
        data: Data,
    },
    /// It saves this.
    Saves(Data),
    /// It is done, and this is what it moved.
    Done {
        /// What was moved.
        data: Data,
        /// The snapshot in the repository.
        snapshot: Option<String>,
    },
    /// It failed.
    Failed(Reason),
}

impl Attempt {
    /// Whether it is under way.
    pub fn runs(&self) -> bool {
        matches!(self, Attempt::Writes { .. } | Attempt::Saves(_))
    }
}

/// How something that takes long ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A volume or a snapshot is there.
    Made,
    /// A mover is done.
    Moved,
    /// It fails, and may go well another time.
    Fails,
    /// A mover fails for good.
    FailsForGood,
    /// A mover says that it is done, and brought nothing.
    BringsNothing,
    /// A mover dies, and nobody knows anything of it.
    Dies,
}

fn content(data: &Data) -> Content {
    let words: Vec<String> = data.iter().map(ToString::to_string).collect();
    let (files, bytes) = (data.len() as u64, data.len() as u64);
    Content { files, bytes, digest: words.join("-") }
}

fn failure(reason: Reason) -> Failure {
    Failure { reason, message: reason.word().to_lowercase() }
}

fn question(thing: Option<&Thing>) -> Made {
    match thing {
        None => Made::Missing,
        Some(Thing::Making(_)) => Made::Making(Progress::default()),
        Some(Thing::Whole(copied)) => Made::Whole(content(&copied.data)),
        Some(Thing::Failed(reason)) => Made::Failed(failure(*reason)),
    }
}

fn whole(things: &BTreeMap<String, Thing>, handle: &str) -> Option<Data> {
    match things.get(handle)? {
        Thing::Whole(copied) => Some(copied.data.clone()),
        Thing::Making(_) | Thing::Failed(_) => None,
    }
}

/// Begins to make something, unless it is there or being made.
fn begin(things: &mut BTreeMap<String, Thing>, handle: &str, of: &str, data: Option<Data>) {
    if matches!(things.get(handle), Some(Thing::Making(_) | Thing::Whole(_))) {
        return;
    }
    let of = (!of.is_empty()).then(|| of.to_owned());
    let thing = match data {
        Some(data) => Thing::Making(Copied { data, of }),
        None => Thing::Failed(Reason::SourceMissing),
    };
    things.insert(handle.to_owned(), thing);
}

impl Storage {
    /// What is left when the program that makes and moves dies.
    #[must_use]
    pub fn crashed(&self) -> Storage {
        let mut left = self.clone();
        for things in [&mut left.volumes, &mut left.snapshots] {
            things.retain(|_, thing| matches!(thing, Thing::Whole(_)));
        }
        left.movers.clear();
        left
    }

    /// How far a volume or a snapshot is.
    pub fn made(&self, asked: &DiskQuestion) -> Made {
        match asked {
            DiskQuestion::Volume(handle) => question(self.volumes.get(handle)),
            DiskQuestion::Snapshot(handle) => question(self.snapshots.get(handle)),
        }
    }

    /// What is in a volume that is whole.
    pub fn volume(&self, handle: &str) -> Option<Data> {
        whole(&self.volumes, handle)
    }

    /// What is in a snapshot that is whole.
    pub fn snapshot(&self, handle: &str) -> Option<Data> {
        whole(&self.snapshots, handle)
    }

    /// How far an attempt of a mover is.
    pub fn sync(&self, SyncId { id, attempt }: &SyncId) -> Sync {
        match self.movers.get(&(id.clone(), *attempt)) {
            None => Sync::Unknown,
            Some(Attempt::Writes { .. } | Attempt::Saves(_)) => Sync::Runs(Progress::default()),
            Some(Attempt::Failed(reason)) => Sync::Failed(failure(*reason)),
            Some(Attempt::Done { data, snapshot }) => Sync::Done(Box::new(Outcome {
                snapshot: snapshot.clone(),
                content: content(data),
                ..Outcome::default()
            })),
        }
    }

    /// Whether a mover writes a volume.
    pub fn is_written(&self, volume: &str) -> bool {
        let writes = |it: &Attempt| matches!(it, Attempt::Writes { into, .. } if into == volume);
        self.movers.values().any(writes)
    }

    /// Whether something is being made of a volume or of a snapshot.
    fn is_read(&self, handle: &str) -> bool {
        let is_of =
            |thing: &Thing| matches!(thing, Thing::Making(it) if it.of.as_deref() == Some(handle));
        self.volumes.values().chain(self.snapshots.values()).any(is_of)
    }

    /// The disk after a action. What is in use is refused, and the same comes again.
    fn done(&self, action: &DiskAction) -> Storage {
        let mut after = self.clone();
        match action {
            DiskAction::MakeVolume { handle, from: None, .. } => {
                begin(&mut after.volumes, handle, "", Some(Data::new()));
            }
            DiskAction::MakeVolume { handle, from: Some((snapshot, digest)), .. } => {
                let is_it = |data: &Data| content(data).digest == *digest;
                let data = self.snapshot(snapshot).filter(is_it);
                begin(&mut after.volumes, handle, snapshot, data);
            }
            DiskAction::TakeSnapshot { handle, volume } => {
                if !self.is_written(volume) {
                    begin(&mut after.snapshots, handle, volume, self.volume(volume));
                }
            }
            DiskAction::Forget(asked) => {
                let (things, handle) = match asked {
                    DiskQuestion::Volume(handle) => (&mut after.volumes, handle),
                    DiskQuestion::Snapshot(handle) => (&mut after.snapshots, handle),
                };
                if matches!(things.get(handle), Some(Thing::Failed(_))) {
                    things.remove(handle);
                }
            }
            DiskAction::DeleteVolume(handle) => {
                if !self.is_read(handle) && !self.is_written(handle) {
                    after.volumes.remove(handle);
                }
            }
            DiskAction::DeleteSnapshot(handle) => {
                if !self.is_read(handle) {
                    after.snapshots.remove(handle);
                }
            }
        }
        after
    }

    /// The movers after a action; `others` are the storages of all clusters.
    fn moved(&self, others: &[&Storage], action: &MoverAction) -> Storage {
        let mut after = self.clone();
        match action {
            MoverAction::Forget(SyncId { id, attempt }) => {
                let key = (id.clone(), *attempt);
                if self.movers.get(&key).is_some_and(|it| !it.runs()) {
                    after.movers.remove(&key);
                }
            }
            MoverAction::Begin { id: SyncId { id, attempt }, job } => {
                let key = (id.clone(), *attempt);
                let is_known = self.movers.contains_key(&key);
                if let Some(begun) = self.begun(others, job).filter(|_| !is_known) {
                    if let Attempt::Writes { into, .. } = &begun {
                        after.tear(into);
                    }
                    after.movers.insert(key, begun);
                }
            }
        }
        after
    }

    /// From the first write of a mover on, a volume has neither what it had nor what it will have.
    fn tear(&mut self, volume: &str) {
        if let Some(Thing::Whole(copied)) = self.volumes.get_mut(volume) {
            copied.data.insert(TORN);
        }
    }

    /// An attempt that begins now; None: what it needs is in use, and the same comes again.
    fn begun(&self, others: &[&Storage], job: &Job) -> Option<Attempt> {
        let missing = Attempt::Failed(Reason::SourceMissing);
        match job {
            Job::Backup { from, .. } => {
                let (data, handle) = match from {
                    Folder::Volume(handle) => (self.volume(handle), handle),
                    Folder::Snapshot(handle) => (self.snapshot(handle), handle),
                };
                let saves = || data.map_or(missing, Attempt::Saves);
                (!self.is_written(handle)).then(saves)
            }
            Job::Restore { into, .. } => {
                let newest = self.repository.last().map(|(_, data)| data.clone());
                self.writes(into, newest.ok_or(Reason::NoEligibleSnapshot))
            }
            Job::Copy { into, cluster, snapshot, .. } => {
                let source = others.iter().find(|other| other.cluster == *cluster);
                let data = source.and_then(|source| source.snapshot(snapshot));
                self.writes(into, data.ok_or(Reason::SourceMissing))
            }
            Job::Tidy { .. } => Some(Attempt::Done { data: Data::new(), snapshot: None }),
        }
    }

    fn writes(&self, into: &str, data: Result<Data, Reason>) -> Option<Attempt> {
        if self.volume(into).is_none() {
            return Some(Attempt::Failed(Reason::SourceMissing));
        }
        if self.is_read(into) || self.is_written(into) {
            return None;
        }
        Some(match data {
            Ok(data) => Attempt::Writes { into: into.to_owned(), data },
            Err(reason) => Attempt::Failed(reason),
        })
    }

    /// Every way in which something that is under way can end now.
    pub fn endings(&self) -> Vec<(Ending, Storage)> {
        let mut endings = Vec::new();
        for (place, things) in [&self.volumes, &self.snapshots].into_iter().enumerate() {
            for (handle, thing) in things {
                let Thing::Making(copied) = thing else { continue };
                let ends = |thing: Thing| {
                    let mut after = self.clone();
                    let things = if place == 0 { &mut after.volumes } else { &mut after.snapshots };
                    things.insert(handle.clone(), thing);
                    after
                };
                endings.push((Ending::Made, ends(Thing::Whole(copied.clone()))));
                endings.push((Ending::Fails, ends(Thing::Failed(Reason::TargetFull))));
            }
        }
        for (key, attempt) in self.movers.iter().filter(|(_, attempt)| attempt.runs()) {
            let ends = |attempt: Option<Attempt>| {
                let mut after = self.clone();
                after.movers.remove(key);
                after.movers.extend(attempt.map(|attempt| (key.clone(), attempt)));
                after
            };
            endings.push((Ending::Moved, self.all_moved(key, attempt)));
            let fails = |reason: Reason| ends(Some(Attempt::Failed(reason)));
            endings.push((Ending::Fails, fails(Reason::RepositoryUnreachable)));
            endings.push((Ending::FailsForGood, fails(Reason::WrongPassword)));
            endings.push((Ending::Dies, ends(None)));
            if let Attempt::Writes { into, .. } = attempt {
                let nothing = Attempt::Writes { into: into.clone(), data: Data::new() };
                endings.push((Ending::BringsNothing, self.all_moved(key, &nothing)));
            }
        }
        endings
    }

    /// A mover is done.
    fn all_moved(&self, key: &(String, u32), attempt: &Attempt) -> Storage {
        let mut after = self.clone();
        let done = match attempt {
            Attempt::Writes { into, data } => {
                let whole = Copied { data: data.clone(), of: None };
                after.volumes.insert(into.clone(), Thing::Whole(whole));
                Attempt::Done { data: data.clone(), snapshot: None }
            }
            Attempt::Saves(data) => {
                let name = format!("{}.{}", key.0, key.1);
                after.repository.retain(|(known, _)| *known != name);
                after.repository.push((name.clone(), data.clone()));
                Attempt::Done { data: data.clone(), snapshot: Some(name) }
            }
            Attempt::Done { .. } | Attempt::Failed(_) => attempt.clone(),
        };
        after.movers.insert(key.clone(), done);
        after
    }
}

impl<M: Stores> Driver<M> for Disk {
    fn ask(machines: &[&M], here: usize, asked: &DiskQuestion) -> Made {
        machines[here].storage().made(asked)
    }

    fn perform(machines: &[&M], here: usize, action: &DiskAction) -> M {
        let machine = machines[here];
        machine.with_storage(machine.storage().done(action))
    }
}

impl<M: Stores> Driver<M> for Mover {
    fn ask(machines: &[&M], here: usize, asked: &SyncId) -> Sync {
        machines[here].storage().sync(asked)
    }

    fn perform(machines: &[&M], here: usize, action: &MoverAction) -> M {
        let others: Vec<&Storage> = machines.iter().map(|machine| machine.storage()).collect();
        let machine = machines[here];
        machine.with_storage(machine.storage().moved(&others, action))
    }
}
