//! A Rack stays while a PhysicalNode names it.

use super::{Facts as AllFacts, Scene as AnyScene};
use crate::filed::NODES_BY_RACK;
use crate::in_use::{Keeping, Kept, Words, step};
use crate::kinds::RACK;
use crate::power::Power;
use interlock_kernel::metadata::{is_deleting, name_of};
use interlock_kernel::{LiveReads, Name, Object, Observed, Place, Step, Subject, View};
use jiff::Timestamp;

/// The beginning of the subject of a rack: no node has a slash in its name.
const RACKS: &str = "/rack/";

/// A rack, and when it was seen.
#[derive(Debug)]
pub struct Scene {
    now: Timestamp,
    rack: Object,
}

/// The subject of a rack.
pub(super) fn subject(rack: &str) -> Subject {
    Subject::from(format!("{RACKS}{rack}"))
}

/// The rack of a node, if it is being deleted: the node may have been the last.
pub(super) fn waiting_for(node: &Object, view: &dyn View) -> Option<Subject> {
    let rack = (NODES_BY_RACK.values)(node).into_iter().next()?;
    let found = view.get(Place::HUB, &RACK, &Name::cluster_wide(&rack))?;
    is_deleting(&found).then(|| subject(&rack))
}

/// The rack that a step is about; None: it is about a node.
pub(super) fn named(subject: &str) -> Option<&str> {
    subject.strip_prefix(RACKS)
}

/// Reads what a step is about.
pub(super) fn observe(
    name: &str,
    view: &dyn View,
    live_reads: &LiveReads<Power>,
) -> Observed<AllFacts, AnyScene> {
    let Some(rack) = view.get(Place::HUB, &RACK, &Name::cluster_wide(name)) else {
        return Observed::nothing("the cache shows no such Rack");
    };
    let words = Words {
        what: format!("Rack {name}"),
        how: "delete its PhysicalNode, or change its spec.rack",
    };
    let names_it =
        |node: &Object| (NODES_BY_RACK.values)(node).iter().any(|of| of == name_of(&rack));
    let kept = Kept::read(&rack, words, live_reads, names_it);
    let scene = Scene { now: view.now(), rack };
    Observed::Seen { facts: AllFacts::Rack(kept), scene: AnyScene::Rack(Box::new(scene)) }
}

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, keeping: Keeping) -> Step<Power> {
    step(&RACK, &scene.rack, scene.now, keeping)
}
