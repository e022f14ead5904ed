//! What is seen of a claim, its destination, its snapshot, PVC' and the volume on its way.

use super::decide::{Bound, Class, Destination, Facts, Holds, Obstacle, Prime, Snapshot, Volume};
use super::{finding, is_populated, prime_for};
use crate::filed::{SNAPSHOTS_BY_HOLDER, SNAPSHOTS_BY_UID, VOLUMES_BY_HEIR, source_of};
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT_KIND, STORAGE_CLASS, VOLUME};
use crate::objects::{
    HEALTHY, annotation, beside, bytes, cluster_wide, conditions, has_finalizer, is_deleting,
    is_same, namespace_of, part, text, uid_of,
};
use interlock_api::names::{
    ANNOTATION_ALLOW_EMPTY, ANNOTATION_FILES, ANNOTATION_LATEST_IMAGE_UID, ANNOTATION_POPULATES,
    ANNOTATION_RECLAIM, ANNOTATION_SNAPSHOT, FINALIZER_POPULATE, hold_finalizer,
};
use interlock_kernel::{Address, Kind, LiveReads, Name, Nothing, Object, Observed, Place, View};
use jiff::Timestamp;
use kube_core::DynamicObject;

/// On a snapshot: the claim that was the last to give it up without having held it.
pub(super) const ANNOTATION_TOUCHED: &str = "interlock.dev/let-go-by";
/// On a claim: the node that its first pod goes to.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The objects that a step about one claim is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) claim: Object,
    pub(super) destination: Option<Object>,
    /// The snapshot that is noted on the claim.
    pub(super) snapshot: Option<Object>,
    /// The latest snapshot of the destination.
    pub(super) latest: Option<Object>,
    /// The snapshots that it holds.
    pub(super) held: Vec<Object>,
    pub(super) prime: Option<Object>,
    pub(super) volume: Option<Object>,
    /// What has to be read live: the claim, PVC', the snapshot, and the volume once it is known.
    pub(super) truth: Vec<Address>,
}

/// An object: as a live read showed it, else as the cache does.
pub(super) fn seen(
    address: &Address,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Option<Object> {
    match live_reads.objects.get(address) {
        Some(found) => found.clone(),
        None => view.get(address.place, &address.kind, &address.name),
    }
}

pub(super) fn claim_address(name: &Name) -> Address {
    Address::new(Place::CLUSTER, &CLAIM, name.clone())
}

pub(super) fn prime_name(claim: &DynamicObject) -> String {
    format!("prime-{}", uid_of(claim))
}

/// What a volume that is handed to this claim says.
pub(super) fn note_for(claim: &DynamicObject) -> String {
    format!("{}/{}", Name::of(claim), uid_of(claim))
}

pub(super) fn is_for(volume: &DynamicObject, claim: &DynamicObject) -> bool {
    annotation(volume, ANNOTATION_POPULATES) == Some(&note_for(claim))
}

/// Reads what a step is about.
pub(super) fn observe(
    name: &Name,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let found = seen(&claim_address(name), view, live_reads).filter(|claim| is_populated(claim));
    let Some((claim, source)) = found.as_ref().and_then(|claim| Some((claim, source_of(claim)?)))
    else {
        return Observed::nothing(
            "the cache shows no claim of that name that is filled from a ReplicationDestination",
        );
    };
    let (_, _, source) = source;
    let cache = Cache { claim, view, live_reads };
    let destination = Name::within(namespace_of(claim), source);
    let destination = view.get(Place::CLUSTER, &DESTINATION, &destination);
    let prime_address = beside(claim, &CLAIM, &prime_name(claim));
    let prime = seen(&prime_address, view, live_reads);
    let volume_address = cache.volume_address(prime.as_ref());
    let snapshot = pin_of(claim).and_then(|pin| cache.snapshot(pin));
    let snapshot_address = snapshot
        .as_ref()
        .map(|snapshot| Address::new(Place::CLUSTER, &SNAPSHOT_KIND, Name::of(snapshot)));
    let reads = [
        Some(claim_address(&Name::of(claim))),
        Some(prime_address),
        snapshot_address,
        volume_address.clone(),
    ];
    let scene = Scene {
        now: view.now(),
        claim: claim.clone(),
        latest: destination.as_ref().and_then(|destination| cache.latest_image(destination)),
        held: cache.held(snapshot.as_ref()),
        volume: volume_address.and_then(|address| cache.volume(&address)),
        truth: reads.into_iter().flatten().collect(),
        destination,
        snapshot,
        prime,
    };
    Observed::Seen { facts: Reading { scene: &scene, view, live_reads }.facts(), scene }
}

/// The uid of the snapshot that is noted on a claim.
fn pin_of(claim: &DynamicObject) -> Option<&str> {
    annotation(claim, ANNOTATION_SNAPSHOT).filter(|pin| !pin.is_empty())
}

fn is_ours(claim: &DynamicObject, prime: &DynamicObject) -> bool {
    prime_for(prime) == Some(uid_of(claim))
}

/// All volumes.
pub(super) fn volumes() -> (Place, Kind, Option<String>) {
    (Place::CLUSTER, VOLUME, None)
}

/// All snapshots of the namespace of a claim.
fn snapshots_beside(claim: &DynamicObject) -> (Place, Kind, Option<String>) {
    (Place::CLUSTER, SNAPSHOT_KIND, Some(namespace_of(claim).to_owned()))
}

impl Scene {
    /// The uid of the snapshot that is noted on the claim.
    fn pin(&self) -> Option<&str> {
        pin_of(&self.claim)
    }

    /// The bytes that the snapshot needs.
    pub(super) fn snapshot_bytes(&self) -> u64 {
        let snapshot = self.snapshot.as_deref();
        let size = snapshot.map(|snapshot| part(&snapshot.data, &["status", "restoreSize"]));
        size.and_then(bytes).unwrap_or(0)
    }

    /// The bytes that the claim asks for.
    pub(super) fn capacity(&self) -> u64 {
        let size = part(&self.claim.data, &["spec", "resources", "requests", "storage"]);
        bytes(size).unwrap_or(0)
    }

    /// Why PVC' has no volume: reason and sentence.
    pub(super) fn failure(&self) -> Option<(&str, &str)> {
        let condition = conditions::find(self.prime.as_deref()?, HEALTHY)?;
        let is_failing = condition["status"] == "False";
        is_failing.then(|| (text(condition, &["reason"]), text(condition, &["message"])))
    }

    /// All snapshots of the namespace.
    pub(super) fn snapshots(&self) -> (Place, Kind, Option<String>) {
        snapshots_beside(&self.claim)
    }
}

/// What is looked up for a claim.
struct Cache<'a> {
    claim: &'a Object,
    view: &'a dyn View,
    live_reads: &'a LiveReads<Nothing>,
}

impl Cache<'_> {
    /// A snapshot of the namespace by its uid.
    fn snapshot(&self, uid: &str) -> Option<Object> {
        let namespace = namespace_of(self.claim);
        let is_it = |found: &&Object| is_same(found, uid) && namespace_of(found) == namespace;
        if let Some(listed) = self.live_reads.lists.get(&snapshots_beside(self.claim)) {
            return listed.iter().find(is_it).cloned();
        }
        let cached = self.view.find(Place::CLUSTER, &SNAPSHOTS_BY_UID, uid);
        let cached = cached.iter().find(is_it).cloned()?;
        let address = Address::new(Place::CLUSTER, &SNAPSHOT_KIND, Name::of(&cached));
        match self.live_reads.objects.get(&address) {
            None => Some(cached),
            // What is gone, or has only its name, is looked for among all.
            Some(found) => found.clone().filter(|found| is_same(found, uid)),
        }
    }

    /// The snapshots that it holds. The pinned snapshot may be fresher than the others.
    fn held(&self, snapshot: Option<&Object>) -> Vec<Object> {
        let uid = uid_of(self.claim);
        let mut held = self.view.find(Place::CLUSTER, &SNAPSHOTS_BY_HOLDER, uid);
        let Some(snapshot) = snapshot else { return held };
        held.retain(|held| uid_of(held) != uid_of(snapshot));
        if has_finalizer(snapshot, &hold_finalizer(uid)) {
            held.insert(0, snapshot.clone());
        }
        held
    }

    /// The id decides; where there is none, the name has to do.
    fn latest_image(&self, destination: &Object) -> Option<Object> {
        let snapshot = part(&destination.data, &["status", "latestImage"]);
        let found = match annotation(destination, ANNOTATION_LATEST_IMAGE_UID) {
            Some(uid) => self.snapshot(uid),
            None => {
                let name = Name::within(namespace_of(self.claim), text(snapshot, &["name"]));
                self.view.get(Place::CLUSTER, &SNAPSHOT_KIND, &name)
            }
        };
        let is_published = text(snapshot, &["kind"]) == SNAPSHOT_KIND.kind;
        found.filter(|found| {
            is_published && !is_deleting(found) && found.data["status"]["readyToUse"] == true
        })
    }

    /// A volume: as a live read showed it, by itself or among all, else as the cache does.
    fn volume(&self, address: &Address) -> Option<Object> {
        let listed = self.live_reads.lists.get(&volumes());
        let listed = listed.and_then(|all| all.iter().find(|one| Name::of(one) == address.name));
        match (self.live_reads.objects.contains_key(address), listed) {
            (false, Some(volume)) => Some(volume.clone()),
            _ => seen(address, self.view, self.live_reads),
        }
    }

    /// Which volume it is: the one that says that it is for this claim, or the one that the claim
    /// names, or the one of PVC'.
    fn volume_address(&self, prime: Option<&Object>) -> Option<Address> {
        let claim = self.claim;
        let heir = Name::of(claim).to_string();
        let noted = match self.live_reads.lists.get(&volumes()) {
            Some(listed) => listed.clone(),
            None => self.view.find(Place::CLUSTER, &VOLUMES_BY_HEIR, &heir),
        };
        let is_its = |volume: &Object| {
            let owner = text(&volume.data, &["spec", "claimRef", "uid"]);
            is_for(volume, claim) || owner == uid_of(claim)
        };
        if let Some(volume) = noted.iter().find(|volume| is_its(volume)) {
            return Some(Address::new(Place::CLUSTER, &VOLUME, Name::of(volume)));
        }
        let named = |claim: &DynamicObject| {
            let name = text(&claim.data, &["spec", "volumeName"]);
            (!name.is_empty()).then(|| cluster_wide(&VOLUME, name))
        };
        let prime = prime.filter(|prime| is_ours(claim, prime));
        named(claim).or_else(|| prime.and_then(|prime| named(prime)))
    }
}

/// What the facts are read from.
struct Reading<'a> {
    scene: &'a Scene,
    view: &'a dyn View,
    live_reads: &'a LiveReads<Nothing>,
}

impl Reading<'_> {
    fn facts(&self) -> Facts {
        let scene = self.scene;
        let claim = &scene.claim;
        let note = |object: &Option<Object>, key: &str| {
            object.as_ref().and_then(|object| annotation(object, key)).map(str::to_owned)
        };
        Facts {
            is_fresh: scene
                .truth
                .iter()
                .all(|address| self.live_reads.objects.contains_key(address)),
            are_volumes_listed: self.live_reads.lists.contains_key(&volumes()),
            is_deleting: is_deleting(claim),
            is_marked: has_finalizer(claim, FINALIZER_POPULATE),
            bound: self.bound(),
            class: self.class(),
            destination: self.destination(),
            pin: scene.pin().map(|_| self.snapshot()),
            is_touched: note(&scene.snapshot, ANNOTATION_TOUCHED).as_deref() == Some(uid_of(claim)),
            holds: self.holds(),
            prime: self.prime(),
            is_prime_failing: scene.failure().is_some(),
            volume: self.volume(),
            is_policy_noted: note(&scene.volume, ANNOTATION_RECLAIM).is_some(),
            said: Obstacle::ALL.into_iter().find(|obstacle| {
                conditions::is_said(claim, &finding::of_obstacle(scene, *obstacle).0)
            }),
        }
    }

    fn owner(&self) -> &str {
        let volume = self.scene.volume.as_deref();
        volume.map(|found| text(&found.data, &["spec", "claimRef", "uid"])).unwrap_or_default()
    }

    fn bound(&self) -> Bound {
        let named = text(&self.scene.claim.data, &["spec", "volumeName"]);
        if named.is_empty() {
            return Bound::No;
        }
        let is_it = self.scene.volume.as_ref().is_some_and(|found| &*Name::of(found).name == named);
        match (is_it && self.owner() == uid_of(&self.scene.claim), self.phase_of_claim()) {
            (true, "Bound") => Bound::Here,
            (true, _) => Bound::No,
            (false, _) => Bound::Elsewhere,
        }
    }

    fn phase_of_claim(&self) -> &str {
        text(&self.scene.claim.data, &["status", "phase"])
    }

    fn class(&self) -> Class {
        let Some(named) = self.scene.claim.data["spec"]["storageClassName"].as_str() else {
            // Whoever has no class gets the default one, and PVC' likewise.
            return Class::Ready;
        };
        let class = self.view.get(Place::CLUSTER, &STORAGE_CLASS, &Name::cluster_wide(named));
        let Some(class) = class else { return Class::Missing };
        let waits = text(&class.data, &["volumeBindingMode"]) == "WaitForFirstConsumer";
        let is_placed = annotation(&self.scene.claim, SELECTED_NODE).is_some();
        if waits && !is_placed { Class::WaitsForPod } else { Class::Ready }
    }

    fn destination(&self) -> Destination {
        let Some(destination) = self.scene.destination.as_deref() else {
            return Destination::Missing;
        };
        let kind = text(&destination.data, &["status", "latestImage", "kind"]);
        match &self.scene.latest {
            _ if is_deleting(destination) => Destination::Leaving,
            _ if !kind.is_empty() && kind != SNAPSHOT_KIND.kind => Destination::MakesNone,
            Some(_) => Destination::Snapshot,
            None => Destination::NoSnapshot,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let Some(snapshot) = &self.scene.snapshot else {
            let is_listed = self.live_reads.lists.contains_key(&self.scene.snapshots());
            return if is_listed { Snapshot::Gone } else { Snapshot::NotSeen };
        };
        if is_deleting(snapshot) {
            return Snapshot::Dying;
        }
        if snapshot.data["status"]["readyToUse"] != true {
            return Snapshot::NotReady;
        }
        let allows = |object: &Object| annotation(object, ANNOTATION_ALLOW_EMPTY) == Some("true");
        let may_be_empty =
            allows(&self.scene.claim) || self.scene.destination.as_ref().is_some_and(allows);
        if annotation(snapshot, ANNOTATION_FILES) == Some("0") && !may_be_empty {
            return Snapshot::Empty;
        }
        if self.scene.snapshot_bytes() > self.scene.capacity() {
            Snapshot::TooLarge
        } else {
            Snapshot::Ready
        }
    }

    fn holds(&self) -> Holds {
        let is_pinned = |held: &&Object| Some(uid_of(held)) == self.scene.pin();
        match (self.scene.held.len(), self.scene.held.iter().filter(is_pinned).count()) {
            (0, _) => Holds::None,
            (1, 1) => Holds::Pinned,
            _ => Holds::Other,
        }
    }

    fn prime(&self) -> Prime {
        let Some(prime) = &self.scene.prime else { return Prime::None };
        if !is_ours(&self.scene.claim, prime) {
            return Prime::Foreign;
        }
        if is_deleting(prime) {
            return Prime::Terminating;
        }
        let named = |claim: &'_ Object| text(&claim.data, &["spec", "volumeName"]).to_owned();
        let (own, claimed) = (named(prime), named(&self.scene.claim));
        if !own.is_empty() && !claimed.is_empty() && own != claimed {
            return Prime::Apart;
        }
        let phase = text(&prime.data, &["status", "phase"]);
        if phase == "Lost" {
            return Prime::Lost;
        }
        if annotation(prime, ANNOTATION_SNAPSHOT) != self.scene.pin() {
            return Prime::OfOther;
        }
        if phase == "Bound" { Prime::Bound } else { Prime::Pending }
    }

    fn volume(&self) -> Volume {
        let Some(volume) = &self.scene.volume else { return Volume::None };
        let is_noted = is_for(volume, &self.scene.claim);
        if self.owner() == uid_of(&self.scene.claim) {
            return if is_noted { Volume::Handed } else { Volume::Settled };
        }
        let of = text(&volume.data, &["spec", "claimRef", "name"]);
        if of != prime_name(&self.scene.claim) {
            return Volume::None;
        }
        let stays = text(&volume.data, &["spec", "persistentVolumeReclaimPolicy"]) == "Retain";
        let is_released = text(&volume.data, &["status", "phase"]) == "Released";
        match (is_deleting(volume), is_noted && stays, is_released) {
            (true, ..) => Volume::Terminating,
            // It was made to stay before it was released, so nobody deletes it.
            (false, true, _) => Volume::Kept,
            (false, false, true) => Volume::Terminating,
            (false, false, false) => Volume::OfPrime,
        }
    }
}
