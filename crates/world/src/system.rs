//! What a system says of its world.

use crate::actor::Actor;
use crate::scene::Scene;
use crate::server::Servers;
use crate::state::{CLUSTERS, State};
use crate::world::World;
use interlock_checker::Refinement;
use interlock_kernel::Subject;
use jiff::Timestamp;
use std::fmt::Debug;
use std::hash::Hash;

/// A process that runs controllers, with one cache for all of them.
pub struct Program<M> {
    /// Its name, as a trace has it: `syncer-a`.
    pub name: String,
    /// The cluster that it works on, and on whose machine it runs; None: at the hub.
    pub cluster: Option<usize>,
    /// Its controllers, each with every subject that it can be asked about.
    pub rooms: Vec<(Box<dyn Actor<M>>, Vec<Subject>)>,
}

impl<M> Program<M> {
    /// A program without controllers.
    pub fn new(name: impl Into<String>, cluster: Option<usize>) -> Self {
        Program { name: name.into(), cluster, rooms: Vec::new() }
    }

    /// The same with one more controller and the subjects that it can be asked about.
    #[must_use]
    pub fn with(mut self, room: Box<dyn Actor<M>>, subjects: &[&str]) -> Self {
        self.rooms.push((room, subjects.iter().map(|subject| Subject::from(*subject)).collect()));
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
    /// A cluster whose machine starts anew: the programs on it lose what they had in memory.
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
    fn size(&self) -> String;

    /// How hostile the world is.
    fn hostility(&self) -> Hostility;

    /// One sentence on why something that people or machines do never happens in this size.
    fn explain(&self, name: &str) -> Option<&'static str> {
        let _ = name;
        None
    }

    /// The programs, with the shipped controllers or with mutants of them.
    fn programs(&self) -> Vec<Program<Self::Machine>>;

    /// The names of the clusters.
    fn clusters(&self) -> [&'static str; CLUSTERS];

    /// The times that the clock shows, one after the other.
    fn times(&self) -> Vec<Timestamp>;

    /// The servers and machines at the start, and what may happen.
    fn initial(
        &self,
        servers: &Servers,
    ) -> ([u32; 1 + CLUSTERS], [Self::Machine; CLUSTERS], Chance);

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
    fn boot(&self, machine: &Self::Machine) -> Option<u8>;

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
