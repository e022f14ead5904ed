//! The shipped rooms of nodes, explored as they are: one node, wired through one DPU or two, tenants whose control
//! planes are their own, and a hub that alone gives and revokes.
//!
//! `interlock check nodes` runs this. Nothing here says what a controller does: the world calls the controllers
//! themselves. What is written down here is what is around them: the first objects, the drivers of the DPUs, people,
//! faults, and the promises.
//!
//! A control plane that is down, or a hub that cannot be reached, is a program that takes no step; that is allowed at
//! any moment wherever it is not asked what must happen in the end.

mod cluster;
pub mod device;
mod hub;
mod mistakes;
mod people;
mod programs;
mod promises;
mod refine;
mod size;
mod start;
#[cfg(test)]
mod tests;
mod truth;

use device::{Device, Forgets};
use interlock_checker::{Entry, Refinement};
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Rule, Scene, Servers,
    State, System, World,
};
use jiff::Timestamp;
use programs::Bends;
use size::Size;
use truth::{Past, Truth};

const NAME: &str = "nodes";
/// The tenants.
const TENANTS: [&str; CLUSTERS] = ["a", "b"];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of nodes, whatever crashes, lags, is late, lost or forged",
    keys: &size::KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Nodes::of(Size::read(size)?)))),
};

/// A node, its DPUs and the tenants that want it.
#[derive(Clone)]
pub struct Nodes {
    size: Size,
    bends: Bends,
    forgets: Forgets,
}

impl Nodes {
    fn of(size: Size) -> Nodes {
        Nodes { size, bends: Bends::default(), forgets: Forgets::Nothing }
    }
}

impl System for Nodes {
    type Machine = Device;
    type Past = Past;
    type Truth = Truth;

    fn size(&self) -> String {
        self.size.to_string()
    }

    fn hostility(&self) -> Hostility {
        self.size.hostility()
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        self.size.explain(name)
    }

    fn may_be_late(&self, program: &str) -> bool {
        self.size.is_hostile_to(program)
    }

    fn may_be_behind(&self, program: &str) -> bool {
        self.size.is_hostile_to(program)
    }

    /// What happens to a port wakes nobody: the agent of a DPU reads the whole DPU every minute, and reports it.
    fn reads_again(&self, program: &str) -> bool {
        program.starts_with("dpu")
    }

    fn clusters(&self) -> [&'static str; CLUSTERS] {
        ["plane-a", "plane-b"]
    }

    fn times(&self) -> Vec<Timestamp> {
        vec![start::now()]
    }

    fn programs(&self) -> Vec<Program<Device>> {
        programs::programs(self)
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Device; CLUSTERS], Chance) {
        start::initial(self, servers)
    }

    fn begins(&self, truth: &Truth) -> bool {
        self.size.fresh == 1 || truth.is_ready_to_begin(self)
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        people::moves()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Device>> {
        people::next(self, scene)
    }

    fn boot(&self, device: &Device) -> Option<u8> {
        device.is_on().then_some(0)
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        Truth::of(self, scene)
    }

    fn remember(&self, past: &Past, _: &Truth, after: &Truth) -> Past {
        past.after(after)
    }

    fn promises(&self) -> Vec<Promise<Self>> {
        promises::promises()
    }

    fn rules(&self) -> Vec<Rule<Self>> {
        promises::rules()
    }

    fn reachable(&self) -> Vec<Promise<Self>> {
        promises::reachable(self)
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        if self.size.live == 1 { promises::goals(self) } else { Vec::new() }
    }

    fn refines(&self, world: &World<Self>) -> Vec<Refinement<State>> {
        if self.size.refine == 1 { refine::refines(self, world) } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::all(self.size.flights)
    }

    fn is_done(&self, truth: &Truth) -> bool {
        truth.is_done(self)
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        truth.show()
    }
}
