//! WorkloadClusters that come and go while `interlock up` runs.

use super::fleet::{GROUP, condition, interlock, place, run, until, write_kubeconfig};
use super::harness::{DataDirectory, Process, TOKEN};
use super::numbers::Numbers;
use super::processes::{left_in, signal};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A machine that is busy with other things takes longer than the 5 s that are promised.
const SERVED_WITHIN: Duration = Duration::from_secs(120);

/// `interlock up`, with one cluster, west, unless others are named.
pub(crate) struct Up {
    pub(crate) process: Process,
    at: DataDirectory,
}

impl Up {
    pub(crate) fn start() -> Up {
        Up::with("west")
    }

    /// The same with these clusters, their names with commas between them.
    pub(crate) fn with(clusters: &str) -> Up {
        Up::with_options(clusters, &[])
    }

    /// The same with further options.
    pub(crate) fn with_options(clusters: &str, options: &[&str]) -> Up {
        let at = DataDirectory::new();
        let mut command = interlock();
        command.args(["up", "--clusters", clusters, "--listen", "127.0.0.1:0", "--insecure-http"]);
        command.arg("--data-dir").arg(at.data()).arg("--token-file").arg(at.tokens());
        command.args(["--allow-root-processes", "--no-machines"]).args(options);
        let process = Process::spawn(command).ready();
        write_kubeconfig(&at.path("config"), &process.address().to_string(), TOKEN);
        Up { process, at }
    }

    /// A place of its own for a test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.at.path(name)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.process.client().call("GET", path, None).expect("the hub answers");
        if answer.status == 200 { answer.json() } else { Value::Null }
    }

    fn cluster(&self, name: &str) -> Value {
        self.get(&format!("{GROUP}/workloadclusters/{name}"))
    }

    /// Registers a cluster, as `kubectl apply` does.
    pub(crate) fn register(&self, name: &str, connection: &Value) {
        let body = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "WorkloadCluster",
            "metadata": {"name": name}, "spec": {"connection": connection},
        });
        let path = format!("{GROUP}/workloadclusters");
        self.process.client().must("POST", &path, Some(&body));
    }

    /// Registers a logical cluster and waits until it takes namespaces; its uid.
    fn serves(&self, name: &str) -> String {
        let began = Instant::now();
        self.register(name, &json!({"logicalCluster": name}));
        let uid = self.is_ready(name);
        let took = began.elapsed();
        eprintln!("{name} is served {took:?} after it was registered");
        assert!(took < SERVED_WITHIN, "{took:?}: {}", self.process.says());
        uid
    }

    fn is_ready(&self, name: &str) -> String {
        until(&format!("{name} is ready"), || {
            let cluster = self.cluster(name);
            let is_ready = condition(&cluster, "Ready")["status"] == "True";
            if is_ready {
                Ok(cluster["metadata"]["uid"].as_str().expect("it has one").to_owned())
            } else {
                Err(self.story(&cluster))
            }
        })
    }

    /// Waits until the condition Served of a cluster says this.
    fn says_of(&self, name: &str, reason: &str) -> String {
        until(&format!("{name} says {reason}"), || {
            let cluster = self.cluster(name);
            let served = condition(&cluster, "Served");
            let message = served["message"].as_str().unwrap_or_default().to_owned();
            if served["reason"] == reason { Ok(message) } else { Err(self.story(&cluster)) }
        })
    }

    fn metrics(&self) -> String {
        self.process.client().call("GET", "/metrics", None).expect("it answers").text
    }

    pub(crate) fn run(&self, args: &[&str]) -> String {
        let mut command = interlock();
        command.env("HOME", self.at.path("home")).args(args);
        command.arg("--kubeconfig").arg(self.at.path("config"));
        let said = run(command);
        assert_eq!(said.code, Some(0), "{said:#?}\n{}", self.process.says());
        said.out
    }

    fn story(&self, seen: &Value) -> String {
        format!("{seen:#}\n{}", self.process.says())
    }

    /// Deletes something, and waits until it is gone.
    pub(crate) fn delete(&self, path: &str) {
        self.process.client().must("DELETE", path, None);
        until(&format!("{path} is gone"), || {
            let found = self.get(path);
            if found.is_null() { Ok(()) } else { Err(self.story(&found)) }
        });
    }

    /// Stops it; nothing may be left, and nobody may have been refused anything.
    pub(crate) fn end(mut self) {
        self.process.signal("TERM");
        let (status, _) = self.process.end();
        let said = self.process.says();
        assert!(status.success(), "{status}: {said}");
        let left = left_in(&self.at.path(""));
        assert!(left.is_empty(), "processes are left: {left:?}\n{said}");
        let refused = said.lines().find(|line| line.contains("cannot") && line.contains("User"));
        assert_eq!(refused, None, "somebody asked for what their role does not allow");
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        self.process.kill();
        for (pid, _) in left_in(&self.at.path("")) {
            signal(pid, "KILL");
        }
    }
}

/// Waits until a namespace writes on a cluster; its grant then.
fn writes_on(up: &Up, uid: &str, cluster: &str, numbers: &Numbers) -> Value {
    let name = interlock_api::names::grant_name("ledger", uid);
    let before = numbers.last().map_or(0, |last| last.number);
    until(&format!("ledger writes on {cluster}"), || {
        let grant = up.get(&format!("{GROUP}/grants/{name}"));
        let status = &grant["status"];
        let new = numbers.last().filter(|last| last.number > before);
        let is_written = new.is_some_and(|last| status["epoch"] == last.epoch);
        let is_there = status["phase"] == "Granted" && status["owner"]["name"] == cluster;
        if is_there && is_written { Ok(grant) } else { Err(up.story(&grant)) }
    })
}

#[test]
fn a_cluster_that_is_registered_while_up_runs_is_served_and_let_go_when_it_is_deleted() {
    let up = Up::start();
    let first = up.serves("east");

    // It takes a namespace, and gives it back.
    let numbers = Numbers::in_new(up.at.path("numbers"));
    let uid = place(&mut up.process.client(), "ledger", "west", &numbers);
    writes_on(&up, &uid, "west", &numbers);
    up.run(&["move", "ledger", "--to", "east", "--wait", "--timeout", "180s"]);
    writes_on(&up, &uid, "east", &numbers);
    up.run(&["move", "ledger", "--to", "west", "--wait", "--timeout", "180s"]);
    let grant = writes_on(&up, &uid, "west", &numbers);

    // Its agent stays until the object is gone: what it has is given up by a person here.
    let east = format!("{GROUP}/workloadclusters/east");
    up.process.client().must("DELETE", &east, None);
    until("east says what it has", || {
        let cluster = up.cluster("east");
        let is_reported = condition(&cluster, "Emptied")["status"] == "False";
        if is_reported { Ok(()) } else { Err(up.story(&cluster)) }
    });
    let running = "interlock_agents{cluster=\"east\",state=\"running\"} 1";
    assert!(up.metrics().contains(running), "{}", up.metrics());
    let forget = json!({"metadata": {"annotations": {
        "interlock.dev/forget-copies": grant["metadata"]["uid"],
    }}});
    up.process.client().must("PATCH", &east, Some(&forget));
    until("the agent of east ends", || {
        let (cluster, page) = (up.cluster("east"), up.metrics());
        let lines = page.lines().filter(|line| line.contains("\"east\""));
        let left: Vec<&str> = lines.filter(|line| !line.starts_with("volsync")).collect();
        let is_over = cluster.is_null() && left.is_empty();
        if is_over { Ok(()) } else { Err(format!("{left:#?}\n{}", up.story(&cluster))) }
    });
    let said = up.process.says();
    assert!(said.contains("the agent of the cluster has ended"), "{said}");

    // Another one of the same name is served again.
    let second = up.serves("east");
    assert_ne!(first, second, "it is another cluster");
    up.run(&["move", "ledger", "--to", "east", "--wait", "--timeout", "180s"]);
    writes_on(&up, &uid, "east", &numbers);
    assert_eq!(numbers.prove_one_writer_after_another(), [1, 2, 3, 4]);
    up.delete("/api/v1/namespaces/ledger");
    up.end();
}

#[test]
fn a_cluster_that_cannot_be_served_says_why_and_holds_up_no_other() {
    let up = Up::start();
    up.register("wrong", &json!({"logicalCluster": "No Such Name"}));
    up.register("double", &json!({"logicalCluster": "west"}));
    up.register("far", &json!({"kubeconfigSecret": {"namespace": "default", "name": "far"}}));
    let why = up.says_of("wrong", "StartFailed");
    assert!(why.contains("No Such Name"), "{why}");
    let why = up.says_of("double", "LogicalClusterTaken");
    assert!(why.contains("WorkloadCluster west"), "{why}");
    assert!(up.run(&["status"]).contains("not served: "), "{}", up.run(&["status"]));
    up.serves("east");

    // An agent is replaced when it has more to carry.
    let policies = json!({
        "group": "networking.k8s.io", "version": "v1",
        "kind": "NetworkPolicy", "plural": "networkpolicies",
    });
    let more = json!({"spec": {"resources": [policies]}});
    up.process.client().must("PATCH", &format!("{GROUP}/workloadclusters/east"), Some(&more));
    until("east carries network policies", || {
        let page = up.metrics();
        let is_carried = page.contains("server=\"east\",kind=\"NetworkPolicy\"");
        let is_served = page.contains("interlock_agents{cluster=\"east\",state=\"running\"} 1");
        if is_carried && is_served { Ok(()) } else { Err(page + &up.process.says()) }
    });

    // What is elsewhere is left to whoever serves it.
    assert!(condition(&up.cluster("far"), "Served").is_null());
    let said = up.process.says();
    assert!(said.contains("the cluster is served by another program"), "{said}");

    // As soon as it can be served, it is.
    let right = json!({"spec": {"connection": {"logicalCluster": "right"}}});
    let wrong = format!("{GROUP}/workloadclusters/wrong");
    up.process.client().must("PATCH", &wrong, Some(&right));
    up.is_ready("wrong");
    up.says_of("wrong", "Serving");
    up.end();
}
