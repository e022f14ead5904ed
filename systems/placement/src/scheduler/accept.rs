//! Whether a Placement can be followed as it is written, said on the Placement itself.

use super::selector::flaw;
use crate::kinds::PLACEMENT;
use interlock_api::placement::condition::ACCEPTED;
use interlock_api::placement::{OnUnreachable, PlacementSpec, PlacementStatus};
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::metadata::is_deleting;
use interlock_kernel::{Name, Nothing, Object, Observed, Place, Step, View, Write, read_part};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::slice;

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// What it says.
    pub spec: Spec,
    /// What its condition says, word for word; None: something else, or nothing.
    pub said: Option<Acceptance>,
}

/// What a Placement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Spec {
    /// It cannot be read.
    Unreadable,
    /// A selector of it makes no sense.
    InvalidSelector,
    /// It makes sense; what is to happen to a namespace whose owner sends no heartbeat.
    Readable(OnUnreachable),
}

/// Whether a Placement is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Acceptance {
    /// As it is written.
    Followed,
    /// It selects nothing, since it cannot be read.
    Unreadable,
    /// It selects nothing, since a selector makes no sense.
    InvalidSelector,
    /// It asks for what is not supported yet.
    NotSupported,
}

const ACCEPTANCES: [Acceptance; 4] = [
    Acceptance::Followed,
    Acceptance::Unreadable,
    Acceptance::InvalidSelector,
    Acceptance::NotSupported,
];

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing: it is being deleted.
    Leave,
    /// Nothing: it says so already.
    Nothing(Acceptance),
    /// Say so.
    Tell(Acceptance),
}

/// The objects that a step about a Placement is about.
#[derive(Debug)]
pub struct Scene {
    now: Timestamp,
    placement: Object,
    status: PlacementStatus,
    /// What is wrong with it, in words.
    flaw: String,
}

/// Reads what a step is about.
pub(crate) fn observe(name: &str, view: &dyn View) -> Observed<Facts, Scene> {
    let Some(placement) = view.get(Place::HUB, &PLACEMENT, &Name::cluster_wide(name)) else {
        return Observed::nothing("the Placement does not exist");
    };
    let (spec, flaw) = read(&placement);
    let scene = Scene {
        now: view.now(),
        status: read_part(&placement, "status").ok().flatten().unwrap_or_default(),
        placement,
        flaw,
    };
    let known = conditions::find(&scene.status.conditions, ACCEPTED);
    let is_said = |acceptance: &Acceptance| {
        known.is_some_and(|known| finding(&scene, *acceptance).is_in(slice::from_ref(known)))
    };
    let facts = Facts {
        is_deleting: is_deleting(&scene.placement),
        spec,
        said: ACCEPTANCES.into_iter().find(is_said),
    };
    Observed::Seen { facts, scene }
}

/// What a Placement says, and what is wrong with it.
fn read(placement: &Object) -> (Spec, String) {
    let spec: PlacementSpec = match read_part(placement, "spec") {
        Ok(spec) => spec.unwrap_or_default(),
        Err(flaw) => return (Spec::Unreadable, flaw),
    };
    match flaw(&spec.namespace_selector).or_else(|| flaw(&spec.cluster_selector)) {
        Some(flaw) => (Spec::InvalidSelector, flaw),
        None => (Spec::Readable(spec.on_unreachable), String::new()),
    }
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_deleting {
        return Decision::Leave;
    }
    let acceptance = acceptance(facts.spec);
    if facts.said == Some(acceptance) {
        return Decision::Nothing(acceptance);
    }
    Decision::Tell(acceptance)
}

fn acceptance(spec: Spec) -> Acceptance {
    match spec {
        Spec::Unreadable => Acceptance::Unreadable,
        Spec::InvalidSelector => Acceptance::InvalidSelector,
        Spec::Readable(OnUnreachable::Hold) => Acceptance::Followed,
        Spec::Readable(OnUnreachable::TakeOverAfterLease) => Acceptance::NotSupported,
    }
}

/// The one effect of a decision.
pub(crate) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    let acceptance = match decision {
        Decision::Leave => return Step::rest("the Placement is being deleted"),
        Decision::Nothing(acceptance) => return Step::rest(finding(scene, acceptance).message),
        Decision::Tell(acceptance) => acceptance,
    };
    let found = finding(scene, acceptance);
    let generation = scene.placement.metadata.generation;
    let conditions = conditions::with(&scene.status.conditions, &found, scene.now, generation);
    let change = json!({"status": {"conditions": conditions}});
    let write = Write::patch_status(Place::HUB, &PLACEMENT, &scene.placement, change);
    Step::write(write, found.message)
}

fn finding(scene: &Scene, acceptance: Acceptance) -> Finding {
    let flaw = &scene.flaw;
    match acceptance {
        Acceptance::Followed => {
            Finding::holds(ACCEPTED, "Followed", "the Placement is accepted as written")
        }
        Acceptance::Unreadable => {
            Finding::fails(ACCEPTED, "Unreadable", format!("{flaw}; the Placement selects nothing"))
        }
        Acceptance::InvalidSelector => {
            let message = format!("a selector is invalid and selects nothing: {flaw}");
            Finding::fails(ACCEPTED, "InvalidSelector", message)
        }
        Acceptance::NotSupported => {
            let message = "onUnreachable TakeOverAfterLease is not supported yet and is treated \
                as Hold: the scheduler waits for an owner that sends no heartbeat";
            let next = "set onUnreachable to Hold".to_owned();
            Finding::fails(ACCEPTED, "NotSupported", message).next(next)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_a_placement_is_said_once() {
        for (spec, wanted) in [
            (Spec::Readable(OnUnreachable::Hold), Acceptance::Followed),
            (Spec::Readable(OnUnreachable::TakeOverAfterLease), Acceptance::NotSupported),
            (Spec::InvalidSelector, Acceptance::InvalidSelector),
            (Spec::Unreadable, Acceptance::Unreadable),
        ] {
            let unsaid = Facts { is_deleting: false, spec, said: None };
            assert_eq!(decide(&unsaid), Decision::Tell(wanted));
            let said = Facts { said: Some(wanted), ..unsaid };
            assert_eq!(decide(&said), Decision::Nothing(wanted));
            assert_eq!(decide(&Facts { is_deleting: true, ..unsaid }), Decision::Leave);
        }
    }
}
