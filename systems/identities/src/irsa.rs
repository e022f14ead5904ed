//! Makes of an IamRoleServiceAccount its Policy, its Role and its ServiceAccount. The subject of a step is an
//! IamRoleServiceAccount.
//!
//! The room works within the API only: the rooms of policies and roles change the cloud.

mod act;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;

use crate::kinds::{ACCOUNT, POLICY, ROLE, SERVICE_ACCOUNT};
use crate::settings::Settings;
use crate::subject::subject_of;
use interlock_kernel::{
    LiveReads, Nothing, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};
use std::sync::Arc;

/// The controller of identities.
#[derive(Debug, Clone)]
pub struct Accounts {
    /// What the operator of the fleet says.
    pub settings: Arc<Settings>,
}

impl Watcher for Accounts {
    fn name(&self) -> &'static str {
        "identities/irsa"
    }

    fn watches(&self) -> Vec<Watch> {
        [&ACCOUNT, &POLICY, &ROLE, &SERVICE_ACCOUNT].map(|kind| Watch::all(Place::HUB, kind)).into()
    }

    fn rights(&self) -> Vec<Right> {
        let children = [Verb::Create, Verb::Patch, Verb::Delete];
        Right::to_each(
            Place::HUB,
            &[
                (&ACCOUNT, &[Verb::Patch, Verb::PatchStatus]),
                (&POLICY, &children),
                (&ROLE, &children),
                (&SERVICE_ACCOUNT, &children),
            ],
        )
    }

    /// The account and its children have one name.
    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let name = interlock_kernel::Name::of(object);
        let is_ours = watch.kind == ACCOUNT || view.get(Place::HUB, &ACCOUNT, &name).is_some();
        is_ours.then(|| subject_of(object)).into_iter().collect()
    }
}

impl Room for Accounts {
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
        observe::observe(&self.settings, subject, view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Nothing> {
        act::act(scene, decision)
    }
}
