//! When a run was asked to end: on disk, so that a grace period outlives the one who counts it.

use super::error::Result;
use super::record::{now_unix_milliseconds, time_of};
use super::{Processes, Signal, durable};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tracing::warn;

/// When a run was first asked to end, and how. Not by whom: it may have ended for another reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// When what it wants to be done before that was begun.
    pub pre_stop: Option<SystemTime>,
    /// When it was first sent SIGTERM.
    pub term: Option<SystemTime>,
    /// When it was first sent SIGKILL.
    pub kill: Option<SystemTime>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Written {
    #[serde(default)]
    pre_stop_unix_milliseconds: Option<u64>,
    term_unix_milliseconds: Option<u64>,
    kill_unix_milliseconds: Option<u64>,
}

impl Processes {
    /// When the run was first asked to end, since its last start.
    pub fn asked(&self, id: &str) -> Result<Asked> {
        let Some(path) = self.asked_path(id)? else { return Ok(Asked::default()) };
        let written = read(&path)?;
        Ok(Asked {
            pre_stop: written.pre_stop_unix_milliseconds.map(time_of),
            term: written.term_unix_milliseconds.map(time_of),
            kill: written.kill_unix_milliseconds.map(time_of),
        })
    }

    /// Notes that a signal is about to be sent. That it cannot be noted, on a full disk perhaps,
    /// must not keep anyone from stopping a run.
    pub(super) fn note_asked(&self, id: &str, signal: Signal) {
        if let Err(error) = self.try_note_asked(id, signal) {
            warn!(run = id, ?signal, %error, "cannot note that a run is asked to end");
        }
    }

    /// Notes that what the run wants to be done before it is asked to stop begins now.
    pub(super) fn note_pre_stop(&self, id: &str) -> Result<()> {
        let Some(path) = self.asked_path(id)? else { return Ok(()) };
        let mut written = read(&path)?;
        written.pre_stop_unix_milliseconds = Some(now_unix_milliseconds());
        write(&path, &written)
    }

    fn try_note_asked(&self, id: &str, signal: Signal) -> Result<()> {
        let Some(path) = self.asked_path(id)? else { return Ok(()) };
        let mut written = read(&path)?;
        let first = match signal {
            Signal::Term => &mut written.term_unix_milliseconds,
            Signal::Kill => &mut written.kill_unix_milliseconds,
        };
        if first.is_some() {
            return Ok(());
        }
        *first = Some(now_unix_milliseconds());
        write(&path, &written)
    }

    fn asked_path(&self, id: &str) -> Result<Option<PathBuf>> {
        let Some(record) = self.record(id)? else { return Ok(None) };
        Ok(Some(self.run_folder(id)?.join(format!("asked-{}.json", record.token))))
    }
}

fn write(path: &Path, written: &Written) -> Result<()> {
    let bytes = serde_json::to_vec(written).expect("three numbers are always JSON");
    durable::replace(path, &bytes)
}

/// What the file says. One that is not there or cannot be understood says nothing: the run is then
/// asked once more, and its grace period begins anew.
fn read(path: &Path) -> Result<Written> {
    let bytes = durable::read(path)?.unwrap_or_default();
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}
