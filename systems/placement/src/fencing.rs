//! Answers a ForceRelease: the one way to take a namespace from an owner that cannot be asked.
//!
//! A step is about one ForceRelease. It names grant, owner and epoch; if the live grant is exactly
//! that, one write makes it Fenced, gives up what no snapshot has, and says how much that may be.
//! `fencedBy` tells for ever that it was this one, so a crash before the answer was written, and
//! even the next grant, do not turn an applied ForceRelease into a refused one.

use crate::kinds::{FORCE_RELEASE, FORCES_BY_GRANT, GRANT};
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{
    LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};

mod act;
pub mod decide;
mod observe;

/// The controller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fencing;

impl Watcher for Fencing {
    fn name(&self) -> &'static str {
        "placement/fencing"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(Place::HUB, &FORCE_RELEASE).by(&FORCES_BY_GRANT),
            Watch::all(Place::HUB, &GRANT),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        [
            Right::to(Place::HUB, &FORCE_RELEASE, &[Verb::PatchStatus]),
            Right::to(Place::HUB, &GRANT, &[Verb::PatchStatus]),
        ]
        .concat()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == FORCE_RELEASE {
            return vec![Subject::from(name_of(object))];
        }
        let forces = view.find(Place::HUB, &FORCES_BY_GRANT, uid_of(object));
        let is_open = |force: &&Object| observe::is_open(force);
        forces.iter().filter(is_open).map(|force| Subject::from(name_of(force))).collect()
    }
}

impl Room for Fencing {
    type Outside = Nothing;
    type Facts = decide::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> Observed<decide::Facts, observe::Scene> {
        observe::observe(subject, view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Nothing> {
        act::act(scene, decision)
    }
}

#[cfg(test)]
mod tests;
