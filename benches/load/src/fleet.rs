//! Placed namespaces: how fast they find their place, how fast they move, and what each takes.

use crate::https::{Access, Ask, Protocol};
use crate::measure;
use anyhow::Context;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

const NAMESPACES: &str = "/api/v1/namespaces";
const GRANTS: &str = "/apis/interlock.dev/v1alpha1/grants";
const CLIENTS: usize = 16;
/// How long the last of them may take.
const TIMEOUT: Duration = Duration::from_secs(300);
/// How long what is left of the moves may take before a fleet is called at rest.
const SETTLING: Duration = Duration::from_secs(10);
/// How long a fleet at rest is watched: two rounds of its heartbeats.
const REST: Duration = Duration::from_secs(20);

/// Makes placed namespaces from one number up to another, and waits until all run.
pub async fn place(kubeconfig: &Path, from: usize, to: usize, pid: u32) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let hears = follow(&access, from..to, runs).await?;
    let (bytes, processor) = (measure::resident_bytes(pid), measure::processor_seconds(pid));
    let began = Instant::now();
    for_each(&access, from..to, |name| {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"interlock.dev/placed": "true"}},
        });
        (Method::POST, NAMESPACES.to_owned(), "application/json", object)
    })
    .await?;
    wait_for(hears, to - from).await?;
    let seconds = began.elapsed().as_secs_f64();
    let placed = (to - from) as f64;
    Ok(json!({
        "placed_per_second": placed / seconds,
        "processor_us": (measure::processor_seconds(pid) - processor) * 1e6 / placed,
        "bytes": (measure::resident_bytes(pid) - bytes) / placed,
    }))
}

/// Moves so many namespaces at once to one cluster, and waits until all run there.
pub async fn shift(kubeconfig: &Path, moves: usize, to: &str, pid: u32) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let version = version(&access).await?;
    let cluster = to.to_owned();
    let desired = move |grant: &Value| grant["status"]["owner"]["name"] == cluster && runs(grant);
    let hears = follow(&access, 0..moves, desired).await?;
    let processor = measure::processor_seconds(pid);
    let began = Instant::now();
    ask_for(&access, 0..moves, to).await?;
    wait_for(hears, moves).await?;
    let seconds = began.elapsed().as_secs_f64();
    let writes = self::version(&access).await? - version;
    Ok(json!({
        "seconds": seconds,
        "moves_per_second": moves as f64 / seconds,
        "processor_us": (measure::processor_seconds(pid) - processor) * 1e6 / moves as f64,
        "writes": writes / moves as f64,
    }))
}

/// Watches a fleet at rest: what it writes and what it costs, in a second.
pub async fn rest(kubeconfig: &Path, pid: u32) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    tokio::time::sleep(SETTLING).await;
    let before = (version(&access).await?, measure::processor_seconds(pid));
    tokio::time::sleep(REST).await;
    let after = (version(&access).await?, measure::processor_seconds(pid));
    Ok(json!({
        "writes_per_second": (after.0 - before.0) / REST.as_secs_f64(),
        "processor_us": (after.1 - before.1) * 1e6 / REST.as_secs_f64(),
    }))
}

/// Asks for another cluster for the first namespace of a fleet that has just started, and waits until
/// it is decided: the controllers have seen everything by then. Beside it, what it takes to list all
/// that they have to see for that.
pub async fn decide(kubeconfig: &Path, to: &str) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let began = Instant::now();
    ask_for(&access, 0..1, to).await?;
    let cluster = to.to_owned();
    let decided = move |grant: &Value| grant["spec"]["target"]["name"] == cluster;
    let hears = follow(&access, 0..1, decided).await?;
    wait_for(hears, 1).await?;
    let decided = began.elapsed();
    let mut connection = access.connect(Protocol::Http1).await?;
    let began = Instant::now();
    connection.get(NAMESPACES).await?;
    connection.get(GRANTS).await?;
    Ok(json!({
        "decided_us": decided.as_secs_f64() * 1e6,
        "list_us": began.elapsed().as_secs_f64() * 1e6,
    }))
}

fn runs(grant: &Value) -> bool {
    let conditions = grant["status"]["conditions"].as_array().into_iter().flatten();
    grant["status"]["phase"] == "Granted"
        && conditions.into_iter().any(|it| it["type"] == "Running" && it["status"] == "True")
}

/// The revision of the store: each write is one more.
async fn version(access: &Access) -> anyhow::Result<f64> {
    let mut connection = access.connect(Protocol::Http1).await?;
    let list = connection.get(&format!("{GRANTS}?limit=1")).await?;
    let list: Value = serde_json::from_slice(&list)?;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    Ok(version.parse()?)
}

/// Follows the grants, and says how many of those that are numbered so are as they are meant to be.
/// They are listed once: a list of ten thousand, again and again, would be what is measured.
async fn follow(
    access: &Access,
    numbers: Range<usize>,
    is_meant: impl Fn(&Value) -> bool + Send + 'static,
) -> anyhow::Result<watch::Receiver<usize>> {
    let mut connection = access.connect(Protocol::H2).await?;
    let list: Value = serde_json::from_slice(&connection.get(GRANTS).await?)?;
    let from = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let is_asked_for = move |number: &usize| numbers.contains(number);
    let all = list["items"].as_array().into_iter().flatten();
    let meant = all.filter(|grant| is_meant(grant)).filter_map(number_of);
    let mut there: HashSet<usize> = meant.filter(&is_asked_for).collect();
    let path = format!("{GRANTS}?watch=true&resourceVersion={from}");
    let ask = Ask {
        method: Method::GET,
        path: &path,
        content_type: "application/json",
        body: Bytes::new(),
    };
    let response = connection.send(ask).await?;
    anyhow::ensure!(response.status().is_success(), "no watch: {}", response.status());
    let (says, hears) = watch::channel(there.len());
    tokio::spawn(async move {
        let _open = connection;
        let mut body = response.into_body();
        let mut rest = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            rest.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            while let Some(end_of_line) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end_of_line).collect();
                let Ok(event) = serde_json::from_slice::<Value>(&line) else { return };
                let grant = &event["object"];
                let Some(number) = number_of(grant).filter(&is_asked_for) else { continue };
                match is_meant(grant) {
                    true => there.insert(number),
                    false => there.remove(&number),
                };
            }
            says.send_replace(there.len());
        }
    });
    Ok(hears)
}

fn number_of(grant: &Value) -> Option<usize> {
    let name = grant["spec"]["namespace"]["name"].as_str()?;
    name.strip_prefix("ns-")?.parse().ok()
}

async fn wait_for(mut hears: watch::Receiver<usize>, many: usize) -> anyhow::Result<()> {
    let all = async { hears.wait_for(|there| *there >= many).await.map(drop) };
    let waited = tokio::time::timeout(TIMEOUT, all).await;
    anyhow::ensure!(waited.is_ok(), "{} of {many} are there", *hears.borrow());
    waited?.context("the watch ended")
}

/// Has the namespaces that are numbered so ask for a cluster.
async fn ask_for(access: &Access, numbers: Range<usize>, cluster: &str) -> anyhow::Result<()> {
    let cluster = cluster.to_owned();
    for_each(access, numbers, move |name| {
        let patch = json!({"metadata": {"annotations": {"interlock.dev/cluster": cluster}}});
        let path = format!("{NAMESPACES}/{name}");
        (Method::PATCH, path, "application/merge-patch+json", patch)
    })
    .await
}

async fn for_each(
    access: &Access,
    numbers: Range<usize>,
    request: impl Fn(&str) -> (Method, String, &'static str, Value) + Clone + Send + 'static,
) -> anyhow::Result<()> {
    let mut working = JoinSet::new();
    let connections = access.connections(Protocol::H2, CLIENTS).await?;
    for (client, mut connection) in connections.into_iter().enumerate() {
        let (request, numbers) = (request.clone(), numbers.clone());
        working.spawn(async move {
            for number in numbers.skip(client).step_by(CLIENTS) {
                let (method, path, content_type, body) = request(&format!("ns-{number}"));
                let body = Bytes::from(body.to_string());
                connection.ask(Ask { method, path: &path, content_type, body }).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = working.join_next().await {
        done??;
    }
    Ok(())
}
