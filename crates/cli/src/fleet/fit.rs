//! Why a cluster would not take a namespace: what the scheduler would say, told beforehand.

use super::picture::{Picture, Subject, annotation};
use interlock_api::names::ANNOTATION_CLUSTER;
use interlock_api::placement::WorkloadCluster;
use interlock_kernel::Object;
use interlock_placement::scheduler::fit::{self, Needs, Seeking};
use kube::api::DynamicObject;
use serde::Serialize;
use std::sync::Arc;

/// Why the cluster does not fit, in words; none: nothing speaks against it.
pub(crate) fn unfit_reason(
    picture: &Picture,
    subject: &Subject,
    cluster: &WorkloadCluster,
) -> Option<String> {
    let namespace = subject.namespace.as_ref();
    let desired =
        namespace.and_then(|namespace| annotation(&namespace.metadata, ANNOTATION_CLUSTER));
    judged(picture, subject, cluster, desired.is_some())
}

/// The same, should somebody ask for this very cluster by name.
pub(crate) fn unfit_reason_if_desired(
    picture: &Picture,
    subject: &Subject,
    cluster: &WorkloadCluster,
) -> Option<String> {
    judged(picture, subject, cluster, true)
}

fn judged(
    picture: &Picture,
    subject: &Subject,
    cluster: &WorkloadCluster,
    is_by_name: bool,
) -> Option<String> {
    let namespace = subject.namespace.as_ref();
    let placement = namespace.and_then(|namespace| picture.placement_of(namespace));
    let claims: Vec<Object> = subject.claims.iter().filter_map(as_served).map(Arc::new).collect();
    let needs = Needs::of(&Seeking {
        rules: placement.map(|placement| &placement.spec),
        is_by_name,
        claims: &claims,
        grant: subject.grant.as_ref().and_then(|grant| grant.status.as_ref()),
    });
    fit::unfit_reason(&as_served(cluster)?, &needs).map(|unfit_reason| unfit_reason.to_string())
}

/// An object as a server shows it, and as controllers read it.
fn as_served(object: &impl Serialize) -> Option<DynamicObject> {
    serde_json::to_value(object).and_then(serde_json::from_value).ok()
}

#[cfg(test)]
mod tests {
    use super::super::scene::{Scene, cluster};
    use super::*;

    fn why(change: impl FnOnce(&mut WorkloadCluster)) -> Option<String> {
        let mut east = cluster("east");
        change(&mut east);
        let scene = Scene::new("shop").claim("data", "fast");
        unfit_reason(&scene.picture(), scene.subject(), &east)
    }

    #[test]
    fn a_ready_cluster_with_the_storage_class_fits() {
        assert_eq!(why(|_| {}), None);
    }

    #[test]
    fn the_words_are_those_of_the_scheduler() {
        let words = why(|east| east.spec.drain = true).unwrap();
        assert_eq!(words, "Draining, its namespaces are moved away");
        let words = why(|east| east.status.as_mut().unwrap().storage_classes.clear()).unwrap();
        assert_eq!(words, "StorageClassMissing, the cluster has no storage class fast");
        assert!(why(|east| east.status = None).unwrap().starts_with("NotReady, "));
    }

    #[test]
    fn a_claim_without_data_needs_no_snapshots() {
        let cannot = |east: &mut WorkloadCluster| {
            east.status.as_mut().unwrap().storage_classes[0].can_snapshot = false;
        };
        assert_eq!(why(cannot), None);
    }

    #[test]
    fn a_placement_that_selects_other_clusters_counts_until_one_is_asked_for_by_name() {
        let scene = Scene::new("shop").placement("europe", &[("region", "eu")]);
        let (picture, east) = (scene.picture(), cluster("east"));
        let words = unfit_reason(&picture, scene.subject(), &east);
        assert_eq!(words.unwrap(), "NotSelected, the Placement does not select the cluster");
        assert_eq!(unfit_reason_if_desired(&picture, scene.subject(), &east), None);
    }
}
