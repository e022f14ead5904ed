//! Events: one stored object, the core one, with two faces.
//!
//! `events.k8s.io/v1` calls the same fields by other names; what the older face alone has is called
//! deprecated there. Objects are stored as core `v1` and turned on the way in and out.

use super::immutable::{same, unchanged};
use super::read::{at, is_set, number, text};
use crate::age;
use crate::name;
use crate::status::{FieldError, Path};
use serde_json::{Map, Value, json};

/// The `apiVersion` of the newer face.
const GROUP_VERSION: &str = "events.k8s.io/v1";

/// Each field that the faces call differently: first core, then `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

const SHORT_TEXT_LIMIT_BYTES: usize = 128;
const NOTE_LIMIT_BYTES: usize = 1_024;

/// Turns a stored event into the face that `events.k8s.io/v1` shows.
pub(crate) fn to_events_v1(object: &mut Value) {
    rename(object, NAMES, GROUP_VERSION);
}

/// Turns an event from `events.k8s.io/v1` into the form that is stored.
pub(crate) fn from_events_v1(object: &mut Value) {
    rename(object, NAMES.map(|(core, newer)| (newer, core)), "v1");
}

fn rename(object: &mut Value, names: [(&str, &str); 7], api_version: &str) {
    let Some(object) = object.as_object_mut() else { return };
    for (from, to) in names {
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
    object.insert("apiVersion".to_owned(), json!(api_version));
}

/// Renames the fields in those entries of managedFields that were written through the core face, so that all entries
/// speak of the fields in the same words; and back. Each entry says by its apiVersion which face it is of.
pub(super) fn rename_managed(object: &mut Value, to_newer: bool) {
    let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        if text(entry, "apiVersion") == GROUP_VERSION {
            continue;
        }
        let Some(fields) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) else {
            continue;
        };
        for (core, newer) in NAMES {
            let (from, to) = if to_newer { (core, newer) } else { (newer, core) };
            if let Some(set) = fields.remove(&format!("f:{from}")) {
                fields.insert(format!("f:{to}"), set);
            }
        }
    }
}

/// The field that a field selector of `events.k8s.io/v1` means in the stored form.
pub(crate) fn core_field(field: &str) -> Option<String> {
    match field {
        "reason" | "type" | "metadata.name" | "metadata.namespace" => Some(field.to_owned()),
        "reportingController" => Some("reportingComponent".to_owned()),
        _ => Some(format!("involvedObject.{}", field.strip_prefix("regarding.")?)),
    }
}

/// Whether an event shows the face of `events.k8s.io/v1`.
pub(crate) fn is_newer(object: &Value) -> bool {
    text(object, "apiVersion") == GROUP_VERSION || object.get("regarding").is_some()
}

/// The event in its stored form, whichever face it shows.
fn in_core(object: &Value) -> Value {
    let mut core = object.clone();
    if is_newer(object) {
        from_events_v1(&mut core);
    }
    core
}

/// What is wrong with an event, through either face.
pub(crate) fn validate(group: &str, object: &Value) -> Vec<FieldError> {
    let event = &in_core(object);
    let mut errors = Vec::new();
    let namespace = text(event, "metadata.namespace");
    let involved = text(event, "involvedObject.namespace");
    let has_event_time = age::moment(at(event, "eventTime")).is_some();
    let is_place_right = match (has_event_time, involved) {
        (false, "") => matches!(namespace, "" | "default"),
        (false, involved) => namespace == involved,
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (true, _) => true,
    };
    if !is_place_right {
        errors.push(FieldError::invalid(
            "involvedObject.namespace",
            &json!(involved),
            "does not match event.namespace",
        ));
    }
    if has_event_time {
        validate_new(group, event, &mut errors);
    }
    for problem in name::dns1123_subdomain(namespace) {
        errors.push(FieldError::invalid("namespace", &json!(namespace), problem));
    }
    errors
}

/// What is asked of an event that says when it happened, instead of when it was first and last
/// seen.
fn validate_new(group: &str, event: &Value, errors: &mut Vec<FieldError>) {
    let controller = text(event, "reportingComponent");
    let field = if group.is_empty() { "reportingComponent" } else { "reportingController" };
    if controller.is_empty() {
        errors.push(FieldError::required(field, ""));
    }
    for problem in name::qualified_name(controller) {
        errors.push(FieldError::invalid(field, &json!(controller), problem));
    }
    for field in ["reportingInstance", "action", "reason"] {
        let value = text(event, field);
        if value.is_empty() {
            errors.push(FieldError::required(field, ""));
        }
        check_length(field, value, SHORT_TEXT_LIMIT_BYTES, errors);
    }
    check_length("message", text(event, "message"), NOTE_LIMIT_BYTES, errors);
}

fn check_length(field: &str, value: &str, limit_bytes: usize, errors: &mut Vec<FieldError>) {
    if value.len() > limit_bytes {
        let detail = format!("can have at most {limit_bytes} characters");
        errors.push(FieldError::invalid(field, &json!(""), detail));
    }
}

/// What else is wrong with an event that is made through `events.k8s.io/v1`; core takes more.
pub(crate) fn validate_create(group: &str, object: &Value) -> Vec<FieldError> {
    if group.is_empty() {
        return Vec::new();
    }
    let event = &in_core(object);
    let mut errors = Vec::new();
    validate_series(event, &mut errors);
    if age::moment(at(event, "eventTime")).is_none() {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        let detail = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid("type", &json!(""), detail));
    }
    for (field, is_used) in [
        ("firstTimestamp", age::moment(at(event, "firstTimestamp")).is_some()),
        ("lastTimestamp", age::moment(at(event, "lastTimestamp")).is_some()),
        ("count", number(event, "count") != 0),
        (
            "source",
            ["component", "host"].iter().any(|part| !text(at(event, "source"), part).is_empty()),
        ),
    ] {
        if is_used {
            errors.push(FieldError::invalid(field, &json!(""), "needs to be unset"));
        }
    }
    errors
}

/// What may not change in an event through `events.k8s.io/v1`: all but its series.
pub(crate) fn validate_update(group: &str, old: &Value, new: &Value) -> Vec<FieldError> {
    if group.is_empty() {
        return Vec::new();
    }
    let (old, new) = (&in_core(old), &in_core(new));
    let mut errors = Vec::new();
    if !same(at(old, "series"), at(new, "series")) {
        validate_series(new, &mut errors);
    }
    let root = Path::Root;
    for field in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "action",
        "related",
        "reportingInstance",
    ] {
        unchanged(at(old, field), at(new, field), &root.field(field), &mut errors);
    }
    let (was, is) = (at(old, "reportingComponent"), at(new, "reportingComponent"));
    unchanged(was, is, &root.field("reportingController"), &mut errors);
    // Clients that cut the time to microseconds are not to be refused for it.
    let microseconds =
        |event: &Value| age::moment(at(event, "eventTime")).map(|moment| moment.as_microsecond());
    if microseconds(old) != microseconds(new) {
        unchanged(
            at(old, "eventTime"),
            at(new, "eventTime"),
            &root.field("eventTime"),
            &mut errors,
        );
    }
    errors
}

fn validate_series(event: &Value, errors: &mut Vec<FieldError>) {
    if !is_set(event, "series") {
        return;
    }
    if number(event, "series.count") < 2 {
        errors.push(FieldError::invalid("series.count", &json!(""), "should be at least 2"));
    }
    if age::moment(at(event, "series.lastObservedTime")).is_none() {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
}

/// The fields that Go always writes, so that a client which relies on them finds them.
pub(crate) fn defaults(object: &mut Value) {
    let is_newer = is_newer(object);
    let Some(event) = object.as_object_mut() else { return };
    let (source, controller) = if is_newer {
        ("deprecatedSource", "reportingController")
    } else {
        ("source", "reportingComponent")
    };
    super::read::fill(event, source, Map::new());
    super::read::fill(event, controller, "");
    super::read::fill(event, "reportingInstance", "");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Value {
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": "a.1", "namespace": "team"},
            "eventTime": "2024-01-01T00:00:00.000001Z",
            "regarding": {"kind": "Pod", "name": "a", "namespace": "team"},
            "note": "it moves", "reason": "Moving", "action": "Move", "type": "Normal",
            "reportingController": "example.com/mover", "reportingInstance": "mover-1",
        })
    }

    #[test]
    fn the_two_faces_turn_into_each_other() {
        let mut event = recorded();
        from_events_v1(&mut event);
        assert_eq!(event["apiVersion"], "v1");
        assert_eq!(event["involvedObject"]["name"], "a");
        assert_eq!(event["message"], "it moves");
        assert_eq!(event["reportingComponent"], "example.com/mover");
        assert!(event.get("regarding").is_none());
        to_events_v1(&mut event);
        assert_eq!(event, recorded());
    }

    #[test]
    fn a_good_event_passes_through_both_faces() {
        assert_eq!(validate("events.k8s.io", &recorded()), []);
        assert_eq!(validate_create("events.k8s.io", &recorded()), []);
        let mut core = recorded();
        from_events_v1(&mut core);
        assert_eq!(validate("", &core), []);
        assert_eq!(validate_create("", &core), []);
    }

    #[test]
    fn the_newer_face_asks_for_more() {
        let bare = json!({
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"namespace": "team"},
            "regarding": {"namespace": "team"},
            "deprecatedCount": 3,
        });
        let texts: Vec<String> =
            validate_create("events.k8s.io", &bare).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "eventTime: Required value",
                "type: Invalid value: \"\": has invalid value: ",
                "count: Invalid value: \"\": needs to be unset",
            ]
        );
        assert_eq!(validate("", &bare), []);
    }

    #[test]
    fn an_event_lives_where_its_object_lives() {
        let event = json!({
            "metadata": {"namespace": "a"}, "involvedObject": {"namespace": "b"},
        });
        let texts: Vec<String> = validate("", &event).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            ["involvedObject.namespace: Invalid value: \"b\": does not match event.namespace"]
        );
    }

    #[test]
    fn only_the_series_may_change_through_the_newer_face() {
        let mut next = recorded();
        next["series"] = json!({"count": 2, "lastObservedTime": "2024-01-01T00:01:00.000000Z"});
        assert_eq!(validate_update("events.k8s.io", &recorded(), &next), []);
        next["note"] = json!("it moved");
        let texts: Vec<String> = validate_update("events.k8s.io", &recorded(), &next)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts, ["message: Invalid value: \"it moved\": field is immutable"]);
    }
}
