//! Runs hold still while somebody reads what they write, and never for longer than they may.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod scene;

use interlock_outside::processes::{Error, Mount, Processes, Run};
use interlock_outside::volumes::{
    LONGEST_FREEZE, LocalVolumes, Made, NewVolume, Reason, Volumes, digest_of,
};
use scene::{Scene, open, until};
use std::ffi::CString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

/// Longer than a machine that is busy with other things may take.
const LONG: Duration = Duration::from_secs(60);
/// After so long, no more freezes are tried than it takes to learn something.
const ENOUGH: Duration = Duration::from_secs(30);
const PLACE: &str = "INTERLOCK_TEST_PLACE";
const PIPE: &str = "INTERLOCK_TEST_PIPE";
const STARTER: &str = "INTERLOCK_TEST_STARTER";
/// How many times a run is frozen that starts commands all the time, if it is set.
const FREEZES: &str = "INTERLOCK_TEST_FREEZES";

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
    // Each waits for its own children: an orphan stays in the table of processes until init looks for it, and an init
    // that is slower than the loop lets the table fill up, after which nobody on the machine can fork.
    let script = "while :; do \
                  for n in 1 2 3 4 5 6 7 8; do (echo x >> a; (echo x >> b) & wait) & done; wait; done";
    scene.start("pod", script);
    for _ in 0..5 {
        until_counting(&scene);
        let frozen = scene.processes.freeze(&runs(&["pod"]), LONG).unwrap();
        let before = counted(&scene);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(counted(&scene), before);
        frozen.thaw().unwrap();
    }
}

/// Freezes the run again and again while it goes on starting commands, and looks each time whether
/// anything of it moves. A quiet machine does all of the freezes; a busy one stops after a while,
/// and says how many there were, unless a number was asked for.
fn freeze_often(scene: &Scene, most: usize) {
    let asked = std::env::var(FREEZES).ok().map(|number| number.parse().unwrap());
    let (least, most) = asked.map_or((most.min(50), most), |asked| (asked, asked));
    let began = Instant::now();
    let mut took = Vec::new();
    while took.len() < least || took.len() < most && began.elapsed() < ENOUGH {
        let since = Instant::now();
        let frozen = scene.processes.freeze(&runs(&["pod"]), LONG).unwrap();
        took.push(since.elapsed());
        let before = counted(scene);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(counted(scene), before);
        frozen.thaw().unwrap();
        until("it counts", || counted(scene) > before);
    }
    took.sort_unstable();
    let (freezes, median, longest) = (took.len(), took[took.len() / 2], took[took.len() - 1]);
    println!("{freezes} freezes: median {median:.1?}, longest {longest:.1?}");
    assert!(median < LONGEST_FREEZE, "no snapshot could be taken in {median:?}");
}

/// Shells start their commands by vfork(2): a shell whose command has not executed its program yet
/// waits in the kernel, where no signal stops it.
#[test]
fn a_run_that_starts_commands_all_the_time_is_caught_each_time() {
    let scene = Scene::new();
    let script = "setsid sh -c 'while :; do /bin/true; echo x >> b; done' & \
                  while :; do /bin/true; echo x >> a; done";
    scene.start("pod", script);
    until_counting(&scene);
    freeze_often(&scene, 200);
}

/// Programs with threads do the same, by posix_spawn(3) or as Go does. The signal may be meant for
/// the one thread that waits for its child, while the others go on.
#[test]
fn a_run_whose_threads_start_commands_all_the_time_is_caught_each_time() {
    let scene = Scene::new();
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let args = ["--exact", "this_binary_starts_commands_all_the_time_too"];
    let args = args.map(str::to_owned).to_vec();
    let env = [(STARTER.to_owned(), "yes".to_owned())].into();
    let run = Run { command: vec![program], args, env, ..scene.shell("pod", "") };
    scene.processes.start(&run, scene.lock("volumes")).unwrap();
    until_counting(&scene);
    freeze_often(&scene, 100);
}

/// Not a test of its own: what the one above executes. The standard library starts a command by
/// posix_spawn(3) if nothing has to be done in the child.
#[test]
fn this_binary_starts_commands_all_the_time_too() {
    if std::env::var_os(STARTER).is_none() {
        return;
    }
    let start_and_count = |name: &str| {
        let mut file = fs::File::options().create(true).append(true).open(name).unwrap();
        loop {
            assert!(Command::new("/bin/true").status().unwrap().success());
            file.write_all(b"x\n").unwrap();
        }
    };
    std::thread::scope(|scope| {
        for name in ["a", "b", "a", "b"] {
            scope.spawn(move || start_and_count(name));
        }
    });
}

/// A run in which a process has started a command by vfork(2), and the command does not execute its
/// program before somebody opens a pipe.
struct Waiting {
    scene: Scene,
    pipe: PathBuf,
    parent: i32,
    child: i32,
}

impl Waiting {
    fn new() -> Waiting {
        let scene = Scene::new();
        let pipe = scene.directory.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).unwrap();
        let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        let args = ["--exact", "this_binary_starts_a_command_too"].map(str::to_owned).to_vec();
        let env = [(PIPE.to_owned(), pipe.to_str().unwrap().to_owned())].into();
        let run = Run { command: vec![program], args, env, ..scene.shell("pod", "") };
        let leader = scene.processes.start(&run, scene.lock("volumes")).unwrap().pid;
        let mut found = None;
        until("a child waits at the pipe, and its parent for the child", || {
            let parent = child_of(leader);
            found = parent.and_then(|parent| Some((parent, child_of(parent)?)));
            found.is_some_and(|(parent, child)| (state(parent), state(child)) == ('D', 'S'))
        });
        let (parent, child) = found.unwrap();
        Waiting { scene, pipe, parent, child }
    }

    /// Lets the child execute its program, unless it is stopped.
    fn open_the_pipe(&self) -> fs::File {
        // For both, so that nobody waits for the other end.
        fs::File::options().read(true).write(true).open(&self.pipe).unwrap()
    }

    fn states(&self) -> (char, char) {
        (state(self.parent), state(self.child))
    }

    /// Whether the parent stops as soon as it need not wait any more.
    fn parent_is_to_stop(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.parent)).unwrap();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
        u64::from_str_radix(pending.trim(), 16).unwrap() & 1 << (libc::SIGSTOP - 1) != 0
    }

    fn until_both_go_on(&self) {
        let name = |pid| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        let is_asleep = |pid| state(pid) == 'S' && name(pid) == "sleep\n";
        until("both go on", || is_asleep(self.parent) && is_asleep(self.child));
    }
}

#[test]
fn a_parent_that_waits_until_its_child_executes_is_stopped_before_the_child() {
    let waiting = Waiting::new();
    std::thread::scope(|scope| {
        let freezing = scope.spawn(|| waiting.scene.processes.freeze(&runs(&["pod"]), LONG));
        until("the parent is to stop", || waiting.parent_is_to_stop());
        // Long enough for many looks, in which the child could be stopped too early.
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(waiting.states(), ('D', 'S'));
        let _pipe = waiting.open_the_pipe();
        let frozen = freezing.join().unwrap().unwrap();
        assert_eq!(waiting.states(), ('T', 'T'));
        frozen.thaw().unwrap();
        waiting.until_both_go_on();
    });
}

#[test]
fn a_parent_that_waits_for_too_long_and_its_child_go_on() {
    let waiting = Waiting::new();
    let late = waiting.scene.processes.freeze(&runs(&["pod"]), Duration::from_millis(100));
    assert!(matches!(late, Err(Error::FreezeTooLong { .. })), "{late:?}");
    let _pipe = waiting.open_the_pipe();
    waiting.until_both_go_on();
}

#[test]
fn a_parent_that_a_killed_freezer_was_about_to_stop_goes_on() {
    let waiting = Waiting::new();
    let directory = waiting.scene.directory.path();
    let mut freezer = play_the_freezer(directory);
    until("the parent is to stop", || waiting.parent_is_to_stop());
    freezer.kill().unwrap();
    freezer.wait().unwrap();
    drop(open(directory));
    assert_eq!(notes(directory), 0);
    let _pipe = waiting.open_the_pipe();
    waiting.until_both_go_on();
}

/// Not a test of its own: what the ones above execute. It forks a process with one thread, which
/// starts the command that waits.
#[test]
#[allow(unsafe_code)]
fn this_binary_starts_a_command_too() {
    let Ok(pipe) = std::env::var(PIPE) else { return };
    let pipe = CString::new(pipe).unwrap();
    let actions = Box::leak(Box::new(MaybeUninit::uninit())).as_mut_ptr();
    // SAFETY: the second call is given what the first has initialised, and copies the path.
    let failures = unsafe {
        let initialised = libc::posix_spawn_file_actions_init(actions);
        [initialised, libc::posix_spawn_file_actions_addopen(actions, 0, pipe.as_ptr(), 0, 0)]
    };
    assert_eq!(failures, [0, 0]);
    let actions = AtomicPtr::new(actions);
    let start = move || {
        let words = [c"sleep".as_ptr(), c"1000".as_ptr(), null()].map(<*const _>::cast_mut);
        let environment = [null_mut()];
        let (mut pid, actions) = (0, actions.load(Ordering::Relaxed));
        let (name, words, environment) = (words[0], words.as_ptr(), environment.as_ptr());
        // SAFETY: the actions are initialised and never freed, the attributes may be null, the
        // strings are constants, and the arrays end with a null pointer and outlive the call.
        match unsafe { libc::posix_spawnp(&mut pid, name, actions, null(), words, environment) } {
            0 => Ok(()),
            error => Err(std::io::Error::from_raw_os_error(error)),
        }
    };
    let mut command = Command::new("sleep");
    command.arg("1000");
    // SAFETY: all that the closure does after the fork is posix_spawnp(3), which takes no lock and
    // allocates nothing in the C libraries of Linux. Its error is a bare number.
    unsafe { command.pre_exec(start) };
    command.status().unwrap();
}

#[test]
fn nobody_is_frozen_for_longer_than_they_may_be() {
    let scene = Scene::new();
    scene.start("pod", COUNT);
    until_counting(&scene);
    let mut longest = Duration::from_millis(300);
    let frozen = loop {
        match scene.processes.freeze(&runs(&["pod"]), longest) {
            // A busy machine needs longer until all of them are stopped.
            Err(Error::FreezeTooLong { .. }) if longest < LONG => longest *= 2,
            frozen => break frozen.unwrap(),
        }
    };
    until_counting(&scene);
    let late = frozen.thaw();
    assert!(matches!(late, Err(Error::FreezeTooLong { .. })), "{late:?}");
    assert_eq!(notes(scene.directory.path()), 0);
}

/// Two processes that count and have no children: one that is let go alone waits for none that is
/// stopped.
const COUNT_ALONE: &str = "setsid sh -c 'while :; do echo x >> b; done' & \
                           while :; do echo x >> a; done";

fn signal(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn a_process_that_somebody_else_resumes_is_reported() {
    let scene = Scene::new();
    let started = scene.start("pod", COUNT_ALONE);
    until_counting(&scene);
    let frozen = scene.processes.freeze(&runs(&["pod"]), LONG).unwrap();
    let before = counted(&scene);
    signal(started.pid, rustix::process::Signal::CONT);
    until("it counts", || counted(&scene) > before);
    let thawed = frozen.thaw();
    assert!(matches!(thawed, Err(Error::NotStill { .. })), "{thawed:?}");
}

#[test]
fn a_process_that_was_stopped_before_stays_so() {
    let scene = Scene::new();
    let started = scene.start("pod", "sleep 1000");
    signal(started.pid, rustix::process::Signal::STOP);
    until("it is stopped", || state(started.pid) == 'T');
    scene.processes.freeze(&runs(&["pod"]), LONG).unwrap().thaw().unwrap();
    assert_eq!(state(started.pid), 'T');
}

#[test]
fn who_was_stopped_before_and_is_let_go_meanwhile_is_reported() {
    let scene = Scene::new();
    let started = scene.start("pod", COUNT_ALONE);
    until_counting(&scene);
    signal(started.pid, rustix::process::Signal::STOP);
    until("it is stopped", || state(started.pid) == 'T');
    let frozen = scene.processes.freeze(&runs(&["pod"]), LONG).unwrap();
    let before = counted(&scene);
    signal(started.pid, rustix::process::Signal::CONT);
    until("it counts", || counted(&scene) > before);
    let thawed = frozen.thaw();
    assert!(matches!(thawed, Err(Error::NotStill { .. })), "{thawed:?}");
}

/// Two snapshots of one volume may be taken at once. The first that is done must not let go whom the
/// second one reads.
#[test]
fn a_second_freeze_of_a_run_waits_for_the_first() {
    let scene = Scene::new();
    scene.start("pod", COUNT);
    until_counting(&scene);
    let first = scene.processes.freeze(&runs(&["pod"]), LONG).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| scene.processes.freeze(&runs(&["pod"]), LONG));
        // Long enough for a second freeze that does not wait.
        std::thread::sleep(Duration::from_millis(100));
        assert!(!second.is_finished());
        first.thaw().unwrap();
        let second = second.join().unwrap().unwrap();
        let before = counted(&scene);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(counted(&scene), before);
        second.thaw().unwrap();
    });
    until_counting(&scene);
    assert_eq!(notes(scene.directory.path()), 0);
}

#[test]
fn a_second_freeze_of_a_run_does_not_wait_for_ever() {
    let scene = Scene::new();
    scene.start("pod", "sleep 1000");
    let first = scene.processes.freeze(&runs(&["pod"]), LONG).unwrap();
    let second = scene.processes.freeze(&runs(&["pod"]), Duration::from_millis(30));
    assert!(matches!(&second, Err(Error::FrozenByAnother { id, .. }) if id == "pod"), "{second:?}");
    first.thaw().unwrap();
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
    let mut freezer = play_the_freezer(scene.directory.path());
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

fn play_the_freezer(place: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "this_binary_plays_the_freezer_too", "--nocapture"])
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Not a test of its own: what the ones above execute.
#[test]
fn this_binary_plays_the_freezer_too() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let _frozen = open(Path::new(&place)).freeze(&runs(&["pod"]), LONG).unwrap();
    println!("frozen");
    loop {
        std::thread::park();
    }
}

/// A run that writes to a volume, whose snapshots must each be of one moment.
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

    fn snapshot(&self, handle: &str) -> (Made, PathBuf) {
        let state = || self.volumes.snapshot_state(handle).unwrap();
        // On a machine that is busy with other things, ten seconds may be too short once.
        for _ in 0..3 {
            self.volumes.take_snapshot(handle, "pvc-1").unwrap();
            until("it is taken", || !matches!(state(), Made::Making(_)));
            if !matches!(state(), Made::Failed(failure) if failure.reason == Reason::FreezeTooLong)
            {
                break;
            }
        }
        (state(), self.scene.directory.path().join("snapshots/cluster").join(handle))
    }
}

/// The writer adds a line to `first`, then to `second`, for ever: at each moment `first` has as
/// many as `second`, or one more.
#[test]
fn a_snapshot_of_a_volume_in_use_is_of_one_moment() {
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
        let (state, path) = writing.snapshot(&format!("snapshot-{round}"));
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

    // A start that comes late goes ahead, and whoever reads is informed.
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

/// Without a freeze, files that change while they are read are found out: no snapshot either.
#[test]
fn a_snapshot_of_what_moves_is_none() {
    let writing = Writing::new();
    let volume = writing.volumes.volume_path("pvc-1").unwrap();
    let unaware = LocalVolumes::open(writing.scene.directory.path(), "cluster").unwrap();
    fs::write(volume.join("large"), vec![1; 64 << 20]).unwrap();
    let script = "while :; do echo x >> data/large; done";
    writing.processes.start(&writing.run("pod", script), writing.scene.lock("volumes")).unwrap();
    until("it writes", || fs::metadata(volume.join("large")).unwrap().len() > 64 << 20);
    let state = || unaware.snapshot_state("snapshot-1").unwrap();
    let mut failure = None;
    until("it moves while a snapshot is taken", || {
        unaware.take_snapshot("snapshot-1", "pvc-1").unwrap();
        until("it is over", || !matches!(state(), Made::Making(_)));
        match state() {
            Made::Failed(seen) => failure = Some(seen),
            // On a busy machine, the writer may have been kept from writing for all that time.
            state => {
                assert!(matches!(state, Made::Whole(_)), "{state:?}");
                unaware.delete_snapshot("snapshot-1").unwrap();
            }
        }
        failure.is_some()
    });
    let failure = failure.unwrap();
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

/// A process that this one has started and not waited for.
fn child_of(parent: i32) -> Option<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = parent.to_string();
    pids.find(|pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map(|(_, rest)| rest);
        fields.and_then(|fields| fields.split(' ').nth(1)) == Some(parent.as_str())
    })
}
