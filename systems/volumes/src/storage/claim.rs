//! A claim on local storage: its volume is made, bound, and let go.
//!
//! 1. The finalizer of every claim in use is put on: from here on the claim outlives its volume.
//! 2. A claim that is made of a snapshot holds that snapshot.
//! 3. The volume is made on the disk, under a name that has the uid of the claim in it.
//! 4. Its PersistentVolume is made, for this very claim, by uid.
//! 5. The claim names it, and then says that it is bound. The hold is dropped.
//!
//! A claim that somebody else fills is left alone until a volume names it, by uid; then it is bound
//! like any other.

mod act;
pub mod decide;
mod finding;
mod observe;

pub(in crate::storage) use act::VOLUME_PROTECTION;

use super::{named, subject_of};
use crate::filed::{
    CLAIMS_BY_CLASS, CLAIMS_BY_SNAPSHOT, CLAIMS_BY_VOLUME, PODS_BY_CLAIM, SNAPSHOTS_BY_HOLDER,
    VOLUMES_BY_CLAIM, mounted,
};
use crate::kinds::{CLAIM, CONTENT, POD, SNAPSHOT_KIND, STORAGE_CLASS, VOLUME};
use crate::objects::{name_of, text};
use crate::outside::Disk;
use interlock_kernel::{
    Index, LiveReads, Name, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};

/// The controller of claims on local storage. A step is about one claim: `<namespace>/<name>`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claims;

impl Watcher for Claims {
    fn name(&self) -> &'static str {
        "volumes/storage-claim"
    }

    fn watches(&self) -> Vec<Watch> {
        let all = |kind| Watch::all(Place::CLUSTER, kind);
        vec![
            all(&CLAIM).by(&CLAIMS_BY_CLASS).by(&CLAIMS_BY_SNAPSHOT).by(&CLAIMS_BY_VOLUME),
            all(&VOLUME).by(&VOLUMES_BY_CLAIM),
            all(&SNAPSHOT_KIND).by(&SNAPSHOTS_BY_HOLDER),
            all(&CONTENT),
            all(&STORAGE_CLASS),
            all(&POD).by(&PODS_BY_CLAIM),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to_each(
            Place::CLUSTER,
            &[
                (&CLAIM, &[Verb::Patch, Verb::PatchStatus]),
                (&VOLUME, &[Verb::Create, Verb::Patch]),
                (&SNAPSHOT_KIND, &[Verb::Patch]),
            ],
        )
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let found = |index: &Index, value: &str| -> Vec<Subject> {
            view.find(Place::CLUSTER, index, value).iter().map(subject_of).collect()
        };
        if watch.kind == CLAIM {
            return vec![subject_of(object)];
        }
        if watch.kind == VOLUME {
            let mut subjects = found(&CLAIMS_BY_VOLUME, name_of(object));
            let claim = &object.data["spec"]["claimRef"];
            let (namespace, claim) = (text(claim, &["namespace"]), text(claim, &["name"]));
            if !claim.is_empty() {
                subjects.push(Subject::from(format!("{namespace}/{claim}")));
            }
            return subjects;
        }
        if watch.kind == SNAPSHOT_KIND {
            return found(&CLAIMS_BY_SNAPSHOT, &Name::of(object).to_string());
        }
        if watch.kind == STORAGE_CLASS {
            // A claim that names no class may get this one.
            return [found(&CLAIMS_BY_CLASS, name_of(object)), found(&CLAIMS_BY_CLASS, "")]
                .concat();
        }
        if watch.kind == POD {
            return mounted(object).into_iter().map(Subject::from).collect();
        }
        // A content says nothing that its VolumeSnapshot does not say later.
        Vec::new()
    }
}

impl Room for Claims {
    type Outside = Disk;
    type Facts = decide::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Disk>,
    ) -> Observed<decide::Facts, observe::Scene> {
        observe::observe(&named(subject), view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Disk> {
        act::act(scene, decision)
    }
}
