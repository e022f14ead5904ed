//! The server: one store, many logical clusters, and the way that every request takes.

use crate::access::certificates::{Authority, ServingFiles};
use crate::access::static_tokens::StaticTokens;
use crate::access::tokens::TokenKey;
use crate::admission_registration::{self, WebhookReach};
use crate::audit::AuditLog;
use crate::clusters::{self, Cluster, Clusters, definitions_table};
use crate::heavy::Heavy;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::openapi_cache::OpenApiCache;
use crate::pod_streams::{Answering, PodPlaces, PodStreams, Registration, Registry};
use crate::quota_locks::QuotaLocks;
use crate::status::Status;
use crate::storage::{self, NotCommitted, Storage};
use interlock_store::{Changes as _, Key, KeyRange, ReadError, Revision, Store, Transaction};
use jiff::Timestamp;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;

/// How long a read waits for a version that is not there yet.
const FUTURE_SECONDS: u64 = 3;

/// Where the time comes from: the machine, or a simulation.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Where random numbers come from: the machine, or a simulation.
pub type Random = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What a server is to be.
#[derive(Clone)]
pub struct Config {
    /// Where data and keys are kept; none keeps everything in memory, for tests.
    pub data_directory: Option<PathBuf>,
    /// Names and addresses under which clients reach the server, beside the loopback ones.
    pub names: Vec<String>,
    /// A serving certificate from somewhere else, instead of one that the server's own authority signs.
    pub serving_certificate: Option<ServingFiles>,
    /// Authorities whose client certificates are taken beside those of the server's own, as PEM files.
    pub client_authorities: Vec<PathBuf>,
    /// A file of static tokens.
    pub token_file: Option<PathBuf>,
    /// Definitions of the kinds that the hub serves in every logical cluster.
    pub hub_definitions: Vec<Value>,
    /// How often history is cut off.
    pub compaction_interval: Duration,
    /// How the store works.
    pub store: interlock_store::Options,
    /// What clients may use.
    pub limits: crate::limits::Caps,
    /// Whether an audit log is written into the data directory.
    pub has_audit_log: bool,
    /// Where admission webhooks of the root cluster may be.
    pub root_webhooks: WebhookReach,
    /// Where admission webhooks of all other logical clusters may be.
    pub tenant_webhooks: WebhookReach,
    /// The clock.
    pub clock: Clock,
    /// Random numbers.
    pub random: Random,
    /// Whether background work waits for [`Server::run_background`]: for a
    /// simulation, which says itself when anything happens.
    pub is_background_on_demand: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            data_directory: None,
            names: Vec::new(),
            serving_certificate: None,
            client_authorities: Vec::new(),
            token_file: None,
            hub_definitions: Vec::new(),
            compaction_interval: Duration::from_secs(5 * 60),
            store: interlock_store::Options::default(),
            limits: crate::limits::Caps::default(),
            has_audit_log: true,
            root_webhooks: WebhookReach::Anywhere,
            tenant_webhooks: WebhookReach::Nowhere,
            clock: Arc::new(Timestamp::now),
            random: Arc::new(crate::random::machine),
            is_background_on_demand: false,
        }
    }
}

/// A Kubernetes API server with logical clusters. Clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<Parts>);

/// What a server is made of.
pub(crate) struct Parts {
    pub(crate) storage: Storage,
    pub(crate) clusters: Clusters,
    pub(crate) authority: Option<Authority>,
    pub(crate) authority_pem: String,
    pub(crate) token_key: TokenKey,
    pub(crate) static_tokens: StaticTokens,
    pub(crate) limits: Limits,
    pub(crate) heavy: Heavy,
    pub(crate) metrics: Metrics,
    pub(crate) audit: Option<AuditLog>,
    pub(crate) openapi: OpenApiCache,
    pub(crate) quota_locks: QuotaLocks,
    pub(crate) streams: Registry,
    pub(crate) config: Config,
    pub(crate) stopping: watch::Sender<bool>,
    /// Where clients inside of a cluster reach the server, once it listens.
    pub(crate) advertised: OnceLock<SocketAddr>,
}

impl Server {
    /// A server of these parts, which does nothing by itself yet.
    pub(crate) fn of(parts: Parts) -> Server {
        Server(Arc::new(parts))
    }

    /// Ends watches and background work, and lets those who serve it know. Requests are still answered.
    pub fn begin_stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Ends watches and background work, and closes the store: no request is answered any more.
    pub async fn stop(&self) {
        self.begin_stop();
        self.0.storage.store.close().await;
        if let Some(audit) = &self.0.audit {
            audit.close();
        }
    }

    /// Becomes true when the server stops.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stopping.subscribe()
    }

    /// Becomes true when the server stops; for those who serve it.
    pub fn stops(&self) -> watch::Receiver<bool> {
        self.stopping()
    }

    /// Where clients inside of a cluster reach the server; none if it is in this process alone.
    pub(crate) fn advertised(&self) -> Option<SocketAddr> {
        self.0.advertised.get().copied()
    }

    /// Takes an address that the server listens on as the one that it is known by; the first one counts.
    pub(crate) fn advertise(&self, listening: SocketAddr) {
        let mut address = listening;
        if listening.ip().is_unspecified() {
            let named = self.0.config.names.iter().find_map(|name| name.parse().ok());
            address.set_ip(named.unwrap_or(Ipv4Addr::LOCALHOST.into()));
        }
        let _ = self.0.advertised.set(address);
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.0.storage
    }

    pub(crate) fn clusters(&self) -> &Clusters {
        &self.0.clusters
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The places for heavy requests.
    pub(crate) fn heavy(&self) -> &Heavy {
        &self.0.heavy
    }

    /// What is counted, and served under `/metrics`.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn audit(&self) -> Option<&AuditLog> {
        self.0.audit.as_ref()
    }

    pub(crate) fn openapi(&self) -> &OpenApiCache {
        &self.0.openapi
    }

    /// Lets those who count the quotas of a namespace wait for each other.
    pub(crate) fn quota_locks(&self) -> &QuotaLocks {
        &self.0.quota_locks
    }

    /// Who answers for the pods of which logical cluster.
    pub(crate) fn streams(&self) -> &Registry {
        &self.0.streams
    }

    /// Registers whoever runs the pods of the logical cluster of this name, until what this gives is dropped. From
    /// then on the logs of pods and the like are answered with what it says.
    pub fn register_pods(&self, cluster: &str, streams: Arc<dyn PodStreams>) -> Registration {
        self.0.streams.register(cluster, Answering::Running(streams))
    }

    /// Registers whoever knows where the pods of the logical cluster of this name run, likewise: requests for their logs and
    /// the like go on to the pods that it names.
    pub fn register_pod_places(&self, cluster: &str, places: Arc<dyn PodPlaces>) -> Registration {
        self.0.streams.register(cluster, Answering::Knowing(places))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(crate) fn token_key(&self) -> &TokenKey {
        &self.0.token_key
    }

    pub(crate) fn static_tokens(&self) -> &StaticTokens {
        &self.0.static_tokens
    }

    /// Says under which URL clients and those who verify tokens reach the server: it begins the
    /// issuer of every logical cluster. The first word counts.
    pub fn reached_at(&self, url: &str) {
        self.token_key().reached_at(url);
    }

    /// Keys and certificates; none for a server in memory.
    pub fn authority(&self) -> Option<&Authority> {
        self.0.authority.as_ref()
    }

    /// What clients must trust to reach the server.
    pub(crate) fn authority_pem(&self) -> &str {
        &self.0.authority_pem
    }

    /// The names of all logical clusters, `root` first.
    pub fn cluster_names(&self) -> Vec<Arc<str>> {
        self.0.clusters.names()
    }

    /// Changes whenever a logical cluster came or went.
    pub fn cluster_changes(&self) -> watch::Receiver<u64> {
        self.0.clusters.changes()
    }

    /// Waits until the store has failed, and says why. The process should end then.
    pub async fn failed(&self) -> String {
        self.0.storage.store.stopped().await.to_string()
    }

    /// The store, for what else this process keeps in it. Tables of the API have three parts in their
    /// names; others have not.
    pub fn store(&self) -> Arc<interlock_store::Embedded> {
        Arc::clone(&self.0.storage.store)
    }

    /// What the store found when it was opened.
    pub fn recovery(&self) -> &interlock_store::Recovery {
        self.0.storage.store.recovery()
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0.config.clock)()
    }

    pub(crate) fn random_u32(&self) -> u32 {
        (self.0.config.random)() as u32
    }

    /// A new uid, in the form of a random UUID.
    pub(crate) fn new_uid(&self) -> String {
        crate::random::uuid(&*self.0.config.random)
    }

    /// An id that no logical cluster ever had.
    pub(crate) fn new_cluster_id(&self, name: &str) -> String {
        clusters::new_id(name, (self.0.config.random)())
    }

    /// Commits, and lets everybody in the process know what follows from it before it is acknowledged.
    pub(crate) async fn commit(
        &self,
        cluster: &Arc<Cluster>,
        mut plan: Transaction,
    ) -> Result<Revision, NotCommitted> {
        // Writers of one cluster share one turn.
        plan.fairness = clusters::number_in(&cluster.id);
        let writing = self.check_stored_bytes(cluster, &plan).await;
        let writing = writing.map_err(NotCommitted::Refused)?;
        let consequences = self.consequences(&plan);
        if consequences.is_empty() {
            return self.storage().commit(plan).await;
        }
        // A client that goes away ends its request, but not the write: what follows must be learnt all the same.
        let (server, cluster) = (self.clone(), Arc::clone(cluster));
        let changes_policies =
            consequences.iter().any(|what| matches!(what, Consequence::Policies));
        let committed = tokio::spawn(async move {
            let _writing = writing;
            let id = &cluster.id;
            // Writes that were judged without this policy are committed before it, and none after.
            let _alone = match changes_policies {
                true => Some(cluster.policies.alone().await),
                false => None,
            };
            let revision = server.storage().commit(plan).await?;
            for consequence in consequences {
                server.follow_up(id, consequence).await.map_err(NotCommitted::Refused)?;
            }
            Ok(revision)
        });
        committed.await.unwrap_or_else(|_| Err(NotCommitted::Refused(storage::outcome_unknown())))
    }

    fn consequences(&self, plan: &Transaction) -> Vec<Consequence> {
        let (definitions, logical_clusters) =
            (definitions_table(), self.clusters().logical_clusters_table());
        let of_key = |key: &Key| {
            if key.table.starts_with("rbac.authorization.k8s.io/") {
                Some(Consequence::Roles)
            } else if admission_registration::is_policy_table(&key.table) {
                Some(Consequence::Policies)
            } else if admission_registration::is_webhook_table(&key.table) {
                Some(Consequence::Webhooks)
            } else if key.table == definitions {
                Some(Consequence::Definitions)
            } else if key.table == logical_clusters {
                Some(Consequence::Cluster(storage::parts(&key.row).2.to_owned()))
            } else {
                None
            }
        };
        plan.operations.iter().filter_map(|operation| of_key(operation.key())).collect()
    }

    async fn follow_up(&self, id: &str, consequence: Consequence) -> Result<(), Status> {
        if let Consequence::Cluster(name) = &consequence {
            return self.clusters().look_at(name, self.storage()).await;
        }
        let Some(cluster) = self.clusters().with_id(id) else { return Ok(()) };
        match consequence {
            Consequence::Roles => cluster.forget_roles(),
            Consequence::Policies => cluster.policies.forget(),
            Consequence::Webhooks => cluster.webhooks.forget(),
            Consequence::Definitions => {
                self.clusters().read_custom(&cluster, self.storage()).await?;
                self.openapi().forget(id);
            }
            Consequence::Cluster(_) => {}
        }
        Ok(())
    }

    /// Waits for a version that is not there yet, but not for long.
    pub(crate) async fn wait_for(&self, version: Revision) -> Result<(), Status> {
        let newest = self.storage().store.newest().await.map_err(storage::read_refused)?;
        if version <= newest {
            return Ok(());
        }
        match tokio::time::timeout(wait_timeout(), self.reached(version, newest)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(storage::read_refused(error)),
            Err(_) => {
                let newest = self.storage().store.newest().await;
                Err(storage::too_large_version(newest.map_err(storage::read_refused)?))
            }
        }
    }

    async fn reached(&self, version: Revision, newest: Revision) -> Result<(), ReadError> {
        let mut changes = self.storage().store.watch(KeyRange::everything(), newest).await?;
        while changes.next().await?.seen < version {}
        Ok(())
    }

    /// Whether writes can be taken, and if not, why.
    pub fn readiness(&self) -> Result<(), String> {
        match self.storage().store.stop_reason() {
            None => Ok(()),
            Some(why) => Err(why.to_string()),
        }
    }
}

/// How long a read waits for a version that is not there yet.
pub(crate) fn wait_timeout() -> Duration {
    Duration::from_secs(FUTURE_SECONDS)
}

/// Waits until the server stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // A sender that is gone means the same.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// What the process must look at again after a commit.
enum Consequence {
    /// The roles of the cluster that was written to.
    Roles,
    /// Its admission policies.
    Policies,
    /// Its admission webhooks.
    Webhooks,
    /// Its definitions.
    Definitions,
    /// The logical cluster of this name.
    Cluster(String),
}
