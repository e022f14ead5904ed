//! A little world: a hub, clusters, their machines; every write is applied as a server would.

use crate::claims::Claims;
use crate::heartbeat::{Discovery, WhoIssues};
use crate::kinds;
use crate::runtime::outside::{
    Action as MachineAction, Answer, Ending, FailedRequest, Held, HeldToken, Holder, Known,
    LockName, Machine, Question, Run, Started, TokenFiles, Verdicts, init_run,
};
use crate::runtime::{Runtime, Scope};
use crate::scheduler::Scheduler;
use crate::syncer::objects::kinds::{INGRESS, JOB, REPLICA_SET};
use crate::syncer::{Holding, Locks, LocksOf, Syncer};
use interlock_api::placement::Ref;
use interlock_kernel::testing::{LiveView, Server};
use interlock_kernel::{
    Action, Controller, Effect, Event, Kind, LiveReads, Name, Nothing, Object, Outside, Place,
    Read, Step, Write,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const BOOT: &str = "boot-1";
const HUB: &str = "hub";

/// A machine with processes: they run until they are asked to stop.
#[derive(Default)]
pub(crate) struct Processes {
    pub(crate) known: BTreeMap<String, Known>,
    pub(crate) locks: BTreeSet<String>,
    pub(crate) runs: Vec<Run>,
    /// The files with tokens, by pod.
    pub(crate) tokens: BTreeMap<String, TokenFiles>,
    /// The process that has the lock of every pod that has none itself.
    pub(crate) holder: Option<Holder>,
    /// What all probes find.
    pub(crate) verdicts: Verdicts,
    /// Why no token is issued; None: all are.
    pub(crate) no_tokens: Option<String>,
    taken: BTreeMap<String, LockName>,
}

impl Processes {
    pub(crate) fn lives(&self) -> bool {
        self.known.values().any(|known| !matches!(known, Known::Nothing | Known::Gone { .. }))
    }
}

pub(crate) struct TestFleet {
    pub(crate) now: Timestamp,
    servers: BTreeMap<String, Server>,
    pub(crate) machines: BTreeMap<String, Processes>,
    clusters: Vec<Ref>,
    pub(crate) log: Vec<String>,
    pub(crate) events: Vec<Event>,
    /// What is in volumes and snapshots, by cluster and handle; None: nobody makes any.
    pub(crate) disks: Option<Disks>,
    /// Who issues the tokens of every cluster; None: no cluster says so.
    pub(crate) issuer: Option<String>,
}

/// What is in volumes and snapshots, by cluster and handle: the epochs that wrote to it.
pub(crate) type Disks = BTreeMap<(String, String), Vec<i64>>;

/// What a controller asks and does outside of the API, in this world.
pub(crate) trait Driver: Outside {
    fn ask(world: &TestFleet, cluster: &str, question: Self::Question) -> Self::Answer;
    fn perform(world: &mut TestFleet, cluster: &str, action: Self::Action);
}

impl Driver for Nothing {
    fn ask(_: &TestFleet, _: &str, question: Nothing) -> Nothing {
        match question {}
    }
    fn perform(_: &mut TestFleet, _: &str, action: Nothing) {
        match action {}
    }
}

impl Driver for Locks {
    fn ask(world: &TestFleet, cluster: &str, question: LocksOf) -> Holding {
        let machine = &world.machines[cluster];
        let is_held =
            machine.locks.iter().any(|pod| machine.taken[pod].namespace == question.namespace);
        if is_held || machine.lives() { Holding::Held(vec![7]) } else { Holding::Free }
    }
    fn perform(_: &mut TestFleet, _: &str, action: Nothing) {
        match action {}
    }
}

impl Driver for Discovery {
    fn ask(world: &TestFleet, _: &str, _: WhoIssues) -> Option<String> {
        world.issuer.clone()
    }
    fn perform(_: &mut TestFleet, _: &str, action: Nothing) {
        match action {}
    }
}

impl Driver for Machine {
    fn ask(world: &TestFleet, cluster: &str, question: Question) -> Answer {
        let machine = &world.machines[cluster];
        match question {
            Question::Process(pod) => {
                Answer::Process(machine.known.get(&pod).copied().unwrap_or(Known::Nothing))
            }
            Question::Inits { pod, containers } => {
                let known = |container: &String| {
                    machine.known.get(&init_run(&pod, container)).copied().unwrap_or(Known::Nothing)
                };
                Answer::Inits(containers.iter().map(known).collect())
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
            Question::Holder { .. } => Answer::Holder(machine.holder.clone()),
            Question::Health(_) => Answer::Health(machine.verdicts),
            Question::Tokens(pod) => {
                Answer::Tokens(machine.tokens.get(&pod).cloned().unwrap_or_default())
            }
        }
    }

    fn perform(world: &mut TestFleet, cluster: &str, action: MachineAction) {
        let now = world.now;
        let machine = world.machines.get_mut(cluster).unwrap();
        match action {
            MachineAction::TakeLock(lock) => {
                machine.locks.insert(lock.pod.clone());
                machine.taken.insert(lock.pod.clone(), lock);
            }
            MachineAction::LetGo(lock) => {
                machine.locks.remove(&lock.pod);
            }
            MachineAction::Start(run) => {
                assert!(machine.locks.remove(&run.lock.pod), "started without its lock");
                let started = Started { pid: 7, since: now };
                machine.known.insert(run.id.clone(), Known::Lives(started));
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
            MachineAction::WriteToken(request) => {
                let files = machine.tokens.entry(request.pod_uid).or_default();
                let failed = machine.no_tokens.clone();
                files.failed = failed.map(|because| FailedRequest { at: now, because });
                if files.failed.is_none() {
                    let life = std::time::Duration::from_secs(request.file.seconds);
                    files.is_there = true;
                    files.held.retain(|held| held.asked != request.file);
                    files.held.push(HeldToken { asked: request.file, issued: now, life });
                }
            }
            MachineAction::RemoveTokens(pod) => {
                machine.tokens.remove(&pod);
            }
            MachineAction::Terminate(pod) | MachineAction::Kill(pod) => {
                let run = match machine.known.get(&pod) {
                    Some(Known::Lives(run) | Known::Stopping { run, .. } | Known::Killed(run)) => {
                        *run
                    }
                    Some(Known::Nothing | Known::Gone { .. }) | None => {
                        Started { pid: 7, since: now }
                    }
                };
                let ending = Ending::Signal(15);
                let gone = Known::Gone { run, ending, finished: Some(now) };
                machine.known.insert(pod, gone);
            }
        }
    }
}

impl TestFleet {
    pub(crate) fn new(clusters: &[&str]) -> TestFleet {
        let mut servers = BTreeMap::from([(HUB.to_owned(), Server::named(HUB))]);
        let mut machines = BTreeMap::new();
        for cluster in clusters {
            servers.insert((*cluster).to_owned(), Server::named(cluster));
            machines.insert((*cluster).to_owned(), Processes::default());
        }
        let mut world = TestFleet {
            now: Timestamp::from_second(1_000_000).unwrap(),
            servers,
            machines,
            clusters: Vec::new(),
            log: Vec::new(),
            events: Vec::new(),
            disks: None,
            issuer: None,
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
            let made = world.put(&kinds::WORKLOAD_CLUSTER, name, "", object);
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
        let runtime = Runtime::new(BOOT).serving(Scope::All);
        if self.disks.is_some() { runtime.with_storage() } else { runtime }
    }

    /// The server of a cluster; the hub has no name.
    fn server(&self, cluster: &str) -> &Server {
        &self.servers[if cluster.is_empty() { HUB } else { cluster }]
    }

    fn server_mut(&mut self, cluster: &str) -> &mut Server {
        self.servers.get_mut(if cluster.is_empty() { HUB } else { cluster }).unwrap()
    }

    /// What the controllers of a cluster see.
    pub(crate) fn view<'a>(&'a self, cluster: &str) -> LiveView<'a> {
        let servers = [(Place::HUB, self.server("")), (Place::CLUSTER, self.server(cluster))];
        LiveView { now: self.now, servers: BTreeMap::from(servers) }
    }

    /// Makes an object as a person would; `cluster` is empty at the hub.
    pub(crate) fn put(&mut self, kind: &Kind, name: Name, cluster: &str, object: Value) -> Object {
        self.server_mut(cluster).make(kind, &name, object)
    }

    pub(crate) fn get(&self, cluster: &str, kind: &Kind, name: &Name) -> Option<Value> {
        Some(self.server(cluster).json(kind, name)).filter(|found| !found.is_null())
    }

    pub(crate) fn change(&mut self, cluster: &str, kind: &Kind, name: &Name, patch: &Value) {
        self.server_mut(cluster).change(kind, name, patch);
    }

    /// Deletes as a server does: what has finalizers stays until they are off.
    pub(crate) fn delete(&mut self, cluster: &str, kind: &Kind, name: &Name) {
        let now = self.now;
        self.server_mut(cluster).delete(kind, name, now);
    }

    /// All objects of a kind on a cluster.
    pub(crate) fn all(&self, cluster: &str, kind: &Kind) -> Vec<Object> {
        self.server(cluster).list(kind, None)
    }

    /// Removes what was deleted and has no finalizer and no contents any more.
    pub(crate) fn sweep(&mut self, cluster: &str, kind: &Kind, name: &Name) {
        self.server_mut(cluster).sweep(kind, name);
    }

    fn apply(&mut self, cluster: &str, write: &Write) {
        let (now, place) = (self.now, write.address().place);
        let server = self.server_mut(if place == Place::HUB { "" } else { cluster });
        server.apply(write, now).unwrap_or_else(|why| panic!("{why}: {write:?}"));
    }

    /// One step of a controller, with the looks that it asks for.
    pub(crate) fn step<C>(&self, controller: &C, cluster: &str, subject: &str) -> Step<C::Outside>
    where
        C: Controller,
        C::Outside: Driver,
    {
        let ask = |question: &_| <C::Outside as Driver>::ask(self, cluster, Clone::clone(question));
        self.view(cluster).step(controller, subject, ask)
    }

    /// One step of a controller that has read this.
    pub(crate) fn step_with<C: Controller>(
        &self,
        controller: &C,
        cluster: &str,
        subject: &str,
        live_reads: &LiveReads<C::Outside>,
    ) -> Step<C::Outside> {
        self.view(cluster).step_with(controller, subject, live_reads)
    }

    pub(crate) fn live_read<O: Driver>(
        &self,
        cluster: &str,
        read: Read<O>,
        live_reads: &mut LiveReads<O>,
    ) {
        let ask = |question: &O::Question| O::ask(self, cluster, question.clone());
        self.view(cluster).read_live(read, ask, live_reads);
    }

    /// Takes a step about everything that a controller is woken for; whether it did anything.
    pub(crate) fn turn<C>(&mut self, controller: &C, cluster: &str) -> bool
    where
        C: Controller,
        C::Outside: Driver,
    {
        let mut has_acted = false;
        for subject in self.view(cluster).subjects(controller) {
            if let Step::Act(effect) = self.step(controller, cluster, &subject) {
                has_acted = true;
                self.perform(cluster, *effect);
            }
        }
        has_acted
    }

    pub(crate) fn perform<O: Driver>(&mut self, cluster: &str, effect: Effect<O>) {
        let Effect { action, because, event, .. } = effect;
        assert!(!because.is_empty());
        self.events.extend(event);
        match action {
            Action::Write(write) => {
                self.log.push(format!("{cluster}: {write:?}"));
                self.apply(cluster, &write);
            }
            Action::Outside(action) => {
                self.log.push(format!("{cluster}: {action:?}"));
                O::perform(self, cluster, action);
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
