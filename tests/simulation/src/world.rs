//! The fleet that is simulated, what is true of it, and the programs in it.

use crate::actor::{Actor, CacheAt, Stepping};
use crate::chance::{Chance, SimulatedClock};
use crate::flaws::Flaw;
use crate::line::{Gate, Journal, Lines};
use crate::machine::{Machine, OnMachine, Records};
use crate::promises::Promises;
use crate::truth::Truth;
use interlock_api::placement::Ref;
use interlock_apiserver::{Config, Server};
use interlock_kernel::{Kind, Place, Subject};
use interlock_placement::kinds::WORKLOAD_CLUSTER;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
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
    pub(crate) actors: Vec<Actor>,
    pub(crate) under_way: Vec<UnderWay>,
    pub(crate) truth: Truth,
    pub(crate) promises: Promises,
    pub(crate) numbered: u64,
    /// How many events there were in the time of trouble.
    pub(crate) happened: u64,
    pub(crate) is_trouble: bool,
    /// The version at which the story begins.
    pub(crate) floor: u64,
    events: VecDeque<String>,
    pub(crate) event_count: u64,
    history: u64,
}

impl World {
    /// A fleet of so many clusters, all of them ready.
    pub(crate) async fn new(seed: u64, flaw: Flaw) -> Result<World, Broken> {
        let chance = Arc::new(Chance::of(seed));
        let clock = Arc::new(SimulatedClock::default());
        let server = start(seed, &clock).await?;
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
            actors: Vec::new(),
            under_way: Vec::new(),
            truth: Truth::default(),
            promises: Promises::default(),
            numbered: 0,
            happened: 0,
            is_trouble: false,
            floor: 0,
            events: VecDeque::new(),
            event_count: 0,
            history: 0xcbf2_9ce4_8422_2325,
        };
        for name in crate::CLUSTERS {
            world.register(name).await?;
        }
        world.truth.read_all(&world.lines).await?;
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
        self.clusters.push(Ref::new(name, made.metadata.uid.unwrap_or_default()));
        self.machines.push(Machine::new(name, (&self.clock, &self.chance), self.flaw));
        Ok(())
    }

    pub(crate) fn api(&self, kind: &Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        api_of(&self.user, kind, namespace)
    }

    pub(crate) async fn create(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        mut object: Value,
    ) -> Result<DynamicObject, Broken> {
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.kind);
        let object: DynamicObject = serde_json::from_value(object).map_err(said)?;
        self.api(kind, namespace).create(&PostParams::default(), &object).await.map_err(said)
    }

    /// Whether this is a life in which the power fails, and people force, more than elsewhere.
    pub(crate) fn is_stormy(&self) -> bool {
        let by_storms =
            [Flaw::BootIdStays, Flaw::SyncerBelievesItsCache, Flaw::RuntimeBelievesItsCache];
        self.seed.is_multiple_of(3) || by_storms.contains(&self.flaw)
    }

    /// Notes an event.
    pub(crate) fn note(&mut self, event: String) {
        self.event_count += 1;
        for byte in event.bytes() {
            self.history = (self.history ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if std::env::var_os("INTERLOCK_SEED").is_some() && self.flaw == Flaw::None {
            eprintln!("{:>6}s {event}", self.seconds());
        }
        if self.events.len() == TOLD {
            self.events.pop_front();
        }
        let at = self.seconds();
        self.events.push_back(format!("{at:>6}s {event}"));
    }

    fn seconds(&self) -> i64 {
        self.clock.now().as_second() % 1_000_000
    }

    /// A number that is the same for the same history, and for hardly any other.
    pub(crate) fn history(&self) -> u64 {
        self.history
    }

    /// What happened last, in words.
    pub(crate) fn story(&self) -> String {
        let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
        events.join("\n")
    }

    /// Starts the program of the hub, or of a cluster: with empty caches that are filled from now,
    /// or from any time since the beginning.
    pub(crate) async fn revive(&mut self, cluster: Option<usize>) -> Result<(), Broken> {
        self.numbered += 1;
        let clock = Arc::clone(&self.clock);
        let clock: interlock_shell::Clock = Arc::new(move || clock.now());
        let mut actor = match cluster {
            None => Actor::hub(&self.lines, (&clock, self.flaw), self.numbered),
            Some(place) => {
                let hands = OnMachine {
                    machine: Arc::clone(&self.machines[place]),
                    instance: self.numbered,
                    gate: Arc::clone(&self.lines.gate),
                    records: Arc::clone(&self.records),
                };
                let of = &self.clusters[place];
                let is_second = self.actors.iter().any(|actor| actor.cluster == Some(place));
                let name = if is_second { format!("{}-2", of.name) } else { of.name.clone() };
                Actor::agents((&name, of), &self.lines, (&clock, self.flaw), &hands)
            }
        };
        actor.cluster = cluster;
        let oldest = match self.chance.below(3) {
            0 => self.floor,
            1 => self.truth.newest.saturating_sub(30).max(self.floor),
            _ => self.truth.newest,
        };
        for place in 0..actor.caches.len() {
            let span = (self.truth.newest - oldest + 1) as usize;
            let version = oldest + self.chance.below(span) as u64;
            fill(&mut actor, place, version).await?;
        }
        let (name, newest) = (&actor.name, self.truth.newest);
        let age = newest - oldest;
        let event = format!("{name} starts, and lists what was there up to {age} versions ago");
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
        }
        self.note(format!("{} dies", actor.name));
        actor.cluster
    }

    /// Brings one cache of an actor to a version.
    pub(crate) async fn bring_up(
        &mut self,
        actor: usize,
        cache: usize,
        version: u64,
    ) -> Result<(), Broken> {
        fill(&mut self.actors[actor], cache, version).await
    }

    /// The caches of an actor that news has not come to.
    pub(crate) fn stale(&self, actor: usize) -> Vec<usize> {
        let actor = &self.actors[actor];
        let caches = actor.caches.iter().enumerate();
        let stale = caches.filter(|(_, cache)| {
            let at = match actor.cluster {
                Some(cluster) if cache.place == Place::CLUSTER => &*self.clusters[cluster].name,
                _ => crate::HUB,
            };
            cache.seen < self.truth.changed(at, &cache.kind.plural)
                && !actor.is_cut_from(cache.place)
        });
        stale.map(|(place, _)| place).collect()
    }
}

async fn fill(actor: &mut Actor, cache: usize, version: u64) -> Result<(), Broken> {
    let CacheAt { place, kind, .. } = &actor.caches[cache];
    let server = actor.server(*place).ok_or("an actor has a server for each of its caches")?;
    server.list_at(kind, &version.to_string()).await?;
    actor.caches[cache].seen = version;
    Ok(())
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

async fn start(seed: u64, clock: &Arc<SimulatedClock>) -> Result<Server, Broken> {
    let (clock, random) = (Arc::clone(clock), Chance::of(seed ^ 0xa5a5_a5a5));
    let definitions = interlock_api::definitions();
    let definitions = definitions.iter().map(serde_json::to_value).collect::<Result<_, _>>();
    let config = Config {
        hub_definitions: definitions.map_err(said)?,
        clock: Arc::new(move || clock.now()),
        random: Arc::new(move || random.number()),
        are_duties_called: true,
        compaction_interval: Duration::from_secs(86_400),
        ..Config::default()
    };
    Server::start(config).await.map_err(said)
}
