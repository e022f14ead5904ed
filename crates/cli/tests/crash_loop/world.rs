//! What the threads of the test share: which server there is, who rests, and what was acknowledged.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

use crate::harness::TIMEOUT;

/// A small generator of numbers; the seed is printed, so that a run can be repeated.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

#[derive(Default)]
struct Now {
    life: u64,
    address: Option<SocketAddr>,
    may_refuse: bool,
    resting: usize,
    acknowledged: u64,
    is_over: bool,
    has_failed: bool,
}

/// Shared by all threads.
#[derive(Default)]
pub(crate) struct CrashLoop {
    now: Mutex<Now>,
    changed: Condvar,
    sequence: AtomicU64,
}

/// One life of the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    pub(crate) number: u64,
    pub(crate) address: SocketAddr,
}

impl CrashLoop {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().expect("nobody panics with it")
    }

    /// Waits until something is true of the world.
    fn wait(&self, what: &str, is_true: impl Fn(&Now) -> bool) {
        let waited = self
            .changed
            .wait_timeout_while(self.now(), TIMEOUT, |now| !is_true(now) && !now.has_failed)
            .expect("nobody panics with it");
        let (has_failed, is_late) = (waited.0.has_failed, waited.1.timed_out());
        drop(waited);
        assert!(!has_failed, "a writer or a watcher has failed, see above");
        assert!(!is_late, "waited too long until {what}");
    }

    /// A number that no write has had before.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Lets everybody know of a server.
    pub(crate) fn open(&self, address: SocketAddr) {
        let mut now = self.now();
        now.life += 1;
        now.address = Some(address);
        now.may_refuse = false;
        now.resting = 0;
        drop(now);
        self.changed.notify_all();
    }

    /// From now on the server may refuse: it was asked to stop.
    pub(crate) fn let_refuse(&self) {
        self.now().may_refuse = true;
    }

    /// Whether the server was asked to stop.
    pub(crate) fn may_refuse(&self) -> bool {
        self.now().may_refuse
    }

    /// No more writes, until there is another server. Waits until all writers rest.
    pub(crate) fn close(&self, writers: usize) {
        self.now().address = None;
        self.wait("all writers rest", |now| now.resting == writers);
    }

    /// Ends all threads.
    pub(crate) fn end(&self) {
        self.now().is_over = true;
        self.changed.notify_all();
    }

    /// The next life of the server after this one; none when all is over.
    pub(crate) fn next_life(&self, after: u64) -> Option<Life> {
        let waits = |now: &mut Now| !now.is_over && (now.life == after || now.address.is_none());
        let now = self.changed.wait_while(self.now(), waits).expect("nobody panics with it");
        let address = now.address.filter(|_| !now.is_over)?;
        Some(Life { number: now.life, address })
    }

    /// Whether writes go on in this life.
    pub(crate) fn is_open(&self, life: Life) -> bool {
        let now = self.now();
        now.life == life.number && now.address.is_some() && !now.is_over
    }

    /// A writer rests until the next life.
    pub(crate) fn rest(&self) {
        self.now().resting += 1;
        self.changed.notify_all();
    }

    /// A write was acknowledged.
    pub(crate) fn acknowledge(&self) {
        self.now().acknowledged += 1;
        self.changed.notify_all();
    }

    /// Waits until so many more writes were acknowledged.
    pub(crate) fn wait_for_writes(&self, more: u64) {
        let target = self.now().acknowledged + more;
        self.wait("enough was written", |now| now.acknowledged >= target);
    }

    /// How many writes were acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.now().acknowledged
    }
}

/// Tells the others when a thread has failed, so that nobody waits for it.
pub(crate) struct Alarm<'a>(pub(crate) &'a CrashLoop);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.now().has_failed = true;
            self.0.changed.notify_all();
        }
    }
}
