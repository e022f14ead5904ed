//! What one decision about a Deployment rests on.

use super::decide::{Counts, Facts, Set};
use super::spec::Spec;
use super::standing::{CONDITIONS, Condition, PROGRESSING, Pods, REPLICA_FAILURE, Said};
use super::{ANNOTATION_DESIRED_REPLICAS, ANNOTATION_REVISION, ANNOTATION_SIZES};
use crate::kinds::{DEPLOYMENT, POD, REPLICA_SET};
use crate::owned::{Claim, Owner, controller_of, selector_of};
use crate::pod::{Pod, condition, next_available};
use crate::replicaset::{ANNOTATION_LEAVING, ANNOTATION_MAX_REPLICAS, count};
use crate::slots::base;
use crate::template;
use interlock_kernel::metadata::{annotation, is_deleting, name_of, namespace_of, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Nothing, Object, Observed, Place, Seen, View};
use jiff::Timestamp;
use kube_core::DynamicObject;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a Deployment notes for itself, and for its own kind: none of it goes to its ReplicaSets.
const NOT_PASSED_ON: [&str; 7] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision-history",
    ANNOTATION_REVISION,
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_MAX_REPLICAS,
    ANNOTATION_SIZES,
    ANNOTATION_LEAVING,
];
/// What follows the name of a Deployment in those of its ReplicaSets: a dash, a hash, and a number if another has
/// that name.
const SUFFIX_CHARACTERS: usize = 14;

/// The objects that a decision is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) address: Address,
    pub(super) deployment: Object,
    /// The ReplicaSets, in the order of the facts.
    pub(super) sets: Vec<Object>,
    /// Which of them has the template of the Deployment.
    pub(super) new: Option<usize>,
    /// What is noted on the ReplicaSet of the template, and on the others.
    pub(super) notes: Notes,
    /// The names of all ReplicaSets of the namespace, whosever they are.
    pub(super) taken: Vec<String>,
}

/// The ReplicaSet that a template gets.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) hash: String,
    pub(super) name: Name,
}

impl Scene {
    /// The ReplicaSet that the template gets: of a name that no other template has.
    pub(super) fn fresh(&self) -> Fresh {
        let deployment = &self.deployment;
        let hash = template::hash(&deployment.data["spec"]["template"]);
        let name = base(name_of(deployment), SUFFIX_CHARACTERS);
        let numbers = (1..).map(|number: usize| format!("{hash}{number}"));
        let is_free = |hash: &String| !self.taken.contains(&format!("{name}-{hash}"));
        let most = self.taken.len() + 1;
        let free = std::iter::once(hash.clone()).chain(numbers).take(most).find(is_free);
        let hash = free.unwrap_or(hash);
        let name = Name::within(namespace_of(deployment), &format!("{name}-{hash}"));
        Fresh { hash, name }
    }
}

/// What a Deployment notes on its ReplicaSets.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// On all of them.
    pub(super) all: BTreeMap<String, String>,
    /// On the one with its template besides.
    pub(super) new: BTreeMap<String, String>,
    /// How long a pod must be ready.
    pub(super) min_ready_seconds: i64,
}

impl Notes {
    fn of(deployment: &DynamicObject) -> Notes {
        let said = deployment.metadata.annotations.iter().flatten();
        let passed = said.filter(|(key, _)| !NOT_PASSED_ON.contains(&key.as_str()));
        let number = |number: u32| number.to_string();
        let spec = Spec::of(deployment).ok();
        let all = spec.into_iter().flat_map(|spec| {
            [
                (ANNOTATION_DESIRED_REPLICAS.to_owned(), number(spec.replicas)),
                (ANNOTATION_MAX_REPLICAS.to_owned(), number(spec.most())),
            ]
        });
        Notes {
            all: all.collect(),
            new: passed.map(|(key, value)| (key.clone(), value.clone())).collect(),
            min_ready_seconds: min_ready_seconds(deployment),
        }
    }

    /// What is noted on one of them.
    pub(super) fn on(&self, is_new: bool) -> BTreeMap<String, String> {
        let mut notes = self.all.clone();
        if is_new {
            notes.extend(self.new.clone());
        }
        notes
    }

    fn are_on(&self, set: &DynamicObject, is_new: bool) -> bool {
        let has = |(key, value): (String, String)| annotation(set, &key) == Some(value.as_str());
        self.on(is_new).into_iter().all(has) && min_ready_seconds(set) == self.min_ready_seconds
    }
}

fn min_ready_seconds(object: &DynamicObject) -> i64 {
    object.data["spec"]["minReadySeconds"].as_i64().unwrap_or_default()
}

/// Reads what a step is about.
pub(super) fn observe(
    name: Name,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let address = Address::new(Place::CLUSTER, &DEPLOYMENT, name);
    let Some(deployment) = view.get(Place::CLUSTER, &DEPLOYMENT, &address.name) else {
        return Observed::nothing("the cache shows no such Deployment");
    };
    let namespace = namespace_of(&deployment).to_owned();
    let of = Of { deployment: &deployment, notes: Notes::of(&deployment), now: view.now() };
    let all = view.list(Place::CLUSTER, &REPLICA_SET, Some(&namespace));
    let pods = view.list(Place::CLUSTER, &POD, Some(&namespace));
    let sets = of.sets(&all, &pods);
    let list = |kind| live_reads.lists.get(&(Place::CLUSTER, kind, Some(namespace.clone())));
    let live = list(REPLICA_SET).zip(list(POD));
    let facts = Facts {
        is_terminating: is_deleting(&deployment),
        spec: Spec::of(&deployment),
        generation: deployment.metadata.generation.unwrap_or_default(),
        revision: annotation(&deployment, ANNOTATION_REVISION).and_then(|it| it.parse().ok()),
        plan: annotation(&deployment, ANNOTATION_SIZES)
            .and_then(|text| serde_json::from_str(text).ok()),
        sets: sets.iter().map(|(set, _)| set.clone()).collect(),
        is_current: live_reads.objects.get(&address).map(|live| {
            let is_same = |live: &Object| Seen::of(live) == Seen::of(&deployment);
            live.as_ref().is_some_and(|live| is_same(live) && !is_deleting(live))
        }),
        live: live.map(|(all, pods)| of.sets(all, pods).into_iter().map(|(set, _)| set).collect()),
        said: said(&deployment, view.now()),
        next_available: of.next_available(&sets, &pods),
    };
    let scene = Scene {
        now: view.now(),
        address,
        new: facts.sets.iter().position(|set| set.is_new),
        sets: sets.into_iter().map(|(_, set)| set).collect(),
        taken: all.iter().map(|set| name_of(set).to_owned()).collect(),
        notes: of.notes,
        deployment: deployment.clone(),
    };
    Observed::Seen { facts, scene }
}

/// A Deployment, as far as it matters to its ReplicaSets.
struct Of<'a> {
    deployment: &'a DynamicObject,
    notes: Notes,
    now: Timestamp,
}

impl Of<'_> {
    /// The ReplicaSets that are its business, the oldest first; without a selector none is.
    fn sets(&self, all: &[Object], pods: &[Object]) -> Vec<(Set, Object)> {
        let Ok(selector) = selector_of(self.deployment) else { return Vec::new() };
        let owner = Owner { uid: uid_of(self.deployment), selector: &selector };
        let mut ours: Vec<(Claim, &Object)> =
            all.iter().map(|set| (owner.claim(set), set)).collect();
        ours.retain(|(claim, _)| *claim != Claim::Foreign);
        ours.sort_by_key(|(_, set)| (set.metadata.creation_timestamp.clone(), name_of(set)));
        let wanted = &self.deployment.data["spec"]["template"];
        let is_candidate = |(claim, set): &&(Claim, &Object)| {
            *claim == Claim::Own && template::is_same(&set.data["spec"]["template"], wanted)
        };
        let candidates = || ours.iter().filter(is_candidate).map(|(_, set)| name_of(set));
        let is_there =
            |name: &&str| ours.iter().any(|(_, set)| name_of(set) == *name && !is_deleting(set));
        let new = candidates().find(is_there).or_else(|| candidates().next());
        let set = |(claim, set): &(Claim, &Object)| {
            let is_new = new == Some(name_of(set));
            (self.set(set, *claim, is_new, pods), Object::clone(set))
        };
        ours.iter().map(set).collect()
    }

    fn set(&self, set: &Object, claim: Claim, is_new: bool, pods: &[Object]) -> Set {
        let failure = condition(&set.data, REPLICA_FAILURE).filter(|it| it["status"] == "True");
        let message = |it: &Value| it["message"].as_str().unwrap_or_default().to_owned();
        Set {
            name: name_of(set).to_owned(),
            claim,
            is_new,
            is_terminating: is_deleting(set),
            size: count(&set.data["spec"]["replicas"]).unwrap_or(0),
            revision: annotation(set, ANNOTATION_REVISION)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
            is_noted: self.notes.are_on(set, is_new),
            is_pod_named: annotation(set, ANNOTATION_LEAVING).is_some_and(|it| !it.is_empty()),
            failure: failure.map(|it| format!("ReplicaSet {}: {}", name_of(set), message(it))),
            pods: self.counts(set, pods),
        }
    }

    fn pods_of(&self, set: &Object, pods: &[Object]) -> Vec<Pod> {
        let is_own = |pod: &&Object| controller_of(pod).is_some_and(|it| it.uid == uid_of(set));
        let seconds = self.notes.min_ready_seconds;
        pods.iter().filter(is_own).map(|pod| Pod::of(pod, seconds, self.now)).collect()
    }

    fn counts(&self, set: &Object, pods: &[Object]) -> Counts {
        let pods = self.pods_of(set, pods);
        let count = |which: fn(&Pod) -> bool| {
            u32::try_from(pods.iter().filter(|pod| which(pod)).count()).unwrap_or(u32::MAX)
        };
        Counts {
            all: count(|_| true),
            active: count(Pod::is_active),
            ready: count(Pod::is_ready),
            available: count(Pod::is_available),
        }
    }

    fn next_available(&self, sets: &[(Set, Object)], pods: &[Object]) -> Option<Duration> {
        let own = sets.iter().filter(|(set, _)| set.claim == Claim::Own);
        own.filter_map(|(_, set)| next_available(&self.pods_of(set, pods))).min()
    }
}

/// What the status of a Deployment says.
fn said(deployment: &DynamicObject, now: Timestamp) -> Said {
    let status = &deployment.data["status"];
    let number = |key: &str| {
        status[key].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
    };
    let text = |said: &Value| said.as_str().unwrap_or_default().to_owned();
    let known = status["conditions"].as_array().into_iter().flatten();
    let ours = known.filter(|it| CONDITIONS.iter().any(|kind| it["type"] == *kind));
    let condition_of = |it: &Value| Condition {
        kind: text(&it["type"]),
        holds: match it["status"].as_str() {
            Some("True") => Some(true),
            Some("False") => Some(false),
            _ => None,
        },
        reason: text(&it["reason"]),
        message: text(&it["message"]),
    };
    Said {
        generation: status["observedGeneration"].as_i64().unwrap_or_default(),
        pods: Pods {
            all: number("replicas"),
            updated: number("updatedReplicas"),
            ready: number("readyReplicas"),
            available: number("availableReplicas"),
            unavailable: number("unavailableReplicas"),
        },
        conditions: ours.map(condition_of).collect(),
        progress_age_seconds: progress_age_seconds(&deployment.data, now),
    }
}

fn progress_age_seconds(data: &Value, now: Timestamp) -> i64 {
    let progressing = condition(data, PROGRESSING);
    let since = progressing.and_then(|it| it["lastUpdateTime"].as_str()?.parse().ok());
    let since: Timestamp = since.unwrap_or(now);
    now.as_second().saturating_sub(since.as_second()).max(0)
}
