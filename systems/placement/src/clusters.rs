//! Heartbeats of the clusters, and clusters that stay while they have something.
//!
//! A step is about one WorkloadCluster. The syncer counts `heartbeat.sequence`; that it changed is
//! the heartbeat, and the hub notes when it saw it, by its own clock alone. No clock is ever
//! compared with another, and nothing is ever taken from a cluster because of a time: `Reachable`
//! and `Ready` only keep new grants away and tell people.
//!
//! How many grants a cluster has is noted with a heartbeat, not with each grant, so that a burst
//! of them costs one write.
//!
//! While somebody needs a cluster empty (`spec.drains`), it says when it is: `status.drained` names those
//! who asked for it. The scheduler grants nothing to such a cluster. A grant of which it saw the cluster
//! before the drain had named the cluster as its target before that, so a live list of grants shows it; the
//! list counts only if the cluster is still as it was before the list.
//!
//! A WorkloadCluster that is deleted stays while a grant is owned by it, is to be, or has data on it;
//! the scheduler takes it for the target of none. A
//! person can give up a copy, by the uid of the grant: `interlock.dev/forget-copies`. The copy of
//! an owner is never given up that way.

use crate::kinds::{
    CLUSTERS_DRAINING, GRANT, GRANTS_BY_COPY, GRANTS_HELD_BY, GRANTS_IN_PLACE, GRANTS_TO_COME,
    WORKLOAD_CLUSTER, YES,
};
use interlock_kernel::metadata::{is_deleting, name_of};
use interlock_kernel::{
    LiveReads, Name, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View,
    Watch, Watcher,
};
use std::collections::BTreeSet;

mod act;
pub mod decide;
mod findings;
mod observe;

/// The controller.
#[derive(Debug, Clone, Copy)]
pub struct Clusters {
    silence_seconds: i64,
}

impl Default for Clusters {
    fn default() -> Self {
        Clusters { silence_seconds: decide::SILENCE_SECONDS }
    }
}

impl Clusters {
    /// Takes a cluster for unreachable after so many seconds without a heartbeat.
    #[must_use]
    pub fn unreachable_after(silence_seconds: i64) -> Self {
        Clusters { silence_seconds }
    }
}

impl Watcher for Clusters {
    fn name(&self) -> &'static str {
        "placement/clusters"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(Place::HUB, &WORKLOAD_CLUSTER).by(&CLUSTERS_DRAINING),
            Watch::all(Place::HUB, &GRANT)
                .by(&GRANTS_BY_COPY)
                .by(&GRANTS_HELD_BY)
                .by(&GRANTS_IN_PLACE)
                .by(&GRANTS_TO_COME),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        [
            Right::to(Place::HUB, &WORKLOAD_CLUSTER, &[Verb::Patch, Verb::PatchStatus]),
            Right::to(Place::HUB, &GRANT, &[Verb::PatchStatus]),
        ]
        .concat()
    }

    /// A grant concerns a cluster only if that is being deleted or drained, or a person wants a copy there
    /// forgotten; all else is noted with the next heartbeat. One that has left a cluster does not name it
    /// any more, so it concerns all that are being drained.
    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == WORKLOAD_CLUSTER {
            return vec![Subject::from(name_of(object))];
        }
        let status = &object.data["status"];
        let copies = status["copies"].as_array().into_iter().flatten();
        let named = [&status["owner"], &object.data["spec"]["target"]];
        let clusters = copies.map(|copy| &copy["cluster"]).chain(named);
        let draining = view.find(Place::HUB, &CLUSTERS_DRAINING, YES);
        let names: BTreeSet<&str> = clusters.filter_map(|found| found["name"].as_str()).collect();
        let is_concerned = |name: &&str| {
            let found = view.get(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide(name));
            found.is_some_and(|found| is_deleting(&found) || observe::forgotten(&found).is_some())
        };
        let concerned: BTreeSet<&str> = names
            .into_iter()
            .filter(is_concerned)
            .chain(draining.iter().map(|cluster| name_of(cluster)))
            .collect();
        concerned.into_iter().map(Subject::from).collect()
    }
}

impl Room for Clusters {
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
        match observe::observe(self, subject, view, live_reads) {
            Some((facts, scene)) => Observed::Seen { facts, scene },
            None => Observed::nothing("there is no such cluster"),
        }
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Nothing> {
        act::act(scene, decision)
    }
}

#[cfg(test)]
mod tests;
