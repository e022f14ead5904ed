//! Probes and preStop hooks of real processes.
#![allow(clippy::unwrap_used)]

mod scene;

use interlock_outside::processes::{
    Beside, Check, Ending, Probe, Prober, Probes, Purpose, Signal, Verdict, Verdicts, Watched,
};
use scene::{Scene, lives, until};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

const SLEEP: &str = "touch ready; exec sleep 1000";
const LONG: Duration = Duration::from_secs(60);

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn probe(check: Check) -> Probe {
    Probe {
        check,
        initial_delay: Duration::ZERO,
        period: Duration::from_millis(20),
        timeout: LONG,
        successes: 1,
        failures: 2,
    }
}

fn exec(script: &str) -> Probe {
    probe(Check::Exec(words(&["sh", "-c", script])))
}

fn readiness(probe: Probe) -> Watched {
    let probes = Probes { readiness: Some(probe), ..Probes::default() };
    Watched { id: "pod".to_owned(), probes, is_started: false }
}

fn prober(scene: &Scene) -> Prober {
    Prober::new(Arc::new(scene::open(scene.directory.path())))
}

#[track_caller]
fn until_found(prober: &Prober, watched: &Watched, expected: Verdicts) {
    until("the probes find it", || prober.verdicts(watched).unwrap() == expected);
}

fn found(verdict: Verdict) -> Verdicts {
    Verdicts { readiness: Some(verdict), ..Verdicts::default() }
}

#[test]
fn a_command_says_whether_a_run_is_ready() {
    let scene = Scene::new();
    let prober = prober(&scene);
    let watched = readiness(exec("test -e healthy"));
    assert_eq!(prober.verdicts(&watched).unwrap(), Verdicts::default(), "nothing runs yet");
    scene.start("pod", SLEEP);
    until_found(&prober, &watched, found(Verdict::Failure));
    std::fs::write(scene.file("pod", "healthy"), "").unwrap();
    until_found(&prober, &watched, found(Verdict::Success));
    std::fs::remove_file(scene.file("pod", "healthy")).unwrap();
    until_found(&prober, &watched, found(Verdict::Failure));
}

#[test]
fn what_was_found_of_one_start_says_nothing_of_the_next() {
    let scene = Scene::new();
    let prober = prober(&scene);
    let watched = readiness(exec("true"));
    scene.start("pod", SLEEP);
    until_found(&prober, &watched, found(Verdict::Success));
    scene.processes.signal("pod", Signal::Kill).unwrap();
    scene.until_gone("pod");
    assert_eq!(prober.verdicts(&watched).unwrap(), Verdicts::default());
    scene.processes.forget("pod").unwrap();
    scene.start("pod", SLEEP);
    let never = Probe { initial_delay: LONG, ..exec("true") };
    assert_eq!(prober.verdicts(&readiness(never)).unwrap(), Verdicts::default());
}

#[test]
fn a_probe_that_hangs_fails_and_ends_with_its_whole_process_group() {
    let scene = Scene::new();
    let prober = prober(&scene);
    scene.start("pod", SLEEP);
    let script = "sleep 1000 & echo $! > child.new; mv child.new child; wait";
    let hangs = Probe { timeout: Duration::from_millis(300), failures: 1, ..exec(script) };
    until_found(&prober, &readiness(hangs), found(Verdict::Failure));
    drop(prober);
    let child: i32 =
        std::fs::read_to_string(scene.file("pod", "child")).unwrap().trim().parse().unwrap();
    until("the child of the probe is gone", || !lives(child));
}

#[test]
fn the_others_wait_until_the_run_has_started() {
    let scene = Scene::new();
    let prober = prober(&scene);
    let probes = Probes {
        startup: Some(Probe { failures: 1_000_000, ..exec("test -e up") }),
        liveness: Some(Probe { failures: 1, ..exec("touch tried; false") }),
        readiness: None,
    };
    let watched = Watched { id: "pod".to_owned(), probes, is_started: false };
    scene.start("pod", SLEEP);
    for _ in 0..50 {
        assert_eq!(prober.verdicts(&watched).unwrap(), Verdicts::default());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(!scene.file("pod", "tried").exists());
    std::fs::write(scene.file("pod", "up"), "").unwrap();
    let both = Verdicts {
        startup: Some(Verdict::Success),
        liveness: Some(Verdict::Failure),
        readiness: None,
    };
    until_found(&prober, &watched, both);
}

/// Answers every request with the status that is set.
fn server(status: Arc<AtomicU16>) -> u16 {
    let listener = TcpListener::bind("127.64.0.9:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0; 1024];
            let count = stream.read(&mut request).unwrap_or(0);
            let is_asked = request[..count].starts_with(b"GET /ready HTTP/1.1\r\n");
            let status = if is_asked { status.load(Ordering::SeqCst) } else { 404 };
            let _ = write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
        }
    });
    port
}

#[test]
fn an_answer_over_http_says_whether_a_run_is_ready() {
    let scene = Scene::new();
    let prober = prober(&scene);
    let status = Arc::new(AtomicU16::new(503));
    let port = server(Arc::clone(&status));
    let get = Check::Http {
        host: "127.64.0.9".to_owned(),
        port,
        path: "/ready".to_owned(),
        headers: vec![("A".to_owned(), "b".to_owned())],
    };
    let watched = readiness(probe(get));
    scene.start("pod", SLEEP);
    for (code, verdict) in [
        (503, Verdict::Failure),
        (200, Verdict::Success),
        (404, Verdict::Failure),
        (399, Verdict::Success),
    ] {
        status.store(code, Ordering::SeqCst);
        until_found(&prober, &watched, found(verdict));
    }
}

#[test]
fn a_connection_says_whether_a_run_is_ready() {
    let scene = Scene::new();
    let prober = prober(&scene);
    let listener = TcpListener::bind("127.64.0.9:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let watched = readiness(probe(Check::Tcp { host: "127.64.0.9".to_owned(), port }));
    scene.start("pod", SLEEP);
    until_found(&prober, &watched, found(Verdict::Success));
    drop(listener);
    until_found(&prober, &watched, found(Verdict::Failure));
}

#[test]
fn a_command_beside_a_run_has_its_environment_and_its_folder() {
    let scene = Scene::new();
    let mut run = scene.shell("pod", "touch here; exec sleep 1000");
    run.env.insert("A".to_owned(), "b c".to_owned());
    run.working_directory = Some("/work".to_owned());
    scene.processes.start(&run, scene.lock("volumes")).unwrap();
    scene.until_file("pod", "work/here");
    let command = words(&["sh", "-c", "test \"$A\" = 'b c' && test -e here && test -z \"$(cat)\""]);
    let ended = scene.processes.run_beside("pod", Purpose::Readiness, &command, LONG).unwrap();
    assert_eq!(ended, Beside::Ended(Ending::Code(0)));
    let missing = words(&["no-such-program"]);
    let ended = scene.processes.run_beside("pod", Purpose::Readiness, &missing, LONG).unwrap();
    assert_eq!(ended, Beside::NoProgram);
}

#[test]
fn nothing_runs_beside_a_run_that_has_ended_or_is_being_stopped() {
    let scene = Scene::new();
    let touch = words(&["touch", "late"]);
    let beside = || scene.processes.run_beside("pod", Purpose::Liveness, &touch, LONG).unwrap();
    assert_eq!(beside(), Beside::NotRunning);
    scene.start("pod", "trap '' TERM; touch ready; while :; do sleep 1000; done");
    scene.until_file("pod", "ready");
    scene.processes.signal("pod", Signal::Term).unwrap();
    assert_eq!(beside(), Beside::NotRunning);
    scene.processes.signal("pod", Signal::Kill).unwrap();
    scene.until_gone("pod");
    assert_eq!(beside(), Beside::NotRunning);
    assert!(!scene.file("pod", "late").exists());
}

#[test]
fn a_namespace_is_not_still_while_a_probe_of_it_is_under_way() {
    let scene = Scene::new();
    let lock = scene.lock("ns.pod");
    let started = scene.processes.start(&scene.shell("pod", SLEEP), lock).unwrap();
    let other = scene::open(scene.directory.path());
    // It wipes what it could be known by, and keeps its lock.
    let script = "touch probing; exec env -i sleep 1000";
    let command = words(&["sh", "-c", script]);
    let probing = std::thread::spawn(move || {
        other.run_beside("pod", Purpose::Readiness, &command, Duration::from_secs(2)).unwrap()
    });
    scene.until_file("pod", "probing");
    Command::new("kill").args(["-9", &started.pid.to_string()]).status().unwrap();
    scene.until_exited("pod");
    assert!(scene.processes.holders_of_all("ns.").unwrap().is_some());
    assert!(!scene.processes.is_free_with_all_beside("ns.pod").unwrap());
    assert_eq!(probing.join().unwrap(), Beside::TimedOut);
    until("all is still", || scene.processes.holders_of_all("ns.").unwrap().is_none());
    assert!(scene.processes.is_free_with_all_beside("ns.pod").unwrap());
}

#[test]
fn one_probe_of_a_kind_is_under_way_at_once() {
    let scene = Scene::new();
    scene.start("pod", SLEEP);
    let other = scene::open(scene.directory.path());
    let command = words(&["sh", "-c", "touch probing; sleep 1000"]);
    let probing = std::thread::spawn(move || {
        other.run_beside("pod", Purpose::Liveness, &command, Duration::from_secs(1)).unwrap()
    });
    scene.until_file("pod", "probing");
    let again =
        |purpose| scene.processes.run_beside("pod", purpose, &words(&["true"]), LONG).unwrap();
    assert_eq!(again(Purpose::Liveness), Beside::Busy);
    assert_eq!(again(Purpose::Readiness), Beside::Ended(Ending::Code(0)));
    assert_eq!(probing.join().unwrap(), Beside::TimedOut);
    until("it is not busy", || again(Purpose::Liveness) == Beside::Ended(Ending::Code(0)));
}

#[test]
fn a_hook_runs_to_its_end_before_the_run_is_asked_to_stop_and_only_once() {
    let scene = Scene::new();
    let mut run = scene.shell(
        "pod",
        "trap 'test -e hooked && touch stopped; exit 0' TERM; touch ready; \
         while :; do sleep 0.05; done",
    );
    run.pre_stop = words(&["sh", "-c", "sleep 0.2; touch hooked"]);
    scene.processes.start(&run, scene.lock("volumes")).unwrap();
    scene.until_file("pod", "ready");
    let hook = scene.processes.begin_pre_stop("pod").unwrap().unwrap();
    let asked = scene.processes.asked("pod").unwrap();
    assert!(asked.pre_stop.is_some() && asked.term.is_none(), "{asked:?}");
    assert_eq!(scene.processes.begin_pre_stop("pod").unwrap(), None, "it was begun");
    scene.processes.finish_pre_stop("pod", &hook).unwrap();
    assert!(scene.processes.asked("pod").unwrap().term.is_some());
    scene.until_gone("pod");
    assert!(scene.file("pod", "stopped").exists());
}

#[test]
fn a_hook_takes_no_longer_than_the_grace_period() {
    let scene = Scene::new();
    let mut run = scene.shell("pod", SLEEP);
    (run.pre_stop, run.grace_seconds) = (words(&["sleep", "1000"]), 1);
    scene.processes.start(&run, scene.lock("volumes")).unwrap();
    let hook = scene.processes.begin_pre_stop("pod").unwrap().unwrap();
    let begun = Instant::now();
    scene.processes.finish_pre_stop("pod", &hook).unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
    scene.until_gone("pod");
}
