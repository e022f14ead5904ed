//! Keeps one cloud policy as a Policy declares it. The subject of a step is a Policy.

mod act;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;

use crate::kinds::{POLICY, ROLE};
use crate::outside::Cloud;
use crate::settings::Settings;
use crate::subject::{is_only_unmarked, subject_of};
use interlock_kernel::metadata::is_deleting;
use interlock_kernel::{
    LiveReads, Name, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use std::sync::Arc;
use std::time::Duration;

/// The controller of policies.
#[derive(Debug, Clone)]
pub struct Policies {
    /// What the operator of the fleet says.
    pub settings: Arc<Settings>,
}

impl Watcher for Policies {
    fn name(&self) -> &'static str {
        "identities/policy"
    }

    fn watches(&self) -> Vec<Watch> {
        // A cloud policy is deleted when the cloud role has let go of it: both go when their namespace is deleted.
        let all = |kind| Watch::all(Place::HUB, kind);
        vec![all(&POLICY).unless(is_only_unmarked), all(&ROLE).unless(observe::is_same_role)]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::HUB, &POLICY, &[Verb::Patch, Verb::PatchStatus])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        // What a Role does is of interest only to a Policy that waits to be deleted. One that is deleted later has
        // its turn then.
        let is_own = watch.kind == POLICY;
        let waits =
            || view.get(Place::HUB, &POLICY, &Name::of(object)).is_some_and(|it| is_deleting(&it));
        if is_own || waits() { vec![subject_of(object)] } else { Vec::new() }
    }

    fn resync(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.settings.resync_seconds))
    }
}

impl Room for Policies {
    type Outside = Cloud;
    type Facts = decide::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Cloud>,
    ) -> Observed<decide::Facts, observe::Scene> {
        observe::observe(&self.settings, subject, view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Cloud> {
        act::act(&self.settings, scene, decision)
    }
}
