//! The engine: one server, programs whose steps go on by one request at a time, news that comes when
//! chance says so, and a story of what happened. What people, machines and promises there are is said
//! by a [`Simulated`].

pub(crate) mod actor;
pub(crate) mod chance;
pub(crate) mod line;
mod news;
mod steps;
pub(crate) mod truth;

use crate::{Counts, Told};
use actor::{Actor, Stepping};
use chance::{Chance, SimulatedClock};
use interlock_apiserver::{Config, Server};
use interlock_kernel::{Kind, Subject};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use line::{Gate, Journal, Lines, Sent};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use truth::Truth;

/// How many events are reported when a promise was broken.
const TOLD: usize = 60;

/// A promise that was broken, in words.
pub(crate) type Broken = String;

/// What is simulated: the programs of a fleet and what is around them, what people do, and what must
/// be true. A new system adds a world.
#[allow(async_fn_in_trait, reason = "worlds are of this crate, and each runs in one thread")]
pub(crate) trait Simulated: Sized {
    /// The kinds that promises are about, at the hub.
    const AT_HUB: &'static [Kind];
    /// The same, at clusters.
    const AT_CLUSTER: &'static [Kind];
    /// What programs decide by, at the hub and at their cluster: some start with a list from before
    /// one of its last changes.
    const DECIDED_BY: (Kind, Kind);
    /// Controllers that have something to do whenever time has passed.
    const IDLE: &'static [&'static str];

    /// The definitions that the server begins with.
    fn definitions(&self) -> Result<Vec<Value>, Broken>;

    /// The first objects, machines and programs.
    async fn furnish(engine: &mut Engine<Self>) -> Result<(), Broken>;

    /// A calm beginning.
    async fn begin(engine: &mut Engine<Self>) -> Result<(), Broken>;

    /// How many events there are before the faults stop.
    fn trouble(&self) -> usize;

    /// One event.
    async fn event(engine: &mut Engine<Self>) -> Result<(), Broken>;

    /// The faults stop: all that must happen in the end happens.
    async fn end(engine: &mut Engine<Self>) -> Result<(), Broken>;

    /// Holds what was sent, before it is read back, against the promises.
    fn check_sent(&mut self, sent: &[Sent], truth: &Truth) -> Result<(), Broken>;

    /// Holds what is true against the promises.
    fn check(&mut self, truth: &Truth) -> Result<(), Broken>;

    /// Starts the program of the hub, or of a cluster, unless there is no reason to.
    async fn revive(engine: &mut Engine<Self>, cluster: Option<usize>) -> Result<(), Broken>;

    /// A program died.
    fn lost(&mut self, program: &Actor);

    /// Time passes on the machines.
    fn tick(&mut self);

    /// What a server does by itself, where that is not the server's own.
    async fn after_background(_engine: &mut Engine<Self>) -> Result<(), Broken> {
        Ok(())
    }

    /// A program did something.
    async fn acted(
        _: &mut Engine<Self>,
        _instance: u64,
        _actions: &[String],
    ) -> Result<(), Broken> {
        Ok(())
    }

    /// A program is about to start a process, or to open a port: the event until which it is stopped there.
    async fn before_start(_engine: &mut Engine<Self>, _instance: u64) -> Result<u64, Broken> {
        Ok(0)
    }

    /// Whether this is a life in which programs lose one of their two servers again and again, and go on with the other one.
    fn is_one_sided(&self) -> bool {
        false
    }

    /// Whether a refusal only means that it is too early.
    fn is_busy(_why: &str) -> bool {
        false
    }

    /// What happened in it, beyond what the engine counts.
    fn counted(&self, counts: Counts) -> Counts {
        counts
    }
}

/// A step that waits at the gate, or is about to begin.
pub(crate) struct UnderWay {
    pub(crate) number: u64,
    /// The instance of the actor.
    pub(crate) instance: u64,
    pub(crate) room: &'static str,
    pub(crate) subject: Subject,
    pub(crate) future: Stepping,
    /// What it has set out to do so far, in words.
    pub(crate) actions: Vec<String>,
    /// It is stuck until this event.
    pub(crate) held_until: u64,
}

/// A world, as it goes on.
pub(crate) struct Engine<W> {
    pub(crate) world: W,
    pub(crate) seed: u64,
    pub(crate) chance: Arc<Chance>,
    pub(crate) clock: Arc<SimulatedClock>,
    pub(crate) server: Server,
    pub(crate) lines: Lines,
    /// The user's way to the hub.
    pub(crate) user: Client,
    pub(crate) actors: Vec<Actor>,
    pub(crate) under_way: Vec<UnderWay>,
    pub(crate) truth: Truth,
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
    /// Whether every event is reported when it happens.
    is_aloud: bool,
    pub(crate) event_count: u64,
    history: u64,
}

impl<W: Simulated> Engine<W> {
    /// A world at its beginning, made with its chance and its clock.
    pub(crate) async fn new(
        seed: u64,
        make: impl FnOnce(&Arc<SimulatedClock>, &Arc<Chance>) -> W,
        is_aloud: bool,
    ) -> Result<Engine<W>, Broken> {
        let chance = Arc::new(Chance::of(seed));
        let clock = Arc::new(SimulatedClock::default());
        let world = make(&clock, &chance);
        let server = start(seed, world.definitions()?, &clock).await?;
        let lines = Lines {
            server: server.clone(),
            gate: Arc::new(Gate::default()),
            journal: Arc::new(Journal::default()),
        };
        let mut engine = Engine {
            world,
            seed,
            chance,
            clock,
            server,
            user: lines.admin("user", crate::HUB),
            lines,
            actors: Vec::new(),
            under_way: Vec::new(),
            truth: Truth::default(),
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
        W::furnish(&mut engine).await?;
        engine.truth.begin(&engine.lines, W::AT_HUB, W::AT_CLUSTER).await?;
        engine.lines.journal.take();
        engine.floor = engine.truth.newest;
        W::revive(&mut engine, None).await?;
        for cluster in 0..crate::CLUSTERS.len() {
            W::revive(&mut engine, Some(cluster)).await?;
        }
        Ok(engine)
    }

    /// One whole life: a calm beginning, trouble, and a calm end in which every namespace is on its desired cluster.
    pub(crate) async fn live(&mut self) -> Result<(), Broken> {
        W::begin(self).await?;
        self.is_trouble = true;
        for _ in 0..self.world.trouble() {
            self.happened += 1;
            W::event(self).await?;
            self.check().await?;
        }
        self.is_trouble = false;
        W::end(self).await
    }

    /// Whether this is a life in which more goes wrong than elsewhere.
    pub(crate) fn is_stormy(&self) -> bool {
        self.seed.is_multiple_of(3)
    }

    /// Takes in what was written, and holds it against all promises.
    pub(crate) async fn check(&mut self) -> Result<(), Broken> {
        let sent = self.lines.journal.take();
        self.world.check_sent(&sent, &self.truth)?;
        self.truth.follow(&sent).await?;
        self.world.check(&self.truth)
    }

    /// A program that was wired begins, with lists that may be old.
    pub(crate) async fn begins(&mut self, mut actor: Actor) -> Result<(), Broken> {
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

    /// Time passes.
    pub(crate) fn time_passes(&mut self, seconds: i64) {
        self.clock.pass(seconds);
        self.world.tick();
    }

    /// The server does what is due.
    pub(crate) async fn background(&mut self) -> Result<(), Broken> {
        // What was written before must be known as what it was.
        self.check().await?;
        self.server.run_background().await;
        self.truth.after_background().await?;
        W::after_background(self).await
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
        let counts = Counts { writes: self.truth.newest - self.floor, ..self.counts };
        let counts = self.world.counted(counts);
        Told { counts, version: self.truth.newest, history: self.history }
    }

    /// What happened last, in words.
    pub(crate) fn story(&self) -> String {
        let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
        events.join("\n")
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
}

pub(crate) async fn create(
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

async fn start(
    seed: u64,
    hub_definitions: Vec<Value>,
    clock: &Arc<SimulatedClock>,
) -> Result<Server, Broken> {
    let (clock, random) = (Arc::clone(clock), Chance::of(seed ^ 0xa5a5_a5a5));
    let config = Config {
        hub_definitions,
        clock: Arc::new(move || clock.now()),
        random: Arc::new(move || random.number()),
        is_background_on_demand: true,
        compaction_interval: Duration::from_secs(86_400),
        ..Config::default()
    };
    Server::start(config).await.map_err(said)
}
