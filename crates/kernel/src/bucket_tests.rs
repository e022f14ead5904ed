//! The bucket by example, and at random against what it promises.

use super::*;
use interlock_checker::Rng;

const ACCOUNT: &str = "account";

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn taken(bucket: &mut Bucket<&'static str, u32>, waiter: u32, now: Duration) -> bool {
    bucket.take(&ACCOUNT, &waiter, now) == Token::Taken
}

#[test]
fn the_burst_is_given_at_once_and_then_one_waits_for_the_rate() {
    let mut bucket = Bucket::default();
    assert!((0..20).all(|waiter| taken(&mut bucket, waiter, ms(0))));
    assert_eq!(bucket.take(&ACCOUNT, &20, ms(0)), Token::After(ms(100)));
    assert_eq!(bucket.take(&ACCOUNT, &21, ms(0)), Token::After(ms(200)));
    assert!(taken(&mut bucket, 20, ms(100)));
    assert_eq!(bucket.take(&ACCOUNT, &21, ms(100)), Token::After(ms(100)));
    assert!(taken(&mut bucket, 21, ms(200)));
    assert_eq!(bucket.waiting(), 0);
}

#[test]
fn who_asks_later_does_not_get_the_token_of_one_who_waits() {
    let mut bucket = Bucket::default();
    assert!((0..20).all(|waiter| taken(&mut bucket, waiter, ms(0))));
    bucket.take(&ACCOUNT, &20, ms(0));
    // The token is there, but it is reserved.
    assert_eq!(bucket.take(&ACCOUNT, &99, ms(100)), Token::After(ms(100)));
    assert!(taken(&mut bucket, 20, ms(150)));
}

#[test]
fn asking_again_early_keeps_the_place() {
    let mut bucket = Bucket::default();
    assert!((0..20).all(|waiter| taken(&mut bucket, waiter, ms(0))));
    for _ in 0..5 {
        assert_eq!(bucket.take(&ACCOUNT, &20, ms(0)), Token::After(ms(100)));
    }
    assert_eq!(bucket.waiting(), 1);
}

#[test]
fn one_who_does_not_return_costs_the_others_one_token_and_is_forgotten() {
    let mut bucket = Bucket::default();
    assert!((0..20).all(|waiter| taken(&mut bucket, waiter, ms(0))));
    bucket.take(&ACCOUNT, &20, ms(0));
    assert_eq!(bucket.take(&ACCOUNT, &21, ms(0)), Token::After(ms(200)));
    assert!(taken(&mut bucket, 21, ms(200)));
    // Its token was the first; it is kept until the twentieth has come.
    assert_eq!(bucket.waiting(), 1);
    bucket.take(&ACCOUNT, &22, ms(2_000));
    assert_eq!(bucket.waiting(), 1);
    bucket.take(&ACCOUNT, &23, ms(2_001));
    assert_eq!(bucket.waiting(), 0);
}

#[test]
fn throttling_halves_the_rate_down_to_the_least_and_it_comes_back_step_by_step() {
    let mut bucket: Bucket<_, u32> = Bucket::default();
    let seconds = Duration::from_secs;
    let mut rates = vec![bucket.per_second(&ACCOUNT, ms(0))];
    for _ in 0..5 {
        bucket.throttled(&ACCOUNT, seconds(1));
        rates.push(bucket.per_second(&ACCOUNT, seconds(1)));
    }
    assert_eq!(rates, [10, 5, 2, 1, 1, 1]);
    let later: Vec<_> =
        [10, 11, 21, 31, 91, 101, 999].map(|at| bucket.per_second(&ACCOUNT, seconds(at))).into();
    assert_eq!(later, [1, 2, 3, 4, 10, 10, 10]);
    // A throttled call ends the quiet time.
    bucket.throttled(&ACCOUNT, seconds(20));
    assert_eq!(bucket.per_second(&ACCOUNT, seconds(29)), 1);
    assert_eq!(bucket.per_second(&ACCOUNT, seconds(30)), 2);
}

#[test]
fn the_wait_counts_the_raises_to_come() {
    let mut bucket = Bucket::new(CallRate { burst: 2, ..CallRate::default() });
    for _ in 0..4 {
        bucket.throttled(&ACCOUNT, ms(0));
    }
    assert!((0..2).all(|waiter| taken(&mut bucket, waiter, ms(0))));
    // Ten come in the first ten seconds, twenty in the next, and three each second then.
    let waits: Vec<_> = (2..35).map(|waiter| bucket.take(&ACCOUNT, &waiter, ms(0))).collect();
    let second = |seconds| Token::After(Duration::from_secs(seconds));
    assert_eq!((waits[0], waits[9], waits[11]), (second(1), second(10), second(11)));
    assert_eq!((waits[29], waits[32]), (second(20), second(21)));
    assert!(taken(&mut bucket, 34, Duration::from_secs(21)));
}

#[test]
fn keys_do_not_slow_each_other_down_and_those_at_rest_are_forgotten() {
    let mut bucket = Bucket::default();
    for second in 0..10_000_u64 {
        let now = Duration::from_secs(second);
        assert_eq!(bucket.take(&second, &0, now), Token::Taken);
        assert!(bucket.remembered() <= 2 * FEW, "{}", bucket.remembered());
    }
    // A key that is slow or has somebody waiting is not forgotten.
    let now = Duration::from_secs(10_000);
    bucket.throttled(&0, now);
    for key in 1..1_000 {
        bucket.take(&key, &0, now);
        bucket.take(&key, &0, now + ms(10));
    }
    assert_eq!(bucket.per_second(&0, now), 5);
}

#[test]
fn everybody_who_waits_on_time_uses_the_whole_rate() {
    let mut bucket = Bucket::default();
    let mut due: BTreeMap<(Duration, u32), ()> = (0..1_000).map(|w| ((ms(0), w), ())).collect();
    let mut last = ms(0);
    while let Some(((now, waiter), ())) = due.pop_first() {
        match bucket.take(&ACCOUNT, &waiter, now) {
            Token::Taken => last = now,
            Token::After(wait) => assert_eq!(due.insert((now + wait, waiter), ()), None),
        }
    }
    assert_eq!(last, ms((1_000 - 20) * 100));
}

#[test]
fn limits_that_make_no_sense_are_made_sensible() {
    let rate =
        CallRate { per_second: 0, burst: 0, least_per_second: 0, raised_after: Duration::ZERO };
    let mut bucket = Bucket::new(rate);
    bucket.throttled(&ACCOUNT, ms(0));
    assert!((0..2).all(|waiter| taken(&mut bucket, waiter, ms(0))));
    assert_eq!(bucket.take(&ACCOUNT, &2, ms(0)), Token::After(ms(1_000)));
    // The end of time is no overflow.
    assert!(taken(&mut bucket, 3, Duration::MAX));
}

/// What happened to one bucket: the calls, and the tokens that came in between.
#[derive(Default)]
struct Record {
    /// When a call was made, and how many billionths had come since the start by then.
    calls: Vec<(Duration, u128)>,
}

impl Record {
    /// The most that any window exceeds its rate by, in billionths.
    fn most_above_the_rate(&self) -> i128 {
        let mut most = i128::MIN;
        for (from, (_, before)) in self.calls.iter().enumerate() {
            for (to, (_, after)) in self.calls.iter().enumerate().skip(from) {
                let calls = (to - from + 1) as i128 * TOKEN as i128;
                most = most.max(calls - (after - before) as i128);
            }
        }
        most
    }
}

/// A second account of the rate, kept in steps of a millisecond.
struct Reference {
    per_second: u32,
    quiet: Duration,
    come: u128,
}

impl Reference {
    fn pass_millisecond(&mut self, rate: &CallRate) {
        self.come += tokens(self.per_second, ms(1));
        self.quiet += ms(1);
        if self.quiet == rate.raised_after {
            self.quiet = ms(0);
            self.per_second = (self.per_second + 1).min(rate.per_second);
        }
    }

    fn throttle(&mut self, rate: &CallRate) {
        self.per_second = (self.per_second / 2).max(rate.least_per_second);
        self.quiet = ms(0);
    }
}

#[test]
fn in_no_window_are_there_more_calls_than_the_rate_and_the_burst_allow() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let rate = CallRate {
            per_second: 1 + rng.below(12) as u32,
            burst: 2 + rng.below(6) as u32,
            least_per_second: 1,
            raised_after: ms(500 + 100 * rng.below(10) as u64),
        };
        let mut bucket = Bucket::new(rate.clone());
        let mut reference = Reference { per_second: rate.per_second, quiet: ms(0), come: 0 };
        let mut record = Record::default();
        for millisecond in 0..8_000 {
            let now = ms(millisecond);
            // Some come when they like, some never return, some come all at once.
            let crowd = if rng.below(400) == 0 { 30 } else { usize::from(rng.below(40) == 0) };
            for _ in 0..crowd {
                let waiter = rng.below(30) as u32;
                if taken(&mut bucket, waiter, now) {
                    record.calls.push((now, reference.come));
                }
            }
            if rng.below(1_500) == 0 {
                bucket.throttled(&ACCOUNT, now);
                reference.throttle(&rate);
            }
            assert_eq!(bucket.per_second(&ACCOUNT, now), reference.per_second, "seed {seed}");
            reference.pass_millisecond(&rate);
        }
        let most = record.most_above_the_rate();
        assert!(most <= (u128::from(rate.burst) * TOKEN) as i128, "seed {seed}: {most}");
        assert!(record.calls.len() > 5, "seed {seed}: {} calls", record.calls.len());
    }
}

#[test]
fn who_returns_on_time_is_served_in_the_order_of_the_first_questions() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut bucket = Bucket::default();
        let mut due: BTreeMap<(Duration, u32), ()> = BTreeMap::new();
        let (mut asked, mut served) = (0, Vec::new());
        for step in 0..400 {
            let now = ms(step * 50);
            for _ in 0..rng.below(3) {
                due.insert((now, asked), ());
                asked += 1;
            }
            while let Some(((at, waiter), ())) = due.pop_first() {
                if at > now {
                    due.insert((at, waiter), ());
                    break;
                }
                match bucket.take(&ACCOUNT, &waiter, at) {
                    Token::Taken => served.push(waiter),
                    Token::After(wait) => assert_eq!(due.insert((at + wait, waiter), ()), None),
                }
            }
            if rng.below(200) == 0 {
                bucket.throttled(&ACCOUNT, now);
            }
        }
        assert!(served.is_sorted(), "seed {seed}: {served:?}");
        assert!(served.len() > 40, "seed {seed}: {}", served.len());
    }
}

#[test]
fn who_is_as_late_as_tokens_are_kept_is_served_and_who_is_later_asks_anew() {
    let rate = CallRate { per_second: 2, burst: 4, ..CallRate::default() };
    for (late, is_served) in [(Duration::ZERO, true), (Duration::from_nanos(1), false)] {
        let mut bucket = Bucket::new(rate.clone());
        assert!((0..4).all(|waiter| taken(&mut bucket, waiter, ms(0))));
        assert_eq!(bucket.take(&ACCOUNT, &4, ms(0)), Token::After(ms(500)));
        // Others want all that comes.
        for other in 5..9 {
            bucket.take(&ACCOUNT, &other, ms(0));
        }
        // Three more tokens come, at two a second.
        assert_eq!(bucket.kept_for(), ms(1_500));
        let back = ms(500) + bucket.kept_for() + late;
        assert_eq!(taken(&mut bucket, 4, back), is_served, "{late:?}");
    }
}
