//! Our store, called as a library: no network, no encoding, in the process that is measured.

use crate::Load;
use crate::measure::{self, Worker};
use interlock_store::{
    Embedded, Guard, Key, KeyRange, Operation, Options, Revision, Store, Transaction,
};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use tokio::task::JoinSet;

const TABLE: &str = "core/configmaps/-";
const FILLERS: usize = 512;

/// A writer with a key of its own, which it puts on the condition that nobody else did.
struct Writer {
    store: Embedded,
    key: Key,
    last: Option<Revision>,
    fairness: u64,
    value: Vec<u8>,
}

impl Worker for Writer {
    async fn once(&mut self) -> anyhow::Result<()> {
        let guard = match self.last {
            None => Guard::Absent(self.key.clone()),
            Some(last) => Guard::At(self.key.clone(), last),
        };
        let mut transaction =
            Transaction::one(guard, Operation::Put(self.key.clone(), self.value.clone()));
        transaction.fairness = self.fairness;
        self.last = Some(self.store.commit(transaction).await?);
        Ok(())
    }
}

/// Guarded puts.
pub async fn puts(directory: &Path, load: Load) -> anyhow::Result<Value> {
    let store = Embedded::open(directory, Options::default())?;
    let writer = |index: usize| Writer {
        store: store.clone(),
        key: Key::new(TABLE, format!("bench-{index}/default/object")),
        last: None,
        fairness: index as u64,
        value: vec![b'x'; load.bytes],
    };
    let measured = measure::drive((0..load.writers).map(writer).collect(), load).await?;
    store.close().await;
    Ok(measured)
}

/// Fills up a store.
pub async fn fill(directory: &Path, keys: usize) -> anyhow::Result<Value> {
    let store = Embedded::open(directory, Options::default())?;
    let from = usize::try_from(store.stats().keys)?;
    let mut filling = JoinSet::new();
    for filler in 0..FILLERS {
        let store = store.clone();
        filling.spawn(async move {
            for index in (from + filler..keys).step_by(FILLERS) {
                let key = Key::new(TABLE, format!("bench/default/object-{index:06}"));
                let put = Operation::Put(key.clone(), vec![b'x'; 2048]);
                store.commit(Transaction::one(Guard::Absent(key), put)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = filling.join_next().await {
        done??;
    }
    store.close().await;
    Ok(json!({"keys": keys}))
}

struct Reader {
    store: Embedded,
    limit: usize,
}

impl Worker for Reader {
    async fn once(&mut self) -> anyhow::Result<()> {
        let page = self.store.range(KeyRange::prefix(TABLE, "bench/"), None, self.limit).await?;
        // The bytes are read, as somebody who sends them on would.
        let bytes: usize = page.items.iter().map(|item| item.value.bytes().to_vec().len()).sum();
        anyhow::ensure!(bytes > 0, "the store is empty");
        Ok(())
    }
}

/// How long it takes to open, what it takes in memory, and how long ranges take.
pub async fn reads(directory: &Path) -> anyhow::Result<Value> {
    let pid = std::process::id();
    let before = measure::resident_bytes(pid);
    let started = Instant::now();
    let store = Embedded::open(directory, Options::default())?;
    let start = started.elapsed().as_secs_f64();
    let after = measure::resident_bytes(pid);
    let keys = store.stats().keys as f64;
    let mut answer = json!({
        "start_seconds": start,
        "bytes_per_key": (after - before) / keys,
        "keys": keys,
    });
    for limit in [500, 10_000] {
        let reader = Reader { store: store.clone(), limit };
        let (median, processor) = measure::median_of(reader, 20, pid).await?;
        answer[format!("range_{limit}_us")] = json!(median);
        answer[format!("range_{limit}_processor_us")] = json!(processor);
    }
    store.close().await;
    Ok(answer)
}
