//! Says where the pods of a Service are: its EndpointSlices. The subject of a step is a Service.
//!
//! Slices are called `<service>-e<slot>`, so of two writers that make the same slice one fails. A Service without a
//! selector is left to whoever writes its slices, and so is every slice that does not say that it is made here.

mod act;
pub mod decide;
mod observe;
mod resolve;
#[cfg(test)]
mod tests;

use crate::kinds::{ENDPOINT_SLICE, POD, SERVICE};
use crate::owned::{labels_of, subject_of};
use interlock_kernel::metadata::{label, namespace_of};
use interlock_kernel::{
    LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use std::collections::BTreeSet;

/// On a slice, upstream's own: the name of its Service.
pub const LABEL_SERVICE: &str = "kubernetes.io/service-name";
/// On a slice, upstream's own: who writes it.
pub const LABEL_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The value of [`LABEL_MANAGED_BY`] on the slices of this controller.
pub const MANAGED_BY: &str = "endpointslice-controller.interlock.dev";
/// On a slice, upstream's own: its Service has no address of its own.
pub const LABEL_HEADLESS: &str = "service.kubernetes.io/headless";

/// The controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Endpoints;

/// Whether a slice is made here.
fn is_ours(slice: &Object) -> bool {
    label(slice, LABEL_MANAGED_BY) == Some(MANAGED_BY)
}

/// The Service that a slice of ours is of.
fn service_of(slice: &Object) -> Option<Subject> {
    let service = label(slice, LABEL_SERVICE).filter(|_| is_ours(slice))?;
    Some(Subject::from(format!("{}/{service}", namespace_of(slice))))
}

/// The Services that a pod belongs to now, and those whose slices still name it.
fn services_of(pod: &Object, view: &dyn View) -> Vec<Subject> {
    let namespace = Some(namespace_of(pod));
    let services = view.list(Place::CLUSTER, &SERVICE, namespace);
    let selects = |service: &&Object| {
        let selector = resolve::selector_of(service);
        selector.is_some_and(|selector| resolve::is_selected(&selector, labels_of(pod)))
    };
    let now = services.iter().filter(selects).map(|service| subject_of(service));
    let slices = view.list(Place::CLUSTER, &ENDPOINT_SLICE, namespace);
    let before =
        slices.iter().filter(|slice| resolve::names_pod(slice, pod)).filter_map(service_of);
    let all: BTreeSet<Subject> = now.chain(before).collect();
    all.into_iter().collect()
}

impl Watcher for Endpoints {
    fn name(&self) -> &'static str {
        "workloads/endpoints"
    }

    fn watches(&self) -> Vec<Watch> {
        [SERVICE, POD, ENDPOINT_SLICE].iter().map(|kind| Watch::all(Place::CLUSTER, kind)).collect()
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::CLUSTER, &ENDPOINT_SLICE, &[Verb::Create, Verb::Patch, Verb::Delete])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == SERVICE {
            return vec![subject_of(object)];
        }
        if watch.kind == ENDPOINT_SLICE {
            return service_of(object).into_iter().collect();
        }
        services_of(object, view)
    }
}

impl Room for Endpoints {
    type Outside = Nothing;
    type Facts = decide::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> Observed<decide::Facts, observe::Scene> {
        let (facts, scene) = observe::observe(subject, view, live_reads);
        Observed::Seen { facts, scene }
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Nothing> {
        act::act(scene, decision)
    }
}
