//! What is refused of built-in kinds beyond their schema, in the words that users know.

mod batch;
mod changes;
mod checks;
mod core;
mod cron;
mod endpoints;
mod flowcontrol;
mod network;
mod others;
mod pod;
mod scheduling;
mod service;
mod time_zone;
mod volumes;
mod workloads;

use super::events;
use crate::resource::Resource;
use crate::status::FieldError;
use serde_json::Value;

/// What is wrong with an object, new or changed. Its metadata is checked elsewhere.
pub(crate) fn validate(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if resource.is_custom() {
        return errors;
    }
    let (group, kind) = (&*resource.group, &*resource.kind);
    match group {
        "" if kind == "Event" => return events::validate(group, object),
        "events.k8s.io" => return events::validate(group, object),
        "" => core::validate(kind, object, &mut errors),
        "apps" => workloads::validate(kind, object, &mut errors),
        "batch" => batch::validate(kind, object, &mut errors),
        "networking.k8s.io" | "discovery.k8s.io" => network::validate(kind, object, &mut errors),
        crate::flowcontrol::GROUP if kind == "FlowSchema" => {
            flowcontrol::schema(object, &mut errors)
        }
        crate::flowcontrol::GROUP => flowcontrol::level(object, &mut errors),
        _ => others::validate(group, kind, object, &mut errors),
    }
    errors
}

/// What else is wrong with an object that is new. Objects that were stored before a rule are left
/// alone.
pub(crate) fn validate_create(resource: &Resource, object: &Value) -> Vec<FieldError> {
    if resource.is_custom() {
        return Vec::new();
    }
    match (&*resource.group, &*resource.kind) {
        ("events.k8s.io", "Event") => events::validate_create(&resource.group, object),
        ("batch", "CronJob") => batch::validate_new_cron_job(object),
        _ => Vec::new(),
    }
}

/// What may not change from the old object to the new one.
pub(crate) fn validate_update(resource: &Resource, old: &Value, new: &Value) -> Vec<FieldError> {
    if resource.is_custom() {
        return Vec::new();
    }
    if (&*resource.group, &*resource.kind) == ("events.k8s.io", "Event") {
        return events::validate_update(&resource.group, old, new);
    }
    let mut errors = Vec::new();
    changes::validate(resource, old, new, &mut errors);
    errors
}
