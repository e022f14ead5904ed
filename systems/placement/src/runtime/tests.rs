//! Tests of the runtime: what it asks, does and says about one pod.

use super::decide::{
    Asked, Decision, Description, Facts, Finding, Health, Holder as Other, Home, Lock, Permit, Pod,
    Probing, Process, Stage, Stamp, decide,
};
use super::outside::{
    Action as MachineAction, Check, Ending, Holder, Known, Question, Started, Verdict, Verdicts,
};
use super::tokens::Tokens;
use super::{Runtime, Scope};
use crate::kinds::{CLAIM, NAMESPACE, POD, VOLUME};
use crate::syncer::tenancy::Running;
use crate::syncer::tests::world::{BOOT, TestFleet};
use interlock_kernel::{Action, Name, Step, Write};
use serde_json::{Value, json};

mod inits;

struct Case {
    world: TestFleet,
}

fn pod(container: Value) -> Value {
    let mut container = container;
    container["name"] = json!("main");
    json!({
        "metadata": {"uid": "p-uid", "labels": {"interlock.dev/grant": "g"},
            "finalizers": ["interlock.dev/process"]},
        "spec": {"runtimeClassName": "interlock-process", "containers": [container]},
    })
}

impl Case {
    fn of(pod: Value, running: &str) -> Case {
        let mut world = TestFleet::new(&["a"]);
        let namespace = json!({"metadata": {"annotations": {
            "interlock.dev/grant": "g-uid", "interlock.dev/running": running,
        }}});
        world.put(&NAMESPACE, Name::cluster_wide("g"), "a", namespace);
        world.put(&POD, Name::within("g", "p"), "a", pod);
        Case { world }
    }

    fn usual() -> Case {
        Case::of(pod(json!({"command": ["x"]})), &format!("1@{BOOT}"))
    }

    fn knowing(mut self, known: Known) -> Case {
        self.world.machines.get_mut("a").unwrap().known.insert("p-uid".to_owned(), known);
        self
    }

    fn gone(self, ending: Ending, seconds_ago: i64) -> Case {
        let at = self.world.now.as_second() - seconds_ago;
        let at = jiff::Timestamp::from_second(at).unwrap();
        let run = Started { pid: 7, since: at };
        self.knowing(Known::Gone { run, ending, finished: Some(at) })
    }

    fn turn(&mut self) -> bool {
        self.world.turn(&self.world.runtime(), "a")
    }

    /// Steps until it comes to rest; what it said last.
    fn settle(&mut self) -> String {
        for _ in 0..20 {
            if !self.turn() {
                break;
            }
        }
        match self.world.step(&self.world.runtime(), "a", "g/p") {
            Step::Rest { because } | Step::Wait { because, .. } => because,
            step => panic!("it does not come to rest: {step:?}"),
        }
    }

    fn status(&self) -> Value {
        self.world.get("a", &POD, &Name::within("g", "p")).unwrap()["status"].clone()
    }

    fn action(&self) -> MachineAction {
        match self.world.step(&Runtime::new(BOOT).serving(Scope::All), "a", "g/p") {
            Step::Act(effect) => match effect.action {
                Action::Outside(action) => action,
                Action::Write(write) => panic!("a write: {write:?}"),
            },
            step => panic!("nothing is done: {step:?}"),
        }
    }

    fn is_started(&self) -> bool {
        !self.world.machines["a"].runs.is_empty()
    }
}

#[test]
fn a_permitted_pod_is_locked_then_started_then_reported() {
    let mut case = Case::usual();
    assert!(matches!(case.action(), MachineAction::TakeLock(_)));
    assert_eq!(case.settle(), "it runs");
    assert_eq!(case.world.machines["a"].runs[0].epoch, 1);
    assert_eq!(case.status()["phase"], "Running");
    assert_eq!(case.status()["containerStatuses"][0]["restartCount"], 0);
}

#[test]
fn without_a_permit_of_this_boot_nothing_is_even_locked() {
    for running in ["", "1@boot-0", "x"] {
        let mut case = Case::of(pod(json!({"command": ["x"]})), running);
        assert_eq!(case.settle(), "the namespace has no permit for the pod", "{running}");
    }
}

#[test]
fn a_closed_epoch_does_not_run_even_if_it_is_permitted() {
    let mut case = Case::usual();
    let closed = json!({"metadata": {"annotations": {"interlock.dev/released": "1"}}});
    case.world.change("a", &NAMESPACE, &Name::cluster_wide("g"), &closed);
    case.world.machines.get_mut("a").unwrap().locks.insert("p-uid".to_owned());
    assert!(matches!(case.action(), MachineAction::LetGo(_)));
    case.settle();
    assert!(!case.is_started());
}

const PERMITTED: Home = Home::Placed { running: Running::Permitted(1), released: 0 };

#[test]
fn a_pod_that_is_gone_is_not_started_whatever_the_cache_shows() {
    let facts = |is_pod_there| {
        Facts::Asked(Asked {
            pod: Pod::Wanted,
            has_finalizer: true,
            stage: Stage::default(),
            process: Process::None,
            lock: Lock::Mine,
            holder: Other::NotAsked,
            home: PERMITTED,
            stamp: Stamp::Syncer,
            is_stray_lock_held: false,
            permit: Some(Permit { is_pod_there, home: PERMITTED, stamp: Stamp::Syncer }),
            description: Description::Complete,
            has_fields_without_effect: false,
            reported: None,
            probing: Probing {
                startup: Finding::NoProbe,
                liveness: Finding::NoProbe,
                readiness: Finding::NoProbe,
                was: Health { is_started: false, is_ready: false },
            },
            is_grace_over: false,
            tokens: Tokens::None,
            has_token_files: false,
        })
    };
    assert_eq!(decide(&facts(true)), Decision::Start(1));
    assert_eq!(decide(&facts(false)), Decision::LetGo);
}

#[test]
fn the_lock_of_a_pod_that_went_before_it_was_started_is_let_go() {
    for comes_again in [false, true] {
        let mut case = Case::usual();
        assert!(case.turn());
        assert!(case.world.machines["a"].locks.contains("p-uid"));
        let name = Name::within("g", "p");
        case.world.change("a", &POD, &name, &json!({"metadata": {"finalizers": []}}));
        case.world.delete("a", &POD, &name);
        if comes_again {
            let mut other = pod(json!({"command": ["x"]}));
            other["metadata"]["uid"] = json!("another-uid");
            case.world.put(&POD, Name::within("g", "p"), "a", other);
        }
        assert!(matches!(case.action(), MachineAction::LetGo(lock) if lock.pod == "p-uid"));
        if comes_again {
            assert_eq!(case.settle(), "it runs");
            assert!(case.world.machines["a"].known.contains_key("another-uid"));
        }
    }
}

#[test]
fn a_pod_of_somebody_else_is_left_alone() {
    let other = json!({"spec": {"runtimeClassName": "other"}});
    let without = json!({"spec": {"runtimeClassName": null}});
    let unmarked = json!({"metadata": {"labels": {"interlock.dev/grant": null}}});
    let not_placed = "the namespace is placed, and the pod was not placed with it";
    for (scope, change, why) in [
        (Scope::All, &other, "the pod is not in the cache"),
        (Scope::All, &unmarked, not_placed),
        (Scope::OfClass, &other, "the pod is not in the cache"),
        (Scope::OfClass, &without, "the pod is not in the cache"),
        (Scope::OfClass, &unmarked, not_placed),
        (Scope::Synced, &other, "the pod is not in the cache"),
        (Scope::Synced, &without, "the pod is not in the cache"),
        (Scope::Synced, &unmarked, "the pod is not in the cache"),
    ] {
        let mut case = Case::usual();
        case.world.change("a", &POD, &Name::within("g", "p"), change);
        let runtime = Runtime::new(BOOT).serving(scope);
        assert!(!case.world.turn(&runtime, "a"), "{change}");
        let step = case.world.step(&runtime, "a", "g/p");
        let (Step::Rest { because } | Step::Wait { because, .. }) = step else {
            panic!("it does not rest: {step:?}")
        };
        assert!(because.starts_with(why), "{because}");
    }
}

/// A namespace that is not placed, with a pod that a person made.
fn unplaced(pod: Value) -> Case {
    let mut world = TestFleet::new(&["a"]);
    world.put(&NAMESPACE, Name::cluster_wide("g"), "a", json!({}));
    world.put(&POD, Name::within("g", "p"), "a", pod);
    Case { world }
}

/// A pod as a person makes it.
fn bare(container: Value) -> Value {
    let mut bare = pod(container);
    bare["metadata"] = json!({"uid": "p-uid"});
    bare
}

#[test]
fn a_pod_of_a_namespace_that_is_not_placed_gets_our_finalizer_and_runs_without_a_permit() {
    let mut case = unplaced(bare(json!({"command": ["x"]})));
    assert!(case.turn());
    let pod = case.world.get("a", &POD, &Name::within("g", "p")).unwrap();
    assert_eq!(pod["metadata"]["finalizers"], json!(["interlock.dev/process"]));
    assert!(matches!(case.action(), MachineAction::TakeLock(_)));
    assert_eq!(case.settle(), "it runs");
    assert_eq!(case.world.machines["a"].runs[0].epoch, 0);
    let status = case.status();
    assert_eq!(status["podIP"], case.world.machines["a"].runs[0].env["POD_IP"]);
    assert_eq!((&status["hostIP"], &status["phase"]), (&json!("127.0.0.1"), &json!("Running")));
    let read = case.world.log.iter().filter(|line| line.contains("TakeLock")).count();
    assert_eq!(read, 1);
}

#[test]
fn a_namespace_that_is_being_deleted_or_is_placed_meanwhile_starts_nothing() {
    let deleting = json!({"metadata": {"deletionTimestamp": "1999-01-01T00:00:00Z"}});
    let placed = json!({"metadata": {"annotations": {
        "interlock.dev/grant": "g-uid", "interlock.dev/running": format!("1@{BOOT}"),
    }}});
    let marked = json!({"metadata": {"labels": {"interlock.dev/grant": "g"}}});
    for change in [deleting, placed, marked] {
        let mut case = unplaced(bare(json!({"command": ["x"]})));
        assert!(case.turn() && case.turn());
        assert!(case.world.machines["a"].locks.contains("p-uid"));
        case.world.change("a", &NAMESPACE, &Name::cluster_wide("g"), &change);
        assert!(matches!(case.action(), MachineAction::LetGo(_)), "{change}");
        case.settle();
        assert!(!case.is_started(), "{change}");
    }
}

/// A pod as a maker makes it in a placed namespace.
fn made(epoch: Option<&str>) -> Value {
    let mut made = pod(json!({"command": ["x"]}));
    made["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "name": "r", "uid": "r-uid", "controller": true}]);
    if let Some(epoch) = epoch {
        made["metadata"]["annotations"] = json!({"interlock.dev/epoch": epoch});
    }
    made
}

#[test]
fn what_a_maker_made_runs_in_its_own_epoch_only() {
    for (epoch, because) in [
        (Some("2"), "it runs"),
        (Some("1"), "the pod was made in another epoch than the one that may run"),
        (Some("3"), "the pod was made in another epoch than the one that may run"),
        (Some("x"), "the pod was made in another epoch than the one that may run"),
        (None, "the pod was made in another epoch than the one that may run"),
    ] {
        let mut case = Case::of(made(epoch), &format!("2@{BOOT}"));
        assert_eq!(case.settle(), because, "{epoch:?}");
    }
}

#[test]
fn a_pod_without_a_class_is_a_process_only_where_that_is_asked_for() {
    let mut plain = bare(json!({"command": ["x"]}));
    plain["spec"]["runtimeClassName"] = Value::Null;
    let mut case = unplaced(plain.clone());
    let elsewhere = Runtime::new(BOOT);
    assert!(!case.world.turn(&elsewhere, "a"));
    // Nor is one of the class that no syncer made: whoever may create pods gets no process there.
    assert!(!unplaced(bare(json!({"command": ["x"]}))).world.turn(&elsewhere, "a"));
    let runtime = || Runtime::new(BOOT).serving(Scope::All);
    for _ in 0..5 {
        case.world.turn(&runtime(), "a");
    }
    assert!(case.is_started());
    plain["spec"]["containers"][0] = json!({"name": "main", "image": "nginx"});
    let mut case = unplaced(plain);
    while case.world.turn(&runtime(), "a") {}
    let status = case.status();
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Pending"), &json!("Unschedulable")));
    assert!(status["message"].as_str().unwrap().ends_with("in spec.containers[0].command"));
    let scheduled = &status["conditions"][0];
    assert_eq!(
        (&scheduled["type"], &scheduled["status"]),
        (&json!("PodScheduled"), &json!("False"))
    );
    assert_eq!(scheduled["reason"], "Unschedulable");
    assert!(status["containerStatuses"].is_null());
}

#[test]
fn a_process_that_outlived_its_pod_is_stopped_before_the_next_one_of_its_name_starts() {
    let run = Started { pid: 8, since: jiff::Timestamp::UNIX_EPOCH };
    for is_there in [true, false] {
        let mut case = Case::usual();
        if !is_there {
            let name = Name::within("g", "p");
            case.world.change("a", &POD, &name, &json!({"metadata": {"finalizers": []}}));
            case.world.delete("a", &POD, &name);
        }
        let machine = case.world.machines.get_mut("a").unwrap();
        machine.known.insert("old-uid".to_owned(), Known::Lives(run));
        let holder =
            |known| Some(Holder { pod: "old-uid".to_owned(), run: "old-uid".to_owned(), known });
        machine.holder = holder(Known::Lives(run));
        assert_eq!(case.action(), MachineAction::Terminate("old-uid".to_owned()));
        let since = case.world.now - jiff::SignedDuration::from_secs(29);
        let stopping = |since| Known::Stopping { run, since };
        case.world.machines.get_mut("a").unwrap().holder = holder(stopping(since));
        let step = case.world.step(&Runtime::new(BOOT).serving(Scope::All), "a", "g/p");
        assert!(matches!(step, Step::Wait { .. }), "{step:?}");
        let since = since - jiff::SignedDuration::from_secs(1);
        case.world.machines.get_mut("a").unwrap().holder = holder(stopping(since));
        assert_eq!(case.action(), MachineAction::Kill("old-uid".to_owned()));
    }
}

fn probed() -> Case {
    let probe = json!({"httpGet": {"port": "web", "path": "/ready"}, "periodSeconds": 3});
    let container = json!({"command": ["x"], "ports": [{"name": "web", "containerPort": 80}],
        "readinessProbe": probe, "livenessProbe": {"tcpSocket": {"port": 80},
            "terminationGracePeriodSeconds": 3}});
    Case::of(pod(container), &format!("1@{BOOT}"))
}

#[test]
fn a_pod_is_ready_when_its_probe_says_so_and_no_longer_than_that() {
    let mut case = probed();
    assert_eq!(case.settle(), "it runs");
    let ready = |case: &Case| {
        let said = &case.status()["containerStatuses"][0];
        let conditions = case.status()["conditions"].clone();
        let is_ready = conditions[3]["status"] == "True";
        assert_eq!(
            (said["ready"] == true, conditions[2]["status"] == "True"),
            (is_ready, is_ready)
        );
        (said["started"] == true, is_ready)
    };
    assert_eq!(ready(&case), (true, false));
    let condition = case.status()["conditions"][3].clone();
    assert_eq!(condition["reason"], "ContainersNotReady");
    for (verdict, expected) in
        [(Verdict::Success, true), (Verdict::Failure, false), (Verdict::Success, true)]
    {
        let found = Verdicts { readiness: Some(verdict), ..Verdicts::default() };
        case.world.machines.get_mut("a").unwrap().verdicts = found;
        case.settle();
        assert_eq!(ready(&case), (true, expected));
    }
    // The agent was restarted: what it said last holds.
    case.world.machines.get_mut("a").unwrap().verdicts = Verdicts::default();
    case.settle();
    assert_eq!(ready(&case), (true, true));
}

#[test]
fn probes_go_to_the_address_of_the_pod() {
    let case = probed();
    let step = case.world.view("a");
    let step = step.step_with(&Runtime::new(BOOT).serving(Scope::All), "g/p", &Default::default());
    let Step::LiveRead { reads, .. } = step else { panic!("no live read") };
    let asked = reads.iter().find_map(|read| match read {
        interlock_kernel::Read::Ask(Question::Health(watched)) => Some(watched.clone()),
        _ => None,
    });
    let readiness = asked.unwrap().probes.readiness.unwrap();
    let Check::Http { host, port, path, .. } = readiness.check else { panic!("another check") };
    assert!(host.starts_with("127.") && port == 80 && path == "/ready", "{host}:{port}{path}");
    assert_eq!((readiness.period_seconds, readiness.failures), (3, 3));
}

#[test]
fn a_process_that_fails_its_liveness_probe_is_restarted_by_its_policy() {
    let mut case = probed();
    case.settle();
    let dead = Verdicts { liveness: Some(Verdict::Failure), ..Verdicts::default() };
    case.world.machines.get_mut("a").unwrap().verdicts = dead;
    assert_eq!(case.action(), MachineAction::Terminate("p-uid".to_owned()));
    assert!(case.turn());
    assert_eq!(case.world.events.last().map(|event| event.reason), Some("Unhealthy"));
    case.world.machines.get_mut("a").unwrap().verdicts = Verdicts::default();
    case.world.now += jiff::SignedDuration::from_secs(1);
    assert_eq!(case.settle(), "it runs");
    assert_eq!(case.status()["containerStatuses"][0]["restartCount"], 1);
    // One that does not listen is killed after the time that the probe says.
    let run = Started { pid: 7, since: case.world.now };
    let asked = case.world.now;
    let mut case = case.knowing(Known::Stopping { run, since: asked });
    case.settle();
    case.world.now += jiff::SignedDuration::from_secs(2);
    assert_eq!(case.settle(), "the process may still stop by itself");
    case.world.now += jiff::SignedDuration::from_secs(1);
    assert_eq!(case.action(), MachineAction::Kill("p-uid".to_owned()));
}

#[test]
fn volumes_of_files_are_described_with_what_is_in_them() {
    let mut asking = pod(json!({"command": ["x", "$(POD_IP)"], "volumeMounts": [
        {"name": "c", "mountPath": "/etc/c", "readOnly": true},
        {"name": "s", "mountPath": "/etc/s.key", "subPath": "key"},
        {"name": "e", "mountPath": "/scratch"},
        {"name": "d", "mountPath": "/etc/pod"},
    ], "lifecycle": {"preStop": {"exec": {"command": ["drain"]}}}}));
    asking["spec"]["volumes"] = json!([
        {"name": "c", "configMap": {"name": "c", "items": [{"key": "a", "path": "x/a", "mode": 256}]}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 384}},
        {"name": "e", "emptyDir": {}},
        {"name": "d", "downwardAPI": {"items": [
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]);
    let mut case = Case::of(asking, &format!("1@{BOOT}"));
    assert_eq!(case.settle(), "ConfigMap c does not exist on this cluster");
    let config = json!({"data": {"a": "1", "b": "2"}});
    case.world.put(&crate::kinds::CONFIG_MAP, Name::within("g", "c"), "a", config);
    assert_eq!(case.settle(), "Secret s does not exist on this cluster");
    let secret = json!({"data": {"key": "aGVsbG8="}});
    case.world.put(&crate::kinds::SECRET, Name::within("g", "s"), "a", secret);
    assert_eq!(case.settle(), "it runs");
    let run = &case.world.machines["a"].runs[0];
    let file = |mount: usize| {
        let file = &run.files[mount].files.as_ref().unwrap()[0];
        (file.path.clone(), String::from_utf8(file.bytes.clone()).unwrap(), file.mode)
    };
    assert_eq!(file(0), ("x/a".to_owned(), "1".to_owned(), 0o400));
    assert_eq!(file(1), ("key".to_owned(), "hello".to_owned(), 0o600));
    assert_eq!(run.files[1].part, "key");
    assert_eq!((run.files[2].name.as_str(), &run.files[2].files), ("e", &None));
    assert_eq!(file(3), ("name".to_owned(), "p".to_owned(), 0o644));
    assert_eq!(run.pre_stop, ["drain"]);
    assert_eq!(run.command[1], run.env["POD_IP"]);
}

#[test]
fn what_is_not_supported_is_said_and_not_left_out() {
    let mut case = Case::of(
        pod(json!({"command": ["x"], "lifecycle": {"postStart": {"exec": {"command": ["y"]}}}})),
        &format!("1@{BOOT}"),
    );
    case.settle();
    assert!(!case.is_started());
    assert_eq!(case.status()["reason"], "NotSupported");
    let said = "not supported for a process: lifecycle.postStart; the pod was not started";
    assert_eq!(case.status()["message"], said);
}

#[test]
fn a_missing_config_map_is_waited_for() {
    let env = json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "a"}}}]);
    let mut case = Case::of(pod(json!({"command": ["x"], "env": env})), &format!("1@{BOOT}"));
    assert_eq!(case.settle(), "ConfigMap c does not exist on this cluster");
    let config = json!({"data": {"a": "1"}});
    let name = Name::within("g", "c");
    case.world.put(&crate::kinds::CONFIG_MAP, name, "a", config);
    case.settle();
    assert_eq!(case.world.machines["a"].runs[0].env["A"], "1");
}

#[test]
fn an_end_is_reported_with_its_code() {
    let mut case = Case::usual().gone(Ending::Code(3), 1);
    let never = json!({"spec": {"restartPolicy": "Never"}});
    case.world.change("a", &POD, &Name::within("g", "p"), &never);
    assert_eq!(case.settle(), "the pod has finished, and is not restarted");
    assert_eq!(case.status()["phase"], "Failed");
    let end = &case.status()["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&end["exitCode"], &end["reason"]), (&json!(3), &json!("Error")));
    assert!(!case.is_started());
}

#[test]
fn each_restart_waits_twice_as_long_as_the_one_before() {
    let mut case = Case::usual().gone(Ending::Code(1), 15);
    let reported = json!({"status": {"phase": "Running", "containerStatuses": [
        {"name": "main", "restartCount": 1, "containerID": "process://p-uid/1-1"},
    ]}});
    case.world.change("a", &POD, &Name::within("g", "p"), &reported);
    assert_eq!(case.settle(), "the pod restarts after its backoff");
    assert_eq!(case.status()["containerStatuses"][0]["restartCount"], 2);
    case.world.now = jiff::Timestamp::from_second(case.world.now.as_second() + 5).unwrap();
    case.settle();
    assert!(case.is_started());
    assert_eq!(case.status()["containerStatuses"][0]["restartCount"], 3);
    let last = &case.status()["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(last["exitCode"], 1);
}

#[test]
fn a_first_end_is_reported_as_it_was_and_only_a_second_one_is_a_loop() {
    let mut case = Case::usual().gone(Ending::Code(7), 1);
    assert!(case.turn());
    let first = case.status()["containerStatuses"][0].clone();
    let end = &first["state"]["terminated"];
    assert_eq!((&end["exitCode"], &end["reason"]), (&json!(7), &json!("Error")), "{first:#}");
    assert!(case.world.events.is_empty(), "it starts again at once");
    assert_eq!(case.settle(), "it runs");
    let mut case = case.gone(Ending::Code(7), 1);
    assert_eq!(case.settle(), "the pod restarts after its backoff");
    let second = case.status()["containerStatuses"][0].clone();
    assert_eq!(second["state"]["waiting"]["reason"], "CrashLoopBackOff", "{second:#}");
    assert_eq!(second["lastState"]["terminated"]["exitCode"], 7, "{second:#}");
    let told: Vec<&str> = case.world.events.iter().map(|event| event.reason).collect();
    assert_eq!(told, ["BackOff"]);
}

#[test]
fn a_command_that_cannot_be_executed_is_reported_with_why() {
    let no_such_file = std::io::Error::from_raw_os_error(2);
    let why = format!("cannot execute \"x\": {no_such_file}");
    let mut case = Case::usual().gone(Ending::NotExecuted(2), 1);
    assert!(case.turn());
    let first = case.status()["containerStatuses"][0].clone();
    let waiting = &first["state"]["waiting"];
    assert_eq!(
        (&waiting["reason"], &waiting["message"]),
        (&json!("RunContainerError"), &json!(why))
    );
    let end = &first["lastState"]["terminated"];
    assert_eq!(
        (&end["exitCode"], &end["reason"]),
        (&json!(128), &json!("StartError")),
        "{first:#}"
    );
    assert_eq!(end["message"], why);
    let told = case.world.events.last().expect("an event");
    assert_eq!((told.reason, &told.note), ("Failed", &format!("Error: {why}")));
    // Where it is not to start again, the pod has failed.
    let mut case = Case::usual().gone(Ending::NotExecuted(2), 1);
    let never = json!({"spec": {"restartPolicy": "Never"}});
    case.world.change("a", &POD, &Name::within("g", "p"), &never);
    assert_eq!(case.settle(), "the pod has finished, and is not restarted");
    assert_eq!(case.status()["phase"], "Failed");
    let end = &case.status()["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&end["exitCode"], &end["reason"]), (&json!(128), &json!("StartError")));
}

#[test]
fn a_pod_that_leaves_is_asked_to_stop_and_killed_when_its_time_is_over() {
    let run = Started { pid: 7, since: jiff::Timestamp::UNIX_EPOCH };
    let leaving = |at: &str| json!({"metadata": {"deletionTimestamp": at}});
    let name = Name::within("g", "p");
    let mut case = Case::usual().knowing(Known::Lives(run));
    case.world.change("a", &POD, &name, &leaving("1999-01-01T00:00:00Z"));
    assert_eq!(case.action(), MachineAction::Terminate("p-uid".to_owned()));
    let mut case = case.knowing(Known::Stopping { run, since: run.since });
    assert_eq!(case.settle(), "the process may still stop by itself");
    case.world.change("a", &POD, &name, &leaving("1970-01-01T00:00:00Z"));
    assert_eq!(case.action(), MachineAction::Kill("p-uid".to_owned()));
}

#[test]
fn a_pod_is_deleted_only_after_its_process() {
    let mut case = Case::usual().gone(Ending::Signal(15), 1);
    let leaving = json!({"metadata": {"deletionTimestamp": "1999-01-01T00:00:00Z"}});
    case.world.change("a", &POD, &Name::within("g", "p"), &leaving);
    case.settle();
    assert_eq!(case.world.get("a", &POD, &Name::within("g", "p")), None);
}

#[test]
fn a_pod_stays_while_another_runtime_is_about_to_start_it() {
    let mut case = Case::usual();
    let leaving = json!({"metadata": {"deletionTimestamp": "1999-01-01T00:00:00Z"}});
    case.world.change("a", &POD, &Name::within("g", "p"), &leaving);
    // Somebody has the lock, it is not this runtime, and there is no process of the pod.
    let run = Started { pid: 8, since: case.world.now };
    let machine = case.world.machines.get_mut("a").unwrap();
    machine.known.insert("another".to_owned(), Known::Lives(run));
    assert_eq!(case.settle(), "another process has the lock of the pod");
    assert!(case.world.get("a", &POD, &Name::within("g", "p")).is_some());
    // The other one died, and its lock with it.
    case.world.machines.get_mut("a").unwrap().known.clear();
    case.settle();
    assert_eq!(case.world.get("a", &POD, &Name::within("g", "p")), None);
}

#[test]
fn a_pod_without_our_finalizer_is_confirmed_with_no_grace() {
    let mut case = Case::usual().gone(Ending::Signal(15), 1);
    let leaving =
        json!({"metadata": {"deletionTimestamp": "1999-01-01T00:00:00Z", "finalizers": ["other"]}});
    case.world.change("a", &POD, &Name::within("g", "p"), &leaving);
    let Step::Act(effect) = case.world.step(&Runtime::new(BOOT).serving(Scope::All), "a", "g/p")
    else {
        panic!("nothing is done")
    };
    let Action::Write(Write::Delete { uid, grace_seconds, .. }) = effect.action else {
        panic!("no deletion")
    };
    assert_eq!((uid.as_str(), grace_seconds), ("p-uid", Some(0)));
}

#[test]
fn a_pod_waits_until_its_claim_has_its_volume_and_gets_that_very_one() {
    let mut asking = pod(json!({"command": ["x"],
        "volumeMounts": [{"name": "v", "mountPath": "/data"}]}));
    asking["spec"]["volumes"] =
        json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    let mut case = Case::of(asking, &format!("1@{BOOT}"));
    case.world.disks = Some([(("a".to_owned(), "pvc-1".to_owned()), Vec::new())].into());
    let name = Name::within("g", "data");
    let claim = json!({"metadata": {"uid": "c-uid", "labels": {"interlock.dev/grant": "g"},
        "annotations": {"interlock.dev/epoch": "0"}}});
    case.world.put(&CLAIM, name.clone(), "a", claim);
    // As it was left: a cache from before this epoch took it, or made another one.
    assert_eq!(case.settle(), "claim data is of epoch 0, and epoch 1 may run");
    let taken = json!({"metadata": {"annotations": {"interlock.dev/epoch": "1"}}});
    case.world.change("a", &CLAIM, &name, &taken);
    assert_eq!(case.settle(), "claim data has no volume yet");
    assert_eq!(
        case.status()["containerStatuses"][0]["state"]["waiting"]["reason"],
        "CreateContainerConfigError"
    );
    let bound = json!({"spec": {"volumeName": "pv-1"}, "status": {"phase": "Bound"}});
    case.world.change("a", &CLAIM, &name, &bound);
    assert_eq!(case.settle(), "volume pv-1 of claim data does not exist on this cluster");
    let volume = |driver: &str, claim: &str| {
        json!({"spec": {"csi": {"driver": driver, "volumeHandle": "pvc-1"},
            "claimRef": {"uid": claim, "namespace": "g"}}})
    };
    let at = Name::cluster_wide("pv-1");
    case.world.put(&VOLUME, at.clone(), "a", volume("other", "c-uid"));
    assert_eq!(case.settle(), "volume pv-1 of claim data is not on this machine");
    let other = volume("local.interlock.dev", "another");
    case.world.put(&VOLUME, at.clone(), "a", other);
    assert_eq!(case.settle(), "volume pv-1 is not claim data's");
    let ours = volume("local.interlock.dev", "c-uid");
    case.world.put(&VOLUME, at, "a", ours);
    assert_eq!(case.settle(), "it runs");
    let mount = &case.world.machines["a"].runs[0].mounts[0];
    assert_eq!(mount.handle.as_deref(), Some("pvc-1"));
}

#[test]
fn fields_without_effect_are_reported_once_with_the_first_start() {
    let resources = json!({"limits": {"memory": "64Mi"}});
    let container = json!({"command": ["x"], "image": "nginx", "resources": resources});
    let mut case = Case::of(pod(container), &format!("1@{BOOT}"));
    assert_eq!(case.settle(), "it runs");
    let told: Vec<&str> = case.world.events.iter().map(|event| event.reason).collect();
    assert_eq!(told, ["FieldWithoutEffect"]);
    // What a pod says of itself goes up to the hub, where its author looks.
    let conditions = case.status()["conditions"].clone();
    assert_eq!(conditions[4]["type"], "interlock.dev/FieldWithoutEffect");
    assert_eq!(conditions[4]["message"], case.world.events[0].note);
    assert!(case.world.events[0].note.ends_with("have no effect: image, resources"));
    let again = Case::of(pod(json!({"command": ["x"], "image": "nginx"})), &format!("1@{BOOT}"));
    let mut again = again.gone(Ending::Code(1), 3600);
    again.settle();
    assert!(again.world.events.is_empty(), "it was reported with the first start");
}

#[test]
fn a_process_has_the_time_that_its_pod_says_although_the_server_gives_it_none() {
    let mut case = Case::usual();
    case.settle();
    let stamp = case.world.now.to_string();
    let leaving =
        json!({"metadata": {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": 0}});
    case.world.change("a", &POD, &Name::within("g", "p"), &leaving);
    let run = Started { pid: 7, since: case.world.now };
    let mut case = case.knowing(Known::Stopping { run, since: run.since });
    for _ in 0..29 {
        assert_eq!(case.settle(), "the process may still stop by itself");
        case.world.now += jiff::SignedDuration::from_secs(1);
    }
    case.world.now += jiff::SignedDuration::from_secs(1);
    assert!(matches!(case.action(), MachineAction::Kill(_)));
}
