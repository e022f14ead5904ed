//! What is true of a namespace and its clusters, in the words of the promises.

use super::machine::Machine;
use super::{CLUSTER_NAMES, Namespaces, grant_name, namespace};
use crate::kinds::{FORCE_RELEASE, GRANT, NAMESPACE, POD};
use interlock_api::names::{
    ANNOTATION_CLUSTER, ANNOTATION_EPOCH, ANNOTATION_RAN, ANNOTATION_RELEASED, ANNOTATION_RUNNING,
    Permit,
};
use interlock_api::placement::{
    Claim, CopyState, Fill, ForceOutcome, GrantSpec, GrantStatus, Image, Phase, Pin,
};
use interlock_kernel::{Name, Object, read_part};
use interlock_world::{CLUSTERS, Scene};
use std::collections::{BTreeMap, BTreeSet};

/// The whole of it.
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
    /// The forced releases, with owner, epoch and outcome.
    pub(super) forces: Vec<Force>,
    /// The epochs that wrote to the claim, and whose writes were not declared lost.
    pub(super) must: Writes,
    /// What is in the snapshots, or in the volume left in place, that the grant names.
    pub(super) pinned: Option<Writes>,
}

/// The epochs whose writes are in something.
pub(super) type Writes = BTreeSet<i64>;

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Past {
    /// The epochs whose writes were declared lost, by a forced release.
    pub(super) lost: Writes,
    /// Every epoch, where the world is compared with its specification.
    pub(super) tenures: Vec<Tenure>,
    /// The highest epoch that each cluster ever closed, which it forgets with its copy.
    pub(super) closed: [i64; CLUSTERS],
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
}

/// What one cluster noted, and what runs there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Cluster {
    pub(super) is_off: bool,
    /// The last epoch that arrived.
    pub(super) epoch: i64,
    /// The highest epoch that was closed.
    pub(super) released: i64,
    /// The epoch that may run in this boot of the machine.
    pub(super) permitted: i64,
    /// The last epoch that was ever permitted.
    pub(super) ran: i64,
    /// The epochs whose processes live.
    pub(super) running: BTreeSet<i64>,
    /// What is in the volume that they write to; None: they have none.
    pub(super) volume: Option<Writes>,
    /// How often the machine has started.
    pub(super) boots: u8,
    /// Whether the runtime has a lock that it has given to no process.
    pub(super) has_lock_in_hand: bool,
    /// What is in the volume that each epoch wrote to.
    pub(super) written: BTreeMap<i64, Writes>,
}

/// A forced release.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Force {
    pub(super) owner: Option<usize>,
    pub(super) epoch: i64,
    pub(super) outcome: ForceOutcome,
}

impl Truth {
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

    /// Whether it is granted to this cluster, runs there, and people are told so.
    pub(super) fn runs_on(&self, cluster: Option<usize>) -> bool {
        let granted = self.grant.as_ref().filter(|grant| grant.phase == Phase::Granted);
        let Some(grant) = granted.filter(|grant| grant.owner == cluster) else { return false };
        let runs = |c: usize| self.clusters[c].running.iter().eq([&grant.epoch]);
        cluster.is_some_and(runs) && self.pod_phase == "Running"
    }
}

fn cluster_named(name: &str) -> Option<usize> {
    CLUSTER_NAMES.iter().position(|known| *known == name)
}

fn annotation(object: Option<&Object>, key: &str) -> String {
    let notes = object.and_then(|object| object.metadata.annotations.as_ref());
    notes.and_then(|notes| notes.get(key)).cloned().unwrap_or_default()
}

pub(super) fn read(system: &Namespaces, scene: &Scene<'_, Namespaces>) -> Truth {
    let hub = scene.hub();
    let home = hub.get(&NAMESPACE, &namespace());
    let force = |object: &Object| Force {
        owner: object.data["spec"]["owner"]["name"].as_str().and_then(cluster_named),
        epoch: object.data["spec"]["epoch"].as_i64().unwrap_or_default(),
        outcome: serde_json::from_value(object.data["status"]["outcome"].clone())
            .unwrap_or_default(),
    };
    let wrote = scene.machines.iter().flat_map(|machine| machine.mounted.keys().copied());
    let must = wrote.filter(|epoch| !scene.past.lost.contains(epoch)).collect();
    let found = hub.get(&GRANT, &Name::cluster_wide(&grant_name()));
    let pod = hub.part(&POD, &Name::within("shop", "pod"), "status");
    Truth {
        desired: cluster_named(&annotation(home.as_ref(), ANNOTATION_CLUSTER)),
        may_change: super::moves_left(scene.chance) > 0,
        grant: found.as_ref().map(|found| grant(system, found)),
        clusters: std::array::from_fn(|c| cluster(system, scene, c)),
        pod_phase: pod["phase"].as_str().unwrap_or_default().to_owned(),
        forces: hub.list(&FORCE_RELEASE).iter().map(force).collect(),
        must,
        pinned: found.and_then(|grant| pinned(scene, &grant)),
    }
}

fn grant(system: &Namespaces, object: &Object) -> Grant {
    let spec: GrantSpec = read_part(object, "spec").ok().flatten().unwrap_or_default();
    let status: GrantStatus = read_part(object, "status").ok().flatten().unwrap_or_default();
    let copies = status.copies.iter();
    let copy = |copy: &interlock_api::placement::DataCopy| {
        Some((cluster_named(&copy.cluster.name)?, copy.epoch, copy.state))
    };
    let in_place = |pin: &Pin| match &pin.image {
        Image::InPlace { cluster, .. } => cluster_named(&cluster.name),
        Image::VolumeSnapshot { .. } | Image::Restic { .. } | Image::Fresh {} => None,
    };
    let is_filled = |claim: &Claim| claim.fill == Fill::Filled;
    Grant {
        is_filled: system.is_refined && status.claims.iter().all(is_filled),
        in_place: status.pins.iter().filter_map(in_place).collect(),
        phase: status.phase,
        owner: status.owner.and_then(|owner| cluster_named(&owner.name)),
        target: spec.target.and_then(|target| cluster_named(&target.name)),
        epoch: status.epoch,
        copies: copies.filter_map(copy).collect(),
    }
}

/// What is in all that the grant names for its claims.
fn pinned(scene: &Scene<'_, Namespaces>, grant: &Object) -> Option<Writes> {
    let status: GrantStatus = read_part(grant, "status").ok().flatten()?;
    let content = |pin: &Pin| match &pin.image {
        Image::VolumeSnapshot { cluster, uid, .. } => {
            let machine = &scene.machines[cluster_named(&cluster.name)?];
            machine.disks.get(&format!("snapshot-{uid}")).cloned()
        }
        Image::InPlace { cluster, volume } => {
            scene.machines[cluster_named(&cluster.name)?].disks.get(volume).cloned()
        }
        Image::Restic { .. } | Image::Fresh {} => None,
    };
    let pins: Vec<Writes> = status.pins.iter().filter_map(content).collect();
    (!pins.is_empty()).then(|| pins.into_iter().flatten().collect())
}

fn cluster(system: &Namespaces, scene: &Scene<'_, Namespaces>, c: usize) -> Cluster {
    let here = scene.cluster(c).get(&NAMESPACE, &Name::cluster_wide(&grant_name()));
    let machine: &Machine = &scene.machines[c];
    let number = |key: &str| annotation(here.as_ref(), key).parse().unwrap_or(0);
    let permit = Permit::read(&annotation(here.as_ref(), ANNOTATION_RUNNING));
    let permit = permit.filter(|permit| permit.boot_id == super::boot_id(c, machine.boots));
    let content = |volume: &String| machine.disks.get(volume).cloned().unwrap_or_default();
    let mounted = machine.mounted.iter().filter(|_| system.is_refined);
    Cluster {
        is_off: machine.is_off,
        boots: if system.is_refined { machine.boots } else { 0 },
        has_lock_in_hand: system.is_refined && machine.has_lock_in_hand(),
        written: mounted.map(|(epoch, volume)| (*epoch, content(volume))).collect(),
        epoch: number(ANNOTATION_EPOCH),
        released: number(ANNOTATION_RELEASED),
        permitted: permit.map_or(0, |permit| permit.epoch),
        ran: number(ANNOTATION_RAN),
        volume: machine.running().iter().find_map(|epoch| {
            let volume = machine.mounted.get(epoch)?;
            Some(content(volume))
        }),
        running: machine.running(),
    }
}
