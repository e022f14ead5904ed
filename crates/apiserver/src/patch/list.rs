//! How a strategic merge patch merges lists: objects by their key, scalars by themselves.

use super::merge::without_nulls;
use super::order::{Orders, identity, is_deletion, key_of};
use super::rejected;
use super::strategic::{DIRECTIVE, merge_objects, unknown_directive};
use crate::schema::Shape;
use crate::status::Status;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// What the schema says about a list.
pub(super) struct ListField<'a> {
    /// Whether it is merged at all; else the patch replaces it.
    pub(super) is_merged: bool,
    /// The field that tells its objects apart; none for scalars.
    pub(super) merge_key: Option<&'a str>,
    /// What its elements look like.
    pub(super) items: Option<Shape<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementType {
    Boolean,
    Integer,
    Float,
    String,
    Object,
}

/// Both lists in one, in the order that upstream gives it.
pub(super) fn merge_lists(
    current: Vec<Value>,
    change: Vec<Value>,
    field: &ListField<'_>,
) -> Result<Vec<Value>, Status> {
    let Some(element_type) = element_type(current.iter().chain(&change))? else {
        return Ok(current);
    };
    if element_type != ElementType::Object {
        return merge_scalars(current, &change, field);
    }
    let Some(merge_key) = field.merge_key else {
        return Err(rejected("cannot merge lists without merge key"));
    };
    let (current, change) = apply_directives(current, change, merge_key)?;
    let merged = merge_elements(current.clone(), &change, merge_key, field.items)?;
    Orders { patch: &change, server: &current, merge_key: Some(merge_key) }.arrange(merged)
}

/// The order that the server's elements have once a patch has been merged into them. Upstream puts
/// new elements into the room of deleted ones, so they count as having stood there.
pub(super) fn server_order(
    current: &[Value],
    change: &[Value],
    merge_key: &str,
) -> Result<Vec<Value>, Status> {
    let is_plain = |element: &Value| element.get(DIRECTIVE).is_none();
    if change.iter().all(is_plain) {
        return Ok(current.to_vec());
    }
    let deletions = change.iter().filter(|element| is_deletion(element)).cloned().collect();
    let (mut order, _) = apply_directives(current.to_vec(), deletions, merge_key)?;
    let known: HashSet<String> =
        order.iter().filter_map(|element| element.get(merge_key).and_then(identity)).collect();
    let is_new = |element: &&Value| {
        element.get(merge_key).and_then(identity).is_some_and(|name| !known.contains(&name))
    };
    let room = current.len() - order.len();
    let is_replaced = change.iter().any(|element| !is_plain(element) && !is_deletion(element));
    if !is_replaced {
        let new = change.iter().filter(|element| is_plain(element)).filter(is_new);
        order.extend(new.take(room).cloned());
    }
    Ok(order)
}

/// Takes scalars from a list.
pub(super) fn delete_scalars(current: Vec<Value>, gone: &[Value]) -> Result<Vec<Value>, Status> {
    match element_type(current.iter().chain(gone))? {
        None => return Ok(current),
        Some(ElementType::Object) => return Err(rejected("only scalars can be taken from a list")),
        Some(
            ElementType::Boolean | ElementType::Integer | ElementType::Float | ElementType::String,
        ) => {}
    }
    let gone: HashSet<String> = gone.iter().filter_map(identity).collect();
    let is_kept = |value: &Value| identity(value).is_none_or(|name| !gone.contains(&name));
    Ok(current.into_iter().filter(is_kept).collect())
}

fn merge_scalars(
    current: Vec<Value>,
    change: &[Value],
    field: &ListField<'_>,
) -> Result<Vec<Value>, Status> {
    let mut seen = HashSet::new();
    let mut merged = Vec::new();
    for value in current.iter().chain(change) {
        if identity(value).is_some_and(|name| seen.insert(name)) {
            merged.push(value.clone());
        }
    }
    if field.merge_key.is_some() {
        return Err(rejected("expected objects in a list that is merged by key"));
    }
    Orders { patch: change, server: &current, merge_key: None }.arrange(merged)
}

/// The one type that all elements have; none if there are no elements.
fn element_type<'a>(
    elements: impl Iterator<Item = &'a Value>,
) -> Result<Option<ElementType>, Status> {
    let mut common = None;
    for element in elements {
        let this = match element {
            Value::Bool(_) => ElementType::Boolean,
            Value::Number(number) if number.is_f64() => ElementType::Float,
            Value::Number(_) => ElementType::Integer,
            Value::String(_) => ElementType::String,
            Value::Object(_) => ElementType::Object,
            Value::Array(_) => return Err(rejected("lists of lists are not supported")),
            Value::Null => return Err(rejected("a list that is merged has no null elements")),
        };
        if common.is_some_and(|common| common != this) {
            return Err(rejected("list element types are not identical"));
        }
        common = Some(this);
    }
    Ok(common)
}

/// Does what the elements with a `$patch` say, and returns the current list and the patch without
/// them.
fn apply_directives(
    mut current: Vec<Value>,
    change: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Status> {
    let mut plain = Vec::new();
    let mut gone = HashSet::new();
    let mut is_replaced = false;
    for element in change {
        let Some(directive) = element.get(DIRECTIVE) else {
            plain.push(element);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                gone.insert(key_of(&element, merge_key)?);
            }
            Some("replace") => is_replaced = true,
            Some("merge") => {
                return Err(rejected("merging lists cannot yet be specified in the patch"));
            }
            Some(_) | None => return Err(unknown_directive(directive)),
        }
    }
    if is_replaced {
        return Ok((plain, Vec::new()));
    }
    if !gone.is_empty() {
        current.retain(|element| {
            let name = element.get(merge_key).and_then(identity);
            name.is_none_or(|name| !gone.contains(&name))
        });
    }
    Ok((current, plain))
}

/// Merges elements of one key, and appends those that are new.
fn merge_elements(
    mut current: Vec<Value>,
    change: &[Value],
    merge_key: &str,
    items: Option<Shape<'_>>,
) -> Result<Vec<Value>, Status> {
    let mut places = HashMap::new();
    for (place, element) in current.iter().enumerate() {
        if let Some(name) = element.get(merge_key).and_then(identity) {
            places.entry(name).or_insert(place);
        }
    }
    for element in change {
        let name = key_of(element, merge_key)?;
        match places.get(&name).and_then(|&place| current.get_mut(place)) {
            Some(existing) => {
                let merged =
                    merge_objects(object(existing.take()), object(element.clone()), items)?;
                *existing = Value::Object(merged);
            }
            None => {
                places.insert(name, current.len());
                current.push(without_nulls(element));
            }
        }
    }
    Ok(current)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}
