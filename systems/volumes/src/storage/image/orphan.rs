//! A content whose VolumeSnapshot is gone without it: torn out, finalizers and all.
//!
//! Nobody can hold it any more, since holds are on the VolumeSnapshot; so it goes with its image, or
//! stays with it, as its deletion policy says.

use super::observe::CONTENT_PROTECTION;
use crate::filed::CONTENTS_BY_SNAPSHOT;
use crate::kinds::{CONTENT, SNAPSHOT_KIND};
use crate::objects::{has_finalizer, is_deleting, is_same, take_finalizer_off, text};
use crate::outside::{Disk, DiskDeed, DiskQuestion, Made as Answer};
use crate::storage::volume::decide::Made;
use crate::storage::{LOOK_AGAIN, look, perform, wait};
use interlock_api::names::LOCAL_DRIVER;
use interlock_kernel::{Address, Looks, Name, Object, Place, Read, Step, View, Write};
use serde::Serialize;

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Whether the server itself says that its VolumeSnapshot is gone, and not only the cache.
    pub is_left_for_certain: bool,
    /// Whether its image stays, whatever becomes of the content.
    pub is_kept: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether our finalizer is on it.
    pub is_protected: bool,
    /// How far its image is on the disk.
    pub made: Made,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// See whether its VolumeSnapshot is gone.
    LookForImage,
    /// See whether its image is left on the disk.
    AskDisk,
    /// Its image is still being taken.
    WaitForImage,
    /// Delete its image on the disk.
    DeleteImage,
    /// Delete it.
    Delete,
    /// Take our finalizer off.
    LetGo,
    /// It goes, and nothing of ours is on it.
    Leave,
}

/// The objects that a step is about.
#[derive(Debug)]
pub struct Scene {
    content: Object,
    /// Where its VolumeSnapshot was.
    image: Address,
    /// The name of its image on the disk.
    handle: String,
}

/// The first content of this name whose VolumeSnapshot is not there, if any.
pub(super) fn observe(name: &Name, view: &dyn View, looks: &Looks<Disk>) -> Option<(Facts, Scene)> {
    let image = Address::new(Place::CLUSTER, &SNAPSHOT_KIND, name.clone());
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
    let truth = looks.objects.get(&image);
    if truth.is_some_and(|found| is_of(found, &content)) {
        return None;
    }
    let handle = format!("snapshot-{}", snapshot_uid(&content));
    let facts = Facts {
        is_left_for_certain: truth.is_some(),
        is_kept: is_kept(&content),
        is_deleting: is_deleting(&content),
        is_protected: has_finalizer(&content, CONTENT_PROTECTION),
        made: match looks.answers.get(&DiskQuestion::Image(handle.clone())) {
            None => Made::NotAsked,
            Some(Answer::Missing) => Made::Missing,
            Some(Answer::Making(_)) => Made::Making,
            Some(Answer::Whole(_) | Answer::Failed(_)) => Made::There,
        },
    };
    Some((facts, Scene { content, image, handle }))
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
        return Decision::LookForImage;
    }
    match facts.made {
        Made::NotAsked if !facts.is_kept => Decision::AskDisk,
        Made::Making if !facts.is_kept => Decision::WaitForImage,
        Made::There if !facts.is_kept => Decision::DeleteImage,
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
    let Scene { content, image, handle } = scene;
    match decision {
        Decision::LookForImage => look(
            vec![Read::Object(image.clone())],
            "its VolumeSnapshot is not in the cache, which proves nothing",
        ),
        Decision::AskDisk => look(
            vec![Read::Ask(DiskQuestion::Image(handle.clone()))],
            "only the disk knows whether its image is left",
        ),
        Decision::WaitForImage => wait("its image is still being taken", LOOK_AGAIN),
        Decision::DeleteImage => {
            perform(DiskDeed::DeleteImage(handle.clone()), "its VolumeSnapshot is gone without it")
        }
        Decision::Delete => Step::write(
            Write::delete(Place::CLUSTER, &CONTENT, content),
            "its VolumeSnapshot and its image are gone",
        ),
        Decision::LetGo => Step::write(
            take_finalizer_off(&CONTENT, content, CONTENT_PROTECTION),
            "its VolumeSnapshot is gone, and it is to go",
        ),
        Decision::Leave => Step::rest("it goes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_goes_after_its_image_and_only_when_its_snapshot_is_gone_for_certain() {
        let facts = Facts {
            is_left_for_certain: true,
            is_kept: false,
            is_deleting: false,
            is_protected: true,
            made: Made::There,
        };
        let unsure = Facts { is_left_for_certain: false, ..facts };
        assert_eq!(decide(&unsure), Decision::LookForImage);
        assert_eq!(decide(&Facts { made: Made::NotAsked, ..facts }), Decision::AskDisk);
        assert_eq!(decide(&Facts { made: Made::Making, ..facts }), Decision::WaitForImage);
        assert_eq!(decide(&facts), Decision::DeleteImage);
        let gone = Facts { made: Made::Missing, ..facts };
        assert_eq!(decide(&gone), Decision::Delete);
        let going = Facts { is_deleting: true, ..gone };
        assert_eq!(decide(&going), Decision::LetGo);
        assert_eq!(decide(&Facts { is_protected: false, ..going }), Decision::Leave);
    }

    #[test]
    fn a_content_that_is_kept_goes_without_its_image() {
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
