//! What one decision about a ReplicaSet rests on.

use super::decide::{Facts, Failure, Leaving, Member, Reason, Spec, Status, Taken};
use super::{ANNOTATION_DELETION_COST, ANNOTATION_LEAVING, ANNOTATION_MAX_REPLICAS};
use crate::kinds::{DEPLOYMENT, POD, REPLICA_SET};
use crate::owned::{
    Claim, Owner, controller_of, controller_of_kind, is_selected, labels_of, labels_of_template,
    selector_of,
};
use crate::pod::{Pod, condition};
use crate::slots::Slots;
use crate::template::Home;
use interlock_kernel::metadata::{annotation, is_deleting, name_of, namespace_of, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Nothing, Object, Observed, Place, View};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_core::DynamicObject;
use serde_json::Value;
use std::collections::BTreeMap;

/// The condition that says why a ReplicaSet cannot do what it is asked for.
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The objects that a decision is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) set: Object,
    pub(super) home: Home,
    pub(super) slots: Option<Slots>,
    /// The pods, in the order of the facts.
    pub(super) pods: Vec<Object>,
    /// The name of the pod that is about to be deleted.
    pub(super) leaving: Option<Name>,
}

/// Reads what a step is about.
pub(super) fn observe(
    name: Name,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let address = Address::new(Place::CLUSTER, &REPLICA_SET, name);
    let Some(set) = view.get(Place::CLUSTER, &REPLICA_SET, &address.name) else {
        return Observed::nothing("the cache shows no such ReplicaSet");
    };
    let namespace = namespace_of(&set).to_owned();
    let of = Of::new(&set, view.now());
    let all = view.list(Place::CLUSTER, &POD, Some(&namespace));
    let members = of.members(&all);
    let live = live_reads.lists.get(&(Place::CLUSTER, POD, Some(namespace.clone())));
    let (leaving, named) = leaving(&set);
    let at = named.clone().map(|(name, _)| pod_at(name));
    let found = at.and_then(|at| live_reads.objects.get(&at));
    let slots = slots_of(&set);
    let home = Home::of(view, &namespace);
    let facts = Facts {
        is_terminating: is_deleting(&set),
        spec: spec(&set, slots.as_ref()),
        generation: set.metadata.generation.unwrap_or_default(),
        home: home.clone(),
        pods: members.iter().map(|(member, _)| member.clone()).collect(),
        taken: slots.as_ref().map(|slots| taken(slots, &set, &all, view)).unwrap_or_default(),
        leaving,
        is_named_there: found.map(|found| {
            let uid = named.as_ref().map_or("", |(_, uid)| uid);
            found.as_ref().is_some_and(|pod| is_still_ours(&set, pod, uid))
        }),
        is_current: live_reads.objects.get(&address).map(|live| is_same(&set, live.as_ref())),
        live: live.map(|all| of.members(all).into_iter().map(|(member, _)| member).collect()),
        reported: reported(&set),
    };
    let pods = members.into_iter().map(|(_, pod)| pod).collect();
    let leaving = named.map(|(name, _)| name);
    Observed::Seen { facts, scene: Scene { now: view.now(), set, home, slots, pods, leaving } }
}

/// Where a pod is.
pub(super) fn pod_at(name: Name) -> Address {
    Address::new(Place::CLUSTER, &POD, name)
}

/// Whether a live read found the object that is in the cache, and nobody deletes it.
fn is_same(cached: &DynamicObject, live: Option<&Object>) -> bool {
    live.is_some_and(|live| uid_of(live) == uid_of(cached) && !is_deleting(live))
}

/// Whether a pod still is the one that was named, ours, and there to be deleted.
fn is_still_ours(set: &DynamicObject, pod: &DynamicObject, uid: &str) -> bool {
    let is_ours = controller_of(pod).is_some_and(|owner| owner.uid == uid_of(set));
    uid_of(pod) == uid && is_ours && !is_deleting(pod)
}

/// A ReplicaSet, as far as it matters to its pods.
struct Of<'a> {
    set: &'a DynamicObject,
    selector: Option<LabelSelector>,
    slots: Option<Slots>,
    labels: BTreeMap<String, String>,
    min_ready_seconds: i64,
    now: Timestamp,
}

impl Of<'_> {
    fn new(set: &DynamicObject, now: Timestamp) -> Of<'_> {
        let spec = &set.data["spec"];
        Of {
            set,
            selector: selector_of(set).ok(),
            slots: slots_of(set),
            labels: labels_of_template(&spec["template"]),
            min_ready_seconds: spec["minReadySeconds"].as_i64().unwrap_or_default(),
            now,
        }
    }

    /// The pods that are its business; without a selector none is.
    fn members(&self, all: &[Object]) -> Vec<(Member, Object)> {
        let Some(selector) = &self.selector else { return Vec::new() };
        let owner = Owner { uid: uid_of(self.set), selector };
        let claims = all.iter().map(|pod| (owner.claim(pod), pod));
        let ours = claims.filter(|(claim, _)| *claim != Claim::Foreign);
        ours.map(|(claim, pod)| (self.member(claim, pod), pod.clone())).collect()
    }

    fn member(&self, claim: Claim, pod: &Object) -> Member {
        let labels = labels_of(pod);
        let has = |(key, value): (&String, &String)| {
            labels.and_then(|labels| labels.get(key)) == Some(value)
        };
        Member {
            pod: Pod::of(pod, self.min_ready_seconds, self.now),
            claim,
            slot: self.slots.as_ref().and_then(|slots| slots.slot(name_of(pod))),
            cost: annotation(pod, ANNOTATION_DELETION_COST)
                .and_then(|text| text.parse().ok())
                .unwrap_or_default(),
            is_labelled: self.labels.iter().all(has),
        }
    }
}

/// The names of the pods of a ReplicaSet; None: its Deployment has not said how many there may be.
pub(super) fn slots_of(set: &DynamicObject) -> Option<Slots> {
    let replicas = count(&set.data["spec"]["replicas"]).ok()?;
    let Some(deployment) = controller_of_kind(set, &DEPLOYMENT) else {
        return Some(Slots::of_replica_set(name_of(set), replicas));
    };
    let most = annotation(set, ANNOTATION_MAX_REPLICAS)?.parse().ok()?;
    Some(Slots::of_deployment(&deployment.name, most))
}

/// What a ReplicaSet asks for, or what is wrong with it.
fn spec(set: &DynamicObject, slots: Option<&Slots>) -> Result<Spec, String> {
    let said = &set.data["spec"];
    let replicas = count(&said["replicas"]).map_err(|flaw| format!("spec.replicas: {flaw}"))?;
    let selector = selector_of(set)?;
    if !said["template"]["spec"].is_object() {
        return Err("spec.template.spec is missing".to_owned());
    }
    if !is_selected(&selector, Some(&labels_of_template(&said["template"]))) {
        return Err("spec.selector does not select the labels of spec.template".to_owned());
    }
    Ok(Spec { replicas, slots: slots.map(Slots::count) })
}

/// How many pods are asked for: one, if nobody says otherwise.
pub(crate) fn count(said: &Value) -> Result<u32, String> {
    match said {
        Value::Null => Ok(1),
        number => number
            .as_i64()
            .and_then(|number| i32::try_from(number).ok())
            .and_then(|number| u32::try_from(number).ok())
            .ok_or_else(|| format!("{said} is no number of pods")),
    }
}

/// Who has the names that a ReplicaSet may give.
fn taken(slots: &Slots, set: &DynamicObject, all: &[Object], view: &dyn View) -> Vec<Taken> {
    let deployment = controller_of_kind(set, &DEPLOYMENT).map(|owner| owner.uid.clone());
    let is_related = |pod: &Object| {
        let Some(owner) = controller_of_kind(pod, &REPLICA_SET) else { return false };
        if owner.uid == uid_of(set) || deployment.is_none() {
            return owner.uid == uid_of(set);
        }
        let name = Name::within(namespace_of(pod), &owner.name);
        let sibling = view.get(Place::CLUSTER, &REPLICA_SET, &name);
        // One that is not there any more leaves its pods to the collector of garbage: they are soon gone.
        let of = |set: &Object| controller_of_kind(set, &DEPLOYMENT).map(|of| of.uid.clone());
        sibling.is_none_or(|sibling| of(&sibling) == deployment)
    };
    let slot = |pod: &Object| {
        let slot = slots.slot(name_of(pod)).filter(|slot| *slot < slots.count())?;
        Some(Taken { slot, is_by_stranger: !is_deleting(pod) && !is_related(pod) })
    };
    all.iter().filter_map(slot).collect()
}

/// The pod that is about to be deleted, with its name and uid if these can be read.
fn leaving(set: &DynamicObject) -> (Leaving, Option<(Name, String)>) {
    let said = annotation(set, ANNOTATION_LEAVING).unwrap_or_default();
    if said.is_empty() {
        return (Leaving::Nobody, None);
    }
    match said.split_once('/') {
        Some((name, uid)) if is_name(name) && !uid.is_empty() => {
            let at = Name::within(namespace_of(set), name);
            (Leaving::Named(uid.to_owned()), Some((at, uid.to_owned())))
        }
        _ => (Leaving::Unreadable, None),
    }
}

/// Whether a text can be asked for as the name of a pod.
fn is_name(text: &str) -> bool {
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'.';
    !text.is_empty() && text.bytes().all(is_letter)
}

/// What the status of a ReplicaSet says.
fn reported(set: &DynamicObject) -> Status {
    let status = &set.data["status"];
    let number = |key: &str| {
        status[key].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
    };
    let failure = condition(&set.data, REPLICA_FAILURE).filter(|it| it["status"] == "True");
    let text = |said: &Value| said.as_str().unwrap_or_default().to_owned();
    let failure = failure.map(|it| Failure {
        reason: Reason::read(it["reason"].as_str().unwrap_or_default()),
        message: text(&it["message"]),
    });
    Status {
        replicas: number("replicas"),
        fully_labelled: number("fullyLabeledReplicas"),
        ready: number("readyReplicas"),
        available: number("availableReplicas"),
        generation: status["observedGeneration"].as_i64().unwrap_or_default(),
        failure,
    }
}
