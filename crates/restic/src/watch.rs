//! How far something is, and whether it is still wanted.

use crate::failure::{Failure, Reason};
use rustic_core::{ProgressBars, ProgressType, RusticProgress};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What whoever asked keeps in hand while something runs: how far it is, and the means to end it.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    bytes: AtomicU64,
    of_bytes: AtomicU64,
    files: AtomicU64,
    is_cancelled: AtomicBool,
}

/// How far something is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes so far.
    pub bytes: u64,
    /// Bytes in all, where they are known.
    pub of_bytes: Option<u64>,
    /// Files so far.
    pub files: u64,
}

impl Watch {
    /// How far it is.
    pub fn progress(&self) -> Progress {
        let of_bytes = self.0.of_bytes.load(Ordering::Relaxed);
        Progress {
            bytes: self.0.bytes.load(Ordering::Relaxed),
            of_bytes: (of_bytes > 0).then_some(of_bytes),
            files: self.0.files.load(Ordering::Relaxed),
        }
    }

    /// Asks for an early end. What runs stops soon after, with nothing published.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::SeqCst);
    }

    /// Whether an early end was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::SeqCst)
    }

    pub(crate) fn still_wanted(&self) -> Result<(), Failure> {
        if self.is_cancelled() {
            return Err(Failure::new(Reason::Cancelled, "it was cancelled before it was done"));
        }
        Ok(())
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_file(&self) {
        self.0.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn expect_bytes(&self, bytes: u64) {
        self.0.of_bytes.store(bytes, Ordering::Relaxed);
    }
}

/// rustic_core tells how many bytes it went over, those of unchanged files included, which no reader
/// of ours sees.
impl ProgressBars for Watch {
    fn progress(&self, kind: ProgressType, _prefix: &str) -> rustic_core::Progress {
        match kind {
            ProgressType::Bytes => rustic_core::Progress::new(Bytes(self.clone())),
            ProgressType::Counter | ProgressType::Spinner => rustic_core::Progress::hidden(),
        }
    }
}

#[derive(Debug)]
struct Bytes(Watch);

impl RusticProgress for Bytes {
    fn is_hidden(&self) -> bool {
        // It would otherwise walk the source a second time, to know its size.
        true
    }
    fn set_length(&self, _: u64) {}
    fn set_title(&self, _: &str) {}
    fn inc(&self, bytes: u64) {
        self.0.add_bytes(bytes);
    }
    fn finish(&self) {}
}
