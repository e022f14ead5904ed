//! The pod of a Job, as it is made.

use super::observe::Scene;
use super::{FINALIZER_TRACKING, INDEX};
use crate::kinds::{JOB, POD};
use crate::template::{PodOf, put};
use interlock_kernel::metadata::{name_of, namespace_of};
use interlock_kernel::{Address, Name, Object, Place, Write};
use serde_json::{Value, json};

/// In the environment of the containers of an indexed Job: the index.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// The write that makes a pod of this name.
pub(super) fn pod(scene: &Scene, job: &Object, name: &str, index: Option<u32>) -> Write {
    let of = PodOf {
        template: &job.data["spec"]["template"],
        kind: &JOB,
        owner: job,
        node: &scene.node,
        placed: scene.home.placed(),
    };
    let mut object = of.object();
    let known = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let others = known.into_iter().filter(|it| it != FINALIZER_TRACKING);
    object["metadata"]["finalizers"] =
        json!(others.chain([json!(FINALIZER_TRACKING)]).collect::<Vec<Value>>());
    if let Some(index) = index {
        number(&mut object, job, index);
    }
    let address = Address::new(Place::CLUSTER, &POD, Name::within(namespace_of(job), name));
    Write::Create { address, object }
}

/// Tells a pod its index, wherever it may look for it.
fn number(pod: &mut Value, job: &Object, index: u32) {
    put(&mut pod["metadata"]["labels"], INDEX, &index.to_string());
    put(&mut pod["metadata"]["annotations"], INDEX, &index.to_string());
    if !pod["spec"].is_object() {
        return;
    }
    pod["spec"]["hostname"] = json!(format!("{}-{index}", name_of(job)));
    for list in ["initContainers", "containers"] {
        let containers = pod["spec"][list].as_array_mut().into_iter().flatten();
        for container in containers.filter(|container| container.is_object()) {
            let known = container["env"].as_array().cloned().unwrap_or_default();
            if known.iter().any(|variable| variable["name"] == INDEX_VARIABLE) {
                continue;
            }
            let variable = json!({"name": INDEX_VARIABLE, "value": index.to_string()});
            container["env"] = json!(known.into_iter().chain([variable]).collect::<Vec<Value>>());
        }
    }
}
