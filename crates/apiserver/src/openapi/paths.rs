//! The operations of a resource: which paths there are, with which parameters.

use super::reference;
use crate::discovery::{Below, Described, group_version_text};
use crate::kinds::built_in;
use crate::resource::Resource;
use serde_json::{Map, Value, json};

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// A query parameter.
#[derive(Clone, Copy)]
struct Parameter {
    name: &'static str,
    type_name: &'static str,
    /// What it is for.
    description: &'static str,
}

impl Parameter {
    const fn text(name: &'static str, description: &'static str) -> Self {
        Parameter { name, type_name: "string", description }
    }

    const fn flag(name: &'static str, description: &'static str) -> Self {
        Parameter { name, type_name: "boolean", description }
    }

    const fn number(name: &'static str, description: &'static str) -> Self {
        Parameter { name, type_name: "integer", description }
    }
}

const DRY_RUN: Parameter =
    Parameter::text("dryRun", "All: everything is checked and nothing is stored.");
const MANAGER: Parameter = Parameter::text("fieldManager", "Who the changed fields belong to.");
const VALIDATION: Parameter = Parameter::text(
    "fieldValidation",
    "What happens to fields that are unknown or stand twice: Ignore, Warn or Strict.",
);
const FORCE: Parameter =
    Parameter::flag("force", "Whether an apply takes fields away from others.");
const GRACE: Parameter =
    Parameter::number("gracePeriodSeconds", "How long the object may take to end.");
const PROPAGATION: Parameter = Parameter::text(
    "propagationPolicy",
    "What happens to dependents: Orphan, Background or Foreground.",
);
const LIST_PARAMETERS: [Parameter; 9] = [
    Parameter::flag("allowWatchBookmarks", "Whether a watch may send bookmarks."),
    Parameter::text("continue", "Where the page before ended."),
    Parameter::text("fieldSelector", "Which objects, by their fields."),
    Parameter::text("labelSelector", "Which objects, by their labels."),
    Parameter::number("limit", "The most objects on one page."),
    Parameter::text("resourceVersion", "At, or not before, or after which version."),
    Parameter::text("resourceVersionMatch", "What resourceVersion means: Exact or NotOlderThan."),
    Parameter::flag("sendInitialEvents", "Whether a watch begins with what is there already."),
    Parameter::number("timeoutSeconds", "When the server ends the request."),
];
const WATCH: Parameter = Parameter::flag("watch", "Changes as they come, instead of a list.");

/// Adds the paths of a resource, whose kind has this name among the schemas.
pub(super) fn add(paths: &mut Map<String, Value>, resource: &Resource, schema: &str) {
    let version = group_version_text(&resource.group, &resource.version);
    let root = if resource.group.is_empty() { "api" } else { "apis" };
    let plural = &resource.plural;
    let all = format!("/{root}/{version}/{plural}");
    let collection = if resource.is_namespaced {
        format!("/{root}/{version}/namespaces/{{namespace}}/{plural}")
    } else {
        all.clone()
    };
    let described = Described::of(resource);
    let operations = Operations { resource, schema, verbs: described.verbs };
    put(paths, resource, collection.clone(), operations.of_collection());
    put(paths, resource, format!("{collection}/{{name}}"), operations.of_object());
    if resource.is_namespaced && described.verbs.contains(&"list") {
        let everywhere = Map::from_iter([("get".to_owned(), operations.list("ForAllNamespaces"))]);
        put(paths, resource, all, everywhere);
    }
    for below in &described.subresources {
        let path = format!("{collection}/{{name}}/{}", below.name);
        put(paths, resource, path, operations.of_subresource(below));
    }
}

/// Adds one path, with the parameters that are in the path itself.
fn put(
    paths: &mut Map<String, Value>,
    resource: &Resource,
    path: String,
    mut operations: Map<String, Value>,
) {
    if operations.is_empty() {
        return;
    }
    let mut parameters = Vec::new();
    for (name, what) in [("name", resource.kind.as_ref()), ("namespace", "Namespace")] {
        if path.contains(&format!("{{{name}}}")) {
            parameters.push(json!({
                "name": name, "in": "path", "required": true,
                "description": format!("The name of the {what}."),
                "schema": {"type": "string", "uniqueItems": true},
            }));
        }
    }
    parameters.push(query(Parameter::text("pretty", "Whether the answer is indented.")));
    operations.insert("parameters".to_owned(), parameters.into());
    paths.insert(path, operations.into());
}

/// Makes the operations of one resource.
struct Operations<'a> {
    resource: &'a Resource,
    schema: &'a str,
    verbs: &'a [&'static str],
}

/// What is particular to one operation.
struct Operation<'a> {
    verb: &'a str,
    action: &'a str,
    /// What makes its id differ from those of its siblings.
    suffix: &'a str,
    parameters: &'a [Parameter],
    body: Option<Value>,
    answer: &'a str,
}

impl Operations<'_> {
    fn of_collection(&self) -> Map<String, Value> {
        let mut made = Map::new();
        if self.verbs.contains(&"list") {
            made.insert("get".to_owned(), self.list(""));
        }
        if self.verbs.contains(&"create") {
            let post = self.operation(&Operation {
                verb: "create",
                action: "post",
                suffix: "",
                parameters: &[DRY_RUN, MANAGER, VALIDATION],
                body: Some(body(self.schema)),
                answer: self.schema,
            });
            made.insert("post".to_owned(), post);
        }
        if self.verbs.contains(&"deletecollection") {
            let delete = self.operation(&Operation {
                verb: "deleteCollection",
                action: "deletecollection",
                suffix: "",
                parameters: &[&LIST_PARAMETERS[1..], &[DRY_RUN, GRACE, PROPAGATION]].concat(),
                body: Some(body(DELETE_OPTIONS)),
                answer: STATUS,
            });
            made.insert("delete".to_owned(), delete);
        }
        made
    }

    fn of_object(&self) -> Map<String, Value> {
        let mut made = self.read_and_write(self.verbs, self.schema, "");
        if self.verbs.contains(&"delete") {
            let delete = self.operation(&Operation {
                verb: "delete",
                action: "delete",
                suffix: "",
                parameters: &[DRY_RUN, GRACE, PROPAGATION],
                body: Some(body(DELETE_OPTIONS)),
                answer: STATUS,
            });
            made.insert("delete".to_owned(), delete);
        }
        made
    }

    fn of_subresource(&self, below: &Below<'_>) -> Map<String, Value> {
        let is_the_object = below.kind == &*self.resource.kind;
        let other = type_name(below);
        let schema = if is_the_object { self.schema } else { &other };
        let mut suffix = below.name.to_owned();
        suffix[..1].make_ascii_uppercase();
        let mut made = self.read_and_write(below.verbs, schema, &suffix);
        if below.verbs.contains(&"create") {
            let post = self.operation(&Operation {
                verb: "create",
                action: "post",
                suffix: &suffix,
                parameters: &[DRY_RUN, MANAGER, VALIDATION],
                body: Some(body(schema)),
                answer: schema,
            });
            made.insert("post".to_owned(), post);
        }
        if !is_the_object {
            let kind = gvk(below.group, below.version, below.kind);
            for operation in made.values_mut() {
                operation["x-kubernetes-group-version-kind"] = kind.clone();
            }
        }
        made
    }

    fn list(&self, suffix: &str) -> Value {
        let list = format!("{}List", self.schema);
        let mut operation = self.operation(&Operation {
            verb: "list",
            action: "list",
            suffix,
            parameters: &[&LIST_PARAMETERS[..], &[WATCH]].concat(),
            body: None,
            answer: &list,
        });
        operation["responses"]["200"]["content"]["application/json;stream=watch"] =
            json!({"schema": reference(&list)});
        operation
    }

    /// GET, PUT and PATCH of one object, or of something below it.
    fn read_and_write(&self, verbs: &[&str], schema: &str, suffix: &str) -> Map<String, Value> {
        let mut made = Map::new();
        let patch_body = patch_body(self.resource);
        let all = [
            ("get", "get", "read", &[][..], None),
            ("update", "put", "replace", &[DRY_RUN, MANAGER, VALIDATION][..], Some(body(schema))),
            (
                "patch",
                "patch",
                "patch",
                &[DRY_RUN, MANAGER, VALIDATION, FORCE][..],
                Some(patch_body),
            ),
        ];
        for (wanted, method, verb, parameters, body) in all {
            if verbs.contains(&wanted) {
                let action = method;
                let operation =
                    Operation { verb, action, suffix, parameters, body, answer: schema };
                made.insert(method.to_owned(), self.operation(&operation));
            }
        }
        made
    }

    fn operation(&self, operation: &Operation<'_>) -> Value {
        let resource = self.resource;
        let scope = if resource.is_namespaced && operation.suffix != "ForAllNamespaces" {
            "Namespaced"
        } else {
            ""
        };
        let answer = json!({
            "description": "OK",
            "content": {"application/json": {"schema": reference(operation.answer)}},
        });
        let mut responses = json!({"200": answer, "401": {"description": "Unauthorized"}});
        match operation.action {
            "post" | "put" | "patch" => responses["201"] = created(&responses["200"], "Created"),
            "delete" => responses["202"] = created(&responses["200"], "Accepted"),
            _ => {}
        }
        let mut made = json!({
            "operationId": format!(
                "{}{}{scope}{}{}",
                operation.verb,
                words(&format!("{}.{}", or_core(&resource.group), resource.version)),
                resource.kind,
                operation.suffix,
            ),
            "tags": [format!("{}_{}", or_core(&resource.group), resource.version)],
            "responses": responses,
            "x-kubernetes-action": operation.action,
            "x-kubernetes-group-version-kind":
                gvk(&resource.group, &resource.version, &resource.kind),
        });
        // Upstream's types forget an empty list, and what they write would differ from what they read.
        if !operation.parameters.is_empty() {
            made["parameters"] = operation.parameters.iter().map(|p| query(*p)).collect();
        }
        if let Some(body) = &operation.body {
            made["requestBody"] = body.clone();
        }
        made
    }
}

fn created(answer: &Value, description: &str) -> Value {
    let mut answer = answer.clone();
    answer["description"] = description.into();
    answer
}

fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn or_core(group: &str) -> &str {
    if group.is_empty() { "core" } else { group }
}

/// `rbac.authorization.k8s.io.v1` as `RbacAuthorizationV1`: the form of upstream's operation ids.
fn words(dotted: &str) -> String {
    let dotted = dotted.replace(".k8s.io", "");
    let mut text = String::new();
    for part in dotted.split(['.', '-']).filter(|part| !part.is_empty()) {
        let mut characters = part.chars();
        text.extend(characters.next().map(|first| first.to_ascii_uppercase()));
        text.push_str(characters.as_str());
    }
    text
}

fn query(parameter: Parameter) -> Value {
    let Parameter { name, type_name, description } = parameter;
    json!({
        "name": name, "in": "query", "description": description,
        "schema": {"type": type_name, "uniqueItems": true},
    })
}

fn body(schema: &str) -> Value {
    json!({"content": {"*/*": {"schema": reference(schema)}}, "required": true})
}

/// Custom kinds have no strategic merge patch.
fn patch_body(resource: &Resource) -> Value {
    let mut forms = vec![
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ];
    if !resource.is_custom() {
        forms.push("application/strategic-merge-patch+json");
    }
    let content: Map<String, Value> = forms
        .into_iter()
        .map(|form| (form.to_owned(), json!({"schema": reference(PATCH)})))
        .collect();
    json!({"content": content, "required": true})
}

/// The name of the type that a subresource takes.
fn type_name(below: &Below<'_>) -> String {
    let groups = &built_in().tables().groups;
    let found = groups
        .iter()
        .filter(|group| group.group == below.group && group.version == below.version)
        .map(|group| format!("{}.{}", group.package, below.kind))
        .find(|name| built_in().tables().find(name).is_some());
    found.unwrap_or_else(|| STATUS.to_owned())
}
