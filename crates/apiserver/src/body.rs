//! The body of an answer: whole, in parts that are made as they are asked for, or as a stream.
//!
//! What an answer holds, it holds until the last byte went to the socket or the client went away: the place
//! of its request, and its share of the budgets for bytes that nobody reads. Both go along with the bytes, because HTTP/2
//! keeps them after it took them from here. An answer that its client does not read is ended after a while.

use crate::limits::{Permit, Unsent};
use crate::pipe;
use crate::status::Status;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::AbortHandle;
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

/// The body of an answer.
pub struct Body {
    content: Content,
    /// Held until the body is dropped, beside what its bytes hold.
    _hold: Option<Arc<Hold>>,
}

enum Content {
    Whole(Option<Bytes>),
    Parts(Parts, u64),
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
        Body { content: Content::Parts(parts, weight_bytes), _hold: None }
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
            Content::Parts(parts, _) => Left::Parts(parts),
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
            Content::Parts(parts, _) => Poll::Ready(parts().map(|part| Ok(Bytes::from(part)))),
            Content::Stream(reader) => reader.poll_next(context).map(|part| part.map(Ok)),
            Content::Watched(watched) => Poll::Ready(watched.next()),
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
                Left::Parts(_) | Left::CutOff => SizeHint::default(),
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
    Parts(Parts),
    Nothing,
    CutOff,
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
    fn next(&self) -> Option<Result<Bytes, Stalled>> {
        let mut left = self.left();
        let part = match &mut *left {
            Left::Whole(bytes) => bytes.split_to(bytes.len().min(PART_BYTES)),
            Left::Parts(parts) => match parts() {
                Some(part) => self.held(part),
                None => Bytes::new(),
            },
            Left::Nothing => return None,
            Left::CutOff => return Some(Err(Stalled)),
        };
        let is_at_end = part.is_empty() || matches!(&*left, Left::Whole(rest) if rest.is_empty());
        if is_at_end {
            *left = Left::Nothing;
        }
        drop(left);
        *self.stalls_at() = Instant::now() + STALL;
        (!part.is_empty()).then_some(Ok(part))
    }

    fn held(&self, part: Vec<u8>) -> Bytes {
        match self.hold.upgrade() {
            Some(hold) => Bytes::from_owner(Held { bytes: part, _hold: hold }),
            None => part.into(),
        }
    }

    /// When the client will have taken too long, as it is now.
    fn cut_off_at(&self) -> Instant {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Caller, Caps, Limits, Work};

    fn place(limits: &Limits) -> Permit {
        let caller = Caller { cluster: "c", user: "u", is_privileged: false };
        limits.enter(&caller, Work::Read, std::time::Instant::now()).expect("there is room")
    }

    fn next(body: &mut Body) -> Option<Result<Bytes, Stalled>> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match Pin::new(body).poll_frame(&mut context) {
            Poll::Ready(frame) => frame.map(|frame| frame.map(|it| it.into_data().expect("data"))),
            Poll::Pending => panic!("a body that is there does not wait"),
        }
    }

    fn held(limits: &Limits) -> (u32, u64) {
        let used = limits.in_flight();
        (used.reads, used.unsent_bytes)
    }

    #[tokio::test]
    async fn a_place_and_its_bytes_are_held_until_the_last_byte_is_gone() {
        let limits = Limits::new(Caps::default());
        let large = vec![7; 3 * PART_BYTES + 1];
        let size = large.len() as u64;
        let mut body = Body::whole(large).until_sent(place(&limits), true).expect("room");
        assert_eq!(body.size_hint().exact(), Some(size));
        let mut taken = Vec::new();
        while let Some(part) = next(&mut body) {
            taken.push(part.expect("nobody waits"));
        }
        assert_eq!(
            taken.iter().map(Bytes::len).collect::<Vec<_>>(),
            [PART_BYTES, PART_BYTES, PART_BYTES, 1]
        );
        drop(body);
        // As HTTP/2 does with what does not fit into the window.
        let last = taken.pop();
        assert_eq!(held(&limits), (1, size));
        drop(taken);
        assert_eq!(held(&limits), (1, size));
        drop(last);
        assert_eq!(held(&limits), (0, 0));
    }

    #[tokio::test]
    async fn a_part_that_is_under_way_holds_the_place() {
        let limits = Limits::new(Caps::default());
        let mut count = 0;
        let parts: Parts = Box::new(move || {
            count += 1;
            (count < 3).then(|| vec![7; 10])
        });
        let mut body = Body::parts(parts, 1 << 20).until_sent(place(&limits), true).expect("room");
        let first = next(&mut body);
        assert_eq!(next(&mut body), Some(Ok(Bytes::from_static(&[7; 10]))));
        assert_eq!(next(&mut body), None);
        assert!(body.is_end_stream());
        drop(body);
        assert_eq!(held(&limits), (1, 1 << 20));
        drop(first);
        assert_eq!(held(&limits), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_reads_is_freed_and_the_reader_learns_of_it() {
        let limits = Limits::new(Caps::default());
        let pinned = Arc::new(());
        let theirs = Arc::clone(&pinned);
        let parts: Parts = Box::new(move || {
            let _ = &theirs;
            Some(vec![7; 10])
        });
        let mut body = Body::parts(parts, 1 << 20).until_sent(place(&limits), true).expect("room");
        // Whoever reads on is not cut off for a pause.
        for _ in 0..2 {
            tokio::time::sleep(STALL - Duration::from_secs(1)).await;
            assert!(next(&mut body).is_some_and(|part| part.is_ok()));
        }
        assert_eq!(Arc::strong_count(&pinned), 2);
        tokio::time::sleep(STALL + Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&pinned), 1);
        assert_eq!(next(&mut body), Some(Err(Stalled)));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_reads_drop_by_drop_is_cut_off_in_the_end() {
        let limits = Limits::new(Caps::default());
        let parts: Parts = Box::new(|| Some(vec![7; 10]));
        let mut body = Body::parts(parts, 1 << 20).until_sent(place(&limits), true).expect("room");
        let began = Instant::now();
        while next(&mut body).is_some_and(|part| part.is_ok()) {
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert!(began.elapsed() < Duration::from_secs(120), "it is never cut off");
        }
        assert!(began.elapsed() >= SLOWEST, "it was cut off after {:?}", began.elapsed());
    }

    #[tokio::test]
    async fn an_answer_beyond_the_budget_is_refused_but_not_that_to_a_write() {
        let limits = Limits::new(Caps { unsent_bytes_per_caller: 100_000, ..Caps::default() });
        let large = || Body::whole(vec![7; 100_000]);
        let first = large().until_sent(place(&limits), true).expect("room");
        let refused = large().until_sent(place(&limits), true).expect_err("the budget is used up");
        assert_eq!((refused.code, refused.retry_after_seconds), (429, Some(1)));
        assert!(Body::whole("small").until_sent(place(&limits), true).is_ok());
        assert!(large().until_sent(place(&limits), false).is_ok());
        drop(first);
        assert!(large().until_sent(place(&limits), true).is_ok());
        assert_eq!(held(&limits), (0, 0));
    }
}
