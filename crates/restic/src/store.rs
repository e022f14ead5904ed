//! The files of a repository, wherever they are.
//!
//! rustic_core has backends of its own. These differ in what matters here: they know locks, they
//! never take a listing that failed for an empty one, they create a config only where there is none,
//! and their errors say which sort of trouble it is.

mod http;
mod local;
mod rest;
mod s3;
mod signature;

use crate::failure::{Failure, Reason};
use crate::settings::{RepositoryPlace, Settings};
use bytes::Bytes;
use std::sync::Arc;

/// What sort of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Config,
    Key,
    Snapshot,
    Index,
    Pack,
    Lock,
}

impl Kind {
    /// The folder that they are in, or for the config its name.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Kind::Config => "config",
            Kind::Key => "keys",
            Kind::Snapshot => "snapshots",
            Kind::Index => "index",
            Kind::Pack => "data",
            Kind::Lock => "locks",
        }
    }

    /// The folders of a repository.
    pub(crate) const FOLDERS: [Kind; 5] =
        [Kind::Key, Kind::Snapshot, Kind::Index, Kind::Pack, Kind::Lock];
}

/// A file of a repository: every file but the config is named for the SHA-256 of what is in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File<'a> {
    pub(crate) kind: Kind,
    pub(crate) name: &'a str,
}

impl<'a> File<'a> {
    pub(crate) const CONFIG: File<'static> = File { kind: Kind::Config, name: "" };

    pub(crate) fn new(kind: Kind, name: &'a str) -> Self {
        File { kind, name }
    }

    /// As one would tell a person.
    pub(crate) fn title(self) -> String {
        match self.kind {
            Kind::Config => "config".to_owned(),
            kind => format!("{}/{}", kind.folder(), self.name),
        }
    }

    /// Where it is in restic's default layout.
    pub(crate) fn path(self) -> String {
        match self.kind {
            Kind::Config => "config".to_owned(),
            Kind::Pack => {
                format!("data/{}/{}", self.name.get(..2).unwrap_or_default(), self.name)
            }
            kind => format!("{}/{}", kind.folder(), self.name),
        }
    }
}

/// The files of one repository.
pub(crate) trait Store: Send + Sync + 'static {
    /// Whether there is a config, which is whether there is a repository. An error is no answer.
    fn has_config(&self) -> Result<bool, StoreError>;
    /// The names and sizes of all files of a kind.
    fn list(&self, kind: Kind) -> Result<Vec<(String, u64)>, StoreError>;
    /// All of a file.
    fn read(&self, file: File<'_>) -> Result<Bytes, StoreError>;
    /// So many bytes of a file, from there on.
    fn read_part(&self, file: File<'_>, from: u64, bytes: usize) -> Result<Bytes, StoreError>;
    /// Writes a file, durably and at once. A config is never written over.
    fn write(&self, file: File<'_>, parts: &[Bytes]) -> Result<(), StoreError>;
    /// Removes a file. That it is gone already is what was wanted.
    fn remove(&self, file: File<'_>) -> Result<(), StoreError>;
    /// Makes whatever a new repository needs before its first file.
    fn prepare(&self) -> Result<(), StoreError>;
    /// Whether reading a part costs about as much as reading all: every request is a round trip.
    fn is_far(&self) -> bool;
}

/// What went wrong with a file, in the sorts that lead to different next steps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("{0} is not there")]
    Missing(String),
    #[error("{0} is there already")]
    Exists(String),
    #[error("there is no space for {0}")]
    Full(String),
    #[error("{0}")]
    Denied(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Damaged(String),
}

impl StoreError {
    /// The same for whoever asked for a backup or a restore.
    pub(crate) fn failure(&self, location: &str) -> Failure {
        let (reason, next) = match self {
            StoreError::Missing(_) => (
                Reason::RepositoryDamaged,
                "run `restic check` before anything is forgotten or pruned",
            ),
            StoreError::Exists(_) => (Reason::MoverFailed, "try again"),
            StoreError::Full(_) => (Reason::TargetFull, "make space in the repository"),
            StoreError::Denied(_) => {
                (Reason::RepositoryUnreachable, "check the keys of the Secret and what they may do")
            }
            StoreError::Unreachable(_) => {
                (Reason::RepositoryUnreachable, "check the address and the network")
            }
            StoreError::Damaged(_) => (
                Reason::RepositoryDamaged,
                "run `restic check` before anything is forgotten or pruned",
            ),
        };
        Failure::new(reason, format!("repository {location}: {self}; {next}"))
    }
}

/// The files of the repository that the settings name.
pub(crate) fn open(settings: &Settings) -> Result<Arc<dyn Store>, Failure> {
    let store: Arc<dyn Store> = match &settings.place {
        RepositoryPlace::Local(folder) => Arc::new(local::Local::new(folder.clone())),
        RepositoryPlace::Rest(place) => Arc::new(rest::Rest::new(place)?),
        RepositoryPlace::S3(place) => Arc::new(s3::S3::new(place.clone())?),
    };
    Ok(store)
}

/// Whether this is the name of a file, and not of one that is being written.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
