//! What people ask for: versions by number, some of which never become healthy, and what the controllers of the cluster
//! say of them.

use super::SHOP;
use interlock_kernel::Object;
use interlock_rollouts::bundle::Bundle;
use serde_json::{Value, json};

/// The versions that people ask for while there is trouble are those below.
pub(super) const MOST: u64 = 9;
/// The version that everybody asks for at the end, and that becomes healthy.
pub(super) const LAST_GOOD: u64 = 10;
/// The version that some ask for after that, which nobody has tried before.
pub(super) const LAST_BAD: u64 = 15;
/// The Deployment of every version.
pub(super) const WEB: &str = "web";

/// How the pods of a version are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pods {
    /// They become ready.
    Ready,
    /// They crash, and the controller says so.
    Crash,
    /// They never start.
    Hang,
}

fn pods(number: u64) -> Pods {
    match number % 6 {
        0 => Pods::Hang,
        3 => Pods::Crash,
        _ => Pods::Ready,
    }
}

/// Whether a version never becomes healthy.
pub(super) fn is_bad(number: u64) -> bool {
    pods(number) != Pods::Ready
}

/// The objects of a version: two that every version has, and two that some have.
pub(super) fn objects(number: u64) -> Vec<Value> {
    let config = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"version": number.to_string()},
            "metadata": {"name": name, "namespace": SHOP}})
    };
    let labels = json!({"app": WEB});
    let container = json!({"name": WEB, "image": format!("{WEB}:{number}")});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": WEB, "namespace": SHOP},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}});
    let odd = (!number.is_multiple_of(2)).then(|| config("odd"));
    let fourth = number.is_multiple_of(4).then(|| config("fourth"));
    [Some(config("settings")), Some(web), odd, fourth].into_iter().flatten().collect()
}

/// The objects of a version, as `ConfigMap/settings`.
pub(super) fn names(number: u64) -> Vec<String> {
    let name = |object: &Value| {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{}/{}", word(&object["kind"]), word(&object["metadata"]["name"]))
    };
    objects(number).iter().map(name).collect()
}

/// The digest of a version.
pub(super) fn digest(number: u64) -> String {
    let bundle = Bundle::from_objects(objects(number));
    bundle.map(|bundle| bundle.digest().to_owned()).unwrap_or_default()
}

/// What an object says that differs from version to version.
pub(super) fn content(object: &Value) -> &Value {
    match &object["data"]["version"] {
        Value::Null => image(object),
        version => version,
    }
}

fn image(web: &Value) -> &Value {
    &web["spec"]["template"]["spec"]["containers"][0]["image"]
}

/// What the controller of Deployments says once it has seen one as it is.
pub(super) fn status(web: &Object) -> Value {
    let number = image(&web.data).as_str();
    let number = number.and_then(|image| image.rsplit(':').next()?.parse().ok());
    let (progressing, reason, ready) = match pods(number.unwrap_or(0)) {
        Pods::Ready => ("True", "NewReplicaSetAvailable", 1),
        Pods::Crash => ("False", "ProgressDeadlineExceeded", 0),
        Pods::Hang => ("True", "ReplicaSetUpdated", 0),
    };
    let available = if ready == 1 { "True" } else { "False" };
    json!({
        "observedGeneration": web.metadata.generation, "replicas": 1, "updatedReplicas": 1,
        "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": 1 - ready,
        "conditions": [
            {"type": "Progressing", "status": progressing, "reason": reason, "message": reason},
            {"type": "Available", "status": available, "reason": reason, "message": reason},
        ],
    })
}
