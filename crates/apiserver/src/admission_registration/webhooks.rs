//! The webhooks of one cluster, compiled when they are first needed, and how many writes wait for them.

use super::compiled::{Compiled, all};
use super::hook::{Hook, Sort};
use crate::behaviour::read::list;
use crate::object;
use crate::status::Status;
use crate::storage::{self, Storage};
use interlock_store::{Revision, Versioned};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// So many writes of one cluster wait for webhooks at once.
const PLACES: usize = 64;
/// A write waits so long for one of the places. A webhook that writes to this server could else wait for itself.
const PLACE_WAIT: Duration = Duration::from_secs(2);

/// The webhooks of one cluster.
pub(crate) struct Webhooks {
    compiled: Compiled<HookSet>,
    places: Semaphore,
}

/// The compiled configurations of one cluster, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct HookSet {
    mutating: Vec<Arc<Configuration>>,
    validating: Vec<Arc<Configuration>>,
}

#[derive(Debug)]
struct Configuration {
    name: String,
    revision: Revision,
    hooks: Vec<Hook>,
}

impl Default for Webhooks {
    fn default() -> Self {
        Webhooks { compiled: Compiled::default(), places: Semaphore::new(PLACES) }
    }
}

impl Webhooks {
    /// The webhooks as they are now.
    pub(crate) async fn get(
        &self,
        cluster_id: &str,
        storage: &Storage,
    ) -> Result<Arc<HookSet>, Status> {
        let begun = match self.compiled.get() {
            Ok(set) => return Ok(set),
            Err(begun) => begun,
        };
        let mutating = all("mutatingwebhookconfigurations", cluster_id, storage).await?;
        let validating = all("validatingwebhookconfigurations", cluster_id, storage).await?;
        let before = begun.before.clone().unwrap_or_default();
        let set = HookSet {
            mutating: compiled(&mutating, Sort::Mutating, &before.mutating),
            validating: compiled(&validating, Sort::Validating, &before.validating),
        };
        Ok(self.compiled.keep(&begun, set))
    }

    /// One of them changed.
    pub(crate) fn forget(&self) {
        self.compiled.forget();
    }

    /// A place for a write that waits for webhooks, or 429.
    pub(crate) async fn place(&self) -> Result<SemaphorePermit<'_>, Status> {
        match tokio::time::timeout(PLACE_WAIT, self.places.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(Status::too_many_requests(
                format!(
                    "{PLACES} writes of this cluster wait for admission webhooks already, please \
                     try again later"
                ),
                1,
            )),
        }
    }
}

impl HookSet {
    /// The webhooks of one sort, in the order in which they are called.
    pub(crate) fn of(&self, sort: Sort) -> impl Iterator<Item = &Hook> {
        let configurations = match sort {
            Sort::Mutating => &self.mutating,
            Sort::Validating => &self.validating,
        };
        configurations.iter().flat_map(|configuration| &configuration.hooks)
    }
}

fn compiled(
    stored: &[Versioned],
    sort: Sort,
    before: &[Arc<Configuration>],
) -> Vec<Arc<Configuration>> {
    let compile = |stored: &Versioned| {
        let (_, _, name) = storage::parts(&stored.key.row);
        let is_same =
            |known: &&Arc<Configuration>| known.name == name && known.revision == stored.modified;
        if let Some(known) = before.iter().find(is_same) {
            return Arc::clone(known);
        }
        let object = object::decode(stored);
        let hooks = list(&object, "webhooks").iter();
        let hooks = hooks.filter_map(|webhook| Hook::read(&object, webhook, sort)).collect();
        Arc::new(Configuration { name: name.to_owned(), revision: stored.modified, hooks })
    };
    stored.iter().map(compile).collect()
}
