//! Runs hold still while somebody reads what they write, and never for longer than they may.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod scene;

use interlock_outside::processes::{Error, Mount, Processes, Run};
use interlock_outside::volumes::{LocalVolumes, Made, NewVolume, Reason, Volumes, digest_of};
use scene::{Scene, open, until};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(10);
const PLACE: &str = "INTERLOCK_TEST_PLACE";

/// Two processes that count, one of them in a session of its own.
const COUNT: &str = "setsid sh -c 'while :; do echo x >> b; sleep 0.001; done' & \
                     while :; do echo x >> a; sleep 0.001; done";

fn counted(scene: &Scene) -> u64 {
    let count = |name| fs::metadata(scene.file("pod", name)).map_or(0, |found| found.len());
    count("a") + count("b")
}

fn until_counting(scene: &Scene) {
    for name in ["a", "b"] {
        scene.until_file("pod", name);
    }
    let before = counted(scene);
    until("it counts", || counted(scene) > before + 4);
}

fn runs(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn every_process_of_a_run_holds_still_until_it_is_let_go() {
    let scene = Scene::new();
    scene.start("pod", COUNT);
    until_counting(&scene);
    let frozen = scene.processes.freeze(&runs(&["pod"]), LONG).unwrap();
    let before = counted(&scene);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(counted(&scene), before);
    frozen.thaw().unwrap();
    until_counting(&scene);
    // Dropped, it lets them go as well.
    drop(scene.processes.freeze(&runs(&["pod"]), LONG).unwrap());
    until_counting(&scene);
    assert_eq!(notes(scene.directory.path()), 0);
}

#[test]
fn a_run_that_has_children_all_the_time_is_caught() {
    let scene = Scene::new();
    scene.start("pod", "while :; do (echo x >> a; (echo x >> b) &) & done");
    for _ in 0..5 {
        until_counting(&scene);
        let frozen = scene.processes.freeze(&runs(&["pod"]), LONG).unwrap();
        let before = counted(&scene);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(counted(&scene), before);
        frozen.thaw().unwrap();
    }
}

#[test]
fn nobody_is_frozen_for_longer_than_they_may_be() {
    let scene = Scene::new();
    scene.start("pod", COUNT);
    until_counting(&scene);
    let frozen = scene.processes.freeze(&runs(&["pod"]), Duration::from_millis(300)).unwrap();
    until_counting(&scene);
    let late = frozen.thaw();
    assert!(matches!(late, Err(Error::FreezeTooLong { .. })), "{late:?}");
    assert_eq!(notes(scene.directory.path()), 0);
}

#[test]
fn who_is_let_go_by_somebody_else_is_told_of() {
    let scene = Scene::new();
    let started = scene.start("pod", COUNT);
    until_counting(&scene);
    let frozen = scene.processes.freeze(&runs(&["pod"]), LONG).unwrap();
    let pid = rustix::process::Pid::from_raw(started.pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    let before = counted(&scene);
    until("it counts", || counted(&scene) > before);
    let thawed = frozen.thaw();
    assert!(matches!(thawed, Err(Error::NotStill { .. })), "{thawed:?}");
}

#[test]
fn a_process_that_was_stopped_before_stays_so() {
    let scene = Scene::new();
    let started = scene.start("pod", "sleep 1000");
    let pid = rustix::process::Pid::from_raw(started.pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    until("it is stopped", || state(started.pid) == 'T');
    scene.processes.freeze(&runs(&["pod"]), LONG).unwrap().thaw().unwrap();
    assert_eq!(state(started.pid), 'T');
}

#[test]
fn a_run_that_is_gone_or_never_was_is_still_already() {
    let scene = Scene::new();
    scene.start("pod", "exit 0");
    scene.until_gone("pod");
    scene.processes.freeze(&runs(&["pod", "nobody"]), LONG).unwrap().thaw().unwrap();
}

#[test]
fn what_a_killed_freezer_left_stopped_goes_on_when_somebody_opens_the_directory() {
    let scene = Scene::new();
    scene.start("pod", COUNT);
    until_counting(&scene);
    let mut freezer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "this_binary_plays_the_freezer_too", "--nocapture"])
        .env(PLACE, scene.directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(freezer.stdout.take().unwrap());
    assert!(output.lines().map_while(Result::ok).any(|line| line.ends_with("frozen")));
    let before = counted(&scene);
    // While the freezer lives, nobody else lets them go.
    drop(open(scene.directory.path()));
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(counted(&scene), before);
    freezer.kill().unwrap();
    freezer.wait().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(counted(&scene), before);
    assert_eq!(notes(scene.directory.path()), 1);

    drop(open(scene.directory.path()));
    until_counting(&scene);
    assert_eq!(notes(scene.directory.path()), 0);
}

/// Not a test of its own: what the one above executes.
#[test]
fn this_binary_plays_the_freezer_too() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let _frozen = open(Path::new(&place)).freeze(&runs(&["pod"]), LONG).unwrap();
    println!("frozen");
    loop {
        std::thread::park();
    }
}

/// A run that writes to a volume, whose images must each be of one moment.
struct Writing {
    volumes: LocalVolumes,
    processes: Arc<Processes>,
    scene: Scene,
}

impl Writing {
    fn new() -> Writing {
        let scene = Scene::new();
        let processes = Arc::new(open(scene.directory.path()));
        let writers: Arc<dyn interlock_outside::volumes::Writers> = processes.clone();
        let root = scene.directory.path();
        let volumes = LocalVolumes::open_with_writers(root, "cluster", writers).unwrap();
        let (handle, owner) = ("pvc-1".to_owned(), "shop".to_owned());
        let new = NewVolume { handle, owner, capacity_bytes: 1 << 40, from: None };
        volumes.make_volume(&new).unwrap();
        until("it is made", || matches!(volumes.volume_state("pvc-1").unwrap(), Made::Whole(_)));
        Writing { volumes, processes, scene }
    }

    fn run(&self, id: &str, script: &str) -> Run {
        let directory = self.volumes.volume_path("pvc-1").unwrap();
        let mount = Mount { name: "data".to_owned(), path: "/data".to_owned(), directory };
        Run { mounts: vec![mount], ..self.scene.shell(id, script) }
    }

    fn image(&self, handle: &str) -> (Made, PathBuf) {
        self.volumes.take_image(handle, "pvc-1").unwrap();
        let state = || self.volumes.image_state(handle).unwrap();
        until("it is taken", || !matches!(state(), Made::Making(_)));
        (state(), self.scene.directory.path().join("images/cluster").join(handle))
    }
}

/// The writer adds a line to `first`, then to `second`, for ever: at each moment `first` has as
/// many as `second`, or one more.
#[test]
fn an_image_of_a_volume_in_use_is_of_one_moment() {
    let writing = Writing::new();
    let script = "while :; do echo x >> data/first; echo x >> data/second; done";
    let lock = writing.scene.lock("volumes");
    writing.processes.start(&writing.run("pod", script), lock).unwrap();
    let volume = writing.volumes.volume_path("pvc-1").unwrap();
    until("it writes", || volume.join("second").exists());
    // Something between the two, so that a clone of what moves would take its time.
    for number in 0..200 {
        fs::write(volume.join(format!("file-{number}")), vec![1; 10_000]).unwrap();
    }
    for round in 0..5 {
        let (state, path) = writing.image(&format!("snapshot-{round}"));
        let Made::Whole(content) = state else { panic!("{state:?}") };
        assert_eq!(digest_of(&path).unwrap(), content);
        let lines = |name| fs::read_to_string(path.join(name)).unwrap().lines().count();
        let (first, second) = (lines("first"), lines("second"));
        assert!(first == second || first == second + 1, "{first} and {second}");
        let before = fs::metadata(volume.join("first")).unwrap().len();
        until("it goes on", || fs::metadata(volume.join("first")).unwrap().len() > before);
    }
}

#[test]
fn nothing_is_started_into_a_volume_while_everybody_holds_still() {
    let writing = Writing::new();
    let volume = writing.volumes.volume_path("pvc-1").unwrap();
    let frozen = writing.processes.freeze_writers(&volume, LONG).unwrap();
    let run = writing.run("pod", "sleep 1000");
    let refused = writing.processes.start(&run, writing.scene.lock("volumes"));
    assert!(matches!(refused, Err(Error::VolumeFrozen { .. })), "{refused:?}");
    // One that has nothing to do with it is.
    writing.scene.start("another", "sleep 1000");
    frozen.thaw().unwrap();
    writing.processes.start(&run, writing.scene.lock("of pod")).unwrap();
}

/// Nobody lives who could be kept from anything, so there is no hurry.
#[test]
fn a_volume_that_nobody_uses_may_be_read_for_long() {
    let writing = Writing::new();
    let volume = writing.volumes.volume_path("pvc-1").unwrap();
    let run = writing.run("pod", "exit 0");
    writing.processes.start(&run, writing.scene.lock("volumes")).unwrap();
    writing.scene.until_gone("pod");
    let short = Duration::from_millis(30);
    let still = writing.processes.freeze_writers(&volume, short).unwrap();
    assert_eq!(still.deadline(), None);
    std::thread::sleep(short * 3);
    still.thaw().unwrap();

    // A start that comes late goes ahead, and whoever reads is told.
    writing.processes.forget("pod").unwrap();
    let still = writing.processes.freeze_writers(&volume, short).unwrap();
    std::thread::sleep(short * 3);
    writing.processes.start(&run, writing.scene.lock("volumes")).unwrap();
    writing.scene.until_gone("pod");
    writing.processes.forget("pod").unwrap();
    let told = still.thaw();
    assert!(matches!(&told, Err(Error::Disturbed { id }) if id == "pod"), "{told:?}");
    assert_eq!(notes(writing.scene.directory.path()), 0);
    writing.processes.freeze_writers(&volume, short).unwrap().thaw().unwrap();
}

/// Without a freeze, files that change while they are read are found out: no image either.
#[test]
fn an_image_of_what_moves_is_none() {
    let writing = Writing::new();
    let volume = writing.volumes.volume_path("pvc-1").unwrap();
    let unaware = LocalVolumes::open(writing.scene.directory.path(), "cluster").unwrap();
    fs::write(volume.join("large"), vec![1; 64 << 20]).unwrap();
    let script = "while :; do echo x >> data/large; done";
    writing.processes.start(&writing.run("pod", script), writing.scene.lock("volumes")).unwrap();
    until("it writes", || fs::metadata(volume.join("large")).unwrap().len() > 64 << 20);
    unaware.take_image("snapshot-1", "pvc-1").unwrap();
    let state = || unaware.image_state("snapshot-1").unwrap();
    let since = Instant::now();
    until("it is over", || !matches!(state(), Made::Making(_)));
    let Made::Failed(failure) = state() else {
        panic!("{:?} after {:?}", state(), since.elapsed())
    };
    assert_eq!(failure.reason, Reason::SnapshotFailed);
    assert!(failure.message.contains("large (it changed"), "{failure:?}");
}

fn notes(directory: &Path) -> usize {
    fs::read_dir(directory.join("frozen")).unwrap().count()
}

fn state(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?')
}
