//! Makes the schema of a kind from its table: the nodes that its objects can reach, each once.

use super::table::{Merge, Scalar, Tables, TypeField, TypeId, TypeShape};
use crate::schema::{Checks, Field, Form, List, ListKind, Map, Node, NodeId, Object, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// The schema of one type.
pub(super) fn schema(tables: &Tables, root: TypeId) -> Schema {
    let mut builder = Builder { tables, schema: Schema::default(), made: HashMap::new() };
    let root = builder.named(root);
    builder.schema.root = root;
    builder.schema.nodes.shrink_to_fit();
    builder.schema
}

struct Builder<'a> {
    tables: &'a Tables,
    schema: Schema,
    made: HashMap<Made, NodeId>,
}

/// What needs one node only, however often it is referred to.
#[derive(PartialEq, Eq, Hash)]
enum Made {
    Named(TypeId),
    Scalar(Scalar),
}

impl Builder<'_> {
    fn named(&mut self, id: TypeId) -> NodeId {
        if let Some(node) = self.made.get(&Made::Named(id)) {
            return *node;
        }
        let declared = self.tables.get(id);
        // The place is taken before the fields are read, because a type may hold itself.
        let node = self.schema.add(Node { name: Some(declared.name.clone()), ..Node::default() });
        self.made.insert(Made::Named(id), node);
        let mut object = Object { is_atomic: declared.is_atomic, ..Object::default() };
        if declared.is_kind {
            for name in ["apiVersion", "kind"] {
                let text = self.scalar(Scalar::String);
                object.fields.insert(name.into(), Field { node: text, ..Field::default() });
            }
        }
        for field in &declared.fields {
            let node = self.field(field);
            object.fields.insert(field.name.clone(), Field { node, patch: field.patch.clone() });
            if field.is_required {
                object.required.push(field.name.clone());
            }
        }
        self.schema.nodes[node.0 as usize].form = Form::Object(object);
        node
    }

    /// A field has a node of its own only if something is said about it that its type does not say.
    fn field(&mut self, field: &TypeField) -> NodeId {
        let mut node = match &field.shape {
            TypeShape::List(items) => {
                let list = List { items: self.shape(items), kind: list_kind(field) };
                Node { form: Form::List(list), ..Node::default() }
            }
            TypeShape::Map(values) => {
                let is_atomic = field.merge == Merge::Atomic;
                let map = Map { values: self.shape(values), is_atomic };
                Node { form: Form::Map(map), ..Node::default() }
            }
            TypeShape::Scalar(scalar) if field.default.is_some() => scalar_node(*scalar),
            TypeShape::Named(id) if field.merge != Merge::Unsaid => {
                let named = self.named(*id);
                let mut node = self.schema.nodes[named.0 as usize].clone();
                if let Form::Object(object) = &mut node.form {
                    object.is_atomic = field.merge == Merge::Atomic;
                }
                node
            }
            shape @ (TypeShape::Scalar(_) | TypeShape::Named(_) | TypeShape::WrappedList(_)) => {
                return self.shape(shape);
            }
        };
        node.default = field.default.clone();
        self.schema.add(node)
    }

    fn shape(&mut self, shape: &TypeShape) -> NodeId {
        match shape {
            TypeShape::Scalar(scalar) => self.scalar(*scalar),
            TypeShape::Named(id) => self.named(*id),
            TypeShape::List(items) | TypeShape::WrappedList(items) => {
                let list = List { items: self.shape(items), kind: ListKind::Atomic };
                self.schema.add(Node { form: Form::List(list), ..Node::default() })
            }
            TypeShape::Map(values) => {
                let map = Map { values: self.shape(values), is_atomic: false };
                self.schema.add(Node { form: Form::Map(map), ..Node::default() })
            }
        }
    }

    fn scalar(&mut self, scalar: Scalar) -> NodeId {
        if let Some(node) = self.made.get(&Made::Scalar(scalar)) {
            return *node;
        }
        let node = self.schema.add(scalar_node(scalar));
        self.made.insert(Made::Scalar(scalar), node);
        node
    }
}

/// Upstream takes a list that a strategic merge patch merges for one that apply merges, too.
fn list_kind(field: &TypeField) -> ListKind {
    match &field.merge {
        Merge::Atomic => ListKind::Atomic,
        Merge::Set => ListKind::Set,
        Merge::Keyed(keys) => ListKind::Keyed(keys.clone()),
        Merge::Unsaid if field.patch.merge => match &field.patch.merge_key {
            Some(key) => ListKind::Keyed(vec![key.clone()]),
            None => ListKind::Set,
        },
        Merge::Unsaid | Merge::Granular => ListKind::Atomic,
    }
}

fn scalar_node(scalar: Scalar) -> Node {
    let form = match scalar {
        Scalar::String | Scalar::Bytes | Scalar::Time | Scalar::MicroTime => Form::String,
        Scalar::Bool => Form::Boolean,
        Scalar::Int32 | Scalar::Int64 => Form::Integer,
        Scalar::Double => Form::Number,
        Scalar::Quantity | Scalar::IntOrString => Form::IntOrString,
        Scalar::Raw
        | Scalar::Fields
        | Scalar::Json
        | Scalar::PropsOrArray
        | Scalar::PropsOrBool
        | Scalar::PropsOrStrings => Form::Any,
    };
    let checks = scalar
        .format()
        .map(|format| Box::new(Checks { format: Some(format.into()), ..Checks::default() }));
    Node { name: scalar.openapi_name().map(Arc::from), form, checks, ..Node::default() }
}
