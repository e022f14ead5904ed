//! Sees to it that the cloud knows the issuer of each cluster, and that no two clusters have one. The subject of a
//! step is a WorkloadCluster.
//!
//! Roles of placed namespaces trust a cluster by the OIDC provider of its issuer. Where Interlock manages providers,
//! each call is made under a mark, as for policies and roles; the mark is in an annotation, with the issuer that the
//! provider was made for. A WorkloadCluster changes with each heartbeat, so when the cloud was last compared is
//! written there, too: a heartbeat alone costs no call.

mod act;
pub mod decide;
mod observe;
pub mod record;
#[cfg(test)]
mod tests;

use crate::kinds::CLUSTER;
use crate::outside::Cloud;
use crate::settings::Settings;
use interlock_kernel::metadata::name_of;
use interlock_kernel::{
    LiveReads, Object, Observed, Place, Right, Room, Step, Subject, Verb, View, Watch, Watcher,
};
use std::sync::Arc;
use std::time::Duration;

/// The controller of OIDC providers.
#[derive(Debug, Clone)]
pub struct Providers {
    /// What the operator of the fleet says.
    pub settings: Arc<Settings>,
}

impl Watcher for Providers {
    fn name(&self) -> &'static str {
        "identities/providers"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::all(Place::HUB, &CLUSTER)]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::HUB, &CLUSTER, &[Verb::Patch, Verb::PatchStatus])
    }

    fn subjects(&self, _: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let mut subjects = vec![Subject::from(name_of(object))];
        if let Some(issuer) = observe::issuer(object) {
            let others = view.list(Place::HUB, &CLUSTER, None);
            let others = others.iter().filter(|it| observe::has_issuer(it, &issuer));
            subjects.extend(others.map(|other| Subject::from(name_of(other))));
        }
        subjects.sort_unstable();
        subjects.dedup();
        subjects
    }

    fn resync(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.settings.resync_seconds))
    }
}

impl Room for Providers {
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
        act::act(scene, decision)
    }
}
