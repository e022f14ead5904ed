//! Reads the tables of built-in kinds. Their form is explained in the module above.

use crate::schema::PatchStrategy;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// All tables, with what they say about each other resolved.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) types: Vec<Type>,
    pub(crate) groups: Vec<Group>,
    by_name: HashMap<Arc<str>, TypeId>,
}

/// A type's place in [`Tables::types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TypeId(pub(crate) u32);

/// A group in one version.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    /// What OpenAPI calls its package: `io.k8s.api.apps.v1`.
    pub(crate) package: &'static str,
    pub(crate) resources: Vec<ResourceLine>,
}

/// A resource as its table has it.
#[derive(Debug)]
pub(crate) struct ResourceLine {
    pub(crate) plural: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) is_namespaced: bool,
    pub(crate) verbs: Vec<&'static str>,
    pub(crate) short_names: Vec<&'static str>,
    pub(crate) categories: Vec<&'static str>,
    pub(crate) storage_version_hash: &'static str,
    pub(crate) subresources: Vec<super::Subresource>,
}

/// A named type.
#[derive(Debug)]
pub(crate) struct Type {
    /// What OpenAPI calls it: `io.k8s.api.apps.v1.Deployment`.
    pub(crate) name: Arc<str>,
    /// Its place in [`Tables::groups`].
    pub(crate) group: usize,
    /// Whether it is a whole object, with `apiVersion` and `kind`.
    pub(crate) is_kind: bool,
    pub(crate) is_atomic: bool,
    pub(crate) fields: Vec<TypeField>,
}

/// A field of a named type.
#[derive(Debug)]
pub(crate) struct TypeField {
    pub(crate) name: Arc<str>,
    /// Where protobuf has it: more than one number if JSON inlines what protobuf nests, none if
    /// protobuf does not know the type.
    pub(crate) numbers: Vec<u32>,
    pub(crate) shape: TypeShape,
    pub(crate) is_required: bool,
    /// Whether "not set" and "zero" are two things to upstream.
    pub(crate) is_pointer: bool,
    /// Whether upstream's JSON leaves the empty value out.
    pub(crate) omits_empty: bool,
    /// Whether it does so for a struct, too.
    pub(crate) omits_zero: bool,
    pub(crate) merge: Merge,
    pub(crate) patch: PatchStrategy,
    /// Whether a strategic merge patch replaces the struct. There is one such field, a budget's
    /// selector, and [`PatchStrategy`] has no word for it.
    pub(crate) is_replaced: bool,
    pub(crate) default: Option<Value>,
}

/// How server-side apply merges a list or a map.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Merge {
    /// Nothing is said: lists are replaced, maps merged.
    #[default]
    Unsaid,
    Atomic,
    /// A map or an object is merged although its type says that it is replaced.
    Granular,
    Set,
    Keyed(Vec<Arc<str>>),
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TypeShape {
    Scalar(Scalar),
    Named(TypeId),
    List(Box<TypeShape>),
    Map(Box<TypeShape>),
    /// A list that protobuf puts into a message of its own.
    WrappedList(Box<TypeShape>),
}

/// The types without fields that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scalar {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// `RawExtension`: any object.
    Raw,
    /// `FieldsV1`: a set of fields.
    Fields,
    /// Any JSON value.
    Json,
    /// A JSON schema or a list of them.
    PropsOrArray,
    /// A JSON schema or a boolean.
    PropsOrBool,
    /// A JSON schema or a list of texts.
    PropsOrStrings,
}

const ALL_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

impl Tables {
    /// Reads tables, each with the name by which the others refer to it.
    pub(crate) fn parse(texts: &[(&'static str, &'static str)]) -> Result<Tables, String> {
        let mut tables = Tables::default();
        let mut short_names = HashMap::new();
        for (group, (stem, text)) in texts.iter().enumerate() {
            tables.declare(text, group)?;
            for line in text.lines().filter_map(|line| line.strip_prefix("type ")) {
                let name = line.split(' ').next().unwrap_or_default();
                let id = TypeId(u32::try_from(short_names.len()).map_err(|e| e.to_string())?);
                short_names.insert((*stem, name), id);
            }
        }
        for (stem, text) in texts {
            tables.fill(stem, text, &short_names).map_err(|error| format!("{stem}: {error}"))?;
        }
        Ok(tables)
    }

    /// One type by the name that OpenAPI knows.
    pub(crate) fn find(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// One type by its place.
    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// Takes in a table's group and resources, and the names of its types.
    fn declare(&mut self, text: &'static str, place: usize) -> Result<(), String> {
        let mut group: Option<Group> = None;
        for line in text.lines() {
            let words: Vec<&'static str> = line.split_whitespace().collect();
            match (words.as_slice(), group.as_mut()) {
                (["group", name, version, package], None) => {
                    let name = if *name == "-" { "" } else { name };
                    group = Some(Group { group: name, version, package, resources: Vec::new() });
                }
                (["resource", rest @ ..], Some(group)) => {
                    group.resources.push(ResourceLine::parse(rest)?);
                }
                (["sub", name, verbs, served], Some(group)) => {
                    let last = group.resources.last_mut().ok_or("a subresource of nothing")?;
                    last.subresources.push(subresource(name, verbs, served)?);
                }
                (["type", name, flags @ ..], Some(group)) => {
                    let name: Arc<str> = format!("{}.{name}", group.package).into();
                    let id = TypeId(u32::try_from(self.types.len()).map_err(|e| e.to_string())?);
                    self.by_name.insert(name.clone(), id);
                    self.types.push(Type {
                        name,
                        group: place,
                        is_kind: flags.contains(&"kind"),
                        is_atomic: flags.contains(&"atomic"),
                        fields: Vec::new(),
                    });
                }
                _ => {}
            }
        }
        self.groups.push(group.ok_or("a table says which group it is about")?);
        Ok(())
    }

    /// Takes in the fields, now that all types have their places.
    fn fill(
        &mut self,
        stem: &'static str,
        text: &'static str,
        names: &HashMap<(&str, &str), TypeId>,
    ) -> Result<(), String> {
        let mut current: Option<TypeId> = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("type ") {
                let name = rest.split(' ').next().unwrap_or_default();
                current = names.get(&(stem, name)).copied();
                continue;
            }
            let Some(rest) = line.strip_prefix("  ") else { continue };
            if rest.starts_with("sub ") {
                continue;
            }
            let id = current.ok_or_else(|| format!("a field of nothing: {line}"))?;
            let field = TypeField::parse(rest, &Names { stem, names })
                .map_err(|error| format!("{error} in: {line}"))?;
            self.types[id.0 as usize].fields.push(field);
        }
        Ok(())
    }
}

fn verbs(text: &'static str) -> Vec<&'static str> {
    if text == "all" { ALL_VERBS.to_vec() } else { text.split(',').collect() }
}

fn subresource(
    name: &'static str,
    verb_list: &'static str,
    served: &'static str,
) -> Result<super::Subresource, String> {
    let mut parts = served.split('/');
    let (Some(group), Some(version), Some(kind)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(format!("{served} is not group/version/kind"));
    };
    Ok(super::Subresource { name, verbs: verbs(verb_list), group, version, kind })
}

impl ResourceLine {
    fn parse(words: &[&'static str]) -> Result<ResourceLine, String> {
        let [plural, singular, kind, scope, verb_list, rest @ ..] = words else {
            return Err(format!("a resource line is too short: {words:?}"));
        };
        let mut line = ResourceLine {
            plural,
            singular,
            kind,
            is_namespaced: *scope == "namespaced",
            verbs: verbs(verb_list),
            short_names: Vec::new(),
            categories: Vec::new(),
            storage_version_hash: "",
            subresources: Vec::new(),
        };
        for word in rest {
            match word.split_once('=') {
                Some(("short", names)) => line.short_names = names.split(',').collect(),
                Some(("categories", names)) => line.categories = names.split(',').collect(),
                Some(("hash", hash)) => line.storage_version_hash = hash,
                _ => return Err(format!("what is {word}?")),
            }
        }
        Ok(line)
    }
}

/// How types are referred to in one table.
struct Names<'a> {
    stem: &'static str,
    names: &'a HashMap<(&'a str, &'a str), TypeId>,
}

impl TypeField {
    fn parse(line: &'static str, names: &Names<'_>) -> Result<TypeField, String> {
        let (line, default) = match line.split_once(" default=") {
            Some((line, text)) => {
                (line, Some(serde_json::from_str(text).map_err(|e| e.to_string())?))
            }
            None => (line, None),
        };
        let mut words = line.split(' ');
        let (Some(numbers), Some(name), Some(shape)) = (words.next(), words.next(), words.next())
        else {
            return Err("a field has numbers, a name and a type".to_owned());
        };
        let is_required = name.ends_with('!');
        let mut field = TypeField {
            name: name.trim_end_matches('!').into(),
            numbers: parse_numbers(numbers)?,
            shape: TypeShape::parse(shape.trim_end_matches('?'), names)?,
            is_required,
            is_pointer: shape.ends_with('?'),
            omits_empty: !is_required,
            omits_zero: false,
            merge: Merge::Unsaid,
            patch: PatchStrategy::default(),
            is_replaced: false,
            default,
        };
        for word in words {
            field.attribute(word)?;
        }
        Ok(field)
    }

    fn attribute(&mut self, word: &str) -> Result<(), String> {
        match word.split_once('=').unwrap_or((word, "")) {
            ("omitted", _) => self.omits_empty = true,
            ("written", _) => self.omits_empty = false,
            ("omitzero", _) => self.omits_zero = true,
            ("atomic", _) => self.merge = Merge::Atomic,
            ("granular", _) => self.merge = Merge::Granular,
            ("set", _) => self.merge = Merge::Set,
            ("keys", keys) => self.merge = Merge::Keyed(keys.split(',').map(Arc::from).collect()),
            ("mergekey", key) => self.patch.merge_key = Some(key.into()),
            ("patch", strategies) => {
                for strategy in strategies.split(',') {
                    match strategy {
                        "merge" => self.patch.merge = true,
                        "retainKeys" => self.patch.retain_keys = true,
                        "replace" => self.is_replaced = true,
                        other => return Err(format!("what is the patch strategy {other}?")),
                    }
                }
            }
            _ => return Err(format!("what is {word}?")),
        }
        Ok(())
    }
}

fn parse_numbers(text: &str) -> Result<Vec<u32>, String> {
    if text == "-" {
        return Ok(Vec::new());
    }
    text.split('.').map(|number| number.parse().map_err(|_| format!("{text}?"))).collect()
}

impl TypeShape {
    fn parse(text: &str, names: &Names<'_>) -> Result<TypeShape, String> {
        let inside = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
        match text.as_bytes().first() {
            Some(b'[') => return Ok(TypeShape::List(Box::new(TypeShape::parse(inside, names)?))),
            Some(b'{') => return Ok(TypeShape::Map(Box::new(TypeShape::parse(inside, names)?))),
            Some(b'<') => {
                return Ok(TypeShape::WrappedList(Box::new(TypeShape::parse(inside, names)?)));
            }
            _ => {}
        }
        if let Some(scalar) = Scalar::parse(text) {
            return Ok(TypeShape::Scalar(scalar));
        }
        let key = text.split_once('.').unwrap_or((names.stem, text));
        let id = names.names.get(&key).ok_or_else(|| format!("no type {text}"))?;
        Ok(TypeShape::Named(*id))
    }
}

impl Scalar {
    /// Every one of them.
    pub(crate) const ALL: [Scalar; 16] = [
        Scalar::String,
        Scalar::Bool,
        Scalar::Int32,
        Scalar::Int64,
        Scalar::Double,
        Scalar::Bytes,
        Scalar::Time,
        Scalar::MicroTime,
        Scalar::Quantity,
        Scalar::IntOrString,
        Scalar::Raw,
        Scalar::Fields,
        Scalar::Json,
        Scalar::PropsOrArray,
        Scalar::PropsOrBool,
        Scalar::PropsOrStrings,
    ];

    fn parse(word: &str) -> Option<Scalar> {
        Some(match word {
            "string" => Scalar::String,
            "bool" => Scalar::Bool,
            "int32" => Scalar::Int32,
            "int64" => Scalar::Int64,
            "double" => Scalar::Double,
            "bytes" => Scalar::Bytes,
            "time" => Scalar::Time,
            "microtime" => Scalar::MicroTime,
            "quantity" => Scalar::Quantity,
            "intorstring" => Scalar::IntOrString,
            "raw" => Scalar::Raw,
            "fields" => Scalar::Fields,
            "json" => Scalar::Json,
            "props-or-array" => Scalar::PropsOrArray,
            "props-or-bool" => Scalar::PropsOrBool,
            "props-or-strings" => Scalar::PropsOrStrings,
            _ => return None,
        })
    }

    /// What OpenAPI calls it, if it has a name there.
    pub(crate) fn openapi_name(self) -> Option<&'static str> {
        Some(match self {
            Scalar::Time => "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
            Scalar::MicroTime => "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
            Scalar::Fields => "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
            Scalar::Quantity => "io.k8s.apimachinery.pkg.api.resource.Quantity",
            Scalar::IntOrString => "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            Scalar::Raw => "io.k8s.apimachinery.pkg.runtime.RawExtension",
            Scalar::Json => {
                concat!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1", ".JSON")
            }
            Scalar::PropsOrArray => concat!(
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
                ".JSONSchemaPropsOrArray"
            ),
            Scalar::PropsOrBool => concat!(
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
                ".JSONSchemaPropsOrBool"
            ),
            Scalar::PropsOrStrings => concat!(
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
                ".JSONSchemaPropsOrStringArray"
            ),
            Scalar::String
            | Scalar::Bool
            | Scalar::Int32
            | Scalar::Int64
            | Scalar::Double
            | Scalar::Bytes => return None,
        })
    }

    /// What OpenAPI calls its format.
    pub(crate) fn format(self) -> Option<&'static str> {
        match self {
            Scalar::Int32 => Some("int32"),
            Scalar::Int64 => Some("int64"),
            Scalar::Double => Some("double"),
            Scalar::Bytes => Some("byte"),
            Scalar::Time | Scalar::MicroTime => Some("date-time"),
            Scalar::String
            | Scalar::Bool
            | Scalar::Quantity
            | Scalar::IntOrString
            | Scalar::Raw
            | Scalar::Fields
            | Scalar::Json
            | Scalar::PropsOrArray
            | Scalar::PropsOrBool
            | Scalar::PropsOrStrings => None,
        }
    }
}
