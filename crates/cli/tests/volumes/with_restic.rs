//! One repository, worked on by a fleet and by the real restic. These need programs that are not
//! ours, or root, and are run by `cargo xtask test-real`.

use super::contents::{bytes, contents, fill, same};
use super::harness::{DataDirectory, until};
use super::up::{PASSWORD, Up};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &str = "ReplicationSource";
const DESTINATION: &str = "ReplicationDestination";

/// restic on a repository.
fn restic(repository: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("restic");
    command.env("RESTIC_REPOSITORY", repository).env("RESTIC_PASSWORD", PASSWORD);
    command.args(["--no-cache", "--quiet"]).args(args);
    command
}

/// Runs a command to its good end; what it says.
fn run(mut command: Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    output.stdout
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn what_a_fleet_saved_restic_checks_and_restores() {
    let up = Up::start();
    let space = up.namespace("shop");
    space.claim("data", "16Mi");
    let volume = space.bound("data");
    let repository = space.repository();
    fill(&volume, 1);
    space.source("data", "one", &json!({"retain": {"last": "2"}}));
    space.answers(SOURCE, "data", "one");
    fill(&volume, 2);
    space.trigger(SOURCE, "data", "two");
    space.answers(SOURCE, "data", "two");
    run(restic(&repository, &["check", "--read-data"]));
    let snapshots = run(restic(&repository, &["snapshots", "--json"]));
    let snapshots: Value = serde_json::from_slice(&snapshots).expect("JSON");
    assert_eq!(snapshots.as_array().map(Vec::len), Some(2), "{snapshots:#}");
    for snapshot in snapshots.as_array().into_iter().flatten() {
        assert_eq!(
            (&snapshot["hostname"], &snapshot["paths"]),
            (&json!("volsync"), &json!(["/data"]))
        );
    }
    let target = up.path("restored");
    run(restic(&repository, &["restore", "latest", "--target", &target.to_string_lossy()]));
    same(&contents(&volume), &contents(&target));
}

/// Backs a folder up as VolSync's mover does: mounted at /data, which stands in the snapshot.
fn volsync_backup(repository: &Path, folder: &Path) {
    let script = "mkdir -p /data && mount --bind \"$0\" /data && cd /data && \
                  restic --no-cache --quiet backup --host volsync --exclude=lost+found . && \
                  cd / && umount /data && { rmdir /data 2> /dev/null || true; }";
    let mut command = Command::new("unshare");
    command.env("RESTIC_REPOSITORY", repository).env("RESTIC_PASSWORD", PASSWORD);
    command.args(["--mount", "sh", "-c", script]).arg(folder);
    run(command);
}

#[test]
#[ignore = "needs restic, and root to mount: cargo xtask test-real"]
fn what_restic_saved_fills_a_claim_and_the_fleet_goes_on_with_it() {
    let up = Up::start();
    let space = up.namespace("shop");
    let repository = space.repository();
    let theirs = up.path("theirs");
    std::fs::create_dir(&theirs).expect("the directory is ours");
    fill(&theirs, 9);
    run(restic(&repository, &["init"]));
    volsync_backup(&repository, &theirs);
    space.destination("back", "restore", &json!({}));
    space.claim_of("back", "data", &json!({}));
    same(&contents(&theirs), &space.contents("data"));
    // The fleet goes on where VolSync stopped, and VolSync where the fleet did.
    fill(&space.bound("data"), 10);
    space.source("data", "ours", &json!({"retain": {"last": "9"}}));
    space.answers(SOURCE, "data", "ours");
    fill(&theirs, 11);
    volsync_backup(&repository, &theirs);
    run(restic(&repository, &["check", "--read-data"]));
    space.trigger(DESTINATION, "back", "again");
    space.answers(DESTINATION, "back", "again");
    space.claim_of("back", "copy", &json!({}));
    same(&contents(&theirs), &space.contents("copy"));
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn the_lock_of_a_restic_that_died_goes_when_a_person_says_so() {
    let up = Up::start();
    let space = up.namespace("shop");
    space.claim("data", "16Mi");
    fill(&space.bound("data"), 1);
    let repository = space.repository();
    space.source("data", "one", &json!({}));
    space.answers(SOURCE, "data", "one");
    // A restic that waits for what it is to save, and dies.
    let mut dying = restic(&repository, &["backup", "--stdin"]);
    let mut dying = dying.stdin(Stdio::piped()).spawn().expect("restic runs");
    // restic writes `<id>-tmp-<number>` and renames it to `<id>`: only then does it hold the lock.
    let locks = || {
        let names = std::fs::read_dir(repository.join("locks")).into_iter().flatten().flatten();
        names.filter(|lock| lock.file_name().len() == 64).count()
    };
    until("restic has its lock", || if locks() > 0 { Ok(()) } else { Err("none".to_owned()) });
    dying.kill().expect("it is our child");
    dying.wait().expect("it is our child");
    space.trigger(SOURCE, "data", "two");
    let message = space.fails(SOURCE, "data", "RepositoryLocked");
    assert!(message.contains("unlock"), "{message}");
    space.change(SOURCE, "data", &json!({"spec": {"restic": {"unlock": "he-is-dead"}}}));
    let source = space.answers(SOURCE, "data", "two");
    assert_eq!(source["status"]["restic"]["lastUnlocked"], "he-is-dead", "{source:#}");
    assert_eq!(locks(), 0);
    run(restic(&repository, &["check", "--read-data"]));
}

/// A file system of a few megabytes.
struct Small(PathBuf);

impl Small {
    fn at(path: PathBuf, size: &str) -> Small {
        std::fs::create_dir_all(&path).expect("the directory is ours");
        let small = Small(path);
        small.mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "none"]);
        small
    }

    fn grow(&self, size: &str) {
        self.mount(&["-o", &format!("remount,size={size}")]);
    }

    fn mount(&self, args: &[&str]) {
        let mut command = Command::new("mount");
        command.args(args).arg(&self.0);
        run(command);
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
#[ignore = "needs restic, and root to mount: cargo xtask test-real"]
fn a_full_disk_loses_nothing_and_with_more_room_it_goes_on() {
    let place = DataDirectory::new();
    let (snapshots, repository) = (place.data().join("snapshots"), place.path("repository-shop"));
    let snapshots = Small::at(snapshots, "2m");
    let repository_disk = Small::at(repository.clone(), "3m");
    let up = Up::start_in(place);
    let space = up.namespace("shop");
    space.repository();
    space.claim("data", "16Mi");
    let volume = space.bound("data");
    fill(&volume, 1);
    space.source("data", "one", &json!({}));
    space.answers(SOURCE, "data", "one");
    // No room for the snapshot: nothing is published, and what is needed is said.
    std::fs::write(volume.join("more"), bytes(2, 4_000_000)).expect("it is ours");
    space.trigger(SOURCE, "data", "two");
    let message = space.fails(SOURCE, "data", "TargetFull");
    assert!(message.contains("MiB"), "{message}");
    run(restic(&repository, &["check", "--read-data"]));
    // There is room for that; and none for the backup.
    snapshots.grow("64m");
    let message = until("the repository is full", || {
        let message = space.fails(SOURCE, "data", "TargetFull");
        if message.contains("repository-shop") { Ok(message) } else { Err(message) }
    });
    eprintln!("{message}");
    // What was saved before is whole, and comes back.
    repository_disk.grow("64m");
    run(restic(&repository, &["check", "--read-data"]));
    space.answers(SOURCE, "data", "two");
    space.destination("back", "restore", &json!({}));
    space.claim_of("back", "copy", &json!({}));
    same(&contents(&volume), &space.contents("copy"));
    run(restic(&repository, &["check", "--read-data"]));
    drop(up);
}
