//! Evictions under a PodDisruptionBudget: no more pods are evicted than it allows, as the API server and the
//! controller of budgets see to it together.

use super::fleet::until;
use super::harness::Answer;
use super::registering::Up;
use super::workloads::until_status;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const PODS: &str = "/clusters/west/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/clusters/west/apis/apps/v1/namespaces/default/deployments";
const BUDGETS: &str = "/clusters/west/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A Deployment whose pods get ready when the file `hold` is gone. Each says so with a file that has its uid, since the
/// next pod may have the name of one before.
fn deployment(ready: &Path, hold: &Path) -> Value {
    let (ready, hold) = (ready.display(), hold.display());
    let serves = format!(
        "while test -e {hold}; do sleep 0.1; done; touch {ready}/$POD_UID; exec sleep 1000"
    );
    let is_ready = format!("test -e {ready}/$POD_UID");
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "web", "image": "none", "command": ["sh", "-c", serves],
                "env": [{"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
                "readinessProbe": {
                    "exec": {"command": ["sh", "-c", is_ready]},
                    "periodSeconds": 1, "timeoutSeconds": 10,
                },
            }],
        }},
    }})
}

fn name_of(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().expect("a pod has a name")
}

/// The pods that are not being deleted.
fn pods(up: &Up) -> Vec<Value> {
    let mut found = up.get(PODS)["items"].as_array().cloned().unwrap_or_default();
    found.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    found
}

fn evict(up: &Up, pod: &Value) -> Answer {
    let body = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name_of(pod)},
    });
    let path = format!("{PODS}/{}/eviction", name_of(pod));
    up.process.client().call("POST", &path, Some(&body)).expect("the server answers")
}

/// Nobody may evict this pod, and it stays what it was.
fn is_refused(up: &Up, pod: &Value) {
    let answer = evict(up, pod);
    let status = answer.json();
    assert_eq!((answer.status, &status["reason"]), (429, &json!("TooManyRequests")), "{status:#}");
    assert_eq!(status["details"]["causes"][0]["reason"], "DisruptionBudget", "{status:#}");
    let found = up.get(&format!("{PODS}/{}", name_of(pod)));
    assert_eq!(found["metadata"]["uid"], pod["metadata"]["uid"], "{found:#}");
    assert!(found["metadata"]["deletionTimestamp"].is_null(), "{found:#}");
}

#[test]
fn a_second_pod_is_evicted_only_when_the_replacement_of_the_first_is_ready() {
    let up = Up::start();
    let (ready, hold) = (up.path("ready"), up.path("hold"));
    fs::create_dir(&ready).expect("the directory is ours");
    let spec = json!({"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}});
    let budget = json!({"metadata": {"name": "web"}, "spec": spec});
    up.process.client().must("POST", BUDGETS, Some(&budget));
    up.process.client().must("POST", DEPLOYMENTS, Some(&deployment(&ready, &hold)));
    let budget = format!("{BUDGETS}/web");
    let says = |what: &str, healthy: u64, allowed: u64| {
        until_status(&up, &budget, what, |status| {
            status["currentHealthy"] == healthy && status["disruptionsAllowed"] == allowed
        })
    };
    let seen = says("one of three may be evicted", 3, 1);
    let status = &seen["status"];
    assert_eq!((&status["expectedPods"], &status["desiredHealthy"]), (&json!(3), &json!(2)));
    assert_eq!(status["conditions"][0]["reason"], "SufficientPods", "{seen:#}");

    // From now on no pod gets ready.
    fs::write(&hold, "").expect("the directory is ours");
    let before = pods(&up);
    assert_eq!(before.len(), 3, "{before:#?}");
    let answer = evict(&up, &before[0]);
    assert_eq!(answer.status, 201, "{}", answer.text);
    is_refused(&up, &before[1]);
    let seen = says("none of two may be evicted", 2, 0);
    assert_eq!(seen["status"]["conditions"][0]["reason"], "InsufficientPods", "{seen:#}");
    let is_old =
        |pod: &&Value| before.iter().any(|old| old["metadata"]["uid"] == pod["metadata"]["uid"]);
    until("the replacement runs", || {
        let now = pods(&up);
        let is_there = now
            .iter()
            .filter(|pod| !is_old(pod))
            .any(|pod| pod["status"]["containerStatuses"][0]["state"]["running"].is_object());
        if is_there { Ok(()) } else { Err(format!("{now:#?}\n{}", up.process.says())) }
    });
    is_refused(&up, &before[1]);

    fs::remove_file(&hold).expect("it is there");
    let seen = says("one of three may be evicted again", 3, 1);
    let noted = seen["status"]["disruptedPods"].as_object().map_or(0, serde_json::Map::len);
    assert_eq!(noted, 0, "the first is gone: {seen:#}");
    let answer = evict(&up, &before[1]);
    assert_eq!(answer.status, 201, "{}", answer.text);
    says("all are replaced", 3, 1);
    up.delete(&format!("{DEPLOYMENTS}/web"));
    until("no pod is left", || {
        let left = up.get(PODS)["items"].as_array().map_or(0, Vec::len);
        if left == 0 { Ok(()) } else { Err(format!("{left}\n{}", up.process.says())) }
    });
    up.end();
}
