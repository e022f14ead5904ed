//! Builds the nodes of a schema that is known to be structural.

use super::keywords::{
    Json, count, flag, number, repeats_in_all_of, repeats_in_any_of, schema_at, schemas,
    schemas_by_name, text, texts,
};
use super::{graft, structural};
use crate::schema::checks::{Checks, Constraint, Limit, Pattern};
use crate::schema::{Field, Form, List, ListKind, Map, Node, NodeId, Object, Schema};
use crate::status::{FieldError, Path};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A schema, and what is still to be checked in it.
pub(super) struct Built<'j> {
    pub(super) schema: Schema,
    /// The nodes that have defaults.
    pub(super) defaults: Vec<DefaultPlace>,
    /// The nodes that have rules.
    pub(super) rules: Vec<RulePlace<'j>>,
}

pub(super) struct DefaultPlace {
    pub(super) node: NodeId,
    pub(super) path: String,
    pub(super) is_in_meta: bool,
}

pub(super) struct RulePlace<'j> {
    pub(super) node: NodeId,
    pub(super) path: String,
    pub(super) rules: &'j [Value],
    pub(super) is_whole_object: bool,
    /// The first place above where old and new values cannot be matched, so `oldSelf` makes no
    /// sense below it.
    pub(super) uncorrelatable: Option<String>,
}

/// A CRD may have so many different patterns.
const MAX_PATTERNS: usize = 1_000;
/// All the patterns of a CRD together may take about so much when compiled.
const MAX_PATTERNS_BYTES: usize = 32 << 20;
const MIN_PATTERN_BYTES: usize = 64 << 10;

struct Builder<'j, 'm> {
    built: Built<'j>,
    metadata: Option<&'m Schema>,
    patterns: HashMap<String, Pattern>,
    errors: Vec<FieldError>,
}

/// Where a node is in the schema of its kind.
#[derive(Clone, Copy, Default)]
struct NodePosition<'p> {
    is_root: bool,
    is_in_meta: bool,
    uncorrelatable: Option<&'p str>,
}

/// Which words of a schema only repeat what its form says already.
#[derive(Clone, Copy)]
struct Skipped {
    any_of: bool,
    /// The first of `allOf`.
    all_of: bool,
}

/// Builds the nodes. Fails only where a limit is passed.
pub(super) fn build<'j>(
    json: &'j Json,
    metadata: Option<&Schema>,
    path: &Path<'_>,
) -> Result<Built<'j>, Vec<FieldError>> {
    let mut builder = Builder {
        built: Built { schema: Schema::default(), defaults: Vec::new(), rules: Vec::new() },
        metadata,
        patterns: HashMap::new(),
        errors: Vec::new(),
    };
    let place = NodePosition { is_root: true, ..NodePosition::default() };
    let root = builder.node(json, place, path);
    builder.built.schema.root = root;
    if builder.errors.is_empty() { Ok(builder.built) } else { Err(builder.errors) }
}

impl<'j> Builder<'j, '_> {
    fn node(&mut self, json: &'j Json, place: NodePosition<'_>, path: &Path<'_>) -> NodeId {
        let form = self.form(json, place, path);
        let mut checks = self.checks(json, path);
        let type_name = text(json, "type");
        let is_int_or_string = flag(json, "x-kubernetes-int-or-string");
        let is_any = matches!(form, Form::Any);
        checks.accepts_any_type = type_name.is_empty() && !is_int_or_string && !is_any;
        let default = json.get("default").filter(|value| !value.is_null()).cloned();
        let is_whole_object = place.is_root || flag(json, "x-kubernetes-embedded-resource");
        let rules = json.get("x-kubernetes-validations").and_then(Value::as_array);
        let has_default = default.is_some();
        let description = text(json, "description");
        let id = self.built.schema.add(Node {
            name: None,
            description: (!description.is_empty()).then(|| description.into()),
            form,
            nullable: flag(json, "nullable"),
            default,
            checks: has_any(&checks).then(|| Box::new(checks)),
        });
        if has_default {
            let is_in_meta = place.is_in_meta;
            self.built.defaults.push(DefaultPlace { node: id, path: path.to_string(), is_in_meta });
        }
        if let Some(rules) = rules.filter(|rules| !rules.is_empty()) {
            self.built.rules.push(RulePlace {
                node: id,
                path: path.to_string(),
                rules,
                is_whole_object,
                uncorrelatable: place.uncorrelatable.map(str::to_owned),
            });
        }
        id
    }

    fn form(&mut self, json: &'j Json, place: NodePosition<'_>, path: &Path<'_>) -> Form {
        if flag(json, "x-kubernetes-int-or-string") {
            return Form::IntOrString;
        }
        let keeps_unknown = flag(json, "x-kubernetes-preserve-unknown-fields");
        let has_fields = schemas_by_name(json, "properties").next().is_some();
        match text(json, "type") {
            "boolean" => Form::Boolean,
            "integer" => Form::Integer,
            "number" => Form::Number,
            "string" => Form::String,
            "array" => self.list(json, place, path),
            "object" => match json.get("additionalProperties") {
                Some(Value::Object(_) | Value::Bool(true)) if !has_fields => {
                    self.map(json, place, path)
                }
                _ => self.object(json, place, path),
            },
            _ if keeps_unknown && !has_fields => Form::Any,
            _ => self.object(json, place, path),
        }
    }

    fn list(&mut self, json: &'j Json, place: NodePosition<'_>, path: &Path<'_>) -> Form {
        let kind = match text(json, "x-kubernetes-list-type") {
            "set" => ListKind::Set,
            "map" => {
                let keys = texts(json, "x-kubernetes-list-map-keys");
                ListKind::Keyed(keys.into_iter().map(Arc::from).collect())
            }
            _ => ListKind::Atomic,
        };
        let own = path.to_string();
        let is_lost = !matches!(kind, ListKind::Keyed(_));
        let uncorrelatable = place.uncorrelatable.or(is_lost.then_some(own.as_str()));
        let place = NodePosition { is_root: false, uncorrelatable, ..place };
        let items = match schema_at(json, "items") {
            Some(items) => self.node(items, place, &path.field("items")),
            None => self.built.schema.add(Node::default()),
        };
        if flag(json, "x-kubernetes-preserve-unknown-fields") {
            self.keep_unknown(items);
        }
        Form::List(List { items, kind })
    }

    /// A list that keeps unknown fields says so for its elements.
    fn keep_unknown(&mut self, id: NodeId) {
        match &mut self.built.schema.nodes[id.0 as usize].form {
            Form::Object(object) => object.keeps_unknown = true,
            Form::List(list) => {
                let items = list.items;
                self.keep_unknown(items);
            }
            Form::Any
            | Form::Boolean
            | Form::Integer
            | Form::Number
            | Form::String
            | Form::IntOrString
            | Form::Map(_) => {}
        }
    }

    fn map(&mut self, json: &'j Json, place: NodePosition<'_>, path: &Path<'_>) -> Form {
        let is_atomic = text(json, "x-kubernetes-map-type") == "atomic";
        let values = match schema_at(json, "additionalProperties") {
            Some(inner) => {
                let own = path.to_string();
                let uncorrelatable = place.uncorrelatable.or(is_atomic.then_some(own.as_str()));
                let place = NodePosition { is_root: false, uncorrelatable, ..place };
                self.node(inner, place, &path.field("additionalProperties"))
            }
            // `additionalProperties: true` keeps the keys, but nothing is known of what is in the
            // values.
            None => self.built.schema.add(Node {
                form: Form::Object(Object::default()),
                checks: Some(Box::new(Checks { accepts_any_type: true, ..Checks::default() })),
                ..Node::default()
            }),
        };
        Form::Map(Map { values, is_atomic })
    }

    fn object(&mut self, json: &'j Json, place: NodePosition<'_>, path: &Path<'_>) -> Form {
        let is_embedded = flag(json, "x-kubernetes-embedded-resource");
        let is_whole = place.is_root || is_embedded;
        let is_atomic = text(json, "x-kubernetes-map-type") == "atomic";
        let own = path.to_string();
        let uncorrelatable = place.uncorrelatable.or(is_atomic.then_some(own.as_str()));
        let mut fields = BTreeMap::new();
        for (name, inner) in schemas_by_name(json, "properties") {
            let is_meta = is_whole && matches!(name, "apiVersion" | "kind" | "metadata");
            let is_in_meta = is_meta || (place.is_in_meta && !is_embedded);
            let place = NodePosition { is_root: false, is_in_meta, uncorrelatable };
            let node = self.node(inner, place, &path.field("properties").key(name));
            let node =
                if is_whole && name == "metadata" { self.metadata(Some(node)) } else { node };
            fields.insert(Arc::from(name), Field { node, ..Field::default() });
        }
        if is_whole {
            for name in ["apiVersion", "kind", "metadata"] {
                if fields.contains_key(name) {
                    continue;
                }
                let node = match name {
                    "metadata" => self.metadata(None),
                    _ => self.built.schema.add(Node { form: Form::String, ..Node::default() }),
                };
                fields.insert(Arc::from(name), Field { node, ..Field::default() });
            }
        }
        Form::Object(Object {
            fields,
            required: texts(json, "required").into_iter().map(Arc::from).collect(),
            keeps_unknown: flag(json, "x-kubernetes-preserve-unknown-fields"),
            is_embedded_resource: is_embedded,
            is_atomic,
        })
    }

    /// ObjectMeta, with the bounds on names that the CRD gives.
    fn metadata(&mut self, own: Option<NodeId>) -> NodeId {
        let schema = &mut self.built.schema;
        let Some(metadata) = self.metadata else {
            let Some(own) = own else { return schema.add(Node::default()) };
            if let Form::Object(object) = &mut schema.nodes[own.0 as usize].form {
                object.keeps_unknown = true;
            }
            return own;
        };
        let id = graft(schema, metadata);
        let Some(own) = own else { return id };
        let Form::Object(bounds) = schema.nodes[own.0 as usize].form.clone() else { return id };
        if let Form::Object(object) = &mut schema.nodes[id.0 as usize].form {
            for (name, field) in bounds.fields {
                if matches!(&*name, "name" | "generateName") {
                    object.fields.insert(name, field);
                }
            }
        }
        id
    }

    fn checks(&mut self, json: &Json, path: &Path<'_>) -> Checks {
        let skipped = Skipped { any_of: repeats_in_any_of(json), all_of: repeats_in_all_of(json) };
        self.checks_without(json, skipped, path)
    }

    fn checks_without(&mut self, json: &Json, skipped: Skipped, path: &Path<'_>) -> Checks {
        let limit = |word: &str, exclusive: &str| {
            let is_exclusive = flag(json, exclusive);
            number(json, word).map(|value| Limit { value, is_exclusive })
        };
        let format = text(json, "format");
        let enumeration = json.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        let any_of =
            if skipped.any_of { Vec::new() } else { self.constraints(json, "anyOf", path) };
        Checks {
            format: (!format.is_empty()).then(|| format.into()),
            enumeration,
            minimum: limit("minimum", "exclusiveMinimum"),
            maximum: limit("maximum", "exclusiveMaximum"),
            multiple_of: number(json, "multipleOf").filter(|factor| *factor > 0.0),
            min_length: count(json, "minLength"),
            max_length: count(json, "maxLength"),
            pattern: self.pattern(json, path),
            min_items: count(json, "minItems"),
            max_items: count(json, "maxItems"),
            min_properties: count(json, "minProperties"),
            max_properties: count(json, "maxProperties"),
            all_of: self.all_of(json, skipped.all_of, path),
            any_of,
            one_of: self.constraints(json, "oneOf", path),
            not: schema_at(json, "not")
                .map(|inner| Box::new(self.constraint(inner, &path.field("not")))),
            rules: Vec::new(),
            accepts_any_type: false,
        }
    }

    fn constraints(&mut self, json: &Json, word: &str, path: &Path<'_>) -> Vec<Constraint> {
        let path = path.field(word);
        let with_index = schemas(json, word).enumerate();
        with_index.map(|(index, inner)| self.constraint(inner, &path.index(index))).collect()
    }

    fn all_of(&mut self, json: &Json, first_repeats: bool, path: &Path<'_>) -> Vec<Constraint> {
        let path = path.field("allOf");
        let with_index = schemas(json, "allOf").enumerate();
        with_index
            .map(|(index, inner)| {
                let repeats = first_repeats && index == 0;
                self.constraint_without(inner, repeats, &path.index(index))
            })
            .collect()
    }

    fn constraint(&mut self, json: &Json, path: &Path<'_>) -> Constraint {
        self.constraint_without(json, false, path)
    }

    fn constraint_without(
        &mut self,
        json: &Json,
        skips_any_of: bool,
        path: &Path<'_>,
    ) -> Constraint {
        let mut fields = BTreeMap::new();
        for (name, inner) in schemas_by_name(json, "properties") {
            let inner = self.constraint(inner, &path.field("properties").key(name));
            fields.insert(Arc::from(name), inner);
        }
        Constraint {
            checks: self.checks_without(
                json,
                Skipped { any_of: skips_any_of, all_of: false },
                path,
            ),
            required: texts(json, "required").into_iter().map(Arc::from).collect(),
            fields,
            items: schema_at(json, "items")
                .map(|inner| Box::new(self.constraint(inner, &path.field("items")))),
        }
    }

    /// Equal patterns are compiled once, and the more there are, the smaller each must be.
    fn pattern(&mut self, json: &Json, path: &Path<'_>) -> Option<Pattern> {
        let source = text(json, "pattern");
        if source.is_empty() {
            return None;
        }
        if let Some(known) = self.patterns.get(source) {
            return Some(known.clone());
        }
        let path = path.field("pattern");
        if self.patterns.len() >= MAX_PATTERNS {
            let detail = format!("must have at most {MAX_PATTERNS} different patterns in a schema");
            self.errors.push(FieldError::forbidden(path, detail));
            return None;
        }
        let share = MAX_PATTERNS_BYTES / (self.patterns.len() + 1);
        let bytes = share.clamp(MIN_PATTERN_BYTES, structural::MAX_PATTERN_BYTES);
        match Pattern::new(source, bytes) {
            Ok(pattern) => {
                self.patterns.insert(source.to_owned(), pattern.clone());
                Some(pattern)
            }
            Err(error) => {
                let detail = format!("must be a valid regular expression, but isn't: {error}");
                self.errors.push(FieldError::invalid(path, &Value::from(source), detail));
                None
            }
        }
    }
}

/// Whether anything is asked at all: most nodes have no checks, and shall take no room for them.
fn has_any(checks: &Checks) -> bool {
    let Checks {
        format,
        enumeration,
        minimum,
        maximum,
        multiple_of,
        min_length,
        max_length,
        pattern,
        min_items,
        max_items,
        min_properties,
        max_properties,
        all_of,
        any_of,
        one_of,
        not,
        rules,
        accepts_any_type,
    } = checks;
    let has_lists = [all_of, any_of, one_of].iter().any(|list| !list.is_empty());
    let counts = [min_length, max_length, min_items, max_items, min_properties, max_properties];
    format.is_some()
        || !enumeration.is_empty()
        || minimum.is_some()
        || maximum.is_some()
        || multiple_of.is_some()
        || counts.iter().any(|count| count.is_some())
        || pattern.is_some()
        || has_lists
        || not.is_some()
        || !rules.is_empty()
        || *accepts_any_type
}
