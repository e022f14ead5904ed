//! What a pod asks to be run, in full, or why it cannot be.

use super::Runtime;
use super::decide::UNPLACED;
use super::env::{Sources, expand};
use super::files::{files_of, is_of_files};
use super::outside::{LockName, Mount, Run};
use super::parts::Part;
use super::probes;
use super::status::Container;
use super::tokens::{Wanted, has_tokens};
use crate::kinds::{CLAIM, VOLUME};
use crate::syncer::marks::is_ours;
use crate::syncer::objects::desired::TOKEN_VOLUME_PREFIX;
use interlock_api::names::{ANNOTATION_EPOCH, LOCAL_DRIVER, NODE_LABEL, RUNTIME_CLASS};
use interlock_kernel::metadata::{annotation, is_deleting, name_of, uid_of};
use interlock_kernel::{Name, Object, Place, View};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// What a stop may take if the pod does not say.
pub(super) const GRACE_SECONDS: u64 = 30;
/// What a pod says whose author knows that a process needs no image.
const NO_IMAGE: &str = "none";

/// Why a pod cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// It asks for what this runtime does not do.
    NotSupported(Vec<String>),
    /// It names no runtime class and no command: it is for a node with containers, and there is none.
    Unschedulable,
    /// Something that it needs is not there yet.
    Missing(String),
}

impl Problem {
    /// In one word, as the status of a pod has it.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Problem::NotSupported(_) => "NotSupported",
            Problem::Unschedulable => "Unschedulable",
            Problem::Missing(_) => "CreateContainerConfigError",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NotSupported(what) => {
                write!(
                    f,
                    "not supported for a process: {}; the pod was not started",
                    what.join(", ")
                )
            }
            Problem::Unschedulable => f.write_str(
                "no node runs containers here: pods are processes of the machine, and there is no \
                 image to take a command from; write the program and its arguments in \
                 spec.containers[0].command",
            ),
            Problem::Missing(what) => f.write_str(what),
        }
    }
}

/// A container that is to be described.
pub(super) struct Describing<'a> {
    pub(super) container: Container<'a>,
    pub(super) view: &'a dyn View,
    pub(super) runtime: &'a Runtime,
}

impl Describing<'_> {
    /// The run that the container asks for, for the epoch that is permitted. Where there is storage, each claim
    /// that it mounts has to have its volume.
    pub(super) fn run(&self, epoch: i64) -> Result<Run, Problem> {
        let (Container { pod, part }, view) = (self.container, self.view);
        let spec = &pod.data["spec"];
        let main = Part::Main.described(pod);
        let has_command = texts(&main["command"]).next().is_some();
        if !has_command && spec["runtimeClassName"] != RUNTIME_CLASS {
            return Err(Problem::Unschedulable);
        }
        let refused = refused(spec, self.runtime.is_root);
        if !refused.is_empty() {
            return Err(Problem::NotSupported(refused));
        }
        let container = part.described(pod);
        let sources = Sources { pod, view };
        let mut env = sources.environment(container).map_err(Problem::Missing)?;
        let tokens = Wanted::of(self.container, view, &self.runtime.cloud);
        let tokens = tokens.map_err(Problem::Missing)?;
        env.extend(tokens.env);
        let words = |field: &str| texts(&container[field]).map(|text| expand(text, &env)).collect();
        let command: Vec<String> = words("command");
        Ok(Run {
            lock: lock_of(pod),
            id: part.run_id(pod),
            epoch,
            command,
            args: words("args"),
            working_directory: container["workingDir"].as_str().map(str::to_owned),
            mounts: self.mounts(epoch).map_err(Problem::Missing)?,
            token_mounts: tokens.mounts,
            files: files_of(&sources, container).map_err(Problem::Missing)?,
            pre_stop: pre_stop(container),
            grace_seconds: grace_seconds(pod),
            env,
        })
    }
}

/// What is run before a container is asked to stop.
fn pre_stop(container: &Value) -> Vec<String> {
    let hook = &container["lifecycle"]["preStop"];
    match hook["sleep"]["seconds"].as_u64() {
        Some(seconds) => vec!["sleep".to_owned(), seconds.to_string()],
        None => texts(&hook["exec"]["command"]).map(str::to_owned).collect(),
    }
}

/// The lock of a pod.
pub(super) fn lock_of(pod: &Object) -> LockName {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    LockName { namespace, pod: uid_of(pod).to_owned(), name: name_of(pod).to_owned() }
}

/// How long a stop of the pod may take.
pub(super) fn grace_seconds(pod: &Object) -> u64 {
    pod.data["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap_or(GRACE_SECONDS)
}

/// How long a stop may take that is for a restart, because a probe failed.
pub(super) fn restart_grace_seconds(pod: &Object) -> u64 {
    let own = probes::grace_seconds(&pod.data["spec"]["containers"][0]);
    own.unwrap_or_else(|| grace_seconds(pod))
}

/// Everything that the pod asks for, that a plain process cannot have, and that would change what it
/// does or how safe it is. It is refused rather than left out: a pod that runs does what it says.
pub(super) fn refused(spec: &Value, is_root: bool) -> Vec<String> {
    let mut refused = Vec::new();
    let mut refuse = |is: bool, what: &str| {
        if is {
            refused.push(what.to_owned());
        }
    };
    for field in ["ephemeralContainers", "hostAliases", "resourceClaims", "schedulingGates"] {
        refuse(is_filled(&spec[field]), field);
    }
    refuse(!spec["activeDeadlineSeconds"].is_null(), "activeDeadlineSeconds");
    let containers = spec["containers"].as_array().map_or(0, Vec::len);
    refuse(containers > 1, "more than one container");
    refused.extend(refused_context(&spec["securityContext"], is_root));
    refused.extend(refused_of(spec, &spec["containers"][0], is_root));
    let mut said = BTreeSet::new();
    refused.retain(|what| said.insert(what.clone()));
    for container in items(&spec["initContainers"]) {
        let mut own = refused_of(spec, container, is_root);
        match container["restartPolicy"].as_str() {
            None => {}
            Some("Always") => {
                own.push("restartPolicy Always (a sidecar; run it as a pod of its own)".to_owned())
            }
            Some(_) => own.push("a restartPolicy of its own".to_owned()),
        }
        if probes::is_probed(container) {
            own.push("a probe (nobody waits for what is to end by itself)".to_owned());
        }
        let name = container["name"].as_str().unwrap_or_default();
        refused.extend(own.into_iter().map(|what| format!("init container {name}: {what}")));
    }
    refused
}

/// The same of a security context.
fn refused_context(context: &Value, is_root: bool) -> Vec<String> {
    let is_another = context["runAsUser"].as_i64().is_some_and(|user| user != 0);
    let must_not_be_root = context["runAsNonRoot"] == true || is_another;
    let wants_root = context["runAsUser"] == 0;
    let refused = [
        (context["privileged"] == true, "privileged"),
        (is_filled(&context["capabilities"]["add"]), "capabilities that are added"),
        (is_root && must_not_be_root, "not to be root (processes here are root's)"),
        (!is_root && wants_root, "to be root (processes here are not root's)"),
    ];
    refused.into_iter().filter(|(is, _)| *is).map(|(_, what)| what.to_owned()).collect()
}

/// The same of one of its containers.
fn refused_of(spec: &Value, container: &Value, is_root: bool) -> Vec<String> {
    let mut refused = Vec::new();
    let mut refuse = |is: bool, what: &str| {
        if is {
            refused.push(what.to_owned());
        }
    };
    let has_command = texts(&container["command"]).next().is_some();
    refuse(!has_command, "a container without a command (there is no image to take it from)");
    refused_context(&container["securityContext"], is_root)
        .iter()
        .for_each(|what| refuse(true, what));
    refuse(is_filled(&container["lifecycle"]["postStart"]), "lifecycle.postStart");
    let hook = &container["lifecycle"]["preStop"];
    let is_other = is_filled(&hook["httpGet"]) || is_filled(&hook["tcpSocket"]);
    refuse(is_other, "a preStop hook that is no exec or sleep");
    probes::refused(container).iter().for_each(|what| refuse(true, what));
    refuse(is_filled(&container["volumeDevices"]), "volumeDevices");
    for variable in items(&container["env"]) {
        let from = &variable["valueFrom"];
        refuse(is_filled(&from["resourceFieldRef"]), "env from resourceFieldRef");
        refuse(is_filled(&from["fileKeyRef"]), "env from fileKeyRef");
    }
    for mount in items(&container["volumeMounts"]).filter(|mount| !is_token(&mount["name"])) {
        let volume = volume_of(spec, &mount["name"]);
        let is_claim =
            volume.is_some_and(|volume| volume["persistentVolumeClaim"]["claimName"].is_string());
        let has_tokens = volume.is_some_and(has_tokens);
        let is_made = has_tokens || volume.is_some_and(is_of_files);
        for source in ["clusterTrustBundle", "podCertificate"] {
            let mut sources = items(volume.map_or(&Value::Null, |it| &it["projected"]["sources"]));
            let is_there = sources.any(|it| !it[source].is_null());
            refuse(is_there, &format!("a projected volume of {source}"));
        }
        refuse(
            !is_claim && !is_made,
            "a mount of anything but a claim, tokens, a ConfigMap, a Secret, fields of the pod or \
             an emptyDir",
        );
        // What a process writes over in files that were made for it is its own loss.
        refuse(mount["readOnly"] == true && !is_made, "readOnly mounts");
        let is_part = ["subPath", "subPathExpr"].iter().any(|field| is_filled(&mount[*field]));
        refuse(is_part && (!is_made || has_tokens), "subPath of a claim or of tokens");
        refuse(is_filled(&mount["subPathExpr"]), "subPathExpr");
    }
    refused.dedup();
    refused
}

/// Everything that the pod says and that means nothing to a plain process, but does no harm: the
/// pod runs, and whoever wrote it is informed. What servers fill in by themselves is not in it, and
/// neither are ports, which only tell what listens.
pub(super) fn without_effect(spec: &Value) -> Option<String> {
    let fields = fields_without_effect(spec);
    let said = || {
        format!(
            "the pod runs as a process of the machine; these fields have no effect: {}",
            fields.join(", ")
        )
    };
    (!fields.is_empty()).then(said)
}

fn fields_without_effect(spec: &Value) -> Vec<&'static str> {
    let of_container = ["resources", "securityContext", "stdin", "tty"];
    let of_pod = [
        "securityContext",
        "affinity",
        "topologySpreadConstraints",
        "imagePullSecrets",
        "priorityClassName",
        "dnsConfig",
    ];
    let mut fields = Vec::new();
    let containers = || items(&spec["containers"]).take(1).chain(items(&spec["initContainers"]));
    let is_another = |image: &str| !image.is_empty() && image != NO_IMAGE;
    if containers().any(|container| container["image"].as_str().is_some_and(is_another)) {
        fields.push("image");
    }
    let is_said = |value: &Value| is_filled(value) && *value != false;
    let is_said_of_any = |field: &str| containers().any(|container| is_said(&container[field]));
    fields.extend(of_container.into_iter().filter(|field| is_said_of_any(field)));
    fields.extend(of_pod.into_iter().filter(|field| is_said(&spec[*field])));
    let mut nodes = spec["nodeSelector"].as_object().into_iter().flatten();
    if nodes.any(|(label, _)| label != NODE_LABEL) {
        fields.push("nodeSelector");
    }
    fields.dedup();
    fields
}

/// Whether anything was said at all: servers fill in empty lists and maps.
fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    items(list).filter_map(Value::as_str)
}

fn is_token(volume: &Value) -> bool {
    volume.as_str().is_some_and(|name| name.starts_with(TOKEN_VOLUME_PREFIX))
}

fn volume_of<'a>(spec: &'a Value, volume: &Value) -> Option<&'a Value> {
    items(&spec["volumes"]).find(|known| known["name"] == *volume)
}

impl Describing<'_> {
    /// The volumes that the container mounts. A claim as an earlier epoch left it has the volume that was left
    /// with it: a cache that shows that one is behind, and a pod does not begin with it.
    fn mounts(&self, epoch: i64) -> Result<Vec<Mount>, String> {
        let (Container { pod, part }, view) = (self.container, self.view);
        let spec = &pod.data["spec"];
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let mounts = items(&part.described(pod)["volumeMounts"]);
        let is_claim = |mount: &&Value| {
            let volume = volume_of(spec, &mount["name"]);
            !is_token(&mount["name"])
                && !volume.is_some_and(|volume| has_tokens(volume) || is_of_files(volume))
        };
        let mounts = mounts.filter(is_claim);
        let mount = |mount: &Value| {
            let claim = volume_of(spec, &mount["name"])
                .and_then(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
                .ok_or("a volume that is mounted has no claim")?;
            let found = view.get(Place::CLUSTER, &CLAIM, &Name::within(namespace, claim));
            let is_placed = epoch != UNPLACED;
            let is_its = |found: &Object| !is_placed || is_ours(found, namespace);
            let found = found.filter(|found| is_its(found) && !is_deleting(found));
            let none = || format!("claim {claim} does not exist on this cluster");
            let found = found.ok_or_else(none)?;
            let noted = annotation(&found, ANNOTATION_EPOCH).unwrap_or("none");
            if is_placed && noted.parse() != Ok(epoch) {
                return Err(format!(
                    "claim {claim} is of epoch {noted}, and epoch {epoch} may run"
                ));
            }
            let has_storage = self.runtime.has_storage;
            Ok(Mount {
                name: mount["name"].as_str().unwrap_or_default().to_owned(),
                claim: claim.to_owned(),
                claim_uid: uid_of(&found).to_owned(),
                handle: has_storage.then(|| handle(&found, view)).transpose()?,
                path: mount["mountPath"].as_str().unwrap_or_default().to_owned(),
            })
        };
        mounts.map(mount).collect()
    }
}

/// The volume that a claim has, by its name on this machine: claim and volume must both say so.
fn handle(claim: &Object, view: &dyn View) -> Result<String, String> {
    let called = name_of(claim);
    let unbound = || format!("claim {called} has no volume yet");
    let volume = claim.data["spec"]["volumeName"].as_str().filter(|volume| !volume.is_empty());
    let volume = volume.filter(|_| claim.data["status"]["phase"] == "Bound").ok_or_else(unbound)?;
    let found = view.get(Place::CLUSTER, &VOLUME, &Name::cluster_wide(volume));
    let found = found.ok_or_else(|| {
        format!("volume {volume} of claim {called} does not exist on this cluster")
    })?;
    if found.data["spec"]["claimRef"]["uid"] != uid_of(claim) {
        return Err(format!("volume {volume} is not claim {called}'s"));
    }
    let csi = &found.data["spec"]["csi"];
    let handle = csi["volumeHandle"].as_str().filter(|_| csi["driver"] == LOCAL_DRIVER);
    let handle = handle.filter(|handle| !handle.is_empty());
    let elsewhere = || format!("volume {volume} of claim {called} is not on this machine");
    handle.map(str::to_owned).ok_or_else(elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_would_change_meaning_or_safety_is_refused_by_name() {
        let spec = json!({
            "initContainers": [
                {"name": "setup", "command": ["a"], "securityContext": {"privileged": true}},
                {"name": "proxy", "restartPolicy": "Always"},
            ],
            "containers": [
                {"command": ["a"], "lifecycle": {"preStop": {"httpGet": {"port": 1}}},
                 "securityContext": {"privileged": true, "capabilities": {"add": ["NET_ADMIN"]}},
                 "volumeMounts": [{"name": "v", "readOnly": true}, {"name": "kube-api-access-x"}]},
                {},
            ],
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
        });
        assert_eq!(
            refused(&spec, false),
            [
                "more than one container",
                "privileged",
                "capabilities that are added",
                "a preStop hook that is no exec or sleep",
                "a mount of anything but a claim, tokens, a ConfigMap, a Secret, fields of the \
                 pod or an emptyDir",
                "readOnly mounts",
                "init container setup: privileged",
                "init container proxy: a container without a command (there is no image to take \
                 it from)",
                "init container proxy: restartPolicy Always (a sidecar; run it as a pod of its \
                 own)",
            ]
        );
    }

    #[test]
    fn who_must_not_be_root_is_not_made_root() {
        let spec = |context: Value| json!({"containers": [{"command": ["a"], "securityContext": context}]});
        let careful = spec(json!({"runAsNonRoot": true, "runAsUser": 1000}));
        assert!(refused(&careful, false).is_empty());
        assert_eq!(refused(&careful, true), ["not to be root (processes here are root's)"]);
        let rooted = spec(json!({"runAsUser": 0}));
        assert_eq!(refused(&rooted, false).len(), 1);
        assert!(refused(&rooted, true).is_empty());
    }

    /// As such pods are published: one container with all the care that one takes.
    fn ordinary() -> Value {
        json!({
            "containers": [{
                "name": "web", "image": "nginx:1.27", "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", "60"], "ports": [{"containerPort": 80}],
                "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "128Mi"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
                "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
                "securityContext": {
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                    "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]},
                },
            }],
            "securityContext": {"fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            "nodeSelector": {"kubernetes.io/os": "linux"},
        })
    }

    #[test]
    fn an_ordinary_pod_runs_and_an_event_lists_what_has_no_effect() {
        assert_eq!(refused(&ordinary(), false), [""; 0]);
        assert_eq!(
            fields_without_effect(&ordinary()),
            ["image", "resources", "securityContext", "nodeSelector"]
        );
    }

    #[test]
    fn what_servers_fill_in_is_neither_refused_nor_told() {
        let spec = json!({
            "containers": [{"command": ["a"], "image": "none", "imagePullPolicy": "Always",
                "resources": {}, "securityContext": {}, "stdin": false,
                "terminationMessagePath": "/dev/termination-log"}],
            "securityContext": {}, "hostNetwork": false, "schedulerName": "default-scheduler",
            "dnsPolicy": "ClusterFirst", "nodeSelector": {"interlock.dev/runs-processes": "true"},
        });
        assert_eq!(refused(&spec, false), [""; 0]);
        assert_eq!(fields_without_effect(&spec), [""; 0]);
    }
}
