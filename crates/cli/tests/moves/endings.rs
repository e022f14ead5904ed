//! Pods that do not end well: each ends as kubelet would have it, with a reason, and no process of it is left.

use super::fleet::{GROUP, until};
use super::processes::of_run;
use super::registering::Up;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const PODS: &str = "/clusters/west/api/v1/namespaces/default/pods";
const EVENTS: &str = "/clusters/west/apis/events.k8s.io/v1/namespaces/default/events";

/// Makes a pod of one container; its uid.
fn create(up: &Up, name: &str, policy: &str, container: &Value) -> String {
    let mut container = container.clone();
    container["name"] = json!("main");
    container["image"] = json!("none");
    let pod = json!({"metadata": {"name": name}, "spec": {
        "restartPolicy": policy, "terminationGracePeriodSeconds": 2, "containers": [container],
    }});
    until(&format!("pod {name} can be made"), || {
        let made = up.process.client().call("POST", PODS, Some(&pod));
        let made = made.map_err(|why| why.to_string())?;
        let object = made.json();
        match object["metadata"]["uid"].as_str() {
            Some(uid) if made.status == 201 => Ok(uid.to_owned()),
            _ => Err(made.text),
        }
    })
}

/// Waits until the pod says this of itself and of its container; the pod.
fn until_pod(up: &Up, name: &str, what: &str, holds: impl Fn(&Value, &Value) -> bool) -> Value {
    until(&format!("{name}: {what}"), || {
        let pod = up.get(&format!("{PODS}/{name}"));
        match holds(&pod, container_of(&pod)) {
            true => Ok(pod),
            false => Err(format!("{pod:#}\n{}", up.process.says())),
        }
    })
}

/// What the status of a pod says of its container.
fn container_of(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

fn waits_for_its_backoff(container: &Value) -> bool {
    container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
}

fn restarts(container: &Value) -> u64 {
    container["restartCount"].as_u64().unwrap_or_default()
}

/// How a container ended, in three words: the reason, the exit code and the signal.
fn end(ended: &Value) -> [&Value; 3] {
    let ended = &ended["terminated"];
    [&ended["reason"], &ended["exitCode"], &ended["signal"]]
}

/// Waits until an event with this reason is there about a pod; what it says.
fn told(up: &Up, uid: &str, reason: &str) -> String {
    until(&format!("an event says {reason}"), || {
        let events = up.get(EVENTS);
        let mut all = events["items"].as_array().into_iter().flatten();
        let found = all.find(|it| it["reason"] == reason && it["regarding"]["uid"] == uid);
        let note = found.and_then(|event| event["note"].as_str());
        note.map(str::to_owned).ok_or_else(|| format!("{events:#}\n{}", up.process.says()))
    })
}

/// Deletes a pod, and finds no process of it.
fn delete(up: &Up, name: &str, uid: &str) {
    up.delete(&format!("{PODS}/{name}"));
    let left = of_run(uid);
    assert!(left.is_empty(), "processes of {name} are left: {left:?}");
}

/// How often a container was started, by the lines that it wrote.
fn lines(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().count() as u64
}

#[test]
fn a_container_that_crashes_starts_again_at_once_and_then_after_its_backoff() {
    let up = Up::start();
    let starts = up.path("starts");
    let crash = |file: &Path| {
        let script = format!("echo start >> {}; exit 7", file.display());
        json!({"command": ["sh", "-c", script]})
    };
    let uid = create(&up, "crash", "Always", &crash(&starts));
    let pod = until_pod(&up, "crash", "it backs off", |_, it| waits_for_its_backoff(it));
    let container = container_of(&pod);
    assert_eq!(end(&container["lastState"]), [&json!("Error"), &json!(7), &Value::Null], "{pod:#}");
    assert!(restarts(container) >= 1, "the first restart is at once: {pod:#}");
    assert_eq!(lines(&starts), restarts(container) + 1, "{pod:#}");
    assert_eq!(pod["status"]["phase"], "Running", "{pod:#}");
    let note = told(&up, &uid, "BackOff");
    assert!(note.contains("restarting failed container main"), "{note}");

    // One that is not to start again has failed, and stays as it ended.
    let once = up.path("once");
    let other = create(&up, "once", "Never", &crash(&once));
    let pod = until_pod(&up, "once", "it failed", |pod, _| pod["status"]["phase"] == "Failed");
    let container = container_of(&pod);
    assert_eq!(end(&container["state"]), [&json!("Error"), &json!(7), &Value::Null], "{pod:#}");
    assert_eq!((restarts(container), lines(&once)), (0, 1), "{pod:#}");
    delete(&up, "crash", &uid);
    delete(&up, "once", &other);
    up.end();
}

#[test]
fn a_command_that_cannot_be_executed_is_a_start_error() {
    let up = Up::start();
    let uid = create(&up, "missing", "Always", &json!({"command": ["no-such-program"]}));
    let pod = until_pod(&up, "missing", "it backs off", |_, it| waits_for_its_backoff(it));
    let container = container_of(&pod);
    let last = &container["lastState"];
    assert_eq!(end(last), [&json!("StartError"), &json!(128), &Value::Null], "{pod:#}");
    let message = last["terminated"]["message"].as_str().unwrap_or_default();
    let said = ["no-such-program", "No such file or directory"];
    assert!(said.iter().all(|words| message.contains(words)), "{pod:#}");
    assert!(restarts(container) >= 1, "{pod:#}");
    let note = told(&up, &uid, "Failed");
    assert!(note.starts_with("Error: ") && note.contains("no-such-program"), "{note}");

    // There is such a file, and nobody may execute it.
    let other = create(&up, "forbidden", "Never", &json!({"command": ["/dev/null"]}));
    let pod = until_pod(&up, "forbidden", "it failed", |pod, _| pod["status"]["phase"] == "Failed");
    let state = &container_of(&pod)["state"];
    assert_eq!(end(state), [&json!("StartError"), &json!(128), &Value::Null], "{pod:#}");
    let message = state["terminated"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("Permission denied"), "{pod:#}");
    delete(&up, "missing", &uid);
    delete(&up, "forbidden", &other);
    up.end();
}

#[test]
fn a_liveness_probe_that_hangs_is_a_failure_and_the_container_is_restarted() {
    let up = Up::start();
    let probe = json!({
        "exec": {"command": ["sh", "-c", "sleep 1000; true"]},
        "periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 2,
    });
    let container = json!({
        "command": ["sh", "-c", "while :; do sleep 0.1; done"], "livenessProbe": probe,
    });
    let uid = create(&up, "hangs", "Always", &container);
    let pod = until_pod(&up, "hangs", "it is restarted", |_, it| restarts(it) >= 1);
    let last = &container_of(&pod)["lastState"];
    assert_eq!(end(last), [&json!("Error"), &json!(143), &json!(15)], "{pod:#}");
    let note = told(&up, &uid, "Unhealthy");
    assert!(note.contains("liveness probe failed"), "{note}");
    // Probes are tried all the time, and each of them would have hung for a quarter of an hour.
    delete(&up, "hangs", &uid);
    up.end();
}

#[test]
fn a_process_that_ignores_sigterm_is_killed_when_its_time_is_over() {
    let up = Up::start();
    let deaf = |ready: &Path| {
        let script =
            format!("trap '' TERM; echo start >> {}; while :; do sleep 0.1; done", ready.display());
        json!({"command": ["sh", "-c", script]})
    };
    // A restart because of a probe: it fails as soon as the process listens no more.
    let ready = up.path("restarted");
    let is_not_there = format!("! test -e {}", ready.display());
    let mut restarted = deaf(&ready);
    restarted["livenessProbe"] = json!({
        "exec": {"command": ["sh", "-c", is_not_there]}, "timeoutSeconds": 10,
        "periodSeconds": 1, "failureThreshold": 1, "terminationGracePeriodSeconds": 1,
    });
    let uid = create(&up, "restarted", "Always", &restarted);
    let pod = until_pod(&up, "restarted", "it is restarted", |_, it| restarts(it) >= 1);
    let last = &container_of(&pod)["lastState"];
    assert_eq!(end(last), [&json!("Error"), &json!(137), &json!(9)], "{pod:#}");

    // A deletion: it has its grace period, and no more.
    let ready = up.path("deleted");
    let other = create(&up, "deleted", "Always", &deaf(&ready));
    until("it listens no more", || match lines(&ready) {
        0 => Err(up.process.says()),
        _ => Ok(()),
    });
    let began = Instant::now();
    delete(&up, "deleted", &other);
    // The stamp of a deletion has whole seconds.
    assert!(began.elapsed() >= Duration::from_secs(1), "it had {:?}", began.elapsed());
    delete(&up, "restarted", &uid);
    up.end();
}

#[test]
fn a_pod_that_makes_processes_all_the_time_is_deleted_with_all_of_them() {
    let up = Up::start();
    // Each leads a session of its own, leaves a sleeper behind and goes on in another one. Nobody listens to SIGTERM.
    let script = r#"trap '' TERM
        export HOP='sleep 0.1; setsid sh -c "exec sleep 1000" & setsid sh -c "$HOP" & exec sleep 1000'
        setsid sh -c "$HOP" &
        while :; do sleep 0.1; done"#;
    let uid = create(&up, "bomb", "Always", &json!({"command": ["sh", "-c", script]}));
    until("there are many", || match of_run(&uid).len() {
        0..=10 => Err(up.process.says()),
        _ => Ok(()),
    });
    delete(&up, "bomb", &uid);
    up.end();
}

/// A disk of a megabyte in the place of a folder.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn over(folder: PathBuf) -> SmallDisk {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&folder);
        let output = mount.output().expect("mount runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "only root can mount, as in `cargo xtask test-real`: {said}"
        );
        SmallDisk(folder)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
#[ignore = "mounts, so it needs root: cargo xtask test-real"]
fn a_full_disk_for_logs_ends_who_has_to_write_and_nobody_else() {
    let up = Up::start();
    let logs = until("west has a folder for logs", || {
        let west = up.get(&format!("{GROUP}/workloadclusters/west"));
        let uid = west["metadata"]["uid"].as_str().unwrap_or("none");
        let logs = up.path("data").join("clusters").join(uid).join("logs");
        if logs.is_dir() { Ok(logs) } else { Err(format!("{}", logs.display())) }
    });
    let disk = SmallDisk::over(logs);
    let beat = up.path("beat");
    let quiet = json!({"command": [
        "sh", "-c", format!("while :; do echo beat >> {}; sleep 0.1; done", beat.display()),
    ]});
    let first = create(&up, "quiet", "Always", &quiet);
    let loud = "dd if=/dev/zero bs=4096 count=1000 2> /dev/null || exit 9; exec sleep 1000";
    let uid = create(&up, "loud", "Always", &json!({"command": ["sh", "-c", loud]}));
    let pod = until_pod(&up, "loud", "it backs off", |_, it| waits_for_its_backoff(it));
    let last = &container_of(&pod)["lastState"];
    assert_eq!(end(last), [&json!("Error"), &json!(9), &Value::Null], "{pod:#}");

    // Who writes nothing goes on, and starts.
    let before = lines(&beat);
    until("the quiet one goes on", || match lines(&beat) > before {
        true => Ok(()),
        false => Err(up.process.says()),
    });
    let late = create(&up, "late", "Always", &json!({"command": ["sleep", "1000"]}));
    let pod = until_pod(&up, "late", "it runs", |_, it| it["state"]["running"].is_object());
    assert_eq!(restarts(container_of(&pod)), 0, "{pod:#}");
    let pod = up.get(&format!("{PODS}/quiet"));
    assert_eq!(restarts(container_of(&pod)), 0, "{pod:#}");
    for (name, uid) in [("quiet", first), ("loud", uid), ("late", late)] {
        delete(&up, name, &uid);
    }
    drop(disk);
    up.end();
}
