//! Fills claims from the latest snapshot of a destination, and keeps that snapshot until they are filled.
//!
//! A claim whose `dataSourceRef` names a ReplicationDestination is filled like this, one write each:
//!
//! 1. Our finalizer is put on it: what is made for it is undone before it is deleted.
//! 2. The snapshot is chosen and noted on the claim: **the pin**. From here on it is this one snapshot.
//! 3. The snapshot is held. Whoever deletes it from now on waits for us.
//! 4. An auxiliary claim, PVC', is made of the snapshot; the storage makes its volume.
//! 5. The volume is set to `Retain`, with a note for whom, and then handed to the claim, by uid.
//! 6. The storage binds the claim, and calls PVC' lost. Only then is PVC' deleted.
//! 7. The policy of the volume is restored, the hold dropped, the finalizer taken off.
//!
//! A snapshot that dies all the same, by somebody's hand, is given up in the opposite order: PVC', the
//! hold, the pin; then the next one is chosen. A claim that is deleted half-way is undone likewise.
//!
//! # What is believed
//!
//! A write to the claim itself is refused if the claim has changed. Everything else is written only
//! after the claim, PVC' and the volume were read live, since a cache may still show a claim that
//! was bound, or deleted, long ago. What another populator does between that look and our write is
//! met by the guard of the write, or repaired by the next step.

mod act;
pub mod decide;
mod finding;
mod observe;
pub mod orphan;
#[cfg(test)]
mod tests;

use crate::filed::{
    CLAIMS_BY_CLASS, CLAIMS_BY_DESTINATION, SNAPSHOTS_BY_HOLDER, SNAPSHOTS_BY_UID, VOLUMES_BY_HEIR,
    source_of,
};
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT_KIND, STORAGE_CLASS, VOLUME};
use crate::objects::{annotation, name_of, namespace_of, text};
use interlock_api::names::{ANNOTATION_POPULATES, ANNOTATION_SNAPSHOT, LABEL_PRIME_FOR};
use interlock_kernel::{
    Index, LiveReads, Name, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb,
    View, Watch, Watcher,
};
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};

/// Claims by the uid of the snapshot that they are filled from, and PVC' with them.
const CLAIMS_BY_SNAPSHOT: Index = Index {
    name: "by-pinned-snapshot",
    kind: CLAIM,
    values: |claim| annotation(claim, ANNOTATION_SNAPSHOT).map(str::to_owned).into_iter().collect(),
};

/// Claims by their uid.
const CLAIMS_BY_UID: Index = Index {
    name: "by-uid",
    kind: CLAIM,
    values: |claim| claim.metadata.uid.clone().into_iter().collect(),
};

/// The populator of one cluster. A step is about one claim: `<namespace>/<name>`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Populator;

/// Whether a claim is filled from a destination.
fn is_populated(claim: &DynamicObject) -> bool {
    source_of(claim)
        .is_some_and(|(group, kind, _)| group == DESTINATION.group && kind == DESTINATION.kind)
}

/// The uid of the claim that a PVC' is poured for.
fn prime_for(claim: &DynamicObject) -> Option<&str> {
    claim.metadata.labels.as_ref()?.get(LABEL_PRIME_FOR).map(String::as_str)
}

fn about(claim: &Object) -> Subject {
    Subject::from(Name::of(claim).to_string())
}

impl Watcher for Populator {
    fn name(&self) -> &'static str {
        "volumes/populator"
    }

    fn watches(&self) -> Vec<Watch> {
        let all = |kind| Watch::all(Place::CLUSTER, kind);
        vec![
            all(&CLAIM)
                .by(&CLAIMS_BY_DESTINATION)
                .by(&CLAIMS_BY_CLASS)
                .by(&CLAIMS_BY_SNAPSHOT)
                .by(&CLAIMS_BY_UID),
            all(&VOLUME).by(&VOLUMES_BY_HEIR),
            all(&SNAPSHOT_KIND).by(&SNAPSHOTS_BY_UID).by(&SNAPSHOTS_BY_HOLDER),
            all(&DESTINATION),
            all(&STORAGE_CLASS),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to_each(
            Place::CLUSTER,
            &[
                (&CLAIM, &[Verb::Create, Verb::Patch, Verb::PatchStatus, Verb::Delete]),
                (&VOLUME, &[Verb::Patch, Verb::Delete]),
                (&SNAPSHOT_KIND, &[Verb::Patch]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let populated = |claims: Vec<Object>| -> Vec<Subject> {
            claims.iter().filter(|claim| is_populated(claim)).map(about).collect()
        };
        let by_uid = |uid: &str| populated(view.find(Place::CLUSTER, &CLAIMS_BY_UID, uid));
        if watch.kind == CLAIM {
            if is_populated(object) {
                return vec![about(object)];
            }
            return prime_for(object).map(by_uid).unwrap_or_default();
        }
        if watch.kind == VOLUME {
            let note = annotation(object, ANNOTATION_POPULATES).unwrap_or_default();
            if let Some((claim, _)) = note.rsplit_once('/') {
                return vec![Subject::from(claim)];
            }
            // A volume that PVC' just got is news of the claim that it is poured for.
            let of = &object.data["spec"]["claimRef"];
            let claim = Name::within(text(of, &["namespace"]), text(of, &["name"]));
            let claim = view.get(Place::CLUSTER, &CLAIM, &claim);
            let heir = claim.as_deref().and_then(prime_for).map(by_uid);
            return heir.unwrap_or_default();
        }
        if watch.kind == SNAPSHOT_KIND {
            let uid = object.metadata.uid.as_deref().unwrap_or_default();
            return populated(view.find(Place::CLUSTER, &CLAIMS_BY_SNAPSHOT, uid));
        }
        if watch.kind == STORAGE_CLASS {
            return populated(view.find(Place::CLUSTER, &CLAIMS_BY_CLASS, name_of(object)));
        }
        let name = format!("{}/{}", namespace_of(object), name_of(object));
        populated(view.find(Place::CLUSTER, &CLAIMS_BY_DESTINATION, &name))
    }
}

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Facts {
    /// A claim that is filled.
    Claim(decide::Facts),
    /// A volume that is to be handed to a claim that is gone.
    Orphan(orphan::Facts),
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// About a claim that is filled.
    Claim(decide::Decision),
    /// About a volume that is to be handed to a claim that is gone.
    Orphan(orphan::Decision),
}

/// The objects that a step is about.
#[derive(Debug)]
pub enum Scene {
    /// A claim that is filled, and what it is filled from.
    Claim(Box<observe::Scene>),
    /// A volume that is to be handed to a claim that is gone.
    Orphan(orphan::Scene),
}

impl Room for Populator {
    type Outside = Nothing;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    /// What a claim of this name left behind is settled first.
    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> Observed<Facts, Scene> {
        let Some((namespace, name)) = subject.split_once('/') else {
            return Observed::nothing("no such subject");
        };
        let name = Name::within(namespace, name);
        if let Some((facts, scene)) = orphan::observe(&name, view, live_reads) {
            return Observed::Seen { facts: Facts::Orphan(facts), scene: Scene::Orphan(scene) };
        }
        match observe::observe(&name, view, live_reads) {
            Observed::Nothing(because) => Observed::Nothing(because),
            Observed::Seen { facts, scene } => {
                Observed::Seen { facts: Facts::Claim(facts), scene: Scene::Claim(Box::new(scene)) }
            }
        }
    }

    fn decide(facts: &Facts) -> Decision {
        match facts {
            Facts::Claim(facts) => Decision::Claim(decide::decide(facts)),
            Facts::Orphan(facts) => Decision::Orphan(orphan::decide(facts)),
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Nothing> {
        match (scene, decision) {
            (Scene::Claim(scene), Decision::Claim(decision)) => act::act(scene, decision),
            (Scene::Orphan(scene), Decision::Orphan(decision)) => orphan::act(scene, decision),
            (Scene::Claim(_), Decision::Orphan(_)) | (Scene::Orphan(_), Decision::Claim(_)) => {
                Step::rest("the decision is about another object")
            }
        }
    }
}
