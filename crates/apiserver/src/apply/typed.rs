//! What a value is to server-side apply: a leaf, a list whose elements have names, or a map of
//! fields.

use super::element::Element;
use crate::schema::{Field, Form, List, ListKind, Map, Node, NodeId, Object, Schema, Shape};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// The type of a value at one place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type<'a> {
    /// A whole object with `apiVersion`, `kind` and `metadata`, which custom schemas leave out.
    Resource(Shape<'a>),
    /// What the schema says.
    Shape(Shape<'a>),
    /// Nobody described it: objects are maps of fields, lists and scalars are leaves.
    Deduced,
    /// Whatever it is, it is one leaf.
    Leaf,
}

/// How a value is walked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Walk<'a> {
    /// One value.
    Scalar(Scalar),
    /// A list.
    List(ListType<'a>),
    /// An object or a map.
    Map { is_atomic: bool },
}

/// The type of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListType<'a> {
    /// What tells its elements apart.
    pub(super) kind: &'a ListKind,
    /// The type of its elements.
    pub(super) items: Type<'a>,
}

/// The sorts of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    /// `true` or `false`.
    Boolean,
    /// Any number.
    Number,
    /// A text.
    Text,
    /// Any of them.
    Any,
}

/// The name of upstream's raw objects: kept as they came, one leaf.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

impl<'a> Type<'a> {
    /// The type of a node.
    fn of(shape: Shape<'a>) -> Self {
        if shape.name.as_deref() == Some(RAW_EXTENSION) {
            return Type::Leaf;
        }
        match &shape.node().form {
            Form::Any => Type::Deduced,
            Form::Object(object) if object.is_embedded_resource => Type::Resource(shape),
            Form::Object(_)
            | Form::Map(_)
            | Form::List(_)
            | Form::Boolean
            | Form::Integer
            | Form::Number
            | Form::String
            | Form::IntOrString => Type::Shape(shape),
        }
    }

    /// How a value of this type is walked. A described type decides alone; else the value does.
    pub(super) fn walk(self, value: &Value) -> Walk<'a> {
        let shape = match self {
            Type::Resource(shape) | Type::Shape(shape) => shape,
            Type::Deduced => return undescribed(value, false),
            Type::Leaf => return undescribed(value, true),
        };
        match &shape.node().form {
            Form::Any => undescribed(value, false),
            Form::Boolean => Walk::Scalar(Scalar::Boolean),
            Form::Integer | Form::Number => Walk::Scalar(Scalar::Number),
            Form::String => Walk::Scalar(Scalar::Text),
            Form::IntOrString => Walk::Scalar(Scalar::Any),
            Form::Object(object) => Walk::Map { is_atomic: object.is_atomic },
            Form::Map(map) => Walk::Map { is_atomic: map.is_atomic },
            Form::List(list) => {
                Walk::List(ListType { kind: &list.kind, items: Type::of(shape.at(list.items)) })
            }
        }
    }

    /// The type of a field or of a map's value, and whether the schema knows it by its name.
    /// None: nothing of that name may be here.
    pub(super) fn field(self, name: &str) -> Option<(Type<'a>, bool)> {
        let (shape, is_resource) = match self {
            Type::Resource(shape) => (shape, true),
            Type::Shape(shape) => (shape, false),
            Type::Deduced => return Some((Type::Deduced, false)),
            Type::Leaf => return Some((Type::Leaf, false)),
        };
        if is_resource && name == "metadata" {
            let metadata = match shape.field(name).filter(describes_fields) {
                Some(described) => described,
                None => object_meta(),
            };
            return Some((Type::Shape(metadata), true));
        }
        match &shape.node().form {
            Form::Object(object) => {
                if let Some(field) = object.fields.get(name) {
                    return Some((Type::of(shape.at(field.node)), true));
                }
                if is_resource && (name == "apiVersion" || name == "kind") {
                    return Some((Type::Deduced, true));
                }
                // An object of which nothing is described is free in form, as OpenAPI has it.
                let is_free = object.keeps_unknown || object.fields.is_empty();
                is_free.then_some((Type::Deduced, false))
            }
            Form::Map(map) => Some((Type::of(shape.at(map.values)), false)),
            Form::Any => Some((Type::Deduced, false)),
            Form::Boolean
            | Form::Integer
            | Form::Number
            | Form::String
            | Form::IntOrString
            | Form::List(_) => None,
        }
    }

    /// The type of a list's elements.
    pub(super) fn items(self) -> Option<Type<'a>> {
        match self {
            Type::Resource(shape) | Type::Shape(shape) => shape.items().map(Type::of),
            Type::Deduced | Type::Leaf => None,
        }
    }

    /// Whether it is one leaf whatever is in it.
    pub(super) fn is_atomic(self) -> bool {
        match self {
            Type::Resource(shape) | Type::Shape(shape) => match &shape.node().form {
                Form::Object(object) => object.is_atomic,
                Form::Map(map) => map.is_atomic,
                Form::List(list) => list.kind == ListKind::Atomic,
                Form::Any
                | Form::Boolean
                | Form::Integer
                | Form::Number
                | Form::String
                | Form::IntOrString => false,
            },
            Type::Deduced => false,
            Type::Leaf => true,
        }
    }

    /// Whether it is a map of which nothing is described.
    pub(super) fn is_deduced(self) -> bool {
        match self {
            Type::Resource(_) | Type::Leaf => false,
            Type::Deduced => true,
            Type::Shape(shape) => match &shape.node().form {
                Form::Object(object) => object.fields.is_empty(),
                Form::Map(map) => matches!(shape.at(map.values).form, Form::Any),
                Form::Any
                | Form::Boolean
                | Form::Integer
                | Form::Number
                | Form::String
                | Form::IntOrString
                | Form::List(_) => false,
            },
        }
    }

    /// Whether a field of this name is there even when it is not written: built-in types hold some
    /// objects by value, and OpenAPI gives those the default `{}`.
    pub(super) fn is_always_there(self, name: &str) -> bool {
        let (Type::Resource(shape) | Type::Shape(shape)) = self else { return false };
        let Form::Object(object) = &shape.node().form else { return false };
        let Some(field) = object.fields.get(name) else { return false };
        let default = shape.at(field.node).node().default.as_ref();
        matches!(default, Some(Value::Object(empty)) if empty.is_empty())
    }

    /// The default of a field of a list's elements.
    fn default_of(self, name: &str) -> Option<&'a Value> {
        let (Type::Resource(shape) | Type::Shape(shape)) = self else { return None };
        let Form::Object(object) = &shape.node().form else { return None };
        shape.at(object.fields.get(name)?.node).node().default.as_ref()
    }
}

fn describes_fields(shape: &Shape<'_>) -> bool {
    matches!(&shape.form, Form::Object(object) if !object.fields.is_empty())
}

fn undescribed<'a>(value: &Value, is_leaf: bool) -> Walk<'a> {
    match value {
        Value::Array(_) => Walk::List(ListType { kind: &ListKind::Atomic, items: Type::Leaf }),
        // Null takes whatever form the other side has, and a map is tried first.
        Value::Object(_) | Value::Null => Walk::Map { is_atomic: is_leaf },
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Walk::Scalar(Scalar::Any),
    }
}

/// What tells an element of a list apart from the others, or why nothing does.
pub(super) fn element_of<'a>(list: ListType<'a>, value: &'a Value) -> Result<Element<'a>, String> {
    match list.kind {
        ListKind::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListKind::Set => match value {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null"
                    .to_owned())
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Ok(Element::Value(Cow::Borrowed(value)))
            }
        },
        ListKind::Keyed(names) => keyed_element_of(names, list.items, value),
    }
}

fn keyed_element_of<'a>(
    names: &'a [Arc<str>],
    items: Type<'a>,
    value: &'a Value,
) -> Result<Element<'a>, String> {
    let Value::Object(fields) = value else {
        let what = if value.is_null() { "a null element" } else { "non-map elements" };
        return Err(format!("associative list with keys may not have {what}"));
    };
    let mut keys = Vec::with_capacity(names.len());
    for name in names {
        // An element without a key that has no default is another element than one with it.
        if let Some(key) = fields.get(&**name).or_else(|| items.default_of(name)) {
            keys.push((Cow::Borrowed(&**name), Cow::Borrowed(key)));
        }
    }
    if keys.is_empty() && !names.is_empty() {
        let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] \
             (and doesn't have default values for any key fields)",
            names.join(" ")
        ));
    }
    if keys.len() > 1 {
        keys.sort_by(|left, right| left.0.cmp(&right.0));
    }
    Ok(Element::Key(keys))
}

/// The shape of `metadata`, for schemas that say nothing about it.
fn object_meta() -> Shape<'static> {
    static OBJECT_META: LazyLock<Schema> = LazyLock::new(build_object_meta);
    OBJECT_META.shape()
}

fn build_object_meta() -> Schema {
    let mut schema = Schema::default();
    let mut add = |form| schema.add(Node { form, ..Node::default() });
    let text = add(Form::String);
    let number = add(Form::Integer);
    let flag = add(Form::Boolean);
    let anything = add(Form::Any);
    let texts = add(Form::Map(Map { values: text, is_atomic: false }));
    let reference = add(object(
        [
            ("apiVersion", text),
            ("kind", text),
            ("name", text),
            ("uid", text),
            ("controller", flag),
            ("blockOwnerDeletion", flag),
        ],
        true,
    ));
    let references = add(list(reference, ListKind::Keyed(vec![Arc::from("uid")])));
    let finalizers = add(list(text, ListKind::Set));
    let managed_fields = add(list(anything, ListKind::Atomic));
    let root = add(object(
        [
            ("name", text),
            ("generateName", text),
            ("namespace", text),
            ("selfLink", text),
            ("uid", text),
            ("resourceVersion", text),
            ("generation", number),
            ("creationTimestamp", text),
            ("deletionTimestamp", text),
            ("deletionGracePeriodSeconds", number),
            ("labels", texts),
            ("annotations", texts),
            ("ownerReferences", references),
            ("finalizers", finalizers),
            ("managedFields", managed_fields),
        ],
        false,
    ));
    schema.root = root;
    schema
}

fn object<const COUNT: usize>(fields: [(&str, NodeId); COUNT], is_atomic: bool) -> Form {
    let fields = fields.map(|(name, node)| (Arc::from(name), Field { node, ..Field::default() }));
    Form::Object(Object { fields: fields.into_iter().collect(), is_atomic, ..Object::default() })
}

fn list(items: NodeId, kind: ListKind) -> Form {
    Form::List(List { items, kind })
}
