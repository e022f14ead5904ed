//! Which cluster a namespace runs on, and when it may change hands (the seed's
//! NamespaceController).
//!
//! A step is about one grant, by the name that it has or will have. What the seed kept in labels
//! (`ns[c]`) is here in the phase, owner and epoch of the grant; the labels follow (room `claims`).
//!
//! Who is woken, and why no more: a namespace, a claim and a grant concern one grant. A Placement
//! concerns the namespaces that it selects. A cluster concerns the grants that wait (any cluster
//! may be the one), those that it owns or is to own, those that ask for it by name, and those of
//! namespaces that its syncer holds. A sign of
//! life is none of their business, so the watch leaves it out, and with it how much room is free,
//! which only those ask for again that wait. A grant whose move has ended wakes two whose moves
//! wait for it.

use crate::kinds::{
    CLAIM, GRANT, GRANTS_BY_NAMESPACE_NAME, GRANTS_BY_OWNER, GRANTS_BY_TARGET, GRANTS_COUNTED_ON,
    GRANTS_DELAYED, GRANTS_MOVING, GRANTS_WAITING, NAMESPACE, NAMESPACES_BY_DESIRED_CLUSTER,
    NAMESPACES_BY_GRANT, NAMESPACES_BY_SYNCER, NAMESPACES_PLACED, PLACEMENT, WORKLOAD_CLUSTER, YES,
};
use interlock_api::names::grant_name;
use interlock_api::placement::PlacementSpec;
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{
    LiveReads, Name, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View,
    Watch, Watcher, read_part,
};
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub mod accept;
mod act;
pub mod decide;
mod findings;
pub mod fit;
mod observe;
mod policy;
mod selector;

pub use selector::is_selected;

/// What was read live at the hub.
pub(crate) type LiveReadsAtHub = LiveReads<Nothing>;

/// How many grants are woken when a move has ended: one for its place, one in case the first goes.
const WOKEN_AFTER_A_MOVE: usize = 2;
/// How many moves may be under way at once, where nobody says otherwise.
const MOVES: usize = 50;
/// A step about a Placement rather than a grant; no grant has a slash in its name.
const PLACEMENT_PREFIX: &str = "placement/";

/// What the scheduler is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many moves may be under way at once. It is counted in a cache, so a few more may begin
    /// when many begin in the same instant.
    pub moves: usize,
    /// Whether there is something that carries data from cluster to cluster, where both have storage
    /// that snapshots can be taken of.
    pub can_copy: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { moves: MOVES, can_copy: true }
    }
}

/// The controller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scheduler {
    limits: Limits,
}

impl Scheduler {
    /// A scheduler with these limits.
    pub fn new(limits: Limits) -> Scheduler {
        Scheduler { limits }
    }
}

impl Watcher for Scheduler {
    fn name(&self) -> &'static str {
        "placement/scheduler"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(Place::HUB, &NAMESPACE)
                .by(&NAMESPACES_BY_GRANT)
                .by(&NAMESPACES_BY_SYNCER)
                .by(&NAMESPACES_BY_DESIRED_CLUSTER)
                .by(&NAMESPACES_PLACED),
            Watch::all(Place::HUB, &CLAIM),
            Watch::all(Place::HUB, &PLACEMENT),
            Watch::all(Place::HUB, &WORKLOAD_CLUSTER).unless(is_same_cluster),
            Watch::all(Place::HUB, &GRANT)
                .by(&GRANTS_BY_NAMESPACE_NAME)
                .by(&GRANTS_BY_OWNER)
                .by(&GRANTS_BY_TARGET)
                .by(&GRANTS_COUNTED_ON)
                .by(&GRANTS_DELAYED)
                .by(&GRANTS_MOVING)
                .by(&GRANTS_WAITING),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        let grant = [Verb::Create, Verb::Patch, Verb::PatchStatus, Verb::Delete];
        [
            Right::to(Place::HUB, &NAMESPACE, &[Verb::Patch]),
            Right::to(Place::HUB, &PLACEMENT, &[Verb::PatchStatus]),
            Right::to(Place::HUB, &GRANT, &grant),
        ]
        .concat()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == GRANT {
            return about_grant(object, view);
        }
        if watch.kind == NAMESPACE {
            return about_namespace(object, view);
        }
        if watch.kind == CLAIM {
            return about_claim(object, view);
        }
        if watch.kind == PLACEMENT {
            return about_placement(object, view);
        }
        about_cluster(object, view)
    }
}

/// What a step rests on: it is about a grant, or about a Placement.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Facts {
    /// Where a namespace is to run.
    Grant(Box<decide::Facts>),
    /// Whether a Placement can be followed.
    Placement(accept::Facts),
}

/// The one next thing to do about a grant, or about a Placement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// About a grant.
    Grant(decide::Decision),
    /// About a Placement.
    Placement(accept::Decision),
}

/// The objects that a step is about.
#[derive(Debug)]
pub enum Scene {
    /// Of a grant.
    Grant(Box<observe::Scene>),
    /// Of a Placement.
    Placement(accept::Scene),
}

impl Room for Scheduler {
    type Outside = Nothing;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReadsAtHub,
    ) -> Observed<Facts, Scene> {
        if let Some(name) = subject.strip_prefix(PLACEMENT_PREFIX) {
            return match accept::observe(name, view) {
                Observed::Nothing(because) => Observed::Nothing(because),
                Observed::Seen { facts, scene } => Observed::Seen {
                    facts: Facts::Placement(facts),
                    scene: Scene::Placement(scene),
                },
            };
        }
        match observe::observe(self.limits, subject, view, live_reads) {
            Ok((facts, scene)) => Observed::Seen {
                facts: Facts::Grant(Box::new(facts)),
                scene: Scene::Grant(Box::new(scene)),
            },
            Err(flaw) => Observed::nothing(format!("grant {subject} cannot be read: {flaw}")),
        }
    }

    fn decide(facts: &Facts) -> Decision {
        match facts {
            Facts::Grant(facts) => Decision::Grant(decide::decide(facts)),
            Facts::Placement(facts) => Decision::Placement(accept::decide(facts)),
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Nothing> {
        match (scene, decision) {
            (Scene::Grant(scene), Decision::Grant(decision)) => act::act(scene, decision),
            (Scene::Placement(scene), Decision::Placement(decision)) => {
                accept::act(scene, decision)
            }
            (Scene::Grant(_), decision @ Decision::Placement(_))
            | (Scene::Placement(_), decision @ Decision::Grant(_)) => {
                Step::rest(format!("the decision {decision:?} is about another object"))
            }
        }
    }
}

fn named(objects: &[Object]) -> impl Iterator<Item = Subject> {
    objects.iter().map(|object| Subject::from(name_of(object)))
}

fn grant_of(namespace: &DynamicObject) -> Subject {
    Subject::from(grant_name(name_of(namespace), uid_of(namespace)))
}

fn about_grant(grant: &Object, view: &dyn View) -> Vec<Subject> {
    let mut subjects = vec![Subject::from(name_of(grant))];
    if (GRANTS_MOVING.values)(grant).is_empty() {
        let delayed = view.find_some(Place::HUB, &GRANTS_DELAYED, YES, WOKEN_AFTER_A_MOVE);
        subjects.extend(named(&delayed));
    }
    subjects
}

/// A namespace concerns its own grant, and that of one that had its name before.
fn about_namespace(namespace: &Object, view: &dyn View) -> Vec<Subject> {
    let grants = view.find(Place::HUB, &GRANTS_BY_NAMESPACE_NAME, name_of(namespace));
    distinct(named(&grants).chain([grant_of(namespace)]).collect())
}

/// A claim that came before its namespace is read when that comes.
pub(crate) fn about_claim(claim: &Object, view: &dyn View) -> Vec<Subject> {
    let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
    let namespace = view.get(Place::HUB, &NAMESPACE, &Name::cluster_wide(namespace));
    namespace.iter().map(|namespace| grant_of(namespace)).collect()
}

/// A Placement concerns the namespaces that it selects; one that cannot be read may have selected
/// any.
fn about_placement(placement: &Object, view: &dyn View) -> Vec<Subject> {
    let spec: Option<PlacementSpec> = read_part(placement, "spec").ok().flatten();
    let is_concerned = |namespace: &&Object| {
        spec.as_ref().is_none_or(|spec| {
            let labels = namespace.metadata.labels.as_ref();
            selector::is_selected(&spec.namespace_selector, labels)
        })
    };
    let placed = view.find(Place::HUB, &NAMESPACES_PLACED, YES);
    let itself = Subject::from(format!("{PLACEMENT_PREFIX}{}", name_of(placement)));
    placed.iter().filter(is_concerned).map(|n| grant_of(n)).chain([itself]).collect()
}

fn about_cluster(cluster: &Object, view: &dyn View) -> Vec<Subject> {
    let uid = uid_of(cluster);
    let waiting = view.find(Place::HUB, &GRANTS_WAITING, YES);
    let owned = view.find(Place::HUB, &GRANTS_BY_OWNER, uid);
    let targeted = view.find(Place::HUB, &GRANTS_BY_TARGET, uid);
    let asking = view.find(Place::HUB, &NAMESPACES_BY_DESIRED_CLUSTER, name_of(cluster));
    // What a namespace that is being deleted waits for is reported with the name of the cluster.
    let held = view.find(Place::HUB, &NAMESPACES_BY_SYNCER, uid);
    let grants = named(&waiting).chain(named(&owned)).chain(named(&targeted));
    let namespaces = asking.iter().chain(&held).map(|namespace| grant_of(namespace));
    distinct(grants.chain(namespaces).collect())
}

fn distinct(mut subjects: Vec<Subject>) -> Vec<Subject> {
    subjects.sort_unstable();
    subjects.dedup();
    subjects
}

/// Whether nothing changed about a cluster that could change where a namespace is to run.
fn is_same_cluster(before: &DynamicObject, after: &DynamicObject) -> bool {
    let classes = |cluster: &DynamicObject| -> Vec<[Value; 3]> {
        let classes = cluster.data["status"]["storageClasses"].as_array().into_iter().flatten();
        let told = |class: &Value| {
            [class["name"].clone(), class["isDefault"].clone(), class["canSnapshot"].clone()]
        };
        classes.map(told).collect()
    };
    before.metadata.uid == after.metadata.uid
        && before.metadata.labels == after.metadata.labels
        && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
        && before.data["spec"] == after.data["spec"]
        && before.data["status"]["conditions"] == after.data["status"]["conditions"]
        && classes(before) == classes(after)
}

#[cfg(test)]
mod tests;
