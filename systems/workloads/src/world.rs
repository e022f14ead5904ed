//! The shipped controllers of Deployments and ReplicaSets as they are, two agents at once: a Deployment, or a ReplicaSet
//! alone, its pods, and people around it.
//!
//! `interlock check workloads` runs this. Nothing here says what a controller does: the world calls the controllers
//! themselves. That there is one pod of a name is what every API server promises, and not asked here.

mod mistakes;
mod people;
mod promises;
mod size;
mod start;
#[cfg(test)]
mod tests;
mod truth;

use crate::deployment::Deployments;
use crate::replicaset::ReplicaSets;
use interlock_checker::Entry;
use interlock_kernel::{Bent, Decide};
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Rule, Scene, Servers,
    System, World, shipped,
};
use size::Size;
use std::sync::Arc;
use truth::Truth;

const NAME: &str = "workloads";
/// The agent that may be late and out of date while the other is not.
const SECOND: &str = "second-agent";

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of Deployments and ReplicaSets, whatever crashes, lags or is late",
    keys: &size::KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Workloads::of(Size::read(size)?)))),
};

/// A Deployment or a ReplicaSet alone, and its pods.
#[derive(Clone)]
pub struct Workloads {
    size: Size,
    bends: Bends,
}

/// The rooms that make a mistake.
#[derive(Clone, Copy, Default)]
struct Bends {
    deployments: Option<Decide<Deployments>>,
    sets: Option<Decide<ReplicaSets>>,
}

impl Workloads {
    fn of(size: Size) -> Workloads {
        Workloads { size, bends: Bends::default() }
    }
}

impl System for Workloads {
    type Machine = ();
    type Past = ();
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
        self.size.late == 0 || program == SECOND
    }

    fn may_be_behind(&self, program: &str) -> bool {
        self.size.late == 0 || program == SECOND
    }

    fn programs(&self) -> Vec<Program<()>> {
        let agent = |name: &str| {
            let bends = self.bends;
            let subjects = start::set_subjects(&self.size);
            let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
            let sets = shipped(move |_| {
                let room = Bent::new(ReplicaSets { node: Arc::from(start::NODE) });
                bends.sets.map_or(room.clone(), |decide| room.deciding(decide))
            });
            let program = Program::new(name, Some(0)).on_machine(None).with(sets, &subjects);
            if self.size.alone == 1 {
                return program;
            }
            let deployments = shipped(move |_| {
                let room = Bent::new(Deployments);
                bends.deployments.map_or(room, |decide| room.deciding(decide))
            });
            program.with(deployments, &[start::DEPLOYMENT_SUBJECT])
        };
        let names = ["agent", SECOND];
        names.into_iter().take(self.size.agents as usize).map(agent).collect()
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [(); CLUSTERS], Chance) {
        start::initial(self, servers)
    }

    fn begins(&self, truth: &Truth) -> bool {
        self.size.midway == 1 || truth.is_done(self)
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        people::MOVES.to_vec()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<()>> {
        people::next(self, scene)
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        Truth::of(self, scene)
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
        if self.size.live == 1 { promises::goals() } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::all()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        truth.is_done(self)
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        truth.show()
    }
}
