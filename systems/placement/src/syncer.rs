//! One per workload cluster: takes what is granted to it, and gives back what is revoked (the
//! seed's Syncer).
//!
//! The subject of a step is the name of a grant, which is also the name of the namespace on the
//! cluster. A grant that is not this cluster's, has no data here and no namespace here costs
//! nothing.
//!
//! It has four parts, each with its own facts and decisions: [`tenancy`] says whether the namespace may
//! be here, [`claim`] has its data arrive and leave, [`objects`] carries what is in it, [`leftover`]
//! cleans up. They share one queue: two of them at once would break a promise
//! (`docs/decisions/0020-one-queue-for-a-namespace.md`).

mod act;
pub mod claim;
mod copying;
pub mod decide;
pub mod facts;
pub mod leftover;
pub mod marks;
pub mod notes;
pub mod objects;
mod observe;
mod report;
pub mod tenancy;
#[cfg(test)]
pub(crate) mod tests;

use crate::kinds::{
    CLAIM, CONFIG_MAP, DESTINATION, FORCE_RELEASE, GRANT, GRANTS_BY_CLUSTER,
    GRANTS_BY_NAMESPACE_NAME, NAMESPACE, NAMESPACES_BY_SYNCER, SECRET, SERVICE_ACCOUNT, SNAPSHOT,
    SOURCE, STORAGE_CLASS, VOLUME, VOLUME_ATTACHMENT, VOLUMES_BY_GRANT,
};
use interlock_api::names::{ANNOTATION_GRANT, grant_name, syncer_finalizer};
use interlock_api::placement::Ref;
use interlock_kernel::metadata::{annotation, has_finalizer, label};
use interlock_kernel::{
    Kind, LiveReads, Name, Nothing, Object, Observed, Outside, Place, Right, Room, Step, Subject,
    Verb, View, Watch, Watcher,
};
use objects::kinds::Kinds;
use std::sync::Arc;

/// The syncer of one cluster.
#[derive(Debug, Clone)]
pub struct Syncer {
    cluster: Ref,
    boot_id: String,
    finalizer: String,
    kinds: Kinds,
    sees_attachments: bool,
    is_copying: bool,
}

impl Syncer {
    /// The syncer of a cluster, in this boot of its machine: after the next one every permit has to
    /// be given anew.
    pub fn new(cluster: Ref, boot_id: impl Into<String>) -> Syncer {
        let finalizer = syncer_finalizer(&cluster.uid);
        Syncer {
            cluster,
            boot_id: boot_id.into(),
            finalizer,
            kinds: Kinds::with(Vec::new()),
            sees_attachments: true,
            is_copying: false,
        }
    }

    /// The same, carrying further kinds down: `WorkloadCluster.spec.resources`. Both servers must
    /// serve them.
    #[must_use]
    pub fn carrying(mut self, further: Vec<Kind>) -> Syncer {
        self.kinds = Kinds::with(further);
        self
    }

    /// The same, for a cluster that does not serve VolumeAttachments: there, that no pod is left
    /// and no lock is held is all that can be seen.
    #[must_use]
    pub fn without_attachments(mut self) -> Syncer {
        self.sees_attachments = false;
        self
    }

    /// The same, for a cluster on which somebody takes snapshots of claims and fills claims from them:
    /// it serves VolSync's kinds and VolumeSnapshots.
    #[must_use]
    pub fn copying(mut self) -> Syncer {
        self.is_copying = true;
        self
    }

    /// Whether a grant is any of this cluster's business.
    fn is_concerned(&self, name: &str, view: &dyn View) -> bool {
        self.is_here(name, view)
            || view
                .get(Place::HUB, &GRANT, &Name::cluster_wide(name))
                .is_some_and(|grant| self.is_meant(&grant, view))
    }

    /// Whether a namespace of a grant is on this cluster.
    fn is_here(&self, name: &str, view: &dyn View) -> bool {
        let here = view.get(Place::CLUSTER, &NAMESPACE, &Name::cluster_wide(name));
        here.is_some_and(|here| annotation(&here, ANNOTATION_GRANT).is_some())
    }

    /// Whether a grant is, or was, this cluster's.
    fn is_meant(&self, grant: &Object, view: &dyn View) -> bool {
        let is_me = |uid: &serde_json::Value| *uid == self.cluster.uid.as_str();
        let status = &grant.data["status"];
        let mut copies = status["copies"].as_array().into_iter().flatten();
        is_me(&status["owner"]["uid"])
            || copies.any(|copy| is_me(&copy["cluster"]["uid"]))
            || self.has_namespace_finalizer(grant, view)
    }

    fn has_namespace_finalizer(&self, grant: &Object, view: &dyn View) -> bool {
        let Some(name) = grant.data["spec"]["namespace"]["name"].as_str() else { return false };
        let namespace = view.get(Place::HUB, &NAMESPACE, &Name::cluster_wide(name));
        namespace.is_some_and(|namespace| has_finalizer(&namespace, &self.finalizer))
    }

    /// The names of the grants that may be any of this cluster's business, some of them twice: those
    /// of namespaces here, those that name the cluster, and those of namespaces with its finalizer.
    fn candidates(&self, view: &dyn View) -> Vec<String> {
        let own = |object: &Object| object.metadata.name.clone();
        let here = view.list(Place::CLUSTER, &NAMESPACE, None);
        let named = view.find(Place::HUB, &GRANTS_BY_CLUSTER, &self.cluster.uid);
        let mut names: Vec<String> = here.iter().chain(&named).filter_map(own).collect();
        for namespace in view.find(Place::HUB, &NAMESPACES_BY_SYNCER, &self.cluster.uid) {
            let name = namespace.metadata.name.as_deref().unwrap_or_default();
            names.push(grant_name(name, namespace.metadata.uid.as_deref().unwrap_or_default()));
            let of_its_name = view.find(Place::HUB, &GRANTS_BY_NAMESPACE_NAME, name);
            names.extend(of_its_name.iter().filter_map(own));
        }
        names
    }

    /// The name of the grant that a change may be about.
    fn grant_of(&self, watch: &Watch, object: &Object, view: &dyn View) -> Option<String> {
        let own = object.metadata.name.clone();
        let within = object.metadata.namespace.as_deref();
        if watch.place == Place::CLUSTER && watch.kind == VOLUME {
            return label(object, marks::LABEL_GRANT).map(str::to_owned);
        }
        if watch.place == Place::CLUSTER {
            // A namespace on the cluster has the name of its grant.
            return if watch.kind == NAMESPACE { own } else { within.map(str::to_owned) };
        }
        if watch.kind == GRANT {
            return own;
        }
        if watch.kind == FORCE_RELEASE {
            return object.data["spec"]["grant"]["name"].as_str().map(str::to_owned);
        }
        if watch.kind == NAMESPACE {
            return Some(grant_name(&own?, object.metadata.uid.as_deref()?));
        }
        let namespace = view.get(Place::HUB, &NAMESPACE, &Name::cluster_wide(within?))?;
        Some(grant_name(within?, namespace.metadata.uid.as_deref()?))
    }
}

impl Watcher for Syncer {
    fn name(&self) -> &'static str {
        "placement/syncer"
    }

    fn watches(&self) -> Vec<Watch> {
        let mut watches = vec![
            Watch::all(Place::HUB, &GRANT).by(&GRANTS_BY_CLUSTER).by(&GRANTS_BY_NAMESPACE_NAME),
            Watch::all(Place::HUB, &NAMESPACE).by(&NAMESPACES_BY_SYNCER),
            Watch::all(Place::HUB, &FORCE_RELEASE),
            Watch::all(Place::CLUSTER, &NAMESPACE),
            Watch::all(Place::CLUSTER, &CLAIM),
        ];
        watches.extend(self.kinds.carried().map(|kind| Watch::all(Place::HUB, kind)));
        watches.extend(self.kinds.applied().map(|kind| Watch::all(Place::CLUSTER, kind)));
        let known: Vec<Kind> = self.kinds.applied().cloned().collect();
        let further = self.kinds.running().into_iter().filter(|kind| !known.contains(kind));
        watches.extend(further.map(|kind| Watch::all(Place::CLUSTER, &kind)));
        if self.is_copying {
            let kinds = [SOURCE, DESTINATION, SNAPSHOT, STORAGE_CLASS];
            watches.extend(kinds.iter().map(|kind| Watch::all(Place::CLUSTER, kind)));
            watches.push(Watch::all(Place::CLUSTER, &VOLUME).by(&VOLUMES_BY_GRANT));
        }
        watches
    }

    fn rights(&self) -> Vec<Right> {
        let made = [Verb::Create, Verb::Patch, Verb::Delete];
        let mut rights = Right::to(Place::HUB, &GRANT, &[Verb::PatchStatus]);
        rights.extend(Right::to(Place::HUB, &NAMESPACE, &[Verb::Patch]));
        for kind in self.kinds.carried() {
            // Its finalizer, and what happened to the object on the cluster.
            let verbs = if has_status(kind) {
                &[Verb::Patch, Verb::PatchStatus][..]
            } else {
                &[Verb::Patch]
            };
            rights.extend(Right::to(Place::HUB, kind, verbs));
            rights.extend(Right::to(Place::CLUSTER, kind, &made));
        }
        rights.extend(Right::to(Place::CLUSTER, &NAMESPACE, &made));
        for kind in self.kinds.running() {
            rights.extend(Right::to(Place::CLUSTER, &kind, &[Verb::Delete]));
        }
        if self.is_copying {
            rights.extend(Right::to(Place::CLUSTER, &SOURCE, &made));
            rights.extend(Right::to(Place::CLUSTER, &DESTINATION, &made));
            rights.extend(Right::to(Place::CLUSTER, &SNAPSHOT, &[Verb::Patch, Verb::Delete]));
            rights.extend(Right::to(Place::CLUSTER, &VOLUME, &[Verb::Patch, Verb::Delete]));
        }
        if self.sees_attachments {
            rights.extend(Right::to(Place::CLUSTER, &VOLUME_ATTACHMENT, &[Verb::List]));
        }
        rights
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let Some(name) = self.grant_of(watch, object, view) else { return Vec::new() };
        // A namespace of ours that was just deleted is not in the view any more.
        let is_ours_here = watch.place == Place::CLUSTER
            && watch.kind == NAMESPACE
            && annotation(object, ANNOTATION_GRANT).is_some();
        // Every syncer hears of every grant: those that it does not concern must cost next to nothing.
        let is_grant = watch.place == Place::HUB && watch.kind == GRANT;
        let is_concerned = match is_grant {
            true => self.is_meant(object, view) || self.is_here(&name, view),
            false => self.is_concerned(&name, view),
        };
        if is_ours_here || is_concerned { vec![Arc::from(name)] } else { Vec::new() }
    }

    /// Everything else that is watched is within one of these namespaces, or about one of these
    /// grants.
    fn everything(&self, view: &dyn View) -> Option<Vec<Subject>> {
        let mut names = self.candidates(view);
        names.sort_unstable();
        names.dedup();
        names.retain(|name| self.is_concerned(name, view));
        Some(names.into_iter().map(Subject::from).collect())
    }
}

impl Room for Syncer {
    type Outside = Locks;
    type Facts = facts::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Locks>,
    ) -> Observed<facts::Facts, observe::Scene> {
        observe::observe(self, subject, view, live_reads)
    }

    fn decide(facts: &facts::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Locks> {
        act::act(self, scene, decision)
    }
}

/// Whether objects of a kind can have a status; of kinds that are not ours to know, all can.
fn has_status(kind: &Kind) -> bool {
    ![SECRET, CONFIG_MAP, SERVICE_ACCOUNT].contains(kind)
}

/// What a syncer asks outside of the API: who has the volumes of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Locks {}

impl Outside for Locks {
    type Question = LocksOf;
    type Answer = Holding;
    type Action = Nothing;
}

/// Whether any lock of a namespace on the cluster is held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LocksOf {
    /// The namespace on the cluster.
    pub namespace: String,
    /// The version of that namespace that was seen when this was asked. Whoever answers has no use
    /// for it: it ties the answer to the notes that it was asked for.
    pub seen: String,
}

/// Who holds locks of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// Nobody.
    Free,
    /// Somebody, by their process ids as far as they can be seen.
    Held(Vec<i32>),
}
