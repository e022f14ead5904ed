//! Tests of the runtime: what it asks, does and says about one pod.

use super::Runtime;
use super::decide::{Asked, Decision, Description, Facts, Lock, Permit, Pod, Process, decide};
use super::outside::{Action as MachineAction, Ending, Known, Started};
use super::tokens::Tokens;
use crate::kinds::{CLAIM, NAMESPACE, POD, VOLUME};
use crate::syncer::tenancy::Running;
use crate::syncer::tests::world::{BOOT, TestFleet};
use interlock_kernel::{Action, Name, Step, Write};
use serde_json::{Value, json};

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
        match self.world.step(&Runtime::new(BOOT), "a", "g/p") {
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

#[test]
fn a_pod_that_is_gone_is_not_started_whatever_the_cache_shows() {
    let facts = |is_pod_there| {
        Facts::Asked(Asked {
            pod: Pod::Wanted,
            has_finalizer: true,
            process: Process::None,
            lock: Lock::Mine,
            is_permit_seen: true,
            is_stray_lock_held: false,
            permit: Some(Permit { is_pod_there, running: Running::Permitted(1), released: 0 }),
            description: Description::Complete,
            has_fields_without_effect: false,
            reported: None,
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
    for change in [
        json!({"spec": {"runtimeClassName": "other"}}),
        json!({"metadata": {"labels": {"interlock.dev/grant": null}}}),
    ] {
        let mut case = Case::usual();
        case.world.change("a", &POD, &Name::within("g", "p"), &change);
        assert!(!case.turn());
        assert!(case.settle().starts_with("the pod is not in the cache"));
    }
}

#[test]
fn what_is_not_supported_is_said_and_not_left_out() {
    let mut case = Case::of(
        pod(json!({"command": ["x"], "lifecycle": {"preStop": {}}})),
        &format!("1@{BOOT}"),
    );
    case.settle();
    assert!(!case.is_started());
    assert_eq!(case.status()["reason"], "NotSupported");
    let said = "not supported for a process: lifecycle; the pod was not started";
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
fn a_pod_that_leaves_is_asked_to_stop_and_killed_when_its_time_is_over() {
    let run = Started { pid: 7, since: jiff::Timestamp::UNIX_EPOCH };
    let leaving = |at: &str| json!({"metadata": {"deletionTimestamp": at}});
    let name = Name::within("g", "p");
    let mut case = Case::usual().knowing(Known::Lives(run));
    case.world.change("a", &POD, &name, &leaving("1999-01-01T00:00:00Z"));
    assert_eq!(case.action(), MachineAction::Terminate("p-uid".to_owned()));
    let mut case = case.knowing(Known::Stopping(run));
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
    let Step::Act(effect) = case.world.step(&Runtime::new(BOOT), "a", "g/p") else {
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
    let mut case = case.knowing(Known::Stopping(run));
    for _ in 0..29 {
        assert_eq!(case.settle(), "the process may still stop by itself");
        case.world.now += jiff::SignedDuration::from_secs(1);
    }
    case.world.now += jiff::SignedDuration::from_secs(1);
    assert!(matches!(case.action(), MachineAction::Kill(_)));
}
