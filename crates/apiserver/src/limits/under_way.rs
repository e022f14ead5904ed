//! Bytes of writes that are under way: they count until the store counts them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of all writes of one cluster that are under way.
#[derive(Debug, Default)]
pub struct UnderWay(Arc<AtomicU64>);

/// One write that is under way, until this is dropped.
#[derive(Debug)]
pub struct Writing {
    all: Arc<AtomicU64>,
    bytes: u64,
}

impl UnderWay {
    /// Begins a write of so many bytes, and says how many were under way before.
    pub fn begin(&self, bytes: u64) -> (Writing, u64) {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        (Writing { all: Arc::clone(&self.0), bytes }, before)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
