//! Keeps one cloud role as a Role declares it. The subject of a step is a Role.
//!
//! A role trusts one service account. That of a namespace that is not placed trusts the account of the namespace, by
//! the provider that the operator configured. That of a placed namespace trusts the account on the cluster that owns
//! the Grant, by the issuer of that cluster, and nobody between two owners that change by force.

mod act;
pub mod decide;
mod keep;
mod observe;
pub mod placed;
mod rights;
#[cfg(test)]
mod tests;

use crate::kinds::{CLUSTER, GRANT, NAMESPACE, POLICY, ROLE};
use crate::outside::Cloud;
use crate::settings::Settings;
use crate::subject::{is_only_unmarked, subject_of};
use interlock_api::placement::GrantSpec;
use interlock_kernel::metadata::name_of;
use interlock_kernel::{
    Kind, LiveReads, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher, read_part,
};
use std::sync::Arc;
use std::time::Duration;

/// The controller of roles.
#[derive(Debug, Clone)]
pub struct Roles {
    /// What the operator of the fleet says.
    pub settings: Arc<Settings>,
}

impl Watcher for Roles {
    fn name(&self) -> &'static str {
        "identities/role"
    }

    fn watches(&self) -> Vec<Watch> {
        let all = |kind| Watch::all(Place::HUB, kind);
        vec![
            all(&ROLE).unless(is_only_unmarked),
            all(&POLICY).unless(observe::is_same_policy),
            all(&NAMESPACE),
            all(&GRANT).unless(observe::is_same_grant),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        let kinds: [(&Kind, &[Verb]); 3] = [
            (&ROLE, &[Verb::Patch, Verb::PatchStatus]),
            (&GRANT, &[Verb::PatchStatus]),
            (&CLUSTER, &[Verb::Get]),
        ];
        Right::to_each(Place::HUB, &kinds)
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == ROLE || watch.kind == POLICY {
            return vec![subject_of(object)];
        }
        let grant = read_part::<GrantSpec>(object, "spec").ok().flatten();
        let namespace = match grant.filter(|_| watch.kind == GRANT) {
            Some(grant) => grant.namespace.name,
            None => name_of(object).to_owned(),
        };
        let roles = view.list(Place::HUB, &ROLE, Some(&namespace));
        roles.iter().map(subject_of).collect()
    }

    fn resync(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.settings.resync_seconds))
    }
}

impl Room for Roles {
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
