//! A decision about a volume as one step.

use super::decide::{Decision, Phase, Why};
use super::observe::Scene;
use crate::kinds::VOLUME;
use crate::objects::{change_status, put_finalizer_on, take_finalizer_off};
use crate::outside::{Disk, DiskDeed, DiskQuestion};
use crate::storage::claim::VOLUME_PROTECTION;
use crate::storage::{LOOK_AGAIN, handle_of, look, perform, wait};
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
            "its record stays until its claim is gone",
        ),
        Decision::Report(phase) => {
            let (phase, because) = match phase {
                Phase::Bound => ("Bound", "its claim is there"),
                Phase::Released => ("Released", "its claim is gone, and nobody is to take it now"),
                Phase::Available | Phase::Other => ("Available", "it is for nobody"),
            };
            Step::write(change_status(&VOLUME, volume, json!({"phase": phase})), because)
        }
        Decision::LookAtClaim => look(
            scene.truth().map(Read::Object).into(),
            "its claim is not in the cache, which proves nothing",
        ),
        Decision::AskDisk => {
            let disk = Read::Ask(DiskQuestion::Volume(handle()));
            let reads = scene.truth().map(Read::Object).into_iter().chain([disk]).collect();
            look(reads, "only the disk knows whether anything is left of it")
        }
        Decision::Delete => perform(
            DiskDeed::DeleteVolume(handle()),
            "its claim is gone, and it is to be deleted then",
        ),
        Decision::DeleteRecord => Step::write(
            Write::delete_seen(Place::CLUSTER, &VOLUME, volume),
            "nothing of it is left on the disk",
        ),
        Decision::LetGo => Step::write(
            take_finalizer_off(&VOLUME, volume, VOLUME_PROTECTION),
            "its claim is gone, and its record is to go",
        ),
    }
}

fn nothing(why: Why) -> Step<Disk> {
    match why {
        Why::Making => wait("it is still being made", LOOK_AGAIN),
        Why::Bound => Step::rest("its claim is there"),
        Why::Available => Step::rest("it is for nobody"),
        Why::Retained => Step::rest("its claim is gone, and it is to be kept"),
        Why::InUse => Step::rest("its claim is gone, and a pod may still have it"),
        Why::CacheBehind => Step::rest("the server says something else than the cache"),
        Why::Going => Step::rest("its record goes"),
    }
}
