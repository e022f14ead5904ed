//! Laying an applied configuration over an object, and taking out what an applier no longer names.

use super::element::Element;
use super::fieldset::Set;
use super::owned::all_fields;
use super::typed::{ListType, Type, Walk, element_of};
use crate::schema::ListKind;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Lays a configuration over a value. Nothing is removed; where both have a leaf, the
/// configuration's stays.
///
/// The error says which element of a list has no name; the path to it is not known here.
pub(super) fn merge(of: Type<'_>, value: &mut Value, applied: &Value) -> Result<(), String> {
    let walk = of.walk(applied);
    let is_alike = std::mem::discriminant(&of.walk(value)) == std::mem::discriminant(&walk);
    match walk {
        Walk::Map { is_atomic: false } if is_alike => match (&mut *value, applied) {
            (Value::Object(fields), Value::Object(over)) if !fields.is_empty() => {
                merge_maps(of, fields, over)
            }
            // An empty or null configuration of a map that has something in it says nothing.
            (Value::Object(fields), Value::Null) if !fields.is_empty() => Ok(()),
            _ => {
                applied.clone_into(value);
                Ok(())
            }
        },
        Walk::List(of_list @ ListType { kind: ListKind::Set | ListKind::Keyed(_), .. })
            if is_alike =>
        {
            match (&mut *value, applied) {
                (Value::Array(list), Value::Array(over)) if !list.is_empty() => {
                    merge_lists(of_list, list, over)
                }
                (Value::Array(list), Value::Null) if !list.is_empty() => Ok(()),
                _ => {
                    applied.clone_into(value);
                    Ok(())
                }
            }
        }
        Walk::Map { .. } | Walk::List(_) | Walk::Scalar(_) => {
            applied.clone_into(value);
            Ok(())
        }
    }
}

fn merge_maps(
    of: Type<'_>,
    fields: &mut Map<String, Value>,
    over: &Map<String, Value>,
) -> Result<(), String> {
    for (name, applied) in over {
        let Some(value) = fields.get_mut(name) else {
            fields.insert(name.clone(), applied.clone());
            continue;
        };
        let child = of.field(name).map_or(Type::Deduced, |(child, _)| child);
        merge(child, value, applied)?;
    }
    Ok(())
}

/// Where an element of a merged list comes from: the place in the list, in the configuration, or
/// both.
type Source = (Option<usize>, Option<usize>);

fn merge_lists(of: ListType<'_>, list: &mut Vec<Value>, over: &[Value]) -> Result<(), String> {
    let plan = order_of_merged(&elements(of, list)?, &elements(of, over)?);
    let mut old: Vec<Value> = std::mem::take(list);
    list.reserve(plan.len());
    for (in_old, in_over) in plan {
        let taken = in_old.and_then(|place| old.get_mut(place)).map(Value::take);
        let applied = in_over.and_then(|place| over.get(place));
        match (taken, applied) {
            (Some(mut value), Some(applied)) => {
                merge(of.items, &mut value, applied)?;
                list.push(value);
            }
            (Some(value), None) => list.push(value),
            (None, Some(applied)) => list.push(applied.clone()),
            (None, None) => {}
        }
    }
    Ok(())
}

fn elements<'a>(of: ListType<'a>, list: &'a [Value]) -> Result<Vec<Element<'a>>, String> {
    let named =
        |(place, value)| element_of(of, value).map_err(|why| format!("element {place}: {why}"));
    list.iter().enumerate().map(named).collect()
}

/// The order of a merged list: as in the configuration, with what only the list has left where it
/// stood between its neighbours.
fn order_of_merged(old: &[Element<'_>], over: &[Element<'_>]) -> Vec<Source> {
    // An element that stands twice is not merged with; the configuration's replaces both.
    let mut in_old: BTreeMap<&Element<'_>, Option<usize>> = BTreeMap::new();
    for (place, element) in old.iter().enumerate() {
        in_old.entry(element).and_modify(|twice| *twice = None).or_insert(Some(place));
    }
    let in_over: BTreeSet<&Element<'_>> = over.iter().collect();
    let mut shared = over.iter().filter(|element| in_old.contains_key(element));
    let mut next_shared = shared.next();
    let mut done: BTreeSet<&Element<'_>> = BTreeSet::new();
    let mut plan = Vec::with_capacity(old.len().max(over.len()));
    let (mut left, mut right) = (0, 0);
    while left < old.len() || right < over.len() {
        if let (Some(element), Some(applied)) = (old.get(left), over.get(right)) {
            if element == applied {
                done.insert(applied);
                plan.push((in_old.get(applied).copied().flatten(), Some(right)));
                left += 1;
                right += 1;
                next_shared = shared.next();
                continue;
            }
            let is_later = next_shared.is_some_and(|next| next != element);
            if is_later && in_over.contains(element) {
                left += 1;
                continue;
            }
        }
        if let Some(element) = old.get(left) {
            if !in_over.contains(element) {
                plan.push((Some(left), None));
                left += 1;
                continue;
            }
            if done.contains(element) {
                left += 1;
            }
        }
        if let Some(applied) = over.get(right) {
            done.insert(applied);
            plan.push((in_old.get(applied).copied().flatten(), Some(right)));
            right += 1;
            if next_shared == Some(applied) {
                next_shared = shared.next();
            }
        }
    }
    plan
}

/// What is left of a list or a map out of which everything was removed.
#[derive(Debug, Clone, Copy)]
enum Emptied<'v> {
    /// Null: for finding out what goes away with what, as upstream does.
    Null,
    /// An empty one, unless the configuration says null at this place: whoever still names it wants
    /// it to be there. Upstream leaves null in any case, which many schemas refuse.
    As(Option<&'v Value>),
}

impl<'v> Emptied<'v> {
    fn at_field(self, name: &str) -> Self {
        match self {
            Emptied::Null => Emptied::Null,
            Emptied::As(applied) => Emptied::As(applied.and_then(|applied| applied.get(name))),
        }
    }

    fn at_element(self, of: ListType<'_>, element: &Element<'_>) -> Self {
        let Emptied::As(applied) = self else { return Emptied::Null };
        let is_it =
            |value: &&Value| element_of(of, value).is_ok_and(|found| found.order(element).is_eq());
        let list = applied.and_then(Value::as_array);
        Emptied::As(list.and_then(|list| list.iter().find(is_it)))
    }

    fn is_null(self) -> bool {
        match self {
            Emptied::Null => true,
            Emptied::As(applied) => applied.is_some_and(Value::is_null),
        }
    }
}

/// Removes the named items.
fn remove(of: Type<'_>, value: &mut Value, items: &Set<'_>, emptied: Emptied<'_>) {
    match (of.walk(value), &mut *value) {
        (Walk::Scalar(_), _) => return,
        (
            Walk::List(of_list @ ListType { kind: ListKind::Set | ListKind::Keyed(_), .. }),
            Value::Array(list),
        ) => {
            list.retain_mut(|item| {
                let (below, emptied) = {
                    // What cannot be distinguished cannot be named either: it stays.
                    let Ok(element) = element_of(of_list, item) else { return true };
                    if items.has(&element) {
                        return false;
                    }
                    let Some(below) = items.below(&element) else { return true };
                    (below, emptied.at_element(of_list, &element))
                };
                remove(of_list.items, item, below, emptied);
                true
            });
            if !list.is_empty() {
                return;
            }
        }
        (Walk::Map { is_atomic: false }, Value::Object(fields)) => {
            fields.retain(|name, field| {
                let element = Element::Field(name);
                if items.has(&element) {
                    return false;
                }
                if let Some(below) = items.below(&element) {
                    let child = of.field(name).map_or(Type::Deduced, |(child, _)| child);
                    remove(child, field, below, emptied.at_field(name));
                }
                true
            });
            if !fields.is_empty() {
                return;
            }
        }
        (Walk::List(_) | Walk::Map { .. }, _) => {}
    }
    if emptied.is_null() {
        *value = Value::Null;
    }
}

/// What an applier says about an object.
pub(super) struct Applier<'a> {
    /// Its new configuration.
    pub(super) applied: &'a Value,
    /// What it named the last time.
    pub(super) last: &'a Set<'a>,
    /// What anybody owns, the applier's new configuration included.
    pub(super) owned: &'a Set<'a>,
}

/// Takes out what an applier named the last time, does not name now, and nobody else owns.
pub(super) fn prune(of: Type<'_>, merged: &mut Value, applier: &Applier<'_>) {
    let Applier { applied, last, owned } = *applier;
    let last = last.clone().with_named_parents(Some(of));
    let owned = owned.clone().with_named_parents(Some(of));
    let before = merged.clone();
    let had = all_fields(of, &before).with_named_parents(Some(of));

    // First without all that was named the last time, to see what goes away with it.
    let mut without_last = before.clone();
    remove(of, &mut without_last, &last, Emptied::Null);
    let mut unowned = had.clone();
    unowned.subtract(&all_fields(of, &without_last).with_named_parents(Some(of)));
    unowned.subtract(&owned);

    // Then with what somebody owns back in it. What is gone now and was the applier's goes for
    // good; what was nobody's stays.
    let mut without_unowned = before.clone();
    remove(of, &mut without_unowned, &unowned, Emptied::Null);
    let mut gone = had;
    gone.subtract(&all_fields(of, &without_unowned).with_named_parents(Some(of)));
    let gone = gone.intersect(&last);
    if !gone.is_empty() {
        remove(of, merged, &gone, Emptied::As(Some(applied)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn merged(old: &str, over: &str) -> String {
        let read = |text: &str| -> Vec<Element<'static>> {
            text.chars().map(|name| Element::Value(Cow::Owned(name.to_string().into()))).collect()
        };
        let (old_elements, over_elements) = (read(old), read(over));
        let sources = order_of_merged(&old_elements, &over_elements);
        let name = |(in_old, in_over): Source| match (in_old, in_over) {
            (_, Some(place)) => over.as_bytes()[place] as char,
            (Some(place), None) => old.as_bytes()[place] as char,
            (None, None) => '?',
        };
        sources.into_iter().map(name).collect()
    }

    #[test]
    fn merged_lists_follow_the_configuration_and_keep_what_only_they_have() {
        for (old, over, expected) in [
            ("abc", "", "abc"),
            ("", "abc", "abc"),
            ("abc", "abc", "abc"),
            ("abc", "b", "abc"),
            ("abc", "cb", "acb"),
            ("abc", "bd", "abcd"),
            ("ab", "ba", "ba"),
            ("abcd", "dcba", "dcba"),
            ("axb", "ba", "xba"),
            ("ac", "abc", "abc"),
            ("aab", "a", "ab"),
        ] {
            assert_eq!(merged(old, over), expected, "{old} with {over}");
        }
    }
}
