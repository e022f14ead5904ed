//! What an object at the hub is to look like on a cluster: what people said, without what a server
//! or a controller has added.

use super::compare::digest;
use super::kinds::JOB;
use crate::kinds::{CONFIG_MAP, POD, SECRET, SERVICE, SERVICE_ACCOUNT};
use crate::syncer::marks::{ANNOTATION_FROM, FINALIZER_PROCESS, LABEL_GRANT};
use interlock_api::names::{NODE_LABEL, RUNTIME_CLASS};
use interlock_kernel::Kind;
use interlock_kernel::metadata::{name_of, uid_of};
use kube_core::DynamicObject;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Volumes that admission adds to pods; each cluster adds its own.
pub const TOKEN_VOLUME_PREFIX: &str = "kube-api-access-";

/// Marks of other controllers that mean nothing on another cluster.
const FOREIGN_MARKS: [&str; 9] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.kubernetes.io/selected-node",
];

/// Whether an object at the hub goes down to a cluster at all.
pub fn is_carried(kind: &Kind, object: &DynamicObject) -> bool {
    if *kind == SECRET {
        return object.data["type"] != "kubernetes.io/service-account-token";
    }
    if *kind == CONFIG_MAP {
        return name_of(object) != "kube-root-ca.crt";
    }
    if *kind == SERVICE_ACCOUNT && name_of(object) == "default" {
        return !own_marks(object.metadata.labels.as_ref()).is_empty()
            || !own_marks(object.metadata.annotations.as_ref()).is_empty()
            || ["imagePullSecrets", "automountServiceAccountToken"]
                .iter()
                .any(|field| !object.data[*field].is_null());
    }
    true
}

/// The object as it is to be on the cluster, but for apiVersion, kind, name and namespace.
pub fn desired(kind: &Kind, object: &DynamicObject, grant: &str) -> Value {
    let mut body = body(kind, object);
    let mut labels = own_marks(object.metadata.labels.as_ref());
    let mut annotations = own_marks(object.metadata.annotations.as_ref());
    labels.insert(LABEL_GRANT.to_owned(), grant.to_owned());
    let mut metadata = json!({"labels": labels});
    if *kind == POD && body["spec"]["runtimeClassName"] == RUNTIME_CLASS {
        metadata["finalizers"] = json!([FINALIZER_PROCESS]);
    }
    let said = digest(&json!([&metadata, &annotations, &body]));
    annotations.insert(ANNOTATION_FROM.to_owned(), format!("{}/{said:016x}", uid_of(object)));
    metadata["annotations"] = json!(annotations);
    body["metadata"] = metadata;
    body
}

/// Labels or annotations without ours and without those of other controllers.
pub fn own_marks(marks: Option<&BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let marks = marks.into_iter().flatten();
    let kept = marks.filter(|(key, _)| !is_interlocks(key) && !FOREIGN_MARKS.contains(&&***key));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn is_interlocks(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    domain == interlock_api::GROUP || domain.ends_with(".interlock.dev")
}

/// Everything but metadata and status; always a map.
fn body(kind: &Kind, object: &DynamicObject) -> Value {
    let mut body: Map<String, Value> = object.data.as_object().cloned().unwrap_or_default();
    for field in ["apiVersion", "kind", "metadata", "status"] {
        body.remove(field);
    }
    if *kind == SERVICE_ACCOUNT {
        body.remove("secrets");
    }
    if let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) {
        if *kind == POD {
            clean_pod(spec);
        } else if *kind == SERVICE {
            clean_service(spec);
        } else if *kind == JOB {
            clean_job(spec);
        }
    }
    Value::Object(body)
}

fn clean_pod(spec: &mut Map<String, Value>) {
    for field in ["nodeName", "serviceAccount", "priority", "ephemeralContainers"] {
        spec.remove(field);
    }
    // A server adds it where the runtime class asks for it, and so will the cluster's.
    if let Some(nodes) = spec.get_mut("nodeSelector").and_then(Value::as_object_mut) {
        nodes.remove(NODE_LABEL);
        if nodes.is_empty() {
            spec.remove("nodeSelector");
        }
    }
    let is_token = |value: &Value| {
        value["name"].as_str().is_some_and(|name| name.starts_with(TOKEN_VOLUME_PREFIX))
    };
    if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
        volumes.retain(|volume| !is_token(volume));
    }
    for containers in ["containers", "initContainers"] {
        let containers = spec.get_mut(containers).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) {
                mounts.retain(|mount| !is_token(mount));
            }
        }
    }
}

fn clean_service(spec: &mut Map<String, Value>) {
    let is_headless = spec.get("clusterIP").is_some_and(|address| address == "None");
    for field in ["clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"] {
        spec.remove(field);
    }
    if !is_headless {
        spec.remove("clusterIP");
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(port) = port.as_object_mut() {
            port.remove("nodePort");
        }
    }
}

fn clean_job(spec: &mut Map<String, Value>) {
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    spec.remove("selector");
    let template = spec.get_mut("template").and_then(|template| template.get_mut("metadata"));
    let labels = template.and_then(|metadata| metadata.get_mut("labels"));
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.retain(|key, _| !FOREIGN_MARKS.contains(&key.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_pod_goes_down_without_its_node_and_its_token() {
        let pod = object(json!({
            "metadata": {
                "name": "p", "uid": "u1", "resourceVersion": "5", "ownerReferences": [],
                "labels": {"app": "x", "state.interlock.dev/a": "Sync"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            },
            "spec": {
                "nodeName": "n1", "priority": 0, "serviceAccount": "default",
                "nodeSelector": {"interlock.dev/runs-processes": "true"},
                "volumes": [{"name": "kube-api-access-1"}, {"name": "data"}],
                "containers": [{"name": "c", "volumeMounts": [
                    {"name": "kube-api-access-1"}, {"name": "data"},
                ]}],
            },
            "status": {"phase": "Running"},
        }));
        let made = desired(&POD, &pod, "g");
        assert_eq!(
            made["spec"],
            json!({
                "volumes": [{"name": "data"}],
                "containers": [{"name": "c", "volumeMounts": [{"name": "data"}]}],
            })
        );
        assert_eq!(made["metadata"]["labels"], json!({"app": "x", "interlock.dev/grant": "g"}));
        assert_eq!(made["metadata"]["annotations"].as_object().unwrap().len(), 1);
        assert!(made.get("status").is_none());
    }

    #[test]
    fn a_pod_that_is_a_process_stays_until_the_process_is_gone() {
        let pod = object(json!({
            "metadata": {"name": "p"}, "spec": {"runtimeClassName": "interlock-process"},
        }));
        let made = desired(&POD, &pod, "g");
        assert_eq!(made["metadata"]["finalizers"], json!(["interlock.dev/process"]));
    }

    #[test]
    fn a_service_gets_addresses_of_its_own_and_a_headless_one_none() {
        let service = |address: &str| {
            object(json!({"metadata": {"name": "s"}, "spec": {
                "clusterIP": address, "clusterIPs": [address],
                "ports": [{"port": 1, "nodePort": 2}],
            }}))
        };
        let made = desired(&SERVICE, &service("10.0.0.1"), "g");
        assert_eq!(made["spec"], json!({"ports": [{"port": 1}]}));
        let made = desired(&SERVICE, &service("None"), "g");
        assert_eq!(made["spec"]["clusterIP"], "None");
    }

    #[test]
    fn what_a_cluster_makes_for_itself_is_not_carried() {
        let token = object(json!({
            "metadata": {"name": "t"}, "type": "kubernetes.io/service-account-token",
        }));
        assert!(!is_carried(&SECRET, &token));
        let root = object(json!({"metadata": {"name": "kube-root-ca.crt"}}));
        assert!(!is_carried(&CONFIG_MAP, &root));
        let account = object(json!({"metadata": {"name": "default"}}));
        assert!(!is_carried(&SERVICE_ACCOUNT, &account));
        let account = object(json!({
            "metadata": {"name": "default"}, "imagePullSecrets": [{"name": "x"}],
        }));
        assert!(is_carried(&SERVICE_ACCOUNT, &account));
    }

    #[test]
    fn the_digest_follows_what_people_say_and_nothing_else() {
        let from = |value: Value| {
            let made = desired(&CONFIG_MAP, &object(value), "g");
            made["metadata"]["annotations"][ANNOTATION_FROM].as_str().unwrap().to_owned()
        };
        let one = from(json!({"metadata": {"name": "c", "uid": "u", "resourceVersion": "1"},
            "data": {"a": "1"}}));
        let same = from(json!({"metadata": {"name": "c", "uid": "u", "resourceVersion": "2",
            "finalizers": ["x"]}, "data": {"a": "1"}}));
        let other = from(json!({"metadata": {"name": "c", "uid": "u"}, "data": {"a": "2"}}));
        assert_eq!(one, same);
        assert_ne!(one, other);
    }
}
