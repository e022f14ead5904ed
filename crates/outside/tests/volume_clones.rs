//! A clone is what it was cloned from, in everything that a second pair of eyes can see.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod shelves;

use interlock_outside::volumes::{Reason, Volumes, digest_of};
use rustix::fs::{AtFlags, Mode, OFlags};
use shelves::{Random, Shelves, from, is_root, one_of_everything, scramble, seen};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const HASHED: &str = "INTERLOCK_TEST_HASHED";

#[test]
fn a_snapshot_and_a_volume_made_from_it_have_one_of_everything() {
    let shelves = Shelves::new();
    let volume = shelves.volume("pvc-1");
    one_of_everything(&volume);
    let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
    assert_eq!(seen(&volume), seen(&shelves.snapshot_path("snapshot-1")));
    assert!(!shelves.snapshot_path("snapshot-1").join("socket").exists());

    shelves.volumes.make_volume(&from("pvc-2", "snapshot-1", &snapshot.digest)).unwrap();
    let made = shelves.until_volume("pvc-2");
    assert_eq!(made, snapshot);
    let again = shelves.volumes.volume_path("pvc-2").unwrap();
    assert_eq!(seen(&volume), seen(&again));
    assert_eq!(digest_of(&volume).unwrap(), snapshot);
    assert_eq!(digest_of(&again).unwrap(), snapshot);
    assert_eq!(shelves.leftovers(), [""; 0]);
}

#[test]
fn holes_stay_holes() {
    let shelves = Shelves::new();
    let volume = shelves.volume("pvc-1");
    shelves::sparse(&volume.join("holes"));
    fs::File::create(volume.join("all hole")).unwrap().set_len(1 << 31).unwrap();
    let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
    assert_eq!(snapshot.bytes, (9 << 20) + (1 << 31));
    let (before, after) = (volume.join("holes"), shelves.snapshot_path("snapshot-1").join("holes"));
    let blocks = |path: &Path| fs::metadata(path).unwrap().blocks();
    assert_eq!(blocks(&before), blocks(&after));
    assert!(blocks(&after) * 512 < 1 << 20);
    assert_eq!(blocks(&shelves.snapshot_path("snapshot-1").join("all hole")), 0);
    // It counts by what it takes, not by how long its files are.
    let small = interlock_outside::volumes::NewVolume {
        capacity_bytes: 1 << 20,
        ..from("pvc-2", "snapshot-1", &snapshot.digest)
    };
    shelves.volumes.make_volume(&small).unwrap();
    assert_eq!(shelves.until_volume("pvc-2"), snapshot);
}

#[test]
fn random_trees_are_cloned_as_they_are() {
    let mut random = Random::new();
    for round in 0..25 {
        let shelves = Shelves::new();
        let volume = shelves.volume("pvc-1");
        scramble(&volume, &mut random, 20 + round * 8);
        let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
        assert_eq!(seen(&volume), seen(&shelves.snapshot_path("snapshot-1")), "round {round}");
        assert_eq!(digest_of(&volume).unwrap(), snapshot, "round {round}");
    }
}

/// Deeper than a path can be long, than a stack holds calls, and than files may be open.
#[test]
fn a_tree_may_be_deeper_than_any_path_is_long() {
    let depth = 1500;
    let shelves = Shelves::new();
    let volume = shelves.volume("pvc-1");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut folder = rustix::fs::open(&volume, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&folder, "down", Mode::RWXU).unwrap();
        folder = rustix::fs::openat(&folder, "down", flags, Mode::empty()).unwrap();
    }
    rustix::fs::openat(&folder, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
    let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
    assert_eq!(snapshot.files, 1);
    let mut folder =
        rustix::fs::open(shelves.snapshot_path("snapshot-1"), flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        folder = rustix::fs::openat(&folder, "down", flags, Mode::empty()).unwrap();
    }
    rustix::fs::statat(&folder, "file", AtFlags::empty()).unwrap();
    for handle in ["pvc-1", "snapshot-1"] {
        shelves.volumes.delete_volume(handle).unwrap();
        shelves.volumes.delete_snapshot(handle).unwrap();
    }
    shelves::until("both are removed", || shelves.leftovers().is_empty());
}

/// With the b3sum of this machine too, if it has one.
#[test]
fn a_shell_script_computes_the_same_digest() {
    let shelves = Shelves::new();
    let volume = shelves.volume("pvc-1");
    one_of_everything(&volume);
    scramble(&volume, &mut Random::new(), 60);
    let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
    let programs = tempfile::tempdir().unwrap();
    play_b3sum(&programs.path().join("b3sum"));
    let path = std::env::var("PATH").unwrap();
    let with_ours = format!("{}:{path}", programs.path().display());
    assert_eq!(digest_by_script(&volume, &with_ours), snapshot.digest);
    let machine_has_one = Command::new("b3sum").arg("--version").output().is_ok();
    println!("also with the b3sum of this machine: {machine_has_one}");
    if machine_has_one {
        assert_eq!(digest_by_script(&volume, &path), snapshot.digest);
    }
}

fn digest_by_script(volume: &Path, path: &str) -> String {
    // Where cargo runs the test, not where it was compiled: clones may share a build cache.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the test");
    let script = Path::new(&here).join("src/volumes/digest.sh");
    let output = Command::new("bash").arg(script).arg(volume).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Writes a program that answers as `b3sum --no-names -- FILE` does.
fn play_b3sum(program: &Path) {
    let script = format!(
        "#!/bin/sh\nfor file; do :; done\n{HASHED}=\"$file\" \"{}\" --exact \
         this_binary_plays_b3sum_too --nocapture | sed -n 's/^blake3: //p'\n",
        std::env::current_exe().unwrap().display()
    );
    fs::write(program, script).unwrap();
    fs::set_permissions(program, fs::Permissions::from_mode(0o700)).unwrap();
}

/// Not a test of its own: what the one above executes.
#[test]
fn this_binary_plays_b3sum_too() {
    let Some(file) = std::env::var_os(HASHED) else { return };
    let hash = blake3::hash(&fs::read(file).unwrap()).to_hex();
    // On a line of its own: the harness has begun one.
    println!("\nblake3: {hash}");
}

/// The text of the lines, written down once by hand, so that it cannot change unnoticed.
#[test]
fn the_lines_of_the_digest_are_what_the_documentation_says() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::write(root.join("a\\b\nc"), "abc").unwrap();
    fs::set_permissions(root.join("a\\b\nc"), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("to\n", root.join("link")).unwrap();
    for name in ["a\\b\nc", "link"] {
        shelves::set_time(&root.join(name), 1_700_000_000, 5);
    }
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let abc = blake3::hash(b"abc").to_hex();
    let lines = format!(
        "f 640 {uid}:{gid} 3 1700000000.000000005 {abc} a\\\\b\\nc\n\
         l 777 {uid}:{gid} 3 1700000000.000000005 - link -> to\\n\n"
    );
    let content = digest_of(root).unwrap();
    assert_eq!(content.digest, blake3::hash(lines.as_bytes()).to_hex().as_str());
    assert_eq!((content.files, content.bytes), (2, 3));
}

#[test]
fn the_digest_tells_what_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let file = root.join("file");
    fs::write(&file, "abc").unwrap();
    shelves::set_time(&file, 1000, 0);
    let before = digest_of(root).unwrap().digest;
    let changes: [(&str, &dyn Fn()); 4] = [
        ("bytes", &|| fs::write(&file, "abd").unwrap()),
        ("mode", &|| fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap()),
        ("time", &|| shelves::set_time(&file, 1000, 1)),
        ("name", &|| fs::rename(&file, root.join("life")).unwrap()),
    ];
    for (what, change) in changes {
        change();
        if what == "bytes" {
            shelves::set_time(&file, 1000, 0);
        }
        assert_ne!(digest_of(root).unwrap().digest, before, "{what}");
        let _ = fs::rename(root.join("life"), &file);
        fs::write(&file, "abc").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        shelves::set_time(&file, 1000, 0);
        assert_eq!(digest_of(root).unwrap().digest, before, "{what} taken back");
    }
}

/// Root may read everything, so this plays its part as somebody else.
#[test]
fn one_unreadable_file_is_enough_for_no_snapshot_at_all() {
    if is_root() {
        return as_nobody("one_unreadable_file_is_enough_for_no_snapshot_at_all");
    }
    let shelves = Shelves::new();
    let volume = shelves.volume("pvc-1");
    for number in 0..200 {
        fs::write(volume.join(format!("file-{number}")), "readable").unwrap();
    }
    fs::create_dir(volume.join("closed")).unwrap();
    for name in ["file-17", "file-99", "closed"] {
        fs::set_permissions(volume.join(name), fs::Permissions::from_mode(0o0)).unwrap();
    }
    shelves.volumes.take_snapshot("snapshot-1", "pvc-1").unwrap();
    let failure = shelves.snapshot_failure("snapshot-1");
    assert_eq!(failure.reason, Reason::SourceUnreadable);
    assert!(failure.message.contains("closed"), "{failure:?}");
    assert!(!shelves.snapshot_path("snapshot-1").exists());
    fs::set_permissions(volume.join("closed"), fs::Permissions::from_mode(0o500)).unwrap();
    shelves.volumes.take_snapshot("snapshot-1", "pvc-1").unwrap();
    let failure = shelves.snapshot_failure("snapshot-1");
    assert_eq!(failure.reason, Reason::SourceUnreadable);
    assert!(failure.message.contains("file-17"), "{failure:?}");
    assert!(failure.message.contains("file-99"), "{failure:?}");
    for name in ["file-17", "file-99"] {
        fs::set_permissions(volume.join(name), fs::Permissions::from_mode(0o400)).unwrap();
    }
    shelves.volumes.take_snapshot("snapshot-1", "pvc-1").unwrap();
    assert_eq!(shelves.until_snapshot("snapshot-1").files, 200);
    shelves::until("nothing is left over", || shelves.leftovers().is_empty());
}

/// Somebody else's trees: folders without the right to write in them are made, kept and removed.
#[test]
fn who_is_not_root_can_clone_and_delete_what_is_read_only() {
    if is_root() {
        return as_nobody("who_is_not_root_can_clone_and_delete_what_is_read_only");
    }
    let shelves = Shelves::new();
    let volume = shelves.volume("pvc-1");
    one_of_everything(&volume);
    fs::set_permissions(&volume, fs::Permissions::from_mode(0o500)).unwrap();
    let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
    assert_eq!(seen(&volume), seen(&shelves.snapshot_path("snapshot-1")));
    shelves.volumes.make_volume(&from("pvc-2", "snapshot-1", &snapshot.digest)).unwrap();
    shelves.until_volume("pvc-2");
    for handle in ["pvc-1", "pvc-2"] {
        shelves.volumes.delete_volume(handle).unwrap();
    }
    shelves.volumes.delete_snapshot("snapshot-1").unwrap();
    shelves::until("all is removed", || shelves.leftovers().is_empty());
}

/// Runs one test of this binary as a user without rights.
fn as_nobody(test: &str) {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // The binary itself may be where nobody else can read.
    let binary = place.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    let output = Command::new(&binary)
        .args(["--exact", test, "--nocapture"])
        .env("TMPDIR", place.path())
        .current_dir(place.path())
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let (out, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{errors}");
    assert!(out.contains("1 passed"), "{out}");
}
