//! How fast something that fails is tried again: slower each time, and not all at once.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// A wait that doubles with each failure, up to a longest one.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Backoff { first, longest, next: first }
    }

    /// Begins anew.
    pub(crate) fn went_well(&mut self) {
        self.next = self.first;
    }

    /// How long to wait this time.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.longest);
        jittered(wait)
    }

    /// Waits that long.
    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.next()).await;
    }
}

/// Between three quarters and five quarters of a time, so that a hundred processes that lost the
/// same server do not come back to it in one moment.
pub(crate) fn jittered(time: Duration) -> Duration {
    let quarters = (random() % 512) as u32;
    time * 3 / 4 + time * quarters / 1024
}

/// Randomness that nothing depends on: the standard library's own, for its hash tables.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_longer_until_one_went_well() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(4));
        let waits: Vec<_> = (0..4).map(|_| backoff.next()).collect();
        for (wait, seconds) in waits.iter().zip([1.0, 2.0, 4.0, 4.0]) {
            let wait = wait.as_secs_f64();
            assert!(wait >= seconds * 0.75 && wait <= seconds * 1.25, "{wait} is not {seconds}");
        }
        backoff.went_well();
        assert!(backoff.next() <= Duration::from_millis(1250));
    }
}
