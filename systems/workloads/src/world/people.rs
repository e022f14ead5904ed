//! What people do, and what happens to pods.

use super::Workloads;
use super::size::Size;
use super::start::{deployment, lone, lone_set, ready, template};
use crate::kinds::{DEPLOYMENT, POD, REPLICA_SET};
use crate::owned::controller_of;
use crate::pod::{Readiness, State, readiness_of, state_of};
use crate::template::FINALIZER_PROCESS;
use interlock_kernel::metadata::{has_finalizer, is_deleting, take_finalizer_off, uid_of};
use interlock_kernel::{Name, Object};
use interlock_world::{CLUSTERS, Chance, Move, Scene};
use serde_json::{Value, json};

/// What may still happen, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) changes: u32,
    pub(super) undos: u32,
    pub(super) scales: u32,
    pub(super) deletes: u32,
    pub(super) flaps: u32,
    pub(super) exits: u32,
    pub(super) orphans: u32,
}

impl Left {
    pub(super) fn of(size: &Size) -> Left {
        Left {
            changes: size.changes as u32,
            undos: size.undos as u32,
            scales: size.scales as u32,
            deletes: size.deletes as u32,
            flaps: size.flaps as u32,
            exits: size.exits as u32,
            orphans: size.orphans as u32,
        }
    }

    pub(super) fn pack(self) -> Chance {
        let Left { changes, undos, scales, deletes, flaps, exits, orphans } = self;
        changes | undos << 2 | scales << 4 | deletes << 6 | flaps << 8 | exits << 10 | orphans << 12
    }

    pub(super) fn unpack(chance: Chance) -> Left {
        let at = |place: u32| chance >> place & 3;
        Left {
            changes: at(0),
            undos: at(2),
            scales: at(4),
            deletes: at(6),
            flaps: at(8),
            exits: at(10),
            orphans: at(12),
        }
    }
}

/// What happens, who does it, and whether it must happen in the end.
pub(super) const MOVES: [(&str, &str, bool); 10] = [
    ("BecomeReady", "runtime", true),
    ("Gone", "runtime", true),
    ("Collect", "collector", true),
    ("ChangeTemplate", "people", false),
    ("Undo", "people", false),
    ("Scale", "people", false),
    ("DeletePod", "people", false),
    ("BecomeUnready", "pods", false),
    ("Fail", "pods", false),
    ("Orphan", "people", false),
];
const BECOME_READY: usize = 0;
const GONE: usize = 1;
const COLLECT: usize = 2;
const CHANGE_TEMPLATE: usize = 3;
const UNDO: usize = 4;
const SCALE: usize = 5;
const DELETE_POD: usize = 6;
const BECOME_UNREADY: usize = 7;
const FAIL: usize = 8;
const ORPHAN: usize = 9;

/// What can happen now.
pub(super) fn next(system: &Workloads, scene: &Scene<'_, Workloads>) -> Vec<Move<()>> {
    let around = Around { system, scene, left: Left::unpack(scene.chance) };
    let mut next = around.asked();
    for pod in scene.cluster(0).list(&POD) {
        next.extend(around.of_pod(&pod));
    }
    next.extend(around.orphaned());
    next
}

struct Around<'a, 'b> {
    system: &'a Workloads,
    scene: &'a Scene<'b, Workloads>,
    left: Left,
}

impl Around<'_, '_> {
    fn to(&self, name: usize, cluster: u32, left: Left) -> Move<()> {
        let mut servers = self.scene.contents;
        servers[1] = cluster;
        let machines = [None; CLUSTERS];
        Move { name, servers, machines, chance: left.pack(), restarts: None }
    }

    fn cluster(&self) -> u32 {
        self.scene.contents[1]
    }

    /// What people ask for differently.
    fn asked(&self) -> Vec<Move<()>> {
        let (left, size) = (self.left, &self.system.size);
        let (kind, name) = match size.alone {
            1 => (REPLICA_SET, lone_set()),
            _ => (DEPLOYMENT, deployment()),
        };
        let Some(asked) = self.scene.cluster(0).get(&kind, &name) else { return Vec::new() };
        let generation = asked.metadata.generation.unwrap_or(0) + 1;
        let ask = |change: Value| {
            let patch = json!({"metadata": {"generation": generation}, "spec": change});
            self.scene.servers.change(self.cluster(), &kind, &name, &patch)
        };
        let mut next = Vec::new();
        let is_changed = asked.data["spec"]["template"] == template(true);
        if left.changes > 0 && !is_changed && size.alone == 0 {
            let left = Left { changes: left.changes - 1, ..left };
            next.push(self.to(CHANGE_TEMPLATE, ask(json!({"template": template(true)})), left));
        }
        if left.undos > 0 && is_changed {
            let left = Left { undos: left.undos - 1, ..left };
            next.push(self.to(UNDO, ask(json!({"template": template(false)})), left));
        }
        if left.scales > 0 {
            let is_more = asked.data["spec"]["replicas"] == json!(size.desired);
            let replicas = size.desired + u64::from(is_more);
            let left = Left { scales: left.scales - 1, ..left };
            next.push(self.to(SCALE, ask(json!({"replicas": replicas})), left));
        }
        next
    }

    fn of_pod(&self, pod: &Object) -> Vec<Move<()>> {
        let (left, name) = (self.left, Name::of(pod));
        let servers = self.scene.servers;
        let change = |patch: &Value| servers.change(self.cluster(), &POD, &name, patch);
        let mut next = Vec::new();
        if is_deleting(pod) {
            if has_finalizer(pod, FINALIZER_PROCESS) {
                let patch = take_finalizer_off(pod, FINALIZER_PROCESS);
                next.push(self.to(GONE, change(&patch), left));
            }
            return next;
        }
        let is_active = state_of(pod) == State::Active;
        let is_ready = readiness_of(pod, 0, self.scene.now) != Readiness::Unready;
        if is_active && !is_ready {
            let patch = json!({"status": ready()});
            next.push(self.to(BECOME_READY, change(&patch), left));
        }
        if is_active && is_ready && left.flaps > 0 {
            let left = Left { flaps: left.flaps - 1, ..left };
            let patch = json!({"status": {"conditions": []}});
            next.push(self.to(BECOME_UNREADY, change(&patch), left));
        }
        if is_active && left.exits > 0 {
            let left = Left { exits: left.exits - 1, ..left };
            let patch = json!({"status": {"phase": "Failed", "conditions": []}});
            next.push(self.to(FAIL, change(&patch), left));
        }
        if left.deletes > 0 {
            let left = Left { deletes: left.deletes - 1, ..left };
            next.push(self.to(DELETE_POD, servers.remove(self.cluster(), &POD, &name), left));
        }
        if self.is_left_behind(pod) {
            next.push(self.to(COLLECT, servers.remove(self.cluster(), &POD, &name), left));
        }
        next
    }

    /// Whether the controller of a pod is gone for good.
    fn is_left_behind(&self, pod: &Object) -> bool {
        let sets = self.scene.cluster(0).list(&REPLICA_SET);
        let owner = controller_of(pod);
        owner.is_some_and(|owner| !sets.iter().any(|set| uid_of(set) == owner.uid))
    }

    /// The ReplicaSet is deleted without its pods and made again under its name, all at once.
    fn orphaned(&self) -> Option<Move<()>> {
        let (left, servers) = (self.left, self.scene.servers);
        if left.orphans == 0 || self.system.size.alone == 0 {
            return None;
        }
        let mut cluster = self.cluster();
        for pod in self.scene.cluster(0).list(&POD) {
            let patch = json!({"metadata": {"ownerReferences": null}});
            cluster = servers.change(cluster, &POD, &Name::of(&pod), &patch);
        }
        let cluster = servers.remove(cluster, &REPLICA_SET, &lone_set());
        let made = lone(self.system.size.desired);
        let cluster = servers.put(cluster, &REPLICA_SET, &lone_set(), made);
        Some(self.to(ORPHAN, cluster, Left { orphans: left.orphans - 1, ..left }))
    }
}
