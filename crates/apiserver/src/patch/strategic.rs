//! Strategic merge patch: as a merge patch, but lists are merged where the schema says so, and
//! directives say more.
//!
//! * `$patch: replace` or `$patch: delete` in an object: take the patch for the whole of it, or
//!   empty it;
//! * the same in an element of a merged list: take the patch's elements only, or drop the one with
//!   this key;
//! * `$retainKeys: [a]`: drop the fields that are not named;
//! * `$setElementOrder/list`: the order of a list's elements;
//! * `$deleteFromPrimitiveList/list`: the scalars to take from a list.
//!
//! What the outcome looks like in each case is upstream's, oddities included: `kubectl apply`
//! computes its patches against exactly that.

use super::list::{self, ListField};
use super::merge::without_nulls;
use super::{order, rejected};
use crate::schema::{Form, PatchStrategy, Shape};
use crate::status::Status;
use serde_json::{Map, Value};
use std::collections::HashSet;

pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";

/// Applies a patch to an object of a built-in kind. A patch that is none is 400, one that does not
/// fit 422. The recursion is as deep as the patch, which the decoder limits.
pub(crate) fn strategic(target: &Value, patch: &Value, shape: Shape<'_>) -> Result<Value, Status> {
    let (Value::Object(target), Value::Object(patch)) = (target, patch) else {
        return Err(Status::bad_request("invalid JSON document"));
    };
    merge_objects(target.clone(), patch.clone(), Some(shape)).map(Value::Object)
}

/// The patched object. `shape` is missing below what nobody described.
pub(super) fn merge_objects(
    mut target: Map<String, Value>,
    mut patch: Map<String, Value>,
    shape: Option<Shape<'_>>,
) -> Result<Map<String, Value>, Status> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Map::new()),
            Some(_) | None => Err(unknown_directive(&directive)),
        };
    }
    retain_keys(&mut target, &mut patch)?;
    order_lists(&mut target, &mut patch, shape)?;
    for (key, change) in patch {
        merge_field(&mut target, &key, change, shape)?;
    }
    Ok(target)
}

pub(super) fn unknown_directive(directive: &Value) -> Status {
    rejected(format!("unknown patch type: {directive}"))
}

fn merge_field(
    target: &mut Map<String, Value>,
    key: &str,
    change: Value,
    shape: Option<Shape<'_>>,
) -> Result<(), Status> {
    let (key, is_deletion) = if key.starts_with(DELETE_FROM_PRIMITIVE_LIST) {
        let error = "invalid patch format of primitive list";
        (list_name(key, DELETE_FROM_PRIMITIVE_LIST, error)?, true)
    } else {
        (key, false)
    };
    if change.is_null() {
        target.remove(key);
        return Ok(());
    }
    let merged = match (target.remove(key), change) {
        (Some(Value::Object(current)), Value::Object(change)) if !is_deletion => {
            let inner = shape.and_then(|shape| shape.field(key));
            Some(Value::Object(merge_objects(current, change, inner)?))
        }
        (Some(Value::Array(current)), Value::Array(change)) => {
            let field = list_field(shape, key);
            Some(Value::Array(if is_deletion {
                list::delete_scalars(current, &change)?
            } else if field.is_merged {
                list::merge_lists(current, change, &field)?
            } else {
                change
            }))
        }
        // A deletion from what is no list, or from nothing, deletes nothing.
        (current, _) if is_deletion => current,
        (_, change) => without_directives(&without_nulls(&change)),
    };
    if let Some(merged) = merged {
        target.insert(key.to_owned(), merged);
    }
    Ok(())
}

/// What the schema says about a list.
fn list_field<'a>(shape: Option<Shape<'a>>, name: &str) -> ListField<'a> {
    let strategy = shape.and_then(|shape| strategy(shape, name));
    ListField {
        is_merged: strategy.is_some_and(|strategy| strategy.merge),
        merge_key: strategy.and_then(|strategy| strategy.merge_key.as_deref()),
        items: shape.and_then(|shape| shape.field(name)).and_then(|list| list.items()),
    }
}

fn strategy<'a>(shape: Shape<'a>, name: &str) -> Option<&'a PatchStrategy> {
    let Form::Object(object) = &shape.node().form else { return None };
    object.fields.get(name).map(|field| &field.patch)
}

/// `containers` of `$setElementOrder/containers`; 400 if there is nothing of the sort.
fn list_name<'a>(key: &'a str, prefix: &str, error: &str) -> Result<&'a str, Status> {
    key.strip_prefix(prefix)
        .and_then(|rest| rest.strip_prefix('/'))
        .ok_or_else(|| Status::bad_request(error))
}

/// Drops the fields that `$retainKeys` does not name. The patch may set no others.
fn retain_keys(
    target: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), Status> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let bad_format = || Status::bad_request("invalid patch format of retainKeys");
    let Value::Array(retained) = retained else { return Err(bad_format()) };
    let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let is_retained = |key: &str| retained.contains(key);
    let is_foreign = |(key, change): (&String, &Value)| {
        let is_exempt = change.is_null()
            || key.starts_with(DELETE_FROM_PRIMITIVE_LIST)
            || key.starts_with(SET_ELEMENT_ORDER);
        !is_exempt && !is_retained(key)
    };
    if patch.iter().any(is_foreign) {
        return Err(bad_format());
    }
    target.retain(|key, _| is_retained(key));
    Ok(())
}

/// Merges the lists that have a `$setElementOrder`, and takes them from the patch.
fn order_lists(
    target: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    shape: Option<Shape<'_>>,
) -> Result<(), Status> {
    let keys: Vec<String> =
        patch.keys().filter(|key| key.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for key in keys {
        let wanted = list_of(patch.remove(&key))?.unwrap_or_default();
        let error = "invalid patch format of setElementOrder list";
        let name = list_name(&key, SET_ELEMENT_ORDER, error)?;
        let change = list_of(patch.remove(name))?;
        let current = list_of(target.get(name).cloned())?;
        let field = list_field(shape, name);
        order::check_against(change.as_deref().unwrap_or_default(), &wanted, field.merge_key)?;
        let server = match (&current, &change, field.merge_key) {
            (Some(current), Some(change), Some(merge_key)) if field.is_merged => {
                list::server_order(current, change, merge_key)?
            }
            (current, _, _) => current.clone().unwrap_or_default(),
        };
        let merged = match (current, change) {
            (None, None) => continue,
            (Some(current), None) => current,
            (None, Some(change)) => change.iter().filter_map(without_directives).collect(),
            (Some(current), Some(change)) if field.is_merged => {
                list::merge_lists(current, change, &field)?
            }
            (Some(_), Some(change)) => change,
        };
        let orders = order::Orders { patch: &wanted, server: &server, merge_key: field.merge_key };
        target.insert(name.to_owned(), Value::Array(orders.arrange(merged)?));
    }
    Ok(())
}

fn list_of(value: Option<Value>) -> Result<Option<Vec<Value>>, Status> {
    match value {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(_) => Err(rejected("expected a list with a $setElementOrder, but received none")),
    }
}

/// A copy without the objects that carry a directive: what has nothing to act on is dropped.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(
            map.iter()
                .filter_map(|(key, value)| Some((key.clone(), without_directives(value)?)))
                .collect(),
        )),
        Value::Array(list) => {
            Some(Value::Array(list.iter().filter_map(without_directives).collect()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.clone()),
    }
}
