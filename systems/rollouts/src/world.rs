//! The shipped conductor and mirror as they are, twice at once: a cluster, its record, requests that people send and
//! cancel, and the agent around them.
//!
//! What the agent does is left open, as in [`crate::requests`]: it answers a preflight, says that the target is applied
//! and soaked, or that an object failed, or goes away for ever. The applier itself has a world of its own.

mod agent;
mod mistakes;
mod people;
mod promises;
mod refine;
#[cfg(test)]
mod tests;
mod truth;

use crate::conductor::Conductor;
use crate::kinds::{CLUSTER_ROLLOUT, NAMESPACE, ROLLOUT_REPORT, WORKLOAD_CLUSTER};
use crate::mirror::Mirror;
use interlock_api::rollouts::{FINALIZER_ROLLOUT, record_name};
use interlock_checker::{Entry, Refinement, SizeKey};
use interlock_kernel::{Bent, Name};
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Rule, Scene, Servers,
    State, System, World, shipped,
};
use jiff::Timestamp;
use people::MOST_REQUESTS;
use serde_json::json;
use truth::Truth;

const NAME: &str = "rollouts";
const KEYS: [SizeKey; 8] = [
    Hostility::KEYS[0],
    Hostility::KEYS[1],
    Hostility::KEYS[2],
    SizeKey::new("requests", "requests, the third with the content of the second", 2, 1, 3),
    SizeKey::new("programs", "programs that run the controllers at once", 1, 1, 2),
    SizeKey::new("cancels", "1: people cancel the first request", 0, 0, 1),
    SizeKey::new("fails", "1: preflights and objects of the second version fail", 1, 0, 1),
    SizeKey::new("away", "1: one request, and an agent that may go away: deadlines pass", 0, 0, 1),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped conductor of rollouts and the mirror of its record, whatever crashes, lags or is late",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| {
        let [flights, stale, live, requests, programs, cancels, fails, away] =
            size.numbers(NAME, &KEYS)?;
        let others = if live == 1 { Hostility::LIVE } else { Hostility::HARSH };
        let hostility = Hostility { flights: flights as usize, stale: stale as usize, ..others };
        Ok(Box::new(World::new(Rollouts {
            // Each further request would take deadlines of its own.
            requests: if away == 1 { 1 } else { requests as usize },
            programs: programs as usize,
            cancels: cancels == 1,
            fails: fails == 1,
            away: away == 1,
            ..Rollouts::new(hostility)
        })))
    },
};

const UID: &str = "0123456789abcdef";
const CLUSTER: &str = "west";
const HOME: &str = "default";
/// When a request has to be healthy, and how long one try of a rollback takes.
const DEADLINE: i64 = 600;
/// When a request has to have started.
const START_DEADLINE: i64 = 3600;

/// A cluster, its record, and who is around them.
#[derive(Clone)]
pub struct Rollouts {
    hostility: Hostility,
    /// How many requests there are.
    requests: usize,
    /// How many programs run the controllers.
    programs: usize,
    cancels: bool,
    fails: bool,
    away: bool,
    /// Whether every step is compared with the protocol.
    is_refined: bool,
    conductor: Bent<Conductor>,
    mirror: Bent<Mirror>,
}

impl Rollouts {
    fn new(hostility: Hostility) -> Rollouts {
        Rollouts {
            hostility,
            requests: 2,
            programs: 1,
            cancels: false,
            fails: true,
            away: false,
            is_refined: true,
            conductor: Bent::new(Conductor),
            mirror: Bent::new(Mirror),
        }
    }
}

fn record() -> Name {
    Name::cluster_wide(&record_name(CLUSTER, UID))
}

impl System for Rollouts {
    type Machine = ();
    type Past = ();
    type Truth = Truth;

    fn size(&self) -> String {
        let Hostility { flights, stale, .. } = self.hostility;
        let Rollouts { requests, programs, .. } = self;
        let [live, cancels, fails, away] =
            [self.hostility.is_live(), self.cancels, self.fails, self.away].map(u8::from);
        format!(
            "flights={flights},stale={stale},live={live},requests={requests},programs={programs},\
             cancels={cancels},fails={fails},away={away}"
        )
    }

    fn hostility(&self) -> Hostility {
        self.hostility
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Cancel" => Some("in this size nobody cancels a request"),
            "Refuse" | "Fail" => Some("in this size nothing fails"),
            "GoAway" => Some("in this size the agent stays"),
            _ => None,
        }
    }

    fn programs(&self) -> Vec<Program<()>> {
        let name = record();
        let requests: Vec<String> =
            (0..self.requests).map(|request| format!("{HOME}/{}", people::name(request))).collect();
        let program = |program: &str| {
            let (conductor, mirror) = (self.conductor, self.mirror);
            let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
            Program::new(program, None)
                .with(shipped(move |_| conductor), &[&name.name])
                .with(shipped(move |_| mirror), &requests)
        };
        let names = ["controllers", "second-controllers"];
        names.into_iter().take(self.programs).map(program).collect()
    }

    fn times(&self) -> Vec<Timestamp> {
        // The request waits no longer, or starts, fails, and fails to be rolled back.
        let all = [0, DEADLINE + 1, 2 * (DEADLINE + 1), START_DEADLINE + 1];
        let seconds = if self.away { &all[..] } else { &all[..1] };
        seconds.iter().filter_map(|second| Timestamp::from_second(*second).ok()).collect()
    }

    fn may_pass(&self, scene: &Scene<'_, Self>) -> bool {
        // As long as the agent is there it is faster than every deadline, and the controllers always are.
        let is_late = |due: Option<i64>| due.is_none_or(|due| due <= scene.now.as_second());
        let all_are_sent = people::sent(scene.chance) == self.requests;
        let is_awaited =
            |due: &[Option<i64>]| !due.is_empty() && !due.iter().any(|it| is_late(*it));
        agent::is_away(scene.chance) && all_are_sent && is_awaited(&agent::due(scene))
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [(); CLUSTERS], Chance) {
        let empty = servers.empty();
        let of = json!({"name": CLUSTER, "uid": UID});
        let reachable = json!({"type": "Reachable", "status": "True", "reason": "Heard", "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z"});
        let cluster = json!({"metadata": {"uid": UID}, "spec": {"connection": {"inCluster": {}}},
            "status": {"conditions": [reachable]}});
        let kept = json!({"metadata": {"finalizers": [FINALIZER_ROLLOUT]},
            "spec": {"cluster": of, "rollback": {"tries": 1, "deadlineSeconds": DEADLINE}}});
        let said =
            json!({"spec": {"cluster": of}, "status": {"fence": {"token": 0, "mode": "Exact"}}});
        let hub = servers.put(empty, &NAMESPACE, &Name::cluster_wide(HOME), json!({}));
        let hub = servers.put(hub, &WORKLOAD_CLUSTER, &Name::cluster_wide(CLUSTER), cluster);
        let hub = servers.put(hub, &CLUSTER_ROLLOUT, &record(), kept);
        let hub = servers.put(hub, &ROLLOUT_REPORT, &record(), said);
        ([hub, empty, empty], [(); CLUSTERS], 0)
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        [&people::MOVES[..], &agent::MOVES[..]].concat()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<()>> {
        let truth = self.truth(scene);
        let mut next = people::next(self, scene, &truth);
        next.extend(agent::next(self, scene));
        next
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        Truth::of(scene)
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

    fn refines(&self, world: &World<Self>) -> Vec<Refinement<State>> {
        if self.is_refined { refine::refines(self, world) } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::mistakes()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        truth.sent().count() == self.requests && truth.sent().all(|it| it.is_over())
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        truth.show()
    }
}

const _: () = assert!(MOST_REQUESTS >= 3);
