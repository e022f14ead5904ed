//! The body of an answer: whole, in parts that are made as they are asked for, or as a stream.
//!
//! What an answer holds, it holds until the last byte went to the socket or the client went away: the place
//! of its request, and its share of the budgets for bytes that nobody reads. Both go along with the bytes, because HTTP/2
//! keeps them after it took them from here. An answer that its client does not read is ended after a while.

#[cfg(test)]
mod tests;

use crate::limits::{Permit, Unsent};
use crate::pipe;
use crate::status::Status;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

/// A client that reads nothing for so long, while there is something to read, is cut off.
pub(crate) const STALL: Duration = Duration::from_secs(30);
/// Any answer may take so long, and a large one a second more for each of its MiB.
const SLOWEST: Duration = Duration::from_secs(60);
/// Larger bodies are handed out in parts of this size, and watched over.
pub(crate) const PART_BYTES: usize = 64 * 1024;
/// Smaller answers are not counted: the number of requests in flight limits them well enough.
const SMALL_BYTES: usize = 16 * 1024;

/// Makes the next part of a body; None at its end.
pub(crate) type Parts = Box<dyn FnMut() -> Option<Vec<u8>> + Send>;

/// Has a part made elsewhere than on the threads that serve everybody. None if it could not be made.
pub(crate) type Beside = Box<dyn Fn(Parts) -> JoinHandle<Option<Made>> + Send>;

/// A part that was made, and what makes those after it.
pub(crate) struct Made {
    pub(crate) part: Option<Vec<u8>>,
    pub(crate) parts: Parts,
}

/// What makes the parts of a body, and where.
struct Maker {
    parts: Parts,
    /// For parts that take long to make.
    beside: Option<Beside>,
}

/// The body of an answer.
pub struct Body {
    content: Content,
    /// Held until the body is dropped, beside what its bytes hold.
    _hold: Option<Arc<Hold>>,
}

enum Content {
    Whole(Option<Bytes>),
    Parts(Maker, u64),
    Stream(pipe::Reader),
    Watched(Arc<Watched>),
}

/// Why a body ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client did not read the answer in time")]
pub struct Stalled;

/// What an answer holds until it was sent.
struct Hold {
    _permit: Permit,
    _unsent: Option<Unsent>,
}

/// Bytes, and what is held until they were sent.
struct Held<T> {
    bytes: T,
    _hold: Arc<Hold>,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Held<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl Body {
    /// A body that is there already.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Body { content: Content::Whole(Some(bytes.into())), _hold: None }
    }

    /// A body whose parts are made as they are asked for, from things of this size together.
    pub(crate) fn parts(parts: Parts, weight_bytes: u64) -> Self {
        let maker = Maker { parts, beside: None };
        Body { content: Content::Parts(maker, weight_bytes), _hold: None }
    }

    /// The same body, the parts of which take long to make. Callers inside of the process make them themselves.
    #[must_use]
    pub(crate) fn made_beside(mut self, beside: Beside) -> Body {
        if let Content::Parts(maker, _) = &mut self.content {
            maker.beside = Some(beside);
        }
        self
    }

    /// A body that comes as it is written, until the writer goes away.
    pub(crate) fn stream(reader: pipe::Reader) -> Self {
        Body { content: Content::Stream(reader), _hold: None }
    }

    /// The body if it is there already, to be changed.
    pub(crate) fn take_whole(self) -> Result<Bytes, Body> {
        match self.content {
            Content::Whole(Some(bytes)) => Ok(bytes),
            content => Err(Body { content, ..self }),
        }
    }

    /// The same body, which holds a place until it is dropped. For callers inside of the process.
    #[must_use]
    pub(crate) fn in_place(self, permit: Permit) -> Body {
        Body { _hold: Some(Arc::new(Hold { _permit: permit, _unsent: None })), ..self }
    }

    /// The same body, which holds a place and its share of the budgets until it was sent. Fails if the budgets
    /// are used up and the answer can still be refused.
    pub(crate) fn until_sent(self, permit: Permit, can_be_refused: bool) -> Result<Body, Status> {
        let weight = match &self.content {
            Content::Whole(bytes) => bytes.as_ref().map_or(0, Bytes::len) as u64,
            Content::Parts(_, weight) => *weight,
            Content::Stream(_) | Content::Watched(_) => 0,
        };
        let unsent = match can_be_refused {
            _ if weight <= SMALL_BYTES as u64 => None,
            true => Some(permit.unsent(weight)?),
            false => Some(permit.unsent_anyway(weight)),
        };
        let hold = Arc::new(Hold { _permit: permit, _unsent: unsent });
        let left = match self.content {
            Content::Whole(Some(bytes)) => {
                let bytes = Bytes::from_owner(Held { bytes, _hold: Arc::clone(&hold) });
                if bytes.len() <= PART_BYTES {
                    let content = Content::Whole(Some(bytes));
                    return Ok(Body { content, _hold: Some(hold) });
                }
                Left::Whole(bytes)
            }
            Content::Parts(maker, _) => Left::Parts(maker),
            content => return Ok(Body { content, _hold: Some(hold) }),
        };
        let content = Content::Watched(Watched::over(left, &hold, weight));
        Ok(Body { content, _hold: Some(hold) })
    }
}

impl Default for Body {
    fn default() -> Self {
        Body { content: Content::Whole(None), _hold: None }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Body").field("size", &self.size_hint()).finish_non_exhaustive()
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Stalled;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Stalled>>> {
        let part = match &mut self.get_mut().content {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(Ok)),
            Content::Parts(maker, _) => {
                Poll::Ready((maker.parts)().map(|part| Ok(Bytes::from(part))))
            }
            Content::Stream(reader) => reader.poll_next(context).map(|part| part.map(Ok)),
            Content::Watched(watched) => watched.poll_next(context),
        };
        part.map(|part| part.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_none(),
            Content::Watched(watched) => matches!(*watched.left(), Left::Nothing),
            Content::Parts(..) | Content::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Content::Watched(watched) => match &*watched.left() {
                Left::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
                Left::Nothing => SizeHint::with_exact(0),
                Left::Parts(_) | Left::Making(_) | Left::CutOff => SizeHint::default(),
            },
            Content::Parts(..) | Content::Stream(_) => SizeHint::default(),
        }
    }
}

/// A large body, which is taken away from a client that does not read it.
struct Watched {
    left: Mutex<Left>,
    /// When it is cut off, if no part is taken before.
    stalls_at: Mutex<Instant>,
    /// When it is cut off in any case.
    ends_at: Instant,
    /// For parts that are made as they are asked for; what is whole holds it already.
    hold: Weak<Hold>,
    watchdog: OnceLock<AbortHandle>,
}

/// What was not handed out yet.
enum Left {
    Whole(Bytes),
    Parts(Maker),
    /// The next part is being made elsewhere.
    Making(Making),
    Nothing,
    CutOff,
}

/// A part that is being made, and where the next ones will be.
struct Making {
    made: Awaited,
    beside: Beside,
}

/// Work that ends with whoever waits for it.
struct Awaited(JoinHandle<Option<Made>>);

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Left {
    /// The next part of those that are made as they are asked for.
    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Stalled>>> {
        loop {
            match std::mem::replace(self, Left::CutOff) {
                Left::Parts(Maker { mut parts, beside: None }) => {
                    let part = parts();
                    *self = Left::Parts(Maker { parts, beside: None });
                    return Poll::Ready(part.map(Ok));
                }
                Left::Parts(Maker { parts, beside: Some(beside) }) => {
                    *self = Left::Making(Making { made: Awaited(beside(parts)), beside });
                }
                Left::Making(Making { mut made, beside }) => {
                    let Poll::Ready(done) = Pin::new(&mut made.0).poll(context) else {
                        *self = Left::Making(Making { made, beside });
                        return Poll::Pending;
                    };
                    // An answer that cannot be made to its end must not look whole: it stays cut off.
                    let Ok(Some(Made { part, parts })) = done else {
                        return Poll::Ready(Some(Err(Stalled)));
                    };
                    *self = Left::Parts(Maker { parts, beside: Some(beside) });
                    return Poll::Ready(part.map(Ok));
                }
                other @ (Left::Whole(_) | Left::Nothing | Left::CutOff) => {
                    *self = other;
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// Whether the client waits for the server, and not the server for the client.
    fn is_being_made(&self) -> bool {
        matches!(self, Left::Making(making) if !making.made.0.is_finished())
    }
}

impl Watched {
    fn over(left: Left, hold: &Arc<Hold>, weight_bytes: u64) -> Arc<Watched> {
        let now = Instant::now();
        let watched = Arc::new(Watched {
            left: Mutex::new(left),
            stalls_at: Mutex::new(now + STALL),
            ends_at: now + time_for(weight_bytes),
            hold: Arc::downgrade(hold),
            watchdog: OnceLock::new(),
        });
        let task = tokio::spawn(watch_over(Arc::downgrade(&watched)));
        // It was just made: there is none yet.
        let _ = watched.watchdog.set(task.abort_handle());
        watched
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stalls_at(&self) -> MutexGuard<'_, Instant> {
        self.stalls_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next part. Each one that is asked for shows that the client reads.
    fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Stalled>>> {
        let mut left = self.left();
        let part = match &mut *left {
            Left::Whole(bytes) => bytes.split_to(bytes.len().min(PART_BYTES)),
            Left::Parts(_) | Left::Making(_) => match left.poll_part(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(part))) => self.held(part),
                Poll::Ready(Some(Err(stalled))) => return Poll::Ready(Some(Err(stalled))),
                Poll::Ready(None) => Bytes::new(),
            },
            Left::Nothing => return Poll::Ready(None),
            Left::CutOff => return Poll::Ready(Some(Err(Stalled))),
        };
        let is_at_end = part.is_empty() || matches!(&*left, Left::Whole(rest) if rest.is_empty());
        if is_at_end {
            *left = Left::Nothing;
        }
        drop(left);
        *self.stalls_at() = Instant::now() + STALL;
        Poll::Ready((!part.is_empty()).then_some(Ok(part)))
    }

    fn held(&self, part: Vec<u8>) -> Bytes {
        match self.hold.upgrade() {
            Some(hold) => Bytes::from_owner(Held { bytes: part, _hold: hold }),
            None => part.into(),
        }
    }

    /// When the client will have taken too long, as it is now. It is not late while it waits for a part.
    fn cut_off_at(&self) -> Instant {
        if self.left().is_being_made() {
            *self.stalls_at() = Instant::now() + STALL;
        }
        self.ends_at.min(*self.stalls_at())
    }

    /// Frees what was not handed out. The client learns of it when it reads on.
    fn cut_off(&self) {
        let freed = std::mem::replace(&mut *self.left(), Left::CutOff);
        drop(freed);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(watchdog) = self.watchdog.get() {
            watchdog.abort();
        }
    }
}

/// How long an answer that holds so much may take.
pub(crate) fn time_for(weight_bytes: u64) -> Duration {
    SLOWEST + Duration::from_secs(weight_bytes >> 20)
}

async fn watch_over(watched: Weak<Watched>) {
    loop {
        let Some(body) = watched.upgrade() else { return };
        let at = body.cut_off_at();
        if Instant::now() >= at {
            body.cut_off();
            return;
        }
        drop(body);
        tokio::time::sleep_until(at).await;
    }
}
