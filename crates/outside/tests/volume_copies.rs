//! A copy brings a volume to exactly what a snapshot has, whatever was in the volume.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod shelves;

use interlock_outside::volumes::{
    Copied, Copying, Error, LocalVolumes, NewCopy, NewVolume, Reason, Volumes, digest_of,
};
use shelves::{CLUSTER, Random, Shelves, empty, one_of_everything, scramble, seen, until};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

const HERE: &str = "the-new-cluster";

/// The other cluster on the same machine, which the volumes are copied to.
fn here(shelves: &Shelves) -> LocalVolumes {
    let here = LocalVolumes::open(shelves.path(), HERE).unwrap();
    here.make_volume(&empty("pvc-dest")).unwrap();
    until("it is made", || here.read_volume("pvc-dest").is_ok());
    here
}

fn copy(snapshot: &str, digest: Option<&str>) -> NewCopy {
    NewCopy {
        into: "pvc-dest".to_owned(),
        cluster: CLUSTER.to_owned(),
        snapshot: snapshot.to_owned(),
        digest: digest.map(str::to_owned),
        allow_empty: false,
    }
}

fn until_over(here: &LocalVolumes, id: &str) -> Copying {
    until("the copy is over", || !matches!(here.copy_state(id), Copying::Runs(_)));
    here.copy_state(id)
}

#[track_caller]
fn done(copying: Copying) -> Copied {
    let Copying::Done(copied) = copying else { panic!("{copying:?}") };
    copied
}

#[track_caller]
fn reason(copying: Copying) -> Reason {
    let Copying::Failed(failure) = copying else { panic!("{copying:?}") };
    failure.reason
}

#[test]
fn a_volume_becomes_what_the_snapshot_of_another_cluster_is() {
    let shelves = Shelves::new();
    one_of_everything(&shelves.volume("pvc-1"));
    let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
    let here = here(&shelves);
    assert_eq!(here.copy_state("sync-1"), Copying::Unknown);
    here.begin_copy("sync-1", &copy("snapshot-1", Some(&snapshot.digest))).unwrap();
    let copied = done(until_over(&here, "sync-1"));
    assert_eq!(copied.content, snapshot);
    assert!(copied.began <= copied.ended);
    let path = here.volume_path("pvc-dest").unwrap();
    assert_eq!(seen(&path), seen(&shelves.snapshot_path("snapshot-1")));

    here.forget_copy("sync-1");
    assert_eq!(here.copy_state("sync-1"), Copying::Unknown);
}

/// The second copy finds a volume that has most of it, wrongly linked, renamed, and with files that
/// look the same from outside.
#[test]
fn random_volumes_become_what_random_snapshots_are() {
    let mut random = Random::new();
    for round in 0..25 {
        let shelves = Shelves::new();
        let (source, here) = (shelves.volume("pvc-1"), here(&shelves));
        let path = here.volume_path("pvc-dest").unwrap();
        scramble(&source, &mut random, 100);
        if round % 2 == 0 {
            shelves.snapshot("snapshot-0", "pvc-1");
            here.begin_copy("sync-0", &NewCopy { allow_empty: true, ..copy("snapshot-0", None) })
                .unwrap();
            done(until_over(&here, "sync-0"));
        }
        scramble(&path, &mut random, 60);
        scramble(&source, &mut random, 30);
        let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
        here.begin_copy("sync-1", &NewCopy { allow_empty: true, ..copy("snapshot-1", None) })
            .unwrap();
        assert_eq!(done(until_over(&here, "sync-1")).content, snapshot, "round {round}");
        assert_eq!(seen(&path), seen(&source), "round {round}");
    }
}

#[test]
fn what_is_the_same_already_is_left_alone() {
    let shelves = Shelves::new();
    one_of_everything(&shelves.volume("pvc-1"));
    shelves.snapshot("snapshot-1", "pvc-1");
    let here = here(&shelves);
    let path = here.volume_path("pvc-dest").unwrap();
    let copy_once = |id: &str| {
        here.begin_copy(id, &copy("snapshot-1", None)).unwrap();
        done(until_over(&here, id));
    };
    copy_once("sync-1");
    let inodes = |names: &[&str]| -> Vec<u64> {
        names.iter().map(|name| fs::symlink_metadata(path.join(name)).unwrap().ino()).collect()
    };
    let names = ["plain", "folder/inner/file", "holes", "link", "fifo", "folder/third name"];
    let before = inodes(&names);
    // Only the bytes of one differ: neither its length nor its time tell.
    let file = path.join("folder/inner/file");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, vec![8; 300_000]).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    copy_once("sync-2");
    let after = inodes(&names);
    let changed: Vec<_> = (0..names.len()).filter(|at| before[*at] != after[*at]).collect();
    assert_eq!(changed, [1]);
    assert_eq!(seen(&path), seen(&shelves.snapshot_path("snapshot-1")));
}

#[test]
fn what_cannot_be_copied_says_why_and_leaves_the_volume() {
    let shelves = Shelves::new();
    let source = shelves.volume("pvc-1");
    shelves.snapshot("snapshot-0", "pvc-1");
    fs::write(source.join("file"), vec![1; 10_000]).unwrap();
    let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
    let here = here(&shelves);
    let path = here.volume_path("pvc-dest").unwrap();
    fs::write(path.join("precious"), "data").unwrap();
    let attempt = |id: &str, copy: NewCopy| {
        here.begin_copy(id, &copy).unwrap();
        reason(until_over(&here, id))
    };
    let wrong = copy("snapshot-1", Some("wrong"));
    assert_eq!(attempt("1", wrong), Reason::DigestMismatch);
    assert_eq!(attempt("2", copy("snapshot-0", None)), Reason::SourceEmpty);
    assert_eq!(attempt("3", copy("snapshot-2", None)), Reason::SourceMissing);
    let nowhere = NewCopy { cluster: "nowhere".to_owned(), ..copy("snapshot-1", None) };
    assert_eq!(attempt("4", nowhere), Reason::SourceMissing);
    let no_volume = NewCopy { into: "pvc-0".to_owned(), ..copy("snapshot-1", None) };
    assert_eq!(attempt("5", no_volume), Reason::SourceMissing);
    let small = NewVolume { capacity_bytes: 9_999, ..empty("pvc-small") };
    here.make_volume(&small).unwrap();
    until("it is made", || here.read_volume("pvc-small").is_ok());
    let into_small = NewCopy { into: "pvc-small".to_owned(), ..copy("snapshot-1", None) };
    assert_eq!(attempt("6", into_small), Reason::SizeMismatch);
    let foreign = NewVolume { owner: "bank".to_owned(), ..empty("pvc-foreign") };
    here.make_volume(&foreign).unwrap();
    until("it is made", || here.read_volume("pvc-foreign").is_ok());
    let into_foreign = NewCopy { into: "pvc-foreign".to_owned(), ..copy("snapshot-1", None) };
    assert_eq!(attempt("9", into_foreign), Reason::SourceMissing, "it is not bank's");
    let trick = NewCopy { cluster: "../..".to_owned(), ..copy("snapshot-1", None) };
    assert!(matches!(here.begin_copy("7", &trick), Err(Error::Name { .. })));
    assert_eq!(fs::read_to_string(path.join("precious")).unwrap(), "data");

    // What failed is tried again under the same id, if need be.
    here.begin_copy("1", &copy("snapshot-1", Some(&snapshot.digest))).unwrap();
    done(until_over(&here, "1"));
    assert!(!path.join("precious").exists());
    let empty = NewCopy { allow_empty: true, ..copy("snapshot-0", None) };
    here.begin_copy("8", &empty).unwrap();
    assert_eq!(done(until_over(&here, "8")).content.files, 0);
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
}

#[test]
fn a_volume_that_somebody_reads_is_not_written() {
    let shelves = Shelves::new();
    fs::write(shelves.volume("pvc-1").join("file"), "abc").unwrap();
    shelves.snapshot("snapshot-1", "pvc-1");
    let here = here(&shelves);
    let reading = here.read_volume("pvc-dest").unwrap();
    let busy = here.begin_copy("sync-1", &copy("snapshot-1", None));
    assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
    assert_eq!(here.copy_state("sync-1"), Copying::Unknown);
    drop(reading);
    here.begin_copy("sync-1", &copy("snapshot-1", None)).unwrap();
    done(until_over(&here, "sync-1"));
}

#[test]
fn folders_without_the_right_to_write_are_written_all_the_same() {
    let shelves = Shelves::new();
    let source = shelves.volume("pvc-1");
    fs::create_dir(source.join("folder")).unwrap();
    fs::write(source.join("folder/file"), "new").unwrap();
    let read_only = || fs::Permissions::from_mode(0o500);
    fs::set_permissions(source.join("folder"), read_only()).unwrap();
    shelves.snapshot("snapshot-1", "pvc-1");
    let here = here(&shelves);
    let path = here.volume_path("pvc-dest").unwrap();
    for name in ["folder", "old"] {
        fs::create_dir(path.join(name)).unwrap();
        fs::write(path.join(name).join("file"), "old").unwrap();
        fs::set_permissions(path.join(name), read_only()).unwrap();
    }
    here.begin_copy("sync-1", &copy("snapshot-1", None)).unwrap();
    let copied = done(until_over(&here, "sync-1"));
    assert_eq!(seen(&path), seen(&source));
    assert_eq!(digest_of(&path).unwrap(), copied.content);
}
