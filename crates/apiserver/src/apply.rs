//! Server-side apply and `managedFields`: who owns which field, and what an applied configuration
//! changes.
//!
//! It follows upstream's structured-merge-diff and the field managers around it. An object is
//! walked beside its schema; a set of fields is a tree ([`fieldset`]); each owner has one
//! ([`entries`]). Versions of a kind differ in name only here, so entries of all versions are read
//! with one schema.

mod compare;
mod element;
mod entries;
mod fieldset;
mod last_applied;
mod merge;
mod moment;
mod owned;
mod refusal;
#[cfg(test)]
mod tests;
mod typed;

pub(crate) use refusal::{ApplyError, Conflict};

use crate::schema::Shape;
use crate::status::{FieldError, Problem};
use compare::{Difference, SERVERS_METADATA, nothing};
use element::is_same;
use entries::{Entries, Entry, Identity};
use fieldset::Set;
use moment::Moment;
use serde_json::{Map, Value};
use std::borrow::Cow;
use typed::Type;

/// Who owns what an object had when it was first applied to and nobody had kept track.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// Who writes without a name.
const UNKNOWN: &str = "unknown";

/// What is to be known about a write, apart from the objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    /// What the objects look like.
    pub(crate) shape: Shape<'a>,
    /// The version of the request: `apps/v1`.
    pub(crate) api_version: &'a str,
    /// The field manager; the caller has put the user agent in if none was named.
    pub(crate) manager: &'a str,
    /// The endpoint: empty for the object itself, else `status` or `scale`.
    pub(crate) subresource: &'a str,
    /// The time, as RFC 3339 in seconds.
    pub(crate) now: &'a str,
    /// The paths that this endpoint does not write: nobody comes to own them through it.
    pub(crate) reset: &'a [&'a [&'a str]],
}

impl<'a> Write<'a> {
    fn identity(&self, manager: &'a str, is_apply: bool) -> Identity<'a> {
        Identity {
            manager: Cow::Borrowed(if manager.is_empty() { UNKNOWN } else { manager }),
            is_apply,
            api_version: Cow::Borrowed(self.api_version),
            subresource: Cow::Borrowed(self.subresource),
        }
    }

    fn root(&self) -> Type<'a> {
        Type::Resource(self.shape)
    }

    /// What somebody came to own who is not an applier.
    fn updated(&self, manager: &'a str, difference: Difference<'a>) -> Entry<'a> {
        let mut set = difference.added;
        set.unite(difference.modified);
        strip(&mut set);
        let identity = self.identity(manager, false);
        Entry { identity, time: Moment::parse(self.now), set, stored: None }
    }
}

/// Sets the `managedFields` of an object that a create, an update or a patch (not an apply) made
/// out of `live`.
///
/// A client forgets all owners by sending an empty list or one empty entry. Otherwise it may send
/// entries of its own; none, or entries that cannot be read, leave those of the live object.
pub(crate) fn track_update(
    write: &Write<'_>,
    live: Option<&Value>,
    new: &mut Value,
) -> Result<(), ApplyError> {
    let given = take_managed_fields(new);
    let old = live.unwrap_or_else(|| nothing());
    let entries = entries_of_update(write, old, given.as_ref());
    let is_create = metadata_field(old, "uid").and_then(Value::as_str).is_none_or(str::is_empty);
    // Once forgotten, owners are not tracked again before somebody applies.
    if entries.list.is_empty() && !is_create {
        return Ok(());
    }
    let encoded = updated_entries(write, entries, old, new).encode();
    put_managed_fields(new, encoded);
    Ok(())
}

fn updated_entries<'a>(
    write: &Write<'a>,
    mut entries: Entries<'a>,
    old: &'a Value,
    new: &'a Value,
) -> Entries<'a> {
    entries.follow_schema(write.root());
    let mut difference = Difference::between(write.shape, old, new);
    difference.forget(write.reset);
    yield_to(&mut entries, &difference);
    entries.drop_empty();
    let updated = write.updated(write.manager, difference);
    if !updated.set.is_empty() {
        entries.add(updated);
    }
    entries.fold_oldest();
    entries
}

/// The entries that an update starts from.
fn entries_of_update<'a>(
    write: &Write<'_>,
    live: &'a Value,
    given: Option<&'a Value>,
) -> Entries<'a> {
    let live = metadata_field(live, "managedFields").and_then(Value::as_array);
    // The endpoints beside the object do not write its metadata.
    let given = given.and_then(Value::as_array).filter(|_| write.subresource.is_empty());
    if let Some(given) = given.filter(|given| Some(*given) != live) {
        if asks_to_forget(given) {
            return Entries::default();
        }
        if let Ok(entries) = Entries::decode_given(given) {
            return entries;
        }
    }
    live.and_then(|live| Entries::decode(live).ok()).unwrap_or_default()
}

fn asks_to_forget(given: &[Value]) -> bool {
    match given {
        [] => true,
        [Value::Object(only)] => only.values().all(|field| match field {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            _ => false,
        }),
        _ => false,
    }
}

/// Server-side apply: lays a configuration over the live object, removes what the same applier
/// named before and nobody owns any more, and notes what it owns. `force` takes over what others
/// own.
///
/// The caller fills in defaults, validates and stores what comes back. It is the same as `live` if
/// the apply changed nothing.
pub(crate) fn apply(
    write: &Write<'_>,
    live: Option<&Value>,
    applied: &Value,
    force: bool,
) -> Result<Value, ApplyError> {
    check_configuration(write, applied)?;
    let owned = owned_fields(write, applied)?;
    let live = live.unwrap_or_else(|| nothing());
    let identity = write.identity(write.manager, true);
    let mut entries = entries_of_apply(write, live);
    entries.follow_schema(write.root());

    let mut new = without_managed_fields(live);
    merge::merge(write.root(), &mut new, applied)
        .map_err(|why| ApplyError::Invalid(vec![FieldError::new(Problem::Invalid, "", why)]))?;
    let mut entry = Entry { identity, time: None, set: owned, stored: None };
    let last = entries.take(&entry.identity);
    if let Some(last) = last.as_ref().filter(|last| !last.set.is_within(&entry.set)) {
        let mut owned_by_anybody = entry.set.clone();
        for other in &entries.list {
            owned_by_anybody.unite(other.set.clone());
        }
        let applier = merge::Applier { applied, last: &last.set, owned: &owned_by_anybody };
        merge::prune(write.root(), &mut new, &applier);
    }
    // Only now: the object's name is nobody's, but naming it keeps its metadata from being pruned.
    strip(&mut entry.set);
    if let Some(last) = last {
        entry.time = last.time;
        entry.stored = last.stored.filter(|_| last.set == entry.set);
    }

    let mut difference = Difference::between(write.shape, live, &new);
    difference.forget(write.reset);
    if !force {
        refuse_conflicts(write, &mut entries, live, &difference)?;
    }
    yield_to(&mut entries, &difference);
    if !is_unchanged(live, &new) {
        entry.time = Moment::parse(write.now);
    }
    entries.list.push(entry);
    entries.drop_empty();
    let encoded = entries.encode();
    last_applied::update(write, &mut new, applied);
    put_managed_fields(&mut new, encoded);
    Ok(new)
}

fn check_configuration(write: &Write<'_>, applied: &Value) -> Result<(), ApplyError> {
    let Value::Object(fields) = applied else {
        return Err(ApplyError::BadRequest(
            "an applied configuration must be an object".to_owned(),
        ));
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    if version != write.api_version {
        let separator = if version.contains('/') { "" } else { "/" };
        return Err(ApplyError::BadRequest(format!(
            "invalid object type: {separator}{version}, Kind={}",
            text("kind")
        )));
    }
    if !metadata_field(applied, "managedFields").is_none_or(Value::is_null) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    Ok(())
}

/// The fields that the configuration names and that this endpoint writes.
fn owned_fields<'a>(write: &Write<'a>, applied: &'a Value) -> Result<Set<'a>, ApplyError> {
    let mut set = owned::owned_fields(write.root(), applied).map_err(ApplyError::Invalid)?;
    for path in write.reset {
        set.remove_path(path);
    }
    Ok(set)
}

/// The entries that an apply starts from. What nobody kept track of gets an owner, so that it
/// conflicts.
fn entries_of_apply<'a>(write: &Write<'a>, live: &'a Value) -> Entries<'a> {
    let known = metadata_field(live, "managedFields").and_then(Value::as_array);
    let mut entries = known.and_then(|known| Entries::decode(known).ok()).unwrap_or_default();
    if entries.list.is_empty() {
        let mut difference = Difference::between(write.shape, nothing(), live);
        difference.forget(write.reset);
        let before = write.updated(BEFORE_FIRST_APPLY, difference);
        if !before.set.is_empty() {
            entries.add(before);
        }
    }
    entries
}

fn refuse_conflicts(
    write: &Write<'_>,
    entries: &mut Entries<'_>,
    live: &Value,
    difference: &Difference<'_>,
) -> Result<(), ApplyError> {
    let mut changed = difference.modified.clone();
    changed.unite(difference.added.clone());
    if changed.is_empty() {
        return Ok(());
    }
    entries.sort_by_owner();
    let mut conflicting: Vec<(String, Set<'_>)> = entries
        .list
        .iter()
        .map(|entry| (entry.identity.to_string(), entry.set.intersect(&changed)))
        .filter(|(_, set)| !set.is_empty())
        .collect();
    if conflicting.is_empty() {
        return Ok(());
    }
    if let Some(last_applied) = last_applied::last_applied(write, live) {
        let allowed = last_applied::still_as_applied(write, &last_applied, live);
        for (_, set) in &mut conflicting {
            set.subtract(&allowed);
        }
    }
    let conflicts: Vec<Conflict> = conflicting
        .iter()
        .flat_map(|(manager, set)| {
            set.paths().into_iter().map(|field| Conflict { manager: manager.clone(), field })
        })
        .collect();
    if conflicts.is_empty() { Ok(()) } else { Err(ApplyError::Conflicts(conflicts)) }
}

/// Takes from the owners what somebody else changed or removed.
fn yield_to(entries: &mut Entries<'_>, difference: &Difference<'_>) {
    for entry in &mut entries.list {
        for changed in [&difference.modified, &difference.added, &difference.removed] {
            if entry.set.subtract(changed) {
                entry.stored = None;
            }
        }
    }
}

/// Takes out what nobody ever owns.
fn strip(set: &mut Set<'_>) {
    for field in SERVERS_METADATA {
        set.remove_member(&["metadata", field]);
    }
    for field in ["apiVersion", "kind", "metadata"] {
        set.remove_member(&[field]);
    }
}

fn metadata_field<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(name)
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

fn put_managed_fields(object: &mut Value, entries: Vec<Value>) {
    if entries.is_empty() {
        return;
    }
    let metadata = object
        .as_object_mut()
        .map(|fields| fields.entry("metadata").or_insert_with(|| Value::Object(Map::new())));
    if let Some(Value::Object(metadata)) = metadata {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

/// A copy, without the entries: they are often as large as the rest and are written anew.
fn without_managed_fields(object: &Value) -> Value {
    let Value::Object(fields) = object else { return object.clone() };
    let copied = |(name, value): (&String, &Value)| {
        let value = match (name.as_str(), value) {
            ("metadata", Value::Object(metadata)) => {
                let kept = metadata.iter().filter(|(name, _)| *name != "managedFields");
                Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
            }
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    Value::Object(fields.iter().map(copied).collect())
}

/// Whether the new object says the same as the live one, apart from the entries.
fn is_unchanged(live: &Value, new: &Value) -> bool {
    let (Value::Object(live), Value::Object(new)) = (live, new) else { return false };
    live.len() == new.len()
        && live.iter().zip(new).all(|((left_name, left), (right_name, right))| {
            left_name == right_name
                && match (left_name.as_str(), left, right) {
                    ("metadata", Value::Object(left), Value::Object(right)) => {
                        let left = left.iter().filter(|(name, _)| *name != "managedFields");
                        left.clone().count() == right.len()
                            && left
                                .zip(right)
                                .all(|(left, right)| left.0 == right.0 && is_same(left.1, right.1))
                    }
                    _ => is_same(left, right),
                }
        })
}
