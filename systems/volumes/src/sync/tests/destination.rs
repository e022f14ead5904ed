//! A destination from its trigger to a published snapshot, and whatever can go wrong on the way.

mod copies;

use crate::kinds::{CLAIM, DESTINATION, LEASE, SECRET, SNAPSHOT_KIND, SOURCE};
use crate::outside::{Choice, Job, Mover, Reason};
use crate::sync::testing::{
    FakeMover, bind_claims, claim, content, destination, done, failed, only, runs, secret,
    take_snapshots,
};
use crate::sync::{Direction, Here, Replication, Serves};
use interlock_kernel::testing::{Run, TestServers, condition, survives};
use interlock_kernel::{
    Controller, LiveReads, Name, Part, Place, Read, Step, Subject, Watch, Watcher, Write,
};
use serde_json::{Value, json};
use std::borrow::Cow;

const SUBJECT: &str = "shop/data";
static OWN: Replication = Replication {
    direction: Direction::Destination,
    serves: Serves::Own,
    here: Here { name: Cow::Borrowed("west"), uid: Cow::Borrowed("uid-west") },
};
const LATEST: &str = "interlock.dev/latest-image-uid";

fn world(objects: impl IntoIterator<Item = Value>) -> TestServers {
    TestServers::of(&OWN).with([secret("/backup", "secret")]).with(objects)
}

fn settle(world: &mut TestServers, mover: &mut FakeMover) -> Run<Mover> {
    world.settle(&OWN, mover, SUBJECT)
}

/// Lets everything happen that comes without a person.
fn run(world: &mut TestServers, mover: &mut FakeMover, files: u64) -> Vec<Write> {
    let mut writes = Vec::new();
    for _ in 0..30 {
        let run = settle(world, mover);
        writes.extend(run.writes);
        bind_claims(world);
        take_snapshots(world, files);
        match run.waits_seconds {
            Some(seconds) if seconds < 7200 => world.pass(i64::try_from(seconds).unwrap() + 1),
            _ => {}
        }
    }
    writes
}

fn seen(world: &TestServers) -> Value {
    world.json(Place::CLUSTER, &DESTINATION, &Name::within("shop", "data"))
}

fn change(world: &mut TestServers, patch: &Value) {
    world.change(Place::CLUSTER, &DESTINATION, &Name::within("shop", "data"), patch);
}

fn reason(world: &TestServers, kind: &str) -> String {
    let seen = seen(world);
    condition(&seen, kind)["reason"].as_str().unwrap_or_default().to_owned()
}

fn has_intent(world: &TestServers) -> bool {
    seen(world)["metadata"]["annotations"]["interlock.dev/sync"].is_string()
}

#[test]
fn a_restore_ends_with_a_snapshot_that_is_ready_and_published() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(done(3));
    let writes = run(&mut world, &mut mover, 3);
    let order: Vec<String> = writes
        .iter()
        .map(|write| match write {
            Write::Patch { part: Part::Status, .. } => "status".to_owned(),
            Write::Patch { change, .. } => format!(
                "{:?}",
                change["metadata"]
                    .as_object()
                    .map(|fields| fields.keys().cloned().collect::<Vec<_>>(),)
            ),
            write => write.address().kind.to_string(),
        })
        .collect();
    assert_eq!(
        order,
        [
            "Some([\"annotations\", \"finalizers\"])",
            "PersistentVolumeClaim",
            "status",
            "Lease",
            "VolumeSnapshot",
            "Some([\"annotations\"])",
            "status",
            "Lease",
            "Some([\"annotations\"])",
        ]
    );
    let (_, job) = &mover.begun[0];
    let Job::Restore { into, choice, allow_empty, .. } = job else { panic!("{job:?}") };
    assert_eq!(into, "pvc-volsync-data-dest");
    assert_eq!(*choice, Choice::Newest { as_of: None, previous: 0 });
    assert!(!allow_empty);
    let snapshot = only(&world, &SNAPSHOT_KIND)[0].clone();
    let seen = seen(&world);
    let status = &seen["status"];
    assert_eq!(seen["metadata"]["annotations"][LATEST], json!(snapshot.metadata.uid));
    assert_eq!(
        status["latestImage"],
        json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot",
            "name": snapshot.metadata.name})
    );
    assert_eq!(snapshot.data["spec"]["source"]["persistentVolumeClaimName"], "volsync-data-dest");
    assert_eq!(status["lastManualSync"], "one");
    assert_eq!(status["external"]["snapshotUID"], json!(snapshot.metadata.uid));
    assert_eq!(status["external"]["digest"], json!(content(3).digest));
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "Synced");
    assert!(!has_intent(&world) && only(&world, &LEASE).is_empty() && mover.syncs.is_empty());
    assert!(settle(&mut world, &mut mover).writes.is_empty());
}

#[test]
fn nothing_is_published_before_the_snapshot_is_ready() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(done(3));
    settle(&mut world, &mut mover);
    bind_claims(&mut world);
    let run = settle(&mut world, &mut mover);
    assert_eq!(run.rests, "the snapshot is being taken");
    assert_eq!(only(&world, &SNAPSHOT_KIND).len(), 1);
    assert!(seen(&world)["metadata"]["annotations"][LATEST].is_null());
    assert!(seen(&world)["status"]["latestImage"].is_null());
    assert!(seen(&world)["status"]["lastManualSync"].is_null());
}

#[test]
fn a_class_of_snapshots_that_is_not_there_is_named_and_nothing_is_published() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(done(3));
    settle(&mut world, &mut mover);
    bind_claims(&mut world);
    settle(&mut world, &mut mover);
    let snapshot = Name::of(&only(&world, &SNAPSHOT_KIND)[0]);
    let message = "ClassMissing: there is no VolumeSnapshotClass fast; create it";
    let error = json!({"status": {"readyToUse": false, "error": {"message": message}}});
    world.change(Place::CLUSTER, &SNAPSHOT_KIND, &snapshot, &error);
    settle(&mut world, &mut mover);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "ClassMissing");
    assert!(seen(&world)["status"]["latestImage"].is_null());
}

#[test]
fn once_its_snapshot_is_being_taken_a_volume_is_not_written_again() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(done(3));
    settle(&mut world, &mut mover);
    bind_claims(&mut world);
    settle(&mut world, &mut mover);
    mover.dies();
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 3);
    settle(&mut world, &mut mover);
    assert_eq!(mover.begun.len(), 1);
    assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
}

#[test]
fn a_mover_that_dies_before_that_is_begun_again_with_the_same_sync() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(runs(1));
    settle(&mut world, &mut mover);
    bind_claims(&mut world);
    settle(&mut world, &mut mover);
    mover.dies();
    mover.next = done(1);
    run(&mut world, &mut mover, 1);
    assert_eq!(mover.begun.len(), 2);
    assert_eq!(mover.begun[0].0, mover.begun[1].0);
}

#[test]
fn what_is_empty_is_not_published_unless_that_is_meant() {
    let allowed = json!({"metadata": {"annotations": {"interlock.dev/allow-empty": "true"}}});
    // Nothing was brought; or something was, and the snapshot has nothing all the same.
    for (brought, in_snapshot) in [(0, 0), (3, 0)] {
        let mut world = world([destination(&json!({}))]);
        let mut mover = FakeMover::that(done(brought));
        run(&mut world, &mut mover, in_snapshot);
        assert_eq!(reason(&world, "interlock.dev/Healthy"), "SnapshotEmpty");
        assert!(seen(&world)["metadata"]["annotations"][LATEST].is_null());
        assert!(seen(&world)["status"]["latestImage"].is_null());
        assert!(seen(&world)["status"]["lastManualSync"].is_null());
        assert!(only(&world, &SNAPSHOT_KIND).is_empty(), "one that is of no use goes");
        assert!(!has_intent(&world));
    }
    let mut world = world([destination(&allowed)]);
    run(&mut world, &mut FakeMover::that(done(0)), 0);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "Synced");
    assert!(seen(&world)["metadata"]["annotations"][LATEST].is_string());
}

#[test]
fn a_sync_whose_spec_is_not_supported_any_more_ends_and_the_latest_snapshot_stays() {
    for is_snapshot_ready in [true, false] {
        let mut world = world([destination(&json!({}))]);
        let mut mover = FakeMover::that(done(3));
        run(&mut world, &mut mover, 3);
        let before = seen(&world);
        mover.next = runs(1);
        change(&mut world, &json!({"spec": {"trigger": {"manual": "two"}}}));
        settle(&mut world, &mut mover);
        mover.all_become(&done(3));
        if is_snapshot_ready {
            settle(&mut world, &mut mover);
            take_snapshots(&mut world, 3);
        }
        change(&mut world, &json!({"spec": {"restic": {"copyMethod": "Clone"}}}));
        run(&mut world, &mut mover, 3);
        let after = seen(&world);
        assert_eq!(reason(&world, "interlock.dev/Accepted"), "NotSupported");
        assert_eq!(after["status"]["latestImage"], before["status"]["latestImage"]);
        let latest = |seen: &Value| seen["metadata"]["annotations"][LATEST].clone();
        assert_eq!(latest(&after), latest(&before));
        assert_eq!(after["status"]["lastManualSync"], "one");
        assert!(!has_intent(&world) && only(&world, &SNAPSHOT_KIND).len() == 1);
    }
}

#[test]
fn without_an_eligible_snapshot_the_latest_snapshot_stays() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(done(3));
    run(&mut world, &mut mover, 3);
    let before = seen(&world);
    mover.next = failed(Reason::NoEligibleSnapshot);
    change(
        &mut world,
        &json!({"metadata": {"generation": 2}, "spec": {"trigger": {"manual": "two"}}}),
    );
    run(&mut world, &mut mover, 3);
    let after = seen(&world);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "NoEligibleSnapshot");
    assert_eq!(after["status"]["latestImage"], before["status"]["latestImage"]);
    assert_eq!(after["metadata"]["annotations"][LATEST], before["metadata"]["annotations"][LATEST]);
    assert_eq!(after["status"]["lastManualSync"], "one");
    assert_eq!(mover.begun.len(), 2, "no retry");
}

fn sync_with(world: &mut TestServers, mover: &mut FakeMover, tag: &str) -> Name {
    change(world, &json!({"spec": {"trigger": {"manual": tag}}}));
    run(world, mover, 3);
    assert_eq!(seen(world)["status"]["lastManualSync"], tag);
    let name = seen(world)["status"]["latestImage"]["name"].as_str().unwrap().to_owned();
    Name::within("shop", &name)
}

#[test]
fn the_last_two_snapshots_stay_and_whatever_is_held_until_it_is_not() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(done(3));
    let first = sync_with(&mut world, &mut mover, "a");
    let hold = json!({"metadata": {"finalizers": ["interlock.dev/hold-c"]}});
    world.change(Place::CLUSTER, &SNAPSHOT_KIND, &first, &hold);
    let second = sync_with(&mut world, &mut mover, "b");
    let third = sync_with(&mut world, &mut mover, "c");
    let names = |world: &TestServers| -> Vec<Name> {
        only(world, &SNAPSHOT_KIND).iter().map(|snapshot| Name::of(snapshot)).collect()
    };
    assert!(names(&world).contains(&first) && names(&world).contains(&third));
    assert!(!names(&world).contains(&second), "the oldest that nobody holds");
    let fourth = sync_with(&mut world, &mut mover, "d");
    assert_eq!(names(&world).len(), 2);
    assert!(names(&world).contains(&fourth) && names(&world).contains(&first));
    let fifth = sync_with(&mut world, &mut mover, "e");
    world.change(
        Place::CLUSTER,
        &SNAPSHOT_KIND,
        &first,
        &json!({"metadata": {"finalizers": null}}),
    );
    let sixth = sync_with(&mut world, &mut mover, "f");
    assert_eq!(names(&world).len(), 2);
    assert!(names(&world).contains(&fifth) && names(&world).contains(&sixth));
}

#[test]
fn a_snapshot_is_deleted_only_in_the_version_that_was_seen() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(done(3));
    for tag in ["a", "b"] {
        sync_with(&mut world, &mut mover, tag);
    }
    let third = json!({
        "kind": "VolumeSnapshot",
        "metadata": {"namespace": "shop", "name": "a", "uid": "old",
            "creationTimestamp": "1970-01-01T00:00:00Z", "ownerReferences": [{
                "apiVersion": "volsync.backube/v1alpha1", "kind": "ReplicationDestination",
                "name": "data", "uid": "uid-d"}]},
    });
    world.put(Place::CLUSTER, third);
    let Step::Act(effect) = world.step(&OWN, &mover, SUBJECT) else { panic!("one is too many") };
    let interlock_kernel::Action::Write(write) = effect.action else { panic!("no write") };
    assert!(matches!(&write, Write::Delete { resource_version: Some(_), .. }), "{write:?}");
    // Somebody takes hold of it in the meantime.
    let hold = json!({"metadata": {"finalizers": ["interlock.dev/hold-c"]}});
    let name = write.address().name.clone();
    world.change(Place::CLUSTER, &SNAPSHOT_KIND, &name, &hold);
    assert!(world.apply(&write).is_err(), "it has changed since");
}

#[test]
fn a_destination_that_is_being_deleted_waits_for_whoever_holds_its_snapshots_and_says_who() {
    let mut world = world([destination(&json!({})), claim("web")]);
    let mut mover = FakeMover::that(done(3));
    let snapshot = sync_with(&mut world, &mut mover, "a");
    let hold = json!({"metadata": {"finalizers": ["interlock.dev/hold-uid-web"]}});
    world.change(Place::CLUSTER, &SNAPSHOT_KIND, &snapshot, &hold);
    world.delete(Place::CLUSTER, &DESTINATION, &Name::within("shop", "data"));
    let run = settle(&mut world, &mut mover);
    assert!(run.rests.contains("claim web"), "{}", run.rests);
    assert!(
        condition(&seen(&world), "interlock.dev/Healthy")["message"]
            .as_str()
            .unwrap()
            .contains("claim web")
    );
    assert_eq!(only(&world, &SNAPSHOT_KIND).len(), 1);
    world.change(
        Place::CLUSTER,
        &SNAPSHOT_KIND,
        &snapshot,
        &json!({"metadata": {"finalizers": null}}),
    );
    settle(&mut world, &mut mover);
    assert!(only(&world, &SNAPSHOT_KIND).is_empty() && seen(&world).is_null());
}

/// The model found this one: the cache does not know yet that the object goes, and so nobody had
/// asked for its snapshots.
#[test]
fn a_destination_is_deleted_only_after_all_its_snapshots_were_listed() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(runs(1));
    settle(&mut world, &mut mover);
    bind_claims(&mut world);
    settle(&mut world, &mut mover);
    mover.dies();
    let name = Name::within("shop", "data");
    let mut truth = seen(&world);
    truth["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    let fresh = TestServers::of(&OWN).with([truth]);
    let mut live_reads = LiveReads::default();
    let mut is_listed = false;
    for _ in 0..10 {
        match OWN.step(&Subject::from(SUBJECT), &world.view(), &live_reads) {
            Step::LiveRead { reads, .. } => reads.into_iter().for_each(|read| match read {
                Read::Ask(id) => drop(live_reads.answers.insert(id, crate::outside::Sync::Unknown)),
                Read::Object(address) => {
                    let of = if address.kind == DESTINATION { &fresh } else { &world };
                    let found = of.get(address.place, &address.kind, &address.name);
                    live_reads.objects.insert(address, found);
                }
                Read::List { place, kind, namespace } => {
                    is_listed = true;
                    live_reads.lists.insert((place, kind, namespace), Vec::new());
                }
                Read::Selected { .. } | Read::DryRun(_) => panic!("no such read is needed"),
            }),
            Step::Act(effect) => {
                let interlock_kernel::Action::Write(write) = effect.action else {
                    panic!("a action")
                };
                // First the place, which is nobody's business but ours; then the finalizer.
                if write.address().name == name {
                    assert!(is_listed, "{write:?}");
                    return;
                }
                assert_eq!(write.address().kind, LEASE);
                world.apply(&write).unwrap();
                live_reads = LiveReads::default();
            }
            step => panic!("{step:?}"),
        }
    }
    panic!("it does not go");
}

#[test]
fn with_direct_the_volume_itself_is_the_product() {
    let direct = json!({"spec": {"restic": {"copyMethod": "Direct", "destinationPVC": "target",
        "restoreAsOf": "2026-01-02T03:04:05Z", "previous": 2, "enableFileDeletion": true}}});
    let mut world = world([destination(&direct)]);
    let mut mover = FakeMover::that(done(3));
    settle(&mut world, &mut mover);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "TargetMissing");
    world.put(Place::CLUSTER, claim("target"));
    run(&mut world, &mut mover, 3);
    assert!(only(&world, &SNAPSHOT_KIND).is_empty());
    assert_eq!(
        seen(&world)["status"]["latestImage"],
        json!({"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "target"})
    );
    let Job::Restore { into, choice, delete_other_files, .. } = &mover.begun[0].1 else { panic!() };
    assert_eq!((into.as_str(), *delete_other_files), ("pvc-target", true));
    assert!(matches!(choice, Choice::Newest { as_of: Some(_), previous: 2 }));
}

#[test]
fn a_copy_brings_a_snapshot_of_another_cluster() {
    let copy = json!({"spec": {"restic": null, "external": {
        "provider": "interlock.dev/copy",
        "parameters": {"cluster": "uid-a", "snapshot": "snapshot-7", "digest": "b3-3",
            "capacity": "1Gi", "accessModes": "ReadWriteOnce"},
    }}});
    let mut world = world([destination(&copy)]);
    let mut mover = FakeMover::that(done(3));
    run(&mut world, &mut mover, 3);
    let Job::Copy { into, cluster, snapshot, digest, .. } = &mover.begun[0].1 else { panic!() };
    assert_eq!(
        (into.as_str(), cluster.as_str(), snapshot.as_str(), digest.as_deref()),
        ("pvc-volsync-data-dest", "uid-a", "snapshot-7", Some("b3-3"))
    );
    assert!(seen(&world)["metadata"]["annotations"][LATEST].is_string());
}

#[test]
fn a_claim_of_one_sync_goes_after_it() {
    let temporary = json!({"spec": {"restic": {"cleanupTempPVC": true}}});
    let mut world = world([destination(&temporary)]);
    let mut mover = FakeMover::that(done(3));
    run(&mut world, &mut mover, 3);
    assert!(only(&world, &CLAIM).is_empty());
    assert_eq!(only(&world, &SNAPSHOT_KIND).len(), 1);
    assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
}

#[test]
fn two_destinations_do_not_write_one_claim() {
    let of = |name: &str, created: &str| {
        destination(&json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": created},
            "spec": {"restic": {"destinationPVC": "target"}},
        }))
    };
    let objects =
        [of("data", "2026-01-02T00:00:00Z"), of("first", "2026-01-01T00:00:00Z"), claim("target")];
    let mut world = world(objects);
    let mut mover = FakeMover::that(done(3));
    let run = settle(&mut world, &mut mover);
    assert!(run.rests.contains("first"), "{}", run.rests);
    assert_eq!(reason(&world, "interlock.dev/Accepted"), "NotSupported");
    assert!(mover.begun.is_empty());
    let run = world.settle(&OWN, &mut mover, "shop/first");
    assert_eq!(mover.begun.len(), 1, "{}", run.rests);
}

#[test]
fn a_destination_that_comes_in_the_same_second_does_not_take_the_claim_over() {
    let of = |name: &str| {
        destination(&json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"restic": {"copyMethod": "Direct", "destinationPVC": "target"}},
        }))
    };
    let mut world = world([of("data"), claim("target")]);
    let mut mover = FakeMover::that(done(3));
    settle(&mut world, &mut mover);
    // By its UID it would be the earlier one of the two.
    world.put(Place::CLUSTER, of("another"));
    let refused = world.settle(&OWN, &mut mover, "shop/another");
    assert!(refused.rests.contains("data"), "{}", refused.rests);
    settle(&mut world, &mut mover);
    assert_eq!(reason(&world, "interlock.dev/Accepted"), "Supported");
    assert_eq!(mover.begun.len(), 1);
}

#[test]
fn the_claim_of_an_earlier_destination_is_not_taken_for_its_own() {
    let mut world = world([destination(&json!({})), claim("volsync-data-dest")]);
    let mut mover = FakeMover::that(done(3));
    let run = settle(&mut world, &mut mover);
    assert!(run.rests.contains("does not belong to this destination"), "{}", run.rests);
    assert!(mover.begun.is_empty() && !has_intent(&world));
}

#[test]
fn failures_are_tried_again_and_then_given_up() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(failed(Reason::TargetFull));
    run(&mut world, &mut mover, 3);
    assert_eq!(mover.begun.len(), 8);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "RetriesExhausted");
    assert!(!has_intent(&world) && only(&world, &LEASE).is_empty());
    assert!(only(&world, &SNAPSHOT_KIND).is_empty());
}

#[test]
fn what_does_not_fit_is_given_up_at_once_and_the_claim_is_named() {
    for (patch, words) in [
        (json!({}), ["claim volsync-data-dest", "set a larger capacity"]),
        (
            json!({"spec": {"restic": {"destinationPVC": "mine"}}}),
            ["claim mine", "larger claim in destinationPVC"],
        ),
    ] {
        let mut world = world([destination(&patch), claim("mine")]);
        let mut mover = FakeMover::that(failed(Reason::SizeMismatch));
        run(&mut world, &mut mover, 3);
        assert_eq!(mover.begun.len(), 1);
        let found = condition(&seen(&world), "interlock.dev/Healthy").clone();
        let message = found["message"].as_str().unwrap();
        assert_eq!(found["reason"], "SizeMismatch");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(seen(&world)["status"]["latestImage"].is_null() && !has_intent(&world));
        assert!(only(&world, &SNAPSHOT_KIND).is_empty());
    }
}

#[test]
fn the_tag_that_is_answered_is_the_one_that_was_set_when_the_sync_began() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(done(3));
    settle(&mut world, &mut mover);
    change(&mut world, &json!({"spec": {"trigger": {"manual": "two"}}}));
    bind_claims(&mut world);
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 3);
    let run = settle(&mut world, &mut mover);
    let tags: Vec<&Value> = run
        .writes
        .iter()
        .filter_map(|write| match write {
            Write::Patch { change, .. } => change["status"].get("lastManualSync"),
            _ => None,
        })
        .collect();
    assert_eq!(tags, ["one"]);
}

#[test]
fn broken_objects_do_not_break_it() {
    let mut world = world([destination(&json!({}))]);
    let mut mover = FakeMover::that(done(3));
    settle(&mut world, &mut mover);
    bind_claims(&mut world);
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 3);
    let kinds = [DESTINATION, SNAPSHOT_KIND, CLAIM, SECRET, LEASE];
    let mut objects: Vec<Value> = kinds
        .iter()
        .flat_map(|kind| only(&world, kind))
        .map(|object| serde_json::to_value(&*object).unwrap())
        .collect();
    objects.push(destination(&json!({"metadata": {"name": "other", "uid": "other",
        "deletionTimestamp": "2001-01-01T00:00:00Z", "finalizers": ["interlock.dev/snapshots"]}})));
    survives(&OWN, &mover, &objects);
}
