//! Starts and their records with real processes.
#![allow(clippy::unwrap_used)]

mod scene;

use interlock_outside::processes::{
    Ending, Error, Locking, Mount, Observed, Processes, Run, Signal, Volume,
};
use scene::{Scene, until};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

const SLEEP: &str = "exec sleep 1000";

#[test]
fn the_exit_code_is_reported() {
    let scene = Scene::new();
    let before = SystemTime::now();
    scene.start("pod", "exit 7");
    scene.until_exited("pod");
    until("its end is on disk", || {
        matches!(scene.processes.observe("pod"), Ok(Observed::Exited { when: Some(_), .. }))
    });
    let Observed::Exited { ending, when } = scene.processes.observe("pod").unwrap() else {
        panic!("not exited")
    };
    assert_eq!(ending, Ending::Code(7));
    // It is kept in whole milliseconds.
    let earliest = before - Duration::from_millis(1);
    assert!((earliest..=SystemTime::now()).contains(&when.unwrap()), "{when:?}");
}

#[test]
fn a_running_run_is_observed_with_its_pid_and_grace_period() {
    let scene = Scene::new();
    let started = scene.start("pod", SLEEP);
    let expected = Observed::Running { pid: started.pid, since: started.since, grace_seconds: 30 };
    assert_eq!(scene.processes.observe("pod").unwrap(), expected);
}

#[test]
fn a_run_that_has_a_record_is_not_started_again() {
    let scene = Scene::new();
    scene.start("pod", SLEEP);
    let again = scene.processes.start(&scene.shell("pod", SLEEP), scene.lock("another"));
    assert!(matches!(again, Err(Error::HasRecord { .. })), "{again:?}");
    scene.processes.signal("pod", Signal::Kill).unwrap();
    scene.until_gone("pod");
    let again = scene.processes.start(&scene.shell("pod", SLEEP), scene.lock("volumes"));
    assert!(matches!(again, Err(Error::HasRecord { .. })), "{again:?}");
    scene.processes.forget("pod").unwrap();
    scene.start("pod", SLEEP);
}

#[test]
fn runs_of_one_pod_after_another_under_one_lock_have_records_of_their_own() {
    let scene = Scene::new();
    for (id, script) in [("uid~first", "exit 0"), ("uid~second", "exit 3")] {
        scene.start(id, script);
        scene.until_exited(id);
        scene.until_gone(id);
    }
    scene.start("uid", SLEEP);
    for (id, code) in [("uid~first", 0), ("uid~second", 3)] {
        // The lock is held, and by none of these.
        assert!(scene.processes.is_gone(id).unwrap(), "{id}");
        let observed = scene.processes.observe(id).unwrap();
        let is_its =
            matches!(observed, Observed::Exited { ending, .. } if ending == Ending::Code(code));
        assert!(is_its, "{id}: {observed:?}");
        assert_eq!(scene.processes.signal(id, Signal::Kill).unwrap(), [0; 0], "{id}");
        scene.processes.forget(id).unwrap();
    }
    assert!(!scene.processes.is_gone("uid").unwrap());
    let observed = scene.processes.observe("uid").unwrap();
    assert!(matches!(observed, Observed::Running { .. }), "{observed:?}");
    assert_eq!(scene.processes.last_run_of("volumes").unwrap().as_deref(), Some("uid"));
}

#[test]
fn a_start_that_got_no_further_than_its_record_may_be_made_again() {
    let scene = Scene::new();
    scene.start("pod", "exit 0");
    scene.until_gone("pod");
    scene.edit_record("pod", |record| record["leader"] = serde_json::Value::Null);
    assert_eq!(scene.processes.observe("pod").unwrap(), Observed::Starting);
    let started = scene.start("pod", SLEEP);
    let observed = scene.processes.observe("pod").unwrap();
    assert!(
        matches!(observed, Observed::Running { pid, .. } if pid == started.pid),
        "{observed:?}"
    );
}

#[test]
fn a_run_of_an_earlier_boot_has_ended_and_nobody_knows_how() {
    let scene = Scene::new();
    scene.start("pod", "exit 0");
    scene.until_exited("pod");
    scene.edit_record("pod", |record| {
        record["boot_id"] = "another".into();
        record["token"] = "another".into();
        record["leader"]["pid"] = std::process::id().into();
    });
    let unknown = Observed::Exited { ending: Ending::Unknown, when: None };
    assert_eq!(scene.processes.observe("pod").unwrap(), unknown);
    assert!(scene.processes.is_gone("pod").unwrap());
}

#[test]
fn a_record_cut_short_is_an_error_and_never_a_second_start() {
    let scene = Scene::new();
    scene.start("pod", SLEEP);
    let record = std::fs::read(scene.record_path("pod")).unwrap();
    std::fs::write(scene.record_path("pod"), &record[..record.len() / 2]).unwrap();
    let error = scene.processes.observe("pod").unwrap_err();
    assert!(error.to_string().starts_with("the record of run pod at "), "{error}");
    assert!(scene.processes.is_gone("pod").is_err());
    assert!(scene.is_refused("volumes"));

    scene.processes.signal("pod", Signal::Kill).unwrap();
    let lock = scene.lock("volumes");
    let again = scene.processes.start(&scene.shell("pod", SLEEP), lock);
    assert!(matches!(again, Err(Error::DamagedRecord { .. })), "{again:?}");
    scene.processes.discard_damaged("pod", &scene.lock("volumes")).unwrap();
    scene.start("pod", SLEEP);
}

#[test]
fn a_damaged_record_is_kept_while_its_run_lives() {
    let scene = Scene::new();
    scene.start("pod", SLEEP);
    std::fs::write(scene.record_path("pod"), "").unwrap();
    let discarded = scene.processes.discard_damaged("pod", &scene.lock("another"));
    assert!(matches!(discarded, Err(Error::NotGone { .. })), "{discarded:?}");
}

#[test]
fn a_command_that_cannot_be_executed_ends_at_once_with_why_and_a_free_lock() {
    // There is no such file, and nobody may execute that one.
    for (command, number) in [("no-such-command", 2), ("/dev/null", 13)] {
        let scene = Scene::new();
        let mut run = scene.shell("pod", "");
        run.command = vec![command.to_owned()];
        let started = scene.processes.start(&run, scene.lock("volumes")).unwrap();
        let Observed::Exited { ending, when } = scene.processes.observe("pod").unwrap() else {
            panic!("{command} runs")
        };
        assert_eq!(ending, Ending::NotExecuted(number), "{command}");
        assert!(when.is_some_and(|when| when >= started.since), "{command}");
        until("the lock is free", || scene.processes.is_free("volumes").unwrap());
        // Like any other start it is there until it is forgotten, and then may be made again.
        let again = scene.processes.start(&run, scene.lock("volumes"));
        assert!(matches!(again, Err(Error::HasRecord { .. })), "{again:?}");
        scene.until_gone("pod");
        scene.processes.forget("pod").unwrap();
        scene.start("pod", SLEEP);
    }
}

#[test]
fn a_run_without_a_command_is_refused() {
    let scene = Scene::new();
    let mut run = scene.shell("pod", "");
    run.command.clear();
    let error = scene.processes.start(&run, scene.lock("volumes")).unwrap_err();
    assert!(matches!(error, Error::NoCommand { .. }), "{error}");
}

#[test]
fn a_command_sees_only_the_environment_that_it_was_given() {
    let scene = Scene::new();
    let mut run = scene.shell("pod", "");
    run.command = vec!["env".to_owned()];
    run.env = BTreeMap::from([("GREETING".to_owned(), "hello = world".to_owned())]);
    scene.processes.start(&run, scene.lock("volumes")).unwrap();
    scene.until_exited("pod");
    let log = std::fs::read_to_string(&run.log_file).unwrap();
    let mut names: Vec<_> = log.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    let interlocks = ["INTERLOCK_LOCK", "INTERLOCK_ROOT", "INTERLOCK_RUN"];
    assert_eq!(names, [&["GREETING", "HOME"], &interlocks[..], &["PATH", "TMPDIR"]].concat());
    assert!(log.lines().any(|line| line == "GREETING=hello = world"));
}

#[test]
fn a_variable_that_cannot_be_passed_on_is_refused() {
    let scene = Scene::new();
    for name in ["", "A=B", "A\0"] {
        let mut run = scene.shell("pod", SLEEP);
        run.env = BTreeMap::from([(name.to_owned(), String::new())]);
        let error = scene.processes.start(&run, scene.lock("volumes")).unwrap_err();
        assert!(matches!(error, Error::Variable { .. }), "{error}");
    }
}

#[test]
fn a_volume_is_written_through_its_mount_path_and_outlives_the_run() {
    let scene = Scene::new();
    let volume = Volume { cluster: "eu", namespace: "shop", claim: "data" };
    assert!(!scene.processes.volume_exists(volume).unwrap());
    let directory = scene.processes.create_volume(volume).unwrap();
    assert!(scene.processes.volume_exists(volume).unwrap());
    let script = "echo one > here; cd $INTERLOCK_ROOT; echo two > var/lib/data/there; \
                  echo three > $INTERLOCK_VOLUME_MY_DATA/everywhere";
    let mut run = scene.shell("pod", script);
    run.working_directory = Some("/var/lib/data".to_owned());
    let path = "/var/lib/data".to_owned();
    run.mounts = vec![Mount { name: "my-data".to_owned(), path, directory: directory.clone() }];
    scene.processes.start(&run, scene.lock("volumes")).unwrap();
    scene.until_gone("pod");
    scene.processes.forget("pod").unwrap();
    assert!(!scene.directory.path().join("runs/pod").exists());
    for (file, text) in [("here", "one\n"), ("there", "two\n"), ("everywhere", "three\n")] {
        assert_eq!(std::fs::read_to_string(directory.join(file)).unwrap(), text);
    }
}

#[test]
fn mounts_that_leave_the_folder_or_lie_in_each_other_are_refused() {
    let scene = Scene::new();
    for paths in
        [&["/a/../../b"][..], &["/"], &[""], &["/a", "/a/b"], &["/a/b", "/a"], &["a", "/a"]]
    {
        let mut run = scene.shell("pod", SLEEP);
        for (number, path) in paths.iter().enumerate() {
            let (name, path) = (format!("v{number}"), (*path).to_owned());
            run.mounts.push(Mount { name, path, directory: scene.directory.path().to_owned() });
        }
        let error = scene.processes.start(&run, scene.lock("volumes")).unwrap_err();
        assert!(matches!(error, Error::Path { .. }), "{paths:?}: {error}");
    }
}

#[test]
fn names_that_could_lead_elsewhere_are_refused_everywhere() {
    let scene = Scene::new();
    for name in ["", "..", "../up", "/etc", "a/b", "a\0"] {
        assert!(matches!(scene.processes.lock(name), Err(Error::Name { .. })));
        assert!(matches!(scene.processes.observe(name), Err(Error::Name { .. })));
        let volume = Volume { cluster: "eu", namespace: name, claim: "data" };
        assert!(matches!(scene.processes.create_volume(volume), Err(Error::Name { .. })));
        let run = Run { id: name.to_owned(), ..scene.shell("pod", SLEEP) };
        let started = scene.processes.start(&run, scene.lock("volumes"));
        assert!(matches!(started, Err(Error::Name { .. })), "{name:?}: {started:?}");
    }
}

#[test]
fn root_is_refused_unless_it_is_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let opened = Processes::open(directory.path());
    if !rustix::process::geteuid().is_root() {
        assert!(opened.is_ok());
        return;
    }
    let error = opened.unwrap_err().to_string();
    assert!(error.ends_with("or pass --allow-root-processes"), "{error}");
    assert!(Processes::open_allowing_root(directory.path()).is_ok());
}

#[test]
fn a_lock_of_another_directory_starts_nothing() {
    let (scene, other) = (Scene::new(), Scene::new());
    let started = scene.processes.start(&scene.shell("pod", SLEEP), other.lock("volumes"));
    assert!(matches!(started, Err(Error::ForeignLock { .. })), "{started:?}");
}

#[test]
fn many_runs_start_at_once() {
    let scene = Scene::new();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let scene = &scene;
            scope.spawn(move || {
                let (id, lock) = (format!("pod-{number}"), format!("lock-{number}"));
                scene.processes.start(&scene.shell(&id, SLEEP), scene.lock(&lock)).unwrap();
            });
        }
    });
    assert_eq!(scene.processes.running().unwrap().len(), 16);
}

#[test]
fn of_many_who_want_one_lock_one_gets_it() {
    let scene = Scene::new();
    let lock = || match scene.processes.lock("volumes").unwrap() {
        Locking::Taken(lock) => Some(lock),
        Locking::HeldByAnother { .. } => None,
    };
    let taken: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(lock)).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(taken.len(), 1);
}
