//! Which fields an object names, and whether they are of the types that the schema gives them.

use super::element::Element;
use super::fieldset::Set;
use super::typed::{ListType, Scalar, Type, Walk, element_of};
use crate::schema::ListKind;
use crate::status::{FieldError, Problem};
use serde_json::Value;
use std::fmt;

/// Where in the object we are; it is written out only when something is wrong.
#[derive(Clone, Copy)]
enum Trail<'t> {
    Root,
    Step(&'t Trail<'t>, &'t Element<'t>),
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trail::Root => Ok(()),
            Trail::Step(Trail::Root, Element::Field(name)) => formatter.write_str(name),
            Trail::Step(parent, element) => write!(formatter, "{parent}{element}"),
        }
    }
}

/// The fields that a configuration names. It may not name a list's element twice.
pub(super) fn owned_fields<'a>(of: Type<'a>, value: &'a Value) -> Result<Set<'a>, Vec<FieldError>> {
    let mut walker = Walker { errors: Vec::new(), allows_duplicates: false };
    let (_, set) = walker.visit(of, value, Trail::Root);
    if walker.errors.is_empty() { Ok(set) } else { Err(walker.errors) }
}

/// The fields of an object that is stored already: what is wrong with it is overlooked.
pub(super) fn all_fields<'a>(of: Type<'a>, value: &'a Value) -> Set<'a> {
    let mut walker = Walker { errors: Vec::new(), allows_duplicates: true };
    walker.visit(of, value, Trail::Root).1
}

struct Walker {
    errors: Vec<FieldError>,
    allows_duplicates: bool,
}

impl Walker {
    fn refuse(&mut self, problem: Problem, trail: Trail<'_>, detail: impl Into<String>) {
        self.errors.push(FieldError::new(problem, trail, detail));
    }

    /// Whether the value itself is a member, and the members below it.
    fn visit<'a>(&mut self, of: Type<'a>, value: &'a Value, trail: Trail<'_>) -> (bool, Set<'a>) {
        match of.walk(value) {
            Walk::Scalar(scalar) => {
                if let Some(expected) = mismatch(scalar, value) {
                    let got = name_of(value);
                    let detail = format!("expected {expected}, got {got}");
                    self.refuse(Problem::TypeInvalid, trail, detail);
                }
                (true, Set::default())
            }
            Walk::List(of_list) => {
                let set = match value {
                    Value::Array(list) => self.visit_list(of_list, list, trail),
                    Value::Null => Set::default(),
                    other => {
                        let detail = format!("expected list, got {}", name_of(other));
                        self.refuse(Problem::TypeInvalid, trail, detail);
                        Set::default()
                    }
                };
                let is_atomic = *of_list.kind == ListKind::Atomic;
                (is_atomic, if is_atomic { Set::default() } else { set })
            }
            Walk::Map { is_atomic } => {
                let set = match value {
                    Value::Object(fields) => self.visit_map(of, fields, trail),
                    Value::Null => Set::default(),
                    other => {
                        let detail = format!("expected map, got {}", name_of(other));
                        self.refuse(Problem::TypeInvalid, trail, detail);
                        Set::default()
                    }
                };
                (is_atomic, if is_atomic { Set::default() } else { set })
            }
        }
    }

    fn visit_map<'a>(
        &mut self,
        of: Type<'a>,
        fields: &'a serde_json::Map<String, Value>,
        trail: Trail<'_>,
    ) -> Set<'a> {
        let mut set = Set::with_room(fields.len());
        for (name, value) in fields {
            let element = Element::Field(name);
            let step = Trail::Step(&trail, &element);
            let (child, is_named) = match of.field(name) {
                Some(found) => found,
                None if self.allows_duplicates => (Type::Deduced, false),
                None => {
                    self.refuse(Problem::Invalid, step, "field not declared in schema");
                    continue;
                }
            };
            let (is_leaf, below) = self.visit(child, value, step);
            let is_empty = match value {
                Value::Null => true,
                Value::Object(fields) => fields.is_empty(),
                _ => false,
            };
            set.push(element, is_leaf || is_empty || !is_named, below);
        }
        set
    }

    fn visit_list<'a>(&mut self, of: ListType<'a>, list: &'a [Value], trail: Trail<'_>) -> Set<'a> {
        if *of.kind == ListKind::Atomic {
            for (place, value) in list.iter().enumerate() {
                let element = Element::Index(i64::try_from(place).unwrap_or(i64::MAX));
                self.visit(of.items, value, Trail::Step(&trail, &element));
            }
            return Set::default();
        }
        let mut elements = Vec::with_capacity(list.len());
        for (place, value) in list.iter().enumerate() {
            match element_of(of, value) {
                Ok(element) => elements.push((element, value)),
                Err(why) => {
                    self.refuse(Problem::Invalid, trail, format!("element {place}: {why}"));
                }
            }
        }
        elements.sort_by(|left, right| left.0.cmp(&right.0));
        let mut set = Set::with_room(elements.len());
        for same in elements.chunk_by(|left, right| left.0 == right.0) {
            let (element, value) = &same[0];
            if same.len() > 1 {
                let detail = format!("duplicate entries for key {element}");
                if !self.allows_duplicates {
                    self.refuse(Problem::Duplicate, trail, detail);
                }
                set.push(element.clone(), true, Set::default());
                continue;
            }
            let (_, below) = self.visit(of.items, value, Trail::Step(&trail, element));
            set.push(element.clone(), true, below);
        }
        set
    }
}

/// What was expected, if the value is not that.
fn mismatch(scalar: Scalar, value: &Value) -> Option<&'static str> {
    let (fits, expected) = match scalar {
        Scalar::Boolean => (value.is_boolean(), "boolean"),
        Scalar::Number => (value.is_number(), "numeric (int or float)"),
        Scalar::Text => (value.is_string(), "string"),
        Scalar::Any => (!value.is_array() && !value.is_object(), "any scalar"),
    };
    (!fits && !value.is_null()).then_some(expected)
}

/// The value's sort; never the value, which may be a secret.
fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}
