//! The rows of the scheduler's table, its bad inputs, and who is woken.

use super::*;

mod ambiguity;
mod rights;
mod waking;

use crate::testing::{
    claim, cluster, grant, grant_in, grant_of, granted, listed, namespace, pin, reference,
    unreachable,
};
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Action, Controller, Write};
use serde_json::json;

const HELD: &str = "interlock.dev/grant";

fn world(objects: Vec<Value>) -> TestServers {
    TestServers::of(&Scheduler::default()).with(objects)
}

fn shop(patch: Value) -> Value {
    let object = namespace("shop", json!({"metadata": {"finalizers": [HELD]}}));
    patched(object, &patch)
}

fn asking_for(cluster: &str) -> Value {
    shop(json!({"metadata": {"annotations": {"interlock.dev/cluster": cluster}}}))
}

fn settled(objects: Vec<Value>) -> (TestServers, Run<Nothing>) {
    let mut world = world(objects);
    let run = world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    (world, run)
}

/// The status of the condition Placed, and its reason.
fn placed(world: &TestServers) -> (String, String, String) {
    let grant = grant_in(world, &grant_of("shop"));
    let placed = condition(&grant, "Placed");
    let word = |key: &str| placed[key].as_str().unwrap_or_default().to_owned();
    (word("status"), word("reason"), word("message"))
}

#[test]
fn a_new_namespace_is_held_gets_a_grant_and_goes_to_the_emptiest_cluster() {
    let (world, run) = settled(vec![
        namespace("shop", json!({})),
        cluster("a", json!({})),
        cluster("b", json!({})),
        granted("other", "a", json!({})),
    ]);
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(grant["status"]["owner"], reference("b"));
    assert_eq!(grant["status"]["epoch"], 1);
    assert_eq!(grant["status"]["phase"], "Granted");
    assert_eq!(
        grant["status"]["copies"],
        json!([{"cluster": reference("b"), "epoch": 1, "state": "Live"}])
    );
    assert_eq!(run.writes.len(), 4, "finalizer, grant, target, granted: {:?}", run.writes);
    assert_eq!(run.events.last().map(|event| event.reason), Some("Granted"));
    assert_eq!(placed(&world).0, "True");
}

#[test]
fn a_grant_at_rest_costs_no_write() {
    let (mut world, _) = settled(vec![namespace("shop", json!({})), cluster("a", json!({}))]);
    let again = world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    assert!(again.writes.is_empty(), "{:?}", again.writes);
}

#[test]
fn a_claim_is_listed_only_once_it_cannot_vanish() {
    let free = json!({"metadata": {"finalizers": []}});
    let terminating = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    let (world, _) = settled(vec![
        shop(json!({})),
        cluster("a", json!({})),
        claim("shop", "free", free),
        claim("shop", "going", terminating),
        claim("shop", "held", json!({})),
    ]);
    let status = &grant_in(&world, &grant_of("shop"))["status"];
    assert_eq!(status["claims"], json!([listed("held", "Waiting")]));
    assert_eq!(status["pins"][0]["snapshot"], json!({"fresh": {}}));
    assert_eq!(status["pins"][0]["claimUID"], "uid-held");
}

#[test]
fn a_move_is_revoked_and_waits_for_the_owner() {
    let (world, run) = settled(vec![
        asking_for("b"),
        cluster("a", json!({})),
        cluster("b", json!({})),
        granted("shop", "a", json!({})),
    ]);
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(grant["spec"]["target"], reference("b"));
    assert_eq!(grant["status"]["phase"], "Revoking");
    assert_eq!(grant["status"]["because"], "Move");
    assert_eq!(grant["status"]["epoch"], 7);
    assert_eq!(grant["status"]["owner"], reference("a"));
    assert_eq!(run.events[0].reason, "Revoking");
    assert!(
        run.rests.contains("cluster a stops the namespace and hands it over to cluster b"),
        "{}",
        run.rests
    );
}

/// A namespace with a claim, on its way from `a` to `b`, where data can be carried.
fn moving_to_b(clusters: [Value; 2], status: Value) -> (TestServers, Run<Nothing>) {
    let scheduler = Scheduler::new(Limits { moves: 50, can_copy: true });
    let grant = json!({"spec": {"target": reference("b")}, "status": status});
    let mut objects =
        vec![asking_for("b"), claim("shop", "data", json!({})), granted("shop", "a", grant)];
    objects.extend(clusters);
    let mut world = TestServers::of(&scheduler).with(objects);
    let run = world.settle(&scheduler, &mut NoMachine, &grant_of("shop"));
    (world, run)
}

#[test]
fn a_released_grant_goes_to_its_target_and_the_old_copy_is_kept() {
    let superseded = json!([{"cluster": reference("a"), "epoch": 7, "state": "Superseded"}]);
    let snapshot = json!({"restic": {"secret": "s", "snapshotID": "x"}});
    let old = pin("data", &json!({"restic": {"secret": "s", "snapshotID": "old"}}));
    let mut claimed = listed("data", "Filled");
    claimed["lastSnapshot"] = old;
    let released = json!({
        "phase": "Released", "copies": superseded, "claims": [claimed],
        "pins": [pin("data", &snapshot)],
        "conditions": [{
            "type": "Running", "status": "True", "reason": "x", "message": "",
            "lastTransitionTime": "2001-01-01T00:00:00Z",
        }],
    });
    let clusters = [cluster("a", json!({})), cluster("b", json!({}))];
    let (world, _) = moving_to_b(clusters, released);
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(grant["status"]["owner"], reference("b"));
    assert_eq!(grant["status"]["epoch"], 8);
    assert_eq!(grant["status"]["copies"].as_array().map(Vec::len), Some(2));
    assert_eq!(grant["status"]["pins"][0]["snapshot"], snapshot);
    assert_eq!(grant["status"]["claims"], json!([listed("data", "Waiting")]), "no older snapshot");
    assert!(condition(&grant, "Running").is_null(), "the next owner does not run yet");
}

#[test]
fn data_that_stayed_in_place_goes_back_to_where_it_is() {
    let in_place = json!({"inPlace": {"cluster": reference("a"), "volume": "v"}});
    let (world, _) = settled(vec![
        asking_for("a"),
        cluster("a", json!({})),
        cluster("b", json!({})),
        claim("shop", "data", json!({})),
        granted(
            "shop",
            "a",
            json!({"status": {
                "phase": "Released", "claims": [listed("data", "Filled")],
                "pins": [pin("data", &in_place)],
                "copies": [{"cluster": reference("a"), "epoch": 7, "state": "Superseded"}],
            }}),
        ),
    ]);
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(grant["status"]["epoch"], 8);
    assert_eq!(grant["status"]["owner"], reference("a"));
    assert_eq!(
        grant["status"]["copies"],
        json!([{"cluster": reference("a"), "epoch": 8, "state": "Live"}])
    );
}

/// A namespace that is to be on `b`, and whose data was left in place on `a`.
fn left_on_a(patch: Value, copies: Value) -> (TestServers, Run<Nothing>) {
    let class = json!({"name": "x", "canSnapshot": true, "isDefault": true});
    let in_place = json!({"inPlace": {"cluster": reference("a"), "volume": "v"}});
    let has_class = json!({"status": {"storageClasses": [class]}});
    let clusters = [patched(cluster("a", has_class.clone()), &patch), cluster("b", has_class)];
    let released = json!({
        "phase": "Released", "claims": [listed("data", "Filled")],
        "pins": [pin("data", &in_place)], "copies": copies,
    });
    moving_to_b(clusters, released)
}

#[test]
fn data_that_stayed_in_place_is_fetched_from_a_cluster_that_takes_nothing_new() {
    let copy = || json!([{"cluster": reference("a"), "epoch": 7, "state": "Superseded"}]);
    let terminating = || json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    let ways = [
        json!({"spec": {"unschedulable": true}}),
        json!({"spec": {"drain": true}}),
        drained(),
        terminating(),
    ];
    for way in ways {
        let (world, run) = left_on_a(way.clone(), copy());
        let grant = grant_in(&world, &grant_of("shop"));
        assert_eq!(grant["status"]["owner"], reference("a"), "{way}: {}", run.rests);
        // It came only to leave.
        assert_eq!(grant["status"]["phase"], "Revoking", "{way}: {}", run.rests);
        assert_eq!(grant["spec"]["target"], reference("b"), "{way}");
    }
    // Nothing goes back to where nobody answers, nor to what may be gone any moment.
    let silent = json!([{"type": "Reachable", "status": "False", "reason": "HeartbeatOld",
        "message": "", "lastTransitionTime": "2001-01-01T00:00:00Z"}]);
    let silent = patched(terminating(), &json!({"status": {"conditions": silent}}));
    for (way, copies) in [(silent, copy()), (terminating(), json!([]))] {
        let (world, run) = left_on_a(way.clone(), copies);
        let grant = grant_in(&world, &grant_of("shop"));
        assert_eq!(grant["status"]["phase"], "Released", "{way}: {}", run.rests);
        assert_eq!(grant["status"]["epoch"], 7, "{way}");
    }
}

#[test]
fn a_claim_that_was_used_and_has_no_snapshot_never_begins_empty() {
    let (world, run) = settled(vec![
        shop(json!({})),
        cluster("a", json!({})),
        claim("shop", "data", json!({})),
        granted(
            "shop",
            "a",
            json!({"status": {"phase": "Released", "claims": [listed("data", "Filled")]}}),
        ),
    ]);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["phase"], "Released");
    assert_eq!(placed(&world).1, "DataElsewhere", "{}", run.rests);
}

#[test]
fn data_is_not_stopped_where_nothing_can_carry_it() {
    let class = json!({"name": "x", "canSnapshot": true, "isDefault": true});
    let fresh = pin("data", &json!({"fresh": {}}));
    let (world, run) = settled(vec![
        asking_for("b"),
        cluster("a", json!({})),
        cluster("b", json!({"status": {"storageClasses": [class]}})),
        claim("shop", "data", json!({})),
        granted(
            "shop",
            "a",
            json!({"status": {"claims": [listed("data", "Filled")], "pins": [fresh]}}),
        ),
    ]);
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(grant["status"]["phase"], "Granted");
    assert_eq!(placed(&world).1, "NeedsCopy");
    assert_eq!(run.events.last().map(|event| event.reason), Some("MoveDelayed"));
}

#[test]
fn data_goes_where_both_clusters_have_storage_that_snapshots_can_be_taken_of() {
    let class = |can: bool| {
        let class = json!({"name": "x", "canSnapshot": can, "isDefault": true});
        json!({"status": {"storageClasses": [class]}})
    };
    let after = |owner: bool, target: bool| {
        let fresh = pin("data", &json!({"fresh": {}}));
        let (world, _) = settled(vec![
            asking_for("b"),
            cluster("a", class(owner)),
            cluster("b", class(target)),
            claim("shop", "data", json!({})),
            granted(
                "shop",
                "a",
                json!({"status": {"claims": [listed("data", "Filled")], "pins": [fresh]}}),
            ),
        ]);
        let phase = grant_in(&world, &grant_of("shop"))["status"]["phase"].clone();
        (phase, placed(&world).1)
    };
    assert_eq!(after(true, true), (json!("Revoking"), "Moving".to_owned()));
    assert_eq!(after(false, true), (json!("Granted"), "NeedsCopy".to_owned()));
    assert_eq!(after(true, false), (json!("Granted"), "DesiredClusterDoesNotFit".to_owned()));
}

#[test]
fn an_unknown_cluster_is_answered_with_the_nearest_names() {
    let (world, run) = settled(vec![
        asking_for("eu-wst"),
        cluster("eu-west", json!({})),
        cluster("moon", json!({})),
        granted("shop", "moon", json!({})),
    ]);
    let (status, reason, message) = placed(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "UnknownCluster"));
    assert!(message.contains("the namespace stays on cluster moon"), "{message}");
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(condition(&grant, "Placed")["next"], "interlock move shop --to eu-west");
    assert_eq!(grant["status"]["phase"], "Granted");
    assert_eq!(run.writes.len(), 1);
}

#[test]
fn every_cluster_that_does_not_fit_is_named_with_its_reason() {
    let gold = json!({"spec": {"storageClassName": "gold"}});
    let (world, _) = settled(vec![
        shop(json!({})),
        claim("shop", "data", gold),
        cluster("a", unreachable()),
        cluster("b", json!({"spec": {"unschedulable": true}})),
        cluster("c", json!({"spec": {"drain": true}})),
        cluster("d", json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})),
        cluster("e", json!({"status": {"storageClasses": [{"name": "silver"}]}})),
        grant("shop", json!({})),
    ]);
    let (_, reason, message) = placed(&world);
    assert_eq!(reason, "NoneFits");
    for wanted in [
        "a: NotReady",
        "b: Unschedulable",
        "c: Draining",
        "d: Deleting",
        "e: StorageClassMissing, the cluster has no storage class gold",
    ] {
        assert!(message.contains(wanted), "{wanted}: {message}");
    }
}

#[test]
fn what_must_be_copied_needs_room_and_snapshots_at_the_target() {
    let restic = json!({"restic": {"secret": "s", "snapshotID": "x"}});
    let fits = |class: Value| {
        let controller = Scheduler::new(Limits { moves: 50, can_copy: true });
        let mut world = TestServers::of(&controller).with(vec![
            shop(json!({})),
            claim("shop", "data", json!({"spec": {"storageClassName": "gold"}})),
            cluster("a", json!({"status": {"storageClasses": [class]}})),
            grant(
                "shop",
                json!({"status": {
                    "phase": "Released", "claims": [listed("data", "Filled")],
                    "pins": [pin("data", &restic)],
                }}),
            ),
        ]);
        let run = world.settle(&controller, &mut NoMachine, &grant_of("shop"));
        (placed(&world).2, run.waits_seconds)
    };
    let (message, waits) = fits(json!({"name": "gold", "canSnapshot": true, "freeBytes": 1049}));
    assert!(message.contains("TooSmall"), "{message}");
    assert!(waits.is_some(), "room comes without a word");
    let (message, _) = fits(json!({"name": "gold", "canSnapshot": false}));
    assert!(message.contains("CannotSnapshot"), "{message}");
    let (message, _) = fits(json!({"name": "gold", "canSnapshot": true, "freeBytes": 1050}));
    assert!(message.contains("cluster a owns the namespace"), "{message}");
}

#[test]
fn a_storage_class_is_looked_for_under_its_other_name() {
    let placement = json!({
        "kind": "Placement", "metadata": {"name": "p", "uid": "uid-p"},
        "spec": {"volumes": {"storageClasses": {"gold": "fast"}}},
    });
    let (world, _) = settled(vec![
        shop(json!({})),
        placement,
        claim("shop", "data", json!({"spec": {"storageClassName": "gold"}})),
        cluster("a", json!({"status": {"storageClasses": [{"name": "fast"}]}})),
    ]);
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(grant["status"]["owner"], reference("a"));
    assert_eq!(grant["spec"]["volumes"]["storageClasses"], json!({"gold": "fast"}));
}

#[test]
fn a_raw_device_is_refused_by_every_cluster() {
    let (world, _) = settled(vec![
        shop(json!({})),
        claim("shop", "disk", json!({"spec": {"volumeMode": "Block"}})),
        cluster("a", json!({})),
    ]);
    assert!(placed(&world).2.contains("a: BlockVolume, claim disk"), "{:?}", placed(&world));
}

#[test]
fn a_desired_cluster_by_name_wins_over_any_placement() {
    let (world, _) = settled(vec![
        asking_for("a"),
        json!({
            "kind": "Placement", "metadata": {"name": "p", "uid": "uid-p"},
            "spec": {"clusterSelector": {"matchLabels": {"region": "eu"}}},
        }),
        cluster("a", json!({})),
        cluster("b", json!({"metadata": {"labels": {"region": "eu"}}})),
    ]);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["owner"], reference("a"));
}

#[test]
fn what_a_placement_says_anew_reaches_the_grant() {
    let before = json!({"volumes": {"storageClasses": {"gold": "fast"}, "syncSchedule": "@daily"}});
    let (world, run) = settled(vec![
        shop(json!({})),
        json!({
            "kind": "Placement", "metadata": {"name": "p", "uid": "uid-p"},
            "spec": {"volumes": {"keepSuperseded": "1h"}},
        }),
        cluster("a", json!({})),
        granted("shop", "a", json!({"spec": before})),
    ]);
    let volumes = &grant_in(&world, &grant_of("shop"))["spec"]["volumes"];
    assert_eq!(volumes["keepSuperseded"], "1h");
    assert_eq!(volumes["storageClasses"], json!({}));
    assert!(volumes["syncSchedule"].is_null());
    assert_eq!(run.writes.len(), 2, "the policy, and the condition");
}

#[test]
fn a_drained_cluster_is_left_for_one_that_fits_and_not_before_there_is_one() {
    let draining = cluster("a", json!({"spec": {"drain": true}}));
    let grant = granted("shop", "a", json!({}));
    let (world, _) = settled(vec![shop(json!({})), draining.clone(), grant.clone()]);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["phase"], "Granted");
    assert_eq!(placed(&world).1, "NoneFits");
    let (world, _) = settled(vec![shop(json!({})), draining, cluster("b", json!({})), grant]);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["because"], "Drain");
}

#[test]
fn a_move_waits_for_its_place_and_is_woken_when_one_is_free() {
    let controller = Scheduler::new(Limits { moves: 1, can_copy: false });
    let mut world = TestServers::of(&controller).with(vec![
        asking_for("b"),
        cluster("a", json!({})),
        cluster("b", json!({})),
        granted("shop", "a", json!({})),
        granted("other", "a", json!({"status": {"phase": "Revoking", "because": "Move"}})),
    ]);
    let run = world.settle(&controller, &mut NoMachine, &grant_of("shop"));
    assert_eq!(placed(&world).1, "MovesFull");
    assert_eq!(run.waits_seconds, Some(30));
    let ended = granted("other", "b", json!({}));
    world.put(Place::HUB, ended);
    let watch = Watch::all(Place::HUB, &GRANT);
    let other = world.get(Place::HUB, &GRANT, &Name::cluster_wide(&grant_of("other")));
    let woken = controller.subjects(&watch, &other.expect("a grant"), &world.view());
    assert!(woken.iter().any(|subject| **subject == grant_of("shop")));
    world.settle(&controller, &mut NoMachine, &grant_of("shop"));
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["phase"], "Revoking");
}

#[test]
fn an_owner_that_sends_no_heartbeat_is_reported_once_with_the_command_that_ends_it() {
    let (mut world, run) = settled(vec![
        asking_for("b"),
        cluster("a", unreachable()),
        cluster("b", json!({})),
        granted(
            "shop",
            "a",
            json!({
                "spec": {"target": reference("b")},
                "status": {"phase": "Revoking", "because": "Move"},
            }),
        ),
    ]);
    let grant = grant_in(&world, &grant_of("shop"));
    let told = condition(&grant, "OwnerUnreachable");
    let message = told["message"].as_str().unwrap_or_default();
    assert_eq!(told["status"], "True");
    assert!(message.contains("since 2001-02-03T04:05:06Z"), "{message}");
    let next = told["next"].as_str().unwrap_or_default();
    assert!(next.starts_with("interlock force-release shop --owner a --epoch 7"), "{next}");
    assert_eq!(grant["status"]["phase"], "Revoking", "no timer ever releases");
    assert_eq!(run.events.len(), 1);
    assert_eq!(run.events[0].reason, "OwnerUnreachable");
    world.pass(3600);
    assert!(
        world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop")).writes.is_empty()
    );
    world.put(Place::HUB, cluster("a", json!({})));
    world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(condition(&grant, "OwnerUnreachable")["status"], "False");
}

#[test]
fn a_cluster_made_again_under_its_name_does_not_inherit() {
    let again = cluster("a", json!({"metadata": {"uid": "another"}}));
    let (world, _) = settled(vec![shop(json!({})), again, granted("shop", "a", json!({}))]);
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(condition(&grant, "OwnerUnreachable")["reason"], "ClusterReplaced");
    assert_eq!(grant["status"]["owner"], reference("a"));
    assert_eq!(grant["status"]["phase"], "Granted");
}

#[test]
fn a_move_under_way_becomes_a_deletion_when_the_namespace_is_deleted() {
    let terminating = shop(json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}));
    let moving = json!({"status": {"phase": "Revoking", "because": "Move"}});
    let (world, _) =
        settled(vec![terminating, cluster("a", json!({})), granted("shop", "a", moving)]);
    let status = grant_in(&world, &grant_of("shop"))["status"].clone();
    assert_eq!((&status["phase"], &status["because"]), (&json!("Revoking"), &json!("Deletion")));
}

#[test]
fn a_namespace_that_is_being_deleted_takes_its_grant_along_at_last() {
    let terminating = shop(json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}));
    let (mut world, _) =
        settled(vec![terminating, cluster("a", json!({})), granted("shop", "a", json!({}))]);
    let name = Name::cluster_wide(&grant_of("shop"));
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["because"], "Deletion");
    world.change(Place::HUB, &GRANT, &name, &json!({"status": {"phase": "Released"}}));
    let run = world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["phase"], "Deleting");
    assert!(run.rests.contains("its data is on cluster a (Live, epoch 7)"), "{}", run.rests);
    world.change(Place::HUB, &GRANT, &name, &json!({"status": {"copies": []}}));
    world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    assert!(grant_in(&world, &grant_of("shop")).is_null());
    assert!(world.json(Place::HUB, &NAMESPACE, &Name::cluster_wide("shop")).is_null());
}

#[test]
fn a_cluster_that_only_the_cache_has_is_granted_nothing() {
    let objects = vec![
        shop(json!({})),
        cluster("a", json!({})),
        grant("shop", json!({"spec": {"target": reference("a")}})),
    ];
    let world = world(objects);
    let subject = Subject::from(grant_of("shop"));
    let step = Scheduler::default().step(&subject, &world.view(), &LiveReads::default());
    let Step::LiveRead { reads, .. } = step else { panic!("{step:?}") };
    let [interlock_kernel::Read::Object(address)] = &reads[..] else { panic!("{reads:?}") };
    let terminating = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    let another = json!({"metadata": {"uid": "another"}});
    let seen = |patch| {
        let there = TestServers::of(&Scheduler::default()).with([cluster("a", patch)]);
        there.get(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("a"))
    };
    for found in [None, seen(terminating), seen(another), seen(drained())] {
        let mut live_reads = LiveReads::default();
        live_reads.objects.insert(address.clone(), found);
        let step = Scheduler::default().step(&subject, &world.view(), &live_reads);
        assert!(matches!(step, Step::Rest { .. }), "{step:?}");
    }
}

/// Somebody needs the cluster empty.
fn drained() -> Value {
    json!({"spec": {"drains": [{"requester": "rollouts/1", "reason": "an update"}]}})
}

#[test]
fn a_cluster_that_somebody_needs_empty_is_the_target_of_no_grant_but_those_it_has() {
    let target = |grant| settled(vec![asking_for("a"), cluster("a", drained()), grant]);
    let (world, _) = target(grant("shop", json!({"spec": {"target": reference("a")}})));
    assert!(grant_in(&world, &grant_of("shop"))["spec"]["target"].is_null());
    assert_eq!(placed(&world).1, "DesiredClusterDoesNotFit");
    // A namespace that asks for this very cluster stays there: only a person can say otherwise.
    let (world, _) = target(granted("shop", "a", json!({})));
    assert_eq!(grant_in(&world, &grant_of("shop"))["spec"]["target"], reference("a"));
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["phase"], "Granted");
    // One that asks for none leaves.
    let grant = granted("shop", "a", json!({}));
    let objects = vec![shop(json!({})), cluster("a", drained()), cluster("b", json!({})), grant];
    let (world, _) = settled(objects);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["because"], "Drain");
}

#[test]
fn a_cluster_that_is_deleted_is_the_target_of_no_grant_but_those_it_has() {
    let terminating = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    let target = |grant| settled(vec![asking_for("a"), cluster("a", terminating.clone()), grant]);
    let (world, _) = target(grant("shop", json!({"spec": {"target": reference("a")}})));
    assert!(grant_in(&world, &grant_of("shop"))["spec"]["target"].is_null());
    assert_eq!(placed(&world).1, "DesiredClusterDoesNotFit");
    let (world, _) = target(granted("shop", "a", json!({})));
    assert_eq!(grant_in(&world, &grant_of("shop"))["spec"]["target"], reference("a"));
}

/// A copy that a person gave up leaves before its syncer has closed; only the grant tells it to.
#[test]
fn a_grant_stays_until_every_syncer_has_let_go_of_its_namespace() {
    let name = Name::cluster_wide("shop");
    let held = json!({"metadata": {
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "finalizers": [HELD, "interlock.dev/syncer-uid-a"],
    }});
    let given_up = json!({"status": {"phase": "Deleting", "copies": []}});
    let (mut world, _) =
        settled(vec![shop(held), cluster("a", json!({})), granted("shop", "a", given_up)]);
    let (status, reason, message) = placed(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "SyncersLeft"));
    assert!(message.contains("the syncer of cluster a"), "{message}");
    let let_go = json!({"metadata": {"finalizers": [HELD]}});
    world.change(Place::HUB, &NAMESPACE, &name, &let_go);
    world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    assert!(grant_in(&world, &grant_of("shop")).is_null());
    assert!(world.json(Place::HUB, &NAMESPACE, &name).is_null());
}

/// What a cache shows of a namespace that is not being deleted there says nothing of its finalizers.
#[test]
fn a_grant_that_ends_waits_for_news_of_its_namespace() {
    let given_up = json!({"status": {"phase": "Deleting", "copies": []}});
    let objects = |namespace| {
        vec![namespace, cluster("a", json!({})), granted("shop", "a", given_up.clone())]
    };
    for stale in
        [shop(json!({})), namespace("shop", json!({})), shop(json!({"metadata": {"labels": null}}))]
    {
        let (_, run) = settled(objects(stale));
        assert!(run.writes.is_empty(), "{:?}", run.writes);
    }
}

#[test]
fn a_namespace_made_again_gets_another_grant_and_the_old_one_ends() {
    let again = namespace("shop", json!({"metadata": {"uid": "again"}}));
    let (mut world, _) =
        settled(vec![again, cluster("a", json!({})), granted("shop", "a", json!({}))]);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["because"], "Deletion");
    world.settle(&Scheduler::default(), &mut NoMachine, "shop-again");
    let grant = grant_in(&world, "shop-again");
    assert_eq!(grant["spec"]["namespace"]["uid"], "again");
    assert_eq!(grant["status"]["epoch"], 1);
}

#[test]
fn a_namespace_that_is_being_deleted_without_a_grant_is_let_go_after_a_live_read() {
    let terminating = shop(json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}));
    let world = world(vec![terminating]);
    let subject = Subject::from(grant_of("shop"));
    let step = Scheduler::default().step(&subject, &world.view(), &LiveReads::default());
    let Step::LiveRead { reads, .. } = step else { panic!("{step:?}") };
    assert_eq!(reads.len(), 1);
    let (world, _) =
        settled(vec![shop(json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}))]);
    assert!(world.json(Place::HUB, &NAMESPACE, &Name::cluster_wide("shop")).is_null());
}

#[test]
fn taking_the_label_off_stops_nothing() {
    let unplaced = shop(json!({"metadata": {"labels": null}}));
    let (_, run) =
        settled(vec![unplaced, cluster("a", json!({})), granted("shop", "a", json!({}))]);
    assert!(run.writes.is_empty());
}

#[test]
fn a_grant_whose_namespace_is_surely_gone_ends_in_order() {
    let owned = || vec![cluster("a", json!({})), granted("shop", "a", json!({}))];
    let subject = Subject::from(grant_of("shop"));
    let step = Scheduler::default().step(&subject, &world(owned()).view(), &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "a cache proves nothing: {step:?}");
    let (mut world, _) = settled(owned());
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["because"], "Deletion");
    let name = Name::cluster_wide(&grant_of("shop"));
    world.change(Place::HUB, &GRANT, &name, &json!({"status": {"phase": "Released"}}));
    world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["phase"], "Deleting");
    world.change(Place::HUB, &GRANT, &name, &json!({"status": {"copies": []}}));
    world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    assert!(grant_in(&world, &grant_of("shop")).is_null());
}

#[test]
fn a_namespace_that_only_the_cache_lacks_is_left_as_it_is() {
    let owned = || vec![cluster("a", json!({})), granted("shop", "a", json!({}))];
    // The cache may also show the one that had the name before.
    let earlier = namespace("shop", json!({"metadata": {"uid": "earlier"}}));
    for shown in [owned(), [owned(), vec![earlier]].concat()] {
        let (world, subject) = (world(shown), Subject::from(grant_of("shop")));
        let step = Scheduler::default().step(&subject, &world.view(), &LiveReads::default());
        assert!(matches!(step, Step::LiveRead { .. }), "a cache proves nothing: {step:?}");
        let there = TestServers::of(&Scheduler::default()).with([shop(json!({}))]);
        let name = Name::cluster_wide("shop");
        let address = interlock_kernel::Address::new(Place::HUB, &NAMESPACE, name.clone());
        let mut live_reads = LiveReads::default();
        live_reads.objects.insert(address, there.get(Place::HUB, &NAMESPACE, &name));
        let step = Scheduler::default().step(&subject, &world.view(), &live_reads);
        assert!(matches!(step, Step::Rest { .. }), "{step:?}");
    }
}

#[test]
fn every_phase_says_since_when() {
    let since =
        |world: &TestServers| grant_in(world, &grant_of("shop"))["status"]["phaseSince"].clone();
    let mut world = world(vec![shop(json!({})), cluster("a", json!({})), grant("shop", json!({}))]);
    world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    assert_eq!(since(&world), "1970-01-12T13:46:40Z");
    world.pass(60);
    let terminating = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    world.change(Place::HUB, &NAMESPACE, &Name::cluster_wide("shop"), &terminating);
    world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    assert_eq!(since(&world), "1970-01-12T13:47:40Z");
    world.pass(60);
    world.settle(&Scheduler::default(), &mut NoMachine, &grant_of("shop"));
    assert_eq!(since(&world), "1970-01-12T13:47:40Z", "it is still the same phase");
}
