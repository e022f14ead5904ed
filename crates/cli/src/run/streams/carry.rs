//! Carries what a command reads and writes, until it ends or its client goes.

use bytes::Bytes;
use interlock_apiserver::streams::{Ended, Input, Output, Size};
use interlock_outside::processes::{Entered, Left, resize};
use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Write};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

/// So much is read at once.
const PART_BYTES: usize = 16 * 1024;

/// What was written to a terminal is there a little later. It ends then, unless another process still has it.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// How a command has ended, once it has.
type Told = watch::Receiver<Option<Left>>;

/// Carries it. The command ends with the future, which ends when the client is gone.
pub(super) fn carry(
    entered: Entered,
    told: oneshot::Receiver<Left>,
    inputs: mpsc::Receiver<Input>,
    outputs: mpsc::Sender<Output>,
) -> io::Result<impl Future<Output = ()> + Send + use<>> {
    let Entered { stdin, stdout, stderr, terminal, hold } = entered;
    #[expect(
        deprecated,
        reason = "what its successor has one promise in an unsafe block, a File keeps by itself: one descriptor, until it is dropped"
    )]
    let terminal = terminal.map(|end| AsyncFd::new(File::from(end))).transpose()?;
    let stdin = stdin.map(pipe::Sender::from_owned_fd).transpose()?;
    let stdout = stdout.map(pipe::Receiver::from_owned_fd).transpose()?;
    let stderr = stderr.map(pipe::Receiver::from_owned_fd).transpose()?;
    let (end, has_ended) = watch::channel(None);
    Ok(async move {
        let telling = async {
            end.send_replace(Some(told.await.unwrap_or(Left::Unknown)));
        };
        let reading = async {
            let (first, second) = (has_ended.clone(), has_ended.clone());
            tokio::join!(
                telling,
                from_pipe(stdout, first, |bytes| outputs.send(Output::Stdout(bytes))),
                from_pipe(stderr, second, |bytes| outputs.send(Output::Stderr(bytes))),
                from_terminal(terminal.as_ref(), has_ended.clone(), &outputs),
            );
            let left = *has_ended.borrow();
            let _ = outputs.send(Output::Ended(ended(left.unwrap_or(Left::Unknown)))).await;
        };
        tokio::select! {
            () = reading => {}
            () = write(inputs, stdin, terminal.as_ref()) => {}
            () = outputs.closed() => {}
        }
        drop(hold);
    })
}

fn ended(left: Left) -> Ended {
    match left {
        Left::Code(code) => Ended::Code(code),
        Left::WithTheRun => {
            Ended::Failed("the container ended, and the command with it".to_owned())
        }
        Left::Unknown => Ended::Failed("nobody knows how the command ended".to_owned()),
    }
}

/// Passes on what the client says, until it goes.
async fn write(
    mut inputs: mpsc::Receiver<Input>,
    mut stdin: Option<pipe::Sender>,
    terminal: Option<&AsyncFd<File>>,
) {
    while let Some(said) = inputs.recv().await {
        match (said, terminal) {
            (Input::Stdin(bytes), Some(terminal)) => {
                let _ = to_terminal(terminal, &bytes).await;
            }
            (Input::Stdin(bytes), None) => {
                let is_taken = match &mut stdin {
                    Some(pipe) => pipe.write_all(&bytes).await.is_ok(),
                    None => true,
                };
                // A command that reads no further may go on all the same.
                if !is_taken {
                    stdin = None;
                }
            }
            (Input::StdinEnds, Some(terminal)) => {
                // Control-D: what a person would type.
                let _ = to_terminal(terminal, &[4]).await;
            }
            (Input::StdinEnds, None) => stdin = None,
            (Input::Resize(Size { columns, rows }), Some(terminal)) => {
                let _ = resize(terminal.get_ref(), columns, rows);
            }
            (Input::Resize(_), None) => {}
        }
    }
}

async fn to_terminal(terminal: &AsyncFd<File>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let mut ready = terminal.writable().await?;
        match ready.try_io(|end| end.get_ref().write(bytes)) {
            Ok(written) => bytes = &bytes[written?..],
            Err(_would_wait) => {}
        }
    }
    Ok(())
}

/// Passes on what the command writes, until the pipe ends. What other processes write after the command has ended
/// is not waited for: all that the command wrote is in the pipe then.
async fn from_pipe<F, E>(
    pipe: Option<pipe::Receiver>,
    mut has_ended: Told,
    send: impl Fn(Bytes) -> F,
) where
    F: Future<Output = Result<(), E>>,
{
    let Some(pipe) = pipe else { return };
    let mut part = vec![0; PART_BYTES];
    loop {
        let is_last = has_ended.borrow().is_some();
        // At the end the kernel is asked: the runtime may not have heard yet that there is something to read.
        let read = match is_last {
            true => rustix::io::read(&pipe, &mut part).map_err(io::Error::from),
            false => pipe.try_read(&mut part),
        };
        match read {
            Ok(count @ 1..) => {
                if send(Bytes::copy_from_slice(&part[..count])).await.is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !is_last => {
                tokio::select! {
                    ready = pipe.readable() => if ready.is_err() { return },
                    _ = has_ended.changed() => {}
                }
            }
            Ok(0) | Err(_) => return,
        }
    }
}

/// The same of a terminal, which ends with an error when its last process has closed it.
async fn from_terminal(
    terminal: Option<&AsyncFd<File>>,
    mut has_ended: Told,
    outputs: &mpsc::Sender<Output>,
) {
    let Some(terminal) = terminal else { return };
    let mut part = vec![0; PART_BYTES];
    loop {
        let is_last = has_ended.borrow().is_some();
        match terminal.get_ref().read(&mut part) {
            Ok(count @ 1..) => {
                let said = Output::Stdout(Bytes::copy_from_slice(&part[..count]));
                if outputs.send(said).await.is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let ready = async {
                    let ready = terminal.readable().await;
                    ready.map(|mut ready| ready.clear_ready())
                };
                let is_readable = if is_last {
                    matches!(timeout(LAST_WORDS, ready).await, Ok(Ok(())))
                } else {
                    tokio::select! {
                        ready = ready => ready.is_ok(),
                        changed = has_ended.changed() => changed.is_ok(),
                    }
                };
                if !is_readable {
                    return;
                }
            }
            Ok(0) | Err(_) => return,
        }
    }
}
