//! What is seen of a Service, of its pods and of its slices.

use super::decide::{Endpoint, Facts, Port, Selecting, Service, Slice};
use super::resolve;
use super::{LABEL_HEADLESS, LABEL_MANAGED_BY, LABEL_SERVICE, MANAGED_BY, is_ours};
use crate::kinds::{ENDPOINT_SLICE, POD, SERVICE};
use crate::owned::{controller_of, labels_of, name_in};
use crate::slots::Slots;
use interlock_kernel::metadata::{is_deleting, label, name_of, namespace_of, uid_of};
use interlock_kernel::{Address, LiveReads, Nothing, Object, Place, Subject, View};
use std::collections::{BTreeMap, BTreeSet};

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    /// Where the Service is.
    pub(super) address: Address,
    /// The Service, if the cache shows it.
    pub(super) service: Option<Object>,
    /// The slices of ours, by slot.
    pub(super) slices: BTreeMap<u32, Object>,
    /// How they are called.
    pub(super) names: Slots,
}

/// Reads what a step is about.
pub(super) fn observe(
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> (Facts, Scene) {
    let address = Address::new(Place::CLUSTER, &SERVICE, name_in(subject));
    let service = view.get(Place::CLUSTER, &SERVICE, &address.name);
    let names = Slots::of_service(&address.name.name);
    let namespace = address.name.namespace.as_deref();
    let all = view.list(Place::CLUSTER, &ENDPOINT_SLICE, namespace);
    let with_slot = all.iter().filter_map(|slice| Some((names.slot(name_of(slice))?, slice)));
    let is_usable = |slice: &Object| {
        let service = label(slice, LABEL_SERVICE);
        is_ours(slice) && service == Some(&*address.name.name) && !is_deleting(slice)
    };
    let (usable, others): (Vec<_>, Vec<_>) = with_slot.partition(|(_, slice)| is_usable(slice));
    let slices: BTreeMap<u32, Object> =
        usable.into_iter().map(|(slot, slice)| (slot, slice.clone())).collect();
    let facts = Facts {
        service: service_fact(service.as_ref(), &address, view, live_reads),
        slices: slices.iter().map(|(slot, it)| (*slot, slice(it, service.as_ref()))).collect(),
        taken: others.into_iter().map(|(slot, _)| slot).collect(),
    };
    (facts, Scene { address, service, slices, names })
}

fn service_fact(
    service: Option<&Object>,
    address: &Address,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Service {
    let Some(service) = service else {
        let is_there = live_reads.objects.get(address).map(Option::is_some);
        return Service::Unseen { is_there };
    };
    if is_deleting(service) {
        return Service::Leaving;
    }
    let Some(selector) = resolve::selector_of(service) else { return Service::WithoutSelector };
    let pods = view.list(Place::CLUSTER, &POD, Some(namespace_of(service)));
    let selected = pods.iter().filter(|pod| resolve::is_selected(&selector, labels_of(pod)));
    let candidates = selected.filter_map(|pod| resolve::candidate(service, pod)).collect();
    Service::Selecting(Selecting { candidates })
}

/// A slice as a fact. What cannot be read in it differs from everything that is ever written.
fn slice(slice: &Object, service: Option<&Object>) -> Slice {
    let items = |field: &str| slice.data[field].as_array().map(Vec::as_slice).unwrap_or_default();
    let (endpoints, ports) = (items("endpoints"), items("ports"));
    let read_endpoints: Option<Vec<Endpoint>> = endpoints.iter().map(Endpoint::read).collect();
    let read_ports: Option<BTreeSet<Port>> = ports.iter().map(Port::read).collect();
    let is_labelled = service.is_none_or(|service| {
        labels_of(slice) == Some(&labels(service))
            && controller_of(slice).is_some_and(|owner| owner.uid == uid_of(service))
    });
    Slice {
        is_as_written: read_endpoints.is_some() && read_ports.is_some() && is_labelled,
        endpoints: read_endpoints.unwrap_or_default(),
        ports: read_ports.unwrap_or_default(),
    }
}

/// The labels of the slices of a Service: its own, and those that say whose they are.
pub(super) fn labels(service: &Object) -> BTreeMap<String, String> {
    let mut labels = labels_of(service).cloned().unwrap_or_default();
    labels.remove(LABEL_HEADLESS);
    labels.insert(LABEL_SERVICE.to_owned(), name_of(service).to_owned());
    labels.insert(LABEL_MANAGED_BY.to_owned(), MANAGED_BY.to_owned());
    if service.data["spec"]["clusterIP"] == "None" {
        labels.insert(LABEL_HEADLESS.to_owned(), String::new());
    }
    labels
}
