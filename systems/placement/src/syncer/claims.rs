//! The claims of a namespace on one cluster: which volume is there, and whose data it has.
//!
//! A volume is used for an epoch only if the pin of that epoch says that it may: a `fresh` claim
//! gets an empty one, an `inPlace` claim takes the very volume that was left here, and one whose data
//! is in an image of another cluster or in a repository gets a new volume that is filled from it.
//! Whatever is not as it should be stops the arrival and says so; no volume is made in place of one
//! that is missing.

use super::decide::{Claim as ClaimFacts, Epoch, Volume};
use super::filling::Binding;
use super::marks::{
    ANNOTATION_FROM, ANNOTATION_LAST, LABEL_GRANT, annotation, from_uid, has_finalizer, is_going,
    is_ours, uid,
};
use super::objects::desired::own_marks;
use interlock_api::names::{ANNOTATION_EPOCH, FINALIZER_KEEP, LABEL_SUPERSEDED_BY};
use interlock_api::placement::{Claim, Fill, Image, Pin, Ref, VolumePolicy};
use interlock_kernel::Object;
use kube_core::DynamicObject;
use serde_json::{Map, Value, json};

/// A claim that the grant lists, with all that is known of it.
#[derive(Debug, Clone)]
pub(super) struct ClaimSeen {
    /// As the grant lists it.
    pub(super) listed: Claim,
    /// The image that it comes from.
    pub(super) pin: Option<Pin>,
    /// The claim at the hub, of this very uid.
    pub(super) at_hub: Option<Object>,
    /// Whatever has its name on the cluster.
    pub(super) here: Option<Object>,
    /// Whether that has its volume.
    pub(super) binding: Binding,
    /// Whatever takes images of it here.
    pub(super) source: Option<Object>,
    /// The image that the source says it made last.
    pub(super) image: Option<Object>,
    /// Whatever brings the image of this epoch here.
    pub(super) destination: Option<Object>,
}

/// Why a claim cannot be filled, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Obstacle {
    /// One word.
    pub(super) reason: &'static str,
    /// The sentence.
    pub(super) message: String,
}

/// Where a claim is: the cluster, the grant and the epoch that it is looked at for.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) cluster: &'a Ref,
    pub(super) grant: &'a str,
    pub(super) grant_uid: &'a str,
    pub(super) epoch: Epoch,
    /// Volumes here up to this epoch may have what no image has; 0: there are none.
    pub(super) written_until: Epoch,
    /// Whether somebody here fills claims from images.
    pub(super) is_copying: bool,
}

impl ClaimSeen {
    /// Whether nobody needs it: it is not alive at the hub, and this epoch has no volume for it
    /// here. Nothing is made for it, and nothing is lost by that.
    pub(super) fn is_gone(&self, at: At<'_>) -> bool {
        let is_alive = self.at_hub.as_deref().is_some_and(|claim| !is_going(claim));
        let has_volume = self.volume_here(at).is_some_and(|here| noted_epoch(here) >= at.epoch);
        !is_alive && !has_volume
    }

    /// The volume of this very claim here.
    pub(super) fn volume_here(&self, at: At<'_>) -> Option<&Object> {
        let here = self.here.as_ref()?;
        let is_same = is_ours(here, at.grant) && from_uid(here) == Some(&self.listed.uid);
        is_same.then_some(here)
    }

    pub(super) fn facts(&self, at: At<'_>) -> ClaimFacts {
        ClaimFacts {
            volume: self.volume(at).unwrap_or(Volume::Filling),
            is_filled: self.listed.fill == Fill::Filled || self.is_left_in_place(at),
            last: self.last_image(at),
        }
    }

    /// Whether what it is to be filled from is the very volume that an earlier epoch left here, with
    /// all that was written to it. An image can be taken of it before this epoch has used it: handed
    /// over as it came, it could only ever come back here.
    pub(super) fn is_left_in_place(&self, at: At<'_>) -> bool {
        let Some(Image::InPlace { cluster, volume }) = self.pin.as_ref().map(|pin| &pin.image)
        else {
            return false;
        };
        at.is_copying
            && cluster.is_same(at.cluster)
            && self.volume_here(at).is_some_and(|here| is_on(here, volume))
    }

    /// The volume that was kept in place when this epoch was closed.
    pub(super) fn last(&self, at: At<'_>) -> Option<&str> {
        let (epoch, volume) =
            annotation(self.volume_here(at)?, ANNOTATION_LAST)?.split_once('@')?;
        (epoch.parse() == Ok(at.epoch) && !volume.is_empty()).then_some(volume)
    }

    /// How far its volume for this epoch is, or what is in the way.
    pub(super) fn volume(&self, at: At<'_>) -> Result<Volume, Obstacle> {
        let name = &self.listed.name;
        let obstacle = |reason, message| Err(Obstacle { reason, message });
        let Some(here) = &self.here else { return self.missing_volume(at) };
        if !is_ours(here, at.grant) {
            let message = format!("a claim {name} of somebody else is in its place");
            return obstacle("NameTaken", message);
        }
        if from_uid(here) != Some(&self.listed.uid) {
            let message = format!(
                "the volume of an earlier claim {name} is in its place; it goes with the copy that \
                 it belongs to"
            );
            return obstacle("NameTaken", message);
        }
        let noted = noted_epoch(here);
        if noted == at.epoch {
            return self.volume_of_this_epoch(at);
        }
        if noted > at.epoch {
            let message = format!("the volume of claim {name} is of a later epoch, {noted}");
            return obstacle("OldNews", message);
        }
        match self.pin.as_ref().map(|pin| &pin.image) {
            None | Some(Image::Fresh {}) if noted <= at.written_until => {
                let message = format!(
                    "the volume of claim {name} here has what was written after its owner was \
                     declared gone; it is not used as an empty one"
                );
                obstacle("Diverged", message)
            }
            // It was never used: whatever epoch made it, it is empty.
            None | Some(Image::Fresh {}) => Ok(Volume::Missing),
            Some(Image::InPlace { cluster, volume }) if cluster.is_same(at.cluster) => {
                if is_on(here, volume) {
                    return Ok(Volume::Missing);
                }
                let message = format!("claim {name} is on another volume than {volume}");
                obstacle("VolumeMissing", message)
            }
            Some(Image::InPlace { cluster, .. }) => {
                let message = format!("the data of claim {name} is on cluster {cluster}");
                obstacle("DataElsewhere", message)
            }
            // What is here is of an earlier epoch, and makes room for a new volume.
            Some(Image::VolumeSnapshot { .. } | Image::Restic { .. }) => self.can_be_copied(at),
        }
    }

    /// A volume that was made or taken for this epoch is filled once the claim has it: whoever fills
    /// a claim hands the volume over when all of the data is in it.
    fn volume_of_this_epoch(&self, at: At<'_>) -> Result<Volume, Obstacle> {
        let is_copied = self.origin().is_some();
        match self.binding {
            Binding::Bound | Binding::NotAsked => Ok(Volume::Filled),
            Binding::Lost => Err(Obstacle {
                reason: "VolumeMissing",
                message: format!("claim {} has lost its volume", self.listed.name),
            }),
            // Once the hub was told, something may have written to it.
            Binding::AwaitsConsumer | Binding::Unbound if self.listed.fill == Fill::Filled => {
                Ok(Volume::Filled)
            }
            Binding::AwaitsConsumer if !is_copied || self.has_arrived(at) => Ok(Volume::Filled),
            Binding::AwaitsConsumer | Binding::Unbound => match self.own_destination(at) {
                // Somebody deleted it on the way: it is made anew.
                None if is_copied => self.can_be_copied(at),
                Some(_) | None => Ok(Volume::Filling),
            },
        }
    }

    /// Whether a volume can be filled from an image of another cluster: then it is missing so far.
    fn can_be_copied(&self, at: At<'_>) -> Result<Volume, Obstacle> {
        let name = &self.listed.name;
        if !at.is_copying {
            return Err(copy_not_supported(name));
        }
        if self.destination.is_some() && self.own_destination(at).is_none() {
            let message = format!("a ReplicationDestination for claim {name} is somebody else's");
            return Err(Obstacle { reason: "NameTaken", message });
        }
        Ok(Volume::Missing)
    }

    fn missing_volume(&self, at: At<'_>) -> Result<Volume, Obstacle> {
        let name = &self.listed.name;
        let lost = || Obstacle {
            reason: "VolumeMissing",
            message: format!(
                "the volume of claim {name} is not on this cluster any more; no empty one is made \
                 in its place"
            ),
        };
        // Once it was filled, it may have been written: an empty one would hide the loss.
        if self.listed.fill == Fill::Filled {
            return Err(lost());
        }
        match self.pin.as_ref().map(|pin| &pin.image) {
            None | Some(Image::Fresh {}) => Ok(Volume::Missing),
            Some(Image::InPlace { .. }) => Err(lost()),
            Some(Image::VolumeSnapshot { .. } | Image::Restic { .. }) => self.can_be_copied(at),
        }
    }
}

fn copy_not_supported(name: &str) -> Obstacle {
    Obstacle {
        reason: "CopyNotSupported",
        message: format!(
            "the data of claim {name} would have to be copied, which nothing here does"
        ),
    }
}

/// The epoch that a volume was last taken for.
pub(super) fn noted_epoch(here: &DynamicObject) -> Epoch {
    annotation(here, ANNOTATION_EPOCH).and_then(|epoch| epoch.parse().ok()).unwrap_or(0)
}

/// Whether a claim has the volume that goes by this name, before or since it was bound.
fn is_on(here: &DynamicObject, volume: &str) -> bool {
    volume == identity(here) || volume == uid(here)
}

/// What tells a volume from all others on its cluster: the volume that the claim is bound to, or,
/// before it is bound, the claim itself.
pub(super) fn identity(here: &DynamicObject) -> &str {
    let volume = here.data["spec"]["volumeName"].as_str().filter(|name| !name.is_empty());
    volume.unwrap_or_else(|| uid(here))
}

/// The claim on the cluster for a claim at the hub: a new volume, filled from what the claim names,
/// and an empty one only if it names nothing.
pub(super) fn new_claim(at_hub: &DynamicObject, policy: &VolumePolicy, at: At<'_>) -> Value {
    let asked = &at_hub.data["spec"];
    let mut spec = Map::new();
    for field in [
        "accessModes",
        "resources",
        "volumeMode",
        "volumeAttributesClassName",
        "dataSource",
        "dataSourceRef",
    ] {
        if !asked[field].is_null() {
            spec.insert(field.to_owned(), asked[field].clone());
        }
    }
    if let Some(class) = asked["storageClassName"].as_str() {
        let class = policy.storage_classes.get(class).map_or(class, String::as_str);
        spec.insert("storageClassName".to_owned(), json!(class));
    }
    let mut labels = own_marks(at_hub.metadata.labels.as_ref());
    labels.insert(LABEL_GRANT.to_owned(), at.grant.to_owned());
    let mut annotations = own_marks(at_hub.metadata.annotations.as_ref());
    annotations.retain(|key, _| !key.starts_with("volume.") && !key.starts_with("pv."));
    annotations.insert(ANNOTATION_FROM.to_owned(), format!("{}/claim", uid(at_hub)));
    annotations.insert(ANNOTATION_EPOCH.to_owned(), at.epoch.to_string());
    json!({
        "metadata": {
            "labels": labels, "annotations": annotations, "finalizers": [FINALIZER_KEEP],
        },
        "spec": spec,
    })
}

/// The patch by which a volume that is here is taken for an epoch.
pub(super) fn take_over(here: &DynamicObject, epoch: Epoch) -> Value {
    let mut change = json!({"metadata": {
        "annotations": {ANNOTATION_EPOCH: epoch.to_string(), ANNOTATION_LAST: null},
        "labels": {LABEL_SUPERSEDED_BY: null},
    }});
    if !has_finalizer(here, FINALIZER_KEEP) && !is_going(here) {
        let kept = super::marks::put_finalizer(here, FINALIZER_KEEP);
        change["metadata"]["finalizers"] = kept["metadata"]["finalizers"].clone();
    }
    change
}

/// The patch that notes that a volume stays here as the last image of an epoch.
pub(super) fn keep_in_place(here: &DynamicObject, epoch: Epoch) -> Value {
    let last = format!("{epoch}@{}", identity(here));
    json!({"metadata": {"annotations": {ANNOTATION_LAST: last}}})
}
