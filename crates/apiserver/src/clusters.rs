//! Logical clusters: their names and ids, the kinds each serves, and the rights each gives.
//!
//! An empty cluster costs a few map entries: built-in kinds and the hub's are shared by all, and what a
//! cluster adds of its own (custom kinds, roles) is read from the store when it is first asked for.

use crate::access::RoleSet;
use crate::admission_registration::{Policies, Webhooks};
use crate::crd;
use crate::kinds;
use crate::limits::UnderWay;
use crate::request::{ClusterName, ResourceRequest};
use crate::resource::{HUB_IDENTITY, Resource};
use crate::schema::Schema;
use crate::status::Status;
use crate::storage::{self, Owner, Storage};
use crate::stored_roles;
use interlock_store::{Key, KeyRange, Table};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

/// The id and the name of the hub's own cluster. No other id can be the same: theirs have a dot.
pub(crate) const ROOT: &str = "root";

/// Our API group.
pub(crate) const HUB_GROUP: &str = "interlock.dev";

/// One logical cluster.
pub(crate) struct Cluster {
    /// Never used again once the cluster is gone; in every row of the store. It begins with the name: a watch
    /// of all clusters also tells of one that is not known here yet, or not any more.
    pub(crate) id: Arc<str>,
    /// What people call it; in paths.
    pub(crate) name: Arc<str>,
    is_terminating: AtomicBool,
    /// When it came into being, in seconds since 1970; 0 while nobody knows.
    born_seconds: AtomicI64,
    custom: RwLock<Arc<Vec<Arc<Resource>>>>,
    /// Held while the custom kinds are read, so that an older reading never replaces a newer one.
    reading: tokio::sync::Mutex<()>,
    roles: Mutex<Roles>,
    /// The admission policies.
    pub(crate) policies: Policies,
    /// The admission webhooks.
    pub(crate) webhooks: Webhooks,
    /// How many bytes it may store; 0 if its object says nothing.
    stored_bytes_limit: AtomicU64,
    /// Writes that are under way.
    pub(crate) under_way: UnderWay,
    /// Held while roles are compiled: one does it, the others wait for it.
    compiling: tokio::sync::Mutex<()>,
}

/// The roles as they were last read, and how often they changed since the start.
#[derive(Default)]
struct Roles {
    compiled: Option<Arc<RoleSet>>,
    changes: u64,
}

/// All logical clusters of the process.
pub(crate) struct Clusters {
    by_name: RwLock<HashMap<Arc<str>, Arc<Cluster>>>,
    by_id: RwLock<HashMap<Arc<str>, Arc<Cluster>>>,
    hub: Hub,
    /// Held while a cluster is read, so that an older read never replaces a newer one.
    looking: tokio::sync::Mutex<()>,
    /// Counts clusters that came and went.
    changes: tokio::sync::watch::Sender<u64>,
}

/// The kinds that the hub publishes.
#[derive(Default)]
pub(crate) struct Hub {
    /// In every cluster, without a copy.
    pub(crate) everywhere: Vec<Arc<Resource>>,
    /// In the root cluster only.
    pub(crate) root_only: Vec<Arc<Resource>>,
    /// The definitions of those in every cluster, as they may be applied again unchanged.
    pub(crate) definitions: Vec<Value>,
}

impl Hub {
    /// Compiles the definitions that the hub publishes.
    pub(crate) fn new(definitions: Vec<Value>) -> Result<Hub, Status> {
        let compile = |definition: &Value| {
            let mut definition = definition.clone();
            crd::defaults(&mut definition);
            crd::read(&definition, HUB_IDENTITY, Some(object_meta())).map_err(|errors| {
                let name = crate::object::name(&definition);
                Status::invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, &errors)
            })
        };
        let mut hub = Hub { definitions, ..Hub::default() };
        for definition in &hub.definitions {
            hub.everywhere.extend(compile(definition)?.into_iter().map(Arc::new));
        }
        hub.root_only.extend(compile(&logical_cluster_definition())?.into_iter().map(Arc::new));
        Ok(hub)
    }

    /// The definition that the hub publishes under this name.
    pub(crate) fn definition(&self, name: &str) -> Option<&Value> {
        self.definitions.iter().find(|definition| crate::object::name(definition) == name)
    }

    /// Whether a group is the hub's: a tenant may not put kinds there.
    pub(crate) fn owns_group(&self, group: &str) -> bool {
        group == HUB_GROUP || self.everywhere.iter().any(|resource| &*resource.group == group)
    }
}

/// The schema of `metadata`, the same for all kinds.
pub(crate) fn object_meta() -> &'static Schema {
    kinds::built_in().object_meta()
}

/// The kind that logical clusters are created and deleted by.
fn logical_cluster_definition() -> Value {
    serde_json::from_str(include_str!("../kinds/logicalcluster.json"))
        .expect("the definition is part of the program, and a test reads it")
}

impl Clusters {
    /// The root cluster, and those that the store knows.
    pub(crate) async fn load(storage: &Storage, hub: Hub) -> Result<Self, Status> {
        let clusters = Clusters {
            by_name: RwLock::default(),
            by_id: RwLock::default(),
            hub,
            looking: tokio::sync::Mutex::new(()),
            changes: tokio::sync::watch::Sender::new(0),
        };
        clusters.add(ROOT, ROOT);
        let table = clusters.logical_clusters_table();
        for object in storage
            .objects(KeyRange::prefix(table, storage::prefix(Owner::Cluster(ROOT), None)))
            .await?
        {
            clusters.learn(&object);
        }
        let ids: Vec<Arc<Cluster>> = read(&clusters.by_id).values().cloned().collect();
        // One pass over all definitions finds the few clusters that have any.
        let definitions = storage
            .range(KeyRange::prefix(definitions_table(), ""), None, usize::MAX)
            .await
            .map_err(storage::read_refused)?;
        for cluster in ids {
            let prefix = storage::prefix(Owner::Cluster(&cluster.id), None);
            if definitions.items.iter().any(|item| item.key.row.starts_with(&prefix)) {
                clusters.read_custom(&cluster, storage).await?;
            }
        }
        Ok(clusters)
    }

    /// The kinds that the hub publishes.
    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// The table of logical clusters.
    pub(crate) fn logical_clusters_table(&self) -> Table {
        storage::table_of(HUB_GROUP, "logicalclusters", HUB_IDENTITY)
    }

    /// The cluster of this name.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Cluster>> {
        read(&self.by_name).get(name).cloned()
    }

    /// The cluster with this id.
    pub(crate) fn with_id(&self, id: &str) -> Option<Arc<Cluster>> {
        read(&self.by_id).get(id).cloned()
    }

    /// The hub's own cluster.
    pub(crate) fn root(&self) -> Arc<Cluster> {
        self.named(ROOT).expect("the root cluster is added first and never removed")
    }

    /// All names, root first.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = read(&self.by_name).keys().cloned().collect();
        names.sort_by(|a, b| (&**a != ROOT, a).cmp(&(&**b != ROOT, b)));
        names
    }

    /// Takes in what the store says about the cluster of a name now.
    pub(crate) async fn look_at(&self, name: &str, storage: &Storage) -> Result<(), Status> {
        let _alone = self.looking.lock().await;
        let key = Key::new(self.logical_clusters_table(), storage::row(ROOT, "", name));
        match storage.get(&key).await? {
            Some(versioned) => self.learn(&crate::object::decode(&versioned)),
            None => self.forget(name),
        }
        Ok(())
    }

    /// Takes in what a LogicalCluster object says.
    pub(crate) fn learn(&self, object: &Value) {
        let name = crate::object::name(object);
        let Some(id) = object["status"]["id"].as_str() else { return };
        let cluster = match self.with_id(id) {
            Some(cluster) => cluster,
            None => self.add(id, name),
        };
        cluster.is_terminating.store(crate::object::is_deleting(object), Ordering::Release);
        cluster.set_born(object);
        let limit = object["spec"]["storageLimitBytes"].as_u64().unwrap_or(0);
        cluster.stored_bytes_limit.store(limit, Ordering::Release);
    }

    /// Forgets a cluster that is gone, with all that was held for it.
    fn forget(&self, name: &str) {
        let removed = write(&self.by_name).remove(name);
        if let Some(cluster) = removed {
            write(&self.by_id).remove(&cluster.id);
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Changes whenever a cluster came or went.
    pub(crate) fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn add(&self, id: &str, name: &str) -> Arc<Cluster> {
        let cluster = Arc::new(Cluster {
            id: Arc::from(id),
            name: Arc::from(name),
            is_terminating: AtomicBool::new(false),
            born_seconds: AtomicI64::new(0),
            custom: RwLock::new(no_resources()),
            reading: tokio::sync::Mutex::new(()),
            roles: Mutex::default(),
            policies: Policies::default(),
            webhooks: Webhooks::default(),
            stored_bytes_limit: AtomicU64::new(0),
            under_way: UnderWay::default(),
            compiling: tokio::sync::Mutex::new(()),
        });
        let earlier = write(&self.by_name).insert(Arc::clone(&cluster.name), Arc::clone(&cluster));
        if let Some(earlier) = earlier {
            write(&self.by_id).remove(&earlier.id);
        }
        write(&self.by_id).insert(Arc::clone(&cluster.id), Arc::clone(&cluster));
        self.changes.send_modify(|count| *count += 1);
        cluster
    }

    /// Reads a cluster's custom kinds again, after one of its definitions changed.
    pub(crate) async fn read_custom(
        &self,
        cluster: &Cluster,
        storage: &Storage,
    ) -> Result<(), Status> {
        let _alone = cluster.reading.lock().await;
        let prefix = storage::prefix(Owner::Cluster(&cluster.id), None);
        let definitions = storage.objects(KeyRange::prefix(definitions_table(), prefix)).await?;
        let mut resources = Vec::new();
        for definition in &definitions {
            if !crd::is_established(definition)
                || self.hub.definition(crate::object::name(definition)).is_some()
            {
                continue;
            }
            match crd::read(definition, &cluster.id, Some(object_meta())) {
                Ok(versions) => resources.extend(versions.into_iter().map(Arc::new)),
                Err(errors) => tracing::warn!(
                    cluster = %cluster.name,
                    definition = crate::object::name(definition),
                    because = ?errors.first().map(ToString::to_string),
                    "a stored definition cannot be read, its kind is not served",
                ),
            }
        }
        let resources = if resources.is_empty() { no_resources() } else { Arc::new(resources) };
        *write(&cluster.custom) = resources;
        Ok(())
    }

    /// The resource that a cluster serves under these names.
    pub(crate) fn find(
        &self,
        cluster: &Cluster,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<Arc<Resource>> {
        if let Some(built_in) = kinds::built_in().find(group, version, plural) {
            return Some(Arc::clone(&built_in.resource));
        }
        let matches = |resource: &&Arc<Resource>| {
            &*resource.group == group
                && &*resource.version == version
                && &*resource.plural == plural
        };
        if let Some(resource) = self.hub.everywhere.iter().find(matches) {
            return Some(Arc::clone(resource));
        }
        if &*cluster.id == ROOT
            && let Some(resource) = self.hub.root_only.iter().find(matches)
        {
            return Some(Arc::clone(resource));
        }
        cluster.custom().iter().find(matches).cloned()
    }

    /// The resource whose objects are of this kind.
    pub(crate) fn find_kind(
        &self,
        cluster: &Cluster,
        api_version: &str,
        kind: &str,
    ) -> Option<Arc<Resource>> {
        let root_only = if cluster.is_root() { &self.hub.root_only[..] } else { &[] };
        let custom = cluster.custom();
        let mut all = kinds::built_in()
            .resources
            .iter()
            .chain(&self.hub.everywhere)
            .chain(root_only)
            .chain(custom.iter());
        all.find(|resource| &*resource.kind == kind && resource.api_version() == api_version)
            .cloned()
    }

    /// The same, also if its definition was established so recently that not everybody here knows.
    pub(crate) async fn find_established(
        &self,
        cluster: &Cluster,
        asked: &ResourceRequest,
        storage: &Storage,
    ) -> Result<Option<Arc<Resource>>, Status> {
        let find = || self.find(cluster, &asked.group, &asked.version, &asked.resource);
        if let Some(resource) = find() {
            return Ok(Some(resource));
        }
        let name = crate::status::qualified(&asked.group, &asked.resource);
        let key = Key::new(definitions_table(), storage::row(&cluster.id, "", &name));
        let definition = storage.get(&key).await?.map(|version| crate::object::decode(&version));
        if !definition.is_some_and(|definition| crd::is_established(&definition)) {
            return Ok(None);
        }
        // Whoever saw it established has read what is stored, and its writer has not yet come so far.
        self.read_custom(cluster, storage).await?;
        Ok(find())
    }

    /// Every table that can hold objects.
    pub(crate) fn tables(&self) -> HashSet<Table> {
        let clusters: Vec<Arc<Cluster>> = read(&self.by_id).values().cloned().collect();
        let mut tables: HashSet<Table> =
            self.served(&self.root()).iter().map(|resource| storage::table(resource)).collect();
        for cluster in clusters {
            tables.extend(cluster.custom().iter().map(|resource| storage::table(resource)));
        }
        tables
    }

    /// Everything that a cluster serves, in the order in which discovery tells it.
    pub(crate) fn served(&self, cluster: &Cluster) -> Vec<Arc<Resource>> {
        let mut resources: Vec<Arc<Resource>> = kinds::built_in().resources.clone();
        resources.extend(self.hub.everywhere.iter().cloned());
        if &*cluster.id == ROOT {
            resources.extend(self.hub.root_only.iter().cloned());
        }
        resources.extend(cluster.custom().iter().cloned());
        resources
    }
}

impl Cluster {
    /// Whether it is the hub's own.
    pub(crate) fn is_root(&self) -> bool {
        &*self.id == ROOT
    }

    /// How paths name it.
    pub(crate) fn address(&self) -> ClusterName {
        if self.is_root() {
            return ClusterName::Root;
        }
        ClusterName::Named(self.name.to_string())
    }

    /// When it came into being.
    pub(crate) fn born(&self) -> Timestamp {
        Timestamp::from_second(self.born_seconds.load(Ordering::Acquire)).unwrap_or_default()
    }

    /// Takes the birth of the cluster from the object that came into being with it.
    pub(crate) fn set_born(&self, object: &Value) {
        let created = crate::object::meta_text(object, "creationTimestamp");
        if let Ok(created) = created.parse::<Timestamp>() {
            self.born_seconds.store(created.as_second(), Ordering::Release);
        }
    }

    /// How many bytes it may store, if its object says so.
    pub(crate) fn stored_bytes_limit(&self) -> Option<u64> {
        Some(self.stored_bytes_limit.load(Ordering::Acquire)).filter(|limit| *limit > 0)
    }

    /// Whether its deletion was asked for.
    pub(crate) fn is_terminating(&self) -> bool {
        self.is_terminating.load(Ordering::Acquire)
    }

    /// The kinds that its own definitions add.
    pub(crate) fn custom(&self) -> Arc<Vec<Arc<Resource>>> {
        Arc::clone(&read(&self.custom))
    }

    /// Its roles, read and compiled if they are not at hand.
    pub(crate) async fn roles(&self, storage: &Storage) -> Result<Arc<RoleSet>, Status> {
        if let Some(compiled) = &lock(&self.roles).compiled {
            return Ok(Arc::clone(compiled));
        }
        let _alone = self.compiling.lock().await;
        let changes = {
            let roles = lock(&self.roles);
            if let Some(compiled) = &roles.compiled {
                return Ok(Arc::clone(compiled));
            }
            roles.changes
        };
        let compiled = stored_roles::compiled(&self.id, storage).await?;
        let compiled = Arc::new(compiled);
        let mut held = lock(&self.roles);
        // A role that changed while we read must not be hidden by what we read before.
        if held.changes == changes {
            held.compiled = Some(Arc::clone(&compiled));
        }
        Ok(compiled)
    }

    /// Forgets the compiled roles: one of them changed, or nobody has asked for long.
    pub(crate) fn forget_roles(&self) {
        let mut roles = lock(&self.roles);
        roles.compiled = None;
        roles.changes += 1;
    }
}

/// A new id for a cluster of this name: the name, and a number that makes it another one than all before.
pub(crate) fn new_id(name: &str, number: u64) -> String {
    format!("{name}.{number:016x}")
}

/// The name of the cluster with an id.
pub(crate) fn name_in(id: &str) -> &str {
    id.rsplit_once('.').map_or(id, |(name, _)| name)
}

/// The number in an id; 0 is the hub.
pub(crate) fn number_in(id: &str) -> u64 {
    let number = id.rsplit_once('.').and_then(|(_, number)| u64::from_str_radix(number, 16).ok());
    number.unwrap_or(0)
}

/// The table of custom resource definitions.
pub(crate) fn definitions_table() -> Table {
    storage::table_of("apiextensions.k8s.io", "customresourcedefinitions", "-")
}

fn no_resources() -> Arc<Vec<Arc<Resource>>> {
    static NONE: LazyLock<Arc<Vec<Arc<Resource>>>> = LazyLock::new(Arc::default);
    Arc::clone(&NONE)
}

// A thread that panicked while it held one of these locks left whole values behind: they are replaced, not edited.
fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
