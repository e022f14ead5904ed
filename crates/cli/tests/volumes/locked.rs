//! A repository that somebody else has, who lives or is dead.

use super::contents::{contents, fill, same};
use super::harness::until;
use super::up::{PASSWORD, Space, Up};
use serde_json::json;
use std::path::Path;
use std::thread;
use std::time::Duration;

const SOURCE: &str = "ReplicationSource";

/// How many locks there are. What has a longer name is being written, or was.
fn locks(repository: &Path) -> usize {
    let entries = std::fs::read_dir(repository.join("locks")).into_iter().flatten();
    entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name().len() == 64)).count()
}

/// Does something as soon as a repository is locked.
fn once_locked(repository: &Path, then: impl FnOnce()) {
    for _ in 0..60_000 {
        if locks(repository) > 0 {
            return then();
        }
        // It is locked for some hundred milliseconds.
        thread::sleep(Duration::from_millis(1));
    }
    panic!("nobody locks {}", repository.display());
}

fn with_data(up: &Up) -> Space<'_> {
    let space = up.namespace("shop");
    space.claim("data", "16Mi");
    fill(&space.bound("data"), 5);
    space
}

/// What is in the repository comes back.
fn comes_back(space: &Space<'_>) {
    space.destination("back", "restore", &json!({}));
    space.claim_of("back", "copy", &json!({}));
    same(&space.contents("data"), &space.contents("copy"));
}

#[test]
fn a_repository_is_locked_by_one_who_lives_and_free_when_he_is_dead() {
    let (one, other) = (Up::start(), Up::start());
    let (mine, theirs) = (with_data(&one), with_data(&other));
    let repository = mine.repository();
    theirs.secret("repo", &repository.to_string_lossy(), PASSWORD);
    theirs.source("data", "first", &json!({}));
    theirs.answers(SOURCE, "data", "first");
    mine.source("data", "first", &json!({}));
    once_locked(&repository, || one.freeze());
    // To add goes beside him; to forget what is not needed any more does not.
    theirs.trigger(SOURCE, "data", "second");
    let message = theirs.fails(SOURCE, "data", "RepositoryLocked");
    let who = format!("{} (interlock)", hostname());
    for word in [who.as_str(), "since", "attempt 2"] {
        assert!(message.contains(word), "no {word:?} in {message:?}");
    }
    one.kill();
    theirs.answers(SOURCE, "data", "second");
    assert_eq!(locks(&repository), 0, "the lock of the dead is gone with those of the living");
    comes_back(&theirs);
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("this is Linux");
    name.trim().to_owned()
}

#[test]
fn a_backup_that_was_killed_is_done_again_and_leaves_no_lock() {
    let up = Up::start();
    let space = with_data(&up);
    let repository = space.repository();
    space.source("data", "first", &json!({}));
    once_locked(&repository, || up.kill_and_start_again());
    let source = space.answers(SOURCE, "data", "first");
    assert_eq!(source["status"]["latestMoverStatus"]["result"], "Successful", "{source:#}");
    until("no lock is left", || {
        if locks(&repository) == 0 { Ok(()) } else { Err(format!("{}", locks(&repository))) }
    });
    assert_eq!(contents(&repository.join("snapshots")).len(), 1);
    comes_back(&space);
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_nothing_is_saved_without_it() {
    use std::os::unix::fs::PermissionsExt;
    let up = Up::start_like_anybody();
    let space = with_data(&up);
    let repository = space.repository();
    let secret = space.bound("data").join("folder/secret");
    let mode = |mode: u32| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&secret, mode).expect("it is ours");
    };
    std::fs::write(&secret, "secret").expect("it is ours");
    mode(0);
    space.source("snapshot", "first", &json!({}));
    space.source("direct", "first", &json!({"copyMethod": "Direct"}));
    for name in ["snapshot", "direct"] {
        let message = space.fails(SOURCE, name, "SourceUnreadable");
        assert!(message.contains("folder/secret"), "{message}");
    }
    assert_eq!(std::fs::read_dir(repository.join("snapshots")).map_or(0, Iterator::count), 0);
    // Both go on by themselves.
    mode(0o600);
    space.answers(SOURCE, "snapshot", "first");
    space.answers(SOURCE, "direct", "first");
    comes_back(&space);
}
