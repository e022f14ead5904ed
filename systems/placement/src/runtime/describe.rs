//! What a pod asks to be run, in full, or why it cannot be.

use super::Runtime;
use super::outside::{LockName, Mount, Run};
use super::tokens::{Wanted, is_of_tokens};
use crate::kinds::{CLAIM, CONFIG_MAP, SECRET, VOLUME};
use crate::syncer::marks::is_ours;
use crate::syncer::objects::desired::TOKEN_VOLUME_PREFIX;
use interlock_api::names::{ANNOTATION_EPOCH, LOCAL_DRIVER, NODE_LABEL};
use interlock_kernel::metadata::{annotation, is_deleting, label, name_of, uid_of};
use interlock_kernel::{Kind, Name, Object, Place, View};
use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// What a stop may take if the pod does not say.
const GRACE_SECONDS: u64 = 30;
/// What a pod says whose author knows that a process needs no image.
const NO_IMAGE: &str = "none";

/// Why a pod cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// It asks for what this runtime does not do.
    NotSupported(Vec<String>),
    /// Something that it needs is not there yet.
    Missing(String),
}

impl Problem {
    /// In one word, as the status of a pod has it.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Problem::NotSupported(_) => "NotSupported",
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
            Problem::Missing(what) => f.write_str(what),
        }
    }
}

/// The run that a pod asks for, for the epoch that is permitted. Where there is storage, each claim
/// that it mounts has to have its volume.
pub(super) fn describe(
    pod: &Object,
    view: &dyn View,
    runtime: &Runtime,
    epoch: i64,
) -> Result<Run, Problem> {
    let spec = &pod.data["spec"];
    let refused = refused(spec, runtime.is_root);
    if !refused.is_empty() {
        return Err(Problem::NotSupported(refused));
    }
    let container = &spec["containers"][0];
    let env = Environment { pod, view, values: BTreeMap::new() };
    let mut env = env.of(container).map_err(Problem::Missing)?;
    let tokens = Wanted::of(pod, view, &runtime.cloud).map_err(Problem::Missing)?;
    env.extend(tokens.env);
    let words = |field: &str| texts(&container[field]).map(|text| expand(text, &env)).collect();
    let command: Vec<String> = words("command");
    Ok(Run {
        lock: lock_of(pod),
        epoch,
        command,
        args: words("args"),
        working_directory: container["workingDir"].as_str().map(str::to_owned),
        mounts: mounts(pod, epoch, view, runtime.has_storage).map_err(Problem::Missing)?,
        token_mounts: tokens.mounts,
        grace_seconds: grace_seconds(pod),
        env,
    })
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

/// Everything that the pod asks for, that a plain process cannot have, and that would change what it
/// does or how safe it is. It is refused rather than left out: a pod that runs does what it says.
pub(super) fn refused(spec: &Value, is_root: bool) -> Vec<String> {
    let mut refused = Vec::new();
    let mut refuse = |is: bool, what: &str| {
        if is {
            refused.push(what.to_owned());
        }
    };
    for field in ["initContainers", "ephemeralContainers", "hostAliases", "resourceClaims"] {
        refuse(is_filled(&spec[field]), field);
    }
    refuse(!spec["activeDeadlineSeconds"].is_null(), "activeDeadlineSeconds");
    let containers = spec["containers"].as_array().map_or(0, Vec::len);
    refuse(containers > 1, "more than one container");
    let container = &spec["containers"][0];
    let has_command = texts(&container["command"]).next().is_some();
    refuse(!has_command, "a container without a command (there is no image to take it from)");
    for of in [&spec["securityContext"], &container["securityContext"]] {
        refuse(of["privileged"] == true, "privileged");
        refuse(is_filled(&of["capabilities"]["add"]), "capabilities that are added");
        let is_another = of["runAsUser"].as_i64().is_some_and(|user| user != 0);
        let must_not_be_root = of["runAsNonRoot"] == true || is_another;
        refuse(is_root && must_not_be_root, "not to be root (processes here are root's)");
        let wants_root = of["runAsUser"] == 0;
        refuse(!is_root && wants_root, "to be root (processes here are not root's)");
    }
    refuse(is_filled(&container["lifecycle"]), "lifecycle");
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
        let has_tokens = volume.is_some_and(is_of_tokens);
        refuse(!is_claim && !has_tokens, "a mount of anything but a claim or tokens");
        // A token that the process writes over is its own loss, and is replaced.
        refuse(mount["readOnly"] == true && !has_tokens, "readOnly mounts");
        let is_part = ["subPath", "subPathExpr"].iter().any(|field| is_filled(&mount[*field]));
        refuse(is_part, "subPath");
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
    let container = &spec["containers"][0];
    let of_container = [
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "resources",
        "securityContext",
        "stdin",
        "tty",
    ];
    let of_pod = [
        "securityContext",
        "affinity",
        "topologySpreadConstraints",
        "imagePullSecrets",
        "priorityClassName",
        "dnsConfig",
    ];
    let mut fields = Vec::new();
    if container["image"].as_str().is_some_and(|image| !image.is_empty() && image != NO_IMAGE) {
        fields.push("image");
    }
    let is_said = |value: &Value| is_filled(value) && *value != false;
    fields.extend(of_container.into_iter().filter(|field| is_said(&container[*field])));
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

/// The volumes that a pod mounts. A claim as an earlier epoch left it has the volume that was left
/// with it: a cache that shows that one is behind, and a pod does not begin with it.
fn mounts(
    pod: &Object,
    epoch: i64,
    view: &dyn View,
    has_storage: bool,
) -> Result<Vec<Mount>, String> {
    let spec = &pod.data["spec"];
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let mounts = items(&spec["containers"][0]["volumeMounts"]);
    let has_tokens = |mount: &Value| volume_of(spec, &mount["name"]).is_some_and(is_of_tokens);
    let mounts = mounts.filter(|mount| !is_token(&mount["name"]) && !has_tokens(mount));
    let mount = |mount: &Value| {
        let claim = volume_of(spec, &mount["name"])
            .and_then(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
            .ok_or("a volume that is mounted has no claim")?;
        let found = view.get(Place::CLUSTER, &CLAIM, &Name::within(namespace, claim));
        let found = found.filter(|found| is_ours(found, namespace) && !is_deleting(found));
        let found = found.ok_or_else(|| format!("claim {claim} does not exist on this cluster"))?;
        let noted = annotation(&found, ANNOTATION_EPOCH).unwrap_or("none");
        if noted.parse() != Ok(epoch) {
            return Err(format!("claim {claim} is of epoch {noted}, and epoch {epoch} may run"));
        }
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

/// The environment of a container while it is put together.
struct Environment<'a> {
    pod: &'a Object,
    view: &'a dyn View,
    values: BTreeMap<String, String>,
}

impl Environment<'_> {
    fn of(mut self, container: &Value) -> Result<BTreeMap<String, String>, String> {
        for source in items(&container["envFrom"]) {
            let prefix = source["prefix"].as_str().unwrap_or_default();
            for (kind, field) in [(CONFIG_MAP, "configMapRef"), (SECRET, "secretRef")] {
                for (key, value) in self.all_of(&kind, &source[field])? {
                    self.values.insert(format!("{prefix}{key}"), value);
                }
            }
        }
        for variable in items(&container["env"]) {
            let Some(name) = variable["name"].as_str() else { continue };
            if let Some(value) = self.value_of(variable)? {
                self.values.insert(name.to_owned(), value);
            }
        }
        Ok(self.values)
    }

    fn value_of(&self, variable: &Value) -> Result<Option<String>, String> {
        let from = &variable["valueFrom"];
        if from.is_null() {
            let value = variable["value"].as_str().unwrap_or_default();
            return Ok(Some(expand(value, &self.values)));
        }
        for (kind, field) in [(CONFIG_MAP, "configMapKeyRef"), (SECRET, "secretKeyRef")] {
            let reference = &from[field];
            if reference.is_null() {
                continue;
            }
            let key = reference["key"].as_str().unwrap_or_default();
            let found = self.all_of(&kind, reference)?.remove(key);
            if found.is_none() && reference["optional"] != true {
                let of = reference["name"].as_str().unwrap_or_default();
                return Err(format!("{kind} {of} has no key {key}"));
            }
            return Ok(found);
        }
        self.field(&from["fieldRef"]).map(Some)
    }

    /// Everything in a ConfigMap or Secret.
    fn all_of(&self, kind: &Kind, reference: &Value) -> Result<BTreeMap<String, String>, String> {
        if reference.is_null() {
            return Ok(BTreeMap::new());
        }
        let name = reference["name"].as_str().unwrap_or_default();
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or_default();
        let Some(found) = self.view.get(Place::CLUSTER, kind, &Name::within(namespace, name))
        else {
            return match reference["optional"] == true {
                true => Ok(BTreeMap::new()),
                false => Err(format!("{kind} {name} does not exist on this cluster")),
            };
        };
        let entries = found.data["data"].as_object().into_iter().flatten();
        let text = |value: &Value| match *kind == SECRET {
            true => ByteString::deserialize(value).ok().and_then(|b| String::from_utf8(b.0).ok()),
            false => value.as_str().map(str::to_owned),
        };
        entries
            .map(|(key, value)| {
                let text =
                    text(value).ok_or_else(|| format!("{kind} {name}: {key} is not text"))?;
                Ok((key.clone(), text))
            })
            .collect()
    }

    fn field(&self, reference: &Value) -> Result<String, String> {
        let path = reference["fieldPath"].as_str().unwrap_or_default();
        let metadata = &self.pod.metadata;
        let known = match path {
            "metadata.name" => metadata.name.as_deref(),
            "metadata.namespace" => metadata.namespace.as_deref(),
            "metadata.uid" => metadata.uid.as_deref(),
            "spec.nodeName" => Some(self.pod.data["spec"]["nodeName"].as_str().unwrap_or_default()),
            "spec.serviceAccountName" => {
                Some(self.pod.data["spec"]["serviceAccountName"].as_str().unwrap_or_default())
            }
            _ => {
                let key = |of: &str| path.strip_prefix(of)?.strip_suffix("']");
                let label = key("metadata.labels['").map(|key| label(self.pod, key));
                let found = label
                    .or_else(|| key("metadata.annotations['").map(|key| annotation(self.pod, key)));
                found.map(Option::unwrap_or_default)
            }
        };
        known.map(str::to_owned).ok_or_else(|| format!("the field {path} is unknown"))
    }
}

/// Puts values in the place of `$(NAME)`; `$$` is a dollar, and a name that is not known stays.
fn expand(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        expanded.push_str(before);
        if let Some(after) = after.strip_prefix("$$") {
            expanded.push('$');
            rest = after;
            continue;
        }
        let named = after.strip_prefix("$(").and_then(|named| named.split_once(')'));
        match named.and_then(|(name, after)| Some((values.get(name)?, after))) {
            Some((value, after)) => {
                expanded.push_str(value);
                rest = after;
            }
            None => {
                expanded.push('$');
                rest = &after[1..];
            }
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_are_put_into_words() {
        let values = BTreeMap::from([("A".to_owned(), "x$(B)".to_owned())]);
        assert_eq!(expand("$(A)-$(B)-$$(A)-$", &values), "x$(B)-$(B)-$(A)-$");
        assert_eq!(expand("$(A", &values), "$(A");
        assert_eq!(expand("é$(A)é", &values), "éx$(B)é");
    }

    #[test]
    fn what_would_change_meaning_or_safety_is_refused_by_name() {
        let spec = json!({
            "initContainers": [{}],
            "containers": [
                {"command": ["a"], "lifecycle": {"preStop": {}},
                 "securityContext": {"privileged": true, "capabilities": {"add": ["NET_ADMIN"]}},
                 "volumeMounts": [{"name": "v", "readOnly": true}, {"name": "kube-api-access-x"}]},
                {},
            ],
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
        });
        assert_eq!(
            refused(&spec, false),
            [
                "initContainers",
                "more than one container",
                "privileged",
                "capabilities that are added",
                "lifecycle",
                "a mount of anything but a claim or tokens",
                "readOnly mounts",
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
            [
                "image",
                "livenessProbe",
                "readinessProbe",
                "resources",
                "securityContext",
                "nodeSelector",
            ]
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
