//! Namespaces, definitions and logical clusters that are being deleted: emptied first, then let go.

use super::purge::purge;
use crate::call::{Live, own_call_for, time_text};
use crate::clusters::{Cluster, HUB_GROUP, definitions_table};
use crate::crd;
use crate::handlers::special::{CLEANUP, CONTENTS};
use crate::object;
use crate::resource::Resource;
use crate::server::{Server, stopped};
use crate::status::Status;
use crate::storage::{self, Owner};
use interlock_store::{Changes as _, Guard, Key, KeyRange, Store, Table};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a round waits before it checks again what is held.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// How many are emptied at the same time.
const TOGETHER: usize = 64;

/// A resource by the names in its path.
#[derive(Debug, Clone, Copy)]
struct Served {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
}

const NAMESPACES: Served = Served { group: "", version: "v1", plural: "namespaces" };
const DEFINITIONS: Served =
    Served { group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions" };
const LOGICAL_CLUSTERS: Served =
    Served { group: HUB_GROUP, version: "v1alpha1", plural: "logicalclusters" };

/// Why something that is being deleted is still there, as a condition says it.
struct Remaining {
    kind: &'static str,
    reason: &'static str,
    /// Empty if it is not so.
    message: String,
}

/// Which sort of thing is being emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Namespace,
    Definition,
    LogicalCluster,
}

/// Whether a thing that is being emptied was changed since it was last checked.
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

    /// Whether a thing must be checked; if not, it is under way no more.
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
        // The one that was being deleted may be gone, and another one of its name be there, alive.
        if !object::is_deleting(&object) {
            return Ok(true);
        }
        let (cluster_id, _, name) = storage::parts(&key.row);
        let Some(cluster) = self.server.clusters().with_id(cluster_id) else { return Ok(true) };
        let seen =
            Doomed { name, object: &object, guard: Guard::At(key.clone(), versioned.modified) };
        match sort {
            Sort::Namespace => self.namespace(&cluster, &seen).await,
            Sort::Definition => self.definition(&cluster, &seen).await,
            Sort::LogicalCluster => self.logical_cluster(&cluster, &seen).await,
        }
    }

    async fn namespace(&self, cluster: &Arc<Cluster>, seen: &Doomed<'_>) -> Result<bool, Status> {
        let Doomed { name, object, guard } = seen;
        let finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
        if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
            return Ok(true);
        }
        let resources = self.stored(cluster, true);
        let Some(held) = purge(&self.server, cluster, Some(name), &resources, guard).await? else {
            return Ok(false);
        };
        if !held.is_empty() {
            let told = [
                Remaining {
                    kind: "NamespaceContentRemaining",
                    reason: "SomeResourcesRemain",
                    message: held.what_is_left(),
                },
                Remaining {
                    kind: "NamespaceFinalizersRemaining",
                    reason: "SomeFinalizersRemain",
                    message: held.who_holds_it("namespace"),
                },
            ];
            self.tell(cluster, NAMESPACES, seen, &told).await?;
            return Ok(false);
        }
        let mut call = self.call(cluster, NAMESPACES, name);
        call.endpoint = crate::call::Endpoint::Other;
        call.subresource = "finalize".to_owned();
        let done = call
            .change(false, |live| {
                let mut namespace = seen.still(live)?;
                if let Some(list) = namespace["spec"]["finalizers"].as_array_mut() {
                    list.retain(|finalizer| finalizer != "kubernetes");
                }
                Ok(namespace)
            })
            .await;
        gone(done.map(|_| ()))
    }

    async fn definition(&self, cluster: &Arc<Cluster>, seen: &Doomed<'_>) -> Result<bool, Status> {
        let Doomed { name, object, guard } = seen;
        if !object::finalizers(object).any(|finalizer| finalizer == CLEANUP) {
            return Ok(true);
        }
        let resources: Vec<Arc<Resource>> = cluster
            .custom()
            .iter()
            .filter(|resource| crate::status::qualified(&resource.group, &resource.plural) == *name)
            .take(1)
            .cloned()
            .collect();
        let Some(held) = purge(&self.server, cluster, None, &resources, guard).await? else {
            return Ok(false);
        };
        if !held.is_empty() {
            let told = [Remaining {
                kind: "Terminating",
                reason: "InstanceDeletionInProgress",
                message: format!("CustomResource deletion is in progress: {}", held.holders()),
            }];
            self.tell(cluster, DEFINITIONS, seen, &told).await?;
            return Ok(false);
        }
        self.take_off(cluster, DEFINITIONS, seen, CLEANUP).await
    }

    async fn logical_cluster(
        &self,
        root: &Arc<Cluster>,
        seen: &Doomed<'_>,
    ) -> Result<bool, Status> {
        let Doomed { name, object, guard } = seen;
        if !object::finalizers(object).any(|finalizer| finalizer == CONTENTS) {
            return Ok(true);
        }
        let id = object["status"]["id"].as_str().unwrap_or_default();
        if self.server.clusters().with_id(id).is_none() {
            self.server.clusters().look_at(name, self.server.storage()).await?;
        }
        if let Some(cluster) = self.server.clusters().with_id(id) {
            // Namespaces go with their contents, definitions with their objects, all in one sweep: nobody can
            // add to a cluster that is being deleted.
            let resources = self.stored(&cluster, false);
            let sweep = || purge(&self.server, &cluster, None, &resources, guard);
            let Some(held) = sweep().await? else { return Ok(false) };
            if !held.is_empty() {
                let told = [
                    Remaining {
                        kind: "ContentRemaining",
                        reason: "SomeResourcesRemain",
                        message: held.what_is_left(),
                    },
                    Remaining {
                        kind: "FinalizersRemaining",
                        reason: "SomeFinalizersRemain",
                        message: held.who_holds_it("cluster"),
                    },
                ];
                self.tell(root, LOGICAL_CLUSTERS, seen, &told).await?;
                return Ok(false);
            }
            // A write that passed its checks before the mark may have landed during the sweep. Its guards were on
            // what the sweep removed, so a second look that finds nothing is the last one.
            if held.found > 0 && sweep().await?.is_none_or(|left| left.found > 0) {
                return Ok(false);
            }
        }
        self.take_off(root, LOGICAL_CLUSTERS, seen, CONTENTS).await
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
        of: Served,
        seen: &Doomed<'_>,
        finalizer: &str,
    ) -> Result<bool, Status> {
        let done = self
            .call(cluster, of, seen.name)
            .change(false, |live| {
                let mut object = seen.still(live)?;
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
        of: Served,
        seen: &Doomed<'_>,
        told: &[Remaining],
    ) -> Result<(), Status> {
        let mut call = self.call(cluster, of, seen.name);
        call.endpoint = crate::call::Endpoint::Status;
        call.subresource = "status".to_owned();
        let now = time_text(self.server.now());
        let conditions: Vec<Value> = told
            .iter()
            .filter(|remaining| !remaining.message.is_empty())
            .map(|remaining| condition(remaining, &now))
            .collect();
        let told = call
            .change(false, |live| {
                let mut object = seen.still(live)?;
                for condition in &conditions {
                    set_condition(&mut object, condition);
                }
                Ok(object)
            })
            .await;
        gone(told.map(|_| ())).map(|_| ())
    }

    fn call(&self, cluster: &Arc<Cluster>, of: Served, name: &str) -> crate::call::Call {
        let resource = self
            .server
            .clusters()
            .find(cluster, of.group, of.version, of.plural)
            .expect("the kinds that are emptied are always served");
        own_call_for(&self.server, cluster, resource).for_name(name, "")
    }
}

/// Something that is being deleted, as it was when a round began.
struct Doomed<'a> {
    name: &'a str,
    object: &'a Value,
    /// Fails as soon as it was changed, or another one of its name is there.
    guard: Guard,
}

impl Doomed<'_> {
    /// What is there now, if it is still the same one.
    fn still(&self, live: Option<&Live>) -> Result<Value, Status> {
        match live {
            Some(live) if object::uid(&live.object) == object::uid(self.object) => {
                Ok(live.object.clone())
            }
            _ => Err(Status::not_found("", "", self.name)),
        }
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

fn condition(remaining: &Remaining, now: &str) -> Value {
    let Remaining { kind, reason, message } = remaining;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::own_call;
    use crate::request::DeleteOptions;
    use crate::server::Config;

    const KINDS: [(Sort, Served); 3] = [
        (Sort::Namespace, NAMESPACES),
        (Sort::Definition, DEFINITIONS),
        (Sort::LogicalCluster, LOGICAL_CLUSTERS),
    ];

    async fn work() -> Work {
        let config = Config { is_background_on_demand: true, ..Config::default() };
        Work::of(&Server::start(config).await.expect("a server in memory"))
    }

    impl Work {
        async fn make(&self, cluster: &str, of: Served, namespace: &str, object: Value) {
            let cluster = self.server.clusters().named(cluster).expect("the cluster");
            let call = own_call(&self.server, &cluster, of.group, of.version, of.plural)
                .for_name(object::name(&object), namespace);
            let done = call.change(true, |_| call.take(object.clone(), &[], 400)).await;
            done.expect("it can be made");
        }

        async fn delete(&self, of: Served, name: &str) {
            let root = self.server.clusters().root();
            let call =
                own_call(&self.server, &root, of.group, of.version, of.plural).for_name(name, "");
            call.delete_with(&DeleteOptions::default()).await.expect("it can be deleted");
        }

        /// One more round for what was reported as being deleted.
        async fn late_round(&self, sort: Sort, name: &str) -> bool {
            let tables = tables(&self.server);
            let table = tables.iter().find(|(it, _)| *it == sort).expect("each sort has one");
            let key = Key::new(table.1.clone(), storage::row("root", "", name));
            self.round(sort, &key).await.expect("a round")
        }

        async fn count(&self, table: Table) -> usize {
            let range = KeyRange::prefix(table, "");
            let page = self.server.storage().range(range, None, usize::MAX).await;
            page.expect("it can be read").items.len()
        }
    }

    fn named(name: &str) -> Value {
        json!({"metadata": {"name": name}})
    }

    fn definition() -> Value {
        let versions = json!([{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}]);
        let names = json!({"kind": "Thing", "plural": "things", "singular": "thing"});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}})
    }

    /// A change of the old one may be reported when the old one is gone and another one of its name lives.
    #[tokio::test]
    async fn what_is_made_again_is_not_emptied_for_the_one_before() {
        let work = work().await;
        let [namespaces, definitions, clusters] = KINDS;
        work.make("root", namespaces.1, "", named("shop")).await;
        work.make(
            "root",
            Served { group: "", version: "v1", plural: "configmaps" },
            "shop",
            named("mine"),
        )
        .await;
        work.make("root", definitions.1, "", definition()).await;
        work.make(
            "root",
            Served { group: "example.com", version: "v1", plural: "things" },
            "shop",
            json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "mine"}}),
        )
        .await;
        work.make("root", clusters.1, "", named("east")).await;
        work.make("east", namespaces.1, "", named("shop")).await;
        let everything = async || {
            let things = storage::table_of("example.com", "things", "root");
            let tables = ["namespaces", "configmaps", "serviceaccounts"]
                .map(|plural| storage::table_of("", plural, "-"));
            let mut found = vec![work.count(things).await];
            for table in tables {
                found.push(work.count(table).await);
            }
            found
        };
        let before = everything().await;
        for ((sort, _), name) in KINDS.into_iter().zip(["shop", "things.example.com", "east"]) {
            assert!(work.late_round(sort, name).await, "there is nothing to do for {name}");
            assert_eq!(everything().await, before, "{name} keeps what it has");
        }
        for ((sort, of), name) in
            KINDS.into_iter().zip(["shop", "things.example.com", "east"]).rev()
        {
            work.delete(of, name).await;
            while !work.late_round(sort, name).await {}
        }
        let after = everything().await;
        assert_eq!(after[0], 0);
        assert!(
            after.iter().zip(&before).all(|(after, before)| after < before),
            "{after:?} of {before:?}"
        );
    }
}
