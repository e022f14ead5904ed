//! Work that is cut into tasks, on as many threads as were asked for.

use crate::explore::hold;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does every task once, whichever worker is free; the results are in the order of the tasks.
pub(crate) fn each<T: Send>(
    workers: usize,
    tasks: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, tasks.max(1)) {
            scope.spawn(|| {
                loop {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    if task >= tasks {
                        return;
                    }
                    let result = work(task);
                    hold(&done).push((task, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(task, _)| *task);
    done.into_iter().map(|(_, result)| result).collect()
}
