//! Heartbeats, and clusters that stay while they have something.

use super::*;
use crate::testing::{cluster, grant, grant_in, grant_of, granted, reference};
use interlock_kernel::Controller;
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use serde_json::{Value, json};

fn settled(objects: Vec<Value>) -> (TestServers, Run<Nothing>) {
    let mut world = TestServers::of(&Clusters::default()).with(objects);
    let run = world.settle(&Clusters::default(), &mut NoMachine, "a");
    (world, run)
}

fn a(world: &TestServers) -> Value {
    world.json(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("a"))
}

fn beating(sequence: i64, patch: Value) -> Value {
    let mut object = cluster("a", json!({"status": {"conditions": null}}));
    object["status"]["heartbeat"] = json!({"sequence": sequence});
    patched(object, &patch)
}

fn beat(world: &mut TestServers, sequence: i64) {
    let change = json!({"status": {"heartbeat": {"sequence": sequence}}});
    world.change(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("a"), &change);
}

fn is(world: &TestServers, kind: &str) -> String {
    condition(&a(world), kind)["status"].as_str().unwrap_or("absent").to_owned()
}

fn terminating() -> Value {
    json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})
}

fn superseded(namespace: &str) -> Value {
    let copies = json!([{"cluster": reference("a"), "epoch": 3, "state": "Superseded"}]);
    granted(namespace, "b", json!({"status": {"copies": copies}}))
}

#[test]
fn a_new_cluster_is_held_before_it_can_be_ready() {
    let new = cluster("a", json!({"metadata": {"finalizers": null}, "status": null}));
    let (world, run) = settled(vec![new]);
    assert_eq!(a(&world)["metadata"]["finalizers"], json!(["interlock.dev/live-grants"]));
    assert_eq!(condition(&a(&world), "Reachable")["reason"], "NeverHeard");
    assert_eq!((run.writes.len(), run.waits_seconds), (2, None));
}

#[test]
fn a_cluster_that_is_deleted_stays_while_a_grant_is_about_to_be_its_own() {
    let to_come =
        |status| grant("shop", json!({"spec": {"target": reference("a")}, "status": status}));
    let (world, _) =
        settled(vec![cluster("a", terminating()), to_come(json!({"phase": "Released"}))]);
    assert!(!a(&world).is_null());
    let (world, _) =
        settled(vec![cluster("a", terminating()), to_come(json!({"phase": "Deleting"}))]);
    assert!(a(&world).is_null());
}

#[test]
fn a_heartbeat_is_noted_in_one_write_with_all_that_follows() {
    let (mut world, run) = settled(vec![beating(4, json!({})), granted("shop", "a", json!({}))]);
    let status = &a(&world)["status"];
    assert_eq!(status["heartbeat"]["receivedAt"], "1970-01-12T13:46:40Z");
    assert_eq!(status["heartbeat"]["receivedSequence"], 4);
    assert_eq!(status["heartbeat"]["sequence"], 4);
    assert_eq!(status["grants"], 1);
    assert_eq!((is(&world, "Reachable"), is(&world, "Ready")), ("True".into(), "True".into()));
    assert_eq!((run.writes.len(), run.waits_seconds), (1, Some(40)));
    world.put(Place::HUB, granted("more", "a", json!({})));
    world.pass(10);
    assert!(
        world.settle(&Clusters::default(), &mut NoMachine, "a").writes.is_empty(),
        "a grant alone is not worth a write"
    );
    beat(&mut world, 5);
    assert_eq!(world.settle(&Clusters::default(), &mut NoMachine, "a").writes.len(), 1);
    assert_eq!(a(&world)["status"]["grants"], 2);
}

#[test]
fn silence_is_reported_once_and_ends_with_the_next_heartbeat() {
    let (mut world, _) = settled(vec![beating(4, json!({}))]);
    world.pass(39);
    let run = world.settle(&Clusters::default(), &mut NoMachine, "a");
    assert_eq!((run.writes.len(), run.waits_seconds), (0, Some(1)));
    world.pass(1);
    let run = world.settle(&Clusters::default(), &mut NoMachine, "a");
    assert_eq!((run.writes.len(), run.waits_seconds), (1, None));
    assert_eq!((is(&world, "Reachable"), is(&world, "Ready")), ("False".into(), "False".into()));
    world.pass(3600);
    assert!(world.settle(&Clusters::default(), &mut NoMachine, "a").writes.is_empty());
    // A syncer that was started anew counts from the beginning: that it changed is enough.
    beat(&mut world, 1);
    world.settle(&Clusters::default(), &mut NoMachine, "a");
    assert_eq!(is(&world, "Reachable"), "True");
}

#[test]
fn how_long_it_may_be_silent_can_be_said() {
    let clusters = Clusters::unreachable_after(3);
    let mut world = TestServers::of(&clusters).with([beating(4, json!({}))]);
    assert_eq!(world.settle(&clusters, &mut NoMachine, "a").waits_seconds, Some(3));
    world.pass(2);
    world.settle(&clusters, &mut NoMachine, "a");
    assert_eq!(is(&world, "Reachable"), "True");
    world.pass(1);
    world.settle(&clusters, &mut NoMachine, "a");
    assert_eq!(is(&world, "Reachable"), "False");
}

#[test]
fn a_clock_that_was_set_back_does_not_keep_a_dead_cluster_alive() {
    let (mut world, _) = settled(vec![beating(4, json!({}))]);
    world.pass(-86_400);
    world.settle(&Clusters::default(), &mut NoMachine, "a");
    world.pass(40);
    world.settle(&Clusters::default(), &mut NoMachine, "a");
    assert_eq!(is(&world, "Reachable"), "False");
}

#[test]
fn a_runtime_that_is_down_keeps_new_grants_away_and_an_unknown_one_does_not() {
    let runtime = |status: &str| {
        let told = json!([{
            "type": "RuntimeReady", "status": status, "reason": "x", "message": "",
            "lastTransitionTime": "2001-01-01T00:00:00Z",
        }]);
        let (world, _) = settled(vec![beating(4, json!({"status": {"conditions": told}}))]);
        assert_eq!(is(&world, "RuntimeReady"), status, "what the syncer says stays");
        (is(&world, "Reachable"), is(&world, "Ready"))
    };
    assert_eq!(runtime("False"), ("True".into(), "False".into()));
    assert_eq!(runtime("Unknown"), ("True".into(), "True".into()));
}

#[test]
fn a_cluster_that_is_being_deleted_stays_while_it_has_something_and_names_it() {
    let (world, _) = settled(vec![
        beating(4, terminating()),
        granted("shop", "a", json!({})),
        superseded("blog"),
    ]);
    let cluster = a(&world);
    let emptied = condition(&cluster, "Emptied");
    let message = emptied["message"].as_str().unwrap_or_default();
    assert_eq!(emptied["status"], "False");
    for wanted in [
        format!("the cluster owns 1 grant ({})", grant_of("shop")),
        "the Superseded copy of namespace blog of epoch 3 can be deleted".to_owned(),
    ] {
        assert!(message.contains(&wanted), "{wanted}: {message}");
    }
    assert_eq!(emptied["next"], "interlock move --all-from a");
    let (world, _) = settled(vec![beating(4, terminating()), superseded("blog")]);
    let forget = format!("interlock.dev/forget-copies=uid-{}", grant_of("blog"));
    let next = format!("kubectl annotate workloadcluster a {forget}");
    assert_eq!(condition(&a(&world), "Emptied")["next"], next);
}

#[test]
fn a_cluster_that_is_being_deleted_is_let_go_when_a_live_read_shows_nothing_left() {
    let mut world = TestServers::of(&Clusters::default()).with([beating(4, json!({}))]);
    world.settle(&Clusters::default(), &mut NoMachine, "a");
    world.change(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("a"), &terminating());
    let step = Clusters::default().step(&Subject::from("a"), &world.view(), &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    let mut live_reads = LiveReads::default();
    let truth = TestServers::of(&Clusters::default()).with([superseded("blog")]);
    live_reads.lists.insert((Place::HUB, GRANT, None), truth.list(Place::HUB, &GRANT, None));
    let step = Clusters::default().step(&Subject::from("a"), &world.view(), &live_reads);
    assert!(matches!(step, Step::Rest { .. }), "the cache is behind: {step:?}");
    world.settle(&Clusters::default(), &mut NoMachine, "a");
    assert!(a(&world).is_null());
}

#[test]
fn a_person_can_give_up_a_copy_and_the_annotation_is_removed_when_it_is_done() {
    let name = grant_of("blog");
    let forget = json!({"interlock.dev/forget-copies": format!("uid-{name}")});
    let live = json!({"cluster": reference("b"), "epoch": 7, "state": "Live"});
    let mut blog = superseded("blog");
    if let Some(copies) = blog["status"]["copies"].as_array_mut() {
        copies.push(live.clone());
    }
    let (world, run) =
        settled(vec![beating(4, json!({"metadata": {"annotations": forget}})), blog]);
    let copies = &grant_in(&world, &name)["status"]["copies"];
    assert_eq!(*copies, json!([live]));
    assert_eq!(a(&world)["metadata"]["annotations"], json!({}));
    assert_eq!(run.events[0].reason, "CopyForgotten");
    assert_eq!(run.writes.len(), 3, "stamp, copy, annotation");
}

#[test]
fn the_copy_of_an_owner_is_never_forgotten() {
    let name = grant_of("shop");
    let forget = json!({"interlock.dev/forget-copies": format!("uid-{name}")});
    let (world, run) = settled(vec![
        beating(4, json!({"metadata": {"annotations": forget}})),
        granted("shop", "a", json!({})),
    ]);
    assert_eq!(grant_in(&world, &name)["status"]["copies"][0]["state"], "Live");
    assert_eq!(run.events[0].reason, "ForgetRefused");
    assert_eq!(a(&world)["metadata"]["annotations"], json!({}));
}

#[test]
fn a_grant_wakes_only_clusters_that_go_or_are_to_forget() {
    let wakes = |patch: Value| {
        let world = TestServers::of(&Clusters::default())
            .with([beating(4, patch), granted("shop", "a", json!({}))]);
        let found = world.get(Place::HUB, &GRANT, &Name::cluster_wide(&grant_of("shop")));
        let watch = Watch::all(Place::HUB, &GRANT);
        Clusters::default().subjects(&watch, &found.expect("a grant"), &world.view()).len()
    };
    assert_eq!(wakes(json!({})), 0);
    assert_eq!(wakes(terminating()), 1);
    assert_eq!(
        wakes(json!({"metadata": {"annotations": {"interlock.dev/forget-copies": "x"}}})),
        1
    );
}

fn asked_by(requesters: &[&str]) -> Value {
    let drain = |requester: &&str| json!({"requester": requester, "reason": "an update"});
    json!({"spec": {"drains": requesters.iter().map(drain).collect::<Vec<_>>()}})
}

#[test]
fn a_cluster_says_to_each_who_asked_that_it_is_empty_and_takes_that_back_with_the_drain() {
    let (mut world, run) = settled(vec![beating(4, asked_by(&["rollouts/1"]))]);
    assert_eq!(a(&world)["status"]["drained"], json!(["rollouts/1"]));
    assert_eq!(is(&world, "Drained"), "True");
    assert_eq!(run.writes.len(), 2, "the heartbeat, and that it is empty");
    let name = Name::cluster_wide("a");
    let both = asked_by(&["nodes/n/3", "rollouts/1"]);
    world.change(Place::HUB, &WORKLOAD_CLUSTER, &name, &both);
    world.settle(&Clusters::default(), &mut NoMachine, "a");
    assert_eq!(a(&world)["status"]["drained"], json!(["nodes/n/3", "rollouts/1"]));
    world.change(Place::HUB, &WORKLOAD_CLUSTER, &name, &asked_by(&["nodes/n/3"]));
    world.settle(&Clusters::default(), &mut NoMachine, "a");
    assert_eq!(a(&world)["status"]["drained"], json!(["nodes/n/3"]));
    world.change(Place::HUB, &WORKLOAD_CLUSTER, &name, &json!({"spec": {"drains": null}}));
    world.settle(&Clusters::default(), &mut NoMachine, "a");
    assert_eq!(a(&world)["status"]["drained"], json!([]));
    assert_eq!(is(&world, "Drained"), "absent");
}

#[test]
fn a_cluster_that_is_drained_names_what_keeps_it_and_is_woken_when_that_goes() {
    let in_place = json!({"snapshot": {"inPlace": {"cluster": reference("a"), "volume": "v"}}});
    for (kept, wanted) in [
        (granted("shop", "a", json!({})), "the cluster owns 1 grant"),
        (
            grant("shop", json!({"spec": {"target": reference("a")}})),
            "the cluster is the target of 1 grant, or has their data",
        ),
        (
            grant("shop", json!({"status": {"phase": "Released", "pins": [in_place]}})),
            "the cluster is the target of 1 grant, or has their data",
        ),
    ] {
        let (mut world, _) = settled(vec![beating(4, asked_by(&["rollouts/1"])), kept]);
        let cluster = a(&world);
        let found = condition(&cluster, "Drained");
        assert_eq!((&found["status"], &found["reason"]), (&json!("False"), &json!("GrantsLeft")));
        let message = found["message"].as_str().unwrap_or_default();
        assert!(message.contains(wanted) && message.contains(&grant_of("shop")), "{message}");
        assert!(a(&world)["status"]["drained"].is_null());
        world.put(Place::HUB, granted("shop", "b", json!({})));
        let moved = world.get(Place::HUB, &GRANT, &Name::cluster_wide(&grant_of("shop")));
        let watch = Watch::all(Place::HUB, &GRANT);
        let woken =
            Clusters::default().subjects(&watch, &moved.expect("it is there"), &world.view());
        assert!(woken.contains(&Subject::from("a")), "{woken:?}");
        world.settle(&Clusters::default(), &mut NoMachine, "a");
        assert_eq!(is(&world, "Drained"), "True");
    }
}

/// Between the list and the write somebody else may have asked, and the cluster was free in between.
#[test]
fn a_list_of_grants_counts_only_if_the_cluster_is_as_it_was_before_the_list() {
    let (world, _) = settled(vec![beating(4, json!({}))]);
    let name = Name::cluster_wide("a");
    let before = world.get(Place::HUB, &WORKLOAD_CLUSTER, &name);
    let mut world = world;
    world.change(Place::HUB, &WORKLOAD_CLUSTER, &name, &asked_by(&["rollouts/1"]));
    let step = Clusters::default().step(&Subject::from("a"), &world.view(), &LiveReads::default());
    let Step::LiveRead { reads, .. } = step else { panic!("{step:?}") };
    assert_eq!(reads.len(), 2, "the cluster first, then the grants: {reads:?}");
    let read = |cluster| {
        let mut live_reads = LiveReads::default();
        live_reads.objects.insert(super::observe::address("a"), cluster);
        live_reads.lists.insert((Place::HUB, GRANT, None), Vec::new());
        Clusters::default().step(&Subject::from("a"), &world.view(), &live_reads)
    };
    let as_seen = world.get(Place::HUB, &WORKLOAD_CLUSTER, &name);
    assert!(matches!(read(as_seen), Step::Act(_)));
    let writes = |step: Step<Nothing>| match step {
        Step::Act(effect) => format!("{effect:?}").contains("\"drained\""),
        _ => false,
    };
    assert!(!writes(read(before)) && !writes(read(None)));
}

#[test]
fn broken_objects_do_not_break_it() {
    let name = grant_of("blog");
    let mut patch = terminating();
    patch["metadata"]["annotations"] =
        json!({"interlock.dev/forget-copies": format!("uid-{name}")});
    patch["status"] = json!({"heartbeat": {
        "sequence": 4, "receivedSequence": 4, "receivedAt": "1970-01-12T13:46:30Z",
    }});
    let objects = [
        beating(4, patch),
        granted("shop", "a", json!({})),
        superseded("blog"),
        grant("x", json!({})),
        grant("y", json!({"status": {"pins": [{"snapshot": 3}]}})),
    ];
    survives(&Clusters::default(), &NoMachine, &objects);
}
