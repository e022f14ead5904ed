//! What is seen of a PodDisruptionBudget, of its pods and of the workloads that these belong to.

use super::decide::{Condition, Demand, Disrupted, Facts, Fate, Pod, Reason, Scale, Status};
use super::{DELETION_TIMEOUT, DISRUPTION_ALLOWED};
use crate::kinds::{BUDGET, DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET};
use crate::owned::{controller_of, controller_of_kind, has_all, labels_of, read_selector};
use crate::pod::{self, Readiness, readiness_of};
use crate::replicaset::count;
use crate::share::Share;
use interlock_kernel::metadata::{is_deleting, name_of, namespace_of, uid_of};
use interlock_kernel::{Kind, LiveReads, Name, Nothing, Object, Observed, Place, View};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube_core::DynamicObject;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) budget: Object,
}

/// Reads what a step is about.
pub(super) fn observe(
    name: Name,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let Some(budget) = view.get(Place::CLUSTER, &BUDGET, &name) else {
        return Observed::nothing("the cache shows no such PodDisruptionBudget");
    };
    let namespace = namespace_of(&budget).to_owned();
    let all = view.list(Place::CLUSTER, &POD, Some(&namespace));
    let live = live_reads.lists.get(&(Place::CLUSTER, POD, Some(namespace)));
    let selector = selector(&budget);
    let is_selected = |pod: &&Object| match &selector {
        Ok(Some(selector)) => has_all(selector, labels_of(pod)),
        Ok(None) | Err(_) => false,
    };
    let selected: Vec<&Object> = all.iter().filter(is_selected).collect();
    let (now, disrupted) = (view.now(), noted(&budget));
    let fate = |name: &str, since: Timestamp| {
        let shown = |pods: &[Object]| pods.iter().find(|pod| name_of(pod) == name).cloned();
        match shown(&all) {
            Some(pod) if is_over(&pod, since) || !is_selected(&&pod) => Fate::Over,
            Some(_) => Fate::There,
            None => {
                let is_gone =
                    |live: &Vec<Object>| shown(live).is_none_or(|pod| is_over(&pod, since));
                Fate::Unseen { is_over: live.map(is_gone) }
            }
        }
    };
    let disrupted = disrupted.into_iter().map(|(name, since)| {
        let left = since.and_then(|since| left(since, now));
        // One that does not say since when it is noted cannot be waited for.
        let fate = since.map_or(Fate::Over, |since| fate(&name, since));
        (name, Disrupted { left, fate })
    });
    let facts = Facts {
        is_terminating: is_deleting(&budget),
        generation: budget.metadata.generation.unwrap_or_default(),
        demand: selector.as_ref().map_err(Clone::clone).and_then(|_| demand(&budget)),
        pods: selected.iter().map(|pod| pod_fact(pod, now)).collect(),
        scales: scales(&selected, view),
        disrupted: disrupted.collect(),
        reported: reported(&budget),
    };
    Observed::Seen { facts, scene: Scene { now, budget } }
}

/// What a budget selects; None: nothing, because it does not say. An empty selector selects every pod of the namespace.
fn selector(budget: &DynamicObject) -> Result<Option<LabelSelector>, String> {
    match &budget.data["spec"]["selector"] {
        Value::Null => Ok(None),
        said => read_selector(said).map(Some),
    }
}

/// What a budget asks for, or what is wrong with that.
fn demand(budget: &DynamicObject) -> Result<Demand, String> {
    let read = |key: &str, share: &Value| {
        Share::of(share).ok_or_else(|| format!("spec.{key}: {share} is {}", Share::FORM))
    };
    let spec = &budget.data["spec"];
    match (&spec["maxUnavailable"], &spec["minAvailable"]) {
        (Value::Null, Value::Null) => Ok(Demand::Nothing),
        (Value::Null, least) => read("minAvailable", least).map(Demand::MinAvailable),
        (most, _) => read("maxUnavailable", most).map(Demand::MaxUnavailable),
    }
}

fn pod_fact(pod: &Object, now: Timestamp) -> Pod {
    Pod {
        name: name_of(pod).to_owned(),
        is_ready: !is_deleting(pod) && readiness_of(pod, 0, now) != Readiness::Unready,
        controller: controller_of(pod).map(|owner| owner.uid.clone()),
    }
}

/// What the controllers of pods ask for, by the uid of each.
fn scales(pods: &[&Object], view: &dyn View) -> BTreeMap<String, Result<Scale, String>> {
    let mut scales = BTreeMap::new();
    for pod in pods {
        let Some(owner) = controller_of(pod) else { continue };
        if !scales.contains_key(&owner.uid) {
            scales.insert(owner.uid.clone(), scale(pod, owner, view));
        }
    }
    scales
}

/// What the controller of a pod asks for, or why that is not known.
fn scale(pod: &Object, owner: &OwnerReference, view: &dyn View) -> Result<Scale, String> {
    let kinds = [&REPLICA_SET, &STATEFUL_SET, &DEPLOYMENT];
    let Some(kind) = kinds.into_iter().find(|kind| controller_of_kind(pod, kind).is_some()) else {
        return Err(format!(
            "{} {} controls pod {}, and has no scale that is read here; set spec.minAvailable to a \
             number of pods",
            owner.kind,
            owner.name,
            name_of(pod),
        ));
    };
    let set = owner_of(pod, owner, kind, view)?;
    let above = controller_of_kind(&set, &DEPLOYMENT).filter(|_| *kind == REPLICA_SET);
    let Some(above) = above else { return scale_of(&set) };
    let deployment = owner_of(&set, above, &DEPLOYMENT, view)?;
    scale_of(&deployment)
}

/// The owner of an object, if the cache shows it.
fn owner_of(
    object: &Object,
    owner: &OwnerReference,
    kind: &Kind,
    view: &dyn View,
) -> Result<Object, String> {
    let name = Name::within(namespace_of(object), &owner.name);
    let found = view.get(Place::CLUSTER, kind, &name).filter(|it| uid_of(it) == owner.uid);
    found.ok_or_else(|| {
        format!("the cache does not show {} {} of {}", kind.kind, owner.name, name_of(object))
    })
}

fn scale_of(workload: &DynamicObject) -> Result<Scale, String> {
    let replicas = count(&workload.data["spec"]["replicas"])
        .map_err(|flaw| format!("spec.replicas of {}: {flaw}", name_of(workload)))?;
    Ok(Scale { uid: uid_of(workload).to_owned(), replicas })
}

/// The pods that the status of a budget notes as evicted, and since when; None: that cannot be read.
fn noted(budget: &DynamicObject) -> BTreeMap<String, Option<Timestamp>> {
    let noted = budget.data["status"]["disruptedPods"].as_object().into_iter().flatten();
    let since = |said: &Value| said.as_str().and_then(|text| text.parse().ok());
    noted.map(|(name, said)| (name.clone(), since(said))).collect()
}

/// How much longer the deletion of a pod may take; None: its time is over.
fn left(since: Timestamp, now: Timestamp) -> Option<Duration> {
    let until = since.checked_add(DELETION_TIMEOUT).ok()?;
    Duration::try_from(until.duration_since(now)).ok().filter(|left| !left.is_zero())
}

/// Whether the pod that was noted at this time is being deleted, or gone: names of pods are used again, and one that was
/// made later is another.
fn is_over(pod: &DynamicObject, since: Timestamp) -> bool {
    let created = pod.metadata.creation_timestamp.as_ref();
    is_deleting(pod) || created.is_some_and(|created| created.0 > since)
}

/// What the status of a budget says.
fn reported(budget: &DynamicObject) -> Status {
    let status = &budget.data["status"];
    let number = |key: &str| {
        status[key].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
    };
    let condition = pod::condition(&budget.data, DISRUPTION_ALLOWED).map(|it| Condition {
        reason: Reason::read(it["reason"].as_str().unwrap_or_default(), it["status"] == "True"),
        message: it["message"].as_str().unwrap_or_default().to_owned(),
        generation: it["observedGeneration"].as_i64().unwrap_or_default(),
    });
    Status {
        expected: number("expectedPods"),
        healthy: number("currentHealthy"),
        desired: number("desiredHealthy"),
        allowed: number("disruptionsAllowed"),
        generation: status["observedGeneration"].as_i64().unwrap_or_default(),
        disrupted: noted(budget).into_keys().collect(),
        condition,
    }
}
