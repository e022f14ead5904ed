//! What is seen of a claim, its destination, its image, PVC' and the volume on its way.

use super::decide::{Bound, Class, Destination, Facts, Holds, Image, Prime, Volume};
use super::{is_populated, prime_for};
use crate::filed::{SNAPSHOTS_BY_HOLDER, SNAPSHOTS_BY_UID, VOLUMES_BY_HEIR, source_of};
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT_KIND, STORAGE_CLASS, VOLUME};
use crate::objects::{
    HEALTHY, annotation, beside, cluster_wide, conditions, has_finalizer, is_deleting, is_same,
    namespace_of, part, text, uid_of,
};
use crate::quantity;
use interlock_api::names::{
    ANNOTATION_ALLOW_EMPTY, ANNOTATION_FILES, ANNOTATION_IMAGE, ANNOTATION_LATEST_IMAGE_UID,
    ANNOTATION_POPULATES, FINALIZER_POPULATE, hold_finalizer,
};
use interlock_kernel::{Address, Looks, Name, Nothing, Object, Place, Read, View};
use kube_core::DynamicObject;

/// On an image: the claim that was the last to give it up without having held it.
pub(super) const ANNOTATION_TOUCHED: &str = "interlock.dev/let-go-by";
/// On a claim: the node that its first pod goes to.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Everything that a step about one claim sees.
pub(super) struct Scene<'a> {
    pub(super) view: &'a dyn View,
    looks: &'a Looks<Nothing>,
    pub(super) claim: Object,
    pub(super) destination: Option<Object>,
    /// The image that is noted on the claim.
    pub(super) image: Option<Object>,
    /// The latest image of the destination.
    pub(super) latest: Option<Object>,
    /// The images that it holds.
    pub(super) held: Vec<Object>,
    pub(super) prime: Option<Object>,
    pub(super) volume: Option<Object>,
}

/// An object: as a fresh look showed it, else as the cache does.
fn seen(address: &Address, view: &dyn View, looks: &Looks<Nothing>) -> Option<Object> {
    match looks.objects.get(address) {
        Some(found) => found.clone(),
        None => view.get(address.place, &address.kind, &address.name),
    }
}

fn claim_address(name: &Name) -> Address {
    Address::new(Place::CLUSTER, &CLAIM, name.clone())
}

pub(super) fn prime_name(claim: &DynamicObject) -> String {
    format!("prime-{}", uid_of(claim))
}

/// What a volume that is handed to this claim says.
pub(super) fn note_for(claim: &DynamicObject) -> String {
    format!("{}/{}", Name::of(claim), uid_of(claim))
}

fn is_for(volume: &DynamicObject, claim: &DynamicObject) -> bool {
    annotation(volume, ANNOTATION_POPULATES) == Some(&note_for(claim))
}

impl<'a> Scene<'a> {
    /// What is seen of a claim that is filled from a destination.
    pub(super) fn of(
        name: &Name,
        view: &'a dyn View,
        looks: &'a Looks<Nothing>,
    ) -> Option<Scene<'a>> {
        let claim = seen(&claim_address(name), view, looks).filter(|claim| is_populated(claim))?;
        let (_, _, source) = source_of(&claim)?;
        let destination = Name::within(namespace_of(&claim), source);
        let destination = view.get(Place::CLUSTER, &DESTINATION, &destination);
        let prime = seen(&beside(&claim, &CLAIM, &prime_name(&claim)), view, looks);
        let mut scene = Scene {
            view,
            looks,
            image: None,
            latest: None,
            held: view.find(Place::CLUSTER, &SNAPSHOTS_BY_HOLDER, uid_of(&claim)),
            volume: None,
            destination,
            prime,
            claim,
        };
        scene.volume = scene.volume_address().and_then(|address| seen(&address, view, looks));
        scene.image = scene.pin().and_then(|pin| scene.snapshot(pin));
        scene.latest = scene.latest_image();
        scene.see_holds();
        Some(scene)
    }

    /// What has to be seen afresh: the claim, PVC', the image, and the volume once it is known.
    pub(super) fn truth(&self) -> Vec<Read<Nothing>> {
        let claim = claim_address(&Name::of(&self.claim));
        let prime = beside(&self.claim, &CLAIM, &prime_name(&self.claim));
        let image = self
            .image
            .as_ref()
            .map(|image| Address::new(Place::CLUSTER, &SNAPSHOT_KIND, Name::of(image)));
        let reads = [Some(claim), Some(prime), image, self.volume_address()];
        reads.into_iter().flatten().map(Read::Object).collect()
    }

    pub(super) fn facts(&self) -> Facts {
        let claim = &self.claim;
        let is_looked_at = |read: &Read<Nothing>| match read {
            Read::Object(address) => self.looks.objects.contains_key(address),
            Read::List { .. } | Read::Ask(_) => false,
        };
        Facts {
            is_fresh: self.truth().iter().all(is_looked_at),
            is_deleting: is_deleting(claim),
            is_marked: has_finalizer(claim, FINALIZER_POPULATE),
            bound: self.bound(),
            class: self.class(),
            destination: self.destination_seen(),
            pin: self.pin().map(|_| self.image_seen()),
            is_touched: self
                .image
                .as_ref()
                .is_some_and(|image| annotation(image, ANNOTATION_TOUCHED) == Some(uid_of(claim))),
            holds: self.holds(),
            prime: self.prime_seen(),
            is_prime_failing: self.failure().is_some(),
            volume: self.volume_seen(),
        }
    }

    /// The uid of the image that is noted on the claim.
    pub(super) fn pin(&self) -> Option<&str> {
        annotation(&self.claim, ANNOTATION_IMAGE).filter(|pin| !pin.is_empty())
    }

    /// The bytes that the image needs.
    pub(super) fn image_bytes(&self) -> u64 {
        let image = self.image.as_deref();
        let size = image.map(|image| part(&image.data, &["status", "restoreSize"]));
        size.and_then(quantity::bytes).unwrap_or(0)
    }

    /// The bytes that the claim asks for.
    pub(super) fn capacity(&self) -> u64 {
        let size = part(&self.claim.data, &["spec", "resources", "requests", "storage"]);
        quantity::bytes(size).unwrap_or(0)
    }

    /// Why PVC' has no volume: reason and sentence.
    pub(super) fn failure(&self) -> Option<(&str, &str)> {
        let condition = conditions::find(self.prime.as_deref()?, HEALTHY)?;
        let is_failing = condition["status"] == "False";
        is_failing.then(|| (text(condition, &["reason"]), text(condition, &["message"])))
    }

    /// All images of the namespace.
    pub(super) fn images(&self) -> (Place, interlock_kernel::Kind, Option<String>) {
        (Place::CLUSTER, SNAPSHOT_KIND, Some(namespace_of(&self.claim).to_owned()))
    }

    /// An image of the namespace by its uid.
    fn snapshot(&self, uid: &str) -> Option<Object> {
        let namespace = namespace_of(&self.claim);
        let is_it = |found: &&Object| is_same(found, uid) && namespace_of(found) == namespace;
        if let Some(listed) = self.looks.lists.get(&self.images()) {
            return listed.iter().find(is_it).cloned();
        }
        let cached = self.view.find(Place::CLUSTER, &SNAPSHOTS_BY_UID, uid);
        let cached = cached.iter().find(is_it).cloned()?;
        let address = Address::new(Place::CLUSTER, &SNAPSHOT_KIND, Name::of(&cached));
        match self.looks.objects.get(&address) {
            None => Some(cached),
            // What is gone, or has only its name, is looked for among all.
            Some(found) => found.clone().filter(|found| is_same(found, uid)),
        }
    }

    /// The pinned image may be fresher than the others.
    fn see_holds(&mut self) {
        let Some(image) = self.image.clone() else { return };
        self.held.retain(|held| uid_of(held) != uid_of(&image));
        if has_finalizer(&image, &hold_finalizer(uid_of(&self.claim))) {
            self.held.insert(0, image);
        }
    }

    /// The id decides; where there is none, the name has to do.
    fn latest_image(&self) -> Option<Object> {
        let destination = self.destination.as_deref()?;
        let image = part(&destination.data, &["status", "latestImage"]);
        let found = match annotation(destination, ANNOTATION_LATEST_IMAGE_UID) {
            Some(uid) => self.snapshot(uid),
            None => {
                let name = Name::within(namespace_of(&self.claim), text(image, &["name"]));
                self.view.get(Place::CLUSTER, &SNAPSHOT_KIND, &name)
            }
        };
        let is_published = text(image, &["kind"]) == SNAPSHOT_KIND.kind;
        found.filter(|found| {
            is_published && !is_deleting(found) && found.data["status"]["readyToUse"] == true
        })
    }

    /// Which volume it is: the one that says that it is for this claim, or the one that the claim
    /// names, or the one of PVC'.
    fn volume_address(&self) -> Option<Address> {
        let noted =
            self.view.find(Place::CLUSTER, &VOLUMES_BY_HEIR, &Name::of(&self.claim).to_string());
        if let Some(volume) = noted.iter().find(|volume| is_for(volume, &self.claim)) {
            return Some(Address::new(Place::CLUSTER, &VOLUME, Name::of(volume)));
        }
        let named = |claim: &DynamicObject| {
            let name = text(&claim.data, &["spec", "volumeName"]);
            (!name.is_empty()).then(|| cluster_wide(&VOLUME, name))
        };
        let prime = self.prime.as_deref().filter(|prime| self.is_ours(prime));
        named(&self.claim).or_else(|| prime.and_then(named))
    }

    fn is_ours(&self, prime: &DynamicObject) -> bool {
        prime_for(prime) == Some(uid_of(&self.claim))
    }

    fn owner(&self) -> &str {
        let volume = self.volume.as_deref();
        volume.map(|found| text(&found.data, &["spec", "claimRef", "uid"])).unwrap_or_default()
    }

    fn bound(&self) -> Bound {
        let named = text(&self.claim.data, &["spec", "volumeName"]);
        if named.is_empty() {
            return Bound::No;
        }
        let is_it = self.volume.as_ref().is_some_and(|found| &*Name::of(found).name == named);
        match (is_it && self.owner() == uid_of(&self.claim), self.phase_of_claim()) {
            (true, "Bound") => Bound::Here,
            (true, _) => Bound::No,
            (false, _) => Bound::Elsewhere,
        }
    }

    fn phase_of_claim(&self) -> &str {
        text(&self.claim.data, &["status", "phase"])
    }

    fn class(&self) -> Class {
        let Some(named) = self.claim.data["spec"]["storageClassName"].as_str() else {
            // Whoever has no class gets the default one, and PVC' likewise.
            return Class::Ready;
        };
        let class = self.view.get(Place::CLUSTER, &STORAGE_CLASS, &Name::cluster_wide(named));
        let Some(class) = class else { return Class::Missing };
        let waits = text(&class.data, &["volumeBindingMode"]) == "WaitForFirstConsumer";
        let is_placed = annotation(&self.claim, SELECTED_NODE).is_some();
        if waits && !is_placed { Class::WaitsForPod } else { Class::Ready }
    }

    fn destination_seen(&self) -> Destination {
        let Some(destination) = self.destination.as_deref() else { return Destination::Missing };
        let kind = text(&destination.data, &["status", "latestImage", "kind"]);
        match &self.latest {
            _ if is_deleting(destination) => Destination::Leaving,
            _ if !kind.is_empty() && kind != SNAPSHOT_KIND.kind => Destination::MakesNone,
            Some(_) => Destination::Image,
            None => Destination::NoImage,
        }
    }

    fn image_seen(&self) -> Image {
        let Some(image) = &self.image else {
            let is_listed = self.looks.lists.contains_key(&self.images());
            return if is_listed { Image::Gone } else { Image::NotSeen };
        };
        if is_deleting(image) {
            return Image::Dying;
        }
        if image.data["status"]["readyToUse"] != true {
            return Image::NotReady;
        }
        let allows = |object: &Object| annotation(object, ANNOTATION_ALLOW_EMPTY) == Some("true");
        let may_be_empty = allows(&self.claim) || self.destination.as_ref().is_some_and(allows);
        if annotation(image, ANNOTATION_FILES) == Some("0") && !may_be_empty {
            return Image::Empty;
        }
        if self.image_bytes() > self.capacity() { Image::TooLarge } else { Image::Ready }
    }

    fn holds(&self) -> Holds {
        let is_pinned = |held: &&Object| Some(uid_of(held)) == self.pin();
        match (self.held.len(), self.held.iter().filter(is_pinned).count()) {
            (0, _) => Holds::None,
            (1, 1) => Holds::Pinned,
            _ => Holds::Other,
        }
    }

    fn prime_seen(&self) -> Prime {
        let Some(prime) = &self.prime else { return Prime::None };
        if !self.is_ours(prime) {
            return Prime::Foreign;
        }
        if is_deleting(prime) {
            return Prime::Going;
        }
        let named = |claim: &'_ Object| text(&claim.data, &["spec", "volumeName"]).to_owned();
        let (own, claimed) = (named(prime), named(&self.claim));
        if !own.is_empty() && !claimed.is_empty() && own != claimed {
            return Prime::Apart;
        }
        let phase = text(&prime.data, &["status", "phase"]);
        if phase == "Lost" {
            return Prime::Lost;
        }
        if annotation(prime, ANNOTATION_IMAGE) != self.pin() {
            return Prime::OfOther;
        }
        if phase == "Bound" { Prime::Bound } else { Prime::Pending }
    }

    fn volume_seen(&self) -> Volume {
        let Some(volume) = &self.volume else { return Volume::None };
        let is_noted = is_for(volume, &self.claim);
        if self.owner() == uid_of(&self.claim) {
            return if is_noted { Volume::Handed } else { Volume::Settled };
        }
        let of = text(&volume.data, &["spec", "claimRef", "name"]);
        if of != prime_name(&self.claim) {
            return Volume::None;
        }
        let stays = text(&volume.data, &["spec", "persistentVolumeReclaimPolicy"]) == "Retain";
        let is_released = text(&volume.data, &["status", "phase"]) == "Released";
        match (is_deleting(volume), is_noted && stays, is_released) {
            (true, ..) => Volume::Going,
            // It was made to stay before it was released, so nobody deletes it.
            (false, true, _) => Volume::Kept,
            (false, false, true) => Volume::Going,
            (false, false, false) => Volume::OfPrime,
        }
    }
}

/// A volume that is to be handed to a claim that is gone.
pub(super) struct Orphan {
    pub(super) volume: Object,
    /// Whether the claim and the volume were seen afresh.
    pub(super) is_fresh: bool,
    pub(super) truth: Vec<Read<Nothing>>,
}

impl Orphan {
    /// The first such volume of a claim that had this name.
    pub(super) fn of(name: &Name, view: &dyn View, looks: &Looks<Nothing>) -> Option<Orphan> {
        let address = claim_address(name);
        let claim = seen(&address, view, looks);
        let volumes = view.find(Place::CLUSTER, &VOLUMES_BY_HEIR, &name.to_string());
        let is_orphan = |volume: &&Object| !claim.as_ref().is_some_and(|it| is_for(volume, it));
        let volume = volumes.iter().find(is_orphan)?;
        let of_volume = Address::new(Place::CLUSTER, &VOLUME, Name::of(volume));
        let is_fresh =
            looks.objects.contains_key(&address) && looks.objects.contains_key(&of_volume);
        let volume = match looks.objects.get(&of_volume) {
            Some(found) => found.clone().filter(|found| {
                uid_of(found) == uid_of(volume) && annotation(found, ANNOTATION_POPULATES).is_some()
            })?,
            None => volume.clone(),
        };
        let truth = vec![Read::Object(address), Read::Object(of_volume)];
        Some(Orphan { volume, is_fresh, truth })
    }
}
