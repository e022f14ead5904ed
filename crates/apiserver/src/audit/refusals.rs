//! Refusals in the log: a few of each caller each second. Whoever is refused again and again must not fill the log that
//! shows what others did.

use std::collections::HashMap;

/// So many refusals of one caller are written down each second.
const EACH_SECOND: u32 = 20;

/// What was written down in this second.
#[derive(Default)]
pub(super) struct Refusals {
    second: i64,
    of_callers: HashMap<String, u32>,
}

impl Refusals {
    /// Whether one more is written down.
    pub(super) fn takes(&mut self, cluster: &str, user: &str, second: i64) -> bool {
        if second != self.second {
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
}
