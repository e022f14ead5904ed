//! Whole moves: hub, two clusters, their syncers, runtimes and machines.

use super::world::TestFleet;
use crate::kinds::{CLAIM, CONFIG_MAP, GRANT, NAMESPACE, POD};
use interlock_kernel::Name;
use serde_json::{Value, json};

const UID: &str = "0f3a9c1e-5b77-4c52-9d0e-2f4e6a8b1c3d";
pub(super) const GRANT_NAME: &str = "shop-0f3a9c1e";

fn at_hub(name: &str) -> Name {
    Name::within("shop", name)
}

fn here(name: &str) -> Name {
    Name::within(GRANT_NAME, name)
}

/// The same object once more, as whoever lags would write it.
fn copied(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "metadata": {"labels": metadata["labels"], "annotations": metadata["annotations"]},
        "spec": object["spec"],
    })
}

/// A world with a placed namespace, a config map and a pod in it.
pub(super) fn world() -> TestFleet {
    let mut world = TestFleet::new(&["a", "b"]);
    let namespace = json!({"metadata": {
        "uid": UID,
        "labels": {"interlock.dev/placed": "true"}, "annotations": {"interlock.dev/cluster": "a"},
    }});
    let name = Name::cluster_wide("shop");
    world.put(&NAMESPACE, name, "", namespace);
    let config = json!({"data": {"greeting": "hello"}});
    world.put(&CONFIG_MAP, at_hub("config"), "", config);
    let pod = json!({"spec": {
        "runtimeClassName": "interlock-process",
        "containers": [{"name": "main", "image": "none", "command": ["writer", "$(GREETING)"],
            "env": [{"name": "GREETING", "valueFrom":
                {"configMapKeyRef": {"name": "config", "key": "greeting"}}}]}],
    }});
    world.put(&POD, at_hub("pod"), "", pod);
    world
}

pub(super) fn set_desired(world: &mut TestFleet, cluster: &str) {
    let patch = json!({"metadata": {"annotations": {"interlock.dev/cluster": cluster}}});
    world.change("", &NAMESPACE, &Name::cluster_wide("shop"), &patch);
}

pub(super) fn grant(world: &TestFleet) -> Value {
    world.get("", &GRANT, &Name::cluster_wide(GRANT_NAME)).expect("a grant")
}

pub(super) fn status(world: &TestFleet) -> String {
    let status = &grant(world)["status"];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {} {}", word(&status["phase"]), word(&status["owner"]["name"]), status["epoch"])
}

#[test]
fn a_namespace_starts_moves_and_comes_back_and_then_nothing_is_written() {
    let mut world = world();
    world.settle();
    assert_eq!(status(&world), "Granted a 1");
    assert!(world.machines["a"].lives());
    assert_eq!(world.machines["a"].runs[0].args, [""; 0]);
    assert_eq!(world.machines["a"].runs[0].command, ["writer", "hello"]);
    assert_eq!(world.get("", &POD, &at_hub("pod")).unwrap()["status"]["phase"], "Running");

    set_desired(&mut world, "b");
    world.settle();
    assert_eq!(status(&world), "Granted b 2");
    assert!(!world.machines["a"].lives());
    assert!(world.machines["b"].lives());
    assert_eq!(world.get("a", &POD, &here("pod")), None);
    let left = world.get("a", &NAMESPACE, &Name::cluster_wide(GRANT_NAME)).unwrap();
    assert_eq!(left["metadata"]["annotations"]["interlock.dev/released"], "1");
    assert_eq!(left["metadata"]["annotations"]["interlock.dev/running"], "");

    set_desired(&mut world, "a");
    world.settle();
    assert_eq!(status(&world), "Granted a 3");
    assert!(world.machines["a"].lives());
    assert_eq!(world.settle(), 0);
}

#[test]
fn the_events_of_a_move_tell_its_story() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    world.events.clear();
    world.settle();
    let story: Vec<&str> = world.events.iter().map(|event| event.reason).collect();
    assert_eq!(story, ["Revoking", "Stopped", "Released", "Granted", "Started"]);
}

#[test]
fn a_claim_gets_a_volume_before_anything_runs_and_data_is_not_left_behind() {
    let mut world = world();
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}});
    world.put(&CLAIM, at_hub("data"), "", claim);
    world.settle();
    let made = world.get("a", &CLAIM, &here("data")).unwrap();
    assert_eq!(made["metadata"]["finalizers"], json!(["interlock.dev/keep"]));
    assert_eq!(made["metadata"]["annotations"]["interlock.dev/epoch"], "1");
    assert_eq!(grant(&world)["status"]["claims"][0]["fill"], "Filled");
    // Nothing copies data yet, so it stays where it is and runs.
    set_desired(&mut world, "b");
    world.settle();
    assert_eq!(status(&world), "Granted a 1");
    assert!(world.machines["a"].lives());
}

#[test]
fn a_claim_that_names_what_it_is_filled_from_is_never_given_an_empty_volume() {
    let mut world = world();
    let from = json!({
        "apiGroup": "volsync.backube", "kind": "ReplicationDestination", "name": "backup",
    });
    let claim = json!({"spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
        "dataSource": from, "dataSourceRef": from,
    }});
    world.put(&CLAIM, at_hub("data"), "", claim);
    world.settle();
    let made = world.get("a", &CLAIM, &here("data")).unwrap();
    assert_eq!((&made["spec"]["dataSource"], &made["spec"]["dataSourceRef"]), (&from, &from));
}

#[test]
fn a_deleted_namespace_leaves_nothing_on_the_cluster() {
    let mut world = world();
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}});
    world.put(&CLAIM, at_hub("data"), "", claim);
    world.settle();
    world.delete("", &NAMESPACE, &Name::cluster_wide("shop"));
    world.settle();
    assert_eq!(world.get("a", &NAMESPACE, &Name::cluster_wide(GRANT_NAME)), None);
    assert_eq!(world.get("a", &CLAIM, &here("data")), None);
    assert_eq!(world.get("", &NAMESPACE, &Name::cluster_wide("shop")), None);
    assert_eq!(world.get("", &GRANT, &Name::cluster_wide(GRANT_NAME)), None);
    assert!(!world.machines["a"].lives());
}

/// A standby that lags may apply a pod after its epoch was closed.
#[test]
fn a_pod_that_comes_after_its_epoch_was_closed_is_deleted_and_a_pod_of_others_is_not() {
    let mut world = world();
    world.settle();
    let late = copied(&world.get("a", &POD, &here("pod")).unwrap());
    let spec = late["spec"].clone();
    set_desired(&mut world, "b");
    world.settle();
    assert_eq!(world.get("a", &POD, &here("pod")), None);

    world.put(&POD, here("pod"), "a", late);
    world.put(&POD, here("of-somebody-else"), "a", json!({"spec": spec}));
    world.settle();
    assert!(!world.machines["a"].lives());
    assert_eq!(world.get("a", &POD, &here("pod")), None);
    assert!(world.get("a", &POD, &here("of-somebody-else")).is_some());
    assert!(world.machines["b"].lives());
    assert_eq!(status(&world), "Granted b 2");
}

#[test]
fn an_object_deleted_at_the_hub_goes_on_the_cluster_first() {
    let mut world = world();
    world.settle();
    world.delete("", &POD, &at_hub("pod"));
    assert!(world.get("", &POD, &at_hub("pod")).is_some());
    world.settle();
    assert_eq!(world.get("a", &POD, &here("pod")), None);
    assert_eq!(world.get("", &POD, &at_hub("pod")), None);
    assert!(!world.machines["a"].lives());
}

/// A standby that lags may apply a pod after it was deleted at the hub, and is gone here.
#[test]
fn a_pod_that_comes_after_it_was_deleted_at_the_hub_goes_again() {
    let mut world = world();
    world.settle();
    let late = copied(&world.get("a", &POD, &here("pod")).unwrap());
    world.delete("", &POD, &at_hub("pod"));
    world.settle();
    assert_eq!(world.get("a", &POD, &here("pod")), None);
    let spec = late["spec"].clone();
    world.put(&POD, here("pod"), "a", late);
    world.put(&POD, here("of-somebody-else"), "a", json!({"spec": spec}));
    world.settle();
    assert_eq!(world.get("a", &POD, &here("pod")), None);
    assert!(world.get("a", &POD, &here("of-somebody-else")).is_some());
    assert_eq!(world.settle(), 0);
}

#[test]
fn an_object_changed_at_the_hub_is_changed_on_the_cluster() {
    let mut world = world();
    world.settle();
    let patch = json!({"data": {"greeting": "hi"}});
    world.change("", &CONFIG_MAP, &at_hub("config"), &patch);
    world.settle();
    assert_eq!(world.get("a", &CONFIG_MAP, &here("config")).unwrap()["data"]["greeting"], "hi");
}

#[test]
fn a_pod_that_ran_to_its_end_does_not_run_again_elsewhere() {
    let mut world = world();
    world.settle();
    let patch = json!({"status": {"phase": "Succeeded"}});
    world.change("a", &POD, &here("pod"), &patch);
    world.change("", &POD, &at_hub("pod"), &patch);
    world.machines.get_mut("a").unwrap().known.clear();
    set_desired(&mut world, "b");
    world.settle();
    assert_eq!(status(&world), "Granted b 2");
    assert!(world.machines["b"].runs.is_empty());
}

#[test]
fn a_pod_says_that_it_moves_while_nobody_runs_it() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    let (scheduler, syncer) = (crate::scheduler::Scheduler::default(), world.syncer("a"));
    let runtime = crate::runtime::Runtime::new(super::world::BOOT);
    for _ in 0..60 {
        world.turn(&scheduler, "");
        world.turn(&syncer, "a");
        world.turn(&runtime, "a");
    }
    let pod = world.get("", &POD, &at_hub("pod")).unwrap();
    assert_eq!(pod["status"]["phase"], "Pending");
    assert_eq!(pod["status"]["reason"], "Moving");
    assert_eq!(pod["status"]["containerStatuses"], Value::Null);
}

#[test]
fn a_claim_deleted_at_the_hub_takes_its_volume_along() {
    let mut world = world();
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}});
    world.put(&CLAIM, at_hub("data"), "", claim);
    world.settle();
    world.delete("", &CLAIM, &at_hub("data"));
    world.settle();
    assert_eq!(world.get("a", &CLAIM, &here("data")), None);
    assert_eq!(world.get("", &CLAIM, &at_hub("data")), None);
    assert!(world.machines["a"].lives());
    assert_eq!(world.settle(), 0);
}

#[test]
fn a_claim_that_a_pod_uses_stays_until_the_pod_is_gone() {
    let mut world = world();
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}});
    world.put(&CLAIM, at_hub("data"), "", claim);
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    world.change("", &POD, &at_hub("pod"), &json!({"spec": {"volumes": volumes}}));
    world.settle();
    world.delete("", &CLAIM, &at_hub("data"));
    world.settle();
    assert!(world.get("a", &CLAIM, &here("data")).is_some());
    world.delete("", &POD, &at_hub("pod"));
    world.settle();
    assert_eq!(world.get("a", &CLAIM, &here("data")), None);
}

#[test]
fn a_revocation_whose_desired_cluster_came_back_ends_where_the_data_is() {
    let mut world = world();
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}});
    world.put(&CLAIM, at_hub("data"), "", claim);
    world.settle();
    let volume = world.get("a", &CLAIM, &here("data")).unwrap()["metadata"]["uid"].clone();
    let revoked = json!({"status": {"phase": "Revoking", "because": "Move"}});
    world.change("", &GRANT, &Name::cluster_wide(GRANT_NAME), &revoked);
    world.settle();
    assert_eq!(status(&world), "Granted a 2");
    assert_eq!(grant(&world)["status"]["pins"][0]["snapshot"]["inPlace"]["volume"], volume);
    let same = world.get("a", &CLAIM, &here("data")).unwrap();
    assert_eq!(same["metadata"]["uid"], volume);
    assert_eq!(same["metadata"]["annotations"]["interlock.dev/epoch"], "2");
    assert!(world.machines["a"].lives());
}
