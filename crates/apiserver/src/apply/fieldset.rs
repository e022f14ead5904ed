//! Sets of fields, as trees, and their form in `managedFields` (`fieldsV1`).

use super::element::{Element, Unreadable};
use super::typed::Type;
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// A set of fields. A field may be a member without its parent, and a parent without its fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set<'a> {
    /// In order of their elements. Each is a member itself or has members below.
    nodes: Vec<Node<'a>>,
}

/// One field and what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node<'a> {
    element: Element<'a>,
    is_member: bool,
    children: Set<'a>,
}

impl<'a> Set<'a> {
    /// Whether there are no members.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// An empty set with room for so many fields.
    pub(super) fn with_room(count: usize) -> Self {
        Set { nodes: Vec::with_capacity(count) }
    }

    /// Takes a field in, with what is below it, in any order; [`Set::settle`] must follow.
    pub(super) fn push(&mut self, element: Element<'a>, is_member: bool, children: Set<'a>) {
        if is_member || !children.is_empty() {
            self.nodes.push(Node { element, is_member, children });
        }
    }

    /// Puts the fields in order after a row of [`Set::push`]. Each element was pushed once.
    pub(super) fn settle(&mut self) {
        if !self.nodes.is_sorted_by(|left, right| left.element <= right.element) {
            self.nodes.sort_by(|left, right| left.element.cmp(&right.element));
        }
    }

    fn find(&self, element: &Element<'_>) -> Option<&Node<'a>> {
        let place = self.nodes.binary_search_by(|node| node.element.order(element)).ok()?;
        Some(&self.nodes[place])
    }

    /// Whether the element itself is a member.
    pub(super) fn has(&self, element: &Element<'_>) -> bool {
        self.find(element).is_some_and(|node| node.is_member)
    }

    /// What is below an element.
    pub(super) fn below(&self, element: &Element<'_>) -> Option<&Set<'a>> {
        self.find(element).map(|node| &node.children).filter(|children| !children.is_empty())
    }

    /// Adds all members of another set.
    pub(super) fn unite(&mut self, other: Set<'a>) {
        if self.nodes.is_empty() {
            self.nodes = other.nodes;
            return;
        }
        for node in other.nodes {
            match self.nodes.binary_search_by(|own| own.element.order(&node.element)) {
                Ok(place) => {
                    let own = &mut self.nodes[place];
                    own.is_member |= node.is_member;
                    own.children.unite(node.children);
                }
                Err(place) => self.nodes.insert(place, node),
            }
        }
    }

    /// Removes the members of another set. What is below a removed member stays.
    /// Says whether anything was removed.
    pub(super) fn subtract(&mut self, other: &Set<'_>) -> bool {
        let mut is_changed = false;
        self.pair_with(other, |node, theirs| {
            is_changed |= node.is_member && theirs.is_member;
            node.is_member &= !theirs.is_member;
            is_changed |= node.children.subtract(&theirs.children);
        });
        is_changed
    }

    /// Whether all members are in another set too.
    pub(super) fn is_within(&self, other: &Set<'_>) -> bool {
        self.nodes.iter().all(|node| {
            other.find(&node.element).is_some_and(|theirs| {
                (theirs.is_member || !node.is_member) && node.children.is_within(&theirs.children)
            })
        })
    }

    /// Calls for each element that both have, then drops nodes that became empty.
    fn pair_with<'b>(&mut self, other: &Set<'b>, mut change: impl FnMut(&mut Node<'a>, &Node<'b>)) {
        if self.nodes.is_empty() || other.nodes.is_empty() {
            return;
        }
        let mut theirs = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while let Some(next) = theirs.peek() {
                match next.element.order(&node.element) {
                    Ordering::Less => {
                        theirs.next();
                    }
                    Ordering::Equal => {
                        change(node, next);
                        break;
                    }
                    Ordering::Greater => break,
                }
            }
            node.is_member || !node.children.is_empty()
        });
    }

    /// The members that are in both sets.
    pub(super) fn intersect(&self, other: &Set<'_>) -> Set<'a> {
        let mut both = Set::default();
        for node in &self.nodes {
            let Some(theirs) = other.find(&node.element) else { continue };
            let is_member = node.is_member && theirs.is_member;
            let children = node.children.intersect(&theirs.children);
            both.push(node.element.clone(), is_member, children);
        }
        both
    }

    /// Removes a path of field names and all that is below it.
    pub(super) fn remove_path(&mut self, path: &[&str]) {
        let [first, rest @ ..] = path else { return };
        let place = self.nodes.binary_search_by(|node| node.element.order(&Element::Field(first)));
        let Ok(place) = place else { return };
        let node = &mut self.nodes[place];
        if rest.is_empty() {
            self.nodes.remove(place);
            return;
        }
        node.children.remove_path(rest);
        if !node.is_member && node.children.is_empty() {
            self.nodes.remove(place);
        }
    }

    /// Removes one member, not what is below it.
    pub(super) fn remove_member(&mut self, path: &[&str]) {
        let [first, rest @ ..] = path else { return };
        let place = self.nodes.binary_search_by(|node| node.element.order(&Element::Field(first)));
        let Ok(place) = place else { return };
        let node = &mut self.nodes[place];
        if rest.is_empty() {
            node.is_member = false;
        } else {
            node.children.remove_member(rest);
        }
        if !node.is_member && node.children.is_empty() {
            self.nodes.remove(place);
        }
    }

    /// Makes members of the named fields that have members below. A field set lists leaves and list
    /// elements only; for removing and keeping, the objects around them count too.
    pub(super) fn with_named_parents(mut self, of: Option<Type<'_>>) -> Self {
        for node in &mut self.nodes {
            if node.children.is_empty() {
                continue;
            }
            let child = match &node.element {
                Element::Field(name) => of.and_then(|of| of.field(name)),
                Element::Key(_) => of.and_then(Type::items).map(|items| (items, false)),
                Element::Value(_) | Element::Index(_) => None,
            };
            node.is_member |= child.is_some_and(|(_, is_named)| is_named);
            let children = std::mem::take(&mut node.children);
            node.children = children.with_named_parents(child.map(|(of, _)| of));
        }
        self
    }

    /// Follows a schema that changed since the set was written: what has become one leaf is owned
    /// as one. Says whether anything changed.
    pub(super) fn follow_schema(&mut self, of: Type<'_>) -> bool {
        let mut is_changed = false;
        for node in &mut self.nodes {
            if node.children.is_empty() {
                continue;
            }
            let child = match &node.element {
                Element::Field(name) => of.field(name).map(|(child, _)| child),
                Element::Key(_) | Element::Value(_) | Element::Index(_) => of.items(),
            };
            let Some(child) = child else { continue };
            if child.is_deduced() {
                continue;
            }
            if child.is_atomic() {
                node.is_member = true;
                node.children.nodes.clear();
                is_changed = true;
                continue;
            }
            is_changed |= node.children.follow_schema(child);
        }
        is_changed
    }

    /// The paths of all members, parents first.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.add_paths(&mut String::new(), &mut paths);
        paths
    }

    fn add_paths(&self, prefix: &mut String, paths: &mut Vec<String>) {
        for node in self.nodes.iter().filter(|node| node.is_member) {
            paths.push(format!("{prefix}{}", node.element));
        }
        for node in &self.nodes {
            let length = prefix.len();
            prefix.push_str(&node.element.to_string());
            node.children.add_paths(prefix, paths);
            prefix.truncate(length);
        }
    }

    /// Reads `fieldsV1`.
    pub(super) fn decode(fields: &'a Value) -> Result<Self, Unreadable> {
        Ok(Self::decode_node(fields)?.1)
    }

    /// Whether the field itself is a member, and what is below it.
    fn decode_node(fields: &'a Value) -> Result<(bool, Self), Unreadable> {
        let fields = match fields {
            Value::Object(fields) => fields,
            Value::Null => return Ok((true, Set::default())),
            _ => return Err(Unreadable),
        };
        let mut set = Set::with_room(fields.len());
        let mut is_member = false;
        for (key, below) in fields {
            if key == "." {
                is_member = true;
                continue;
            }
            let Some(element) = Element::parse(key)? else { continue };
            let (is_child, children) = Self::decode_node(below)?;
            set.push(element, is_child, children);
        }
        set.settle();
        // Two keys may spell one element: `80` and `80.0`.
        set.nodes.dedup_by(|later, earlier| {
            let is_same = later.element == earlier.element;
            if is_same {
                earlier.is_member |= later.is_member;
                earlier.children.unite(std::mem::take(&mut later.children));
            }
            is_same
        });
        Ok((is_member || set.is_empty(), set))
    }

    /// Writes `fieldsV1`.
    pub(super) fn encode(&self) -> Value {
        Value::Object(self.encode_below(false))
    }

    fn encode_below(&self, is_member: bool) -> Map<String, Value> {
        let mut fields = Map::new();
        if is_member && !self.nodes.is_empty() {
            fields.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for node in &self.nodes {
            let below = node.children.encode_below(node.is_member);
            fields.insert(node.element.key(), Value::Object(below));
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(fields: &Value) -> Set<'_> {
        Set::decode(fields).expect("it is well formed")
    }

    #[test]
    fn parents_and_their_fields_are_separate_members() {
        let both = json!({"f:a": {".": {}, "f:b": {}}});
        let child = json!({"f:a": {"f:b": {}}});
        let parent = json!({"f:a": {}});
        let mut left = set(&both);
        left.subtract(&set(&child));
        assert_eq!(left.encode(), parent);
        let mut left = set(&both);
        left.subtract(&set(&parent));
        assert_eq!(left.encode(), child);
        assert!(set(&child).is_within(&set(&both)) && !set(&both).is_within(&set(&child)));
        assert_eq!(set(&both).intersect(&set(&child)).encode(), child);
        let mut united = set(&parent);
        united.unite(set(&child));
        assert_eq!(united.encode(), both);
    }

    #[test]
    fn broken_sets_are_refused() {
        for fields in [json!(1), json!("x"), json!([]), json!({"f:a": 3}), json!({"a": {}})] {
            assert!(Set::decode(&fields).is_err(), "{fields}");
        }
    }

    #[test]
    fn unknown_sorts_of_elements_are_dropped() {
        assert_eq!(set(&json!({"x:later": {"f:a": {}}, "f:b": {}})).encode(), json!({"f:b": {}}));
    }

    #[test]
    fn paths_are_listed_parents_first() {
        let fields = json!({"f:b": {".": {}, "f:c": {}}, "f:a": {"v:\"x\"": {}}});
        assert_eq!(set(&fields).paths(), [".b", ".a[=\"x\"]", ".b.c"]);
    }

    #[test]
    fn a_path_is_removed_with_what_is_below() {
        let fields = json!({"f:status": {"f:a": {}}, "f:spec": {"f:a": {".": {}, "f:b": {}}}});
        let mut left = set(&fields);
        left.remove_path(&["status"]);
        left.remove_member(&["spec", "a"]);
        assert_eq!(left.encode(), json!({"f:spec": {"f:a": {"f:b": {}}}}));
        left.remove_path(&["spec", "a"]);
        assert!(left.is_empty());
    }
}
