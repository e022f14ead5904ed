//! The status of a CRD: its names are accepted, it is established.

use super::{text, versions};
use crate::resource::Resource;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The names of one group that are taken by others.
#[derive(Debug, Clone, Default)]
pub(super) struct TakenNames {
    /// Plurals, singulars and short names.
    pub(super) resources: BTreeSet<String>,
    /// Kinds, and kinds of lists.
    pub(super) kinds: BTreeSet<String>,
}

/// A name that a CRD wants and another has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    /// `PluralConflict`, `KindConflict` and so on.
    pub(super) reason: &'static str,
    /// Which name.
    pub(super) message: String,
}

/// Whether another has a name that the CRD wants. What it was already granted does not count.
pub(super) fn name_conflict(crd: &Value, taken: &TakenNames) -> Option<Conflict> {
    let empty = Map::new();
    let object = |place: &str| crd.pointer(place).and_then(Value::as_object).unwrap_or(&empty);
    let (wanted, granted) = (object("/spec/names"), object("/status/acceptedNames"));
    let in_use = |name: &str| format!("{name:?} is already in use");
    let mut found = None;
    for (word, set, reason) in [
        ("plural", &taken.resources, "PluralConflict"),
        ("singular", &taken.resources, "SingularConflict"),
        ("shortNames", &taken.resources, "ShortNamesConflict"),
        ("kind", &taken.kinds, "KindConflict"),
        ("listKind", &taken.kinds, "ListKindConflict"),
    ] {
        let clashes: Vec<String> = if word == "shortNames" {
            let own = super::texts(granted.get(word));
            let new = super::texts(wanted.get(word));
            let clashing = new.iter().filter(|name| !own.contains(name) && set.contains(&***name));
            clashing.map(|name| in_use(name)).collect()
        } else {
            let name = text(wanted, word);
            let is_taken = name != text(granted, word) && set.contains(name);
            is_taken.then(|| in_use(name)).into_iter().collect()
        };
        // The last one found is reported, as upstream does.
        if let [one] = &clashes[..] {
            found = Some(Conflict { reason, message: one.clone() });
        } else if !clashes.is_empty() {
            let message = format!("[{}]", clashes.join(", "));
            found = Some(Conflict { reason, message });
        }
    }
    found
}

/// Grants the CRD its names and establishes it, at the time `now` (RFC 3339). The storage version
/// is remembered.
pub(crate) fn established(crd: &mut Value, now: &str) {
    let names = crd.pointer("/spec/names").cloned().unwrap_or_else(|| json!({}));
    let storage = crd.get("spec").and_then(Value::as_object).and_then(|spec| {
        let version = versions::of(spec).find(|version| versions::is_storage(version))?;
        Some(text(version, "name").to_owned())
    });
    let Some(status) = status_of(crd) else { return };
    status.insert("acceptedNames".to_owned(), names);
    remember(status, storage);
    let accepted = Condition {
        kind: "NamesAccepted",
        is_true: true,
        reason: "NoConflicts",
        message: "no conflicts found",
    };
    let established = Condition {
        kind: "Established",
        is_true: true,
        reason: "InitialNamesAccepted",
        message: "the initial names have been accepted",
    };
    set_condition(status, &accepted, now);
    set_condition(status, &established, now);
}

/// Notes that the deletion of the CRD was asked for.
pub(crate) fn terminating(crd: &mut Value, now: &str) {
    let Some(status) = status_of(crd) else { return };
    let terminating = Condition {
        kind: "Terminating",
        is_true: true,
        reason: "InstanceDeletionPending",
        message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin \
                  soon",
    };
    set_condition(status, &terminating, now);
}

/// Notes that a name the CRD wants is taken. If it was established, it stays so, under its old
/// names.
pub(super) fn reject_names(crd: &mut Value, conflict: &Conflict, now: &str) {
    let was_established = is_true(crd, "Established");
    let storage = crd.get("spec").and_then(Value::as_object).and_then(|spec| {
        let version = versions::of(spec).find(|version| versions::is_storage(version))?;
        Some(text(version, "name").to_owned())
    });
    let Some(status) = status_of(crd) else { return };
    remember(status, storage);
    let accepted = status.entry("acceptedNames").or_insert_with(|| json!({}));
    if let Some(accepted) = accepted.as_object_mut() {
        for word in ["kind", "plural"] {
            accepted.entry(word).or_insert_with(|| json!(""));
        }
    }
    let rejected = Condition {
        kind: "NamesAccepted",
        is_true: false,
        reason: conflict.reason,
        message: &conflict.message,
    };
    set_condition(status, &rejected, now);
    if !was_established {
        let waiting = Condition {
            kind: "Established",
            is_true: false,
            reason: "NotAccepted",
            message: "not all names are accepted",
        };
        set_condition(status, &waiting, now);
    }
}

/// Whether the CRD is served.
pub(crate) fn is_established(crd: &Value) -> bool {
    is_true(crd, "Established")
}

/// Grants a new CRD its names, or notes which of them another resource of its group has. `served`
/// are the resources that are there already.
pub(crate) fn accept_names(crd: &mut Value, served: &[Arc<Resource>], now: &str) {
    let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or("");
    let mut taken = TakenNames::default();
    for other in served.iter().filter(|other| *other.group == *group) {
        taken.resources.extend([other.plural.to_string(), other.singular.to_string()]);
        taken.resources.extend(other.short_names.iter().map(ToString::to_string));
        taken.kinds.extend([other.kind.to_string(), other.list_kind.to_string()]);
    }
    match name_conflict(crd, &taken) {
        Some(conflict) => reject_names(crd, &conflict, now),
        None => established(crd, now),
    }
}

/// Whether a condition of the CRD is true.
fn is_true(crd: &Value, kind: &str) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| one["type"] == kind && one["status"] == "True")
}

fn status_of(crd: &mut Value) -> Option<&mut Map<String, Value>> {
    let crd = crd.as_object_mut()?;
    let status = crd.entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    status.as_object_mut()
}

/// A version that is or was the one to store objects in.
fn remember(status: &mut Map<String, Value>, storage: Option<String>) {
    let Some(storage) = storage else { return };
    let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
    if !stored.is_array() {
        *stored = json!([]);
    }
    if let Some(stored) = stored.as_array_mut()
        && !stored.iter().any(|name| *name == *storage)
    {
        stored.push(json!(storage));
    }
}

struct Condition<'c> {
    kind: &'c str,
    is_true: bool,
    reason: &'c str,
    message: &'c str,
}

/// Sets a condition; the time moves only when its truth does.
fn set_condition(status: &mut Map<String, Value>, condition: &Condition<'_>, now: &str) {
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    let truth = if condition.is_true { "True" } else { "False" };
    let known = list.iter_mut().find(|one| one["type"] == condition.kind);
    let since = match &known {
        Some(one) if one["status"] == truth => one["lastTransitionTime"].clone(),
        _ => json!(now),
    };
    let new = json!({
        "type": condition.kind, "status": truth, "reason": condition.reason,
        "message": condition.message, "lastTransitionTime": since,
    });
    match known {
        Some(one) => *one = new,
        None => list.push(new),
    }
}
