//! The program that starts runs is killed at any moment: a run is found again, and never doubled.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod scene;

use interlock_outside::processes::{Ending, Locking, Observed, Processes, Run, Signal};
use rustix::fs::{FlockOperation, flock};
use scene::{Scene, lives, open, until};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const ROLE: &str = "INTERLOCK_TEST_ROLE";
const PLACE: &str = "INTERLOCK_TEST_PLACE";
const SEED: &str = "INTERLOCK_TEST_SEED";
const PLAYER: &str = "this_binary_plays_the_other_parts_too";

#[test]
fn a_run_outlives_its_killed_opener_and_is_found_again() {
    let scene = Scene::new();
    let mut opener = Opener::new("start one run", scene.directory.path(), 1);
    let started = open(scene.directory.path()).observe("pod").unwrap();
    let Observed::Running { pid, .. } = started else { panic!("{started:?}") };
    opener.kill();

    assert_eq!(scene.processes.observe("pod").unwrap(), started);
    assert!(lives(pid));
    assert!(scene.is_refused("volumes"));
    assert_eq!(scene.processes.running().unwrap().len(), 1);
    scene.processes.signal("pod", Signal::Term).unwrap();
    scene.until_gone("pod");
    let ended = scene.processes.observe("pod").unwrap();
    // What adopts orphans here may leave them as zombies, which still tell how they ended.
    let Observed::Exited { ending, when: None } = ended else { panic!("{ended:?}") };
    assert!(matches!(ending, Ending::Unknown | Ending::Signal(15)), "{ending:?}");
    scene.processes.forget("pod").unwrap();
    assert_eq!(scene.processes.observe("pod").unwrap(), Observed::NoRecord);
}

#[test]
fn two_hundred_killed_openers_never_make_two_writers() {
    let scene = Scene::new();
    let place = scene.directory.path();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut random = Random(now.as_nanos() as u64 | 1);
    let start_time = time_of_a_start(&scene);
    let mut window = (3 * start_time).clamp(Duration::from_millis(20), Duration::from_millis(60));
    println!("seed {}, killing within {window:?}", random.0);
    // Two at once, so that each also meets a living rival, not only what a dead one left.
    let mut openers: Vec<_> =
        (0..2).map(|_| Opener::new("keep running", place, random.next())).collect();
    let writers = || {
        let lines = std::fs::read_to_string(place.join("writers")).unwrap_or_default();
        lines.lines().count()
    };
    for round in 0..200 {
        // A machine that became slower since needs more time for a start.
        if round % 20 == 19 && writers() < round / 20 {
            window *= 2;
        }
        std::thread::sleep(window.mul_f64((random.next() % 1000) as f64 / 1000.0));
        let opener = &mut openers[round % 2];
        opener.kill();
        *opener = Opener::new("keep running", place, random.next());
        assert!(!place.join("two-writers").exists(), "two writers in round {round}");
    }
    drop(openers);
    assert_eq!(scene.processes.stop_all(Duration::ZERO).unwrap(), []);
    until("the lock is free", || scene.processes.is_free("volumes").unwrap());
    assert!(!place.join("two-writers").exists());
    let writers = writers();
    println!("{writers} writers");
    assert!(writers >= 5, "only {writers} writers were started: nothing was tried");
}

/// How long a start takes here and now: kills that all came before it would test nothing.
fn time_of_a_start(scene: &Scene) -> Duration {
    let before = Instant::now();
    scene.start("first", "exit 0");
    let start_time = before.elapsed();
    scene.until_gone("first");
    scene.processes.forget("first").unwrap();
    start_time
}

/// A program that starts runs, in a process of its own that can be killed.
struct Opener(Child);

impl Opener {
    /// Returns when it has begun.
    fn new(role: &str, place: &Path, seed: u64) -> Opener {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", PLAYER, "--nocapture"])
            .env(ROLE, role)
            .env(PLACE, place)
            .env(SEED, seed.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let begun = output.lines().map_while(Result::ok).any(|line| line.ends_with("begun"));
        assert!(begun, "an opener ended early");
        Opener(child)
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Not a test of its own: what the others execute. Without a part to play, it does nothing.
#[test]
fn this_binary_plays_the_other_parts_too() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let place = PathBuf::from(std::env::var(PLACE).unwrap());
    let random = Random(std::env::var(SEED).unwrap().parse::<u64>().unwrap() | 1);
    match role.as_str() {
        "start one run" => start_one_run(&place),
        "keep running" => keep_running(&open(&place), &place, random),
        "write" => write(&place, random),
        role => panic!("no such part: {role}"),
    }
}

fn start_one_run(place: &Path) {
    let processes = open(place);
    let Locking::Taken(lock) = processes.lock("volumes").unwrap() else { panic!("held") };
    let run = Run {
        id: "pod".to_owned(),
        command: vec!["sleep".to_owned(), "1000".to_owned()],
        log_file: processes.log_file("pod").unwrap(),
        ..Run::default()
    };
    processes.start(&run, lock).unwrap();
    println!("begun");
    loop {
        std::thread::park();
    }
}

/// Starts one of two runs under one lock whenever it may, and ends them at random. Two of these
/// are at work at once, so each call may find the world changed: errors are checked again.
fn keep_running(processes: &Processes, place: &Path, mut random: Random) {
    println!("begun");
    loop {
        let id = ["one", "two"][random.next() as usize % 2];
        match processes.observe(id).unwrap() {
            Observed::NoRecord | Observed::Starting => {
                if let Locking::Taken(lock) = processes.lock("volumes").unwrap() {
                    let _ = processes.start(&writer(processes, id, (place, &mut random)), lock);
                }
            }
            Observed::Running { .. } => match random.next() % 6 {
                0 => drop(processes.signal(id, Signal::Term)),
                1 => drop(processes.signal(id, Signal::Kill)),
                _ => {}
            },
            Observed::Exited { .. } => {
                if processes.forget(id).is_err() {
                    let _ = processes.signal(id, Signal::Kill);
                }
            }
        }
    }
}

fn writer(processes: &Processes, id: &str, given: (&Path, &mut Random)) -> Run {
    let (place, random) = given;
    let own = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let variables = [
        (ROLE, "write".to_owned()),
        (PLACE, place.to_str().unwrap().to_owned()),
        (SEED, random.next().to_string()),
    ];
    Run {
        id: id.to_owned(),
        epoch: 1,
        command: vec![own],
        args: ["--exact", PLAYER, "--nocapture"].map(str::to_owned).to_vec(),
        env: BTreeMap::from(variables.map(|(name, value)| (name.to_owned(), value))),
        log_file: processes.log_file(id).unwrap(),
        ..Run::default()
    }
}

/// Detects a second writer by locks of its own. When a process ends, the kernel closes its files
/// in an order that it does not promise; so there is one with a lower and one with a higher number
/// than the lock under test. If that is free, at least one of the two is: both held means that
/// another writer lives.
fn write(place: &Path, mut random: Random) {
    let low = lock_file(&place.join("low"));
    let high = lock_file(&place.join("high"));
    let high = File::from(rustix::io::fcntl_dupfd_cloexec(&high, 900).unwrap());
    let try_lock = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if !try_lock(&low) & !try_lock(&high) {
        File::create(place.join("two-writers")).unwrap();
    }
    flock(&low, FlockOperation::LockExclusive).unwrap();
    flock(&high, FlockOperation::LockExclusive).unwrap();
    let mut writers =
        OpenOptions::new().append(true).create(true).open(place.join("writers")).unwrap();
    writers.write_all(b"writer\n").unwrap();
    match random.next() % 4 {
        // Leaves somebody behind, who must be gone before the next writer.
        0 => drop(Command::new("setsid").args(["sleep", "1000"]).spawn().unwrap()),
        1 => std::thread::sleep(Duration::from_micros(random.next() % 10_000)),
        _ => std::thread::sleep(Duration::from_secs(1000)),
    }
}

fn lock_file(path: &Path) -> File {
    OpenOptions::new().create(true).truncate(false).write(true).open(path).unwrap()
}

/// Random enough to choose moments.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
