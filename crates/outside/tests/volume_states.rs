//! Volumes and snapshots are made once, distinguished from what is not whole, and deleted for good.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod shelves;

use interlock_outside::volumes::{
    Content, Error, Failure, LocalVolumes, Made, NewVolume, Progress, Reason, Still, Volumes,
    Writers,
};
use rustix::fs::{FlockOperation, flock};
use shelves::{CLUSTER, Shelves, empty, from, until};
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

#[test]
fn an_empty_volume_is_whole_and_has_no_digest() {
    let shelves = Shelves::new();
    assert_eq!(shelves.volumes.volume_state("pvc-1").unwrap(), Made::Missing);
    let path = shelves.volume("pvc-1");
    assert_eq!(shelves.until_volume("pvc-1"), Content::default());
    assert_eq!(fs::read_dir(path).unwrap().count(), 0);
}

#[test]
fn begun_twice_is_begun_once() {
    let shelves = Shelves::new();
    let path = shelves.volume("pvc-1");
    fs::write(path.join("file"), "kept").unwrap();
    shelves.volumes.make_volume(&empty("pvc-1")).unwrap();
    shelves.until_volume("pvc-1");
    assert_eq!(fs::read_to_string(path.join("file")).unwrap(), "kept");

    let first = shelves.snapshot("snapshot-1", "pvc-1");
    fs::write(path.join("file"), "changed").unwrap();
    assert_eq!(shelves.snapshot("snapshot-1", "pvc-1"), first);
    let snapshot = fs::read_to_string(shelves.snapshot_path("snapshot-1").join("file")).unwrap();
    assert_eq!(snapshot, "kept");
}

#[test]
fn whole_things_are_found_again_by_whoever_opens_next() {
    let shelves = Shelves::new();
    fs::write(shelves.volume("pvc-1").join("file"), "abc").unwrap();
    let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
    let second = LocalVolumes::open(shelves.path(), CLUSTER).unwrap();
    assert_eq!(second.snapshot_state("snapshot-1").unwrap(), Made::Whole(snapshot));
    let other = LocalVolumes::open(shelves.path(), "another-cluster").unwrap();
    assert_eq!(other.snapshot_state("snapshot-1").unwrap(), Made::Missing);
}

#[test]
fn names_that_could_leave_their_folder_are_refused() {
    let shelves = Shelves::new();
    let long = "x".repeat(201);
    for name in ["", ".", "..", "../up", "a/b", "/etc", "a\0b", ".partial-x", &long] {
        let refused = |result: Result<(), Error>| matches!(result, Err(Error::Name { .. }));
        assert!(refused(shelves.volumes.make_volume(&empty(name))), "{name:?}");
        assert!(refused(shelves.volumes.take_snapshot(name, "pvc-1")), "{name:?}");
        assert!(refused(shelves.volumes.take_snapshot("snapshot-1", name)), "{name:?}");
        assert!(refused(shelves.volumes.make_volume(&from("pvc-1", name, ""))), "{name:?}");
        assert!(refused(shelves.volumes.delete_volume(name)), "{name:?}");
        assert!(refused(shelves.volumes.volume_state(name).map(|_| ())), "{name:?}");
        assert!(refused(LocalVolumes::open(shelves.path(), name).map(|_| ())), "{name:?}");
    }
    assert_eq!(shelves.volumes.volume_state("pvc-1").unwrap(), Made::Missing);
    until("nothing is left over", || shelves.leftovers().is_empty());
}

#[test]
fn what_cannot_be_made_says_why_and_leaves_nothing() {
    let shelves = Shelves::new();
    fs::write(shelves.volume("pvc-1").join("file"), vec![1; 100_000]).unwrap();
    shelves.volumes.take_snapshot("snapshot-1", "pvc-0").unwrap();
    assert_eq!(shelves.snapshot_failure("snapshot-1").reason, Reason::SourceMissing);
    // What failed is tried again.
    let snapshot = shelves.snapshot("snapshot-1", "pvc-1");

    shelves.volumes.make_volume(&from("pvc-2", "snapshot-0", "")).unwrap();
    assert_eq!(shelves.volume_failure("pvc-2").reason, Reason::SourceMissing);
    shelves.volumes.make_volume(&from("pvc-2", "snapshot-1", "another")).unwrap();
    assert_eq!(shelves.volume_failure("pvc-2").reason, Reason::DigestMismatch);
    let small =
        NewVolume { capacity_bytes: 99_999, ..from("pvc-2", "snapshot-1", &snapshot.digest) };
    shelves.volumes.make_volume(&small).unwrap();
    let failure = shelves.volume_failure("pvc-2");
    assert_eq!(failure.reason, Reason::SizeMismatch);
    assert!(failure.message.contains("needs 97.7 KiB"), "{failure:?}");
    until("nothing is left over", || shelves.leftovers().is_empty());
    assert!(!shelves.volumes.volume_path("pvc-2").unwrap().exists());
}

#[test]
fn a_damaged_snapshot_is_found_out_when_it_is_poured() {
    let shelves = Shelves::new();
    fs::write(shelves.volume("pvc-1").join("file"), "right").unwrap();
    let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
    let file = shelves.snapshot_path("snapshot-1").join("file");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "wrong").unwrap();
    File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    shelves.volumes.make_volume(&from("pvc-2", "snapshot-1", &snapshot.digest)).unwrap();
    assert_eq!(shelves.volume_failure("pvc-2").reason, Reason::DigestMismatch);
}

#[test]
fn a_folder_without_a_good_record_is_never_taken_for_whole() {
    let shelves = Shelves::new();
    shelves.volume("pvc-1");
    shelves.snapshot("snapshot-1", "pvc-1");
    let folder = shelves.path().join("snapshots").join(CLUSTER);
    fs::write(folder.join(".record-snapshot-1.json"), "{ what is this").unwrap();
    assert!(shelves.snapshot_failure("snapshot-1").message.contains("damaged"));
    fs::remove_file(folder.join(".record-snapshot-1.json")).unwrap();
    assert!(shelves.snapshot_failure("snapshot-1").message.contains("no record"));
    // Nor is it overwritten.
    shelves.volumes.take_snapshot("snapshot-1", "pvc-1").unwrap();
    assert!(shelves.snapshot_failure("snapshot-1").message.contains("no record"));
    shelves.volumes.delete_snapshot("snapshot-1").unwrap();
    assert_eq!(shelves.volumes.snapshot_state("snapshot-1").unwrap(), Made::Missing);
    shelves.snapshot("snapshot-1", "pvc-1");
}

#[test]
fn a_delete_is_for_good_and_can_be_repeated() {
    let shelves = Shelves::new();
    let path = shelves.volume("pvc-1");
    for number in 0..100 {
        fs::create_dir(path.join(number.to_string())).unwrap();
        fs::write(path.join(number.to_string()).join("file"), "x").unwrap();
    }
    std::os::unix::fs::symlink("/etc", path.join("link")).unwrap();
    shelves.snapshot("snapshot-1", "pvc-1");
    for _ in 0..3 {
        shelves.volumes.delete_volume("pvc-1").unwrap();
        assert_eq!(shelves.volumes.volume_state("pvc-1").unwrap(), Made::Missing);
    }
    until("it is removed", || shelves.leftovers().is_empty());
    assert!(Path::new("/etc/passwd").exists());
    // Nothing is left of it, not even a lock; its snapshot is another thing, and stays.
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
    assert_eq!(shelves.until_snapshot("snapshot-1").files, 101);
}

#[test]
fn what_somebody_reads_is_not_deleted() {
    let shelves = Shelves::new();
    shelves.volume("pvc-1");
    shelves.snapshot("snapshot-1", "pvc-1");
    let reading = shelves.volumes.read_snapshot("snapshot-1").unwrap();
    let second = shelves.volumes.read_snapshot("snapshot-1").unwrap();
    for volumes in [&shelves.volumes, &LocalVolumes::open(shelves.path(), CLUSTER).unwrap()] {
        let busy = volumes.delete_snapshot("snapshot-1");
        assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
        assert!(matches!(volumes.snapshot_state("snapshot-1").unwrap(), Made::Whole(_)));
    }
    assert_eq!(
        reading.path().canonicalize().unwrap(),
        shelves.snapshot_path("snapshot-1").canonicalize().unwrap()
    );
    drop((reading, second));
    shelves.volumes.delete_snapshot("snapshot-1").unwrap();

    let writing = shelves.volumes.write_volume("pvc-1").unwrap();
    assert!(matches!(shelves.volumes.read_volume("pvc-1"), Err(Error::Busy { .. })));
    assert!(matches!(
        shelves.volumes.take_snapshot("snapshot-2", "pvc-1"),
        Err(Error::Busy { .. })
    ));
    drop(writing);
    assert!(matches!(shelves.volumes.read_volume("pvc-0"), Err(Error::Missing { .. })));
    until("nothing is left over", || shelves.leftovers().is_empty());
    shelves.snapshot("snapshot-2", "pvc-1");
}

#[test]
fn what_the_dead_left_unfinished_is_removed_and_what_the_living_make_is_not() {
    let shelves = Shelves::new();
    let folder = shelves.path().join("volumes").join(CLUSTER);
    for handle in ["dead", "living"] {
        fs::create_dir(folder.join(format!(".partial-{handle}"))).unwrap();
        fs::write(folder.join(format!(".partial-{handle}")).join("file"), "half").unwrap();
    }
    // As a process of another program has it.
    let lock = File::create(folder.join(".lock-living")).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();

    let second = LocalVolumes::open(shelves.path(), CLUSTER).unwrap();
    until("that of the dead is removed", || shelves.leftovers() == [".partial-living"]);
    assert_eq!(second.volume_state("dead").unwrap(), Made::Missing);
    assert_eq!(second.volume_state("living").unwrap(), Made::Making(Progress::default()));
    second.make_volume(&empty("living")).unwrap();
    assert!(matches!(second.delete_volume("living"), Err(Error::Busy { .. })));
    assert!(folder.join(".partial-living/file").exists());

    // The other one dies.
    flock(&lock, FlockOperation::Unlock).unwrap();
    assert_eq!(second.volume_state("living").unwrap(), Made::Missing);
    second.make_volume(&empty("living")).unwrap();
    until("it is made", || matches!(second.volume_state("living").unwrap(), Made::Whole(_)));
    assert!(!folder.join("living/file").exists());
    until("nothing is left over", || shelves.leftovers().is_empty());
}

/// Writers that say when they hold still, and go on when they are reported to.
struct Scripted {
    asked: Mutex<mpsc::Sender<()>>,
    go_on: Mutex<mpsc::Receiver<()>>,
    let_go: Arc<AtomicUsize>,
    in_the_end: Result<(), Failure>,
}

struct Holding(Arc<AtomicUsize>, Result<(), Failure>);

impl Writers for Scripted {
    fn hold_still(&self, folder: &Path, longest: Duration) -> Result<Box<dyn Still>, Failure> {
        assert!(folder.is_dir());
        assert_eq!(longest, Duration::from_secs(10));
        self.asked.lock().unwrap().send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        Ok(Box::new(Holding(Arc::clone(&self.let_go), self.in_the_end.clone())))
    }
}

impl Still for Holding {
    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn let_go(self: Box<Self>) -> Result<(), Failure> {
        self.1.clone()
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

struct Script {
    volumes: LocalVolumes,
    asked: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
    let_go: Arc<AtomicUsize>,
}

fn script(root: &Path, in_the_end: Result<(), Failure>) -> Script {
    let ((tell, asked), (go_on, wait)) = (mpsc::channel(), mpsc::channel());
    let let_go = Arc::new(AtomicUsize::new(0));
    let writers = Scripted {
        asked: Mutex::new(tell),
        go_on: Mutex::new(wait),
        let_go: Arc::clone(&let_go),
        in_the_end,
    };
    let volumes = LocalVolumes::open_with_writers(root, CLUSTER, Arc::new(writers)).unwrap();
    Script { volumes, asked, go_on, let_go }
}

#[test]
fn a_snapshot_is_seen_as_being_made_by_both_and_given_up_when_it_is_deleted() {
    let shelves = Shelves::new();
    fs::write(shelves.volume("pvc-1").join("file"), "abc").unwrap();
    let Script { volumes, asked, go_on, let_go } = script(shelves.path(), Ok(()));
    volumes.take_snapshot("snapshot-1", "pvc-1").unwrap();
    asked.recv().unwrap();
    let Made::Making(progress) = volumes.snapshot_state("snapshot-1").unwrap() else { panic!() };
    assert_eq!(progress.of_bytes, Some(3));
    // The other instance neither makes it too, nor removes it, nor deletes its volume.
    let theirs = shelves.volumes.snapshot_state("snapshot-1").unwrap();
    assert_eq!(theirs, Made::Making(Progress::default()));
    shelves.volumes.take_snapshot("snapshot-1", "pvc-1").unwrap();
    drop(LocalVolumes::open(shelves.path(), CLUSTER).unwrap());
    assert!(matches!(shelves.volumes.delete_volume("pvc-1"), Err(Error::Busy { .. })));
    assert!(matches!(shelves.volumes.delete_snapshot("snapshot-1"), Err(Error::Busy { .. })));
    assert_eq!(shelves.leftovers(), [".partial-snapshot-1"]);

    volumes.delete_snapshot("snapshot-1").unwrap();
    go_on.send(()).unwrap();
    until("it is given up", || volumes.snapshot_state("snapshot-1").unwrap() == Made::Missing);
    assert_eq!(let_go.load(SeqCst), 1);
    until("nothing is left over", || shelves.leftovers().is_empty());
    shelves.volumes.delete_volume("pvc-1").unwrap();
}

#[test]
fn writers_that_did_not_hold_still_leave_no_snapshot() {
    let shelves = Shelves::new();
    fs::write(shelves.volume("pvc-1").join("file"), "abc").unwrap();
    let failure = Failure { reason: Reason::FreezeTooLong, message: "they moved".to_owned() };
    let Script { volumes, asked: _asked, go_on, let_go } =
        script(shelves.path(), Err(failure.clone()));
    go_on.send(()).unwrap();
    volumes.take_snapshot("snapshot-1", "pvc-1").unwrap();
    let state = shelves::until_settled(|| volumes.snapshot_state("snapshot-1").unwrap());
    assert_eq!(state, Made::Failed(failure));
    assert_eq!(let_go.load(SeqCst), 1);
    assert_eq!(shelves.volumes.snapshot_state("snapshot-1").unwrap(), Made::Missing);
    until("nothing is left over", || shelves.leftovers().is_empty());
}

#[test]
fn three_hundred_empty_volumes_are_made_by_a_few_threads() {
    let shelves = Shelves::new();
    for number in 0..300 {
        shelves.volumes.make_volume(&empty(&format!("pvc-{number}"))).unwrap();
    }
    // Those of the tests beside this one count too: more of them, the more cores there are.
    let threads = fs::read_dir("/proc/self/task").unwrap().count();
    assert!(threads < 250, "{threads} threads");
    for number in 0..300 {
        shelves.until_volume(&format!("pvc-{number}"));
    }
}
