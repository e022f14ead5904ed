//! Tests of the store as a whole.

mod crashes;
mod damage;
mod faults;
mod model;
mod promises;
mod sequences;

use crate::{Guard, Key, Operation, Transaction};
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// The same numbers on every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// Awaits all, each polled first in the order given.
pub(crate) async fn all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, result) in &mut waiting {
            if result.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *result = Some(value);
            }
        }
        match waiting.iter().all(|(_, result)| result.is_some()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    waiting.into_iter().filter_map(|(_, result)| result).collect()
}

/// What a future has to say at once, if anything.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future: Pin<Box<_>> = Box::pin(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

pub(crate) fn put(table: &str, row: &str, value: &str) -> Operation {
    Operation::Put(Key::new(table, row), value.as_bytes().to_vec())
}

pub(crate) fn transaction(operations: Vec<Operation>) -> Transaction {
    Transaction { guards: Vec::new(), operations, fairness: 0 }
}

/// A transaction on few keys, so that guards hold now and fail then.
pub(crate) fn random_transaction(random: &mut Random, newest: u64) -> Transaction {
    let mut transaction = Transaction { fairness: 0, ..Transaction::default() };
    for table in ["a", "b", "c"] {
        if random.below(3) == 0 {
            continue;
        }
        let key = Key::new(table, format!("{}/{}", random.below(3), random.below(4)));
        match random.below(4) {
            0 => transaction.guards.push(Guard::Absent(key.clone())),
            1 => {
                let recent = newest.saturating_sub(random.below(12));
                transaction.guards.push(Guard::At(key.clone(), recent));
            }
            _ => {}
        }
        let length = if random.below(10) == 0 { 3000 } else { random.below(100) };
        let value = (0..length).map(|_| random.below(256) as u8).collect();
        transaction.operations.push(match random.below(3) {
            0 => Operation::Delete(key),
            _ => Operation::Put(key, value),
        });
    }
    transaction
}
