//! Connections to ports of pods, over SPDY: in the messages of a WebSocket, or on a connection of its own.
//!
//! For each connection that somebody makes to it, kubectl opens two streams with the same `requestID`: one on which
//! it learns what failed, and one for what is said. A stream that does not take what the client sends in time is
//! given up, since it holds up the others.

use super::spdy::{self, Event, PART_BYTES};
use super::target::{self, Purpose};
use super::websocket::{Ended, Socket};
use super::{PodContainer, PodStreams, Running, until};
use crate::brought::{Brought, not_allowed};
use crate::http::Body;
use crate::status::Status;
use crate::upgrade::{Agreed, Protocols, Upgrading, accept_upgrade};
use ::http::Response;
use bytes::Bytes;
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

const PROTOCOLS: Protocols =
    Protocols { websocket: &["SPDY/3.1+portforward.k8s.io"], spdy: &["portforward.k8s.io"] };

/// Parts that wait for a port to take them.
const WAITING: usize = 4;
/// How long a port may take nothing while the client sends.
const STALL: Duration = Duration::from_secs(30);

/// Serves connections to the ports of a pod.
pub(super) async fn serve(running: Running, brought: Brought) -> Result<Response<Body>, Status> {
    let Running { call, pod, streams, .. } = running;
    let container = target::container(&call, &pod, None, Purpose::Port)?;
    let lasting = brought.lasting.ok_or_else(not_allowed)?;
    let Upgrading { agreed, answer, on } = accept_upgrade(brought.upgrade, &PROTOCOLS)?;
    let server = call.server.clone();
    tokio::spawn(async move {
        let serving = async {
            let Ok(connection) = on.await else { return };
            let connection = TokioIo::new(connection);
            let connection = match agreed {
                Agreed::WebSocket(_) => spdy::Connection::within(Socket::over(connection)),
                Agreed::Spdy(_) => spdy::Connection::over(connection),
            };
            let forwarding =
                Forwarding { streams, container, errors: HashMap::new(), open: HashMap::new() };
            forwarding.run(connection).await;
        };
        tokio::select! {
            () = serving => {}
            () = until::it_must_end(&server, &lasting.standing) => {}
        }
        drop(lasting.permit);
    });
    Ok(answer)
}

/// The connections of one client.
struct Forwarding {
    streams: Arc<dyn PodStreams>,
    container: PodContainer,
    /// The streams for errors that wait for their other one, by the request that they are of.
    errors: HashMap<String, u32>,
    /// The streams for what is said.
    open: HashMap<u32, Open>,
}

/// A stream for what is said.
struct Open {
    /// To the port; None once the client says nothing more.
    data: Option<mpsc::Sender<Bytes>>,
    _task: Ended,
}

impl Forwarding {
    async fn run(mut self, mut connection: spdy::Connection) {
        // A task says here that it has ended: its stream is not counted any more.
        let (over, mut ended) = mpsc::unbounded_channel();
        loop {
            let event = tokio::select! {
                Some(id) = ended.recv() => {
                    self.open.remove(&id);
                    continue;
                }
                event = connection.next() => event,
            };
            match event {
                Some(Event::Open { id, headers, .. }) => {
                    let count = self.open.len() + self.errors.len();
                    if connection.open(id, count).await {
                        let outgoing = connection.outgoing.clone();
                        self.begin(id, &headers, Line { id, error: None, outgoing }, &over);
                    }
                }
                Some(Event::Data { id, bytes, is_final }) => {
                    if !self.pass_on(id, bytes, is_final).await {
                        self.open.remove(&id);
                        if connection.outgoing.send(spdy::refused(id)).await.is_err() {
                            return;
                        }
                    }
                }
                Some(Event::Reset { id }) => {
                    self.open.remove(&id);
                    self.errors.retain(|_, error| *error != id);
                }
                Some(Event::GoAway | Event::Ping { .. } | Event::Other) => {}
                None => return,
            }
        }
    }

    fn begin(
        &mut self,
        id: u32,
        headers: &[(String, String)],
        mut line: Line,
        over: &mpsc::UnboundedSender<u32>,
    ) {
        let request = spdy::header(headers, "requestid").to_owned();
        if spdy::header(headers, "streamtype") == "error" {
            self.errors.insert(request, id);
            return;
        }
        line.error = self.errors.remove(&request);
        let port = spdy::header(headers, "port").parse::<u16>().ok().filter(|port| *port != 0);
        let (data, parts) = mpsc::channel(WAITING);
        let (streams, container) = (Arc::clone(&self.streams), self.container.clone());
        let over = over.clone();
        let task = tokio::spawn(async move {
            let failed = match port {
                None => Err("the port is no number between 1 and 65535".to_owned()),
                Some(port) => line.carry(&*streams, container, port, parts).await,
            };
            line.end(failed.err()).await;
            let _ = over.send(id);
        });
        self.open.insert(id, Open { data: Some(data), _task: Ended::of(&task) });
    }

    /// Whether the port has taken it, or does not want it.
    async fn pass_on(&mut self, id: u32, bytes: Bytes, is_final: bool) -> bool {
        let Some(open) = self.open.get_mut(&id) else { return true };
        if let Some(data) = &open.data
            && !bytes.is_empty()
        {
            match tokio::time::timeout(STALL, data.send(bytes)).await {
                // A port that has closed wants nothing more.
                Ok(Ok(()) | Err(_)) => {}
                Err(_) => return false,
            }
        }
        if is_final {
            open.data = None;
        }
        true
    }
}

/// One connection, as the client sees it.
struct Line {
    id: u32,
    error: Option<u32>,
    outgoing: mpsc::Sender<Vec<u8>>,
}

impl Line {
    /// Connects, and carries what is said until the port says nothing more.
    async fn carry(
        &self,
        streams: &dyn PodStreams,
        container: PodContainer,
        port: u16,
        mut parts: mpsc::Receiver<Bytes>,
    ) -> Result<(), String> {
        let connected = streams.port_forward(container, port).await;
        let connection = connected.map_err(|status| status.message)?;
        let (mut reader, mut writer) = tokio::io::split(connection);
        let upwards = async {
            while let Some(part) = parts.recv().await {
                if writer.write_all(&part).await.is_err() || writer.flush().await.is_err() {
                    break;
                }
            }
            parts.close();
            let _ = writer.shutdown().await;
            // What the port says is passed on for as long as it likes.
            std::future::pending::<std::io::Result<()>>().await
        };
        let downwards = async {
            let mut part = vec![0; PART_BYTES];
            loop {
                let count = reader.read(&mut part).await?;
                if count == 0 || self.say(&part[..count], false).await.is_err() {
                    return Ok::<(), std::io::Error>(());
                }
            }
        };
        let carried = tokio::select! {
            carried = downwards => carried,
            carried = upwards => carried,
        };
        carried.map_err(|error| format!("port {port}: {error}"))
    }

    async fn say(&self, bytes: &[u8], is_final: bool) -> Result<(), ()> {
        self.outgoing.send(spdy::data(self.id, bytes, is_final)).await.map_err(|_| ())
    }

    /// Ends both streams. The client waits for the one with errors to end.
    async fn end(&self, failed: Option<String>) {
        if let Some(error) = self.error {
            let why = failed.unwrap_or_default();
            let _ = self.outgoing.send(spdy::data(error, why.as_bytes(), true)).await;
        }
        let _ = self.say(&[], true).await;
    }
}
