//! The API server over HTTPS: writes and lists.

use crate::Load;
use crate::https::{Access, Ask, Connection, Protocol};
use crate::measure::{self, Worker};
use crate::widget::{self, CLUSTERS, Widget};
use anyhow::Context;
use bytes::Bytes;
use clap::ValueEnum;
use hyper::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const JSON: &str = "application/json";
const FILLERS: usize = 64;

/// What sort of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// A new object each time.
    Create,
    /// The client's own object, replaced on the condition that it is as it was seen.
    Update,
    /// The client's own object, by server-side apply.
    Apply,
    /// No write: the client's own object is read.
    Get,
}

/// Makes the logical clusters and the kind in each, and waits until it is served.
pub async fn prepare(kubeconfig: &Path) -> anyhow::Result<Value> {
    let mut connection = Access::read(kubeconfig)?.connect(Protocol::Http1).await?;
    for cluster in 0..CLUSTERS {
        let object = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
            "metadata": {"name": format!("bench-{cluster}")},
        });
        let path = "/apis/interlock.dev/v1alpha1/logicalclusters";
        connection.ask(create(path, object.to_string())).await?;
        let path = format!(
            "/clusters/bench-{cluster}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        );
        connection.ask(create(&path, widget::definition().to_string())).await?;
        let path = format!("/clusters/bench-{cluster}/api/v1/namespaces");
        let namespace = json!({"metadata": {"name": "default"}});
        let made = connection.ask(create(&path, namespace.to_string())).await;
        // A cluster may have this one from the start.
        let is_there = |error: &anyhow::Error| error.to_string().contains("AlreadyExists");
        made.map(drop).or_else(|error| if is_there(&error) { Ok(()) } else { Err(error) })?;
        let deadline = Instant::now() + Duration::from_secs(10);
        while connection.get(&widget::path(cluster)).await.is_err() {
            anyhow::ensure!(Instant::now() < deadline, "the kind is not served");
        }
    }
    Ok(json!({"clusters": CLUSTERS}))
}

/// A request that makes something.
pub fn create(path: &str, body: String) -> Ask<'_> {
    Ask { method: Method::POST, path, content_type: JSON, body: Bytes::from(body) }
}

/// Somebody who writes objects.
struct Writer {
    connection: Connection,
    operation: Operation,
    collection: String,
    name: String,
    done: usize,
    resource_version: String,
}

impl Worker for Writer {
    async fn once(&mut self) -> anyhow::Result<()> {
        self.done += 1;
        let own = format!("{}/{}", self.collection, self.name);
        match self.operation {
            Operation::Create => {
                let widget = Widget::new(&format!("{}-{}", self.name, self.done), "");
                let body = widget.body(self.done);
                let (method, path) = (Method::POST, self.collection.as_str());
                self.connection.ask(Ask { method, path, content_type: JSON, body }).await?;
            }
            Operation::Update => {
                let body = Widget::new(&self.name, &self.resource_version).body(self.done);
                let ask = Ask { method: Method::PUT, path: &own, content_type: JSON, body };
                let answer = self.connection.ask(ask).await?;
                self.resource_version = resource_version(&answer)?;
            }
            Operation::Apply => {
                let body = Widget::new(&self.name, "").body(self.done);
                let path = &format!("{own}?fieldManager=applier&force=true");
                let content_type = "application/apply-patch+yaml";
                self.connection
                    .ask(Ask { method: Method::PATCH, path, content_type, body })
                    .await?;
            }
            Operation::Get => drop(self.connection.get(&own).await?),
        }
        Ok(())
    }
}

/// The first one in an object is its own.
pub fn resource_version(object: &[u8]) -> anyhow::Result<String> {
    const FIELD: &[u8] = b"\"resourceVersion\":\"";
    let start = memchr::memmem::find(object, FIELD).context("there is no resourceVersion")?;
    let rest = &object[start + FIELD.len()..];
    let end = memchr::memchr(b'"', rest).context("the answer is cut short")?;
    Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
}

/// Writes, for a while.
pub async fn writes(
    kubeconfig: &Path,
    operation: Operation,
    protocol: Protocol,
    load: Load,
) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let connections = access.connections(protocol, load.writers).await?;
    let mut writers = Vec::new();
    for (index, mut connection) in connections.into_iter().enumerate() {
        let collection = widget::path(index % CLUSTERS);
        let name = format!("w{}-{index}", std::process::id());
        let mut resource_version = String::new();
        if operation != Operation::Create {
            let body = Widget::new(&name, "").body(0);
            let path = collection.as_str();
            let ask = Ask { method: Method::POST, path, content_type: JSON, body };
            resource_version = self::resource_version(&connection.ask(ask).await?)?;
        }
        writers.push(Writer { connection, operation, collection, name, done: 0, resource_version });
    }
    measure::drive(writers, load).await
}

/// Fills up objects, as fast as it goes.
pub async fn fill(kubeconfig: &Path, from: usize, objects: usize) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let mut filling = JoinSet::new();
    let connections = access.connections(Protocol::H2, FILLERS).await?;
    for (filler, mut connection) in connections.into_iter().enumerate() {
        filling.spawn(async move {
            for index in (from + filler..objects).step_by(FILLERS) {
                let body = Widget::new(&format!("object-{index:06}"), "").body(index);
                let path = &widget::path(index % CLUSTERS);
                let ask = Ask { method: Method::POST, path, content_type: JSON, body };
                connection.ask(ask).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = filling.join_next().await {
        done??;
    }
    Ok(json!({"objects": objects}))
}

/// Somebody who lists objects.
struct Reader {
    connection: Connection,
    limit: usize,
    bytes: usize,
}

impl Worker for Reader {
    async fn once(&mut self) -> anyhow::Result<()> {
        let path = format!("{}?limit={}", widget::path(0), self.limit);
        self.bytes = self.connection.get(&path).await?.len();
        Ok(())
    }
}

/// Lists, one after the other.
pub async fn lists(kubeconfig: &Path, pid: u32) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let mut answer = json!({});
    for limit in [500, 10_000] {
        let connection = access.connect(Protocol::Http1).await?;
        let mut reader = Reader { connection, limit, bytes: 0 };
        reader.once().await?;
        answer[format!("list_{limit}_bytes")] = json!(reader.bytes);
        let (median, processor) = measure::median_of(reader, 10, pid).await?;
        answer[format!("list_{limit}_us")] = json!(median);
        answer[format!("list_{limit}_processor_us")] = json!(processor);
    }
    Ok(answer)
}
