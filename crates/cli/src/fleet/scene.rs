//! Small fleets for tests: clusters `east` and `west`, one namespace, and a clock that does not move.

use super::picture::{Picture, Subject};
use interlock_api::placement::{
    Claim, Connection, CopyState, DataCopy, Fill, Grant, GrantSpec, GrantStatus, Phase, Placement,
    PlacementSpec, Ref, RightsState, RoleRights, StorageClass, WorkloadCluster,
    WorkloadClusterSpec, WorkloadClusterStatus,
};
use interlock_kernel::conditions::Condition;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Event, Namespace, PersistentVolumeClaim, PersistentVolumeClaimSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};
use std::collections::BTreeMap;

/// The clock of every scene.
const NOW: i64 = 1_800_000_000;

/// A moment so many seconds ago.
pub(crate) fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW - seconds).expect("it is a moment")
}

/// A reference to a cluster of a scene.
pub(crate) fn reference(name: &str) -> Ref {
    Ref::new(name, format!("uid-{name}"))
}

/// Something with a name, five days old.
fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        uid: Some(format!("uid-{name}")),
        creation_timestamp: Some(Time(ago(5 * 86_400))),
        ..ObjectMeta::default()
    }
}

/// A condition since so many seconds.
pub(crate) fn told(kind: &str, status: bool, seconds: i64, words: (&str, &str)) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: words.0.to_owned(),
        message: words.1.to_owned(),
        next: None,
        last_transition_time: Time(ago(seconds)),
        observed_generation: None,
    }
}

/// A cluster that is well, with the storage class `fast`.
pub(crate) fn cluster(name: &str) -> WorkloadCluster {
    let conditions = vec![
        told("Ready", true, 86_400, ("SyncerReady", "")),
        told("Reachable", true, 86_400, ("HeartbeatFresh", "")),
    ];
    let fast =
        StorageClass { name: "fast".to_owned(), can_snapshot: true, ..StorageClass::default() };
    let syncer =
        interlock_api::placement::Syncer { version: "0.1.0".to_owned(), ..Default::default() };
    let spec = WorkloadClusterSpec {
        connection: Connection::LogicalCluster(name.to_owned()),
        unschedulable: false,
        drain: false,
        resources: Vec::new(),
        machines: Vec::new(),
        drains: Vec::new(),
    };
    let status = WorkloadClusterStatus {
        storage_classes: vec![fast],
        syncer: Some(syncer),
        conditions,
        ..WorkloadClusterStatus::default()
    };
    WorkloadCluster { metadata: named(name), spec, status: Some(status) }
}

/// A fleet with one namespace.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    clusters: Vec<WorkloadCluster>,
    placements: Vec<Placement>,
    subject: Subject,
}

impl Scene {
    /// A placed namespace without a grant, and two clusters.
    pub(crate) fn new(namespace: &str) -> Self {
        let mut metadata = named(namespace);
        metadata.labels =
            Some(BTreeMap::from([("interlock.dev/placed".to_owned(), "true".to_owned())]));
        let object = Namespace { metadata, ..Namespace::default() };
        let subject =
            Subject { name: namespace.to_owned(), namespace: Some(object), ..Subject::default() };
        Self { clusters: vec![cluster("east"), cluster("west")], placements: Vec::new(), subject }
    }

    /// The namespace does not ask to be placed.
    pub(crate) fn unplaced(mut self) -> Self {
        self.namespace().metadata.labels = None;
        self
    }

    /// The cluster that is desired for the namespace.
    pub(crate) fn desired(mut self, cluster: &str) -> Self {
        let desired = ("interlock.dev/cluster".to_owned(), cluster.to_owned());
        self.namespace().metadata.annotations = Some(BTreeMap::from([desired]));
        self
    }

    /// The cloud roles of the namespace, by name: the epoch that each is at, and whether it trusts its owner.
    pub(crate) fn rights(mut self, roles: &[(&str, i64, RightsState)]) -> Self {
        let status = self.subject.grant.as_mut().and_then(|grant| grant.status.as_mut());
        let role = |(name, epoch, state): &(&str, i64, RightsState)| RoleRights {
            uid: format!("uid-{name}"),
            name: (*name).to_owned(),
            epoch: *epoch,
            state: *state,
            because: String::new(),
        };
        status.expect("a grant comes first").rights = roles.iter().map(role).collect();
        self
    }

    /// This epoch was ended by force.
    pub(crate) fn fenced(mut self, epoch: i64) -> Self {
        let status = self.subject.grant.as_mut().and_then(|grant| grant.status.as_mut());
        status.expect("a grant comes first").fenced_epoch = Some(epoch);
        self
    }

    /// A grant in this phase, with this owner and epoch.
    pub(crate) fn grant(mut self, phase: Phase, owner: &str, epoch: i64) -> Self {
        let owner = reference(owner);
        let live = DataCopy { cluster: owner.clone(), epoch, state: CopyState::Live };
        let name = format!("{}-uid", self.subject.name);
        let spec = GrantSpec {
            namespace: Ref::new(&self.subject.name, format!("uid-{}", self.subject.name)),
            target: Some(owner.clone()),
            ..GrantSpec::default()
        };
        let status = GrantStatus {
            phase,
            owner: Some(owner),
            epoch,
            copies: vec![live],
            ..GrantStatus::default()
        };
        self.subject.grant = Some(Grant { metadata: named(&name), spec, status: Some(status) });
        self
    }

    /// The grant says since when it is in its phase.
    pub(crate) fn since(mut self, seconds: i64) -> Self {
        self.status().phase_since = Some(Time(ago(seconds)));
        self
    }

    /// The grant is to go to this cluster.
    pub(crate) fn target(mut self, cluster: &str) -> Self {
        self.grant_mut().spec.target = Some(reference(cluster));
        self
    }

    /// A claim of the namespace, listed by the grant if there is one.
    pub(crate) fn claim(mut self, name: &str, class: &str) -> Self {
        let spec = PersistentVolumeClaimSpec {
            storage_class_name: Some(class.to_owned()),
            ..PersistentVolumeClaimSpec::default()
        };
        let claim = PersistentVolumeClaim {
            metadata: named(name),
            spec: Some(spec),
            ..PersistentVolumeClaim::default()
        };
        self.subject.claims.push(claim);
        self
    }

    /// A claim that the grant lists.
    pub(crate) fn listed(mut self, name: &str, fill: Fill) -> Self {
        let claim =
            Claim { name: name.to_owned(), uid: format!("uid-{name}"), fill, ..Claim::default() };
        self.status().claims.push(claim);
        self
    }

    /// A condition of the grant.
    pub(crate) fn says(mut self, condition: Condition) -> Self {
        self.status().conditions.push(condition);
        self
    }

    /// A copy that the grant lists.
    pub(crate) fn copy(mut self, cluster: &str, epoch: i64, state: CopyState) -> Self {
        self.status().copies.push(DataCopy { cluster: reference(cluster), epoch, state });
        self
    }

    /// A Placement for all namespaces that selects clusters by these labels.
    pub(crate) fn placement(mut self, name: &str, labels: &[(&str, &str)]) -> Self {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let selector =
            LabelSelector { match_labels: Some(labels.collect()), ..LabelSelector::default() };
        let spec = PlacementSpec { cluster_selector: selector, ..PlacementSpec::default() };
        self.placements.push(Placement { metadata: named(name), spec, status: None });
        self
    }

    /// An event about the namespace.
    pub(crate) fn event(mut self, reason: &str, message: &str, seconds: i64) -> Self {
        self.subject.events.push(Event {
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_timestamp: Some(Time(ago(seconds))),
            ..Event::default()
        });
        self
    }

    /// A cluster has sent no heartbeat since so many seconds.
    pub(crate) fn lost(mut self, name: &str, seconds: i64) -> Self {
        let words = ("HeartbeatOld", "no heartbeat for 40 seconds");
        let conditions = &mut self.cluster_status(name).conditions;
        conditions.retain(|condition| condition.type_ != "Reachable");
        conditions.push(told("Reachable", false, seconds, words));
        self
    }

    /// A cluster was deleted and made again under its name.
    pub(crate) fn replaced(mut self, name: &str) -> Self {
        self.cluster_mut(name).metadata.uid = Some("another".to_owned());
        self
    }

    /// A cluster is being deleted, and has something left.
    pub(crate) fn deleting(mut self, name: &str, why: &str, next: &str) -> Self {
        self.cluster_mut(name).metadata.deletion_timestamp = Some(Time(ago(5)));
        let mut said = told("Emptied", false, 5, ("GrantsLeft", why));
        said.next = Some(next.to_owned());
        self.cluster_status(name).conditions.push(said);
        self
    }

    /// A cluster takes nothing new.
    pub(crate) fn unschedulable(mut self, name: &str) -> Self {
        self.cluster_mut(name).spec.unschedulable = true;
        self
    }

    /// The namespace was made so many seconds ago.
    pub(crate) fn made(mut self, seconds: i64) -> Self {
        self.namespace().metadata.creation_timestamp = Some(Time(ago(seconds)));
        self
    }

    /// The fleet with this namespace in it.
    pub(crate) fn picture(&self) -> Picture {
        Picture {
            now: ago(0),
            clusters: self.clusters.clone(),
            placements: self.placements.clone(),
            turns: Vec::new(),
            subjects: vec![self.subject.clone()],
        }
    }

    /// The fleet with the namespaces of all these scenes; the clusters are those of the first.
    pub(crate) fn together(scenes: &[Scene]) -> Picture {
        let mut picture = scenes.first().expect("a scene at least").picture();
        picture.subjects = scenes.iter().map(|scene| scene.subject.clone()).collect();
        picture
    }

    /// The namespace and what is known of it.
    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    fn namespace(&mut self) -> &mut Namespace {
        self.subject.namespace.as_mut().expect("every scene has one")
    }

    fn grant_mut(&mut self) -> &mut Grant {
        self.subject.grant.as_mut().expect("the scene has a grant by now")
    }

    fn status(&mut self) -> &mut GrantStatus {
        self.grant_mut().status.as_mut().expect("every grant of a scene has one")
    }

    fn cluster_mut(&mut self, name: &str) -> &mut WorkloadCluster {
        let mut clusters = self.clusters.iter_mut();
        clusters.find(|c| c.metadata.name.as_deref() == Some(name)).expect("it is in the scene")
    }

    fn cluster_status(&mut self, name: &str) -> &mut WorkloadClusterStatus {
        self.cluster_mut(name).status.as_mut().expect("every cluster of a scene has one")
    }
}
