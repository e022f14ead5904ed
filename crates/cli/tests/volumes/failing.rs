//! What can go wrong with a backup or a restore: each has its own condition, which says the next
//! step; nothing is lost, and once it is mended it goes on.

use super::contents::{bytes, contents, fill, same};
use super::harness::until;
use super::up::{PASSWORD, Space, Up, WEST, condition};
use serde_json::{Value, json};
use std::path::Path;

const SOURCE: &str = "ReplicationSource";
const DESTINATION: &str = "ReplicationDestination";

/// A namespace with a claim `data` that has something in it.
fn with_data<'a>(up: &'a Up, name: &str) -> Space<'a> {
    let space = up.namespace(name);
    space.claim("data", "16Mi");
    fill(&space.bound("data"), 7);
    space
}

/// What a repository has, but for its locks, which come and go.
fn kept(repository: &Path) -> Vec<String> {
    let all = contents(repository).into_iter();
    let files = all.filter(|(name, _)| !name.starts_with("locks"));
    files.map(|(name, (_, _, bytes))| format!("{} {}", name.display(), bytes.len())).collect()
}

fn words(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "no {word:?} in {message:?}");
    }
}

/// A claim that is filled from a new restore has what the source has.
fn comes_back(space: &Space<'_>, name: &str) {
    space.destination(name, "restore", &json!({}));
    space.claim_of(name, name, &json!({}));
    let (wanted, found) = (space.contents("data"), space.contents(name));
    same(&wanted, &found);
}

#[test]
fn a_secret_that_is_not_complete_is_said_to_be_so_and_mended_it_goes_on() {
    let up = Up::start();
    let space = with_data(&up, "shop");
    space.source("data", "first", &json!({}));
    words(&space.fails(SOURCE, "data", "SecretIncomplete"), &["Secret repo does not exist"]);
    let path = up.path("repository");
    space.create(
        "Secret",
        &json!({
            "metadata": {"name": "repo"}, "stringData": {"RESTIC_REPOSITORY": path},
        }),
    );
    until("the key is named", || {
        let message = space.fails(SOURCE, "data", "SecretIncomplete");
        if message.contains("Secret repo has no RESTIC_PASSWORD") { Ok(()) } else { Err(message) }
    });
    let change = |key: &str, value: &str| {
        space.change("Secret", "repo", &json!({"stringData": {key: value}}));
    };
    change("RESTIC_REPOSITORY", "sftp:user:password@host:/srv");
    change("RESTIC_PASSWORD", PASSWORD);
    let message = space.fails(SOURCE, "data", "RepositoryNotSupported");
    words(&message, &["sftp", "rest:https://", "s3:"]);
    assert!(!message.contains("user:password"), "{message}");
    change("RESTIC_REPOSITORY", &path.to_string_lossy());
    let source = space.answers(SOURCE, "data", "first");
    assert_eq!(condition(&source, "interlock.dev/Healthy")["status"], "True", "{source:#}");
    // A key that VolSync would pass on, and that has no effect here, is named once.
    change("RESTIC_TLS_CLIENT_CERT", "x");
    words(&space.event("data", "KeyWithoutEffect"), &["RESTIC_TLS_CLIENT_CERT"]);
}

#[test]
fn a_wrong_password_never_touches_the_repository() {
    let up = Up::start();
    let space = with_data(&up, "shop");
    let repository = space.repository();
    space.source("data", "first", &json!({}));
    space.answers(SOURCE, "data", "first");
    let before = kept(&repository);
    space.change("Secret", "repo", &json!({"stringData": {"RESTIC_PASSWORD": "wrong"}}));
    space.trigger(SOURCE, "data", "second");
    words(&space.fails(SOURCE, "data", "WrongPassword"), &["RESTIC_PASSWORD", "repository"]);
    space.destination("back", "restore", &json!({}));
    space.fails(DESTINATION, "back", "WrongPassword");
    assert_eq!(kept(&repository), before);
    // With the right one both go on by themselves, and what is asked for comes back.
    space.change("Secret", "repo", &json!({"stringData": {"RESTIC_PASSWORD": PASSWORD}}));
    space.answers(SOURCE, "data", "second");
    space.answers(DESTINATION, "back", "restore");
    comes_back(&space, "again");
}

#[test]
fn a_repository_that_is_not_there_is_made_by_a_backup_and_never_by_a_restore() {
    let up = Up::start();
    let space = with_data(&up, "shop");
    let repository = space.repository();
    space.destination("back", "restore", &json!({}));
    words(&space.fails(DESTINATION, "back", "RepositoryMissing"), &["repository-shop"]);
    assert!(!repository.exists(), "a restore makes no repository");
    let claim = space.claim_of("back", "copy", &json!({}));
    space.event("copy", "VolSyncPopulatorReplicationDestinationNoLatestImage");
    space.source("data", "first", &json!({}));
    space.answers(SOURCE, "data", "first");
    // It was given up on the same spec and Secret: a new tag tries it again.
    assert_eq!(space.get("PersistentVolumeClaim", "copy")["status"]["phase"], "Pending");
    space.trigger(DESTINATION, "back", "again");
    space.answers(DESTINATION, "back", "again");
    let (wanted, found) = (space.contents("data"), space.contents("copy"));
    same(&wanted, &found);
    let uid = &space.get("PersistentVolumeClaim", "copy")["metadata"]["uid"];
    assert_eq!(*uid, claim["metadata"]["uid"], "it is the claim that waited");
}

#[test]
fn a_source_that_is_missing_or_empty_pushes_out_no_good_snapshot() {
    let up = Up::start();
    let space = up.namespace("shop");
    let repository = space.repository();
    space.source("data", "first", &json!({}));
    words(&space.fails(SOURCE, "data", "SourceMissing"), &["claim data does not exist"]);
    space.claim("data", "16Mi");
    let message = space.fails(SOURCE, "data", "SourceEmpty");
    words(&message, &["claim data", "interlock.dev/allow-empty=true"]);
    assert!(!repository.exists(), "nothing was made");
    let volume = space.bound("data");
    fill(&volume, 1);
    space.trigger(SOURCE, "data", "second");
    space.answers(SOURCE, "data", "second");
    let before = kept(&repository);
    // Everything is deleted by accident: retain keeps one snapshot, and that is the good one.
    for name in contents(&volume).into_keys() {
        let path = volume.join(name);
        let _ = if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir_all(path)
        } else {
            std::fs::remove_file(path)
        };
    }
    assert_eq!(contents(&volume).len(), 0);
    space.trigger(SOURCE, "data", "third");
    space.fails(SOURCE, "data", "SourceEmpty");
    assert_eq!(kept(&repository), before);
    // Said to be meant, it goes on without another tag; and nobody is handed it by accident.
    let meant = json!({"metadata": {"annotations": {"interlock.dev/allow-empty": "true"}}});
    space.change(SOURCE, "data", &meant);
    space.answers(SOURCE, "data", "third");
    space.destination("back", "restore", &json!({}));
    let refused = space.fails(DESTINATION, "back", "SourceEmpty");
    words(&refused, &["interlock.dev/allow-empty"]);
    assert_eq!(space.get(DESTINATION, "back")["status"]["latestImage"], Value::Null);
    space.claim_of("back", "copy", &json!({}));
    space.event("copy", "VolSyncPopulatorReplicationDestinationNoLatestImage");
    assert_eq!(space.get("PersistentVolumeClaim", "copy")["status"]["phase"], "Pending");
    space.change(DESTINATION, "back", &meant);
    space.answers(DESTINATION, "back", "restore");
    // Who says so of the destination says so of the claims that are filled from it.
    assert_eq!(space.contents("copy").len(), 0);
}

#[test]
fn a_class_of_snapshots_that_is_not_there_is_named_and_waited_for() {
    let up = Up::start();
    let space = with_data(&up, "shop");
    space.repository();
    let fast = json!({"volumeSnapshotClassName": "fast"});
    space.source("data", "first", &fast);
    let message = space.fails(SOURCE, "data", "ClassMissing");
    words(&message, &["VolumeSnapshotClass fast does not exist", "create it"]);
    let classes = format!("{WEST}/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses");
    let class = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
        "metadata": {"name": "fast"}, "driver": "local.interlock.dev", "deletionPolicy": "Delete",
    });
    up.client().must("POST", &classes, Some(&class));
    let source = space.answers(SOURCE, "data", "first");
    assert_eq!(condition(&source, "interlock.dev/Healthy")["status"], "True", "{source:#}");
    // A destination says so of the snapshot that it would publish.
    space.destination("back", "restore", &json!({"volumeSnapshotClassName": "slow"}));
    words(&space.fails(DESTINATION, "back", "ClassMissing"), &["VolumeSnapshotClass slow"]);
    assert_eq!(space.get(DESTINATION, "back")["status"]["latestImage"], Value::Null);
    // Whoever names one that is there need not make the other.
    space.change(DESTINATION, "back", &json!({"spec": {"restic": fast}}));
    space.answers(DESTINATION, "back", "restore");
}

#[test]
fn what_does_not_fit_into_a_volume_is_not_published() {
    let up = Up::start();
    let space = with_data(&up, "shop");
    std::fs::write(space.bound("data").join("large"), bytes(3, 3_000_000)).expect("it is ours");
    space.repository();
    space.source("data", "first", &json!({}));
    space.answers(SOURCE, "data", "first");
    space.destination("back", "restore", &json!({"capacity": "1Mi"}));
    let message = space.fails(DESTINATION, "back", "SizeMismatch");
    words(&message, &["claim volsync-back-dest is too small", "1048576", "capacity"]);
    let status = space.get(DESTINATION, "back")["status"].clone();
    assert_eq!(status["latestImage"], Value::Null, "{status:#}");
    assert!(space.all("VolumeSnapshot").is_empty());
    // As it says: the claim is deleted, and another one is larger.
    space.delete("PersistentVolumeClaim", "volsync-back-dest");
    space.change(DESTINATION, "back", &json!({"spec": {"restic": {"capacity": "16Mi"}}}));
    space.answers(DESTINATION, "back", "restore");
    space.claim_of("back", "copy", &json!({}));
    let (wanted, found) = (space.contents("data"), space.contents("copy"));
    same(&wanted, &found);
}

#[test]
fn a_repository_that_was_damaged_is_left_as_it_is() {
    let up = Up::start();
    let space = with_data(&up, "shop");
    let repository = space.repository();
    space.source("data", "first", &json!({}));
    space.answers(SOURCE, "data", "first");
    // What a disk does: one pack has other bytes than were written.
    let packs = contents(&repository.join("data"));
    let (pack, (_, _, bytes)) =
        packs.iter().max_by_key(|(_, (_, _, bytes))| bytes.len()).expect("a pack");
    let path = repository.join("data").join(pack);
    let mut broken = bytes.clone();
    for byte in &mut broken[100..200] {
        *byte ^= 0xff;
    }
    let mut permissions = std::fs::metadata(&path).expect("it is there").permissions();
    #[allow(clippy::permissions_set_readonly_false, reason = "it is a file of the test")]
    permissions.set_readonly(false);
    std::fs::set_permissions(&path, permissions).expect("it is ours");
    std::fs::write(&path, &broken).expect("it is ours");
    let before = kept(&repository);
    space.destination("back", "restore", &json!({}));
    let message = space.fails(DESTINATION, "back", "RepositoryDamaged");
    words(&message, &["repository-shop", "blob ", "restic check --read-data"]);
    assert_eq!(space.get(DESTINATION, "back")["status"]["latestImage"], Value::Null);
    assert_eq!(kept(&repository), before, "nothing was forgotten, pruned or written");
    // The bytes come back from somewhere: it is believed again.
    std::fs::write(&path, bytes).expect("it is ours");
    comes_back(&space, "again");
}

#[test]
fn what_is_not_supported_is_named_and_nothing_runs() {
    let up = Up::start();
    let space = with_data(&up, "shop");
    space.repository();
    let accepted = |kind: &str, name: &str, path: &str| {
        until(&format!("{path} is named"), || {
            let object = space.get(kind, name);
            let found = condition(&object, "interlock.dev/Accepted");
            let message = found["message"].as_str().unwrap_or_default();
            let is_said = found["status"] == "False" && message.contains(path);
            if is_said { Ok(()) } else { Err(format!("{object:#}")) }
        });
    };
    space.create(SOURCE, &json!({"metadata": {"name": "rclone"}, "spec": {
        "sourcePVC": "data", "trigger": {"manual": "a"},
        "rclone": {"rcloneConfigSection": "s", "rcloneDestPath": "p", "rcloneConfig": "c", "copyMethod": "Snapshot"},
    }}));
    accepted(SOURCE, "rclone", "spec.rclone");
    // Two destinations that write one claim: the first one has it.
    space.claim("target", "16Mi");
    let into = json!({"copyMethod": "Direct", "destinationPVC": "target"});
    space.source("data", "first", &json!({}));
    space.answers(SOURCE, "data", "first");
    space.destination("one", "a", &into);
    space.answers(DESTINATION, "one", "a");
    space.destination("two", "a", &into);
    accepted(DESTINATION, "two", "claim target is written by ReplicationDestination one");
    // A claim that names a destination without snapshots is reported which field to change.
    space.claim_of("one", "copy", &json!({}));
    words(&space.event("copy", "VolSyncPopulatorError"), &["one", "copyMethod", "Snapshot"]);
    let (wanted, found) = (space.contents("data"), space.contents("target"));
    same(&wanted, &found);
}
