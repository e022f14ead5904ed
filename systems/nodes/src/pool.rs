//! Keeps the record of each machine: whose it is, what is revoked, and when it is clean. It runs at the hub. The subject
//! of a step is a PhysicalNode.
//!
//! A machine is taken back in two steps. To revoke is one write, which needs nobody; to return waits until each DPU of
//! the machine has reported the floor for this very machine, or its power was seen off after the floor was raised. A
//! timer neither revokes nor returns.

mod act;
pub mod decide;
pub mod facts;
mod fences;
mod observe;
mod racks;
#[cfg(test)]
mod tests;
mod wiring;
mod words;

use crate::filed::{
    CLUSTERS_BY_NODE, FENCES_BY_NODE, NODES_BY_CLUSTER, NODES_BY_RACK, NODES_BY_WIRE,
    REPORTS_BY_NODE,
};
use crate::in_use::{Keeping, Kept, keep};
use crate::kinds::{DPU_REPORT, NODE_FENCE, PHYSICAL_NODE, RACK, WORKLOAD_CLUSTER};
use crate::power::Power;
use interlock_api::placement::condition::DRAINED;
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{
    Index, LiveReads, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// PhysicalNodes by each DPU that they are wired through, as a DpuReport is named.
const NODES_BY_DPU: Index = Index {
    name: "by-dpu",
    kind: PHYSICAL_NODE,
    values: |node| {
        let dpus = node.data["spec"]["dpus"].as_array().into_iter().flatten();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        dpus.map(|dpu| format!("{}.{}", word(&dpu["rack"]), word(&dpu["dpu"]))).collect()
    },
};

/// Whether a cluster says the same to its nodes: its heartbeats are nobody's business here.
fn is_same_to_nodes(before: &DynamicObject, after: &DynamicObject) -> bool {
    let drained = |cluster: &DynamicObject| {
        let conditions = cluster.data["status"]["conditions"].as_array().into_iter().flatten();
        conditions.filter(|it| it["type"] == DRAINED).cloned().collect::<Vec<Value>>()
    };
    let is_same = |key: &str| before.data["status"][key] == after.data["status"][key];
    before.metadata.uid == after.metadata.uid
        && before.data["spec"] == after.data["spec"]
        && is_same("drained")
        && is_same("grants")
        && drained(before) == drained(after)
}

/// The controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pool;

impl Watcher for Pool {
    fn name(&self) -> &'static str {
        "nodes/pool"
    }

    fn watches(&self) -> Vec<Watch> {
        let nodes = Watch::all(Place::HUB, &PHYSICAL_NODE).by(&NODES_BY_WIRE).by(&NODES_BY_RACK);
        vec![
            nodes.by(&NODES_BY_DPU).by(&NODES_BY_CLUSTER),
            Watch::all(Place::HUB, &RACK),
            Watch::all(Place::HUB, &DPU_REPORT).by(&REPORTS_BY_NODE),
            Watch::all(Place::HUB, &NODE_FENCE).by(&FENCES_BY_NODE),
            Watch::all(Place::HUB, &WORKLOAD_CLUSTER)
                .by(&CLUSTERS_BY_NODE)
                .unless(is_same_to_nodes),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to_each(
            Place::HUB,
            &[
                (&PHYSICAL_NODE, &[Verb::Patch, Verb::PatchStatus]),
                (&DPU_REPORT, &[Verb::Create]),
                (&NODE_FENCE, &[Verb::PatchStatus]),
                (&WORKLOAD_CLUSTER, &[Verb::Patch]),
                (&RACK, &[Verb::Patch, Verb::PatchStatus]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let names = |nodes: Vec<Object>| -> Vec<Subject> {
            nodes.iter().map(|node| Subject::from(name_of(node))).collect()
        };
        if watch.kind == PHYSICAL_NODE {
            // A node that shares a port with it may be consistent now, or no more.
            let wires = (NODES_BY_WIRE.values)(object);
            let at_its_ports =
                wires.iter().flat_map(|wire| view.find(Place::HUB, &NODES_BY_WIRE, wire));
            let mut subjects = names(at_its_ports.collect());
            subjects.push(Subject::from(name_of(object)));
            subjects.extend(racks::waiting_for(object, view));
            subjects.sort_unstable();
            subjects.dedup();
            return subjects;
        }
        if watch.kind == RACK {
            let mut subjects = names(view.find(Place::HUB, &NODES_BY_RACK, name_of(object)));
            subjects.push(racks::subject(name_of(object)));
            return subjects;
        }
        if watch.kind == NODE_FENCE {
            return (FENCES_BY_NODE.values)(object).into_iter().map(Subject::from).collect();
        }
        let mut subjects = if watch.kind == DPU_REPORT {
            // A DPU may report of a node that is wired through it no more.
            let ports = object.data["status"]["ports"].as_array().into_iter().flatten();
            let reported = ports.filter_map(|port| port["node"]["name"].as_str());
            let mut subjects: Vec<Subject> = reported.map(Subject::from).collect();
            subjects.extend(names(view.find(Place::HUB, &NODES_BY_DPU, name_of(object))));
            subjects
        } else {
            let machines = object.data["spec"]["machines"].as_array().into_iter().flatten();
            let machines = machines.filter_map(|machine| machine["node"]["name"].as_str());
            let mut subjects: Vec<Subject> = machines.map(Subject::from).collect();
            subjects.extend(names(view.find(Place::HUB, &NODES_BY_CLUSTER, uid_of(object))));
            subjects
        };
        subjects.sort_unstable();
        subjects.dedup();
        subjects
    }
}

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub enum Facts {
    /// About a node.
    Node(Box<facts::Facts>),
    /// About a rack.
    Rack(Kept),
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// About a node.
    Node(decide::Decision),
    /// About a rack.
    Rack(Keeping),
}

/// The objects that a decision is about.
#[derive(Debug)]
pub enum Scene {
    /// About a node.
    Node(Box<observe::Scene>),
    /// About a rack.
    Rack(Box<racks::Scene>),
}

impl Room for Pool {
    type Outside = Power;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Power>,
    ) -> Observed<Facts, Scene> {
        if let Some(rack) = racks::named(subject) {
            return racks::observe(rack, view, live_reads);
        }
        match observe::observe(subject, view, live_reads) {
            Ok((facts, scene)) => {
                let scene = Scene::Node(Box::new(scene));
                Observed::Seen { facts: Facts::Node(Box::new(facts)), scene }
            }
            Err(because) => Observed::nothing(because),
        }
    }

    fn decide(facts: &Facts) -> Decision {
        match facts {
            Facts::Node(facts) => Decision::Node(decide::decide(facts)),
            Facts::Rack(kept) => Decision::Rack(keep(kept)),
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Power> {
        match (scene, decision) {
            (Scene::Node(scene), Decision::Node(decision)) => act::act(scene, decision),
            (Scene::Rack(scene), Decision::Rack(keeping)) => racks::act(scene, keeping),
            (Scene::Node(_), Decision::Rack(_)) | (Scene::Rack(_), Decision::Node(_)) => {
                Step::rest("the decision is about another object")
            }
        }
    }
}
