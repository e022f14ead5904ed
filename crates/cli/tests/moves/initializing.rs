//! Pods with init containers: in order, once each, with logs of their own; also when `interlock up` is killed.

use super::fleet::{interlock, until};
use super::harness::{DataDirectory, Process};
use super::processes::{left_in, of_run, signal};
use super::registering::Up;
use serde_json::{Value, json};
use std::path::Path;

const PODS: &str = "/clusters/west/api/v1/namespaces/default/pods";

fn get(up: &Process, path: &str) -> Value {
    let answer = up.client().call("GET", path, None).expect("the hub answers");
    if answer.status == 200 { answer.json() } else { Value::Null }
}

/// A container that runs this script.
fn container(name: &str, script: &str) -> Value {
    json!({
        "name": name, "image": "none", "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "work", "mountPath": "/work"}],
    })
}

/// A pod of these init containers and a container.
fn spec(policy: &str, inits: &[Value], main: &Value) -> Value {
    json!({
        "restartPolicy": policy, "terminationGracePeriodSeconds": 2,
        "volumes": [{"name": "work", "emptyDir": {}}],
        "initContainers": inits, "containers": [main],
    })
}

/// Makes a pod; its uid.
fn create(up: &Process, name: &str, spec: &Value) -> String {
    let pod = json!({"metadata": {"name": name}, "spec": spec});
    until(&format!("pod {name} can be made"), || {
        let made = up.client().call("POST", PODS, Some(&pod)).map_err(|why| why.to_string())?;
        match made.json()["metadata"]["uid"].as_str() {
            Some(uid) if made.status == 201 => Ok(uid.to_owned()),
            _ => Err(made.text),
        }
    })
}

/// Waits until the status of a pod says this; the status.
fn until_status(up: &Process, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    until(&format!("{name}: {what}"), || {
        let pod = get(up, &format!("{PODS}/{name}"));
        let status = pod["status"].clone();
        if holds(&status) { Ok(status) } else { Err(format!("{pod:#}\n{}", up.says())) }
    })
}

fn is_running(status: &Value) -> bool {
    status["phase"] == "Running" && status["containerStatuses"][0]["state"]["running"].is_object()
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

/// Waits until the log of a container says this.
fn until_logged(up: &Process, name: &str, container: &str, expected: &str) {
    until(&format!("{container} of {name} wrote {expected:?}"), || {
        let path = format!("{PODS}/{name}/log?container={container}");
        let answer = up.client().call("GET", &path, None).map_err(|why| why.to_string())?;
        if answer.text == expected { Ok(()) } else { Err(answer.text) }
    });
}

fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn init_containers_run_in_order_and_each_until_it_succeeds() {
    let up = Up::start();
    let fetch = container("fetch", "echo fetched; echo one > work/file");
    // The first time it fails.
    let fill = container(
        "fill",
        "test -e work/tried || { touch work/tried; exit 3; }; cat work/file; echo two >> work/file",
    );
    let main = container("main", "cat work/file; exec sleep 1000");
    let uid = create(&up.process, "web", &spec("Always", &[fetch, fill], &main));
    let status = until_status(&up.process, "web", "it runs", is_running);
    let inits = status["initContainerStatuses"].as_array().expect("there are two");
    for (init, restarts) in inits.iter().zip([0, 1]) {
        let end = &init["state"]["terminated"];
        assert_eq!((&end["reason"], &end["exitCode"]), (&json!("Completed"), &json!(0)));
        assert_eq!((&init["ready"], &init["restartCount"]), (&json!(true), &json!(restarts)));
    }
    assert_eq!(inits.len(), 2, "{status:#}");
    assert_eq!(inits[1]["lastState"]["terminated"]["exitCode"], 3, "{status:#}");
    assert_eq!(condition(&status, "Initialized")["status"], "True", "{status:#}");
    for (container, expected) in [("fetch", "fetched\n"), ("fill", "one\n"), ("main", "one\ntwo\n")]
    {
        until_logged(&up.process, "web", container, expected);
    }
    up.delete(&format!("{PODS}/web"));
    for run in [uid.clone(), format!("{uid}~fetch"), format!("{uid}~fill")] {
        assert_eq!(of_run(&run), [0; 0], "processes of {run} are left");
    }
    up.end();
}

#[test]
fn a_pod_is_not_ready_while_an_init_container_runs_and_is_deleted_with_it() {
    let up = Up::start();
    let wait = container("wait", "echo waits; exec sleep 1000");
    let main = container("main", "exec sleep 1000");
    let uid = create(&up.process, "web", &spec("Always", &[wait], &main));
    let status = until_status(&up.process, "web", "the init container runs", |status| {
        status["initContainerStatuses"][0]["state"]["running"].is_object()
    });
    let main = &status["containerStatuses"][0];
    assert_eq!(main["state"]["waiting"]["reason"], "PodInitializing", "{status:#}");
    assert_eq!(status["phase"], "Pending", "{status:#}");
    let initialized = condition(&status, "Initialized");
    assert_eq!(initialized["reason"], "ContainersNotInitialized", "{status:#}");
    assert_eq!(condition(&status, "Ready")["status"], "False", "{status:#}");
    until_logged(&up.process, "web", "wait", "waits\n");
    assert_eq!(of_run(&uid), [0; 0], "the container was started beside its init container");
    let run = format!("{uid}~wait");
    assert!(!of_run(&run).is_empty(), "{status:#}");
    up.delete(&format!("{PODS}/web"));
    assert_eq!(of_run(&run), [0; 0], "processes of the init container are left");
    up.end();
}

#[test]
fn an_init_container_that_fails_fails_a_pod_that_is_never_restarted() {
    let up = Up::start();
    let breaks = container("breaks", "exit 5");
    let main = container("main", "echo never");
    let uid = create(&up.process, "once", &spec("Never", &[breaks], &main));
    let failed = |status: &Value| status["phase"] == "Failed";
    let status = until_status(&up.process, "once", "it failed", failed);
    let end = &status["initContainerStatuses"][0]["state"]["terminated"];
    assert_eq!((&end["reason"], &end["exitCode"]), (&json!("Error"), &json!(5)), "{status:#}");
    let main = &status["containerStatuses"][0];
    assert_eq!(main["state"]["waiting"]["reason"], "PodInitializing", "{status:#}");
    assert_eq!(condition(&status, "Initialized")["status"], "False", "{status:#}");
    assert_eq!(of_run(&uid), [0; 0], "the container was started");
    up.delete(&format!("{PODS}/once"));
    up.end();
}

/// Kills what a test left behind.
struct Guard<'a>(&'a DataDirectory);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        for (pid, _) in left_in(&self.0.path("")) {
            signal(pid, "KILL");
        }
    }
}

fn start(at: &DataDirectory) -> Process {
    let mut command = interlock();
    command.args(["up", "--clusters", "west", "--listen", "127.0.0.1:0", "--insecure-http"]);
    command.arg("--data-dir").arg(at.data()).arg("--token-file").arg(at.tokens());
    command.args(["--allow-root-processes", "--no-machines"]);
    Process::spawn(command).ready()
}

#[test]
fn an_init_container_that_is_done_does_not_run_again_after_a_crash() {
    let at = DataDirectory::new();
    let _guard = Guard(&at);
    let (ran, go) = (at.path("ran"), at.path("go"));
    let note = |name: &str| format!("echo {name} >> {}", ran.display());
    // Bounded, so that it ends even if the test does not.
    let wait = format!(
        "{}; for i in $(seq 6000); do test -e {} && exit 0; sleep 0.1; done; exit 1",
        note("second"),
        go.display()
    );
    let mut first = start(&at);
    let inits = [container("first", &note("first")), container("second", &wait)];
    let main = container("main", &format!("{}; while :; do sleep 0.1; done", note("main")));
    let uid = create(&first, "web", &spec("Always", &inits, &main));
    until("the second init container runs", || match lines(&ran).len() {
        0 | 1 => Err(first.says()),
        _ => Ok(()),
    });
    first.kill();
    let mut second = start(&at);
    let running =
        |status: &Value| status["initContainerStatuses"][1]["state"]["running"].is_object();
    until_status(&second, "web", "the second init container still runs", running);
    assert_eq!(lines(&ran), ["first", "second"]);
    std::fs::write(&go, "").expect("it is written");
    until_status(&second, "web", "it runs", is_running);
    until("the container runs", || match lines(&ran).last().map(String::as_str) {
        Some("main") => Ok(()),
        _ => Err(second.says()),
    });
    // Nobody saw how the second one ended, so it may have run again; the first one is done.
    let ran = lines(&ran);
    assert_eq!(ran.iter().filter(|line| *line == "first").count(), 1, "{ran:?}");
    assert_eq!(ran.iter().filter(|line| *line == "main").count(), 1, "{ran:?}");
    second.client().must("DELETE", &format!("{PODS}/web"), None);
    until("its processes are gone", || {
        let left: Vec<u32> =
            [of_run(&uid), of_run(&format!("{uid}~second"))].into_iter().flatten().collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}\n{}", second.says())) }
    });
    second.signal("TERM");
    let (status, _) = second.end();
    assert!(status.success(), "{status}: {}", second.says());
}
