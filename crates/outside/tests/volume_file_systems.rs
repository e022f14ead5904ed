//! The same on file systems of our own, which only root can mount, and beside other programs:
//! `cargo test -p interlock-outside --test volume_file_systems -- --ignored --nocapture`
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod shelves;

use interlock_outside::volumes::{
    Copying, LocalVolumes, Made, NewCopy, Reason, Volumes, digest_of,
};
use shelves::{CLUSTER, Random, Shelves, empty, from, one_of_everything, scramble, seen, until};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system in a file or in memory, unmounted in the end.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn in_memory(size: &str) -> Mounted {
        let place = tempfile::tempdir().unwrap();
        let size = format!("size={size}");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at(&place)));
        Mounted(place)
    }

    /// None if this machine cannot make such a one.
    fn in_a_file(make: &[&str], megabytes: u64) -> Option<Mounted> {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::File::create(&file).unwrap().set_len(megabytes << 20).unwrap();
        let made = Command::new(make[0]).args(&make[1..]).arg(&file).output().ok()?;
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        run(Command::new("mount").args(["-o", "loop"]).arg(&file).arg(at(&place)));
        Some(Mounted(place))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("mounted")
    }
}

fn at(place: &tempfile::TempDir) -> PathBuf {
    let path = place.path().join("mounted");
    fs::create_dir(&path).unwrap();
    path
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A child that another test forked a moment ago may have a copy of an open file.
        for _ in 0..100 {
            if Command::new("umount")
                .arg(self.path())
                .output()
                .is_ok_and(|out| out.status.success())
            {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

fn settled(volumes: &LocalVolumes, snapshot: &str) -> Made {
    shelves::until_settled(|| volumes.snapshot_state(snapshot).unwrap())
}

fn make(volumes: &LocalVolumes, handle: &str) -> PathBuf {
    volumes.make_volume(&empty(handle)).unwrap();
    until("it is made", || matches!(volumes.volume_state(handle).unwrap(), Made::Whole(_)));
    volumes.volume_path(handle).unwrap()
}

#[test]
#[ignore = "mounts, so it needs root: cargo xtask test-real"]
fn a_full_disk_says_so_before_and_leaves_nothing() {
    let mounted = Mounted::in_memory("64m");
    let volumes = LocalVolumes::open(mounted.path(), CLUSTER).unwrap();
    let volume = make(&volumes, "pvc-1");
    fs::write(volume.join("file"), vec![1; 40 << 20]).unwrap();
    volumes.take_snapshot("snapshot-1", "pvc-1").unwrap();
    let failure = shelves::failure(settled(&volumes, "snapshot-1"));
    assert_eq!(failure.reason, Reason::TargetFull);
    assert!(failure.message.contains("it needs 42.0 MiB and 24.0 MiB are free"), "{failure:?}");
    fs::write(volume.join("file"), vec![1; 20 << 20]).unwrap();
    volumes.take_snapshot("snapshot-1", "pvc-1").unwrap();
    shelves::whole(settled(&volumes, "snapshot-1"));
}

/// Somebody else fills the disk after there was room on it.
#[test]
#[ignore = "mounts, so it needs root: cargo xtask test-real"]
fn a_disk_that_fills_up_in_between_says_so_and_leaves_nothing() {
    let mounted = Mounted::in_memory("64m");
    let volumes = LocalVolumes::open(mounted.path(), CLUSTER).unwrap();
    let volume = make(&volumes, "pvc-1");
    for number in 0..20 {
        fs::write(volume.join(format!("file-{number}")), vec![1; 1 << 20]).unwrap();
    }
    // Again and again: some of the times, it is in the middle.
    let filler = mounted.path().join("filler");
    let (mut before, mut between) = (0, 0);
    for round in 0..200 {
        let _ = fs::remove_file(&filler);
        volumes.take_snapshot("snapshot-1", "pvc-1").unwrap();
        std::thread::sleep(std::time::Duration::from_micros(round * 40));
        let _ = fs::write(&filler, vec![1; 40 << 20]);
        match settled(&volumes, "snapshot-1") {
            Made::Whole(content) => {
                let path = mounted.path().join("snapshots").join(CLUSTER).join("snapshot-1");
                assert_eq!(digest_of(&path).unwrap(), content);
                volumes.delete_snapshot("snapshot-1").unwrap();
            }
            state => {
                let failure = shelves::failure(state);
                assert_eq!(failure.reason, Reason::TargetFull, "{failure:?}");
                assert!(failure.message.contains("are free"), "{failure:?}");
                match failure.message.contains("make room there") {
                    true => before += 1,
                    false => between += 1,
                }
            }
        }
        until("nothing is left over", || shelves::leftovers(&mounted.path()).is_empty());
        let snapshots = mounted.path().join("snapshots").join(CLUSTER);
        assert!(!snapshots.join("snapshot-1").exists());
    }
    println!("full before {before} times, in between {between} times");
    assert!(between > 0, "never in between: nothing was tried");
}

#[test]
#[ignore = "mounts, so it needs root: cargo xtask test-real"]
fn every_file_system_keeps_everything() {
    let makers: [&[&str]; 4] = [
        &["mkfs.ext4", "-q"],
        &["mkfs.xfs", "-q", "-m", "reflink=1"],
        &["mkfs.xfs", "-q", "-m", "reflink=0"],
        &["mkfs.btrfs", "-q"],
    ];
    let mut tried = 0;
    for maker in makers {
        let Some(mounted) = Mounted::in_a_file(maker, 512) else {
            println!("not tried: {maker:?}");
            continue;
        };
        println!("{maker:?}");
        tried += 1;
        clone_and_copy(&mounted.path());
    }
    let memory = Mounted::in_memory("512m");
    clone_and_copy(&memory.path());
    assert!(tried > 0);
}

fn clone_and_copy(root: &Path) {
    let volumes = LocalVolumes::open(root, CLUSTER).unwrap();
    let volume = make(&volumes, "pvc-1");
    one_of_everything(&volume);
    scramble(&volume, &mut Random::new(), 300);
    fs::write(volume.join("large"), vec![5; 100 << 20]).unwrap();
    volumes.take_snapshot("snapshot-1", "pvc-1").unwrap();
    let snapshot = shelves::whole(settled(&volumes, "snapshot-1"));
    let path = root.join("snapshots").join(CLUSTER).join("snapshot-1");
    assert_eq!(seen(&volume), seen(&path));
    assert_eq!(digest_of(&volume).unwrap(), snapshot);
    volumes.make_volume(&from("pvc-2", "snapshot-1", &snapshot.digest)).unwrap();
    let made = shelves::until_settled(|| volumes.volume_state("pvc-2").unwrap());
    assert_eq!(shelves::whole(made), snapshot);
    let second = volumes.volume_path("pvc-2").unwrap();
    assert_eq!(seen(&volume), seen(&second));
    scramble(&second, &mut Random::new(), 100);
    let copy = NewCopy {
        into: "pvc-2".to_owned(),
        cluster: CLUSTER.to_owned(),
        snapshot: "snapshot-1".to_owned(),
        digest: Some(snapshot.digest),
        allow_empty: false,
    };
    volumes.begin_copy("sync", &copy).unwrap();
    until("it is copied", || !matches!(volumes.copy_state("sync"), Copying::Runs(_)));
    let state = volumes.copy_state("sync");
    assert!(matches!(state, Copying::Done(_)), "{state:?}");
    assert_eq!(seen(&volume), seen(&second));
}

/// With shared blocks, a clone takes no space for its bytes: more fits than there is room for.
#[test]
#[ignore = "mounts, so it needs root: cargo xtask test-real"]
fn where_blocks_can_be_shared_a_clone_takes_none() {
    let Some(mounted) = Mounted::in_a_file(&["mkfs.btrfs", "-q"], 512) else {
        println!("not tried: there is no mkfs.btrfs");
        return;
    };
    let volumes = LocalVolumes::open(mounted.path(), CLUSTER).unwrap();
    let volume = make(&volumes, "pvc-1");
    fs::write(volume.join("file"), vec![1; 150 << 20]).unwrap();
    for number in 0..5 {
        let handle = format!("snapshot-{number}");
        volumes.take_snapshot(&handle, "pvc-1").unwrap();
        let content = shelves::whole(settled(&volumes, &handle));
        assert_eq!(content, digest_of(&volume).unwrap());
    }
}

#[test]
#[ignore = "needs rsync: cargo xtask test-real"]
fn rsync_finds_no_difference() {
    let mut random = Random::new();
    for round in 0..20 {
        let shelves = Shelves::new();
        let volume = shelves.volume("pvc-1");
        one_of_everything(&volume);
        scramble(&volume, &mut random, 200);
        shelves.snapshot("snapshot-1", "pvc-1");
        let with_slash = |path: &Path| format!("{}/", path.display());
        // Archive, checksums, hard links, attributes, deletions; nothing is changed, only listed.
        let output = Command::new("rsync")
            .args(["-anicHX", "--delete", "--no-specials"])
            .arg(with_slash(&volume))
            .arg(with_slash(&shelves.snapshot_path("snapshot-1")))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found = String::from_utf8_lossy(&output.stdout);
        let differences: Vec<_> = found
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with("skipping non-regular"))
            .collect();
        assert_eq!(differences, [""; 0], "round {round}");
    }
}
