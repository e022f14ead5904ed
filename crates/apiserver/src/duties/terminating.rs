//! Namespaces, definitions and logical clusters that are being deleted: emptied first, then let go.

use super::purge::purge;
use crate::clusters::{Cluster, HUB_GROUP, definitions_table};
use crate::crd;
use crate::handlers::call::time_text;
use crate::handlers::own_call_for;
use crate::handlers::special::{CLEANUP, CONTENTS};
use crate::object;
use crate::resource::Resource;
use crate::server::{Server, stopped};
use crate::status::Status;
use crate::storage::{self, Owner};
use interlock_store::{Changes as _, Key, KeyRange, Store, Table};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a round waits before it looks again at what is held.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// How many are emptied at the same time.
const TOGETHER: usize = 64;

/// Where definitions are.
const DEFINITIONS: (&str, &str, &str) = ("apiextensions.k8s.io", "v1", "customresourcedefinitions");

/// Which sort of thing is being emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Namespace,
    Definition,
    LogicalCluster,
}

/// Whether a thing that is being emptied was changed since it was last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    AsItIs,
    Changed,
}

/// The things that are being emptied now, so that none is twice.
#[derive(Clone)]
struct Work {
    server: Server,
    under_way: Arc<Mutex<HashMap<Key, Seen>>>,
    places: Arc<tokio::sync::Semaphore>,
}

/// Empties what is being deleted, for as long as the server runs.
pub(super) async fn run(server: Server) {
    let work = Work::of(&server);
    let mut followers = tokio::task::JoinSet::new();
    for (sort, table) in tables(&server) {
        followers.spawn(follow(work.clone(), sort, table));
    }
    // One that was cancelled is no mistake: the runtime that it ran on is ending.
    while followers.join_next().await.is_some() {}
}

/// One round for everything that is being deleted now, one after the other.
pub(super) async fn round_of_all(server: &Server) {
    let work = Work::of(server);
    for (sort, table) in tables(server) {
        let range = KeyRange::prefix(table, "");
        let Ok(page) = server.storage().range(range, None, usize::MAX).await else { return };
        for item in &page.items {
            if !object::is_deleting(&object::decode(item)) {
                continue;
            }
            if let Err(status) = Box::pin(work.round(sort, &item.key)).await {
                tracing::warn!(key = %item.key, because = %status.message, "cannot empty it yet");
            }
        }
    }
}

fn tables(server: &Server) -> [(Sort, Table); 3] {
    [
        (Sort::Namespace, storage::table_of("", "namespaces", "-")),
        (Sort::Definition, definitions_table()),
        (Sort::LogicalCluster, server.clusters().logical_clusters_table()),
    ]
}

/// Looks at everything in a table once, and then at every change.
async fn follow(work: Work, sort: Sort, table: Table) {
    let range = KeyRange::prefix(table, "");
    loop {
        let Ok(page) = work.server.storage().range(range.clone(), None, usize::MAX).await else {
            return;
        };
        for item in &page.items {
            work.look(sort, &item.key, &object::decode(item));
        }
        let Ok(mut changes) = work.server.storage().store.watch(range.clone(), page.revision).await
        else {
            continue;
        };
        while let Ok(batch) = changes.next().await {
            for change in batch.changes {
                match &change.after {
                    Some(after) => work.look(sort, &change.key, &object::decode(after)),
                    None if sort == Sort::Definition => work.names_are_free(&change.key).await,
                    None => {}
                }
            }
        }
        if work.server.readiness().is_err() {
            return;
        }
    }
}

impl Work {
    fn of(server: &Server) -> Work {
        Work {
            under_way: Arc::default(),
            places: Arc::new(tokio::sync::Semaphore::new(TOGETHER)),
            server: server.clone(),
        }
    }

    fn look(&self, sort: Sort, key: &Key, object: &Value) {
        if !object::is_deleting(object) {
            return;
        }
        if self.under_way().insert(key.clone(), Seen::Changed).is_some() {
            return;
        }
        let (work, key) = (self.clone(), key.clone());
        tokio::spawn(async move {
            // Another one of the same name may have come, and be on its way out, before the first was done with.
            while work.is_changed(&key) {
                work.empty(sort, &key).await;
            }
        });
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<Key, Seen>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a thing must be looked at; if not, it is under way no more.
    fn is_changed(&self, key: &Key) -> bool {
        let mut under_way = self.under_way();
        let is_changed = under_way.insert(key.clone(), Seen::AsItIs) == Some(Seen::Changed);
        if !is_changed {
            under_way.remove(key);
        }
        is_changed
    }

    /// Empties one thing, however long somebody holds a part of it.
    async fn empty(&self, sort: Sort, key: &Key) {
        let mut wait = FIRST_WAIT;
        let mut stopping = self.server.stopping();
        loop {
            let place = self.places.acquire().await;
            // In a box, so that the thousands that wait for a place, or for somebody's finalizer, are small.
            let done = Box::pin(self.round(sort, key)).await;
            drop(place);
            match done {
                Ok(true) => return,
                Ok(false) => {}
                // The next start goes on.
                Err(_) if *stopping.borrow() => return,
                Err(status) => {
                    tracing::warn!(key = %key, because = %status.message, "cannot empty it yet");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stopped(&mut stopping) => return,
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// One round; true when nothing is left to do.
    async fn round(&self, sort: Sort, key: &Key) -> Result<bool, Status> {
        let Some(versioned) = self.server.storage().get(key).await? else { return Ok(true) };
        let object = object::decode(&versioned);
        let (cluster_id, _, name) = storage::parts(&key.row);
        let Some(cluster) = self.server.clusters().with_id(cluster_id) else { return Ok(true) };
        match sort {
            Sort::Namespace => self.namespace(&cluster, name, &object).await,
            Sort::Definition => self.definition(&cluster, name, &object).await,
            Sort::LogicalCluster => self.logical_cluster(&cluster, name, &object).await,
        }
    }

    async fn namespace(
        &self,
        cluster: &Arc<Cluster>,
        name: &str,
        object: &Value,
    ) -> Result<bool, Status> {
        let finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
        if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
            return Ok(true);
        }
        let held = purge(&self.server, cluster, Some(name), &self.stored(cluster, true)).await?;
        if !held.is_empty() {
            let told = [
                (("NamespaceContentRemaining", "SomeResourcesRemain"), held.what_is_left()),
                (
                    ("NamespaceFinalizersRemaining", "SomeFinalizersRemain"),
                    held.who_holds_it("namespace"),
                ),
            ];
            self.tell(cluster, ("", "v1", "namespaces"), name, &told).await?;
            return Ok(false);
        }
        let mut call = self.call(cluster, ("", "v1", "namespaces"), name);
        call.endpoint = crate::handlers::call::Endpoint::Other;
        call.subresource = "finalize".to_owned();
        let done = call
            .change(false, |live| {
                let mut namespace = live.map(|live| live.object.clone()).unwrap_or_default();
                if let Some(list) = namespace["spec"]["finalizers"].as_array_mut() {
                    list.retain(|finalizer| finalizer != "kubernetes");
                }
                Ok(namespace)
            })
            .await;
        gone(done.map(|_| ()))
    }

    async fn definition(
        &self,
        cluster: &Arc<Cluster>,
        name: &str,
        object: &Value,
    ) -> Result<bool, Status> {
        if !object::finalizers(object).any(|finalizer| finalizer == CLEANUP) {
            return Ok(true);
        }
        let resources: Vec<Arc<Resource>> = cluster
            .custom()
            .iter()
            .filter(|resource| crate::status::qualified(&resource.group, &resource.plural) == name)
            .take(1)
            .cloned()
            .collect();
        let held = purge(&self.server, cluster, None, &resources).await?;
        if !held.is_empty() {
            let told = [(
                ("Terminating", "InstanceDeletionInProgress"),
                format!("CustomResource deletion is in progress: {}", held.holders()),
            )];
            self.tell(cluster, DEFINITIONS, name, &told).await?;
            return Ok(false);
        }
        self.take_off(cluster, DEFINITIONS, name, CLEANUP).await
    }

    async fn logical_cluster(
        &self,
        root: &Arc<Cluster>,
        name: &str,
        object: &Value,
    ) -> Result<bool, Status> {
        if !object::finalizers(object).any(|finalizer| finalizer == CONTENTS) {
            return Ok(true);
        }
        let place = (HUB_GROUP, "v1alpha1", "logicalclusters");
        let id = object["status"]["id"].as_str().unwrap_or_default();
        if self.server.clusters().with_id(id).is_none() {
            self.server.clusters().look_at(name, self.server.storage()).await?;
        }
        if let Some(cluster) = self.server.clusters().with_id(id) {
            // Namespaces go with their contents, definitions with their objects, all in one sweep: nobody can
            // add to a cluster that is being deleted.
            let resources = self.stored(&cluster, false);
            let held = purge(&self.server, &cluster, None, &resources).await?;
            if !held.is_empty() {
                let told = [
                    (("ContentRemaining", "SomeResourcesRemain"), held.what_is_left()),
                    (("FinalizersRemaining", "SomeFinalizersRemain"), held.who_holds_it("cluster")),
                ];
                self.tell(root, place, name, &told).await?;
                return Ok(false);
            }
            // A write that passed its checks before the mark may have landed during the sweep. Its guards were on
            // what the sweep removed, so a second look that finds nothing is the last one.
            if held.found > 0 && purge(&self.server, &cluster, None, &resources).await?.found > 0 {
                return Ok(false);
            }
        }
        self.take_off(root, place, name, CONTENTS).await
    }

    /// A definition is gone: others may have waited for its names.
    async fn names_are_free(&self, key: &Key) {
        let (cluster_id, _, _) = storage::parts(&key.row);
        let Some(cluster) = self.server.clusters().with_id(cluster_id) else { return };
        if let Err(status) = self.grant_names(&cluster).await {
            tracing::warn!(key = %key, because = %status.message, "cannot give its names away");
        }
    }

    async fn grant_names(&self, cluster: &Arc<Cluster>) -> Result<(), Status> {
        let prefix = storage::prefix(Owner::Cluster(&cluster.id), None);
        let range = KeyRange::prefix(definitions_table(), prefix);
        let mut waiting = self.server.storage().objects(range).await?;
        waiting.retain(|definition| !crd::is_established(definition));
        if waiting.is_empty() {
            return Ok(());
        }
        for definition in waiting {
            let call = self.call(cluster, DEFINITIONS, object::name(&definition));
            // A write that changes nothing is enough: names are given on each.
            let done = call
                .change(false, |live| Ok(live.map(|live| live.object.clone()).unwrap_or_default()))
                .await;
            gone(done.map(|_| ()))?;
        }
        Ok(())
    }

    /// The resources of a cluster that are stored, once for each table.
    fn stored(&self, cluster: &Cluster, only_namespaced: bool) -> Vec<Arc<Resource>> {
        let mut tables = HashSet::new();
        let mut resources = self.server.clusters().served(cluster);
        resources.retain(|resource| {
            (resource.is_namespaced || !only_namespaced) && tables.insert(storage::table(resource))
        });
        resources
    }

    async fn take_off(
        &self,
        cluster: &Arc<Cluster>,
        place: (&str, &str, &str),
        name: &str,
        finalizer: &str,
    ) -> Result<bool, Status> {
        let done = self
            .call(cluster, place, name)
            .change(false, |live| {
                let mut object = live.map(|live| live.object.clone()).unwrap_or_default();
                object::remove_finalizer(&mut object, finalizer);
                Ok(object)
            })
            .await;
        gone(done.map(|_| ()))
    }

    /// Says in the object's status what keeps it.
    async fn tell(
        &self,
        cluster: &Arc<Cluster>,
        place: (&str, &str, &str),
        name: &str,
        told: &[((&str, &str), String)],
    ) -> Result<(), Status> {
        let mut call = self.call(cluster, place, name);
        call.endpoint = crate::handlers::call::Endpoint::Status;
        call.subresource = "status".to_owned();
        let now = time_text(self.server.now());
        let conditions: Vec<Value> = told
            .iter()
            .filter(|(_, message)| !message.is_empty())
            .map(|(what, message)| condition(*what, message, &now))
            .collect();
        let told = call
            .change(false, |live| {
                let mut object = live.map(|live| live.object.clone()).unwrap_or_default();
                for condition in &conditions {
                    set_condition(&mut object, condition);
                }
                Ok(object)
            })
            .await;
        gone(told.map(|_| ())).map(|_| ())
    }

    fn call(
        &self,
        cluster: &Arc<Cluster>,
        (group, version, plural): (&str, &str, &str),
        name: &str,
    ) -> crate::handlers::call::Call {
        let resource = self
            .server
            .clusters()
            .find(cluster, group, version, plural)
            .expect("the kinds that are emptied are always served");
        own_call_for(&self.server, cluster, resource).for_name(name, "")
    }
}

/// What is gone already needs nothing more.
fn gone(done: Result<(), Status>) -> Result<bool, Status> {
    match done {
        Ok(()) => Ok(true),
        Err(status) if status.code == 404 => Ok(true),
        Err(status) => Err(status),
    }
}

fn condition((kind, reason): (&str, &str), message: &str, now: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": now,
    })
}

/// Puts a condition in, and leaves its time alone when nothing else changed.
fn set_condition(object: &mut Value, condition: &Value) {
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let Some(list) = object["status"]["conditions"].as_array_mut() else { return };
    let Some(held) = list.iter_mut().find(|held| held["type"] == condition["type"]) else {
        list.push(condition.clone());
        return;
    };
    if held["message"] != condition["message"] || held["status"] != condition["status"] {
        *held = condition.clone();
    }
}
