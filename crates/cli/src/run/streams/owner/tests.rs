use super::*;
use serde_json::json;

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

fn asked() -> Asked {
    asked_of("Running")
}

fn asked_of(phase: &str) -> Asked {
    let metadata = json!({"name": "web", "namespace": "shop", "uid": "p1"});
    Asked::of(json!({"metadata": metadata, "status": {"phase": phase}})).expect("a pod")
}

fn namespace(labels: Value) -> DynamicObject {
    object(json!({"metadata": {"name": "shop", "uid": "n1", "labels": labels}}))
}

/// The grant of this namespace, in this phase, with west as its owner.
fn grant(of: &str, phase: &str, because: Value) -> Grant {
    object(json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Grant",
        "metadata": {"name": "shop-n1", "uid": "g1"},
        "spec": {"namespace": {"name": "shop", "uid": of}},
        "status": {
            "phase": phase, "epoch": 3, "because": because, "owner": {"name": "west", "uid": "w1"},
        },
    }))
}

fn cluster(uid: &str, connection: Value) -> WorkloadCluster {
    object(json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "WorkloadCluster",
        "metadata": {"name": "west", "uid": uid}, "spec": {"connection": connection},
    }))
}

fn by_west() -> Owned {
    let granted = grant("n1", "Granted", Value::Null);
    owned(&asked(), &namespace(json!({})), Some(&granted)).expect("west may run it")
}

/// What west has of it: each part of a copy that is right, with this put over it.
fn here(over: Value) -> Here {
    let mut all = json!({
        "namespace": {"metadata": {"name": "shop-n1", "annotations": {
            "interlock.dev/grant": "g1", "interlock.dev/epoch": "3",
        }}},
        "pod": {"metadata": {
            "name": "web", "uid": "p7", "labels": {"interlock.dev/grant": "shop-n1"},
            "annotations": {"interlock.dev/from": "p1/00"},
        }},
    });
    merge(&mut all, over);
    let part = |name: &str| Some(all[name].clone()).filter(|part| !part.is_null()).map(object);
    Here { namespace: part("namespace"), pod: part("pod") }
}

fn merge(into: &mut Value, over: Value) {
    match (into, over) {
        (Value::Object(into), Value::Object(over)) => {
            for (key, value) in over {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, over) => *into = over,
    }
}

fn said<T: Debug>(refused: Result<T, Status>) -> String {
    let refused = refused.expect_err("it is refused");
    assert_eq!(refused.code, 400, "{}", refused.message);
    refused.message
}

#[test]
fn the_owner_that_may_run_the_namespace_has_its_pods() {
    let owned = by_west();
    assert_eq!((owned.owner.name.as_str(), owned.epoch), ("west", 3));
    assert_eq!((owned.namespace.as_str(), owned.uid.as_str()), ("shop-n1", "g1"));
    let west = cluster("w1", json!({"logicalCluster": "west-1"}));
    let found = logical_cluster(&asked(), &owned, Some(&west));
    assert_eq!(found.expect("it is of this server"), "west-1");
    assert_eq!(made_from(&asked(), &owned, &here(json!({}))).expect("its copy"), "p7");
}

#[test]
fn a_namespace_between_two_owners_says_so_and_what_to_do() {
    for (phase, because, words) in [
        ("Unassigned", Value::Null, ["no owner yet", "interlock explain shop"]),
        ("Revoking", json!("Move"), ["is moving", "--namespace shop-n1"]),
        ("Revoking", json!("Deletion"), ["is being deleted", "namespace shop"]),
        ("Released", json!("Move"), ["is moving", "interlock status shop --watch"]),
        ("Fenced", Value::Null, ["was declared gone", "interlock status shop --watch"]),
        ("Deleting", Value::Null, ["is being deleted", "namespace shop"]),
    ] {
        let grant = grant("n1", phase, because);
        let why = said(owned(&asked(), &namespace(json!({})), Some(&grant)));
        assert!(words.iter().all(|word| why.contains(word)), "{phase}: {why}");
    }
}

#[test]
fn a_grant_of_another_namespace_is_none() {
    let other = grant("n2", "Granted", Value::Null);
    let placed = namespace(json!({"interlock.dev/placed": "true"}));
    let why = said(owned(&asked(), &placed, Some(&other)));
    assert!(why.contains("has no grant yet"), "{why}");
    let why = said(owned(&asked(), &namespace(json!({})), None));
    assert!(why.contains("kubectl label namespace shop interlock.dev/placed=true"), "{why}");
}

#[test]
fn a_cluster_outside_of_this_server_has_to_be_asked_itself() {
    let secret = json!({"kubeconfigSecret": {"namespace": "default", "name": "west"}});
    for (uid, connection, word) in [
        ("w1", secret, "outside of this server"),
        ("w1", json!({"inCluster": {}}), "outside of this server"),
        ("w1", json!({"logicalCluster": "root"}), "is the hub itself"),
        ("w2", json!({"logicalCluster": "west-1"}), "whose WorkloadCluster is gone"),
    ] {
        let west = cluster(uid, connection);
        let why = said(logical_cluster(&asked(), &by_west(), Some(&west)));
        assert!(why.contains(word), "{why}");
    }
}

#[test]
fn only_the_pod_that_was_made_from_this_one_is_reached() {
    let with = |path: &str, name: &str, value: Value| {
        let (part, field) = path.split_once('.').expect("two words");
        here(json!({part: {"metadata": {field: {name: value}}}}))
    };
    let (grant, epoch) = ("interlock.dev/grant", "interlock.dev/epoch");
    for (here, word) in [
        (here(json!({"namespace": null})), "has not arrived"),
        (with("namespace.annotations", grant, json!("g2")), "has not arrived"),
        (with("namespace.annotations", epoch, json!("2")), "has not arrived"),
        (with("pod.labels", grant, json!("other-n1")), "was not made from it"),
        (with("pod.annotations", "interlock.dev/from", json!("p2/00")), "was not made from it"),
        (here(json!({"pod": {"metadata": {"annotations": null}}})), "was not made from it"),
        (here(json!({"pod": null})), "has not started"),
    ] {
        let why = said(made_from(&asked(), &by_west(), &here));
        assert!(why.contains(word), "{word}: {why}");
    }
    let nothing = here(json!({"pod": null}));
    let why = said(made_from(&asked_of("Succeeded"), &by_west(), &nothing));
    assert!(why.contains("stays behind"), "{why}");
}
