//! What a cluster says of itself, and which grants have to do with it.

use super::Clusters;
use super::decide::{Facts, Grants, Heartbeat};
use super::findings::said;
use crate::kinds::{GRANT, GRANTS_BY_COPY, GRANTS_HELD_BY, GRANTS_TO_COME, WORKLOAD_CLUSTER};
use crate::record::GrantRecord;
use interlock_api::names::{ANNOTATION_FORGET_COPIES, FINALIZER_LIVE_GRANTS};
use interlock_api::placement::condition::RUNTIME_READY;
use interlock_api::placement::{CopyState, DataCopy, WorkloadClusterStatus};
use interlock_kernel::metadata::{has_finalizer, is_deleting, uid_of};
use interlock_kernel::{
    Index, LiveReads, Name, Nothing, Object, Place, View, conditions, read_part,
};
use jiff::Timestamp;
use kube_core::DynamicObject;

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(crate) now: Timestamp,
    pub(crate) cluster: Object,
    pub(crate) status: WorkloadClusterStatus,
    /// How many grants it owns.
    pub(crate) owned: usize,
    /// Those grants, if it is being deleted.
    pub(crate) owned_grants: Vec<Object>,
    /// The grants that have data on it, if it is being deleted.
    pub(crate) copy_grants: Vec<Object>,
    /// The grant of which a person wants the copy forgotten, if it has one here.
    pub(crate) forgotten: Option<GrantRecord>,
}

/// The uid of the grant whose copy here a person gives up.
pub(crate) fn forgotten(cluster: &DynamicObject) -> Option<&str> {
    let annotations = cluster.metadata.annotations.as_ref()?;
    annotations.get(ANNOTATION_FORGET_COPIES).map(String::as_str)
}

/// Reads what a step is about; None: there is no such cluster.
pub(crate) fn observe(
    clusters: &Clusters,
    name: &str,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Option<(Facts, Scene)> {
    let cluster = view.get(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide(name))?;
    // A status that cannot be read says nothing, and the next stamp makes it right.
    let status: WorkloadClusterStatus =
        read_part(&cluster, "status").ok().flatten().unwrap_or_default();
    let uid = uid_of(&cluster);
    let runtime = conditions::find(&status.conditions, RUNTIME_READY);
    let forgotten_grant = forgotten(&cluster).and_then(|grant| with_copy(grant, uid, view));
    let copies_of = |grant: &GrantRecord| -> Vec<CopyState> {
        let here = grant.status.copies.iter().filter(|copy| is_here(copy, &cluster));
        here.map(|copy| copy.state).collect()
    };
    let count = |index: &Index| view.count(Place::HUB, index, uid);
    let facts = Facts {
        is_deleting: is_deleting(&cluster),
        has_finalizer: has_finalizer(&cluster, FINALIZER_LIVE_GRANTS),
        heartbeat: heartbeat(&status, view.now()),
        silence_seconds: clusters.silence_seconds,
        is_runtime_down: runtime.is_some_and(|runtime| runtime.status == "False"),
        said: said(&status.conditions),
        forget: forgotten(&cluster)
            .map(|_| forgotten_grant.as_ref().map(copies_of).unwrap_or_default()),
        grants: Grants {
            owned: count(&GRANTS_HELD_BY),
            copies: count(&GRANTS_BY_COPY),
            to_come: count(&GRANTS_TO_COME),
        },
        is_surely_empty: is_surely_empty(uid, live_reads),
    };
    // A cluster that stays may have thousands of grants, and nobody asks for their names.
    let named = |index: &Index| match facts.is_deleting {
        true => view.find(Place::HUB, index, uid),
        false => Vec::new(),
    };
    let scene = Scene {
        now: view.now(),
        status,
        owned: facts.grants.owned,
        owned_grants: named(&GRANTS_HELD_BY),
        copy_grants: named(&GRANTS_BY_COPY),
        forgotten: forgotten_grant,
        cluster: cluster.clone(),
    };
    Some((facts, scene))
}

fn heartbeat(status: &WorkloadClusterStatus, now: Timestamp) -> Heartbeat {
    let Some(heartbeat) = &status.heartbeat else { return Heartbeat::Never };
    let noted = heartbeat
        .received_at
        .as_ref()
        .filter(|_| heartbeat.received_sequence == Some(heartbeat.sequence));
    match noted.map(|at| now.as_second().saturating_sub(at.0.as_second())) {
        // A time to come was noted before the clock was set back; it is counted from now on.
        None => Heartbeat::New,
        Some(seconds_ago) if seconds_ago < 0 => Heartbeat::New,
        Some(seconds_ago) => Heartbeat::Noted { seconds_ago },
    }
}

fn with_copy(grant_uid: &str, cluster_uid: &str, view: &dyn View) -> Option<GrantRecord> {
    let found = view.find(Place::HUB, &GRANTS_BY_COPY, cluster_uid);
    let grant = found.iter().find(|grant| uid_of(grant) == grant_uid)?;
    GrantRecord::read(grant).ok()
}

pub(crate) fn is_here(copy: &DataCopy, cluster: &DynamicObject) -> bool {
    copy.cluster.uid == uid_of(cluster)
}

/// Whether no grant at the hub itself has to do with a cluster; None: not read.
fn is_surely_empty(uid: &str, live_reads: &LiveReads<Nothing>) -> Option<bool> {
    let grants = live_reads.lists.get(&(Place::HUB, GRANT, None))?;
    let has_to_do = |grant: &Object| {
        let values = [GRANTS_HELD_BY.values, GRANTS_BY_COPY.values, GRANTS_TO_COME.values];
        values.iter().any(|of| of(grant).iter().any(|value| value == uid))
    };
    Some(!grants.iter().any(has_to_do))
}
