//! The record beside a folder: what is in it, what it was made from, and that it is whole.

use super::{Content, error};
use crate::durable;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What is on disk about a volume or a snapshot. It is written before the folder gets its name: so
/// a folder with a name and a record is whole, and a record without a folder says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) handle: String,
    /// Whose it is; none of what was made before that was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// What the files take without their holes.
    pub(super) stored_bytes: u64,
    pub(super) digest: String,
    /// How much a volume may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) capacity_bytes: Option<u64>,
    pub(super) made_from: Origin,
    pub(super) made_unix_milliseconds: u64,
    /// The snapshot that a copy brought a volume to last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) brought_to: Option<Brought>,
}

/// What something was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Origin {
    Nothing,
    Volume(String),
    Snapshot(String),
}

/// A copy into a volume that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Brought {
    pub(super) cluster: String,
    pub(super) snapshot: String,
    pub(super) digest: String,
    pub(super) at_unix_milliseconds: u64,
}

impl Record {
    /// A record of something that has nothing in it.
    pub(super) fn empty(handle: &str, made_from: Origin) -> Record {
        Record {
            handle: handle.to_owned(),
            owner: None,
            files: 0,
            bytes: 0,
            stored_bytes: 0,
            digest: String::new(),
            capacity_bytes: None,
            made_from,
            made_unix_milliseconds: now_unix_milliseconds(),
            brought_to: None,
        }
    }

    pub(super) fn content(&self) -> Content {
        Content { files: self.files, bytes: self.bytes, digest: self.digest.clone() }
    }

    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        durable::replace(path, &serde_json::to_vec_pretty(self)?)
    }
}

/// What a record file says.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    Damaged(PathBuf),
    Record(Box<Record>),
}

pub(super) fn read(path: &Path) -> error::Result<Found> {
    let bytes = durable::read(path)
        .map_err(|source| error::Error::Read { path: path.to_owned(), source })?;
    let Some(bytes) = bytes else { return Ok(Found::Nothing) };
    Ok(match serde_json::from_slice(&bytes) {
        Ok(record) => Found::Record(Box::new(record)),
        Err(_) => Found::Damaged(path.to_owned()),
    })
}

pub(super) fn now_unix_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
