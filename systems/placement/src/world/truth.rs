//! What is true of a namespace and its clusters, in the words of the promises.

use super::drains::{self, Drain};
use super::labels::Labels;
use super::machine::Machine;
use super::makers;
use super::people::{
    MADE_AGAIN, REPLACED, STRIPPED_NAMESPACE, forgotten, moves_left, stripped_cluster,
};
use super::pods::Pods;
use super::{Namespaces, POD_NAMES, claim_number, namespace};
use crate::kinds::{CLAIM, FORCE_RELEASE, GRANT, NAMESPACE, POD, WORKLOAD_CLUSTER};
use crate::record::{GrantRecord, syncers};
use interlock_api::names::{
    ANNOTATION_CLUSTER, ANNOTATION_EPOCH, ANNOTATION_GRANT, ANNOTATION_RAN, ANNOTATION_RELEASED,
    ANNOTATION_RUNNING, Permit,
};
use interlock_api::placement::condition::RUNNING;
use interlock_api::placement::{
    Claim, CopyState, Fill, ForceOutcome, GrantSpec, GrantStatus, Phase, Pin, Ref, RightsState,
    Snapshot,
};
use interlock_kernel::metadata::{annotation as annotated, is_deleting, uid_of};
use interlock_kernel::{Name, Object, conditions, read_part};
use interlock_world::{CLUSTERS, Scene};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The whole of it, for one namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    /// The cluster that people want it on.
    pub(super) desired: Option<usize>,
    /// Whether people may still change that.
    pub(super) may_change: bool,
    pub(super) grant: Option<Grant>,
    pub(super) clusters: [Cluster; CLUSTERS],
    /// What the hub says of the pod.
    pub(super) pod_phase: String,
    /// A process runs in another epoch than that in which its pod was made.
    pub(super) runs_in_another_epoch: bool,
    /// A pod was made in an epoch that was closed, and a later one may run where it is.
    pub(super) has_late_pod: bool,
    /// A pod runs in a namespace that is not placed.
    pub(super) runs_unplaced: bool,
    /// Where people delete the pod: what there is of it.
    pub(super) pods: Pods,
    /// The forced releases, with owner, epoch and outcome.
    pub(super) forces: Vec<Force>,
    /// The epochs that wrote to the claim, and whose writes were not declared lost.
    pub(super) must: Writes,
    /// What is in the snapshots, or in the volume left in place, that the grant names.
    pub(super) pinned: Option<Writes>,
    /// The epochs whose writes were declared lost, by a forced release.
    pub(super) lost: Writes,
    /// The last epoch that ran for as long as old copies are kept.
    pub(super) settled: i64,
    /// How many clusters the labels of the namespace and of its claims name, at most.
    pub(super) labelled: [usize; 2],
    /// Whether the labels say what the grant says.
    pub(super) are_labels_right: bool,
    /// Whether an object at the hub has the finalizer of a cluster that is not on the namespace.
    pub(super) is_held_unseen: bool,
    /// Who needs a cluster empty.
    pub(super) drains: [Drain; CLUSTERS],
    /// What is deleted.
    pub(super) ends: Ends,
    /// The same of a namespace that is made again under its name.
    pub(super) again: Option<Box<Truth>>,
}

/// How far an object at the hub is that people delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Life {
    NotYet,
    There,
    Deleting,
    Gone,
}

/// What is deleted, and what people did to that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Ends {
    pub(super) namespace: Life,
    pub(super) clusters: [Life; CLUSTERS],
    /// People stripped the finalizers of the namespace.
    pub(super) is_stripped: bool,
    /// People stripped the finalizers of a cluster.
    pub(super) stripped: [bool; CLUSTERS],
    /// People gave up what a cluster has of the namespace.
    pub(super) forgotten: [bool; CLUSTERS],
}

/// The epochs whose writes are in something, with the claim by its number.
pub(super) type Writes = BTreeSet<(i64, u8)>;

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Past {
    /// The epochs whose writes were declared lost, by a forced release.
    pub(super) lost: Writes,
    /// Every epoch, where the world is compared with its specification.
    pub(super) tenures: Vec<Tenure>,
    /// The highest epoch that each cluster ever closed, which it forgets with its copy.
    pub(super) closed: [i64; CLUSTERS],
    /// The last epoch that ran for as long as old copies are kept.
    pub(super) settled: i64,
    /// How often somebody needed a cluster empty.
    pub(super) asked: u32,
}

/// What became of one epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Tenure {
    pub(super) owner: usize,
    /// What it began with.
    pub(super) pin: Writes,
    pub(super) is_revoked: bool,
    /// Whether its owner had all data.
    pub(super) is_filled: bool,
    /// How it ended, and with what data for the next.
    pub(super) ending: Option<(Phase, Writes)>,
}

/// The epochs after a step.
pub(super) fn remember_tenures(past: &mut Past, after: &Truth) {
    for (closed, cluster) in past.closed.iter_mut().zip(&after.clusters) {
        *closed = cluster.released.max(*closed);
    }
    let (Some(grant), Some(owner)) = (&after.grant, after.owner()) else { return };
    let pin = after.pinned.clone().unwrap_or_default();
    let Ok(epoch) = usize::try_from(grant.epoch) else { return };
    if epoch > past.tenures.len() {
        let pin = pin.clone();
        let tenure = Tenure { owner, pin, is_revoked: false, is_filled: false, ending: None };
        past.tenures.push(tenure);
    }
    let Some(tenure) = epoch.checked_sub(1).and_then(|it| past.tenures.get_mut(it)) else { return };
    let here = &after.clusters[owner];
    let is_here = here.epoch == grant.epoch && here.released < grant.epoch;
    tenure.is_filled |= is_here && grant.is_filled;
    match grant.phase {
        Phase::Revoking => tenure.is_revoked = true,
        Phase::Released | Phase::Fenced if tenure.ending.is_none() => {
            tenure.ending = Some((grant.phase, pin));
        }
        _ => {}
    }
}

/// A fence gives up what the grant's snapshots do not have, and says so.
pub(super) fn remember(past: &Past, before: &Truth, after: &Truth) -> Past {
    let phase = |truth: &Truth| truth.grant.as_ref().map(|grant| grant.phase);
    let is_fence = phase(before) != Some(Phase::Fenced) && phase(after) == Some(Phase::Fenced);
    let mut past = past.clone();
    drains::remember(&mut past, before, after);
    past.settled = past.settled.max(before.settled);
    if is_fence {
        let kept = after.pinned.clone().unwrap_or_default();
        past.lost.extend(before.must.difference(&kept));
    }
    past
}

/// The grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Grant {
    pub(super) phase: Phase,
    pub(super) owner: Option<usize>,
    pub(super) target: Option<usize>,
    pub(super) epoch: i64,
    pub(super) copies: Vec<(usize, i64, CopyState)>,
    /// The clusters that have volumes which were left in place.
    pub(super) in_place: Vec<usize>,
    /// Whether every claim has its data at the owner.
    pub(super) is_filled: bool,
    /// The epochs that the cloud roles of the namespace are at, and whether they trust its owner.
    pub(super) rights: Vec<(i64, RightsState)>,
}

/// What one cluster noted, and what runs there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Cluster {
    pub(super) is_off: bool,
    /// Whether anything of the namespace is here.
    pub(super) is_here: bool,
    /// Whether something here was made from an object of another namespace of its name.
    pub(super) inherits: bool,
    /// The last epoch that arrived.
    pub(super) epoch: i64,
    /// The highest epoch that was closed.
    pub(super) released: i64,
    /// The epoch that may run in this boot of the machine.
    pub(super) permitted: i64,
    /// The last epoch that was ever permitted.
    pub(super) ran: i64,
    /// The epochs whose processes live, where the namespace is placed.
    pub(super) running: BTreeSet<i64>,
    /// A process lives where it is not.
    pub(super) runs_unplaced: bool,
    /// What is in the volumes that they write to; None: they have none.
    pub(super) volume: Option<Writes>,
    /// How often the machine has started.
    pub(super) boots: u8,
    /// Whether the runtime has a lock that it has given to no process.
    pub(super) has_lock_in_hand: bool,
    /// What is in the volume that each epoch wrote to.
    pub(super) written: BTreeMap<i64, Writes>,
    /// The volumes that something ran on, by name.
    pub(super) volumes: BTreeMap<String, Volume>,
}

/// A volume that something ran on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Volume {
    /// The last epoch that wrote to it.
    pub(super) epoch: i64,
    /// Whether it is alone in having what an epoch wrote.
    pub(super) is_alone: bool,
}

/// A forced release.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Force {
    pub(super) owner: Option<usize>,
    pub(super) epoch: i64,
    pub(super) outcome: ForceOutcome,
}

impl Truth {
    /// Of each namespace.
    pub(super) fn each(&self) -> impl Iterator<Item = &Truth> {
        [self].into_iter().chain(self.again.as_deref())
    }

    /// Of the namespace that comes last.
    pub(super) fn last(&self) -> &Truth {
        let is_there = |again: &&Truth| again.ends.namespace != Life::NotYet;
        self.again.as_deref().filter(is_there).unwrap_or(self)
    }

    /// Whether the grant names a cluster: it has the namespace, or data of it.
    pub(super) fn names(&self, cluster: usize) -> bool {
        self.grant.as_ref().is_some_and(|grant| {
            let is_held = grant.phase.is_held() && grant.owner == Some(cluster);
            is_held || grant.copies.iter().any(|(place, ..)| *place == cluster)
        })
    }

    pub(super) fn is_held(&self) -> bool {
        self.grant.as_ref().is_some_and(|grant| grant.phase.is_held())
    }

    pub(super) fn epoch(&self) -> i64 {
        self.grant.as_ref().map_or(0, |grant| grant.epoch)
    }

    pub(super) fn owner(&self) -> Option<usize> {
        self.grant.as_ref().and_then(|grant| grant.owner)
    }

    /// Whether it runs where people want it.
    pub(super) fn is_as_desired(&self) -> bool {
        self.runs_on(self.desired)
    }

    /// Whether it is granted to this cluster, all that it has runs there, and people are informed so.
    pub(super) fn runs_on(&self, cluster: Option<usize>) -> bool {
        let granted = self.grant.as_ref().filter(|grant| grant.phase == Phase::Granted);
        let Some(grant) = granted.filter(|grant| grant.owner == cluster) else { return false };
        cluster.is_some_and(|c| {
            let running = &self.clusters[c].running;
            let is_right = match self.pods.is_gone {
                true => running.is_empty(),
                false => running.iter().eq([&grant.epoch]) && self.pod_phase == "Running",
            };
            is_right && !self.pods.has_strays(c)
        })
    }
}

/// The cluster of a uid. Its name may be another's, too.
fn place_of(system: &Namespaces, found: &Ref) -> Option<usize> {
    (0..CLUSTERS).find(|c| system.cluster_uid(*c) == found.uid)
}

fn annotation(object: Option<&Object>, key: &str) -> String {
    let notes = object.and_then(|object| object.metadata.annotations.as_ref());
    notes.and_then(|notes| notes.get(key)).cloned().unwrap_or_default()
}

/// How far a namespace is, of those that have its name one after the other.
pub(super) fn life_of_namespace(
    system: &Namespaces,
    scene: &Scene<'_, Namespaces>,
    place: usize,
) -> Life {
    let is_again = scene.chance & MADE_AGAIN != 0;
    if !is_again && place == 1 {
        return Life::NotYet;
    }
    let found = scene.hub().get(&NAMESPACE, &namespace());
    let own = found
        .filter(|found| uid_of(found) == system.namespace_uid(place) && is_again == (place == 1));
    life_of(own.as_ref())
}

/// How far a cluster is.
pub(super) fn life_of_cluster(
    system: &Namespaces,
    scene: &Scene<'_, Namespaces>,
    c: usize,
) -> Life {
    let is_replaced = scene.chance & REPLACED != 0;
    if system.replace && c == 1 && !is_replaced {
        return Life::NotYet;
    }
    let name = Name::cluster_wide(system.cluster_name(c));
    let found = scene.hub().get(&WORKLOAD_CLUSTER, &name);
    let is_own = !system.replace || is_replaced == (c == 1);
    life_of(found.filter(|_| is_own).as_ref())
}

fn life_of(found: Option<&Object>) -> Life {
    match found.map(|found| is_deleting(found)) {
        None => Life::Gone,
        Some(true) => Life::Deleting,
        Some(false) => Life::There,
    }
}

pub(super) fn read(system: &Namespaces, scene: &Scene<'_, Namespaces>) -> Truth {
    let has_again = system.deletes == 2 && system.grant_name(0) != system.grant_name(1);
    let again = has_again.then(|| Box::new(of_namespace(system, scene, 1)));
    Truth { again, ..of_namespace(system, scene, 0) }
}

fn ends(system: &Namespaces, scene: &Scene<'_, Namespaces>, place: usize) -> Ends {
    let has = |bit: u32| scene.chance & bit != 0;
    Ends {
        namespace: life_of_namespace(system, scene, place),
        clusters: std::array::from_fn(|c| life_of_cluster(system, scene, c)),
        is_stripped: system.strip && place == 0 && has(STRIPPED_NAMESPACE),
        stripped: std::array::from_fn(|c| system.strip && has(stripped_cluster(c))),
        forgotten: std::array::from_fn(|c| system.forget && place == 0 && has(forgotten(c))),
    }
}

fn of_namespace(system: &Namespaces, scene: &Scene<'_, Namespaces>, place: usize) -> Truth {
    let hub = scene.hub();
    let ends = ends(system, scene, place);
    let is_there = matches!(ends.namespace, Life::There | Life::Deleting);
    let home = hub.get(&NAMESPACE, &namespace()).filter(|_| is_there);
    let wanted = annotation(home.as_ref(), ANNOTATION_CLUSTER);
    let is_wanted = |c: &usize| {
        system.cluster_name(*c) == wanted
            && !(system.replace && matches!(ends.clusters[*c], Life::NotYet | Life::Gone))
    };
    let force = |object: &Object| Force {
        owner: of_value(system, &object.data["spec"]["owner"]),
        epoch: object.data["spec"]["epoch"].as_i64().unwrap_or_default(),
        outcome: serde_json::from_value(object.data["status"]["outcome"].clone())
            .unwrap_or_default(),
    };
    let wrote = scene.machines.iter().flat_map(|machine| machine.mounted.keys().copied());
    let must = wrote.filter(|wrote| !scene.past.lost.contains(wrote)).collect();
    let found = hub.get(&GRANT, &Name::cluster_wide(&system.grant_name(place)));
    let pod = hub.part(&POD, &Name::within("shop", POD_NAMES[place]), "status");
    let settled = found.as_ref().filter(|grant| has_settled(grant, scene.now));
    let settled = settled.map_or(0, |grant| grant.data["status"]["epoch"].as_i64().unwrap_or(0));
    let labels = Labels::of(system, scene, home.as_ref());
    let clusters: [Cluster; CLUSTERS] = std::array::from_fn(|c| cluster(system, scene, place, c));
    Truth {
        lost: scene.past.lost.clone(),
        settled: settled.max(scene.past.settled),
        labelled: labels.counts(),
        are_labels_right: labels.are_right(found.as_ref()),
        desired: (0..CLUSTERS).find(is_wanted),
        may_change: moves_left(scene.chance) > 0,
        grant: found.as_ref().map(|found| grant(system, found)),
        pod_phase: pod["phase"].as_str().unwrap_or_default().to_owned(),
        runs_in_another_epoch: makers::runs_in_another_epoch(system, scene, &scene.machines[0]),
        has_late_pod: makers::has_late_pod(system, scene, clusters[0].permitted),
        runs_unplaced: clusters[0].runs_unplaced,
        pods: Pods::of(system, scene),
        clusters,
        forces: hub.list(&FORCE_RELEASE).iter().map(force).collect(),
        must,
        pinned: found.and_then(|grant| pinned(system, scene, &grant)),
        is_held_unseen: home.is_some_and(|home| is_held_unseen(scene, &home)),
        drains: drains::read(system, scene),
        ends,
        again: None,
    }
}

fn is_held_unseen(scene: &Scene<'_, Namespaces>, home: &Object) -> bool {
    let known: Vec<&str> = syncers(home).collect();
    let objects = [POD, CLAIM].map(|kind| scene.hub().list(&kind));
    let mut within = objects.iter().flatten();
    within.any(|object| syncers(object).any(|cluster| !known.contains(&cluster)))
}

fn of_value(system: &Namespaces, found: &serde_json::Value) -> Option<usize> {
    let found: Ref = serde_json::from_value(found.clone()).ok()?;
    place_of(system, &found)
}

fn grant(system: &Namespaces, object: &Object) -> Grant {
    let spec: GrantSpec = read_part(object, "spec").ok().flatten().unwrap_or_default();
    let status: GrantStatus = read_part(object, "status").ok().flatten().unwrap_or_default();
    let copies = status.copies.iter();
    let copy = |copy: &interlock_api::placement::DataCopy| {
        Some((place_of(system, &copy.cluster)?, copy.epoch, copy.state))
    };
    let in_place = |pin: &Pin| match &pin.snapshot {
        Snapshot::InPlace { cluster, .. } => place_of(system, cluster),
        Snapshot::VolumeSnapshot { .. } | Snapshot::Restic { .. } | Snapshot::Fresh {} => None,
    };
    let is_filled = |claim: &Claim| claim.fill == Fill::Filled;
    Grant {
        is_filled: system.is_refined && status.claims.iter().all(is_filled),
        in_place: status.pins.iter().filter_map(in_place).collect(),
        phase: status.phase,
        owner: status.owner.and_then(|owner| place_of(system, &owner)),
        target: spec.target.and_then(|target| place_of(system, &target)),
        epoch: status.epoch,
        rights: status.rights.iter().map(|role| (role.epoch, role.state)).collect(),
        copies: copies.filter_map(copy).collect(),
    }
}

/// What is in all that the grant names for its claims.
fn pinned(system: &Namespaces, scene: &Scene<'_, Namespaces>, grant: &Object) -> Option<Writes> {
    let status: GrantStatus = read_part(grant, "status").ok().flatten()?;
    let content = |pin: &Pin| {
        let (cluster, disk) = match &pin.snapshot {
            Snapshot::VolumeSnapshot { cluster, uid, .. } => (cluster, format!("snapshot-{uid}")),
            Snapshot::InPlace { cluster, volume } => (cluster, volume.clone()),
            Snapshot::Restic { .. } | Snapshot::Fresh {} => return None,
        };
        let machine = &scene.machines[place_of(system, cluster)?];
        machine
            .disks
            .contains_key(&disk)
            .then(|| machine.written_to(&disk, claim_number(&pin.claim)))
    };
    let pins: Vec<Writes> = status.pins.iter().filter_map(content).collect();
    (!pins.is_empty()).then(|| pins.into_iter().flatten().collect())
}

fn cluster(system: &Namespaces, scene: &Scene<'_, Namespaces>, place: usize, c: usize) -> Cluster {
    let name = system.grant_name(place);
    let here = scene.cluster(c).get(&NAMESPACE, &Name::cluster_wide(&name));
    let machine: &Machine = &scene.machines[c];
    let number = |key: &str| annotation(here.as_ref(), key).parse().unwrap_or(0);
    let permit = Permit::read(&annotation(here.as_ref(), ANNOTATION_RUNNING));
    let permit = permit.filter(|permit| permit.boot_id == super::boot_id(c, machine.boots));
    let mounted = machine.mounted.iter().filter(|_| system.is_refined);
    let lives = machine.processes.running(&name);
    // A namespace of somebody else is none of the grant's.
    let is_placed = here.as_ref().is_none_or(|here| annotated(here, ANNOTATION_GRANT).is_some());
    let runs_unplaced = system.unplaced && !is_placed && !lives.is_empty();
    let running = if is_placed { lives } else { BTreeSet::new() };
    let volumes = machine.mounted.iter().filter_map(|((epoch, claim), volume)| {
        machine.disks.get(volume).filter(|_| place == 0)?;
        let mut content = machine.written_to(volume, *claim).into_iter();
        let is_alone = content.any(|wrote| scene.past.lost.contains(&wrote));
        Some((volume.clone(), Volume { epoch: *epoch, is_alone }))
    });
    let written = |((_, claim), volume): (&(i64, u8), &String)| machine.written_to(volume, *claim);
    let in_use = machine.mounted.iter().filter(|((epoch, _), _)| running.contains(epoch));
    let in_use: Vec<Writes> = in_use.map(written).collect();
    Cluster {
        // The last epoch of each, as they are in order.
        volumes: volumes.collect(),
        is_off: machine.is_off,
        is_here: here.is_some() && is_placed,
        runs_unplaced,
        inherits: system.deletes == 2 && inherits(system, scene, place, c),
        boots: if system.is_refined { machine.boots } else { 0 },
        has_lock_in_hand: system.is_refined && machine.processes.has_lock_in_hand(&name),
        written: mounted.map(|it| (it.0.0, written(it))).collect(),
        epoch: number(ANNOTATION_EPOCH),
        released: number(ANNOTATION_RELEASED),
        permitted: permit.map_or(0, |permit| permit.epoch),
        ran: number(ANNOTATION_RAN),
        volume: (!in_use.is_empty()).then(|| in_use.into_iter().flatten().collect()),
        running,
    }
}

/// Whether a pod on a cluster was made from a pod of another namespace than it is for.
fn inherits(system: &Namespaces, scene: &Scene<'_, Namespaces>, place: usize, c: usize) -> bool {
    let name = system.grant_name(place);
    let pods = scene.cluster(c).list(&POD);
    let mut own = pods.iter().filter(|pod| pod.metadata.namespace.as_ref() == Some(&name));
    own.any(|pod| pod.metadata.name.as_deref() != Some(POD_NAMES[place]))
}

/// Whether what a grant is about has run for as long as old copies are kept.
fn has_settled(grant: &Object, now: Timestamp) -> bool {
    let Ok(record) = GrantRecord::read(grant) else { return false };
    let running = conditions::find(&record.status.conditions, RUNNING);
    let since = running.filter(|it| it.status == "True").map(|it| it.last_transition_time.0);
    let kept = Duration::from(record.spec.volumes.keep_superseded);
    let is_long = |since: Timestamp| {
        Duration::try_from(now.duration_since(since)).is_ok_and(|ran| ran >= kept)
    };
    record.status.phase == Phase::Granted && since.is_some_and(is_long)
}
