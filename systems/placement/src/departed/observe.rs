//! Whose finalizer is on a namespace, and what the hub itself says of that cluster.

use super::decide::{Facts, Truth};
use super::is_known;
use crate::kinds::{GRANT, GRANTS_BY_COPY, GRANTS_HELD_BY, NAMESPACE, WORKLOAD_CLUSTER};
use crate::record::syncers;
use crate::syncer::objects::kinds::Kinds;
use interlock_api::names::syncer_finalizer;
use interlock_kernel::metadata::{has_finalizer, uid_of};
use interlock_kernel::{Kind, LiveReads, Name, Nothing, Object, Place, View};

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(crate) namespace: Object,
    /// The uid of the first cluster that has a finalizer on it and that the cache does not know.
    pub(crate) cluster_uid: String,
    /// The kinds of objects that can have it.
    pub(crate) kinds: Vec<Kind>,
    /// The first object that has it, by a live read.
    pub(crate) object: Option<(Kind, Object)>,
}

/// Reads what a step is about; None: there is nothing to do about the namespace.
pub(crate) fn observe(
    name: &str,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Option<(Facts, Scene)> {
    let namespace = view.get(Place::HUB, &NAMESPACE, &Name::cluster_wide(name))?;
    let cluster_uid = syncers(&namespace).find(|uid| !is_known(uid, view))?.to_owned();
    let kinds: Vec<Kind> = Kinds::with(Vec::new()).carried().cloned().collect();
    let finalizer = syncer_finalizer(&cluster_uid);
    let object = kinds.iter().find_map(|kind| {
        let listed = live_reads.lists.get(&within(kind, name))?;
        let found = listed.iter().find(|object| has_finalizer(object, &finalizer))?;
        Some((kind.clone(), found.clone()))
    });
    let facts = Facts {
        has_grants: view.count(Place::HUB, &GRANTS_HELD_BY, &cluster_uid) > 0
            || view.count(Place::HUB, &GRANTS_BY_COPY, &cluster_uid) > 0,
        truth: truth(&cluster_uid, live_reads, object.is_some()),
    };
    Some((facts, Scene { namespace, cluster_uid, kinds, object }))
}

/// Where the objects of a kind in the namespace are listed.
pub(crate) fn within(kind: &Kind, namespace: &str) -> (Place, Kind, Option<String>) {
    (Place::HUB, kind.clone(), Some(namespace.to_owned()))
}

fn truth(uid: &str, live_reads: &LiveReads<Nothing>, has_objects: bool) -> Option<Truth> {
    let clusters = live_reads.lists.get(&(Place::HUB, WORKLOAD_CLUSTER, None))?;
    let grants = live_reads.lists.get(&(Place::HUB, GRANT, None))?;
    let names = |grant: &Object| {
        let values = [GRANTS_HELD_BY.values, GRANTS_BY_COPY.values];
        values.iter().any(|of| of(grant).iter().any(|value| value == uid))
    };
    Some(Truth {
        is_there: clusters.iter().any(|cluster| uid_of(cluster) == uid),
        has_grants: grants.iter().any(names),
        has_objects,
    })
}
