//! What is true of claims, snapshots, volumes and syncs, in the words of the promises.

use super::disks::{Attempt, Copied, Data, TORN, Thing};
use super::first::{BANK, BANK_VOLUME, BANK_WRITE, DATA, SHOP};
use super::people::{Left, left};
use super::{Kind, SYNCING, Syncs};
use crate::kinds::{CLAIM, LEASE, SNAPSHOT_KIND, VOLUME};
use crate::objects::{annotation, is_deleting, label, name_of, namespace_of, text, uid_of};
use crate::sync::intent::Intent;
use crate::sync::slots;
use crate::sync::snapshots::{SNAPSHOT_PREFIX, holders, is_ready, sync_of};
use interlock_api::names::{
    ANNOTATION_LATEST_IMAGE_UID, ANNOTATION_POPULATES, ANNOTATION_SNAPSHOT, LABEL_PRIME_FOR,
};
use interlock_kernel::{Name, Object};
use interlock_world::Scene;
use std::collections::{BTreeMap, BTreeSet};

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    /// The source or destination.
    pub(super) object: Option<Syncing>,
    /// The claim that is to be filled.
    pub(super) claim: Option<Claim>,
    /// How many more of its name somebody may make.
    pub(super) to_come: u32,
    /// The claims that snapshots are poured into.
    pub(super) primes: Vec<Prime>,
    /// All claims that are there, by uid.
    pub(super) claims: BTreeSet<String>,
    /// By uid.
    pub(super) snapshots: BTreeMap<String, Snapshot>,
    /// The snapshots and PVC's that somebody deleted by hand.
    pub(super) by_hand: BTreeSet<String>,
    /// The volumes that have a record, by name.
    pub(super) volumes: BTreeMap<String, Volume>,
    /// The volumes of which anything is on the disk.
    pub(super) folders: BTreeSet<String>,
    /// The movers that run: the sync, and the volume that is written.
    pub(super) running: Vec<(String, Option<String>)>,
    /// The syncs that have a place at a repository.
    pub(super) places: BTreeSet<String>,
    /// Whether all that belongs to the other namespace is as it was.
    pub(super) is_other_intact: bool,
}

/// A source or a destination.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Syncing {
    pub(super) is_terminating: bool,
    /// The tag that is set, the last that was answered, and the last that was given up.
    pub(super) tag: i64,
    pub(super) answered: i64,
    pub(super) given_up: i64,
    /// The sync that is under way.
    pub(super) intent: Option<String>,
    /// The last sync that is over.
    pub(super) over: String,
    /// What answers the tag; None: it is gone.
    pub(super) product: Option<Data>,
    /// The snapshots that count as the latest, by uid: while one is published there are two.
    pub(super) latest: BTreeSet<String>,
    /// The one of them that claims are filled from, by uid.
    pub(super) published: Option<String>,
}

/// The claim that is to be filled.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    pub(super) uid: String,
    pub(super) is_terminating: bool,
    pub(super) phase: String,
    /// The snapshot that it is filled from, by uid.
    pub(super) pin: Option<String>,
    /// The volume that it names.
    pub(super) volume: String,
}

/// A claim that a snapshot is poured into.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Prime {
    pub(super) uid: String,
    /// The claim that it is for, by uid.
    pub(super) heir: String,
    pub(super) is_terminating: bool,
    pub(super) phase: String,
    /// The snapshot, by uid.
    pub(super) snapshot: String,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Snapshot {
    pub(super) is_terminating: bool,
    pub(super) is_ready: bool,
    /// Who holds it, by uid.
    pub(super) holders: BTreeSet<String>,
    /// The sync that took it.
    pub(super) sync: String,
    /// What is in it, if it is whole on the disk.
    pub(super) data: Option<Data>,
}

/// A volume that has a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Volume {
    /// The claim that it is for, by uid.
    pub(super) owner: String,
    /// The claim that it is handed to, by uid.
    pub(super) heir: Option<String>,
    /// Whether it outlives its claim.
    pub(super) is_kept: bool,
    /// What is in it, if it is whole on the disk.
    pub(super) inside: Option<Copied>,
}

/// What is remembered, for the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Past {
    /// Every snapshot that there was, by uid, in the order in which they came.
    pub(super) snapshots: Vec<String>,
    /// The claims that were bound, by uid, each with the snapshot that it was filled from.
    pub(super) bound: BTreeMap<String, String>,
}

impl Past {
    /// The past after a step.
    pub(super) fn after(&self, before: &Truth, after: &Truth) -> Past {
        let mut past = self.clone();
        for truth in [before, after] {
            past.snapshots = past.with_snapshots_of(truth);
            let bound = truth.claim.as_ref().filter(|claim| !claim.volume.is_empty());
            if let Some(claim) = bound {
                let pin = claim.pin.clone().unwrap_or_default();
                past.bound.entry(claim.uid.clone()).or_insert(pin);
            }
        }
        past
    }

    /// Every snapshot that there was or is.
    pub(super) fn with_snapshots_of(&self, truth: &Truth) -> Vec<String> {
        let new = truth.snapshots.keys().filter(|uid| !self.snapshots.contains(uid));
        self.snapshots.iter().chain(new).cloned().collect()
    }
}

impl Snapshot {
    /// Whether it can be filled from.
    pub(super) fn is_usable(&self) -> bool {
        self.is_ready && !self.is_terminating && self.data.as_ref().is_some_and(is_all_there)
    }
}

/// Whether there is something in it, and no mover was cut short in it.
pub(super) fn is_all_there(data: &Data) -> bool {
    !data.is_empty() && !data.contains(&TORN)
}

impl Truth {
    /// The claim, while it stays.
    pub(super) fn living_claim(&self) -> Option<&Claim> {
        self.claim.as_ref().filter(|claim| !claim.is_terminating)
    }

    /// The source or destination, while it stays.
    pub(super) fn living_object(&self) -> Option<&Syncing> {
        self.object.as_ref().filter(|object| !object.is_terminating)
    }

    pub(super) fn is_bound(&self) -> bool {
        self.living_claim().is_some_and(|claim| claim.phase == "Bound")
    }

    /// Whether the destination has a snapshot that can be filled from.
    pub(super) fn has_latest(&self) -> bool {
        let latest = self.living_object().into_iter().flat_map(|object| &object.latest);
        let is_usable = |uid: &String| self.snapshots.get(uid).is_some_and(Snapshot::is_usable);
        latest.into_iter().all(is_usable)
            && self.living_object().is_some_and(|object| !object.latest.is_empty())
    }

    /// Whether the tag that is set was answered or given up, and nothing is left of the sync.
    pub(super) fn is_synced(&self) -> bool {
        let Some(object) = self.living_object() else { return true };
        object.intent.is_none() && [object.answered, object.given_up].contains(&object.tag)
    }
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or(0)
}

fn of_word(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

pub(super) fn read(system: &Syncs, scene: &Scene<'_, Syncs>) -> Truth {
    let here = scene.cluster(0);
    let machine = &scene.machines[0];
    let storage = &machine.storage;
    let object = here.get(&system.kind.object(), &Name::within(SHOP, SYNCING));
    let claims = here.list(&CLAIM);
    let named = |it: &&Object| (namespace_of(it), name_of(it)) == (SHOP, DATA);
    let running = storage.movers.iter().filter_map(|((sync, _), attempt)| match attempt {
        Attempt::Writes { into, .. } => Some((sync.clone(), Some(into.clone()))),
        Attempt::Saves(_) => Some((sync.clone(), None)),
        Attempt::Done { .. } | Attempt::Failed(_) => None,
    });
    let volume = |record: &Object| {
        let name = name_of(record).to_owned();
        let inside = match storage.volumes.get(&name) {
            Some(Thing::Whole(copied)) => Some(copied.clone()),
            Some(Thing::Making(_) | Thing::Failed(_)) | None => None,
        };
        let heir = annotation(record, ANNOTATION_POPULATES).and_then(|note| note.rsplit_once('/'));
        let owner = text(&record.data, &["spec", "claimRef", "uid"]).to_owned();
        let policy = text(&record.data, &["spec", "persistentVolumeReclaimPolicy"]);
        let (heir, is_kept) = (heir.map(|(_, uid)| uid.to_owned()), policy == "Retain");
        (name, Volume { owner, heir, is_kept, inside })
    };
    let snapshot = |snapshot: &Object| {
        let uid = uid_of(snapshot).to_owned();
        let found = Snapshot {
            is_terminating: is_deleting(snapshot),
            is_ready: is_ready(snapshot),
            holders: holders(snapshot).map(str::to_owned).collect(),
            sync: sync_of(snapshot).to_owned(),
            data: storage.snapshot(&format!("{SNAPSHOT_PREFIX}{uid}")),
        };
        (uid, found)
    };
    Truth {
        object: object.map(|object| syncing(system.kind, scene, &object)),
        claim: claims.iter().find(named).map(claim),
        to_come: left(scene.chance, Left::Claims),
        primes: claims.iter().filter_map(prime).collect(),
        claims: claims.iter().map(|claim| uid_of(claim).to_owned()).collect(),
        snapshots: here.list(&SNAPSHOT_KIND).iter().map(snapshot).collect(),
        by_hand: machine.by_hand.clone(),
        volumes: here.list(&VOLUME).iter().map(volume).collect(),
        folders: storage.volumes.keys().cloned().collect(),
        running: running.collect(),
        places: here
            .list(&LEASE)
            .iter()
            .filter_map(|it| slots::sync_of(it).map(str::to_owned))
            .collect(),
        is_other_intact: is_other_intact(scene),
    }
}

fn claim(claim: &Object) -> Claim {
    Claim {
        uid: uid_of(claim).to_owned(),
        is_terminating: is_deleting(claim),
        phase: text(&claim.data, &["status", "phase"]).to_owned(),
        pin: annotation(claim, ANNOTATION_SNAPSHOT).map(str::to_owned),
        volume: text(&claim.data, &["spec", "volumeName"]).to_owned(),
    }
}

fn prime(claim: &Object) -> Option<Prime> {
    Some(Prime {
        uid: uid_of(claim).to_owned(),
        heir: label(claim, LABEL_PRIME_FOR)?.to_owned(),
        is_terminating: is_deleting(claim),
        phase: text(&claim.data, &["status", "phase"]).to_owned(),
        snapshot: annotation(claim, ANNOTATION_SNAPSHOT).unwrap_or_default().to_owned(),
    })
}

fn syncing(kind: Kind, scene: &Scene<'_, Syncs>, object: &Object) -> Syncing {
    let status = &object.data["status"];
    let storage = &scene.machines[0].storage;
    let external = |key: &str| text(status, &["external", key]);
    let snapshot = external("snapshotUID");
    let product = match kind {
        Kind::Snapshots | Kind::Destination => {
            storage.snapshot(&format!("{SNAPSHOT_PREFIX}{snapshot}"))
        }
        Kind::Backups => {
            let is_it = |(name, _): &&(String, Data)| name == external("snapshotID");
            storage.repository.iter().find(is_it).map(|(_, data)| data.clone())
        }
    };
    let published = annotation(object, ANNOTATION_LATEST_IMAGE_UID).unwrap_or_default();
    Syncing {
        is_terminating: is_deleting(object),
        tag: number(text(&object.data, &["spec", "trigger", "manual"])),
        answered: number(text(status, &["lastManualSync"])),
        given_up: number(external("gaveUpTag")),
        intent: Intent::read(object).ok().flatten().map(|intent| intent.id),
        over: external("syncID").to_owned(),
        product,
        latest: [snapshot, published].into_iter().filter_map(of_word).collect(),
        published: of_word(published),
    }
}

/// The claim of the other namespace has its volume, with all that was ever in it.
fn is_other_intact(scene: &Scene<'_, Syncs>) -> bool {
    let here = scene.cluster(0);
    let claim = here.get(&CLAIM, &Name::within(BANK, DATA));
    let volume = here.get(&VOLUME, &Name::cluster_wide(BANK_VOLUME));
    let (Some(claim), Some(volume)) = (claim, volume) else { return false };
    text(&claim.data, &["spec", "volumeName"]) == BANK_VOLUME
        && text(&claim.data, &["status", "phase"]) == "Bound"
        && text(&volume.data, &["spec", "claimRef", "uid"]) == uid_of(&claim)
        && !is_deleting(&claim)
        && !is_deleting(&volume)
        && scene.machines[0].storage.volume(BANK_VOLUME) == Some([BANK_WRITE].into())
}
