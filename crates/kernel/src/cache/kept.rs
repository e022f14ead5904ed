//! What a cache keeps of an object: its text, which takes a fifth of the room that the object takes
//! for its readers. Of ten thousand namespaces nearly all are at rest, and nobody reads them.

use crate::kind::Name;
use crate::object::Object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::{DynamicObject, TypeMeta};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How many objects of a kind are at hand: as many as are likely to be on the move at once.
const AT_HAND: usize = 64;
/// Readers of JSON stop at 128 levels; what is nested deeper than this is kept as it is.
const DEEPEST: usize = 100;

/// One object as it is kept.
#[derive(Debug)]
pub(super) enum Kept {
    /// Its text, to be read again when somebody looks at it.
    Text(Box<[u8]>),
    /// The object itself, because it might not come back from its text as it was.
    Whole(Object),
}

/// The parts of an object side by side: read apart they take half as long as the whole.
type Parts = (Option<TypeMeta>, ObjectMeta, Value);

impl Kept {
    pub(super) fn of(object: &Object) -> Kept {
        let DynamicObject { types, metadata, data } = &**object;
        if !comes_back(data, DEEPEST) {
            return Kept::Whole(Arc::clone(object));
        }
        match serde_json::to_vec(&(types, metadata, data)) {
            Ok(text) => Kept::Text(text.into_boxed_slice()),
            Err(_) => Kept::Whole(Arc::clone(object)),
        }
    }
}

fn read(text: &[u8]) -> Object {
    let parts: Parts = serde_json::from_slice(text).expect("it was written by us");
    let (types, metadata, data) = parts;
    Arc::new(DynamicObject { types, metadata, data })
}

/// Whether a value is read from its text as it was written. Fractions may lose their last digit, and
/// an object that seems to change when nobody changed it would be applied again and again.
fn comes_back(value: &Value, levels: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => !number.is_f64(),
        Value::Array(list) => levels > 0 && list.iter().all(|it| comes_back(it, levels - 1)),
        Value::Object(map) => levels > 0 && map.values().all(|it| comes_back(it, levels - 1)),
    }
}

type Slot = Mutex<Option<Object>>;

/// Objects that were read lately, ready to be read again. Each has one slot that it can be
/// in, so there are never more; and what is in a slot is what the cache has under that name.
#[derive(Debug, Default)]
pub(super) struct AtHand(OnceLock<Box<[Slot]>>);

impl AtHand {
    fn slot(&self, name: &Name) -> MutexGuard<'_, Option<Object>> {
        let slots = self.0.get_or_init(|| (0..AT_HAND).map(|_| Slot::default()).collect());
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let slot = &slots[hasher.finish() as usize % AT_HAND];
        slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object, which is at hand from now on.
    pub(super) fn look(&self, name: &Name, kept: &Kept) -> Object {
        let text = match kept {
            Kept::Whole(object) => return Arc::clone(object),
            Kept::Text(text) => text,
        };
        let mut slot = self.slot(name);
        match &*slot {
            Some(object) if is_named(object, name) => Arc::clone(object),
            _ => Arc::clone(slot.insert(read(text))),
        }
    }

    /// The object, without a place at hand: it is one of very many.
    pub(super) fn pass(&self, name: &Name, kept: &Kept) -> Object {
        let text = match kept {
            Kept::Whole(object) => return Arc::clone(object),
            Kept::Text(text) => text,
        };
        let at_hand = self.slot(name).clone();
        at_hand.filter(|object| is_named(object, name)).unwrap_or_else(|| read(text))
    }

    /// The object is new or another one than before, and is likely to be read.
    pub(super) fn put(&mut self, name: &Name, object: &Object) {
        *self.slot(name) = Some(Arc::clone(object));
    }

    /// What was known under a name is not so any more.
    pub(super) fn remove(&mut self, name: &Name) {
        if self.0.get().is_none() {
            return;
        }
        let mut slot = self.slot(name);
        if slot.as_ref().is_some_and(|object| is_named(object, name)) {
            *slot = None;
        }
    }
}

fn is_named(object: &DynamicObject, name: &Name) -> bool {
    object.metadata.name.as_deref().unwrap_or_default() == &*name.name
        && object.metadata.namespace.as_deref() == name.namespace.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(spec: Value) -> Object {
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "x", "namespace": "a", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"k": "v"},
            },
            "spec": spec,
        });
        Arc::new(serde_json::from_value(object).expect("a pod"))
    }

    #[test]
    fn an_object_comes_back_from_its_text_as_it_was() {
        let pod = object(json!({"a": [1, -2, u64::MAX, null, true, {"b": "\u{fc}\n"}]}));
        let Kept::Text(text) = Kept::of(&pod) else { panic!("it has no fractions") };
        assert_eq!(read(&text), pod);
    }

    #[test]
    fn what_might_come_back_as_something_else_is_kept_as_it_is() {
        let deep = (0..DEEPEST).fold(json!(1), |inner, _| json!([inner]));
        for spec in [json!({"share": 0.1}), deep] {
            let pod = object(spec);
            assert!(matches!(Kept::of(&pod), Kept::Whole(kept) if kept == pod));
        }
    }
}
