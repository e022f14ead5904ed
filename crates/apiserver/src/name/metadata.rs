//! The checks of an object's metadata that are the same for each kind.

use super::{NameRule, dns1123_label, label_value, qualified_name};
use crate::status::{FieldError, Path, Problem};
use serde_json::{Map, Value, json};

/// All the keys and values of an object's annotations together.
const ANNOTATIONS_LIMIT_BYTES: usize = 256 * 1024;

/// What is wrong with an object's metadata. Names are generated before this is asked. Managed
/// fields are left to those who keep them.
pub(crate) fn validate_metadata(
    object: &Value,
    is_namespaced: bool,
    rule: NameRule,
) -> Vec<FieldError> {
    let nothing = Map::new();
    let root = Path::Root;
    let path = root.field("metadata");
    let metadata = match object.get("metadata") {
        Some(Value::Object(metadata)) => metadata,
        None | Some(Value::Null) => &nothing,
        Some(_) => return vec![wrong_type(path, "object")],
    };
    let mut check = Check { errors: Vec::new(), path: &path };
    check.name(metadata, rule);
    check.all_but_the_name(metadata, is_namespaced);
    check.errors
}

/// What is wrong with the metadata, at a path, of an object within another one. It may have no name, as a template has
/// none, and is in a namespace if it says so.
pub(crate) fn validate_embedded_metadata(
    metadata: &Map<String, Value>,
    path: &Path<'_>,
) -> Vec<FieldError> {
    let mut check = Check { errors: Vec::new(), path };
    let rule = NameRule::PathSegment;
    match metadata.get("name") {
        None | Some(Value::Null) => check.prefix(metadata, rule),
        Some(name) if name == "" => check.prefix(metadata, rule),
        Some(_) => check.name(metadata, rule),
    }
    let is_namespaced =
        metadata.get("namespace").is_some_and(|given| !given.is_null() && given != "");
    check.all_but_the_name(metadata, is_namespaced);
    check.errors
}

struct Check<'a> {
    errors: Vec<FieldError>,
    path: &'a Path<'a>,
}

impl Check<'_> {
    fn all_but_the_name(&mut self, metadata: &Map<String, Value>, is_namespaced: bool) {
        self.namespace(metadata, is_namespaced);
        self.generation(metadata);
        self.labels(metadata);
        self.annotations(metadata);
        self.owner_references(metadata);
        self.finalizers(metadata);
    }

    fn prefix(&mut self, metadata: &Map<String, Value>, rule: NameRule) {
        let prefix = self.text(metadata, "generateName");
        if !prefix.is_empty() {
            for text in rule.prefix_problems(prefix) {
                let field = self.path.field("generateName");
                self.errors.push(FieldError::invalid(field, &json!(prefix), text));
            }
        }
    }

    fn name(&mut self, metadata: &Map<String, Value>, rule: NameRule) {
        self.prefix(metadata, rule);
        let name = self.text(metadata, "name");
        let field = self.path.field("name");
        if name.is_empty() {
            self.errors.push(FieldError::required(field, "name or generateName is required"));
            return;
        }
        for text in rule.problems(name) {
            self.errors.push(FieldError::invalid(field, &json!(name), text));
        }
    }

    fn namespace(&mut self, metadata: &Map<String, Value>, is_namespaced: bool) {
        let namespace = self.text(metadata, "namespace");
        let field = self.path.field("namespace");
        match (is_namespaced, namespace.is_empty()) {
            (true, true) => self.errors.push(FieldError::required(field, "")),
            (true, false) => {
                for text in dns1123_label(namespace) {
                    self.errors.push(FieldError::invalid(field, &json!(namespace), text));
                }
            }
            (false, true) => {}
            (false, false) => {
                self.errors.push(FieldError::forbidden(field, "not allowed on this type"));
            }
        }
    }

    fn generation(&mut self, metadata: &Map<String, Value>) {
        let Some(generation) = metadata.get("generation") else { return };
        if generation.as_i64().is_some_and(|number| number < 0) {
            let field = self.path.field("generation");
            let detail = "must be greater than or equal to 0";
            self.errors.push(FieldError::invalid(field, generation, detail));
        }
    }

    fn labels(&mut self, metadata: &Map<String, Value>) {
        let field = self.path.field("labels");
        for (key, value) in self.texts(metadata, "labels") {
            for text in qualified_name(key) {
                self.errors.push(FieldError::invalid(field, &json!(key), text));
            }
            for text in label_value(value) {
                self.errors.push(FieldError::invalid(field, &json!(value), text));
            }
        }
    }

    fn annotations(&mut self, metadata: &Map<String, Value>) {
        let field = self.path.field("annotations");
        let mut bytes = 0;
        for (key, value) in self.texts(metadata, "annotations") {
            bytes += key.len() + value.len();
            for text in qualified_name(&key.to_lowercase()) {
                self.errors.push(FieldError::invalid(field, &json!(key), text));
            }
        }
        if bytes > ANNOTATIONS_LIMIT_BYTES {
            let detail = format!("may not be more than {ANNOTATIONS_LIMIT_BYTES} bytes");
            self.errors.push(FieldError::new(Problem::TooLong, field, detail));
        }
    }

    fn owner_references(&mut self, metadata: &Map<String, Value>) {
        let references = self.list(metadata, "ownerReferences");
        let list = self.path.field("ownerReferences");
        let mut controller: Option<String> = None;
        for (index, reference) in references.iter().enumerate() {
            let Value::Object(reference) = reference else {
                self.errors.push(wrong_type(list.index(index), "object"));
                continue;
            };
            let (kind, name) = self.owner_reference(reference);
            if reference.get("controller") != Some(&Value::Bool(true)) {
                continue;
            }
            let this = format!("{kind}/{name}");
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in \
                         references for {first} and {this}"
                    );
                    self.errors.push(FieldError::invalid(list, &json!(references), detail));
                }
            }
        }
    }

    /// One reference; its kind and name. Upstream does not say which of them was wrong, and neither
    /// do we.
    fn owner_reference<'v>(&mut self, reference: &'v Map<String, Value>) -> (&'v str, &'v str) {
        let text = |name| reference.get(name).and_then(Value::as_str).unwrap_or_default();
        let list = self.path.field("ownerReferences");
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (name, uid) = (text("name"), text("uid"));
        // `group/version` or `version`; with more slashes upstream understands neither.
        let version = match api_version.split_once('/') {
            None => api_version,
            Some((_, rest)) if rest.contains('/') => "",
            Some((_, version)) => version,
        };
        let fields = [
            (version, api_version, "apiVersion", "version must not be empty"),
            (kind, kind, "kind", "must not be empty"),
            (name, name, "name", "must not be empty"),
            (uid, uid, "uid", "must not be empty"),
        ];
        for (checked, shown, field, detail) in fields {
            if checked.is_empty() {
                self.errors.push(FieldError::invalid(list.field(field), &json!(shown), detail));
            }
        }
        if api_version == "v1" && kind == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            self.errors.push(FieldError::invalid(list, &json!(reference), detail));
        }
        (kind, name)
    }

    fn finalizers(&mut self, metadata: &Map<String, Value>) {
        let finalizers = self.list(metadata, "finalizers");
        let list = self.path.field("finalizers");
        for (index, finalizer) in finalizers.iter().enumerate() {
            let Value::String(finalizer) = finalizer else {
                self.errors.push(wrong_type(list.index(index), "string"));
                continue;
            };
            for text in qualified_name(finalizer) {
                self.errors.push(FieldError::invalid(list, &json!(finalizer), text));
            }
        }
        let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
        if has("orphan") && has("foregroundDeletion") {
            let detail = "finalizer orphan and foregroundDeletion cannot be both set";
            self.errors.push(FieldError::invalid(list, &json!(finalizers), detail));
        }
    }

    fn text<'v>(&mut self, metadata: &'v Map<String, Value>, name: &str) -> &'v str {
        match metadata.get(name) {
            None | Some(Value::Null) => "",
            Some(Value::String(text)) => text,
            Some(_) => {
                self.errors.push(wrong_type(self.path.field(name), "string"));
                ""
            }
        }
    }

    fn list<'v>(&mut self, metadata: &'v Map<String, Value>, name: &str) -> &'v [Value] {
        match metadata.get(name) {
            None | Some(Value::Null) => &[],
            Some(Value::Array(list)) => list,
            Some(_) => {
                self.errors.push(wrong_type(self.path.field(name), "array"));
                &[]
            }
        }
    }

    fn texts<'v>(
        &mut self,
        metadata: &'v Map<String, Value>,
        name: &str,
    ) -> Vec<(&'v str, &'v str)> {
        let field = self.path.field(name);
        let mut texts = Vec::new();
        match metadata.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => {
                for (key, value) in map {
                    match value {
                        Value::String(text) => texts.push((key.as_str(), text.as_str())),
                        // A null in a map of texts is an empty text, as in Go.
                        Value::Null => texts.push((key.as_str(), "")),
                        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                            self.errors.push(wrong_type(field.key(key), "string"));
                        }
                    }
                }
            }
            Some(_) => self.errors.push(wrong_type(field, "object")),
        }
        texts
    }
}

fn wrong_type(field: Path<'_>, expected: &str) -> FieldError {
    FieldError::new(Problem::TypeInvalid, field, format!("must be of type {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(metadata: Value, expected: &[&str]) {
        let object = json!({ "metadata": metadata });
        let errors = validate_metadata(&object, true, NameRule::Dns1123Subdomain);
        let texts: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_plain_object_is_fine() {
        check(json!({"name": "a", "namespace": "b", "labels": {"x/y": "z"}}), &[]);
    }

    #[test]
    fn an_object_without_a_name_is_refused() {
        check(
            json!({"namespace": "b"}),
            &["metadata.name: Required value: name or generateName is required"],
        );
    }

    #[test]
    fn a_cluster_wide_object_has_no_namespace() {
        let object = json!({"metadata": {"name": "a", "namespace": "b"}});
        let errors = validate_metadata(&object, false, NameRule::PathSegment);
        assert_eq!(
            errors[0].to_string(),
            "metadata.namespace: Forbidden: not allowed on this type"
        );
    }

    #[test]
    fn labels_and_annotations_are_checked() {
        let long = "x".repeat(300_000);
        check(
            json!({"name": "a", "namespace": "b", "annotations": {"Example.COM/a": long}}),
            &["metadata.annotations: Too long: may not be more than 262144 bytes"],
        );
        let object = json!({"metadata": {"name": "a", "namespace": "b", "labels": {"a b": "-"}}});
        assert_eq!(validate_metadata(&object, true, NameRule::PathSegment).len(), 2);
    }

    #[test]
    fn only_one_owner_is_the_controller() {
        let owner = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": true,
            })
        };
        let owners = json!([owner("x"), owner("y")]);
        check(
            json!({"name": "a", "namespace": "b", "ownerReferences": owners}),
            &[&format!(
                "metadata.ownerReferences: Invalid value: {owners}: Only one reference can have \
                 Controller set to true. Found \"true\" in references for Pod/x and Pod/y"
            )],
        );
    }

    #[test]
    fn an_owner_needs_all_its_fields() {
        check(
            json!({"name": "a", "namespace": "b", "ownerReferences": [{"apiVersion": "apps/"}]}),
            &[
                "metadata.ownerReferences.apiVersion: Invalid value: \"apps/\": version must not \
                 be empty",
                "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ],
        );
    }

    #[test]
    fn finalizers_that_exclude_each_other_are_refused() {
        check(
            json!({"name": "a", "namespace": "b", "finalizers": ["orphan", "foregroundDeletion"]}),
            &["metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: \
                 finalizer \
               orphan and foregroundDeletion cannot be both set"],
        );
    }

    #[test]
    fn wrong_types_are_errors_and_not_panics() {
        let odd = [json!(null), json!(1), json!("a"), json!([1]), json!({"a": 1}), json!(true)];
        let fields = ["name", "generateName", "namespace", "generation", "labels"];
        for field in fields.iter().chain(&["annotations", "ownerReferences", "finalizers"]) {
            for value in &odd {
                let object = json!({"metadata": {*field: value}});
                validate_metadata(&object, true, NameRule::Dns1035Label);
                validate_metadata(value, true, NameRule::Dns1035Label);
            }
        }
    }
}
