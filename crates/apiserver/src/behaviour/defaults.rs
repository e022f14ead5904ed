//! What is filled in for built-in kinds when the client leaves it out.

mod core;
mod others;
mod pod;
mod workloads;

use super::canonical::canonicalize;
use super::events;
use crate::resource::Resource;
use serde_json::Value;

/// Fills in what the client left out. Asking twice changes nothing more.
pub(crate) fn defaults(resource: &Resource, object: &mut Value) {
    if resource.is_custom() || !object.is_object() {
        return;
    }
    if !resource.schema.nodes.is_empty() {
        canonicalize(object, resource.schema.shape());
    }
    let kind = &*resource.kind;
    match &*resource.group {
        "" => core::fill_in(kind, object),
        "apps" | "batch" => workloads::fill_in(kind, object),
        "events.k8s.io" if kind == "Event" => events::defaults(object),
        "autoscaling" if kind == "HorizontalPodAutoscaler" => {
            others::autoscaler(object);
        }
        group => others::fill_in(group, kind, object),
    }
}
