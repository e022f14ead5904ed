//! The fleet that is simulated, what is true of it, and the programs in it.

use crate::Told;
use crate::actor::{Actor, Stepping};
use crate::chance::{Chance, SimulatedClock};
use crate::counts::Counts;
use crate::data::DataPromises;
use crate::disk::{Disks, Whose};
use crate::flaws::Flaw;
use crate::line::{Gate, Journal, Lines};
use crate::machine::{Machine, OnMachine, Records};
use crate::mover::OnDisk;
use crate::promises::Promises;
use crate::truth::Truth;
use interlock_api::names::{LOCAL_CLASS, LOCAL_DRIVER};
use interlock_api::placement::Ref;
use interlock_apiserver::{Config, Server};
use interlock_kernel::{Kind, Subject};
use interlock_placement::kinds::{NAMESPACE, STORAGE_CLASS, WORKLOAD_CLUSTER};
use interlock_volumes::kinds::SNAPSHOT_CLASS;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How many events are told when a promise was broken.
const TOLD: usize = 60;
/// A logical cluster of the server.
const LOGICAL_CLUSTER: Kind =
    Kind::cluster_wide(("interlock.dev", "v1alpha1"), "LogicalCluster", "logicalclusters");

/// A promise that was broken, in words.
pub(crate) type Broken = String;

/// A step that waits at the gate, or is about to begin.
pub(crate) struct UnderWay {
    pub(crate) number: u64,
    /// The instance of the actor.
    pub(crate) instance: u64,
    pub(crate) room: &'static str,
    pub(crate) subject: Subject,
    pub(crate) future: Stepping,
    /// What it has set out to do so far, in words.
    pub(crate) deeds: Vec<String>,
    /// It is stuck until this event.
    pub(crate) held_until: u64,
}

/// The fleet.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) flaw: Flaw,
    pub(crate) chance: Arc<Chance>,
    pub(crate) clock: Arc<SimulatedClock>,
    pub(crate) server: Server,
    pub(crate) lines: Lines,
    /// The user's way to the hub.
    pub(crate) user: Client,
    pub(crate) clusters: Vec<Ref>,
    pub(crate) machines: Vec<Arc<Machine>>,
    pub(crate) records: Arc<Mutex<Records>>,
    pub(crate) disks: Arc<Mutex<Disks>>,
    pub(crate) actors: Vec<Actor>,
    pub(crate) under_way: Vec<UnderWay>,
    pub(crate) truth: Truth,
    pub(crate) promises: Promises,
    pub(crate) data_promises: DataPromises,
    pub(crate) numbered: u64,
    /// How many events there were in the time of trouble.
    pub(crate) happened: u64,
    pub(crate) is_trouble: bool,
    /// Until this event everybody makes haste, but for this instance.
    pub(crate) haste: (u64, u64),
    /// The version at which the story begins.
    pub(crate) floor: u64,
    pub(crate) counts: Counts,
    events: VecDeque<String>,
    /// Whether every event is told when it happens.
    is_aloud: bool,
    pub(crate) event_count: u64,
    history: u64,
}

impl World {
    /// A fleet of so many clusters, all of them ready.
    pub(crate) async fn new((seed, flaw): (u64, Flaw), is_aloud: bool) -> Result<World, Broken> {
        let chance = Arc::new(Chance::of(seed));
        let clock = Arc::new(SimulatedClock::default());
        let server = start((seed, carries_data(seed)), &clock).await?;
        let disks = Disks::new((&clock, &chance), flaw);
        let lines = Lines {
            server: server.clone(),
            gate: Arc::new(Gate::default()),
            journal: Arc::new(Journal::default()),
        };
        let (user, _) = lines.client("user", crate::HUB);
        let mut world = World {
            seed,
            flaw,
            chance,
            clock,
            server,
            lines,
            user,
            clusters: Vec::new(),
            machines: Vec::new(),
            records: Arc::default(),
            disks: Arc::new(Mutex::new(disks)),
            actors: Vec::new(),
            under_way: Vec::new(),
            truth: Truth::default(),
            promises: Promises::default(),
            data_promises: DataPromises::default(),
            numbered: 0,
            happened: 0,
            is_trouble: false,
            haste: (0, 0),
            floor: 0,
            counts: Counts::default(),
            events: VecDeque::new(),
            is_aloud,
            event_count: 0,
            history: 0xcbf2_9ce4_8422_2325,
        };
        for name in crate::CLUSTERS {
            world.register(name).await?;
        }
        world.truth.begin(&world.lines).await?;
        world.lines.journal.take();
        world.floor = world.truth.newest;
        world.revive(None).await?;
        for cluster in 0..world.clusters.len() {
            world.revive(Some(cluster)).await?;
        }
        Ok(world)
    }

    async fn register(&mut self, name: &str) -> Result<(), Broken> {
        self.create(&LOGICAL_CLUSTER, None, json!({"metadata": {"name": name}})).await?;
        let connection = json!({"connection": {"logicalCluster": name}});
        let cluster = json!({"metadata": {"name": name}, "spec": connection});
        let made = self.create(&WORKLOAD_CLUSTER, None, cluster).await?;
        let uid = made.metadata.uid.unwrap_or_default();
        self.disks().add(&uid);
        self.clusters.push(Ref::new(name, uid));
        self.machines.push(Machine::new(name, (&self.clock, &self.chance), self.flaw));
        if self.carries_data() { self.give_classes(name).await } else { Ok(()) }
    }

    /// A cluster gets the classes of volumes and images, and the namespace of places at a mover.
    async fn give_classes(&self, cluster: &str) -> Result<(), Broken> {
        let (user, _) = self.lines.client("user", cluster);
        let is_default = json!({"storageclass.kubernetes.io/is-default-class": "true"});
        let objects = [
            (&NAMESPACE, json!({"metadata": {"name": "interlock-system"}})),
            (
                &STORAGE_CLASS,
                json!({
                    "metadata": {"name": LOCAL_CLASS, "annotations": is_default},
                    "provisioner": LOCAL_DRIVER, "reclaimPolicy": "Delete",
                    "volumeBindingMode": "Immediate",
                }),
            ),
            (
                &SNAPSHOT_CLASS,
                json!({
                    "metadata": {"name": LOCAL_CLASS}, "driver": LOCAL_DRIVER,
                    "deletionPolicy": "Delete",
                }),
            ),
        ];
        for (kind, object) in objects {
            create(&api_of(&user, kind, None), kind, object).await?;
        }
        Ok(())
    }

    /// The disks of all machines.
    pub(crate) fn disks(&self) -> MutexGuard<'_, Disks> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is a life in which claims are used, and moves carry their data.
    pub(crate) fn carries_data(&self) -> bool {
        carries_data(self.seed)
    }

    pub(crate) fn api(&self, kind: &Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        api_of(&self.user, kind, namespace)
    }

    pub(crate) async fn create(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        object: Value,
    ) -> Result<DynamicObject, Broken> {
        create(&self.api(kind, namespace), kind, object).await
    }

    /// Whether this is a life in which the power fails, and people force, more than elsewhere.
    pub(crate) fn is_stormy(&self) -> bool {
        self.seed.is_multiple_of(3)
    }

    /// Notes an event.
    pub(crate) fn note(&mut self, event: String) {
        self.event_count += 1;
        for byte in event.bytes() {
            self.history = (self.history ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let told = format!("{:>6}s {event}", self.clock.seconds());
        if self.is_aloud {
            eprintln!("{told}");
        }
        if self.events.len() == TOLD {
            self.events.pop_front();
        }
        self.events.push_back(told);
    }

    /// What it was like.
    pub(crate) fn told(&self) -> Told {
        let (writes, moves) = (self.truth.newest - self.floor, self.promises.moves);
        let disks = self.disks();
        let (copies, failures) = (disks.copied, disks.failures);
        let counts = Counts { writes, moves, copies, failures, ..self.counts };
        Told { counts, version: self.truth.newest, history: self.history }
    }

    /// What happened last, in words.
    pub(crate) fn story(&self) -> String {
        let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
        events.join("\n")
    }

    /// Starts the program of the hub, or of a cluster, with lists that may be old. Nobody starts
    /// anything for a cluster that the hub has let go.
    pub(crate) async fn revive(&mut self, cluster: Option<usize>) -> Result<(), Broken> {
        let is_there = |place: usize| {
            let name = self.clusters[place].name.as_str();
            self.truth.get((crate::HUB, &WORKLOAD_CLUSTER), (None, name)).is_some()
        };
        if !cluster.is_none_or(is_there) {
            return Ok(());
        }
        self.numbered += 1;
        let clock = Arc::clone(&self.clock);
        let clock: interlock_shell::Clock = Arc::new(move || clock.now());
        let mut actor = match cluster {
            None => Actor::hub(&self.lines, (&clock, self.flaw), self.numbered),
            Some(place) => {
                let whose = Whose { place, instance: self.numbered };
                let disk = OnDisk {
                    disks: Arc::clone(&self.disks),
                    whose,
                    gate: Arc::clone(&self.lines.gate),
                };
                let hands = OnMachine {
                    machine: Arc::clone(&self.machines[place]),
                    instance: self.numbered,
                    gate: Arc::clone(&self.lines.gate),
                    records: Arc::clone(&self.records),
                    disk: self.carries_data().then_some(disk),
                };
                let of = &self.clusters[place];
                let is_second = self.actors.iter().any(|actor| actor.cluster == Some(place));
                self.counts.twins += u64::from(is_second);
                let name = if is_second { format!("{}-2", of.name) } else { of.name.clone() };
                Actor::agents((&name, of), &self.lines, (&clock, self.flaw), &hands)
            }
        };
        actor.cluster = cluster;
        for cache in &actor.caches {
            let at = actor.at(cache.place);
            self.truth.know(at, &cache.kind).await?;
        }
        let lists = self.first_lists(&mut actor);
        let event = format!("{} starts, {lists}", actor.name);
        self.actors.push(actor);
        self.note(event);
        Ok(())
    }

    /// The program dies: caches, locks in its hands and steps under way are gone with it.
    pub(crate) fn crash(&mut self, actor: usize) -> Option<usize> {
        let actor = self.actors.remove(actor);
        for step in self.under_way.iter().filter(|step| step.instance == actor.instance) {
            self.lines.gate.forget(step.number);
        }
        self.under_way.retain(|step| step.instance != actor.instance);
        if let Some(cluster) = actor.cluster {
            self.machines[cluster].lost_runtime(actor.instance);
            let instance = actor.instance;
            self.disks().lost_program(Whose { place: cluster, instance });
        }
        self.counts.deaths += 1;
        self.note(format!("{} dies", actor.name));
        actor.cluster
    }
}

/// Whether claims are used in this life, and moves carry their data: so in three of seven.
fn carries_data(seed: u64) -> bool {
    matches!(seed % 7, 1 | 4 | 6)
}

async fn create(
    api: &Api<DynamicObject>,
    kind: &Kind,
    mut object: Value,
) -> Result<DynamicObject, Broken> {
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.kind);
    let object: DynamicObject = serde_json::from_value(object).map_err(said)?;
    api.create(&PostParams::default(), &object).await.map_err(said)
}

pub(crate) fn said(error: impl std::fmt::Display) -> Broken {
    format!("the simulation itself was refused: {error}")
}

pub(crate) fn api_of(client: &Client, kind: &Kind, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: kind.group.to_string(),
        version: kind.version.to_string(),
        api_version: kind.api_version(),
        kind: kind.kind.to_string(),
        plural: kind.plural.to_string(),
    };
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// The definitions of our own kinds, and of those by which data is moved: the same in every world.
fn definitions() -> Result<&'static [Value], Broken> {
    static DEFINITIONS: OnceLock<Result<Vec<Value>, Broken>> = OnceLock::new();
    let made = DEFINITIONS.get_or_init(|| {
        let definitions = interlock_api::definitions().into_iter();
        let definitions = definitions.chain(interlock_api::volume_definitions());
        definitions.map(serde_json::to_value).collect::<Result<_, _>>().map_err(said)
    });
    made.as_deref().map_err(Broken::clone)
}

async fn start(
    (seed, carries_data): (u64, bool),
    clock: &Arc<SimulatedClock>,
) -> Result<Server, Broken> {
    let own = if carries_data { usize::MAX } else { interlock_api::definitions().len() };
    let (clock, random) = (Arc::clone(clock), Chance::of(seed ^ 0xa5a5_a5a5));
    let config = Config {
        hub_definitions: definitions()?.iter().take(own).cloned().collect(),
        clock: Arc::new(move || clock.now()),
        random: Arc::new(move || random.number()),
        are_duties_called: true,
        compaction_interval: Duration::from_secs(86_400),
        ..Config::default()
    };
    Server::start(config).await.map_err(said)
}
