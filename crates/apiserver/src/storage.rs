//! Where objects are kept: which table and row an object has, and reading it back.

use crate::object;
use crate::resource::Resource;
use crate::status::Status;
use interlock_store::{
    CommitError, Embedded, Guard, Key, KeyRange, Page, ReadError, Refusal, Revision, Store, Table,
    Transaction, Versioned,
};
use serde_json::Value;
use std::sync::Arc;

/// What is for the namespace of objects that are in none. No namespace can have this name.
const NO_NAMESPACE: &str = "_";

/// Whose objects: one logical cluster's, or everybody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner<'a> {
    /// The cluster with this id.
    Cluster(&'a str),
    /// All of them.
    Everybody,
}

/// The table of a resource: all its objects in all logical clusters.
pub(crate) fn table(resource: &Resource) -> Table {
    table_of(&resource.group, &resource.plural, &resource.identity)
}

/// The table of a resource by its names.
pub(crate) fn table_of(group: &str, plural: &str, identity: &str) -> Table {
    // Both faces of an event are one object.
    let group = if group == "events.k8s.io" { "" } else { group };
    let group = if group.is_empty() { "core" } else { group };
    Arc::from(format!("{group}/{plural}/{identity}"))
}

/// The row of an object.
pub(crate) fn row(cluster: &str, namespace: &str, name: &str) -> String {
    let namespace = if namespace.is_empty() { NO_NAMESPACE } else { namespace };
    format!("{cluster}/{namespace}/{name}")
}

/// What the rows of a cluster, or of one of its namespaces, begin with.
pub(crate) fn prefix(owner: Owner<'_>, namespace: Option<&str>) -> String {
    match (owner, namespace) {
        (Owner::Everybody, _) => String::new(),
        (Owner::Cluster(cluster), None) => format!("{cluster}/"),
        (Owner::Cluster(cluster), Some(namespace)) => format!("{cluster}/{namespace}/"),
    }
}

/// The parts of a row: cluster id, namespace (empty if none) and name.
pub(crate) fn parts(row: &str) -> (&str, &str, &str) {
    let (cluster, rest) = row.split_once('/').unwrap_or((row, ""));
    let (namespace, name) = rest.split_once('/').unwrap_or((rest, ""));
    (cluster, if namespace == NO_NAMESPACE { "" } else { namespace }, name)
}

/// The store, in the API's words.
#[derive(Clone)]
pub(crate) struct Storage {
    pub(crate) store: Arc<Embedded>,
}

impl Storage {
    /// One object, as it is now.
    pub(crate) async fn get(&self, key: &Key) -> Result<Option<Versioned>, Status> {
        // The first row that begins with the key's row is the row itself, if it is there.
        let range = KeyRange::prefix(key.table.clone(), key.row.clone());
        let page = self.range(range, None, 1).await.map_err(read_refused)?;
        Ok(page.items.into_iter().next().filter(|item| item.key.row == key.row))
    }

    /// Objects in order, as they were at a revision.
    pub(crate) async fn range(
        &self,
        range: KeyRange,
        at: Option<Revision>,
        limit: usize,
    ) -> Result<Page, ReadError> {
        self.store.range(range, at, limit).await
    }

    /// All objects of a range as they are now, decoded.
    pub(crate) async fn objects(&self, range: KeyRange) -> Result<Vec<Value>, Status> {
        let page = self.range(range, None, usize::MAX).await.map_err(read_refused)?;
        Ok(page.items.iter().map(object::decode).collect())
    }

    /// Commits. A guard that failed is handed back, everything else is a refusal.
    pub(crate) async fn commit(&self, transaction: Transaction) -> Result<Revision, NotCommitted> {
        match self.store.commit(transaction).await {
            Ok(revision) => Ok(revision),
            Err(CommitError::GuardFailed { key, .. }) => Err(NotCommitted::Guard(key)),
            Err(CommitError::Refused(refusal)) => Err(NotCommitted::Refused(refused(&refusal))),
            Err(CommitError::OutcomeUnknown) => Err(NotCommitted::Refused(outcome_unknown())),
        }
    }
}

/// Why a write was not committed.
#[derive(Debug)]
pub(crate) enum NotCommitted {
    /// What is at this key is not what was seen: read again.
    Guard(Key),
    /// It was refused, or nobody knows.
    Refused(Status),
}

/// 504 for a write that may stand or not.
pub(crate) fn outcome_unknown() -> Status {
    Status::timeout("the outcome of the write is not known: read the object before writing again")
}

fn refused(refusal: &Refusal) -> Status {
    match refusal {
        Refusal::TooLarge(why) => Status::too_large(why.clone()),
        Refusal::TwoInOneTable(_) => Status::internal(refusal),
        Refusal::DiskNearlyFull => Status::unavailable(
            "the disk is nearly full: deletions are taken, new data is not; free some room",
            30,
        ),
        Refusal::Busy => Status::too_many_requests("too many writes are waiting", 1),
        Refusal::Stopped(_) => Status::unavailable(refusal.to_string(), 5),
    }
}

/// What a failed read is to a client.
pub(crate) fn read_refused(error: ReadError) -> Status {
    match error {
        ReadError::Compacted { floor } => Status::expired(format!(
            "The resourceVersion for the provided watch is too old: the oldest kept is {floor}"
        )),
        ReadError::NotYet { newest } => too_large_version(newest),
        ReadError::Unavailable => Status::unavailable("the store cannot be reached", 5),
    }
}

/// 504 for a version from the future, with the cause that clients look for.
pub(crate) fn too_large_version(newest: Revision) -> Status {
    let mut status = Status::timeout(format!("Too large resource version, current: {newest}"));
    status.retry_after_seconds = Some(1);
    status.details.causes.push(crate::status::Cause {
        reason: "ResourceVersionTooLarge",
        message: "Too large resource version".to_owned(),
        field: String::new(),
    });
    status
}

/// What was seen at a key, as a guard.
pub(crate) fn guard(key: &Key, seen: Option<Revision>) -> Guard {
    match seen {
        Some(revision) => Guard::At(key.clone(), revision),
        None => Guard::Absent(key.clone()),
    }
}
