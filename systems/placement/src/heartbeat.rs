//! The heartbeat of a cluster: its syncer counts, and says who it is and what the cluster has.
//!
//! The hub notes when the count changed, by its own clock, and no other clock is compared with
//! that. The time at which the syncer counted is for the syncer alone.
//!
//! Who issues the tokens of the cluster only the cluster itself can say. It is asked with the first
//! heartbeat of a syncer and about once an hour after that; a cluster that does not answer is asked
//! again, and the heartbeat goes out without it.

mod act;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;

use crate::kinds::{STORAGE_CLASS, WORKLOAD_CLUSTER};
use interlock_api::placement::{Ref, Syncer};
use interlock_kernel::{
    GroupVersion, Kind, LiveReads, Nothing, Object, Observed, Outside, Place, Right, Room,
    Selector, Step, Subject, Verb, View, Watch, Watcher,
};
use std::time::Duration;

/// The one subject of this controller.
const SUBJECT: &str = "heartbeat";

/// A class of snapshots.
pub const VOLUME_SNAPSHOT_CLASS: Kind = Kind::cluster_wide(
    GroupVersion::new("snapshot.storage.k8s.io", "v1"),
    "VolumeSnapshotClass",
    "volumesnapshotclasses",
);

/// Gives the heartbeats of one cluster.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    cluster: Ref,
    syncer: Syncer,
    sees_snapshot_classes: bool,
    period: Duration,
}

impl Heartbeat {
    /// For a cluster, by a syncer that introduces itself so.
    pub fn new(cluster: Ref, syncer: Syncer) -> Heartbeat {
        Heartbeat { cluster, syncer, sees_snapshot_classes: false, period: decide::PERIOD }
    }

    /// The same, for a cluster that serves VolumeSnapshotClasses: without them, no storage class
    /// can snapshot.
    #[must_use]
    pub fn with_snapshot_classes(mut self) -> Heartbeat {
        self.sees_snapshot_classes = true;
        self
    }

    /// The same, with another interval.
    #[must_use]
    pub fn every(mut self, period: Duration) -> Heartbeat {
        self.period = period;
        self
    }
}

impl Watcher for Heartbeat {
    fn name(&self) -> &'static str {
        "placement/heartbeat"
    }

    fn watches(&self) -> Vec<Watch> {
        let mut watches = vec![
            Watch::all(Place::HUB, &WORKLOAD_CLUSTER)
                .only(Selector::Named(self.cluster.name.as_str().into())),
            Watch::all(Place::CLUSTER, &STORAGE_CLASS),
        ];
        if self.sees_snapshot_classes {
            watches.push(Watch::all(Place::CLUSTER, &VOLUME_SNAPSHOT_CLASS));
        }
        watches
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::HUB, &WORKLOAD_CLUSTER, &[Verb::PatchStatus])
    }

    fn subjects(&self, watch: &Watch, object: &Object, _: &dyn View) -> Vec<Subject> {
        let is_other = watch.kind == WORKLOAD_CLUSTER
            && object.metadata.name.as_deref() != Some(self.cluster.name.as_str());
        if is_other { Vec::new() } else { vec![Subject::from(SUBJECT)] }
    }
}

/// What a heartbeat asks of its cluster, beside its objects: the document that says who issues its
/// service-account tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Discovery {}

impl Outside for Discovery {
    type Question = WhoIssues;
    /// The URL of the issuer; None: the cluster did not say.
    type Answer = Option<String>;
    type Action = Nothing;
}

/// Who issues the service-account tokens of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WhoIssues;

impl Room for Heartbeat {
    type Outside = Discovery;
    type Facts = decide::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        _: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Discovery>,
    ) -> Observed<decide::Facts, observe::Scene> {
        match observe::observe(self, view, live_reads) {
            Ok((facts, scene)) => Observed::Seen { facts, scene },
            Err(because) => Observed::nothing(because),
        }
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Discovery> {
        act::act(self, scene, decision)
    }
}
