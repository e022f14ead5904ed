//! What people do: they move the namespace, delete it or a cluster, strip finalizers, give up copies,
//! and declare an owner gone whose power was lost.

use super::machine::Machine;
use super::processes::start;
use super::start::with_claim;
use super::truth::{self, Life};
use super::{
    ADD_CLAIM, CLAIM_NAMES, DECLARE_GONE, DELETE_CLUSTER, DELETE_NAMESPACE, FALL_SILENT,
    FORGET_COPIES, MAKE_NAMESPACE_AGAIN, MOVE, Namespaces, POWER_OFF, POWER_ON, REGISTER_CLUSTER,
    SHUT_DOWN, STRIP_CLUSTER, STRIP_NAMESPACE, mistakes, namespace,
};
use crate::kinds::{CLAIM, FORCE_RELEASE, GRANT, NAMESPACE, POD, WORKLOAD_CLUSTER};
use interlock_api::names::{ANNOTATION_CLUSTER, ANNOTATION_FORGET_COPIES};
use interlock_kernel::{Kind, Name};
use interlock_world::{CLUSTERS, Chance, Move, Scene};
use serde_json::{Value, json};

/// How often people may still move the namespace: the lowest bits of what is left to happen.
pub(super) fn moves_left(chance: Chance) -> u32 {
    chance & 0x7
}

/// People made another pod of the name of the first.
pub(super) const MADE_POD_AGAIN: Chance = 1 << 3;
/// People declared a cluster gone.
const FORCED: Chance = 1 << 4;
/// Power was lost.
const LOST_POWER: Chance = 1 << 5;
/// The hub hears no more of cluster a.
const FELL_SILENT: Chance = 1 << 6;
/// The namespace was made again under its name.
pub(super) const MADE_AGAIN: Chance = 1 << 7;
/// People stripped the finalizers of the namespace.
pub(super) const STRIPPED_NAMESPACE: Chance = 1 << 8;
/// A second cluster came under the name of the first.
pub(super) const REPLACED: Chance = 1 << 9;

/// People added the second claim.
pub(super) const ADDED: Chance = 1 << 14;
/// A process ended by itself.
pub(super) const EXITED: Chance = 1 << 15;

/// People stripped the finalizers of a cluster.
pub(super) fn stripped_cluster(c: usize) -> Chance {
    1 << (10 + c)
}

/// People asked for what a cluster has of the namespace to be forgotten.
pub(super) fn forgotten(c: usize) -> Chance {
    1 << (12 + c)
}

/// What people can do now.
pub(super) struct People<'a> {
    pub(super) system: &'a Namespaces,
    pub(super) scene: &'a Scene<'a, Namespaces>,
}

type Moves = Vec<Move<Machine>>;

impl People<'_> {
    pub(super) fn next(&self, moves: &mut Moves) {
        let system = self.system;
        self.move_it(moves);
        if system.claims > 1 {
            self.add_claim(moves);
        }
        if system.silent {
            self.fall_silent(moves);
        }
        if system.force {
            self.power(moves);
        }
        if system.has_ends() {
            self.end_namespace(moves);
            (0..CLUSTERS).for_each(|c| self.end_cluster(c, moves));
        }
    }

    fn chance(&self, bit: Chance) -> bool {
        self.scene.chance & bit != 0
    }

    /// The scene as it is.
    fn unchanged(&self, name: usize) -> Move<Machine> {
        self.scene.at_hub(name, self.scene.contents[0])
    }

    /// Another hub, and what is left to happen after that.
    fn at_hub(&self, name: usize, hub: u32, chance: Chance) -> Move<Machine> {
        Move { chance: self.scene.chance | chance, ..self.scene.at_hub(name, hub) }
    }

    fn change(&self, kind: &Kind, name: &Name, patch: &Value) -> u32 {
        self.scene.servers.change(self.scene.contents[0], kind, name, patch)
    }

    fn move_it(&self, moves: &mut Moves) {
        let truth = truth::read(self.system, self.scene);
        if moves_left(self.scene.chance) == 0 || truth.last().ends.namespace != Life::There {
            return;
        }
        let to = if truth.last().desired == Some(0) { "b" } else { "a" };
        let patch = json!({"metadata": {"annotations": {ANNOTATION_CLUSTER: to}}});
        let mut found = self.at_hub(MOVE, self.change(&NAMESPACE, &namespace(), &patch), 0);
        found.chance -= 1;
        moves.push(found);
    }

    /// The second claim comes when the first one has been granted, or later.
    fn add_claim(&self, moves: &mut Moves) {
        let truth = truth::read(self.system, self.scene);
        if self.chance(ADDED) || !truth.is_held() {
            return;
        }
        let Scene { servers, contents: [hub, ..], .. } = self.scene;
        moves.push(self.at_hub(ADD_CLAIM, with_claim(servers, *hub, CLAIM_NAMES[1]), ADDED));
    }

    fn fall_silent(&self, moves: &mut Moves) {
        if self.chance(FELL_SILENT) {
            return;
        }
        let fails = |kind: &str| {
            json!({"type": kind, "status": "False", "reason": "Silent", "message": "no heartbeat",
                "lastTransitionTime": start().to_string()})
        };
        let silent = json!({"status": {"conditions": [fails("Ready"), fails("Reachable")]}});
        let hub = self.change(&WORKLOAD_CLUSTER, &Name::cluster_wide("a"), &silent);
        moves.push(self.at_hub(FALL_SILENT, hub, FELL_SILENT));
    }

    /// Cluster a loses power once. People may then declare it gone, and power may return.
    fn power(&self, moves: &mut Moves) {
        let machine = &self.scene.machines[0];
        if !machine.is_off && !self.chance(LOST_POWER) {
            let mut found = self.unchanged(POWER_OFF);
            found.machines[0] = Some(machine.without_power());
            found.chance |= LOST_POWER;
            found.restarts = Some(0);
            moves.push(found);
        }
        if machine.is_off {
            let mut found = self.unchanged(POWER_ON);
            found.machines[0] = Some(machine.started_again());
            found.restarts = Some(0);
            moves.push(found);
        } else if !mistakes::is_forced_while_running(self.system.bends) {
            return;
        }
        let grant = Name::cluster_wide(&self.system.grant_name(0));
        let status = self.scene.hub().part(&GRANT, &grant, "status");
        let is_held = ["Granted", "Revoking"].iter().any(|phase| status["phase"] == *phase);
        if !self.chance(FORCED) && is_held && status["owner"]["name"] == "a" {
            let force = self.force_release(&status["epoch"]);
            let name = Name::cluster_wide("force");
            let hub = self.scene.servers.put(self.scene.contents[0], &FORCE_RELEASE, &name, force);
            moves.push(self.at_hub(DECLARE_GONE, hub, FORCED));
        }
    }

    fn force_release(&self, epoch: &Value) -> Value {
        let name = self.system.grant_name(0);
        json!({"metadata": {"uid": "uid-force"}, "spec": {
            "grant": {"name": name, "uid": format!("grant-{name}-0")},
            "owner": {"name": "a", "uid": "uid-a"}, "epoch": epoch,
            "attestation": "PoweredOff", "reason": "the rack burnt down", "requester": "kim"}})
    }

    /// The namespace is deleted, stripped, and made again under its name; the last one stays.
    fn end_namespace(&self, moves: &mut Moves) {
        let Scene { servers, contents: [hub, ..], .. } = self.scene;
        let system = self.system;
        match truth::life_of_namespace(system, self.scene, 0) {
            Life::There if system.deletes > 0 => {
                let hub = servers.remove(*hub, &NAMESPACE, &namespace());
                moves.push(self.at_hub(DELETE_NAMESPACE, hub, 0));
            }
            Life::Deleting if system.strip => {
                moves.push(self.at_hub(STRIP_NAMESPACE, self.stripped(), STRIPPED_NAMESPACE));
            }
            Life::Gone if system.deletes == 2 && !self.chance(MADE_AGAIN) => {
                let hub = system.make_namespace(servers, *hub, 1);
                moves.push(self.at_hub(MAKE_NAMESPACE_AGAIN, hub, MADE_AGAIN));
            }
            Life::NotYet | Life::There | Life::Deleting | Life::Gone => {}
        }
    }

    /// The hub without the finalizers of the namespace and of what is in it.
    fn stripped(&self) -> u32 {
        let bare = json!({"metadata": {"finalizers": null}});
        let mut hub = self.scene.contents[0];
        for kind in [POD, CLAIM] {
            for object in self.scene.hub().list(&kind) {
                hub = self.scene.servers.change(hub, &kind, &Name::of(&object), &bare);
            }
        }
        self.scene.servers.change(hub, &NAMESPACE, &namespace(), &bare)
    }

    /// A cluster is deleted, stripped, and shut down when it was let go.
    fn end_cluster(&self, c: usize, moves: &mut Moves) {
        let Scene { servers, contents: [hub, ..], .. } = self.scene;
        let system = self.system;
        let name = Name::cluster_wide(system.cluster_name(c));
        let life = truth::life_of_cluster(system, self.scene, c);
        match life {
            Life::There if c < system.retire => {
                let hub = servers.remove(*hub, &WORKLOAD_CLUSTER, &name);
                moves.push(self.at_hub(DELETE_CLUSTER, hub, 0));
            }
            Life::Deleting if system.strip => {
                let bare = json!({"metadata": {"finalizers": null}});
                let hub = self.change(&WORKLOAD_CLUSTER, &name, &bare);
                moves.push(self.at_hub(STRIP_CLUSTER, hub, stripped_cluster(c)));
            }
            Life::NotYet if truth::life_of_cluster(system, self.scene, 0) == Life::Gone => {
                let hub = system.register(servers, *hub, c);
                moves.push(self.at_hub(REGISTER_CLUSTER, hub, REPLACED));
            }
            // Whoever sees that it was let go takes it away, whatever it still has.
            Life::Gone if !self.chance(stripped_cluster(c)) && !self.scene.machines[c].is_off => {
                let mut found = self.unchanged(SHUT_DOWN);
                found.servers[1 + c] = servers.empty();
                found.machines[c] = Some(Machine::default().without_power());
                found.restarts = Some(c);
                moves.push(found);
            }
            Life::NotYet | Life::There | Life::Deleting | Life::Gone => {}
        }
        if system.forget && matches!(life, Life::There | Life::Deleting) {
            self.forget(c, &name, moves);
        }
    }

    fn forget(&self, c: usize, cluster: &Name, moves: &mut Moves) {
        let is_asked = (0..CLUSTERS).any(|c| self.chance(forgotten(c)));
        let truth = truth::read(self.system, self.scene);
        let mut copies = truth.grant.iter().flat_map(|grant| &grant.copies);
        if is_asked || !copies.any(|(place, ..)| *place == c) {
            return;
        }
        let grant = Name::cluster_wide(&self.system.grant_name(0));
        let uid = self.scene.servers.uid(self.scene.contents[0], &GRANT, &grant);
        let patch = json!({"metadata": {"annotations": {ANNOTATION_FORGET_COPIES: uid}}});
        let hub = self.change(&WORKLOAD_CLUSTER, cluster, &patch);
        moves.push(self.at_hub(FORGET_COPIES, hub, forgotten(c)));
    }
}
