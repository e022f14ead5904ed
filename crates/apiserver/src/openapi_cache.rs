//! OpenAPI documents, made when they are first asked for and kept while they are true.
//!
//! A group and version that a cluster added nothing to has one document for all clusters: an empty cluster
//! costs nothing here.

use crate::clusters::{Cluster, Clusters};
use crate::discovery;
use crate::object;
use crate::openapi;
use crate::openapi::second::{self, Fragment};
use crate::resource::Resource;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many documents that belong to single clusters are kept.
const KEPT: usize = 256;
/// How many whole documents of v2 are kept: each is megabytes.
const WHOLE_KEPT: usize = 4;

/// Whose document of which group and version; nobody's is everybody's.
#[derive(PartialEq, Eq, Hash)]
struct DocumentKey {
    cluster: Option<Arc<str>>,
    group: Arc<str>,
    version: Arc<str>,
}

/// A document as it is sent.
#[derive(Clone)]
pub(crate) struct Document {
    /// Its JSON, or its protobuf form.
    pub(crate) bytes: Bytes,
    /// What changes when it changes.
    pub(crate) hash: Arc<str>,
}

/// The documents that were asked for.
#[derive(Default)]
pub(crate) struct OpenApiCache {
    documents: Mutex<HashMap<DocumentKey, Document>>,
    /// What each of them adds to the document of v2, which is put together for each request: a whole one for each
    /// cluster would be megabytes.
    fragments: Mutex<HashMap<DocumentKey, Arc<Fragment>>>,
    /// The last documents of v2 as JSON, of a few clusters, with the index that they were made from: clients that wait
    /// for a kind to appear ask for it again and again.
    whole: Mutex<Vec<Whole>>,
}

/// A document of v2, and what it was made from.
struct Whole {
    cluster: Arc<str>,
    index: Arc<str>,
    document: Document,
}

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

    /// The v2 document of a cluster, in the protobuf form.
    pub(crate) fn second_protobuf(&self, clusters: &Clusters, cluster: &Cluster) -> Document {
        let served = clusters.served(cluster);
        let fragments: Vec<Arc<Fragment>> = discovery::group_versions(&served)
            .iter()
            .map(|(group, version)| {
                kept(&self.fragments, key(cluster, group, version), || {
                    Arc::new(second::fragment(&openapi::document(&served, group, version)))
                })
            })
            .collect();
        let bytes = second::assemble(fragments.iter().map(|fragment| &**fragment));
        Document { bytes: Bytes::from(bytes), hash: self.index(clusters, cluster).hash }
    }

    /// The v2 document of a cluster as JSON.
    pub(crate) fn second_json(&self, clusters: &Clusters, cluster: &Cluster) -> Document {
        let index = self.index(clusters, cluster).hash;
        let lock = || self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |whole: &&Whole| whole.cluster == cluster.id && whole.index == index;
        if let Some(whole) = lock().iter().find(is_it) {
            return whole.document.clone();
        }
        let document = Self::make_second_json(clusters, cluster);
        let mut kept = lock();
        kept.retain(|whole| whole.cluster != cluster.id);
        if kept.len() >= WHOLE_KEPT {
            kept.remove(0);
        }
        let cluster = Arc::clone(&cluster.id);
        kept.push(Whole { cluster, index, document: document.clone() });
        document
    }

    fn make_second_json(clusters: &Clusters, cluster: &Cluster) -> Document {
        let served = clusters.served(cluster);
        let documents: Vec<serde_json::Value> = discovery::group_versions(&served)
            .iter()
            .map(|(group, version)| openapi::document(&served, group, version))
            .collect();
        render(&second::json(&documents))
    }

    fn make(
        &self,
        cluster: &Cluster,
        served: &[Arc<Resource>],
        group: &str,
        version: &str,
    ) -> Document {
        kept(&self.documents, key(cluster, group, version), || {
            render(&openapi::document(served, group, version))
        })
    }

    /// Forgets what was made for a cluster: its kinds changed.
    pub(crate) fn forget(&self, cluster_id: &str) {
        lock(&self.documents).retain(|key, _| key.cluster.as_deref() != Some(cluster_id));
        lock(&self.fragments).retain(|key, _| key.cluster.as_deref() != Some(cluster_id));
    }
}

/// A group and version that a cluster added something to is its own.
fn key(cluster: &Cluster, group: &str, version: &str) -> DocumentKey {
    let is_own = cluster.custom().iter().any(|resource| &*resource.group == group)
        || cluster.is_root() && group == crate::clusters::HUB_GROUP;
    DocumentKey {
        cluster: is_own.then(|| Arc::clone(&cluster.id)),
        group: Arc::from(group),
        version: Arc::from(version),
    }
}

/// What is held under a key, or what is made for it now.
fn kept<Made: Clone>(
    held: &Mutex<HashMap<DocumentKey, Made>>,
    key: DocumentKey,
    make: impl FnOnce() -> Made,
) -> Made {
    if let Some(found) = lock(held).get(&key) {
        return found.clone();
    }
    let made = make();
    let mut held = lock(held);
    let is_own = key.cluster.is_some();
    if is_own && held.keys().filter(|key| key.cluster.is_some()).count() >= KEPT {
        held.retain(|key, _| key.cluster.is_none());
    }
    held.insert(key, made.clone());
    made
}

fn lock<Made>(
    held: &Mutex<HashMap<DocumentKey, Made>>,
) -> MutexGuard<'_, HashMap<DocumentKey, Made>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

fn render(document: &serde_json::Value) -> Document {
    let mut json = Vec::new();
    object::write_value(&mut json, document);
    Document { bytes: Bytes::from(json), hash: Arc::from(openapi::hash(document)) }
}
