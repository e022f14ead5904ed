//! A fleet of one or two workload clusters in one process, and the namespaces of its users.

use super::contents::{Contents, contents};
use super::harness::{Client, DataDirectory, Process, TOKEN, interlock, until};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// The workload cluster that there always is.
pub(crate) const WEST: &str = "/clusters/west";
pub(crate) const VOLSYNC: &str = "volsync.backube/v1alpha1";
const SNAPSHOTS: &str = "/apis/snapshot.storage.k8s.io/v1";
pub(crate) const PASSWORD: &str = "correct horse";
const HEALTHY: &str = "interlock.dev/Healthy";

/// `interlock up`, which is asked to stop when it is dropped.
pub(crate) struct Up {
    process: Mutex<Process>,
    place: DataDirectory,
    /// The names of its workload clusters.
    clusters: &'static str,
}

impl Up {
    /// A fleet with one workload cluster, `west`.
    pub(crate) fn start() -> Up {
        Up::start_in(DataDirectory::new())
    }

    /// A fleet with two of them, `west` and `east`.
    pub(crate) fn start_two() -> Up {
        Up::start_with("west,east", DataDirectory::new())
    }

    /// A fleet with one, where something was prepared.
    pub(crate) fn start_in(place: DataDirectory) -> Up {
        Up::start_with("west", place)
    }

    fn start_with(clusters: &'static str, place: DataDirectory) -> Up {
        let process = Mutex::new(Process::spawn(command(&place, clusters)).ready());
        Up { process, place, clusters }
    }

    /// The same, without the right of root to read what it may not read.
    pub(crate) fn start_like_anybody() -> Up {
        let place = DataDirectory::new();
        let clusters = "west";
        let own = command(&place, clusters);
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-dac_override,-dac_read_search"]);
        command.arg(own.get_program()).args(own.get_args()).env("NO_COLOR", "1");
        let process = Mutex::new(Process::spawn(if is_root() { command } else { own }).ready());
        Up { process, place, clusters }
    }

    /// Stops it in the middle of whatever it does.
    pub(crate) fn freeze(&self) {
        self.process.lock().expect("nobody panics with it").signal("STOP");
    }

    /// Takes its life, and leaves it dead.
    pub(crate) fn kill(&self) {
        self.process.lock().expect("nobody panics with it").kill();
    }

    /// Takes its life, as a power cut would, and starts it again on what is on the disk.
    pub(crate) fn kill_and_start_again(&self) {
        let mut process = self.process.lock().expect("nobody panics with it");
        process.kill();
        *process = Process::spawn(command(&self.place, self.clusters)).ready();
    }

    pub(crate) fn client(&self) -> Client {
        self.process.lock().expect("nobody panics with it").client()
    }

    /// A path beside the data of the fleet.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    /// An object, or null.
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.client().call("GET", path, None).expect("the server answers");
        if answer.status == 200 { answer.json() } else { Value::Null }
    }

    /// A namespace on the workload cluster.
    pub(crate) fn namespace(&self, name: &str) -> Space<'_> {
        let body = json!({"metadata": {"name": name}});
        self.client().must("POST", &format!("{WEST}/api/v1/namespaces"), Some(&body));
        Space { up: self, cluster: "west", name: name.to_owned() }
    }

    /// A placed namespace with a claim `data`, and a pod that runs a script beside it: where it is
    /// on the workload cluster `west`.
    pub(crate) fn place(&self, name: &str, script: &str) -> Space<'_> {
        let labels = json!({"interlock.dev/placed": "true"});
        let desired = json!({"interlock.dev/cluster": "west"});
        let namespace =
            json!({"metadata": {"name": name, "labels": labels, "annotations": desired}});
        let made = self.client().must("POST", "/api/v1/namespaces", Some(&namespace));
        let uid = made["metadata"]["uid"].as_str().expect("it has one");
        let path = format!("/api/v1/namespaces/{name}");
        let claims = format!("{path}/persistentvolumeclaims");
        self.client().must("POST", &claims, Some(&claim("data", "16Mi")));
        let pod = json!({"metadata": {"name": "writer"}, "spec": {
            "runtimeClassName": "interlock-process", "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "writer", "image": "none", "command": ["sh", "-c", script],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        }});
        self.client().must("POST", &format!("{path}/pods"), Some(&pod));
        let name = interlock_api::names::downstream_namespace(name, uid);
        Space { up: self, cluster: "west", name }
    }

    /// Asks for a placed namespace on another cluster.
    pub(crate) fn place_on(&self, namespace: &str, cluster: &str) {
        let desired = json!({"metadata": {"annotations": {"interlock.dev/cluster": cluster}}});
        self.client().must("PATCH", &format!("/api/v1/namespaces/{namespace}"), Some(&desired));
    }

    /// A folder of a workload cluster: `volumes`, `snapshots`.
    fn folder(&self, cluster: &str, sort: &str) -> PathBuf {
        let path = format!("/apis/interlock.dev/v1alpha1/workloadclusters/{cluster}");
        let cluster = self.get(&path);
        let uid = cluster["metadata"]["uid"].as_str().expect("it has one");
        self.place.data().join(sort).join(uid)
    }

    /// Runs a command of ours against this fleet: how it ends, and what it says.
    pub(crate) fn run(&self, args: &[&str]) -> (Option<i32>, String) {
        let server = self.process.lock().expect("nobody panics with it").address();
        let config = self.place.path("config");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: hub\n\
             clusters:\n- name: hub\n  cluster: {{server: \"http://{server}\"}}\n\
             contexts:\n- name: hub\n  context: {{cluster: hub, user: operator}}\n\
             users:\n- name: operator\n  user: {{token: {TOKEN}}}\n"
        );
        std::fs::write(&config, text).expect("the directory is ours");
        let mut command = interlock();
        command.args(args).arg("--kubeconfig").arg(config).env("NO_COLOR", "1");
        let output = command.output().expect("the binary runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Up {
    /// So that no pod outlives it.
    fn drop(&mut self) {
        let Ok(mut process) = self.process.lock() else { return };
        if !process.is_killed() {
            process.signal("CONT");
            process.signal("TERM");
            process.end();
        }
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id runs");
    output.stdout.trim_ascii() == b"0"
}

fn command(place: &DataDirectory, clusters: &str) -> Command {
    let mut command = interlock();
    command.env_remove("RUST_LOG").env("NO_COLOR", "1");
    command.args(["up", "--clusters", clusters, "--listen", "127.0.0.1:0", "--insecure-http"]);
    command.args(["--allow-root-processes", "--no-machines"]);
    command.arg("--data-dir").arg(place.data()).arg("--token-file").arg(place.tokens());
    command
}

/// A namespace of a user on a workload cluster.
#[derive(Clone)]
pub(crate) struct Space<'a> {
    pub(crate) up: &'a Up,
    pub(crate) cluster: &'static str,
    pub(crate) name: String,
}

impl Space<'_> {
    fn path(&self, api: &str, plural: &str) -> String {
        format!("/clusters/{}{api}/namespaces/{}/{plural}", self.cluster, self.name)
    }

    /// The paths of the kinds that users have here.
    fn of(&self, kind: &str) -> String {
        match kind {
            "Secret" => self.path("/api/v1", "secrets"),
            "PersistentVolumeClaim" => self.path("/api/v1", "persistentvolumeclaims"),
            "VolumeSnapshot" => self.path(SNAPSHOTS, "volumesnapshots"),
            "ReplicationSource" => self.path(&format!("/apis/{VOLSYNC}"), "replicationsources"),
            "ReplicationDestination" => {
                self.path(&format!("/apis/{VOLSYNC}"), "replicationdestinations")
            }
            other => panic!("{other} is not used here"),
        }
    }

    pub(crate) fn create(&self, kind: &str, object: &Value) -> Value {
        self.up.client().must("POST", &self.of(kind), Some(&typed(kind, object)))
    }

    pub(crate) fn change(&self, kind: &str, name: &str, change: &Value) {
        self.up.client().must("PATCH", &format!("{}/{name}", self.of(kind)), Some(change));
    }

    pub(crate) fn delete(&self, kind: &str, name: &str) {
        self.up.client().must("DELETE", &format!("{}/{name}", self.of(kind)), None);
    }

    /// An object, or null.
    pub(crate) fn get(&self, kind: &str, name: &str) -> Value {
        self.up.get(&format!("{}/{name}", self.of(kind)))
    }

    pub(crate) fn all(&self, kind: &str) -> Vec<Value> {
        self.up.get(&self.of(kind))["items"].as_array().cloned().unwrap_or_default()
    }

    // What users write.

    pub(crate) fn secret(&self, name: &str, repository: &str, password: &str) {
        let data = json!({"RESTIC_REPOSITORY": repository, "RESTIC_PASSWORD": password});
        self.create("Secret", &json!({"metadata": {"name": name}, "stringData": data}));
    }

    /// A Secret `repo` for a repository beside the data of the fleet; where that is.
    pub(crate) fn repository(&self) -> PathBuf {
        let path = self.up.path(&format!("repository-{}", self.name));
        self.secret("repo", &path.to_string_lossy(), PASSWORD);
        path
    }

    /// An empty claim.
    pub(crate) fn claim(&self, name: &str, size: &str) {
        self.create("PersistentVolumeClaim", &claim(name, size));
    }

    /// A claim that is filled from a destination, with further fields of its spec.
    pub(crate) fn claim_of(&self, destination: &str, name: &str, further: &Value) -> Value {
        let mut object = claim(name, "16Mi");
        object["spec"]["dataSourceRef"] = json!({
            "apiGroup": "volsync.backube", "kind": "ReplicationDestination", "name": destination,
        });
        for (key, value) in further.as_object().expect("fields of a spec") {
            object["spec"][key] = value.clone();
        }
        self.create("PersistentVolumeClaim", &object)
    }

    /// A backup of claim `data` into `repo`, with further fields of the mover.
    pub(crate) fn source(&self, name: &str, tag: &str, further: &Value) {
        let mut restic = json!({"repository": "repo", "copyMethod": "Snapshot"});
        for (key, value) in further.as_object().expect("fields of a mover") {
            restic[key] = value.clone();
        }
        self.create(
            "ReplicationSource",
            &json!({
                "metadata": {"name": name},
                "spec": {"sourcePVC": "data", "trigger": {"manual": tag}, "restic": restic},
            }),
        );
    }

    /// A destination that brings back what is in `repo`, with further fields of the mover.
    pub(crate) fn destination(&self, name: &str, tag: &str, further: &Value) {
        let mut restic = json!({
            "repository": "repo", "copyMethod": "Snapshot", "capacity": "16Mi",
            "accessModes": ["ReadWriteOnce"],
        });
        for (key, value) in further.as_object().expect("fields of a mover") {
            restic[key] = value.clone();
        }
        self.create(
            "ReplicationDestination",
            &json!({
                "metadata": {"name": name}, "spec": {"trigger": {"manual": tag}, "restic": restic},
            }),
        );
    }

    /// Sets another tag.
    pub(crate) fn trigger(&self, kind: &str, name: &str, tag: &str) {
        self.change(kind, name, &json!({"spec": {"trigger": {"manual": tag}}}));
    }

    // What users see.

    /// Waits until a tag is answered; the object then.
    pub(crate) fn answers(&self, kind: &str, name: &str, tag: &str) -> Value {
        until(&format!("{kind} {name} answers {tag}"), || {
            let object = self.get(kind, name);
            if object["status"]["lastManualSync"] == tag {
                Ok(object)
            } else {
                Err(self.story(&object))
            }
        })
    }

    /// Waits until the condition Healthy is False for this reason; its message.
    pub(crate) fn fails(&self, kind: &str, name: &str, reason: &str) -> String {
        until(&format!("{kind} {name} fails: {reason}"), || {
            let object = self.get(kind, name);
            let healthy = condition(&object, HEALTHY);
            let fails = healthy["status"] == "False" && healthy["reason"] == reason;
            let message = healthy["message"].as_str().unwrap_or_default().to_owned();
            if fails { Ok(message) } else { Err(self.story(&object)) }
        })
    }

    /// Waits until a claim is bound; the folder of its volume.
    pub(crate) fn bound(&self, name: &str) -> PathBuf {
        let volume = until(&format!("claim {name} is bound"), || {
            let claim = self.get("PersistentVolumeClaim", name);
            let volume = claim["spec"]["volumeName"].as_str().map(str::to_owned);
            let volume = volume.filter(|_| claim["status"]["phase"] == "Bound");
            volume.ok_or_else(|| self.story(&claim))
        });
        let path = format!("/clusters/{}/api/v1/persistentvolumes/{volume}", self.cluster);
        let volume = self.up.get(&path);
        let handle = volume["spec"]["csi"]["volumeHandle"].as_str().expect("it is ours");
        self.up.folder(self.cluster, "volumes").join(handle)
    }

    /// What is in a claim, once it is bound.
    pub(crate) fn contents(&self, name: &str) -> Contents {
        contents(&self.bound(name))
    }

    /// Waits until an event with this reason is about an object; its note.
    pub(crate) fn event(&self, name: &str, reason: &str) -> String {
        let path = self.path("/apis/events.k8s.io/v1", "events");
        until(&format!("event {reason} about {name}"), || {
            let all = self.up.get(&path);
            let events = all["items"].as_array().into_iter().flatten();
            let mut found = events
                .filter(|event| event["regarding"]["name"] == name && event["reason"] == reason);
            let note = found.next().and_then(|event| event["note"].as_str()).map(str::to_owned);
            note.ok_or_else(|| format!("{all:#}"))
        })
    }

    /// What was seen, with the last that the fleet said.
    fn story(&self, seen: &Value) -> String {
        let says = self.up.process.lock().expect("nobody panics with it").says();
        let lines: Vec<&str> = says.lines().collect();
        let last = lines[lines.len().saturating_sub(40)..].join("\n  ");
        format!("{seen:#}\nthe fleet says:\n  {last}")
    }
}

/// An empty claim.
pub(crate) fn claim(name: &str, size: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    })
}

/// A condition of an object, or null.
pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found.cloned().unwrap_or_default()
}

/// An object with the type that custom resources must say.
pub(crate) fn typed(kind: &str, object: &Value) -> Value {
    let version = match kind {
        "ReplicationSource" | "ReplicationDestination" => VOLSYNC,
        "VolumeSnapshot" => SNAPSHOTS.trim_start_matches("/apis/"),
        _ => "v1",
    };
    let mut object = object.clone();
    object["apiVersion"] = Value::from(version);
    object["kind"] = Value::from(kind);
    object
}
