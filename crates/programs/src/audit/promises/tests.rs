//! Each promise is broken once, and holds for the same story told right.

use super::*;
use interlock_kernel::RecordedEffect;
use serde_json::json;

/// A step with one write, which was done.
fn step(controller: &str, subject: &str, decision: Value, facts: Value) -> Record {
    let effect = RecordedEffect {
        action: "patch".to_owned(),
        place: Some("hub".to_owned()),
        kind: None,
        name: Some(subject.to_owned()),
        uid: Some(format!("uid-of-{subject}")),
        seen: Some("1".to_owned()),
        now: Some("2".to_owned()),
    };
    Record {
        time: jiff::Timestamp::UNIX_EPOCH,
        number: 1,
        controller: controller.to_owned(),
        at: [("hub".to_owned(), "hub".to_owned())].into(),
        subject: subject.to_owned(),
        view: String::new(),
        same: 0,
        because: String::new(),
        effect: Some(effect),
        end: End::Done,
        facts,
        decision,
    }
}

fn syncer(cluster: &str, decision: Value) -> Record {
    let facts = json!({"at": {"grant": "shop", "cluster": cluster}});
    step("placement/syncer", "shop", decision, facts)
}

fn scheduler(decision: Value) -> Record {
    step("placement/scheduler", "shop", json!({"Grant": decision}), json!({"Grant": {}}))
}

fn fence(epoch: i64) -> Record {
    step("placement/fencing", "shop", json!({"Fence": []}), json!({"epoch": epoch}))
}

fn attach(term: &str, tenant: &str, epoch: i64) -> Record {
    let entry = json!({"tag": {"tenant": tenant, "node": "n1", "epoch": epoch}});
    let decision = json!({"Attach": {"term": term, "given": {"port": "p1", "entry": entry}}});
    outside(step("nodes/attach", "a", decision, json!({})))
}

fn outside(mut record: Record) -> Record {
    if let Some(effect) = &mut record.effect {
        effect.place = None;
    }
    record
}

fn port(decision: Value) -> Record {
    outside(step("nodes/dpu", "p1", decision, json!({})))
}

fn bind(claim: &str) -> Record {
    let facts = json!({"Claim": {"tenant": {"uid": "red"}}});
    let mut record = step("nodes/claims", "n1", json!({"Claim": {"Bind": ["n1", 7]}}), facts);
    claim.clone_into(&mut record.subject);
    record
}

fn call(owner: &str, call: Value) -> Record {
    let decision = json!({"Call": [{"Arn": "role-a"}, call]});
    outside(step("identities/role", owner, decision, json!({"owner": {"uid": owner}})))
}

fn turn(decision: Value) -> Record {
    let facts = json!({"turns": [{"uid": "first"}, {"uid": "second"}]});
    step("turns/turn", "west", decision, facts)
}

/// The first step of a story that a promise does not allow.
fn broken(promise: Promise, story: &[Record]) -> Option<(usize, String)> {
    let mut keeper = (promise.keeper)();
    story.iter().enumerate().find_map(|(place, step)| Some((place, keeper.hear(step).err()?)))
}

fn holds(promise: Promise, story: &[Record]) {
    assert_eq!(broken(promise, story), None, "{}", promise.sentence);
}

fn breaks(promise: Promise, story: &[Record], words: &str) {
    let (place, what) = broken(promise, story).expect("the promise is broken");
    assert_eq!(place + 1, story.len(), "{what}");
    assert!(what.contains(words), "{what}");
}

#[test]
fn two_clusters_with_a_permit_are_found() {
    let (west, east) = (json!({"Permit": 1}), json!({"Permit": 2}));
    let promise = placement::ONE_PERMIT;
    holds(
        promise,
        &[
            syncer("west", west.clone()),
            syncer("west", json!("Withdraw")),
            syncer("east", east.clone()),
        ],
    );
    holds(promise, &[syncer("west", west.clone()), fence(1), syncer("east", east.clone())]);
    breaks(
        promise,
        &[syncer("west", west.clone()), syncer("east", east.clone())],
        "while epoch 1 is permitted on west",
    );
    // A forced release of an earlier epoch takes nothing from this one.
    breaks(promise, &[syncer("west", west), fence(0), syncer("east", east)], "on west");
}

#[test]
fn a_permit_that_nobody_knows_of_is_no_alarm() {
    let unknown = Record { end: End::Unknown, ..syncer("west", json!({"Permit": 1})) };
    let refused = Record { end: End::Conflict, ..syncer("west", json!("Withdraw")) };
    let east = syncer("east", json!({"Permit": 2}));
    holds(placement::ONE_PERMIT, &[unknown, east.clone()]);
    let story = [syncer("west", json!({"Permit": 1})), refused, east];
    breaks(placement::ONE_PERMIT, &story, "on west");
}

#[test]
fn a_grant_that_is_given_twice_is_found() {
    let give = || scheduler(json!({"Grant": {"to": 0}}));
    let promise = placement::ONE_OWNER;
    holds(promise, &[give(), syncer("west", json!({"Acknowledge": []})), give()]);
    holds(promise, &[give(), fence(1), give(), scheduler(json!("DeleteGrant")), give()]);
    breaks(promise, &[give(), syncer("west", json!("Withdraw")), give()], "not handed over since");
}

#[test]
fn an_epoch_that_goes_back_is_found() {
    let at = |cluster: &str, epoch: i64| syncer(cluster, json!({"Permit": epoch}));
    let promise = placement::EPOCHS_GROW;
    holds(promise, &[at("west", 1), at("west", 1), at("east", 2)]);
    holds(promise, &[at("west", 5), scheduler(json!("DeleteGrant")), at("east", 1)]);
    breaks(promise, &[at("west", 2), at("east", 1)], "after epoch 2 was on west");
    breaks(promise, &[at("west", 1), at("east", 1)], "after epoch 1 was on west");
}

/// A step of the populator of west about a claim, with a write to a snapshot or a claim.
fn populator(claim: &str, decision: &str, target: &str, facts: Value) -> Record {
    let facts = json!({"Claim": facts});
    let step = step("volumes/populator", claim, json!({"Claim": decision}), facts);
    on_west(step, Some(target))
}

fn on_west(mut record: Record, target: Option<&str>) -> Record {
    record.at = [("cluster".to_owned(), "west".to_owned())].into();
    if let (Some(effect), Some(target)) = (&mut record.effect, target) {
        effect.name = Some(target.to_owned());
    }
    record
}

fn hold(claim: &str) -> Record {
    populator(claim, "Hold", "shop/s1", json!({}))
}

fn drop_hold(claim: &str, is_fresh: bool, prime: &str) -> Record {
    populator(claim, "DropHold", "shop/s1", json!({"is_fresh": is_fresh, "prime": prime}))
}

/// The storage deletes the data of snapshot s1: as its facts have it, somebody holds it, or nobody does.
fn delete_data(is_held: bool) -> Record {
    let facts = json!({"Snapshot": {"is_deleting": true, "is_held": is_held}});
    let decision = json!({"Snapshot": "Delete"});
    on_west(outside(step("volumes/storage-snapshot", "shop/s1", decision, facts)), None)
}

#[test]
fn a_snapshot_that_is_deleted_under_a_claim_that_is_filled_from_it_is_found() {
    let promise = volumes::HELD_STAYS;
    let dropped = || drop_hold("shop/data", true, "None");
    holds(promise, &[hold("shop/data"), dropped(), delete_data(false)]);
    breaks(promise, &[hold("shop/data"), delete_data(true)], "while claim west shop/data holds it");
    // A claim that lets go of it speaks for itself only.
    let story = [hold("shop/data"), hold("shop/other"), dropped(), delete_data(true)];
    breaks(promise, &story, "while claim west shop/other holds it");
    // A snapshot that nobody deleted, and one of which only a cache says that it is gone.
    let mut alive = delete_data(false);
    alive.facts["Snapshot"]["is_deleting"] = json!(false);
    breaks(promise, &[hold("shop/data"), alive], "holds it");
    let mut orphan = delete_data(false);
    orphan.decision = json!({"Orphan": "DeleteSnapshot"});
    orphan.facts = json!({"Orphan": {"is_left_for_certain": false}});
    breaks(promise, &[hold("shop/data"), orphan.clone()], "holds it");
    // It is not the snapshot of that name on another cluster.
    let mut east = hold("shop/data");
    east.at = [("cluster".to_owned(), "east".to_owned())].into();
    holds(promise, &[east, delete_data(true)]);
}

#[test]
fn what_a_person_takes_from_a_claim_that_is_filled_is_no_alarm() {
    // The finalizer of the hold was removed by hand.
    holds(volumes::HELD_STAYS, &[hold("shop/data"), delete_data(false)]);
    // The temporary claim was deleted by hand.
    let pour = populator("shop/data", "Pour", "shop/prime-1", json!({}));
    holds(volumes::HELD_WHILE_FILLED, &[pour, drop_hold("shop/data", true, "None")]);
    // The whole claim was deleted, and nobody knows whether its finalizer is still there.
    let unmark = populator("shop/data", "UnmarkDeleted", "shop/data", json!({}));
    let unmark = Record { end: End::Unknown, ..unmark };
    holds(volumes::HELD_STAYS, &[hold("shop/data"), unmark, delete_data(true)]);
}

#[test]
fn a_hold_that_is_dropped_while_the_claim_is_filled_is_found() {
    let promise = volumes::HELD_WHILE_FILLED;
    let pour = || populator("shop/data", "Pour", "shop/prime-1", json!({}));
    let words = "may be filled from the snapshot";
    holds(promise, &[hold("shop/data"), drop_hold("shop/data", true, "Pending")]);
    breaks(promise, &[pour(), drop_hold("shop/data", true, "Pending")], words);
    // Only a live read shows that the temporary claim is gone.
    breaks(promise, &[pour(), drop_hold("shop/data", false, "None")], words);
    let conflict = Record { end: End::Conflict, ..drop_hold("shop/data", true, "Pending") };
    holds(promise, &[pour(), conflict, drop_hold("shop/data", true, "None")]);
}

#[test]
fn a_port_for_two_tenants_is_found() {
    let isolate =
        json!({"Isolate": {"port": {"port": "p1", "term": "t1"}, "node": "n1", "floor": 1}});
    let promise = nodes::ONE_TENANT;
    holds(promise, &[attach("t1", "red", 1), port(isolate), attach("t1", "blue", 2)]);
    holds(promise, &[attach("t1", "red", 1), attach("t2", "blue", 2)]);
    let detach = step("nodes/attach", "a", json!({"Detach": {"term": "t1"}}), json!({}));
    holds(promise, &[attach("t1", "red", 1), detach, attach("t1", "blue", 2)]);
    breaks(promise, &[attach("t1", "red", 1), attach("t1", "blue", 2)], "open for tenant red");
}

#[test]
fn a_port_that_is_opened_under_its_floor_is_found() {
    let isolate =
        json!({"Isolate": {"port": {"port": "p1", "term": "t1"}, "node": "n1", "floor": 3}});
    holds(nodes::FLOORS_HOLD, &[port(isolate.clone()), attach("t1", "red", 4)]);
    breaks(nodes::FLOORS_HOLD, &[port(isolate), attach("t1", "red", 3)], "all up to 3 are revoked");
}

#[test]
fn a_machine_with_two_claims_is_found() {
    let back = step("nodes/pool", "n1", json!({"Node": {"Return": "Free"}}), json!({}));
    holds(nodes::BOUND_ONCE, &[bind("a"), back, bind("b")]);
    breaks(nodes::BOUND_ONCE, &[bind("a"), bind("b")], "a of tenant red has it");
}

#[test]
fn two_workers_on_one_resource_are_found() {
    let trust = json!({"UpdateAssumeRolePolicy": {"trust": "{}"}});
    let create = json!({"CreateRole": {"trust": "{}"}});
    let done = step(
        "identities/role",
        "a",
        json!({"RemoveFinalizer": "Retained"}),
        json!({"owner": {"uid": "a"}}),
    );
    let promise = identities::ONE_WORKER;
    holds(
        promise,
        &[call("a", create.clone()), call("a", trust.clone()), call("b", create.clone())],
    );
    holds(promise, &[call("a", create.clone()), done, call("b", trust.clone())]);
    breaks(promise, &[call("a", create), call("b", trust)], "it is changed for a");
}

#[test]
fn two_updates_of_a_cluster_are_found() {
    let update = |decision: Value| step("rollouts/conductor", "west", decision, json!({}));
    let promise = rollouts::ONE_ACTIVE;
    holds(promise, &[update(json!("Start")), update(json!("Succeed")), update(json!("Start"))]);
    let gives_up = update(json!({"GiveUp": ["FirstInstall", true]}));
    holds(promise, &[update(json!("Start")), gives_up, update(json!("Start"))]);
    let story =
        [update(json!("Start")), update(json!({"RollBack": ["x", false]})), update(json!("Start"))];
    breaks(promise, &story, "has not ended");
}

#[test]
fn two_turns_of_a_cluster_are_found() {
    let (first, second) = (json!({"Give": 0}), json!({"Give": 1}));
    let story = [turn(first.clone()), turn(json!("TakeBack")), turn(second.clone())];
    holds(turns::ONE_TURN, &story);
    breaks(turns::ONE_TURN, &[turn(first), turn(second)], "first has it");
}

#[test]
fn every_promise_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = all().iter().map(|it| it.name).collect();
    assert_eq!(names.len(), all().len());
}
