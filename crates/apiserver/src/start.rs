//! How a server starts: what it opens, what the first start makes, and what it does by itself from then on.

use crate::access::certificates::{Authority, CertificateOptions};
use crate::access::static_tokens::StaticTokens;
use crate::access::tokens::TokenKey;
use crate::audit::AuditLog;
use crate::background;
use crate::call::own_call;
use crate::clusters::{Clusters, Hub};
use crate::heavy::Heavy;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::openapi_cache::OpenApiCache;
use crate::server::{Config, Parts, Server};
use crate::status::Status;
use crate::storage::Storage;
use interlock_store::Embedded;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store.
    #[error("cannot open the store")]
    Store(#[source] interlock_store::OpenError),
    /// Keys and certificates.
    #[error("cannot load or make the certificates")]
    Certificates(#[source] crate::access::certificates::CertificateError),
    /// Keys of tokens.
    #[error("cannot load or make the key that signs tokens")]
    Tokens(#[source] crate::access::tokens::TokenError),
    /// The file of static tokens.
    #[error("cannot read the token file")]
    TokenFile(#[source] crate::access::static_tokens::StaticTokensError),
    /// The audit log.
    #[error("cannot open the audit log")]
    Audit(#[source] std::io::Error),
    /// What is stored, or the hub's definitions, cannot be read.
    #[error("{0}")]
    Contents(String),
}

impl Server {
    /// Opens the store, makes what a first start needs, and begins its background work.
    pub async fn start(config: Config) -> Result<Server, StartError> {
        let now = (config.clock)().as_second();
        let store = match &config.data_directory {
            Some(directory) => Embedded::open(directory.join("store"), config.store.clone())
                .map_err(StartError::Store)?,
            None => Embedded::in_memory(),
        };
        let storage = Storage { store: Arc::new(store) };
        let (authority, token_key) = match &config.data_directory {
            Some(directory) => {
                let options = CertificateOptions {
                    names: config.names.clone(),
                    serving: config.serving_certificate.clone(),
                    client_authorities: config.client_authorities.clone(),
                };
                let authority = Authority::load_or_create(directory, options, now)
                    .map_err(StartError::Certificates)?;
                let key =
                    TokenKey::load_or_create(&directory.join("pki")).map_err(StartError::Tokens)?;
                (Some(authority), key)
            }
            None => (None, TokenKey::generate().map_err(StartError::Tokens)?),
        };
        let authority_pem = match &authority {
            Some(authority) => {
                authority.server_authority_pem().map_err(StartError::Certificates)?
            }
            None => String::new(),
        };
        let static_tokens = match &config.token_file {
            Some(path) => StaticTokens::read(path).map_err(StartError::TokenFile)?,
            None => StaticTokens::default(),
        };
        let audit = match &config.data_directory {
            Some(directory) if config.has_audit_log => Some(
                AuditLog::open(directory.join("audit.log"), crate::audit::Options::default())
                    .map_err(StartError::Audit)?,
            ),
            Some(_) | None => None,
        };
        let contents = |status: Status| StartError::Contents(status.message);
        let hub = Hub::new(config.hub_definitions.clone()).map_err(contents)?;
        let clusters = Clusters::load(&storage, hub).await.map_err(contents)?;
        let server = Server::of(Parts {
            storage,
            clusters,
            authority,
            authority_pem,
            token_key,
            static_tokens,
            limits: Limits::new(config.limits.clone()),
            heavy: Heavy::default(),
            metrics: Metrics::default(),
            audit,
            openapi: OpenApiCache::default(),
            quota_locks: crate::quota_locks::QuotaLocks::default(),
            streams: crate::pod_streams::Registry::default(),
            stopping: watch::Sender::new(false),
            advertised: OnceLock::new(),
            config,
        });
        server.bootstrap().await.map_err(contents)?;
        if !server.config().is_background_on_demand {
            background::begin(&server);
        }
        Ok(server)
    }

    /// Does once what is due: what is being deleted is emptied and let go, as far as nothing holds
    /// it. Only for a server whose background work is on demand.
    pub async fn run_background(&self) {
        background::round(self).await;
    }

    /// A server that keeps everything in memory, for tests.
    pub async fn in_memory() -> Result<Server, StartError> {
        Server::start(Config::default()).await
    }

    /// The namespaces that the root cluster has from the first start.
    async fn bootstrap(&self) -> Result<(), Status> {
        for name in ["default", "kube-system"] {
            let call = own_call(self, &self.clusters().root(), "", "v1", "namespaces");
            let namespace = serde_json::json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
            });
            let namespace = call.take(namespace, &[], 400)?;
            match call.create(namespace).await {
                Ok(_) => {}
                Err(status) if status.reason == "AlreadyExists" => {}
                Err(status) => return Err(status),
            }
        }
        let mut call = own_call(self, &self.clusters().root(), "", "v1", "namespaces");
        "default".clone_into(&mut call.name);
        self.clusters().root().set_born(&call.found().await?.object);
        Ok(())
    }
}
