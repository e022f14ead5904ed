//! Garbage collection: dependents follow their owners, in the background, in the foreground, or not at all.
//!
//! Only objects that have owners are remembered, by their owners' clusters and uids. Whether an owner is still there is always
//! read from the store, by uid: absence in a list that lags could otherwise pass for a deletion.

use crate::call::own_call_for;
use crate::clusters::Cluster;
use crate::handlers::{FOREGROUND, ORPHAN};
use crate::object;
use crate::request::DeleteOptions;
use crate::resource::Resource;
use crate::server::Server;
use crate::status::Status;
use crate::storage;
use interlock_store::{Change, Changes as _, Key, KeyRange, Store, Versioned};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait before an object that could not be handled is checked again.
const RETRY: Duration = Duration::from_secs(1);
/// How often one object is tried before it waits for its next change.
const TRIES: u32 = 10;

/// Who depends on whom.
#[derive(Default)]
struct Graph {
    /// By an owner's cluster and uid, its dependents.
    dependents: HashMap<String, HashSet<Key>>,
    /// By a dependent, its owners' clusters and uids.
    owners: HashMap<Key, Vec<String>>,
    /// By cluster and uid, the owners that wait until their dependents are gone.
    waiting: HashMap<String, Key>,
    /// The clusters and uids of owners that were seen to go, while somebody depends on them. Their kind may be gone as well,
    /// and then nobody could be asked.
    gone: HashSet<String>,
}

/// Collects garbage for as long as the server runs.
pub(super) async fn run(server: Server) {
    loop {
        let mut graph = Graph::default();
        let mut queue = VecDeque::new();
        let Ok(from) = server.storage().store.newest().await else { return };
        let Ok(mut changes) = server.storage().store.watch(KeyRange::everything(), from).await
        else {
            continue;
        };
        for table in server.clusters().tables() {
            let range = KeyRange::prefix(table, "");
            let Ok(page) = server.storage().range(range, None, usize::MAX).await else { return };
            for item in &page.items {
                graph.learn(item, &mut queue);
            }
            tokio::task::yield_now().await;
        }
        let mut tries: HashMap<Key, u32> = HashMap::new();
        let mut retry = tokio::time::interval(RETRY);
        let mut later: Vec<Key> = Vec::new();
        loop {
            while let Some(key) = queue.pop_front() {
                match (Collector { server: &server, graph: &graph }).handle(&key).await {
                    Ok(()) => {
                        tries.remove(&key);
                    }
                    Err(status) => {
                        let tried = tries.entry(key.clone()).or_default();
                        *tried += 1;
                        tracing::debug!(key = %key, because = %status.message, "cannot collect it yet");
                        if *tried < TRIES {
                            later.push(key);
                        }
                    }
                }
            }
            tokio::select! {
                batch = changes.next() => {
                    let Ok(batch) = batch else { break };
                    for change in &batch.changes {
                        graph.follow(change, &mut queue);
                    }
                }
                _ = retry.tick() => queue.extend(later.drain(..)),
            }
        }
        if server.readiness().is_err() {
            return;
        }
    }
}

/// Most objects have no owners and no such finalizers: they are distinguished without decoding them.
fn is_of_interest(version: &Versioned) -> bool {
    let bytes = version.value.bytes();
    let has = |word: &[u8]| memchr::memmem::find(bytes, word).is_some();
    has(b"\"ownerReferences\"") || has(b"\"deletionTimestamp\"")
}

impl Graph {
    /// Takes an object in, and queues it if there is something to do about it.
    fn learn(&mut self, version: &Versioned, queue: &mut VecDeque<Key>) {
        if !is_of_interest(version) {
            self.forget(&version.key, queue);
            return;
        }
        let object = object::decode(version);
        let owners: Vec<String> = object::owners(&object)
            .filter_map(|owner| owner["uid"].as_str())
            .map(|uid| placed(&version.key, uid))
            .collect();
        if self.owners.get(&version.key) != Some(&owners) {
            self.forget(&version.key, queue);
            for owner in &owners {
                self.dependents.entry(owner.clone()).or_default().insert(version.key.clone());
            }
            if !owners.is_empty() {
                self.owners.insert(version.key.clone(), owners);
            }
        }
        // What an owner waits for may wait no longer, or no longer be in its way.
        for owner in self.owners.get(&version.key).into_iter().flatten() {
            queue.extend(self.waiting.get(owner).cloned());
        }
        let waits = object::is_deleting(&object)
            && object::finalizers(&object).any(|name| name == FOREGROUND || name == ORPHAN);
        if waits || self.owners.contains_key(&version.key) {
            queue.push_back(version.key.clone());
        }
        // Dependents of an owner that waits for them must go now.
        if waits {
            let place = placed(&version.key, object::uid(&object));
            queue.extend(self.dependents.get(&place).into_iter().flatten().cloned());
            self.waiting.insert(place, version.key.clone());
        }
    }

    /// Forgets an object's owners, and queues those that waited for it.
    fn forget(&mut self, key: &Key, queue: &mut VecDeque<Key>) {
        for owner in &self.owners.remove(key).unwrap_or_default() {
            queue.extend(self.waiting.get(owner).cloned());
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                    self.gone.remove(owner);
                }
            }
        }
    }

    fn follow(&mut self, change: &Change, queue: &mut VecDeque<Key>) {
        if let Some(after) = &change.after {
            self.learn(after, queue);
            return;
        }
        let Some(before) = &change.before else { return };
        self.forget(&change.key, queue);
        let gone = object::decode(before);
        let place = placed(&change.key, object::uid(&gone));
        self.waiting.remove(&place);
        // Those that it owned may be garbage now.
        if let Some(dependents) = self.dependents.get(&place) {
            queue.extend(dependents.iter().cloned());
            self.gone.insert(place);
        }
    }
}

/// A uid in the logical cluster of a key. Owners are in the cluster of those they own: a reference to a uid of
/// another one must neither hold anything there nor change it.
fn placed(key: &Key, uid: &str) -> String {
    format!("{}/{uid}", storage::parts(&key.row).0)
}

fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// What an owner reference points to.
#[derive(Debug, PartialEq, Eq)]
enum Owned {
    /// An owner that is there.
    Solid,
    /// An owner that waits until its dependents are gone.
    Waiting,
    /// Nobody: the owner is gone, or another object has its name.
    Dangling,
}

struct Collector<'a> {
    server: &'a Server,
    graph: &'a Graph,
}

impl Collector<'_> {
    async fn handle(&self, key: &Key) -> Result<(), Status> {
        let Some(versioned) = self.server.storage().get(key).await? else { return Ok(()) };
        let object = object::decode(&versioned);
        let (cluster_id, _, _) = storage::parts(&key.row);
        let Some(cluster) = self.server.clusters().with_id(cluster_id) else { return Ok(()) };
        let Some(resource) = self.resource_of(&cluster, &object) else { return Ok(()) };
        if object::is_deleting(&object) {
            if object::finalizers(&object).any(|name| name == ORPHAN) {
                return self.orphan(&cluster, &resource, &object).await;
            }
            if object::finalizers(&object).any(|name| name == FOREGROUND) {
                return self.foreground(&cluster, &resource, &object).await;
            }
            return Ok(());
        }
        self.dependent(&cluster, &resource, &object).await
    }

    fn dependents_of(&self, cluster: &Cluster, owner: &Value) -> impl Iterator<Item = &Key> {
        let place = format!("{}/{}", cluster.id, object::uid(owner));
        self.graph.dependents.get(&place).into_iter().flatten()
    }

    fn resource_of(&self, cluster: &Cluster, object: &Value) -> Option<Arc<Resource>> {
        let api_version = object::text(object, "apiVersion");
        self.resource_named(cluster, api_version, object::text(object, "kind"))
    }

    fn resource_named(
        &self,
        cluster: &Cluster,
        api_version: &str,
        kind: &str,
    ) -> Option<Arc<Resource>> {
        let (group, version) = group_version(api_version);
        let served = self.server.clusters().served(cluster);
        let mut of_kind = served
            .into_iter()
            .filter(|resource| &*resource.group == group && &*resource.kind == kind);
        let first = of_kind.next()?;
        if &*first.version == version {
            return Some(first);
        }
        of_kind.find(|resource| &*resource.version == version).or(Some(first))
    }

    /// An object with owners: it goes when the last of them went.
    async fn dependent(
        &self,
        cluster: &Arc<Cluster>,
        resource: &Arc<Resource>,
        object: &Value,
    ) -> Result<(), Status> {
        let mut states = Vec::new();
        for owner in object::owners(object) {
            states.push(self.owner_state(cluster, object, owner).await?);
        }
        if states.is_empty() || states.iter().all(|state| *state == Owned::Solid) {
            return Ok(());
        }
        let call = own_call_for(self.server, cluster, Arc::clone(resource))
            .for_name(object::name(object), object::namespace(object));
        if states.contains(&Owned::Solid) {
            let kept: Vec<Value> = object::owners(object)
                .zip(&states)
                .filter(|(_, state)| **state == Owned::Solid)
                .map(|(owner, _)| owner.clone())
                .collect();
            return set_owners(&call, object, kept).await;
        }
        let has_dependents = self.dependents_of(cluster, object).next().is_some();
        let is_foreground = states.contains(&Owned::Waiting) && has_dependents;
        if is_foreground && self.closes_a_circle(cluster, object) {
            let unblocked = object::owners(object).map(|owner| {
                let mut owner = owner.clone();
                owner["blockOwnerDeletion"] = json!(false);
                owner
            });
            // The change brings the object here again.
            return set_owners(&call, object, unblocked.collect()).await;
        }
        let asks_to_orphan = object::finalizers(object).any(|name| name == ORPHAN);
        let policy = match (asks_to_orphan, is_foreground) {
            (true, _) => "Orphan",
            (false, true) => "Foreground",
            (false, false) => "Background",
        };
        let options = DeleteOptions {
            propagation_policy: Some(policy.to_owned()),
            uid: Some(object::uid(object).to_owned()),
            resource_version: Some(object::meta_text(object, "resourceVersion").to_owned()),
            ..DeleteOptions::default()
        };
        settled(call.delete_with(&options).await.map(|_| ()))
    }

    /// Whether an object holds up its owners while one of its own dependents waits already: then they would wait
    /// for each other for ever.
    fn closes_a_circle(&self, cluster: &Cluster, object: &Value) -> bool {
        let blocks = object::owners(object)
            .any(|owner| owner["blockOwnerDeletion"].as_bool().unwrap_or(false));
        let waiting: HashSet<&Key> = self.graph.waiting.values().collect();
        blocks && self.dependents_of(cluster, object).any(|key| waiting.contains(key))
    }

    async fn owner_state(
        &self,
        cluster: &Arc<Cluster>,
        object: &Value,
        owner: &Value,
    ) -> Result<Owned, Status> {
        let place = format!("{}/{}", cluster.id, object::text(owner, "uid"));
        if self.graph.gone.contains(&place) {
            return Ok(Owned::Dangling);
        }
        let kind = object::text(owner, "kind");
        // A kind that nobody serves may come back: then we will know.
        let Some(resource) = self.resource_named(cluster, object::text(owner, "apiVersion"), kind)
        else {
            return Err(Status::internal(format!("the owner's kind {kind} is not served")));
        };
        let namespace = if resource.is_namespaced { object::namespace(object) } else { "" };
        let row = storage::row(&cluster.id, namespace, object::text(owner, "name"));
        let key = Key::new(storage::table(&resource), row);
        let Some(versioned) = self.server.storage().get(&key).await? else {
            return Ok(Owned::Dangling);
        };
        let found = object::decode(&versioned);
        if object::uid(&found) != object::text(owner, "uid") {
            return Ok(Owned::Dangling);
        }
        // A mark that is newer than what we have followed may be newer than dependents that we do not know yet. When
        // we come to it, it brings the object here again.
        let waits = object::is_deleting(&found)
            && object::finalizers(&found).any(|name| name == FOREGROUND)
            && self.graph.waiting.contains_key(&place);
        Ok(if waits { Owned::Waiting } else { Owned::Solid })
    }

    /// An owner that waits: it goes when no dependent that blocks it is left.
    async fn foreground(
        &self,
        cluster: &Arc<Cluster>,
        resource: &Arc<Resource>,
        owner: &Value,
    ) -> Result<(), Status> {
        for key in self.dependents_of(cluster, owner) {
            let Some(versioned) = self.server.storage().get(key).await? else { continue };
            let dependent = object::decode(&versioned);
            let blocks = object::owners(&dependent).any(|reference| {
                reference["uid"] == object::uid(owner)
                    && reference["blockOwnerDeletion"].as_bool().unwrap_or(false)
            });
            if blocks {
                return Ok(());
            }
        }
        self.take_off(cluster, resource, owner, FOREGROUND).await
    }

    /// An owner whose dependents are let go: they lose their reference, then it goes.
    async fn orphan(
        &self,
        cluster: &Arc<Cluster>,
        resource: &Arc<Resource>,
        owner: &Value,
    ) -> Result<(), Status> {
        for key in self.dependents_of(cluster, owner) {
            let Some(versioned) = self.server.storage().get(key).await? else { continue };
            let dependent = object::decode(&versioned);
            let Some(of) = self.resource_of(cluster, &dependent) else { continue };
            let kept: Vec<Value> = object::owners(&dependent)
                .filter(|reference| reference["uid"] != object::uid(owner))
                .cloned()
                .collect();
            let call = own_call_for(self.server, cluster, of)
                .for_name(object::name(&dependent), object::namespace(&dependent));
            set_owners(&call, &dependent, kept).await?;
        }
        self.take_off(cluster, resource, owner, ORPHAN).await
    }

    async fn take_off(
        &self,
        cluster: &Arc<Cluster>,
        resource: &Arc<Resource>,
        object: &Value,
        finalizer: &str,
    ) -> Result<(), Status> {
        let call = own_call_for(self.server, cluster, Arc::clone(resource))
            .for_name(object::name(object), object::namespace(object));
        let uid = object::uid(object).to_owned();
        let done = call
            .change(false, |live| {
                let mut object = live.map(|live| live.object.clone()).unwrap_or_default();
                if object::uid(&object) != uid {
                    return Err(call.not_found());
                }
                object::remove_finalizer(&mut object, finalizer);
                Ok(object)
            })
            .await;
        settled(done.map(|_| ()))
    }
}

/// Writes an object's owners, if it is still the object that was read.
async fn set_owners(
    call: &crate::call::Call,
    seen: &Value,
    owners: Vec<Value>,
) -> Result<(), Status> {
    let mut object = seen.clone();
    let metadata = object::metadata_mut(&mut object);
    if owners.is_empty() {
        metadata.remove("ownerReferences");
    } else {
        metadata.insert("ownerReferences".to_owned(), json!(owners));
    }
    settled(call.change(false, |_| Ok(object.clone())).await.map(|_| ()))
}

/// What is gone, or changed since, will be read again if it must be.
fn settled(done: Result<(), Status>) -> Result<(), Status> {
    match done {
        Err(status) if status.code == 404 => Ok(()),
        other => other,
    }
}
