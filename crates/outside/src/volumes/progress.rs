//! How far long work is, and when it is to end early.

use super::fault::Fault;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// How far something that takes long is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes so far.
    pub bytes: u64,
    /// Bytes in all, once they are counted.
    pub of_bytes: Option<u64>,
    /// Files so far.
    pub files: u64,
}

/// Counts while others look.
#[derive(Debug)]
pub(super) struct Counters {
    bytes: AtomicU64,
    /// The largest number while it is not known.
    of_bytes: AtomicU64,
    files: AtomicU64,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            bytes: AtomicU64::new(0),
            of_bytes: AtomicU64::new(u64::MAX),
            files: AtomicU64::new(0),
        }
    }
}

impl Counters {
    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub(super) fn add_file(&self) {
        self.files.fetch_add(1, Relaxed);
    }

    pub(super) fn expect_bytes(&self, bytes: u64) {
        self.of_bytes.store(bytes, Relaxed);
    }

    pub(super) fn progress(&self) -> Progress {
        let of_bytes = self.of_bytes.load(Relaxed);
        Progress {
            bytes: self.bytes.load(Relaxed),
            of_bytes: (of_bytes != u64::MAX).then_some(of_bytes),
            files: self.files.load(Relaxed),
        }
    }
}

/// Until when work goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Cancellation {
    is_over: Arc<AtomicBool>,
    until: Option<Instant>,
}

impl Cancellation {
    /// Until it is done.
    pub(super) fn never() -> Cancellation {
        Cancellation::default()
    }

    /// The same, but not longer than to this moment, if there is one.
    pub(super) fn until(&self, moment: Option<Instant>) -> Cancellation {
        Cancellation { is_over: Arc::clone(&self.is_over), until: moment }
    }

    /// Ends the work at its next check.
    pub(super) fn end(&self) {
        self.is_over.store(true, Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.check().is_err()
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.is_over.load(Relaxed) {
            return Err(Fault::Cancelled);
        }
        match self.until {
            Some(moment) if Instant::now() >= moment => Err(Fault::TooLong),
            Some(_) | None => Ok(()),
        }
    }
}
