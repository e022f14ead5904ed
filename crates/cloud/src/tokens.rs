//! The rate limit of the account.
//!
//! Before a live read, the tokens of all its requests are taken together with one for the call that may
//! follow: a call whose token came only seconds later would rest on a live read that is too old. What a step
//! does not use is there for the next step about the same object, as long as a live read is fresh. It is
//! not given back: who waits knows when to return, and would return too late if tokens came earlier than
//! that (decision 24).

use interlock_identities::outside::FRESH_SECONDS;
use interlock_kernel::{Bucket, CallRate, Token};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long taken tokens may be used.
const USABLE: Duration = Duration::from_secs(FRESH_SECONDS.unsigned_abs());

/// The tokens of one account.
#[derive(Debug)]
pub(crate) struct Tokens(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    bucket: Bucket<(), String>,
    /// When tokens were taken that are not used yet, by object, the oldest first.
    taken: HashMap<String, VecDeque<Duration>>,
}

/// There is no token yet: after this time there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotYet(pub(crate) Duration);

impl Tokens {
    pub(crate) fn new(rate: CallRate) -> Tokens {
        Tokens(Mutex::new(Inner { bucket: Bucket::new(rate), taken: HashMap::new() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes tokens for so many requests about an object, or none.
    pub(crate) fn take(&self, about: &str, calls: u32, now: Duration) -> Result<(), NotYet> {
        let mut inner = self.inner();
        inner.taken.retain(|_, taken| {
            taken.retain(|at| is_usable(*at, now));
            !taken.is_empty()
        });
        let left = inner.taken.get(about).map_or(0, VecDeque::len);
        let missing = calls.saturating_sub(u32::try_from(left).unwrap_or(u32::MAX));
        if missing == 0 {
            return Ok(());
        }
        let token = inner.bucket.take_together(&(), &about.to_owned(), missing, now);
        if let Token::After(wait) = token {
            return Err(NotYet(wait));
        }
        let taken = inner.taken.entry(about.to_owned()).or_default();
        taken.extend((0..missing).map(|_| now));
        Ok(())
    }

    /// Uses a token for one request about an object: one that was taken, or else a new one.
    pub(crate) fn use_one(&self, about: &str, now: Duration) -> Result<(), NotYet> {
        let mut inner = self.inner();
        let taken = inner.taken.entry(about.to_owned()).or_default();
        taken.retain(|at| is_usable(*at, now));
        if taken.pop_front().is_some() {
            return Ok(());
        }
        match inner.bucket.take(&(), &about.to_owned(), now) {
            Token::Taken => Ok(()),
            Token::After(wait) => Err(NotYet(wait)),
        }
    }

    /// The cloud asks for fewer calls.
    pub(crate) fn throttled(&self, now: Duration) {
        let mut inner = self.inner();
        inner.bucket.throttled(&(), now);
        let per_second = inner.bucket.per_second(&(), now);
        tracing::warn!(per_second, "the cloud throttles: fewer calls are made");
    }
}

fn is_usable(taken_at: Duration, now: Duration) -> bool {
    now <= taken_at.saturating_add(USABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(burst: u32) -> Tokens {
        Tokens::new(CallRate { per_second: 1, burst, ..CallRate::default() })
    }

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn wait(milliseconds: u64) -> Result<(), NotYet> {
        Err(NotYet(at(milliseconds)))
    }

    #[test]
    fn the_token_of_a_call_is_there_when_its_live_read_was_made() {
        let tokens = tokens(4);
        assert_eq!(tokens.take("a", 3, at(0)), Ok(()));
        assert_eq!(tokens.use_one("a", at(0)), Ok(()));
        assert_eq!(tokens.use_one("a", at(10)), Ok(()));
        // Others use up the bucket; the call still has its own.
        assert_eq!(tokens.use_one("b", at(10)), Ok(()));
        assert_eq!(tokens.use_one("b", at(10)), wait(990));
        assert_eq!(tokens.use_one("a", at(20)), Ok(()));
        assert_eq!(tokens.use_one("a", at(20)), wait(1_980));
    }

    #[test]
    fn what_a_step_did_not_use_is_there_for_the_next_about_the_same_object() {
        let tokens = tokens(4);
        assert_eq!(tokens.take("a", 3, at(0)), Ok(()));
        assert_eq!(tokens.use_one("a", at(0)), Ok(()));
        assert_eq!(tokens.take("a", 3, at(100)), Ok(()));
        // Of four, three were taken, and one more for the one that was used.
        assert_eq!(tokens.take("b", 1, at(100)), wait(900));
        for _ in 0..3 {
            assert_eq!(tokens.use_one("a", at(100)), Ok(()));
        }
    }

    #[test]
    fn tokens_are_not_kept_for_longer_than_a_live_read_is_fresh() {
        let tokens = tokens(4);
        assert_eq!(tokens.take("a", 3, at(0)), Ok(()));
        assert_eq!(tokens.take("b", 1, at(0)), Ok(()));
        assert_eq!(tokens.take("b", 3, at(1_500)), wait(500));
        assert_eq!(tokens.use_one("c", at(3_001)), Ok(()));
        assert_eq!(tokens.use_one("a", at(3_001)), wait(999));
        assert_eq!(tokens.take("c", 1, at(9_000)), Ok(()));
        assert_eq!(tokens.inner().taken.len(), 1);
    }
}
