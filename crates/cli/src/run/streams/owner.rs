//! Where a pod at the hub runs: on the cluster that owns its namespace, in the namespace that the syncer made there.
//!
//! Clients of the hub have rights there and nowhere else, so a request goes on only to the pod that was made from the
//! very pod which they named: the grant names the owner, its namespace there names the grant and the epoch, and the
//! pod there names the pod at the hub. All of it is read live. Nothing is read again afterwards: a command ends with
//! the process that it was started beside, and no owner lets a namespace go before that process has ended.

use super::internal;
use crate::run::access::{HUB, Who};
use interlock_api::names::{
    ANNOTATION_EPOCH, ANNOTATION_GRANT, LABEL_PLACED, PLACED_TRUE, downstream_namespace, grant_name,
};
use interlock_api::placement::{Connection, Grant, Phase, Ref, RevokedBecause, WorkloadCluster};
use interlock_apiserver::streams::{Answer, PodPlace, PodPlaces, Registration};
use interlock_apiserver::{Server, Status};
use interlock_kernel::metadata::{annotation, is_deleting, label};
use interlock_placement::syncer::marks::{from_uid, is_ours};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::Arc;

/// Serves the logs, commands and ports of pods at the hub where they run, until this is dropped.
pub(crate) fn serve_at_hub(server: &Server) -> Registration {
    server.register_pod_places(HUB, Arc::new(AtOwners(server.clone())))
}

/// Knows where the pods at the hub run. It only reads.
struct AtOwners(Server);

impl PodPlaces for AtOwners {
    fn place(&self, pod: Value) -> Answer<PodPlace> {
        let server = self.0.clone();
        Box::pin(async move { find(&server, pod).await })
    }
}

async fn find(server: &Server, pod: Value) -> Result<PodPlace, Status> {
    let asked = Asked::of(pod)?;
    let hub = Who::Owner.client(server, HUB);
    let namespace = read::<DynamicObject>(all::<Namespace>(&hub), &asked.namespace).await?;
    let Some(namespace) = namespace else {
        return Err(asked.refused(format!("namespace {} is gone", asked.namespace)));
    };
    let uid = namespace.metadata.uid.as_deref().unwrap_or_default();
    let grants: Api<Grant> = Api::all(hub.clone());
    let grant = read(grants, &grant_name(&asked.namespace, uid)).await?;
    let owned = owned(&asked, &namespace, grant.as_ref())?;
    let clusters: Api<WorkloadCluster> = Api::all(hub);
    let cluster = read(clusters, &owned.owner.name).await?;
    let cluster = logical_cluster(&asked, &owned, cluster.as_ref())?;
    let there = Who::Owner.client(server, &cluster);
    let pods =
        Api::namespaced_with(there.clone(), &owned.namespace, &ApiResource::erase::<Pod>(&()));
    let here = Here {
        namespace: read(all::<Namespace>(&there), &owned.namespace).await?,
        pod: read(pods, &asked.pod).await?,
    };
    let uid = made_from(&asked, &owned, &here)?;
    Ok(PodPlace { cluster, namespace: owned.namespace, uid })
}

fn all<K: Resource<DynamicType = ()>>(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<K>(&()))
}

async fn read<K>(api: Api<K>, name: &str) -> Result<Option<K>, Status>
where
    K: Clone + DeserializeOwned + Debug,
{
    api.get_opt(name).await.map_err(internal)
}

/// The pod at the hub that a client named.
struct Asked {
    namespace: String,
    pod: String,
    uid: String,
    /// Whether it has ended.
    is_over: bool,
}

impl Asked {
    fn of(pod: Value) -> Result<Asked, Status> {
        let pod: DynamicObject = serde_json::from_value(pod).map_err(internal)?;
        let phase = pod.data["status"]["phase"].as_str().unwrap_or_default();
        Ok(Asked {
            is_over: matches!(phase, "Succeeded" | "Failed"),
            namespace: pod.metadata.namespace.unwrap_or_default(),
            pod: pod.metadata.name.unwrap_or_default(),
            uid: pod.metadata.uid.unwrap_or_default(),
        })
    }

    /// That the pod cannot be reached, and why: as upstream, the state of a pod is no error of the server.
    fn refused(&self, why: String) -> Status {
        Status::bad_request(format!("pod {} cannot be reached: {why}", self.pod))
    }
}

/// Who owns the namespace of a pod.
#[derive(Debug)]
struct Owned {
    owner: Ref,
    /// Of the grant.
    uid: String,
    epoch: i64,
    /// Its name there, which is also that of the grant.
    namespace: String,
}

/// The owner of the namespace, if that may run it now.
fn owned(asked: &Asked, namespace: &DynamicObject, grant: Option<&Grant>) -> Result<Owned, Status> {
    let name = &asked.namespace;
    let uid = namespace.metadata.uid.as_deref().unwrap_or_default();
    // The name of a grant has only the beginning of a uid in it.
    let grant = grant.filter(|grant| grant.spec.namespace.uid == uid);
    let Some(grant) = grant else {
        return Err(asked.refused(match label(namespace, LABEL_PLACED) == Some(PLACED_TRUE) {
            true => format!("namespace {name} has no grant yet: see `interlock status {name}`"),
            false => format!(
                "namespace {name} is not placed, and the hub runs no pods. To place it: kubectl label \
                 namespace {name} {LABEL_PLACED}={PLACED_TRUE}"
            ),
        }));
    };
    let status = grant.status_or_default();
    let of = status.owner.as_ref().map_or("its owner", |owner| owner.name.as_str());
    let why = match status.phase {
        Phase::Granted => None,
        Phase::Unassigned => {
            Some(format!("namespace {name} has no owner yet: see `interlock explain {name}`"))
        }
        Phase::Revoking if status.because == Some(RevokedBecause::Deletion) => {
            Some(format!("namespace {name} is being deleted"))
        }
        Phase::Revoking => Some(format!(
            "namespace {name} is moving: {of} stops its pods and hands it over. Until they have stopped, \
             ask {of} itself, with --namespace {}; `interlock status {name} --watch` shows when the \
             namespace runs again",
            downstream_namespace(name, uid)
        )),
        Phase::Released => Some(format!(
            "namespace {name} is moving: {of} has released it, and its next owner starts the pods. \
             `interlock status {name} --watch` shows when the namespace runs again"
        )),
        Phase::Fenced => Some(format!(
            "namespace {name} is moving: {of} was declared gone, and its next owner starts the pods. \
             `interlock status {name} --watch` shows when the namespace runs again"
        )),
        Phase::Deleting => Some(format!("namespace {name} is being deleted")),
    };
    match (why, status.owner) {
        (Some(why), _) => Err(asked.refused(why)),
        (None, Some(owner)) => Ok(Owned {
            owner,
            uid: grant.metadata.uid.clone().unwrap_or_default(),
            epoch: status.epoch,
            namespace: downstream_namespace(name, uid),
        }),
        (None, None) => {
            let why = format!("namespace {name} has no owner: see `interlock explain {name}`");
            Err(asked.refused(why))
        }
    }
}

/// The logical cluster of this server that the owner is.
fn logical_cluster(
    asked: &Asked,
    owned: &Owned,
    cluster: Option<&WorkloadCluster>,
) -> Result<String, Status> {
    let Owned { owner, namespace, .. } = owned;
    let uid = |cluster: &&WorkloadCluster| cluster.metadata.uid.as_ref() == Some(&owner.uid);
    let Some(cluster) = cluster.filter(uid) else {
        return Err(asked.refused(format!(
            "it runs on cluster {owner}, whose WorkloadCluster is gone: ask that cluster itself, with \
             --namespace {namespace}"
        )));
    };
    match &cluster.spec.connection {
        Connection::LogicalCluster(name) if name == HUB => Err(asked.refused(format!(
            "cluster {owner} is the hub itself, which runs no pods: WorkloadCluster {owner} must name \
             another logical cluster"
        ))),
        Connection::LogicalCluster(name) => Ok(name.clone()),
        Connection::KubeconfigSecret(_) | Connection::InCluster {} => {
            Err(asked.refused(format!(
                "it runs on cluster {owner}, outside of this server, which has no credentials of yours \
                 for it: ask that cluster itself, with a kubeconfig of it and --namespace {namespace}"
            )))
        }
    }
}

/// What the owner has of the namespace and of the pod.
struct Here {
    namespace: Option<DynamicObject>,
    pod: Option<DynamicObject>,
}

/// The uid of the pod there, if it was made from the one that was asked for.
fn made_from(asked: &Asked, owned: &Owned, here: &Here) -> Result<String, Status> {
    let Owned { owner, uid, epoch, namespace } = owned;
    let is_of_epoch = |there: &&DynamicObject| {
        let arrived = annotation(there, ANNOTATION_EPOCH).and_then(|text| text.parse::<i64>().ok());
        annotation(there, ANNOTATION_GRANT) == Some(uid.as_str())
            && arrived == Some(*epoch)
            && !is_deleting(there)
    };
    let name = &asked.namespace;
    if here.namespace.as_ref().filter(is_of_epoch).is_none() {
        return Err(asked.refused(format!(
            "namespace {name} has not arrived on cluster {owner} yet: see `interlock status {name}`"
        )));
    }
    match &here.pod {
        Some(pod) if is_ours(pod, namespace) && from_uid(pod) == Some(asked.uid.as_str()) => {
            Ok(pod.metadata.uid.clone().unwrap_or_default())
        }
        Some(_) => Err(asked.refused(format!(
            "pod {} in namespace {namespace} of cluster {owner} was not made from it: see `interlock \
             status {name}`",
            asked.pod
        ))),
        None if asked.is_over => Err(asked.refused(format!(
            "it has ended, and is not on cluster {owner}: a pod that has ended stays behind when its \
             namespace moves"
        ))),
        None => Err(asked.refused(format!(
            "it has not started on cluster {owner} yet: see `interlock status {name}`"
        ))),
    }
}

#[cfg(test)]
mod tests;
