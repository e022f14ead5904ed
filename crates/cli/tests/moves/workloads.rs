//! Deployments and the like on a cluster of `interlock up`: their pods are processes, and what these say is read from
//! files outside.

use super::fleet::{GROUP, until};
use super::registering::Up;
use serde_json::{Value, json};
use std::path::Path;

const WEST: &str = "/clusters/west";

/// A Deployment whose processes say in a file which version they are; `readiness` is the command of their probe.
fn deployment(log: &Path, version: &str, replicas: u32, readiness: &str) -> Value {
    let says =
        format!("while :; do echo {version} $HOSTNAME >> {}; sleep 0.1; done", log.display());
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "web", "image": "none", "command": ["sh", "-c", says],
                    "readinessProbe": {"exec": {"command": [readiness]}, "periodSeconds": 1},
                }],
            },
        },
    }})
}

fn said(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}

/// Waits until the status of an object says this, of the object as it is.
pub(crate) fn until_status(
    up: &Up,
    path: &str,
    what: &str,
    holds: impl Fn(&Value) -> bool,
) -> Value {
    until(&format!("{path}: {what}"), || {
        let found = up.get(path);
        let (status, generation) = (&found["status"], &found["metadata"]["generation"]);
        let seen = &status["observedGeneration"];
        match holds(status) && !found.is_null() && (seen.is_null() || seen == generation) {
            true => Ok(found),
            false => {
                let base = path.split("/apis/").next().unwrap_or_default();
                let pods = up.get(&format!("{base}/api/v1/pods"));
                Err(format!("{:#}\n{:#}\n{}", found["status"], pods, up.process.says()))
            }
        }
    })
}

fn pods(up: &Up, namespace: &str) -> Vec<Value> {
    let found = up.get(&format!("{WEST}/api/v1/namespaces/{namespace}/pods"));
    found["items"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_deployment_rolls_forward_stops_at_a_bad_version_and_goes_back() {
    let up = Up::start();
    let (log, all) =
        (up.path("versions"), format!("{WEST}/apis/apps/v1/namespaces/default/deployments"));
    let path = format!("{all}/web");
    up.process.client().must("POST", &all, Some(&deployment(&log, "v1", 2, "true")));
    until_status(&up, &path, "two are available", |status| status["availableReplicas"] == 2);
    until("both say what they are", || {
        let text = said(&log);
        if text.contains("v1 ") { Ok(()) } else { Err(text) }
    });
    // Names are from a bounded set, and each pod has an owner.
    let names: Vec<String> = pods(&up, "default")
        .iter()
        .map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(names.iter().all(|name| name.starts_with("web-d")), "{names:?}");

    let second = deployment(&log, "v2", 2, "true");
    up.process.client().must("PATCH", &path, Some(&json!({"spec": second["spec"]})));
    until_status(&up, &path, "v2 is there", |status| {
        status["updatedReplicas"] == 2
            && status["availableReplicas"] == 2
            && status["replicas"] == 2
    });
    until("only v2 is said", || {
        let text = said(&log);
        if text.lines().last().is_some_and(|line| line.starts_with("v2")) {
            Ok(())
        } else {
            Err(text)
        }
    });

    // A version that never gets ready stops: no pod of the good one is given up for it beyond what is allowed.
    let third = deployment(&log, "v3", 2, "false");
    up.process.client().must("PATCH", &path, Some(&json!({"spec": third["spec"]})));
    until("v3 has begun", || {
        let text = said(&log);
        if text.contains("v3") { Ok(()) } else { Err(text) }
    });
    let held = until_status(&up, &path, "v3 is not ready", |status| {
        status["unavailableReplicas"].as_i64().unwrap_or(0) > 0
    });
    assert!(held["status"]["availableReplicas"].as_i64() >= Some(1), "{held:#}");
    assert!(pods(&up, "default").len() <= 3, "never more than desired and one more");

    up.process.client().must("PATCH", &path, Some(&json!({"spec": second["spec"]})));
    until_status(&up, &path, "v2 is back", |status| {
        status["updatedReplicas"] == 2
            && status["availableReplicas"] == 2
            && status["replicas"] == 2
    });
    up.delete(&path);
    until("no pod is left", || {
        let left = pods(&up, "default");
        if left.is_empty() { Ok(()) } else { Err(format!("{left:#?}\n{}", up.process.says())) }
    });
    up.end();
}

#[test]
fn a_job_runs_to_its_end_and_a_stateful_set_has_one_pod_for_each_ordinal() {
    let up = Up::start();
    let marker = up.path("ran");
    let jobs = format!("{WEST}/apis/batch/v1/namespaces/default/jobs");
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {
        "completions": 2, "parallelism": 1,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{
            "name": "once", "image": "none",
            "command": ["sh", "-c", format!("echo ran >> {}", marker.display())]}]}}}});
    up.process.client().must("POST", &jobs, Some(&job));
    let done = until_status(&up, &format!("{jobs}/once"), "it is complete", |status| {
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|it| it["type"] == "Complete" && it["status"] == "True")
    });
    assert_eq!(done["status"]["succeeded"], 2, "{done:#}");
    assert_eq!(said(&marker).lines().count(), 2);

    let sets = format!("{WEST}/apis/apps/v1/namespaces/default/statefulsets");
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {
        "replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "db", "image": "none", "command": ["sleep", "3600"]}]}}}});
    up.process.client().must("POST", &sets, Some(&set));
    until_status(&up, &format!("{sets}/db"), "both are ready", |status| {
        status["readyReplicas"] == 2
    });
    let mut names: Vec<String> = pods(&up, "default")
        .iter()
        .filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
        .filter(|name| name.starts_with("db-"))
        .collect();
    names.sort();
    assert_eq!(names, ["db-0", "db-1"]);
    up.end();
}

#[test]
fn a_placed_deployment_runs_on_its_owner_and_stops_with_the_grant() {
    let up = Up::start();
    let log = up.path("versions");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"interlock.dev/placed": "true"}}});
    up.process.client().must("POST", "/api/v1/namespaces", Some(&namespace));
    let all = "/apis/apps/v1/namespaces/shop/deployments";
    up.process.client().must("POST", all, Some(&deployment(&log, "v1", 1, "true")));
    // The hub shows what the owner reports.
    until_status(&up, &format!("{all}/web"), "it is available", |status| {
        status["availableReplicas"] == 1
    });
    up.delete("/api/v1/namespaces/shop");
    let before = said(&log).lines().count();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(said(&log).lines().count(), before, "a process wrote after its namespace was gone");
    let grants = up.get(&format!("{GROUP}/grants"));
    assert_eq!(grants["items"].as_array().map(Vec::len), Some(0), "{grants:#}");
    up.end();
}

#[test]
fn without_a_default_runtime_class_a_pod_runs_only_if_it_names_the_class() {
    let up = Up::with_options("west", &["--no-default-runtime-class"]);
    let all = format!("{WEST}/api/v1/namespaces/default/pods");
    let pod = |name: &str, class: &Value| {
        let container = json!({"name": "main", "image": "none", "command": ["sleep", "1000"]});
        let spec = json!({"runtimeClassName": class, "terminationGracePeriodSeconds": 1,
            "containers": [container]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        until(&format!("pod {name} can be made"), || {
            let made = up.process.client().call("POST", &all, Some(&pod));
            let made = made.map_err(|why| why.to_string())?;
            if made.status == 201 { Ok(()) } else { Err(made.text) }
        });
    };
    pod("without", &Value::Null);
    pod("with", &json!("interlock-process"));
    until("the pod of the class runs", || {
        let found = up.get(&format!("{all}/with"));
        let is_running = found["status"]["phase"] == "Running";
        if is_running { Ok(()) } else { Err(format!("{found:#}\n{}", up.process.says())) }
    });
    // It was made first, and nothing has touched it: it is for whatever else runs pods there.
    let found = up.get(&format!("{all}/without"));
    assert_eq!(found["status"]["phase"], "Pending", "{found:#}");
    assert!(found["metadata"]["finalizers"].is_null(), "{found:#}");
    up.delete(&format!("{all}/with"));
    up.delete(&format!("{all}/without"));
    up.end();
}
