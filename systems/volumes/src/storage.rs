//! Local storage: volumes and snapshots as folders of the machine, bound as Kubernetes binds them.
//!
//! Three controllers make the volumes of claims whose class has the provisioner
//! `local.interlock.dev`, and take the snapshots that are asked of them. A step does one thing to one
//! object, or to the disk.
//!
//! * [`Claims`]: makes a volume for a claim, empty or of a snapshot, and binds the two.
//! * [`Volumes`]: what happens to a volume whose claim is gone.
//! * [`Snapshots`]: takes snapshots, says when they are whole, and deletes them when they have no holder.
//!
//! What is on the disk has the uid of a claim or of a VolumeSnapshot in its name, so that nothing
//! that was made again under an old name ever meets what is left of the one before.

pub mod claim;
pub mod snapshot;
#[cfg(test)]
mod tests;
pub mod volume;

pub use claim::Claims;
pub use snapshot::Snapshots;
pub use volume::Volumes;

use crate::objects::{text, uid_of};
use crate::outside::Disk;
use interlock_api::names::LOCAL_DRIVER;
use interlock_kernel::{Name, Object, Read, Step, Subject};
use jiff::Timestamp;
use kube_core::DynamicObject;
use std::time::Duration;

/// How soon something that is being made is checked again: its end is no news of the API.
const REQUEUE_AFTER: Duration = Duration::from_millis(200);
/// The shortest time between two attempts at something that failed.
const LEAST_BACK_OFF_SECONDS: i64 = 5;
/// The longest.
const MOST_BACK_OFF_SECONDS: i64 = 300;

/// The subject of a step about an object: its name, with its namespace if it has one.
fn subject_of(object: &Object) -> Subject {
    Subject::from(Name::of(object).to_string())
}

/// The name of the object that a step is about.
fn named(subject: &str) -> Name {
    match subject.split_once('/') {
        Some((namespace, name)) => Name::within(namespace, name),
        None => Name::cluster_wide(subject),
    }
}

/// Whether a volume is one of ours.
fn is_local(volume: &DynamicObject) -> bool {
    text(&volume.data, &["spec", "csi", "driver"]) == LOCAL_DRIVER
}

/// The name of a volume on the disk.
fn handle_of(volume: &DynamicObject) -> &str {
    text(&volume.data, &["spec", "csi", "volumeHandle"])
}

/// The name of the volume that is made for a claim: on the disk, and of the PersistentVolume.
fn handle_for(claim: &DynamicObject) -> String {
    format!("pvc-{}", uid_of(claim))
}

/// The step about something that was decided upon, and so was seen.
fn on<T>(thing: Option<&T>, act: impl FnOnce(&T) -> Step<Disk>) -> Step<Disk> {
    match thing {
        Some(thing) => act(thing),
        None => Step::rest("the object does not exist any more"),
    }
}

fn live_read(reads: Vec<Read<Disk>>, because: &str) -> Step<Disk> {
    Step::LiveRead { reads, because: because.to_owned() }
}

fn wait(because: &str, at_most: Duration) -> Step<Disk> {
    Step::Wait { because: because.to_owned(), at_most }
}

/// Waits for the next attempt at something that failed.
fn back_off_for(pause: Option<Duration>, because: &str) -> Step<Disk> {
    wait(because, pause.unwrap_or(Duration::from_secs(MOST_BACK_OFF_SECONDS as u64)))
}

/// How long until the next attempt at something that has failed since `first`, and last at `last`:
/// as long again as it has failed so far, within limits. None: it is time.
fn back_off(first: Timestamp, last: Timestamp, now: Timestamp) -> Option<Duration> {
    let seconds = last.as_second().saturating_sub(first.as_second());
    let pause = seconds.clamp(LEAST_BACK_OFF_SECONDS, MOST_BACK_OFF_SECONDS);
    let left = last.as_second().saturating_add(pause).saturating_sub(now.as_second());
    let left = u64::try_from(left).ok().filter(|left| *left > 0)?;
    // A clock that was set back does not make anybody wait for longer than this.
    Some(Duration::from_secs(left.min(MOST_BACK_OFF_SECONDS as u64)))
}

/// Whether a failure that was reported then is the one that is seen now: no other attempt can have
/// been made since.
fn is_just_reported(last: Option<Timestamp>, now: Timestamp) -> bool {
    last.is_some_and(|last| {
        now.as_second().saturating_sub(last.as_second()) < LEAST_BACK_OFF_SECONDS
    })
}
