//! A claim is filled from the snapshot that it pinned, whatever happens meanwhile.

use super::contents::{Contents, fill, same};
use super::harness::until;
use super::up::{Space, Up, WEST};
use serde_json::{Value, json};

const SOURCE: &str = "ReplicationSource";
const DESTINATION: &str = "ReplicationDestination";
const CLAIM: &str = "PersistentVolumeClaim";

/// A class whose volumes nobody makes: a claim with it stays in the middle of being filled.
fn class_of(up: &Up, provisioner: &str) {
    let path = format!("{WEST}/apis/storage.k8s.io/v1/storageclasses");
    let _ = up.client().call("DELETE", &format!("{path}/slow"), None);
    let class = json!({"metadata": {"name": "slow"}, "provisioner": provisioner});
    up.client().must("POST", &path, Some(&class));
}

/// Backs up and brings back what `data` has after it was filled anew; what that was, and the snapshot.
fn sync(space: &Space<'_>, seed: u64) -> (Contents, String) {
    fill(&space.bound("data"), seed);
    let (wanted, tag) = (space.contents("data"), format!("tag-{seed}"));
    if space.get(SOURCE, "data").is_null() {
        space.source("data", &tag, &json!({}));
        space.answers(SOURCE, "data", &tag);
        space.destination("back", &tag, &json!({}));
    } else {
        space.trigger(SOURCE, "data", &tag);
        space.answers(SOURCE, "data", &tag);
        space.trigger(DESTINATION, "back", &tag);
    }
    let destination = space.answers(DESTINATION, "back", &tag);
    let snapshot = destination["status"]["latestImage"]["name"].as_str().expect("it has one");
    (wanted, snapshot.to_owned())
}

/// Waits until a snapshot is held; by as many.
fn held(space: &Space<'_>, snapshot: &str) -> usize {
    until(&format!("{snapshot} is held"), || {
        let snapshot = space.get("VolumeSnapshot", snapshot);
        let finalizers = snapshot["metadata"]["finalizers"].as_array();
        let is_hold = |finalizer: &&Value| {
            finalizer.as_str().is_some_and(|text| text.starts_with("interlock.dev/hold-"))
        };
        let holds = finalizers.into_iter().flatten().filter(is_hold).count();
        if holds > 0 { Ok(holds) } else { Err(format!("{snapshot:#}")) }
    })
}

fn gone(space: &Space<'_>, kind: &str, name: &str) {
    until(&format!("{kind} {name} is gone"), || {
        let found = space.get(kind, name);
        if found.is_null() { Ok(()) } else { Err(format!("{found:#}")) }
    });
}

fn start(up: &Up) -> Space<'_> {
    let space = up.namespace("shop");
    space.claim("data", "16Mi");
    space.repository();
    class_of(up, "example.com/nobody");
    space
}

#[test]
fn newer_snapshots_arrive_while_a_claim_is_filled_and_it_gets_the_one_that_it_pinned() {
    let up = Up::start();
    let space = start(&up);
    let (first, snapshot) = sync(&space, 1);
    let claim = space.claim_of("back", "copy", &json!({"storageClassName": "slow"}));
    held(&space, &snapshot);
    // Two snapshots stay at least, and any number that is held: the first is the fourth oldest here.
    let mut newest = (Contents::new(), String::new());
    for seed in 2..=4 {
        newest = sync(&space, seed);
    }
    until("what nobody needs is deleted", || {
        let snapshots = space.all("VolumeSnapshot");
        if snapshots.len() <= 3 { Ok(()) } else { Err(format!("{snapshots:#?}")) }
    });
    assert!(!space.get("VolumeSnapshot", &snapshot).is_null(), "it is in use");
    assert_eq!(held(&space, &snapshot), 1);
    // Not even the destination is deleted while a snapshot of it is in use.
    space.delete(DESTINATION, "back");
    words(&space.fails(DESTINATION, "back", "SnapshotHeld"), "copy");
    assert!(!space.get("VolumeSnapshot", &snapshot).is_null(), "it is in use");
    up.kill_and_start_again();
    class_of(&up, "local.interlock.dev");
    same(&first, &space.contents("copy"));
    let pinned = &space.get(CLAIM, "copy");
    assert_eq!(pinned["metadata"]["uid"], claim["metadata"]["uid"]);
    gone(&space, DESTINATION, "back");
    gone(&space, "VolumeSnapshot", &snapshot);
    gone(&space, "VolumeSnapshot", &newest.1);
    same(&first, &space.contents("copy"));
}

#[test]
fn a_snapshot_that_a_person_deletes_is_replaced_by_the_newest_one() {
    let up = Up::start();
    let space = start(&up);
    let (_, snapshot) = sync(&space, 1);
    space.claim_of("back", "copy", &json!({"storageClassName": "slow"}));
    held(&space, &snapshot);
    let (second, newer) = sync(&space, 2);
    space.delete("VolumeSnapshot", &snapshot);
    held(&space, &newer);
    gone(&space, "VolumeSnapshot", &snapshot);
    space.event("copy", "VolSyncPopulatorError");
    class_of(&up, "local.interlock.dev");
    same(&second, &space.contents("copy"));
    space.event("copy", "VolSyncPopulatorFinished");
}

#[test]
fn a_claim_that_is_made_again_while_it_is_filled_starts_from_the_beginning() {
    let up = Up::start();
    let space = start(&up);
    let (_, snapshot) = sync(&space, 1);
    let before = space.claim_of("back", "copy", &json!({"storageClassName": "slow"}));
    held(&space, &snapshot);
    space.delete(CLAIM, "copy");
    gone(&space, CLAIM, "copy");
    let (second, _) = sync(&space, 2);
    let after = space.claim_of("back", "copy", &json!({}));
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    same(&second, &space.contents("copy"));
    // Nothing is left of the first: no auxiliary claim, no hold.
    until("nothing is left", || {
        let claims = space.all(CLAIM);
        let snapshots = space.all("VolumeSnapshot");
        let is_held =
            |snapshot: &Value| snapshot["metadata"]["finalizers"].to_string().contains("hold-");
        let is_clean = claims.len() == 3 && !snapshots.iter().any(is_held);
        if is_clean { Ok(()) } else { Err(format!("{claims:#?} {snapshots:#?}")) }
    });
}

#[test]
fn a_claim_waits_for_what_is_not_there_and_for_room() {
    let up = Up::start();
    let space = start(&up);
    // Nothing of what it names is there.
    let later = json!({"storageClassName": "later"});
    space.claim_of("back", "early", &later);
    words(&space.fails(CLAIM, "early", "ClassMissing"), "StorageClass later");
    let class = json!({"metadata": {"name": "later"}, "provisioner": "local.interlock.dev"});
    let classes = format!("{WEST}/apis/storage.k8s.io/v1/storageclasses");
    up.client().must("POST", &classes, Some(&class));
    words(&space.fails(CLAIM, "early", "DestinationMissing"), "ReplicationDestination back");
    space.event("early", "VolSyncPopulatorReplicationDestinationMissing");
    let small = json!({"resources": {"requests": {"storage": "64Ki"}}});
    space.claim_of("back", "small", &small);
    let (wanted, _) = sync(&space, 1);
    same(&wanted, &space.contents("early"));
    let message = space.fails(CLAIM, "small", "SizeMismatch");
    words(&message, "needs 688.5 KiB");
    words(&message, "64.0 KiB");
    assert_eq!(space.get(CLAIM, "small")["status"]["phase"], "Pending");
    // Made again, larger, it is filled.
    space.delete(CLAIM, "small");
    gone(&space, CLAIM, "small");
    space.claim_of("back", "small", &json!({}));
    same(&wanted, &space.contents("small"));
}

fn words(message: &str, word: &str) {
    assert!(message.contains(word), "no {word:?} in {message:?}");
}
