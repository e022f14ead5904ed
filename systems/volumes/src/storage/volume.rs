//! A PersistentVolume of local storage: for whom it is, and what happens to it after them.
//!
//! A volume is deleted only when its claim, by uid, is gone for certain. First it is marked
//! `Released`, over the version in which it was for that claim and was to be deleted: whoever hands
//! it to another claim writes to the same object, so one of the two is refused. Only then is it
//! deleted on the disk, and only when nothing of it is left does its record go.

mod act;
pub mod decide;
mod observe;

use super::{named, subject_of};
use crate::filed::{PODS_BY_CLAIM, VOLUMES_BY_CLAIM, VOLUMES_BY_CLAIM_NAME, mounted};
use crate::kinds::{CLAIM, POD, VOLUME};
use crate::objects::{text, uid_of};
use crate::outside::Disk;
use interlock_kernel::{
    Index, LiveReads, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};

/// The controller of the volumes of local storage. A step is about one PersistentVolume.
#[derive(Debug, Clone, Copy, Default)]
pub struct Volumes;

impl Watcher for Volumes {
    fn name(&self) -> &'static str {
        "volumes/storage-volume"
    }

    fn watches(&self) -> Vec<Watch> {
        let all = |kind| Watch::all(Place::CLUSTER, kind);
        vec![
            all(&VOLUME).by(&VOLUMES_BY_CLAIM).by(&VOLUMES_BY_CLAIM_NAME),
            all(&CLAIM),
            all(&POD).by(&PODS_BY_CLAIM),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::CLUSTER, &VOLUME, &[Verb::Patch, Verb::PatchStatus, Verb::Delete])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let found = |index: &Index, value: &str| -> Vec<Subject> {
            view.find(Place::CLUSTER, index, value).iter().map(subject_of).collect()
        };
        if watch.kind == VOLUME {
            return vec![subject_of(object)];
        }
        if watch.kind == CLAIM {
            let mut subjects = found(&VOLUMES_BY_CLAIM, uid_of(object));
            let named = text(&object.data, &["spec", "volumeName"]);
            if !named.is_empty() {
                subjects.push(Subject::from(named));
            }
            return subjects;
        }
        // A pod that ends lets go of volumes whose claims are gone already.
        mounted(object).iter().flat_map(|claim| found(&VOLUMES_BY_CLAIM_NAME, claim)).collect()
    }
}

impl Room for Volumes {
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
