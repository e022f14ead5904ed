//! The work queue in every order: the checker drives the queue that ships.

use super::*;
use interlock_checker::{
    Action, Coder, Covers, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Reachable,
    Rng, Size, SizeError, SizeKey, Steps,
};
use std::sync::atomic::{AtomicU64, Ordering};

const NAME: &str = "kernel/queue";
const SIZES: [SizeKey; 1] = [SizeKey::new("workers", "workers that take keys", 2, 1, 2)];

/// For the catalog.
pub(crate) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the work queue as it ships: adds, turns, failures and waits in every order",
    keys: &SIZES,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(QueueModel::from_size(size)?)),
};

const KEYS: usize = 2;
/// Anything that waits waits for this time; the model's clock only tells before from after.
const LATER: Duration = Duration::from_secs(1);
const NOBODY: u8 = KEYS as u8;

/// What is wrong with the queue or with a worker, on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    AddDroppedInTurn,
    AddReadyInTurn,
    OwedForgotten,
    LastFirst,
    FailuresKept,
    WaitsInTurn,
}

/// A world of two keys and some workers around the queue.
struct QueueModel {
    workers: u8,
    mistake: Mistake,
    calls: AtomicU64,
}

/// The queue as plain values, and what the world saw of it.
#[derive(Debug, Clone, PartialEq)]
struct State {
    ready: [u8; KEYS],
    later: [u8; KEYS],
    is_owed: [bool; KEYS],
    is_running: [bool; KEYS],
    has_failed: [bool; KEYS],
    /// Seen from outside: how many workers have this key.
    workers: [u8; KEYS],
    /// Seen from outside: it was added, and no turn has begun since.
    was_added: [bool; KEYS],
}

impl Default for State {
    fn default() -> Self {
        State {
            ready: [NOBODY; KEYS],
            later: [NOBODY; KEYS],
            is_owed: [false; KEYS],
            is_running: [false; KEYS],
            has_failed: [false; KEYS],
            workers: [0; KEYS],
            was_added: [false; KEYS],
        }
    }
}

impl State {
    fn queue(&self) -> Queue<u8> {
        let mut queue = Queue::new(Limits { first_wait: LATER, burst: 99, ..Limits::default() });
        queue.ready = self.ready.iter().copied().filter(|key| *key != NOBODY).collect();
        for key in 0..NOBODY {
            let is = |set: &[bool; KEYS]| set[usize::from(key)];
            if is(&self.is_owed) {
                queue.owed.insert(key);
            }
            if is(&self.is_running) {
                queue.running.insert(key);
            }
            if is(&self.has_failed) {
                queue.failures.insert(key, 1);
            }
        }
        for key in self.later.iter().copied().filter(|key| *key != NOBODY) {
            queue.add_at(key, LATER);
        }
        queue
    }

    fn with(&self, queue: &Queue<u8>) -> State {
        let in_order = |keys: Vec<u8>| std::array::from_fn(|at| *keys.get(at).unwrap_or(&NOBODY));
        let set = |has: &dyn Fn(&u8) -> bool| std::array::from_fn(|key| has(&(key as u8)));
        State {
            ready: in_order(queue.ready.iter().copied().collect()),
            later: in_order(queue.later.values().copied().collect()),
            is_owed: set(&|key| queue.owed.contains(key)),
            is_running: set(&|key| queue.running.contains(key)),
            has_failed: set(&|key| queue.failures.contains_key(key)),
            ..self.clone()
        }
    }

    fn is_kept(&self, key: usize) -> bool {
        let number = key as u8;
        self.ready.contains(&number)
            || self.later.contains(&number)
            || (self.is_owed[key] && self.is_running[key])
    }
}

const ADD: u16 = 0;
const PUT_OFF: u16 = 2;
const FINISH: u16 = 4;
const FAIL: u16 = 6;
const TAKE: u16 = 8;
const TIME_PASSES: u16 = 9;

impl QueueModel {
    fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [workers] = size.numbers(NAME, &SIZES)?;
        Ok(QueueModel::new(workers as u8, Mistake::None))
    }

    fn new(workers: u8, mistake: Mistake) -> Self {
        QueueModel { workers, mistake, calls: AtomicU64::new(0) }
    }

    fn has(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }

    /// The queue that ships, as it is in this state; what is done with it counts as one call.
    fn queue(&self, state: &State) -> Queue<u8> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        state.queue()
    }

    fn added(&self, state: &State, key: u8) -> State {
        let mut queue = self.queue(state);
        let is_in_turn = queue.running.contains(&key);
        if !(is_in_turn && self.has(Mistake::AddDroppedInTurn)) {
            queue.add(key);
        }
        if is_in_turn && self.has(Mistake::AddReadyInTurn) && !queue.ready.contains(&key) {
            queue.ready.push_back(key);
        }
        let mut next = state.with(&queue);
        next.was_added[usize::from(key)] = true;
        next
    }

    fn put_off(&self, state: &State, key: u8) -> State {
        let mut queue = self.queue(state);
        queue.add_after(key, LATER, Duration::ZERO);
        let mut next = state.with(&queue);
        next.was_added[usize::from(key)] = true;
        next
    }

    fn ended(&self, state: &State, key: u8, is_well: bool) -> State {
        let mut queue = self.queue(state);
        let had_failed = queue.failures.contains_key(&key);
        if is_well {
            queue.succeeded(&key);
        } else {
            queue.failed(&key, Duration::ZERO);
        }
        if self.has(Mistake::OwedForgotten) {
            queue.owed.remove(&key);
        }
        queue.done(&key);
        if had_failed && self.has(Mistake::FailuresKept) {
            queue.failures.insert(key, 1);
        }
        let mut next = state.with(&queue);
        next.workers[usize::from(key)] -= 1;
        next.was_added[usize::from(key)] |= !is_well;
        next
    }

    fn taken(&self, state: &State) -> Option<State> {
        if state.workers.iter().sum::<u8>() == self.workers {
            return None;
        }
        let mut queue = self.queue(state);
        if self.has(Mistake::LastFirst) {
            queue.ready.rotate_right(1.min(queue.ready.len()));
        }
        let key = usize::from(queue.next(Duration::ZERO)?);
        let mut next = state.with(&queue);
        next.workers[key] += 1;
        next.was_added[key] = false;
        Some(next)
    }

    /// A worker that waits in its turn ends it only when the other key has had its own.
    fn may_end(&self, state: &State, key: usize) -> bool {
        let is_held = state.workers[key] > 0;
        is_held && !(self.has(Mistake::WaitsInTurn) && key == 0 && state.was_added[1])
    }
}

impl Model for QueueModel {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        format!("workers={}", self.workers)
    }

    fn covers(&self) -> Covers {
        Covers::Shipped
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        for key in 0..KEYS {
            coder.u8(&mut state.ready[key], 2);
            coder.u8(&mut state.later[key], 2);
            coder.bool(&mut state.is_owed[key]);
            coder.bool(&mut state.is_running[key]);
            coder.bool(&mut state.has_failed[key]);
            coder.u8(&mut state.workers[key], 2);
            coder.bool(&mut state.was_added[key]);
        }
    }

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (name, actor) in
            [("Add", "watch"), ("PutOff", "worker"), ("Finish", "worker"), ("Fail", "worker")]
        {
            actions.extend((0..KEYS).map(|key| Action::new(format!("{name}({key})"), actor)));
        }
        actions.push(Action::new("Take", "worker"));
        actions.push(Action::new("TimePasses", "clock"));
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        for key in 0..NOBODY {
            let number = u16::from(key);
            steps.step(ADD + number, self.added(state, key));
            steps.step(PUT_OFF + number, self.put_off(state, key));
            if self.may_end(state, usize::from(key)) {
                steps.step(FINISH + number, self.ended(state, key, true));
                steps.step(FAIL + number, self.ended(state, key, false));
            }
        }
        if let Some(next) = self.taken(state) {
            steps.step(TAKE, next);
        }
        if state.later != [NOBODY; KEYS] {
            let mut queue = self.queue(state);
            queue.bring_forward(LATER);
            steps.step(TIME_PASSES, state.with(&queue));
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        vec![
            ("ready", format!("{:?}", state.ready)),
            ("later", format!("{:?}", state.later)),
            ("owed", format!("{:?}", state.is_owed)),
            ("workers", format!("{:?}", state.workers)),
            ("added", format!("{:?}", state.was_added)),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        vec![
            Invariant::new(
                "NoConcurrentProcessingOfSameResource",
                "no two workers hold one key",
                |state: &State| state.workers.iter().all(|workers| *workers <= 1),
            )
            .unbreakable_if(self.workers == 1, "there is one worker"),
            Invariant::new(
                "NothingForgotten",
                "what was added is kept until a worker takes it",
                |state: &State| (0..KEYS).all(|key| !state.was_added[key] || state.is_kept(key)),
            ),
            Invariant::new("NoHistory", "an idle key takes no memory", |state: &State| {
                let is_idle = |key| !state.is_kept(key) && state.workers[key] == 0;
                (0..KEYS).all(|key| !is_idle(key) || !(state.has_failed[key] || state.is_owed[key]))
            }),
        ]
    }

    fn reachable(&self) -> Vec<Reachable<State>> {
        if self.workers == 1 {
            return Vec::new();
        }
        vec![Reachable::new("Both", "both keys have a worker and are owed another", |s: &State| {
            s.workers == [1, 1] && s.is_owed == [true, true]
        })]
    }

    fn properties(&self) -> Vec<Property<State>> {
        let comes = |key: usize| {
            Formula::leads_to(move |s: &State| s.was_added[key], move |s| !s.was_added[key])
        };
        let ends = |key: usize| {
            Formula::leads_to(move |s: &State| s.workers[key] > 0, move |s| s.workers[key] == 0)
        };
        vec![
            Property::for_all(
                "TurnComes",
                "what is added is taken in the end",
                (0..KEYS).map(comes),
            ),
            Property::for_all("NoWedge", "a worker finishes what it took", (0..KEYS).map(ends)),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        vec![
            Fairness::strong("Take", [TAKE]),
            Fairness::weak("TimePasses", [TIME_PASSES]),
            Fairness::weak("End(0)", [FINISH, FAIL]),
            Fairness::weak("End(1)", [FINISH + 1, FAIL + 1]),
        ]
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let mut state = State::default();
        for key in 0..KEYS {
            state.ready[key] = rng.below(KEYS + 1) as u8;
            state.later[key] = rng.below(KEYS + 1) as u8;
            state.is_owed[key] = rng.flip();
            state.is_running[key] = rng.flip();
            state.has_failed[key] = rng.flip();
            state.workers[key] = rng.below(usize::from(self.workers) + 1) as u8;
            state.was_added[key] = rng.flip();
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let mutant = |name, sentence, broken: &'static str, mistake| {
            // One worker shows what waits for another; two show what they do at once.
            let workers = if mistake == Mistake::WaitsInTurn { 1 } else { 2 };
            Mutant::new(name, sentence, &[broken], QueueModel::new(workers, mistake))
        };
        vec![
            mutant(
                "add-dropped-in-turn",
                "`add` drops a key that a worker holds",
                "NothingForgotten",
                Mistake::AddDroppedInTurn,
            ),
            mutant(
                "owed-forgotten",
                "a key that ends its turn is not owed what was added in it",
                "NothingForgotten",
                Mistake::OwedForgotten,
            ),
            mutant(
                "add-ready-in-turn",
                "`add` gives a key that a worker holds to the next worker",
                "NoConcurrentProcessingOfSameResource",
                Mistake::AddReadyInTurn,
            ),
            mutant(
                "last-first",
                "the key that was added last is taken first",
                "TurnComes",
                Mistake::LastFirst,
            ),
            mutant(
                "failures-kept",
                "the failures of a key are kept when it is done",
                "NoHistory",
                Mistake::FailuresKept,
            ),
            mutant(
                "waits-in-turn",
                "a step waits for what only another step can make",
                "NoWedge",
                Mistake::WaitsInTurn,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_checker::{Options, check, check_mutants};

    #[test]
    fn in_every_order_no_key_runs_twice_at_once_and_no_add_is_lost() {
        for (workers, counts) in [(2, (309, 2_253, 14)), (1, (221, 1_413, 12))] {
            let world = QueueModel::new(workers, Mistake::None);
            let report = check(NAME, &world, &Options::default()).expect("a small model");
            assert!(report.all_hold(), "{report:#?}");
            assert!(report.never_taken.is_empty());
            let found = (report.distinct_states, report.generated_states, report.depth);
            assert_eq!(found, counts, "{workers} workers");
            assert!(report.steps_called >= report.distinct_states);
        }
    }

    #[test]
    fn every_mistake_is_noticed() {
        let world = QueueModel::new(2, Mistake::None);
        let report = check_mutants(NAME, &world, &Options::default()).expect("a small model");
        let alive: Vec<_> = report.mutants.iter().filter(|mutant| !mutant.killed).collect();
        assert!(alive.is_empty(), "{alive:#?}");
        assert_eq!(report.unbroken, [""; 0], "each invariant is broken by some mutant");
    }
}
