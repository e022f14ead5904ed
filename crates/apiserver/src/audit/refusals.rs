//! Refusals in the log: a few of each caller each second. Whoever is refused again and again must not fill the log that
//! shows what others did.

use std::collections::HashMap;

/// So many refusals of one caller are written down each second.
const EACH_SECOND: u32 = 20;

/// A request that takes longer is no matter of seconds any more. So far back in time the clock was set.
const LATE_SECONDS: i64 = 120;

/// What was written down in this second.
#[derive(Default)]
pub(super) struct Refusals {
    second: i64,
    of_callers: HashMap<String, u32>,
}

impl Refusals {
    /// Whether one more is written down. Requests end in another order than they began in: one that began in an
    /// earlier second counts for this one, or two of them in turn would begin every share anew.
    pub(super) fn takes(&mut self, cluster: &str, user: &str, second: i64) -> bool {
        if second > self.second || second < self.second - LATE_SECONDS {
            *self = Refusals { second, of_callers: HashMap::new() };
        }
        // No name of a cluster has a slash.
        let count = self.of_callers.entry(format!("{cluster}/{user}")).or_default();
        *count += 1;
        *count <= EACH_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_its_own_share_of_each_second() {
        let mut refusals = Refusals::default();
        let mut taken =
            |user: &str, second| (0..100).filter(|_| refusals.takes("east", user, second)).count();
        assert_eq!(taken("loud", 7), 20);
        assert_eq!(taken("quiet", 7), 20);
        assert_eq!(taken("loud", 7), 0);
        assert_eq!(taken("loud", 8), 20);
        assert_eq!(refusals.of_callers.len(), 1);
    }

    #[test]
    fn requests_that_end_out_of_order_have_one_share() {
        let mut refusals = Refusals::default();
        let mut taken = |second| usize::from(refusals.takes("east", "loud", second));
        let in_turn: usize = (0..100).map(|number| taken(7 + number % 2)).sum();
        // The share of the first second was hardly used when the next one began.
        assert_eq!(in_turn, 21);
        // The clock was set back: the log goes on.
        assert_eq!(taken(7 - LATE_SECONDS), 1);
    }
}
