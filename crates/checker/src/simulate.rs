//! Random walks: deep, seeded, many at once. They prove nothing, and reach what exploration cannot.

use crate::explore::hold;
use crate::model::{ActionId, Invariant, Model, StepRule, Steps};
use crate::report::{Trace, TraceState};
use crate::rng::Rng;
use crate::space::Space;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Told how many walks and steps are done, and the time they took.
pub type OnWalks = Arc<dyn Fn(u64, u64, Duration) + Send + Sync>;

/// How to walk.
#[derive(Clone)]
pub struct Walks {
    /// How many walks.
    pub traces: u64,
    /// Steps in each, at most.
    pub depth: u32,
    /// Threads that walk.
    pub workers: usize,
    /// The same seed gives the same walks, whatever the number of workers.
    pub seed: u64,
    /// Set to end early.
    pub stop: Arc<AtomicBool>,
    /// Told twice a second how many walks and steps are done.
    pub progress: Option<OnWalks>,
}

impl Default for Walks {
    fn default() -> Self {
        Walks {
            traces: 10_000,
            depth: 100,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            seed: 1,
            stop: Arc::new(AtomicBool::new(false)),
            progress: None,
        }
    }
}

/// What the walks saw.
#[derive(Debug, Clone, Serialize)]
pub struct Walked {
    /// The model's name in the catalog.
    pub model: String,
    /// The size it was walked in.
    pub size: String,
    /// The seed of the walks.
    pub seed: u64,
    /// Walks done.
    pub traces: u64,
    /// Steps at most in each.
    pub depth: u32,
    /// Steps done.
    pub steps: u64,
    /// Time taken.
    pub seconds: f64,
    /// Steps per second.
    pub steps_per_second: f64,
    /// Walks per second.
    pub traces_per_second: f64,
    /// Threads that walked.
    pub workers: usize,
    /// Whether all walks were done.
    pub complete: bool,
    /// The promises that broke.
    pub violations: Vec<Violation>,
}

/// A promise that broke on a walk.
#[derive(Debug, Clone, Serialize)]
pub struct Violation {
    /// The promise, or `deadlock`.
    pub name: String,
    /// What it promises.
    pub sentence: String,
    /// The walk on which it broke first.
    pub trace_number: u64,
    /// Steps of that walk.
    pub walked_steps: u32,
    /// Steps that are left after those were taken out that do not matter.
    pub steps: u32,
    /// The walk without them.
    pub trace: Trace,
}

/// Walks a model; `name` is how the report calls it.
pub fn simulate<M: Model>(name: &str, model: &M, walks: &Walks) -> Walked {
    let walker = Walker::new(model);
    let started = Instant::now();
    let (next, steps, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let broken: Mutex<BTreeMap<usize, (u64, Vec<ActionId>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for worker in 0..walks.workers.max(1) {
            let (walker, next, steps, done, broken) = (&walker, &next, &steps, &done, &broken);
            scope.spawn(move || {
                let mut last = Instant::now();
                // Walks are handed out in batches: a shared counter per walk would be the bottleneck.
                const BATCH: u64 = 256;
                loop {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    if first >= walks.traces || walks.stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let batch = first..walks.traces.min(first + BATCH);
                    done.fetch_add(batch.end - batch.start, Ordering::Relaxed);
                    let taken = walker.walk(batch, walks, broken);
                    steps.fetch_add(taken, Ordering::Relaxed);
                    if worker == 0 && last.elapsed() > Duration::from_millis(500) {
                        last = Instant::now();
                        if let Some(progress) = &walks.progress {
                            let done = done.load(Ordering::Relaxed);
                            progress(done, steps.load(Ordering::Relaxed), started.elapsed());
                        }
                    }
                }
            });
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    let (traces, steps) = (done.into_inner(), steps.into_inner());
    let broken = broken.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Walked {
        model: name.to_owned(),
        size: Model::size(model),
        seed: walks.seed,
        traces,
        depth: walks.depth,
        steps,
        seconds,
        steps_per_second: steps as f64 / seconds.max(1e-9),
        traces_per_second: traces as f64 / seconds.max(1e-9),
        workers: walks.workers,
        complete: traces == walks.traces,
        violations: broken
            .into_iter()
            .map(|(promise, (number, actions))| walker.violation(promise, number, &actions))
            .collect(),
    }
}

struct Walker<'a, M: Model> {
    space: Space<'a, M>,
    invariants: Vec<Invariant<M::State>>,
    rules: Vec<StepRule<M::State>>,
}

impl<'a, M: Model> Walker<'a, M> {
    fn new(model: &'a M) -> Self {
        Walker {
            space: Space::plain(model),
            invariants: model.invariants(),
            rules: model.step_rules(),
        }
    }

    /// Walks with these numbers; notes for each promise the lowest-numbered walk that broke it.
    fn walk(
        &self,
        numbers: std::ops::Range<u64>,
        walks: &Walks,
        broken: &Mutex<BTreeMap<usize, (u64, Vec<ActionId>)>>,
    ) -> u64 {
        let initial = self.space.model.initial();
        let mut steps = Steps::default();
        let mut actions = Vec::with_capacity(walks.depth as usize);
        let mut taken = 0;
        for number in numbers {
            let mut rng = Rng::new(walks.seed ^ number.wrapping_mul(0xa076_1d64_78bd_642f));
            let mut state = initial[rng.below(initial.len())].clone();
            actions.clear();
            loop {
                self.space.expand(&state, &mut steps);
                let here = self.broken_here(&state, steps.as_slice().is_empty());
                if let Some(promise) = here {
                    note(broken, promise, number, &actions);
                    break;
                }
                let choices = steps.as_slice();
                if choices.is_empty() || actions.len() == walks.depth as usize {
                    break;
                }
                let step = &choices[rng.below(choices.len())];
                actions.push(step.action);
                taken += 1;
                if let Some(promise) = self.broken_by(&state, &step.to) {
                    note(broken, promise, number, &actions);
                    break;
                }
                state.clone_from(&step.to);
            }
        }
        taken
    }

    /// Promises are numbered: invariants, then rules for steps, then the deadlock.
    #[inline]
    fn broken_here(&self, state: &M::State, stands: bool) -> Option<usize> {
        if let Some(place) = self.invariants.iter().position(|check| !(check.holds)(state)) {
            return Some(place);
        }
        let deadlock = stands && !self.space.model.may_rest(state);
        deadlock.then_some(self.invariants.len() + self.rules.len())
    }

    #[inline]
    fn broken_by(&self, from: &M::State, to: &M::State) -> Option<usize> {
        if self.rules.is_empty() || from == to {
            return None;
        }
        let place = self.rules.iter().position(|rule| !(rule.allows)(from, to))?;
        Some(self.invariants.len() + place)
    }

    fn promise(&self, promise: usize) -> (&'static str, &'static str) {
        if let Some(invariant) = self.invariants.get(promise) {
            return (invariant.name, invariant.sentence);
        }
        match self.rules.get(promise - self.invariants.len()) {
            Some(rule) => (rule.name, rule.sentence),
            None => ("deadlock", "something can always be done, or the model may rest"),
        }
    }

    fn violation(&self, promise: usize, number: u64, actions: &[ActionId]) -> Violation {
        let short = self.shrink(promise, actions);
        let path = self.run(&short, promise).expect("a shrunk walk breaks the same promise");
        let (name, sentence) = self.promise(promise);
        Violation {
            name: name.to_owned(),
            sentence: sentence.to_owned(),
            trace_number: number,
            walked_steps: actions.len() as u32,
            steps: path.len() as u32 - 1,
            trace: self.trace(&path),
        }
    }

    fn trace(&self, path: &[(Option<ActionId>, M::State)]) -> Trace {
        let actions = self.space.model.actions();
        let model = self.space.model;
        let state = |(place, (action, state)): (usize, &(Option<ActionId>, M::State))| {
            let before = place.checked_sub(1).map(|before| &path[before].1).zip(*action);
            let story = before.and_then(|(from, action)| model.tell(from, action, state));
            let action = action.map(|action| &actions[action as usize]);
            TraceState::new(action, model.describe(state)).told(story)
        };
        Trace { states: path.iter().enumerate().map(state).collect(), loop_to: None }
    }

    /// Takes out steps as long as the promise still breaks: runs, long ones first, then pairs that
    /// undo each other (a cut and its healing).
    fn shrink(&self, promise: usize, actions: &[ActionId]) -> Vec<ActionId> {
        let mut kept = self.without_runs(promise, actions);
        'again: loop {
            for first in 0..kept.len() {
                for second in first + 1..kept.len() {
                    let mut shorter = kept.clone();
                    shorter.remove(second);
                    shorter.remove(first);
                    if self.run(&shorter, promise).is_some() {
                        kept = self.without_runs(promise, &shorter);
                        continue 'again;
                    }
                }
            }
            return kept;
        }
    }

    fn without_runs(&self, promise: usize, actions: &[ActionId]) -> Vec<ActionId> {
        let mut kept = actions.to_vec();
        let mut run = kept.len() / 2;
        while run > 0 {
            let mut at = 0;
            let before = kept.len();
            while at < kept.len() {
                let end = (at + run).min(kept.len());
                let shorter = [&kept[..at], &kept[end..]].concat();
                if self.run(&shorter, promise).is_some() {
                    kept = shorter;
                } else {
                    at += run;
                }
            }
            // Single steps are tried until none can go; taking one out may free another.
            if run > 1 || kept.len() == before {
                run /= 2;
            }
        }
        kept
    }

    /// Takes these actions in order, trying every way to take each; the path up to where the promise
    /// breaks, if it does.
    fn run(
        &self,
        actions: &[ActionId],
        promise: usize,
    ) -> Option<Vec<(Option<ActionId>, M::State)>> {
        let mut budget = 20_000;
        for first in self.space.model.initial() {
            let mut path = vec![(None, first)];
            if self.run_from(&mut path, actions, promise, &mut budget) {
                return Some(path);
            }
        }
        None
    }

    fn run_from(
        &self,
        path: &mut Vec<(Option<ActionId>, M::State)>,
        actions: &[ActionId],
        promise: usize,
        budget: &mut u32,
    ) -> bool {
        let state = path[path.len() - 1].1.clone();
        let mut steps = Steps::default();
        self.space.expand(&state, &mut steps);
        if self.broken_here(&state, steps.as_slice().is_empty()) == Some(promise) {
            return true;
        }
        let Some((action, rest)) = actions.split_first() else { return false };
        for step in steps.as_slice().iter().filter(|step| step.action == *action) {
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let breaks = self.broken_by(&state, &step.to) == Some(promise);
            path.push((Some(*action), step.to.clone()));
            if breaks || self.run_from(path, rest, promise, budget) {
                return true;
            }
            path.pop();
        }
        false
    }
}

fn note(
    broken: &Mutex<BTreeMap<usize, (u64, Vec<ActionId>)>>,
    promise: usize,
    number: u64,
    actions: &[ActionId],
) {
    let mut broken = hold(broken);
    let entry = broken.entry(promise).or_insert_with(|| (number, actions.to_vec()));
    if number < entry.0 {
        *entry = (number, actions.to_vec());
    }
}
