//! Whether a cluster can take a namespace, and why not.
//!
//! Clusters are read as they are, without types: a step looks at all of them, and most of what they
//! say does not matter here.

use super::decide::Misfit;
use crate::record::{is_condition_true, is_deleting, uid_of};
use interlock_api::placement::condition::READY;
use interlock_api::placement::{Fill, Image, VolumePolicy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_core::DynamicObject;
use serde_json::Value;
use std::collections::BTreeMap;

use super::selector::is_selected;
use crate::record::GrantRecord;

/// What a namespace needs of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// Which clusters are selected; None: all.
    pub(crate) selector: Option<LabelSelector>,
    /// Its claims.
    pub(crate) claims: Vec<ClaimNeeds>,
}

/// What a claim needs of a cluster.
#[derive(Debug)]
pub(crate) struct ClaimNeeds {
    /// Its name.
    name: String,
    /// The class that it will name on a cluster; None: whichever is the default.
    class: Option<String>,
    /// Whether it asks for a raw device, which nothing can carry.
    is_block: bool,
    /// The data that goes along with it.
    data: Data,
}

/// The data of a claim.
#[derive(Debug)]
enum Data {
    /// It was never used.
    None,
    /// It is on this cluster, and takes this much room elsewhere.
    On { cluster_uid: String, bytes: i64 },
    /// It is in an image, and takes this much room everywhere.
    Image { bytes: i64 },
}

impl ClaimNeeds {
    /// Reads what a claim at the hub needs, given the grant that may know of data.
    pub(crate) fn read(
        claim: &DynamicObject,
        policy: &VolumePolicy,
        grant: Option<&GrantRecord>,
    ) -> ClaimNeeds {
        let spec = &claim.data["spec"];
        let class = spec["storageClassName"].as_str();
        let class = class.map(|class| policy.storage_classes.get(class).map_or(class, |c| c));
        ClaimNeeds {
            name: claim.metadata.name.clone().unwrap_or_default(),
            class: class.map(str::to_owned),
            is_block: spec["volumeMode"] == "Block",
            data: grant.map_or(Data::None, |grant| data_of(uid_of(claim), grant)),
        }
    }
}

fn data_of(claim_uid: &str, grant: &GrantRecord) -> Data {
    let claim = grant.status.claims.iter().find(|claim| claim.uid == claim_uid);
    let pin = grant.status.pins.iter().find(|pin| pin.claim_uid == claim_uid);
    let last = claim.and_then(|claim| claim.last_image.as_ref());
    let bytes = pin.iter().chain(last.iter()).map(|pin| pin.bytes).max().unwrap_or(0).max(0);
    let is_filled = claim.is_some_and(|claim| claim.fill == Fill::Filled);
    if let Some(owner) = grant.status.owner.as_ref().filter(|_| grant.is_held() && is_filled) {
        return Data::On { cluster_uid: owner.uid.clone(), bytes };
    }
    match pin.map(|pin| &pin.image) {
        None | Some(Image::Fresh {}) => Data::None,
        Some(Image::InPlace { cluster, .. }) => {
            Data::On { cluster_uid: cluster.uid.clone(), bytes }
        }
        Some(Image::VolumeSnapshot { .. } | Image::Restic { .. }) => Data::Image { bytes },
    }
}

/// Why a cluster cannot take a namespace; None: it can.
pub(crate) fn misfit(cluster: &DynamicObject, needs: &Needs) -> Option<Misfit> {
    let spec = &cluster.data["spec"];
    if is_deleting(cluster) {
        return Some(Misfit::Deleting);
    }
    if !is_condition_true(cluster, READY) {
        return Some(Misfit::NotReady);
    }
    if spec["unschedulable"] == true {
        return Some(Misfit::Unschedulable);
    }
    if spec["drain"] == true {
        return Some(Misfit::Draining);
    }
    let selector = needs.selector.as_ref();
    if selector.is_some_and(|selector| !is_selected(selector, cluster.metadata.labels.as_ref())) {
        return Some(Misfit::NotSelected);
    }
    storage_misfit(cluster, &needs.claims)
}

fn storage_misfit(cluster: &DynamicObject, claims: &[ClaimNeeds]) -> Option<Misfit> {
    let classes: &[Value] =
        cluster.data["status"]["storageClasses"].as_array().map_or(&[], Vec::as_slice);
    // How much has to go where, by the place of the class.
    let mut needed: BTreeMap<usize, i64> = BTreeMap::new();
    for claim in claims {
        let copied = match &claim.data {
            Data::None => None,
            Data::On { cluster_uid, .. } if cluster_uid == uid_of(cluster) => None,
            Data::On { bytes, .. } | Data::Image { bytes } => Some(*bytes),
        };
        if claim.is_block {
            return Some(Misfit::BlockVolume(claim.name.clone()));
        }
        let Some(place) = class_for(claim, classes) else {
            if asks_for_no_class(claim, classes) {
                continue;
            }
            return Some(Misfit::StorageClassMissing(claim.class.clone().unwrap_or_default()));
        };
        let Some(bytes) = copied else { continue };
        if classes[place]["canSnapshot"] != true {
            let name = classes[place]["name"].as_str().unwrap_or_default();
            return Some(Misfit::CannotSnapshot(name.to_owned()));
        }
        let sum = needed.entry(place).or_default();
        *sum = sum.saturating_add(bytes);
    }
    needed.into_iter().find_map(|(place, bytes)| {
        // A little more than the data itself: a file system is never as large as its volume.
        let needed_bytes = bytes.saturating_add(bytes / 20);
        let free_bytes = classes[place]["freeBytes"].as_i64()?;
        (free_bytes < needed_bytes).then_some(Misfit::TooSmall { needed_bytes, free_bytes })
    })
}

/// The class of a cluster that a claim gets, by the name that the syncer will ask for.
fn class_for(claim: &ClaimNeeds, classes: &[Value]) -> Option<usize> {
    match &claim.class {
        Some(wanted) => classes.iter().position(|class| class["name"] == **wanted),
        None => classes.iter().position(|class| class["isDefault"] == true),
    }
}

/// A claim that names the empty class wants a volume that somebody made by hand. One that names
/// none, on a cluster that says nothing about classes, gets whatever that cluster makes.
fn asks_for_no_class(claim: &ClaimNeeds, classes: &[Value]) -> bool {
    match claim.class.as_deref() {
        Some(class) => class.is_empty(),
        None => classes.is_empty(),
    }
}
