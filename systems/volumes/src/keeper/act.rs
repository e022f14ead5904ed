//! A decision about a place as one step.

use super::decide::Decision;
use super::observe::Scene;
use crate::outside::Mover;
use crate::sync::slots::give_back;
use interlock_kernel::{Read, Step};
use std::time::Duration;

/// How often a mover is asked that nobody waits for any more.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Mover> {
    match decision {
        Decision::Leave => Step::rest("the sync that has the slot is in progress"),
        Decision::LiveRead => live_read(scene),
        Decision::WaitForMover => Step::Wait {
            because: "the object of the sync was deleted, and the mover still runs".to_owned(),
            at_most: ASK_AGAIN,
        },
        Decision::GiveBack => {
            Step::write(give_back(&scene.lease), "the sync that had the slot has ended")
        }
    }
}

/// The object first, then the mover: once nobody names the sync any more, nobody begins it any more.
fn live_read(scene: &Scene) -> Step<Mover> {
    let mut reads: Vec<Read<Mover>> = vec![Read::Object(scene.owner.clone())];
    reads.extend(scene.attempts.iter().cloned().map(Read::Ask));
    Step::LiveRead { reads, because: "the sync that has the slot is not in the cache".to_owned() }
}
