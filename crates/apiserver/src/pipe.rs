//! A pipe with room for one message: what the reader does not take is not made.
//!
//! The writer of a watch makes the next message when the last one was taken. If the reader takes nothing for too long,
//! the writer takes the message back and leaves a last one in its place.

use bytes::Bytes;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// A pipe.
pub(crate) fn pipe() -> (Writer, Reader) {
    let shared = Arc::new(Shared::default());
    (Writer(Arc::clone(&shared)), Reader(shared))
}

/// The end that is written to. When it is dropped, the reader gets what is left, and the end.
pub(crate) struct Writer(Arc<Shared>);

/// The end that is read from.
pub(crate) struct Reader(Arc<Shared>);

/// The reader went away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReaderGone;

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Rung when the reader took something, or went away.
    moved: Notify,
}

#[derive(Default)]
struct State {
    message: Option<Bytes>,
    has_writer_gone: bool,
    has_reader_gone: bool,
    reader: Option<Waker>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, message: Bytes) {
        let mut state = self.lock();
        if state.has_reader_gone {
            return;
        }
        let taken_back = state.message.replace(message);
        let reader = state.reader.take();
        drop(state);
        drop(taken_back);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Writer {
    /// Waits until the last message was taken.
    pub(crate) async fn room(&self) -> Result<(), ReaderGone> {
        self.until(|state| state.message.is_none()).await
    }

    /// Whether the last message was taken.
    pub(crate) fn has_room(&self) -> bool {
        self.0.lock().message.is_none()
    }

    /// Waits until the reader goes away.
    pub(crate) async fn reader_gone(&self) {
        // It ends only with the reader.
        let _ = self.until(|_| false).await;
    }

    fn until(
        &self,
        is_true: impl Fn(&State) -> bool,
    ) -> impl Future<Output = Result<(), ReaderGone>> {
        let shared = &self.0;
        async move {
            loop {
                let mut moved = std::pin::pin!(shared.moved.notified());
                // From here on nothing that happens is missed.
                moved.as_mut().enable();
                {
                    let state = shared.lock();
                    if state.has_reader_gone {
                        return Err(ReaderGone);
                    }
                    if is_true(&state) {
                        return Ok(());
                    }
                }
                moved.await;
            }
        }
    }

    /// Leaves a message for the reader, in the place of one that was not taken.
    pub(crate) fn put(&self, message: Bytes) {
        self.0.put(message);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_writer_gone = true;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Reader {
    /// The next message; None at the end.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.0.lock();
        if let Some(message) = state.message.take() {
            drop(state);
            self.0.moved.notify_waiters();
            return Poll::Ready(Some(message));
        }
        if state.has_writer_gone {
            return Poll::Ready(None);
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_reader_gone = true;
        let freed = state.message.take();
        drop(state);
        drop(freed);
        self.0.moved.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(reader: &mut Reader) -> Option<Bytes> {
        std::future::poll_fn(|context| reader.poll_next(context)).await
    }

    #[tokio::test]
    async fn messages_come_in_order_and_then_the_end() {
        let (writer, mut reader) = pipe();
        let writing = tokio::spawn(async move {
            for number in 0..100_u8 {
                writer.room().await.expect("the reader is there");
                writer.put(vec![number].into());
            }
        });
        for number in 0..100_u8 {
            assert_eq!(read(&mut reader).await.as_deref(), Some(&[number][..]));
        }
        assert_eq!(read(&mut reader).await, None);
        writing.await.expect("it ended");
    }

    #[tokio::test]
    async fn what_was_not_taken_is_replaced() {
        let (writer, mut reader) = pipe();
        writer.put(Bytes::from_static(b"large"));
        writer.put(Bytes::from_static(b"sorry"));
        drop(writer);
        assert_eq!(read(&mut reader).await.as_deref(), Some(&b"sorry"[..]));
        assert_eq!(read(&mut reader).await, None);
    }

    #[tokio::test]
    async fn a_reader_that_goes_away_frees_what_it_did_not_take() {
        let (writer, reader) = pipe();
        let owned = Arc::new(());
        struct Owned(#[allow(dead_code)] Arc<()>);
        impl AsRef<[u8]> for Owned {
            fn as_ref(&self) -> &[u8] {
                b"x"
            }
        }
        writer.put(Bytes::from_owner(Owned(Arc::clone(&owned))));
        drop(reader);
        assert_eq!(Arc::strong_count(&owned), 1);
        assert_eq!(writer.room().await, Err(ReaderGone));
        writer.reader_gone().await;
    }
}
