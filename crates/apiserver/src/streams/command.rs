//! Commands in pods: what the client says goes to the command, and what the command says to the client.
//!
//! The client has several channels in one connection: its standard streams, the size of its terminal, and one on
//! which it learns how the command ended. Over WebSocket the first byte of a message says which channel it is of;
//! over SPDY each channel is a stream. The command ends with the connection, and the connection with the command.

use super::spdy::{self, Event};
use super::target::{self, Purpose};
use super::websocket::{Part, Socket};
use super::{Command, Ended, Input, Output, Running, Session, Size, Wanted, options, until};
use crate::brought::{Brought, not_allowed};
use crate::http::Body;
use crate::status::Status;
use crate::upgrade::{Agreed, Protocols, Upgrading, accept_upgrade};
use ::http::Response;
use bytes::{Buf, Bytes};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc;

const V5: &str = "v5.channel.k8s.io";
const V4: &str = "v4.channel.k8s.io";
const PROTOCOLS: Protocols = Protocols { websocket: &[V5, V4], spdy: &[V4] };

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// The rest of the message names a channel that the client has closed.
const CLOSE: u8 = 255;

/// A longer message about the size of a terminal is none.
const SIZE_BYTES: usize = 256;
/// How long a client of SPDY may take to open its streams.
const OPENING: Duration = Duration::from_secs(30);
/// How long a client may take to close once it knows how the command ended.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves a command in a container, or a client that attaches to one. The options are those that admission let pass.
pub(super) async fn serve(
    running: &Running,
    brought: Brought,
    options: &Value,
) -> Result<Response<Body>, Status> {
    let call = &running.call;
    let wanted = options::wanted(options)?;
    let named = options::named(options)?;
    let container = target::container(call, &running.pod, named, Purpose::Command)?;
    let words = options::words(options)?;
    let is_exec = call.subresource == "exec";
    if is_exec && words.first().is_none_or(String::is_empty) {
        return Err(Status::bad_request("you must specify at least one command for the container"));
    }
    let lasting = brought.lasting.ok_or_else(not_allowed)?;
    let Upgrading { agreed, answer, on } = accept_upgrade(brought.upgrade, &PROTOCOLS)?;
    let session = match is_exec {
        true => running.streams.exec(container, Command { words, wanted }).await?,
        false => running.streams.attach(container, wanted).await?,
    };
    let server = call.server.clone();
    tokio::spawn(async move {
        let serving = async {
            // A client that is gone before it has its answer has a command that ends at once.
            let Ok(connection) = on.await else { return };
            let connection = TokioIo::new(connection);
            match agreed {
                Agreed::WebSocket(protocol) => {
                    let client = Client { wanted, can_close: protocol == V5 };
                    client.over_websocket(Socket::over(connection), session).await;
                }
                Agreed::Spdy(_) => {
                    let client = Client { wanted, can_close: true };
                    client.over_spdy(spdy::Connection::over(connection), session).await;
                }
            }
        };
        tokio::select! {
            () = serving => {}
            () = until::it_must_end(&server, &lasting.standing) => {}
        }
        drop(lasting.permit);
    });
    Ok(answer)
}

/// The client of a command.
#[derive(Debug, Clone, Copy)]
struct Client {
    wanted: Wanted,
    /// Whether it can say that its standard input ends, and go on.
    can_close: bool,
}

impl Client {
    async fn over_websocket(self, socket: Socket, session: Session) {
        let Socket { mut incoming, outgoing, reader } = socket;
        let Session { input, output } = session;
        let write = |channel: u8, bytes: &[u8], _: bool| {
            // With a terminal there are no errors apart from the output, and their end is no message.
            if channel != ERROR && bytes.is_empty() {
                return None;
            }
            let mut message = Vec::with_capacity(bytes.len() + 1);
            message.push(channel);
            message.extend_from_slice(bytes);
            Some(message)
        };
        // As upstream: an empty message says that the command runs.
        let first = match self.wanted {
            Wanted { stdout: true, .. } => STDOUT,
            Wanted { stderr: true, .. } => STDERR,
            _ => ERROR,
        };
        if outgoing.send(vec![first]).await.is_err() {
            return;
        }
        let has_ended = tokio::select! {
            () = self.listen(&mut incoming, input) => false,
            () = talk(output, &outgoing, write) => true,
        };
        drop(outgoing);
        if has_ended {
            // A connection that is closed while the client still sends loses what it was sent last.
            let reading = async { while incoming.recv().await.is_some() {} };
            let _ = tokio::time::timeout(FAREWELL, reading).await;
        }
        drop(reader);
    }

    /// Passes on what the client says, until it says nothing more.
    async fn listen(self, incoming: &mut mpsc::Receiver<Part>, input: mpsc::Sender<Input>) {
        let mut channel = None;
        let mut size = Vec::new();
        while let Some(Part { begins, ends, mut bytes }) = incoming.recv().await {
            if begins {
                channel = None;
                size.clear();
            }
            if channel.is_none() && !bytes.is_empty() {
                channel = Some(bytes.get_u8());
            }
            let said = match channel {
                Some(STDIN) => self.stdin(bytes),
                Some(RESIZE) => {
                    size.extend(bytes.iter().take(SIZE_BYTES));
                    self.resize(&size, ends)
                }
                Some(CLOSE) if self.can_close && bytes.first() == Some(&STDIN) => {
                    self.wanted.stdin.then_some(Input::StdinEnds)
                }
                _ => None,
            };
            if let Some(said) = said {
                // A command that has ended takes nothing more; how it ended is about to be said.
                let _ = input.send(said).await;
            }
        }
    }

    fn stdin(self, bytes: Bytes) -> Option<Input> {
        (self.wanted.stdin && !bytes.is_empty()).then_some(Input::Stdin(bytes))
    }

    /// A size, if that is all of it and makes sense.
    fn resize(self, text: &[u8], is_all: bool) -> Option<Input> {
        if !self.wanted.tty || !is_all || text.len() > SIZE_BYTES {
            return None;
        }
        let size: Value = serde_json::from_slice(text).ok()?;
        let of = |name: &str| size[name].as_u64().and_then(|number| u16::try_from(number).ok());
        Some(Input::Resize(Size { columns: of("Width")?, rows: of("Height")? }))
    }

    async fn over_spdy(self, mut connection: spdy::Connection, session: Session) {
        let opening = self.channels(&mut connection);
        let Ok(Some(channels)) = tokio::time::timeout(OPENING, opening).await else { return };
        let Session { input, output } = session;
        let outgoing = connection.outgoing.clone();
        let write = |channel: u8, bytes: &[u8], is_last: bool| {
            channels.get(&channel).map(|id| spdy::data(*id, bytes, is_last))
        };
        let has_ended = tokio::select! {
            () = self.listen_spdy(&mut connection, &channels, input) => false,
            () = talk(output, &outgoing, write) => true,
        };
        drop(outgoing);
        if has_ended {
            let reading = async { while connection.next().await.is_some() {} };
            let _ = tokio::time::timeout(FAREWELL, reading).await;
        }
    }

    /// The streams that the client has opened, once it has opened all.
    async fn channels(self, connection: &mut spdy::Connection) -> Option<HashMap<u8, u32>> {
        let Wanted { stdin, stdout, stderr, tty } = self.wanted;
        let needed =
            [(ERROR, true), (STDIN, stdin), (STDOUT, stdout), (STDERR, stderr), (RESIZE, tty)];
        let needed: Vec<u8> =
            needed.into_iter().filter(|(_, is_needed)| *is_needed).map(|(it, _)| it).collect();
        let mut channels = HashMap::new();
        while !needed.iter().all(|channel| channels.contains_key(channel)) {
            let Event::Open { id, headers, .. } = connection.next().await? else { continue };
            let channel = match spdy::header(&headers, "streamtype") {
                "error" => ERROR,
                "stdin" => STDIN,
                "stdout" => STDOUT,
                "stderr" => STDERR,
                "resize" => RESIZE,
                _ => return None,
            };
            connection.open(id, channels.len()).await.then_some(())?;
            channels.insert(channel, id);
        }
        Some(channels)
    }

    async fn listen_spdy(
        self,
        connection: &mut spdy::Connection,
        channels: &HashMap<u8, u32>,
        input: mpsc::Sender<Input>,
    ) {
        let is = |channel: u8, id: u32| channels.get(&channel) == Some(&id);
        while let Some(event) = connection.next().await {
            let Event::Data { id, bytes, is_final } = event else { continue };
            if is(STDIN, id) {
                if let Some(said) = self.stdin(bytes) {
                    let _ = input.send(said).await;
                }
                if is_final {
                    let _ = input.send(Input::StdinEnds).await;
                }
            } else if is(RESIZE, id)
                && let Some(said) = self.resize(&bytes, true)
            {
                let _ = input.send(said).await;
            }
        }
    }
}

/// Passes on what the command says, and last how it ended.
async fn talk(
    mut output: mpsc::Receiver<Output>,
    outgoing: &mpsc::Sender<Vec<u8>>,
    write: impl Fn(u8, &[u8], bool) -> Option<Vec<u8>>,
) {
    let ended = loop {
        let frame = match output.recv().await {
            Some(Output::Stdout(bytes)) => write(STDOUT, &bytes, false),
            Some(Output::Stderr(bytes)) => write(STDERR, &bytes, false),
            Some(Output::Ended(ended)) => break ended,
            None => break Ended::Failed("the command was cut off from its client".to_owned()),
        };
        if let Some(frame) = frame
            && outgoing.send(frame).await.is_err()
        {
            return;
        }
    };
    let status = status_of(&ended).to_string();
    for (channel, bytes) in [(ERROR, status.as_bytes()), (STDOUT, b""), (STDERR, b"")] {
        // An empty message on a channel of a WebSocket says nothing; a stream of SPDY ends with it.
        if let Some(frame) = write(channel, bytes, true)
            && outgoing.send(frame).await.is_err()
        {
            return;
        }
    }
}

/// How a command ended, in upstream's form: clients make their own exit code of it.
fn status_of(ended: &Ended) -> Value {
    match ended {
        Ended::Code(0) => json!({"metadata": {}, "status": "Success"}),
        Ended::Code(code) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with exit code {code}"),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Ended::Failed(why) => json!({
            "metadata": {}, "status": "Failure", "message": why, "reason": "InternalError",
            "code": 500,
        }),
    }
}
