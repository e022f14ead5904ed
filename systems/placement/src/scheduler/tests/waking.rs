//! Who is woken by what, and input that makes no sense.

use super::*;

#[test]
fn a_write_on_old_news_is_refused() {
    let mut world = world(vec![
        asking_for("b"),
        cluster("a", json!({})),
        cluster("b", json!({})),
        granted("shop", "a", json!({"spec": {"target": reference("b")}})),
    ]);
    let Step::Act(effect) = world.step(&Scheduler::default(), &NoMachine, &grant_of("shop")) else {
        panic!("there is something to do")
    };
    let Action::Write(write @ Write::Patch { .. }) = &effect.action else { panic!("{effect:?}") };
    world.change(
        Place::HUB,
        &GRANT,
        &Name::cluster_wide(&grant_of("shop")),
        &json!({"metadata": {"labels": {"x": "y"}}}),
    );
    assert!(world.apply(write).is_err());
}

#[test]
fn a_placement_that_cannot_be_followed_says_so() {
    let takeover = json!({
        "kind": "Placement", "metadata": {"name": "p", "uid": "uid-p"},
        "spec": {"onUnreachable": "TakeOverAfterLease"},
    });
    let mut world = world(vec![takeover]);
    let run = world.settle(&Scheduler::default(), &mut NoMachine, "placement/p");
    assert_eq!(run.writes.len(), 1);
    let placement = world.json(Place::HUB, &PLACEMENT, &Name::cluster_wide("p"));
    assert_eq!(condition(&placement, "Accepted")["reason"], "NotSupported");
    world.change(
        Place::HUB,
        &PLACEMENT,
        &Name::cluster_wide("p"),
        &json!({"spec": {"onUnreachable": "Hold"}}),
    );
    world.settle(&Scheduler::default(), &mut NoMachine, "placement/p");
    let placement = world.json(Place::HUB, &PLACEMENT, &Name::cluster_wide("p"));
    assert_eq!(condition(&placement, "Accepted")["status"], "True");
}

#[test]
fn a_heartbeat_wakes_nobody_and_all_else_does() {
    let read =
        |value: Value| -> DynamicObject { serde_json::from_value(value).expect("a cluster") };
    let before = read(cluster("a", json!({})));
    let beat = json!({"status": {"heartbeat": {"sequence": 8}, "grants": 4}});
    assert!(is_same_cluster(&before, &read(cluster("a", beat))));
    for change in [
        json!({"spec": {"drain": true}}),
        json!({"metadata": {"labels": {"region": "eu"}}}),
        json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}),
        json!({"status": {"storageClasses": [{"name": "gold"}]}}),
        unreachable(),
    ] {
        assert!(!is_same_cluster(&before, &read(cluster("a", change.clone()))), "{change}");
    }
}

#[test]
fn a_cluster_concerns_its_grants_those_that_wait_or_ask_for_it_and_what_its_syncer_holds() {
    let holder = interlock_api::names::syncer_finalizer(
        reference("a")["uid"].as_str().expect("a cluster has a uid"),
    );
    let world = world(vec![
        cluster("a", json!({})),
        cluster("b", json!({})),
        granted("owned", "a", json!({})),
        granted(
            "elsewhere",
            "b",
            json!({"status": {"conditions": [{
                "type": "Placed", "status": "True", "reason": "Granted", "message": "",
                "lastTransitionTime": "2001-01-01T00:00:00Z",
            }]}}),
        ),
        grant("waiting", json!({})),
        namespace("asking", json!({"metadata": {"annotations": {"interlock.dev/cluster": "a"}}})),
        namespace("held", json!({"metadata": {"finalizers": [holder]}})),
    ]);
    let a = world.get(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("a")).expect("a cluster");
    let watch = Watch::all(Place::HUB, &WORKLOAD_CLUSTER);
    let woken = Scheduler::default().subjects(&watch, &a, &world.view());
    let wanted: Vec<Subject> =
        ["asking", "held", "owned", "waiting"].map(|name| Subject::from(grant_of(name))).to_vec();
    assert_eq!(woken, wanted);
}

#[test]
fn broken_objects_do_not_break_it() {
    let rule = json!({"key": "x", "operator": "NotIn", "values": ["y"]});
    let data = pin("data", &json!({"inPlace": {"cluster": reference("a"), "volume": "v"}}));
    let objects = [
        asking_for("b"),
        cluster("a", json!({"status": {"storageClasses": [{"name": "gold", "freeBytes": 5}]}})),
        cluster("b", unreachable()),
        claim("shop", "data", json!({"spec": {"storageClassName": "gold"}})),
        claim("shop", "more", json!({})),
        json!({
            "kind": "Placement", "metadata": {"name": "p", "uid": "uid-p"},
            "spec": {
                "namespaceSelector": {"matchExpressions": [rule]},
                "volumes": {"storageClasses": {"gold": "fast"}},
            },
        }),
        granted(
            "shop",
            "a",
            json!({"status": {"claims": [listed("data", "Filled")], "pins": [data]}}),
        ),
    ];
    survives(&Scheduler::default(), &NoMachine, &objects);
}
