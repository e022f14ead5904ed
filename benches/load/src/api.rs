//! The API server over HTTPS: writes and lists.

use crate::Load;
use crate::https::{Access, Ask, Connection, Protocol};
use crate::measure::{self, Worker};
use crate::widget::{self, HOMES, Homes, Widget};
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
    /// One number of the client's own object, by a merge patch.
    Patch,
    /// No write: the client's own object is read.
    Get,
    /// No write: a hundred objects are listed.
    List,
    /// An object that was made before.
    Delete,
}

/// So many objects a client deletes at most.
const DELETES: usize = 100;

/// Makes the logical clusters, or namespaces, and the kind in each, and waits until it is served.
pub async fn prepare(kubeconfig: &Path, homes: Homes) -> anyhow::Result<Value> {
    let mut connection = Access::read(kubeconfig)?.connect(Protocol::Http1).await?;
    for home in 0..HOMES {
        if homes == Homes::Clusters {
            let object = json!({
                "apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
                "metadata": {"name": format!("bench-{home}")},
            });
            let path = "/apis/interlock.dev/v1alpha1/logicalclusters";
            connection.ask(create(path, object.to_string())).await?;
        }
        let root = homes.root(home);
        let path = format!("{root}/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
        make(&mut connection, &path, &widget::definition()).await?;
        let path = format!("{root}/api/v1/namespaces");
        let namespace = json!({"metadata": {"name": homes.namespace(home)}});
        make(&mut connection, &path, &namespace).await?;
        let deadline = Instant::now() + Duration::from_secs(30);
        while connection.get(&homes.path(home)).await.is_err() {
            anyhow::ensure!(Instant::now() < deadline, "the kind is not served");
        }
    }
    Ok(json!({"homes": HOMES}))
}

/// Makes something that may be there already.
async fn make(connection: &mut Connection, path: &str, object: &Value) -> anyhow::Result<()> {
    let made = connection.ask(create(path, object.to_string())).await;
    let is_there = |error: &anyhow::Error| error.to_string().contains("AlreadyExists");
    made.map(drop).or_else(|error| if is_there(&error) { Ok(()) } else { Err(error) })
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
            Operation::Patch => {
                let body = Bytes::from(format!(r#"{{"spec":{{"sequence":{}}}}}"#, self.done));
                let (method, content_type) = (Method::PATCH, "application/merge-patch+json");
                self.connection.ask(Ask { method, path: &own, content_type, body }).await?;
            }
            Operation::Get => drop(self.connection.get(&own).await?),
            Operation::List => {
                drop(self.connection.get(&format!("{}?limit=100", self.collection)).await?);
            }
            Operation::Delete => {
                let (method, body) = (Method::DELETE, Bytes::new());
                let path = &format!("{own}-{}", self.done);
                self.connection.ask(Ask { method, path, content_type: JSON, body }).await?;
            }
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

/// One operation, for a while; deletions until nothing is left to delete.
pub async fn writes(
    kubeconfig: &Path,
    homes: Homes,
    operation: Operation,
    protocol: Protocol,
    load: Load,
) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let connections = access.connections(protocol, load.writers).await?;
    let mut writers = Vec::new();
    for (index, mut connection) in connections.into_iter().enumerate() {
        let collection = homes.path(index % HOMES);
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
    if operation != Operation::Delete {
        return measure::drive(writers, load).await;
    }
    let makers =
        writers.into_iter().map(|writer| Writer { operation: Operation::Create, ..writer });
    let (writers, _) = measure::count(makers.collect(), DELETES, &[]).await?;
    let deleters = writers.into_iter().map(|writer| Writer { operation, done: 0, ..writer });
    Ok(measure::count(deleters.collect(), DELETES, &load.pid).await?.1)
}

/// Fills up objects, as fast as it goes.
pub async fn fill(
    kubeconfig: &Path,
    homes: Homes,
    from: usize,
    objects: usize,
) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let mut filling = JoinSet::new();
    let connections = access.connections(Protocol::H2, FILLERS).await?;
    for (filler, mut connection) in connections.into_iter().enumerate() {
        filling.spawn(async move {
            for index in (from + filler..objects).step_by(FILLERS) {
                let body = Widget::new(&format!("object-{index:06}"), "").body(index);
                let path = &homes.path(index % HOMES);
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
    path: String,
    bytes: usize,
}

impl Worker for Reader {
    async fn once(&mut self) -> anyhow::Result<()> {
        self.bytes = self.connection.get(&self.path).await?.len();
        Ok(())
    }
}

/// Lists, one after the other.
pub async fn lists(kubeconfig: &Path, homes: Homes, pid: u32) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let mut answer = json!({});
    for limit in [500, 10_000] {
        let connection = access.connect(Protocol::Http1).await?;
        let path = format!("{}?limit={limit}", homes.path(0));
        let mut reader = Reader { connection, path, bytes: 0 };
        reader.once().await?;
        answer[format!("list_{limit}_bytes")] = json!(reader.bytes);
        let (median, processor) = measure::median_of(reader, 10, pid).await?;
        answer[format!("list_{limit}_us")] = json!(median);
        answer[format!("list_{limit}_processor_us")] = json!(processor);
    }
    Ok(answer)
}
