//! Whether a Placement can be followed as it is written, said on the Placement itself.

use super::selector::flaw;
use crate::kinds::PLACEMENT;
use crate::record::is_deleting;
use interlock_api::placement::condition::ACCEPTED;
use interlock_api::placement::{OnUnreachable, PlacementSpec, PlacementStatus};
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::{Name, Nothing, Part, Place, Step, View, Write, read_part};
use serde_json::json;

/// The one next thing to say about a Placement.
pub(crate) fn step(name: &str, view: &dyn View) -> Step<Nothing> {
    let Some(placement) = view.get(Place::HUB, &PLACEMENT, &Name::cluster_wide(name)) else {
        return Step::rest("there is no such placement");
    };
    if is_deleting(&placement) {
        return Step::rest("the placement goes");
    }
    let status: PlacementStatus =
        read_part(&placement, "status").ok().flatten().unwrap_or_default();
    let found = finding(read_part(&placement, "spec"));
    if found.is_in(&status.conditions) {
        return Step::rest(found.message);
    }
    let at = (view.now(), placement.metadata.generation);
    let change =
        json!({"status": {"conditions": conditions::with(&status.conditions, &found, at)}});
    let write = Write::patch(Place::HUB, &PLACEMENT, &placement, (Part::Status, change));
    Step::write(write, found.message)
}

fn finding(spec: Result<Option<PlacementSpec>, String>) -> Finding {
    let spec = match spec {
        Ok(spec) => spec.unwrap_or_default(),
        Err(flaw) => {
            return Finding::fails(ACCEPTED, "Unreadable", format!("{flaw}; it selects nothing"));
        }
    };
    if let Some(flaw) = flaw(&spec.namespace_selector).or_else(|| flaw(&spec.cluster_selector)) {
        let message = format!("a selector makes no sense and selects nothing: {flaw}");
        return Finding::fails(ACCEPTED, "InvalidSelector", message);
    }
    match spec.on_unreachable {
        OnUnreachable::Hold => Finding::holds(ACCEPTED, "Followed", "it is followed as written"),
        OnUnreachable::TakeOverAfterLease => Finding::fails(
            ACCEPTED,
            "NotSupported",
            "onUnreachable TakeOverAfterLease is not supported yet and is treated as Hold: an \
             owner that is not heard of is waited for. next: set onUnreachable to Hold",
        ),
    }
}
