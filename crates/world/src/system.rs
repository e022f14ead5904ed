//! What a system says of its world.

use crate::actor::Actor;
use crate::scene::{Objects, Scene};
use crate::server::Servers;
use crate::state::{CLUSTERS, State};
use crate::subjects::Subjects;
use crate::world::World;
use interlock_checker::{Refinement, Size, SizeError, SizeKey};
use interlock_kernel::{Subject, Write};
use jiff::Timestamp;
use std::fmt::Debug;
use std::hash::Hash;

/// A process that runs controllers, with one cache for all of them.
pub struct Program<M> {
    /// Its name, as a trace has it: `syncer-a`.
    pub name: String,
    /// The cluster that it works on; None: it works at the hub alone.
    pub cluster: Option<usize>,
    /// The machine that it runs on: that of its cluster, if nobody says otherwise. None: it runs where nothing
    /// happens to it but crashes of its own.
    pub machine: Option<usize>,
    /// Its controllers, each with the subjects that it can be asked about.
    pub(crate) rooms: Vec<(Box<dyn Actor<M>>, Subjects)>,
}

impl<M> Program<M> {
    /// A program without controllers.
    pub fn new(name: impl Into<String>, cluster: Option<usize>) -> Self {
        Program { name: name.into(), cluster, machine: cluster, rooms: Vec::new() }
    }

    /// The same, but it runs on this machine, whichever cluster it works on.
    #[must_use]
    pub fn on_machine(mut self, machine: Option<usize>) -> Self {
        self.machine = machine;
        self
    }

    /// The same with one more controller and the subjects that it can be asked about.
    #[must_use]
    pub fn with(mut self, room: Box<dyn Actor<M>>, subjects: &[&str]) -> Self {
        let subjects = subjects.iter().map(|subject| Subject::from(*subject)).collect();
        self.rooms.push((room, Subjects::Listed(subjects)));
        self
    }

    /// The same with one more controller, which is asked about whatever its watches name: for
    /// subjects whose names nobody knows beforehand. There are at most so many, over all states.
    #[must_use]
    pub fn asking(mut self, room: Box<dyn Actor<M>>, most: usize) -> Self {
        self.rooms.push((room, Subjects::found(most)));
        self
    }
}

/// How hostile the world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hostility {
    /// Steps that are under way at once: their live reads, their decision and their effect come
    /// apart, with anything in between. Every other step is taken at once.
    pub flights: usize,
    /// Objects that some cache shows as they were at any time before, at once.
    pub stale: usize,
    /// Programs crash at any time: what is under way is lost, and caches are filled anew.
    pub crashes: Crashes,
    /// A program that starts anew may list the past: what it missed before stays out of date.
    pub relists: bool,
    /// Whether it is checked that whoever gains work is woken.
    pub wakes: bool,
}

impl Hostility {
    /// The sizes of a world in which nothing but hostility differs.
    pub const KEYS: [SizeKey; 3] = [
        SizeKey::new("flights", "steps that are under way at once", 1, 0, 2),
        SizeKey::new("stale", "objects that are out of date at once", 1, 0, 2),
        SizeKey::new("live", "1: what must happen in the end is checked", 0, 0, 1),
    ];

    /// A step under way, an object out of date, and any number of crashes.
    pub const HARSH: Hostility =
        Hostility { flights: 1, stale: 1, crashes: Crashes::Any, relists: false, wakes: true };

    /// What must happen in the end can be asked: a program that crashes for ever gets nothing done.
    pub const LIVE: Hostility = Hostility {
        flights: 0,
        stale: 0,
        crashes: Crashes::AtMost(1),
        relists: false,
        wakes: false,
    };

    /// The hostility of a size in these keys, for the model of this name.
    pub fn from_size(model: &str, size: &Size) -> Result<Hostility, SizeError> {
        let [flights, stale, live] = size.numbers(model, &Hostility::KEYS)?;
        let others = if live == 1 { Hostility::LIVE } else { Hostility::HARSH };
        Ok(Hostility { flights: flights as usize, stale: stale as usize, ..others })
    }

    /// From the numbers of a size; where it is asked what must happen in the end, crashes are counted: a
    /// program that crashes for ever gets nothing done.
    pub fn of([flights, stale, crash, relist, wakes, live]: [u64; 6]) -> Hostility {
        let crashes = match (crash, live) {
            (0, _) => Crashes::None,
            (_, 0) => Crashes::Any,
            (most, _) => Crashes::AtMost(most as u8),
        };
        let (flights, stale) = (flights as usize, stale as usize);
        Hostility { flights, stale, crashes, relists: relist == 1, wakes: wakes == 1 }
    }

    /// The number of a size that says how often programs crash.
    pub fn crash(&self) -> u8 {
        match self.crashes {
            Crashes::None => 0,
            Crashes::Any => 1,
            Crashes::AtMost(most) => most,
        }
    }

    /// Whether crashes end, so that it can be asked what must happen in the end.
    pub fn is_live(&self) -> bool {
        self.crashes != Crashes::Any
    }
}

/// How often programs crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crashes {
    /// Never.
    None,
    /// So often in all: what must happen in the end can be asked for only where crashes end.
    AtMost(u8),
    /// As often as they like.
    Any,
}

/// Something that people or machines do: the servers, machines and chances after it.
#[derive(Debug, Clone)]
pub struct Move<M> {
    /// Its place in [`System::moves`].
    pub name: usize,
    /// The hub and the clusters after it.
    pub servers: [u32; 1 + CLUSTERS],
    /// The machines that it changes.
    pub machines: [Option<M>; CLUSTERS],
    /// What is left to happen after it.
    pub chance: Chance,
    /// A machine that starts anew: the programs on it lose what they had in memory.
    pub restarts: Option<usize>,
}

/// What people did, or what is left for them to do, in a few bits that a system gives a meaning to.
pub type Chance = u32;

/// What must hold in every state, or be possible in some.
pub struct Promise<S: System> {
    /// Its name.
    pub name: &'static str,
    /// What it promises, in one sentence.
    pub sentence: &'static str,
    /// Whether it holds here.
    pub holds: fn(&S, &S::Truth) -> bool,
}

/// What must hold of every step.
pub struct Rule<S: System> {
    /// Its name.
    pub name: &'static str,
    /// What it promises, in one sentence.
    pub sentence: &'static str,
    /// Whether a step from the first to the second is allowed.
    pub allows: fn(&S, &S::Truth, &S::Truth) -> bool,
}

/// What must happen in the end.
pub struct Goal<S: System> {
    /// Its name.
    pub name: &'static str,
    /// What it promises, in one sentence.
    pub sentence: &'static str,
    /// From any state on: if this holds for ever ...
    pub while_true: fn(&S, &S::Truth) -> bool,
    /// ... then this holds in the end.
    pub then: fn(&S, &S::Truth) -> bool,
}

/// The system with a mistake made on purpose.
pub struct Mistake<S> {
    /// A name to ask for it by.
    pub name: &'static str,
    /// The mistake, in one sentence.
    pub sentence: &'static str,
    /// The promises of which at least one must break; empty: any.
    pub breaks: &'static [&'static str],
    /// The system that makes it, in the least world in which it shows.
    pub system: S,
}

/// A system with its programs, its people and its machines.
pub trait System: Clone + Send + Sync + Sized + 'static {
    /// What a machine has outside of the API: processes, locks, disks.
    type Machine: Clone + Eq + Hash + Debug + Default + Send + Sync + 'static;
    /// What is remembered of the past, for promises that speak of it.
    type Past: Clone + Eq + Hash + Debug + Default + Send + Sync + 'static;
    /// What is true, in the words of the promises: read off the objects and the machines.
    type Truth: Clone + Eq + Hash + Debug + Send + Sync + 'static;

    /// The size, as a person would ask for it.
    fn size(&self) -> String {
        let hostility = self.hostility();
        let Hostility { flights, stale, .. } = hostility;
        format!("flights={flights},stale={stale},live={}", u8::from(hostility.is_live()))
    }

    /// How hostile the world is.
    fn hostility(&self) -> Hostility;

    /// One sentence on why something that people or machines do never happens in this size.
    fn explain(&self, name: &str) -> Option<&'static str> {
        let _ = name;
        None
    }

    /// Whether the steps of a program may be under way while others act, as far as there is room for
    /// them. A mistake of one program may show in a small world in which only its steps are.
    fn may_be_late(&self, program: &str) -> bool {
        let _ = program;
        true
    }

    /// Whether the cache of a program may be out of date, as far as there is room for that.
    fn may_be_behind(&self, program: &str) -> bool {
        let _ = program;
        true
    }

    /// Whether a program may gain work that nothing wakes it for: it reads all that it can do anything about again
    /// by itself, now and then.
    fn reads_again(&self, program: &str) -> bool {
        let _ = program;
        false
    }

    /// Whether a program goes on with what it had under way when the machine that it works on starts
    /// anew. No program does that runs on it: this is for mistakes.
    fn outlives_its_machine(&self, program: &str) -> bool {
        let _ = program;
        false
    }

    /// Whether the servers count generations, of the objects that have one: it makes more states, and matters only where
    /// somebody asks which generation was seen.
    fn counts_generations(&self) -> bool {
        false
    }

    /// Whether a server with these objects admits a write of a program, beside the checks that every API server
    /// makes: what an admission policy says there. It is judged together with the write, on one state.
    fn admits(&self, program: &str, server: Objects<'_>, write: &Write) -> bool {
        let (_, _, _) = (program, server, write);
        true
    }

    /// The programs, with the shipped controllers or with mutants of them.
    fn programs(&self) -> Vec<Program<Self::Machine>>;

    /// The names of the clusters.
    fn clusters(&self) -> [&'static str; CLUSTERS] {
        ["a", "b"]
    }

    /// The times that the clock shows, one after the other.
    fn times(&self) -> Vec<Timestamp> {
        vec![Timestamp::UNIX_EPOCH]
    }

    /// Whether the clock may go on to the next time now.
    fn may_pass(&self, scene: &Scene<'_, Self>) -> bool {
        let _ = scene;
        true
    }

    /// The servers and machines at the start, and what may happen.
    fn initial(
        &self,
        servers: &Servers,
    ) -> ([u32; 1 + CLUSTERS], [Self::Machine; CLUSTERS], Chance);

    /// Whether the world begins here. Before that, controllers and machines act alone, one after the
    /// other, so that the way to a state that a mistake shows in need not be explored.
    fn begins(&self, truth: &Self::Truth) -> bool {
        let _ = truth;
        true
    }

    /// The names of all that people and machines do by themselves, who does it, and whether it must
    /// happen in the end.
    fn moves(&self) -> Vec<(&'static str, &'static str, bool)>;

    /// What people and machines can do now.
    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Self::Machine>>;

    /// What a machine loses when a program on it crashes.
    fn crash(&self, program: &str, machine: &Self::Machine) -> Self::Machine {
        let _ = program;
        machine.clone()
    }

    /// How often a machine has started; None: it has no power, and nothing runs on it.
    fn boot(&self, machine: &Self::Machine) -> Option<u8> {
        let _ = machine;
        Some(0)
    }

    /// What is true in a state, in the words of the promises.
    fn truth(&self, scene: &Scene<'_, Self>) -> Self::Truth;

    /// The past after a step; both truths have the past from before it.
    fn remember(&self, past: &Self::Past, before: &Self::Truth, after: &Self::Truth) -> Self::Past {
        let (_, _) = (before, after);
        past.clone()
    }

    /// What must hold in every state.
    fn promises(&self) -> Vec<Promise<Self>>;

    /// What must hold of every step.
    fn rules(&self) -> Vec<Rule<Self>> {
        Vec::new()
    }

    /// What must be possible.
    fn reachable(&self) -> Vec<Promise<Self>> {
        Vec::new()
    }

    /// What must happen in the end, where every controller, cache and machine goes on.
    fn goals(&self) -> Vec<Goal<Self>> {
        Vec::new()
    }

    /// The specifications that the world must refine.
    fn refines(&self, world: &World<Self>) -> Vec<Refinement<State>> {
        let _ = world;
        Vec::new()
    }

    /// The mistakes that must be found.
    fn mistakes(&self) -> Vec<Mistake<Self>> {
        Vec::new()
    }

    /// Whether all is as people want it: a world in which nothing can happen any more must be so.
    fn is_done(&self, truth: &Self::Truth) -> bool;

    /// The parts of a state that a trace shows.
    fn show(&self, truth: &Self::Truth) -> Vec<(&'static str, String)>;
}
