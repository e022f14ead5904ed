//! As much of SPDY/3.1 as kubectl speaks: streams within one connection.
//!
//! kubectl opens every stream itself. There is no flow control in what it speaks: what one stream does not take
//! holds up the others, as upstream.

mod dictionary;
mod frame;
mod inflate;
#[cfg(test)]
mod tests;

pub(super) use self::frame::{Event, data, refused};

use self::frame::{Decoder, Replies, ping};
use super::websocket::{Ended, Part, Socket};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// So much is read at once, and said at once on a stream.
pub(super) const PART_BYTES: usize = 16 * 1024;
/// More streams of one connection are refused.
const STREAMS: usize = 512;
const WAITING: usize = 2;

/// A connection that speaks SPDY.
pub(super) struct Connection {
    incoming: Incoming,
    /// Frames to the client.
    pub(super) outgoing: mpsc::Sender<Vec<u8>>,
    decoder: Decoder,
    buffer: BytesMut,
    replies: Replies,
    _reader: Ended,
}

/// Where its bytes come from.
enum Incoming {
    /// The messages of a WebSocket.
    Tunnelled(mpsc::Receiver<Part>),
    /// A connection of its own.
    Plain(mpsc::Receiver<Bytes>),
}

impl Connection {
    /// In the messages of a WebSocket.
    pub(super) fn within(socket: Socket) -> Connection {
        let Socket { incoming, outgoing, reader } = socket;
        Connection::of(Incoming::Tunnelled(incoming), outgoing, reader)
    }

    /// Over a connection that was upgraded.
    pub(super) fn over<S>(connection: S) -> Connection
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = tokio::io::split(connection);
        let (parts, incoming) = mpsc::channel(WAITING);
        let (outgoing, frames) = mpsc::channel(WAITING);
        let reading = tokio::spawn(read(reader, parts));
        tokio::spawn(write(writer, frames));
        Connection::of(Incoming::Plain(incoming), outgoing, Ended::of(&reading))
    }

    fn of(incoming: Incoming, outgoing: mpsc::Sender<Vec<u8>>, reader: Ended) -> Connection {
        Connection {
            incoming,
            outgoing,
            decoder: Decoder::default(),
            buffer: BytesMut::new(),
            replies: Replies::default(),
            _reader: reader,
        }
    }

    /// What the client says next; None if it says nothing more, or what it may not.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            match self.decoder.next(&mut self.buffer) {
                Ok(Some(Event::Ping { number })) => {
                    self.outgoing.send(ping(number)).await.ok()?;
                }
                Ok(Some(Event::Other)) => {}
                Ok(Some(event)) => return Some(event),
                Ok(None) => {
                    let more = match &mut self.incoming {
                        Incoming::Tunnelled(parts) => parts.recv().await.map(|part| part.bytes),
                        Incoming::Plain(parts) => parts.recv().await,
                    };
                    self.buffer.extend_from_slice(&more?);
                }
                Err(why) => {
                    tracing::debug!(?why, "a client of SPDY says what it may not");
                    return None;
                }
            }
        }
    }

    /// Opens a stream, or refuses it if there are too many.
    pub(super) async fn open(&mut self, id: u32, open: usize) -> bool {
        let is_open = open < STREAMS;
        let frame = if is_open { self.replies.reply(id) } else { refused(id) };
        self.outgoing.send(frame).await.is_ok() && is_open
    }
}

async fn read<R: AsyncRead + Unpin>(mut reader: R, parts: mpsc::Sender<Bytes>) {
    loop {
        let mut part = BytesMut::with_capacity(PART_BYTES);
        match (&mut reader).take(PART_BYTES as u64).read_buf(&mut part).await {
            Ok(1..) => {
                if parts.send(part.freeze()).await.is_err() {
                    return;
                }
            }
            Ok(0) | Err(_) => return,
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(mut writer: W, mut frames: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        let written = async {
            writer.write_all(&frame).await?;
            writer.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

/// The value of a header; empty if it is not there.
pub(super) fn header<'a>(headers: &'a [(String, String)], name: &str) -> &'a str {
    let found = headers.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str()).unwrap_or_default()
}
