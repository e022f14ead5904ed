//! OpenAPI v2, for clients from before v3: one document for everything, as JSON or in the protobuf form of gnostic.
//!
//! kubectl up to 1.28 validates, explains, applies and edits by it, and takes nothing but protobuf. Newer ones read
//! it when they apply custom kinds. It is made of the v3 documents: what v2 has no words for is left out.

use super::wire::Message;
use serde_json::{Map, Value, json};

/// What a request for the protobuf form accepts begins with.
pub(crate) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2";
/// The `Content-Type` of that form.
pub(crate) const PROTOBUF_CONTENT: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What one group and version adds to the document, in the protobuf form.
#[derive(Debug)]
pub(crate) struct Fragment {
    /// Each named schema.
    definitions: Vec<(String, Vec<u8>)>,
    /// All paths.
    paths: Vec<u8>,
}

/// The fragment of a v3 document.
pub(crate) fn fragment(document: &Value) -> Fragment {
    let second = from_third(document);
    let mut definitions = Vec::new();
    for (name, schema) in fields(&second["definitions"]) {
        let mut entry = Message::default();
        entry.message(1, named(name, &schema_message(schema)));
        definitions.push((name.clone(), entry.bytes()));
    }
    let mut paths = Message::default();
    for (path, item) in fields(&second["paths"]) {
        paths.message(2, named(path, &path_item(item)));
    }
    Fragment { definitions, paths: paths.bytes() }
}

/// The whole document in the protobuf form. Types that several groups use stand in it once.
pub(crate) fn assemble<'a>(fragments: impl IntoIterator<Item = &'a Fragment>) -> Vec<u8> {
    let (mut paths, mut definitions) = (Vec::new(), Vec::new());
    let mut seen = std::collections::HashSet::new();
    for fragment in fragments {
        paths.extend_from_slice(&fragment.paths);
        for (name, bytes) in &fragment.definitions {
            if seen.insert(name.as_str()) {
                definitions.extend_from_slice(bytes);
            }
        }
    }
    let mut info = Message::default();
    info.text(1, "Kubernetes");
    info.text(2, "unversioned");
    let mut document = Message::default();
    document.text(1, "2.0");
    document.message(2, info);
    document.raw(8, &paths);
    document.raw(9, &definitions);
    document.bytes()
}

/// The whole document as JSON.
pub(crate) fn json<'a>(documents: impl IntoIterator<Item = &'a Value>) -> Value {
    let mut whole = json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": {}, "definitions": {},
    });
    for document in documents {
        let second = from_third(document);
        for part in ["paths", "definitions"] {
            for (name, value) in fields(&second[part]) {
                whole[part][name] = value.clone();
            }
        }
    }
    whole
}

/// The paths and schemas of a v3 document in the words of v2.
fn from_third(document: &Value) -> Value {
    let definitions: Map<String, Value> = fields(&document["components"]["schemas"])
        .map(|(name, third)| (name.clone(), schema(third)))
        .collect();
    let paths: Map<String, Value> = fields(&document["paths"])
        .map(|(path, item)| {
            let item = fields(item).map(|(method, part)| match method.as_str() {
                "parameters" => (method.clone(), list(part).map(parameter).collect()),
                _ => (method.clone(), operation(part)),
            });
            (path.clone(), Value::Object(item.collect()))
        })
        .collect();
    json!({"definitions": definitions, "paths": paths})
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A schema. Clients of v2 judge objects by it, so where v3 allows more than v2 can say, nothing is said.
fn schema(third: &Value) -> Value {
    let is_set = |key: &str| third[key] == true;
    let kind = third.get("x-kubernetes-group-version-kind");
    if let Some(kind) = kind.filter(|_| is_set("x-kubernetes-preserve-unknown-fields")) {
        // kubectl would refuse whatever is not named here.
        return json!({"type": "object", "x-kubernetes-group-version-kind": kind});
    }
    let is_loose = is_set("nullable") || is_set("x-kubernetes-preserve-unknown-fields");
    let mut second = Map::new();
    for (key, value) in fields(third) {
        let shape_of_it = ["type", "properties", "items", "additionalProperties", "required"];
        match key.as_str() {
            "nullable" | "anyOf" | "not" => {}
            key if is_loose && shape_of_it.contains(&key) => {}
            "oneOf" => put(&mut second, "type", json!("string")),
            "$ref" => put(&mut second, key, reference(value)),
            // In v2 more may stand beside a reference.
            "allOf" => list(value).for_each(|one| {
                let one = schema(one);
                second.extend(fields(&one).map(|(key, value)| (key.clone(), value.clone())));
            }),
            "properties" => {
                let inner = fields(value).map(|(name, one)| (name.clone(), schema(one)));
                put(&mut second, key, Value::Object(inner.collect()));
            }
            "items" | "additionalProperties" if value.is_object() => {
                put(&mut second, key, schema(value));
            }
            _ => put(&mut second, key, value.clone()),
        }
    }
    Value::Object(second)
}

fn put(into: &mut Map<String, Value>, key: &str, value: Value) {
    into.insert(key.to_owned(), value);
}

fn reference(third: &Value) -> Value {
    let name = third.as_str().unwrap_or_default();
    json!(name.replacen("#/components/schemas/", "#/definitions/", 1))
}

fn operation(third: &Value) -> Value {
    let mut parameters: Vec<Value> = list(&third["parameters"]).map(parameter).collect();
    let mut second = Map::new();
    for (key, value) in fields(third) {
        match key.as_str() {
            "parameters" => {}
            "requestBody" => {
                let content = &value["content"];
                put(
                    &mut second,
                    "consumes",
                    fields(content).map(|(form, _)| json!(form)).collect(),
                );
                parameters.push(json!({
                    "name": "body", "in": "body", "required": value["required"] == true,
                    "schema": first_schema(content),
                }));
            }
            "responses" => {
                let answers = fields(value).map(|(code, answer)| {
                    let mut second = json!({"description": answer["description"]});
                    if answer.get("content").is_some() {
                        second["schema"] = first_schema(&answer["content"]);
                    }
                    (code.clone(), second)
                });
                put(&mut second, key, Value::Object(answers.collect()));
            }
            _ => put(&mut second, key, value.clone()),
        }
    }
    put(&mut second, "produces", json!(["application/json", "application/yaml"]));
    put(&mut second, "parameters", parameters.into());
    Value::Object(second)
}

fn first_schema(content: &Value) -> Value {
    fields(content).next().map_or_else(|| json!({}), |(_, form)| schema(&form["schema"]))
}

fn parameter(third: &Value) -> Value {
    let mut second = third.clone();
    if let Some(fields) = second.as_object_mut()
        && let Some(Value::Object(schema)) = fields.remove("schema")
    {
        fields.extend(schema);
    }
    second
}

/// An entry of a map: its key, then its value.
fn named(name: &str, value: &Message) -> Message {
    let mut entry = Message::default();
    entry.text(1, name);
    entry.message(2, value.clone());
    entry
}

/// Any value, as YAML, of which JSON is a part.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.text(2, &value.to_string());
    message
}

fn extensions(message: &mut Message, number: u32, of: &Value) {
    for (name, value) in fields(of).filter(|(name, _)| name.starts_with("x-")) {
        message.message(number, named(name, &any(value)));
    }
}

fn texts(message: &mut Message, number: u32, of: &Value) {
    list(of).filter_map(Value::as_str).for_each(|text| message.text(number, text));
}

fn schema_message(schema: &Value) -> Message {
    let mut message = Message::default();
    for (number, key) in [(1, "$ref"), (2, "format"), (4, "description"), (13, "pattern")] {
        message.text_if_any(number, &schema[key]);
    }
    if let Some(default) = schema.get("default") {
        message.message(5, any(default));
    }
    for (number, key) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        message.double_if_any(number, &schema[key]);
    }
    for (number, key) in [(8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems")] {
        message.bool_if_true(number, &schema[key]);
    }
    for (number, key) in [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ] {
        message.count_if_any(number, &schema[key]);
    }
    texts(&mut message, 19, &schema["required"]);
    list(&schema["enum"]).for_each(|value| message.message(20, any(value)));
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        let mut item = Message::default();
        item.message(1, schema_message(values));
        message.message(21, item);
    }
    if let Some(name) = schema["type"].as_str() {
        let mut item = Message::default();
        item.text(1, name);
        message.message(22, item);
    }
    if let Some(items) = schema.get("items") {
        let mut item = Message::default();
        item.message(1, schema_message(items));
        message.message(23, item);
    }
    if let Some(properties) = schema.get("properties") {
        let mut item = Message::default();
        for (name, property) in fields(properties) {
            item.message(1, named(name, &schema_message(property)));
        }
        message.message(25, item);
    }
    extensions(&mut message, 31, schema);
    message
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    for (number, method) in [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")] {
        if let Some(operation) = item.get(method) {
            message.message(number, operation_message(operation));
        }
    }
    list(&item["parameters"]).for_each(|one| message.message(9, parameter_message(one)));
    message
}

fn operation_message(operation: &Value) -> Message {
    let mut message = Message::default();
    texts(&mut message, 1, &operation["tags"]);
    message.text_if_any(3, &operation["description"]);
    message.text_if_any(5, &operation["operationId"]);
    texts(&mut message, 6, &operation["produces"]);
    texts(&mut message, 7, &operation["consumes"]);
    list(&operation["parameters"]).for_each(|one| message.message(8, parameter_message(one)));
    let mut responses = Message::default();
    for (code, answer) in fields(&operation["responses"]) {
        let mut response = Message::default();
        response.text_if_any(1, &answer["description"]);
        if let Some(schema) = answer.get("schema") {
            let mut item = Message::default();
            item.message(1, schema_message(schema));
            response.message(2, item);
        }
        let mut value = Message::default();
        value.message(1, response);
        responses.message(1, named(code, &value));
    }
    message.message(9, responses);
    extensions(&mut message, 13, operation);
    message
}

fn parameter_message(parameter: &Value) -> Message {
    let mut inner = Message::default();
    let mut either = Message::default();
    if parameter["in"] == "body" {
        inner.text_if_any(2, &parameter["name"]);
        inner.text_if_any(3, &parameter["in"]);
        inner.bool_if_true(4, &parameter["required"]);
        inner.message(5, schema_message(&parameter["schema"]));
        either.message(1, inner);
    } else {
        let is_path = parameter["in"] == "path";
        inner.bool_if_true(1, &parameter["required"]);
        inner.text_if_any(2, &parameter["in"]);
        inner.text_if_any(3, &parameter["description"]);
        inner.text_if_any(4, &parameter["name"]);
        inner.text_if_any(if is_path { 5 } else { 6 }, &parameter["type"]);
        inner.bool_if_true(if is_path { 19 } else { 20 }, &parameter["uniqueItems"]);
        let mut place = Message::default();
        place.message(if is_path { 4 } else { 3 }, inner);
        either.message(2, place);
    }
    let mut item = Message::default();
    item.message(1, either);
    item
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::built_in;

    fn apps() -> Value {
        super::super::document(&built_in().resources, "apps", "v1")
    }

    #[test]
    fn references_lead_to_definitions_and_have_company() {
        let whole = json([&apps()]);
        let spec = &whole["definitions"]["io.k8s.api.apps.v1.Deployment"]["properties"]["spec"];
        assert_eq!(spec["$ref"], "#/definitions/io.k8s.api.apps.v1.DeploymentSpec");
        assert!(spec["description"].is_string(), "{spec}");
        assert!(!whole.to_string().contains("#/components"));
    }

    #[test]
    fn a_patch_says_its_parameters_and_its_body() {
        let whole = json([&apps()]);
        let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
        let patch = &whole["paths"][path]["patch"];
        let names: Vec<&str> =
            list(&patch["parameters"]).filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force", "body"]);
        assert_eq!(patch["parameters"][0]["type"], "string");
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Deployment");
        assert_eq!(patch["consumes"][0], "application/apply-patch+yaml");
    }

    #[test]
    fn what_may_be_anything_is_not_narrowed() {
        let third =
            json!({"type": "object", "nullable": true, "properties": {"a": {"type": "string"}}});
        assert_eq!(schema(&third), json!({}));
        let third = json!({"format": "int-or-string", "oneOf": [{"type": "integer"}]});
        assert_eq!(schema(&third), json!({"format": "int-or-string", "type": "string"}));
    }

    #[test]
    fn a_type_that_two_groups_use_stands_once_in_the_protobuf_form() {
        let (one, two) = (fragment(&apps()), fragment(&apps()));
        assert_eq!(assemble([&one]).len() + two.paths.len(), assemble([&one, &two]).len());
        assert!(assemble([&one]).starts_with(b"\x0a\x032.0\x12"));
    }
}
