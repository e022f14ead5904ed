//! Token buckets: who may call now, and how long the others wait. Plain data, without a clock.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

/// How often may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRate {
    /// Calls a second in the long run, while nothing throttles.
    pub per_second: u32,
    /// Calls at once after a rest; at least 2, since a reservation is kept for fewer tokens than these.
    pub burst: u32,
    /// Throttling does not slow down below this.
    pub least_per_second: u32,
    /// So long without throttling raises the rate by one call a second.
    pub raised_after: Duration,
}

impl Default for CallRate {
    fn default() -> Self {
        CallRate {
            per_second: 10,
            burst: 20,
            least_per_second: 1,
            raised_after: Duration::from_secs(10),
        }
    }
}

/// The answer to somebody who wants to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// Call now, as often as was asked for.
    Taken,
    /// The tokens are reserved: ask again after this time, and not later than [`Bucket::kept_for`] after it. Whoever
    /// comes back later each time asks anew each time, and may wait for ever where others keep asking.
    After(Duration),
}

/// A token bucket for each key (an account, an endpoint) whose calls count together.
///
/// * In any time `t` there are at most `burst` calls more than the rate allows in `t`.
/// * Whoever asks and must wait has a reservation: nobody who asks later takes its tokens.
/// * A reservation that is not used while `burst - 1` further tokens come is lost, so that one who never
///   returns costs the others one token. The next question is a new reservation. So who comes back within
///   [`Bucket::kept_for`] of its time is served, and who is later each time may never be.
/// * Who has begun goes first: of the burst some tokens may be kept for the further calls of those who had
///   their first one. What comes fills up what is kept, and only then serves those who wait to begin. So
///   nobody begins before all who have begun can go on.
/// * Throttling halves the rate at once; it recovers step by step.
/// * A key that is at rest, with its burst and its rate whole, takes no memory.
///
/// `now` is the time since some start, on a clock that never goes back.
#[derive(Debug, Clone)]
pub struct Bucket<K, W> {
    /// Its burst is the part that is not kept.
    rate: CallRate,
    /// So many tokens are kept for further calls.
    kept: u32,
    levels: HashMap<K, Level<W>>,
    /// With more keys than this, those at rest are looked for.
    swept_above: usize,
}

/// Below this many keys none is looked for.
const FEW: usize = 16;

/// Tokens are counted in billionths: a rate of one a second is one billionth a nanosecond.
const TOKEN: u128 = 1_000_000_000;

impl<K, W> Default for Bucket<K, W> {
    fn default() -> Self {
        Bucket::new(CallRate::default())
    }
}

impl<K, W> Bucket<K, W> {
    /// Buckets that are all full.
    pub fn new(rate: CallRate) -> Self {
        let least_per_second = rate.least_per_second.max(1);
        let rate = CallRate {
            per_second: rate.per_second.max(least_per_second),
            burst: rate.burst.max(2),
            least_per_second,
            raised_after: rate.raised_after.max(Duration::from_millis(1)),
        };
        Bucket { rate, kept: 0, levels: HashMap::new(), swept_above: FEW }
    }

    /// The same, with so many tokens of the burst kept for further calls; two at least are not.
    pub fn keeping(rate: CallRate, kept: u32) -> Self {
        let whole = Bucket::new(rate);
        let kept = kept.min(whole.rate.burst - 2);
        let rate = CallRate { burst: whole.rate.burst - kept, ..whole.rate };
        Bucket { rate, kept, ..whole }
    }

    /// How many keys are remembered.
    pub fn remembered(&self) -> usize {
        self.levels.len()
    }

    /// How many wait for a token, of all keys.
    pub fn waiting(&self) -> usize {
        self.levels.values().map(|level| level.numbers.len()).sum()
    }
}

impl<K: Clone + Eq + Hash, W: Clone + Eq + Hash> Bucket<K, W> {
    /// Somebody wants to call. It is known by its name until it has its token.
    pub fn take(&mut self, key: &K, waiter: &W, now: Duration) -> Token {
        let rate = self.rate.clone();
        self.level(key, now).take(&rate, waiter)
    }

    /// Somebody who has begun wants to call once more: before all who wait to begin. Nothing is reserved.
    pub fn take_further(&mut self, key: &K, now: Duration) -> Token {
        let rate = self.rate.clone();
        self.level(key, now).take_further(&rate)
    }

    /// How much later than the answer said one may come back, and find its token reserved still: as long as it
    /// takes, at the highest rate, until the tokens come that make the reservation a lost one.
    pub fn kept_for(&self) -> Duration {
        let CallRate { burst, per_second, .. } = self.rate;
        Duration::from_secs(u64::from(burst - 1)) / per_second
    }

    /// A call was throttled.
    pub fn throttled(&mut self, key: &K, now: Duration) {
        let rate = self.rate.clone();
        self.level(key, now).slow_down(&rate);
    }

    /// Calls a second that this key is allowed now.
    pub fn per_second(&self, key: &K, now: Duration) -> u32 {
        let Some(level) = self.levels.get(key) else { return self.rate.per_second };
        level.raises(&self.rate, now).per_second
    }

    fn level(&mut self, key: &K, now: Duration) -> &mut Level<W> {
        if self.levels.len() > self.swept_above {
            let rate = &self.rate;
            self.levels.retain(|_, level| {
                level.advance(rate, now);
                !level.is_at_rest(rate)
            });
            // Each search is paid for by as many keys that came since the last one.
            self.swept_above = FEW.max(2 * self.levels.len());
        }
        let (rate, kept) = (&self.rate, self.kept);
        let full = || Level::full(rate, now).keeping(kept);
        let level = self.levels.entry(key.clone()).or_insert_with(full);
        level.advance(rate, now);
        level
    }
}

/// The bucket of one key. Tokens have numbers, in the order in which they come, and are given to
/// those who ask in the order in which they ask: who has the number `n` may call once `n + 1` tokens have
/// come, and until `n + burst` have.
#[derive(Debug, Clone)]
struct Level<W> {
    /// The tokens that have come, in billionths; never more than `burst` beyond those given out.
    come: u128,
    /// The tokens that are kept for further calls, in billionths; these have no numbers.
    kept: u128,
    /// So many of these there are at most.
    most_kept: u128,
    /// Up to when they are counted.
    at: Duration,
    speed: Speed,
    /// The next number to give out.
    next: u64,
    /// The reservations, by waiter and by number.
    numbers: HashMap<W, u64>,
    waiters: BTreeMap<u64, W>,
}

/// The rate of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Speed {
    per_second: u32,
    /// When it is raised by one, unless it is whole.
    raised_at: Duration,
}

/// So many billionths come in a time.
fn tokens(per_second: u32, time: Duration) -> u128 {
    time.as_nanos() * u128::from(per_second)
}

impl<W> Level<W> {
    fn full(rate: &CallRate, now: Duration) -> Self {
        Level {
            come: u128::from(rate.burst) * TOKEN,
            kept: 0,
            most_kept: 0,
            at: now,
            speed: Speed { per_second: rate.per_second, raised_at: now },
            next: 0,
            numbers: HashMap::new(),
            waiters: BTreeMap::new(),
        }
    }

    fn keeping(self, tokens: u32) -> Self {
        let kept = u128::from(tokens) * TOKEN;
        Level { kept, most_kept: kept, ..self }
    }

    fn is_at_rest(&self, rate: &CallRate) -> bool {
        let is_full = self.come == self.most(rate) && self.kept == self.most_kept;
        self.numbers.is_empty() && is_full && self.speed.per_second == rate.per_second
    }

    fn most(&self, rate: &CallRate) -> u128 {
        (u128::from(self.next) + u128::from(rate.burst)) * TOKEN
    }

    /// The rate at a time, if nothing throttles before.
    fn raises(&self, rate: &CallRate, now: Duration) -> Speed {
        let mut speed = self.speed;
        while speed.per_second < rate.per_second && speed.raised_at <= now {
            speed.per_second += 1;
            speed.raised_at = speed.raised_at.saturating_add(rate.raised_after);
        }
        speed
    }

    fn slow_down(&mut self, rate: &CallRate) {
        let halved = (self.speed.per_second / 2).max(rate.least_per_second);
        let raised_at = self.at.saturating_add(rate.raised_after);
        self.speed = Speed { per_second: halved, raised_at };
    }

    /// After which time so many further billionths will have come, if nothing throttles before.
    fn time_for(&self, rate: &CallRate, mut missing: u128) -> Duration {
        let (mut at, mut speed) = (self.at, self.speed);
        loop {
            let time = missing.div_ceil(u128::from(speed.per_second));
            let time = Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX));
            let there = at.saturating_add(time);
            if speed.per_second >= rate.per_second || there <= speed.raised_at {
                return there.saturating_sub(self.at);
            }
            let come = tokens(speed.per_second, speed.raised_at.saturating_sub(at));
            missing = missing.saturating_sub(come);
            at = speed.raised_at;
            speed.per_second += 1;
            speed.raised_at = at.saturating_add(rate.raised_after);
        }
    }
}

impl<W: Clone + Eq + Hash> Level<W> {
    /// Counts the tokens that have come since, and drops what is too late.
    fn advance(&mut self, rate: &CallRate, now: Duration) {
        while self.at < now {
            let is_slow = self.speed.per_second < rate.per_second;
            let until = if is_slow { self.speed.raised_at.clamp(self.at, now) } else { now };
            let come = tokens(self.speed.per_second, until.saturating_sub(self.at));
            let kept = come.min(self.most_kept - self.kept);
            self.kept += kept;
            self.come += come - kept;
            self.at = until;
            self.speed = self.raises(rate, until);
        }
        self.come = self.come.min(self.most(rate));
        while let Some(first) = self.waiters.first_entry() {
            let last_use = (u128::from(*first.key()) + u128::from(rate.burst)) * TOKEN;
            if self.come <= last_use {
                return;
            }
            let waiter = first.remove();
            self.numbers.remove(&waiter);
        }
    }

    fn take(&mut self, rate: &CallRate, waiter: &W) -> Token {
        let number = self.numbers.remove(waiter).unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        let wanted = (u128::from(number) + 1) * TOKEN;
        if self.come >= wanted {
            self.waiters.remove(&number);
            return Token::Taken;
        }
        self.numbers.insert(waiter.clone(), number);
        self.waiters.insert(number, waiter.clone());
        let missing = wanted - self.come + (self.most_kept - self.kept);
        Token::After(self.time_for(rate, missing))
    }

    fn take_further(&mut self, rate: &CallRate) -> Token {
        if self.kept >= TOKEN {
            self.kept -= TOKEN;
            return Token::Taken;
        }
        // What nobody waits for is there for everybody.
        let wanted = (u128::from(self.next) + 1) * TOKEN;
        if self.come >= wanted {
            self.next += 1;
            return Token::Taken;
        }
        let missing = if self.most_kept > 0 { TOKEN - self.kept } else { wanted - self.come };
        Token::After(self.time_for(rate, missing))
    }
}

#[cfg(test)]
#[path = "bucket_further_tests.rs"]
mod further_tests;
#[cfg(any(test, feature = "model"))]
#[path = "bucket_model.rs"]
pub(crate) mod model;
#[cfg(test)]
#[path = "bucket_tests.rs"]
mod tests;
