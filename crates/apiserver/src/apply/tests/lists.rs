//! Sets, keyed lists, and what is one leaf.

use super::*;

fn desk() -> Desk {
    Desk::with_spec(json!({
        "hosts": {"set": "text"},
        "sizes": {"set": "number"},
        "args": {"list": "text"},
        "selector": {"atomic": true, "fields": {"labels": {"map": "text"}}},
        "limits": {"atomic": true, "map": "text"},
        "containers": {"by": ["name"], "keyed": {"fields": {
            "name": "text", "image": "text", "tag": "text",
            "ports": {"by": ["port", "protocol"], "keyed": {"fields": {
                "port": "number", "protocol": {"scalar": "text", "default": "TCP"}, "name": "text",
            }}},
        }}},
        "routes": {"by": ["host", "path"], "keyed": {"fields": {
            "host": "text", "path": "text", "to": "text",
        }}},
        "byName": {"map": {"fields": {"a": "text", "b": "text"}}},
    }))
}

#[test]
fn each_applier_has_its_own_values_of_a_set() {
    let mut desk = desk();
    desk.apply("a", json!({"hosts": ["x", "y"]}));
    desk.apply("b", json!({"hosts": ["z", "y"]}));
    assert_eq!(desk.spec()["hosts"], json!(["x", "z", "y"]));
    assert_eq!(*desk.owned("Apply b"), json!({"f:hosts": {"v:\"y\"": {}, "v:\"z\"": {}}}));
    desk.apply("a", json!({"hosts": ["x"]}));
    assert_eq!(desk.spec()["hosts"], json!(["x", "z", "y"]), "somebody else has y too");
    desk.apply("b", json!({"hosts": ["z"]}));
    assert_eq!(desk.spec()["hosts"], json!(["x", "z"]));
}

#[test]
fn a_number_is_the_same_with_and_without_a_point() {
    let mut desk = desk();
    desk.apply("a", json!({"sizes": [1, 2.0]}));
    assert_eq!(*desk.owned("Apply a"), json!({"f:sizes": {"v:1": {}, "v:2": {}}}));
    desk.apply("b", json!({"sizes": [1.0, 2]}));
    assert_eq!(desk.spec()["sizes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn elements_of_a_keyed_list_are_merged_by_their_keys() {
    let mut desk = desk();
    desk.apply("a", json!({"containers": [{"name": "web", "image": "x"}]}));
    desk.apply("b", json!({"containers": [{"name": "log"}, {"name": "web", "tag": "1"}]}));
    let expected = json!([{"name": "log"}, {"name": "web", "image": "x", "tag": "1"}]);
    assert_eq!(desk.spec()["containers"], expected);
    let expected = json!({"f:containers": {
        "k:{\"name\":\"log\"}": {".": {}, "f:name": {}},
        "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:tag": {}},
    }});
    assert_eq!(*desk.owned("Apply b"), expected);
    desk.apply("b", json!({"containers": [{"name": "log"}]}));
    let expected = json!([{"name": "log"}, {"name": "web", "image": "x"}]);
    assert_eq!(desk.spec()["containers"], expected);
}

#[test]
fn an_element_that_somebody_added_to_stays_with_what_they_added() {
    let mut desk = desk();
    desk.apply("a", json!({"containers": [{"name": "web", "image": "x"}]}));
    desk.update("edit", json!({"containers": [{"name": "web", "image": "x", "tag": "1"}]}));
    desk.apply("a", json!({"containers": []}));
    assert_eq!(desk.spec()["containers"], json!([]), "the element itself was the applier's");
    let mut desk = self::desk();
    desk.apply("a", json!({"containers": [{"name": "web", "image": "x"}]}));
    desk.apply("b", json!({"containers": [{"name": "web", "tag": "1"}]}));
    desk.try_apply("a", json!({}), false).expect("no conflict");
    assert_eq!(desk.spec()["containers"], json!([{"name": "web", "tag": "1"}]));
}

#[test]
fn a_missing_key_has_its_default() {
    let mut desk = desk();
    let ports = |ports: Value| json!({"containers": [{"name": "web", "ports": ports}]});
    desk.apply("a", ports(json!([{"port": 80, "name": "http"}])));
    desk.apply(
        "b",
        ports(json!([{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}])),
    );
    let expected = json!([
        {"port": 80, "protocol": "TCP", "name": "http"}, {"port": 80, "protocol": "UDP"},
    ]);
    assert_eq!(desk.spec()["containers"][0]["ports"], expected);
    let owned = &desk.owned("Apply a")["f:containers"]["k:{\"name\":\"web\"}"]["f:ports"];
    let expected = json!({
        "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}},
    });
    assert_eq!(*owned, expected);
}

#[test]
fn a_missing_key_without_a_default_is_another_element() {
    let mut desk = desk();
    desk.apply("a", json!({"routes": [{"host": "x", "to": "1"}]}));
    desk.apply("b", json!({"routes": [{"host": "x", "path": "/", "to": "2"}]}));
    assert_eq!(desk.spec()["routes"].as_array().map(Vec::len), Some(2));
    let refused = desk.refused("c", json!({"routes": [{"to": "3"}]}));
    assert!(
        refused.contains(
            "spec.routes: Invalid value: element 0: associative list with keys \
        has an element that omits all key fields [\"host\" \"path\"]"
        ),
        "{refused}"
    );
}

#[test]
fn an_element_may_not_be_named_twice() {
    let mut desk = desk();
    let refused = desk.refused("a", json!({"containers": [{"name": "web"}, {"name": "web"}]}));
    let expected = "spec.containers: Duplicate value: duplicate entries for key [name=\"web\"]";
    assert!(refused.ends_with(expected), "{refused}");
    let refused = desk.refused("a", json!({"hosts": ["x", "x"]}));
    assert!(refused.ends_with("duplicate entries for key [=\"x\"]"), "{refused}");
}

#[test]
fn elements_without_a_name_are_refused() {
    let mut desk = desk();
    for spec in [
        json!({"hosts": [null]}),
        json!({"hosts": [{}]}),
        json!({"hosts": [[]]}),
        json!({"containers": [null]}),
        json!({"containers": ["web"]}),
    ] {
        let refused = desk.refused("a", spec);
        assert!(refused.contains("element 0: "), "{refused}");
    }
    let refused = desk.refused("a", json!({"hosts": "x"}));
    assert!(refused.ends_with("spec.hosts: Invalid value: expected list, got string"), "{refused}");
}

#[test]
fn elements_that_an_update_doubled_are_one_leaf_and_an_apply_replaces_them() {
    let mut desk = desk();
    desk.update(
        "edit",
        json!({"containers": [
            {"name": "web", "image": "x"}, {"name": "web", "image": "y"}, {"name": "log"},
        ]}),
    );
    let owned = &desk.owned("Update edit")["f:containers"]["k:{\"name\":\"web\"}"];
    assert_eq!(*owned, json!({}));
    desk.force("a", json!({"containers": [{"name": "web", "image": "z"}]}));
    let expected = json!([{"name": "web", "image": "z"}, {"name": "log"}]);
    assert_eq!(desk.spec()["containers"], expected);
}

#[test]
fn what_is_one_leaf_is_replaced_and_owned_as_a_whole() {
    for (field, one, other) in [
        ("args", json!(["a"]), json!(["b"])),
        ("selector", json!({"labels": {"a": "1"}}), json!({"labels": {"b": "2"}})),
        ("limits", json!({"cpu": "1"}), json!({"memory": "2"})),
    ] {
        let mut desk = desk();
        desk.apply("a", json!({field: one}));
        assert_eq!(*desk.owned("Apply a"), json!({format!("f:{field}"): {}}));
        let refused = desk.refused("b", json!({field: other}));
        assert!(refused.ends_with(&format!("conflict with \"a\": .spec.{field}")), "{refused}");
        desk.force("b", json!({field: other}));
        assert_eq!(desk.spec()[field], other);
        assert_eq!(desk.owners(), ["Apply b"]);
    }
}

#[test]
fn conflicts_name_elements_by_their_keys() {
    let mut desk = desk();
    let with = |name: &str| {
        let ports = json!([{"port": 80, "name": name}]);
        json!({"containers": [{"name": "web", "ports": ports}]})
    };
    desk.apply("a", with("x"));
    let refused = desk.refused("b", with("y"));
    let path = ".spec.containers[name=\"web\"].ports[port=80,protocol=\"TCP\"].name";
    assert!(refused.ends_with(path), "{refused}");
}

#[test]
fn keys_of_a_map_are_owned_with_what_is_below() {
    let mut desk = desk();
    desk.apply("a", json!({"byName": {"x": {"a": "1"}, "y": {}}}));
    let expected = json!({"f:byName": {"f:x": {".": {}, "f:a": {}}, "f:y": {}}});
    assert_eq!(*desk.owned("Apply a"), expected);
    desk.apply("b", json!({"byName": {"x": {"b": "2"}}}));
    desk.apply("a", json!({"byName": {"y": {}}}));
    assert_eq!(desk.spec()["byName"], json!({"x": {"b": "2"}, "y": {}}));
}
