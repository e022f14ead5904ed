//! Deliberate breakages, each of which the simulation must find.

use crate::SimulatedWorld;
use interlock_api::names::{ANNOTATION_EPOCH, ANNOTATION_RELEASED, hold_finalizer};
use interlock_kernel::{
    Controller, Index, Kind, LiveReads, Name, Object, Outside, Place, Read, Step, Subject, View,
    Watch, Watcher,
};
use interlock_placement::kinds::{GRANT, NAMESPACE, SNAPSHOT};
use jiff::Timestamp;
use serde_json::json;
use std::str::FromStr;
use std::sync::Arc;

/// What is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flaw {
    /// Nothing: what is shipped.
    #[default]
    None,
    /// A machine says that a process is gone, and its lock free, as soon as it was asked to stop.
    GoneTooEarly,
    /// A machine says that every lock is free, to whoever asks; what it says of processes is right.
    LocksAreAlwaysFree,
    /// The same, but only to the syncer: the runtime that lets a pod go asks for its lock, too.
    SyncerSeesNoLocks,
    /// A scheduler takes what is being revoked for released.
    SchedulerDoesNotWait,
    /// A syncer takes what it is to close for closed.
    SyncerAcknowledgesFirst,
    /// A machine has the same boot id after the power failed.
    BootIdStays,
    /// A syncer permits what its cache shows as granted.
    SyncerBelievesItsCache,
    /// A syncer stops what runs while its cache shows that it has to leave.
    SyncerStopsWhatItsCacheShows,
    /// A runtime starts what its cache shows as permitted.
    RuntimeBelievesItsCache,
    /// A person says that a machine is off while it is on.
    FalseAttestation,
    /// A mover says that it is done with a half of the data.
    DoneBeforeAllIsCopied,
    /// A mover says that it is done, and has copied nothing.
    CopyIsEmpty,
    /// A syncer takes a last snapshot for held as soon as it is there.
    SnapshotIsNotHeld,
    /// A program of identities has the same name after it died: its marks count on.
    ProcessNameStays,
    /// A client of the cloud forgets what it sent.
    SentIsForgotten,
    /// Names in the cloud have no digest, and what is there under its name is whoever's asks.
    NamesCollide,
    /// The controller of roles takes the Grant that its cache shows for the one that it asked for.
    RoleBelievesItsCache,
    /// A conductor starts the request that waits although another one is in flight.
    UpdatesRunTogether,
    /// A conductor that rolls a version back does not remember that it failed.
    BadIsNotRemembered,
    /// A conductor takes what a report says of the target before for the new one.
    OldReportsCount,
    /// A conductor takes a request that its cache does not show for deleted.
    AbsenceIsACancel,
    /// A conductor that numbers a request leaves the one before it in the queue.
    SupersededWaits,
    /// A conductor that rolls a version back raises the token, and does not change the target.
    RollbackStays,
    /// An applier writes objects before the fence is raised to their token.
    WritesBeforeTheFence,
    /// An applier leaves what the target does not have, and says that the target is verified.
    NothingIsPruned,
    /// An applier takes what a controller said of an older generation for the health of a new one.
    UnseenIsHealthy,
    /// A DPU opens a port at an epoch that is at or under the floor of its record.
    FloorIsNotCompared,
    /// The ports of a DPU come up open for what they were open for last.
    PortsComeUpOpen,
    /// A DPU raises the floor and leaves the port open, and its agent does not read the hardware.
    PortIsNotClosed,
    /// The agent of a DPU reports a floor before the record of the port has it.
    FloorIsOnlyReported,
    /// A machine returns to the pool before its DPUs have reported.
    ReturnedWithoutReports,
    /// The agent of a DPU does not compare an attachment with tenant and claim at the hub.
    TenantIsNotCompared,
    /// A tenant takes the first network, whoever has its Lease.
    NetworkWithoutALease,
    /// A person says that a DPU is off while it is on.
    DpuIsSaidToBeOff,
}

impl Flaw {
    /// All of them.
    pub const ALL: [Flaw; 34] = [
        Flaw::GoneTooEarly,
        Flaw::LocksAreAlwaysFree,
        Flaw::SyncerSeesNoLocks,
        Flaw::SchedulerDoesNotWait,
        Flaw::SyncerAcknowledgesFirst,
        Flaw::BootIdStays,
        Flaw::SyncerBelievesItsCache,
        Flaw::SyncerStopsWhatItsCacheShows,
        Flaw::RuntimeBelievesItsCache,
        Flaw::FalseAttestation,
        Flaw::DoneBeforeAllIsCopied,
        Flaw::CopyIsEmpty,
        Flaw::SnapshotIsNotHeld,
        Flaw::ProcessNameStays,
        Flaw::SentIsForgotten,
        Flaw::NamesCollide,
        Flaw::RoleBelievesItsCache,
        Flaw::UpdatesRunTogether,
        Flaw::BadIsNotRemembered,
        Flaw::OldReportsCount,
        Flaw::AbsenceIsACancel,
        Flaw::SupersededWaits,
        Flaw::RollbackStays,
        Flaw::WritesBeforeTheFence,
        Flaw::NothingIsPruned,
        Flaw::UnseenIsHealthy,
        Flaw::FloorIsNotCompared,
        Flaw::PortsComeUpOpen,
        Flaw::PortIsNotClosed,
        Flaw::FloorIsOnlyReported,
        Flaw::ReturnedWithoutReports,
        Flaw::TenantIsNotCompared,
        Flaw::NetworkWithoutALease,
        Flaw::DpuIsSaidToBeOff,
    ];

    /// The world that it is in; None: it is nothing that is broken.
    pub fn world(self) -> Option<SimulatedWorld> {
        match self {
            Flaw::None => None,
            Flaw::ProcessNameStays
            | Flaw::SentIsForgotten
            | Flaw::NamesCollide
            | Flaw::RoleBelievesItsCache => Some(SimulatedWorld::Identities),
            Flaw::UpdatesRunTogether
            | Flaw::BadIsNotRemembered
            | Flaw::OldReportsCount
            | Flaw::AbsenceIsACancel
            | Flaw::SupersededWaits
            | Flaw::RollbackStays
            | Flaw::WritesBeforeTheFence
            | Flaw::NothingIsPruned
            | Flaw::UnseenIsHealthy => Some(SimulatedWorld::Rollouts),
            Flaw::FloorIsNotCompared
            | Flaw::PortsComeUpOpen
            | Flaw::PortIsNotClosed
            | Flaw::FloorIsOnlyReported
            | Flaw::ReturnedWithoutReports
            | Flaw::TenantIsNotCompared
            | Flaw::NetworkWithoutALease
            | Flaw::DpuIsSaidToBeOff => Some(SimulatedWorld::Nodes),
            Flaw::GoneTooEarly
            | Flaw::LocksAreAlwaysFree
            | Flaw::SyncerSeesNoLocks
            | Flaw::SchedulerDoesNotWait
            | Flaw::SyncerAcknowledgesFirst
            | Flaw::BootIdStays
            | Flaw::SyncerBelievesItsCache
            | Flaw::SyncerStopsWhatItsCacheShows
            | Flaw::RuntimeBelievesItsCache
            | Flaw::FalseAttestation
            | Flaw::DoneBeforeAllIsCopied
            | Flaw::CopyIsEmpty
            | Flaw::SnapshotIsNotHeld => Some(SimulatedWorld::Fleet),
        }
    }
}

impl Flaw {
    /// How a controller is lied to, if the flaw is about it.
    pub(crate) fn lie_to(self, controller: &str) -> Option<Lie> {
        let (about, lie) = match self {
            Flaw::SchedulerDoesNotWait => ("placement/scheduler", Lie::Shown(as_released)),
            Flaw::SyncerBelievesItsCache => ("placement/syncer", Lie::CacheForHub),
            Flaw::SyncerStopsWhatItsCacheShows => ("placement/syncer", Lie::CacheForNotes),
            Flaw::SyncerAcknowledgesFirst => ("placement/syncer", Lie::Shown(as_closed)),
            Flaw::SnapshotIsNotHeld => ("placement/syncer", Lie::Shown(as_held)),
            Flaw::RuntimeBelievesItsCache => ("placement/runtime", Lie::CacheForPermit),
            Flaw::RoleBelievesItsCache => ("identities/role", Lie::CachedGrant),
            // These are about machines, disks, clients and people, or rooms that are bent.
            Flaw::None
            | Flaw::GoneTooEarly
            | Flaw::LocksAreAlwaysFree
            | Flaw::SyncerSeesNoLocks
            | Flaw::BootIdStays
            | Flaw::FalseAttestation
            | Flaw::DoneBeforeAllIsCopied
            | Flaw::CopyIsEmpty
            | Flaw::ProcessNameStays
            | Flaw::SentIsForgotten
            | Flaw::NamesCollide
            | Flaw::UpdatesRunTogether
            | Flaw::BadIsNotRemembered
            | Flaw::OldReportsCount
            | Flaw::AbsenceIsACancel
            | Flaw::SupersededWaits
            | Flaw::RollbackStays
            | Flaw::WritesBeforeTheFence
            | Flaw::NothingIsPruned
            | Flaw::UnseenIsHealthy
            // Rooms of nodes are bent in their own world.
            | Flaw::FloorIsNotCompared
            | Flaw::PortsComeUpOpen
            | Flaw::PortIsNotClosed
            | Flaw::FloorIsOnlyReported
            | Flaw::ReturnedWithoutReports
            | Flaw::TenantIsNotCompared
            | Flaw::NetworkWithoutALease
            | Flaw::DpuIsSaidToBeOff => return None,
        };
        (controller == about).then_some(lie)
    }
}

impl FromStr for Flaw {
    type Err = String;

    fn from_str(name: &str) -> Result<Flaw, String> {
        let mut all = Flaw::ALL.into_iter().chain([Flaw::None]);
        all.find(|flaw| format!("{flaw:?}") == name)
            .ok_or_else(|| format!("no such breakage; there are None and {:?}", Flaw::ALL))
    }
}

/// How a controller is lied to.
#[derive(Clone, Copy)]
pub(crate) enum Lie {
    /// Objects are not what they are.
    Shown(Shown),
    /// What it asks the hub itself is answered by its cache.
    CacheForHub,
    /// What it asks its cluster about its own notes is answered by its cache.
    CacheForNotes,
    /// The Grant that it read live is replaced by the one that its cache shows.
    CachedGrant,
    /// What it asks about the permit, once the lock is its own, is answered by its cache.
    CacheForPermit,
}

impl Lie {
    /// Whether these questions are the ones that are answered by the cache.
    fn is_about<O: Outside>(self, reads: &[Read<O>], known: &LiveReads<O>) -> bool {
        let at_hub = |read: &Read<O>| match read {
            Read::Object(address) => address.place == Place::HUB,
            Read::List { place, .. } | Read::Selected { place, .. } => *place == Place::HUB,
            Read::DryRun(dry_run) => dry_run.address.place == Place::HUB,
            Read::Ask(_) => false,
        };
        let is_known = |read: &Read<O>| match read {
            Read::Ask(question) => known.answers.contains_key(question),
            Read::Object(_) | Read::List { .. } | Read::Selected { .. } | Read::DryRun(_) => true,
        };
        let is_notes = |read: &Read<O>| match read {
            Read::Object(address) => address.place == Place::CLUSTER && address.kind == NAMESPACE,
            Read::List { .. } | Read::Selected { .. } | Read::DryRun(_) | Read::Ask(_) => false,
        };
        match self {
            Lie::Shown(_) | Lie::CachedGrant => false,
            Lie::CacheForHub => reads.iter().any(at_hub),
            Lie::CacheForNotes => {
                let is_object = |read: &Read<O>| matches!(read, Read::Object(_));
                reads.iter().all(is_object)
                    && reads.iter().any(is_notes)
                    && !reads.iter().any(at_hub)
            }
            Lie::CacheForPermit => reads.iter().all(is_known) && reads.iter().any(is_notes),
        }
    }
}

/// What a cache says to these questions.
fn answers<O: Outside>(reads: &[Read<O>], view: &dyn View, known: &LiveReads<O>) -> LiveReads<O> {
    let mut believed = LiveReads {
        objects: known.objects.clone(),
        lists: known.lists.clone(),
        selected: known.selected.clone(),
        dry_runs: known.dry_runs.clone(),
        answers: known.answers.clone(),
    };
    for read in reads {
        match read {
            Read::Object(address) => {
                let seen = view.get(address.place, &address.kind, &address.name);
                believed.objects.insert(address.clone(), seen);
            }
            Read::List { place, kind, namespace } => {
                let seen = view.list(*place, kind, namespace.as_deref());
                believed.lists.insert((*place, kind.clone(), namespace.clone()), seen);
            }
            Read::Selected { place, kind, selector } => {
                let mut seen = view.list(*place, kind, None);
                seen.retain(|object| selector.selects(object));
                believed.selected.insert((*place, kind.clone(), selector.clone()), seen);
            }
            // A cache says nothing to these.
            Read::DryRun(_) | Read::Ask(_) => {}
        }
    }
    believed
}

/// How a deceived controller is shown an object.
type Shown = fn(Place, &Kind, Object, &dyn View) -> Object;

/// A controller that is lied to.
pub(crate) struct Deceived<C>(pub(crate) C, pub(crate) Lie);

/// What is being revoked, as if it were released.
fn as_released(_: Place, kind: &Kind, object: Object, _: &dyn View) -> Object {
    if *kind != GRANT || object.data["status"]["phase"] != "Revoking" {
        return object;
    }
    let mut object = (*object).clone();
    object.data["status"]["phase"] = json!("Released");
    Arc::new(object)
}

/// A namespace on a cluster that has to be closed, as if it were.
fn as_closed(place: Place, kind: &Kind, object: Object, view: &dyn View) -> Object {
    if (place, kind) != (Place::CLUSTER, &NAMESPACE) {
        return object;
    }
    let grant = view.get(Place::HUB, &GRANT, &Name::of(&object));
    let is_revoked = grant.is_some_and(|grant| grant.data["status"]["phase"] == "Revoking");
    let notes = object.metadata.annotations.as_ref();
    let epoch = notes.and_then(|notes| notes.get(ANNOTATION_EPOCH)).cloned();
    let Some(epoch) = epoch.filter(|_| is_revoked) else { return object };
    let mut object = (*object).clone();
    let notes = object.metadata.annotations.get_or_insert_default();
    notes.insert(ANNOTATION_RELEASED.to_owned(), epoch);
    Arc::new(object)
}

/// A snapshot on a cluster, as if it were held for the grant of its namespace.
fn as_held(place: Place, kind: &Kind, object: Object, view: &dyn View) -> Object {
    if (place, kind) != (Place::CLUSTER, &SNAPSHOT) {
        return object;
    }
    let grant = Name::cluster_wide(object.metadata.namespace.as_deref().unwrap_or_default());
    let grant = view.get(Place::HUB, &GRANT, &grant);
    let Some(uid) = grant.and_then(|grant| grant.metadata.uid.clone()) else { return object };
    let mut object = (*object).clone();
    object.metadata.finalizers.get_or_insert_default().push(hold_finalizer(&uid));
    Arc::new(object)
}

impl<C: Controller> Watcher for Deceived<C> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn watches(&self) -> Vec<Watch> {
        self.0.watches()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        self.0.subjects(watch, object, view)
    }
}

impl<C: Controller> Controller for Deceived<C> {
    type Outside = C::Outside;

    fn step(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<C::Outside>,
    ) -> Step<C::Outside> {
        if let Lie::Shown(shown) = self.1 {
            return self.0.step(subject, &Deception { view, shown }, live_reads);
        }
        if let Lie::CachedGrant = self.1 {
            let mut believed = answers(&[], view, live_reads);
            for (address, object) in &mut believed.objects {
                if address.kind == GRANT {
                    *object = view.get(address.place, &address.kind, &address.name);
                }
            }
            return self.0.step(subject, view, &believed);
        }
        let step = self.0.step(subject, view, live_reads);
        match &step {
            Step::LiveRead { reads, .. } if self.1.is_about(reads, live_reads) => {
                self.0.step(subject, view, &answers(reads, view, live_reads))
            }
            _ => step,
        }
    }
}

struct Deception<'a> {
    view: &'a dyn View,
    shown: Shown,
}

impl View for Deception<'_> {
    fn now(&self) -> Timestamp {
        self.view.now()
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.view.get(place, kind, name).map(|object| (self.shown)(place, kind, object, self.view))
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        let objects = self.view.list(place, kind, namespace).into_iter();
        objects.map(|object| (self.shown)(place, kind, object, self.view)).collect()
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        let objects = self.view.find(place, index, value).into_iter();
        objects.map(|object| (self.shown)(place, &index.kind, object, self.view)).collect()
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.view.count(place, index, value)
    }
}
