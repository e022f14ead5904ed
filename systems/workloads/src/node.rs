//! The one Node of the cluster, on which the process runtime runs pods: it is made where there is none, and ready.
//!
//! Nothing is decided because of it: a runtime that stops leaves its Node as it is, and its pods keep their last word.
//! It is written only when it says something else than it should, so a cluster at rest writes nothing.

mod status;
#[cfg(test)]
mod tests;

use crate::kinds::NODE;
use interlock_api::names::NODE_LABEL;
use interlock_kernel::metadata::{is_deleting, label};
use interlock_kernel::{
    Address, LiveReads, Name, Nothing, Object, Observed, Place, Read, Right, Room, Selector, Step,
    Subject, Verb, View, Watch, Watcher, Write,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The value of [`NODE_LABEL`] on a node that runs processes.
pub const RUNS_PROCESSES: &str = "true";
/// How long the cache may take to show what a live read showed.
const CACHE_DELAY: Duration = Duration::from_secs(5);

/// What the Node says of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The name of the Node, and its host name.
    pub name: String,
    /// How many processors there are for pods.
    pub processors: u32,
    /// How many bytes of memory there are for pods.
    pub memory_bytes: u64,
    /// How many bytes of disk there are for pods.
    pub disk_bytes: u64,
    /// How many pods there may be.
    pub pods: u32,
    /// The boot of the machine.
    pub boot_id: String,
    /// The version of the runtime: that of Interlock.
    pub version: String,
    /// `amd64`, as Kubernetes calls it.
    pub architecture: String,
    /// `linux`, as Kubernetes calls it.
    pub operating_system: String,
    /// The version of the kernel; empty if it is not known.
    pub kernel_version: String,
}

/// Keeps the Node of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalNode {
    machine: Arc<Machine>,
}

impl LocalNode {
    /// The Node of this machine.
    pub fn new(machine: Machine) -> LocalNode {
        LocalNode { machine: Arc::new(machine) }
    }
}

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Facts {
    /// The cache shows no Node of the name.
    Unseen {
        /// Whether a live read showed one; None: there was none yet.
        is_there: Option<bool>,
    },
    /// There is one.
    Seen {
        /// Whether it is being deleted.
        is_terminating: bool,
        /// Whether its labels are what they should be.
        is_labelled: bool,
        /// Whether its status is what it should be.
        is_reported: bool,
    },
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing until the cache shows the Node that a live read showed.
    WaitForCache,
    /// Read the Node live.
    Read,
    /// Make it.
    Create,
    /// Write its labels.
    Label,
    /// Write its status.
    Report,
}

/// What a step is about.
#[derive(Debug)]
pub struct Scene {
    now: Timestamp,
    node: Option<Object>,
}

impl LocalNode {
    fn address(&self) -> Address {
        Address::new(Place::CLUSTER, &NODE, Name::cluster_wide(&self.machine.name))
    }

    /// The labels that the Node has besides those of others.
    fn labels(&self) -> [(&'static str, &str); 4] {
        [
            (NODE_LABEL, RUNS_PROCESSES),
            ("kubernetes.io/arch", &self.machine.architecture),
            ("kubernetes.io/hostname", &self.machine.name),
            ("kubernetes.io/os", &self.machine.operating_system),
        ]
    }

    fn missing_labels(&self, node: &Object) -> Value {
        let labels = self.labels().into_iter();
        let missing = labels.filter(|(key, value)| label(node, key) != Some(value));
        let missing: Map<String, Value> =
            missing.map(|(key, value)| (key.to_owned(), json!(value))).collect();
        Value::Object(missing)
    }
}

impl Watcher for LocalNode {
    fn name(&self) -> &'static str {
        "workloads/node"
    }

    fn watches(&self) -> Vec<Watch> {
        let own = Selector::Named(self.machine.name.as_str().into());
        vec![Watch::all(Place::CLUSTER, &NODE).only(own)]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::CLUSTER, &NODE, &[Verb::Create, Verb::Patch, Verb::PatchStatus])
    }

    fn subjects(&self, _: &Watch, object: &Object, _: &dyn View) -> Vec<Subject> {
        let is_own = Name::of(object) == self.address().name;
        is_own.then(|| Subject::from(self.machine.name.as_str())).into_iter().collect()
    }

    /// The Node is made by the first step.
    fn everything(&self, _: &dyn View) -> Option<Vec<Subject>> {
        Some(vec![Subject::from(self.machine.name.as_str())])
    }
}

impl Room for LocalNode {
    type Outside = Nothing;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        _: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> Observed<Facts, Scene> {
        let now = view.now();
        let address = self.address();
        let node = view.get(Place::CLUSTER, &NODE, &address.name);
        let facts = match &node {
            None => {
                Facts::Unseen { is_there: live_reads.objects.get(&address).map(Option::is_some) }
            }
            Some(node) => Facts::Seen {
                is_terminating: is_deleting(node),
                is_labelled: self.missing_labels(node) == json!({}),
                is_reported: status::is_reported(&self.machine, node),
            },
        };
        Observed::Seen { facts, scene: Scene { now, node } }
    }

    fn decide(facts: &Facts) -> Decision {
        match facts {
            Facts::Unseen { is_there: None } => Decision::Read,
            Facts::Unseen { is_there: Some(true) } => Decision::WaitForCache,
            Facts::Unseen { is_there: Some(false) } => Decision::Create,
            Facts::Seen { is_terminating: true, .. } => Decision::Rest("the Node is being deleted"),
            Facts::Seen { is_labelled: false, .. } => Decision::Label,
            Facts::Seen { is_reported: false, .. } => Decision::Report,
            Facts::Seen { .. } => Decision::Rest("the Node is there and ready"),
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Nothing> {
        match (decision, &scene.node) {
            (Decision::Rest(because), _) => Step::rest(because),
            (Decision::WaitForCache, _) => Step::Wait {
                because: "the cache does not show the Node that there is".to_owned(),
                at_most: CACHE_DELAY,
            },
            (Decision::Read, _) => Step::LiveRead {
                reads: vec![Read::Object(self.address())],
                because: "only a live read can show that there is no Node".to_owned(),
            },
            (Decision::Label, Some(node)) => {
                let change = json!({"metadata": {"labels": self.missing_labels(node)}});
                let write = Write::patch(Place::CLUSTER, &NODE, node, change);
                Step::write(write, "the labels of the Node differ")
            }
            (Decision::Report, Some(node)) => {
                let status = status::of(&self.machine, Some(node), scene.now);
                let change = json!({"status": status});
                let write = Write::patch_status(Place::CLUSTER, &NODE, node, change);
                Step::write(write, "the status of the Node differs")
            }
            (Decision::Create | Decision::Label | Decision::Report, _) => {
                let labels: Map<String, Value> = self
                    .labels()
                    .map(|(key, value)| (key.to_owned(), json!(value)))
                    .into_iter()
                    .collect();
                let status = status::of(&self.machine, None, scene.now);
                let object = json!({"metadata": {"labels": labels}, "spec": {}, "status": status});
                let write = Write::Create { address: self.address(), object };
                Step::write(write, "there is no Node for the pods of this cluster")
            }
        }
    }
}
