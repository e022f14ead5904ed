//! The controllers of rollouts and of placement together, explored as they ship: updates that drain their clusters
//! first, and namespaces that are placed on those clusters.
//!
//! `interlock check fleet/drain` runs this. The scheduler, the clusters controller, the conductor and the mirror are the
//! controllers themselves. Two parts stand in, each in as few steps as it has: a cluster that starts what is granted to
//! it and releases what is revoked, and the agent that checks an update and brings its cluster to it. Both have worlds
//! of their own, `placement` and `rollouts/applier`.

pub(super) mod ends;
mod mistakes;
mod promises;
#[cfg(test)]
mod tests;
pub(super) mod truth;

use interlock_api::names::{FINALIZER_LIVE_GRANTS, LABEL_PLACED, PLACED_TRUE, grant_name};
use interlock_api::rollouts::{FINALIZER_ROLLOUT, record_name};
use interlock_checker::{Entry, Size, SizeError, SizeKey};
use interlock_kernel::{Bent, Name};
use interlock_placement::clusters::Clusters;
use interlock_placement::kinds::{NAMESPACE, WORKLOAD_CLUSTER};
use interlock_placement::scheduler::Scheduler;
use interlock_placement::world::processes::start;
use interlock_rollouts::conductor::Conductor;
use interlock_rollouts::kinds::{CLUSTER_ROLLOUT, CLUSTER_UPDATE, ROLLOUT_REPORT};
use interlock_rollouts::mirror::Mirror;
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Scene, Servers, System,
    World, shipped,
};
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeSet;
use truth::Truth;

const NAME: &str = "fleet/drain";
pub(super) const CLUSTER_NAMES: [&str; CLUSTERS] = ["a", "b"];
pub(super) const CLUSTER_UIDS: [&str; CLUSTERS] = ["uid-a", "uid-b"];
/// The namespaces that are placed.
pub(super) const SPACES: [&str; 2] = ["shop", "desk"];
pub(super) const SPACE_UIDS: [&str; 2] = ["0f3a9c1e", "7b21d4f0"];
/// The namespace of the requests, which is not placed.
pub(super) const OPERATORS: &str = "operators";
pub(super) const OPERATORS_UID: &str = "3c5d7e9f";
/// The name of the request for each cluster.
pub(super) const REQUESTS: [&str; CLUSTERS] = ["update-a", "update-b"];
/// When a request has to have started. A cluster that sends no heartbeat for so long is still reachable.
pub(super) const START_DEADLINE: i64 = 10;
/// When a request has to be healthy: no world here lasts so long.
const DEADLINE: i64 = 600;

const KEYS: [SizeKey; 8] = [
    SizeKey::new("spaces", "placed namespaces", 1, 1, 2),
    SizeKey::new("requests", "clusters that are updated", 1, 1, 2),
    SizeKey::new("begun", "1: it begins when the update of cluster a is checked", 0, 0, 1),
    SizeKey::new("flights", "steps that are under way at once", 1, 0, 1),
    SizeKey::new("stale", "objects that are out of date at once", 0, 0, 1),
    SizeKey::new("crash", "1: programs crash at any time", 0, 0, 1),
    SizeKey::new("wakes", "1: whoever gains work must be woken", 0, 0, 1),
    SizeKey::new("live", "1: what must happen in the end is checked", 0, 0, 1),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of rollouts and placement together, while updates drain clusters",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Drains::from_size(size)?))),
};

/// What runs on a cluster: the names of the Grants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Machine {
    runs: BTreeSet<String>,
}

/// Two clusters, namespaces that are placed on them, and updates that drain them, in some size.
#[derive(Clone)]
pub struct Drains {
    spaces: usize,
    requests: usize,
    /// Whether it begins with the updates.
    begun: bool,
    hostility: Hostility,
    live: bool,
    scheduler: Bent<Scheduler>,
    clusters: Bent<Clusters>,
    conductor: Bent<Conductor>,
    /// The size that it was made of.
    numbers: [u64; KEYS.len()],
}

impl Drains {
    fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        let [spaces, requests, begun, flights, stale, crash, wakes, live] = numbers;
        Ok(Drains {
            spaces: spaces as usize,
            requests: requests as usize,
            begun: begun == 1,
            hostility: Hostility::of([flights, stale, crash, 0, wakes, live]),
            live: live == 1,
            scheduler: Bent::new(Scheduler::default()),
            clusters: Bent::new(Clusters::default()),
            conductor: Bent::new(Conductor),
            numbers,
        })
    }

    /// Whether each cluster may have a namespace that only the other one could take, and is to be drained: then
    /// nothing goes on before the requests have waited too long.
    fn may_be_stuck(&self) -> bool {
        self.spaces == CLUSTERS && self.requests == CLUSTERS
    }
}

/// The name of the Grant of a placed namespace.
pub(super) fn grant(space: usize) -> String {
    grant_name(SPACES[space], SPACE_UIDS[space])
}

pub(super) fn cluster(c: usize) -> Name {
    Name::cluster_wide(CLUSTER_NAMES[c])
}

/// The record of a cluster, and its report.
pub(super) fn record(c: usize) -> Name {
    Name::cluster_wide(&record_name(CLUSTER_NAMES[c], CLUSTER_UIDS[c]))
}

pub(super) fn request(c: usize) -> Name {
    Name::within(OPERATORS, REQUESTS[c])
}

impl System for Drains {
    type Machine = Machine;
    type Past = ();
    type Truth = Truth;

    fn size(&self) -> String {
        let shown = |(key, number): (&SizeKey, &u64)| format!("{}={number}", key.key);
        KEYS.iter().zip(&self.numbers).map(shown).collect::<Vec<_>>().join(",")
    }

    fn hostility(&self) -> Hostility {
        self.hostility
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Submit" => Some("in this size the updates are there from the start"),
            "Start" => Some("in this size nothing moves"),
            _ => None,
        }
    }

    fn clusters(&self) -> [&'static str; CLUSTERS] {
        CLUSTER_NAMES
    }

    fn times(&self) -> Vec<Timestamp> {
        let late = Timestamp::from_second(start().as_second() + START_DEADLINE + 1);
        let late = self.may_be_stuck().then(|| late.unwrap_or_default());
        [start()].into_iter().chain(late).collect()
    }

    /// Whatever can go on is faster than the deadline.
    fn may_pass(&self, scene: &Scene<'_, Self>) -> bool {
        Truth::read(scene, self.spaces).is_stuck()
    }

    fn programs(&self) -> Vec<Program<Machine>> {
        let mut grants: Vec<String> = (0..self.spaces).map(grant).collect();
        // The scheduler is asked about every namespace, and finds that this one is not placed.
        grants.push(grant_name(OPERATORS, OPERATORS_UID));
        let records = [record(0).name, record(1).name].map(|name| name.to_string());
        let of = |c: usize| format!("{OPERATORS}/{}", REQUESTS[c]);
        let requests: Vec<String> = (0..self.requests).map(of).collect();
        let grants: Vec<&str> = grants.iter().map(String::as_str).collect();
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
        let (scheduler, clusters, conductor) = (self.scheduler, self.clusters, self.conductor);
        vec![
            Program::new("placement", None)
                .with(shipped(move |_| scheduler), &grants)
                .with(shipped(move |_| clusters), &CLUSTER_NAMES),
            Program::new("rollouts", None)
                .with(shipped(move |_| conductor), &records)
                .with(shipped(|_| Mirror), &requests),
        ]
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
        let empty = servers.empty();
        let home = json!({"metadata": {"uid": OPERATORS_UID}});
        let mut hub = servers.put(empty, &NAMESPACE, &Name::cluster_wide(OPERATORS), home);
        for c in 0..CLUSTERS {
            hub = registered(servers, hub, c);
        }
        for (name, uid) in SPACES.iter().zip(SPACE_UIDS).take(self.spaces) {
            let space = json!({"metadata": {"uid": uid, "labels": {LABEL_PLACED: PLACED_TRUE}}});
            hub = servers.put(hub, &NAMESPACE, &Name::cluster_wide(name), space);
        }
        let mut sent: Chance = 0;
        for c in 0..self.requests {
            hub = followed(servers, hub, c);
            if self.begun {
                hub = submitted(servers, hub, c);
                sent |= ends::sent(c);
            }
        }
        ([hub, empty, empty], [Machine::default(), Machine::default()], sent)
    }

    fn begins(&self, truth: &Truth) -> bool {
        let is_checked = truth.clusters[0].update.as_ref().is_some_and(|update| update.is_checked);
        truth.all_run() && (is_checked || !self.begun)
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        ends::MOVES.to_vec()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Machine>> {
        ends::next(self, scene)
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        Truth::read(scene, self.spaces)
    }

    fn promises(&self) -> Vec<Promise<Self>> {
        promises::promises()
    }

    fn reachable(&self) -> Vec<Promise<Self>> {
        promises::reachable(self)
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        if self.live { promises::goals() } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::mistakes()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        truth.all_run() && truth.no_update_waits() && truth.nobody_drains()
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        truth.show()
    }
}

/// The hub with one more cluster, which sends heartbeats.
pub(super) fn registered(servers: &Servers, hub: u32, c: usize) -> u32 {
    let at = start().to_string();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": at})
    };
    let object = json!({
        "metadata": {"uid": CLUSTER_UIDS[c], "finalizers": [FINALIZER_LIVE_GRANTS]},
        "spec": {"connection": {"logicalCluster": CLUSTER_NAMES[c]}},
        "status": {
            "conditions": [condition("Ready", "Ready", "the cluster accepts namespaces"),
                condition("Reachable", "Heard", "the syncer sends heartbeats")],
            "heartbeat": {"sequence": 1, "receivedSequence": 1, "receivedAt": at},
        },
    });
    servers.put(hub, &WORKLOAD_CLUSTER, &cluster(c), object)
}

/// The hub with the record of a cluster, and the report that its agent fills.
pub(super) fn followed(servers: &Servers, hub: u32, c: usize) -> u32 {
    let of = json!({"name": CLUSTER_NAMES[c], "uid": CLUSTER_UIDS[c]});
    let kept = json!({"metadata": {"finalizers": [FINALIZER_ROLLOUT]},
        "spec": {"cluster": of, "rollback": {"tries": 1, "deadlineSeconds": DEADLINE}}});
    let said = json!({"spec": {"cluster": of}, "status": {"fence": {"token": 0, "mode": "Exact"}}});
    let hub = servers.put(hub, &CLUSTER_ROLLOUT, &record(c), kept);
    servers.put(hub, &ROLLOUT_REPORT, &record(c), said)
}

/// The hub with the request for a cluster, which is to be drained first.
pub(super) fn submitted(servers: &Servers, hub: u32, c: usize) -> u32 {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"version": "1"},
        "metadata": {"name": "app", "namespace": "default"}});
    let update = json!({
        "metadata": {"creationTimestamp": start().to_string()},
        "spec": {
            "cluster": CLUSTER_NAMES[c], "source": {"inline": [object]}, "soakSeconds": 0,
            "deadlineSeconds": DEADLINE, "startDeadlineSeconds": START_DEADLINE, "drainFirst": true,
        },
    });
    servers.put(hub, &CLUSTER_UPDATE, &request(c), update)
}
