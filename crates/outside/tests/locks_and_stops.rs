//! Locks and stops with real processes.
#![allow(clippy::unwrap_used)]

mod scene;

use interlock_outside::processes::{Asked, Ending, Error, Locking, Observed, Signal};
use scene::{Scene, lives, open, session, until};
use std::process::Command;
use std::time::{Duration, Instant};

const SLEEP: &str = "exec sleep 1000";

#[test]
fn a_lock_is_refused_while_the_run_lives_though_its_opener_is_gone() {
    let scene = Scene::new();
    let opener = open(scene.directory.path());
    let Locking::Taken(lock) = opener.lock("volumes").unwrap() else { panic!("held") };
    let started = opener.start(&scene.shell("pod", SLEEP), lock).unwrap();
    drop(opener);
    let Locking::HeldByAnother { holders } = scene.processes.lock("volumes").unwrap() else {
        panic!("the lock was given away while process {} lives", started.pid)
    };
    assert_eq!(holders.iter().map(|holder| holder.pid).collect::<Vec<_>>(), [started.pid]);
    assert!(!scene.processes.is_free("volumes").unwrap());
}

#[test]
fn a_lock_that_was_dropped_without_a_start_is_free() {
    let scene = Scene::new();
    let lock = scene.lock("volumes");
    assert!(scene.is_refused("volumes"));
    assert!(!scene.processes.is_free("volumes").unwrap());
    drop(lock);
    until("the lock is free", || scene.processes.is_free("volumes").unwrap());
}

#[test]
fn a_look_at_a_lock_does_not_make_or_take_it() {
    let scene = Scene::new();
    assert!(scene.processes.is_free("volumes").unwrap());
    assert!(!scene.directory.path().join("locks/volumes.lock").exists());
}

#[test]
fn a_process_that_left_the_session_keeps_the_lock() {
    let scene = Scene::new();
    scene.start("pod", "setsid sh -c 'echo $$ > other.new; mv other.new other; exec sleep 1000' &");
    scene.until_exited("pod");
    scene.until_file("pod", "other");
    let other: i32 =
        std::fs::read_to_string(scene.file("pod", "other")).unwrap().trim().parse().unwrap();
    until("it is alone", || {
        let leftovers = scene.processes.leftovers("volumes").unwrap();
        leftovers.len() == 1 && leftovers[0].name == "sleep"
    });
    assert!(!scene.processes.is_gone("pod").unwrap());
    assert!(scene.is_refused("volumes"));
    let leftovers = scene.processes.leftovers("volumes").unwrap();
    assert!(leftovers.iter().any(|leftover| leftover.pid == other), "{leftovers:?}");
    assert!(matches!(scene.processes.forget("pod"), Err(Error::NotGone { .. })));
    assert_eq!(scene.processes.signal("pod", Signal::Kill).unwrap(), [other]);
    scene.until_gone("pod");
    assert!(!lives(other));
    drop(scene.lock("volumes"));
}

#[test]
fn a_process_that_left_the_session_and_wiped_its_environment_is_killed_for_its_lock() {
    let scene = Scene::new();
    scene.start("pod", "setsid env -i sleep 1000 &");
    scene.until_exited("pod");
    until("it is alone", || {
        let leftovers = scene.processes.leftovers("volumes").unwrap();
        leftovers.len() == 1 && leftovers[0].name == "sleep"
    });
    assert!(!scene.processes.is_gone("pod").unwrap());
    scene.processes.signal("pod", Signal::Kill).unwrap();
    scene.until_gone("pod");
    assert_eq!(scene.processes.leftovers("volumes").unwrap(), []);
}

#[test]
fn a_process_that_closed_the_lock_and_left_the_session_still_counts() {
    let scene = Scene::new();
    let script = "for f in /proc/$$/fd/*; do case $(readlink $f) in *.lock) n=${f##*/}; \
                  eval \"exec $n>&-\";; esac; done; setsid sleep 1000 & touch ready";
    let mut run = scene.shell("pod", script);
    run.command = vec!["bash".to_owned(), "-c".to_owned(), script.to_owned()];
    scene.processes.start(&run, scene.lock("volumes")).unwrap();
    scene.until_exited("pod");
    until("the kernel says that the lock is free", || {
        let status = Command::new("flock")
            .arg("--nonblock")
            .arg(scene.directory.path().join("locks/volumes.lock"))
            .arg("true")
            .status();
        status.unwrap().success()
    });
    assert!(scene.is_refused("volumes"));
    assert!(!scene.processes.is_free("volumes").unwrap());
    assert!(!scene.processes.is_gone("pod").unwrap());
    scene.processes.signal("pod", Signal::Kill).unwrap();
    scene.until_gone("pod");
    drop(scene.lock("volumes"));
}

/// It is known by its environment alone, which it does not have while it executes a program.
#[test]
fn a_process_that_executes_programs_all_the_time_is_never_taken_for_gone() {
    let scene = Scene::new();
    let script = "for f in /proc/$$/fd/*; do case $(readlink $f) in *.lock) n=${f##*/}; \
                  eval \"exec $n>&-\";; esac; done; echo 'exec sh again' > again; \
                  setsid sh again & touch ready";
    let mut run = scene.shell("pod", script);
    run.command = vec!["bash".to_owned(), "-c".to_owned(), script.to_owned()];
    scene.processes.start(&run, scene.lock("volumes")).unwrap();
    scene.until_exited("pod");
    scene.until_file("pod", "ready");
    for look in 0..300 {
        assert!(!scene.processes.is_gone("pod").unwrap(), "taken for gone at look {look}");
    }
    until("it is killed", || {
        scene.processes.signal("pod", Signal::Kill).unwrap();
        scene.processes.is_gone("pod").unwrap()
    });
}

#[test]
fn a_process_is_known_by_what_it_executes_now_and_not_by_what_it_executed_before() {
    let scene = Scene::new();
    let lock = scene.directory.path().canonicalize().unwrap().join("locks/volumes.lock");
    let mut other = Command::new("sh")
        .args(["-c", "read word; exec env INTERLOCK_RUN=pod/token INTERLOCK_LOCK=$0 sleep 1000"])
        .arg(lock)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Whatever was read of it now is of another program.
    assert!(scene.processes.is_gone("pod").unwrap() && scene.processes.is_free("volumes").unwrap());
    drop(other.stdin.take());
    until("it is of the run", || !scene.processes.is_gone("pod").unwrap());
    assert!(!scene.processes.is_free("volumes").unwrap());
    let pid = i32::try_from(other.id()).unwrap();
    assert_eq!(scene.processes.signal("pod", Signal::Kill).unwrap(), [pid]);
    other.wait().unwrap();
    assert!(scene.processes.is_gone("pod").unwrap() && scene.processes.is_free("volumes").unwrap());
}

#[test]
fn a_run_that_ignores_term_is_ended_by_kill() {
    let scene = Scene::new();
    let started = scene.start("pod", "trap '' TERM; touch ready; while :; do sleep 1000; done");
    scene.until_file("pod", "ready");
    scene.processes.signal("pod", Signal::Term).unwrap();
    assert!(lives(started.pid));
    assert!(!scene.processes.is_gone("pod").unwrap());
    scene.processes.signal("pod", Signal::Kill).unwrap();
    let Observed::Exited { ending, .. } = scene.until_exited("pod") else { panic!() };
    assert_eq!(ending, Ending::Signal(9));
    scene.until_gone("pod");
}

#[test]
fn a_run_that_makes_processes_all_the_time_is_ended_by_one_kill() {
    let scene = Scene::new();
    // Each leads a session of its own, leaves a sleeper behind and goes on in another one.
    let script = r#"
        trap '' TERM
        export HOP='sleep 0.05; setsid sh -c "exec sleep 1000" & setsid sh -c "$HOP" & exec sleep 1000'
        setsid sh -c "$HOP" &
        sleep 0.5; touch ready; exec sleep 1000"#;
    scene.start("pod", script);
    scene.until_file("pod", "ready");
    let reached = scene.processes.signal("pod", Signal::Kill).unwrap();
    assert!(reached.len() > 2, "too little: {reached:?}");
    scene.until_gone("pod");
    assert_eq!(scene.processes.running().unwrap(), []);
}

#[test]
fn when_a_run_was_first_asked_to_end_outlives_the_one_who_asked() {
    let scene = Scene::new();
    scene.start("pod", "trap '' TERM; touch ready; while :; do sleep 1000; done");
    scene.until_file("pod", "ready");
    assert_eq!(scene.processes.asked("pod").unwrap(), Asked::default());
    scene.processes.signal("pod", Signal::Term).unwrap();
    let asked = open(scene.directory.path()).asked("pod").unwrap();
    assert!(asked.term.is_some() && asked.kill.is_none(), "{asked:?}");
    scene.processes.signal("pod", Signal::Term).unwrap();
    scene.processes.signal("pod", Signal::Kill).unwrap();
    let later = scene.processes.asked("pod").unwrap();
    assert!(later.term == asked.term && later.kill.is_some(), "{later:?}");
}

#[test]
fn a_signal_never_reaches_a_process_that_came_to_have_the_pid() {
    let scene = Scene::new();
    scene.start("pod", "exit 0");
    scene.until_exited("pod");
    scene.until_gone("pod");
    // The kernel tells start times in ticks of a hundredth of a second; no pid comes round in one.
    std::thread::sleep(Duration::from_millis(30));
    let mut stranger = Command::new("setsid").args(["sleep", "1000"]).spawn().unwrap();
    let pid = i32::try_from(stranger.id()).unwrap();
    until("the stranger leads a session", || session(pid) == Some(pid));
    scene.edit_record("pod", |record| record["leader"]["pid"] = stranger.id().into());
    let reached = scene.processes.signal("pod", Signal::Kill).unwrap();
    let is_gone = scene.processes.is_gone("pod").unwrap();
    let is_alive = stranger.try_wait().unwrap().is_none();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert!(reached.is_empty() && is_alive, "{reached:?} {is_alive}");
    assert!(is_gone, "a stranger was taken for the run");
}

#[test]
fn a_run_is_gone_when_the_next_one_has_its_lock() {
    let scene = Scene::new();
    scene.start("first", "exit 0");
    scene.until_gone("first");
    scene.start("second", SLEEP);
    assert!(scene.processes.is_gone("first").unwrap());
    assert!(!scene.processes.is_gone("second").unwrap());
    scene.processes.forget("first").unwrap();
    assert_eq!(scene.processes.observe("first").unwrap(), Observed::NoRecord);
}

#[test]
fn stopping_all_leaves_nothing_behind_and_starts_nothing_more() {
    let scene = Scene::new();
    let stubborn =
        scene.shell("stubborn", "trap '' TERM; touch ready; while :; do sleep 1000; done");
    let meek = scene.shell("meek", "setsid sleep 1000 & exec sleep 1000");
    let stubborn = scene.processes.start(&stubborn, scene.lock("one")).unwrap();
    let meek = scene.processes.start(&meek, scene.lock("two")).unwrap();
    scene.until_file("stubborn", "ready");
    let running = scene.processes.running().unwrap();
    assert_eq!(running.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["meek", "stubborn"]);
    let begun = Instant::now();
    assert_eq!(scene.processes.stop_all(Duration::from_millis(100)).unwrap(), []);
    assert!(begun.elapsed() >= Duration::from_millis(100), "the stubborn one had no grace");
    assert!(!lives(stubborn.pid) && !lives(meek.pid));
    // A child forked by another test may have a copy of a lock until it executes its program.
    for lock in ["one", "two"] {
        until("the lock is free", || scene.processes.is_free(lock).unwrap());
    }
    let again = scene.processes.start(&scene.shell("late", SLEEP), scene.lock("three"));
    assert!(matches!(again, Err(Error::Stopping { .. })));
}
