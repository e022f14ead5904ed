//! The objects that the syncer makes for a claim on a cluster: the claim itself, what takes its last
//! snapshot, what brings a snapshot to it, what removes earlier ones.

use super::facts::At;
use super::observe::ClaimSeen;
use crate::kinds::DESTINATION;
use crate::syncer::copying::{arrival_tag, final_tag, tidy_tag};
use crate::syncer::marks::{ANNOTATION_FROM, ANNOTATION_LAST, LABEL_GRANT};
use crate::syncer::objects::desired::own_marks;
use crate::syncer::tenancy::Epoch;
use interlock_api::names::{
    ANNOTATION_ALLOW_EMPTY, ANNOTATION_EPOCH, ANNOTATION_RECLAIM, FINALIZER_KEEP,
    LABEL_SUPERSEDED_BY, LOCAL_CLASS, LOCAL_DRIVER, PROVIDER_COPY, PROVIDER_RESTIC,
};
use interlock_api::placement::{Pin, Snapshot, VolumePolicy};
use interlock_kernel::Object;
use interlock_kernel::metadata::{annotation, name_of, put_finalizer, uid_of};
use kube_core::DynamicObject;
use serde_json::{Map, Value, json};

/// The name of a snapshot on the disk of its cluster: what storage calls the snapshot of a VolumeSnapshot.
const SNAPSHOT_PREFIX: &str = "snapshot-";

/// Where a snapshot is that is not here, for people.
pub(super) fn place_of(snapshot: &Snapshot) -> String {
    match snapshot {
        Snapshot::VolumeSnapshot { cluster, .. } => format!("on cluster {cluster}"),
        Snapshot::Restic { secret, snapshot_id } => {
            let short: String = snapshot_id.chars().take(8).collect();
            format!("in the repository of Secret {secret}, snapshot {short}")
        }
        Snapshot::InPlace { cluster, volume } => format!("volume {volume} on cluster {cluster}"),
        Snapshot::Fresh {} => "nowhere".to_owned(),
    }
}

/// The class of the snapshots of a claim with this class: that of local volumes for those, and else
/// whatever the cluster takes by itself.
pub(super) fn snapshot_class(class: Option<&DynamicObject>) -> &'static str {
    let is_local = class.is_some_and(|class| class.data["provisioner"] == LOCAL_DRIVER);
    if is_local { LOCAL_CLASS } else { "" }
}

/// The epoch that a volume was last taken for.
pub(super) fn noted_epoch(here: &DynamicObject) -> Epoch {
    annotation(here, ANNOTATION_EPOCH).and_then(|epoch| epoch.parse().ok()).unwrap_or(0)
}

/// Whether a claim has the volume that goes by this name, before or since it was bound.
pub(super) fn is_on(here: &DynamicObject, volume: &str) -> bool {
    volume == identity(here) || volume == uid_of(here)
}

/// What tells a volume from all others on its cluster: the volume that the claim is bound to, or,
/// before it is bound, the claim itself.
pub(in crate::syncer) fn identity(here: &DynamicObject) -> &str {
    let volume = here.data["spec"]["volumeName"].as_str().filter(|name| !name.is_empty());
    volume.unwrap_or_else(|| uid_of(here))
}

/// A volume here, for people.
pub(super) fn describe(claim: &Object) -> String {
    format!("volume {} of claim {}", identity(claim), name_of(claim))
}

/// The class that a claim at the hub asks for, by its name on the cluster.
pub(super) fn class_wanted<'a>(
    at_hub: &'a DynamicObject,
    policy: &'a VolumePolicy,
) -> Option<&'a str> {
    let class = at_hub.data["spec"]["storageClassName"].as_str()?;
    Some(policy.storage_classes.get(class).map_or(class, String::as_str))
}

/// The claim on the cluster for a claim at the hub: a new volume, filled from what the claim names,
/// and an empty one only if it names nothing.
pub(super) fn new_claim(at_hub: &DynamicObject, policy: &VolumePolicy, at: &At) -> Value {
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
    if let Some(class) = class_wanted(at_hub, policy) {
        spec.insert("storageClassName".to_owned(), json!(class));
    }
    let mut labels = own_marks(at_hub.metadata.labels.as_ref());
    labels.insert(LABEL_GRANT.to_owned(), at.grant.clone());
    let mut annotations = own_marks(at_hub.metadata.annotations.as_ref());
    annotations.retain(|key, _| !key.starts_with("volume.") && !key.starts_with("pv."));
    annotations.insert(ANNOTATION_FROM.to_owned(), format!("{}/claim", uid_of(at_hub)));
    annotations.insert(ANNOTATION_EPOCH.to_owned(), at.epoch.to_string());
    json!({
        "metadata": {
            "labels": labels, "annotations": annotations, "finalizers": [FINALIZER_KEEP],
        },
        "spec": spec,
    })
}

/// The same claim, filled by a destination.
pub(super) fn filled_by(mut claim: Value, destination: &str) -> Value {
    // Whatever it was filled from at first, its data is in the snapshot now.
    if let Some(spec) = claim["spec"].as_object_mut() {
        spec.remove("dataSource");
    }
    claim["spec"]["dataSourceRef"] = json!({
        "apiGroup": DESTINATION.group, "kind": DESTINATION.kind, "name": destination,
    });
    // What the closed volume had is what the claim gets, and be it nothing.
    claim["metadata"]["annotations"][ANNOTATION_ALLOW_EMPTY] = json!("true");
    claim
}

/// The patch by which a volume that is here is taken for an epoch.
pub(super) fn take_over(here: &DynamicObject, epoch: Epoch, keep: bool) -> Value {
    let mut change = json!({"metadata": {
        "annotations": {ANNOTATION_EPOCH: epoch.to_string(), ANNOTATION_LAST: null},
        "labels": {LABEL_SUPERSEDED_BY: null},
    }});
    if keep {
        let kept = put_finalizer(here, FINALIZER_KEEP);
        change["metadata"]["finalizers"] = kept["metadata"]["finalizers"].clone();
    }
    change
}

/// The patch that notes that a volume stays here as the last snapshot of an epoch.
pub(super) fn keep_in_place(here: &DynamicObject, epoch: Epoch) -> Value {
    let last = format!("{epoch}@{}", identity(here));
    json!({"metadata": {"annotations": {ANNOTATION_LAST: last}}})
}

/// The patch by which a volume stays when its claim is being deleted, with its own policy noted.
pub(super) fn keep_volume(volume: &DynamicObject, here: &DynamicObject, at: &At) -> Value {
    let policy = volume.data["spec"]["persistentVolumeReclaimPolicy"].as_str().unwrap_or("Retain");
    // One that is kept for another reason already has its own policy noted.
    let noted = annotation(volume, ANNOTATION_RECLAIM).unwrap_or(policy);
    let from = annotation(here, ANNOTATION_FROM).unwrap_or_default();
    json!({
        "metadata": {
            "labels": {LABEL_GRANT: at.grant, LABEL_SUPERSEDED_BY: at.epoch.to_string()},
            "annotations": {
                ANNOTATION_RECLAIM: noted,
                ANNOTATION_EPOCH: noted_epoch(here).to_string(),
                ANNOTATION_FROM: from,
            },
        },
        "spec": {"persistentVolumeReclaimPolicy": "Retain"},
    })
}

/// What brings the snapshot of a pin to a claim with this spec.
pub(super) fn new_destination(claim: &ClaimSeen, pin: &Pin, spec: &Value, at: &At) -> Value {
    let mut parameters = Map::new();
    let mut put = |key: &str, value: &str| {
        if !value.is_empty() {
            parameters.insert(key.to_owned(), json!(value));
        }
    };
    put("copyMethod", "Snapshot");
    put("volumeSnapshotClassName", claim.class_wanted);
    let provider = match &pin.snapshot {
        Snapshot::Restic { secret, snapshot_id } => {
            put("repository", secret);
            put("snapshotID", snapshot_id);
            // Whatever an attempt that died has left is not part of it.
            put("enableFileDeletion", "true");
            PROVIDER_RESTIC
        }
        Snapshot::VolumeSnapshot { cluster, uid, .. } => {
            put("cluster", &cluster.uid);
            put("snapshot", &format!("{SNAPSHOT_PREFIX}{uid}"));
            PROVIDER_COPY
        }
        Snapshot::InPlace { .. } | Snapshot::Fresh {} => PROVIDER_COPY,
    };
    put("digest", &pin.digest);
    put("capacity", spec["resources"]["requests"]["storage"].as_str().unwrap_or_default());
    put("storageClassName", spec["storageClassName"].as_str().unwrap_or_default());
    let modes = spec["accessModes"].as_array().into_iter().flatten();
    put("accessModes", &modes.filter_map(Value::as_str).collect::<Vec<_>>().join(","));
    json!({
        "metadata": {
            "labels": {LABEL_GRANT: at.grant},
            "annotations": {
                ANNOTATION_FROM: format!("{}/destination", claim.listed.uid),
                ANNOTATION_EPOCH: at.epoch.to_string(),
                ANNOTATION_ALLOW_EMPTY: "true",
            },
        },
        "spec": {
            "trigger": {"manual": arrival_tag(at.epoch)},
            "external": {"provider": provider, "parameters": parameters},
        },
    })
}

/// What takes the last snapshot of a claim.
pub(super) fn new_source(claim: &ClaimSeen, at: &At) -> Value {
    json!({
        "metadata": {
            "labels": {LABEL_GRANT: at.grant},
            "annotations": {
                ANNOTATION_FROM: format!("{}/source", claim.listed.uid),
                ANNOTATION_EPOCH: at.epoch.to_string(),
                // The volume is closed: if there is nothing in it, that is how it was left.
                ANNOTATION_ALLOW_EMPTY: "true",
            },
        },
        "spec": {
            "sourcePVC": claim.listed.name,
            "trigger": {"manual": final_tag(at.epoch)},
            "external": last_snapshot(claim, at),
        },
    })
}

/// The patch by which a source that is there is asked for the last snapshot of a claim.
pub(super) fn asked_of(source: &DynamicObject, claim: &ClaimSeen, at: &At) -> Value {
    json!({
        "metadata": {"annotations": {
            ANNOTATION_EPOCH: at.epoch.to_string(),
            ANNOTATION_FROM: format!("{}/source", claim.listed.uid),
        }},
        "spec": {
            "trigger": {"manual": final_tag(at.epoch)},
            "paused": false,
            "external": in_place_of(&source.data["spec"]["external"], last_snapshot(claim, at)),
        },
    })
}

/// How the last snapshot of a claim is taken: on this cluster, or into a repository. The volume is
/// closed, so a repository gets it as it is.
fn last_snapshot(claim: &ClaimSeen, at: &At) -> Value {
    if let Some(secret) = &at.repository {
        return json!({
            "provider": PROVIDER_RESTIC,
            "parameters": {
                "copyMethod": "Direct",
                "repository": secret,
                "claim": claim.listed.uid,
                "epoch": at.epoch.to_string(),
            },
        });
    }
    let mut parameters = json!({"copyMethod": "Snapshot"});
    if !claim.class_here.is_empty() {
        parameters["volumeSnapshotClassName"] = json!(claim.class_here);
    }
    json!({"provider": PROVIDER_COPY, "parameters": parameters})
}

/// The patch that leaves nothing of what was asked for before.
fn in_place_of(before: &Value, mut external: Value) -> Value {
    for key in before["parameters"].as_object().into_iter().flat_map(Map::keys) {
        if external["parameters"][key].is_null() {
            external["parameters"][key] = Value::Null;
        }
    }
    external
}

/// What removes from the repository what earlier moves of a claim left there.
pub(super) fn tidying(claim: &ClaimSeen, at: &At) -> Value {
    let pins = claim.pin.iter().chain(&claim.listed.last_snapshot);
    let pinned: Vec<&str> = pins
        .filter_map(|pin| match &pin.snapshot {
            Snapshot::Restic { snapshot_id, .. } => Some(snapshot_id.as_str()),
            Snapshot::VolumeSnapshot { .. } | Snapshot::InPlace { .. } | Snapshot::Fresh {} => None,
        })
        .collect();
    let secret = match claim.pin.as_ref().map(|pin| &pin.snapshot) {
        Some(Snapshot::Restic { secret, .. }) => secret.as_str(),
        _ => "",
    };
    json!({
        "metadata": {
            "labels": {LABEL_GRANT: at.grant},
            "annotations": {
                ANNOTATION_FROM: format!("{}/tidy", claim.listed.uid),
                ANNOTATION_EPOCH: at.epoch.to_string(),
            },
        },
        "spec": {
            "sourcePVC": claim.listed.name,
            "trigger": {"manual": tidy_tag(at.epoch)},
            "external": {"provider": PROVIDER_RESTIC, "parameters": {
                "repository": secret,
                "tidy": "true",
                "claim": claim.listed.uid,
                "epoch": at.epoch.to_string(),
                "pinned": pinned.join(","),
            }},
        },
    })
}
