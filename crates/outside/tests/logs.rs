//! Logs of real processes: what was written when, by which start of a run, and what is kept of it.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod scene;

use interlock_outside::processes::{LogKeeper, LogOf, LogReader, LogWindow};
use scene::{Scene, until};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn open(scene: &Scene, which: LogOf, window: &LogWindow) -> Option<LogReader> {
    scene.processes.read_log("a", which, window).unwrap()
}

fn rest(reader: &mut LogReader) -> String {
    let mut all = Vec::new();
    while let Some(part) = reader.next().unwrap() {
        all.extend(part);
    }
    String::from_utf8(all).unwrap()
}

fn read(scene: &Scene, which: LogOf) -> Option<String> {
    Some(rest(&mut open(scene, which, &LogWindow::default())?))
}

/// Starts run `a` again, as whoever restarts a pod does.
fn start_again(scene: &Scene, script: &str) {
    scene.until_gone("a");
    scene.processes.set_log_aside("a").unwrap();
    scene.processes.forget("a").unwrap();
    scene.start("a", script);
    scene.until_exited("a");
}

#[test]
fn a_run_that_is_started_again_has_a_log_of_each_of_the_last_two_starts() {
    let scene = Scene::new();
    assert_eq!(read(&scene, LogOf::LastStart), None);
    scene.start("a", "echo first");
    scene.until_exited("a");
    assert_eq!(read(&scene, LogOf::LastStart).as_deref(), Some("first\n"));
    assert_eq!(read(&scene, LogOf::StartBefore), None);
    let mut held = open(&scene, LogOf::LastStart, &LogWindow::default()).unwrap();
    start_again(&scene, "echo second >&2");
    assert_eq!(read(&scene, LogOf::LastStart).as_deref(), Some("second\n"));
    assert_eq!(read(&scene, LogOf::StartBefore).as_deref(), Some("first\n"));
    assert_eq!(rest(&mut held), "first\n", "whoever reads a log goes on with that log");
    start_again(&scene, "true");
    assert_eq!(read(&scene, LogOf::LastStart).as_deref(), Some(""));
    assert_eq!(read(&scene, LogOf::StartBefore).as_deref(), Some("second\n"));
}

#[test]
fn a_log_that_was_set_aside_stays_there_however_often_that_is_repeated() {
    let scene = Scene::new();
    scene.start("a", "echo first");
    scene.until_gone("a");
    // Whoever did so may have died before the run was forgotten.
    for _ in 0..2 {
        scene.processes.set_log_aside("a").unwrap();
    }
    scene.processes.forget("a").unwrap();
    // Nor does a start that came to nothing have a log that is worth keeping.
    std::fs::write(scene.processes.log_file("a").unwrap(), "").unwrap();
    scene.processes.set_log_aside("a").unwrap();
    assert_eq!(read(&scene, LogOf::StartBefore).as_deref(), Some("first\n"));
}

#[test]
fn lines_have_the_time_at_which_they_were_written() {
    let scene = Scene::new();
    let processes = Arc::new(scene::open(scene.directory.path()));
    let _keeper = LogKeeper::start(&processes).unwrap();
    scene.start("a", "echo early; touch wrote; while [ ! -e go ]; do sleep 0.01; done; echo late");
    scene.until_file("a", "wrote");
    let between = UNIX_EPOCH + Duration::from_secs(now() + 2);
    until("two seconds are over", || SystemTime::now() > between + Duration::from_secs(1));
    std::fs::write(scene.file("a", "go"), "").unwrap();
    scene.until_exited("a");
    let since = LogWindow { since: Some(between), ..Default::default() };
    until("the keeper has seen it", || {
        let marks = scene.directory.path().join("logs/marks/a");
        std::fs::metadata(marks).is_ok_and(|marks| marks.len() == 32)
    });
    assert_eq!(rest(&mut open(&scene, LogOf::LastStart, &since).unwrap()), "late\n");
    let stamp = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap().as_secs().to_string();
    let stamped = LogWindow { stamp: Some(stamp), ..Default::default() };
    let shown = rest(&mut open(&scene, LogOf::LastStart, &stamped).unwrap());
    let seconds: Vec<u64> =
        shown.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    let border = between.duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!(seconds.len() == 2 && seconds[0] < border && seconds[1] >= border, "{shown}");
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn a_run_that_writes_without_end_fills_no_disk() {
    let scene = Scene::new();
    let processes = Arc::new(scene::open(scene.directory.path()));
    let _keeper = LogKeeper::start(&processes).unwrap();
    scene.start("a", "while [ ! -e over ]; do head -c 4000000 /dev/zero | tr '\\0' x; echo; done");
    let log = scene.processes.log_file("a").unwrap();
    let megabytes = |path: &std::path::Path| {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).unwrap();
        (metadata.len() >> 20, (metadata.blocks() * 512) >> 20)
    };
    until("it has written far more than is kept", || megabytes(&log).0 > 100);
    std::fs::write(scene.file("a", "over"), "").unwrap();
    scene.until_exited("a");
    until("the rest is cut off", || megabytes(&log).1 <= 16);
    let mut tail =
        open(&scene, LogOf::LastStart, &LogWindow { tail_lines: Some(1), ..Default::default() });
    assert_eq!(rest(tail.as_mut().unwrap()).len(), 4_000_001);
}
