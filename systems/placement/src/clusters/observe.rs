//! What a cluster says of itself, and which grants have to do with it.

use super::Clusters;
use super::decide::{Drain, Facts, Grants, Heartbeat};
use super::findings::said;
use crate::kinds::{
    GRANT, GRANTS_BY_COPY, GRANTS_HELD_BY, GRANTS_IN_PLACE, GRANTS_TO_COME, WORKLOAD_CLUSTER,
};
use crate::record::GrantRecord;
use interlock_api::names::{ANNOTATION_FORGET_COPIES, FINALIZER_LIVE_GRANTS};
use interlock_api::placement::condition::RUNTIME_READY;
use interlock_api::placement::{CopyState, DataCopy, WorkloadClusterStatus};
use interlock_kernel::metadata::{has_finalizer, is_deleting, name_of, uid_of};
use interlock_kernel::{
    Address, Index, LiveReads, Name, Nothing, Object, Place, Seen, View, conditions, read_part,
};
use jiff::Timestamp;
use kube_core::DynamicObject;
use std::collections::BTreeSet;

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(crate) now: Timestamp,
    pub(crate) cluster: Object,
    pub(crate) status: WorkloadClusterStatus,
    /// How many grants it owns.
    pub(crate) owned: usize,
    /// Those grants, if it is being deleted or drained.
    pub(crate) owned_grants: Vec<Object>,
    /// The grants that it is to own or that have volumes in place on it, if it is being drained.
    pub(crate) other_grants: Vec<Object>,
    /// The grants that have data on it, if it is being deleted.
    pub(crate) copy_grants: Vec<Object>,
    /// The grant of which a person wants the copy forgotten, if it has one here.
    pub(crate) forgotten: Option<GrantRecord>,
    /// Who needs it empty, each once.
    pub(crate) drains: BTreeSet<String>,
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
    let drains = requesters(&cluster);
    let told: BTreeSet<String> = status.drained.iter().cloned().collect();
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
            in_place: count(&GRANTS_IN_PLACE),
        },
        is_surely_empty: is_surely_empty(uid, live_reads),
        drain: (!drains.is_empty()).then(|| Drain {
            is_answered: drains.is_subset(&told),
            is_surely_empty: is_surely_drained(&cluster, live_reads),
        }),
        is_answered_in_vain: !told.is_subset(&drains),
    };
    // A cluster that stays may have thousands of grants, and nobody asks for their names.
    let named = |index: &Index, is_asked_for: bool| match is_asked_for {
        true => view.find(Place::HUB, index, uid),
        false => Vec::new(),
    };
    let is_draining = facts.drain.is_some();
    let scene = Scene {
        now: view.now(),
        status,
        owned: facts.grants.owned,
        owned_grants: named(&GRANTS_HELD_BY, facts.is_deleting || is_draining),
        other_grants: [&GRANTS_TO_COME, &GRANTS_IN_PLACE]
            .into_iter()
            .flat_map(|index| named(index, is_draining))
            .collect(),
        copy_grants: named(&GRANTS_BY_COPY, facts.is_deleting),
        drains,
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
    let indexes = [&GRANTS_HELD_BY, &GRANTS_BY_COPY, &GRANTS_TO_COME];
    Some(!grants.iter().any(|grant| is_filed(grant, &indexes, uid)))
}

/// Whether no grant keeps a cluster from being empty, by a list that was read after the cluster; None: not
/// read. A cluster that has changed since may have been asked for in between, and granted something.
fn is_surely_drained(cluster: &DynamicObject, live_reads: &LiveReads<Nothing>) -> Option<bool> {
    let read = live_reads.objects.get(&address(name_of(cluster)))?;
    let grants = live_reads.lists.get(&(Place::HUB, GRANT, None))?;
    let is_as_seen = read.as_ref().is_some_and(|read| Seen::of(read) == Seen::of(cluster));
    let indexes = [&GRANTS_HELD_BY, &GRANTS_TO_COME, &GRANTS_IN_PLACE];
    Some(is_as_seen && !grants.iter().any(|grant| is_filed(grant, &indexes, uid_of(cluster))))
}

fn is_filed(grant: &Object, indexes: &[&Index], uid: &str) -> bool {
    indexes.iter().any(|index| (index.values)(grant).iter().any(|value| value == uid))
}

/// Where a cluster is, whether it is there or not.
pub(crate) fn address(name: &str) -> Address {
    Address::new(Place::HUB, &WORKLOAD_CLUSTER, Name::cluster_wide(name))
}

/// Who needs a cluster empty.
fn requesters(cluster: &DynamicObject) -> BTreeSet<String> {
    let drains = cluster.data["spec"]["drains"].as_array().into_iter().flatten();
    drains.filter_map(|drain| drain["requester"].as_str()).map(str::to_owned).collect()
}
