//! How long a subject waits for work that somebody does outside of the API. Nobody tells when that is
//! done, so it is polled: soon at first, since most of it takes milliseconds, and then later
//! each time, since the rest takes long.

use interlock_kernel::Subject;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The first wait; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(10);
/// A step that would wait for longer does not wait for such work.
const LONGEST: Duration = Duration::from_secs(1);

/// The next wait of each subject that waits now.
#[derive(Debug, Default)]
pub(crate) struct PollBackoff(Mutex<HashMap<Subject, Duration>>);

impl PollBackoff {
    fn next(&self) -> MutexGuard<'_, HashMap<Subject, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the subject waits this time, where its step would wait so long at most.
    pub(crate) fn wait(&self, subject: &Subject, at_most: Duration) -> Duration {
        if at_most > LONGEST {
            self.ends(subject);
            return at_most;
        }
        let mut next = self.next();
        let next = next.entry(Subject::clone(subject)).or_insert(FIRST);
        let wait = (*next).min(at_most);
        *next = wait * 2;
        wait
    }

    /// The subject waits no more.
    pub(crate) fn ends(&self, subject: &Subject) {
        self.next().remove(subject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_polled_soon_and_then_later_each_time() {
        let poll_backoff = PollBackoff::default();
        let subject = Subject::from("a");
        let waits = |at_most: u64| -> Vec<u128> {
            let at_most = Duration::from_millis(at_most);
            (0..6).map(|_| poll_backoff.wait(&subject, at_most).as_millis()).collect()
        };
        assert_eq!(waits(200), [10, 20, 40, 80, 160, 200]);
        assert_eq!(waits(200), [200; 6]);
        poll_backoff.ends(&subject);
        assert_eq!(waits(15), [10, 15, 15, 15, 15, 15]);
        assert_eq!(waits(600_000), [600_000; 6]);
        assert!(poll_backoff.next().is_empty(), "who waits for no work takes no room");
    }
}
