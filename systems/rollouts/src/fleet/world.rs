//! The shipped controller of FleetUpdates as it is: one request for many clusters, whose ClusterUpdates are answered by
//! clusters that are left open.
//!
//! A ClusterUpdate ends well, fails or is cancelled, and its cluster is drained for it from before until some time after.
//! How a cluster gets there is the business of [`crate::world`].

mod around;
mod mistakes;
mod promises;
#[cfg(test)]
mod tests;
mod truth;

use super::Fleet;
use crate::kinds::{FLEET_UPDATE, NAMESPACE, WORKLOAD_CLUSTER};
use around::MOVES;
use interlock_checker::{Entry, SizeKey};
use interlock_kernel::{Bent, Name};
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Rule, Scene, Servers,
    System, World, shipped,
};
use serde_json::json;
use truth::Truth;

const MODEL: &str = "rollouts/fleet";
const KEYS: [SizeKey; 10] = [
    Hostility::KEYS[0],
    Hostility::KEYS[1],
    Hostility::KEYS[2],
    SizeKey::new("clusters", "clusters of the request; the last one is the canary", 2, 1, 3),
    SizeKey::new("programs", "programs that run the controller at once", 2, 1, 2),
    SizeKey::new("most", "spec.maxUnavailable", 1, 1, 2),
    SizeKey::new("fails", "1: clusters fail, and people let a request go on that paused", 1, 0, 1),
    SizeKey::new("drains", "1: clusters are drained first", 1, 0, 1),
    SizeKey::new("cancels", "1: people cancel the request, and not all clusters answer", 0, 0, 1),
    SizeKey::new("unready", "1: the first cluster is not Ready in the beginning", 0, 0, 1),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: MODEL,
    summary: "the shipped controller of requests for many clusters: the canary, partitions, budget, pause and cancel",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| {
        let [flights, stale, live, clusters, programs, most, fails, drains, cancels, unready] =
            size.numbers(MODEL, &KEYS)?;
        let others = if live == 1 { Hostility::LIVE } else { Hostility::HARSH };
        let hostility = Hostility { flights: flights as usize, stale: stale as usize, ..others };
        Ok(Box::new(World::new(Fleets {
            clusters: clusters as usize,
            programs: programs as usize,
            most: most as usize,
            fails: fails == 1,
            drains: drains == 1,
            cancels: cancels == 1,
            is_unready: unready == 1,
            ..Fleets::new(hostility)
        })))
    },
};

const HOME: &str = "shop";
const NAME: &str = "f";
const SUBJECT: &str = "shop/f";
/// The clusters, by their names.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A request for many clusters, and who is around it.
#[derive(Clone)]
pub struct Fleets {
    hostility: Hostility,
    /// How many clusters there are.
    clusters: usize,
    /// How many programs run the controller.
    programs: usize,
    /// How many clusters may be unavailable at once.
    most: usize,
    fails: bool,
    drains: bool,
    cancels: bool,
    is_unready: bool,
    fleet: Bent<Fleet>,
}

impl Fleets {
    fn new(hostility: Hostility) -> Fleets {
        Fleets {
            hostility,
            clusters: 2,
            programs: 1,
            most: 1,
            fails: true,
            drains: true,
            cancels: false,
            is_unready: false,
            fleet: Bent::new(Fleet),
        }
    }

    /// The names of the clusters of this size.
    fn names(&self) -> &'static [&'static str] {
        &NAMES[..self.clusters]
    }

    /// Whether a cluster is the canary, by its place.
    fn is_canary(&self, place: usize) -> bool {
        place + 1 == self.clusters
    }
}

/// The name of the request.
fn request() -> Name {
    Name::within(HOME, NAME)
}

impl System for Fleets {
    type Machine = ();
    type Past = ();
    type Truth = Truth;

    fn size(&self) -> String {
        let Hostility { flights, stale, .. } = self.hostility;
        let Fleets { clusters, programs, most, .. } = self;
        let live = u8::from(self.hostility.is_live());
        let [fails, drains, cancels, unready] =
            [self.fails, self.drains, self.cancels, self.is_unready].map(u8::from);
        format!(
            "flights={flights},stale={stale},live={live},clusters={clusters},programs={programs},\
             most={most},fails={fails},drains={drains},cancels={cancels},unready={unready}"
        )
    }

    fn hostility(&self) -> Hostility {
        self.hostility
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Drain" | "Release" => Some("in this size no cluster is drained"),
            "Fail" => Some("in this size no cluster fails"),
            "GoOn" => Some("in this size no request pauses: nothing fails, or no cluster is left"),
            "Cancel" | "End" => Some("in this size nobody cancels the request"),
            "GetReady" => Some("in this size every cluster is Ready"),
            _ => None,
        }
    }

    fn programs(&self) -> Vec<Program<()>> {
        let program = |name: &str| {
            let fleet = self.fleet;
            Program::new(name, None).with(shipped(move |_| fleet), &[SUBJECT])
        };
        let names = ["controllers", "second-controllers"];
        names.into_iter().take(self.programs).map(program).collect()
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [(); CLUSTERS], Chance) {
        let empty = servers.empty();
        let canary = json!({"matchLabels": {"canary": "true"}});
        let asked = json!({"spec": {"source": {"configMap": {"name": "shop"}}, "canary": canary,
            "maxUnavailable": self.most}});
        let mut hub = servers.put(empty, &NAMESPACE, &Name::cluster_wide(HOME), json!({}));
        for (place, name) in self.names().iter().enumerate() {
            let labels = match self.is_canary(place) {
                true => json!({"canary": "true"}),
                false => json!({}),
            };
            let is_ready = !(self.is_unready && place == 0);
            let cluster = json!({"metadata": {"labels": labels},
                "spec": {"connection": {"inCluster": {}}}, "status": around::status(is_ready)});
            hub = servers.put(hub, &WORKLOAD_CLUSTER, &Name::cluster_wide(name), cluster);
        }
        let hub = servers.put(hub, &FLEET_UPDATE, &request(), asked);
        ([hub, empty, empty], [(); CLUSTERS], 0)
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        // Where people cancel, a cluster may be away for ever: what is in flight there ends only because it is cancelled.
        let is_sure = |name: &str| match name {
            "Fail" => false,
            "Succeed" => !self.cancels,
            _ => true,
        };
        MOVES.iter().map(|(name, by)| (*name, *by, is_sure(name))).collect()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<()>> {
        around::next(self, scene)
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
        if self.hostility.is_live() { promises::goals() } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::mistakes()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        truth.phase.is_terminal() && truth.in_flight().next().is_none()
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        truth.show()
    }
}
