//! A fleet of processes: `interlock serve`, `interlock controllers`, and one `interlock syncer` for
//! each cluster.

use super::harness::{Client, DataDirectory, Process, TOKEN};
pub(crate) use super::harness::{until, write_kubeconfig};
use super::numbers::Numbers;
use super::processes::{left_in, signal};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

pub(crate) const GROUP: &str = "/apis/interlock.dev/v1alpha1";
/// The server.
pub(crate) const HUB: &str = "hub";
/// The process that has the hub's controllers; all others are called like their cluster.
pub(crate) const CONTROLLERS: &str = "controllers";
const BINARY: &str = env!("CARGO_BIN_EXE_interlock");

/// A hub, its controllers, and clusters with their syncers.
pub(crate) struct Fleet {
    hub: Mutex<Process>,
    agents: Agents,
    /// The last, so that what is left can be killed before its directory goes.
    place: DataDirectory,
    is_ended: bool,
}

/// The controllers and the syncers, which come and go.
struct Agents {
    running: Mutex<BTreeMap<String, Child>>,
    directory: PathBuf,
    /// Whether each cluster has a disk of its own, as on machines of their own.
    are_apart: bool,
    cloud: Option<Cloud>,
}

/// The cloud account of a fleet.
pub(crate) struct Cloud {
    /// How the controllers are started for it.
    pub(crate) options: Vec<String>,
    /// Their credentials.
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl Agents {
    /// Starts the controllers, or the syncer of a cluster. What it says goes to a file.
    fn start(&self, name: &str) {
        let mut command = interlock();
        if name == CONTROLLERS {
            command.args([CONTROLLERS, "--no-install", "--unreachable-after", "4s"]);
            if let Some(cloud) = &self.cloud {
                command.args(&cloud.options).envs(cloud.variables.iter().cloned());
            }
        } else {
            command.args(["syncer", name, "--runtime", "process", "--allow-root-processes"]);
            command.args(["--updates", "--no-install", "--heartbeat-every", "1s", "--state-dir"]);
            command.arg(self.state(name));
            command.arg("--cluster-kubeconfig").arg(self.config(name, "cluster"));
        }
        command.args(["--lease", "1s", "--metrics-listen", "127.0.0.1:0"]);
        command.arg("--kubeconfig").arg(self.config(name, "hub"));
        let log = File::options().create(true).append(true).open(self.log(name));
        command.stderr(log.expect("the directory is ours"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("the binary runs");
        let before = self.running().insert(name.to_owned(), child);
        assert!(before.is_none(), "{name} runs already");
    }

    /// Stops one of them in the middle of whatever it does, and lets it be forgotten.
    fn freeze(&self, name: &str) {
        let mut running = self.running();
        let child = running.remove(name).expect("it runs");
        signal(child.id(), "STOP");
        let number = running.len();
        running.insert(format!("{name}, frozen {number}"), child);
    }

    /// Lets those that were stopped go on, as if nothing had happened.
    fn thaw(&self) {
        for child in self.running().values() {
            signal(child.id(), "CONT");
        }
    }

    /// Takes the life of one of them, and leaves it dead.
    fn kill(&self, name: &str) {
        let mut child = self.running().remove(name).expect("it runs");
        child.kill().expect("it is our child");
        child.wait().expect("it is our child");
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Child>> {
        self.running.lock().expect("nobody panics with it")
    }

    /// What somebody is known by at the hub, or on its cluster.
    fn config(&self, name: &str, at: &str) -> PathBuf {
        self.directory.join(format!("{name}.{at}.config"))
    }

    /// Where the syncer of a cluster has its volumes and notes.
    fn state(&self, name: &str) -> PathBuf {
        let all = self.directory.join("state");
        if self.are_apart { all.join(name) } else { all }
    }

    fn log(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.log"))
    }
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    #[allow(dead_code, reason = "it is shown when a test fails")]
    pub(crate) err: String,
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command) -> Said {
    let output = command.stdin(Stdio::null()).output().expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// The command, with nothing of this machine around it.
pub(crate) fn interlock() -> Command {
    let mut command = Command::new(BINARY);
    command.env_remove("KUBECONFIG").env_remove("RUST_LOG").env("NO_COLOR", "1");
    command.env("USER", "alice");
    command
}

/// What a program counts that says in its log where.
pub(crate) fn metrics_of(log: &Path) -> String {
    let says = std::fs::read_to_string(log).expect("it says something");
    let line = says.lines().rfind(|line| line.contains("serving metrics"));
    let url = line.and_then(|line| line.split_once("http://"));
    let address = url.and_then(|(_, rest)| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("no address in {says}"));
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("it reads");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("it answers");
    page
}

impl Fleet {
    /// A fleet with these clusters, all of them ready.
    pub(crate) fn of(clusters: &[&str]) -> Fleet {
        Fleet::made(clusters, false, None)
    }

    /// The same, with cloud identities.
    #[allow(dead_code, reason = "the tests of identities use it")]
    pub(crate) fn with_cloud(clusters: &[&str], cloud: Cloud) -> Fleet {
        Fleet::made(clusters, false, Some(cloud))
    }

    /// The same, with clusters that share no folder.
    pub(crate) fn apart(clusters: &[&str]) -> Fleet {
        Fleet::made(clusters, true, None)
    }

    fn made(clusters: &[&str], are_apart: bool, cloud: Option<Cloud>) -> Fleet {
        let place = DataDirectory::new();
        let hub = place.start();
        write_kubeconfig(&place.path("config"), &hub.address().to_string(), TOKEN);
        let (running, directory) = (Mutex::default(), place.path(""));
        let agents = Agents { running, directory, are_apart, cloud };
        let fleet = Fleet { hub: Mutex::new(hub), agents, place, is_ended: false };
        fleet.apply("", &["hub"]);
        if fleet.agents.cloud.is_some() {
            let kinds = interlock_api::identity_definitions();
            let kinds = kinds.iter().map(|it| serde_json::to_value(it).expect("it is JSON"));
            fleet.create("", &kinds.collect::<Vec<_>>());
            fleet.apply("", &["identities"]);
        }
        fleet.admit(CONTROLLERS, "hub", "", "interlock-controllers");
        fleet.start(CONTROLLERS);
        for name in clusters {
            fleet.register(name);
            fleet.apply("", &["access", name, "--updates"]);
            fleet.admit(name, "hub", "", &format!("interlock-syncer-{name}"));
            let there = format!("/clusters/{name}");
            fleet.apply(&there, &["cluster", name, "--with-runtime", "--updates"]);
            fleet.admit(name, "cluster", &there, "interlock-syncer");
            fleet.start(name);
        }
        for name in clusters {
            until(&format!("cluster {name} is ready"), || {
                let cluster = fleet.get(&format!("{GROUP}/workloadclusters/{name}"));
                let ready = condition(&cluster, "Ready");
                if ready["status"] == "True" { Ok(()) } else { Err(fleet.story(&cluster)) }
            });
        }
        fleet
    }

    /// Applies manifests as the administrator of a cluster would.
    fn apply(&self, cluster: &str, args: &[&str]) {
        self.client().apply_manifests(cluster, args);
    }

    fn create(&self, cluster: &str, objects: &[Value]) {
        objects.iter().for_each(|object| self.client().make(cluster, object));
    }

    /// A token of an account at the hub (``) or on a cluster (`/clusters/west`).
    pub(crate) fn token(&self, cluster: &str, account: &str) -> String {
        self.client().token_of(cluster, account)
    }

    /// Lets a program in as an account, which has the rights that the manifests give it.
    fn admit(&self, name: &str, at: &str, cluster: &str, account: &str) {
        let server = format!("{}{cluster}", self.hub().address());
        write_kubeconfig(&self.agents.config(name, at), &server, &self.token(cluster, account));
    }

    fn register(&self, name: &str) {
        let made = |path: &str, body: &Value| {
            until(&format!("{name} can be made"), || {
                let answer = self.client().call("POST", path, Some(body));
                let answer = answer.map_err(|why| why.to_string())?;
                if answer.status < 300 { Ok(()) } else { Err(self.story(&answer.json())) }
            });
        };
        let kind = |kind: &str, spec: Value| {
            json!({
                "apiVersion": "interlock.dev/v1alpha1", "kind": kind,
                "metadata": {"name": name}, "spec": spec,
            })
        };
        made(&format!("{GROUP}/logicalclusters"), &kind("LogicalCluster", json!({})));
        let spec = json!({"connection": {"logicalCluster": name}});
        made(&format!("{GROUP}/workloadclusters"), &kind("WorkloadCluster", spec));
    }

    /// Starts the controllers, or the syncer of a cluster.
    pub(crate) fn start(&self, name: &str) {
        self.agents.start(name);
    }

    /// What the controllers or a syncer count, as Prometheus would read it.
    pub(crate) fn metrics(&self, name: &str) -> String {
        metrics_of(&self.agents.log(name))
    }

    /// Takes the life of the controllers or of a syncer, and leaves it dead.
    pub(crate) fn kill(&self, name: &str) {
        self.agents.kill(name);
    }

    /// Stops the controllers or a syncer in the middle of whatever it does; another one may be
    /// started.
    pub(crate) fn freeze(&self, name: &str) {
        self.agents.freeze(name);
    }

    /// Lets those that were stopped go on, as if nothing had happened.
    pub(crate) fn thaw(&self) {
        self.agents.thaw();
    }

    pub(crate) fn client(&self) -> Client {
        self.hub().client()
    }

    /// Where the server is.
    #[allow(dead_code, reason = "the tests of identities use it")]
    pub(crate) fn address(&self) -> SocketAddr {
        self.hub().address()
    }

    fn hub(&self) -> MutexGuard<'_, Process> {
        // A test that fails while it has it still shows what it says.
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the life of the server, as a power cut would, and starts it again on what is on the
    /// disk, after a while.
    pub(crate) fn kill_hub(&self, away: Duration) {
        let mut hub = self.hub();
        hub.kill();
        thread::sleep(away);
        *hub = self.place.start_again_on(hub.address());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    /// A directory for a writer.
    pub(crate) fn numbers(&self) -> Numbers {
        Numbers::in_new(self.path("numbers"))
    }

    /// An object, or null.
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.client().call("GET", path, None).expect("the hub answers");
        if answer.status == 200 { answer.json() } else { Value::Null }
    }

    /// What was seen, with the last that everybody said.
    pub(crate) fn story(&self, seen: &Value) -> String {
        let mut story = format!("{seen:#}");
        for name in [CONTROLLERS, "west", "east", "north"] {
            let log = std::fs::read_to_string(self.agents.log(name)).unwrap_or_default();
            // Heartbeats come every second, and would push out all else.
            let is_news =
                |line: &&str| !line.contains("placement/heartbeat") && !line.contains("heartbeat");
            let lines: Vec<&str> = log.lines().filter(is_news).collect();
            let last = lines[lines.len().saturating_sub(40)..].join("\n  ");
            story += &format!("\n{name} says:\n  {last}");
        }
        story
    }

    /// A placed namespace with nothing in it; its uid.
    pub(crate) fn place_empty(&self, namespace: &str, cluster: &str) -> String {
        placed(&mut self.client(), namespace, cluster)
    }

    /// A placed namespace with a writer in it; its uid.
    pub(crate) fn place(&self, namespace: &str, cluster: &str, numbers: &Numbers) -> String {
        place(&mut self.client(), namespace, cluster, numbers)
    }

    /// The same, with a claim `data` that the writer mounts.
    pub(crate) fn place_with_claim(
        &self,
        namespace: &str,
        cluster: &str,
        numbers: &Numbers,
    ) -> String {
        let uid = placed(&mut self.client(), namespace, cluster);
        let path = format!("/api/v1/namespaces/{namespace}");
        self.client().must("POST", &format!("{path}/persistentvolumeclaims"), Some(&claim("1Mi")));
        let pod = with_claim(writer(numbers));
        self.client().must("POST", &format!("{path}/pods"), Some(&pod));
        uid
    }

    /// The folders of all volumes on a cluster.
    pub(crate) fn volumes(&self, cluster: &str) -> Vec<PathBuf> {
        let found = self.get(&format!("{GROUP}/workloadclusters/{cluster}"));
        let uid = found["metadata"]["uid"].as_str().expect("it has one");
        self.folders(cluster, "volumes", uid)
    }

    /// The folders of all snapshots on a cluster.
    pub(crate) fn snapshots(&self, cluster: &str) -> Vec<PathBuf> {
        let found = self.get(&format!("{GROUP}/workloadclusters/{cluster}"));
        self.folders(cluster, "snapshots", found["metadata"]["uid"].as_str().expect("it has one"))
    }

    /// What is whole: all else has a dot before its name.
    fn folders(&self, cluster: &str, sort: &str, uid: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.agents.state(cluster).join(sort).join(uid));
        let paths = entries.into_iter().flatten().map(|entry| entry.expect("readable").path());
        let is_whole = |path: &PathBuf| {
            let name = path.file_name().expect("it has a name").to_string_lossy();
            !name.starts_with('.')
        };
        paths.filter(is_whole).collect()
    }

    /// A placed namespace with a writer that writes into its claim `data`, and acknowledges outside;
    /// its uid.
    pub(crate) fn place_in_claim(
        &self,
        namespace: &str,
        cluster: &str,
        numbers: &Numbers,
    ) -> String {
        let command = json!([BINARY, "write-numbers", numbers.directory(), "--into", "data"]);
        self.place_command(namespace, cluster, &command)
    }

    /// A placed namespace with a claim `data`, and a pod that runs a command beside it; its uid.
    pub(crate) fn place_command(&self, namespace: &str, cluster: &str, command: &Value) -> String {
        let uid = placed(&mut self.client(), namespace, cluster);
        let path = format!("/api/v1/namespaces/{namespace}");
        self.client().must("POST", &format!("{path}/persistentvolumeclaims"), Some(&claim("16Mi")));
        let pod = with_claim(pod(command));
        self.client().must("POST", &format!("{path}/pods"), Some(&pod));
        uid
    }

    pub(crate) fn place_on(&self, namespace: &str, cluster: &str) {
        let body = json!({"metadata": {"annotations": {"interlock.dev/cluster": cluster}}});
        self.client().must("PATCH", &format!("/api/v1/namespaces/{namespace}"), Some(&body));
    }

    /// The grant of a namespace, or null.
    pub(crate) fn grant(&self, namespace: &str, uid: &str) -> Value {
        let name = interlock_api::names::grant_name(namespace, uid);
        self.get(&format!("{GROUP}/grants/{name}"))
    }

    /// Waits until the writer writes on this cluster; the grant then.
    pub(crate) fn writes_on(&self, namespace: &str, uid: &str, cluster: &str) -> Value {
        let numbers = self.numbers();
        let before = numbers.last().map_or(0, |record| record.number);
        until(&format!("{namespace} writes on {cluster}"), || {
            let grant = self.grant(namespace, uid);
            let status = &grant["status"];
            let is_there = status["phase"] == "Granted" && status["owner"]["name"] == cluster;
            numbers.prove_that_none_met();
            let new = numbers.last().filter(|record| record.number > before);
            let is_written = new.is_some_and(|record| status["epoch"] == record.epoch);
            if is_there && is_written {
                return Ok(grant);
            }
            let name = interlock_api::names::downstream_namespace(namespace, uid);
            let pods = self.get(&format!("/clusters/{cluster}/api/v1/namespaces/{name}/pods"));
            let last = format!("{:?}", numbers.last());
            Err(self.story(&json!([grant, self.downstream(cluster, namespace, uid), pods, last])))
        })
    }

    /// The namespace on a cluster that a hub namespace with this uid has, or null.
    pub(crate) fn downstream(&self, cluster: &str, namespace: &str, uid: &str) -> Value {
        let name = interlock_api::names::downstream_namespace(namespace, uid);
        self.get(&format!("/clusters/{cluster}/api/v1/namespaces/{name}"))
    }

    /// Runs a command against this fleet.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        let mut command = interlock();
        command.env("HOME", self.path("home")).args(args);
        command.arg("--kubeconfig").arg(self.path("config"));
        run(command)
    }

    /// Deletes a namespace, and waits until it is gone.
    pub(crate) fn delete(&self, namespace: &str) {
        let path = format!("/api/v1/namespaces/{namespace}");
        self.client().must("DELETE", &path, None);
        until(&format!("{namespace} is gone"), || {
            let found = self.get(&path);
            let grants = self.get(&format!("{GROUP}/grants"));
            if found.is_null() { Ok(()) } else { Err(self.story(&json!([found, grants]))) }
        });
    }

    /// Tells everybody to stop; nothing may be left of them. Before that, the namespaces go: a
    /// process outlives its syncer, on purpose, but not its namespace.
    pub(crate) fn end(mut self, namespaces: &[&str]) {
        for namespace in namespaces {
            self.delete(namespace);
        }
        let mut agents = std::mem::take(&mut *self.agents.running());
        for child in agents.values() {
            signal(child.id(), "TERM");
        }
        for (name, child) in &mut agents {
            let status = until(&format!("{name} stops"), || match child.try_wait() {
                Ok(Some(status)) => Ok(status),
                other => Err(format!("{other:?}")),
            });
            assert!(status.success(), "{name}: {status}: {}", self.story(&Value::Null));
        }
        let mut hub = self.hub();
        hub.signal("TERM");
        assert!(hub.end().0.success(), "{}", hub.says());
        drop(hub);
        self.is_ended = true;
        let left = left_in(&self.path(""));
        assert!(left.is_empty(), "processes are left: {left:?}");
        for name in agents.keys() {
            let log = std::fs::read_to_string(self.agents.log(name)).unwrap_or_default();
            let refused = log.lines().find(|line| line.contains("cannot") && line.contains("User"));
            assert_eq!(refused, None, "{name} asked for what its role does not allow");
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.agents.running().values_mut().for_each(|child| {
            let _ = child.kill();
            let _ = child.wait();
        });
        for (pid, _) in left_in(&self.path("")) {
            signal(pid, "KILL");
        }
        assert!(self.is_ended || thread::panicking(), "a test of a fleet ends it");
    }
}

/// A placed namespace with a writer in it; its uid.
pub(crate) fn place(
    client: &mut Client,
    namespace: &str,
    cluster: &str,
    numbers: &Numbers,
) -> String {
    let uid = placed(client, namespace, cluster);
    client.must("POST", &format!("/api/v1/namespaces/{namespace}/pods"), Some(&writer(numbers)));
    uid
}

/// A placed namespace; its uid.
fn placed(client: &mut Client, namespace: &str, cluster: &str) -> String {
    let body = json!({"metadata": {
        "name": namespace,
        "labels": {"interlock.dev/placed": "true"},
        "annotations": {"interlock.dev/cluster": cluster},
    }});
    let made = client.must("POST", "/api/v1/namespaces", Some(&body));
    made["metadata"]["uid"].as_str().expect("it has one").to_owned()
}

/// A pod that writes numbers.
fn writer(numbers: &Numbers) -> Value {
    pod(&json!([BINARY, "write-numbers", numbers.directory()]))
}

fn pod(command: &Value) -> Value {
    json!({
        "metadata": {"name": "writer"},
        "spec": {
            "runtimeClassName": "interlock-process",
            "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "writer", "image": "none", "command": command}],
        },
    })
}

/// The same, with the claim `data` at `/data`.
fn with_claim(mut pod: Value) -> Value {
    pod["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    pod
}

fn claim(size: &str) -> Value {
    json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    })
}

/// A condition of an object, or null.
pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found.cloned().unwrap_or_default()
}
