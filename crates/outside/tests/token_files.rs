//! Files with tokens: replaced as a whole, read by real processes, and removed with their run.
#![allow(clippy::unwrap_used)]

mod scene;

use interlock_outside::processes::{Error, Mount, Signal, TokenFile};
use scene::{Scene, until};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn file(volume: &str, path: &str) -> TokenFile {
    TokenFile {
        volume: volume.to_owned(),
        path: path.to_owned(),
        audience: Some("vault".to_owned()),
        asked_seconds: 600,
        life_seconds: 600,
        issued_unix_seconds: 1_000_000,
        mode: 0o600,
    }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn a_process_reads_the_token_and_then_the_next_one_at_the_same_path() {
    let scene = Scene::new();
    let token = file("vault", "of/app");
    scene.processes.write_token("pod", &token, "first").unwrap();
    let directory = scene.processes.token_folder("pod", "vault").unwrap();
    let mount = Mount { name: "vault".into(), path: "/var/run/vault".into(), directory };
    let script = "cp var/run/vault/of/app one; \
        while [ \"$(cat \"$INTERLOCK_VOLUME_VAULT/of/app\")\" = first ]; do sleep 0.05; done; \
        cp var/run/vault/of/app two; exec sleep 1000";
    let mut run = scene.shell("pod", script);
    run.mounts.push(mount);
    scene.processes.start(&run, scene.lock("volumes")).unwrap();
    scene.until_file("pod", "one");
    scene.processes.write_token("pod", &token, "second").unwrap();
    until("the process has read the next token", || {
        fs::read_to_string(scene.file("pod", "two")).is_ok_and(|text| text == "second")
    });
    assert_eq!(fs::read_to_string(scene.file("pod", "one")).unwrap(), "first");
    scene.processes.signal("pod", Signal::Kill).unwrap();
}

#[test]
fn the_mode_is_as_asked_for_and_no_other_file_is_in_the_volume() {
    let scene = Scene::new();
    for (path, mode) in [("a", 0o600), ("b", 0o644)] {
        let token = TokenFile { mode, ..file("v", path) };
        scene.processes.write_token("pod", &token, "text").unwrap();
        scene.processes.write_token("pod", &token, "text").unwrap();
        let path = scene.processes.token_folder("pod", "v").unwrap().join(path);
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
    }
    let folder = scene.processes.token_folder("pod", "v").unwrap();
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn what_is_noted_of_a_token_is_found_again_and_is_not_the_token() {
    let scene = Scene::new();
    assert_eq!(scene.processes.tokens("pod").unwrap(), None);
    let (one, other) = (file("v", "one"), file("w", "other"));
    scene.processes.write_token("pod", &one, "very-secret").unwrap();
    scene.processes.write_token("pod", &other, "very-secret").unwrap();
    let later = TokenFile { issued_unix_seconds: 2_000_000, ..one.clone() };
    scene.processes.write_token("pod", &later, "very-secret").unwrap();
    let again = scene::open(scene.directory.path());
    assert_eq!(again.tokens("pod").unwrap(), Some(vec![other.clone(), later]));
    let notes = scene.directory.path().join("tokens/pod/notes.json");
    assert!(!fs::read_to_string(&notes).unwrap().contains("very-secret"));

    fs::remove_file(scene.processes.token_folder("pod", "v").unwrap().join("one")).unwrap();
    assert_eq!(again.tokens("pod").unwrap(), Some(vec![other]), "a file that is gone is none");
    fs::write(&notes, "{").unwrap();
    assert_eq!(again.tokens("pod").unwrap(), Some(Vec::new()), "damaged notes are none");
}

#[test]
fn tokens_are_removed_with_their_run_and_those_of_others_stay() {
    let scene = Scene::new();
    for id in ["pod", "other"] {
        scene.processes.write_token(id, &file("v", "t"), "text").unwrap();
    }
    scene.processes.remove_tokens("pod").unwrap();
    scene.processes.remove_tokens("pod").unwrap();
    assert_eq!(scene.processes.tokens("pod").unwrap(), None);
    assert!(!scene.directory.path().join("tokens/pod").exists());
    assert_eq!(scene.processes.tokens("other").unwrap().unwrap().len(), 1);
}

#[test]
fn what_nobody_removed_is_removed_when_its_tokens_are_over_and_its_run_is_gone() {
    let scene = Scene::new();
    scene.start("alive", "exec sleep 1000");
    for id in ["alive", "gone", "fresh"] {
        scene.processes.write_token(id, &file("v", "t"), "text").unwrap();
    }
    let longer = TokenFile { life_seconds: 5_000, ..file("v", "u") };
    scene.processes.write_token("fresh", &longer, "text").unwrap();
    scene.processes.remove_tokens_that_are_over(at(1_000_600)).unwrap();
    assert!(scene.processes.tokens("gone").unwrap().is_some(), "its last second is not over");
    scene.processes.remove_tokens_that_are_over(at(1_000_601)).unwrap();
    assert_eq!(scene.processes.tokens("gone").unwrap(), None);
    assert!(scene.processes.tokens("alive").unwrap().is_some());
    assert!(scene.processes.tokens("fresh").unwrap().is_some());
    scene.processes.signal("alive", Signal::Kill).unwrap();
}

#[test]
fn a_path_that_leads_out_of_its_volume_is_refused() {
    let scene = Scene::new();
    for path in ["", ".", "..", "../up", "a/../../b", "/etc/token", "a\0b"] {
        let refused = scene.processes.write_token("pod", &file("v", path), "text");
        assert!(matches!(refused, Err(Error::Path { .. })), "{path:?}: {refused:?}");
    }
    let refused = scene.processes.write_token("pod", &file("../v", "t"), "text");
    assert!(matches!(refused, Err(Error::Name { .. })), "{refused:?}");
}
