use super::*;
use crate::schema::{Field, Form, List, ListKind, Node, Object, Schema};

fn apps() -> Value {
    document(&built_in().resources, "apps", "v1")
}

fn foo() -> Arc<Resource> {
    let deployments = built_in().find("apps", "v1", "deployments").expect("it is built in");
    let mut schema = Schema::default();
    let text = schema.add(Node { form: Form::String, ..Node::default() });
    let list = List { items: text, kind: ListKind::Set };
    let tags = schema.add(Node {
        form: Form::List(list),
        description: Some("Words.".into()),
        ..Node::default()
    });
    let mut object = Object { required: vec!["tags".into()], ..Object::default() };
    object.fields.insert("tags".into(), Field { node: tags, ..Field::default() });
    schema.root = schema.add(Node { form: Form::Object(object), ..Node::default() });
    let mut resource = Resource::clone(&deployments.resource);
    (resource.group, resource.version) = ("example.com".into(), "v1".into());
    (resource.kind, resource.list_kind) = ("Foo".into(), "FooList".into());
    (resource.plural, resource.identity) = ("foos".into(), "hub".into());
    resource.schema = Arc::new(schema);
    Arc::new(resource)
}

/// Each reference in a document leads somewhere.
fn check_references(part: &Value, schemas: &Value) {
    match part {
        Value::Object(object) => {
            if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                let name = reference.rsplit('/').next().expect("it has a name");
                assert!(schemas.get(name).is_some(), "{name} is missing");
            }
            object.values().for_each(|value| check_references(value, schemas));
        }
        Value::Array(list) => list.iter().for_each(|value| check_references(value, schemas)),
        _ => {}
    }
}

#[test]
fn every_document_is_complete_in_itself() {
    for (group, version) in discovery::group_versions(&built_in().resources) {
        let document = document(&built_in().resources, &group, &version);
        assert!(document["paths"].as_object().is_some_and(|paths| !paths.is_empty()));
        check_references(&document, &document["components"]["schemas"]);
    }
}

#[test]
fn kubectl_finds_what_the_patch_operation_can_do() {
    let document = apps();
    let patch =
        &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    let names: Vec<&str> = patch["parameters"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|parameter| parameter["name"].as_str())
        .collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert_eq!(patch["x-kubernetes-action"], "patch");
    assert_eq!(patch["operationId"], "patchAppsV1NamespacedDeployment");
}

#[test]
fn fields_keep_how_they_are_merged() {
    let document = apps();
    let schemas = &document["components"]["schemas"];
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(
        containers,
        &json!({"type": "array", "description": "The containers that run in the Pod.",
            "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"})
    );
    let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        deployment["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "version": "v1", "kind": "Deployment"}])
    );
    assert_eq!(
        deployment["properties"]["spec"]["allOf"],
        json!([{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}])
    );
}

#[test]
fn a_scale_is_what_the_scale_subresource_takes() {
    let document = apps();
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale";
    let put = &document["paths"][path]["put"];
    assert_eq!(put["x-kubernetes-group-version-kind"]["kind"], "Scale");
    assert_eq!(
        put["requestBody"]["content"]["*/*"]["schema"]["$ref"],
        "#/components/schemas/io.k8s.api.autoscaling.v1.Scale"
    );
}

#[test]
fn a_custom_kind_is_described_by_its_own_schema() {
    let document = document(&[foo()], "example.com", "v1");
    let schemas = &document["components"]["schemas"];
    let foo = &schemas["com.example.v1.Foo"];
    assert_eq!(
        foo["properties"]["tags"],
        json!({"type": "array", "items": {"type": "string"}, "description": "Words.",
            "x-kubernetes-list-type": "set"})
    );
    assert_eq!(foo["required"], json!(["tags"]));
    assert!(schemas.get("com.example.v1.FooList").is_some());
    check_references(&document, schemas);
    let path = "/apis/example.com/v1/namespaces/{namespace}/foos/{name}";
    let forms = document["paths"][path]["patch"]["requestBody"]["content"].as_object();
    assert_eq!(forms.map(Map::len), Some(3));
}

#[test]
fn the_index_names_each_document_with_its_hash() {
    let made = index([("", "v1", "AB"), ("apps", "v1", "CD")]);
    assert_eq!(
        made,
        json!({"paths": {
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=AB"},
            "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=CD"}}})
    );
}
