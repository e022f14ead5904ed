//! Pods on cluster a that no syncer made: those of a maker, such as a ReplicaSet, and those of a person in a
//! namespace that is not placed.
//!
//! A maker sees once which epoch may run, and creates one pod of it at any time after that, however late. A
//! person had a namespace of the name of the grant, with a pod, before the syncer made its own: it is deleted,
//! and the person makes the pod once more.

use super::machine::Machine;
use super::pods::pod;
use super::promises::promise;
use super::truth::{self, Truth};
use super::{
    DELETE_POD_UNPLACED, END_UNPLACED, MAKE_POD_OF_EPOCH, MAKE_POD_UNPLACED, MAKER_SEES, Namespaces,
};
use crate::kinds::{NAMESPACE, POD};
use crate::syncer::marks::{FINALIZER_PROCESS, LABEL_GRANT};
use interlock_api::names::{ANNOTATION_EPOCH, ANNOTATION_GRANT};
use interlock_kernel::Name;
use interlock_kernel::metadata::{annotation, is_deleting, uid_of};
use interlock_world::{Chance, Move, Promise, Scene, Servers};
use serde_json::json;

/// The pod of the maker, and that of the person.
pub(super) const MADE: &str = "made";
pub(super) const BARE: &str = "bare";

/// The maker has created its pod. What is remembered here takes the places of what happens in sizes with ends,
/// which have no makers and no persons.
const CREATED: Chance = 1 << 8;
/// The person has made a pod once more.
const MADE_ONCE_MORE: Chance = 1 << 9;
/// Where it is kept which epoch the maker has seen.
const SEEN_PLACE: u32 = 10;
const SEEN: Chance = 0x7 << SEEN_PLACE;

/// What comes in time.
pub(super) fn next(
    system: &Namespaces,
    scene: &Scene<'_, Namespaces>,
    moves: &mut Vec<Move<Machine>>,
) {
    let grant = system.grant_name(0);
    if system.makers {
        maker(system, scene, &grant, moves);
    }
    if system.unplaced {
        person(scene, &grant, moves);
    }
}

fn maker(
    system: &Namespaces,
    scene: &Scene<'_, Namespaces>,
    grant: &str,
    moves: &mut Vec<Move<Machine>>,
) {
    let seen = (scene.chance & SEEN) >> SEEN_PLACE;
    let permitted = truth::read(system, scene).clusters[0].permitted;
    if let (0, Ok(epoch @ 1..=7)) = (seen, u32::try_from(permitted)) {
        let chance = scene.chance | epoch << SEEN_PLACE;
        moves.push(Move { chance, ..scene.at_hub(MAKER_SEES, scene.contents[0]) });
    }
    let home = scene.cluster(0).get(&NAMESPACE, &Name::cluster_wide(grant));
    if seen == 0 || scene.chance & CREATED != 0 || home.is_none() {
        return;
    }
    let mut made = pod("made-by-a-maker");
    made["metadata"] = json!({
        "labels": {LABEL_GRANT: grant}, "annotations": {ANNOTATION_EPOCH: seen.to_string()},
        "finalizers": [FINALIZER_PROCESS],
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "maker",
            "uid": "maker", "controller": true}],
    });
    let here = scene.servers.put(scene.contents[1], &POD, &Name::within(grant, MADE), made);
    moves.push(at_cluster(scene, MAKE_POD_OF_EPOCH, here, CREATED));
}

fn person(scene: &Scene<'_, Namespaces>, grant: &str, moves: &mut Vec<Move<Machine>>) {
    let (servers, here) = (scene.servers, scene.contents[1]);
    let (home, bare) = (Name::cluster_wide(grant), Name::within(grant, BARE));
    let Some(found) = scene.cluster(0).get(&NAMESPACE, &home) else { return };
    let is_placed = annotation(&found, ANNOTATION_GRANT).is_some();
    match scene.cluster(0).get(&POD, &bare) {
        Some(pod) if !is_placed && !is_deleting(&pod) => {
            let removed = servers.remove(here, &POD, &bare);
            moves.push(at_cluster(scene, DELETE_POD_UNPLACED, removed, 0));
        }
        None if !is_placed => {
            let removed = servers.remove(here, &NAMESPACE, &home);
            moves.push(at_cluster(scene, END_UNPLACED, removed, 0));
        }
        None if scene.chance & MADE_ONCE_MORE == 0 => {
            let made = servers.put(here, &POD, &bare, pod("a-person's"));
            moves.push(at_cluster(scene, MAKE_POD_UNPLACED, made, MADE_ONCE_MORE));
        }
        Some(_) | None => {}
    }
}

fn at_cluster(
    scene: &Scene<'_, Namespaces>,
    name: usize,
    content: u32,
    chance: Chance,
) -> Move<Machine> {
    let mut found = scene.at_hub(name, scene.contents[0]);
    found.servers[1] = content;
    found.chance |= chance;
    found
}

/// Cluster a with the namespace and the pod of a person.
pub(super) fn before(system: &Namespaces, servers: &Servers, cluster: u32) -> u32 {
    let grant = system.grant_name(0);
    let cluster = servers.put(cluster, &NAMESPACE, &Name::cluster_wide(&grant), json!({}));
    servers.put(cluster, &POD, &Name::within(&grant, BARE), pod("a-person's"))
}

/// Whether a process on cluster a runs in another epoch than that of its pod.
pub(super) fn runs_in_another_epoch(
    system: &Namespaces,
    scene: &Scene<'_, Namespaces>,
    machine: &Machine,
) -> bool {
    if !system.makers {
        return false;
    }
    let pods = scene.cluster(0).list(&POD);
    let epoch_of = |uid: &str| {
        let pod = pods.iter().find(|pod| uid_of(pod) == uid)?;
        annotation(pod, ANNOTATION_EPOCH)?.parse::<i64>().ok()
    };
    let mut living = machine.processes.epochs();
    living.any(|(pod, epoch)| epoch_of(pod).is_some_and(|of| of != epoch))
}

pub(super) fn promises(system: &Namespaces) -> Vec<Promise<Namespaces>> {
    let own = promise(
        "OwnEpoch",
        "a pod runs in the epoch in which it was made, and in no other",
        |_, truth| truth.each().all(|truth| !truth.runs_in_another_epoch),
    );
    system.makers.then_some(own).into_iter().collect()
}

pub(super) fn reachable(system: &Namespaces) -> Vec<Promise<Namespaces>> {
    let late = |_: &Namespaces, truth: &Truth| truth.has_late_pod;
    let runs = |_: &Namespaces, truth: &Truth| truth.runs_unplaced;
    let late = promise(
        "LatePod",
        "a maker creates a pod of an epoch that was closed, in a later epoch that may run",
        late,
    );
    let runs = promise("RunsUnplaced", "a pod of a namespace that is not placed runs", runs);
    let late = (system.makers && system.moves > 1).then_some(late);
    late.into_iter().chain(system.unplaced.then_some(runs)).collect()
}

/// Whether a pod of another epoch is on cluster a while an epoch may run.
pub(super) fn has_late_pod(system: &Namespaces, scene: &Scene<'_, Namespaces>, epoch: i64) -> bool {
    let made = Name::within(&system.grant_name(0), MADE);
    let pod = system.makers.then(|| scene.cluster(0).get(&POD, &made)).flatten();
    let of = pod.and_then(|pod| annotation(&pod, ANNOTATION_EPOCH)?.parse::<i64>().ok());
    epoch > 0 && of.is_some_and(|of| of < epoch)
}
