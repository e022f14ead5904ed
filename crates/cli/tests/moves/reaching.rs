//! Logs of pods at the hub, commands in them and their ports: where the owner of the namespace runs them, and nowhere else.

use super::fleet::{GROUP, until};
use super::harness::TOKEN;
use super::registering::Up;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

const SHOP: &str = "/api/v1/namespaces/shop";

/// Says once which run of which pod it is, and does not hear SIGTERM.
const SCRIPT: &str = "trap '' TERM; echo run $INTERLOCK_RUN; while :; do sleep 0.1; done";

/// A pod that runs a script. By the last word of its command it is found if it is left.
fn pod(up: &Up, name: &str, script: &str) -> Value {
    let command = json!(["sh", "-c", script, up.path(name).display().to_string()]);
    json!({"metadata": {"name": name}, "spec": {
        "runtimeClassName": "interlock-process",
        "terminationGracePeriodSeconds": 15,
        "containers": [{"name": "main", "image": "none", "command": command}],
    }})
}

/// A namespace at the hub that is placed on west; its name on the clusters.
fn place(up: &Up) -> String {
    let body = json!({"metadata": {
        "name": "shop", "labels": {"interlock.dev/placed": "true"},
        "annotations": {"interlock.dev/cluster": "west"},
    }});
    let made = up.process.client().must("POST", "/api/v1/namespaces", Some(&body));
    let uid = made["metadata"]["uid"].as_str().expect("it has one");
    interlock_api::names::grant_name("shop", uid)
}

/// What the hub answers to `kubectl logs`.
fn log(up: &Up, path: &str) -> (u16, String) {
    let answer = up.process.client().call("GET", &format!("{path}/log"), None);
    let answer = answer.expect("the hub answers");
    (answer.status, answer.text)
}

/// Waits until the log at the hub is that of the pod on this cluster; the uid of that one.
fn until_log_of(up: &Up, cluster: &str, downstream: &str) -> String {
    until(&format!("the log is that of the pod on {cluster}"), || {
        let there = format!("/clusters/{cluster}/api/v1/namespaces/{downstream}/pods/web");
        let uid = up.get(&there)["metadata"]["uid"].as_str().unwrap_or("none").to_owned();
        match log(up, &format!("{SHOP}/pods/web")) {
            (200, text) if text.starts_with(&format!("run {uid}/")) => Ok(uid),
            (code, text) => Err(format!("{code} {text}, {there}: {uid}\n{}", up.process.says())),
        }
    })
}

/// Waits until the log of a pod at the hub is refused in these words.
fn until_refused(up: &Up, pod: &str, word: &str) {
    until(&format!("{pod}: {word}"), || match log(up, &format!("{SHOP}/pods/{pod}")) {
        (400, text) if text.contains(word) => Ok(()),
        (code, text) => Err(format!("{code} {text}\n{}", up.process.says())),
    });
}

/// What a command in the pod at the hub writes, with all that comes over the connection.
fn exec(up: &Up, script: &str) -> String {
    let mut stream = TcpStream::connect(up.process.address()).expect("the hub listens");
    stream.set_read_timeout(Some(super::harness::TIMEOUT)).expect("it is a socket");
    let head = format!(
        "GET {SHOP}/pods/web/exec?command=sh&command=-c&command={script}&stdout=true HTTP/1.1\r\n\
         host: hub\r\nauthorization: Bearer {TOKEN}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         sec-websocket-protocol: v4.channel.k8s.io\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it is open");
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("the hub closes it");
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn pods_at_the_hub_are_reached_where_the_owner_runs_them_and_nowhere_else() {
    let up = Up::with("west,east");
    let downstream = place(&up);
    up.process.client().must("POST", &format!("{SHOP}/pods"), Some(&pod(&up, "web", SCRIPT)));
    let first = until_log_of(&up, "west", &downstream);
    let said = exec(&up, "echo%20in%20$INTERLOCK_RUN");
    assert!(said.starts_with("HTTP/1.1 101 "), "{said}");
    assert!(said.contains(&format!("in {first}/")), "{said}");

    // Whoever has no right to it at the hub has none through the hub.
    let path = format!("{SHOP}/pods/web/log");
    let refused = up.process.client().acting_as("stranger").call("GET", &path, None);
    assert_eq!(refused.expect("the hub answers").status, 403);

    // A pod of the same name there that was not made from this one is not this one.
    let there = format!("/clusters/west/api/v1/namespaces/{downstream}/pods");
    let own = pod(&up, "own", "exec sleep 1000");
    up.process.client().must("POST", &there, Some(&own));
    up.process.client().must("POST", &format!("{SHOP}/pods"), Some(&own));
    until_refused(&up, "own", "was not made from it");
    up.delete(&format!("{SHOP}/pods/own"));
    up.delete(&format!("{there}/own"));

    // In a namespace that is not placed no pod runs, and the answer says what to do.
    let alone = "/api/v1/namespaces/default/pods";
    up.process.client().must("POST", alone, Some(&pod(&up, "alone", SCRIPT)));
    let (code, text) = log(&up, &format!("{alone}/alone"));
    assert!(code == 400 && text.contains("interlock.dev/placed=true"), "{code} {text}");

    // While the namespace moves nobody answers for its pods; afterwards the new owner does.
    let east = json!({"metadata": {"annotations": {"interlock.dev/cluster": "east"}}});
    up.process.client().must("PATCH", SHOP, Some(&east));
    until_refused(&up, "web", "namespace shop is moving");
    let second = until_log_of(&up, "east", &downstream);
    assert_ne!(first, second, "it is another pod");
    up.delete(SHOP);
    up.end();
}

#[test]
fn a_pod_on_a_cluster_outside_of_the_hub_has_to_be_asked_for_there() {
    let up = Up::start();
    let downstream = place(&up);
    up.process.client().must("POST", &format!("{SHOP}/pods"), Some(&pod(&up, "web", SCRIPT)));
    until_log_of(&up, "west", &downstream);
    let far = json!({"spec": {"connection": {
        "logicalCluster": null, "kubeconfigSecret": {"namespace": "default", "name": "far"},
    }}});
    up.process.client().must("PATCH", &format!("{GROUP}/workloadclusters/west"), Some(&far));
    until_refused(&up, "web", &format!("--namespace {downstream}"));
}
