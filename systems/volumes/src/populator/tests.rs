//! Claims are filled from one snapshot each, whatever dies, comes or goes meanwhile.

use super::*;
use crate::testing::{
    TestDisk, calm, calm_storage, claim, claim_of, class, destination, from_destination,
    ready_snapshot, snapshot_of, volume_of, world_of_storage,
};
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Controller, Kind, Write};
use serde_json::{Value, json};

const PRIME: &str = "prime-uid-data";
const HOLD: &str = "interlock.dev/hold-uid-data";

/// The populator, the storage and a destination that is played by the test.
struct Case {
    world: TestServers,
    disk: TestDisk,
}

impl Case {
    fn of(objects: impl IntoIterator<Item = Value>) -> Case {
        let mut world = world_of_storage();
        world.show(&Populator as &dyn Controller<Outside = Nothing>);
        Case { world: world.with([class()]).with(objects), disk: TestDisk::default() }
    }

    /// A claim that is to be filled, and a destination with the snapshot `monday`.
    fn usual() -> Case {
        let mut case = Case::of([claim("data", from_destination()), destination(None, json!({}))]);
        case.publish("monday", "a b");
        case
    }

    /// The destination takes and publishes one more snapshot.
    fn publish(&mut self, name: &str, words: &str) {
        for object in ready_snapshot(name, words, json!({})) {
            self.world.put(Place::CLUSTER, object);
        }
        self.world.put(Place::CLUSTER, destination(Some(name), json!({})));
        self.disk = std::mem::take(&mut self.disk).with(&format!("snapshot-uid-{name}"), words);
    }

    fn populate(&mut self) -> Run<Nothing> {
        self.world.settle(&Populator, &mut NoMachine, "shop/data")
    }

    fn store(&mut self) -> usize {
        calm_storage(&mut self.world, &mut self.disk)
    }

    fn calm(&mut self) -> &mut Case {
        for _ in 0..30 {
            let effects = calm(&mut self.world, &Populator, &mut NoMachine) + self.store();
            let is_news = self.disk.finish();
            if effects == 0 && !is_news {
                return self;
            }
        }
        panic!("it does not come to rest")
    }

    fn change(&mut self, kind: &Kind, name: &str, patch: Value) {
        let name = match kind.is_namespaced {
            true => Name::within("shop", name),
            false => Name::cluster_wide(name),
        };
        self.world.change(Place::CLUSTER, kind, &name, &patch);
    }

    fn delete(&mut self, kind: &Kind, name: &str) {
        self.world.delete(Place::CLUSTER, kind, &Name::within("shop", name));
    }

    fn holds(&self, snapshot: &str) -> bool {
        let finalizers = snapshot_of(&self.world, snapshot)["metadata"]["finalizers"].clone();
        finalizers.as_array().is_some_and(|all| all.iter().any(|one| one == HOLD))
    }

    /// What the volume has in it that the claim is bound to.
    fn filled(&self) -> Option<&str> {
        let claim = claim_of(&self.world, "data");
        let volume = claim["spec"]["volumeName"].as_str()?.to_owned();
        assert_eq!(claim["status"]["phase"], "Bound");
        assert_eq!(
            volume_of(&self.world, &volume)["spec"]["claimRef"]["uid"],
            claim["metadata"]["uid"]
        );
        self.disk.words(&volume)
    }

    /// Nothing is left but the claim, its volume and the snapshots.
    fn assert_tidy(&self) {
        assert!(claim_of(&self.world, PRIME).is_null());
        for snapshot in self.world.list(Place::CLUSTER, &SNAPSHOT_KIND, None) {
            let ours =
                snapshot.metadata.finalizers.iter().flatten().any(|one| one.contains("hold-"));
            assert!(!ours, "{snapshot:?}");
        }
        for volume in self.world.list(Place::CLUSTER, &VOLUME, None) {
            assert_eq!(annotation(&volume, ANNOTATION_POPULATES), None);
            assert_eq!(text(&volume.data, &["spec", "persistentVolumeReclaimPolicy"]), "Delete");
        }
    }
}

#[test]
fn a_claim_is_filled_from_the_latest_snapshot_and_nothing_else_is_left() {
    let mut case = Case::usual();
    case.calm();
    assert_eq!(case.filled(), Some("a b"));
    case.assert_tidy();
    let finalizers = &claim_of(&case.world, "data")["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["kubernetes.io/pvc-protection"]));
    assert_eq!(case.populate().rests, "it is filled");
}

#[test]
fn a_claim_is_filled_from_its_pin_although_a_newer_snapshot_comes_meanwhile() {
    let mut case = Case::usual();
    assert_eq!(case.populate().rests, "the storage fills the volume from the snapshot");
    case.publish("tuesday", "c");
    // The destination would delete the old snapshot now, and waits since it is held.
    assert!(case.holds("monday"));
    case.calm();
    assert_eq!(case.filled(), Some("a b"));
    assert_eq!(
        claim_of(&case.world, "data")["metadata"]["annotations"]["interlock.dev/snapshot"],
        "uid-monday"
    );
    case.assert_tidy();
}

#[test]
fn the_snapshot_is_held_before_anything_is_made_of_it() {
    let mut case = Case::usual();
    let run = case.populate();
    let kinds: Vec<_> = run.writes.iter().map(|write| write.address().kind.kind.as_ref()).collect();
    let claim = "PersistentVolumeClaim";
    assert_eq!(kinds, [claim, claim, "VolumeSnapshot", claim]);
    assert!(
        matches!(&run.writes[3], Write::Create { address, .. } if &*address.name.name == PRIME)
    );
    assert_eq!(run.events[0].reason, "VolSyncPopulatorPVCCreated");
    let prime = claim_of(&case.world, PRIME);
    assert_eq!(prime["metadata"]["annotations"]["interlock.dev/snapshot"], "uid-monday");
    assert_eq!(prime["metadata"]["ownerReferences"][0]["uid"], "uid-data");
    assert_eq!(prime["spec"]["dataSource"]["name"], "monday");
}

#[test]
fn the_volume_is_kept_before_it_changes_hands_and_the_other_claim_is_deleted_last() {
    let mut case = Case::usual();
    case.populate();
    case.store();
    case.disk.finish();
    case.store();
    let run = case.populate();
    assert_eq!(run.rests, "the storage binds the claim");
    let Write::Patch { change: kept, .. } = &run.writes[0] else { panic!("no patch") };
    assert_eq!(kept["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    let Write::Patch { change: handed, .. } = &run.writes[1] else { panic!("no patch") };
    assert_eq!(handed["spec"]["claimRef"]["uid"], "uid-data");
    assert_eq!(handed["spec"]["claimRef"]["name"], "data");
    assert!(!claim_of(&case.world, PRIME).is_null());
    case.store();
    let run = case.populate();
    // The very version that was seen: a PVC' that has got its volume meanwhile is not given up.
    let guard = |write: &Write| matches!(write, Write::Delete { resource_version: Some(_), .. });
    assert!(guard(&run.writes[0]));
    case.calm();
    case.assert_tidy();
}

#[test]
fn the_hold_on_a_snapshot_is_the_populators_to_drop_when_the_other_claim_is_gone() {
    let mut case = Case::usual();
    case.populate();
    case.store();
    case.disk.finish();
    case.store();
    case.populate();
    case.store();
    assert_eq!(claim_of(&case.world, "data")["status"]["phase"], "Bound");
    assert!(!claim_of(&case.world, PRIME).is_null());
    assert!(case.holds("monday"), "the storage leaves it alone");
    case.calm();
    case.assert_tidy();
}

#[test]
fn a_snapshot_that_is_deleted_by_hand_is_given_up_for_the_next_one() {
    let mut case = Case::usual();
    case.populate();
    case.delete(&SNAPSHOT_KIND, "monday");
    case.publish("tuesday", "c");
    case.calm();
    assert_eq!(case.filled(), Some("c"));
    assert!(snapshot_of(&case.world, "monday").is_null());
    case.assert_tidy();
}

#[test]
fn a_snapshot_that_was_torn_out_with_its_holds_is_given_up_too() {
    let mut case = Case::usual();
    case.populate();
    case.change(&SNAPSHOT_KIND, "monday", json!({"metadata": {"finalizers": []}}));
    case.delete(&SNAPSHOT_KIND, "monday");
    case.publish("tuesday", "c");
    case.calm();
    assert_eq!(case.filled(), Some("c"));
    case.assert_tidy();
}

#[test]
fn a_snapshot_that_is_made_again_under_its_name_is_another() {
    let mut case = Case::usual();
    let run = case.populate();
    assert_eq!(run.writes.len(), 4);
    case.change(&SNAPSHOT_KIND, "monday", json!({"metadata": {"finalizers": []}}));
    case.delete(&SNAPSHOT_KIND, "monday");
    let again = json!({"metadata": {"uid": "uid-again"}});
    let [snapshot, _] = ready_snapshot("monday", "other", again);
    case.world.put(Place::CLUSTER, snapshot);
    case.store();
    assert!(case.disk.words("pvc-uid-prime-uid-data").is_none(), "nothing is made of the namesake");
    case.publish("tuesday", "c");
    case.calm();
    assert_eq!(case.filled(), Some("c"));
}

#[test]
fn a_claim_that_is_deleted_at_any_point_leaves_nothing_behind() {
    for rounds in 0..12 {
        let mut case = Case::usual();
        for round in 0..rounds {
            match round % 3 {
                0 => drop(case.populate()),
                1 => drop(case.store()),
                _ => drop(case.disk.finish()),
            }
        }
        case.delete(&CLAIM, "data");
        case.calm();
        assert!(claim_of(&case.world, "data").is_null(), "{rounds}");
        case.assert_tidy();
        assert!(case.world.list(Place::CLUSTER, &VOLUME, None).is_empty(), "{rounds}");
        assert_eq!(case.disk.things.len(), 1, "only the snapshot is left: {rounds}");
    }
}

#[test]
fn a_claim_that_is_made_again_under_its_name_begins_anew() {
    let mut case = Case::usual();
    case.populate();
    case.store();
    case.delete(&CLAIM, "data");
    case.calm();
    let again = json!({"metadata": {"uid": "uid-again"}});
    case.world.put(Place::CLUSTER, patched(claim("data", from_destination()), &again));
    case.calm();
    assert_eq!(case.filled(), Some("a b"));
    assert_eq!(claim_of(&case.world, "data")["metadata"]["uid"], "uid-again");
}

#[test]
fn a_volume_for_a_claim_that_is_gone_is_given_back_its_policy() {
    let mut case = Case::usual();
    case.populate();
    case.store();
    case.disk.finish();
    case.store();
    case.populate();
    // Somebody tears the claims out, finalizers and all.
    for name in ["data", PRIME] {
        case.change(&CLAIM, name, json!({"metadata": {"finalizers": []}}));
        case.delete(&CLAIM, name);
    }
    let held = json!({"metadata": {"finalizers": [
        "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"]}});
    case.change(&SNAPSHOT_KIND, "monday", held);
    case.calm();
    assert!(case.world.list(Place::CLUSTER, &VOLUME, None).is_empty());
    case.assert_tidy();
}

#[test]
fn a_claim_in_somebody_elses_hands_is_distinguished_and_left_alone() {
    let mut case = Case::usual();
    case.world.put(Place::CLUSTER, claim(PRIME, json!({})));
    case.populate();
    let said = claim_of(&case.world, "data");
    assert_eq!(condition(&said, "interlock.dev/Healthy")["reason"], "NameTaken");
    assert!(claim_of(&case.world, PRIME)["metadata"]["deletionTimestamp"].is_null());
}

#[test]
fn another_snapshot_in_the_other_claim_is_never_handed_over() {
    let mut case = Case::usual();
    case.populate();
    let other = json!({"metadata": {"annotations": {"interlock.dev/snapshot": "uid-other"}}});
    case.change(&CLAIM, PRIME, other);
    let run = case.populate();
    assert!(matches!(run.writes[0], Write::Delete { .. }));
}

fn said(case: &mut Case) -> (String, String, String) {
    let run = case.populate();
    let claim = claim_of(&case.world, "data");
    let condition = condition(&claim, "interlock.dev/Healthy");
    let word = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    assert_eq!(claim["status"]["phase"], "Pending");
    assert!(claim_of(&case.world, PRIME).is_null());
    let event = run.events.last().map(|event| event.reason.to_owned()).unwrap_or_default();
    (word("reason"), event, word("message"))
}

#[test]
fn a_claim_says_what_it_waits_for_and_goes_on_when_it_comes() {
    let mut case = Case::of([claim("data", from_destination())]);
    let (reason, event, _) = said(&mut case);
    assert_eq!(reason, "DestinationMissing");
    assert_eq!(event, "VolSyncPopulatorReplicationDestinationMissing");
    case.world.put(Place::CLUSTER, destination(None, json!({})));
    let (reason, event, _) = said(&mut case);
    assert_eq!(reason, "NoLatestImage");
    assert_eq!(event, "VolSyncPopulatorReplicationDestinationNoLatestImage");
    case.publish("monday", "a b");
    case.world.pass(10);
    case.calm();
    assert_eq!(case.filled(), Some("a b"));
    assert!(condition(&claim_of(&case.world, "data"), "interlock.dev/Healthy").is_null());
}

#[test]
fn a_destination_that_makes_no_snapshots_is_named_with_the_field_to_change() {
    let direct = json!({"status": {"latestImage": {"kind": "PersistentVolumeClaim", "name": "x"}}});
    let mut case = Case::of([claim("data", from_destination()), destination(None, direct)]);
    let (_, event, message) = said(&mut case);
    assert_eq!(event, "VolSyncPopulatorError");
    assert!(message.contains("set its copyMethod to Snapshot"), "{message}");
}

#[test]
fn an_empty_snapshot_is_never_poured_unless_that_is_meant() {
    let mut case = Case::of([claim("data", from_destination()), destination(None, json!({}))]);
    case.publish("monday", "");
    let (reason, _, message) = said(&mut case);
    assert_eq!(reason, "SnapshotEmpty");
    assert!(message.contains("ReplicationDestination restore"), "{message}");
    let meant = json!({"metadata": {"annotations": {"interlock.dev/allow-empty": "true"}}});
    case.change(&CLAIM, "data", meant);
    case.world.pass(10);
    case.calm();
    assert_eq!(case.filled(), Some(""));
}

#[test]
fn a_claim_that_is_smaller_than_its_snapshot_reports_what_it_needs() {
    let mut case = Case::of([claim("data", from_destination()), destination(None, json!({}))]);
    case.publish("monday", "a");
    let large = json!({"status": {"restoreSize": "12Gi"}});
    case.change(&SNAPSHOT_KIND, "monday", large);
    let (reason, _, message) = said(&mut case);
    assert_eq!(reason, "SizeMismatch");
    assert!(message.starts_with("the claim needs 12.0 GiB"), "{message}");
    assert!(!case.holds("monday"));
}

#[test]
fn a_claim_says_why_its_snapshot_cannot_be_poured() {
    let mut case = Case::usual();
    case.disk.fails = Some(crate::testing::full());
    case.populate();
    case.store();
    case.populate();
    let claim = claim_of(&case.world, "data");
    let said = condition(&claim, "interlock.dev/Healthy");
    assert_eq!(said["reason"], "PouringFails");
    assert!(said["message"].as_str().unwrap().starts_with("TargetFull: "), "{said}");
    case.disk.fails = None;
    case.world.pass(5);
    case.calm();
    assert_eq!(case.filled(), Some("a b"));
    assert!(condition(&claim_of(&case.world, "data"), "interlock.dev/Healthy").is_null());
}

#[test]
fn a_class_that_waits_for_the_first_pod_is_waited_with() {
    let waits = json!({"volumeBindingMode": "WaitForFirstConsumer"});
    let mut case = Case::usual();
    case.world.put(Place::CLUSTER, patched(class(), &waits));
    assert_eq!(case.populate().rests, "the volume is created when the first pod uses the claim");
    let placed = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}});
    case.change(&CLAIM, "data", placed);
    case.calm();
    assert_eq!(case.filled(), Some("a b"));
}

#[test]
fn a_snapshot_that_is_not_ready_or_of_a_destination_that_is_being_deleted_is_not_chosen() {
    let mut case = Case::usual();
    case.change(&SNAPSHOT_KIND, "monday", json!({"status": {"readyToUse": false}}));
    let (reason, ..) = said(&mut case);
    assert_eq!(reason, "NoLatestImage");
    case.change(&SNAPSHOT_KIND, "monday", json!({"status": {"readyToUse": true}}));
    let terminating = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    case.change(&DESTINATION, "restore", terminating);
    assert_eq!(case.populate().rests, "the ReplicationDestination is being deleted");
}

#[test]
fn a_claim_that_was_bound_elsewhere_keeps_that_and_what_was_begun_is_undone() {
    let mut case = Case::usual();
    case.populate();
    case.change(&CLAIM, "data", json!({"spec": {"volumeName": "theirs"}}));
    case.calm();
    case.assert_tidy();
    assert!(case.world.list(Place::CLUSTER, &VOLUME, None).is_empty());
    let finalizers = claim_of(&case.world, "data")["metadata"]["finalizers"].clone();
    assert!(!finalizers.to_string().contains("populate"), "{finalizers}");
}

#[test]
fn another_claim_that_is_poured_although_the_claim_is_filled_goes_again() {
    let mut case = Case::usual();
    case.populate();
    let late = claim_of(&case.world, PRIME);
    case.calm();
    // A populator that slept since it looked makes it once more, and the storage fills it.
    let again = json!({"metadata": {"uid": "uid-late", "finalizers": null}});
    case.world.put(Place::CLUSTER, patched(late, &again));
    for _ in 0..3 {
        case.store();
        case.disk.finish();
    }
    assert_eq!(claim_of(&case.world, PRIME)["status"]["phase"], "Bound");
    case.calm();
    assert_eq!(case.filled(), Some("a b"));
    case.assert_tidy();
    assert_eq!(case.world.list(Place::CLUSTER, &VOLUME, None).len(), 1);
}

#[test]
fn broken_objects_are_survived() {
    let mut case = Case::usual();
    case.populate();
    case.store();
    case.disk.finish();
    case.store();
    case.populate();
    let mut objects: Vec<Value> = [CLAIM, VOLUME, SNAPSHOT_KIND, DESTINATION, STORAGE_CLASS]
        .iter()
        .flat_map(|kind| case.world.list(Place::CLUSTER, kind, None))
        .map(|object| serde_json::to_value(&*object).unwrap())
        .collect();
    objects.push(claim("other", from_destination()));
    survives(&Populator, &NoMachine, &objects);
}
