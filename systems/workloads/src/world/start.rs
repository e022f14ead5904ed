//! The objects that the world begins with.

use super::Workloads;
use super::people::Left;
use super::size::Size;
use crate::deployment::{ANNOTATION_DESIRED_REPLICAS, ANNOTATION_REVISION, ANNOTATION_SIZES};
use crate::kinds::{DEPLOYMENT, NAMESPACE, POD, REPLICA_SET};
use crate::replicaset::ANNOTATION_MAX_REPLICAS;
use crate::template::{LABEL_TEMPLATE_HASH, PodOf, hash, with_hash};
use interlock_api::names::RUNTIME_CLASS;
use interlock_kernel::Name;
use interlock_world::{CLUSTERS, Chance, Servers};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube_core::{ApiResource, DynamicObject};
use serde_json::{Value, json};

/// The one node.
pub(super) const NODE: &str = "n";
/// The namespace.
const HOME: &str = "s";
/// What the Deployment is asked about as.
pub(super) const DEPLOYMENT_SUBJECT: &str = "s/d";
/// Without a deadline nothing depends on the time.
const NO_DEADLINE: i32 = i32::MAX;

/// The Deployment.
pub(super) fn deployment() -> Name {
    Name::within(HOME, "d")
}

/// The ReplicaSet that belongs to no Deployment.
pub(super) fn lone_set() -> Name {
    Name::within(HOME, "r")
}

/// The first template and the other one.
pub(super) fn template(is_changed: bool) -> Value {
    let image = if is_changed { "two" } else { "one" };
    json!({
        "metadata": {"labels": {"app": "d"}},
        "spec": {
            "runtimeClassName": RUNTIME_CLASS, "containers": [{"name": "c", "image": image}],
        },
    })
}

/// What the ReplicaSets are asked about as.
pub(super) fn set_subjects(size: &Size) -> Vec<String> {
    if size.alone == 1 {
        return vec![format!("{HOME}/r")];
    }
    [false, true].map(|is_changed| format!("{HOME}/d-{}", hash(&template(is_changed)))).into()
}

/// A ReplicaSet as a person makes it.
pub(super) fn lone(replicas: u64) -> Value {
    json!({"metadata": {"generation": 1}, "spec": {
        "replicas": replicas, "template": template(false),
        "selector": {"matchLabels": {"app": "d"}},
    }})
}

pub(super) fn initial(
    system: &Workloads,
    servers: &Servers,
) -> ([u32; 1 + CLUSTERS], [(); CLUSTERS], Chance) {
    let Size { desired, surge, unavailable, alone, .. } = system.size;
    let empty = servers.empty();
    let cluster = servers.put(empty, &NAMESPACE, &Name::cluster_wide(HOME), json!({}));
    let cluster = match alone {
        1 => servers.put(cluster, &REPLICA_SET, &lone_set(), lone(desired)),
        _ => {
            let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
            let object = json!({"metadata": {"generation": 1}, "spec": {
                "replicas": desired, "template": template(false),
                "selector": {"matchLabels": {"app": "d"}},
                "strategy": {"rollingUpdate": rolling}, "progressDeadlineSeconds": NO_DEADLINE,
            }});
            servers.put(cluster, &DEPLOYMENT, &deployment(), object)
        }
    };
    let cluster = if system.size.midway == 1 { midway(servers, cluster) } else { cluster };
    ([empty, cluster, empty], [(), ()], Left::of(&system.size).pack())
}

/// Two pods are asked for, with one above. The template had changed: the new ReplicaSet has two pods, one of which is
/// not ready, and the old one has one left. Now the template is the old one again.
fn midway(servers: &Servers, cluster: u32) -> u32 {
    let names = [false, true].map(|is_changed| format!("d-{}", hash(&template(is_changed))));
    let plan = json!({"desired": 2, "sizes": {&names[0]: 1, &names[1]: 2}}).to_string();
    let undone = json!({
        "metadata": {"generation": 3,
            "annotations": {ANNOTATION_SIZES: plan, ANNOTATION_REVISION: "2"}},
        "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2,
            "readyReplicas": 2, "availableReplicas": 2, "unavailableReplicas": 1},
    });
    let mut cluster = servers.change(cluster, &DEPLOYMENT, &deployment(), &undone);
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d",
        "uid": servers.uid(cluster, &DEPLOYMENT, &deployment()),
        "controller": true, "blockOwnerDeletion": true}]);
    let pods: [&[(&str, bool)]; 2] = [&[("d-d0", true)], &[("d-d1", false), ("d-d2", true)]];
    for (place, pods) in pods.into_iter().enumerate() {
        let hash = hash(&template(place == 1));
        let labels = json!({"app": "d", LABEL_TEMPLATE_HASH: hash});
        let name = Name::within(HOME, &names[place]);
        let set = json!({
            "metadata": {"labels": labels, "ownerReferences": owner, "annotations": {
                ANNOTATION_DESIRED_REPLICAS: "2", ANNOTATION_MAX_REPLICAS: "3",
                ANNOTATION_REVISION: (place + 1).to_string()}},
            "spec": {"replicas": pods.len(), "minReadySeconds": 0,
                "selector": {"matchLabels": labels},
                "template": with_hash(&template(place == 1), &hash)},
        });
        cluster = servers.put(cluster, &REPLICA_SET, &name, set);
        let uid = servers.uid(cluster, &REPLICA_SET, &name);
        for (pod, is_ready) in pods {
            let made = pod_of(&names[place], &uid, place == 1);
            let made = if *is_ready { with_status(made) } else { made };
            cluster = servers.put(cluster, &POD, &Name::within(HOME, pod), made);
        }
    }
    cluster
}

/// A pod as its ReplicaSet makes it.
fn pod_of(set: &str, uid: &str, is_changed: bool) -> Value {
    let template = template(is_changed);
    let template = with_hash(&template, &hash(&template));
    let mut owner = DynamicObject::new(set, &ApiResource::erase::<ReplicaSet>(&()));
    owner.metadata.uid = Some(uid.to_owned());
    let kind = &REPLICA_SET;
    PodOf { template: &template, kind, owner: &owner, node: NODE, placed: None }.object()
}

/// The pod once it is ready.
fn with_status(mut pod: Value) -> Value {
    pod["status"] = ready();
    pod
}

/// The status of a pod that is ready.
pub(super) fn ready() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
}
