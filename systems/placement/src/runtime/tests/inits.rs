//! Pods with init containers.

use super::*;

const FIRST: &str = "p-uid~first";
const SECOND: &str = "p-uid~second";

/// A pod with two init containers.
fn initialized() -> Value {
    let mut asking = pod(json!({"command": ["serve"]}));
    asking["spec"]["initContainers"] = json!([
        {"name": "first", "command": ["fetch"], "volumeMounts": [{"name": "e", "mountPath": "/out"}]},
        {"name": "second", "command": ["migrate"], "env": [{"name": "A", "value": "1"}]},
    ]);
    asking["spec"]["volumes"] = json!([{"name": "e", "emptyDir": {}}]);
    asking
}

impl Case {
    fn initializing() -> Case {
        Case::of(initialized(), &format!("1@{BOOT}"))
    }

    /// The process of this run ended, a second after it was started.
    fn ends(&mut self, run: &str, ending: Ending) {
        let since = self.world.now;
        self.world.now += jiff::SignedDuration::from_secs(1);
        let finished = Some(self.world.now);
        let gone = Known::Gone { run: Started { pid: 7, since }, ending, finished };
        self.world.machines.get_mut("a").unwrap().known.insert(run.to_owned(), gone);
    }

    fn started(&self) -> Vec<&str> {
        self.world.machines["a"].runs.iter().map(|run| run.id.as_str()).collect()
    }

    fn init(&self, number: usize) -> Value {
        self.status()["initContainerStatuses"][number].clone()
    }

    fn condition(&self, kind: &str) -> Value {
        let status = self.status();
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.find(|condition| condition["type"] == kind).cloned().unwrap_or_default()
    }
}

#[test]
fn init_containers_run_one_after_another_and_then_the_container() {
    let mut case = Case::initializing();
    assert_eq!(case.settle(), "it runs");
    assert_eq!(case.started(), [FIRST]);
    let run = &case.world.machines["a"].runs[0];
    assert_eq!((run.command[0].as_str(), run.files.len()), ("fetch", 1));
    assert_eq!(run.lock.pod, "p-uid", "files and tokens are those of the pod");
    assert_eq!(case.status()["phase"], "Pending");
    assert!(case.init(0)["state"]["running"].is_object(), "{:#}", case.status());
    assert_eq!(case.init(1)["state"]["waiting"]["reason"], "PodInitializing");
    let main = &case.status()["containerStatuses"][0];
    assert_eq!(main["state"]["waiting"]["reason"], "PodInitializing");
    let condition = case.condition("Initialized");
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("False"), &json!("ContainersNotInitialized"),)
    );
    assert_eq!(condition["message"], "containers with incomplete status: [first second]");
    assert_eq!(case.condition("Ready")["reason"], "ContainersNotReady");

    case.ends(FIRST, Ending::Code(0));
    // First what ended is reported, and then the next one starts.
    assert!(case.turn());
    assert_eq!(case.started(), [FIRST]);
    let end = &case.init(0)["state"]["terminated"];
    assert_eq!((&end["reason"], &end["exitCode"]), (&json!("Completed"), &json!(0)));
    assert_eq!(case.init(0)["ready"], true);
    assert_eq!(case.settle(), "it runs");
    assert_eq!(case.started(), [FIRST, SECOND]);
    assert_eq!(case.world.machines["a"].runs[1].env["A"], "1");
    let condition = case.condition("Initialized");
    assert_eq!(condition["message"], "containers with incomplete status: [second]");

    case.ends(SECOND, Ending::Code(0));
    assert_eq!(case.settle(), "it runs");
    assert_eq!(case.started(), [FIRST, SECOND, "p-uid"]);
    assert_eq!(case.status()["phase"], "Running");
    assert_eq!(case.condition("Initialized")["status"], "True");
    assert_eq!(case.condition("Ready")["status"], "True");
    for number in [0, 1] {
        assert_eq!(case.init(number)["state"]["terminated"]["reason"], "Completed");
    }
}

#[test]
fn an_init_container_whose_record_was_lost_starts_again_and_none_before_it() {
    let mut case = Case::initializing();
    case.settle();
    case.ends(FIRST, Ending::Code(0));
    case.settle();
    // The agent died between the end of one start and the next.
    case.world.machines.get_mut("a").unwrap().known.remove(SECOND);
    assert_eq!(case.settle(), "it runs");
    assert_eq!(case.started(), [FIRST, SECOND, SECOND]);
}

#[test]
fn an_init_container_that_fails_starts_again_with_backoff() {
    let mut case = Case::initializing();
    case.settle();
    case.ends(FIRST, Ending::Code(3));
    assert_eq!(case.settle(), "it runs");
    assert_eq!(case.started(), [FIRST, FIRST]);
    assert_eq!(case.init(0)["restartCount"], 1);
    assert_eq!(case.init(0)["lastState"]["terminated"]["exitCode"], 3);
    case.ends(FIRST, Ending::Code(3));
    assert_eq!(case.settle(), "the pod restarts after its backoff");
    assert_eq!(case.status()["phase"], "Pending");
    assert_eq!(case.init(0)["state"]["waiting"]["reason"], "CrashLoopBackOff");
    let told = case.world.events.last().expect("an event");
    assert_eq!(told.reason, "BackOff");
    assert!(told.note.contains("container first"), "{}", told.note);
    // It succeeds after all: what went before is not forgotten.
    case.world.now += jiff::SignedDuration::from_secs(10);
    assert_eq!(case.settle(), "it runs");
    case.ends(FIRST, Ending::Code(0));
    assert_eq!(case.settle(), "it runs");
    assert_eq!(case.started(), [FIRST, FIRST, FIRST, SECOND]);
    let first = case.init(0);
    assert_eq!((&first["restartCount"], &first["ready"]), (&json!(2), &json!(true)));
    assert_eq!(first["lastState"]["terminated"]["exitCode"], 3, "{first:#}");
}

#[test]
fn an_init_container_that_fails_fails_a_pod_that_is_never_restarted() {
    let mut asking = initialized();
    asking["spec"]["restartPolicy"] = json!("Never");
    let mut case = Case::of(asking, &format!("1@{BOOT}"));
    case.settle();
    case.ends(FIRST, Ending::Code(0));
    case.settle();
    case.ends(SECOND, Ending::Code(5));
    assert_eq!(case.settle(), "the pod has finished, and is not restarted");
    assert_eq!(case.started(), [FIRST, SECOND]);
    assert_eq!(case.status()["phase"], "Failed");
    let end = &case.init(1)["state"]["terminated"];
    assert_eq!((&end["reason"], &end["exitCode"]), (&json!("Error"), &json!(5)));
    assert_eq!(case.condition("Initialized")["status"], "False");
    assert_eq!(case.condition("Ready")["reason"], "PodFailed");
    let main = &case.status()["containerStatuses"][0];
    assert_eq!(main["state"]["waiting"]["reason"], "PodInitializing");
}

#[test]
fn a_container_that_starts_again_does_not_run_the_init_containers_again() {
    let mut case = Case::initializing();
    for run in [FIRST, SECOND, "p-uid"] {
        assert_eq!(case.settle(), "it runs");
        let code = if run == "p-uid" { 1 } else { 0 };
        case.ends(run, Ending::Code(code));
    }
    // Not even if the machine has lost what it knew of them.
    for run in [FIRST, SECOND] {
        case.world.machines.get_mut("a").unwrap().known.remove(run);
    }
    assert_eq!(case.settle(), "it runs");
    assert_eq!(case.started(), [FIRST, SECOND, "p-uid", "p-uid"]);
    assert_eq!(case.status()["containerStatuses"][0]["restartCount"], 1);
    assert_eq!(case.init(0)["state"]["terminated"]["reason"], "Completed");
}

#[test]
fn a_pod_that_leaves_is_stopped_by_the_run_that_it_is_at() {
    let mut case = Case::initializing();
    case.settle();
    let leaving = json!({"metadata": {"deletionTimestamp": "1999-01-01T00:00:00Z"}});
    case.world.change("a", &POD, &Name::within("g", "p"), &leaving);
    assert_eq!(case.action(), MachineAction::Terminate(FIRST.to_owned()));
    case.ends(FIRST, Ending::Signal(15));
    case.settle();
    assert_eq!(case.world.get("a", &POD, &Name::within("g", "p")), None);
}

#[test]
fn an_init_container_that_outlived_its_pod_is_stopped() {
    let mut case = Case::usual();
    let known = Known::Lives(Started { pid: 8, since: jiff::Timestamp::UNIX_EPOCH });
    let (pod, run) = ("old-uid".to_owned(), "old-uid~setup".to_owned());
    let machine = case.world.machines.get_mut("a").unwrap();
    machine.known.insert(run.clone(), known);
    machine.holder = Some(Holder { pod, run: run.clone(), known });
    assert_eq!(case.action(), MachineAction::Terminate(run));
}

#[test]
fn what_an_init_container_misses_is_said_of_it() {
    let mut asking = initialized();
    asking["spec"]["initContainers"][1]["envFrom"] = json!([{"configMapRef": {"name": "c"}}]);
    let mut case = Case::of(asking, &format!("1@{BOOT}"));
    assert_eq!(case.settle(), "it runs");
    case.ends(FIRST, Ending::Code(0));
    assert_eq!(case.settle(), "ConfigMap c does not exist on this cluster");
    assert_eq!(case.init(0)["state"]["terminated"]["reason"], "Completed");
    assert_eq!(case.init(1)["state"]["waiting"]["reason"], "CreateContainerConfigError");
    let config = json!({"data": {"B": "2"}});
    case.world.put(&crate::kinds::CONFIG_MAP, Name::within("g", "c"), "a", config);
    assert_eq!(case.settle(), "it runs");
    assert_eq!(case.started(), [FIRST, SECOND]);
    assert_eq!(case.world.machines["a"].runs[1].env["B"], "2");
}

#[test]
fn probes_do_not_end_an_init_container() {
    let mut asking = initialized();
    asking["spec"]["containers"][0]["livenessProbe"] = json!({"tcpSocket": {"port": 80}});
    let mut case = Case::of(asking, &format!("1@{BOOT}"));
    let dead = Verdicts { liveness: Some(Verdict::Failure), ..Verdicts::default() };
    case.world.machines.get_mut("a").unwrap().verdicts = dead;
    assert_eq!(case.settle(), "it runs");
    assert!(case.world.machines["a"].lives());
    assert_eq!(case.started(), [FIRST]);
}

#[test]
fn a_sidecar_is_refused_in_words() {
    let mut asking = initialized();
    asking["spec"]["initContainers"][0]["restartPolicy"] = json!("Always");
    let mut case = Case::of(asking, &format!("1@{BOOT}"));
    case.settle();
    assert!(!case.is_started());
    assert_eq!(case.status()["reason"], "NotSupported");
    assert_eq!(case.init(0)["state"]["waiting"]["reason"], "NotSupported");
    let said = "not supported for a process: init container first: restartPolicy Always (a \
                sidecar; run it as a pod of its own); the pod was not started";
    assert_eq!(case.status()["message"], said);
}
