//! All of placement and volumes in one process, in every order that a seed can think of.
//!
//! Real: the store and the API server, the shell's `step_once`, and every controller of placement and
//! of volumes. Made up: time, chance, the lines in between, the machines (processes and locks as data)
//! and their disks (volumes, snapshots and copies as data).
//!
//! Nothing runs by itself. The simulation picks, by the seed, what happens next: news comes to a
//! cache, a step of a controller goes on by one request, a request or its reply is lost, a program
//! dies, the power fails, a person does something, time passes. After every event the promises are
//! checked against what is true; at the end the faults stop, and every namespace must be on its desired cluster.

mod counts;
mod engine;
mod fleet;
mod many;

pub use counts::Counts;
pub use fleet::Flaw;
pub use many::{Search, Summary, run_many};

use engine::Engine;
use fleet::Fleet;
use std::fmt;

/// What the hub is called.
pub(crate) const HUB: &str = "hub";
/// The clusters.
pub(crate) const CLUSTERS: [&str; 3] = ["east", "north", "west"];

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
        let Red { seed, flaw, broken, story } = self;
        // The build that found it is there already, and shows the same.
        let profile = if cfg!(debug_assertions) { "" } else { " --release" };
        let flaw = match flaw {
            Flaw::None => String::new(),
            flaw => format!(" --flaw {flaw:?}"),
        };
        write!(
            f,
            "seed {seed}: {broken}\n\nwhat happened last:\n{story}\n\nto see it again:\n  \
             cargo run{profile} -p interlock-simulation -- --seed {seed}{flaw}\n"
        )
    }
}

/// Runs one seed; what it was like, or which promise was broken, how, and how to see it again.
pub fn run(seed: u64, flaw: Flaw) -> Result<Told, Red> {
    live(seed, flaw, false)
}

/// The same, and every event is reported on standard error when it happens.
pub fn run_aloud(seed: u64, flaw: Flaw) -> Result<Told, Red> {
    live(seed, flaw, true)
}

fn live(seed: u64, flaw: Flaw, is_aloud: bool) -> Result<Told, Red> {
    let red = |broken: String, story: String| Red { seed, flaw, broken, story };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| red(error.to_string(), String::new()))?;
    runtime.block_on(async {
        let make = |clock: &_, chance: &_| Fleet::new(seed, flaw, clock, chance);
        let world = Engine::new(seed, make, is_aloud).await;
        let mut world = world.map_err(|broken| red(broken, String::new()))?;
        let ended = world.live().await;
        world.server.stop().await;
        match ended {
            Ok(()) => Ok(world.told()),
            Err(broken) => Err(red(broken, world.story())),
        }
    })
}
