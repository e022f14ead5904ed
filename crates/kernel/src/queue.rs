//! The work queue: which subject is next, and when. Plain data, without a clock.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::Duration;

/// How failures are slowed down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The wait after the first failure of a key; each further one doubles it.
    pub first_wait: Duration,
    /// The longest wait after a failure.
    pub longest_wait: Duration,
    /// How many retries a second there may be of all keys together, in the long run.
    pub retries_per_second: u32,
    /// How many retries may come at once before that limit is felt.
    pub burst: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            first_wait: Duration::from_millis(5),
            longest_wait: Duration::from_secs(300),
            retries_per_second: 100,
            burst: 1000,
        }
    }
}

/// Keys that wait for their turn.
///
/// * A key that is added twice before its turn has one turn.
/// * A key that is added during its turn has another one afterwards; never two at once.
/// * A turn makes good all that was added before it, at once or for later: whoever has the turn
///   says anew how long to wait.
/// * A key that nothing is known of takes no room. History does not pile up.
///
/// `now` is the time since some start, on a clock that never goes back.
#[derive(Debug, Clone)]
pub struct Queue<K> {
    limits: Limits,
    /// Keys whose turn may come now, in order; each once.
    ready: VecDeque<K>,
    /// Keys that are owed a turn: those in `ready`, and those added during their turn.
    owed: HashSet<K>,
    /// Keys that have their turn now.
    running: HashSet<K>,
    /// Keys for later, by when; the number keeps those of one time in order.
    later: BTreeMap<(Duration, u64), K>,
    /// Where each of them is in `later`: one place at most.
    due: HashMap<K, (Duration, u64)>,
    numbered: u64,
    /// How often a key has failed since it last succeeded.
    failures: HashMap<K, u32>,
    /// When all retries granted so far would be used up at the steady rate.
    retries_used_until: Duration,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Queue::new(Limits::default())
    }
}

impl<K> Queue<K> {
    /// A queue with nothing in it.
    pub fn new(limits: Limits) -> Self {
        Queue {
            limits,
            ready: VecDeque::new(),
            owed: HashSet::new(),
            running: HashSet::new(),
            later: BTreeMap::new(),
            due: HashMap::new(),
            numbered: 0,
            failures: HashMap::new(),
            retries_used_until: Duration::ZERO,
        }
    }

    /// How many keys could have their turn now.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// How many keys have their turn now.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// How many keys wait for a time.
    pub fn later(&self) -> usize {
        self.later.len()
    }

    /// How many keys have failed and not succeeded since.
    pub fn failing(&self) -> usize {
        self.failures.len()
    }

    /// Whether nothing at all is remembered.
    pub fn is_idle(&self) -> bool {
        self.owed.is_empty()
            && self.running.is_empty()
            && self.later.is_empty()
            && self.failures.is_empty()
    }

    /// When [`Queue::next`] may have a key, if nothing is added before; zero: at once.
    pub fn wakes_at(&self) -> Option<Duration> {
        if !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        self.later.first_key_value().map(|((at, _), _)| *at)
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// The key is to have a turn.
    pub fn add(&mut self, key: K) {
        if !self.owed.insert(key.clone()) {
            return;
        }
        if !self.running.contains(&key) {
            self.ready.push_back(key);
        }
    }

    /// The key is to have a turn at this time at the latest, or at an earlier one it was given.
    pub fn add_at(&mut self, key: K, at: Duration) {
        match self.due.get(&key) {
            Some((earlier, _)) if *earlier <= at => return,
            Some(place) => {
                self.later.remove(place);
            }
            None => {}
        }
        let place = (at, self.numbered);
        self.numbered += 1;
        self.due.insert(key.clone(), place);
        self.later.insert(place, key);
    }

    /// The key is to have a turn at this time, unless it has one by `enough` anyway.
    pub fn add_unless_due(&mut self, key: K, at: Duration, enough: Duration) {
        let is_due = self.due.get(&key).is_some_and(|(due, _)| *due <= enough);
        if !is_due && !self.owed.contains(&key) {
            self.add_at(key, at);
        }
    }

    /// The key is to have a turn within this time.
    pub fn add_after(&mut self, key: K, wait: Duration, now: Duration) {
        if wait.is_zero() {
            return self.add(key);
        }
        self.add_at(key, now.saturating_add(wait));
    }

    /// The turn of this key failed: it has another after a wait, which grows with each failure and
    /// with the failures of all others. Said before [`Queue::done`]. The wait.
    pub fn failed(&mut self, key: &K, now: Duration) -> Duration {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let wait = doubled(&self.limits, *failures);
        *failures = failures.saturating_add(1);
        let wait = wait.max(self.grant_retry(now));
        self.add_after(key.clone(), wait, now);
        wait
    }

    /// The turn of this key went well: its failures are forgotten.
    pub fn succeeded(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// The next key; it has its turn until [`Queue::done`].
    pub fn next(&mut self, now: Duration) -> Option<K> {
        self.bring_forward(now);
        let key = self.ready.pop_front()?;
        self.owed.remove(&key);
        self.running.insert(key.clone());
        if let Some(place) = self.due.remove(&key) {
            self.later.remove(&place);
        }
        Some(key)
    }

    /// The turn of this key is over.
    pub fn done(&mut self, key: &K) {
        if !self.running.remove(key) {
            return;
        }
        if self.owed.contains(key) {
            self.ready.push_back(key.clone());
            return;
        }
        // A key that nothing more is to happen to is not remembered, not even its failures.
        if !self.due.contains_key(key) {
            self.failures.remove(key);
        }
    }

    fn bring_forward(&mut self, now: Duration) {
        while let Some(first) = self.later.first_entry() {
            if first.key().0 > now {
                return;
            }
            let key = first.remove();
            self.due.remove(&key);
            self.add(key);
        }
    }

    /// How long the retry must wait so that all retries together keep to their rate: a leaky
    /// bucket, told by the one time at which it is empty.
    fn grant_retry(&mut self, now: Duration) -> Duration {
        let each = Duration::from_secs(1) / self.limits.retries_per_second.max(1);
        let spare = each.saturating_mul(self.limits.burst);
        self.retries_used_until = self.retries_used_until.max(now).saturating_add(each);
        self.retries_used_until.saturating_sub(now.saturating_add(spare))
    }
}

fn doubled(limits: &Limits, failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    limits.first_wait.saturating_mul(factor).min(limits.longest_wait)
}

#[cfg(any(test, feature = "model"))]
#[path = "queue_model.rs"]
pub(crate) mod model;
#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
