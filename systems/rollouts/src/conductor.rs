//! Decides what runs on each cluster, one request at a time. It runs at the hub. The subject of a step is a record, by
//! its name.
//!
//! The record of a cluster is the one lock, and the only authority: each step is one write over the version of it that
//! was seen. So any number of conductors with caches of any age are the same as one. A request is numbered once, by its
//! uid, after a live read of the request itself: an old cache cannot bring a request back that has ended.

mod act;
mod candidate;
pub mod decide;
pub mod facts;
mod findings;
mod observe;
mod sweep;
#[cfg(test)]
mod tests;

use crate::filed::{CLUSTERS_BY_RECORD, RECORDS_BY_CLUSTER, UPDATES_BY_CLUSTER};
use crate::kinds::{
    BUNDLE_REVISION, CLUSTER_ROLLOUT, CLUSTER_UPDATE, CONFIG_MAP, NAMESPACE, ROLLOUT_REPORT,
    SECRET, WORKLOAD_CLUSTER,
};
#[cfg(test)]
pub(crate) use candidate::is_over;
use decide::Decision;
use facts::Facts;
use interlock_api::rollouts::record_name;
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{
    LiveReads, Name, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View,
    Watch, Watcher,
};
use kube_core::DynamicObject;
pub use observe::Scene;
use serde_json::Value;

/// Whether a cluster says the same to its rollouts: its heartbeats are nobody's business here.
fn is_same_to_rollouts(before: &DynamicObject, after: &DynamicObject) -> bool {
    let said = |cluster: &DynamicObject| {
        let conditions = cluster.data["status"]["conditions"].as_array().into_iter().flatten();
        let matters = |it: &&Value| it["type"] == "Reachable" || it["type"] == "Drained";
        conditions.filter(matters).cloned().collect::<Vec<Value>>()
    };
    before.metadata.uid == after.metadata.uid
        && before.data["spec"] == after.data["spec"]
        && before.data["status"]["drained"] == after.data["status"]["drained"]
        && said(before) == said(after)
}

/// The controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conductor;

impl Watcher for Conductor {
    fn name(&self) -> &'static str {
        "rollouts/conductor"
    }

    fn watches(&self) -> Vec<Watch> {
        let clusters = Watch::all(Place::HUB, &WORKLOAD_CLUSTER).by(&CLUSTERS_BY_RECORD);
        vec![
            clusters.unless(is_same_to_rollouts),
            Watch::all(Place::HUB, &CLUSTER_UPDATE).by(&UPDATES_BY_CLUSTER),
            Watch::all(Place::HUB, &CLUSTER_ROLLOUT).by(&RECORDS_BY_CLUSTER),
            Watch::all(Place::HUB, &ROLLOUT_REPORT),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to_each(
            Place::HUB,
            &[
                (&CLUSTER_UPDATE, &[Verb::Patch]),
                (&CLUSTER_ROLLOUT, &[Verb::Create, Verb::Patch, Verb::PatchStatus]),
                (&ROLLOUT_REPORT, &[Verb::Create]),
                (&BUNDLE_REVISION, &[Verb::Get, Verb::Create, Verb::Delete]),
                (&WORKLOAD_CLUSTER, &[Verb::Patch]),
                (&NAMESPACE, &[Verb::Get]),
                (&CONFIG_MAP, &[Verb::Get]),
                (&SECRET, &[Verb::Get]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == CLUSTER_ROLLOUT || watch.kind == ROLLOUT_REPORT {
            return vec![Subject::from(name_of(object))];
        }
        let is_request = watch.kind == CLUSTER_UPDATE;
        let cluster = match is_request {
            true => object.data["spec"]["cluster"].as_str().unwrap_or_default(),
            false => name_of(object),
        };
        // A cluster that was made again has a record of its own, and the old one has to end.
        let known = view.find(Place::HUB, &RECORDS_BY_CLUSTER, cluster);
        let mut subjects: Vec<Subject> =
            known.iter().map(|record| Subject::from(name_of(record))).collect();
        let there = match is_request {
            true => view.get(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide(cluster)),
            false => Some(object.clone()),
        };
        subjects.extend(there.map(|it| Subject::from(record_name(cluster, uid_of(&it)).as_str())));
        subjects.sort_unstable();
        subjects.dedup();
        subjects
    }
}

impl Room for Conductor {
    type Outside = Nothing;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> Observed<Facts, Scene> {
        match observe::observe(subject, view, live_reads) {
            Ok((facts, scene)) => Observed::Seen { facts, scene },
            Err(because) => Observed::nothing(because),
        }
    }

    fn decide(facts: &Facts) -> Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Nothing> {
        act::act(scene, decision)
    }
}
