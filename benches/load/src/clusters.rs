//! Empty logical clusters: how fast they come and go, and what each takes.

use crate::api;
use crate::https::{Access, Ask, Connection, Protocol};
use crate::measure;
use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const PATH: &str = "/apis/interlock.dev/v1alpha1/logicalclusters";
const CLIENTS: usize = 64;
/// How long the last of them may take to go.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Creates and deletes them.
pub async fn run(kubeconfig: &Path, clusters: usize, pid: u32) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let mut looking = access.connect(Protocol::Http1).await?;
    let others = count(&mut looking).await?;
    let before = measure::resident_bytes(pid);
    let started = Instant::now();
    each(&access, clusters, Method::POST).await?;
    let created = started.elapsed().as_secs_f64();
    let after = measure::resident_bytes(pid);
    let processor_before = measure::processor_seconds(pid);
    let started = Instant::now();
    each(&access, clusters, Method::DELETE).await?;
    while count(&mut looking).await? > others {
        anyhow::ensure!(started.elapsed() < TIMEOUT, "clusters do not go");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let deleted = started.elapsed().as_secs_f64();
    let processor = measure::processor_seconds(pid) - processor_before;
    Ok(json!({
        "created_per_second": clusters as f64 / created,
        "bytes": (after - before) / clusters as f64,
        "deleted_seconds": deleted,
        "deletion_processor_us": processor * 1e6 / clusters as f64,
    }))
}

async fn count(connection: &mut Connection) -> anyhow::Result<usize> {
    let list: Value = serde_json::from_slice(&connection.get(PATH).await?)?;
    Ok(list["items"].as_array().map_or(0, Vec::len))
}

async fn each(access: &Access, clusters: usize, method: Method) -> anyhow::Result<()> {
    let mut working = JoinSet::new();
    let connections = access.connections(Protocol::H2, CLIENTS).await?;
    for (client, mut connection) in connections.into_iter().enumerate() {
        let method = method.clone();
        working.spawn(async move {
            for index in (client..clusters).step_by(CLIENTS) {
                let name = format!("empty-{index}");
                if method == Method::DELETE {
                    let path = &format!("{PATH}/{name}");
                    let (method, content_type) = (method.clone(), "application/json");
                    let body = Bytes::new();
                    connection.ask(Ask { method, path, content_type, body }).await?;
                    continue;
                }
                let object = json!({
                    "apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
                    "metadata": {"name": name},
                });
                connection.ask(api::create(PATH, object.to_string())).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = working.join_next().await {
        done??;
    }
    Ok(())
}
