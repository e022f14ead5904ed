//! Watch fan-out: one object changes, and many watchers are to know.

use crate::api;
use crate::https::{Access, Ask, Connection, Protocol};
use crate::measure;
use crate::widget::{Homes, Widget};
use anyhow::Context;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// So many watches share a connection, as those of one client-go do.
const WATCHES_PER_CONNECTION: usize = 100;
/// So many changes are made at once when it is asked how many events pass in a second.
const BURST: usize = 50;

/// The writer and its object.
struct Writer {
    connection: Connection,
    path: String,
    name: String,
    sequence: usize,
    resource_version: String,
}

impl Writer {
    async fn write(&mut self) -> anyhow::Result<()> {
        self.sequence += 1;
        let body = Widget::new(&self.name, &self.resource_version).body(self.sequence);
        let path = &format!("{}/{}", self.path, self.name);
        let ask = Ask { method: Method::PUT, path, content_type: "application/json", body };
        self.resource_version = api::resource_version(&self.connection.ask(ask).await?)?;
        Ok(())
    }
}

/// Follows a watch, and says of each event when it came.
async fn watch(mut body: Incoming, seen: mpsc::UnboundedSender<Instant>) {
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref() else { continue };
        let now = Instant::now();
        for _ in memchr::memchr_iter(b'\n', data) {
            if seen.send(now).is_err() {
                return;
            }
        }
    }
}

/// First one change after the other, each once all have seen the last; then many at once.
pub async fn run(
    kubeconfig: &Path,
    homes: Homes,
    watchers: usize,
    rounds: usize,
    pids: &[u32],
) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let (name, path) = (format!("f{}", std::process::id()), homes.path(0));
    let mut connection = access.connect(Protocol::Http1).await?;
    let body = Widget::new(&name, "").body(0);
    let ask = Ask { method: Method::POST, path: &path, content_type: "application/json", body };
    let from = api::resource_version(&connection.ask(ask).await?)?;
    let resource_version = from.clone();
    let mut writer = Writer { connection, path: path.clone(), name, sequence: 0, resource_version };
    let (seen, mut events) = mpsc::unbounded_channel();
    let mut watching: Option<Connection> = None;
    for index in 0..watchers {
        let shared = watching.as_ref().and_then(Connection::another);
        let mut connection = match shared.filter(|_| index % WATCHES_PER_CONNECTION != 0) {
            Some(shared) => shared,
            None => access.connect(Protocol::H2).await?,
        };
        let path = &format!("{path}?watch=true&resourceVersion={from}");
        let (content_type, body) = ("application/json", Bytes::new());
        let response =
            connection.send(Ask { method: Method::GET, path, content_type, body }).await?;
        anyhow::ensure!(response.status().is_success(), "no watch: {}", response.status());
        tokio::spawn(watch(response.into_body(), seen.clone()));
        watching = Some(connection);
    }
    let (mut to_events, mut to_answers, mut whole) = (Vec::new(), Vec::new(), Duration::ZERO);
    let processor_seconds = || pids.iter().copied().map(measure::processor_seconds).sum::<f64>();
    let processor_before = processor_seconds();
    for _ in 0..rounds {
        let started = Instant::now();
        writer.write().await?;
        to_answers.push(started.elapsed());
        for _ in 0..watchers {
            to_events.push(events.recv().await.context("a watch ended")? - started);
        }
        whole += started.elapsed();
    }
    let processor = processor_seconds() - processor_before;
    let started = Instant::now();
    for _ in 0..BURST {
        writer.write().await?;
    }
    for _ in 0..watchers * BURST {
        events.recv().await.context("a watch ended")?;
    }
    let burst = started.elapsed();
    let ((p50, p99), (answer, _)) =
        (measure::percentiles(&mut to_events), measure::percentiles(&mut to_answers));
    Ok(json!({
        "event_p50_us": p50,
        "event_p99_us": p99,
        "answer_p50_us": answer,
        "round_us": whole.as_secs_f64() * 1e6 / rounds as f64,
        "events_per_second": (watchers * BURST) as f64 / burst.as_secs_f64(),
        "processor_us": processor * 1e6 / (rounds * watchers) as f64,
    }))
}
