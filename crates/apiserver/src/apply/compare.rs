//! Which fields differ between two objects of one kind.

use super::element::{Element, is_same};
use super::fieldset::Set;
use super::typed::{ListType, Type, Walk, element_of};
use crate::schema::{ListKind, Shape};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::sync::LazyLock;

/// The fields of `metadata` that nobody ever owns: the server's own.
pub(super) const SERVERS_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// How one object differs from another.
#[derive(Debug, Default)]
pub(super) struct Difference<'a> {
    /// What only the new one has.
    pub(super) added: Set<'a>,
    /// What only the old one has.
    pub(super) removed: Set<'a>,
    /// What both have with other values.
    pub(super) modified: Set<'a>,
}

/// How one value differs from another, itself.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    added: bool,
    removed: bool,
    modified: bool,
}

/// An object with nothing in it: what an object was before it was created.
pub(super) fn nothing() -> &'static Value {
    static NOTHING: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));
    &NOTHING
}

impl<'a> Difference<'a> {
    /// Compares two whole objects. What nobody ever owns is not read.
    pub(super) fn between(shape: Shape<'a>, old: &'a Value, new: &'a Value) -> Self {
        let root = Type::Resource(shape);
        // Only built-in types have names.
        let walker = Walker { is_built_in: shape.name.is_some() };
        let mut difference = Difference::default();
        let (old_fields, new_fields) = (old.as_object(), new.as_object());
        let sides = Sides { old: old_fields, new: new_fields };
        walker.maps(root, sides, &["apiVersion", "kind", "metadata"], &mut difference);
        let metadata = |fields: Option<&'a Map<String, Value>>| {
            fields.and_then(|fields| fields.get("metadata")).and_then(Value::as_object)
        };
        if let Some((of, _)) = root.field("metadata") {
            let mut below = Difference::default();
            let sides = Sides { old: metadata(old_fields), new: metadata(new_fields) };
            walker.maps(of, sides, &SERVERS_METADATA, &mut below);
            difference.take(Element::Field("metadata"), Mark::default(), below);
            difference.settle();
        }
        difference
    }

    /// Forgets what an endpoint does not own.
    pub(super) fn forget(&mut self, paths: &[&[&str]]) {
        for path in paths {
            self.added.remove_path(path);
            self.removed.remove_path(path);
            self.modified.remove_path(path);
        }
    }

    fn take(&mut self, element: Element<'a>, mark: Mark, below: Difference<'a>) {
        if mark.added || !below.added.is_empty() {
            self.added.push(element.clone(), mark.added, below.added);
        }
        if mark.removed || !below.removed.is_empty() {
            self.removed.push(element.clone(), mark.removed, below.removed);
        }
        if mark.modified || !below.modified.is_empty() {
            self.modified.push(element, mark.modified, below.modified);
        }
    }

    fn settle(&mut self) {
        self.added.settle();
        self.removed.settle();
        self.modified.settle();
    }
}

/// The old and the new value, where they are there.
#[derive(Clone, Copy)]
struct Sides<T> {
    old: Option<T>,
    new: Option<T>,
}

/// An element of a list, and what tells it apart.
type Named<'a> = (Element<'a>, &'a Value);

/// What is under one name in the old and in the new list; several where it is there more than once.
#[derive(Clone, Copy)]
struct SameName<'s, 'a> {
    old: &'s [Named<'a>],
    new: &'s [Named<'a>],
}

struct Walker {
    /// Built-in types hold some objects by value: these are never absent while their parent is
    /// there.
    is_built_in: bool,
}

impl Walker {
    /// Compares two values, at least one of which is there.
    fn values<'a>(
        &self,
        of: Type<'a>,
        sides: Sides<&'a Value>,
        below: &mut Difference<'a>,
    ) -> Mark {
        let (walk, other) = match (sides.old, sides.new) {
            (Some(old), Some(new)) => (of.walk(new), Some(of.walk(old))),
            (Some(old), None) => (of.walk(old), None),
            (None, Some(new)) => (of.walk(new), None),
            (None, None) => return Mark::default(),
        };
        let mut mark = self.walked(walk, of, sides, below);
        // Without a schema a value may change its sort; then what was goes and what is comes.
        if let Some(other) = other.filter(|other| !is_alike(*other, walk)) {
            let before = self.walked(other, of, sides, below);
            mark.modified |= before.modified;
        }
        mark
    }

    fn walked<'a>(
        &self,
        walk: Walk<'a>,
        of: Type<'a>,
        sides: Sides<&'a Value>,
        below: &mut Difference<'a>,
    ) -> Mark {
        let Sides { old, new } = sides;
        let (is_leaf, is_list) = match walk {
            Walk::Scalar(_) => (true, false),
            Walk::List(ListType { kind, .. }) => {
                let is_empty = is_empty_list(old) && is_empty_list(new);
                (*kind == ListKind::Atomic || is_empty, true)
            }
            Walk::Map { is_atomic } => (is_atomic || is_empty_map(old) && is_empty_map(new), false),
        };
        if is_leaf {
            return leaf(old, new);
        }
        if let (Walk::List(list), true) = (walk, is_list) {
            self.lists(list, sides, below);
        } else {
            let sides =
                Sides { old: old.and_then(Value::as_object), new: new.and_then(Value::as_object) };
            self.maps(of, sides, &[], below);
        }
        Mark { added: old.is_none(), removed: new.is_none(), modified: false }
    }

    fn maps<'a>(
        &self,
        of: Type<'a>,
        sides: Sides<&'a Map<String, Value>>,
        skipped: &[&str],
        out: &mut Difference<'a>,
    ) {
        let Sides { old, new } = sides;
        let mut old_fields = old.into_iter().flatten().peekable();
        let mut new_fields = new.into_iter().flatten().peekable();
        loop {
            let order = match (old_fields.peek(), new_fields.peek()) {
                (Some((left, _)), Some((right, _))) => left.cmp(right),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return,
            };
            let from_old = if order.is_le() { old_fields.next() } else { None };
            let from_new = if order.is_ge() { new_fields.next() } else { None };
            let Some((name, _)) = from_old.or(from_new) else { return };
            if skipped.contains(&name.as_str()) {
                continue;
            }
            let mut left = from_old.map(|(_, value)| value);
            let mut right = from_new.map(|(_, value)| value);
            if self.is_built_in && left.is_some() != right.is_some() && of.is_always_there(name) {
                left = left.or_else(|| old.map(|_| nothing()));
                right = right.or_else(|| new.map(|_| nothing()));
            }
            let child = of.field(name).map_or(Type::Deduced, |(child, _)| child);
            let mut below = Difference::default();
            let mark = self.values(child, Sides { old: left, new: right }, &mut below);
            out.take(Element::Field(name), mark, below);
        }
    }

    fn lists<'a>(&self, of: ListType<'a>, sides: Sides<&'a Value>, out: &mut Difference<'a>) {
        if let (Some(old), Some(new)) = (sides.old, sides.new)
            && is_same(old, new)
        {
            return;
        }
        let old = sorted_elements(of, sides.old);
        let new = sorted_elements(of, sides.new);
        let mut old = old.chunk_by(|left, right| left.0 == right.0).peekable();
        let mut new = new.chunk_by(|left, right| left.0 == right.0).peekable();
        loop {
            let order = match (old.peek(), new.peek()) {
                (Some(left), Some(right)) => left[0].0.cmp(&right[0].0),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let left = if order.is_le() { old.next().unwrap_or_default() } else { &[] };
            let right = if order.is_ge() { new.next().unwrap_or_default() } else { &[] };
            let Some((element, _)) = left.first().or(right.first()) else { break };
            let mut below = Difference::default();
            let same = SameName { old: left, new: right };
            let mark = self.same_elements(of.items, same, &mut below);
            out.take(element.clone(), mark, below);
        }
    }

    /// Compares what is under one name in two lists. Where it occurs several times, it is one
    /// leaf.
    fn same_elements<'a>(
        &self,
        items: Type<'a>,
        same: SameName<'_, 'a>,
        below: &mut Difference<'a>,
    ) -> Mark {
        let SameName { old, new } = same;
        let first = |elements: &[Named<'a>]| elements.first().map(|one| one.1);
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => self.values(items, Sides { old: first(old), new: first(new) }, below),
            (2.., 2..) => {
                let is_equal = old.len() == new.len()
                    && old.iter().zip(new).all(|(left, right)| is_same(left.1, right.1));
                Mark { modified: !is_equal, ..Mark::default() }
            }
            (2.., _) => {
                let mark = self.values(items, Sides { old: None, new: first(new) }, below);
                Mark { removed: true, ..mark }
            }
            (_, _) => {
                let mark = self.values(items, Sides { old: first(old), new: None }, below);
                Mark { added: true, ..mark }
            }
        }
    }
}

fn sorted_elements<'a>(of: ListType<'a>, list: Option<&'a Value>) -> Vec<Named<'a>> {
    let values = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut elements: Vec<Named<'a>> =
        values.iter().filter_map(|value| Some((element_of(of, value).ok()?, value))).collect();
    elements.sort_by(|left, right| left.0.cmp(&right.0));
    elements
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> Mark {
    match (old, new) {
        (None, _) => Mark { added: true, ..Mark::default() },
        (_, None) => Mark { removed: true, ..Mark::default() },
        (Some(old), Some(new)) => Mark { modified: !is_same(old, new), ..Mark::default() },
    }
}

fn is_alike(left: Walk<'_>, right: Walk<'_>) -> bool {
    std::mem::discriminant(&left) == std::mem::discriminant(&right)
}

fn is_empty_list(value: Option<&Value>) -> bool {
    value.and_then(Value::as_array).is_none_or(Vec::is_empty)
}

fn is_empty_map(value: Option<&Value>) -> bool {
    value.and_then(Value::as_object).is_none_or(Map::is_empty)
}
