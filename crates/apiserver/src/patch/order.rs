//! The order of a merged list's elements: as the patch has them, with the server's own ones between
//! where they were.

use super::rejected;
use super::strategic::DIRECTIVE;
use crate::status::Status;
use serde_json::Value;
use std::collections::HashMap;

/// Up to this length upstream's sort is an insertion sort, whose outcome for elements without a
/// place is known.
const INSERTION_LIMIT: usize = 20;

/// The orders that a merged list is arranged by.
pub(super) struct Orders<'a> {
    /// The patch's, or the `$setElementOrder`. It comes first.
    pub(super) patch: &'a [Value],
    /// The order in the object before the patch.
    pub(super) server: &'a [Value],
    /// The field that tells objects apart; none for scalars.
    pub(super) merge_key: Option<&'a str>,
}

/// What tells a scalar from all others: `1` and `"1"` differ. Objects and lists have nothing of the
/// sort.
pub(super) fn identity(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Some(value.to_string())
        }
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// The identity of an object in a list. One without a key cannot be merged.
pub(super) fn key_of(element: &Value, merge_key: &str) -> Result<String, Status> {
    if !element.is_object() {
        return Err(rejected("expected an object in a list that is merged by key"));
    }
    let Some(key) = element.get(merge_key) else {
        return Err(rejected(format!("map does not contain declared merge key: {merge_key}")));
    };
    identity(key).ok_or_else(|| rejected(format!("the merge key {merge_key} must be a scalar")))
}

impl Orders<'_> {
    /// The elements in order. Those that the patch knows stay in its order, the others in the
    /// server's; where an element of the server's stood before one of the patch's, it still does.
    pub(super) fn arrange(&self, merged: Vec<Value>) -> Result<Vec<Value>, Status> {
        let wanted = self.places(self.patch)?;
        let known = self.places(self.server)?;
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for element in merged {
            let name = self.name(&element)?;
            let side = if wanted.contains_key(&name) { &mut ours } else { &mut theirs };
            side.push((name, element));
        }
        let ours = sorted(ours, &wanted);
        let theirs = sorted(theirs, &known);
        Ok(interleaved(theirs, ours, &known))
    }

    fn name(&self, element: &Value) -> Result<String, Status> {
        match self.merge_key {
            Some(merge_key) => key_of(element, merge_key),
            None => identity(element)
                .ok_or_else(|| rejected("a list without merge key can hold only scalars")),
        }
    }

    fn places(&self, list: &[Value]) -> Result<HashMap<String, usize>, Status> {
        let mut places = HashMap::with_capacity(list.len());
        for (place, element) in list.iter().enumerate() {
            places.entry(self.name(element)?).or_insert(place);
        }
        Ok(places)
    }
}

type Named = (String, Value);

fn sorted(mut list: Vec<Named>, places: &HashMap<String, usize>) -> Vec<Named> {
    // Elements to delete stay at the end, as upstream leaves them.
    let deleted: Vec<Named> = list.extract_if(.., |(_, element)| is_deletion(element)).collect();
    let place = |named: &Named| places.get(&named.0).copied();
    if list.len() <= INSERTION_LIMIT {
        // An element without a place moves in front of whatever stands before it. This is not a
        // sensible order, and the standard library's sort may not be asked for it.
        for end in 1..list.len() {
            let mut at = end;
            while at > 0 {
                let is_before = match (place(&list[at]), place(&list[at - 1])) {
                    (Some(this), Some(previous)) => this < previous,
                    (None, _) | (_, None) => true,
                };
                if !is_before {
                    break;
                }
                list.swap(at, at - 1);
                at -= 1;
            }
        }
    } else {
        list.sort_by_key(|named| place(named).map_or(0, |place| place + 1));
    }
    list.extend(deleted);
    list
}

fn interleaved(
    theirs: Vec<Named>,
    ours: Vec<Named>,
    places: &HashMap<String, usize>,
) -> Vec<Value> {
    let mut arranged = Vec::with_capacity(theirs.len() + ours.len());
    let mut theirs = theirs.into_iter().peekable();
    for (name, element) in ours {
        while let Some((their_name, _)) = theirs.peek() {
            let is_before = match (places.get(their_name), places.get(&name)) {
                (Some(their_place), Some(our_place)) => their_place < our_place,
                (None, _) | (_, None) => false,
            };
            if !is_before {
                break;
            }
            arranged.extend(theirs.next().map(|(_, element)| element));
        }
        arranged.push(element);
    }
    arranged.extend(theirs.map(|(_, element)| element));
    arranged
}

/// Whether it only says which element is to go.
pub(super) fn is_deletion(element: &Value) -> bool {
    element.get(DIRECTIVE).is_some_and(|directive| directive == "delete")
}

/// Refuses a patch whose list has elements that its `$setElementOrder` does not name, or names in
/// another order.
pub(super) fn check_against(
    change: &[Value],
    wanted: &[Value],
    merge_key: Option<&str>,
) -> Result<(), Status> {
    if wanted.is_empty() || change.is_empty() {
        return Ok(());
    }
    let orders = Orders { patch: wanted, server: &[], merge_key };
    let is_directive = |element: &Value| merge_key.is_some() && element.get(DIRECTIVE).is_some();
    // Deletions need no place. Other directives need none either, but upstream looks for one after
    // the last element.
    let mut rest = change.iter().filter(|element| merge_key.is_none() || !is_deletion(element));
    let mut next = rest.next();
    for element in wanted {
        while next.is_some_and(is_directive) {
            next = rest.next();
        }
        let Some(expected) = next else { return Ok(()) };
        if orders.name(expected)? == orders.name(element)? {
            next = rest.next();
        }
    }
    if next.is_none() {
        return Ok(());
    }
    Err(rejected("the order in patch list doesn't match $setElementOrder list"))
}
