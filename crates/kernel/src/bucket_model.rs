//! The bucket in every order: the checker drives the bucket that ships.
//!
//! One key with a rate of two calls a second, a burst of four of which one is kept for further calls, and time in steps of
//! half a second. Whoever waits to begin returns when it is due, or as much later as the bucket keeps its token, or
//! gives up and may come again. Whoever has begun makes one further call, and may then begin again.

use super::*;
use interlock_checker::{
    Action, ActionId, Coder, Covers, Entry, Fairness, Formula, Invariant, Model, Mutant, Property,
    Reachable, Rng, Size, SizeError, SizeKey, Steps,
};
use std::sync::atomic::{AtomicU64, Ordering};

const NAME: &str = "kernel/bucket";
const MOST_WAITERS: usize = 3;
const SIZES: [SizeKey; 1] =
    [SizeKey::new("waiters", "callers of one account", 3, 1, MOST_WAITERS as u64)];

/// For the catalog.
pub(crate) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the token bucket as it ships: callers, throttling and time in every order",
    keys: &SIZES,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(BucketModel::from_size(size)?)),
};

const TICK: Duration = Duration::from_millis(500);
/// Time and numbers are moved back to here after each step, which makes the states finite.
const NOW: Duration = Duration::from_secs(1_000);
const NEXT: u64 = 1_000;
const KEY: u8 = 0;
/// All tokens that come at once, and those of them that are kept for further calls.
const BURST: u8 = 4;
const KEPT: u8 = 1;
const PER_SECOND: u8 = 2;
/// Ticks without throttling until the rate is raised.
const RAISED_AFTER: u8 = 2;
/// Half a token: what comes in a tick at a rate of one a second.
const HALF: u128 = TOKEN / 2;
/// The level is coded from here on: below zero are the tokens that are reserved.
const LOWEST: i8 = -2 * (MOST_WAITERS as i8 + 1);

/// What is wrong with the bucket, on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    NoReservation,
    BurstNotLimited,
    ThrottlingIgnored,
    LateNumberHonoured,
    WaitTooLong,
    KeptIsExtra,
    FurtherTakesAny,
    FurtherWaitsForMore,
    LostEarly,
    TooLate,
}

/// One who calls, as the world sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Caller {
    /// Its reservation in the bucket: so many numbers before the next; 0: none.
    back: u8,
    is_waiting: bool,
    /// Ticks until it returns.
    due: u8,
    /// Ticks since it should have.
    late: u8,
    /// How many of those who wait asked before.
    before: u8,
    /// It has begun, and makes a further call.
    has_begun: bool,
    /// A mutant remembers that it once had a reservation.
    had: bool,
}

/// The bucket as plain values, and what the world saw of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct State {
    /// Half tokens beyond those given out.
    level: i8,
    /// Half tokens that are kept for further calls.
    kept: u8,
    per_second: u8,
    raised_in: u8,
    callers: [Caller; MOST_WAITERS],
    /// A second account: half tokens of a bucket without reservations, its rate, its quiet ticks.
    allowed: u8,
    allowed_per_second: u8,
    quiet: u8,
    /// Seen: a call that this second account does not allow.
    is_above_rate: bool,
    /// Seen: somebody was served, and one who asked before no longer can be.
    is_out_of_order: bool,
}

impl State {
    fn bucket(&self, rate: CallRate) -> Bucket<u8, u8> {
        let mut bucket = Bucket::keeping(rate, KEPT.into());
        let mut level = Level::full(&bucket.rate, NOW).keeping(bucket.kept);
        level.kept = u128::from(self.kept) * HALF;
        level.next = NEXT;
        let halves = i128::from(self.level) * HALF as i128;
        level.come = (u128::from(NEXT) * TOKEN).saturating_add_signed(halves);
        let raised_at = NOW + TICK * u32::from(self.raised_in);
        level.speed = Speed { per_second: self.per_second.into(), raised_at };
        for (waiter, caller) in (0..).zip(&self.callers) {
            if caller.back > 0 {
                let number = NEXT - u64::from(caller.back);
                level.numbers.insert(waiter, number);
                level.waiters.insert(number, waiter);
            }
        }
        bucket.levels.insert(KEY, level);
        bucket
    }

    /// The same with the bucket as it is at a time; what the world saw stays.
    fn with(&self, mut bucket: Bucket<u8, u8>, now: Duration) -> State {
        let level = bucket.level(&KEY, now);
        let mut next = self.clone();
        let given = level.come as i128 - (u128::from(level.next) * TOKEN) as i128;
        next.level = (given / HALF as i128) as i8;
        next.kept = (level.kept / HALF) as u8;
        next.per_second = level.speed.per_second as u8;
        let wait = level.speed.raised_at.saturating_sub(now).as_nanos() / TICK.as_nanos();
        next.raised_in = if next.per_second == PER_SECOND { 0 } else { wait as u8 };
        for (waiter, caller) in (0..).zip(&mut next.callers) {
            let numbers = level.numbers.get(&waiter);
            caller.back = numbers.map_or(0, |number| (level.next - number) as u8);
        }
        next
    }

    /// A call is made, which the second account allows or not.
    fn calls(&mut self) {
        self.is_above_rate |= self.allowed < 2;
        self.allowed = self.allowed.saturating_sub(2);
    }

    fn stops_waiting(&mut self, waiter: usize) {
        let gone = std::mem::take(&mut self.callers[waiter].before);
        if !std::mem::take(&mut self.callers[waiter].is_waiting) {
            return;
        }
        self.callers[waiter].due = 0;
        self.callers[waiter].late = 0;
        for caller in self.callers.iter_mut().filter(|caller| caller.is_waiting) {
            caller.before -= u8::from(caller.before > gone);
        }
    }

    fn waits(&mut self, waiter: usize, wait: Duration) {
        self.callers[waiter].is_waiting = true;
        self.callers[waiter].late = 0;
        self.callers[waiter].due = wait.as_nanos().div_ceil(TICK.as_nanos()) as u8;
    }

    /// One who did not wait is the last of those who do; one who gave up and returns to a
    /// reservation that it still has is where it was.
    fn joins(&mut self, waiter: usize, held: u8) {
        let waiting = |caller: &&mut Caller| caller.is_waiting;
        let all = self.callers.iter_mut().filter(waiting).count() as u8;
        let earlier = self.callers.iter_mut().filter(waiting).filter(|it| it.back > held).count();
        let before = if held == 0 { all } else { earlier as u8 };
        for caller in self.callers.iter_mut().filter(waiting) {
            caller.before += u8::from(caller.before >= before);
        }
        self.callers[waiter].before = before;
    }
}

/// The callers in a world around the bucket.
struct BucketModel {
    waiters: usize,
    mistake: Mistake,
    calls: AtomicU64,
}

const THROTTLE: ActionId = 0;
const TICKS: ActionId = 1;
const FIRST_OF_WAITER: ActionId = 2;
const OF_WAITER: [&str; 3] = ["Ask", "GiveUp", "Further"];
const ASK: u16 = 0;
const GIVE_UP: u16 = 1;
const FURTHER: u16 = 2;

impl BucketModel {
    fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [waiters] = size.numbers(NAME, &SIZES)?;
        Ok(BucketModel::new(waiters as usize, Mistake::None))
    }

    fn new(waiters: usize, mistake: Mistake) -> Self {
        BucketModel { waiters, mistake, calls: AtomicU64::new(0) }
    }

    fn has(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }

    fn rate(&self) -> CallRate {
        let more = self.has(Mistake::BurstNotLimited) || self.has(Mistake::KeptIsExtra);
        let more = u32::from(more);
        CallRate {
            per_second: PER_SECOND.into(),
            burst: u32::from(BURST) + more,
            least_per_second: 1,
            raised_after: TICK * u32::from(RAISED_AFTER),
        }
    }

    /// How many ticks a caller may be late. Its time is rounded up to a whole tick, which is lateness already.
    fn may_be_late(&self) -> u8 {
        let bucket: Bucket<u8, u8> = Bucket::keeping(self.rate(), KEPT.into());
        let kept = bucket.kept_for().as_nanos() / TICK.as_nanos();
        let kept = kept as u8;
        if self.has(Mistake::TooLate) { kept + 1 } else { kept - 1 }
    }

    fn of_waiter(&self, kind: u16, waiter: usize) -> ActionId {
        FIRST_OF_WAITER + kind * self.waiters as u16 + waiter as u16
    }

    /// What the bucket that ships answers, or one with a mistake.
    fn answer(&self, bucket: &mut Bucket<u8, u8>, waiter: u8) -> Token {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let token = bucket.take(&KEY, &waiter, NOW);
        let Token::After(wait) = token else { return token };
        if self.has(Mistake::NoReservation) {
            let level = bucket.level(&KEY, NOW);
            level.next -= 1;
            level.numbers.clear();
            level.waiters.clear();
        }
        if self.has(Mistake::WaitTooLong) {
            return Token::After(wait + TICK * 4);
        }
        token
    }

    fn asked(&self, state: &State, waiter: usize) -> State {
        let mut bucket = state.bucket(self.rate());
        let is_late = self.has(Mistake::LateNumberHonoured) && state.callers[waiter].had;
        let token = if is_late { Token::Taken } else { self.answer(&mut bucket, waiter as u8) };
        let mut next = state.with(bucket.clone(), NOW);
        next.callers[waiter].had = false;
        match token {
            Token::After(wait) => {
                if !state.callers[waiter].is_waiting {
                    next.joins(waiter, state.callers[waiter].back);
                }
                next.waits(waiter, wait);
            }
            Token::Taken => {
                next.calls();
                next.callers[waiter].has_begun = true;
                let me = state.callers[waiter];
                for (other, caller) in (0..).zip(&state.callers) {
                    let was_first = match me {
                        Caller { is_waiting: true, before, .. } => caller.before < before,
                        Caller { back: 0, .. } => true,
                        Caller { back, .. } => caller.back > back,
                    };
                    let is_served = || self.answer(&mut bucket.clone(), other) == Token::Taken;
                    let is_due = caller.is_waiting && caller.due == 0;
                    next.is_out_of_order |= is_due && was_first && !is_served();
                }
                next.stops_waiting(waiter);
            }
        }
        next
    }

    /// The further call of one who has begun, if there is a token for it.
    fn further(&self, state: &State, waiter: usize) -> Option<State> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let before = state.bucket(self.rate());
        let mut bucket = before.clone();
        let is_ripe = |caller: &Caller| caller.back > 0 && state.level + 2 * caller.back as i8 >= 2;
        let is_taken = if self.has(Mistake::FurtherTakesAny) && state.callers.iter().any(is_ripe) {
            bucket.level(&KEY, NOW).come -= TOKEN;
            true
        } else {
            let is_enough = !self.has(Mistake::FurtherWaitsForMore) || state.kept > 2 * KEPT;
            is_enough && bucket.take_further(&KEY, NOW) == Token::Taken
        };
        if !is_taken {
            return None;
        }
        let mut next = state.with(bucket.clone(), NOW);
        for (other, caller) in (0..).zip(&state.callers) {
            let is_served =
                |bucket: &Bucket<u8, u8>| self.answer(&mut bucket.clone(), other) == Token::Taken;
            let is_due = caller.is_waiting && caller.due == 0;
            next.is_out_of_order |= is_due && is_served(&before) && !is_served(&bucket);
        }
        next.calls();
        next.callers[waiter].has_begun = false;
        Some(next)
    }

    fn gave_up(&self, state: &State, waiter: usize) -> State {
        let mut next = state.clone();
        next.stops_waiting(waiter);
        next.callers[waiter].had = self.has(Mistake::LateNumberHonoured);
        next
    }

    fn throttled(&self, state: &State) -> State {
        let mut bucket = state.bucket(self.rate());
        if !self.has(Mistake::ThrottlingIgnored) {
            self.calls.fetch_add(1, Ordering::Relaxed);
            bucket.throttled(&KEY, NOW);
        }
        let mut next = state.with(bucket, NOW);
        next.allowed_per_second = (state.allowed_per_second / 2).max(1);
        next.quiet = 0;
        next
    }

    fn ticked(&self, state: &State) -> State {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut next = state.with(state.bucket(self.rate()), NOW + TICK);
        let allowed = state.allowed + state.allowed_per_second;
        next.allowed = allowed.min(2 * BURST);
        if state.allowed_per_second < PER_SECOND {
            next.quiet = (state.quiet + 1) % RAISED_AFTER;
            next.allowed_per_second += u8::from(next.quiet == 0);
        }
        for caller in next.callers.iter_mut().filter(|caller| caller.is_waiting) {
            match caller.due.checked_sub(1) {
                Some(due) => caller.due = due,
                None => caller.late += 1,
            }
        }
        if self.has(Mistake::LostEarly) {
            let lost = 2 * (BURST - KEPT - 1) as i8 - next.level;
            for caller in next.callers.iter_mut().filter(|it| 2 * it.back as i8 > lost) {
                caller.back = 0;
            }
        }
        next
    }
}

impl Model for BucketModel {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        format!("waiters={}", self.waiters)
    }

    fn covers(&self) -> Covers {
        Covers::Shipped
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        let mut level = (state.level - LOWEST) as u8;
        coder.u8(&mut level, 5);
        state.level = level as i8 + LOWEST;
        coder.u8(&mut state.kept, 2);
        coder.u8(&mut state.per_second, 2);
        coder.u8(&mut state.raised_in, 2);
        for caller in &mut state.callers[..self.waiters] {
            coder.u8(&mut caller.back, 4);
            coder.bool(&mut caller.is_waiting);
            coder.u8(&mut caller.due, 4);
            coder.u8(&mut caller.late, 2);
            coder.u8(&mut caller.before, 2);
            coder.bool(&mut caller.has_begun);
            coder.bool(&mut caller.had);
        }
        coder.u8(&mut state.allowed, 4);
        coder.u8(&mut state.allowed_per_second, 2);
        coder.u8(&mut state.quiet, 1);
        coder.bool(&mut state.is_above_rate);
        coder.bool(&mut state.is_out_of_order);
    }

    fn initial(&self) -> Vec<State> {
        vec![State {
            level: 2 * (BURST - KEPT) as i8,
            kept: 2 * KEPT,
            per_second: PER_SECOND,
            allowed: 2 * BURST,
            allowed_per_second: PER_SECOND,
            ..State::default()
        }]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![Action::new("Throttle", "cloud"), Action::new("Tick", "clock")];
        for name in OF_WAITER {
            actions.extend((1..=self.waiters).map(|w| {
                Action::new(format!("{name}(w{w})"), format!("caller w{w}")).to("bucket")
            }));
        }
        actions
    }

    /// Time passes only while nobody is later than it may be.
    fn next(&self, state: &State, steps: &mut Steps<State>) {
        steps.step(THROTTLE, self.throttled(state));
        let latest = self.may_be_late();
        let is_late =
            |caller: &Caller| caller.is_waiting && caller.due == 0 && caller.late >= latest;
        if !state.callers.iter().any(is_late) {
            steps.step(TICKS, self.ticked(state));
        }
        for waiter in 0..self.waiters {
            let caller = &state.callers[waiter];
            if caller.has_begun {
                if let Some(next) = self.further(state, waiter) {
                    steps.step(self.of_waiter(FURTHER, waiter), next);
                }
                continue;
            }
            if !caller.is_waiting || caller.due == 0 {
                steps.step(self.of_waiter(ASK, waiter), self.asked(state, waiter));
            }
            if caller.is_waiting {
                steps.step(self.of_waiter(GIVE_UP, waiter), self.gave_up(state, waiter));
            }
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let callers = &state.callers[..self.waiters];
        let of_each = |show: &dyn Fn(&Caller) -> String| {
            let shown: Vec<_> = callers.iter().map(show).collect();
            format!("<<{}>>", shown.join(", "))
        };
        let waits = |caller: &Caller| match (caller.is_waiting, caller.has_begun) {
            (true, _) => format!("\"due in {}\"", caller.due),
            (false, true) => "\"has begun\"".to_owned(),
            (false, false) => "\"idle\"".to_owned(),
        };
        vec![
            ("halfTokens", state.level.to_string()),
            ("keptHalfTokens", state.kept.to_string()),
            ("perSecond", state.per_second.to_string()),
            ("reserved", of_each(&|caller| caller.back.to_string())),
            ("callers", of_each(&waits)),
            ("allowed", state.allowed.to_string()),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        vec![
            Invariant::new(
                "NeverAboveItsRate",
                "in no window are there more calls than burst and rate allow",
                |s: &State| !s.is_above_rate,
            ),
            Invariant::new(
                "InOrder",
                "nobody takes the token of one who asked before",
                |s: &State| !s.is_out_of_order,
            ),
            Invariant::new(
                "SlowsDown",
                "the rate is halved by throttling and raised only after a quiet time",
                |s: &State| s.per_second <= s.allowed_per_second,
            ),
        ]
    }

    fn reachable(&self) -> Vec<Reachable<State>> {
        let most = self.waiters;
        vec![Reachable::new(
            "AllWait",
            "every caller waits, at the lowest rate",
            move |s: &State| {
                let waiting = s.callers.iter().filter(|caller| caller.is_waiting).count();
                s.per_second == 1 && waiting == most
            },
        )]
    }

    fn properties(&self) -> Vec<Property<State>> {
        let served = |waiter: usize| {
            Formula::leads_to(
                move |s: &State| s.callers[waiter].is_waiting,
                move |s: &State| !s.callers[waiter].is_waiting,
            )
        };
        let each = (0..self.waiters).map(served);
        let sentence =
            "who waits, and comes back no later than its tokens are kept, is served in the end";
        let goes_on = (0..self.waiters).map(|waiter| {
            Formula::leads_to(
                move |s: &State| s.callers[waiter].has_begun,
                move |s: &State| !s.callers[waiter].has_begun,
            )
        });
        vec![
            Property::for_all("EveryWaiterIsServed", sentence, each),
            Property::for_all(
                "WhoHasBegunGoesOn",
                "who has begun, and asks again and again, makes its further call in the end",
                goes_on,
            ),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        let mut fairness = vec![Fairness::weak("Tick", [TICKS])];
        for waiter in 0..self.waiters {
            let name = format!("Ask(w{})", waiter + 1);
            fairness.push(Fairness::weak(name, [self.of_waiter(ASK, waiter)]));
            // The token of one may be taken by another who has begun, and not each time.
            let name = format!("Further(w{})", waiter + 1);
            fairness.push(Fairness::strong(name, [self.of_waiter(FURTHER, waiter)]));
        }
        fairness
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let mut state = self.initial().pop()?;
        state.per_second = 1 + rng.below(2) as u8;
        state.allowed_per_second = 1 + rng.below(2) as u8;
        (state.is_above_rate, state.is_out_of_order) = (rng.flip(), rng.flip());
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let mutant = |name, sentence, broken: &'static str, mistake| {
            Mutant::new(name, sentence, &[broken], BucketModel::new(MOST_WAITERS, mistake))
        };
        vec![
            mutant(
                "no-reservation",
                "who happens to ask when a token is there takes it",
                "InOrder",
                Mistake::NoReservation,
            ),
            mutant(
                "no-reservation-starves",
                "the same: somebody else is always first",
                "EveryWaiterIsServed",
                Mistake::NoReservation,
            ),
            mutant(
                "burst-not-limited",
                "a bucket at rest fills beyond its burst",
                "NeverAboveItsRate",
                Mistake::BurstNotLimited,
            ),
            mutant(
                "throttling-ignored",
                "a throttled call changes nothing",
                "SlowsDown",
                Mistake::ThrottlingIgnored,
            ),
            mutant(
                "late-number-honoured",
                "a reservation is kept however late its waiter returns",
                "NeverAboveItsRate",
                Mistake::LateNumberHonoured,
            ),
            mutant(
                "kept-is-extra",
                "what is kept for further calls comes on top of the burst",
                "NeverAboveItsRate",
                Mistake::KeptIsExtra,
            ),
            mutant(
                "further-takes-any",
                "a further call takes the token that is reserved for one who waits to begin",
                "InOrder",
                Mistake::FurtherTakesAny,
            ),
            mutant(
                "further-waits-for-more",
                "a further call waits for more tokens than are ever kept",
                "WhoHasBegunGoesOn",
                Mistake::FurtherWaitsForMore,
            ),
            mutant(
                "waits-too-long",
                "a waiter is sent away for so long that its reservation is lost",
                "EveryWaiterIsServed",
                Mistake::WaitTooLong,
            ),
            mutant(
                "lost-early",
                "a reservation is lost one token too early for one who is as late as it may be",
                "EveryWaiterIsServed",
                Mistake::LostEarly,
            ),
            mutant(
                "too-late",
                "whoever waits comes back later than its tokens are kept: the bound is one of the bucket",
                "EveryWaiterIsServed",
                Mistake::TooLate,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_checker::{Options, check, check_mutants};

    #[test]
    fn in_every_order_it_keeps_to_its_rate_serves_in_order_and_serves_everybody() {
        let counts = [1, 2, 3].map(|waiters| {
            let world = BucketModel::new(waiters, Mistake::None);
            let report = check(NAME, &world, &Options::default()).expect("a small model");
            assert!(report.all_hold(), "{report:#?}");
            assert!(report.never_taken.is_empty());
            (report.distinct_states, report.generated_states, report.depth)
        });
        assert_eq!(counts, [(377, 1_130, 25), (8_356, 34_485, 41), (135_633, 719_155, 40)]);
    }

    #[test]
    fn every_mistake_is_noticed() {
        let world = BucketModel::new(MOST_WAITERS, Mistake::None);
        let report = check_mutants(NAME, &world, &Options::default()).expect("a small model");
        let alive: Vec<_> = report.mutants.iter().filter(|mutant| !mutant.killed).collect();
        assert!(alive.is_empty(), "{alive:#?}");
        assert_eq!(report.unbroken, [""; 0], "each invariant is broken by some mutant");
    }
}
