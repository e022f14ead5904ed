//! A decision about the slices of a Service as one step.

use super::decide::{Contents, Decision};
use super::observe::{Scene, labels};
use crate::kinds::{ENDPOINT_SLICE, SERVICE};
use crate::owned::owner_reference;
use interlock_kernel::metadata::{label, namespace_of};
use interlock_kernel::{Address, Name, Nothing, Object, Place, Read, Step, Write};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How long the cache may take to show what a live read showed.
const CACHE_DELAY: Duration = Duration::from_secs(5);

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::WaitForCache => Step::Wait {
            because: "the cache does not show the Service that there is".to_owned(),
            at_most: CACHE_DELAY,
        },
        Decision::ReadService => Step::LiveRead {
            reads: vec![Read::Object(scene.address.clone())],
            because: "only a live read can show that the Service is gone".to_owned(),
        },
        Decision::Create(slot, contents) => create(scene, slot, &contents),
        Decision::Rewrite(slot, contents) => rewrite(scene, slot, &contents),
        Decision::Delete(slot, because) => match scene.slices.get(&slot) {
            Some(slice) => {
                let write = Write::delete_seen(Place::CLUSTER, &ENDPOINT_SLICE, slice);
                Step::write(write, because)
            }
            None => gone(scene, slot),
        },
    }
}

fn gone(scene: &Scene, slot: u32) -> Step<Nothing> {
    Step::rest(format!("EndpointSlice {} does not exist any more", scene.names.name(slot)))
}

/// What a slice says of its pods, besides its metadata.
fn data(service: &Object, contents: &Contents) -> Value {
    let namespace = namespace_of(service);
    let endpoints = contents.endpoints.iter().map(|endpoint| endpoint.written(namespace));
    json!({
        "endpoints": endpoints.collect::<Vec<_>>(),
        "ports": contents.ports.iter().map(|port| port.written()).collect::<Vec<_>>(),
    })
}

fn create(scene: &Scene, slot: u32, contents: &Contents) -> Step<Nothing> {
    let Some(service) = &scene.service else {
        return Step::rest("the Service is not in the cache");
    };
    let name = Name::within(namespace_of(service), &scene.names.name(slot));
    let mut object = data(service, contents);
    object["addressType"] = json!("IPv4");
    object["metadata"] = json!({
        "labels": labels(service), "ownerReferences": [owner_reference(&SERVICE, service)],
    });
    let address = Address::new(Place::CLUSTER, &ENDPOINT_SLICE, name);
    let because = format!("{} endpoints of the Service are in no slice", contents.endpoints.len());
    Step::write(Write::Create { address, object }, because)
}

fn rewrite(scene: &Scene, slot: u32, contents: &Contents) -> Step<Nothing> {
    let Some(service) = &scene.service else {
        return Step::rest("the Service is not in the cache");
    };
    let Some(slice) = scene.slices.get(&slot) else { return gone(scene, slot) };
    let wanted = labels(service);
    let known = slice.metadata.labels.iter().flatten();
    let dropped = known.filter(|(key, _)| !wanted.contains_key(*key));
    let mut changed: Map<String, Value> =
        dropped.map(|(key, _)| (key.clone(), Value::Null)).collect();
    let added = wanted.iter().filter(|(key, value)| label(slice, key) != Some(value.as_str()));
    changed.extend(added.map(|(key, value)| (key.clone(), json!(value))));
    let mut change = data(service, contents);
    change["metadata"] = json!({
        "labels": changed, "ownerReferences": [owner_reference(&SERVICE, service)],
    });
    let write = Write::patch(Place::CLUSTER, &ENDPOINT_SLICE, slice, change);
    Step::write(write, "the slice differs from the pods of the Service")
}
