//! What the fleet looked like at one moment: all that an answer rests on, and nothing that asks
//! again.

use interlock_api::names;
use interlock_api::placement::{Grant, Phase, Placement, Ref, WorkloadCluster, condition};
use interlock_kernel::conditions::Condition;
use interlock_placement::scheduler::is_selected;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Namespace, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use std::collections::BTreeMap;

/// The fleet at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    /// The moment.
    pub(crate) now: Timestamp,
    /// All clusters, by name.
    pub(crate) clusters: Vec<WorkloadCluster>,
    /// All Placements, by name.
    pub(crate) placements: Vec<Placement>,
    /// All MaintenanceTurns, where they were asked for.
    pub(crate) turns: Vec<interlock_api::turns::MaintenanceTurn>,
    /// The subjects that were asked for, by name.
    pub(crate) subjects: Vec<Subject>,
}

/// A namespace and what is known of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subject {
    /// Its name.
    pub(crate) name: String,
    /// The namespace at the hub; none: it is gone, and its grant is not.
    pub(crate) namespace: Option<Namespace>,
    /// Its grant, if it has one.
    pub(crate) grant: Option<Grant>,
    /// Its claims, where they were asked for.
    pub(crate) claims: Vec<PersistentVolumeClaim>,
    /// What was reported about it, where that was asked for; the oldest first.
    pub(crate) events: Vec<Event>,
}

/// Where a namespace is to run, and who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Desired {
    /// On this cluster: the annotation of the namespace says so.
    Named(String),
    /// On a cluster that this Placement selects.
    Selected(String),
    /// Anywhere.
    Anywhere,
}

impl Picture {
    /// Puts grants and namespaces together: a grant belongs to the namespace of its uid.
    pub(crate) fn pair(namespaces: Vec<Namespace>, grants: Vec<Grant>) -> Vec<Subject> {
        let mut by_uid: BTreeMap<String, Grant> =
            grants.into_iter().map(|grant| (grant.spec.namespace.uid.clone(), grant)).collect();
        let mut subjects: Vec<Subject> = Vec::new();
        for namespace in namespaces {
            let grant = by_uid.remove(namespace.metadata.uid.as_deref().unwrap_or_default());
            let name = namespace.metadata.name.clone().unwrap_or_default();
            subjects.push(Subject {
                name,
                namespace: Some(namespace),
                grant,
                ..Subject::default()
            });
        }
        let left = by_uid.into_values().map(|grant| {
            let name = grant.spec.namespace.name.clone();
            Subject { name, grant: Some(grant), ..Subject::default() }
        });
        subjects.extend(left);
        subjects.sort_by(|a, b| a.name.cmp(&b.name));
        subjects
    }

    /// The cluster of this name.
    pub(crate) fn cluster(&self, name: &str) -> Option<&WorkloadCluster> {
        self.clusters.iter().find(|cluster| cluster.metadata.name.as_deref() == Some(name))
    }

    /// The cluster that is meant; one that came by its name later is another one.
    pub(crate) fn cluster_of(&self, wanted: &Ref) -> Option<&WorkloadCluster> {
        self.clusters.iter().find(|cluster| cluster.metadata.uid.as_deref() == Some(&wanted.uid))
    }

    /// The Placement that counts for a namespace: the first by name that selects it.
    pub(crate) fn placement_of(&self, namespace: &Namespace) -> Option<&Placement> {
        self.placements
            .iter()
            .filter(|placement| placement.metadata.deletion_timestamp.is_none())
            .find(|placement| {
                let labels = namespace.metadata.labels.as_ref();
                is_selected(&placement.spec.namespace_selector, labels)
            })
    }

    /// Where a namespace is to run.
    pub(crate) fn desired(&self, subject: &Subject) -> Desired {
        let Some(namespace) = &subject.namespace else { return Desired::Anywhere };
        if let Some(name) = annotation(&namespace.metadata, names::ANNOTATION_CLUSTER) {
            return Desired::Named(name.to_owned());
        }
        match self.placement_of(namespace) {
            Some(placement) => {
                Desired::Selected(placement.metadata.name.clone().unwrap_or_default())
            }
            None => Desired::Anywhere,
        }
    }
}

impl Subject {
    /// Whether it asks to be placed.
    pub(crate) fn is_placed(&self) -> bool {
        let labels =
            self.namespace.as_ref().and_then(|namespace| namespace.metadata.labels.as_ref());
        labels.and_then(|labels| labels.get(names::LABEL_PLACED)).map(String::as_str)
            == Some(names::PLACED_TRUE)
    }

    /// Whether it is on its way out.
    pub(crate) fn is_deleting(&self) -> bool {
        let namespace = self.namespace.as_ref();
        namespace.is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_some())
    }

    /// The owner, while it may use the volumes.
    pub(crate) fn holder(&self) -> Option<&Ref> {
        let status = self.grant.as_ref()?.status.as_ref()?;
        let is_held = status.phase.is_held();
        status.owner.as_ref().filter(|_| is_held)
    }
}

/// The value of an annotation; an empty one says nothing.
pub(crate) fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    let value = metadata.annotations.as_ref()?.get(key)?;
    Some(value.as_str()).filter(|value| !value.is_empty())
}

/// A condition by its type.
pub(crate) fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// A condition by its type, if it has this status.
pub(crate) fn condition_if<'a>(
    conditions: &'a [Condition],
    kind: &str,
    status: bool,
) -> Option<&'a Condition> {
    let word = if status { "True" } else { "False" };
    condition(conditions, kind).filter(|condition| condition.status == word)
}

/// The conditions of a grant.
pub(crate) fn conditions_of(grant: &Grant) -> &[Condition] {
    grant.status.as_ref().map_or(&[], |status| &status.conditions)
}

/// The conditions of a cluster.
pub(crate) fn cluster_conditions(cluster: &WorkloadCluster) -> &[Condition] {
    cluster.status.as_ref().map_or(&[], |status| &status.conditions)
}

/// Why a cluster counts as unreachable: what its condition says. None: it sends heartbeats, or nobody
/// has looked yet.
pub(crate) fn unreachable(cluster: &WorkloadCluster) -> Option<&Condition> {
    let reachable = condition(cluster_conditions(cluster), condition::REACHABLE);
    reachable.filter(|reachable| reachable.status != "True")
}

/// Since when the grant is in its phase. It says so itself; of one that was brought there before
/// grants did, as well as it can be known: the event of that name, else the last change of a
/// condition, else its last write, else its making.
pub(crate) fn phase_since(subject: &Subject) -> Option<Timestamp> {
    let grant = subject.grant.as_ref()?;
    if let Some(since) = grant.status.as_ref().and_then(|status| status.phase_since.as_ref()) {
        return Some(since.0);
    }
    let told = match grant.status.as_ref().map_or(Phase::Unassigned, |status| status.phase) {
        Phase::Granted => Some("Granted"),
        Phase::Revoking => Some("Revoking"),
        Phase::Released => Some("Released"),
        Phase::Fenced => Some("ForceApplied"),
        Phase::Unassigned | Phase::Deleting => None,
    };
    let newest = |reason: &str| {
        let events = subject.events.iter();
        events.filter(|event| event.reason.as_deref() == Some(reason)).filter_map(event_time).max()
    };
    let changed = conditions_of(grant).iter().map(|condition| condition.last_transition_time.0);
    let entries = grant.metadata.managed_fields.iter().flatten();
    let written = entries
        .filter(|entry| entry.subresource.as_deref() == Some("status"))
        .filter_map(|entry| entry.time.as_ref().map(|time| time.0));
    told.and_then(newest)
        .or_else(|| changed.max())
        .or_else(|| written.max())
        .or_else(|| grant.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

/// When an event was reported last.
pub(crate) fn event_time(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
    let micro = series.or(event.event_time.as_ref()).map(|time| time.0);
    let whole = |time: &Option<Time>| time.as_ref().map(|time| time.0);
    whole(&event.last_timestamp)
        .max(micro)
        .or_else(|| whole(&event.first_timestamp))
        .or_else(|| whole(&event.metadata.creation_timestamp))
}
