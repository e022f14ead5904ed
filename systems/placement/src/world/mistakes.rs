//! The mistakes that a controller could make, each in the least world in which it shows.
//!
//! Every one is an alternative to a function that ships: to `decide`, `observe` or `act` of a room,
//! or to what a controller reads, writes and is woken by.

use super::machine::Machine;
use super::{Namespaces, boot_id};
use crate::fencing::{self, Fencing};
use crate::kinds::{FORCE_RELEASE, GRANT, NAMESPACE, POD};
use crate::runtime::decide::{Decision, Facts, Lock, Permit, Process};
use crate::runtime::{Runtime, outside};
use crate::scheduler::Scheduler;
use crate::syncer::tenancy::Epoch;
use crate::syncer::{Holding, Locks, Syncer, notes};
use interlock_api::names::{
    ANNOTATION_EPOCH, ANNOTATION_RELEASED, ANNOTATION_RUNNING, Permit as Written,
};
use interlock_checker::Size;
use interlock_kernel::{
    Altered, AlteredStep, Bent, Controller, Deed, Index, Kind, Looks, Name, Nothing, Object,
    Observed, Outside, Part, Place, Read, Room, Step, Subject, View, Watch, Watcher, Write,
};
use interlock_world::{Actor, Mistake, shipped};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The scheduler takes a revoked grant for a released one.
    GrantWithoutRelease,
    /// A grant keeps the epoch of the one before.
    EpochNotGrown,
    /// A syncer reads its cache where it must read the server.
    SyncerReadsItsCache,
    /// A syncer does not ask for forced releases.
    ForceIgnored,
    /// A syncer takes every lock for free.
    LocksIgnored,
    /// A syncer writes to the grant whatever became of it since.
    HubUnguarded,
    /// A syncer takes an epoch that has to leave for one that is closed.
    LeavingIsClosed,
    /// A syncer permits the next epoch instead of the present one.
    PermitsTheWrongEpoch,
    /// A syncer leaves the new snapshots out of its acknowledgement.
    PinsNotWritten,
    /// A syncer sees no pods, and so stops none.
    NothingIsStopped,
    /// A change of a grant wakes no syncer.
    GrantWakesNobody,
    /// The runtime takes the permit from its cache.
    RuntimeReadsItsCache,
    /// The runtime lets a pod go whose process lives.
    PodLetGoEarly,
    /// A permit of an earlier boot of the machine still counts.
    BootIgnored,
    /// A forced release counts for any epoch.
    ForceForAnyEpoch,
    /// A forced release that was done is not marked so.
    NeverAnswers,
}

const NOT_ONE: &[&str] =
    &["OnlyTheOwnerRuns", "ReleasedIsStill", "ClosedIsStill", "UsableByAtMostOne"];
const LOSES: &[&str] = &["NoLoss", "PinsHaveEveryWrite"];
const NEVER: &[&str] = &["DesiredIsMet"];

/// The name, the sentence, what must break, the mistakes, and the least size in which it shows.
struct Row(&'static str, &'static str, &'static [&'static str], &'static [Flaw], &'static str);

const CALM: &str = "moves=1,flights=0,stale=0,crash=0";
const FORCED: &str = "moves=1,flights=0,stale=0,crash=0,force=1";
const FORCED_STALE: &str = "moves=0,flights=0,stale=1,crash=0,force=1";
const TWO_SYNCERS: &str = "moves=1,flights=1,stale=0,crash=0,syncers=2";
const LIVE: &str = "moves=1,flights=0,stale=0,crash=0,live=1";

const ROWS: &[Row] = &[
    Row(
        "grant-without-release",
        "the namespace is granted to the next cluster while another still owns it",
        NOT_ONE,
        &[Flaw::GrantWithoutRelease],
        CALM,
    ),
    Row(
        "epoch-not-grown",
        "a new owner is granted the epoch of the one before",
        &["EpochOnlyGrows"],
        &[Flaw::EpochNotGrown],
        CALM,
    ),
    Row(
        "permit-from-cache",
        "a permit trusts the syncer's cache, which shows neither the forced release nor that the \
         grant was taken back",
        NOT_ONE,
        &[Flaw::SyncerReadsItsCache],
        "moves=0,flights=0,stale=2,crash=0,relist=1,force=1",
    ),
    Row(
        "permit-ignores-force",
        "a cluster that came back is permitted between the forced release and the fence",
        NOT_ONE,
        &[Flaw::ForceIgnored],
        FORCED,
    ),
    Row(
        "locks-ignored",
        "a pod is let go while its process lives, and an epoch is closed when there is no pod, \
         whoever has the lock: each alone would cover for the other",
        NOT_ONE,
        &[Flaw::LocksIgnored, Flaw::PodLetGoEarly],
        CALM,
    ),
    Row(
        "hub-unguarded",
        "a syncer ends the grant of another by an acknowledgement that is late",
        NOT_ONE,
        &[Flaw::HubUnguarded],
        TWO_SYNCERS,
    ),
    Row(
        "leaving-is-closed",
        "an epoch that has to leave is taken for one that is closed",
        NOT_ONE,
        &[Flaw::LeavingIsClosed],
        CALM,
    ),
    Row(
        "wrong-epoch-permitted",
        "a permit names another epoch than the one that is granted, and nothing ever runs",
        NEVER,
        &[Flaw::PermitsTheWrongEpoch],
        LIVE,
    ),
    Row(
        "pins-not-written",
        "the acknowledgement does not name the new snapshots, so the old ones are filled in",
        LOSES,
        &[Flaw::PinsNotWritten],
        "moves=1,flights=0,stale=0,crash=0,claims=1",
    ),
    Row(
        "runtime-reads-its-cache",
        "a pod that was applied late starts by a permit that the runtime's cache shows and that was \
         withdrawn",
        NOT_ONE,
        &[Flaw::RuntimeReadsItsCache],
        "moves=1,flights=1,stale=1,crash=0,syncers=2",
    ),
    Row(
        "boot-ignored",
        "when power returns, a permit from before still counts",
        NOT_ONE,
        &[Flaw::BootIgnored],
        FORCED_STALE,
    ),
    Row(
        "force-for-any-epoch",
        "a forced release of an earlier epoch ends a later one",
        &["ForceIsExact"],
        &[Flaw::ForceForAnyEpoch],
        "moves=2,flights=0,stale=0,crash=0,force=1",
    ),
    Row(
        "grant-wakes-nobody",
        "a syncer sleeps though its grant has changed",
        &["WorkWakes"],
        &[Flaw::GrantWakesNobody],
        "moves=1,flights=0,stale=0,crash=0,wakes=1",
    ),
    Row(
        "nothing-is-stopped",
        "a syncer that leaves tells nothing to stop, and waits for it",
        NEVER,
        &[Flaw::NothingIsStopped],
        LIVE,
    ),
    Row(
        "never-answers",
        "a forced release that was done stays pending",
        &["ForceIsAnswered"],
        &[Flaw::NeverAnswers],
        "moves=1,flights=0,stale=0,crash=0,force=1,live=1",
    ),
];

/// Every mistake, as a system that makes it.
pub(super) fn mistakes() -> Vec<Mistake<Namespaces>> {
    let made = |Row(name, sentence, breaks, flaws, size): &Row| {
        let size = Size::parse(size).expect("the sizes here can be read");
        let system = Namespaces::from_size(&size).expect("the sizes here are in range");
        Mistake { name, sentence, breaks, system: Namespaces { flaws, ..system } }
    };
    ROWS.iter().map(made).collect()
}

/// The scheduler, with the mistakes that are asked for.
pub(super) fn scheduler(flaws: &[Flaw]) -> Box<dyn Actor<Machine>> {
    let has = |flaw| flaws.contains(&flaw);
    if has(Flaw::GrantWithoutRelease) {
        return altered(Scheduler::default, |scheduler, subject, view, looks| {
            let bent = BentView { view, bend: released };
            scheduler.step(subject, &bent, looks)
        });
    }
    if has(Flaw::EpochNotGrown) {
        return altered(Scheduler::default, |scheduler, subject, view, looks| {
            rewritten(scheduler.step(subject, view, looks), |write| {
                let Write::Patch { change, .. } = write else { return };
                let status = &mut change["status"];
                if status["phase"] == "Granted" && status["epoch"].as_i64().is_some_and(|e| e > 1) {
                    status["epoch"] = json!(status["epoch"].as_i64().unwrap_or(1) - 1);
                }
            })
        });
    }
    shipped(|_| Scheduler::default())
}

/// The controller that answers forced releases.
pub(super) fn fencing(flaws: &[Flaw]) -> Box<dyn Actor<Machine>> {
    let has = |flaw| flaws.contains(&flaw);
    if has(Flaw::ForceForAnyEpoch) {
        return shipped(|_| {
            Bent::new(Fencing).deciding(|facts| {
                let epoch = facts.grant.map_or(facts.epoch, |grant| grant.epoch);
                Fencing::decide(&fencing::decide::Facts { epoch, ..facts.clone() })
            })
        });
    }
    if has(Flaw::NeverAnswers) {
        return shipped(|_| {
            Bent::new(Fencing).acting(|room, scene, decision| match decision {
                fencing::decide::Decision::MarkApplied => Step::rest("it is done"),
                decision => room.act(scene, decision),
            })
        });
    }
    shipped(|_| Fencing)
}

/// The runtime of a cluster.
pub(super) fn runtime(
    flaws: &[Flaw],
    cluster: usize,
    has_storage: bool,
) -> Box<dyn Actor<Machine>> {
    let has = |flaw| flaws.contains(&flaw);
    let is_boot_ignored = has(Flaw::BootIgnored);
    let make = move |boot: u8| {
        let boot = if is_boot_ignored { 0 } else { boot };
        let runtime = Runtime::new(boot_id(cluster, boot));
        if has_storage { runtime.with_storage() } else { runtime }
    };
    if has(Flaw::RuntimeReadsItsCache) {
        return shipped(move |boot| Bent::new(make(boot)).observing(permit_in_the_cache));
    }
    if has(Flaw::PodLetGoEarly) {
        return shipped(move |boot| {
            Bent::new(make(boot)).deciding(|facts| match facts {
                Facts::Asked(asked)
                    if asked.process == Process::Stopping && asked.has_finalizer =>
                {
                    Decision::TakeFinalizerOff
                }
                facts => Runtime::decide(facts),
            })
        });
    }
    shipped(make)
}

/// The syncer of a cluster.
pub(super) fn syncer(
    flaws: &[Flaw],
    make: impl Fn(u8) -> Syncer + Clone + 'static,
) -> Box<dyn Actor<Machine>> {
    let has = |flaw| flaws.contains(&flaw);
    let is_boot_ignored = has(Flaw::BootIgnored);
    let make = move |boot: u8| make(if is_boot_ignored { 0 } else { boot });
    if has(Flaw::GrantWakesNobody) {
        return shipped(move |boot| {
            Altered::new(make(boot)).waking(|syncer, watch: &Watch, object, view| {
                let is_grant = watch.kind == GRANT;
                if is_grant { Vec::new() } else { syncer.subjects(watch, object, view) }
            })
        });
    }
    let step: Option<AlteredStep<Syncer>> =
        SYNCER_STEPS.iter().find(|(flaw, _)| has(*flaw)).map(|(_, step)| *step);
    match step {
        Some(step) => shipped(move |boot| Altered::new(make(boot)).stepping(step)),
        None => shipped(make),
    }
}

/// What a syncer does that makes a mistake where it reads or writes.
const SYNCER_STEPS: &[(Flaw, AlteredStep<Syncer>)] = &[
    (Flaw::SyncerReadsItsCache, |syncer, subject, view, looks| {
        let step = syncer.step(subject, view, looks);
        let Step::Look { reads, because } = step else { return step };
        if reads.iter().any(|read| matches!(read, Read::Ask(_))) {
            return Step::Look { reads, because };
        }
        let mut seen = copied(looks);
        for read in reads {
            match read {
                Read::Object(address) => {
                    let found = view.get(address.place, &address.kind, &address.name);
                    seen.objects.insert(address, found);
                }
                Read::List { place, kind, namespace } => {
                    let found = view.list(place, &kind, namespace.as_deref());
                    seen.lists.insert((place, kind, namespace), found);
                }
                Read::Ask(_) => {}
            }
        }
        syncer.step(subject, view, &seen)
    }),
    (Flaw::ForceIgnored, |syncer, subject, view, looks| {
        let mut seen = copied(looks);
        for ((_, kind, _), found) in &mut seen.lists {
            if *kind == FORCE_RELEASE {
                found.clear();
            }
        }
        syncer.step(subject, view, &seen)
    }),
    (Flaw::LocksIgnored, |syncer, subject, view, looks| {
        let step = syncer.step(subject, view, looks);
        let Step::Look { mut reads, because } = step else { return step };
        let asked = reads.iter().find_map(|read| match read {
            Read::Ask(question) => Some(question.clone()),
            Read::Object(_) | Read::List { .. } => None,
        });
        let Some(asked) = asked else { return Step::Look { reads, because } };
        reads.retain(|read| !matches!(read, Read::Ask(_)));
        let is_read = |read: &Read<Locks>| match read {
            Read::List { place, kind, namespace } => {
                looks.lists.contains_key(&(*place, kind.clone(), namespace.clone()))
            }
            Read::Object(_) | Read::Ask(_) => true,
        };
        if !reads.iter().all(is_read) {
            return Step::Look { reads, because };
        }
        let mut seen = copied(looks);
        seen.answers.insert(asked, Holding::Free);
        syncer.step(subject, view, &seen)
    }),
    (Flaw::HubUnguarded, |syncer, subject, view, looks| {
        unguarded(syncer.step(subject, view, looks), |kind, _| *kind == GRANT)
    }),
    (Flaw::LeavingIsClosed, |syncer, subject, view, looks| {
        let grant = view.get(Place::HUB, &GRANT, &Name::cluster_wide(subject));
        let is_leaving = grant.is_some_and(|grant| grant.data["status"]["phase"] == "Revoking");
        let bend = if is_leaving { closed } else { Object::clone };
        syncer.step(subject, &BentView { view, bend }, looks)
    }),
    (Flaw::PermitsTheWrongEpoch, |syncer, subject, view, looks| {
        rewritten(syncer.step(subject, view, looks), |write| {
            let Write::Patch { change, .. } = write else { return };
            let running = &mut change["metadata"]["annotations"][ANNOTATION_RUNNING];
            if let Some(permit) = running.as_str().and_then(Written::read) {
                let epoch: Epoch = permit.epoch + 1;
                *running = json!(Written { epoch, ..permit }.to_string());
            }
        })
    }),
    (Flaw::PinsNotWritten, |syncer, subject, view, looks| {
        rewritten(syncer.step(subject, view, looks), |write| {
            let Write::Patch { change, .. } = write else { return };
            if let Some(status) = change["status"].as_object_mut() {
                status.remove("pins");
            }
        })
    }),
    (Flaw::NothingIsStopped, |syncer, subject, view, looks| {
        syncer.step(subject, &WithoutPods(view), looks)
    }),
];

fn altered<C: Controller<Outside = Nothing>>(
    make: fn() -> C,
    step: AlteredStep<C>,
) -> Box<dyn Actor<Machine>> {
    shipped(move |_| Altered::new(make()).stepping(step))
}

/// The permit as the cache shows it, where the runtime has yet to read it from the server.
fn permit_in_the_cache(
    runtime: &Runtime,
    subject: &Subject,
    view: &dyn View,
    looks: &Looks<outside::Machine>,
) -> Observed<Facts, <Runtime as Room>::Scene> {
    let (mut asked, scene) = match runtime.observe(subject, view, looks) {
        Observed::Seen { facts: Facts::Asked(asked), scene } => (asked, scene),
        observed => return observed,
    };
    let namespace = subject.split_once('/').map_or("", |(namespace, _)| namespace);
    let here = view.get(Place::CLUSTER, &NAMESPACE, &Name::cluster_wide(namespace));
    let noted = here.and_then(|here| notes::parse(&here, runtime.boot_id()));
    if let Some(noted) = noted.filter(|_| asked.permit.is_none() && asked.lock == Lock::Mine) {
        let (running, released) = (noted.running, noted.released);
        asked.permit = Some(Permit { is_pod_there: true, running, released });
    }
    Observed::Seen { facts: Facts::Asked(asked), scene }
}

fn copied<O: Outside>(looks: &Looks<O>) -> Looks<O> {
    Looks {
        objects: looks.objects.clone(),
        lists: looks.lists.clone(),
        answers: looks.answers.clone(),
    }
}

/// The same step with another write.
fn rewritten<O: Outside>(mut step: Step<O>, rewrite: fn(&mut Write)) -> Step<O> {
    if let Step::Act(effect) = &mut step
        && let Deed::Write(write) = &mut effect.deed
    {
        rewrite(write);
    }
    step
}

/// The same step without the version that its patch rests on.
fn unguarded<O: Outside>(mut step: Step<O>, is_bent: fn(&Kind, &Value) -> bool) -> Step<O> {
    let Step::Act(effect) = &mut step else { return step };
    let Deed::Write(Write::Patch { address, part, change, .. }) = &effect.deed else { return step };
    if is_bent(&address.kind, change) {
        let (address, object) = (address.clone(), change.clone());
        let part: Part = *part;
        effect.deed = Deed::Write(Write::Apply { address, part, uid: None, object });
    }
    step
}

/// A grant that is being revoked, as if its owner had released it.
fn released(object: &Object) -> Object {
    if object.data["status"]["phase"] != "Revoking" {
        return object.clone();
    }
    let mut bent = kube_core::DynamicObject::clone(object);
    bent.data["status"]["phase"] = json!("Released");
    Arc::new(bent)
}

/// A namespace on a cluster, as if its last epoch were closed.
fn closed(object: &Object) -> Object {
    let mut bent = kube_core::DynamicObject::clone(object);
    if let Some(notes) = bent.metadata.annotations.as_mut()
        && let Some(epoch) = notes.get(ANNOTATION_EPOCH).cloned()
    {
        notes.insert(ANNOTATION_RELEASED.to_owned(), epoch);
    }
    Arc::new(bent)
}

/// A view that shows objects differently.
struct BentView<'a> {
    view: &'a dyn View,
    bend: fn(&Object) -> Object,
}

impl View for BentView<'_> {
    fn now(&self) -> Timestamp {
        self.view.now()
    }
    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.view.get(place, kind, name).as_ref().map(self.bend)
    }
    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.view.list(place, kind, namespace).iter().map(self.bend).collect()
    }
    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.view.find(place, index, value).iter().map(self.bend).collect()
    }
    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.view.count(place, index, value)
    }
}

/// A view without pods.
struct WithoutPods<'a>(&'a dyn View);

impl View for WithoutPods<'_> {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.0.get(place, kind, name)
    }
    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        let is_hidden = place == Place::CLUSTER && *kind == POD;
        if is_hidden { Vec::new() } else { self.0.list(place, kind, namespace) }
    }
    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.0.find(place, index, value)
    }
    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.0.count(place, index, value)
    }
}
