//! The world as a model of the checker.

use crate::state::State;
use crate::system::{Crashes, Goal, Promise, System};
use crate::world::{Engine, World};
use interlock_checker::{
    Action, Coder, Covers, Fairness, Formula, Invariant, Model, Mutant, Property, Reachable,
    Refinement, StepRule, Steps,
};
use std::sync::Arc;

/// What a world promises of itself: where it is checked who is woken, and where it is not.
const WAKES: (&str, &str) = ("WorkWakes", "whoever gains work is woken, or asks again by itself");
const HAS_ROOM: (&str, &str) =
    ("WorldHasRoom", "the world has room for every subject that a controller is asked about");

impl<S: System> Engine<S> {
    /// Which promises break in a state and which reachable states it is, as bits: promises first.
    fn judge(&self, state: &State) -> u64 {
        let truth = self.truth_number(state);
        self.judged.get_or(truth, || {
            let truth = self.truths.get(truth);
            let holds = |promise: &Promise<S>| (promise.holds)(&self.system, &truth);
            let all = self.system.promises();
            let reachable = self.system.reachable();
            let bits = all.iter().map(|it| !holds(it)).chain(reachable.iter().map(holds));
            bits.enumerate().fold(0, |bits, (place, bit)| bits | u64::from(bit) << place)
        })
    }

    /// Which rules a step breaks, as bits.
    fn rule(&self, from: &State, to: &State) -> u64 {
        let (from, to) = (self.truth_number(from), self.truth_number(to));
        if from == to {
            return 0;
        }
        self.ruled.get_or((from, to), || {
            let (old, new) = (self.truths.get(from), self.truths.get(to));
            let rules = self.system.rules();
            let breaks = rules.iter().map(|rule| !(rule.allows)(&self.system, &old, &new));
            breaks.enumerate().fold(0, |bits, (place, bit)| bits | u64::from(bit) << place)
        })
    }
}

impl<S: System> Model for World<S> {
    type State = State;
    type Packed = [u64; 4];

    fn size(&self) -> String {
        self.0.system.size()
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        let hostility = self.0.hostility;
        let family = name.split('(').next().unwrap_or(name);
        match family {
            "Begin" | "Continue" if hostility.flights == 0 => {
                Some("in this size every step is taken at once")
            }
            "Begin" | "Continue" | "Step" => Some("the controller has nothing to do in this size"),
            "Hear" if hostility.stale == 0 => Some("in this size every cache is up to date"),
            "Crash" if hostility.crashes == Crashes::None => Some("in this size nothing crashes"),
            "Crash" => Some("the program has nothing in memory that a crash would lose"),
            "TimePasses" => Some("in this size no time passes"),
            _ => self.0.system.explain(family),
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        state.code(coder);
    }

    fn initial(&self) -> Vec<State> {
        let engine = &self.0;
        let (servers, machines, chance) = engine.system.initial(&engine.servers);
        let machines = machines.map(|machine| engine.machines.put(machine));
        let past = engine.pasts.put(S::Past::default());
        vec![engine.begun(State { servers, machines, chance, past, ..State::default() })]
    }

    fn actions(&self) -> Vec<Action> {
        self.0.kinds().into_iter().map(|kind| self.0.action(kind)).collect()
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.0.next(state, steps);
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let mut shown = self.0.system.show(&self.truth(state));
        shown.extend(self.0.show(state));
        shown
    }

    fn tell(
        &self,
        from: &State,
        action: interlock_checker::ActionId,
        to: &State,
    ) -> Option<String> {
        Some(self.0.tell(from, action, to))
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        let promises = self.0.system.promises().into_iter().enumerate();
        let invariant = |(place, promise): (usize, Promise<S>)| {
            let engine = Arc::clone(&self.0);
            let holds = move |state: &State| engine.judge(state) >> place & 1 == 0;
            Invariant::new(promise.name, promise.sentence, holds)
        };
        let mut invariants: Vec<Invariant<State>> = promises.map(invariant).collect();
        let (name, sentence) = if self.0.hostility.wakes { WAKES } else { HAS_ROOM };
        invariants.push(Invariant::new(name, sentence, |state: &State| state.trouble == 0));
        invariants
    }

    fn reachable(&self) -> Vec<Reachable<State>> {
        let first = self.0.system.promises().len();
        let reachable = self.0.system.reachable().into_iter().enumerate();
        let made = |(place, promise): (usize, Promise<S>)| {
            let engine = Arc::clone(&self.0);
            let holds = move |state: &State| engine.judge(state) >> (first + place) & 1 == 1;
            Reachable::new(promise.name, promise.sentence, holds)
        };
        reachable.map(made).collect()
    }

    fn step_rules(&self) -> Vec<StepRule<State>> {
        let rules = self.0.system.rules().into_iter().enumerate();
        let made = |(place, rule): (usize, crate::system::Rule<S>)| {
            let engine = Arc::clone(&self.0);
            let allows = move |from: &State, to: &State| engine.rule(from, to) >> place & 1 == 0;
            StepRule::new(rule.name, rule.sentence, allows)
        };
        rules.map(made).collect()
    }

    fn properties(&self) -> Vec<Property<State>> {
        let made = |goal: Goal<S>| {
            let (one, other) = (Arc::clone(&self.0), Arc::clone(&self.0));
            let (while_true, then) = (goal.while_true, goal.then);
            let truth =
                |engine: &Engine<S>, state: &State| engine.truths.get(engine.truth_number(state));
            let formula = Formula::always_leads_to(
                move |state: &State| while_true(&one.system, &truth(&one, state)),
                move |state: &State| then(&other.system, &truth(&other, state)),
            );
            Property::new(goal.name, goal.sentence, formula)
        };
        self.0.system.goals().into_iter().map(made).collect()
    }

    fn fairness(&self) -> Vec<Fairness> {
        if self.0.system.goals().is_empty() { Vec::new() } else { self.0.fairness() }
    }

    fn may_rest(&self, state: &State) -> bool {
        state.trouble != 0 || self.0.system.is_done(&self.truth(state))
    }

    fn refines(&self) -> Vec<Refinement<State>> {
        self.0.system.refines(self)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let mistakes = self.0.system.mistakes().into_iter();
        let made = |it: crate::system::Mistake<S>| {
            Mutant::new(it.name, it.sentence, it.breaks, World::new(it.system))
        };
        mistakes.map(made).collect()
    }

    fn covers(&self) -> Covers {
        Covers::Shipped
    }

    fn calls(&self) -> u64 {
        World::calls(self)
    }
}
