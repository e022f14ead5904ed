//! A few threads that share a heap of work which grows while they work.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// More do not help a disk; fewer leave it idle while one of them computes a hash.
const MOST_THREADS: usize = 4;
/// Small enough to be in the processor's cache while it is hashed and written.
const BUFFER_BYTES: usize = 256 * 1024;

/// The work that is left.
pub(super) struct Crew<T> {
    heap: Mutex<Heap<T>>,
    changed: Condvar,
}

struct Heap<T> {
    waiting: Vec<T>,
    at_work: usize,
    is_over: bool,
}

impl<T: Send> Crew<T> {
    /// Does the first piece and all that comes of it. What was added last is done first, so that
    /// a tree is finished branch by branch. Each thread has a buffer of its own.
    pub(super) fn work(first: Vec<T>, each: impl Fn(T, &Crew<T>, &mut [u8]) + Sync) {
        let heap = Heap { waiting: first, at_work: 0, is_over: false };
        let crew = Crew { heap: Mutex::new(heap), changed: Condvar::new() };
        std::thread::scope(|scope| {
            for _ in 1..threads() {
                // Without more threads it takes longer, and that is all.
                let _ = std::thread::Builder::new()
                    .name("volume".to_owned())
                    .spawn_scoped(scope, || crew.help(&each));
            }
            crew.help(&each);
        });
    }

    /// Adds work; the last is done first.
    pub(super) fn add(&self, more: impl IntoIterator<Item = T>) {
        self.heap().waiting.extend(more);
        self.changed.notify_all();
    }

    /// Leaves undone what nobody has begun.
    pub(super) fn stop(&self) {
        self.heap().is_over = true;
        self.changed.notify_all();
    }

    fn help(&self, each: &impl Fn(T, &Crew<T>, &mut [u8])) {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Some(piece) = self.next() {
            let _at_work = AtWork(self);
            each(piece, self, &mut buffer);
        }
    }

    fn next(&self) -> Option<T> {
        let mut heap = self.heap();
        loop {
            if heap.is_over {
                return None;
            }
            if let Some(piece) = heap.waiting.pop() {
                heap.at_work += 1;
                return Some(piece);
            }
            if heap.at_work == 0 {
                return None;
            }
            heap = self.changed.wait(heap).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn heap(&self) -> MutexGuard<'_, Heap<T>> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One piece of work; over when dropped, also by a panic, so that the others do not wait for ever.
struct AtWork<'a, T: Send>(&'a Crew<T>);

impl<T: Send> Drop for AtWork<'_, T> {
    fn drop(&mut self) {
        self.0.heap().at_work -= 1;
        self.0.changed.notify_all();
    }
}

/// How many threads are of use here.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, MOST_THREADS)
}
