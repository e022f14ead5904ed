//! Whether a cluster can take a namespace, and why not.
//!
//! Clusters are read as they are, without types: a step looks at all of them, and most of what they
//! say does not matter here.

use super::decide::UnfitReason;
use crate::record::is_condition_true;
use interlock_api::placement::condition::{ISSUER_READY, READY};
use interlock_api::placement::{Fill, GrantStatus, PlacementSpec, Snapshot, VolumePolicy};
use interlock_kernel::Object;
use interlock_kernel::metadata::{is_deleting, uid_of};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_core::DynamicObject;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

use super::selector::is_selected;

/// A namespace that a cluster is sought for.
#[derive(Debug, Clone, Copy)]
pub struct Seeking<'a> {
    /// The Placement that counts.
    pub rules: Option<&'a PlacementSpec>,
    /// Whether a cluster is asked for by name, which wins over any Placement.
    pub is_by_name: bool,
    /// The claims of the namespace at the hub. Those that go need nothing.
    pub claims: &'a [Object],
    /// What its grant says, if it has one.
    pub grant: Option<&'a GrantStatus>,
}

/// What a namespace needs of a cluster.
#[derive(Debug, Default)]
pub struct Needs {
    /// Which clusters are selected; None: all.
    selector: Option<LabelSelector>,
    /// Its claims.
    claims: Vec<ClaimNeeds>,
    /// A cloud role of it, which has to trust the tokens of its cluster before it starts; None: it
    /// has none, or does not wait for them.
    role: Option<String>,
}

impl Needs {
    /// What this namespace needs.
    pub fn of(seeking: &Seeking) -> Needs {
        let nothing_said = PlacementSpec::default();
        let policy = &seeking.rules.unwrap_or(&nothing_said).volumes;
        let stays = seeking.claims.iter().filter(|claim| !is_deleting(claim));
        Needs {
            selector: seeking
                .rules
                .filter(|_| !seeking.is_by_name)
                .map(|rules| rules.cluster_selector.clone()),
            claims: stays.map(|claim| ClaimNeeds::read(claim, policy, seeking.grant)).collect(),
            role: awaited_role(seeking),
        }
    }
}

/// The first cloud role that the start of a namespace waits for.
fn awaited_role(seeking: &Seeking) -> Option<String> {
    let awaits = seeking.rules.and_then(|rules| rules.await_rights).unwrap_or(true);
    let role = seeking.grant.filter(|_| awaits)?.rights.first()?;
    Some(role.name.clone())
}

/// What a claim needs of a cluster.
#[derive(Debug)]
struct ClaimNeeds {
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
    /// It is in a snapshot, and takes this much room everywhere.
    Snapshot { bytes: i64 },
}

impl ClaimNeeds {
    /// Reads what a claim at the hub needs, given the grant that may know of data.
    fn read(
        claim: &DynamicObject,
        policy: &VolumePolicy,
        grant: Option<&GrantStatus>,
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

fn data_of(claim_uid: &str, grant: &GrantStatus) -> Data {
    let claim = grant.claims.iter().find(|claim| claim.uid == claim_uid);
    let pin = grant.pins.iter().find(|pin| pin.claim_uid == claim_uid);
    let last = claim.and_then(|claim| claim.last_snapshot.as_ref());
    let bytes = pin.iter().chain(last.iter()).map(|pin| pin.bytes).max().unwrap_or(0).max(0);
    let is_filled = claim.is_some_and(|claim| claim.fill == Fill::Filled);
    let is_held = grant.phase.is_held();
    if let Some(owner) = grant.owner.as_ref().filter(|_| is_held && is_filled) {
        return Data::On { cluster_uid: owner.uid.clone(), bytes };
    }
    match pin.map(|pin| &pin.snapshot) {
        None | Some(Snapshot::Fresh {}) => Data::None,
        Some(Snapshot::InPlace { cluster, .. }) => {
            Data::On { cluster_uid: cluster.uid.clone(), bytes }
        }
        Some(Snapshot::VolumeSnapshot { .. } | Snapshot::Restic { .. }) => Data::Snapshot { bytes },
    }
}

/// Whether a cluster is to be emptied: a person says so, or somebody waits for it.
pub(super) fn is_draining(cluster: &DynamicObject) -> bool {
    cluster.data["spec"]["drain"] == true || is_asked_to_drain(cluster)
}

/// Whether somebody waits until a cluster is empty.
pub(super) fn is_asked_to_drain(cluster: &DynamicObject) -> bool {
    cluster.data["spec"]["drains"].as_array().is_some_and(|drains| !drains.is_empty())
}

/// Why a cluster cannot take a namespace; None: it can.
pub fn unfit_reason(cluster: &DynamicObject, needs: &Needs) -> Option<UnfitReason> {
    let spec = &cluster.data["spec"];
    if is_deleting(cluster) {
        return Some(UnfitReason::Deleting);
    }
    if !is_condition_true(cluster, READY) {
        return Some(UnfitReason::NotReady);
    }
    if spec["unschedulable"] == true {
        return Some(UnfitReason::Unschedulable);
    }
    if is_draining(cluster) {
        return Some(UnfitReason::Draining);
    }
    let selector = needs.selector.as_ref();
    if selector.is_some_and(|selector| !is_selected(selector, cluster.metadata.labels.as_ref())) {
        return Some(UnfitReason::NotSelected);
    }
    // Nothing is stopped for a move that could not start: the cloud does not know whom to trust there.
    if let Some(role) = needs.role.as_ref().filter(|_| !is_condition_true(cluster, ISSUER_READY)) {
        let (role, because) = (role.clone(), issuer_because(cluster));
        return Some(UnfitReason::IssuerNotReady { role, because });
    }
    storage_unfit_reason(cluster, &needs.claims)
}

/// What the cluster says of its issuer. The person who asks why a namespace stays is not sent to another object.
fn issuer_because(cluster: &DynamicObject) -> Option<String> {
    let conditions = cluster.data["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|it| it["type"] == ISSUER_READY)?;
    let message = found["message"].as_str().filter(|message| !message.is_empty())?;
    Some(match found["next"].as_str() {
        Some(next) => format!("{message}: {next}"),
        None => message.to_owned(),
    })
}

fn storage_unfit_reason(cluster: &DynamicObject, claims: &[ClaimNeeds]) -> Option<UnfitReason> {
    let classes: &[Value] =
        cluster.data["status"]["storageClasses"].as_array().map_or(&[], Vec::as_slice);
    // How much has to go where, by the place of the class.
    let mut needed: BTreeMap<usize, i64> = BTreeMap::new();
    for claim in claims {
        let copied = match &claim.data {
            Data::None => None,
            Data::On { cluster_uid, .. } if cluster_uid == uid_of(cluster) => None,
            Data::On { bytes, .. } | Data::Snapshot { bytes } => Some(*bytes),
        };
        if claim.is_block {
            return Some(UnfitReason::BlockVolume(claim.name.clone()));
        }
        let Some(place) = class_for(claim, classes) else {
            if asks_for_no_class(claim, classes) {
                continue;
            }
            return Some(UnfitReason::StorageClassMissing(claim.class.clone().unwrap_or_default()));
        };
        let Some(bytes) = copied else { continue };
        if classes[place]["canSnapshot"] != true {
            let name = classes[place]["name"].as_str().unwrap_or_default();
            return Some(UnfitReason::CannotSnapshot(name.to_owned()));
        }
        let sum = needed.entry(place).or_default();
        *sum = sum.saturating_add(bytes);
    }
    needed.into_iter().find_map(|(place, bytes)| {
        // A little more than the data itself: a file system is never as large as its volume.
        let needed_bytes = bytes.saturating_add(bytes / 20);
        let free_bytes = classes[place]["freeBytes"].as_i64()?;
        (free_bytes < needed_bytes).then_some(UnfitReason::TooSmall { needed_bytes, free_bytes })
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

/// In words, the one word for it first.
impl fmt::Display for UnfitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitReason::NotReady => f.write_str(
                "NotReady, the syncer sends no heartbeat or reports that it is not ready",
            ),
            UnfitReason::Unschedulable => {
                f.write_str("Unschedulable, the cluster accepts no new namespaces")
            }
            UnfitReason::Draining => f.write_str("Draining, its namespaces are moved away"),
            UnfitReason::Deleting => f.write_str("Deleting, the cluster is being deleted"),
            UnfitReason::NotSelected => {
                f.write_str("NotSelected, the Placement does not select the cluster")
            }
            UnfitReason::IssuerNotReady { role, because } => {
                let needs = "of the namespace needs a cluster with condition";
                write!(f, "IssuerNotReady, role {role} {needs} {ISSUER_READY}")?;
                because.as_ref().map_or(Ok(()), |because| write!(f, " ({because})"))
            }
            UnfitReason::StorageClassMissing(class) if class.is_empty() => {
                f.write_str("StorageClassMissing, the cluster has no default storage class")
            }
            UnfitReason::StorageClassMissing(class) => {
                write!(f, "StorageClassMissing, the cluster has no storage class {class}")
            }
            UnfitReason::CannotSnapshot(class) => {
                write!(f, "CannotSnapshot, storage class {class} does not support snapshots")
            }
            UnfitReason::BlockVolume(claim) => {
                write!(f, "BlockVolume, claim {claim} has volumeMode Block, which cannot be moved")
            }
            UnfitReason::TooSmall { needed_bytes, free_bytes } => {
                let (needed, free) = (gibibytes(*needed_bytes), gibibytes(*free_bytes));
                write!(f, "TooSmall, {needed} are needed and {free} are free")
            }
        }
    }
}

/// Rounded, so that a few bytes more or less do not change what was said.
fn gibibytes(bytes: i64) -> String {
    let tenths = bytes.max(0) / (1024 * 1024 * 1024 / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}
