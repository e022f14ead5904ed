//! The rate limit of the account.
//!
//! A question waits for the token of its first request. From then on its step has begun: the further requests
//! of the question, and the call that may follow it, go before all who wait to begin, with tokens that are
//! kept for them. So a step that begins can end while its live read is fresh, and a token is taken only for
//! a request that is sent (decision 24).

use interlock_kernel::{Bucket, CallRate, Token};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A policy with all its versions takes eight further requests and a call. With fewer tokens kept for
/// these, a slow account could never update it.
const LEAST_BURST: u32 = 12;

/// The tokens of one account.
#[derive(Debug)]
pub(crate) struct Tokens(Mutex<Bucket<(), String>>);

/// There is no token yet: after this time there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotYet(pub(crate) Duration);

impl Tokens {
    pub(crate) fn new(rate: CallRate) -> Tokens {
        let burst = rate.burst.max(LEAST_BURST);
        Tokens(Mutex::new(Bucket::keeping(CallRate { burst, ..rate }, burst - burst / 4)))
    }

    fn bucket(&self) -> MutexGuard<'_, Bucket<(), String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the token of the first request of a step about an object. Who has to wait is served in turn.
    pub(crate) fn begin(&self, about: &str, now: Duration) -> Result<(), NotYet> {
        taken(self.bucket().take(&(), &about.to_owned(), now))
    }

    /// Takes the token of one more request of a step that has begun.
    pub(crate) fn further(&self, now: Duration) -> Result<(), NotYet> {
        taken(self.bucket().take_further(&(), now))
    }

    /// The cloud asks for fewer calls.
    pub(crate) fn throttled(&self, now: Duration) {
        self.bucket().throttled(&(), now);
        let per_second = self.per_second(now);
        tracing::warn!(per_second, "the cloud throttles: fewer calls are made");
    }

    /// Calls a second that are allowed now.
    pub(crate) fn per_second(&self, now: Duration) -> u32 {
        self.bucket().per_second(&(), now)
    }
}

fn taken(token: Token) -> Result<(), NotYet> {
    match token {
        Token::Taken => Ok(()),
        Token::After(wait) => Err(NotYet(wait)),
    }
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
    fn a_step_that_has_begun_ends_while_others_wait_to_begin() {
        let tokens = tokens(20);
        for begins in ["a", "b", "c", "d", "e"] {
            assert_eq!(tokens.begin(begins, at(0)), Ok(()));
        }
        assert_eq!(tokens.begin("f", at(0)), wait(1_000));
        for _ in 0..15 {
            assert_eq!(tokens.further(at(0)), Ok(()));
        }
        assert_eq!(tokens.further(at(0)), wait(1_000));
        assert_eq!(tokens.further(at(1_000)), Ok(()));
    }

    #[test]
    fn an_account_of_one_call_a_second_can_still_update_a_policy_with_all_its_versions() {
        let tokens = tokens(2);
        assert_eq!(tokens.begin("a", at(0)), Ok(()));
        for _ in 0..9 {
            assert_eq!(tokens.further(at(0)), Ok(()));
        }
    }
}
