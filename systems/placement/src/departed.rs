//! What clusters that are gone for good left at the hub: their finalizers.
//!
//! A syncer puts its finalizer on a namespace before anything goes down to its cluster, on each
//! object before it is deleted, and takes them off in the other order. Once its WorkloadCluster is gone
//! nobody does, and neither the namespace nor its objects could ever be deleted.
//!
//! A step is about one namespace at the hub. Nothing rests on a cache: the hub itself has to say
//! that there is no WorkloadCluster of that uid, which never comes again, and that no grant is held
//! by it or has data on it. That is the same as what the cluster was let go for, so as a rule it
//! holds at once; where somebody took the finalizer off the WorkloadCluster by hand, a person ends
//! it with a ForceRelease and `interlock.dev/forget-copies`.
//!
//! Which further kinds the cluster carried (`WorkloadCluster.spec.resources`) is gone with it. Objects
//! of those keep the finalizer, and a person takes it off.

use crate::kinds::{
    GRANT, GRANTS_BY_COPY, GRANTS_HELD_BY, NAMESPACE, NAMESPACES_BY_SYNCER, WORKLOAD_CLUSTER,
};
use crate::record::syncers;
use crate::syncer::objects::kinds::Kinds;
use interlock_kernel::metadata::name_of;
use interlock_kernel::{
    Index, LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View,
    Watch, Watcher,
};

mod act;
pub mod decide;
mod observe;

/// WorkloadClusters by their uid.
const CLUSTERS_BY_UID: Index = Index {
    name: "by-uid",
    kind: WORKLOAD_CLUSTER,
    values: |cluster| cluster.metadata.uid.clone().into_iter().collect(),
};

/// Whether the cache knows a cluster of this uid.
fn is_known(uid: &str, view: &dyn View) -> bool {
    view.count(Place::HUB, &CLUSTERS_BY_UID, uid) > 0
}

/// The controller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Departed;

impl Watcher for Departed {
    fn name(&self) -> &'static str {
        "placement/departed"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(Place::HUB, &NAMESPACE).by(&NAMESPACES_BY_SYNCER),
            Watch::all(Place::HUB, &WORKLOAD_CLUSTER).by(&CLUSTERS_BY_UID),
            Watch::all(Place::HUB, &GRANT).by(&GRANTS_BY_COPY).by(&GRANTS_HELD_BY),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        let mut rights = Right::to(Place::HUB, &NAMESPACE, &[Verb::Patch]);
        for kind in Kinds::with(Vec::new()).carried() {
            rights.extend(Right::to(Place::HUB, kind, &[Verb::List, Verb::Patch]));
        }
        rights
    }

    /// Only namespaces that a cluster which the cache does not know has a finalizer on.
    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == NAMESPACE {
            let is_left = syncers(object).any(|uid| !is_known(uid, view));
            return is_left.then(|| Subject::from(name_of(object))).into_iter().collect();
        }
        let mut uids: Vec<String> = match watch.kind == WORKLOAD_CLUSTER {
            true => object.metadata.uid.clone().into_iter().collect(),
            // A copy that was given up may have been the last that kept a finalizer: those that the
            // grant names no more are found through its namespace.
            false => {
                let name = object.data["spec"]["namespace"]["name"].as_str().unwrap_or_default();
                let name = interlock_kernel::Name::cluster_wide(name);
                let found = view.get(Place::HUB, &NAMESPACE, &name);
                found.iter().flat_map(|found| syncers(found)).map(str::to_owned).collect()
            }
        };
        uids.retain(|uid| !is_known(uid, view));
        let left = uids.iter().flat_map(|uid| view.find(Place::HUB, &NAMESPACES_BY_SYNCER, uid));
        left.map(|namespace| Subject::from(name_of(&namespace))).collect()
    }
}

impl Room for Departed {
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
        match observe::observe(subject, view, live_reads) {
            Some((facts, scene)) => Observed::Seen { facts, scene },
            None => Observed::nothing("the object has no finalizer of a deleted cluster"),
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
