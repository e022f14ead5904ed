//! etcd over gRPC, as kube-apiserver talks to it.

use crate::Load;
use crate::grpc::Channel;
use crate::measure::{self, Worker};
use crate::protobuf;
use anyhow::ensure;
use serde_json::{Value, json};

const TRANSACT: &str = "/etcdserverpb.KV/Txn";
const RANGE: &str = "/etcdserverpb.KV/Range";
/// So many writers share a connection.
const WRITERS_PER_CONNECTION: usize = 8;
/// So many keys are filled in at once; etcd takes 128.
const FILLED_AT_ONCE: usize = 100;

/// A writer with a key of its own, which it puts on the condition that nobody else did.
struct Writer {
    channel: Channel,
    key: String,
    last: u64,
    value: Vec<u8>,
}

impl Worker for Writer {
    async fn once(&mut self) -> anyhow::Result<()> {
        let message = protobuf::guarded_put(self.key.as_bytes(), self.last, &self.value);
        let answer = self.channel.call(TRANSACT, &message.0).await?;
        let answer = protobuf::transaction_answer(&answer)?;
        ensure!(answer.succeeded, "somebody else wrote {}", self.key);
        self.last = answer.revision;
        Ok(())
    }
}

/// Guarded puts.
pub async fn puts(address: &str, load: Load) -> anyhow::Result<Value> {
    let connections = load.writers.div_ceil(WRITERS_PER_CONNECTION);
    let mut channels = Vec::new();
    for _ in 0..connections {
        channels.push(Channel::connect(address).await?);
    }
    // Each run has keys of its own: what an earlier one wrote is not in the way.
    let run = std::process::id();
    let writer = |index: usize| Writer {
        channel: channels[index % connections].clone(),
        key: format!("/registry/bench-{run}-{index}/default/object"),
        last: 0,
        value: vec![b'x'; load.bytes],
    };
    measure::drive((0..load.writers).map(writer).collect(), load).await
}

/// Fills up keys.
pub async fn fill(address: &str, from: usize, keys: usize) -> anyhow::Result<Value> {
    let mut channel = Channel::connect(address).await?;
    let value = vec![b'x'; 2048];
    for first in (from..keys).step_by(FILLED_AT_ONCE) {
        let some = first..keys.min(first + FILLED_AT_ONCE);
        let pairs =
            some.map(|index| (format!("/fill/bench/default/object-{index:06}"), &value[..]));
        channel.call(TRANSACT, &protobuf::puts(pairs).0).await?;
    }
    Ok(json!({"keys": keys}))
}

struct Reader {
    channel: Channel,
    limit: usize,
}

impl Worker for Reader {
    async fn once(&mut self) -> anyhow::Result<()> {
        let message = protobuf::range(b"/fill/", b"/fill0", self.limit as u64);
        let answer = self.channel.call(RANGE, &message.0).await?;
        ensure!(protobuf::range_answer(&answer)?.keys > 0, "etcd is empty");
        Ok(())
    }
}

/// How long ranges take.
pub async fn reads(address: &str) -> anyhow::Result<Value> {
    let channel = Channel::connect(address).await?;
    let mut answer = json!({});
    for limit in [500, 10_000] {
        let reader = Reader { channel: channel.clone(), limit };
        let (median, _) = measure::median_of(reader, 10, std::process::id()).await?;
        answer[format!("range_{limit}_us")] = json!(median);
    }
    Ok(answer)
}
