//! The kinds that placement reads and writes, and how their objects are filed.
//!
//! An index is what a fleet of ten thousand costs: a step asks an index, never all grants. All of
//! them read raw objects, since a broken object is filed under what can be read of it.

use interlock_api::names::{
    ANNOTATION_CLUSTER, ANNOTATION_GRANT, LABEL_PLACED, PLACED_TRUE, SYNCER_FINALIZER_PREFIX,
    grant_name,
};
use interlock_api::placement::condition::PLACED;
use interlock_api::{GROUP, VERSION};
use interlock_kernel::metadata::finalizers;
use interlock_kernel::{GroupVersion, Index, Kind};
use kube_core::DynamicObject;
use serde_json::Value;

const CORE: GroupVersion = GroupVersion::new("", "v1");
const APPS: GroupVersion = GroupVersion::new("apps", "v1");
const STORAGE: GroupVersion = GroupVersion::new("storage.k8s.io", "v1");
const SNAPSHOTS: GroupVersion = GroupVersion::new("snapshot.storage.k8s.io", "v1");
const VOLSYNC: GroupVersion = GroupVersion::new("volsync.backube", "v1alpha1");
const OWN: GroupVersion = GroupVersion::new(GROUP, VERSION);

/// A namespace.
pub const NAMESPACE: Kind = Kind::cluster_wide(CORE, "Namespace", "namespaces");
/// A claim on a volume.
pub const CLAIM: Kind = Kind::namespaced(CORE, "PersistentVolumeClaim", "persistentvolumeclaims");
/// A volume.
pub const VOLUME: Kind = Kind::cluster_wide(CORE, "PersistentVolume", "persistentvolumes");
/// A pod.
pub const POD: Kind = Kind::namespaced(CORE, "Pod", "pods");
/// A secret.
pub const SECRET: Kind = Kind::namespaced(CORE, "Secret", "secrets");
/// A config map.
pub const CONFIG_MAP: Kind = Kind::namespaced(CORE, "ConfigMap", "configmaps");
/// A service account.
pub const SERVICE_ACCOUNT: Kind = Kind::namespaced(CORE, "ServiceAccount", "serviceaccounts");
/// A token of a service account: who may create one, may ask for it.
pub const SERVICE_ACCOUNT_TOKEN: Kind =
    Kind::namespaced(CORE, "TokenRequest", "serviceaccounts/token");
/// A service.
pub const SERVICE: Kind = Kind::namespaced(CORE, "Service", "services");
/// A deployment.
pub const DEPLOYMENT: Kind = Kind::namespaced(APPS, "Deployment", "deployments");
/// A stateful set.
pub const STATEFUL_SET: Kind = Kind::namespaced(APPS, "StatefulSet", "statefulsets");
/// A storage class.
pub const STORAGE_CLASS: Kind = Kind::cluster_wide(STORAGE, "StorageClass", "storageclasses");
/// A volume that is attached to a node.
pub const VOLUME_ATTACHMENT: Kind =
    Kind::cluster_wide(STORAGE, "VolumeAttachment", "volumeattachments");
/// A snapshot of a volume.
pub const SNAPSHOT: Kind = Kind::namespaced(SNAPSHOTS, "VolumeSnapshot", "volumesnapshots");
/// Takes snapshots of a claim, on a trigger.
pub const SOURCE: Kind = Kind::namespaced(VOLSYNC, "ReplicationSource", "replicationsources");
/// Brings a snapshot to a cluster, for a claim to be filled from.
pub const DESTINATION: Kind =
    Kind::namespaced(VOLSYNC, "ReplicationDestination", "replicationdestinations");

/// A cluster that namespaces can run on.
pub const WORKLOAD_CLUSTER: Kind = Kind::cluster_wide(OWN, "WorkloadCluster", "workloadclusters");
/// Which namespaces go where.
pub const PLACEMENT: Kind = Kind::cluster_wide(OWN, "Placement", "placements");
/// Which cluster may use the volumes of a namespace.
pub const GRANT: Kind = Kind::cluster_wide(OWN, "Grant", "grants");
/// A person declares an owner gone.
pub const FORCE_RELEASE: Kind = Kind::cluster_wide(OWN, "ForceRelease", "forcereleases");

/// Grants by the uid of the cluster that has them or had them last, in every phase.
pub const GRANTS_BY_OWNER: Index = Index {
    name: "by-owner",
    kind: GRANT,
    values: |grant| text(&grant.data["status"]["owner"]["uid"]),
};

/// Grants by the uid of the cluster that has them now: Granted or Revoking.
pub const GRANTS_HELD_BY: Index = Index { name: "held-by", kind: GRANT, values: holder };

/// Grants by the uid of the cluster that is to have them.
pub const GRANTS_BY_TARGET: Index = Index {
    name: "by-target",
    kind: GRANT,
    values: |grant| text(&grant.data["spec"]["target"]["uid"]),
};

/// Grants by the uid of the cluster that may get them next: its target, unless they end.
pub const GRANTS_TO_COME: Index = Index {
    name: "to-come",
    kind: GRANT,
    values: |grant| match phase(grant) {
        "Deleting" => Vec::new(),
        _ => (GRANTS_BY_TARGET.values)(grant),
    },
};

/// Grants by the uid of each cluster that volumes of theirs stayed in place on, between two owners.
pub const GRANTS_IN_PLACE: Index = Index {
    name: "in-place",
    kind: GRANT,
    values: |grant| {
        if !holder(grant).is_empty() {
            return Vec::new();
        }
        let pins = grant.data["status"]["pins"].as_array().into_iter().flatten();
        let clusters = pins.flat_map(|pin| text(&pin["snapshot"]["inPlace"]["cluster"]["uid"]));
        distinct(clusters.collect())
    },
};

/// Files under [`YES`] the clusters that somebody needs empty.
pub const CLUSTERS_DRAINING: Index = Index {
    name: "draining",
    kind: WORKLOAD_CLUSTER,
    values: |cluster| {
        let drains = cluster.data["spec"]["drains"].as_array();
        yes(drains.is_some_and(|drains| !drains.is_empty()))
    },
};

/// Grants by the uid of each cluster that has them or is to have them, once: how full it is.
pub const GRANTS_COUNTED_ON: Index = Index {
    name: "counted-on",
    kind: GRANT,
    values: |grant| {
        let mut clusters = holder(grant);
        clusters.extend(text(&grant.data["spec"]["target"]["uid"]));
        distinct(clusters)
    },
};

/// Grants by the uid of each cluster that data of theirs is on.
pub const GRANTS_BY_COPY: Index = Index {
    name: "by-copy",
    kind: GRANT,
    values: |grant| {
        let copies = grant.data["status"]["copies"].as_array().into_iter().flatten();
        distinct(copies.flat_map(|copy| text(&copy["cluster"]["uid"])).collect())
    },
};

/// Grants by the uid of each cluster that they concern: owner, target, or where data is.
pub const GRANTS_BY_CLUSTER: Index = Index {
    name: "by-cluster",
    kind: GRANT,
    values: |grant| {
        let mut clusters = (GRANTS_BY_OWNER.values)(grant);
        clusters.extend((GRANTS_BY_TARGET.values)(grant));
        clusters.extend((GRANTS_BY_COPY.values)(grant));
        distinct(clusters)
    },
};

/// Grants by the uid of their namespace.
pub const GRANTS_BY_NAMESPACE: Index = Index {
    name: "by-namespace",
    kind: GRANT,
    values: |grant| text(&grant.data["spec"]["namespace"]["uid"]),
};

/// Grants by the name of their namespace, whichever of that name it is.
pub const GRANTS_BY_NAMESPACE_NAME: Index = Index {
    name: "by-namespace-name",
    kind: GRANT,
    values: |grant| text(&grant.data["spec"]["namespace"]["name"]),
};

/// Files under [`YES`] the grants whose owner is not the desired cluster: those that a change of
/// any cluster may concern. A grant at rest on its owner is not among them.
pub const GRANTS_WAITING: Index =
    Index { name: "waiting", kind: GRANT, values: |grant| yes(is_waiting(grant)) };

/// Files under [`YES`] the grants that are between two owners, or whose data is on its way.
pub const GRANTS_MOVING: Index =
    Index { name: "moving", kind: GRANT, values: |grant| yes(is_moving(grant)) };

/// Files under [`YES`] the grants whose move waits for others to end.
pub const GRANTS_DELAYED: Index = Index {
    name: "delayed",
    kind: GRANT,
    values: |grant| yes(placed(grant).is_some_and(|placed| placed["reason"] == MOVES_FULL)),
};

/// Namespaces that ask to be placed, under [`YES`].
pub const NAMESPACES_PLACED: Index = Index {
    name: "placed",
    kind: NAMESPACE,
    values: |namespace| {
        let labels = namespace.metadata.labels.as_ref();
        let placed = labels.and_then(|labels| labels.get(LABEL_PLACED));
        yes(placed.is_some_and(|value| value == PLACED_TRUE))
    },
};

/// Namespaces by the name of the grant that they have or would have. All of them: one that does not
/// ask to be placed any more may still have claims that we hold.
pub const NAMESPACES_BY_GRANT: Index = Index {
    name: "by-grant",
    kind: NAMESPACE,
    values: |namespace| {
        let (name, uid) = (&namespace.metadata.name, &namespace.metadata.uid);
        let named = name.as_deref().zip(uid.as_deref());
        named.map(|(name, uid)| grant_name(name, uid)).into_iter().collect()
    },
};

/// Namespaces by the name of the cluster that they ask for.
pub const NAMESPACES_BY_DESIRED_CLUSTER: Index = Index {
    name: "by-desired-cluster",
    kind: NAMESPACE,
    values: |namespace| {
        let annotations = namespace.metadata.annotations.as_ref();
        let desired = annotations.and_then(|annotations| annotations.get(ANNOTATION_CLUSTER));
        desired.cloned().into_iter().collect()
    },
};

/// Namespaces by the uid of each cluster whose syncer has a finalizer on them.
pub const NAMESPACES_BY_SYNCER: Index =
    Index { name: "by-syncer", kind: NAMESPACE, values: |found| holders(found) };

/// ForceReleases by the uid of the grant that they name.
pub const FORCES_BY_GRANT: Index = Index {
    name: "by-grant",
    kind: FORCE_RELEASE,
    values: |force| text(&force.data["spec"]["grant"]["uid"]),
};

/// Volumes on a cluster by the name of the grant that they are kept for.
pub const VOLUMES_BY_GRANT: Index = Index {
    name: "by-grant",
    kind: VOLUME,
    values: |volume| {
        let labels = volume.metadata.labels.as_ref();
        let grant = labels.and_then(|labels| labels.get(ANNOTATION_GRANT));
        grant.cloned().into_iter().collect()
    },
};

/// The one value of an index that files what something is true of.
pub const YES: &str = "yes";

/// The reason of the condition Placed of a grant whose move waits for others to end.
pub const MOVES_FULL: &str = "MovesFull";

fn holders(namespace: &DynamicObject) -> Vec<String> {
    syncers(namespace).map(str::to_owned).collect()
}

fn yes(is_so: bool) -> Vec<String> {
    is_so.then(|| YES.to_owned()).into_iter().collect()
}

fn text(value: &Value) -> Vec<String> {
    value.as_str().map(str::to_owned).into_iter().collect()
}

fn distinct(mut values: Vec<String>) -> Vec<String> {
    values.sort_unstable();
    values.dedup();
    values
}

fn phase(grant: &DynamicObject) -> &str {
    grant.data["status"]["phase"].as_str().unwrap_or("Unassigned")
}

fn holder(grant: &DynamicObject) -> Vec<String> {
    if !matches!(phase(grant), "Granted" | "Revoking") {
        return Vec::new();
    }
    text(&grant.data["status"]["owner"]["uid"])
}

fn placed(grant: &DynamicObject) -> Option<&Value> {
    let conditions = grant.data["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == PLACED)
}

fn is_waiting(grant: &DynamicObject) -> bool {
    let status = &grant.data["status"];
    match phase(grant) {
        "Granted" => {
            status["owner"]["uid"] != grant.data["spec"]["target"]["uid"]
                || placed(grant).is_none_or(|placed| placed["status"] != "True")
        }
        "Deleting" => false,
        _ => true,
    }
}

/// A claim that begins empty has nothing on its way, so a first placement is no move, and neither
/// is a claim that was added later and cannot be made.
fn is_moving(grant: &DynamicObject) -> bool {
    let status = &grant.data["status"];
    match phase(grant) {
        "Revoking" => status["because"] != "Deletion",
        "Released" => true,
        "Granted" => {
            let pins = status["pins"].as_array().into_iter().flatten();
            let travelling = |uid: &Value| {
                pins.clone().any(|pin| {
                    pin["claimUID"] == *uid
                        && (pin["snapshot"]["volumeSnapshot"].is_object()
                            || pin["snapshot"]["restic"].is_object())
                })
            };
            let mut claims = status["claims"].as_array().into_iter().flatten();
            claims.any(|claim| claim["fill"] != "Filled" && travelling(&claim["uid"]))
        }
        _ => false,
    }
}

/// The uids of the clusters whose syncers have a finalizer on an object.
pub(crate) fn syncers(object: &DynamicObject) -> impl Iterator<Item = &str> {
    finalizers(object).filter_map(|finalizer| finalizer.strip_prefix(SYNCER_FINALIZER_PREFIX))
}
