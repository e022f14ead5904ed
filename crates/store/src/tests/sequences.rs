//! Random sequences of operations: the store answers as the model does.

use super::model::{Model, happened, outcome, page};
use super::{Random, all, now, random_transaction};
use crate::disk::simulated::{Fault, SimulatedDisk};
use crate::{Changes, Cursor, Embedded, KeyRange, Options, Revision, Store};
use std::sync::Arc;

/// Small enough that segments, checkpoints and the history's budget all come into play.
pub(crate) fn small() -> Options {
    Options {
        segment_bytes: 16 << 10,
        checkpoint_bytes: 8 << 10,
        history_bytes: 1 << 30,
        reserve_bytes: 0,
        waiting_transactions: 100,
    }
}

struct Watcher {
    cursor: Cursor,
    range: KeyRange,
    seen: Revision,
}

struct Run {
    disk: SimulatedDisk,
    store: Embedded,
    model: Model,
    watchers: Vec<Watcher>,
    random: Random,
}

fn open(disk: &SimulatedDisk) -> Embedded {
    Embedded::on(Arc::new(disk.clone()), None, small()).expect("the disk is in order")
}

fn random_range(random: &mut Random) -> KeyRange {
    let table = ["a", "b", "c", "nobody"][random.below(4) as usize];
    let prefix = ["", "0", "1/", "2/3", "x"][random.below(5) as usize];
    let range = KeyRange::prefix(table, prefix);
    match random.below(3) {
        0 => range.after(format!("{}/{}", random.below(3), random.below(4))),
        _ => range,
    }
}

impl Run {
    async fn step(&mut self) {
        match self.random.below(100) {
            0..50 => self.commit().await,
            50..65 => self.read().await,
            65..72 => self.watch().await,
            72..85 => self.look(),
            85..92 => self.compact().await,
            92..96 => self.store.checkpoint().await.expect("the disk is in order"),
            _ => self.reopen().await,
        }
    }

    async fn commit(&mut self) {
        let count = 1 + self.random.below(5);
        let newest = self.model.newest();
        let transactions: Vec<_> =
            (0..count).map(|_| random_transaction(&mut self.random, newest)).collect();
        let commits = transactions.iter().map(|it| self.store.commit(it.clone())).collect();
        let answers = all(commits).await;
        for (transaction, answer) in transactions.iter().zip(&answers) {
            let expected = self.model.commit(transaction);
            assert_eq!(outcome(answer), Some(expected), "{transaction:?} {answer:?}");
        }
        assert_eq!(self.store.newest().await, Ok(self.model.newest()));
    }

    async fn read(&mut self) {
        let range = match self.random.below(10) {
            0 => KeyRange::everything(),
            _ => random_range(&mut self.random),
        };
        let at = match self.random.below(3) {
            0 => None,
            _ => Some((self.model.newest() + 2).saturating_sub(self.random.below(40))),
        };
        let limit = [0, 1, 3, usize::MAX][self.random.below(4) as usize];
        let expected = self.model.range(&range, at, limit);
        let found = self.store.range(range.clone(), at, limit).await;
        assert_eq!(found.map(|it| page(&it)), expected, "{range:?} at {at:?}");
    }

    async fn watch(&mut self) {
        let range = match self.random.below(3) {
            0 => KeyRange::everything(),
            _ => random_range(&mut self.random),
        };
        let after = (self.model.newest() + 1).saturating_sub(self.random.below(30));
        let expected = self.model.range(&range, Some(after), 0).map(|_| ());
        match self.store.watch(range.clone(), after).await {
            Err(error) => assert_eq!(Err(error), expected),
            Ok(cursor) => {
                assert_eq!(expected, Ok(()));
                self.watchers.push(Watcher { cursor, range, seen: after });
            }
        }
    }

    fn look(&mut self) {
        for watcher in &mut self.watchers {
            let expected = self.model.changes_after(&watcher.range, watcher.seen);
            let newest = self.model.newest();
            let progress = watcher.cursor.progress();
            match expected.is_empty() {
                true => assert_eq!(progress, newest),
                false => assert!(progress < expected[0].revision),
            }
            let batch = now(watcher.cursor.next());
            if expected.is_empty() {
                assert!(batch.is_none());
            } else {
                let batch = batch.expect("there are changes").expect("none of them is compacted");
                let found: Vec<_> = batch.changes.iter().map(happened).collect();
                assert_eq!(found, expected);
                assert_eq!(batch.seen, newest);
            }
            watcher.seen = newest;
        }
        if self.watchers.len() > 12 {
            self.watchers.clear();
        }
    }

    async fn compact(&mut self) {
        // Watchers that lag behind would get an error; here they are to see everything.
        self.look();
        let floor = self.model.newest().saturating_sub(self.random.below(30));
        self.store.compact(floor).await.expect("it is not in the future");
        self.model.floor = self.model.floor.max(floor);
    }

    async fn reopen(&mut self) {
        self.store.close().await;
        let resumed: Vec<_> =
            self.watchers.drain(..).map(|watcher| (watcher.range, watcher.seen)).collect();
        let checkpoint = self.store.stats().checkpoint;
        self.store = open(&self.disk);
        assert_eq!(self.store.recovery().torn, None);
        assert_eq!(self.store.recovery().revision, self.model.newest());
        // What was compacted after the checkpoint can be read again, and that does no harm.
        assert_eq!(self.store.floor(), checkpoint);
        assert!(self.store.floor() <= self.model.floor);
        self.model.floor = self.store.floor();
        for (range, seen) in resumed {
            if let Ok(cursor) = self.store.watch(range.clone(), seen).await {
                self.watchers.push(Watcher { cursor, range, seen });
            }
        }
    }
}

#[tokio::test]
async fn any_sequence_of_operations_comes_to_what_the_model_says() {
    for seed in 1..=40_u64 {
        let disk = SimulatedDisk::new(Fault::None);
        let store = open(&disk);
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut run = Run { disk, store, model: Model::new(), watchers: Vec::new(), random };
        for _ in 0..250 {
            run.step().await;
        }
        let stats = run.store.stats();
        let alive = run.model.states.last().expect("there is always one");
        assert_eq!(stats.keys, alive.len() as u64);
        let bytes: usize = alive.iter().map(|(key, is)| key.row.len() + is.value.len()).sum();
        assert_eq!(stats.live_bytes, bytes as u64);
        run.look();
        run.store.compact(run.model.newest()).await.expect("it is not in the future");
        assert_eq!(run.store.stats().history_bytes, 0);
    }
}
