//! Placed namespaces: how fast they find their place, how fast they move, and what each takes.

use crate::https::{Access, Ask, Connection, Protocol};
use crate::measure;
use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const NAMESPACES: &str = "/api/v1/namespaces";
const GRANTS: &str = "/apis/interlock.dev/v1alpha1/grants";
const CLIENTS: usize = 16;
/// How long the last of them may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often it is looked whether all are there; a look at ten thousand is work, too.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// How long a fleet at rest is watched.
const REST: Duration = Duration::from_secs(5);

/// Makes placed namespaces from one number up to another, and waits until all run.
pub async fn place(kubeconfig: &Path, from: usize, to: usize, pid: u32) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let mut looking = access.connect(Protocol::Http1).await?;
    let (bytes, processor) = (measure::resident_bytes(pid), measure::processor_seconds(pid));
    let began = Instant::now();
    for_each(&access, (from, to), |name| {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"interlock.dev/placed": "true"}},
        });
        (Method::POST, NAMESPACES.to_owned(), "application/json", object)
    })
    .await?;
    let is_there = |grant: &Value| runs(grant);
    wait_for(&mut looking, (to, began), is_there).await?;
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
    let mut looking = access.connect(Protocol::Http1).await?;
    let processor = measure::processor_seconds(pid);
    let version = version(&mut looking).await?;
    let began = Instant::now();
    let cluster = to.to_owned();
    for_each(&access, (0, moves), move |name| {
        let patch = json!({"metadata": {"annotations": {"interlock.dev/cluster": cluster}}});
        let path = format!("{NAMESPACES}/{name}");
        (Method::PATCH, path, "application/merge-patch+json", patch)
    })
    .await?;
    let wished = |grant: &Value| {
        let name = grant["spec"]["namespace"]["name"].as_str().unwrap_or_default();
        let number = name.strip_prefix("ns-").and_then(|number| number.parse::<usize>().ok());
        number.is_some_and(|number| number < moves)
            && grant["status"]["owner"]["name"] == to
            && runs(grant)
    };
    wait_for(&mut looking, (moves, began), wished).await?;
    let seconds = began.elapsed().as_secs_f64();
    let writes = self::version(&mut looking).await? - version;
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
    let mut looking = access.connect(Protocol::Http1).await?;
    let before = (version(&mut looking).await?, measure::processor_seconds(pid));
    tokio::time::sleep(REST).await;
    let after = (version(&mut looking).await?, measure::processor_seconds(pid));
    Ok(json!({
        "writes_per_second": (after.0 - before.0) / REST.as_secs_f64(),
        "processor_us": (after.1 - before.1) * 1e6 / REST.as_secs_f64(),
    }))
}

fn runs(grant: &Value) -> bool {
    let conditions = grant["status"]["conditions"].as_array().into_iter().flatten();
    grant["status"]["phase"] == "Granted"
        && conditions.into_iter().any(|it| it["type"] == "Running" && it["status"] == "True")
}

/// The revision of the store: each write is one more.
async fn version(connection: &mut Connection) -> anyhow::Result<f64> {
    let list: Value = serde_json::from_slice(&connection.get(&format!("{GRANTS}?limit=1")).await?)?;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    Ok(version.parse()?)
}

async fn wait_for(
    connection: &mut Connection,
    (many, began): (usize, Instant),
    is_meant: impl Fn(&Value) -> bool,
) -> anyhow::Result<()> {
    loop {
        let list: Value = serde_json::from_slice(&connection.get(GRANTS).await?)?;
        let grants = list["items"].as_array().into_iter().flatten();
        let there = grants.filter(|grant| is_meant(grant)).count();
        if there >= many {
            return Ok(());
        }
        anyhow::ensure!(began.elapsed() < PATIENCE, "{there} of {many} are there");
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

async fn for_each(
    access: &Access,
    (from, to): (usize, usize),
    request: impl Fn(&str) -> (Method, String, &'static str, Value) + Clone + Send + 'static,
) -> anyhow::Result<()> {
    let mut working = JoinSet::new();
    let connections = access.connections(Protocol::H2, CLIENTS).await?;
    for (client, mut connection) in connections.into_iter().enumerate() {
        let request = request.clone();
        working.spawn(async move {
            for number in (from + client..to).step_by(CLIENTS) {
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
