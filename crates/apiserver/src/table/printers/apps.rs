//! How workloads are shown.

use super::{AGE, CONTAINERS, Cells, Heading, IMAGES, NAME, Printer, SELECTOR, age, containers};
use super::{integer_column, name, shown_selector, text_column};
use crate::behaviour::read::{at, is_true, list, number, text};
use crate::behaviour::selector::{self, shown_labels};
use jiff::Timestamp;
use serde_json::{Value, json};

const TEMPLATE: &str = "spec.template.spec.containers";

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let (headings, cells): (&'static [Heading], Cells) = match kind {
        "Deployment" => (&DEPLOYMENT, deployment),
        "ReplicaSet" => (&REPLICA_SET, replica_set),
        "StatefulSet" => (&STATEFUL_SET, stateful_set),
        "DaemonSet" => (&DAEMON_SET, daemon_set),
        "ControllerRevision" => (&REVISION, revision),
        _ => return None,
    };
    Some(Printer { headings, cells })
}

static DEPLOYMENT: [Heading; 8] = [
    NAME,
    text_column("Ready", "How many pods are ready."),
    text_column("Up-to-date", ".status.updatedReplicas"),
    text_column("Available", ".status.availableReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    let shown = selector::shown(at(object, "spec.selector"));
    vec![
        name(object),
        json!(ready(object)),
        json!(number(object, "status.updatedReplicas")),
        json!(number(object, "status.availableReplicas")),
        age(object, now),
        names,
        images,
        json!(shown.unwrap_or_else(|_| "<invalid>".to_owned())),
    ]
}

fn ready(object: &Value) -> String {
    format!("{}/{}", number(object, "status.readyReplicas"), number(object, "spec.replicas"))
}

static REPLICA_SET: [Heading; 8] = [
    NAME,
    integer_column("Desired", ".spec.replicas"),
    integer_column("Current", ".status.replicas"),
    integer_column("Ready", ".status.readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    vec![
        name(object),
        json!(number(object, "spec.replicas")),
        json!(number(object, "status.replicas")),
        json!(number(object, "status.readyReplicas")),
        age(object, now),
        names,
        images,
        shown_selector(at(object, "spec.selector")),
    ]
}

static STATEFUL_SET: [Heading; 5] =
    [NAME, text_column("Ready", "How many pods are ready."), AGE, CONTAINERS, IMAGES];

fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    vec![name(object), json!(ready(object)), age(object, now), names, images]
}

static DAEMON_SET: [Heading; 11] = [
    NAME,
    integer_column("Desired", ".status.desiredNumberScheduled"),
    integer_column("Current", ".status.currentNumberScheduled"),
    integer_column("Ready", ".status.numberReady"),
    integer_column("Up-to-date", ".status.updatedNumberScheduled"),
    integer_column("Available", ".status.numberAvailable"),
    text_column("Node Selector", ".spec.template.spec.nodeSelector"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    vec![
        name(object),
        json!(number(object, "status.desiredNumberScheduled")),
        json!(number(object, "status.currentNumberScheduled")),
        json!(number(object, "status.numberReady")),
        json!(number(object, "status.updatedNumberScheduled")),
        json!(number(object, "status.numberAvailable")),
        json!(shown_labels(at(object, "spec.template.spec.nodeSelector"))),
        age(object, now),
        names,
        images,
        shown_selector(at(object, "spec.selector")),
    ]
}

static REVISION: [Heading; 4] = [
    NAME,
    text_column("Controller", "Controller of the object"),
    text_column("Revision", ".revision"),
    AGE,
];

fn revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owner =
        list(object, "metadata.ownerReferences").iter().find(|one| is_true(one, "controller"));
    let controller = owner.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let group = text(owner, "apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
            let kind = match group {
                "" => text(owner, "kind").to_lowercase(),
                group => format!("{}.{group}", text(owner, "kind")).to_lowercase(),
            };
            format!("{kind}/{}", text(owner, "name"))
        },
    );
    vec![name(object), json!(controller), json!(number(object, "revision")), age(object, now)]
}
