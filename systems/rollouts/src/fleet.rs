//! Asks for a bundle on many clusters: the canary first, then one partition after the other. It runs at the hub. The
//! subject of a step is a FleetUpdate, as `<namespace>/<name>`.
//!
//! A cluster is chosen in the status of the FleetUpdate, over the version that was seen, before its ClusterUpdate is made:
//! so two copies of the controller, with caches of any age, never choose more clusters than one would. Clusters are read
//! live before one is chosen: a cluster that is still drained for a request that has ended counts as unavailable, and a
//! cache may not show it.
//!
//! `world`: the controller explored as it is.

mod act;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;
pub mod world;

use crate::filed::UPDATES_BY_FLEET;
use crate::kinds::{CLUSTER_UPDATE, FLEET_UPDATE, WORKLOAD_CLUSTER};
use decide::{Decision, Facts};
use interlock_api::rollouts::LABEL_FLEET_UPDATE;
use interlock_kernel::metadata::{label, name_of, namespace_of, uid_of};
use interlock_kernel::{
    LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use kube_core::DynamicObject;
pub use observe::Scene;
use serde_json::Value;

/// Whether a cluster says the same to the requests for many: its heartbeats are nobody's business here.
fn is_same_to_fleets(before: &DynamicObject, after: &DynamicObject) -> bool {
    let said = |cluster: &DynamicObject| {
        let conditions = cluster.data["status"]["conditions"].as_array().into_iter().flatten();
        let matters = conditions.filter(|it| it["type"] == "Ready" || it["type"] == "Reachable");
        matters.map(|it| it["status"].clone()).collect::<Vec<Value>>()
    };
    before.metadata.uid == after.metadata.uid
        && before.metadata.labels == after.metadata.labels
        && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
        && before.data["spec"]["drains"] == after.data["spec"]["drains"]
        && said(before) == said(after)
}

/// The controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fleet;

fn subject_of(fleet: &DynamicObject) -> Subject {
    Subject::from(format!("{}/{}", namespace_of(fleet), name_of(fleet)).as_str())
}

impl Watcher for Fleet {
    fn name(&self) -> &'static str {
        "rollouts/fleet"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(Place::HUB, &FLEET_UPDATE),
            Watch::all(Place::HUB, &CLUSTER_UPDATE).by(&UPDATES_BY_FLEET),
            Watch::all(Place::HUB, &WORKLOAD_CLUSTER).unless(is_same_to_fleets),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to_each(
            Place::HUB,
            &[
                (&FLEET_UPDATE, &[Verb::PatchStatus]),
                (&CLUSTER_UPDATE, &[Verb::Create, Verb::Patch]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == FLEET_UPDATE {
            return vec![subject_of(object)];
        }
        let mut fleets = view.list(Place::HUB, &FLEET_UPDATE, None);
        if watch.kind == CLUSTER_UPDATE {
            let of = label(object, LABEL_FLEET_UPDATE);
            fleets.retain(|fleet| Some(uid_of(fleet)) == of);
        }
        fleets.iter().map(|fleet| subject_of(fleet)).collect()
    }
}

impl Room for Fleet {
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
