//! How storage kinds are shown.

use super::{AGE, Cells, Heading, NAME, Printer, age, boolean_column, integer_column, joined};
use super::{name, or, text_column};
use crate::behaviour::read::{at, is_set, is_true, list, text};
use crate::resource::Column;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let (headings, cells): (&'static [Heading], Cells) = match kind {
        "StorageClass" => (&CLASS, class),
        "VolumeAttachment" => (&ATTACHMENT, attachment),
        "VolumeAttributesClass" => (&ATTRIBUTES_CLASS, attributes_class),
        "CSIDriver" => (&DRIVER, driver),
        "CSINode" => (&NODE, node),
        _ => return None,
    };
    Some(Printer { headings, cells })
}

static CLASS: [Heading; 6] = [
    NAME,
    text_column("Provisioner", ".provisioner"),
    text_column("ReclaimPolicy", ".reclaimPolicy"),
    text_column("VolumeBindingMode", ".volumeBindingMode"),
    text_column("AllowVolumeExpansion", ".allowVolumeExpansion"),
    AGE,
];

fn class(object: &Value, now: Timestamp) -> Vec<Value> {
    let annotations = at(object, "metadata.annotations");
    let is_default = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ]
    .iter()
    .any(|key| annotations.get(key).and_then(Value::as_str) == Some("true"));
    let suffix = if is_default { " (default)" } else { "" };
    vec![
        json!(format!("{}{suffix}", text(object, "metadata.name"))),
        json!(text(object, "provisioner")),
        json!(at(object, "reclaimPolicy").as_str().unwrap_or("Delete")),
        json!(at(object, "volumeBindingMode").as_str().unwrap_or("Immediate")),
        json!(is_true(object, "allowVolumeExpansion")),
        age(object, now),
    ]
}

static ATTACHMENT: [Heading; 6] = [
    NAME,
    Heading {
        name: "Attacher",
        type_name: "string",
        format: "name",
        priority: 0,
        about: ".spec.attacher",
    },
    text_column("PV", ".spec.source.persistentVolumeName"),
    text_column("Node", ".spec.nodeName"),
    boolean_column("Attached", ".status.attached"),
    AGE,
];

fn attachment(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        json!(text(object, "spec.attacher")),
        json!(text(object, "spec.source.persistentVolumeName")),
        json!(text(object, "spec.nodeName")),
        json!(is_true(object, "status.attached")),
        age(object, now),
    ]
}

static ATTRIBUTES_CLASS: [Heading; 3] = [NAME, text_column("DriverName", ".driverName"), AGE];

fn attributes_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "driverName")), age(object, now)]
}

static DRIVER: [Heading; 8] = [
    NAME,
    boolean_column("AttachRequired", ".spec.attachRequired"),
    boolean_column("PodInfoOnMount", ".spec.podInfoOnMount"),
    boolean_column("StorageCapacity", ".spec.storageCapacity"),
    text_column("TokenRequests", ".spec.tokenRequests"),
    boolean_column("RequiresRepublish", ".spec.requiresRepublish"),
    text_column("Modes", ".spec.volumeLifecycleModes"),
    AGE,
];

fn driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let audiences: Vec<&str> = list(object, "spec.tokenRequests")
        .iter()
        .map(|request| text(request, "audience"))
        .collect();
    let tokens = if is_set(object, "spec.tokenRequests") {
        audiences.join(",")
    } else {
        "<unset>".to_owned()
    };
    vec![
        name(object),
        json!(at(object, "spec.attachRequired").as_bool().unwrap_or(true)),
        json!(is_true(object, "spec.podInfoOnMount")),
        json!(is_true(object, "spec.storageCapacity")),
        json!(tokens),
        json!(is_true(object, "spec.requiresRepublish")),
        json!(or(&joined(object, "spec.volumeLifecycleModes"), "<none>")),
        age(object, now),
    ]
}

static NODE: [Heading; 3] =
    [NAME, integer_column("Drivers", "How many CSI drivers the node has."), AGE];

fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(list(object, "spec.drivers").len()), age(object, now)]
}

/// Name, type and path of each column, as the CRDs of volume snapshots have them.
pub(super) fn snapshot_columns(kind: &str) -> Option<Vec<Column>> {
    let columns: &[(&str, &str, &str)] = match kind {
        "VolumeSnapshot" => &[
            ("ReadyToUse", "boolean", ".status.readyToUse"),
            ("SourcePVC", "string", ".spec.source.persistentVolumeClaimName"),
            ("SourceSnapshotContent", "string", ".spec.source.volumeSnapshotContentName"),
            ("RestoreSize", "string", ".status.restoreSize"),
            ("SnapshotClass", "string", ".spec.volumeSnapshotClassName"),
            ("SnapshotContent", "string", ".status.boundVolumeSnapshotContentName"),
            ("CreationTime", "date", ".status.creationTime"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ],
        "VolumeSnapshotClass" => &[
            ("Driver", "string", ".driver"),
            ("DeletionPolicy", "string", ".deletionPolicy"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ],
        "VolumeSnapshotContent" => &[
            ("ReadyToUse", "boolean", ".status.readyToUse"),
            ("RestoreSize", "integer", ".status.restoreSize"),
            ("DeletionPolicy", "string", ".spec.deletionPolicy"),
            ("Driver", "string", ".spec.driver"),
            ("VolumeSnapshotClass", "string", ".spec.volumeSnapshotClassName"),
            ("VolumeSnapshot", "string", ".spec.volumeSnapshotRef.name"),
            ("VolumeSnapshotNamespace", "string", ".spec.volumeSnapshotRef.namespace"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ],
        _ => return None,
    };
    let column = |(name, type_name, path): &(&str, &str, &str)| Column {
        name: (*name).into(),
        type_name: (*type_name).into(),
        json_path: (*path).into(),
        ..Column::default()
    };
    Some(columns.iter().map(column).collect())
}
