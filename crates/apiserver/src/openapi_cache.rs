//! OpenAPI documents, made when they are first asked for and kept while they are true.
//!
//! A group and version that a cluster added nothing to has one document for all clusters: an empty cluster
//! costs nothing here.

use crate::clusters::{Cluster, Clusters};
use crate::discovery;
use crate::object;
use crate::openapi;
use crate::resource::Resource;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many documents that belong to single clusters are kept.
const KEPT: usize = 256;

/// Whose document of which group and version; nobody's is everybody's.
#[derive(PartialEq, Eq, Hash)]
struct Place {
    cluster: Option<Arc<str>>,
    group: Arc<str>,
    version: Arc<str>,
}

/// A document as it is sent.
#[derive(Clone)]
pub(crate) struct Document {
    /// Its JSON.
    pub(crate) json: Bytes,
    /// What changes when it changes.
    pub(crate) hash: Arc<str>,
}

/// The documents that were asked for.
#[derive(Default)]
pub(crate) struct OpenApiCache(Mutex<HashMap<Place, Document>>);

impl OpenApiCache {
    /// The index of a cluster.
    pub(crate) fn index(&self, clusters: &Clusters, cluster: &Cluster) -> Document {
        let served = clusters.served(cluster);
        let versions = discovery::group_versions(&served);
        let hashes: Vec<Arc<str>> = versions
            .iter()
            .map(|(group, version)| self.make(cluster, &served, group, version).hash)
            .collect();
        let entries = versions
            .iter()
            .zip(&hashes)
            .map(|((group, version), hash)| (&**group, &**version, &**hash));
        render(&openapi::index(entries))
    }

    /// The document of a group and version in a cluster, if it is served there.
    pub(crate) fn document(
        &self,
        clusters: &Clusters,
        cluster: &Cluster,
        group: &str,
        version: &str,
    ) -> Option<Document> {
        let served = clusters.served(cluster);
        let is_served = served
            .iter()
            .any(|resource| &*resource.group == group && &*resource.version == version);
        is_served.then(|| self.make(cluster, &served, group, version))
    }

    fn make(
        &self,
        cluster: &Cluster,
        served: &[Arc<Resource>],
        group: &str,
        version: &str,
    ) -> Document {
        let is_own = cluster.custom().iter().any(|resource| &*resource.group == group)
            || cluster.is_root() && group == crate::clusters::HUB_GROUP;
        let place = Place {
            cluster: is_own.then(|| Arc::clone(&cluster.id)),
            group: Arc::from(group),
            version: Arc::from(version),
        };
        if let Some(held) = self.lock().get(&place) {
            return held.clone();
        }
        let document = render(&openapi::document(served, group, version));
        let mut held = self.lock();
        if is_own && held.keys().filter(|place| place.cluster.is_some()).count() >= KEPT {
            held.retain(|place, _| place.cluster.is_none());
        }
        held.insert(place, document.clone());
        document
    }

    /// Forgets what was made for a cluster: its kinds changed.
    pub(crate) fn forget(&self, cluster_id: &str) {
        self.lock().retain(|place, _| place.cluster.as_deref() != Some(cluster_id));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Place, Document>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn render(document: &serde_json::Value) -> Document {
    let mut json = Vec::new();
    object::write_value(&mut json, document);
    Document { json: Bytes::from(json), hash: Arc::from(openapi::hash(document)) }
}
