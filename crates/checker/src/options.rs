//! How a check is carried out.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Told how far an exploration is.
pub type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// How a check is carried out.
#[derive(Clone)]
pub struct Options {
    /// Threads that explore.
    pub workers: usize,
    /// Stop at the first violation, as TLC does, instead of exploring everything.
    pub first: bool,
    /// Check only the promises of these names; all when empty.
    pub only: Vec<String>,
    /// Whether temporal properties are checked.
    pub liveness: Liveness,
    /// Explore one state for each set of images under the model's symmetries. Safety only.
    pub symmetry: bool,
    /// Keep the free flags in every state instead of leaving them out.
    pub plain: bool,
    /// Of the mutants, only the one of this name; all when none is named.
    pub mutant: Option<String>,
    /// Know states by 64-bit fingerprints and forget them once they are expanded: less memory for
    /// wide states, and small odds, which are reported, that two are taken for one. Safety only.
    pub fingerprints: bool,
    /// Explore only this many levels.
    pub max_depth: Option<u32>,
    /// Bytes that the states may take.
    pub max_memory: Option<usize>,
    /// Where to keep what was explored when it cannot be finished, and where to go on from.
    pub checkpoint: Option<PathBuf>,
    /// Go on from the checkpoint.
    pub resume: bool,
    /// Set to end the check early.
    pub stop: Arc<AtomicBool>,
    /// Told twice a second how far the exploration is.
    pub progress: Option<OnProgress>,
}

/// Whether temporal properties are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// When the model has some and its states are not too many for the graph.
    Automatic,
    /// Always.
    On,
    /// Never.
    Off,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            first: false,
            only: Vec::new(),
            liveness: Liveness::Automatic,
            symmetry: false,
            plain: false,
            mutant: None,
            fingerprints: false,
            max_depth: None,
            max_memory: None,
            checkpoint: None,
            resume: false,
            stop: Arc::new(AtomicBool::new(false)),
            progress: None,
        }
    }
}

impl Options {
    /// Whether somebody asked to end early.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether a promise of this name is to be checked.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// How far an exploration is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// States kept so far.
    pub stored: u64,
    /// States found and not yet expanded.
    pub queued: u64,
    /// Steps taken so far.
    pub transitions: u64,
    /// The level being expanded.
    pub depth: u32,
    /// Bytes that the states take.
    pub bytes: u64,
    /// Time since the start.
    pub elapsed: Duration,
    /// How many full states each kept one stands for, by its flags.
    pub multiplier: u64,
}
