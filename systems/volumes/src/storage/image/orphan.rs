//! A content whose VolumeSnapshot is gone without it: torn out, finalizers and all.
//!
//! Nobody can hold it any more, since holds are on the VolumeSnapshot; so it goes with its image, or
//! stays with it, as its deletion policy says.

use super::observe::CONTENT_PROTECTION;
use crate::filed::CONTENTS_BY_SNAPSHOT;
use crate::kinds::{CONTENT, SNAPSHOT_KIND};
use crate::objects::{has_finalizer, is_deleting, is_same, take_finalizer_off, text};
use crate::outside::{Disk, DiskDeed, DiskQuestion, Made};
use crate::storage::{LOOK_AGAIN, perform, wait};
use interlock_api::names::LOCAL_DRIVER;
use interlock_kernel::{Address, Looks, Name, Object, Place, Read, Step, View, Write};

/// The next step about the first content of this name whose VolumeSnapshot is not there, if any.
pub(super) fn step(name: &Name, view: &dyn View, looks: &Looks<Disk>) -> Option<Step<Disk>> {
    let address = Address::new(Place::CLUSTER, &SNAPSHOT_KIND, name.clone());
    let cached = view.get(Place::CLUSTER, &SNAPSHOT_KIND, name);
    let of =
        |content: &Object| text(&content.data, &["spec", "volumeSnapshotRef", "uid"]).to_owned();
    let contents = view.find(Place::CLUSTER, &CONTENTS_BY_SNAPSHOT, &name.to_string());
    let content = contents.iter().find(|content| {
        let is_left = !cached.as_ref().is_some_and(|found| is_same(found, &of(content)));
        let is_ours = text(&content.data, &["spec", "driver"]) == LOCAL_DRIVER;
        let is_kept = text(&content.data, &["spec", "deletionPolicy"]) == "Retain";
        // One that is kept is at rest, unless somebody deletes it.
        is_left && is_ours && !of(content).is_empty() && (!is_kept || is_deleting(content))
    })?;
    let Some(truth) = looks.objects.get(&address) else {
        let because = "its VolumeSnapshot is not in the cache, which proves nothing".to_owned();
        return Some(Step::Look { reads: vec![Read::Object(address)], because });
    };
    if truth.as_ref().is_some_and(|found| is_same(found, &of(content))) {
        return None;
    }
    Some(leave(content, looks))
}

fn leave(content: &Object, looks: &Looks<Disk>) -> Step<Disk> {
    let is_kept = text(&content.data, &["spec", "deletionPolicy"]) == "Retain";
    let uid = text(&content.data, &["spec", "volumeSnapshotRef", "uid"]);
    let handle = format!("snapshot-{uid}");
    let question = DiskQuestion::Image(handle.clone());
    let made = if is_kept { Some(&Made::Missing) } else { looks.answers.get(&question) };
    match made {
        None => {
            let reads = vec![Read::Ask(question)];
            let because = "only the disk knows whether its image is left".to_owned();
            Step::Look { reads, because }
        }
        Some(Made::Making(_)) => wait("its image is still being taken", LOOK_AGAIN),
        Some(Made::Whole(_) | Made::Failed(_)) => {
            perform(DiskDeed::DeleteImage(handle), "its VolumeSnapshot is gone without it")
        }
        Some(Made::Missing) if !is_deleting(content) => {
            let write = Write::delete(Place::CLUSTER, &CONTENT, content);
            Step::write(write, "its VolumeSnapshot and its image are gone")
        }
        Some(Made::Missing) if has_finalizer(content, CONTENT_PROTECTION) => {
            let write = take_finalizer_off(&CONTENT, content, CONTENT_PROTECTION);
            Step::write(write, "its VolumeSnapshot is gone, and it is to go")
        }
        Some(Made::Missing) => Step::rest("it goes"),
    }
}
