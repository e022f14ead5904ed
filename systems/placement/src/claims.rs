//! The labels that mirror a grant, and claims that stay while a cluster has them (the seed's
//! PVCController).
//!
//! # The seed's states
//!
//! The seed's `ns[c]` and `pvc[c]` are the label `state.interlock.dev/<uid of c>` on the namespace
//! and on each claim at the hub. Both are one word, read off the grant:
//!
//! | the grant says | label for its owner | for every other cluster |
//! |---|---|---|
//! | Granted, every claim filled | `Sync` (the seed's `Sync`) | absent (`nil`) |
//! | Granted, not filled yet | `""` (the seed's `Empty`, which it never used) | absent |
//! | Revoking | `""`, and an annotation since when it is leaving | absent |
//! | anything else | absent | absent |
//!
//! Nobody decides by them: they are for people, and for tools that know kcp's ways.
//!
//! # How a claim comes and goes
//!
//! 1. This room puts the finalizer on it. Only then does the scheduler list it in the grant, and
//!    only what is listed may a cluster make.
//! 2. The syncer of the owner puts its own finalizer on it before it makes the claim there.
//! 3. Somebody deletes it. The syncer deletes its claim, sees that it is gone, and takes its own
//!    finalizer off; nobody can put one on again. Then this room takes it off the list, with its
//!    pin, in one write to the grant. While the grant has no owner it does so at once: the volumes
//!    that are left go with their copies.
//! 4. A claim that is not listed, by a live read of the grant, no cluster has or will make: the
//!    finalizer comes off. In a grant that is Deleting nothing is taken off the list; there the
//!    finalizer comes off when no copies are left.
//!
//! A claim that is listed, was never filled, and is surely not at the hub (a live read says so)
//! was listed from a cache that was behind; it is taken off the list too, or its grant would never
//! fill.

use crate::kinds::{CLAIM, GRANT, NAMESPACE, NAMESPACES_BY_GRANT};
use crate::scheduler::about_claim;
use interlock_api::names::grant_name;
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{
    LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};

mod act;
pub mod decide;
mod observe;

/// The controller. A step is about one grant, by the name that it has or would have.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claims;

impl Watcher for Claims {
    fn name(&self) -> &'static str {
        "placement/claims"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(Place::HUB, &NAMESPACE).by(&NAMESPACES_BY_GRANT),
            Watch::all(Place::HUB, &CLAIM),
            Watch::all(Place::HUB, &GRANT),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        [
            Right::to(Place::HUB, &NAMESPACE, &[Verb::Patch]),
            Right::to(Place::HUB, &CLAIM, &[Verb::Patch]),
            Right::to(Place::HUB, &GRANT, &[Verb::PatchStatus]),
        ]
        .concat()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == GRANT {
            return vec![Subject::from(name_of(object))];
        }
        if watch.kind == CLAIM {
            return about_claim(object, view);
        }
        vec![Subject::from(grant_name(name_of(object), uid_of(object)))]
    }
}

impl Room for Claims {
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
