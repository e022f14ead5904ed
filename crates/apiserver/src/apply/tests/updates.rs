//! Owners after creates, updates and patches.

use super::*;

fn desk() -> Desk {
    Desk::with_spec(json!({
        "replicas": "number", "image": "text", "labels": {"map": "text"},
        "inner": {"fields": {"x": "number"}},
    }))
}

#[test]
fn who_creates_owns_all_but_what_is_the_servers() {
    let mut desk = desk();
    desk.update_object(
        "curl",
        json!({
            "metadata": {"namespace": "d", "generation": 1, "labels": {"a": "b"}},
            "spec": {"replicas": 1, "inner": {"x": 1}},
        }),
    );
    assert_eq!(
        desk.entries(),
        [json!({
            "manager": "curl", "operation": "Update",
            "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "time": "2024-01-01T00:00:01Z",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {".": {}, "f:replicas": {}, "f:inner": {".": {}, "f:x": {}}},
            },
        })]
    );
}

#[test]
fn built_in_kinds_hold_some_objects_by_value_which_nobody_adds() {
    let mut desk = Desk::with_schema(&json!({"name": "io.k8s.api.apps.v1.Thing", "fields": {
        "spec": {"default": {}, "fields": {
            "replicas": "number",
            "strategy": {"default": {}, "fields": {"type": "text"}},
            "rolling": {"fields": {"max": "number"}},
        }},
    }}));
    let spec = json!({"replicas": 1, "strategy": {"type": "x"}, "rolling": {"max": 1}});
    desk.update("curl", spec);
    let expected = json!({
        "f:replicas": {}, "f:strategy": {"f:type": {}}, "f:rolling": {".": {}, "f:max": {}},
    });
    assert_eq!(*desk.owned("Update curl"), expected);
    desk.update("other", json!({"replicas": 1}));
    assert_eq!(desk.owners(), ["Update curl"], "the strategy is empty now, but not gone");
}

#[test]
fn who_changes_a_field_owns_it() {
    let mut desk = desk();
    desk.apply("ci", json!({"replicas": 1, "image": "x"}));
    desk.update("scaler", json!({"replicas": 2, "image": "x"}));
    assert_eq!(*desk.owned("Apply ci"), json!({"f:image": {}}));
    assert_eq!(*desk.owned("Update scaler"), json!({"f:replicas": {}}));
    assert_eq!(desk.entry("Apply ci")["time"], "2024-01-01T00:00:01Z");
}

#[test]
fn what_is_gone_has_no_owner_and_an_owner_of_nothing_no_entry() {
    let mut desk = desk();
    desk.update("a", json!({"replicas": 1, "labels": {"x": "1"}}));
    desk.update("b", json!({"replicas": 1, "labels": {"x": "1", "y": "2"}}));
    desk.update("c", json!({"replicas": 1, "labels": {"x": "1"}}));
    assert_eq!(desk.owners(), ["Update a"]);
}

#[test]
fn an_update_that_changes_nothing_changes_no_entry() {
    let mut desk = desk();
    desk.update("a", json!({"replicas": 1}));
    let before = desk.live().clone();
    desk.update("a", json!({"replicas": 1}));
    desk.update("b", json!({"replicas": 1}));
    assert_eq!(*desk.live(), before);
}

#[test]
fn updates_of_one_manager_add_up_by_version_and_endpoint() {
    let mut desk = desk();
    desk.update("a", json!({"replicas": 1}));
    desk.update("a", json!({"replicas": 1, "image": "x"}));
    assert_eq!(desk.owners(), ["Update a"]);
    assert_eq!(desk.entries()[0]["time"], "2024-01-01T00:00:02Z");
    desk.api_version = "apps/v2";
    desk.update("a", json!({"replicas": 2, "image": "x"}));
    desk.subresource = "scale";
    desk.update("a", json!({"replicas": 3, "image": "x"}));
    let of = |entry: &Value| (entry["apiVersion"].clone(), entry["subresource"].clone());
    let ids: Vec<(Value, Value)> = desk.entries().iter().map(of).collect();
    let none = || Value::Null;
    assert_eq!(ids, [(json!("apps/v1"), none()), (json!("apps/v2"), json!("scale"))]);
}

#[test]
fn an_endpoint_owns_only_what_it_writes() {
    let mut desk = desk();
    desk.reset = &[&["status"]];
    desk.update_object("a", json!({"spec": {"replicas": 1}, "status": {"phase": "Up"}}));
    let expected = json!({"f:spec": {".": {}, "f:replicas": {}}});
    assert_eq!(desk.entries()[0]["fieldsV1"], expected);
}

#[test]
fn an_empty_list_or_entry_forgets_all_owners_until_the_next_apply() {
    for forget in [json!([]), json!([{}]), json!([{"manager": "", "time": null}])] {
        let mut desk = desk();
        desk.apply("ci", json!({"replicas": 1}));
        desk.update_object(
            "a",
            json!({"metadata": {"managedFields": forget}, "spec": {"replicas": 2}}),
        );
        assert_eq!(desk.live()["metadata"].get("managedFields"), None);
        desk.update("a", json!({"replicas": 3}));
        assert_eq!(desk.live()["metadata"].get("managedFields"), None);
        desk.apply("ci", json!({"replicas": 3}));
        assert_eq!(desk.owners(), ["Apply ci", "Update before-first-apply"]);
    }
}

#[test]
fn a_create_that_asks_to_forget_is_tracked() {
    let mut desk = desk();
    desk.update_object("a", json!({"metadata": {"managedFields": [{}]}, "spec": {"replicas": 1}}));
    assert_eq!(desk.owners(), ["Update a"]);
}

#[test]
fn a_client_may_send_entries_of_its_own() {
    let mut desk = desk();
    desk.apply("ci", json!({"replicas": 1}));
    let mut entries = desk.live()["metadata"]["managedFields"].clone();
    entries[0]["manager"] = json!("renamed");
    entries[0]["time"] = json!("2023-12-31T23:00:00-01:00");
    let object = json!({"metadata": {"managedFields": entries}, "spec": {"replicas": 1}});
    desk.update_object("a", object.clone());
    assert_eq!(desk.owners(), ["Apply renamed"]);
    assert_eq!(desk.entries()[0]["time"], "2024-01-01T00:00:00Z");
    let mut desk = self::desk();
    desk.apply("ci", json!({"replicas": 1}));
    desk.subresource = "status";
    desk.update_object("a", object);
    assert_eq!(desk.owners(), ["Apply ci"], "the status endpoint does not write metadata");
}

#[test]
fn entries_that_cannot_be_read_leave_those_that_are_there() {
    for broken in [json!([{"manager": "x"}]), json!([1]), json!("x"), json!([{}, {}]), Value::Null]
    {
        let mut desk = desk();
        desk.apply("ci", json!({"replicas": 1}));
        desk.update_object(
            "a",
            json!({"metadata": {"managedFields": broken}, "spec": {"replicas": 1}}),
        );
        assert_eq!(desk.owners(), ["Apply ci"]);
    }
}

#[test]
fn more_than_ten_updaters_are_folded_together() {
    let mut desk = desk();
    desk.apply("ci", json!({"image": "x"}));
    for count in 1..=13 {
        let labels: serde_json::Map<String, Value> =
            (1..=count).map(|label| (format!("l{label:02}"), json!("1"))).collect();
        desk.update(&format!("m{count:02}"), json!({"image": "x", "labels": labels}));
    }
    let owners = desk.owners();
    assert_eq!(owners.len(), 11);
    assert_eq!(owners[..3], ["Apply ci", "Update ancient-changes", "Update m05"]);
    let folded = json!({"f:labels": {".": {}, "f:l01": {}, "f:l02": {}, "f:l03": {}, "f:l04": {}}});
    assert_eq!(*desk.owned("Update ancient-changes"), folded);
}

#[test]
fn a_value_that_changes_its_sort_changes_its_owner() {
    let mut desk = Desk::with_spec(json!({"free": "any"}));
    desk.update("a", json!({"free": {"x": {"y": 1}}}));
    desk.update("b", json!({"free": {"x": [1]}}));
    assert_eq!(*desk.owned("Update b"), json!({"f:free": {"f:x": {}}}));
    assert_eq!(*desk.owned("Update a"), json!({".": {}, "f:free": {}}));
    desk.update("c", json!({"free": {"x": {"z": 1}}}));
    assert_eq!(*desk.owned("Update c"), json!({"f:free": {"f:x": {".": {}, "f:z": {}}}}));
    assert_eq!(*desk.owned("Update b"), Value::Null);
}
