//! A hub with the kinds of placement, two clusters, and the commands that are run against it.

use super::harness::{Client, DataDirectory, TIMEOUT, TOKEN, write_kubeconfig};
use interlock_apiserver::{Config, Listening, Server, Transport};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use tokio::runtime::Runtime;

const GROUP: &str = "/apis/interlock.dev/v1alpha1";

/// A hub of its own.
///
/// It is the API server itself, in this process, so that a hub without the kinds of placement can be
/// had as well as one with them.
pub(crate) struct TestHub {
    place: DataDirectory,
    address: SocketAddr,
    _server: Server,
    _runtime: Runtime,
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// It ended like this, and said these words on standard output.
    pub(crate) fn answers(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for word in words {
            assert!(self.out.contains(word), "no {word:?} in the answer: {self:#?}");
        }
        assert!(!self.out.contains('\x1b'), "no colours into a pipe: {self:#?}");
    }

    /// It ends with a usage error, and says these words on standard error.
    pub(crate) fn refuses(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:#?}");
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in the complaint: {self:#?}");
        }
        assert!(self.out.is_empty() && !self.err.contains("panicked"), "{self:#?}");
    }
}

/// The command, with nothing of this machine around it.
pub(crate) fn interlock(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlock"));
    command.env_remove("KUBECONFIG").env("HOME", home).env("XDG_DATA_HOME", home.join("share"));
    command.env("NO_COLOR", "1").env("USER", "alice").stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command) -> Said {
    let output = command.output().expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// A schema without its rules: they have tests of their own, and a default that breaks one keeps
/// the server from starting.
fn without_rules(schema: Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(key, _)| key != "x-kubernetes-validations")
            .map(|(key, value)| (key, without_rules(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_rules).collect(),
        other => other,
    }
}

impl TestHub {
    fn with(definitions: Vec<Value>) -> Self {
        let place = DataDirectory::new();
        let config = Config {
            token_file: Some(place.tokens()),
            hub_definitions: definitions,
            ..Config::default()
        };
        let runtime = Runtime::new().expect("threads can be started");
        let (server, address) = runtime.block_on(async {
            let server = Server::start(config).await.expect("a server in memory starts");
            let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
            let listening = Listening::on(&server, anywhere, Transport::InTheClear).await;
            let listening = listening.expect("there is a free port");
            let address = listening.address();
            tokio::spawn(listening.run());
            (server, address)
        });
        write_kubeconfig(&place.path("config"), &address.to_string(), TOKEN);
        TestHub { place, address, _server: server, _runtime: runtime }
    }

    /// A hub without the kinds of placement.
    pub(crate) fn bare() -> Self {
        Self::with(Vec::new())
    }

    /// A hub with clusters `east` and `west`, which are well.
    pub(crate) fn new() -> Self {
        let definitions = interlock_api::definitions().into_iter().map(|definition| {
            let definition = serde_json::to_value(definition).expect("it has string keys only");
            without_rules(definition)
        });
        let world = Self::with(definitions.collect());
        world.cluster("east");
        world.cluster("west");
        world
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    fn cluster(&self, name: &str) {
        let body = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "WorkloadCluster",
            "metadata": {"name": name}, "spec": {"connection": {"logicalCluster": name}},
        });
        self.client().must("POST", &format!("{GROUP}/workloadclusters"), Some(&body));
        self.heard(name, true);
    }

    /// Whether a cluster sends heartbeats.
    pub(crate) fn heard(&self, name: &str, is_heard: bool) {
        let word = if is_heard { "True" } else { "False" };
        let condition = |kind: &str, status: &str| condition(kind, status, "Heartbeat", "");
        let body = json!({"status": {
            "syncer": {"instance": "1", "version": "0.1.0", "bootID": "b"},
            "conditions": [condition("Ready", "True"), condition("Reachable", word)],
        }});
        let path = format!("{GROUP}/workloadclusters/{name}/status");
        self.client().must("PATCH", &path, Some(&body));
    }

    pub(crate) fn uid_of_cluster(&self, name: &str) -> String {
        let found = self.client().must("GET", &format!("{GROUP}/workloadclusters/{name}"), None);
        found["metadata"]["uid"].as_str().expect("it has one").to_owned()
    }

    /// A namespace; says its uid.
    pub(crate) fn namespace(&self, name: &str, is_placed: bool) -> String {
        let labels = if is_placed { json!({"interlock.dev/placed": "true"}) } else { json!({}) };
        let body = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": labels, "annotations": {"theirs": "stays"}},
        });
        let made = self.client().must("POST", "/api/v1/namespaces", Some(&body));
        made["metadata"]["uid"].as_str().expect("it has one").to_owned()
    }

    /// A placed namespace with a grant; says the grant's name.
    pub(crate) fn granted(&self, namespace: &str, owner: &str, epoch: i64) -> String {
        let uid = self.namespace(namespace, true);
        let name = interlock_api::names::grant_name(namespace, &uid);
        let owner_uid = self.uid_of_cluster(owner);
        let body = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "Grant", "metadata": {"name": name},
            "spec": {
                "namespace": {"name": namespace, "uid": uid},
                "target": {"name": owner, "uid": owner_uid},
            },
        });
        self.client().must("POST", &format!("{GROUP}/grants"), Some(&body));
        self.status(&name, &json!({
            "phase": "Granted", "epoch": epoch, "owner": {"name": owner, "uid": owner_uid},
            "copies": [{"cluster": {"name": owner, "uid": owner_uid}, "epoch": epoch, "state": "Live"}],
            "conditions": [condition("Running", "True", "Started", "")],
        }));
        name
    }

    /// Changes the status of a grant.
    pub(crate) fn status(&self, grant: &str, status: &Value) {
        let path = format!("{GROUP}/grants/{grant}/status");
        self.client().must("PATCH", &path, Some(&json!({"status": status})));
    }

    pub(crate) fn annotation(&self, namespace: &str) -> Value {
        let found = self.client().must("GET", &format!("/api/v1/namespaces/{namespace}"), None);
        found["metadata"]["annotations"].clone()
    }

    pub(crate) fn get(&self, plural: &str, name: &str) -> Value {
        self.client().must("GET", &format!("{GROUP}/{plural}/{name}"), None)
    }

    pub(crate) fn list(&self, plural: &str) -> Vec<Value> {
        let list = self.client().must("GET", &format!("{GROUP}/{plural}"), None);
        list["items"].as_array().expect("a list has items").clone()
    }

    pub(crate) fn patch_status(&self, plural: &str, name: &str, status: &Value) {
        let path = format!("{GROUP}/{plural}/{name}/status");
        self.client().must("PATCH", &path, Some(&json!({"status": status})));
    }

    /// A command against this hub.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = interlock(&self.path("home"));
        command.args(args).arg("--kubeconfig").arg(self.path("config"));
        command
    }

    /// Runs a command against this hub.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        run(self.command(args))
    }

    /// Starts a command against this hub.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let err = Voice::of(child.stderr.take().expect("it is piped"));
        let out = Voice::of(child.stdout.take().expect("it is piped"));
        Running { child, out, err }
    }
}

/// A condition as it is on the wire, since just now.
pub(crate) fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    // To the second, as the API server keeps it.
    let now = jiff::Timestamp::now().round(jiff::Unit::Second).expect("it is a moment");
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now.to_string(),
    })
}

/// What a command says on one of its streams, line by line.
struct Voice {
    lines: Receiver<String>,
    heard: Vec<String>,
}

impl Voice {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                // The test may have gone on without it.
                let _ = send.send(line);
            }
        });
        Voice { lines, heard: Vec::new() }
    }

    fn wait_for(&mut self, word: &str) {
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) => self.heard.push(line),
                Err(why) => panic!("it does not say {word:?} ({why}), but {:#?}", self.heard),
            }
            if self.heard.last().is_some_and(|line| line.contains(word)) {
                return;
            }
        }
    }

    fn rest(mut self) -> String {
        self.heard.extend(self.lines.iter());
        self.heard.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    out: Voice,
    err: Voice,
}

impl Running {
    /// Waits until it says this on standard error.
    pub(crate) fn says(&mut self, word: &str) {
        self.err.wait_for(word);
    }

    /// Waits until it answers this on standard output.
    pub(crate) fn shows(&mut self, word: &str) {
        self.out.wait_for(word);
    }

    pub(crate) fn interrupt(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Said {
        let (out, err) = (self.out.rest(), self.err.rest());
        let status: ExitStatus = self.child.wait().expect("it is our child");
        Said { code: status.code(), out, err }
    }
}
