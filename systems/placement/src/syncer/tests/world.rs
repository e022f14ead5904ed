//! A little world: a hub, clusters, their machines; every write is applied as a server would.

use crate::claims::Claims;
use crate::kinds;
use crate::runtime::Runtime;
use crate::runtime::outside::{
    Answer, Deed as MachineDeed, Ending, Held, Known, LockName, Machine, Question, Run, Started,
};
use crate::scheduler::Scheduler;
use crate::syncer::objects::kinds::{INGRESS, JOB, REPLICA_SET};
use crate::syncer::{Holding, Locks, LocksOf, Syncer};
use interlock_api::placement::Ref;
use interlock_kernel::testing::{assert_allowed, merge};
use interlock_kernel::{
    Address, Controller, Deed, Effect, Event, Index, Kind, Looks, Name, Nothing, Object, Objects,
    Outside, Part, Place, Read, Right, Seen, Step, Subject, View, Write,
};
use jiff::Timestamp;
use kube_core::DynamicObject;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) const BOOT: &str = "boot-1";
const HUB: &str = "hub";

/// A machine with processes: they run until they are told to stop.
#[derive(Default)]
pub(crate) struct Processes {
    pub(crate) known: BTreeMap<String, Known>,
    pub(crate) locks: BTreeSet<String>,
    pub(crate) runs: Vec<Run>,
    taken: BTreeMap<String, LockName>,
}

impl Processes {
    pub(crate) fn lives(&self) -> bool {
        self.known
            .values()
            .any(|known| matches!(known, Known::Lives(_) | Known::Stopping(_) | Known::Killed(_)))
    }
}

pub(crate) struct World {
    pub(crate) now: Timestamp,
    servers: BTreeMap<String, BTreeMap<Kind, Objects>>,
    pub(crate) machines: BTreeMap<String, Processes>,
    clusters: Vec<Ref>,
    count: u64,
    pub(crate) log: Vec<String>,
    pub(crate) events: Vec<Event>,
    /// What is in volumes and images, by cluster and handle; None: nobody makes any.
    pub(crate) disks: Option<Disks>,
}

/// What is in volumes and images, by cluster and handle: the epochs that wrote to it.
pub(crate) type Disks = BTreeMap<(String, String), Vec<i64>>;

/// What one controller may see.
struct Sight<'a> {
    world: &'a World,
    cluster: &'a str,
    watched: Vec<(Place, Kind)>,
}

impl Sight<'_> {
    fn objects(&self, place: Place, kind: &Kind) -> Option<&Objects> {
        let is_watched = self.watched.iter().any(|(p, k)| *p == place && k == kind);
        assert!(is_watched, "{kind} at the {place} is looked at and not watched");
        self.world.servers.get(self.world.server(place, self.cluster))?.get(kind)
    }
}

impl View for Sight<'_> {
    fn now(&self) -> Timestamp {
        self.world.now
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.objects(place, kind)?.get(name)
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.objects(place, kind).map(|objects| objects.list(namespace)).unwrap_or_default()
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        let all = self.list(place, &index.kind, None);
        let is_filed = |object: &Object| (index.values)(object).iter().any(|v| v == value);
        all.into_iter().filter(is_filed).collect()
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.find(place, index, value).len()
    }
}

/// What a controller asks and does outside of the API, in this world.
pub(crate) trait Hands: Outside {
    fn ask(world: &World, cluster: &str, question: Self::Question) -> Self::Answer;
    fn perform(world: &mut World, cluster: &str, deed: Self::Deed);
}

impl Hands for Nothing {
    fn ask(_: &World, _: &str, question: Nothing) -> Nothing {
        match question {}
    }
    fn perform(_: &mut World, _: &str, deed: Nothing) {
        match deed {}
    }
}

impl Hands for Locks {
    fn ask(world: &World, cluster: &str, question: LocksOf) -> Holding {
        let machine = &world.machines[cluster];
        let is_held =
            machine.locks.iter().any(|pod| machine.taken[pod].namespace == question.namespace);
        if is_held || machine.lives() { Holding::Held(vec![7]) } else { Holding::Free }
    }
    fn perform(_: &mut World, _: &str, deed: Nothing) {
        match deed {}
    }
}

impl Hands for Machine {
    fn ask(world: &World, cluster: &str, question: Question) -> Answer {
        let machine = &world.machines[cluster];
        match question {
            Question::Process(pod) => {
                Answer::Process(machine.known.get(&pod).copied().unwrap_or(Known::Nothing))
            }
            Question::Lock(lock) => Answer::Lock(match machine.locks.contains(&lock.pod) {
                true => Held::Mine,
                false if machine.lives() => Held::Taken,
                false => Held::Free,
            }),
            Question::InHand { namespace, name } => {
                let taken = machine.locks.iter().filter_map(|pod| machine.taken.get(pod));
                let of_pod = |lock: &&LockName| lock.namespace == namespace && lock.name == name;
                Answer::InHand(taken.filter(of_pod).cloned().collect())
            }
        }
    }

    fn perform(world: &mut World, cluster: &str, deed: MachineDeed) {
        let now = world.now;
        let machine = world.machines.get_mut(cluster).unwrap();
        match deed {
            MachineDeed::TakeLock(lock) => {
                machine.locks.insert(lock.pod.clone());
                machine.taken.insert(lock.pod.clone(), lock);
            }
            MachineDeed::LetGo(lock) => {
                machine.locks.remove(&lock.pod);
            }
            MachineDeed::Start(run) => {
                assert!(machine.locks.remove(&run.lock.pod), "started without its lock");
                let started = Started { pid: 7, since: now };
                machine.known.insert(run.lock.pod.clone(), Known::Lives(started));
                for mount in &run.mounts {
                    let Some(disks) = &mut world.disks else { continue };
                    let handle = mount.handle.clone().expect("a volume");
                    let volume = disks.get_mut(&(cluster.to_owned(), handle));
                    volume.expect("the volume is there").push(run.epoch);
                }
                machine.runs.push(*run);
                let living = world.machines.values().filter(|machine| machine.lives()).count();
                assert!(living <= 1, "two clusters run one namespace");
            }
            MachineDeed::Terminate(pod) | MachineDeed::Kill(pod) => {
                let run = Started { pid: 7, since: now };
                let ending = Ending::Signal(15);
                let gone = Known::Gone { run, ending, finished: Some(now) };
                machine.known.insert(pod, gone);
            }
        }
    }
}

impl World {
    pub(crate) fn new(clusters: &[&str]) -> World {
        let mut servers = BTreeMap::from([(HUB.to_owned(), BTreeMap::new())]);
        let mut machines = BTreeMap::new();
        for cluster in clusters {
            servers.insert((*cluster).to_owned(), BTreeMap::new());
            machines.insert((*cluster).to_owned(), Processes::default());
        }
        let mut world = World {
            now: Timestamp::from_second(1_000_000).unwrap(),
            servers,
            machines,
            clusters: Vec::new(),
            count: 0,
            log: Vec::new(),
            events: Vec::new(),
            disks: None,
        };
        for cluster in clusters {
            let condition = |kind: &str| {
                json!({"type": kind, "status": "True", "reason": "Yes",
                "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"})
            };
            let object = json!({
                "spec": {"connection": {"logicalCluster": cluster}},
                "status": {
                    "conditions": [condition("Ready"), condition("Reachable")],
                    "storageClasses": [{"name": "local"}],
                },
            });
            let name = Name::cluster_wide(cluster);
            let made = world.put(Place::HUB, &kinds::WORKLOAD_CLUSTER, (name, ""), object);
            world.clusters.push(Ref::new(*cluster, made.metadata.uid.clone().unwrap()));
        }
        world
    }

    pub(crate) fn cluster(&self, name: &str) -> Ref {
        self.clusters.iter().find(|cluster| cluster.name == name).unwrap().clone()
    }

    pub(crate) fn syncer(&self, cluster: &str) -> Syncer {
        let syncer = Syncer::new(self.cluster(cluster), BOOT);
        if self.disks.is_some() { syncer.copying() } else { syncer }
    }

    pub(crate) fn runtime(&self) -> Runtime {
        let runtime = Runtime::new(BOOT);
        if self.disks.is_some() { runtime.with_storage() } else { runtime }
    }

    fn server<'a>(&self, place: Place, cluster: &'a str) -> &'a str {
        if place == Place::HUB { HUB } else { cluster }
    }

    /// Makes an object as a person would; `cluster` is empty at the hub.
    pub(crate) fn put(
        &mut self,
        place: Place,
        kind: &Kind,
        (name, cluster): (Name, &str),
        mut object: Value,
    ) -> Object {
        self.count += 1;
        let metadata = object.as_object_mut().unwrap().entry("metadata").or_insert(json!({}));
        metadata["name"] = json!(&*name.name);
        metadata["resourceVersion"] = json!(self.count.to_string());
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{:08}", self.count));
        }
        if let Some(namespace) = &name.namespace {
            metadata["namespace"] = json!(&**namespace);
        }
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let object = Arc::new(object);
        let server = self.server(place, cluster).to_owned();
        let objects = self.servers.get_mut(&server).unwrap().entry(kind.clone()).or_default();
        objects.put(object.clone());
        object
    }

    pub(crate) fn get(&self, cluster: &str, kind: &Kind, name: &Name) -> Option<Value> {
        let server = if cluster.is_empty() { HUB } else { cluster };
        let found = self.servers[server].get(kind)?.get(name)?;
        Some(serde_json::to_value(&*found).unwrap())
    }

    pub(crate) fn change(&mut self, cluster: &str, (kind, name): (&Kind, &Name), patch: &Value) {
        let mut object = self.get(cluster, kind, name).unwrap();
        merge(&mut object, patch);
        let place = if cluster.is_empty() { Place::HUB } else { Place::CLUSTER };
        self.put(place, kind, (name.clone(), cluster), object);
    }

    /// Deletes as a server does: what has finalizers stays until they are off.
    pub(crate) fn delete(&mut self, cluster: &str, kind: &Kind, name: &Name) {
        let Some(mut object) = self.get(cluster, kind, name) else { return };
        let now = Timestamp::from_second(self.now.as_second()).unwrap().to_string();
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = json!(now);
        }
        let place = if cluster.is_empty() { Place::HUB } else { Place::CLUSTER };
        self.put(place, kind, (name.clone(), cluster), object);
        if *kind == kinds::NAMESPACE {
            for (kind, object) in self.within(cluster, &name.name) {
                self.delete(cluster, &kind, &object);
            }
        }
        self.sweep(cluster, kind, name);
    }

    /// All objects of a kind on a cluster.
    pub(crate) fn all(&self, cluster: &str, kind: &Kind) -> Vec<Object> {
        self.servers[cluster].get(kind).map(|objects| objects.list(None)).unwrap_or_default()
    }

    fn within(&self, cluster: &str, namespace: &str) -> Vec<(Kind, Name)> {
        let server = if cluster.is_empty() { HUB } else { cluster };
        let all = self.servers[server].iter();
        let of = |(kind, objects): (&Kind, &Objects)| {
            let found = objects.list(Some(namespace));
            found.iter().map(|o| (kind.clone(), Name::of(o))).collect::<Vec<_>>()
        };
        all.flat_map(of).collect()
    }

    /// Removes what was deleted and has no finalizer and no contents any more.
    pub(crate) fn sweep(&mut self, cluster: &str, kind: &Kind, name: &Name) {
        let Some(object) = self.get(cluster, kind, name) else { return };
        let metadata = &object["metadata"];
        let is_held = metadata["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        let is_full = *kind == kinds::NAMESPACE && !self.within(cluster, &name.name).is_empty();
        if metadata["deletionTimestamp"].is_null() || is_held || is_full {
            return;
        }
        let server = if cluster.is_empty() { HUB } else { cluster };
        self.servers.get_mut(server).unwrap().get_mut(kind).unwrap().remove(name);
        if let Some(namespace) = &name.namespace {
            self.sweep(cluster, &kinds::NAMESPACE, &Name::cluster_wide(namespace));
        }
    }

    fn apply(&mut self, cluster: &str, write: Write) {
        let Address { place, kind, name } = write.address().clone();
        let at = if place == Place::HUB { "" } else { cluster };
        let there = self.get(at, &kind, &name);
        let seen_there = there.as_ref().map(|o| o["metadata"].clone()).unwrap_or_default();
        match write {
            Write::Create { object, .. } => {
                if there.is_none() {
                    self.put(place, &kind, (name, at), object);
                }
            }
            Write::Patch { seen: Seen { uid, resource_version }, part, change, .. } => {
                assert_eq!(seen_there["uid"], json!(uid), "a patch of another object");
                assert_eq!(seen_there["resourceVersion"], json!(resource_version), "no guard");
                let is_status = change.as_object().unwrap().keys().all(|key| key == "status");
                assert_eq!(is_status, part == Part::Status, "{change}");
                self.change(at, (&kind, &name), &change);
                self.sweep(at, &kind, &name);
            }
            Write::Apply { uid, object, .. } => match there {
                None => {
                    self.put(place, &kind, (name, at), object);
                }
                Some(_) => {
                    assert_eq!(Some(&seen_there["uid"]), uid.map(Value::from).as_ref());
                    self.change(at, (&kind, &name), &object);
                }
            },
            Write::Delete { uid, .. } => {
                assert_eq!(seen_there["uid"], json!(uid), "a deletion of another object");
                self.delete(at, &kind, &name);
            }
        }
    }

    /// One step of a controller, with the looks that it asks for.
    pub(crate) fn step<C>(&self, controller: &C, cluster: &str, subject: &str) -> Step<C::Outside>
    where
        C: Controller,
        C::Outside: Hands,
    {
        let mut looks = Looks::default();
        for _ in 0..5 {
            match self.step_with(controller, (cluster, subject), &looks) {
                Step::Look { reads, .. } => {
                    for read in reads {
                        assert_allowed(controller, Right::to_read(&read));
                        self.look(cluster, read, &mut looks);
                    }
                }
                step => {
                    if let Step::Act(effect) = &step
                        && let Deed::Write(write) = &effect.deed
                    {
                        assert_allowed(controller, Right::to_write(write));
                    }
                    return step;
                }
            }
        }
        panic!("it looks again and again at {subject}");
    }

    /// One step of a controller that has looked at this.
    pub(crate) fn step_with<C: Controller>(
        &self,
        controller: &C,
        (cluster, subject): (&str, &str),
        looks: &Looks<C::Outside>,
    ) -> Step<C::Outside> {
        let watched = controller.watches().into_iter().map(|w| (w.place, w.kind)).collect();
        let sight = Sight { world: self, cluster, watched };
        controller.step(&Subject::from(subject), &sight, looks)
    }

    pub(crate) fn look<O: Hands>(&self, cluster: &str, read: Read<O>, looks: &mut Looks<O>) {
        match read {
            Read::Object(address) => {
                let server = &self.servers[self.server(address.place, cluster)];
                let found = server.get(&address.kind).and_then(|all| all.get(&address.name));
                looks.objects.insert(address, found);
            }
            Read::List { place, kind, namespace } => {
                let all = self.servers[self.server(place, cluster)].get(&kind);
                let found = all.map(|all| all.list(namespace.as_deref())).unwrap_or_default();
                looks.lists.insert((place, kind, namespace), found);
            }
            Read::Ask(question) => {
                let answer = O::ask(self, cluster, question.clone());
                looks.answers.insert(question, answer);
            }
        }
    }

    /// What a controller would be woken for by everything there is.
    pub(crate) fn subjects<C: Controller>(&self, controller: &C, cluster: &str) -> Vec<Subject> {
        let watches = controller.watches();
        let watched = watches.iter().map(|w| (w.place, w.kind.clone())).collect();
        let sight = Sight { world: self, cluster, watched };
        let mut subjects = BTreeSet::new();
        for watch in &watches {
            for object in sight.list(watch.place, &watch.kind, None) {
                subjects.extend(controller.subjects(watch, &object, &sight));
            }
        }
        subjects.into_iter().collect()
    }

    /// Takes a step about everything that a controller is woken for; whether it did anything.
    pub(crate) fn turn<C>(&mut self, controller: &C, cluster: &str) -> bool
    where
        C: Controller,
        C::Outside: Hands,
    {
        let mut has_acted = false;
        for subject in self.subjects(controller, cluster) {
            if let Step::Act(effect) = self.step(controller, cluster, &subject) {
                has_acted = true;
                self.perform(cluster, *effect);
            }
        }
        has_acted
    }

    pub(crate) fn perform<O: Hands>(&mut self, cluster: &str, effect: Effect<O>) {
        let Effect { deed, because, event } = effect;
        assert!(!because.is_empty());
        self.events.extend(event);
        match deed {
            Deed::Write(write) => {
                self.log.push(format!("{cluster}: {write:?}"));
                self.apply(cluster, write);
            }
            Deed::Outside(deed) => {
                self.log.push(format!("{cluster}: {deed:?}"));
                O::perform(self, cluster, deed);
            }
        }
    }

    /// Everybody takes turns until nobody has anything to do; how many effects it took.
    pub(crate) fn settle(&mut self) -> usize {
        let before = self.log.len();
        let clusters = self.clusters.clone();
        for _ in 0..300 {
            let mut has_acted = self.turn(&Scheduler::default(), "");
            has_acted |= self.turn(&Claims, "");
            for cluster in &clusters {
                let name = &cluster.name;
                has_acted |= self.turn(&self.syncer(name), name);
                has_acted |= self.turn(&self.runtime(), name);
                has_acted |= super::volumes::turn(self, name);
            }
            if !has_acted {
                return self.log.len() - before;
            }
        }
        let tail = self.log.len().saturating_sub(6);
        panic!("it does not come to rest: {:#?}", &self.log[tail..]);
    }
}

/// All kinds that a syncer carries or watches: for tests that go through all of them.
pub(crate) fn carried() -> Vec<Kind> {
    use kinds::{
        CLAIM, CONFIG_MAP, DEPLOYMENT, POD, SECRET, SERVICE, SERVICE_ACCOUNT, STATEFUL_SET,
    };
    vec![
        SECRET,
        CONFIG_MAP,
        SERVICE_ACCOUNT,
        SERVICE,
        INGRESS,
        CLAIM,
        DEPLOYMENT,
        STATEFUL_SET,
        JOB,
        REPLICA_SET,
        POD,
    ]
}
