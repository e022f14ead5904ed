//! All of placement in one process, in every order that a seed can think of.
//!
//! Real: the store and the API server, the shell's `step_once`, and every controller of placement.
//! Made up: time, chance, the lines in between, and the machines (processes and locks as data).
//!
//! Nothing runs by itself. The simulation picks, by the seed, what happens next: news comes to a
//! cache, a step of a controller goes on by one request, a request or its reply is lost, a program
//! dies, the power fails, a person does something, time passes. After every event the promises are
//! checked against what is true; at the end the faults stop, and every wish must be met.

mod actor;
mod calm;
mod chance;
mod events;
mod flaws;
mod line;
mod machine;
mod promises;
mod truth;
mod user;
mod world;

pub use flaws::Flaw;

use world::World;

/// What the hub is called.
pub(crate) const HUB: &str = "hub";
/// The clusters.
pub(crate) const CLUSTERS: [&str; 3] = ["east", "north", "west"];

/// What a run was like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// How many events there were.
    pub events: u64,
    /// The version that the server came to: how much was written.
    pub version: u64,
    /// The same for the same history, and for hardly any other.
    pub history: u64,
}

/// Runs one seed; what it was like, or which promise was broken, how, and how to see it again.
pub fn run(seed: u64, flaw: Flaw) -> Result<Told, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut world = World::new(seed, flaw).await?;
        let ended = world.live().await;
        let told = Told {
            events: world.event_count,
            version: world.truth.newest,
            history: world.history(),
        };
        let result = ended.map(|()| told).map_err(|broken| {
            format!(
                "seed {seed}: {broken}\n\nwhat happened last:\n{}\n\nto see it again:\n  \
                 INTERLOCK_SEED={seed} cargo test -p interlock-simulation -- --nocapture\n",
                world.story()
            )
        });
        world.server.stop().await;
        result
    })
}
