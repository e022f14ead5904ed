//! A content whose VolumeSnapshot is gone without it: torn out, finalizers and all.
//!
//! Nobody can hold it any more, since holds are on the VolumeSnapshot; so it is deleted with its snapshot, or
//! stays with it, as its deletion policy says.

use super::observe::CONTENT_PROTECTION;
use crate::filed::CONTENTS_BY_SNAPSHOT;
use crate::kinds::{CONTENT, SNAPSHOT_KIND};
use crate::objects::{has_finalizer, is_deleting, is_same, take_finalizer_off, text};
use crate::outside::{Disk, DiskAction, DiskQuestion, Made as Answer};
use crate::storage::volume::decide::Made;
use crate::storage::{REQUEUE_AFTER, live_read, wait};
use interlock_api::names::LOCAL_DRIVER;
use interlock_kernel::{Address, LiveReads, Name, Object, Place, Read, Step, View, Write};
use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the server itself says that its VolumeSnapshot is gone, and not only the cache.
    pub is_left_for_certain: bool,
    /// Whether its snapshot stays, whatever happens to the content.
    pub is_kept: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether our finalizer is on it.
    pub is_protected: bool,
    /// How far its snapshot is on the disk.
    pub made: Made,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// See whether its VolumeSnapshot is gone.
    ReadSnapshot,
    /// See whether its snapshot is left on the disk.
    AskDisk,
    /// Its snapshot is still being taken.
    WaitForSnapshot,
    /// Delete its snapshot on the disk.
    DeleteSnapshot,
    /// Delete it.
    Delete,
    /// Take our finalizer off.
    LetGo,
    /// It is being deleted, and nothing of ours is on it.
    Leave,
}

/// The objects that a step is about.
#[derive(Debug)]
pub struct Scene {
    content: Object,
    /// Where its VolumeSnapshot was.
    snapshot: Address,
    /// The name of its snapshot on the disk.
    handle: String,
}

/// The first content of this name whose VolumeSnapshot is not there, if any.
pub(super) fn observe(
    name: &Name,
    view: &dyn View,
    live_reads: &LiveReads<Disk>,
) -> Option<(Facts, Scene)> {
    let snapshot = Address::new(Place::CLUSTER, &SNAPSHOT_KIND, name.clone());
    let cached = view.get(Place::CLUSTER, &SNAPSHOT_KIND, name);
    let is_of = |found: &Option<Object>, content: &Object| {
        found.as_ref().is_some_and(|found| is_same(found, snapshot_uid(content)))
    };
    let contents = view.find(Place::CLUSTER, &CONTENTS_BY_SNAPSHOT, &name.to_string());
    let content = contents.into_iter().find(|content| {
        let is_ours = text(&content.data, &["spec", "driver"]) == LOCAL_DRIVER;
        // One that is kept is at rest, unless somebody deletes it.
        let is_at_rest = is_kept(content) && !is_deleting(content);
        !is_of(&cached, content) && is_ours && !snapshot_uid(content).is_empty() && !is_at_rest
    })?;
    let truth = live_reads.objects.get(&snapshot);
    if truth.is_some_and(|found| is_of(found, &content)) {
        return None;
    }
    let handle = format!("snapshot-{}", snapshot_uid(&content));
    let facts = Facts {
        is_left_for_certain: truth.is_some(),
        is_kept: is_kept(&content),
        is_deleting: is_deleting(&content),
        is_protected: has_finalizer(&content, CONTENT_PROTECTION),
        made: match live_reads.answers.get(&DiskQuestion::Snapshot(handle.clone())) {
            None => Made::NotAsked,
            Some(Answer::Missing) => Made::Missing,
            Some(Answer::Making(_)) => Made::Making,
            Some(Answer::Whole(_) | Answer::Failed(_)) => Made::There,
        },
    };
    Some((facts, Scene { content, snapshot, handle }))
}

fn snapshot_uid(content: &Object) -> &str {
    text(&content.data, &["spec", "volumeSnapshotRef", "uid"])
}

fn is_kept(content: &Object) -> bool {
    text(&content.data, &["spec", "deletionPolicy"]) == "Retain"
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if !facts.is_left_for_certain {
        return Decision::ReadSnapshot;
    }
    match facts.made {
        Made::NotAsked if !facts.is_kept => Decision::AskDisk,
        Made::Making if !facts.is_kept => Decision::WaitForSnapshot,
        Made::There if !facts.is_kept => Decision::DeleteSnapshot,
        Made::NotAsked | Made::Making | Made::There | Made::Missing => {
            match (facts.is_deleting, facts.is_protected) {
                (false, _) => Decision::Delete,
                (true, true) => Decision::LetGo,
                (true, false) => Decision::Leave,
            }
        }
    }
}

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Disk> {
    let Scene { content, snapshot, handle } = scene;
    match decision {
        Decision::ReadSnapshot => live_read(
            vec![Read::Object(snapshot.clone())],
            "the VolumeSnapshot is not in the cache; only a live read can show that it is gone",
        ),
        Decision::AskDisk => live_read(
            vec![Read::Ask(DiskQuestion::Snapshot(handle.clone()))],
            "asking the disk whether the snapshot exists",
        ),
        Decision::WaitForSnapshot => wait("the snapshot is still being taken", REQUEUE_AFTER),
        Decision::DeleteSnapshot => Step::outside(
            DiskAction::DeleteSnapshot(handle.clone()),
            "the VolumeSnapshot was deleted, and its content was not",
        ),
        Decision::Delete => Step::write(
            Write::delete(Place::CLUSTER, &CONTENT, content),
            "the VolumeSnapshot and its data are deleted",
        ),
        Decision::LetGo => Step::write(
            take_finalizer_off(&CONTENT, content, CONTENT_PROTECTION),
            "the VolumeSnapshot was deleted, and the deletion policy is Delete",
        ),
        Decision::Leave => Step::rest("the object is being deleted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_goes_after_its_snapshot_and_only_when_its_snapshot_is_gone_for_certain() {
        let facts = Facts {
            is_left_for_certain: true,
            is_kept: false,
            is_deleting: false,
            is_protected: true,
            made: Made::There,
        };
        let unsure = Facts { is_left_for_certain: false, ..facts };
        assert_eq!(decide(&unsure), Decision::ReadSnapshot);
        assert_eq!(decide(&Facts { made: Made::NotAsked, ..facts }), Decision::AskDisk);
        assert_eq!(decide(&Facts { made: Made::Making, ..facts }), Decision::WaitForSnapshot);
        assert_eq!(decide(&facts), Decision::DeleteSnapshot);
        let gone = Facts { made: Made::Missing, ..facts };
        assert_eq!(decide(&gone), Decision::Delete);
        let terminating = Facts { is_deleting: true, ..gone };
        assert_eq!(decide(&terminating), Decision::LetGo);
        assert_eq!(decide(&Facts { is_protected: false, ..terminating }), Decision::Leave);
    }

    #[test]
    fn a_content_that_is_kept_goes_without_its_snapshot() {
        for made in [Made::NotAsked, Made::Making, Made::There] {
            let kept = Facts {
                is_left_for_certain: true,
                is_kept: true,
                is_deleting: true,
                is_protected: true,
                made,
            };
            assert_eq!(decide(&kept), Decision::LetGo);
        }
    }
}
