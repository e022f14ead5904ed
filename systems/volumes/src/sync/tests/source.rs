//! A source from its trigger to its rest, and whatever can go wrong on the way.

mod classes;
mod elsewhere;

use crate::kinds::{CLAIM, LEASE, NAMESPACE, SECRET, SNAPSHOT_KIND, SOURCE};
use crate::outside::{Folder, Job, Mover, Progress, Reason, Sync};
use crate::sync::testing::{
    FakeMover, claim, content, copy_source, done, failed, only, runs, secret, source,
    take_snapshots,
};
use crate::sync::{Direction, Here, Replication, Serves};
use interlock_kernel::testing::{TestServers, condition, survives};
use interlock_kernel::{
    Action, Controller, LiveReads, Name, Place, Step, Subject, Watch, Watcher, Write,
};
use serde_json::{Value, json};
use std::borrow::Cow;

const SUBJECT: &str = "shop/data";
static OWN: Replication = Replication {
    direction: Direction::Source,
    serves: Serves::Own,
    here: Here { name: Cow::Borrowed(""), uid: Cow::Borrowed("") },
};

fn world(objects: impl IntoIterator<Item = Value>) -> TestServers {
    let common = [claim("data"), secret("/backup", "secret")];
    TestServers::of(&OWN).with(common).with(objects)
}

fn settle(world: &mut TestServers, mover: &mut FakeMover) -> interlock_kernel::testing::Run<Mover> {
    world.settle(&OWN, mover, SUBJECT)
}

/// Lets everything happen that comes without a person: snapshots are taken, and time passes.
fn run(world: &mut TestServers, mover: &mut FakeMover, files: u64) {
    for _ in 0..30 {
        let run = settle(world, mover);
        take_snapshots(world, files);
        match run.waits_seconds {
            Some(seconds) if seconds < 7200 => world.pass(i64::try_from(seconds).unwrap() + 1),
            _ => {}
        }
    }
}

fn seen(world: &TestServers) -> Value {
    world.json(Place::CLUSTER, &SOURCE, &Name::within("shop", "data"))
}

fn change(world: &mut TestServers, patch: &Value) {
    world.change(Place::CLUSTER, &SOURCE, &Name::within("shop", "data"), patch);
}

fn intent(world: &TestServers) -> Value {
    let text = &seen(world)["metadata"]["annotations"]["interlock.dev/sync"];
    text.as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

fn reason(world: &TestServers, kind: &str) -> String {
    let seen = seen(world);
    condition(&seen, kind)["reason"].as_str().unwrap_or_default().to_owned()
}

fn what(write: &Write) -> String {
    let verb = match write {
        Write::Create { .. } => "create",
        Write::Patch { part: interlock_kernel::Part::Status, .. } => "status of",
        Write::Patch { .. } | Write::Apply { .. } => "change",
        Write::Delete { .. } => "delete",
    };
    format!("{verb} {}", write.address().kind)
}

#[test]
fn a_backup_goes_from_its_intent_to_its_rest_one_effect_a_step() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(done(3));
    let mut writes = settle(&mut world, &mut mover).writes;
    take_snapshots(&mut world, 3);
    writes.extend(settle(&mut world, &mut mover).writes);
    let order: Vec<String> = writes.iter().map(what).collect();
    assert_eq!(
        order,
        [
            "change ReplicationSource",
            "create VolumeSnapshot",
            "status of ReplicationSource",
            "create Lease",
            "status of ReplicationSource",
            "delete VolumeSnapshot",
            "delete Lease",
            "change ReplicationSource",
        ]
    );
    let (_, job) = &mover.begun[0];
    let Job::Backup { from, keep, allow_empty, .. } = job else { panic!("{job:?}") };
    assert!(
        matches!(from, Folder::Snapshot(handle) if handle.starts_with("snapshot-uid-volsync-data-"))
    );
    assert_eq!(keep.as_ref().and_then(|keep| keep.last), Some(1));
    assert!(!allow_empty);
    let status = &seen(&world)["status"];
    assert_eq!(status["lastManualSync"], "one");
    assert_eq!(status["latestMoverStatus"], json!({"result": "Successful", "logs": "all of it"}));
    assert_eq!(status["external"]["snapshotID"], "4f");
    assert_eq!(status["lastSyncTime"], "1970-01-12T13:46:40Z");
    assert_eq!(status["lastSyncDuration"], "0s");
    assert!(status["lastSyncStartTime"].is_null());
    assert_eq!(reason(&world, "Synchronizing"), "WaitingForManual");
    assert_eq!(condition(&seen(&world), "interlock.dev/Healthy")["status"], "True");
    assert_eq!(condition(&seen(&world), "interlock.dev/Accepted")["status"], "True");
    assert_eq!(intent(&world), Value::Null);
    assert!(mover.syncs.is_empty(), "the mover has forgotten it");
    assert!(settle(&mut world, &mut mover).writes.is_empty(), "at rest it writes nothing");
}

#[test]
fn while_a_sync_runs_the_status_says_so() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(runs(7));
    settle(&mut world, &mut mover);
    assert_eq!(reason(&world, "Synchronizing"), "SyncInProgress");
    assert_eq!(seen(&world)["status"]["lastSyncStartTime"], "1970-01-12T13:46:40Z");
    take_snapshots(&mut world, 1);
    let run = settle(&mut world, &mut mover);
    assert_eq!(run.rests, "the mover runs");
    assert!(seen(&world)["status"]["external"]["progressBytes"].is_null(), "not at once");
    world.pass(2);
    settle(&mut world, &mut mover);
    assert_eq!(seen(&world)["status"]["external"]["progressBytes"], "7");
    assert_eq!(seen(&world)["status"]["external"]["progressOfBytes"], "100");
    mover.all_become(&runs(9));
    assert!(settle(&mut world, &mut mover).writes.is_empty(), "at most once a second");
    world.pass(1);
    settle(&mut world, &mut mover);
    assert_eq!(seen(&world)["status"]["external"]["progressBytes"], "9");
    world.pass(60);
    assert!(settle(&mut world, &mut mover).writes.is_empty(), "what has not changed is not said");
    mover.all_become(&done(1));
    settle(&mut world, &mut mover);
    assert!(seen(&world)["status"]["external"]["progressBytes"].is_null());
    assert_eq!(seen(&world)["status"]["lastSyncDuration"], "1m3s");
}

#[test]
fn that_much_is_on_its_way_is_said_at_once() {
    let mut world = world([source(&json!({}))]);
    let far = Progress { bytes: 7, of_bytes: Some(96 << 20), files: 1 };
    let mut mover = FakeMover::that(Sync::Runs(far));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    assert_eq!(seen(&world)["status"]["external"]["progressBytes"], "7");
}

#[test]
fn the_tag_that_is_answered_is_the_one_that_was_set_when_the_sync_began() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(done(1));
    settle(&mut world, &mut mover);
    change(&mut world, &json!({"spec": {"trigger": {"manual": "two"}}}));
    take_snapshots(&mut world, 1);
    while seen(&world)["status"]["lastManualSync"].is_null() {
        let Step::Act(effect) = world.step(&OWN, &mover, SUBJECT) else { panic!("it waits") };
        match effect.action {
            Action::Write(write) => world.apply(&write).unwrap(),
            Action::Outside(action) => {
                interlock_kernel::testing::Machine::perform(&mut mover, &action);
            }
        }
    }
    assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
    run(&mut world, &mut mover, 1);
    assert_eq!(seen(&world)["status"]["lastManualSync"], "two");
    assert_eq!(mover.begun.len(), 2, "the late tag has a snapshot of its own");
    assert_ne!(mover.begun[0].0.id, mover.begun[1].0.id);
}

#[test]
fn a_mover_that_dies_is_begun_again_with_the_same_sync() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(runs(1));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    mover.dies();
    mover.next = done(1);
    settle(&mut world, &mut mover);
    assert_eq!(mover.begun.len(), 2);
    assert_eq!(mover.begun[0].0, mover.begun[1].0);
    assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
    assert!(only(&world, &SNAPSHOT_KIND).is_empty() && only(&world, &LEASE).is_empty());
}

#[test]
fn a_failure_that_may_heal_is_tried_again_later_and_others_have_the_place_meanwhile() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(failed(Reason::RepositoryLocked));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    let run = settle(&mut world, &mut mover);
    assert_eq!(intent(&world)["attempt"], 2);
    assert!(only(&world, &LEASE).is_empty());
    assert_eq!(only(&world, &SNAPSHOT_KIND).len(), 1, "the snapshot is as good as before");
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "RepositoryLocked");
    assert!(run.events.iter().any(|event| event.reason == "TransferFailed"));
    let seconds = run.waits_seconds.unwrap();
    assert!((4..=10).contains(&seconds), "{seconds}");
    mover.next = done(1);
    assert!(settle(&mut world, &mut mover).actions.is_empty(), "not before its time");
    world.pass(11);
    settle(&mut world, &mut mover);
    assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "Synced");
    let attempts: Vec<u32> = mover.begun.iter().map(|(id, _)| id.attempt).collect();
    assert_eq!(attempts, [1, 2]);
    assert!(mover.syncs.is_empty(), "it forgets the failed attempt too");
}

#[test]
fn whoever_mends_something_does_not_wait_for_the_end_of_a_pause() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(failed(Reason::RepositoryLocked));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    assert_eq!(intent(&world)["attempt"], 2);
    mover.next = done(1);
    let unlock = json!({"metadata": {"generation": 2}, "spec": {"restic": {"unlock": "now"}}});
    change(&mut world, &unlock);
    settle(&mut world, &mut mover);
    assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
    assert_eq!(seen(&world)["status"]["restic"]["lastUnlocked"], "now");
    let (id, job) = mover.begun.last().unwrap();
    let Job::Backup { keep: Some(keep), .. } = job else { panic!("{job:?}") };
    assert!(id.attempt == 2 && keep.unlock, "{id:?} {keep:?}");
}

#[test]
fn after_eight_attempts_it_is_given_up_and_stays_so_until_something_changes() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(failed(Reason::RepositoryUnreachable));
    run(&mut world, &mut mover, 1);
    assert_eq!(mover.begun.len(), 8);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "RetriesExhausted");
    assert_eq!(reason(&world, "Synchronizing"), "Error");
    assert_eq!(seen(&world)["status"]["latestMoverStatus"]["result"], "Failed");
    assert_eq!(intent(&world), Value::Null);
    assert!(only(&world, &SNAPSHOT_KIND).is_empty() && only(&world, &LEASE).is_empty());
    assert!(seen(&world)["status"]["lastManualSync"].is_null());
    world.pass(100_000);
    assert!(settle(&mut world, &mut mover).writes.is_empty());
    mover.next = done(1);
    change(
        &mut world,
        &json!({"metadata": {"generation": 2},
        "spec": {"trigger": {"manual": "two"}}}),
    );
    run(&mut world, &mut mover, 1);
    assert_eq!(seen(&world)["status"]["lastManualSync"], "two");
    assert!(seen(&world)["status"]["external"]["gaveUpOn"].is_null());
}

#[test]
fn a_wrong_password_is_not_tried_again_until_the_secret_changes() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(failed(Reason::WrongPassword));
    run(&mut world, &mut mover, 1);
    assert_eq!(mover.begun.len(), 1);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "WrongPassword");
    mover.next = done(1);
    let again = secret("/backup", "right");
    world.put(Place::CLUSTER, again);
    let repository = world.get(Place::CLUSTER, &SECRET, &Name::within("shop", "repository"));
    let watch = Watch::all(Place::CLUSTER, &SECRET);
    let woken = OWN.subjects(&watch, &repository.unwrap(), &world.view());
    assert_eq!(woken, [Subject::from(SUBJECT)]);
    run(&mut world, &mut mover, 1);
    assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
}

#[test]
fn a_scheduled_source_that_was_given_up_comes_back_with_its_schedule() {
    let hourly = json!({"spec": {"trigger": {"manual": null, "schedule": "@hourly"}}});
    let mut world = world([source(&hourly)]);
    let mut mover = FakeMover::that(failed(Reason::WrongPassword));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    let run = settle(&mut world, &mut mover);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "WrongPassword");
    let seconds = run.waits_seconds.unwrap();
    assert!((300..3600).contains(&seconds), "{seconds}");
    world.pass(3600);
    settle(&mut world, &mut mover);
    assert!(intent(&world).is_object());
}

#[test]
fn a_schedule_says_when_it_comes_next_and_a_paused_one_does_not_come() {
    let hourly = json!({"spec": {"trigger": {"manual": null, "schedule": "@hourly"}}});
    let mut world = world([source(&hourly)]);
    let mut mover = FakeMover::that(done(1));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    assert_eq!(reason(&world, "Synchronizing"), "WaitingForSchedule");
    let next = seen(&world)["status"]["nextSyncTime"].as_str().unwrap().to_owned();
    assert!(next.starts_with("1970-01-12T14:0"), "{next}");
    assert!(seen(&world)["status"]["lastManualSync"].is_null());
    change(&mut world, &json!({"spec": {"paused": true}}));
    world.pass(7200);
    let run = settle(&mut world, &mut mover);
    assert!(run.rests.contains("Paused") && run.waits_seconds.is_none(), "{}", run.rests);
    change(&mut world, &json!({"spec": {"paused": false}}));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    assert_eq!(mover.begun.len(), 2);
    assert_eq!(seen(&world)["status"]["external"]["missedIntervals"], "1");
}

#[test]
fn what_is_in_the_way_is_said_and_goes_when_it_is_mended() {
    let cases = [
        (secret("/backup", ""), "SecretIncomplete", "RESTIC_PASSWORD"),
        (secret("", "p"), "SecretIncomplete", "RESTIC_REPOSITORY"),
        (secret("sftp:me@there:/x", "p"), "RepositoryNotSupported", "sftp"),
        (secret("backup", "p"), "RepositoryNotSupported", "absolute path"),
        (secret("rest:ftp://x", "p"), "RepositoryNotSupported", "rest"),
    ];
    for (broken, wanted, word) in cases {
        let mut world = world([source(&json!({})), broken]);
        let mut mover = FakeMover::that(done(1));
        let run = settle(&mut world, &mut mover);
        assert_eq!(reason(&world, "interlock.dev/Healthy"), wanted);
        assert_eq!(reason(&world, "Synchronizing"), "Error");
        assert!(run.rests.contains(word), "{}", run.rests);
        assert_eq!(intent(&world), Value::Null);
        world.put(Place::CLUSTER, secret("s3:https://x/y", "p"));
        run_to_the_end(&mut world, &mut mover);
    }
}

fn run_to_the_end(world: &mut TestServers, mover: &mut FakeMover) {
    run(world, mover, 1);
    assert_eq!(seen(world)["status"]["lastManualSync"], "one");
    assert_eq!(reason(world, "interlock.dev/Healthy"), "Synced");
}

#[test]
fn a_source_without_its_claim_waits_for_it() {
    let mut world = TestServers::of(&OWN).with([source(&json!({})), secret("/backup", "p")]);
    let mut mover = FakeMover::that(done(1));
    settle(&mut world, &mut mover);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "SourceMissing");
    world.put(Place::CLUSTER, claim("data"));
    run_to_the_end(&mut world, &mut mover);
}

#[test]
fn what_is_not_supported_is_refused_and_nothing_runs() {
    let trigger =
        json!({"metadata": {"annotations": {"volsync.backube/use-copy-trigger": "true"}}});
    let mut held_back = claim("data");
    interlock_kernel::testing::merge(&mut held_back, &trigger);
    let ca = json!({"spec": {"restic": {"customCA": {"secretName": "repository",
        "key": "RESTIC_PASSWORD"}}}});
    let cases: [(Value, &str); 4] = [
        (source(&json!({"spec": {"restic": {"moverVolumes": [{}]}}})), "spec.restic.moverVolumes"),
        (source(&json!({"spec": {"trigger": {"manual": "", "schedule": "61 * * * *"}}})), "61"),
        (source(&ca), "spec.restic.customCA"),
        (held_back, "use-copy-trigger"),
    ];
    for (object, word) in cases {
        let mut world = world([source(&json!({})), object]);
        let mut mover = FakeMover::that(done(1));
        let run = settle(&mut world, &mut mover);
        assert!(run.rests.contains(word), "{} names {word}", run.rests);
        assert_eq!(reason(&world, "interlock.dev/Accepted"), "NotSupported");
        assert_eq!(condition(&seen(&world), "interlock.dev/Accepted")["status"], "False");
        assert_eq!(reason(&world, "Synchronizing"), "Error");
        assert_eq!((intent(&world), mover.begun.len()), (Value::Null, 0));
        assert!(only(&world, &SNAPSHOT_KIND).is_empty());
    }
}

#[test]
fn somebody_elses_source_is_never_touched() {
    let theirs = json!({"spec": {"restic": null, "external": {"provider": "example.com/x"}}});
    let mut world = world([source(&theirs)]);
    assert!(settle(&mut world, &mut FakeMover::that(done(1))).writes.is_empty());
    let other = Replication::of_sources(Serves::External);
    let mut world = TestServers::of(&other).with([source(&json!({})), claim("data")]);
    let run = world.settle(&other, &mut FakeMover::that(done(1)), SUBJECT);
    assert!(run.writes.is_empty() && run.actions.is_empty());
}

#[test]
fn what_has_no_effect_is_reported_once() {
    let cache = json!({"spec": {"restic": {"cacheCapacity": "1Gi"}}});
    let mut odd = secret("/backup", "p");
    odd["data"]["AWS_PROFILE"] = json!("eA==");
    let mut world = world([source(&cache), odd]);
    let mut mover = FakeMover::that(done(1));
    let mut events = settle(&mut world, &mut mover).events;
    take_snapshots(&mut world, 1);
    events.extend(settle(&mut world, &mut mover).events);
    let reported: Vec<&str> = events
        .iter()
        .filter(|event| event.reason.ends_with("WithoutEffect"))
        .map(|event| event.note.as_str())
        .collect();
    assert_eq!(
        reported,
        [
            "These fields have no effect: spec.restic.cacheCapacity, key AWS_PROFILE of Secret repository"
        ]
    );
}

#[test]
fn no_more_than_four_work_at_one_repository() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(done(1));
    let places = crate::sync::slots::places_of("/backup");
    for place in 0..4 {
        let name = crate::sync::slots::slot_name(&places, place).name;
        world.put(
            Place::CLUSTER,
            json!({
                "kind": "Lease",
                "metadata": {"namespace": "interlock-system", "name": &*name, "uid": &*name,
                    "labels": {"interlock.dev/slot": places}},
                "spec": {"holderIdentity": format!("other-{place}")},
            }),
        );
    }
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    let run = settle(&mut world, &mut mover);
    assert!(run.rests.contains("all slots"), "{}", run.rests);
    assert!(mover.begun.is_empty());
    let second = crate::sync::slots::slot_name(&places, 2);
    let lease = world.get(Place::CLUSTER, &LEASE, &second).unwrap();
    world.delete(Place::CLUSTER, &LEASE, &second);
    let woken = OWN.subjects(&Watch::all(Place::CLUSTER, &LEASE), &lease, &world.view());
    assert_eq!(woken, [Subject::from(SUBJECT)]);
    settle(&mut world, &mut mover);
    assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
    assert_eq!(only(&world, &LEASE).len(), 3);
}

#[test]
fn a_volume_in_use_that_is_read_directly_is_no_one_moment_and_that_is_said() {
    let direct = json!({"spec": {"restic": {"copyMethod": "Direct"}}});
    let pod = json!({
        "kind": "Pod", "metadata": {"namespace": "shop", "name": "web", "uid": "p"},
        "spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]},
        "status": {"phase": "Running"},
    });
    for (pods, wanted) in [(vec![pod], "NotPointInTime"), (vec![], "TransferStarted")] {
        let mut world = world([source(&direct)]).with(pods);
        let mut mover = FakeMover::that(done(1));
        let run = settle(&mut world, &mut mover);
        assert!(run.events.iter().any(|event| event.reason == wanted), "{:?}", run.events);
        let Job::Backup { from, .. } = &mover.begun[0].1 else { panic!("no backup") };
        assert_eq!(*from, Folder::Volume("pvc-data".to_owned()));
        assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
    }
}

#[test]
fn a_cache_that_is_behind_begins_nothing() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(runs(1));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    let run = settle(&mut world, &mut mover);
    assert_eq!(run.actions.len(), 1);
    // The sync is over, and all is forgotten; the cache still shows its intent.
    let name = Name::within("shop", "data");
    let mut truth = seen(&world);
    let id = intent(&world)["id"].clone();
    interlock_kernel::testing::merge(
        &mut truth,
        &json!({
            "metadata": {"annotations": {"interlock.dev/sync": null}},
            "status": {"lastManualSync": "one", "external": {"syncID": id}},
        }),
    );
    let fresh = TestServers::of(&OWN).with([truth]);
    mover.dies();
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
                    let of = if address.kind == SOURCE { &fresh } else { &world };
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
    assert!(live_reads.objects.keys().any(|address| address.name == name));
    let step = OWN.step(&Subject::from(SUBJECT), &world.view(), &live_reads);
    let is_begin =
        matches!(&step, Step::Act(effect) if matches!(effect.action, Action::Outside(_)));
    assert!(!is_begin, "{step:?}");
}

#[test]
fn with_the_copy_provider_the_snapshot_is_the_product() {
    let mut world = world([copy_source(&json!({}))]);
    let mut mover = FakeMover::that(done(1));
    settle(&mut world, &mut mover);
    assert_eq!(seen(&world)["metadata"]["finalizers"], json!(["interlock.dev/snapshots"]));
    take_snapshots(&mut world, 5);
    settle(&mut world, &mut mover);
    assert!(mover.begun.is_empty() && only(&world, &LEASE).is_empty());
    let snapshots = only(&world, &SNAPSHOT_KIND);
    let external = &seen(&world)["status"]["external"];
    assert_eq!(snapshots.len(), 1, "it stays");
    assert_eq!(external["snapshot"], json!(snapshots[0].metadata.name));
    assert_eq!(external["snapshotUID"], json!(snapshots[0].metadata.uid));
    assert_eq!(
        (&external["digest"], &external["files"], &external["bytes"]),
        (&json!(content(5).digest), &json!("5"), &json!("50"))
    );
    assert_eq!(seen(&world)["status"]["lastManualSync"], "one");
    assert_eq!(intent(&world), Value::Null);
}

#[test]
fn of_the_snapshots_of_a_copy_the_last_two_stay_and_whatever_is_held() {
    let mut world = world([copy_source(&json!({}))]);
    let mut mover = FakeMover::that(done(1));
    for tag in ["a", "b", "c", "d"] {
        change(&mut world, &json!({"spec": {"trigger": {"manual": tag}}}));
        settle(&mut world, &mut mover);
        take_snapshots(&mut world, 1);
        settle(&mut world, &mut mover);
        if tag == "a" {
            let first = Name::of(&only(&world, &SNAPSHOT_KIND)[0]);
            let hold = json!({"metadata": {"finalizers": ["interlock.dev/hold-g"]}});
            world.change(Place::CLUSTER, &SNAPSHOT_KIND, &first, &hold);
        }
    }
    let snapshots = only(&world, &SNAPSHOT_KIND);
    let held: Vec<bool> =
        snapshots.iter().map(|snapshot| snapshot.metadata.finalizers.is_some()).collect();
    assert_eq!(held.iter().filter(|held| **held).count(), 1);
    assert_eq!(snapshots.len(), 2, "the held one and the latest");
    let first = snapshots.iter().find(|snapshot| snapshot.metadata.finalizers.is_some()).unwrap();
    assert!(first.metadata.deletion_timestamp.is_none());
}

#[test]
fn an_empty_volume_is_no_snapshot_unless_that_is_meant() {
    let allowed = json!({"metadata": {"annotations": {"interlock.dev/allow-empty": "true"}}});
    for (patch, wanted) in [(json!({}), "SourceEmpty"), (allowed, "Synced")] {
        let mut world = world([copy_source(&patch)]);
        let mut mover = FakeMover::that(done(1));
        run(&mut world, &mut mover, 0);
        assert_eq!(reason(&world, "interlock.dev/Healthy"), wanted);
        let is_done = wanted == "Synced";
        assert_eq!(only(&world, &SNAPSHOT_KIND).len(), usize::from(is_done));
        assert_eq!(seen(&world)["status"]["lastManualSync"] == "one", is_done);
    }
}

#[test]
fn a_copy_that_is_being_deleted_waits_for_whoever_holds_its_snapshot() {
    let mut world = world([copy_source(&json!({}))]);
    let mut mover = FakeMover::that(done(1));
    run(&mut world, &mut mover, 1);
    let snapshot = Name::of(&only(&world, &SNAPSHOT_KIND)[0]);
    let hold = json!({"metadata": {"finalizers": ["interlock.dev/hold-g"]}});
    world.change(Place::CLUSTER, &SNAPSHOT_KIND, &snapshot, &hold);
    world.delete(Place::CLUSTER, &SOURCE, &Name::within("shop", "data"));
    let run = settle(&mut world, &mut mover);
    assert!(run.writes.is_empty() && run.rests.contains("no holder"), "{}", run.rests);
    world.change(
        Place::CLUSTER,
        &SNAPSHOT_KIND,
        &snapshot,
        &json!({"metadata": {"finalizers": null}}),
    );
    settle(&mut world, &mut mover);
    assert!(only(&world, &SNAPSHOT_KIND).is_empty());
    assert!(seen(&world).is_null());
}

#[test]
fn a_snapshot_that_a_person_wants_to_keep_is_left_to_them() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(done(1));
    settle(&mut world, &mut mover);
    let snapshot = Name::of(&only(&world, &SNAPSHOT_KIND)[0]);
    let keep = json!({"metadata": {"labels": {"volsync.backube/do-not-delete": ""}}});
    world.change(Place::CLUSTER, &SNAPSHOT_KIND, &snapshot, &keep);
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    let left = only(&world, &SNAPSHOT_KIND);
    assert_eq!(left.len(), 1);
    assert!(left[0].metadata.owner_references.iter().flatten().next().is_none());
    assert_eq!(intent(&world), Value::Null);
}

#[test]
fn a_snapshot_deleted_under_the_sync_ends_it_and_the_next_one_is_new() {
    let mut world = world([source(&json!({}))]);
    let mut mover = FakeMover::that(done(1));
    settle(&mut world, &mut mover);
    let snapshot = Name::of(&only(&world, &SNAPSHOT_KIND)[0]);
    let terminating = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z",
        "finalizers": ["x"]}, "status": {"readyToUse": true}});
    world.change(Place::CLUSTER, &SNAPSHOT_KIND, &snapshot, &terminating);
    settle(&mut world, &mut mover);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "SnapshotGone");
    assert_eq!((intent(&world), mover.begun.len()), (Value::Null, 0));
}

#[test]
fn retention_and_unlock_are_those_of_the_moment_when_the_sync_began() {
    let keeps = json!({
        "metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"},
        "spec": {"restic": {"retain": {"daily": 3}, "unlock": "x", "pruneIntervalDays": 1}},
    });
    let mut world = world([source(&keeps)]);
    let mut mover = FakeMover::that(runs(1));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    change(&mut world, &json!({"spec": {"restic": {"unlock": "y"}}}));
    mover.all_become(&done(1));
    settle(&mut world, &mut mover);
    let Job::Backup { keep: Some(keep), .. } = &mover.begun[0].1 else { panic!("no retention") };
    assert_eq!((keep.daily, keep.last, keep.prune, keep.unlock), (Some(3), None, true, true));
    let restic = &seen(&world)["status"]["restic"];
    assert_eq!(restic["lastUnlocked"], "x", "y was not what the sync unlocked by");
    assert_eq!(restic["lastPruned"], "1970-01-12T13:46:40Z");
}

#[test]
fn an_intent_that_nobody_can_read_is_said_to_be_so() {
    let broken = json!({"metadata": {"annotations": {"interlock.dev/sync": "{"}}});
    let mut world = world([source(&broken)]);
    let run = settle(&mut world, &mut FakeMover::that(done(1)));
    assert!(run.rests.contains("interlock.dev/sync"), "{}", run.rests);
    assert_eq!(reason(&world, "interlock.dev/Healthy"), "BrokenIntent");
}

#[test]
fn broken_objects_do_not_break_it() {
    let namespace = json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "uid-shop",
        "annotations": {"interlock.dev/grant": "g", "interlock.dev/running": "1@boot"}}});
    let mut world = world([source(&json!({})), namespace]);
    let mut mover = FakeMover::that(failed(Reason::RepositoryLocked));
    settle(&mut world, &mut mover);
    take_snapshots(&mut world, 1);
    settle(&mut world, &mut mover);
    let kinds = [SOURCE, SNAPSHOT_KIND, CLAIM, SECRET, NAMESPACE];
    let mut objects: Vec<Value> = kinds
        .iter()
        .flat_map(|kind| only(&world, kind))
        .map(|object| serde_json::to_value(&*object).unwrap())
        .collect();
    objects.push(copy_source(&json!({"metadata": {"name": "other", "uid": "other",
        "deletionTimestamp": "2001-01-01T00:00:00Z", "finalizers": ["interlock.dev/snapshots"]}})));
    survives(&OWN, &mover, &objects);
}
