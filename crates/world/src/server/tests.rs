//! The canonical form: what it drops, and what it must not drop.

use super::*;
use interlock_kernel::GroupVersion;

const KIND: Kind = Kind::cluster_wide(GroupVersion::new("test", "v1"), "Thing", "things");

fn servers() -> Servers {
    Servers::new(String::new(), false)
}

/// The server on which an object is the only one.
fn server_with(servers: &Servers, object: Value) -> u32 {
    servers.put(servers.empty(), &KIND, &Name::cluster_wide("a"), object)
}

fn thing(patch: &Value) -> Value {
    let mut object = json!({
        "metadata": {"finalizers": ["x", "y"], "labels": {"l": "1"}},
        "spec": {"list": ["x", "y"]},
        "status": {"conditions": [
            {"type": "Ready", "status": "True"}, {"type": "Filled", "status": "False"},
        ]},
    });
    merge(&mut object, patch);
    object
}

#[test]
fn objects_that_mean_the_same_are_one_version() {
    let servers = servers();
    let plain = server_with(&servers, thing(&json!({})));
    for same in [
        json!({"metadata": {"finalizers": ["y", "x"]}}),
        json!({"metadata": {"annotations": {}}}),
        json!({"status": {"conditions": [
            {"type": "Filled", "status": "False"}, {"type": "Ready", "status": "True"},
        ]}}),
    ] {
        assert_eq!(server_with(&servers, thing(&same)), plain, "{same}");
    }
    let bare = server_with(&servers, json!({"metadata": {}, "spec": {}}));
    let empty = json!({"finalizers": [], "labels": {}, "annotations": {}});
    for same in [
        json!({"spec": {}}),
        json!({"metadata": empty, "spec": {}}),
        json!({"spec": {}, "status": {}}),
        json!({"spec": {}, "status": {"conditions": []}}),
    ] {
        assert_eq!(server_with(&servers, same.clone()), bare, "{same}");
    }
}

#[test]
fn objects_that_mean_different_things_are_different_versions() {
    let servers = servers();
    let all = [
        json!({}),
        json!({"metadata": {"finalizers": ["x"]}}),
        json!({"metadata": {"labels": {"l": ""}}}),
        json!({"metadata": {"annotations": {"l": "1"}}}),
        // Of all other lists the order counts, and what is empty elsewhere is there.
        json!({"spec": {"list": ["y", "x"]}}),
        json!({"spec": {"list": []}}),
        json!({"spec": {"list": null}}),
        json!({"status": {"claims": []}}),
        json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        json!({"status": {"conditions": [
            {"type": "Ready", "status": "False"}, {"type": "Filled", "status": "False"},
        ]}}),
    ];
    let made: Vec<u32> = all.iter().map(|patch| server_with(&servers, thing(patch))).collect();
    for (place, server) in made.iter().enumerate() {
        let first = made.iter().position(|other| other == server);
        assert_eq!(first, Some(place), "{} is as {:?}", all[place], first.map(|it| &all[it]));
    }
}

#[test]
fn what_is_shown_otherwise_is_the_same_version_and_keeps_its_number() {
    let name = Name::cluster_wide("a");
    let shown = |servers: &Servers| {
        let server = server_with(servers, thing(&json!({"metadata": {"labels": null}})));
        let version = servers.find(server, &KIND, &name);
        let object = servers.object(version).expect("it is there");
        // To write what was seen changes nothing.
        let seen = serde_json::to_value(&*object).expect("an object");
        let patch = json!({"metadata": {"finalizers": seen["metadata"]["finalizers"]},
            "status": {"conditions": seen["status"]["conditions"]}});
        assert_eq!(servers.change(server, &KIND, &name, &patch), server);
        object
    };
    let (plain, other) = (shown(&servers()), shown(&servers().showing_otherwise()));
    assert_eq!(plain.metadata.resource_version, other.metadata.resource_version);
    assert_eq!(plain.metadata.labels, None);
    assert_eq!(other.metadata.labels, Some(BTreeMap::new()));
    let finalizers = |object: &Object| object.metadata.finalizers.clone().unwrap_or_default();
    assert_eq!(
        (finalizers(&plain), finalizers(&other)),
        (vec!["x".to_owned(), "y".to_owned()], vec!["y".to_owned(), "x".to_owned()],)
    );
    let first = |object: &Object| object.data["status"]["conditions"][0]["type"].clone();
    assert_eq!((first(&plain), first(&other)), (json!("Filled"), json!("Ready")));
}
