//! Shows each request what the record of its cluster says of it. It runs at the hub. The subject of a step is a
//! ClusterUpdate, as `<namespace>/<name>`.
//!
//! The status of a request is a mirror: nothing is decided by it, but that its outcome is known. One request has no record
//! that could say anything: that for a cluster which there is not. It is refused here, as long as our finalizer is not on
//! it; the conductor numbers no request without that finalizer, and both writes carry the version of the request.

#[cfg(test)]
mod tests;
mod words;

use crate::filed::{RECORDS_BY_REQUEST, UPDATES_BY_CLUSTER};
use crate::kinds::{CLUSTER_ROLLOUT, CLUSTER_UPDATE, ROLLOUT_REPORT, WORKLOAD_CLUSTER};
use crate::record::{Why, whole_seconds};
use interlock_api::rollouts::{
    ClusterRolloutStatus, ClusterUpdateStatus, FINALIZER_ROLLOUT, RolloutReportStatus, UpdatePhase,
};
use interlock_kernel::metadata::{
    has_finalizer, is_deleting, name_of, namespace_of, take_finalizer_off, uid_of,
};
use interlock_kernel::{
    Address, LiveReads, Name, Nothing, Object, Observed, Place, Read, Right, Room, Step, Subject,
    Verb, View, Watch, Watcher, Write, read_part,
};
use jiff::Timestamp;
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mirror;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Whether the request says its outcome.
    pub is_over: bool,
    /// Whether our finalizer is on it.
    pub has_finalizer: bool,
    /// Whether somebody deletes it.
    pub is_deleting: bool,
    /// Whether it says what the record says of it; None: no record does.
    pub is_shown: Option<bool>,
    /// Its cluster.
    pub cluster: Cluster,
    /// The name of its cluster.
    pub cluster_name: String,
}

/// The cluster of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cluster {
    /// The cache shows it, or a live read does.
    Here,
    /// The cache does not show it.
    Unread,
    /// There is none, as a live read says, and no record of one of its name.
    Gone,
    /// There is none, and there is a record of one: the conductor has the say.
    Recorded,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Read whether there is such a cluster, and a record of it.
    ReadCluster,
    /// Write what the record says.
    Show,
    /// Refuse the request: there is no such cluster.
    Refuse,
    /// Let the request go.
    TakeFinalizerOff,
}

/// The objects that a decision is about.
#[derive(Debug)]
pub struct Scene {
    now: Timestamp,
    update: Object,
    cluster_name: String,
    shown: Option<ClusterUpdateStatus>,
}

fn text<'a>(object: &'a DynamicObject, part: &str, key: &str) -> &'a str {
    object.data[part][key].as_str().unwrap_or_default()
}

fn subject_of(update: &DynamicObject) -> Subject {
    Subject::from(format!("{}/{}", namespace_of(update), name_of(update)).as_str())
}

/// Whether a cluster is the same one: nothing else of it matters here.
fn is_same_cluster(before: &DynamicObject, after: &DynamicObject) -> bool {
    before.metadata.uid == after.metadata.uid
}

impl Watcher for Mirror {
    fn name(&self) -> &'static str {
        "rollouts/mirror"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(Place::HUB, &CLUSTER_UPDATE).by(&UPDATES_BY_CLUSTER),
            Watch::all(Place::HUB, &CLUSTER_ROLLOUT).by(&RECORDS_BY_REQUEST),
            Watch::all(Place::HUB, &ROLLOUT_REPORT),
            Watch::all(Place::HUB, &WORKLOAD_CLUSTER).unless(is_same_cluster),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::HUB, &CLUSTER_UPDATE, &[Verb::Patch, Verb::PatchStatus])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == CLUSTER_UPDATE {
            return vec![subject_of(object)];
        }
        let of_cluster = |name: &str| -> Vec<Subject> {
            let updates = view.find(Place::HUB, &UPDATES_BY_CLUSTER, name);
            updates.iter().map(|update| subject_of(update)).collect()
        };
        if watch.kind == WORKLOAD_CLUSTER {
            return of_cluster(name_of(object));
        }
        if watch.kind == CLUSTER_ROLLOUT {
            let cluster = object.data["spec"]["cluster"]["name"].as_str().unwrap_or_default();
            return of_cluster(cluster);
        }
        // A report has news for the request in flight, and the last good one.
        let record = view.get(Place::HUB, &CLUSTER_ROLLOUT, &Name::of(object));
        let status = record.and_then(|it| read_part::<ClusterRolloutStatus>(&it, "status").ok());
        let status = status.flatten().unwrap_or_default();
        let active = status.active.as_ref().and_then(|active| status.request(&active.uid));
        let subject =
            |namespace: &str, name: &str| Subject::from(format!("{namespace}/{name}").as_str());
        active.map(|entry| subject(&entry.namespace, &entry.name)).into_iter().collect()
    }
}

impl Room for Mirror {
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
        let Some((namespace, name)) = subject.split_once('/') else {
            return Observed::nothing("the subject is no namespace and name");
        };
        let Some(update) = view.get(Place::HUB, &CLUSTER_UPDATE, &Name::within(namespace, name))
        else {
            return Observed::nothing("the cache shows no such ClusterUpdate");
        };
        let said: ClusterUpdateStatus =
            read_part(&update, "status").ok().flatten().unwrap_or_default();
        let shown = shown(&update, &said, view);
        let cluster_name = text(&update, "spec", "cluster").to_owned();
        let facts = Facts {
            is_over: said.phase.is_terminal(),
            has_finalizer: has_finalizer(&update, FINALIZER_ROLLOUT),
            is_deleting: is_deleting(&update),
            is_shown: shown.as_ref().map(|shown| *shown == said),
            cluster: cluster(&cluster_name, view, live_reads),
            cluster_name: cluster_name.clone(),
        };
        Observed::Seen { facts, scene: Scene { now: view.now(), update, cluster_name, shown } }
    }

    fn decide(facts: &Facts) -> Decision {
        if facts.is_over {
            return match facts.has_finalizer {
                true => Decision::TakeFinalizerOff,
                false => Decision::Rest("the request has ended"),
            };
        }
        match (facts.is_shown, facts.cluster) {
            (Some(false), _) => Decision::Show,
            (Some(true), _) => Decision::Rest("the request says what the record says"),
            (None, Cluster::Here) => Decision::Rest("the request has no number yet"),
            (None, Cluster::Recorded) => {
                Decision::Rest("the cluster is gone; its record ends the request")
            }
            (None, Cluster::Unread) => Decision::ReadCluster,
            (None, Cluster::Gone) if facts.has_finalizer => Decision::TakeFinalizerOff,
            (None, Cluster::Gone) if facts.is_deleting => {
                Decision::Rest("the request is being deleted")
            }
            (None, Cluster::Gone) => Decision::Refuse,
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Nothing> {
        match decision {
            Decision::Rest(because) => Step::rest(because),
            Decision::ReadCluster => {
                let cluster = Name::cluster_wide(&scene.cluster_name);
                let cluster = Read::Object(Address::new(Place::HUB, &WORKLOAD_CLUSTER, cluster));
                let records =
                    Read::List { place: Place::HUB, kind: CLUSTER_ROLLOUT, namespace: None };
                let because = "the cache shows no such cluster, which proves nothing".to_owned();
                Step::LiveRead { reads: vec![records, cluster], because }
            }
            Decision::Show => match &scene.shown {
                Some(shown) => write(scene, shown, format!("the record says {}", shown.phase)),
                None => Step::rest("no record says anything of the request"),
            },
            Decision::Refuse => refuse(scene),
            Decision::TakeFinalizerOff => {
                let change = take_finalizer_off(&scene.update, FINALIZER_ROLLOUT);
                let write = Write::patch(Place::HUB, &CLUSTER_UPDATE, &scene.update, change);
                Step::write(write, "the request has ended, or nothing holds it")
            }
        }
    }
}

/// Whether there is a cluster. The records are read before the cluster: one that is made in between is one of a cluster
/// that is there.
fn cluster(name: &str, view: &dyn View, live: &LiveReads<Nothing>) -> Cluster {
    let at = Name::cluster_wide(name);
    if view.get(Place::HUB, &WORKLOAD_CLUSTER, &at).is_some() {
        return Cluster::Here;
    }
    let found = live.objects.get(&Address::new(Place::HUB, &WORKLOAD_CLUSTER, at));
    let records = live.lists.get(&(Place::HUB, CLUSTER_ROLLOUT, None));
    match (found, records) {
        (Some(Some(_)), _) => Cluster::Here,
        (Some(None), Some(records)) => {
            let is_of = |record: &Object| record.data["spec"]["cluster"]["name"] == name;
            if records.iter().any(is_of) { Cluster::Recorded } else { Cluster::Gone }
        }
        (None, _) | (_, None) => Cluster::Unread,
    }
}

/// The status of a request as its record has it; None: no record has an entry of it.
fn shown(
    update: &DynamicObject,
    said: &ClusterUpdateStatus,
    view: &dyn View,
) -> Option<ClusterUpdateStatus> {
    let uid = uid_of(update);
    let records = view.find(Place::HUB, &RECORDS_BY_REQUEST, uid);
    records.iter().find_map(|record| {
        let status: ClusterRolloutStatus = read_part(record, "status").ok().flatten()?;
        let entry = status.request(uid)?;
        let report = view.get(Place::HUB, &ROLLOUT_REPORT, &Name::of(record));
        let report = report.and_then(|it| read_part::<RolloutReportStatus>(&it, "status").ok());
        let report = report.flatten().filter(|report| report.token == status.target.token);
        Some(words::shown(entry, &status, report.as_ref(), said))
    })
}

fn write(scene: &Scene, status: &ClusterUpdateStatus, because: String) -> Step<Nothing> {
    let change = json!({ "status": words::whole(status) });
    Step::write(Write::patch_status(Place::HUB, &CLUSTER_UPDATE, &scene.update, change), because)
}

fn refuse(scene: &Scene) -> Step<Nothing> {
    let why = Why::UnknownCluster(scene.cluster_name.clone());
    let mut status = ClusterUpdateStatus {
        phase: UpdatePhase::Rejected,
        phase_since: Some(whole_seconds(scene.now)),
        reason: why.reason().to_owned(),
        message: why.message(),
        next: why.next(),
        ..ClusterUpdateStatus::default()
    };
    words::complete(&mut status);
    write(scene, &status, why.message())
}
