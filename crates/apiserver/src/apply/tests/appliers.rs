//! Appliers among each other and among updaters.

use super::*;

fn desk() -> Desk {
    Desk::with_spec(json!({
        "replicas": "number", "image": "text", "paused": "flag", "port": "int-or-string",
        "labels": {"map": "text"},
        "strategy": {"fields": {"type": "text", "surge": {"fields": {"max": "number"}}}},
        "free": "any",
    }))
}

#[test]
fn the_first_apply_creates_the_object_and_owns_what_it_names() {
    let mut desk = desk();
    desk.apply(
        "ci",
        json!({"replicas": 3, "labels": {"a": "b"}, "strategy": {"surge": {"max": 1}}}),
    );
    assert_eq!(desk.spec()["replicas"], 3);
    assert_eq!(
        desk.entries(),
        [json!({
            "manager": "ci", "operation": "Apply",
            "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "time": "2024-01-01T00:00:01Z",
            "fieldsV1": {"f:spec": {
                "f:replicas": {}, "f:labels": {"f:a": {}}, "f:strategy": {"f:surge": {"f:max": {}}},
            }},
        })]
    );
}

#[test]
fn an_applier_without_a_name_is_unknown() {
    let mut desk = desk();
    desk.apply("", json!({"replicas": 3}));
    assert_eq!(desk.owners(), ["Apply unknown"]);
}

#[test]
fn the_same_apply_again_changes_nothing_at_all() {
    let mut desk = desk();
    desk.apply("ci", json!({"replicas": 3, "labels": {"a": "b"}}));
    let before = desk.live().clone();
    desk.apply("ci", json!({"replicas": 3, "labels": {"a": "b"}}));
    assert_eq!(*desk.live(), before);
}

#[test]
fn what_is_named_no_longer_is_removed() {
    let mut desk = desk();
    desk.apply("ci", json!({"replicas": 3, "image": "x", "labels": {"a": "b", "c": "d"}}));
    desk.apply("ci", json!({"replicas": 3, "labels": {"a": "b"}}));
    assert_eq!(*desk.spec(), json!({"replicas": 3, "labels": {"a": "b"}}));
    assert_eq!(*desk.owned("Apply ci"), json!({"f:replicas": {}, "f:labels": {"f:a": {}}}));
    desk.apply("ci", json!({"replicas": 3}));
    assert_eq!(*desk.spec(), json!({"replicas": 3}), "the map goes with its last key");
}

#[test]
fn a_map_that_is_still_named_stays_when_its_last_key_goes() {
    let mut desk = desk();
    desk.apply("ci", json!({"labels": {"a": "b"}}));
    desk.apply("ci", json!({"labels": {}}));
    assert_eq!(*desk.spec(), json!({"labels": {}}));
    assert_eq!(*desk.owned("Apply ci"), json!({"f:labels": {}}));
}

#[test]
fn an_applier_that_names_nothing_any_more_has_no_entry() {
    let mut desk = desk();
    desk.apply("ci", json!({"replicas": 3}));
    desk.try_apply("ci", json!({}), false).expect("there is no conflict");
    assert_eq!(desk.entries(), [] as [Value; 0]);
    assert_eq!(desk.live().get("spec"), None);
    assert_eq!(desk.live()["metadata"]["name"], "a");
}

#[test]
fn what_another_applier_names_too_stays() {
    let mut desk = desk();
    desk.apply("a", json!({"image": "x", "replicas": 1}));
    desk.apply("b", json!({"image": "x"}));
    desk.apply("a", json!({"replicas": 1}));
    assert_eq!(*desk.spec(), json!({"image": "x", "replicas": 1}));
    desk.try_apply("b", json!({}), false).expect("there is no conflict");
    assert_eq!(*desk.spec(), json!({"replicas": 1}));
}

#[test]
fn an_applier_of_what_is_there_already_owns_it_since_no_time() {
    let mut desk = desk();
    desk.apply("a", json!({"image": "x"}));
    desk.apply("b", json!({"image": "x"}));
    assert_eq!(desk.entry("Apply b").get("time"), None);
    assert_eq!(desk.owners(), ["Apply b", "Apply a"]);
}

#[test]
fn an_applier_may_not_change_what_another_applied() {
    let mut desk = desk();
    desk.apply("a", json!({"image": "x"}));
    let refused = desk.refused("b", json!({"image": "y"}));
    let expected = "Apply failed with 1 conflict: conflict with \"a\": .spec.image";
    assert_eq!(refused, expected);
    assert_eq!(desk.spec()["image"], "x");
}

#[test]
fn an_applier_may_not_change_what_somebody_updated() {
    let mut desk = desk();
    desk.apply("a", json!({"replicas": 1, "image": "x", "paused": true}));
    desk.update("edit", json!({"replicas": 2, "image": "y", "paused": true}));
    let refused = desk.refused("a", json!({"replicas": 1, "image": "x", "paused": true}));
    let expected = "Apply failed with 2 conflicts: conflicts with \"edit\" using apps/v1:\n\
                    - .spec.image\n- .spec.replicas";
    assert_eq!(refused, expected);
}

#[test]
fn force_takes_over() {
    let mut desk = desk();
    desk.apply("a", json!({"replicas": 1, "image": "x"}));
    desk.force("b", json!({"image": "y"}));
    assert_eq!(*desk.owned("Apply a"), json!({"f:replicas": {}}));
    assert_eq!(*desk.owned("Apply b"), json!({"f:image": {}}));
    desk.force("c", json!({"replicas": 2}));
    assert_eq!(desk.owners(), ["Apply b", "Apply c"]);
}

#[test]
fn conflicts_of_several_owners_are_listed_by_owner() {
    let mut desk = desk();
    desk.apply("b", json!({"image": "x"}));
    desk.apply("a", json!({"replicas": 1}));
    let refused = desk.refused("c", json!({"image": "y", "replicas": 2}));
    let expected = "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.replicas\n\
                    conflicts with \"b\":\n- .spec.image";
    assert_eq!(refused, expected);
}

#[test]
fn what_nobody_kept_track_of_conflicts_at_the_first_apply() {
    let mut desk = desk();
    desk.live = Some(json!({
        "apiVersion": "apps/v1", "kind": "Thing", "metadata": {"name": "a", "uid": "u"},
        "spec": {"replicas": 1},
    }));
    let refused = desk.refused("ci", json!({"replicas": 2}));
    assert!(refused.contains("\"before-first-apply\" using apps/v1: .spec.replicas"), "{refused}");
    desk.apply("ci", json!({"replicas": 1}));
    assert_eq!(desk.owners(), ["Apply ci", "Update before-first-apply"]);
}

#[test]
fn an_appliers_entry_moves_to_the_version_it_applies_in() {
    let mut desk = desk();
    desk.apply("ci", json!({"replicas": 3, "image": "x"}));
    desk.api_version = "apps/v2";
    desk.apply("ci", json!({"replicas": 3}));
    assert_eq!(desk.owners(), ["Apply ci"]);
    assert_eq!(desk.entries()[0]["apiVersion"], "apps/v2");
    assert_eq!(*desk.spec(), json!({"replicas": 3}));
}

#[test]
fn endpoints_have_entries_of_their_own() {
    let mut desk = desk();
    desk.reset = &[&["status"]];
    let both = json!({"spec": {"replicas": 1}, "status": {"phase": "Up"}});
    desk.try_apply("ci", both.clone(), false).expect("there is no conflict");
    desk.subresource = "status";
    desk.reset = &[&["spec"]];
    desk.try_apply("ci", both, false).expect("there is no conflict");
    assert_eq!(desk.owners(), ["Apply ci", "Apply ci"]);
    let fields: Vec<&Value> = desk.entries().iter().map(|entry| &entry["fieldsV1"]).collect();
    assert!(fields.contains(&&json!({"f:spec": {"f:replicas": {}}})));
    assert!(fields.contains(&&json!({"f:status": {"f:phase": {}}})));
    desk.subresource = "";
    desk.reset = &[];
    let refused = desk.try_apply("other", json!({"status": {"phase": "Down"}}), false);
    let message = refused.expect_err("the status is owned").into_status("", "", "", "").message;
    assert!(message.contains("\"ci\" with subresource \"status\""), "{message}");
}

#[test]
fn null_is_a_value_like_any_other() {
    let mut desk = desk();
    desk.apply("a", json!({"image": null, "labels": {"x": "y"}}));
    assert_eq!(desk.spec()["image"], Value::Null);
    desk.apply("b", json!({"labels": null}));
    assert_eq!(desk.spec()["labels"], json!({"x": "y"}), "null says nothing about a map's keys");
}

#[test]
fn without_a_schema_objects_are_fields_and_lists_are_leaves() {
    let mut desk = desk();
    desk.apply("a", json!({"free": {"x": {"y": 1}, "list": [1, 2]}}));
    desk.apply("b", json!({"free": {"x": {"z": 2}}}));
    assert_eq!(desk.spec()["free"], json!({"x": {"y": 1, "z": 2}, "list": [1, 2]}));
    let expected = json!({"f:free": {"f:x": {".": {}, "f:y": {}}, "f:list": {}}});
    assert_eq!(*desk.owned("Apply a"), expected);
    let refused = desk.refused("b", json!({"free": {"list": [1]}}));
    assert!(refused.ends_with("conflict with \"a\": .spec.free.list"), "{refused}");
    desk.force("b", json!({"free": {"x": "plain"}}));
    assert_eq!(desk.spec()["free"]["x"], "plain");
}

#[test]
fn metadata_is_known_even_if_the_schema_says_nothing_about_it() {
    let mut desk = desk();
    let mut apply = |manager: &str, metadata: Value| {
        desk.try_apply(manager, json!({"metadata": metadata}), false).expect("no conflict");
    };
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "X", "name": "x", "uid": uid});
    apply(
        "a",
        json!({"finalizers": ["x/a"], "labels": {"a": "1"}, "ownerReferences": [owner("1")]}),
    );
    apply(
        "b",
        json!({"finalizers": ["x/b"], "labels": {"b": "2"}, "ownerReferences": [owner("2")]}),
    );
    let metadata = &desk.live()["metadata"];
    assert_eq!(metadata["finalizers"], json!(["x/a", "x/b"]));
    assert_eq!(metadata["labels"], json!({"a": "1", "b": "2"}));
    assert_eq!(metadata["ownerReferences"], json!([owner("1"), owner("2")]));
    let expected = json!({"f:metadata": {
        "f:finalizers": {"v:\"x/a\"": {}}, "f:labels": {"f:a": {}},
        "f:ownerReferences": {"k:{\"uid\":\"1\"}": {}},
    }});
    assert_eq!(desk.entry("Apply a")["fieldsV1"], expected);
}

#[test]
fn an_object_inside_an_object_has_metadata_too() {
    let template = json!({"embedded": true, "fields": {"spec": {"fields": {"x": "number"}}}});
    let mut desk = Desk::with_spec(json!({"template": template}));
    let with = |label: &str| {
        let metadata = json!({"labels": {label: "1"}});
        json!({"template": {"apiVersion": "v1", "kind": "P", "metadata": metadata}})
    };
    desk.apply("a", with("a"));
    desk.apply("b", with("b"));
    assert_eq!(desk.spec()["template"]["metadata"]["labels"], json!({"a": "1", "b": "1"}));
}

#[test]
fn a_field_that_became_one_leaf_is_owned_as_one() {
    let mut desk = Desk::with_spec(json!({"inner": {"fields": {"a": "text", "b": "text"}}}));
    desk.apply("a", json!({"inner": {"a": "1"}}));
    desk.apply("b", json!({"inner": {"b": "2"}}));
    let changed = json!({"inner": {"atomic": true, "fields": {"a": "text", "b": "text"}}});
    desk.schema = Desk::with_spec(changed).schema;
    desk.force("b", json!({"inner": {"b": "3"}}));
    assert_eq!(desk.spec()["inner"], json!({"b": "3"}));
    assert_eq!(desk.owners(), ["Apply b"]);
    assert_eq!(*desk.owned("Apply b"), json!({"f:inner": {}}));
}

#[test]
fn configurations_that_make_no_sense_are_refused() {
    let mut desk = desk();
    for (object, message) in [
        (json!({"metadata": {"managedFields": []}}), "metadata.managedFields must be nil"),
        (json!({"apiVersion": "apps/v9"}), "invalid object type: apps/v9, Kind=Thing"),
        (json!({"apiVersion": "v1"}), "invalid object type: /v1, Kind=Thing"),
    ] {
        let refused = desk.try_apply("a", object, false).expect_err("it makes no sense");
        assert_eq!(refused, ApplyError::BadRequest(message.to_owned()));
    }
    let refused = desk.write(|write, live| apply(write, live, &json!([]), false));
    assert!(matches!(refused, Err(ApplyError::BadRequest(_))));
    desk.try_apply("a", json!({"metadata": {"managedFields": null}}), false).expect("null is none");
}

#[test]
fn configurations_that_do_not_fit_the_schema_are_refused() {
    let mut desk = desk();
    for (spec, message) in [
        (json!({"other": 1}), "spec.other: Invalid value: field not declared in schema"),
        (
            json!({"replicas": "x"}),
            "spec.replicas: Invalid value: expected numeric (int or float), got string",
        ),
        (json!({"image": 1}), "spec.image: Invalid value: expected string, got number"),
        (json!({"paused": "x"}), "spec.paused: Invalid value: expected boolean, got string"),
        (json!({"labels": []}), "spec.labels: Invalid value: expected map, got list"),
        (json!({"port": {}}), "spec.port: Invalid value: expected any scalar, got map"),
    ] {
        let refused = desk.refused("a", spec);
        assert_eq!(refused, format!("Thing.apps \"a\" is invalid: {message}"));
    }
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn applied_by_the_client(desk: &mut Desk, spec: Value) {
    let last = desk.whole(json!({"spec": spec})).to_string();
    desk.update_object(
        "kubectl-client-side-apply",
        json!({
            "metadata": {"annotations": {LAST_APPLIED: last}}, "spec": spec,
        }),
    );
}

#[test]
fn kubectl_takes_over_what_it_applied_without_the_server() {
    let mut desk = desk();
    applied_by_the_client(&mut desk, json!({"replicas": 1, "image": "x"}));
    desk.apply("kubectl", json!({"replicas": 1, "image": "y"}));
    assert_eq!(desk.spec()["image"], "y");
    let annotation = &desk.live()["metadata"]["annotations"][LAST_APPLIED];
    let expected = desk.whole(json!({"spec": {"replicas": 1, "image": "y"}}));
    assert_eq!(*annotation, json!(format!("{expected}\n")));
}

#[test]
fn kubectl_does_not_take_over_what_others_changed_since() {
    let mut desk = desk();
    applied_by_the_client(&mut desk, json!({"replicas": 1, "image": "x"}));
    let mut object = json!({"spec": {"replicas": 5, "image": "x"}});
    object["metadata"]["annotations"] = desk.live()["metadata"]["annotations"].clone();
    desk.update_object("scaler", object);
    let refused = desk.refused("kubectl", json!({"replicas": 2, "image": "y"}));
    let expected =
        "Apply failed with 1 conflict: conflict with \"scaler\" using apps/v1: .spec.replicas";
    assert_eq!(refused, expected);
    let refused = desk.refused("other", json!({"image": "y"}));
    assert!(refused.contains("kubectl-client-side-apply"), "others do not take over: {refused}");
}

#[test]
fn an_annotation_that_grew_too_large_is_dropped() {
    let mut desk = desk();
    applied_by_the_client(&mut desk, json!({"image": "x"}));
    desk.apply("kubectl", json!({"image": "x".repeat(256 << 10)}));
    assert_eq!(desk.live()["metadata"]["annotations"], json!({}));
}
