//! What is true in a state.

use super::Workloads;
use super::people::Left;
use super::start::{deployment, lone_set};
use crate::kinds::{DEPLOYMENT, POD, REPLICA_SET};
use crate::owned::controller_of;
use crate::pod::{Readiness, State, readiness_of, state_of};
use crate::replicaset::ANNOTATION_LEAVING;
use crate::template::is_same;
use interlock_kernel::Object;
use interlock_kernel::metadata::{annotation, name_of, uid_of};
use interlock_world::Scene;
use serde_json::Value;

/// What is true in a state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    /// How many pods are asked for, and of which generation that is.
    pub(super) desired: u64,
    pub(super) generation: i64,
    /// Whether the template is the second one.
    pub(super) is_changed: bool,
    /// What the status says.
    pub(super) said: Said,
    pub(super) sets: Vec<Set>,
    pub(super) pods: Vec<Pod>,
    /// Whether something happened to a pod that no controller chose.
    pub(super) is_disturbed: bool,
}

/// What a status says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Said {
    pub(super) generation: i64,
    pub(super) replicas: u64,
    pub(super) updated: u64,
    pub(super) available: u64,
}

/// A ReplicaSet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Set {
    pub(super) uid: String,
    pub(super) size: u64,
    /// Whether it has the template that is asked for.
    pub(super) is_new: bool,
    pub(super) leaving: String,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) uid: String,
    /// The uid of its controller; empty: it has none.
    pub(super) of: String,
    pub(super) state: State,
    pub(super) is_ready: bool,
}

impl Pod {
    /// Whether it is ready, and stays.
    pub(super) fn is_ready_to_stay(&self) -> bool {
        self.state == State::Active && self.is_ready
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

impl Truth {
    pub(super) fn of(system: &Workloads, scene: &Scene<'_, Workloads>) -> Truth {
        let cluster = scene.cluster(0);
        let asked = match system.size.alone {
            1 => cluster.get(&REPLICA_SET, &lone_set()),
            _ => cluster.get(&DEPLOYMENT, &deployment()),
        };
        let data = asked.as_ref().map_or(Value::Null, |asked| asked.data.clone());
        let (spec, status) = (&data["spec"], &data["status"]);
        let replicas = number(&status["replicas"]);
        let set = |set: &Object| Set {
            uid: uid_of(set).to_owned(),
            size: number(&set.data["spec"]["replicas"]),
            is_new: is_same(&set.data["spec"]["template"], &spec["template"]),
            leaving: annotation(set, ANNOTATION_LEAVING).unwrap_or_default().to_owned(),
        };
        let pod = |pod: &Object| Pod {
            name: name_of(pod).to_owned(),
            uid: uid_of(pod).to_owned(),
            of: controller_of(pod).map(|owner| owner.uid.clone()).unwrap_or_default(),
            state: state_of(pod),
            is_ready: readiness_of(pod, 0, scene.now) != Readiness::Unready,
        };
        let (left, all) = (Left::unpack(scene.chance), Left::of(&system.size));
        let chosen = |left: Left| (left.deletes, left.flaps, left.exits, left.orphans);
        Truth {
            desired: number(&spec["replicas"]),
            generation: asked.and_then(|asked| asked.metadata.generation).unwrap_or(0),
            is_changed: spec["template"]["spec"]["containers"][0]["image"] == "two",
            said: Said {
                generation: status["observedGeneration"].as_i64().unwrap_or(0),
                replicas,
                // A ReplicaSet has one template.
                updated: status["updatedReplicas"].as_u64().unwrap_or(match system.size.alone {
                    1 => replicas,
                    _ => 0,
                }),
                available: number(&status["availableReplicas"]),
            },
            sets: cluster.list(&REPLICA_SET).iter().map(set).collect(),
            pods: cluster.list(&POD).iter().map(pod).collect(),
            is_disturbed: chosen(left) != chosen(all),
        }
    }

    /// How many pods are ready and stay.
    pub(super) fn ready(&self) -> usize {
        self.pods.iter().filter(|pod| pod.is_ready_to_stay()).count()
    }

    /// What `kubectl rollout status` takes for the end.
    pub(super) fn is_said_to_be_done(&self) -> bool {
        let Said { generation, replicas, updated, available } = self.said;
        generation == self.generation && [replicas, updated, available] == [self.desired; 3]
    }

    /// Whether the sizes are those of the end.
    pub(super) fn is_sized(&self) -> bool {
        let is_right = |set: &Set| set.size == if set.is_new { self.desired } else { 0 };
        self.sets.iter().any(|set| set.is_new) && self.sets.iter().all(is_right)
    }

    /// Whether all is as people want it, and said to be.
    pub(super) fn is_done(&self, _: &Workloads) -> bool {
        let new = self.sets.iter().find(|set| set.is_new);
        let is_right =
            |pod: &Pod| pod.is_ready_to_stay() && new.is_some_and(|new| new.uid == pod.of);
        let is_named = self.sets.iter().any(|set| !set.leaving.is_empty());
        self.is_sized()
            && !is_named
            && self.pods.len() as u64 == self.desired
            && self.pods.iter().all(is_right)
            && self.is_said_to_be_done()
    }

    pub(super) fn show(&self) -> Vec<(&'static str, String)> {
        let set = |set: &Set| {
            let Set { uid, size, is_new, leaving } = set;
            let leaving = if leaving.is_empty() { String::new() } else { format!(" -{leaving}") };
            format!("{uid}={size}{}{leaving}", if *is_new { "*" } else { "" })
        };
        let pod = |pod: &Pod| {
            let ready = if pod.is_ready { " ready" } else { "" };
            format!("{} of {}{ready} {:?}", pod.name, pod.of, pod.state)
        };
        let sets: Vec<String> = self.sets.iter().map(set).collect();
        let pods: Vec<String> = self.pods.iter().map(pod).collect();
        vec![
            ("asked", format!("{} of generation {}", self.desired, self.generation)),
            ("said", format!("{:?}", self.said)),
            ("sets", sets.join(", ")),
            ("pods", pods.join(", ")),
        ]
    }
}
