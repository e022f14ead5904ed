//! What is seen of a volume, of its claim and of the disk.

use super::decide::{Claim, Facts, Made, Phase};
use crate::filed::PODS_BY_CLAIM;
use crate::kinds::{CLAIM, VOLUME};
use crate::objects::{has_finalizer, is_deleting, is_same, part, text, uid_of};
use crate::outside::{Disk, DiskQuestion, Made as Answer};
use crate::storage::claim::VOLUME_PROTECTION;
use crate::storage::{handle_of, is_local};
use interlock_kernel::{Address, LiveReads, Name, Object, Observed, Place, View};
use kube_core::DynamicObject;

/// The objects that a step about one volume is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) volume: Object,
}

/// Reads what a step is about.
pub(super) fn observe(
    name: &Name,
    view: &dyn View,
    live_reads: &LiveReads<Disk>,
) -> Observed<Facts, Scene> {
    let found = view.get(Place::CLUSTER, &VOLUME, name);
    let Some(volume) = found.filter(|volume| is_local(volume)) else {
        return Observed::nothing("the cache shows no local volume of that name");
    };
    let scene = Scene { volume };
    Observed::Seen { facts: Reading { scene: &scene, view, live_reads }.facts(), scene }
}

impl Scene {
    /// The claim and the volume themselves: in this order, so that the volume is seen as it was
    /// after the claim was gone.
    pub(super) fn truth(&self) -> [Address; 2] {
        let claim = Address::new(Place::CLUSTER, &CLAIM, self.claim_name());
        [claim, Address::new(Place::CLUSTER, &VOLUME, Name::of(&self.volume))]
    }

    fn claim_name(&self) -> Name {
        let claim = part(&self.volume.data, &["spec", "claimRef"]);
        Name::within(text(claim, &["namespace"]), text(claim, &["name"]))
    }
}

/// What the facts are read from.
struct Reading<'a> {
    scene: &'a Scene,
    view: &'a dyn View,
    live_reads: &'a LiveReads<Disk>,
}

impl Reading<'_> {
    fn facts(&self) -> Facts {
        let volume = &self.scene.volume;
        Facts {
            is_deleting: is_deleting(volume),
            is_protected: has_finalizer(volume, VOLUME_PROTECTION),
            claim: self.claim(),
            phase: match text(&volume.data, &["status", "phase"]) {
                "Available" => Phase::Available,
                "Bound" => Phase::Bound,
                "Released" => Phase::Released,
                _ => Phase::Other,
            },
            is_reclaimed: text(&volume.data, &["spec", "persistentVolumeReclaimPolicy"])
                == "Delete",
            is_in_use: self.is_in_use(),
            made: self.made(),
        }
    }

    fn claim(&self) -> Claim {
        let reference = part(&self.scene.volume.data, &["spec", "claimRef"]);
        if reference.is_null() {
            return Claim::None;
        }
        let uid = text(reference, &["uid"]);
        let is_there = |found: &DynamicObject| {
            let named = text(&found.data, &["spec", "volumeName"]);
            // A claim never changes the volume that it names: one that names another is gone.
            is_same(found, uid)
                && (named.is_empty() || named == &*Name::of(&self.scene.volume).name)
        };
        let cached = self.view.get(Place::CLUSTER, &CLAIM, &self.scene.claim_name());
        if cached.is_some_and(|found| is_there(&found)) {
            return Claim::There;
        }
        let [claim, volume] = self.scene.truth();
        let (Some(claim), Some(volume)) =
            (self.live_reads.objects.get(&claim), self.live_reads.objects.get(&volume))
        else {
            return Claim::NotSeen;
        };
        let is_as_seen = volume.as_ref().is_some_and(|found| {
            uid_of(found) == uid_of(&self.scene.volume)
                && found.metadata.resource_version == self.scene.volume.metadata.resource_version
        });
        let is_gone = !claim.as_ref().is_some_and(|found| is_there(found));
        if is_gone && is_as_seen { Claim::Gone } else { Claim::Behind }
    }

    /// A pod that was made after a claim of the same name was made again uses that one.
    fn is_in_use(&self) -> bool {
        let name = self.scene.claim_name();
        let successor = self.view.get(Place::CLUSTER, &CLAIM, &name);
        let since = successor.and_then(|claim| claim.metadata.creation_timestamp.clone());
        let pods = self.view.find(Place::CLUSTER, &PODS_BY_CLAIM, &name.to_string());
        pods.iter().any(|pod| match (&since, &pod.metadata.creation_timestamp) {
            (Some(since), Some(made)) => made.0 <= since.0,
            (Some(_), None) | (None, _) => true,
        })
    }

    fn made(&self) -> Made {
        let question = DiskQuestion::Volume(handle_of(&self.scene.volume).to_owned());
        match self.live_reads.answers.get(&question) {
            None => Made::NotAsked,
            Some(Answer::Missing | Answer::Failed(_)) => Made::Missing,
            Some(Answer::Whole(_)) => Made::There,
            Some(Answer::Making(_)) => Made::Making,
        }
    }
}
