//! All of placement, volumes, identities and rollouts in one process, in every order that a seed can think of.
//!
//! Real: the store and the API server, the shell's `step_once`, and every controller of placement, of
//! volumes, of identities and of rollouts. Made up: time, chance, the lines in between, the machines (processes and locks as data)
//! and their disks (volumes, snapshots and copies as data).
//!
//! Nothing runs by itself. The simulation picks, by the seed, what happens next: news comes to a
//! cache, a step of a controller goes on by one request, a request or its reply is lost, a program
//! dies, the power fails, a person does something, time passes. After every event the promises are
//! checked against what is true; at the end the faults stop, and every namespace must be on its desired cluster.

mod counts;
mod engine;
mod fleet;
mod identities;
mod many;
mod nodes;
mod rollouts;

pub use counts::Counts;
pub use fleet::Flaw;
pub use many::{Search, Summary, run_many};

use engine::Engine;
use engine::Simulated;
use engine::chance::{Chance, SimulatedClock};
use fleet::Fleet;
use identities::Tenants;
use nodes::Nodes;
use rollouts::Updates;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What the hub is called.
pub(crate) const HUB: &str = "hub";
/// The clusters.
pub(crate) const CLUSTERS: [&str; 3] = ["east", "north", "west"];

/// What is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SimulatedWorld {
    /// Placement and volumes.
    #[default]
    Fleet,
    /// Identities.
    Identities,
    /// Rollouts.
    Rollouts,
    /// Nodes.
    Nodes,
}

impl SimulatedWorld {
    /// All of them.
    pub const ALL: [SimulatedWorld; 4] = [
        SimulatedWorld::Fleet,
        SimulatedWorld::Identities,
        SimulatedWorld::Nodes,
        SimulatedWorld::Rollouts,
    ];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            SimulatedWorld::Fleet => "fleet",
            SimulatedWorld::Identities => "identities",
            SimulatedWorld::Rollouts => "rollouts",
            SimulatedWorld::Nodes => "nodes",
        }
    }
}

impl FromStr for SimulatedWorld {
    type Err = String;

    fn from_str(name: &str) -> Result<SimulatedWorld, String> {
        let found = SimulatedWorld::ALL.into_iter().find(|world| world.name() == name);
        found.ok_or_else(|| {
            format!("no such world; there are {:?}", SimulatedWorld::ALL.map(SimulatedWorld::name))
        })
    }
}

/// What a run was like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// What happened, in numbers.
    pub counts: Counts,
    /// The version that the server came to: how much was written.
    pub version: u64,
    /// The same for the same history, and for hardly any other.
    pub history: u64,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Red {
    /// In which world.
    pub world: SimulatedWorld,
    /// In which seed.
    pub seed: u64,
    /// What was broken on purpose.
    pub flaw: Flaw,
    /// Which promise, and by what.
    pub broken: String,
    /// What happened last, in words.
    pub story: String,
}

impl Red {
    /// Whether something happened that must never happen: not only that something did not happen
    /// in time, or that a controller failed.
    pub fn is_harm(&self) -> bool {
        !self.broken.contains("calm rounds") && !self.broken.contains("broke:")
    }
}

impl fmt::Display for Red {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Red { world, seed, flaw, broken, story } = self;
        // The build that found it is there already, and shows the same.
        let profile = if cfg!(debug_assertions) { "" } else { " --release" };
        let flaw = match flaw {
            Flaw::None if *world == SimulatedWorld::Fleet => String::new(),
            Flaw::None => format!(" --world {}", world.name()),
            flaw => format!(" --flaw {flaw:?}"),
        };
        write!(
            f,
            "seed {seed}: {broken}\n\nwhat happened last:\n{story}\n\nto see it again:\n  \
             cargo run{profile} -p interlock-simulation -- --seed {seed}{flaw}\n"
        )
    }
}

/// Runs one seed of a world; what it was like, or which promise was broken, how, and how to see it again. A flaw is in
/// one world, and is run there.
pub fn run(world: SimulatedWorld, seed: u64, flaw: Flaw) -> Result<Told, Red> {
    live(world, seed, flaw, false)
}

/// The same, and every event is reported on standard error when it happens.
pub fn run_aloud(world: SimulatedWorld, seed: u64, flaw: Flaw) -> Result<Told, Red> {
    live(world, seed, flaw, true)
}

fn live(world: SimulatedWorld, seed: u64, flaw: Flaw, is_aloud: bool) -> Result<Told, Red> {
    let world = flaw.world().unwrap_or(world);
    let red = |(broken, story): (String, String)| Red { world, seed, flaw, broken, story };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| red((error.to_string(), String::new())))?;
    let ended = runtime.block_on(async {
        match world {
            SimulatedWorld::Fleet => {
                let make = |clock: &_, chance: &_| Fleet::new(seed, flaw, clock, chance);
                one_life(seed, make, is_aloud).await
            }
            SimulatedWorld::Identities => {
                let make = |clock: &_, chance: &_| Tenants::new(seed, flaw, clock, chance);
                one_life(seed, make, is_aloud).await
            }
            SimulatedWorld::Rollouts => {
                let make = |_: &Arc<SimulatedClock>, _: &Arc<Chance>| Updates::new(flaw);
                one_life(seed, make, is_aloud).await
            }
            SimulatedWorld::Nodes => {
                let make =
                    |_: &Arc<SimulatedClock>, chance: &Arc<Chance>| Nodes::new(seed, flaw, chance);
                one_life(seed, make, is_aloud).await
            }
        }
    });
    ended.map_err(red)
}

/// What was broken, and what happened last.
async fn one_life<W: Simulated>(
    seed: u64,
    make: impl FnOnce(&Arc<SimulatedClock>, &Arc<Chance>) -> W,
    is_aloud: bool,
) -> Result<Told, (String, String)> {
    let engine = Engine::new(seed, make, is_aloud).await;
    let mut engine = engine.map_err(|broken| (broken, String::new()))?;
    let ended = engine.live().await;
    engine.server.stop().await;
    match ended {
        Ok(()) => Ok(engine.told()),
        Err(broken) => Err((broken, engine.story())),
    }
}
