//! Stands in for the volume controllers of a cluster: it binds claims, takes and brings snapshots,
//! and deletes volumes, each in one step and in any order. The volume controllers themselves have a
//! world of their own.

use super::machine::Machine;
use super::{BEGIN_SNAPSHOT, BIND_CLAIM, BRING_SNAPSHOT, DELETE_VOLUME, Namespaces, TAKE_SNAPSHOT};
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT, SOURCE, VOLUME};
use interlock_api::names::ANNOTATION_SYNC;
use interlock_kernel::metadata::{is_deleting, uid_of};
use interlock_kernel::{Name, Object};
use interlock_world::{Move, Scene};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// One cluster, as its volume controllers see it.
struct Storage<'a> {
    scene: &'a Scene<'a, Namespaces>,
    cluster: usize,
    is_slow: bool,
}

/// What the volume controllers of a cluster can do now.
pub(super) fn next(
    system: &Namespaces,
    scene: &Scene<'_, Namespaces>,
    cluster: usize,
    moves: &mut Vec<Move<Machine>>,
) {
    if scene.machines[cluster].is_off {
        return;
    }
    let storage = Storage { scene, cluster, is_slow: system.slow == 1 };
    storage.bind_claims(moves);
    storage.delete_volumes(moves);
    if system.makes_snapshots() {
        storage.take_snapshots(moves);
    }
    storage.bring_snapshots(moves);
}

impl Storage<'_> {
    fn server(&self) -> u32 {
        self.scene.contents[1 + self.cluster]
    }

    fn machine(&self) -> &Machine {
        &self.scene.machines[self.cluster]
    }

    fn done(&self, name: usize, server: u32, machine: Machine) -> Move<Machine> {
        let mut servers = self.scene.contents;
        servers[1 + self.cluster] = server;
        let mut machines = [None, None];
        machines[self.cluster] = Some(machine);
        Move { name, servers, machines, chance: self.scene.chance, restarts: None }
    }

    fn all(&self, kind: &interlock_kernel::Kind) -> Vec<Object> {
        self.scene.cluster(self.cluster).list(kind)
    }

    fn bind_claims(&self, moves: &mut Vec<Move<Machine>>) {
        let objects = self.scene.cluster(self.cluster);
        for claim in self.all(&CLAIM) {
            let is_terminating = is_deleting(&claim);
            if claim.data["status"]["phase"] == "Bound" || is_terminating {
                continue;
            }
            let namespace = claim.metadata.namespace.clone().unwrap_or_default();
            let content = match claim.data["spec"]["dataSourceRef"]["name"].as_str() {
                None => Some(BTreeSet::new()),
                Some(from) => {
                    let from = objects.get(&DESTINATION, &Name::within(&namespace, from));
                    let is_done = |it: &Object| it.data["status"]["lastManualSync"].is_string();
                    let from = from.filter(is_done);
                    from.and_then(|from| self.machine().disks.get(uid_of(&from)).cloned())
                }
            };
            let Some(content) = content else { continue };
            let handle = format!("pvc-{}", uid_of(&claim));
            let mut machine = self.machine().clone();
            machine.disks.insert(handle.clone(), content);
            let volume = json!({"spec": {
                "csi": {"driver": "local.interlock.dev", "volumeHandle": handle},
                "persistentVolumeReclaimPolicy": "Delete",
                "claimRef": {"namespace": namespace, "name": claim.metadata.name,
                    "uid": uid_of(&claim)},
            }});
            let servers = self.scene.servers;
            let server = servers.put(self.server(), &VOLUME, &Name::cluster_wide(&handle), volume);
            let bound = json!({"spec": {"volumeName": handle}, "status": {"phase": "Bound"}});
            let server = servers.change(server, &CLAIM, &Name::of(&claim), &bound);
            moves.push(self.done(BIND_CLAIM, server, machine));
        }
    }

    fn delete_volumes(&self, moves: &mut Vec<Move<Machine>>) {
        let claims = self.all(&CLAIM);
        for volume in self.all(&VOLUME) {
            let of = &volume.data["spec"]["claimRef"]["uid"];
            let is_kept = volume.data["spec"]["persistentVolumeReclaimPolicy"] != "Delete";
            if is_kept || claims.iter().any(|claim| *of == uid_of(claim)) {
                continue;
            }
            let mut machine = self.machine().clone();
            machine.disks.remove(volume.metadata.name.as_deref().unwrap_or_default());
            let server = self.scene.servers.remove(self.server(), &VOLUME, &Name::of(&volume));
            moves.push(self.done(DELETE_VOLUME, server, machine));
        }
    }

    fn take_snapshots(&self, moves: &mut Vec<Move<Machine>>) {
        let objects = self.scene.cluster(self.cluster);
        for source in self.all(&SOURCE).into_iter().filter(is_due) {
            let namespace = source.metadata.namespace.clone().unwrap_or_default();
            let of = source.data["spec"]["sourcePVC"].as_str().unwrap_or_default();
            let claim = objects.part(&CLAIM, &Name::within(&namespace, of), "spec");
            let volume = claim["volumeName"].as_str().unwrap_or_default();
            let Some(mut content) = self.machine().disks.get(volume).cloned() else { continue };
            // Whoever still runs may write once more: such a snapshot does not have all of it.
            let (machine, running) = (self.machine(), self.machine().processes.running(&namespace));
            content
                .retain(|epoch| !running.contains(epoch) || !machine.has_mounted(*epoch, volume));
            if self.is_slow {
                let under_way = under_way(uid_of(&source));
                match self.machine().disks.get(&under_way).cloned() {
                    None => {
                        moves.push(self.begin_snapshot(&source, content));
                        continue;
                    }
                    Some(begun) => content = begun,
                }
            }
            let trigger = &source.data["spec"]["trigger"]["manual"];
            let tag = trigger.as_str().unwrap_or_default().to_lowercase();
            let name = Name::within(&namespace, &format!("snapshot-{of}-{tag}"));
            let made =
                json!({"status": {"readyToUse": true, "creationTime": "1970-01-12T13:46:40Z"}});
            let servers = self.scene.servers;
            let server = servers.put(self.server(), &SNAPSHOT, &name, made);
            let uid = servers.uid(server, &SNAPSHOT, &name);
            let mut machine = self.machine().clone();
            machine.disks.remove(&under_way(uid_of(&source)));
            let files = content.len().to_string();
            machine.disks.insert(format!("snapshot-{uid}"), content);
            let done = json!({"metadata": {"annotations": {ANNOTATION_SYNC: null}},
                "status": {"lastManualSync": trigger, "external": {"snapshot": &*name.name, "snapshotUID": uid, "digest": "d",
                    "files": files, "bytes": "100"}}});
            let server = servers.change(server, &SOURCE, &Name::of(&source), &done);
            moves.push(self.done(TAKE_SNAPSHOT, server, machine));
        }
    }

    /// A snapshot takes its time: it has what was there when it began, and its end confirms whatever
    /// is asked for then, as that of VolSync does.
    fn begin_snapshot(&self, source: &Object, content: BTreeSet<i64>) -> Move<Machine> {
        let mut machine = self.machine().clone();
        machine.disks.insert(under_way(uid_of(source)), content);
        let begun = json!({"metadata": {"annotations": {ANNOTATION_SYNC: "begun"}}});
        let servers = self.scene.servers;
        let server = servers.change(self.server(), &SOURCE, &Name::of(source), &begun);
        self.done(BEGIN_SNAPSHOT, server, machine)
    }

    fn bring_snapshots(&self, moves: &mut Vec<Move<Machine>>) {
        for destination in self.all(&DESTINATION).into_iter().filter(is_due) {
            let parameters = &destination.data["spec"]["external"]["parameters"];
            let from = usize::from(parameters["cluster"] == "uid-b");
            let snapshot = parameters["snapshot"].as_str().unwrap_or_default();
            let Some(content) = self.scene.machines[from].disks.get(snapshot).cloned() else {
                continue;
            };
            let mut machine = self.machine().clone();
            machine.disks.insert(uid_of(&destination).to_owned(), content);
            let trigger: &Value = &destination.data["spec"]["trigger"]["manual"];
            let done = json!({"status": {"lastManualSync": trigger}});
            let name = Name::of(&destination);
            let server = self.scene.servers.change(self.server(), &DESTINATION, &name, &done);
            moves.push(self.done(BRING_SNAPSHOT, server, machine));
        }
    }
}

/// What a snapshot has that is under way.
pub(super) fn under_way(source_uid: &str) -> String {
    format!("under-way-{source_uid}")
}

/// Whether somebody asked for something that was not done yet.
fn is_due(object: &Object) -> bool {
    object.data["spec"]["trigger"]["manual"] != object.data["status"]["lastManualSync"]
}
