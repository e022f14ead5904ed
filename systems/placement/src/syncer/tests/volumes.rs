//! Whole moves with data: what the volume controllers of a cluster do, in a few lines, and what
//! happens to the data meanwhile.

use super::world::TestFleet;
use crate::kinds::{
    CLAIM, DESTINATION, GRANT, NAMESPACE, POD, SECRET, SNAPSHOT, SOURCE, STORAGE_CLASS, VOLUME,
    WORKLOAD_CLUSTER,
};
use interlock_kernel::metadata::{annotation, has_finalizer, is_deleting, name_of, uid_of};
use interlock_kernel::testing::{Dice, spoil};
use interlock_kernel::{Action, Kind, Name, Object, Step, Write};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const UID: &str = "0f3a9c1e-5b77-4c52-9d0e-2f4e6a8b1c3d";
pub(super) const GRANT_NAME: &str = "shop-0f3a9c1e";

/// Where repositories keep what they have, beside the disks of the clusters.
pub(super) const REPOSITORY: &str = "(repository)";

/// One effect of the volume controllers of a cluster, as far as there is any.
pub(super) fn turn(world: &mut TestFleet, cluster: &str) -> bool {
    if world.disks.is_none() {
        return false;
    }
    bind(world, cluster)
        || reclaim(world, cluster)
        || take_snapshot(world, cluster)
        || bring_snapshot(world, cluster)
}

pub(super) fn content(world: &TestFleet, cluster: &str, handle: &str) -> Option<Vec<i64>> {
    let key = (cluster.to_owned(), handle.to_owned());
    world.disks.as_ref().unwrap().get(&key).cloned()
}

fn store(world: &mut TestFleet, cluster: &str, handle: &str, content: Vec<i64>) {
    let key = (cluster.to_owned(), handle.to_owned());
    world.disks.as_mut().unwrap().insert(key, content);
}

fn bind(world: &mut TestFleet, cluster: &str) -> bool {
    for claim in world.all(cluster, &CLAIM) {
        if claim.data["status"]["phase"] == "Bound" || is_deleting(&claim) {
            continue;
        }
        let namespace = claim.metadata.namespace.clone().unwrap();
        let from = &claim.data["spec"]["dataSourceRef"]["name"];
        let filled = match from.as_str() {
            None => Some(Vec::new()),
            Some(from) => {
                let from = world.get(cluster, &DESTINATION, &Name::within(&namespace, from));
                let from = from.filter(|from| from["status"]["lastManualSync"].is_string());
                from.and_then(|from| content(world, cluster, from["metadata"]["uid"].as_str()?))
            }
        };
        let Some(filled) = filled else { continue };
        let handle = format!("pvc-{}", uid_of(&claim));
        store(world, cluster, &handle, filled);
        let volume = json!({"spec": {
            "csi": {"driver": "local.interlock.dev", "volumeHandle": handle},
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {"namespace": namespace, "name": name_of(&claim), "uid": uid_of(&claim)},
        }});
        let address = Name::cluster_wide(&handle);
        world.put(&VOLUME, address, cluster, volume);
        let bound = json!({"spec": {"volumeName": handle}, "status": {"phase": "Bound"}});
        world.change(cluster, &CLAIM, &Name::of(&claim), &bound);
        return true;
    }
    false
}

fn reclaim(world: &mut TestFleet, cluster: &str) -> bool {
    let claims = world.all(cluster, &CLAIM);
    let gone = world.all(cluster, &VOLUME).into_iter().find(|volume| {
        let of = &volume.data["spec"]["claimRef"]["uid"];
        volume.data["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
            && !claims.iter().any(|claim| *of == uid_of(claim))
    });
    let Some(gone) = gone else { return false };
    world.disks.as_mut().unwrap().remove(&(cluster.to_owned(), name_of(&gone).to_owned()));
    world.delete(cluster, &VOLUME, &Name::of(&gone));
    true
}

fn due(world: &TestFleet, cluster: &str, kind: &Kind) -> Option<Object> {
    world.all(cluster, kind).into_iter().find(|found| {
        found.data["spec"]["trigger"]["manual"] != found.data["status"]["lastManualSync"]
            && annotation(found, "test/stuck").is_none()
    })
}

fn take_snapshot(world: &mut TestFleet, cluster: &str) -> bool {
    let Some(source) = due(world, cluster, &SOURCE) else { return false };
    if let Some(reported) = without_repository(world, cluster, &SOURCE, &source) {
        return reported;
    }
    let namespace = source.metadata.namespace.clone().unwrap();
    let claim = source.data["spec"]["sourcePVC"].as_str().unwrap();
    let claim = world.get(cluster, &CLAIM, &Name::within(&namespace, claim)).unwrap();
    let volume = claim["spec"]["volumeName"].as_str().unwrap();
    let parameters = &source.data["spec"]["external"]["parameters"];
    if source.data["spec"]["external"]["provider"] == "interlock.dev/restic" {
        let mut done = json!({"lastManualSync": source.data["spec"]["trigger"]["manual"]});
        if parameters["tidy"].is_null() {
            let snapshot = format!("{:064x}", world.log.len());
            let saved = content(world, cluster, volume).unwrap();
            done["lastSyncTime"] = json!("1970-01-12T13:46:40Z");
            done["external"] = json!({"snapshotID": snapshot, "digest": "d", "bytes": "100",
                "files": saved.len().to_string()});
            store(world, REPOSITORY, &snapshot, saved);
        }
        world.change(cluster, &SOURCE, &Name::of(&source), &json!({ "status": done }));
        return true;
    }
    let snapshot = Name::within(&namespace, &format!("snapshot-{}", world.log.len()));
    let made = json!({"status": {
        "readyToUse": true, "creationTime": "1970-01-12T13:46:40Z",
    }});
    let made = world.put(&SNAPSHOT, snapshot.clone(), cluster, made);
    let taken = content(world, cluster, volume).unwrap();
    let files = taken.len().to_string();
    store(world, cluster, &format!("snapshot-{}", uid_of(&made)), taken);
    let done = json!({"status": {
        "lastManualSync": source.data["spec"]["trigger"]["manual"],
        "external": {"snapshot": &*snapshot.name, "snapshotUID": uid_of(&made), "digest": "d",
            "files": files, "bytes": "100"},
    }});
    world.change(cluster, &SOURCE, &Name::of(&source), &done);
    true
}

/// Whether the Secret of the repository is missing here, and if so, whether saying that is news.
fn without_repository(
    world: &mut TestFleet,
    cluster: &str,
    kind: &Kind,
    object: &Object,
) -> Option<bool> {
    let secret = object.data["spec"]["external"]["parameters"]["repository"].as_str()?;
    let namespace = object.metadata.namespace.as_deref().unwrap();
    if world.get(cluster, &SECRET, &Name::within(namespace, secret)).is_some() {
        return None;
    }
    let flaw = json!([{"type": "interlock.dev/Healthy", "status": "False",
        "reason": "SecretIncomplete", "message": "there is no such Secret"}]);
    let is_reported = object.data["status"]["conditions"] == flaw;
    let reported = json!({"status": {"conditions": flaw}});
    world.change(cluster, kind, &Name::of(object), &reported);
    Some(!is_reported)
}

fn bring_snapshot(world: &mut TestFleet, cluster: &str) -> bool {
    let Some(destination) = due(world, cluster, &DESTINATION) else { return false };
    if let Some(reported) = without_repository(world, cluster, &DESTINATION, &destination) {
        return reported;
    }
    let parameters = &destination.data["spec"]["external"]["parameters"];
    let snapshot = match parameters["snapshotID"].as_str() {
        Some(snapshot) => content(world, REPOSITORY, snapshot),
        None => {
            let mut clusters = ["a", "b"].into_iter();
            let from = clusters.find(|at| parameters["cluster"] == world.cluster(at).uid);
            content(world, from.unwrap(), parameters["snapshot"].as_str().unwrap())
        }
    };
    let address = Name::of(&destination);
    let Some(snapshot) = snapshot else {
        let gone = json!([{"type": "interlock.dev/Healthy", "status": "False",
            "reason": "SnapshotGone", "message": "there is no such snapshot"}]);
        let is_reported = destination.data["status"]["conditions"] == gone;
        let reported = json!({"status": {"conditions": gone}});
        world.change(cluster, &DESTINATION, &address, &reported);
        return !is_reported;
    };
    store(world, cluster, uid_of(&destination), snapshot);
    let done = json!({"status": {
        "lastManualSync": destination.data["spec"]["trigger"]["manual"],
    }});
    world.change(cluster, &DESTINATION, &address, &done);
    true
}

/// A world with storage, and a placed namespace with a claim and a pod that writes to it.
pub(super) fn world() -> TestFleet {
    let mut world = TestFleet::new(&["a", "b"]);
    world.disks = Some(super::world::Disks::new());
    for cluster in ["a", "b"] {
        let can = json!({"status": {"storageClasses": [{"name": "local", "canSnapshot": true}]}});
        world.change("", &WORKLOAD_CLUSTER, &Name::cluster_wide(cluster), &can);
        let class = json!({"provisioner": "local.interlock.dev"});
        let name = Name::cluster_wide("local");
        world.put(&STORAGE_CLASS, name, cluster, class);
    }
    let namespace = json!({"metadata": {
        "uid": UID,
        "labels": {"interlock.dev/placed": "true"}, "annotations": {"interlock.dev/cluster": "a"},
    }});
    world.put(&NAMESPACE, Name::cluster_wide("shop"), "", namespace);
    let claim = json!({"spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    }});
    world.put(&CLAIM, Name::within("shop", "data"), "", claim);
    let pod = json!({"spec": {
        "runtimeClassName": "interlock-process",
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        "containers": [{"name": "main", "command": ["writer"],
            "volumeMounts": [{"name": "v", "mountPath": "/data"}]}],
    }});
    world.put(&POD, Name::within("shop", "pod"), "", pod);
    world
}

pub(super) fn set_desired(world: &mut TestFleet, cluster: &str) {
    let patch = json!({"metadata": {"annotations": {"interlock.dev/cluster": cluster}}});
    world.change("", &NAMESPACE, &Name::cluster_wide("shop"), &patch);
}

/// Goes on until cluster a is closed, and its source was asked for the last snapshot.
pub(super) fn leave_until_asked(world: &mut TestFleet) {
    let (scheduler, syncer) = (crate::scheduler::Scheduler::default(), world.syncer("a"));
    while world.all("a", &SOURCE).is_empty() {
        world.turn(&scheduler, "");
        world.turn(&syncer, "a");
        world.turn(&world.runtime(), "a");
    }
}

pub(super) fn grant(world: &TestFleet) -> Value {
    world.get("", &GRANT, &Name::cluster_wide(GRANT_NAME)).expect("a grant")
}

pub(super) fn here(name: &str) -> Name {
    Name::within(GRANT_NAME, name)
}

/// What the namespace has written, as its claim on a cluster has it.
pub(super) fn written(world: &TestFleet, cluster: &str) -> Vec<i64> {
    let claim = world.get(cluster, &CLAIM, &here("data")).expect("a claim");
    content(world, cluster, claim["spec"]["volumeName"].as_str().unwrap()).expect("a volume")
}

pub(super) fn condition(world: &TestFleet, kind: &str) -> Value {
    let grant = grant(world);
    let mut conditions = grant["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == kind).cloned().unwrap_or_default()
}

pub(super) fn pass(world: &mut TestFleet, seconds: i64) {
    world.now = Timestamp::from_second(world.now.as_second() + seconds).unwrap();
}

#[test]
fn data_goes_along_with_every_move_and_then_nothing_is_written() {
    let mut world = world();
    world.settle();
    assert_eq!(written(&world, "a"), [1]);
    for (epoch, cluster) in [(2, "b"), (3, "a"), (4, "b"), (5, "a")] {
        set_desired(&mut world, cluster);
        world.settle();
        let grant = grant(&world);
        assert_eq!(grant["status"]["owner"]["name"], cluster, "{grant}");
        assert_eq!(written(&world, cluster), (1..=epoch).collect::<Vec<_>>());
        let pin = &grant["status"]["pins"][0];
        assert_eq!((&pin["digest"], &pin["bytes"]), (&json!("d"), &json!(100)));
        assert_eq!(pin["files"], epoch - 1);
        assert_eq!(pin["epoch"], epoch - 1);
        assert_eq!(world.settle(), 0);
    }
}

#[test]
fn the_last_snapshot_is_held_before_the_next_owner_hears_of_it() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    world.settle();
    let pinned = grant(&world)["status"]["pins"][0]["snapshot"]["volumeSnapshot"].clone();
    let snapshot = world.get("a", &SNAPSHOT, &here(pinned["name"].as_str().unwrap())).unwrap();
    assert_eq!(snapshot["metadata"]["uid"], pinned["uid"]);
    let grant_uid = grant(&world)["metadata"]["uid"].as_str().unwrap().to_owned();
    let hold = format!("interlock.dev/hold-{grant_uid}");
    assert_eq!(snapshot["metadata"]["finalizers"], json!([hold]));
    let at = |what: &str| world.log.iter().position(|line| line.contains(what)).expect("a write");
    assert!(at("Released") > at("hold-"));
    let story: Vec<&str> = world.events.iter().map(|event| event.reason).collect();
    assert!(story.contains(&"FinalSyncDone"), "{story:?}");
}

#[test]
fn a_destination_is_deleted_when_its_claim_has_its_volume() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    world.settle();
    assert!(world.all("b", &DESTINATION).is_empty());
    let claim = world.get("b", &CLAIM, &here("data")).unwrap();
    assert_eq!(claim["spec"]["dataSourceRef"]["name"], "move-data-2");
    let made =
        world.log.iter().find(|line| line.contains("Create") && line.contains("move-data-2"));
    let made = made.expect("it was made");
    assert!(
        made.contains("interlock-local"),
        "its snapshots have the class of its volumes: {made}"
    );
}

#[test]
fn the_volume_of_an_earlier_epoch_stays_beside_the_new_one_for_as_long_as_copies_are_kept() {
    let mut world = world();
    world.settle();
    let first = world.get("a", &CLAIM, &here("data")).unwrap()["spec"]["volumeName"].clone();
    let first = first.as_str().unwrap().to_owned();
    set_desired(&mut world, "b");
    world.settle();
    set_desired(&mut world, "a");
    world.settle();
    let kept = world.get("a", &VOLUME, &Name::cluster_wide(&first)).expect("it is kept");
    assert_eq!(kept["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    assert_eq!(content(&world, "a", &first), Some(vec![1]));
    assert_eq!(world.all("a", &SNAPSHOT).len(), 1);
    pass(&mut world, 168 * 3600);
    world.settle();
    assert_eq!(world.get("a", &VOLUME, &Name::cluster_wide(&first)), None);
    assert_eq!(content(&world, "a", &first), None);
    assert!(!world.all("a", &SNAPSHOT).iter().any(|snapshot| {
        snapshot.metadata.finalizers.iter().flatten().any(|known| known.contains("hold-"))
    }));
    assert_eq!(written(&world, "a"), [1, 2, 3]);
    // What the other cluster had is gone altogether.
    for kind in [CLAIM, SNAPSHOT, SOURCE, DESTINATION, VOLUME] {
        assert!(world.all("b", &kind).is_empty(), "{kind}");
    }
    assert_eq!(world.settle(), 0);
}

#[test]
fn a_move_that_comes_back_in_time_copies_nothing() {
    let mut world = world();
    world.settle();
    let volume = world.get("a", &CLAIM, &here("data")).unwrap()["spec"]["volumeName"].clone();
    let revoked = json!({"status": {"phase": "Revoking", "because": "Move"}});
    world.change("", &GRANT, &Name::cluster_wide(GRANT_NAME), &revoked);
    world.settle();
    let status = grant(&world)["status"].clone();
    assert_eq!((&status["owner"]["name"], &status["epoch"]), (&json!("a"), &json!(2)));
    assert_eq!(status["pins"][0]["snapshot"]["inPlace"]["volume"], volume);
    assert!(world.all("a", &SOURCE).is_empty());
    assert_eq!(written(&world, "a"), [1, 2]);
}

#[test]
fn what_was_left_in_place_moves_on_although_nobody_used_it_since() {
    let mut world = world();
    world.settle();
    let claim = world.get("a", &CLAIM, &here("data")).unwrap();
    // It was left in place, granted anew, and taken back before anybody here heard of the grant.
    let mut status = grant(&world)["status"].clone();
    let in_place = json!({"cluster": status["owner"], "volume": claim["spec"]["volumeName"]});
    status["pins"][0]["snapshot"] = json!({"inPlace": in_place});
    status["claims"][0]["fill"] = json!("Waiting");
    status["epoch"] = json!(2);
    status["phase"] = json!("Revoking");
    status["because"] = json!("Move");
    set_desired(&mut world, "b");
    world.change("", &GRANT, &Name::cluster_wide(GRANT_NAME), &json!({"status": status}));
    world.settle();
    let status = grant(&world)["status"].clone();
    assert_eq!((&status["owner"]["name"], &status["epoch"]), (&json!("b"), &json!(3)), "{status}");
    assert_eq!(written(&world, "b"), [1, 3]);
}

#[test]
fn a_snapshot_that_is_held_is_not_copied_back_to_where_it_was_taken() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    let (scheduler, syncer) = (crate::scheduler::Scheduler::default(), world.syncer("a"));
    let is_held = |world: &TestFleet| {
        world.all("a", &SNAPSHOT).iter().any(|snapshot| snapshot.metadata.finalizers.is_some())
    };
    while !is_held(&world) {
        world.turn(&scheduler, "");
        world.turn(&syncer, "a");
        world.turn(&world.runtime(), "a");
        turn(&mut world, "a");
    }
    set_desired(&mut world, "a");
    world.turn(&scheduler, "");
    world.settle();
    let status = grant(&world)["status"].clone();
    assert_eq!(status["owner"]["name"], "a");
    assert!(status["pins"][0]["snapshot"]["inPlace"].is_object(), "{status}");
    assert_eq!(written(&world, "a"), [1, 2]);
}

#[test]
fn a_snapshot_that_is_deleted_before_it_is_held_is_taken_again() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    let (scheduler, syncer) = (crate::scheduler::Scheduler::default(), world.syncer("a"));
    while world.all("a", &SNAPSHOT).is_empty() {
        world.turn(&scheduler, "");
        world.turn(&syncer, "a");
        world.turn(&world.runtime(), "a");
        turn(&mut world, "a");
    }
    let snapshot = world.all("a", &SNAPSHOT).remove(0);
    assert!(!has_finalizer(&snapshot, "x"));
    world.delete("a", &SNAPSHOT, &Name::of(&snapshot));
    world.settle();
    assert_eq!(written(&world, "b"), [1, 2]);
    let pinned = grant(&world)["status"]["pins"][0]["snapshot"]["volumeSnapshot"]["uid"].clone();
    assert_ne!(pinned, uid_of(&snapshot));
}

#[test]
fn a_snapshot_that_is_deleted_while_it_is_taken_is_asked_for_again() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    leave_until_asked(&mut world);
    let syncer = world.syncer("a");
    let reported = |annotations: Value| {
        json!({
            "metadata": {"annotations": annotations},
            "status": {"external": {"gaveUpTag": "final-1"}, "conditions": [{
                "type": "interlock.dev/Healthy", "status": "False", "reason": "SnapshotGone",
                "message": "snapshot x is gone"}]},
        })
    };
    let tag = |world: &TestFleet| {
        world.get("a", &SOURCE, &here("move-data")).unwrap()["spec"]["trigger"]["manual"].clone()
    };
    // Not while its sync is under way: then it may still end well.
    let under_way = reported(json!({"interlock.dev/sync": "{}", "test/stuck": "yes"}));
    world.change("a", &SOURCE, &here("move-data"), &under_way);
    world.turn(&syncer, "a");
    assert_eq!(tag(&world), "final-1");
    let given_up = reported(json!({"interlock.dev/sync": null, "test/stuck": null}));
    world.change("a", &SOURCE, &here("move-data"), &given_up);
    world.turn(&syncer, "a");
    assert_eq!(tag(&world), "final-1.2");
    world.settle();
    assert_eq!(written(&world, "b"), [1, 2]);
}

#[test]
fn a_source_that_somebody_deletes_is_made_again_once_nothing_old_holds_it() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    world.settle();
    set_desired(&mut world, "a");
    world.settle();
    // As the real source does: it stays while a snapshot of it is held.
    let held = json!({"metadata": {"finalizers": ["interlock.dev/snapshots"]}});
    world.change("a", &SOURCE, &here("move-data"), &held);
    world.delete("a", &SOURCE, &here("move-data"));
    set_desired(&mut world, "b");
    world.settle();
    let holds = |world: &TestFleet| {
        let snapshots = world.all("a", &SNAPSHOT);
        snapshots
            .iter()
            .filter(|snapshot| snapshot.metadata.finalizers.iter().flatten().next().is_some())
            .count()
    };
    assert_eq!(holds(&world), 0, "no pin refers to the snapshot of epoch 1");
    assert_eq!(grant(&world)["status"]["phase"], "Revoking");
    let free = json!({"metadata": {"finalizers": null}});
    world.change("a", &SOURCE, &here("move-data"), &free);
    world.sweep("a", &SOURCE, &here("move-data"));
    world.settle();
    assert_eq!(holds(&world), 1, "the last snapshot is held");
    assert_eq!(written(&world, "b"), [1, 2, 3, 4]);
}

#[test]
fn a_copy_that_fails_says_so_and_the_data_stays() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    leave_until_asked(&mut world);
    let stuck = json!({
        "metadata": {"annotations": {"test/stuck": "yes"}},
        "status": {"conditions": [{"type": "interlock.dev/Healthy", "status": "False",
            "reason": "TargetFull", "message": "2 GiB are needed and 1 GiB are free"}]},
    });
    world.change("a", &SOURCE, &here("move-data"), &stuck);
    world.settle();
    assert_eq!(grant(&world)["status"]["phase"], "Revoking");
    let said = condition(&world, "DataSynced");
    assert_eq!((&said["status"], &said["reason"]), (&json!("False"), &json!("TargetFull")));
    assert!(said["message"].as_str().unwrap().contains("2 GiB are needed"), "{said}");
    // The desired cluster is a again, and it runs again where it was, with all it has.
    set_desired(&mut world, "a");
    world.settle();
    assert_eq!(written(&world, "a"), [1, 2]);
    // A later move waits for no tag of a sync that never ran, and asks anew.
    let well = json!({"metadata": {"annotations": {"test/stuck": null}}, "status": null});
    world.change("a", &SOURCE, &here("move-data"), &well);
    set_desired(&mut world, "b");
    world.settle();
    assert_eq!(written(&world, "b"), [1, 2, 3]);
}

#[test]
fn a_tag_is_not_set_over_one_whose_sync_is_under_way() {
    let mut world = world();
    world.settle();
    let source = json!({
        "metadata": {"labels": {"interlock.dev/grant": GRANT_NAME},
            "annotations": {"interlock.dev/from": format!("{}/source", claim_uid(&world)),
                "interlock.dev/sync": "{}", "test/stuck": "yes"}},
        "spec": {"sourcePVC": "data", "trigger": {"manual": "final-0"}},
    });
    world.put(&SOURCE, here("move-data"), "a", source);
    set_desired(&mut world, "b");
    world.settle();
    let tag = |world: &TestFleet| {
        world.get("a", &SOURCE, &here("move-data")).unwrap()["spec"]["trigger"]["manual"].clone()
    };
    assert_eq!(tag(&world), "final-0");
    assert_eq!(condition(&world, "DataSynced")["reason"], "Copying");
    let confirmed = json!({"metadata": {"annotations": {"test/stuck": null}},
        "status": {"lastManualSync": "final-0"}});
    world.change("a", &SOURCE, &here("move-data"), &confirmed);
    world.settle();
    assert_eq!(tag(&world), "final-1");
    assert_eq!(written(&world, "b"), [1, 2]);
}

fn claim_uid(world: &TestFleet) -> String {
    let claim = world.get("", &CLAIM, &Name::within("shop", "data")).unwrap();
    claim["metadata"]["uid"].as_str().unwrap().to_owned()
}

#[test]
fn a_snapshot_that_is_gone_is_waited_for_by_name_and_nothing_starts_empty() {
    let mut world = world();
    world.settle();
    set_desired(&mut world, "b");
    let (scheduler, syncer) = (crate::scheduler::Scheduler::default(), world.syncer("a"));
    while grant(&world)["status"]["owner"]["name"] != "b" {
        world.turn(&scheduler, "");
        world.turn(&syncer, "a");
        world.turn(&world.runtime(), "a");
        turn(&mut world, "a");
    }
    world.disks.as_mut().unwrap().retain(|(_, handle), _| !handle.starts_with("snapshot-"));
    world.settle();
    let said = condition(&world, "Filled");
    assert_eq!((&said["status"], &said["reason"]), (&json!("False"), &json!("SnapshotGone")));
    assert!(said["message"].as_str().unwrap().contains("cluster a"), "{said}");
    assert!(!world.machines["b"].lives());
    assert_eq!(written(&world, "a"), [1]);
}

/// Until the data is on its way to `b`.
fn move_until_brought(world: &mut TestFleet) {
    world.settle();
    set_desired(world, "b");
    let scheduler = crate::scheduler::Scheduler::default();
    while world.all("b", &DESTINATION).is_empty() {
        world.turn(&scheduler, "");
        world.turn(&world.syncer("a"), "a");
        world.turn(&world.runtime(), "a");
        turn(world, "a");
        world.turn(&world.syncer("b"), "b");
    }
}

/// What the destination on `b` says of itself, and what the syncer has asked of it after that.
fn after(world: &mut TestFleet, reported: &Value) -> String {
    world.change("b", &DESTINATION, &here("move-data-2"), reported);
    (0..5).for_each(|_| {
        world.turn(&world.syncer("b"), "b");
    });
    let found = world.get("b", &DESTINATION, &here("move-data-2")).unwrap();
    found["spec"]["trigger"]["manual"].as_str().unwrap().to_owned()
}

#[test]
fn a_snapshot_that_was_brought_and_is_deleted_before_the_claim_has_its_data_is_brought_again() {
    let mut world = world();
    move_until_brought(&mut world);
    let there = json!({"status": {"readyToUse": true}});
    let snapshot = world.put(&SNAPSHOT, Name::within(GRANT_NAME, "brought"), "b", there);
    let published = json!({
        "metadata": {"annotations": {"test/stuck": "yes"}},
        "status": {"lastManualSync": "epoch-2",
            "external": {"snapshot": "brought", "snapshotUID": uid_of(&snapshot)}},
    });
    assert_eq!(after(&mut world, &published), "epoch-2", "it is there");
    world.delete("b", &SNAPSHOT, &Name::of(&snapshot));
    assert_eq!(after(&mut world, &published), "epoch-2.2");
    assert_eq!(after(&mut world, &published), "epoch-2.2", "that is on its way");
    // The one that is taken now is deleted before it is published.
    let lost = |annotations: Value| {
        json!({
            "metadata": {"annotations": annotations},
            "status": {"external": {"gaveUpTag": "epoch-2.2"}, "conditions": [{
                "type": "interlock.dev/Healthy", "status": "False", "reason": "SnapshotLost",
                "message": "it is gone"}]},
        })
    };
    let under_way = lost(json!({"interlock.dev/sync": "{}"}));
    assert_eq!(after(&mut world, &under_way), "epoch-2.2", "it may still end well");
    assert_eq!(after(&mut world, &lost(json!({"interlock.dev/sync": null}))), "epoch-2.3");
    let go_on =
        json!({"metadata": {"annotations": {"test/stuck": null}}, "status": {"conditions": null}});
    after(&mut world, &go_on);
    world.settle();
    assert_eq!(written(&world, "b"), [1, 2]);
}

#[test]
fn how_far_the_data_has_come_is_reported_now_and_then() {
    let mut world = world();
    move_until_brought(&mut world);
    let far = |world: &mut TestFleet, bytes: &str| {
        let reported = json!({
            "metadata": {"annotations": {"test/stuck": "yes"}},
            "status": {"external": {"progressBytes": bytes, "progressOfBytes": "100"}},
        });
        after(world, &reported);
        grant(world)["status"]["claims"][0].clone()
    };
    let claim = far(&mut world, "10");
    assert_eq!(claim["fill"], "Filling");
    assert_eq!(
        (&claim["progress"]["bytes"], &claim["progress"]["ofBytes"]),
        (&json!(10), &json!(100))
    );
    assert_eq!(far(&mut world, "20")["progress"]["bytes"], 10, "too soon");
    pass(&mut world, 1);
    assert_eq!(far(&mut world, "30")["progress"]["bytes"], 30);
    let go_on = json!({"metadata": {"annotations": {"test/stuck": null}}});
    world.change("b", &DESTINATION, &here("move-data-2"), &go_on);
    world.settle();
    let claim = grant(&world)["status"]["claims"][0].clone();
    assert_eq!((&claim["fill"], &claim["progress"]), (&json!("Filled"), &Value::Null));
}

#[test]
fn a_deleted_namespace_leaves_no_snapshot_and_no_volume() {
    let mut world = world();
    world.settle();
    for cluster in ["b", "a"] {
        set_desired(&mut world, cluster);
        world.settle();
    }
    world.delete("", &NAMESPACE, &Name::cluster_wide("shop"));
    world.settle();
    assert_eq!(world.get("", &GRANT, &Name::cluster_wide(GRANT_NAME)), None);
    for cluster in ["a", "b"] {
        for kind in [CLAIM, SNAPSHOT, SOURCE, DESTINATION, VOLUME, POD] {
            assert!(world.all(cluster, &kind).is_empty(), "{kind} on {cluster}");
        }
        assert_eq!(world.get(cluster, &NAMESPACE, &Name::cluster_wide(GRANT_NAME)), None);
    }
}

#[test]
fn spoiled_objects_of_a_move_do_no_harm() {
    for seed in 1..80_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut world = world();
        world.settle();
        set_desired(&mut world, "b");
        // Somewhere in a move.
        for _ in 0..dice.below(30) {
            world.turn(&crate::scheduler::Scheduler::default(), "");
            for cluster in ["a", "b"] {
                world.turn(&world.syncer(cluster), cluster);
                world.turn(&world.runtime(), cluster);
                turn(&mut world, cluster);
            }
        }
        for cluster in ["a", "b"] {
            for kind in [CLAIM, SNAPSHOT, SOURCE, DESTINATION, VOLUME] {
                for found in world.all(cluster, &kind) {
                    let mut object = serde_json::to_value(&*found).unwrap();
                    let part = ["spec", "status"][dice.below(2)];
                    spoil(&mut object[part], &mut dice);
                    world.put(&kind, Name::of(&found), cluster, object);
                }
            }
            let step = world.step(&world.syncer(cluster), cluster, GRANT_NAME);
            if let Step::Act(effect) = step
                && let Action::Write(Write::Delete { address, .. }) = effect.action
            {
                assert_ne!(address.kind, NAMESPACE, "seed {seed}");
            }
            drop(world.step(&world.runtime(), cluster, &format!("{GRANT_NAME}/pod")));
        }
    }
}
