use super::*;
use crate::schema::{Form, ListKind};
use serde_json::json;

#[test]
fn every_table_is_read() {
    let kinds = Kinds::read(TABLES).expect("the tables are well formed");
    let stored = kinds.all().iter().filter(|kind| !kind.is_virtual()).count();
    assert_eq!((kinds.all().len(), stored), (67, 61));
}

#[test]
fn deployments_are_found_with_all_that_is_known_about_them() {
    let found = built_in().find("apps", "v1", "deployments").expect("it is built in");
    let resource = &found.resource;
    assert_eq!((&*resource.kind, &*resource.list_kind), ("Deployment", "DeploymentList"));
    assert_eq!(resource.short_names, ["deploy".into()]);
    assert!(resource.is_namespaced && resource.has_status && resource.scale.is_some());
    assert_eq!(found.verbs.len(), 8);
    assert_eq!(found.subresources[0].kind, "Scale");
    let containers = resource
        .schema
        .shape()
        .field("spec")
        .and_then(|spec| spec.field("template"))
        .and_then(|template| template.field("spec"))
        .and_then(|spec| spec.field("containers"))
        .expect("a pod has containers");
    let Form::List(list) = &containers.form else { panic!("containers are a list") };
    assert_eq!(list.kind, ListKind::Keyed(vec!["name".into()]));
    let ports = containers.items().and_then(|c| c.field("ports")).expect("it has ports");
    let protocol = ports.items().and_then(|port| port.field("protocol")).expect("with protocols");
    assert_eq!(protocol.default, Some(json!("TCP")));
}

#[test]
fn a_schema_that_holds_itself_is_made_once() {
    let crds = built_in().find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let schema = &crds.expect("it is built in").resource.schema;
    assert!(schema.nodes.len() < 150, "{} nodes", schema.nodes.len());
}

#[test]
fn questions_are_not_stored() {
    let reviews = built_in().find("authorization.k8s.io", "v1", "subjectaccessreviews");
    assert!(reviews.expect("it is built in").is_virtual());
    assert!(built_in().find("", "v1", "bindings").is_none());
}

#[test]
fn empty_structs_are_written_and_empty_optional_lists_are_not() {
    let mut object = json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [
        {"name": "a", "args": []}]}}, "paused": false}});
    built_in().as_upstream_writes("io.k8s.api.apps.v1.Deployment", &mut object);
    assert_eq!(
        object,
        json!({"kind": "Deployment", "metadata": {}, "status": {}, "spec": {"selector": null,
            "strategy": {}, "template": {"metadata": {}, "spec": {"containers": [
                {"name": "a", "resources": {}}]}}}})
    );
}

#[test]
fn a_field_may_be_merged_although_its_type_is_not() {
    let volumes = built_in().find("", "v1", "persistentvolumes").expect("it is built in");
    let claim =
        volumes.resource.schema.shape().field("spec").and_then(|spec| spec.field("claimRef"));
    let claim = claim.expect("a volume has a claim");
    assert_eq!(claim.name.as_deref(), Some("io.k8s.api.core.v1.ObjectReference"));
    assert!(matches!(&claim.form, Form::Object(object) if !object.is_atomic));
    let events = built_in().find("", "v1", "events").expect("it is built in");
    let involved = events.resource.schema.shape().field("involvedObject").expect("it is there");
    assert!(matches!(&involved.form, Form::Object(object) if object.is_atomic));
}
