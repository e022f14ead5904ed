//! Destinations that copy the latest snapshot of a source.

use super::*;
use crate::sync::testing::copy_source;

/// A destination that copies this source.
fn copy_of(source: &str) -> Value {
    destination(&json!({"spec": {"restic": null, "external": {
        "provider": "interlock.dev/copy",
        "parameters": {"source": source, "capacity": "1Gi", "accessModes": "ReadWriteOnce"},
    }}}))
}

/// The source of claim `data`, with its latest snapshot.
fn source_with(snapshot: &str) -> [Value; 2] {
    let reported = json!({"snapshot": snapshot, "snapshotUID": format!("uid-{snapshot}")});
    [
        copy_source(&json!({"status": {"external": reported}})),
        json!({
            "kind": "VolumeSnapshot",
            "metadata": {"namespace": "shop", "name": snapshot, "uid": format!("uid-{snapshot}"),
                "annotations": {"interlock.dev/digest": "b3-3", "interlock.dev/files": "3"}},
            "spec": {"source": {"persistentVolumeClaimName": "data"}},
            "status": {"readyToUse": true},
        }),
    ]
}

fn copied(mover: &FakeMover) -> Vec<(&str, &str, Option<&str>)> {
    let jobs = mover.begun.iter().map(|(_, job)| match job {
        Job::Copy { cluster, snapshot, digest, .. } => {
            (cluster.as_str(), snapshot.as_str(), digest.as_deref())
        }
        other => panic!("{other:?}"),
    });
    jobs.collect()
}

#[test]
fn the_latest_snapshot_of_a_source_is_copied_with_its_digest() {
    for named in ["shop/data", "shop/data@west", "shop/data@uid-west"] {
        let mut world = world(source_with("monday")).with([copy_of(named)]);
        let mut mover = FakeMover::that(done(3));
        run(&mut world, &mut mover, 3);
        assert_eq!(copied(&mover), [("uid-west", "snapshot-uid-monday", Some("b3-3"))]);
        assert_eq!(reason(&world, "interlock.dev/Healthy"), "Synced");
        // The next one is brought when it is asked for.
        source_with("tuesday").into_iter().for_each(|object| world.put(Place::CLUSTER, object));
        run(&mut world, &mut mover, 3);
        assert_eq!(mover.begun.len(), 1);
        change(&mut world, &json!({"spec": {"trigger": {"manual": "two"}}}));
        run(&mut world, &mut mover, 3);
        assert_eq!(copied(&mover)[1].1, "snapshot-uid-tuesday");
    }
}

#[test]
fn a_source_that_is_not_there_or_has_no_snapshot_is_waited_for() {
    let mut world = world([copy_of("shop/data")]);
    let mut mover = FakeMover::that(done(3));
    let says = |world: &mut TestServers, mover: &mut FakeMover, (word, part): (&str, &str)| {
        let run = settle(world, mover);
        assert_eq!(reason(world, "interlock.dev/Healthy"), word, "{}", run.rests);
        assert!(run.rests.contains(part) && mover.begun.is_empty(), "{}", run.rests);
    };
    says(&mut world, &mut mover, ("SourceMissing", "ReplicationSource data does not exist"));
    world.put(Place::CLUSTER, crate::sync::testing::source(&json!({})));
    says(&mut world, &mut mover, ("SourceMissing", "interlock.dev/copy"));
    world.put(Place::CLUSTER, copy_source(&json!({})));
    says(&mut world, &mut mover, ("SourceMissing", "no snapshot yet"));
    let [source, snapshot] = source_with("monday");
    world.put(Place::CLUSTER, source.clone());
    says(&mut world, &mut mover, ("SnapshotGone", "monday"));
    world.put(Place::CLUSTER, snapshot);
    let found = world.get(Place::CLUSTER, &SOURCE, &Name::within("shop", "data")).unwrap();
    let woken = OWN.subjects(&Watch::all(Place::CLUSTER, &SOURCE), &found, &world.view());
    assert_eq!(woken, [Subject::from(SUBJECT)]);
    run(&mut world, &mut mover, 3);
    assert_eq!(mover.begun.len(), 1);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "Synced");
}

#[test]
fn what_is_not_its_own_is_refused_and_nothing_is_copied() {
    let mut bank = source_with("monday");
    for object in &mut bank {
        object["metadata"]["namespace"] = json!("bank");
    }
    let by_uid = destination(&json!({"spec": {"restic": null, "external": {
        "provider": "interlock.dev/copy",
        "parameters": {"cluster": "uid-west", "snapshotUID": "uid-monday", "capacity": "1Gi",
            "accessModes": "ReadWriteOnce"},
    }}}));
    for (object, word) in [
        (copy_of("bank/data"), "namespace bank is not shop"),
        (copy_of("bank/data@west"), "namespace bank is not shop"),
        (copy_of("shop/data@east"), "another cluster"),
        (by_uid, "belongs to another namespace"),
    ] {
        let mut world = world(bank.clone()).with([object]);
        let mut mover = FakeMover::that(done(3));
        let run = settle(&mut world, &mut mover);
        assert!(run.rests.contains(word), "{}", run.rests);
        assert_eq!(reason(&world, "interlock.dev/Accepted"), "NotSupported");
        assert!(mover.begun.is_empty() && !has_intent(&world));
    }
}

#[test]
fn a_snapshot_that_went_before_it_was_copied_is_given_up_until_there_is_another() {
    let mut world = world(source_with("monday")).with([copy_of("shop/data")]);
    let mut mover = FakeMover::that(failed(Reason::SourceMissing));
    run(&mut world, &mut mover, 3);
    assert_eq!((mover.begun.len(), has_intent(&world)), (1, false));
    mover.next = done(3);
    source_with("tuesday").into_iter().for_each(|object| world.put(Place::CLUSTER, object));
    run(&mut world, &mut mover, 3);
    assert_eq!(copied(&mover)[1].1, "snapshot-uid-tuesday");
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "Synced");
}
