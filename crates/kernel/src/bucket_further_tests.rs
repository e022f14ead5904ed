//! Tokens that are kept for those who have begun.

use super::*;
use interlock_checker::Rng;

const ACCOUNT: &str = "account";

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Ten a second, twenty at once, of which fifteen are kept.
fn bucket() -> Bucket<&'static str, u32> {
    Bucket::keeping(CallRate::default(), 15)
}

#[test]
fn who_has_begun_goes_before_all_who_wait_to_begin() {
    let mut bucket = bucket();
    assert!((0..5).all(|waiter| bucket.take(&ACCOUNT, &waiter, ms(0)) == Token::Taken));
    assert_eq!(bucket.take(&ACCOUNT, &5, ms(0)), Token::After(ms(100)));
    assert!((0..15).all(|_| bucket.take_further(&ACCOUNT, ms(0)) == Token::Taken));
    assert_eq!(bucket.take_further(&ACCOUNT, ms(0)), Token::After(ms(100)));
    // All that was kept comes back before anybody begins.
    assert_eq!(bucket.take(&ACCOUNT, &5, ms(0)), Token::After(ms(1_600)));
    assert_eq!(bucket.take_further(&ACCOUNT, ms(100)), Token::Taken);
    assert_eq!(bucket.take(&ACCOUNT, &5, ms(1_600)), Token::After(ms(100)));
    assert_eq!(bucket.take(&ACCOUNT, &5, ms(1_700)), Token::Taken);
}

#[test]
fn what_nobody_waits_for_is_there_for_everybody() {
    let mut bucket = bucket();
    assert!((0..20).all(|_| bucket.take_further(&ACCOUNT, ms(0)) == Token::Taken));
    assert_eq!(bucket.take_further(&ACCOUNT, ms(0)), Token::After(ms(100)));
    let mut none_kept: Bucket<&str, u32> = Bucket::default();
    assert!((0..20).all(|_| none_kept.take_further(&ACCOUNT, ms(0)) == Token::Taken));
    assert_eq!(none_kept.take_further(&ACCOUNT, ms(0)), Token::After(ms(100)));
    assert_eq!(none_kept.take(&ACCOUNT, &0, ms(50)), Token::After(ms(50)));
    // The token that comes next is reserved.
    assert_eq!(none_kept.take_further(&ACCOUNT, ms(100)), Token::After(ms(100)));
}

#[test]
fn two_tokens_at_least_are_not_kept_and_a_key_at_rest_is_forgotten() {
    let rate = CallRate { burst: 4, ..CallRate::default() };
    let mut all: Bucket<u64, u32> = Bucket::keeping(rate, 100);
    assert!((0..2).all(|waiter| all.take(&0, &waiter, ms(0)) == Token::Taken));
    assert_eq!(all.take(&0, &2, ms(0)), Token::After(ms(100)));
    for second in 0..1_000 {
        let now = Duration::from_secs(second);
        assert_eq!(all.take_further(&second, now), Token::Taken);
        assert!(all.remembered() <= 2 * FEW, "{}", all.remembered());
    }
}

/// Steps of random length, of many who are always there: whoever has begun waits for no one but others who
/// have begun, no window has more calls than rate and burst allow, and no token is lost.
#[test]
fn the_whole_rate_is_used_and_never_exceeded_and_who_has_begun_goes_on() {
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let mut bucket = bucket();
        // What is left of the step of each, and when it asks again.
        let mut steps: Vec<(usize, Duration)> = vec![(0, ms(0)); 24];
        let (mut calls, mut began, mut longest) = (Vec::new(), vec![ms(0); 24], ms(0));
        for millisecond in 0..60_000 {
            let now = ms(millisecond);
            for (who, step) in steps.iter_mut().enumerate() {
                let (left, due) = *step;
                if due > now {
                    continue;
                }
                let token = match left {
                    0 => bucket.take(&ACCOUNT, &(who as u32), now),
                    _ => bucket.take_further(&ACCOUNT, now),
                };
                *step = match (token, left) {
                    (Token::After(wait), left) => (left, now + wait.max(ms(1))),
                    (Token::Taken, 0) => {
                        began[who] = now;
                        (rng.below(6), now)
                    }
                    (Token::Taken, left) => {
                        longest = longest.max(now - began[who]);
                        (left - 1, now)
                    }
                };
                if token == Token::Taken {
                    calls.push(now);
                }
            }
        }
        assert!(longest < Duration::from_secs(3), "seed {seed}: {longest:?}");
        assert!(calls.len() >= 600, "seed {seed}: {} calls", calls.len());
        for (from, before) in calls.iter().enumerate() {
            for (to, after) in calls.iter().enumerate().skip(from) {
                let allowed = 20 + (*after - *before).as_millis() as usize / 100;
                assert!(to - from < allowed, "seed {seed}: {} in {before:?}", to - from + 1);
            }
        }
    }
}
