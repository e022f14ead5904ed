//! Checks of volumes and of claims for them.

use super::checks::{by_rule, none_or_one_of, positive_quantity};
use crate::behaviour::read::{at, entries, is_set, list, text};
use crate::behaviour::selector;
use crate::name;
use crate::status::{FieldError, Path};
use serde_json::Value;

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// The fields of a volume that say where it is.
pub(super) const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

fn access_modes(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let modes = list(spec, "accessModes");
    let path = path.field("accessModes");
    for mode in modes {
        none_or_one_of(mode, &ACCESS_MODES, &path, errors);
    }
    let is_exclusive = |mode: &Value| mode == "ReadWriteOncePod";
    if modes.iter().any(is_exclusive) && !modes.iter().all(is_exclusive) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(path, detail));
    }
}

pub(super) fn claim_spec(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if list(spec, "accessModes").is_empty() {
        let detail = "at least 1 access mode is required";
        errors.push(FieldError::required(path.field("accessModes"), detail));
    }
    selector::validate(at(spec, "selector"), &path.field("selector"), errors);
    access_modes(spec, path, errors);
    let resources = path.field("resources");
    let size_path = resources.key("storage");
    match at(spec, "resources.requests.storage") {
        Value::Null => errors.push(FieldError::required(size_path, "")),
        size => positive_quantity(size, &size_path, errors),
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        by_rule(class, name::dns1123_subdomain, &path.field("storageClassName"), errors);
    }
    none_or_one_of(at(spec, "volumeMode"), &VOLUME_MODES, &path.field("volumeMode"), errors);
}

pub(super) fn volume(object: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    let spec = at(object, "spec");
    if list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(path.field("accessModes"), ""));
    }
    access_modes(spec, &path, errors);
    let capacity = path.field("capacity");
    let amounts = entries(spec, "capacity").count();
    if amounts == 0 {
        errors.push(FieldError::required(capacity, ""));
    }
    if !is_set(spec, "capacity.storage") || amounts > 1 {
        errors.push(FieldError::not_supported(capacity, at(spec, "capacity"), &["storage"]));
    }
    for (resource, amount) in entries(spec, "capacity") {
        positive_quantity(amount, &capacity.key(resource), errors);
    }
    let policies = ["Delete", "Recycle", "Retain"];
    let policy_path = path.field("persistentVolumeReclaimPolicy");
    none_or_one_of(at(spec, "persistentVolumeReclaimPolicy"), &policies, &policy_path, errors);
    let mut sources = SOURCES.into_iter().filter(|source| is_set(spec, source));
    if sources.next().is_none() {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    for source in sources {
        let detail = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(path.field(source), detail));
    }
    if is_set(spec, "local") && !is_set(spec, "nodeAffinity.required") {
        let detail = "Local volume requires node affinity";
        errors.push(FieldError::required(path.field("nodeAffinity"), detail));
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        by_rule(class, name::dns1123_subdomain, &path.field("storageClassName"), errors);
    }
    none_or_one_of(at(spec, "volumeMode"), &VOLUME_MODES, &path.field("volumeMode"), errors);
}
