//! The work queue by example, and against a reference that is too simple to be wrong.

use super::*;
use interlock_checker::Rng;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn a_key_that_is_added_twice_before_its_turn_has_one() {
    let mut queue = Queue::default();
    queue.add("a");
    queue.add("a");
    assert_eq!(queue.next(ms(0)), Some("a"));
    assert_eq!(queue.next(ms(0)), None);
}

#[test]
fn a_key_that_is_added_during_its_turn_has_another_afterwards() {
    let mut queue = Queue::default();
    queue.add("a");
    queue.next(ms(0));
    queue.add("a");
    assert_eq!(queue.next(ms(0)), None);
    queue.done(&"a");
    assert_eq!(queue.next(ms(0)), Some("a"));
}

#[test]
fn a_key_that_has_a_turn_soon_enough_needs_no_other() {
    let mut queue = Queue::default();
    queue.add_at("soon", ms(80));
    queue.add_at("late", ms(900));
    queue.add("now");
    for key in ["soon", "late", "now", "never"] {
        queue.add_unless_due(key, ms(10), ms(100));
    }
    let mut turns = |at: u64| -> Vec<_> { std::iter::from_fn(|| queue.next(ms(at))).collect() };
    assert_eq!((turns(0), turns(10)), (vec!["now"], vec!["late", "never"]));
    assert_eq!((turns(80), turns(1_000)), (vec!["soon"], vec![]));
}

#[test]
fn each_failure_doubles_the_wait_until_it_is_the_longest() {
    let mut queue = Queue::<&str>::default();
    let waits: Vec<_> = (0..4).map(|_| queue.failed(&"a", ms(0))).collect();
    assert_eq!(waits, [ms(5), ms(10), ms(20), ms(40)]);
    let last = (0..60).map(|_| queue.failed(&"a", ms(0))).last();
    assert_eq!(last, Some(Duration::from_secs(300)));
    queue.succeeded(&"a");
    assert_eq!(queue.failed(&"a", ms(0)), ms(5));
}

#[test]
fn retries_of_all_keys_together_keep_to_a_rate_once_the_burst_is_used() {
    let limits = Limits { retries_per_second: 10, burst: 3, ..Limits::default() };
    let mut queue = Queue::new(limits);
    let waits: Vec<_> = (0..6).map(|key| queue.failed(&key, ms(0))).collect();
    assert_eq!(waits, [ms(5), ms(5), ms(5), ms(100), ms(200), ms(300)]);
    let rested = queue.failed(&7, Duration::from_secs(60));
    assert_eq!(rested, ms(5));
}

#[test]
fn first_adds_are_not_held_back_by_the_limit_on_retries() {
    let mut queue = Queue::new(Limits { burst: 0, retries_per_second: 1, ..Limits::default() });
    for key in 0..1000 {
        queue.add(key);
    }
    let turns = std::iter::from_fn(|| queue.next(ms(0))).count();
    assert_eq!(turns, 1000);
}

#[test]
fn a_key_for_later_comes_at_the_earliest_of_its_times() {
    let mut queue = Queue::default();
    queue.add_after("a", ms(100), ms(0));
    queue.add_after("a", ms(50), ms(0));
    queue.add_after("a", ms(70), ms(0));
    assert_eq!(queue.wakes_at(), Some(ms(50)));
    assert_eq!(queue.next(ms(49)), None);
    assert_eq!(queue.next(ms(50)), Some("a"));
    queue.done(&"a");
    assert_eq!(queue.next(ms(500)), None);
}

#[test]
fn a_turn_makes_good_what_was_put_off() {
    let mut queue = Queue::default();
    queue.add_after("a", ms(100), ms(0));
    queue.add("a");
    assert_eq!(queue.next(ms(1)), Some("a"));
    queue.done(&"a");
    assert_eq!(queue.wakes_at(), None);
    assert!(queue.is_idle());
}

#[test]
fn a_hundred_thousand_turns_leave_nothing_behind() {
    let mut queue = Queue::default();
    for key in 0..100_000_u64 {
        queue.add(key);
        if key % 3 == 0 {
            queue.add_after(key, ms(key), ms(key));
        }
        let turn = queue.next(ms(key)).expect("it was just added");
        if key % 5 == 0 {
            queue.failed(&turn, ms(key));
        }
        queue.done(&turn);
        if key % 5 == 0 {
            let again = Duration::from_secs(1_000_000);
            while let Some(turn) = queue.next(again) {
                queue.succeeded(&turn);
                queue.done(&turn);
            }
        }
    }
    assert!(queue.is_idle());
    assert_eq!((queue.ready(), queue.running(), queue.later(), queue.failing()), (0, 0, 0, 0));
}

/// What is known of a key, as the four promises of the queue say it and no more.
#[derive(Debug, Clone, Copy, Default)]
struct Promised {
    is_owed: bool,
    is_running: bool,
    due: Option<Duration>,
    failures: u32,
}

/// The reference: one row for each key there is, and no order.
struct Reference([Promised; 6]);

impl Reference {
    fn may_run(&self, now: Duration) -> Vec<usize> {
        let is_owed = |row: &Promised| row.is_owed || row.due.is_some_and(|due| due <= now);
        let rows = self.0.iter().enumerate();
        rows.filter(|(_, row)| is_owed(row) && !row.is_running).map(|(key, _)| key).collect()
    }

    fn put_off(&mut self, key: usize, at: Duration) {
        let row = &mut self.0[key];
        row.due = Some(row.due.map_or(at, |due| due.min(at)));
    }

    fn settle(&mut self, now: Duration) {
        for row in &mut self.0 {
            if row.due.is_some_and(|due| due <= now) {
                row.due = None;
                row.is_owed = true;
            }
        }
    }
}

#[test]
fn the_queue_does_what_the_reference_does_on_ten_thousand_random_walks() {
    for seed in 0..10_000 {
        walk(seed);
    }
}

fn walk(seed: u64) {
    let mut rng = Rng::new(seed);
    // No overall limit here: the reference knows keys only.
    let mut queue = Queue::new(Limits { burst: u32::MAX, ..Limits::default() });
    let mut reference = Reference([Promised::default(); 6]);
    let mut now = Duration::ZERO;
    for _ in 0..60 {
        let key = rng.below(6);
        match rng.below(6) {
            0 => {
                queue.add(key);
                reference.0[key].is_owed = true;
            }
            1 => {
                let wait = ms(1 + rng.below(50) as u64);
                queue.add_after(key, wait, now);
                reference.put_off(key, now + wait);
            }
            2 => take(&mut queue, &mut reference, now),
            3 => finish(&mut queue, &mut reference, key, (!rng.flip()).then_some(now)),
            4 => now += ms(rng.below(40) as u64),
            _ => assert_eq!(queue.wakes_at().is_some(), is_awake(&reference), "seed {seed}"),
        }
        let running = reference.0.iter().filter(|row| row.is_running).count();
        let failing = reference.0.iter().filter(|row| row.failures > 0).count();
        assert_eq!((queue.running(), queue.failing()), (running, failing), "seed {seed}");
    }
}

fn is_awake(reference: &Reference) -> bool {
    reference.0.iter().any(|row| row.due.is_some() || (row.is_owed && !row.is_running))
}

fn take(queue: &mut Queue<usize>, reference: &mut Reference, now: Duration) {
    let may_run = reference.may_run(now);
    reference.settle(now);
    let Some(key) = queue.next(now) else {
        assert!(may_run.is_empty(), "{may_run:?} are owed a turn");
        return;
    };
    assert!(may_run.contains(&key), "{key} is not owed a turn");
    reference.0[key] = Promised { is_running: true, is_owed: false, due: None, ..reference.0[key] };
}

fn finish(
    queue: &mut Queue<usize>,
    reference: &mut Reference,
    key: usize,
    fails_at: Option<Duration>,
) {
    if !reference.0[key].is_running {
        return;
    }
    if let Some(now) = fails_at {
        let wait = queue.failed(&key, now);
        let failures = reference.0[key].failures;
        assert_eq!(wait, ms(5 << failures));
        reference.0[key].failures += 1;
        reference.put_off(key, now + wait);
    } else {
        queue.succeeded(&key);
        reference.0[key].failures = 0;
    }
    queue.done(&key);
    reference.0[key].is_running = false;
}
