//! What a program says that runs the pods of a logical cluster, or knows where they run, and which program that is.

use crate::status::Status;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// What comes of a question to whoever runs pods.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Status>> + Send>>;

/// A connection in both directions.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<C: AsyncRead + AsyncWrite + Send + Unpin> Connection for C {}

/// Whoever runs the pods of a logical cluster.
///
/// Rights were checked before it is asked, and the container is one of the pod. What it refuses, the client gets
/// as it is.
pub trait PodStreams: Send + Sync + 'static {
    /// What a container wrote, in parts that are made as they are taken. The end of the parts is the end of the
    /// log; if the log is followed, that is when the container has ended.
    fn logs(&self, of: PodContainer, options: LogOptions) -> Answer<mpsc::Receiver<Bytes>>;

    /// Runs a command beside the processes of a container.
    fn exec(&self, of: PodContainer, command: Command) -> Answer<Session>;

    /// What a container writes from now on.
    fn attach(&self, of: PodContainer, wanted: Wanted) -> Answer<Session>;

    /// A connection to a port on which the pod listens. A failure is said to the client in one line.
    fn port_forward(&self, of: PodContainer, port: u16) -> Answer<Box<dyn Connection>>;
}

/// Whoever knows where the pods run that a logical cluster has and does not run: each as a pod of another one.
///
/// It is asked for every single request, after the rights of the client were checked in the cluster that has the pod. They are
/// rights to this very pod and to no other: what it names must have been made from it.
pub trait PodPlaces: Send + Sync + 'static {
    /// Where a pod runs. What it refuses, the client gets as it is.
    fn place(&self, pod: Value) -> Answer<PodPlace>;
}

/// Where a pod of another logical cluster runs, under the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodPlace {
    /// The logical cluster.
    pub cluster: String,
    /// The namespace there.
    pub namespace: String,
    /// The uid of the pod there.
    pub uid: String,
}

/// One container of a pod. For ports it is any of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodContainer {
    /// The namespace.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The uid of the pod.
    pub uid: String,
    /// The name of the container.
    pub container: String,
}

/// Which part of a log is meant, and how it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// What comes later, too.
    pub follow: bool,
    /// The log of the start before the last one.
    pub previous: bool,
    /// Lines that were not written before this.
    pub since: Option<Timestamp>,
    /// Puts the time before each line.
    pub timestamps: bool,
    /// So many lines at the end.
    pub tail_lines: Option<u64>,
    /// So many bytes.
    pub limit_bytes: Option<u64>,
}

/// What a client wants of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// It writes to the command.
    pub stdin: bool,
    /// It reads what the command writes.
    pub stdout: bool,
    /// It reads the errors of the command.
    pub stderr: bool,
    /// The command has a terminal.
    pub tty: bool,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// What of it is connected.
    pub wanted: Wanted,
}

/// A command that runs, or a container that is attached to. To drop either half ends the command.
#[derive(Debug)]
pub struct Session {
    /// To it.
    pub input: mpsc::Sender<Input>,
    /// From it. The last one is [`Output::Ended`]; if it is missing, nobody knows how it ended.
    pub output: mpsc::Receiver<Output>,
}

/// What a client says to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// To its standard input.
    Stdin(Bytes),
    /// Its standard input ends.
    StdinEnds,
    /// Its terminal has another size.
    Resize(Size),
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// In characters.
    pub columns: u16,
    /// In lines.
    pub rows: u16,
}

/// What a command says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// On its standard output, or on its terminal.
    Stdout(Bytes),
    /// On its standard error.
    Stderr(Bytes),
    /// That it has ended.
    Ended(Ended),
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With this code; one that was killed by a signal has 128 and its number.
    Code(i32),
    /// It could not be run, or not to its end.
    Failed(String),
}

/// Who answers for the pods of a logical cluster.
#[derive(Clone)]
pub(crate) enum Answering {
    /// Whoever runs them.
    Running(Arc<dyn PodStreams>),
    /// Whoever knows where they run.
    Knowing(Arc<dyn PodPlaces>),
}

/// Who answers for the pods of which logical cluster.
#[derive(Default)]
pub(crate) struct Registry {
    by_cluster: Arc<Mutex<ByCluster>>,
    next: AtomicU64,
}

type ByCluster = HashMap<String, (u64, Answering)>;

/// Somebody answers for the pods of a logical cluster, until this is dropped.
#[must_use = "it ends when it is dropped"]
pub struct Registration {
    by_cluster: Arc<Mutex<ByCluster>>,
    cluster: String,
    number: u64,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Registration").field("cluster", &self.cluster).finish()
    }
}

impl Registry {
    /// Registers whoever answers for the pods of a logical cluster, in the place of whoever did so before.
    pub(crate) fn register(&self, cluster: &str, who: Answering) -> Registration {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.by_cluster).insert(cluster.to_owned(), (number, who));
        let by_cluster = Arc::clone(&self.by_cluster);
        Registration { by_cluster, cluster: cluster.to_owned(), number }
    }

    pub(crate) fn of(&self, cluster: &str) -> Option<Answering> {
        lock(&self.by_cluster).get(cluster).map(|(_, who)| who.clone())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut by_cluster = lock(&self.by_cluster);
        // Somebody else may have taken its place.
        if by_cluster.get(&self.cluster).is_some_and(|(number, _)| *number == self.number) {
            by_cluster.remove(&self.cluster);
        }
    }
}

fn lock(by_cluster: &Mutex<ByCluster>) -> MutexGuard<'_, ByCluster> {
    by_cluster.lock().unwrap_or_else(PoisonError::into_inner)
}
