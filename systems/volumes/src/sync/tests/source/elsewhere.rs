//! Sources of a namespace that runs on another cluster.

use super::*;

/// The namespace, as a syncer notes on it what may run here.
fn namespace(permit: &str) -> Value {
    json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "uid-shop", "annotations": {
        "interlock.dev/grant": "g", "interlock.dev/epoch": "3", "interlock.dev/running": permit,
    }}})
}

/// What the namespace permits from now on; whom that wakes.
fn permit(world: &mut TestServers, permit: &str) -> Vec<Subject> {
    world.put(Place::CLUSTER, namespace(permit));
    let found = world.get(Place::CLUSTER, &NAMESPACE, &Name::cluster_wide("shop")).unwrap();
    OWN.subjects(&Watch::all(Place::CLUSTER, &NAMESPACE), &found, &world.view())
}

fn saves_nothing(world: &TestServers, mover: &FakeMover) {
    assert_eq!(reason(world, "interlock.dev/Healthy"), "NotHere");
    let seen = seen(world);
    let healthy = condition(&seen, "interlock.dev/Healthy");
    assert!(healthy["message"].as_str().unwrap().contains("kubectl get grant shop"), "{healthy}");
    assert_eq!((intent(world), mover.begun.len()), (Value::Null, 0));
    assert!(only(world, &SNAPSHOT_KIND).is_empty() && only(world, &LEASE).is_empty());
}

#[test]
fn a_source_of_a_namespace_that_left_saves_nothing_and_goes_on_when_it_is_back() {
    for trigger in [json!({"manual": "one"}), json!({"manual": null, "schedule": "@hourly"})] {
        let mut world = world([source(&json!({"spec": {"trigger": trigger}})), namespace("")]);
        let mut mover = FakeMover::that(done(1));
        run(&mut world, &mut mover, 1);
        saves_nothing(&world, &mover);
        assert!(settle(&mut world, &mut mover).writes.is_empty(), "it says so once");
        assert_eq!(permit(&mut world, "4@boot"), [Subject::from(SUBJECT)]);
        settle(&mut world, &mut mover);
        take_snapshots(&mut world, 1);
        settle(&mut world, &mut mover);
        assert_eq!(mover.begun.len(), 1);
        assert_eq!(reason(&world, "interlock.dev/Healthy"), "Synced");
    }
}

#[test]
fn a_namespace_that_runs_here_or_that_no_syncer_has_is_saved() {
    let foreign = json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "u",
        "annotations": {"interlock.dev/running": ""}}});
    for namespace in [namespace("3@boot"), foreign] {
        let mut world = world([source(&json!({})), namespace]);
        run_to_the_end(&mut world, &mut FakeMover::that(done(1)));
    }
}

#[test]
fn a_namespace_that_says_nothing_of_a_permit_permits_nothing() {
    let mut unsaid = namespace("");
    unsaid["metadata"]["annotations"].as_object_mut().unwrap().remove("interlock.dev/running");
    for namespace in [unsaid, namespace("soon")] {
        let mut world = world([source(&json!({})), namespace]);
        let mut mover = FakeMover::that(done(1));
        settle(&mut world, &mut mover);
        saves_nothing(&world, &mover);
    }
}

#[test]
fn what_a_move_asks_for_runs_exactly_when_the_namespace_is_closed() {
    let of_a_move = json!({"metadata": {"annotations": {"interlock.dev/epoch": "3"}}});
    let mut world = world([copy_source(&of_a_move), namespace("")]);
    let mut mover = FakeMover::that(done(1));
    run(&mut world, &mut mover, 1);
    assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "Synced");
}

#[test]
fn a_sync_that_runs_when_the_namespace_leaves_may_end() {
    let mut world = world([source(&json!({})), namespace("3@boot")]);
    let mut mover = FakeMover::that(runs(1));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    permit(&mut world, "");
    settle(&mut world, &mut mover);
    assert!(intent(&world).is_object(), "it still runs");
    mover.all_become(&done(1));
    settle(&mut world, &mut mover);
    assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
    assert_eq!(intent(&world), Value::Null);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "NotHere");
}

#[test]
fn a_snapshot_that_no_mover_has_begun_to_save_is_dropped_and_taken_anew_when_it_is_back() {
    let mut world = world([source(&json!({})), namespace("3@boot")]);
    let mut mover = FakeMover::that(done(1));
    settle(&mut world, &mut mover);
    let first = Name::of(&only(&world, &SNAPSHOT_KIND)[0]);
    permit(&mut world, "");
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    saves_nothing(&world, &mover);
    assert!(seen(&world)["status"]["lastManualSync"].is_null());
    permit(&mut world, "5@boot");
    settle(&mut world, &mut mover);
    assert_ne!(Name::of(&only(&world, &SNAPSHOT_KIND)[0]), first);
    run_to_the_end(&mut world, &mut mover);
    assert_eq!(mover.begun.len(), 1);
}

#[test]
fn an_attempt_that_waits_for_another_one_does_not_come_here() {
    let mut world = world([source(&json!({})), namespace("3@boot")]);
    let mut mover = FakeMover::that(failed(Reason::RepositoryLocked));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    assert_eq!(intent(&world)["attempt"], 2);
    permit(&mut world, "");
    run(&mut world, &mut mover, 1);
    assert_eq!(mover.begun.len(), 1);
    assert_eq!(intent(&world), Value::Null);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "NotHere");
    assert!(only(&world, &SNAPSHOT_KIND).is_empty());
}

#[test]
fn a_cache_that_has_missed_that_the_namespace_left_begins_nothing() {
    let mut world = world([source(&json!({})), namespace("3@boot")]);
    let mut mover = FakeMover::that(done(1));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    let truth = TestServers::of(&OWN).with([namespace("")]);
    let mut live_reads = LiveReads::default();
    for _ in 0..3 {
        let Step::LiveRead { reads, .. } =
            OWN.step(&Subject::from(SUBJECT), &world.view(), &live_reads)
        else {
            break;
        };
        for read in reads {
            match read {
                interlock_kernel::Read::Ask(id) => {
                    drop(live_reads.answers.insert(id, Sync::Unknown))
                }
                interlock_kernel::Read::Object(address) => {
                    let of = if address.kind == NAMESPACE { &truth } else { &world };
                    let found = of.get(address.place, &address.kind, &address.name);
                    live_reads.objects.insert(address, found);
                }
                interlock_kernel::Read::List { .. }
                | interlock_kernel::Read::Selected { .. }
                | interlock_kernel::Read::DryRun(_) => {
                    panic!("no list and no dry run is needed")
                }
            }
        }
    }
    let Step::Act(effect) = OWN.step(&Subject::from(SUBJECT), &world.view(), &live_reads) else {
        panic!("it says that it ends")
    };
    let Action::Write(write) = effect.action else { panic!("it begins {:?}", effect.action) };
    assert_eq!(what(&write), "status of ReplicationSource");
}
