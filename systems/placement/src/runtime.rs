//! Runs pods as processes of the machine, and stops them for certain.
//!
//! It runs pods of the runtime class `interlock-process` that a syncer made, and leaves all others
//! alone. The subject of a step is a pod: `<namespace>/<name>` on the cluster.

mod act;
pub mod decide;
mod describe;
mod observe;
pub mod outside;
mod status;
#[cfg(test)]
mod tests;

use crate::kinds::{CLAIM, CONFIG_MAP, NAMESPACE, POD, SECRET};
use crate::syncer::marks::is_ours;
use interlock_api::names::RUNTIME_CLASS;
use interlock_kernel::{Controller, Looks, Name, Object, Place, Step, Subject, View, Watch};
use outside::Machine;
use std::sync::Arc;

/// The process runtime of one cluster, in one boot of its machine.
#[derive(Debug, Clone)]
pub struct Runtime {
    boot_id: String,
}

impl Runtime {
    /// The runtime in this boot of the machine: a permit of another boot permits nothing.
    pub fn new(boot_id: impl Into<String>) -> Runtime {
        Runtime { boot_id: boot_id.into() }
    }
}

/// Whether a pod is ours to run: of our runtime class, and made by a syncer for its namespace.
fn is_process(pod: &Object) -> bool {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    pod.data["spec"]["runtimeClassName"] == RUNTIME_CLASS && is_ours(pod, namespace)
}

fn subject(pod: &Object) -> Subject {
    Arc::from(Name::of(pod).to_string())
}

impl Controller for Runtime {
    type Outside = Machine;

    fn name(&self) -> &'static str {
        "placement/runtime"
    }

    fn watches(&self) -> Vec<Watch> {
        let kinds = [NAMESPACE, POD, CONFIG_MAP, SECRET, CLAIM];
        kinds.iter().map(|kind| Watch::all(Place::CLUSTER, kind)).collect()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == POD {
            return is_process(object).then(|| subject(object)).into_iter().collect();
        }
        // What a pod needs to start: its permit, its configuration, its volumes.
        let own = object.metadata.name.as_deref().filter(|_| watch.kind == NAMESPACE);
        let Some(namespace) = own.or(object.metadata.namespace.as_deref()) else {
            return Vec::new();
        };
        let pods = view.list(Place::CLUSTER, &POD, Some(namespace));
        pods.iter().filter(|pod| is_process(pod)).map(subject).collect()
    }

    fn step(&self, subject: &Subject, view: &dyn View, looks: &Looks<Machine>) -> Step<Machine> {
        let scene = subject.split_once('/').and_then(|(namespace, name)| {
            observe::Scene::of(self, &Name::within(namespace, name), (view, looks))
        });
        let Some(scene) = scene else {
            return Step::rest("the pod is not in the cache, which proves nothing");
        };
        match scene.facts() {
            Some(facts) => act::act(&scene, decide::decide(&facts)),
            None => act::ask(&scene),
        }
    }
}
