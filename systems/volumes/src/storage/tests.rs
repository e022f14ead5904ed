//! Volumes are made, bound and deleted; snapshots are taken, described and deleted.

use super::*;
use crate::kinds::{CLAIM, CONTENT, POD, SNAPSHOT_CLASS, SNAPSHOT_KIND, VOLUME};
use crate::outside::{DiskAction, DiskQuestion, Made};
use crate::testing::{
    TestDisk, Thing, calm_storage, claim, claim_of, class, content, from_destination,
    from_snapshot, full, ready_snapshot, snapshot, snapshot_of, volume_of, world_of_storage,
};
use interlock_kernel::testing::{Machine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Action, Address, Controller, Kind, Place, Write};
use serde_json::{Value, json};

const PROTECTION: &str = "kubernetes.io/pvc-protection";

struct Case {
    world: TestServers,
    disk: TestDisk,
}

impl Case {
    fn of(objects: impl IntoIterator<Item = Value>) -> Case {
        let world = world_of_storage();
        Case { world: world.with([class()]).with(objects), disk: TestDisk::default() }
    }

    fn calm(&mut self) -> &mut Case {
        for _ in 0..20 {
            let effects = calm_storage(&mut self.world, &mut self.disk);
            let is_news = self.disk.finish();
            if effects == 0 && !is_news {
                return self;
            }
        }
        panic!("it does not come to rest")
    }

    fn settle(&mut self, of: &dyn Controller<Outside = Disk>, subject: &str) -> Run<Disk> {
        self.world.settle(of, &mut self.disk, subject)
    }

    fn delete(&mut self, kind: &Kind, name: &str) {
        self.world.delete(Place::CLUSTER, kind, &Name::within("shop", name));
    }

    fn change(&mut self, kind: &Kind, name: &str, patch: Value) {
        let name = match kind.is_namespaced {
            true => Name::within("shop", name),
            false => Name::cluster_wide(name),
        };
        self.world.change(Place::CLUSTER, kind, &name, &patch);
    }
}

fn pod(patch: Value) -> Value {
    let pod = json!({
        "kind": "Pod",
        "metadata": {"namespace": "shop", "name": "web", "uid": "uid-web",
            "creationTimestamp": "1970-01-12T13:30:00Z"},
        "spec": {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]},
        "status": {"phase": "Running"},
    });
    patched(pod, &patch)
}

#[test]
fn a_claim_gets_an_empty_volume_and_each_names_the_other() {
    let mut case = Case::of([claim("data", json!({}))]);
    case.calm();
    let volume = volume_of(&case.world, "pvc-uid-data");
    assert_eq!(volume["spec"]["claimRef"]["uid"], "uid-data");
    assert_eq!(volume["spec"]["csi"]["volumeHandle"], "pvc-uid-data");
    assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Delete");
    assert_eq!(volume["status"]["phase"], "Bound");
    let claim = claim_of(&case.world, "data");
    assert_eq!(claim["spec"]["volumeName"], "pvc-uid-data");
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_eq!(claim["status"]["capacity"]["storage"], "1Gi");
    assert_eq!(claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"], "yes");
    assert_eq!(claim["metadata"]["finalizers"], json!([PROTECTION]));
    assert_eq!(case.disk.things["pvc-uid-data"], Thing::Whole(content("")));
    assert_eq!(calm_storage(&mut case.world, &mut case.disk), 0, "all is at rest");
}

#[test]
fn a_claim_without_a_class_takes_the_default_and_one_of_another_is_left_alone() {
    let default = json!({"metadata": {"annotations": {
        "storageclass.kubernetes.io/is-default-class": "true"}}});
    let mut case = Case::of([
        patched(class(), &default),
        claim("data", json!({"spec": {"storageClassName": null}})),
        claim("other", json!({"spec": {"storageClassName": "fast"}})),
        claim("static", json!({"spec": {"storageClassName": ""}})),
    ]);
    case.calm();
    assert_eq!(claim_of(&case.world, "data")["spec"]["storageClassName"], "interlock-local");
    assert_eq!(claim_of(&case.world, "data")["status"]["phase"], "Bound");
    for left in ["other", "static"] {
        assert_eq!(claim_of(&case.world, left)["status"]["phase"], "Pending", "{left}");
        assert!(claim_of(&case.world, left)["metadata"]["finalizers"].is_null(), "{left}");
    }
}

#[test]
fn a_claim_whose_class_is_missing_says_so_and_goes_on_when_it_comes() {
    let world = world_of_storage().with([claim("data", json!({}))]);
    let mut case = Case { world, disk: TestDisk::default() };
    case.calm();
    let said = claim_of(&case.world, "data");
    assert_eq!(condition(&said, "interlock.dev/Healthy")["reason"], "ClassMissing");
    case.world.put(Place::CLUSTER, class());
    case.world.pass(10);
    case.calm();
    let claim = claim_of(&case.world, "data");
    assert_eq!(claim["status"]["phase"], "Bound");
    assert!(condition(&claim, "interlock.dev/Healthy").is_null());
}

#[test]
fn what_local_storage_does_not_have_is_refused_in_words() {
    let clone = json!({"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}});
    for (patch, word) in [
        (json!({"spec": {"volumeMode": "Block"}}), "volumeMode Block"),
        (json!({"spec": {"selector": {}}}), "selector"),
        (clone, "PersistentVolumeClaim"),
    ] {
        let mut case = Case::of([claim("data", patch)]);
        case.calm();
        let claim = claim_of(&case.world, "data");
        let said = condition(&claim, "interlock.dev/Healthy");
        assert_eq!(said["reason"], "NotSupported");
        assert!(said["message"].as_str().unwrap().contains(word), "{said}");
        assert!(case.disk.things.is_empty());
    }
}

#[test]
fn a_claim_of_a_snapshot_has_what_is_in_it_and_lets_go_of_it_when_bound() {
    let [snapshot, record] = ready_snapshot("monday", "a b", json!({}));
    let mut case = Case::of([snapshot, record, claim("data", from_snapshot("monday"))]);
    case.disk = TestDisk::default().with("snapshot-uid-monday", "a b");
    let run = case.settle(&Claims, "shop/data");
    assert_eq!(run.rests, "the volume is being created");
    let held = json!([
        "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection",
        "interlock.dev/hold-uid-data"
    ]);
    assert_eq!(snapshot_of(&case.world, "monday")["metadata"]["finalizers"], held);
    case.disk.finish();
    case.calm();
    assert_eq!(case.disk.words("pvc-uid-data"), Some("a b"));
    assert_eq!(claim_of(&case.world, "data")["status"]["phase"], "Bound");
    let finalizers = &snapshot_of(&case.world, "monday")["metadata"]["finalizers"];
    assert_eq!(finalizers.as_array().unwrap().len(), 1, "the hold is dropped");
}

#[test]
fn a_claim_waits_for_a_snapshot_that_is_not_ready_and_refuses_one_that_dies() {
    let [snapshot, record] =
        ready_snapshot("monday", "a", json!({"status": {"readyToUse": false}}));
    let mut case = Case::of([snapshot, record, claim("data", from_snapshot("monday"))]);
    let run = case.settle(&Claims, "shop/data");
    assert_eq!(run.rests, "the snapshot is not complete yet");
    case.delete(&SNAPSHOT_KIND, "monday");
    case.settle(&Claims, "shop/data");
    let claim = claim_of(&case.world, "data");
    assert_eq!(condition(&claim, "interlock.dev/Healthy")["reason"], "SnapshotGone");
    assert!(case.disk.things.is_empty());
}

#[test]
fn what_was_begun_of_a_snapshot_that_dies_ends_well_and_what_was_not_lets_go_of_it() {
    let begun = |case: &mut Case| {
        case.disk = TestDisk::default().with("snapshot-uid-monday", "a");
        case.settle(&Claims, "shop/data");
        case.delete(&SNAPSHOT_KIND, "monday");
    };
    let objects = || {
        let [snapshot, record] = ready_snapshot("monday", "a", json!({}));
        [snapshot, record, claim("data", from_snapshot("monday"))]
    };
    let mut ends = Case::of(objects());
    begun(&mut ends);
    ends.calm();
    assert_eq!(ends.disk.words("pvc-uid-data"), Some("a"));
    assert!(snapshot_of(&ends.world, "monday").is_null(), "held, and then gone");
    let mut dies = Case::of(objects());
    begun(&mut dies);
    dies.disk.die();
    dies.calm();
    assert!(dies.disk.words("pvc-uid-data").is_none());
    assert!(snapshot_of(&dies.world, "monday").is_null());
    let claim = claim_of(&dies.world, "data");
    assert_eq!(condition(&claim, "interlock.dev/Healthy")["reason"], "SourceMissing");
}

#[test]
fn a_snapshot_that_is_larger_than_the_claim_is_refused_with_its_size() {
    let [snapshot, record] =
        ready_snapshot("monday", "a", json!({"status": {"restoreSize": "12Gi"}}));
    let mut case = Case::of([snapshot, record, claim("data", from_snapshot("monday"))]);
    case.calm();
    let claim = claim_of(&case.world, "data");
    let said = condition(&claim, "interlock.dev/Healthy");
    assert_eq!(said["reason"], "SizeMismatch");
    assert!(said["message"].as_str().unwrap().starts_with("the claim needs 12.0 GiB"), "{said}");
}

#[test]
fn a_claim_that_means_another_snapshot_of_the_same_name_gets_neither() {
    let meant = json!({"metadata": {"annotations": {"interlock.dev/snapshot": "uid-of-before"}}});
    let [snapshot, record] = ready_snapshot("monday", "a", json!({}));
    let data = patched(claim("data", from_snapshot("monday")), &meant);
    let mut case = Case::of([snapshot, record, data]);
    case.disk = TestDisk::default().with("snapshot-uid-monday", "a");
    case.calm();
    assert_eq!(claim_of(&case.world, "data")["status"]["phase"], "Pending");
    assert!(case.disk.words("pvc-uid-data").is_none());
}

#[test]
fn a_failure_is_reported_and_tried_again_after_longer_and_longer() {
    let mut case = Case::of([claim("data", json!({}))]);
    case.disk.fails = Some(full());
    let run = case.settle(&Claims, "shop/data");
    assert_eq!(run.waits_seconds, Some(5));
    assert_eq!(run.events[0].reason, "ProvisioningFailed");
    assert_eq!(run.actions.len(), 2, "{:?}", run.actions);
    let said = claim_of(&case.world, "data");
    assert_eq!(condition(&said, "interlock.dev/Healthy")["reason"], "TargetFull");
    for (passed, next) in [(5, 5), (5, 10), (10, 20), (20, 40)] {
        case.world.pass(passed);
        let run = case.settle(&Claims, "shop/data");
        assert_eq!(run.waits_seconds, Some(next));
    }
    case.disk.fails = None;
    case.world.pass(40);
    case.calm();
    assert_eq!(claim_of(&case.world, "data")["status"]["phase"], "Bound");
}

#[test]
fn a_volume_that_was_half_made_when_the_process_died_is_made_again() {
    let mut case = Case::of([claim("data", json!({}))]);
    case.settle(&Claims, "shop/data");
    case.disk.die();
    case.calm();
    assert_eq!(claim_of(&case.world, "data")["status"]["phase"], "Bound");
}

#[test]
fn a_claim_that_a_populator_fills_is_left_alone_until_a_volume_names_it() {
    let mut case = Case::of([claim("data", from_destination())]);
    assert_eq!(calm_storage(&mut case.world, &mut case.disk), 0);
    let mut other = Case::of([claim("aux", json!({}))]);
    other.calm();
    let handed = json!({"spec": {"claimRef": {"name": "data", "uid": "uid-data"}}});
    case.world.put(Place::CLUSTER, patched(volume_of(&other.world, "pvc-uid-aux"), &handed));
    case.calm();
    let claim = claim_of(&case.world, "data");
    assert_eq!(claim["spec"]["volumeName"], "pvc-uid-aux");
    assert_eq!(claim["status"]["phase"], "Bound");
}

#[test]
fn a_volume_that_names_a_claim_of_the_same_name_and_another_uid_is_not_bound_to_it() {
    let mut other = Case::of([claim("aux", json!({}))]);
    other.calm();
    let handed = json!({"spec": {"claimRef": {"name": "data", "uid": "uid-of-before"}}});
    let mut case = Case::of([
        claim("data", from_destination()),
        patched(volume_of(&other.world, "pvc-uid-aux"), &handed),
    ]);
    case.settle(&Claims, "shop/data");
    assert!(claim_of(&case.world, "data")["spec"]["volumeName"].is_null());
}

#[test]
fn a_claim_whose_volume_was_handed_on_is_lost_and_goes_without_it() {
    let mut case = Case::of([claim("aux", json!({})), claim("data", from_destination())]);
    case.calm();
    let handed = json!({"spec": {"claimRef": {"name": "data", "uid": "uid-data"}}});
    case.change(&VOLUME, "pvc-uid-aux", handed);
    case.calm();
    assert_eq!(claim_of(&case.world, "aux")["status"]["phase"], "Lost");
    assert_eq!(claim_of(&case.world, "data")["status"]["phase"], "Bound");
    case.delete(&CLAIM, "aux");
    case.calm();
    assert!(claim_of(&case.world, "aux").is_null());
    assert_eq!(volume_of(&case.world, "pvc-uid-aux")["status"]["phase"], "Bound");
    assert!(case.disk.words("pvc-uid-aux").is_some());
}

#[test]
fn a_claim_in_use_goes_after_its_pod_and_its_volume_after_the_claim() {
    let mut case = Case::of([claim("data", json!({})), pod(json!({}))]);
    case.calm();
    case.delete(&CLAIM, "data");
    case.calm();
    assert!(!claim_of(&case.world, "data").is_null(), "a pod mounts it");
    case.change(&POD, "web", json!({"status": {"phase": "Succeeded"}}));
    case.calm();
    assert!(claim_of(&case.world, "data").is_null());
    assert!(volume_of(&case.world, "pvc-uid-data").is_null());
    assert!(case.disk.things.is_empty());
}

#[test]
fn a_volume_is_released_before_it_is_deleted_and_its_record_goes_last() {
    let mut case = Case::of([claim("data", json!({}))]);
    case.calm();
    case.delete(&CLAIM, "data");
    case.settle(&Claims, "shop/data");
    let run = case.settle(&Volumes, "pvc-uid-data");
    assert!(matches!(&run.writes[0], Write::Patch { change, .. }
        if change["status"]["phase"] == "Released"));
    assert_eq!(run.actions, [DiskAction::DeleteVolume("pvc-uid-data".to_owned())]);
    assert!(matches!(run.writes[1], Write::Delete { .. }));
    assert!(volume_of(&case.world, "pvc-uid-data").is_null());
}

#[test]
fn a_volume_that_is_to_be_kept_stays_with_its_data_and_says_so() {
    let retain = json!({"reclaimPolicy": "Retain"});
    let mut case = Case::of([patched(class(), &retain), claim("data", json!({}))]);
    case.calm();
    case.delete(&CLAIM, "data");
    case.calm();
    assert_eq!(volume_of(&case.world, "pvc-uid-data")["status"]["phase"], "Released");
    assert!(case.disk.words("pvc-uid-data").is_some());
    case.world.delete(Place::CLUSTER, &VOLUME, &Name::cluster_wide("pvc-uid-data"));
    case.calm();
    assert!(volume_of(&case.world, "pvc-uid-data").is_null());
    assert!(case.disk.words("pvc-uid-data").is_some(), "to keep is to keep");
}

#[test]
fn a_volume_whose_claim_was_made_again_under_its_name_goes_and_the_new_one_gets_its_own() {
    let mut case = Case::of([claim("data", json!({}))]);
    case.calm();
    case.delete(&CLAIM, "data");
    case.settle(&Claims, "shop/data");
    let again = json!({"metadata": {"uid": "uid-again"}});
    case.world.put(Place::CLUSTER, claim("data", again));
    case.calm();
    assert!(volume_of(&case.world, "pvc-uid-data").is_null());
    assert_eq!(claim_of(&case.world, "data")["spec"]["volumeName"], "pvc-uid-again");
}

#[test]
fn a_volume_stays_while_a_pod_of_before_runs_although_its_claim_was_torn_out() {
    let mut case = Case::of([claim("data", json!({})), pod(json!({}))]);
    case.calm();
    case.change(&CLAIM, "data", json!({"metadata": {"finalizers": []}}));
    case.delete(&CLAIM, "data");
    case.calm();
    assert_eq!(volume_of(&case.world, "pvc-uid-data")["status"]["phase"], "Released");
    assert!(case.disk.words("pvc-uid-data").is_some());
    case.delete(&POD, "web");
    case.calm();
    assert!(case.disk.things.is_empty());
}

#[test]
fn a_claim_that_is_being_deleted_before_it_is_bound_takes_what_was_made_for_it_along() {
    let [snapshot, record] = ready_snapshot("monday", "a", json!({}));
    let mut case = Case::of([snapshot, record, claim("data", from_snapshot("monday"))]);
    case.disk = TestDisk::default().with("snapshot-uid-monday", "a");
    case.settle(&Claims, "shop/data");
    case.disk.finish();
    case.delete(&CLAIM, "data");
    case.calm();
    assert!(claim_of(&case.world, "data").is_null());
    assert!(case.disk.words("pvc-uid-data").is_none());
    let finalizers = &snapshot_of(&case.world, "monday")["metadata"]["finalizers"];
    assert_eq!(finalizers.as_array().unwrap().len(), 1, "the hold is dropped");
}

#[test]
fn a_claim_is_deleted_only_when_the_snapshot_itself_says_that_it_is_not_held() {
    let [snapshot, record] = ready_snapshot("monday", "a", json!({}));
    let mut case = Case::of([snapshot, record, claim("data", from_snapshot("monday"))]);
    let name = Name::within("shop", "monday");
    case.settle(&Claims, "shop/data");
    let held = case.world.get(Place::CLUSTER, &SNAPSHOT_KIND, &name);
    assert!(held.as_ref().unwrap().metadata.finalizers.as_ref().unwrap().len() > 1);
    case.delete(&CLAIM, "data");
    // The cache does not show the hold yet.
    let bare = json!({"metadata": {"finalizers": null}});
    case.change(&SNAPSHOT_KIND, "monday", bare);
    let mut live_reads = interlock_kernel::LiveReads::<crate::outside::Disk>::default();
    let subject = "shop/data".into();
    let Step::LiveRead { reads, .. } = Claims.step(&subject, &case.world.view(), &live_reads)
    else {
        panic!("a claim is not let go without a live read")
    };
    let snapshot = Address::new(Place::CLUSTER, &SNAPSHOT_KIND, name);
    assert!(reads.contains(&Read::Object(snapshot.clone())), "{reads:?}");
    live_reads.lists.insert((Place::CLUSTER, POD, Some("shop".to_owned())), Vec::new());
    live_reads.objects.insert(snapshot, held);
    let record = Address::new(Place::CLUSTER, &VOLUME, Name::cluster_wide("pvc-uid-data"));
    live_reads.objects.insert(record, None);
    live_reads.answers.insert(DiskQuestion::Volume("pvc-uid-data".to_owned()), Made::Missing);
    let Step::Act(effect) = Claims.step(&subject, &case.world.view(), &live_reads) else {
        panic!("the hold is dropped first")
    };
    let Action::Write(write) = effect.action else { panic!("by a write") };
    assert_eq!(write.address().kind, SNAPSHOT_KIND);
}

#[test]
fn a_claim_that_wants_more_than_it_has_reports_that_it_cannot() {
    let mut case = Case::of([claim("data", json!({}))]);
    case.calm();
    let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    case.change(&CLAIM, "data", more);
    case.calm();
    let claim = claim_of(&case.world, "data");
    assert_eq!(condition(&claim, "interlock.dev/Healthy")["reason"], "ExpansionNotSupported");
    assert_eq!(claim["status"]["phase"], "Bound");
}

/// A bound claim `source` with these words in its volume.
fn sourced(words: &str) -> Case {
    let mut case = Case::of([claim("source", json!({}))]);
    case.calm();
    case.disk = TestDisk::default().with("pvc-uid-source", words);
    case.world.put(Place::CLUSTER, snapshot_class("interlock-local", "local.interlock.dev"));
    case
}

fn snapshot_class(name: &str, driver: &str) -> Value {
    json!({
        "kind": "VolumeSnapshotClass", "metadata": {"name": name, "uid": format!("uid-{name}")},
        "driver": driver, "deletionPolicy": "Delete",
    })
}

#[test]
fn a_snapshot_says_what_is_in_it_before_it_is_ready() {
    let mut case = sourced("a b c");
    case.world.put(Place::CLUSTER, snapshot("monday", json!({})));
    let run = case.settle(&Snapshots, "shop/monday");
    assert_eq!(run.rests, "the snapshot is being taken");
    case.disk.finish();
    let run = case.settle(&Snapshots, "shop/monday");
    let kinds: Vec<_> = run.writes.iter().map(|write| write.address().kind.kind.as_ref()).collect();
    assert_eq!(kinds, ["VolumeSnapshot", "VolumeSnapshotContent", "VolumeSnapshot"]);
    let made = snapshot_of(&case.world, "monday");
    assert_eq!(made["metadata"]["annotations"]["interlock.dev/digest"], "a b c");
    assert_eq!(made["metadata"]["annotations"]["interlock.dev/files"], "3");
    assert_eq!(made["status"]["readyToUse"], true);
    assert_eq!(made["status"]["restoreSize"], "5");
    assert_eq!(made["status"]["boundVolumeSnapshotContentName"], "snapcontent-uid-monday");
    assert_eq!(case.disk.words("snapshot-uid-monday"), Some("a b c"));
    assert_eq!(calm_storage(&mut case.world, &mut case.disk), 0);
}

#[test]
fn a_snapshot_that_cannot_be_taken_says_why_and_is_tried_again() {
    let mut case = sourced("a");
    case.disk.fails = Some(full());
    case.world.put(Place::CLUSTER, snapshot("monday", json!({})));
    let run = case.settle(&Snapshots, "shop/monday");
    assert_eq!(run.waits_seconds, Some(5));
    let said = snapshot_of(&case.world, "monday");
    let error = said["status"]["error"]["message"].as_str().unwrap();
    assert!(error.starts_with("TargetFull: "), "{error}");
    assert_eq!(said["status"]["readyToUse"], false);
    case.disk.fails = None;
    case.world.pass(5);
    case.calm();
    let made = snapshot_of(&case.world, "monday");
    assert_eq!(made["status"]["readyToUse"], true);
    assert!(made["status"]["error"].is_null());
}

#[test]
fn a_snapshot_whose_class_is_not_there_says_so_and_waits_for_it() {
    let mut case = sourced("a");
    let fast = json!({"spec": {"volumeSnapshotClassName": "fast"}});
    case.world.put(Place::CLUSTER, snapshot("monday", fast));
    case.calm();
    let said = snapshot_of(&case.world, "monday");
    let said = said["status"]["error"]["message"].as_str().unwrap();
    assert!(said.starts_with("ClassMissing: VolumeSnapshotClass fast does not exist; "), "{said}");
    case.world.put(Place::CLUSTER, snapshot_class("fast", "local.interlock.dev"));
    case.world.pass(5);
    case.calm();
    assert_eq!(snapshot_of(&case.world, "monday")["status"]["readyToUse"], true);
    // Its class goes first, and it is still ours to delete.
    let fast = Name::cluster_wide("fast");
    case.world.delete(Place::CLUSTER, &SNAPSHOT_CLASS, &fast);
    case.delete(&SNAPSHOT_KIND, "monday");
    case.calm();
    assert!(snapshot_of(&case.world, "monday").is_null());
    assert!(case.disk.words("snapshot-uid-monday").is_none());
}

#[test]
fn a_snapshot_waits_for_its_claim() {
    let mut case = sourced("a");
    let of = |name: &str| json!({"spec": {"source": {"persistentVolumeClaimName": name}}});
    case.world.put(Place::CLUSTER, snapshot("monday", of("later")));
    case.calm();
    let said = snapshot_of(&case.world, "monday");
    assert!(said["status"]["error"]["message"].as_str().unwrap().starts_with("SourceMissing"));
    case.world.put(Place::CLUSTER, claim("later", json!({})));
    case.world.pass(5);
    case.calm();
    assert_eq!(snapshot_of(&case.world, "monday")["status"]["readyToUse"], true);
}

#[test]
fn a_snapshot_that_is_deleted_stays_while_it_is_held_and_then_goes_with_everything() {
    let [snapshot, record] = ready_snapshot(
        "monday",
        "a",
        json!({"metadata": {"finalizers": [
            "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection",
            "interlock.dev/hold-grant"]}}),
    );
    let mut case = Case::of([snapshot, record]);
    case.disk = TestDisk::default().with("snapshot-uid-monday", "a");
    case.delete(&SNAPSHOT_KIND, "monday");
    let run = case.settle(&Snapshots, "shop/monday");
    assert_eq!(run.rests, "the snapshot is deleted once it has no holder: grant");
    let free = json!({"metadata": {"finalizers": [
        "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"]}});
    case.change(&SNAPSHOT_KIND, "monday", free);
    case.calm();
    assert!(snapshot_of(&case.world, "monday").is_null());
    let content = Name::cluster_wide("snapcontent-uid-monday");
    assert!(case.world.get(Place::CLUSTER, &CONTENT, &content).is_none());
    assert!(case.disk.things.is_empty());
}

#[test]
fn a_snapshot_whose_content_is_to_be_kept_leaves_both_behind() {
    let [snapshot, record] = ready_snapshot("monday", "a", json!({}));
    let kept = patched(record, &json!({"spec": {"deletionPolicy": "Retain"}}));
    let mut case = Case::of([snapshot, kept]);
    case.disk = TestDisk::default().with("snapshot-uid-monday", "a");
    case.delete(&SNAPSHOT_KIND, "monday");
    case.calm();
    assert!(snapshot_of(&case.world, "monday").is_null());
    assert!(case.disk.words("snapshot-uid-monday").is_some());
}

#[test]
fn a_content_whose_snapshot_was_torn_out_goes_with_it_and_one_that_is_kept_stays() {
    let [_, left] = ready_snapshot("monday", "a", json!({}));
    let [tuesday, used] = ready_snapshot("tuesday", "b", json!({}));
    let [_, kept] = ready_snapshot("wednesday", "c", json!({}));
    let kept = patched(kept, &json!({"spec": {"deletionPolicy": "Retain"}}));
    let mut case = Case::of([left, tuesday, used, kept]);
    for (name, words) in [("monday", "a"), ("tuesday", "b"), ("wednesday", "c")] {
        case.disk = std::mem::take(&mut case.disk).with(&format!("snapshot-uid-{name}"), words);
    }
    case.calm();
    let there = |name: &str| {
        let content = Name::cluster_wide(&format!("snapcontent-uid-{name}"));
        let has_record = case.world.get(Place::CLUSTER, &CONTENT, &content).is_some();
        (has_record, case.disk.words(&format!("snapshot-uid-{name}")).is_some())
    };
    assert_eq!(there("monday"), (false, false));
    assert_eq!(there("tuesday"), (true, true));
    assert_eq!(there("wednesday"), (true, true));
}

#[test]
fn a_snapshot_of_another_storage_is_left_alone() {
    let other = json!({"spec": {"volumeSnapshotClassName": "csi"}});
    let mut case = sourced("a");
    case.world.put(Place::CLUSTER, snapshot_class("csi", "csi.example.com"));
    case.world.put(Place::CLUSTER, snapshot("monday", other));
    assert_eq!(calm_storage(&mut case.world, &mut case.disk), 0);
}

#[test]
fn broken_objects_are_survived() {
    let mut bound = Case::of([claim("aux", json!({}))]);
    bound.calm();
    let [monday, record] = ready_snapshot("monday", "a", json!({}));
    let terminating = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    let objects = [
        class(),
        claim("data", from_snapshot("monday")),
        patched(claim_of(&bound.world, "aux"), &terminating),
        volume_of(&bound.world, "pvc-uid-aux"),
        monday,
        patched(record, &terminating),
        snapshot("tuesday", terminating.clone()),
        pod(json!({})),
    ];
    for fails in [None, Some(full())] {
        let mut disk = TestDisk { fails, ..TestDisk::default() };
        disk.perform(&DiskAction::MakeVolume {
            handle: "pvc-uid-data".to_owned(),
            namespace: "shop".to_owned(),
            capacity: 1,
            from: None,
        });
        disk.perform(&DiskAction::Forget(DiskQuestion::Snapshot("none".to_owned())));
        survives(&Claims, &disk, &objects);
        survives(&Volumes, &disk, &objects);
        survives(&Snapshots, &disk, &objects);
    }
}
