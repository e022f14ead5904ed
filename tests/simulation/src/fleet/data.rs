//! What must hold of data after every event: an owner that runs has every acknowledged write, claims
//! are filled from their pins and whole, and a snapshot that anybody needs is there.

use super::Fleet;
use super::disk::{Disks, Numbers, Volume, lacking};
use super::granted::Granted;
use super::promises::Promises;
use crate::engine::line::Sent;
use crate::engine::truth::{Truth, named, plural};
use crate::engine::{Broken, Engine, api_of, said};
use interlock_api::names::{ANNOTATION_EPOCH, ANNOTATION_SNAPSHOT, LABEL_PRIME_FOR};
use interlock_api::placement::{Fill, GrantStatus, Phase, Pin, Ref, Snapshot};
use interlock_kernel::Object;
use interlock_placement::kinds::{CLAIM, DESTINATION, GRANT};
use interlock_volumes::kinds::{LEASE, SNAPSHOT_KIND, SOURCE, VOLUME};
use kube::api::DeleteParams;
use std::collections::{BTreeMap, BTreeSet};

/// What must be remembered to see that a promise about data is broken.
#[derive(Default)]
pub(crate) struct DataPromises {
    /// How much had changed when it was checked last: on the server, and on the disks.
    checked: (u64, u64),
    /// What the grants say, by name and version.
    grants: BTreeMap<String, (String, GrantStatus)>,
    /// The epochs of grants that were fenced, by name.
    fenced: BTreeSet<(String, i64)>,
    /// The claims that were filled: of which grant, at which epoch.
    filled: BTreeSet<(String, i64, String)>,
    /// The claims on clusters that were seen to be bound, by uid.
    bound: BTreeSet<String>,
}

impl Fleet {
    /// Holds the disks against what must be in them.
    pub(crate) fn check_data(&mut self, truth: &Truth) -> Result<(), Broken> {
        let mut disks = self.disks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(broken) = disks.take_broken().into_iter().next() {
            return Err(broken);
        }
        let now = (truth.newest, disks.changes);
        if self.data_promises.checked == now {
            return Ok(());
        }
        let is_news = self.data_promises.checked.0 != now.0;
        self.data_promises.checked = now;
        for (place, machine) in self.machines.iter().enumerate() {
            for (_, handle) in machine.alive().iter().flat_map(|process| &process.mounts) {
                if disks.is_copied_into(place, handle) {
                    return Err(format!("a copy goes into {handle}, which a pod writes to"));
                }
                if !disks.all[place].volumes.contains_key(handle) {
                    return Err(format!("{handle} is deleted, and a pod writes to it"));
                }
            }
        }
        let checked =
            Checked { truth, promises: &self.promises, clusters: &self.clusters, is_news };
        checked.check(&mut self.data_promises, &mut disks)
    }
}

impl Engine<Fleet> {
    /// What an owner made goes with it, as the server does it by itself when nobody simulates it.
    pub(crate) async fn collect_garbage(&mut self) -> Result<(), Broken> {
        for cluster in crate::CLUSTERS {
            let (kinds, of) = ([CLAIM, SNAPSHOT_KIND], [CLAIM, DESTINATION, SOURCE]);
            let is_there = |uid: &str| {
                let mut owners = of.iter().flat_map(|kind| self.truth.all(cluster, kind));
                owners.any(|owner| owner.metadata.uid.as_deref() == Some(uid))
            };
            let mut left = Vec::new();
            for kind in &kinds {
                for object in self.truth.all(cluster, kind) {
                    let owners = object.metadata.owner_references.as_deref().unwrap_or_default();
                    let is_terminating = object.metadata.deletion_timestamp.is_some();
                    let is_left = owners.iter().all(|owner| !is_there(&owner.uid));
                    if !owners.is_empty() && is_left && !is_terminating {
                        left.push((kind, Object::clone(object)));
                    }
                }
            }
            let server = self.lines.admin("user", cluster);
            for (kind, object) in left {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                self.note(format!("{cluster}: {kind} {name} goes with its owner"));
                let api = api_of(&server, kind, object.metadata.namespace.as_deref());
                api.delete(name, &DeleteParams::default()).await.map_err(said)?;
            }
        }
        self.check().await
    }

    /// What is left over on a disk, or at the cluster that has a namespace, and should be gone.
    pub(crate) fn left_over(&self) -> Option<String> {
        let disks = self.world.disks();
        for (place, cluster) in self.world.clusters.iter().enumerate() {
            if !self.takes_new_ones(&cluster.name) {
                continue;
            }
            let disk = &disks.all[place];
            if let Some(job) = disk.jobs.first() {
                return Some(format!("{:?} is under way on {cluster}", job.work));
            }
            // A program that started with an old list may make what nobody asks for any more, and that
            // stays; what pods wrote to must not.
            let is_left = |(name, volume): &(&String, &Volume)| {
                let record = self.truth.get(&cluster.name, &VOLUME, None, name);
                volume.used_by.is_some() && record.is_none()
            };
            if let Some((volume, _)) = disk.volumes.iter().find(is_left) {
                return Some(format!("{volume} on {cluster} has no record"));
            }
            if let Some(lease) = self.truth.all(&cluster.name, &LEASE).first() {
                return Some(format!("{:?} on {cluster} is still taken", lease.metadata.name));
            }
        }
        None
    }

    /// What was needed to fill the claims of a namespace, and is still at the cluster that has it.
    pub(crate) fn left_of_filling(&self, grant: &str, place: usize) -> Option<String> {
        let cluster = &self.world.clusters[place].name;
        let is_within = |object: &&Object| object.metadata.namespace.as_deref() == Some(grant);
        let destination = self.truth.all(cluster, &DESTINATION).iter().find(is_within);
        if let Some(destination) = destination {
            return Some(format!("{:?} is still there", destination.metadata.name));
        }
        let mut claims = self.truth.all(cluster, &CLAIM).iter().filter(is_within);
        let other = claims.find(|claim| claim.metadata.name.as_deref() != Some("data"));
        other.map(|other| format!("claim {:?} is still there", other.metadata.name))
    }
}

/// What promises are held against.
struct Checked<'a> {
    truth: &'a Truth,
    promises: &'a Promises,
    clusters: &'a [Ref],
    /// Whether anything was written since.
    is_news: bool,
}

impl Checked<'_> {
    fn check(&self, known: &mut DataPromises, disks: &mut Disks) -> Result<(), Broken> {
        if self.is_news {
            self.read_grants(known)?;
        }
        for (name, (_, status)) in &known.grants {
            if status.phase == Phase::Fenced && known.fenced.insert((name.clone(), status.epoch)) {
                self.give_up(name, status, disks)?;
            }
            self.pins_are_there(name, status, disks)?;
            let filled = status.claims.iter().filter(|claim| claim.fill == Fill::Filled);
            for claim in filled.filter(|_| status.phase == Phase::Granted) {
                let key = (name.clone(), status.epoch, claim.uid.clone());
                if known.filled.insert(key) {
                    self.has_all(name, status, &claim.name, disks)?;
                }
            }
        }
        self.nothing_goes_that_is_needed(known, disks)?;
        if self.is_news {
            self.claims_are_filled(known, disks)?;
        }
        Ok(())
    }

    /// What the grants say, but for those of namespaces that a person deleted.
    fn read_grants(&self, known: &mut DataPromises) -> Result<(), Broken> {
        let mut grants = BTreeMap::new();
        for grant in self.truth.all(crate::HUB, &GRANT) {
            let name = grant.metadata.name.clone().unwrap_or_default();
            let version = grant.metadata.resource_version.clone().unwrap_or_default();
            if self.promises.deleted.contains(&name) || grant.data["status"].is_null() {
                continue;
            }
            let entry = match known.grants.remove(&name).filter(|(seen, _)| *seen == version) {
                Some(entry) => entry,
                None => {
                    let status = serde_json::from_value(grant.data["status"].clone());
                    (version, status.map_err(|error| format!("grant {name}: {error}"))?)
                }
            };
            grants.insert(name, entry);
        }
        known.grants = grants;
        Ok(())
    }

    fn place(&self, cluster: &Ref) -> Option<usize> {
        self.clusters.iter().position(|known| known.uid == cluster.uid)
    }

    /// What a pin stands for; an error: it is not there.
    fn pinned(&self, pin: &Pin, disks: &Disks) -> Result<Option<Numbers>, Broken> {
        match &pin.snapshot {
            Snapshot::Fresh {} => Ok(Some(Numbers::new())),
            Snapshot::VolumeSnapshot { cluster, uid, .. } => {
                let handle = format!("snapshot-{uid}");
                let place = self.place(cluster);
                let found =
                    place.and_then(|place| disks.all[place].snapshots.get(&handle)).cloned();
                let gone = || format!("{handle} on {cluster} is pinned, and is not there");
                found.map(Some).ok_or_else(gone)
            }
            Snapshot::InPlace { cluster, volume } => {
                let place = self.place(cluster);
                let found = place.and_then(|place| disks.all[place].volumes.get(volume));
                let gone = || format!("{volume} on {cluster} is pinned, and is not there");
                found.map(|found| Some(found.numbers.clone())).ok_or_else(gone)
            }
            Snapshot::Restic { .. } => Ok(None),
        }
    }

    /// A person declared the owner gone: what is left is what the grant pins.
    fn give_up(&self, name: &str, status: &GrantStatus, disks: &mut Disks) -> Result<(), Broken> {
        for pin in &status.pins {
            if let Some(left) = self.pinned(pin, disks)? {
                disks.give_up_all_but(name, &pin.claim, left);
            }
        }
        Ok(())
    }

    /// What the next owner starts from is there, with all that was acknowledged.
    fn pins_are_there(
        &self,
        name: &str,
        status: &GrantStatus,
        disks: &Disks,
    ) -> Result<(), Broken> {
        let is_filled = |pin: &Pin| {
            let mut claims = status.claims.iter();
            claims.any(|claim| claim.uid == pin.claim_uid && claim.fill == Fill::Filled)
        };
        let is_settled = matches!(status.phase, Phase::Granted | Phase::Revoking);
        for pin in status.pins.iter().filter(|pin| !(is_settled && is_filled(pin))) {
            let Some(numbers) = self.pinned(pin, disks)? else { continue };
            if let Some(lacking) = lacking(&numbers, disks.must(name, &pin.claim)) {
                return Err(format!("the pin of {name} at epoch {} {lacking}", pin.epoch));
            }
        }
        Ok(())
    }

    /// The hub was informed that a claim is filled: it has its volume, with all that was acknowledged.
    fn has_all(
        &self,
        name: &str,
        status: &GrantStatus,
        claim: &str,
        disks: &Disks,
    ) -> Result<(), Broken> {
        let owner = status.owner.as_ref();
        let Some(place) = owner.and_then(|owner| self.place(owner)) else { return Ok(()) };
        let cluster = &self.clusters[place];
        let found = self.truth.get(&cluster.name, &CLAIM, Some(name), claim);
        let handle = found.and_then(|found| found.data["spec"]["volumeName"].as_str());
        let volume = handle.and_then(|handle| disks.all[place].volumes.get(handle));
        let Some(volume) = volume else {
            return Err(format!("claim {claim} of {name} is said to be filled, and has no volume"));
        };
        match lacking(&volume.numbers, disks.must(name, claim)) {
            Some(lacking) => {
                Err(format!("claim {claim} of {name} on {cluster} is filled, {lacking}"))
            }
            None => Ok(()),
        }
    }

    /// No volume that pods wrote to is deleted, and no snapshot that a grant pins, unless a person
    /// deleted the namespace.
    fn nothing_goes_that_is_needed(
        &self,
        known: &DataPromises,
        disks: &mut Disks,
    ) -> Result<(), Broken> {
        for (place, handle, used_by) in std::mem::take(&mut disks.deleted_volumes) {
            let Some(used_by) = used_by else { continue };
            if !self.promises.deleted.contains(&used_by) {
                let cluster = &self.clusters[place];
                return Err(format!("{handle} of {used_by} on {cluster} is deleted for no reason"));
            }
        }
        let pins = known.grants.values().flat_map(|(_, status)| {
            let last = status.claims.iter().filter_map(|claim| claim.last_snapshot.as_ref());
            status.pins.iter().chain(last)
        });
        let pinned: BTreeSet<String> = pins
            .filter_map(|pin| match &pin.snapshot {
                Snapshot::VolumeSnapshot { uid, .. } => Some(format!("snapshot-{uid}")),
                Snapshot::Restic { .. } | Snapshot::InPlace { .. } | Snapshot::Fresh {} => None,
            })
            .collect();
        let unwanted = std::mem::take(&mut disks.unwanted_snapshots);
        match unwanted.into_iter().find(|snapshot| pinned.contains(snapshot)) {
            Some(snapshot) => Err(format!("{snapshot} is deleted while a grant pins it")),
            None => Ok(()),
        }
    }

    /// A claim that is bound has the volume of its snapshot, whole; the snapshot of one that is being
    /// filled is there.
    fn claims_are_filled(&self, known: &mut DataPromises, disks: &Disks) -> Result<(), Broken> {
        for (place, cluster) in self.clusters.iter().enumerate() {
            for claim in self.truth.all(&cluster.name, &CLAIM) {
                if claim.metadata.deletion_timestamp.is_none() {
                    is_filled(claim, cluster, &disks.all[place], known)?;
                }
            }
        }
        Ok(())
    }
}

fn is_filled(
    claim: &Object,
    cluster: &Ref,
    disk: &super::disk::Disk,
    known: &mut DataPromises,
) -> Result<(), Broken> {
    let uid = claim.metadata.uid.as_deref().unwrap_or_default();
    let named = claim.metadata.name.as_deref().unwrap_or_default();
    let snapshot = claim.metadata.annotations.as_ref();
    let snapshot = snapshot.and_then(|notes| notes.get(ANNOTATION_SNAPSHOT));
    let snapshot = snapshot.map(|snapshot| format!("snapshot-{snapshot}"));
    if claim.data["status"]["phase"] == "Bound" {
        let handle = claim.data["spec"]["volumeName"].as_str().unwrap_or_default();
        let Some(volume) = disk.volumes.get(handle) else {
            return Err(format!("{named} on {cluster} is bound to {handle}, which is not there"));
        };
        let is_first = known.bound.insert(uid.to_owned());
        if is_first && volume.of != snapshot {
            let (of, snapshot) = (&volume.of, &snapshot);
            return Err(format!("{named} on {cluster} is filled from {of:?} and not {snapshot:?}"));
        }
        return Ok(());
    }
    let labels = claim.metadata.labels.as_ref();
    let is_prime = labels.is_some_and(|labels| labels.contains_key(LABEL_PRIME_FOR));
    let is_poured = disk.volumes.contains_key(&format!("pvc-{uid}"));
    match snapshot
        .filter(|snapshot| is_prime && !is_poured && !disk.snapshots.contains_key(snapshot))
    {
        Some(snapshot) => {
            Err(format!("{named} on {cluster} is filled from {snapshot}, which is gone"))
        }
        None => Ok(()),
    }
}

/// Whether a controller may delete something by which data is moved. `truth` is from before.
pub(crate) fn may_go(sent: &Sent, truth: &Truth) -> bool {
    let (cluster, (namespace, name)) = (&*sent.to, named(&sent.path));
    let grant = namespace.and_then(|namespace| Granted::named(truth, namespace));
    match plural(&sent.path) {
        // Whether what is behind these may go is seen on the disk; places are only places.
        "persistentvolumes" | "volumesnapshotcontents" | "volumesnapshots" | "leases" => true,
        "persistentvolumeclaims" => {
            let Some(claim) = truth.get(cluster, &CLAIM, namespace, name) else { return true };
            let epoch = claim.metadata.annotations.as_ref();
            let epoch = epoch.and_then(|notes| notes.get(ANNOTATION_EPOCH)?.parse::<i64>().ok());
            // Claims that are made to be deleted belong to somebody; others make room for a later
            // epoch.
            claim.metadata.owner_references.as_ref().is_some_and(|owners| !owners.is_empty())
                || epoch.is_some_and(|epoch| grant.is_some_and(|grant| epoch < grant.epoch))
        }
        "replicationdestinations" => {
            let found = truth.get(cluster, &DESTINATION, namespace, name);
            let epoch = found.and_then(|found| found.metadata.annotations.as_ref());
            let epoch = epoch.and_then(|notes| notes.get(ANNOTATION_EPOCH)?.parse::<i64>().ok());
            let mut claims = truth.all(cluster, &CLAIM).iter();
            // One of an earlier epoch is of no use to anybody.
            epoch.is_some_and(|epoch| grant.is_some_and(|grant| epoch < grant.epoch))
                || claims.any(|claim| {
                    claim.metadata.namespace.as_deref() == namespace
                        && claim.data["status"]["phase"] == "Bound"
                        && claim.data["spec"]["dataSourceRef"]["name"] == name
                })
        }
        _ => false,
    }
}
