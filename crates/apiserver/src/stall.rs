//! A connection whose other side must take what is sent: one that takes nothing for too long breaks.
//!
//! HTTP/1.1 has no window of its own: a client that does not read shows as a socket that takes nothing. A closed window of
//! HTTP/2 does not show here; the body of the answer sees to that.

use crate::body::STALL;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A connection that breaks when it takes nothing for too long.
pub(crate) struct WithTimeout<S> {
    stream: S,
    /// Runs while the other side takes nothing.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> WithTimeout<S> {
    /// Over a connection.
    pub(crate) fn new(stream: S) -> Self {
        WithTimeout { stream, waits: None }
    }

    /// What came of a write, or that it has waited for too long.
    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = None;
            return written;
        }
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL)));
        match waits.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WithTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WithTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut_down = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, shut_down)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_takes_nothing_breaks_and_one_that_reads_does_not() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let mut connection = WithTimeout::new(ours);
        let reading = async {
            let mut part = [0; 1024];
            for _ in 0..4 {
                tokio::time::sleep(STALL / 2).await;
                theirs.read_exact(&mut part).await.expect("it is there");
            }
        };
        let (written, ()) = tokio::join!(connection.write_all(&[7; 5 * 1024]), reading);
        written.expect("they read, if slowly");
        let broken = connection.write_all(&[7; 2048]).await.expect_err("nobody reads any more");
        assert_eq!(broken.kind(), io::ErrorKind::TimedOut);
    }
}
