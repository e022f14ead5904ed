//! The work queue in every order: the checker drives the queue that ships.

use super::*;
use interlock_checker::{
    Action, Coder, Fairness, Formula, Invariant, Model, Options, Property, Reachable, Steps, check,
};

const KEYS: usize = 2;
/// Anything that waits waits for this time; the model's clock only tells before from after.
const LATER: Duration = Duration::from_secs(1);
const NOBODY: u8 = KEYS as u8;

/// A world of two keys and as many workers as ask, around the queue.
struct World {
    /// A broken queue, to see that the promises notice: it forgets what is added in a turn.
    forgets_adds_in_a_turn: bool,
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

impl World {
    fn added(&self, state: &State, key: u8) -> State {
        let mut queue = state.queue();
        let is_forgotten = self.forgets_adds_in_a_turn && queue.running.contains(&key);
        if !is_forgotten {
            queue.add(key);
        }
        let mut next = state.with(&queue);
        next.was_added[usize::from(key)] = true;
        next
    }

    fn put_off(state: &State, key: u8) -> State {
        let mut queue = state.queue();
        queue.add_after(key, LATER, Duration::ZERO);
        let mut next = state.with(&queue);
        next.was_added[usize::from(key)] = true;
        next
    }

    fn ended(state: &State, key: u8, is_well: bool) -> State {
        let mut queue = state.queue();
        if is_well {
            queue.succeeded(&key);
        } else {
            queue.failed(&key, Duration::ZERO);
        }
        queue.done(&key);
        let mut next = state.with(&queue);
        next.workers[usize::from(key)] -= 1;
        next.was_added[usize::from(key)] |= !is_well;
        next
    }

    fn taken(state: &State, now: Duration) -> Option<State> {
        let mut queue = state.queue();
        let key = usize::from(queue.next(now)?);
        let mut next = state.with(&queue);
        next.workers[key] += 1;
        next.was_added[key] = false;
        Some(next)
    }
}

impl Model for World {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        format!("keys={KEYS}")
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
            steps.step(PUT_OFF + number, World::put_off(state, key));
            if state.workers[usize::from(key)] > 0 {
                steps.step(FINISH + number, World::ended(state, key, true));
                steps.step(FAIL + number, World::ended(state, key, false));
            }
        }
        if let Some(next) = World::taken(state, Duration::ZERO) {
            steps.step(TAKE, next);
        }
        if state.later != [NOBODY; KEYS] {
            let mut queue = state.queue();
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
            Invariant::new("OneAtATime", "no key has two turns at once", |state: &State| {
                state.workers.iter().all(|workers| *workers <= 1)
            }),
            Invariant::new("NothingLost", "what was added is kept for a turn", |state: &State| {
                (0..KEYS).all(|key| !state.was_added[key] || state.is_kept(key))
            }),
            Invariant::new("NoHistory", "an idle key is not remembered", |state: &State| {
                let is_idle = |key| !state.is_kept(key) && state.workers[key] == 0;
                (0..KEYS).all(|key| !is_idle(key) || !(state.has_failed[key] || state.is_owed[key]))
            }),
        ]
    }

    fn reachable(&self) -> Vec<Reachable<State>> {
        vec![Reachable::new("Both", "both keys have a turn and are owed another", |s: &State| {
            s.workers == [1, 1] && s.is_owed == [true, true]
        })]
    }

    fn properties(&self) -> Vec<Property<State>> {
        let formulas = (0..KEYS).map(|key| {
            Formula::leads_to(move |s: &State| s.was_added[key], move |s| !s.was_added[key])
        });
        vec![Property::for_all("TurnComes", "what is added has its turn in the end", formulas)]
    }

    fn fairness(&self) -> Vec<Fairness> {
        vec![
            Fairness::strong("Take", [TAKE]),
            Fairness::weak("TimePasses", [TIME_PASSES]),
            Fairness::weak("End(0)", [FINISH, FAIL]),
            Fairness::weak("End(1)", [FINISH + 1, FAIL + 1]),
        ]
    }
}

#[test]
fn in_every_order_no_key_runs_twice_at_once_and_no_add_is_lost() {
    let world = World { forgets_adds_in_a_turn: false };
    let report = check("queue", &world, &Options::default()).expect("a small model");
    assert!(report.all_hold(), "{report:#?}");
    assert!(report.never_taken.is_empty());
    assert_eq!(report.distinct_states, 309);
}

#[test]
fn a_queue_that_forgets_what_is_added_in_a_turn_is_noticed() {
    let world = World { forgets_adds_in_a_turn: true };
    let report = check("queue", &world, &Options::default()).expect("a small model");
    assert!(report.trace("NothingLost").is_some());
}
