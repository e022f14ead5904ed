//! A decision about a volume as one step.

use super::decide::{Decision, Phase, Why};
use super::observe::Scene;
use crate::kinds::VOLUME;
use crate::objects::{change_status, put_finalizer_on, take_finalizer_off};
use crate::outside::{Disk, DiskAction, DiskQuestion};
use crate::storage::claim::VOLUME_PROTECTION;
use crate::storage::{REQUEUE_AFTER, handle_of, live_read, wait};
use interlock_kernel::{Place, Read, Step, Write};
use serde_json::json;

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Disk> {
    let volume = &scene.volume;
    let handle = || handle_of(volume).to_owned();
    match decision {
        Decision::Nothing(why) => nothing(why),
        Decision::Protect => Step::write(
            put_finalizer_on(&VOLUME, volume, VOLUME_PROTECTION),
            "the PersistentVolume stays until its claim is gone",
        ),
        Decision::Report(phase) => {
            let (phase, because) = match phase {
                Phase::Bound => ("Bound", "the claim exists"),
                Phase::Released => {
                    ("Released", "the claim is gone, and the volume must not be bound again")
                }
                Phase::Available | Phase::Other => {
                    ("Available", "the volume is not reserved for a claim")
                }
            };
            Step::write(change_status(&VOLUME, volume, json!({"phase": phase})), because)
        }
        Decision::ReadClaim => live_read(
            scene.truth().map(Read::Object).into(),
            "the claim is not in the cache; only a live read can show that it is gone",
        ),
        Decision::AskDisk => {
            let disk = Read::Ask(DiskQuestion::Volume(handle()));
            let reads = scene.truth().map(Read::Object).into_iter().chain([disk]).collect();
            live_read(reads, "asking the disk whether the volume exists")
        }
        Decision::Delete => Step::outside(
            DiskAction::DeleteVolume(handle()),
            "the claim is gone, and the reclaim policy is Delete",
        ),
        Decision::DeleteRecord => Step::write(
            Write::delete_seen(Place::CLUSTER, &VOLUME, volume),
            "the volume is deleted from the disk",
        ),
        Decision::LetGo => Step::write(
            take_finalizer_off(&VOLUME, volume, VOLUME_PROTECTION),
            "the claim is gone, and the PersistentVolume is deleted",
        ),
    }
}

fn nothing(why: Why) -> Step<Disk> {
    match why {
        Why::Making => wait("the volume is still being created", REQUEUE_AFTER),
        Why::Bound => Step::rest("the claim exists"),
        Why::Available => Step::rest("the volume is not reserved for a claim"),
        Why::Retained => Step::rest("the claim is gone, and the volume is retained"),
        Why::InUse => Step::rest("the claim is gone, and a pod may still use the volume"),
        Why::CacheBehind => Step::rest("the live state differs from the cache"),
        Why::Terminating => Step::rest("the PersistentVolume is being deleted"),
    }
}
