//! A VolumeSnapshot of a local volume: its snapshot is taken, described, and deleted.
//!
//! 1. The finalizer is put on, so that it outlives its snapshot.
//! 2. Its content is made: the record of which volume the snapshot is taken of, for good.
//! 3. The snapshot is taken on the disk, under a name that has the uid of the VolumeSnapshot in it.
//! 4. What is in the snapshot is noted on the VolumeSnapshot, and only then is it called ready: whoever
//!    sees that it is ready can see what is in it.
//!
//! A VolumeSnapshot that is deleted stays until it has no holder. No hold can come to one that is
//! being deleted, so what the cache shows of its holds is the last word.

mod act;
pub mod decide;
mod observe;
pub mod orphan;
mod sentence;

use super::{named, subject_of};
use crate::filed::{CONTENTS_BY_SNAPSHOT, SNAPSHOTS_BY_SOURCE};
use crate::kinds::{CLAIM, CONTENT, SNAPSHOT_CLASS, SNAPSHOT_KIND, VOLUME};
use crate::objects::text;
use crate::outside::Disk;
use interlock_kernel::{
    LiveReads, Name, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use serde::{Deserialize, Serialize};

/// The controller of snapshots on local storage. A step is about one VolumeSnapshot, or about a content
/// that one of its name left behind: `<namespace>/<name>`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Snapshots;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Facts {
    /// A VolumeSnapshot.
    Snapshot(decide::Facts),
    /// A content whose VolumeSnapshot is not there.
    Orphan(orphan::Facts),
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// About a VolumeSnapshot.
    Snapshot(decide::Decision),
    /// About a content whose VolumeSnapshot is not there.
    Orphan(orphan::Decision),
}

/// The objects that a step is about.
#[derive(Debug)]
pub enum Scene {
    /// A VolumeSnapshot, and what belongs to it.
    Snapshot(Box<observe::Scene>),
    /// A content whose VolumeSnapshot is not there.
    Orphan(orphan::Scene),
}

impl Watcher for Snapshots {
    fn name(&self) -> &'static str {
        "volumes/storage-snapshot"
    }

    fn watches(&self) -> Vec<Watch> {
        let all = |kind| Watch::all(Place::CLUSTER, kind);
        vec![
            all(&SNAPSHOT_KIND).by(&SNAPSHOTS_BY_SOURCE),
            all(&CONTENT).by(&CONTENTS_BY_SNAPSHOT),
            all(&SNAPSHOT_CLASS),
            all(&CLAIM),
            all(&VOLUME),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to_each(
            Place::CLUSTER,
            &[
                (&SNAPSHOT_KIND, &[Verb::Patch, Verb::PatchStatus]),
                (&CONTENT, &[Verb::Create, Verb::Patch, Verb::PatchStatus, Verb::Delete]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == SNAPSHOT_KIND {
            return vec![subject_of(object)];
        }
        if watch.kind == CONTENT {
            let of = &object.data["spec"]["volumeSnapshotRef"];
            let (namespace, name) = (text(of, &["namespace"]), text(of, &["name"]));
            return vec![Subject::from(format!("{namespace}/{name}"))];
        }
        let snapshots = if watch.kind == CLAIM {
            view.find(Place::CLUSTER, &SNAPSHOTS_BY_SOURCE, &Name::of(object).to_string())
        } else if watch.kind == SNAPSHOT_CLASS {
            view.list(Place::CLUSTER, &SNAPSHOT_KIND, None)
        } else {
            // That a volume is there is news of the claim that names it.
            Vec::new()
        };
        snapshots.iter().map(subject_of).collect()
    }
}

impl Room for Snapshots {
    type Outside = Disk;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    /// What is left behind goes first: the next VolumeSnapshot of that name has nothing to do with it.
    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Disk>,
    ) -> Observed<Facts, Scene> {
        let name = named(subject);
        if let Some((facts, scene)) = orphan::observe(&name, view, live_reads) {
            return Observed::Seen { facts: Facts::Orphan(facts), scene: Scene::Orphan(scene) };
        }
        match observe::observe(&name, view, live_reads) {
            Observed::Nothing(because) => Observed::Nothing(because),
            Observed::Seen { facts, scene } => Observed::Seen {
                facts: Facts::Snapshot(facts),
                scene: Scene::Snapshot(Box::new(scene)),
            },
        }
    }

    fn decide(facts: &Facts) -> Decision {
        match facts {
            Facts::Snapshot(facts) => Decision::Snapshot(decide::decide(facts)),
            Facts::Orphan(facts) => Decision::Orphan(orphan::decide(facts)),
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Disk> {
        match (scene, decision) {
            (Scene::Snapshot(scene), Decision::Snapshot(decision)) => act::act(scene, decision),
            (Scene::Orphan(scene), Decision::Orphan(decision)) => orphan::act(scene, decision),
            (Scene::Snapshot(_), Decision::Orphan(_))
            | (Scene::Orphan(_), Decision::Snapshot(_)) => {
                Step::rest("the decision is about another object")
            }
        }
    }
}
