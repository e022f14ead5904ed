//! Runs pods as processes of the machine, and stops them for certain.
//!
//! It runs pods of the runtime class `interlock-process`, and where it is asked to also those that name no
//! class. In a namespace that is placed, a pod runs by the permit of its epoch; in any other one it needs none.
//! The subject of a step is a pod: `<namespace>/<name>` on the cluster.

mod act;
mod address;
pub mod decide;
mod describe;
mod env;
mod facts;
mod files;
mod observe;
pub mod outside;
mod parts;
mod probes;
mod reported;
mod status;
#[cfg(test)]
mod tests;
pub mod tokens;

use crate::kinds::{
    CLAIM, CONFIG_MAP, NAMESPACE, POD, SECRET, SERVICE_ACCOUNT, SERVICE_ACCOUNT_TOKEN, VOLUME,
};
use crate::syncer::marks::is_ours;
use address::PODS_BY_ADDRESS;
use interlock_api::names::RUNTIME_CLASS;
use interlock_kernel::{
    LiveReads, Name, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use outside::Machine;
use std::sync::Arc;
use tokens::Cloud;

/// Which pods of a cluster are for this runtime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those of its class that a syncer made: the cluster has nodes of its own, and a pod of somebody who may create pods
    /// gets no process on this machine.
    #[default]
    Synced,
    /// Those of its class, whoever made them: the cluster has no other nodes.
    OfClass,
    /// Those, and those that name no class.
    All,
}

/// The process runtime of one cluster, in one boot of its machine.
#[derive(Debug, Clone)]
pub struct Runtime {
    boot_id: String,
    has_storage: bool,
    is_root: bool,
    scope: Scope,
    cloud: Cloud,
}

impl Runtime {
    /// The runtime in this boot of the machine: a permit of another boot permits nothing.
    pub fn new(boot_id: impl Into<String>) -> Runtime {
        Runtime {
            boot_id: boot_id.into(),
            has_storage: false,
            is_root: false,
            scope: Scope::Synced,
            cloud: Cloud::default(),
        }
    }

    /// The same, for a cluster whose volumes are made by somebody else on this machine: a pod starts
    /// when its claims have theirs, and no volume is made for it.
    #[must_use]
    pub fn with_storage(mut self) -> Runtime {
        self.has_storage = true;
        self
    }

    /// The same, on a machine where its processes are those of root: a pod that says that it must
    /// not be root is then refused.
    #[must_use]
    pub fn as_root(mut self, is_root: bool) -> Runtime {
        self.is_root = is_root;
        self
    }
}

impl Runtime {
    /// The same, for these pods of the cluster.
    #[must_use]
    pub fn serving(mut self, scope: Scope) -> Runtime {
        self.scope = scope;
        self
    }

    /// Whether a pod is for this runtime.
    fn runs(&self, pod: &Object) -> bool {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        match pod.data["spec"]["runtimeClassName"].as_str() {
            None | Some("") => self.scope == Scope::All,
            Some(class) => {
                let is_for_us = self.scope != Scope::Synced || is_ours(pod, namespace);
                class == RUNTIME_CLASS && is_for_us
            }
        }
    }

    /// The same, where the cloud that the roles of pods are in is somewhere else than their SDKs would
    /// think.
    #[must_use]
    pub fn reaching(mut self, cloud: Cloud) -> Runtime {
        self.cloud = cloud;
        self
    }
}

fn subject(pod: &Object) -> Subject {
    Arc::from(Name::of(pod).to_string())
}

impl Watcher for Runtime {
    fn name(&self) -> &'static str {
        "placement/runtime"
    }

    fn watches(&self) -> Vec<Watch> {
        let kinds = [NAMESPACE, POD, CONFIG_MAP, SECRET, CLAIM, SERVICE_ACCOUNT].into_iter();
        let kinds = kinds.chain(self.has_storage.then_some(VOLUME));
        let watch = |kind| match Watch::all(Place::CLUSTER, &kind) {
            watch if kind == POD => watch.by(&PODS_BY_ADDRESS),
            watch => watch,
        };
        kinds.map(watch).collect()
    }

    fn rights(&self) -> Vec<Right> {
        let pods = [Verb::Patch, Verb::PatchStatus, Verb::Delete];
        let mut rights = Right::to(Place::CLUSTER, &POD, &pods);
        rights.extend(Right::to(Place::CLUSTER, &SERVICE_ACCOUNT_TOKEN, &[Verb::Create]));
        rights
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == POD {
            return self.runs(object).then(|| subject(object)).into_iter().collect();
        }
        // What a pod needs to start: its permit, its configuration, its volumes.
        let own = object.metadata.name.as_deref().filter(|_| watch.kind == NAMESPACE);
        let claimed = object.data["spec"]["claimRef"]["namespace"].as_str();
        let claimed = claimed.filter(|_| watch.kind == VOLUME);
        let Some(namespace) = own.or(claimed).or(object.metadata.namespace.as_deref()) else {
            return Vec::new();
        };
        let pods = view.list(Place::CLUSTER, &POD, Some(namespace));
        pods.iter().filter(|pod| self.runs(pod)).map(subject).collect()
    }
}

impl Room for Runtime {
    type Outside = Machine;
    type Facts = decide::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Machine>,
    ) -> Observed<decide::Facts, observe::Scene> {
        let (namespace, name) = subject.split_once('/').unwrap_or_default();
        observe::observe(self, Name::within(namespace, name), view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Machine> {
        act::act(scene, decision)
    }
}
