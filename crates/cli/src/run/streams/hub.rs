//! Streams of pods at the hub: those of placed namespaces are of the copies on the clusters that own them.

use super::OfProcesses;
use crate::run::driver::in_words;
use interlock_api::names::{downstream_namespace, grant_name};
use interlock_api::placement::{Grant, Phase, Ref};
use interlock_apiserver::Status;
use interlock_apiserver::streams::{
    Answer, Command, Connection, LogOptions, PodContainer, PodStreams, Session, Wanted,
};
use interlock_placement::syncer::marks::ANNOTATION_FROM;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{Api, Client, ResourceExt};
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// The clusters whose pods are processes of this machine, by the uid of their WorkloadCluster.
#[derive(Clone, Default)]
pub(super) struct Clusters(Arc<Mutex<HashMap<String, Cluster>>>);

/// One of them.
#[derive(Clone)]
pub(super) struct Cluster {
    pub(super) pods: Arc<OfProcesses>,
    /// The cluster itself, to read which pod is the copy.
    pub(super) client: Client,
}

impl Clusters {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Cluster>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, uid: &str, cluster: Cluster) {
        self.lock().insert(uid.to_owned(), cluster);
    }

    /// Removes a cluster, unless somebody else has taken its place.
    pub(super) fn remove(&self, uid: &str, pods: &Arc<OfProcesses>) {
        let mut clusters = self.lock();
        if clusters.get(uid).is_some_and(|cluster| Arc::ptr_eq(&cluster.pods, pods)) {
            clusters.remove(uid);
        }
    }
}

/// The pods of the hub.
#[derive(Clone)]
pub(super) struct ThroughHub {
    pub(super) hub: Client,
    pub(super) clusters: Clusters,
}

impl ThroughHub {
    /// The copy of a pod on the cluster that owns its namespace.
    async fn copy_of(&self, of: PodContainer) -> Result<(Arc<OfProcesses>, PodContainer), Status> {
        let refused = |why: String| Status::bad_request(format!("pod {:?}: {why}", of.pod));
        let namespaces: Api<Namespace> = Api::all(self.hub.clone());
        let namespace = namespaces.get(&of.namespace).await.map_err(unread)?;
        let uid = namespace.uid().unwrap_or_default();
        let grants: Api<Grant> = Api::all(self.hub.clone());
        let grant = grants.get_opt(&grant_name(&of.namespace, &uid)).await.map_err(unread)?;
        let of_this = Ref::new(of.namespace.clone(), uid.clone());
        let Some(grant) = grant.filter(|grant| grant.spec.namespace.is_same(&of_this)) else {
            let why =
                format!("namespace {:?} is not placed, and the hub runs no pods", of.namespace);
            return Err(refused(why));
        };
        let status = grant.status.unwrap_or_default();
        let is_held = matches!(status.phase, Phase::Granted | Phase::Revoking);
        let Some(owner) = status.owner.filter(|_| is_held) else {
            let why = format!("no cluster runs namespace {:?} now", of.namespace);
            return Err(refused(why));
        };
        let Some(Cluster { pods, client }) = self.clusters.lock().get(&owner.uid).cloned() else {
            let why = format!(
                "it runs on cluster {:?}, whose pods are not processes of this machine: ask there",
                owner.name
            );
            return Err(refused(why));
        };
        let there = downstream_namespace(&of.namespace, &uid);
        let copies: Api<Pod> = Api::namespaced(client, &there);
        let copy = copies.get_opt(&of.pod).await.map_err(unread)?;
        let copy = copy.filter(|copy| {
            let from = copy.annotations().get(ANNOTATION_FROM);
            from.and_then(|from| from.split('/').next()) == Some(of.uid.as_str())
        });
        let Some(copy) = copy else {
            let why = format!("it has not started yet on cluster {:?}", owner.name);
            return Err(refused(why));
        };
        let uid = copy.uid().unwrap_or_default();
        Ok((pods, PodContainer { namespace: there, uid, ..of }))
    }

    /// Asks about the copy what was asked about the pod.
    fn ask<T, F>(
        &self,
        of: PodContainer,
        question: impl FnOnce(Arc<OfProcesses>, PodContainer) -> F + Send + 'static,
    ) -> Answer<T>
    where
        F: Future<Output = Result<T, Status>> + Send,
        T: 'static,
    {
        let hub = self.clone();
        Box::pin(async move {
            let (pods, copy) = hub.copy_of(of).await?;
            question(pods, copy).await
        })
    }
}

impl PodStreams for ThroughHub {
    fn logs(&self, of: PodContainer, options: LogOptions) -> Answer<mpsc::Receiver<bytes::Bytes>> {
        self.ask(of, |pods, copy| async move { pods.logs(copy, options).await })
    }

    fn exec(&self, of: PodContainer, command: Command) -> Answer<Session> {
        self.ask(of, |pods, copy| async move { pods.exec(copy, command).await })
    }

    fn attach(&self, of: PodContainer, wanted: Wanted) -> Answer<Session> {
        self.ask(of, move |pods, copy| async move { pods.attach(copy, wanted).await })
    }

    fn port_forward(&self, of: PodContainer, port: u16) -> Answer<Box<dyn Connection>> {
        self.ask(of, move |pods, copy| async move { pods.port_forward(copy, port).await })
    }
}

fn unread(error: kube::Error) -> Status {
    Status::internal(in_words(&error))
}
