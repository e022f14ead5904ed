//! How claims, volumes, snapshots and pods are filed, so that no step looks at all of them.

use crate::kinds::{CLAIM, CONTENT, DESTINATION, POD, SNAPSHOT_KIND, VOLUME};
use crate::objects::{annotation, namespace_of, text, uid_of};
use interlock_api::names::{ANNOTATION_POPULATES, HOLD_PREFIX};
use interlock_kernel::{Index, Kind};
use kube_core::DynamicObject;
use serde_json::Value;

/// Volumes by the uid of the claim that they are for.
pub(crate) const VOLUMES_BY_CLAIM: Index = Index {
    name: "by-claim",
    kind: VOLUME,
    values: |volume| some(text(&volume.data, &["spec", "claimRef", "uid"]).to_owned()),
};

/// Volumes by `<namespace>/<name>` of the claim that they are for, whichever of that name it is.
pub(crate) const VOLUMES_BY_CLAIM_NAME: Index = Index {
    name: "by-claim-name",
    kind: VOLUME,
    values: |volume| {
        let claim = &volume.data["spec"]["claimRef"];
        let (namespace, name) = (text(claim, &["namespace"]), text(claim, &["name"]));
        if name.is_empty() { Vec::new() } else { vec![format!("{namespace}/{name}")] }
    },
};

/// Volumes by `<namespace>/<name>` of the claim that they are handed to.
pub(crate) const VOLUMES_BY_HEIR: Index = Index {
    name: "by-heir",
    kind: VOLUME,
    values: |volume| {
        let note = annotation(volume, ANNOTATION_POPULATES).unwrap_or_default();
        note.rsplit_once('/').map(|(claim, _)| claim.to_owned()).into_iter().collect()
    },
};

/// Snapshots by their uid.
pub(crate) const SNAPSHOTS_BY_UID: Index = Index {
    name: "by-uid",
    kind: SNAPSHOT_KIND,
    values: |snapshot| some(uid_of(snapshot).to_owned()),
};

/// Snapshots by the uid of each object that holds them.
pub(crate) const SNAPSHOTS_BY_HOLDER: Index = Index {
    name: "by-holder",
    kind: SNAPSHOT_KIND,
    values: |snapshot| {
        let finalizers = snapshot.metadata.finalizers.iter().flatten();
        finalizers.filter_map(|f| f.strip_prefix(HOLD_PREFIX)).map(str::to_owned).collect()
    },
};

/// Snapshots by `<namespace>/<name>` of the claim that they are taken of.
pub(crate) const SNAPSHOTS_BY_SOURCE: Index = Index {
    name: "by-source",
    kind: SNAPSHOT_KIND,
    values: |snapshot| {
        let source = text(&snapshot.data, &["spec", "source", "persistentVolumeClaimName"]);
        beside(snapshot, source)
    },
};

/// Contents by `<namespace>/<name>` of their VolumeSnapshot, whichever of that name it is.
pub(crate) const CONTENTS_BY_SNAPSHOT: Index = Index {
    name: "by-snapshot",
    kind: CONTENT,
    values: |content| {
        let of = &content.data["spec"]["volumeSnapshotRef"];
        let (namespace, name) = (text(of, &["namespace"]), text(of, &["name"]));
        if name.is_empty() { Vec::new() } else { vec![format!("{namespace}/{name}")] }
    },
};

/// Claims by `<namespace>/<name>` of the snapshot that they are made of.
pub(crate) const CLAIMS_BY_SNAPSHOT: Index = Index {
    name: "by-snapshot",
    kind: CLAIM,
    values: |claim| filed_by_source(claim, &SNAPSHOT_KIND),
};

/// Claims by `<namespace>/<name>` of the destination that they are filled from.
pub(crate) const CLAIMS_BY_DESTINATION: Index = Index {
    name: "by-destination",
    kind: CLAIM,
    values: |claim| filed_by_source(claim, &DESTINATION),
};

/// Claims by the class that they ask for, the empty one if they ask for none.
pub(crate) const CLAIMS_BY_CLASS: Index = Index {
    name: "by-class",
    kind: CLAIM,
    values: |claim| vec![text(&claim.data, &["spec", "storageClassName"]).to_owned()],
};

/// Claims by the volume that they name.
pub(crate) const CLAIMS_BY_VOLUME: Index = Index {
    name: "by-volume",
    kind: CLAIM,
    values: |claim| some(text(&claim.data, &["spec", "volumeName"]).to_owned()),
};

/// Pods by `<namespace>/<name>` of each claim that they mount, unless they have ended.
pub(crate) const PODS_BY_CLAIM: Index = Index {
    name: "by-claim",
    kind: POD,
    values: |pod| if has_ended(pod) { Vec::new() } else { mounted(pod) },
};

/// The claims that a pod mounts: `<namespace>/<name>` each.
pub(crate) fn mounted(pod: &DynamicObject) -> Vec<String> {
    let volumes = pod.data["spec"]["volumes"].as_array().into_iter().flatten();
    let claims = volumes.flat_map(|volume| {
        let named = text(volume, &["persistentVolumeClaim", "claimName"]);
        if !named.is_empty() {
            return beside(pod, named);
        }
        // A volume that lives as long as its pod has a claim named after both.
        let is_ephemeral = volume.get("ephemeral").is_some_and(Value::is_object);
        let own = format!("{}-{}", crate::objects::name_of(pod), text(volume, &["name"]));
        if is_ephemeral { beside(pod, &own) } else { Vec::new() }
    });
    claims.collect()
}

/// Whether nothing of a pod runs any more, or ever will.
pub(crate) fn has_ended(pod: &DynamicObject) -> bool {
    matches!(text(&pod.data, &["status", "phase"]), "Succeeded" | "Failed")
}

/// What a claim is made of: group, kind and name.
pub(crate) fn source_of(claim: &DynamicObject) -> Option<(&str, &str, &str)> {
    let spec = &claim.data["spec"];
    let source = ["dataSourceRef", "dataSource"].into_iter().find_map(|field| {
        let source = spec.get(field)?;
        (!text(source, &["kind"]).is_empty()).then_some(source)
    })?;
    Some((text(source, &["apiGroup"]), text(source, &["kind"]), text(source, &["name"])))
}

fn filed_by_source(claim: &DynamicObject, wanted: &Kind) -> Vec<String> {
    match source_of(claim) {
        Some((group, kind, name)) if wanted.group == group && wanted.kind == kind => {
            beside(claim, name)
        }
        Some(_) | None => Vec::new(),
    }
}

fn beside(object: &DynamicObject, name: &str) -> Vec<String> {
    if name.is_empty() {
        return Vec::new();
    }
    vec![format!("{}/{name}", namespace_of(object))]
}

fn some(value: String) -> Vec<String> {
    if value.is_empty() { Vec::new() } else { vec![value] }
}
