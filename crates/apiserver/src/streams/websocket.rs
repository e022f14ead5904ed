//! Frames of WebSocket (RFC 6455), as a server has them.
//!
//! A frame may say that it is as long as it likes: its payload is passed on in the parts in which it came, and
//! nothing is kept but what is needed to read the next few bytes. What a client may not send ends the connection.

mod frame;
#[cfg(test)]
mod tests;

use self::frame::{Control, Decoder, Event, header};
use bytes::{Bytes, BytesMut};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// So much is read at once.
const READ_BYTES: usize = 16 * 1024;
/// Messages that wait in either direction.
const WAITING: usize = 2;
/// How often the client is asked whether it is still there: one that has gone without a word shows by it.
const PING: Duration = Duration::from_secs(20);
/// How long a client may take to close after it was asked to.
const FAREWELL: Duration = Duration::from_secs(5);

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Whether it is the first of its message.
    pub(super) begins: bool,
    /// Whether it is the last one.
    pub(super) ends: bool,
    pub(super) bytes: Bytes,
}

/// A connection that speaks WebSocket. To drop it closes it.
pub(super) struct Socket {
    /// What the client says; it ends when the client closes, goes away, or says what it may not.
    pub(super) incoming: mpsc::Receiver<Part>,
    /// Messages to the client. When it is dropped, the client gets what is left, and a farewell.
    pub(super) outgoing: mpsc::Sender<Vec<u8>>,
    /// What reads from it, as long as it is kept.
    pub(super) reader: Ended,
}

/// A task that ends with whoever needs it.
pub(super) struct Ended(AbortHandle);

impl Ended {
    pub(super) fn of<T>(task: &tokio::task::JoinHandle<T>) -> Ended {
        Ended(task.abort_handle())
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Socket {
    /// Over a connection that was upgraded.
    pub(super) fn over<S>(connection: S) -> Socket
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = tokio::io::split(connection);
        let (parts, incoming) = mpsc::channel(WAITING);
        let (outgoing, messages) = mpsc::channel(WAITING);
        let (controls, answers) = mpsc::channel(WAITING);
        let reading = tokio::spawn(read(reader, parts, controls));
        tokio::spawn(write(writer, messages, answers));
        Socket { incoming, outgoing, reader: Ended::of(&reading) }
    }
}

/// What the writer is to say beside messages.
enum Answer {
    Pong(Bytes),
    Close(u16),
}

async fn read<R: AsyncRead + Unpin>(
    mut reader: R,
    parts: mpsc::Sender<Part>,
    answers: mpsc::Sender<Answer>,
) {
    let mut decoder = Decoder::default();
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    loop {
        match decoder.next(&mut buffer) {
            Ok(Some(Event::Part(part))) => {
                if parts.send(part).await.is_err() {
                    return;
                }
            }
            Ok(Some(Event::Ping(payload))) => {
                // One pong for several pings is enough.
                let _ = answers.try_send(Answer::Pong(payload));
            }
            Ok(Some(Event::Pong)) => {}
            Ok(Some(Event::Close)) => {
                let _ = answers.send(Answer::Close(CLOSE_NORMAL)).await;
                return;
            }
            Err(_) => {
                let _ = answers.send(Answer::Close(CLOSE_PROTOCOL_ERROR)).await;
                return;
            }
            Ok(None) => {
                buffer.reserve(READ_BYTES);
                let mut limited = (&mut reader).take(READ_BYTES as u64);
                match limited.read_buf(&mut buffer).await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
            }
        }
    }
}

pub(super) const CLOSE_NORMAL: u16 = 1000;
const CLOSE_PROTOCOL_ERROR: u16 = 1002;

async fn write<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut messages: mpsc::Receiver<Vec<u8>>,
    mut answers: mpsc::Receiver<Answer>,
) {
    let mut ping = tokio::time::interval(PING);
    ping.tick().await;
    let mut is_reading = true;
    let code = loop {
        let written = tokio::select! {
            // What was said before the end is said before the farewell.
            biased;
            message = messages.recv() => match message {
                Some(message) => {
                    write_frame(&mut writer, header(None, message.len()), &message).await
                }
                None => break CLOSE_NORMAL,
            },
            answer = answers.recv(), if is_reading => match answer {
                Some(Answer::Pong(payload)) => {
                    let head = header(Some(Control::Pong), payload.len());
                    write_frame(&mut writer, head, &payload).await
                }
                Some(Answer::Close(code)) => break code,
                None => {
                    is_reading = false;
                    continue;
                }
            },
            _ = ping.tick() => write_frame(&mut writer, header(Some(Control::Ping), 0), &[]).await,
        };
        if written.is_err() {
            return;
        }
    };
    let farewell = async {
        let payload = code.to_be_bytes();
        write_frame(&mut writer, header(Some(Control::Close), payload.len()), &payload).await?;
        writer.shutdown().await
    };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

async fn write_frame<W: AsyncWrite + Unpin>(
    writer: &mut W,
    header: Vec<u8>,
    payload: &[u8],
) -> std::io::Result<()> {
    writer.write_all(&header).await?;
    writer.write_all(payload).await?;
    writer.flush().await
}
