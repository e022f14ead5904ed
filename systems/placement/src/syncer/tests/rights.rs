//! A start waits for the cloud roles of its namespace, and says for which.

use super::moves::{GRANT_NAME, grant, set_desired, status, world};
use super::world::TestFleet;
use crate::kinds::{GRANT, WORKLOAD_CLUSTER};
use interlock_kernel::Name;
use interlock_kernel::testing::condition;
use serde_json::{Value, json};

/// The identities system writes the rights of the roles of the namespace.
fn write_rights(world: &mut TestFleet, rights: &Value) {
    let patch = json!({"status": {"rights": rights}});
    world.change("", &GRANT, &Name::cluster_wide(GRANT_NAME), &patch);
}

fn role(epoch: i64, state: &str, because: &str) -> Value {
    json!({"uid": "uid-app", "name": "app", "epoch": epoch, "state": state, "because": because})
}

/// A world in which every cluster's issuer is known, and the namespace runs on a with one role.
fn running() -> TestFleet {
    let mut world = world();
    for cluster in ["a", "b"] {
        let name = Name::cluster_wide(cluster);
        let found = world.get("", &WORKLOAD_CLUSTER, &name).expect("a cluster");
        let mut conditions = found["status"]["conditions"].clone();
        let ready = json!({"type": "IssuerReady", "status": "True", "reason": "Provider",
            "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"});
        conditions.as_array_mut().expect("conditions").push(ready);
        let patch = json!({"status": {"conditions": conditions}});
        world.change("", &WORKLOAD_CLUSTER, &name, &patch);
    }
    world.settle();
    write_rights(&mut world, &json!([role(1, "Ready", "")]));
    world.settle();
    world
}

fn rights_ready(world: &TestFleet) -> (String, String) {
    let grant = grant(world);
    let found = condition(&grant, "RightsReady");
    let word = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (word("status"), word("message"))
}

#[test]
fn a_move_starts_only_when_every_role_trusts_the_new_owner() {
    let mut world = running();
    assert_eq!(rights_ready(&world).0, "True");
    set_desired(&mut world, "b");
    world.settle();
    assert_eq!(status(&world), "Granted b 2");
    assert!(!world.machines["a"].lives() && !world.machines["b"].lives());
    let (ready, message) = rights_ready(&world);
    assert_eq!(ready, "False");
    assert!(
        message.starts_with("cluster b is not trusted for epoch 2 yet by role app; "),
        "{message}"
    );
    assert!(message.contains("awaitRights: false"), "{message}");

    write_rights(&mut world, &json!([role(2, "Waiting", "the cloud does not answer")]));
    world.settle();
    assert!(!world.machines["b"].lives());
    let message = rights_ready(&world).1;
    assert!(message.contains("by role app (the cloud does not answer);"), "{message}");

    let other = json!({"uid": "uid-2", "name": "backup", "epoch": 2, "state": "Fenced"});
    write_rights(&mut world, &json!([role(2, "Ready", ""), other]));
    world.settle();
    assert!(!world.machines["b"].lives(), "one of two is not enough");
    assert!(rights_ready(&world).1.contains("by role backup;"), "{}", rights_ready(&world).1);

    write_rights(&mut world, &json!([role(2, "Ready", "")]));
    world.settle();
    assert!(world.machines["b"].lives());
    let said = ("True".to_owned(), "every cloud role trusts cluster b for epoch 2".to_owned());
    assert_eq!(rights_ready(&world), said);
    assert_eq!(world.settle(), 0, "then nothing is written");
}

#[test]
fn rights_of_another_epoch_let_nothing_start() {
    for (epoch, state) in [(1, "Ready"), (3, "Ready"), (2, "Waiting"), (2, "Fenced")] {
        let mut world = running();
        set_desired(&mut world, "b");
        write_rights(&mut world, &json!([role(epoch, state, "")]));
        world.settle();
        assert_eq!(status(&world), "Granted b 2");
        assert!(!world.machines["b"].lives(), "{epoch} {state}");
        assert_eq!(rights_ready(&world).0, "False");
    }
}

#[test]
fn who_does_not_wait_for_rights_starts_and_says_what_is_missing() {
    let mut world = running();
    let patch = json!({"spec": {"awaitRights": false}});
    set_desired(&mut world, "b");
    let placement = json!({"spec": {"awaitRights": false}});
    world.put(&crate::kinds::PLACEMENT, Name::cluster_wide("p"), "", placement);
    world.change("", &GRANT, &Name::cluster_wide(GRANT_NAME), &patch);
    world.settle();
    assert!(world.machines["b"].lives());
    let said =
        ("False".to_owned(), "cluster b is not trusted for epoch 2 yet by role app".to_owned());
    assert_eq!(rights_ready(&world), said);
    assert_eq!(world.settle(), 0);
}

#[test]
fn a_role_that_is_deleted_while_it_is_awaited_lets_the_namespace_start() {
    let mut world = running();
    set_desired(&mut world, "b");
    world.settle();
    assert!(!world.machines["b"].lives());
    write_rights(&mut world, &json!([]));
    world.settle();
    assert!(world.machines["b"].lives());
    assert_eq!(rights_ready(&world).0, "True");
    assert_eq!(world.settle(), 0);
}

#[test]
fn a_namespace_without_roles_has_no_such_condition() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    world.settle();
    assert!(world.machines["b"].lives());
    assert!(condition(&grant(&world), "RightsReady").is_null());
}
