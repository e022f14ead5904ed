//! Schemas: what the objects of one kind look like, the same form for built-in kinds and custom ones.
//!
//! A schema is an arena of nodes, because built-in types refer to themselves (a JSON schema holds JSON
//! schemas). Those who walk an object beside its schema hold a [`Shape`]: a node and the arena it is in.

pub(crate) mod cel;
mod checks;
mod compiled;
pub(crate) mod custom;
pub(crate) mod formats;
mod rules;
mod walk;

pub(crate) use checks::Checks;
pub(crate) use walk::{apply_defaults, decode_check, prune, validate};

use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// So many patterns are compiled in a few milliseconds.
const FEW_PATTERNS: usize = 32;

/// All the nodes that the objects of one kind need, and the one that describes the object itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schema {
    /// The arena. A node's place in it never changes.
    pub nodes: Vec<Node>,
    /// The node of the whole object.
    pub root: NodeId,
}

/// A node's place in its arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct NodeId(pub u32);

/// What a value at one place of an object may be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// The name that OpenAPI knows a built-in type by, `io.k8s.api.core.v1.PodSpec`; none for what has no name.
    pub name: Option<Arc<str>>,
    /// What `kubectl explain` says about it.
    pub description: Option<Arc<str>>,
    /// Its form, with what is inside.
    pub form: Form,
    /// Whether `null` may stand here as a value. Elsewhere `null` means "not set".
    pub nullable: bool,
    /// What is here when nothing was given.
    pub default: Option<Value>,
    /// Bounds, patterns, enumerations, CEL rules: only where there are any.
    pub checks: Option<Box<Checks>>,
}

/// The form of a value.
#[derive(Debug, Clone, Default)]
pub(crate) enum Form {
    /// Anything, kept as it came. For server-side apply it is one leaf, unless it is an object or a list that
    /// nobody described: then upstream's deduced type applies (objects granular, lists atomic).
    #[default]
    Any,
    /// `true` or `false`.
    Boolean,
    /// A whole number; `format` is `int32`, `int64` or nothing.
    Integer,
    /// Any number.
    Number,
    /// A text; what kind of text is in `Checks::format` (custom) or the node's name (Quantity, Time).
    String,
    /// A whole number or a text: ports, percentages (`x-kubernetes-int-or-string`), and quantities.
    IntOrString,
    /// An object whose fields are known by name.
    Object(Object),
    /// An object whose keys are data: labels, annotations, `additionalProperties`.
    Map(Map),
    /// A list.
    List(List),
}

/// An object whose fields are known by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object {
    /// The fields by name.
    pub fields: BTreeMap<Arc<str>, Field>,
    /// The fields that must be there.
    pub required: Vec<Arc<str>>,
    /// Whether fields that are not described are kept (`x-kubernetes-preserve-unknown-fields`).
    pub keeps_unknown: bool,
    /// Whether it is a whole object of its own, with `apiVersion`, `kind` and `metadata`.
    pub is_embedded_resource: bool,
    /// Whether server-side apply treats it as one leaf (`x-kubernetes-map-type: atomic`).
    pub is_atomic: bool,
}

/// One field of an object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Field {
    /// What its value looks like.
    pub node: NodeId,
    /// How a strategic merge patch treats it. Custom kinds have none.
    pub patch: PatchStrategy,
}

/// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` of a built-in's field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PatchStrategy {
    /// Lists are merged instead of replaced.
    pub merge: bool,
    /// `$retainKeys` may name the keys that stay.
    pub retain_keys: bool,
    /// The field that tells the elements of a merged list apart; none for lists of scalars.
    pub merge_key: Option<Arc<str>>,
}

/// An object whose keys are data.
#[derive(Debug, Clone, Default)]
pub(crate) struct Map {
    /// What each value looks like.
    pub values: NodeId,
    /// Whether server-side apply treats it as one leaf.
    pub is_atomic: bool,
}

/// A list.
#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    /// What each element looks like.
    pub items: NodeId,
    /// How elements are distinguished.
    pub kind: ListKind,
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// One leaf: replaced as a whole.
    #[default]
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects, known by the values of these fields (`x-kubernetes-list-map-keys`).
    Keyed(Vec<Arc<str>>),
}

/// A node, and the arena that its children are in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'a> {
    schema: &'a Schema,
    node: &'a Node,
}

impl Schema {
    /// Takes a node into the arena.
    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).expect("no schema has 2^32 nodes"));
        self.nodes.push(node);
        id
    }

    /// The shape of the whole object. An empty schema is one node that takes anything.
    pub(crate) fn shape(&self) -> Shape<'_> {
        self.at(self.root)
    }

    /// Whether anything in it has a default.
    pub(crate) fn has_defaults(&self) -> bool {
        self.nodes.iter().any(|node| node.default.is_some())
    }

    /// Whether so many patterns must be compiled before an object can be checked that it takes a while.
    pub(crate) fn is_cold(&self) -> bool {
        let patterns = self.nodes.iter().filter_map(|node| node.checks.as_ref()?.pattern.as_ref());
        patterns.filter(|pattern| !pattern.is_compiled()).nth(FEW_PATTERNS).is_some()
    }

    /// The shape of one node.
    pub(crate) fn at(&self, id: NodeId) -> Shape<'_> {
        Shape { schema: self, node: &self.nodes[id.0 as usize] }
    }
}

impl Deref for Shape<'_> {
    type Target = Node;
    fn deref(&self) -> &Node {
        self.node
    }
}

impl<'a> Shape<'a> {
    /// The node, for as long as the schema lives.
    pub(crate) fn node(&self) -> &'a Node {
        self.node
    }

    /// The shape at another place of the same arena.
    pub(crate) fn at(&self, id: NodeId) -> Shape<'a> {
        self.schema.at(id)
    }

    /// The shape of a named field, or of a value in a map.
    pub(crate) fn field(&self, name: &str) -> Option<Shape<'a>> {
        match &self.node.form {
            Form::Object(object) => object.fields.get(name).map(|field| self.at(field.node)),
            Form::Map(map) => Some(self.at(map.values)),
            Form::Any
            | Form::Boolean
            | Form::Integer
            | Form::Number
            | Form::String
            | Form::IntOrString
            | Form::List(_) => None,
        }
    }

    /// The shape of a list's elements.
    pub(crate) fn items(&self) -> Option<Shape<'a>> {
        let Form::List(list) = &self.node.form else { return None };
        Some(self.at(list.items))
    }
}
