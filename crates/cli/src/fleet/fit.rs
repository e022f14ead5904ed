//! Why a cluster would not take a namespace, as far as that shows from outside. The scheduler
//! decides; this is for telling a person beforehand.

use super::picture::{Picture, Subject, cluster_conditions, condition_if, selects};
use interlock_api::placement::{VolumePolicy, WorkloadCluster, condition};

/// Why the cluster does not fit, in words; none: nothing speaks against it.
pub(crate) fn misfit(
    picture: &Picture,
    subject: &Subject,
    cluster: &WorkloadCluster,
) -> Option<String> {
    if cluster.metadata.deletion_timestamp.is_some() {
        return Some("it is being deleted".to_owned());
    }
    if cluster.spec.drain {
        return Some("it is being drained".to_owned());
    }
    if cluster.spec.unschedulable {
        return Some("it takes nothing new (unschedulable)".to_owned());
    }
    if condition_if(cluster_conditions(cluster), condition::READY, true).is_none() {
        return Some("it is not Ready".to_owned());
    }
    let placement =
        subject.namespace.as_ref().and_then(|namespace| picture.placement_of(namespace));
    if let Some(placement) = placement
        && !selects(&placement.spec.cluster_selector, &cluster.metadata)
    {
        let name = placement.metadata.name.as_deref().unwrap_or_default();
        return Some(format!("Placement {name} does not select it"));
    }
    let policy = placement.map(|placement| &placement.spec.volumes);
    subject.claims.iter().find_map(|claim| {
        let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
        class_misfit(cluster, class.unwrap_or_default(), policy)
    })
}

/// Why a claim of this storage class finds no home there.
fn class_misfit(
    cluster: &WorkloadCluster,
    class: &str,
    policy: Option<&VolumePolicy>,
) -> Option<String> {
    let mapped = policy.and_then(|policy| policy.storage_classes.get(class));
    let wanted = mapped.map_or(class, String::as_str);
    let classes = cluster.status.as_ref().map_or(&[][..], |status| &status.storage_classes);
    let found = classes.iter().find(|known| match wanted {
        "" => known.is_default,
        wanted => known.name == wanted,
    });
    match found {
        // A cluster that tells of no classes makes volumes without them.
        None if wanted.is_empty() && classes.is_empty() => None,
        None if wanted.is_empty() => Some("it has no default storage class".to_owned()),
        None => Some(format!("it has no storage class {wanted}")),
        Some(found) if !found.can_snapshot => {
            Some(format!("its storage class {} cannot take images", found.name))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::scene::{Scene, cluster};
    use super::*;

    fn why(change: impl FnOnce(&mut WorkloadCluster)) -> Option<String> {
        let mut east = cluster("east");
        change(&mut east);
        let scene = Scene::new("shop").claim("data", "fast");
        misfit(&scene.picture(), scene.subject(), &east)
    }

    #[test]
    fn a_ready_cluster_with_the_storage_class_fits() {
        assert_eq!(why(|_| {}), None);
    }

    #[test]
    fn each_misfit_has_its_words() {
        assert_eq!(why(|east| east.spec.drain = true).unwrap(), "it is being drained");
        let words = why(|east| east.spec.unschedulable = true).unwrap();
        assert_eq!(words, "it takes nothing new (unschedulable)");
        assert_eq!(why(|east| east.status = None).unwrap(), "it is not Ready");
        let words = why(|east| east.status.as_mut().unwrap().storage_classes.clear()).unwrap();
        assert_eq!(words, "it has no storage class fast");
        let words = why(|east| {
            east.status.as_mut().unwrap().storage_classes[0].can_snapshot = false;
        });
        assert_eq!(words.unwrap(), "its storage class fast cannot take images");
    }

    #[test]
    fn a_placement_that_selects_other_clusters_speaks_against_it() {
        let scene = Scene::new("shop").placement("europe", &[("region", "eu")]);
        let words = misfit(&scene.picture(), scene.subject(), &cluster("east"));
        assert_eq!(words.unwrap(), "Placement europe does not select it");
    }
}
