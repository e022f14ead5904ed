//! A model that is nothing but a graph: states are numbers, steps are listed.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use interlock_checker::*;

/// A graph as a model. Predicates are sets of states as bits.
#[derive(Debug, Clone, Default)]
pub struct Drawn {
    pub states: u8,
    pub initial: Vec<u8>,
    pub actions: u16,
    pub edges: Vec<(u8, u16, u8)>,
    pub weak: Vec<Vec<u16>>,
    pub strong: Vec<Vec<u16>>,
    pub formulas: Vec<Shape>,
    pub bad: u64,
}

/// A formula over sets of states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Eventually(u64),
    AlwaysEventually(u64),
    EventuallyAlways(u64),
    LeadsTo(u64, u64),
    AlwaysLeadsTo(u64, u64),
    AlwaysImpliesEventually(u64, u64),
    StableImpliesStable(u64, u64),
    ComesToRest,
}

pub fn within(set: u64) -> impl Fn(&u8) -> bool + Send + Sync + 'static {
    move |state: &u8| set >> state & 1 == 1
}

impl Shape {
    pub fn formula(self) -> Formula<u8> {
        match self {
            Shape::Eventually(q) => Formula::eventually(within(q)),
            Shape::AlwaysEventually(p) => Formula::always_eventually(within(p)),
            Shape::EventuallyAlways(p) => Formula::eventually_always(within(p)),
            Shape::LeadsTo(p, q) => Formula::leads_to(within(p), within(q)),
            Shape::AlwaysLeadsTo(p, q) => Formula::always_leads_to(within(p), within(q)),
            Shape::AlwaysImpliesEventually(p, q) => {
                Formula::always_implies_eventually(within(p), within(q))
            }
            Shape::StableImpliesStable(p, q) => {
                Formula::stable_implies_stable(within(p), within(q))
            }
            Shape::ComesToRest => Formula::ComesToRest,
        }
    }
}

impl Model for Drawn {
    type State = u8;
    type Packed = u64;

    fn size(&self) -> String {
        format!("states={}", self.states)
    }
    fn code(&self, state: &mut u8, coder: &mut Coder) {
        coder.u8(state, 8);
    }
    fn initial(&self) -> Vec<u8> {
        self.initial.clone()
    }
    fn actions(&self) -> Vec<Action> {
        (0..self.actions).map(|action| Action::new(format!("a{action}"), "graph")).collect()
    }
    fn next(&self, state: &u8, steps: &mut Steps<u8>) {
        for (_, action, to) in self.edges.iter().filter(|(from, ..)| from == state) {
            steps.step(*action, *to);
        }
    }
    fn describe(&self, state: &u8) -> Vec<(&'static str, String)> {
        vec![("at", state.to_string())]
    }
    fn invariants(&self) -> Vec<Invariant<u8>> {
        let bad = self.bad;
        vec![Invariant::new("NotBad", "a bad state is never reached", move |s: &u8| {
            bad >> s & 1 == 0
        })]
    }
    fn properties(&self) -> Vec<Property<u8>> {
        let names = ["P0", "P1", "P2", "P3", "P4", "P5", "P6", "P7"];
        let property = |(shape, name): (&Shape, &'static str)| {
            Property::new(name, "a formula", shape.formula())
        };
        self.formulas.iter().zip(names).map(property).collect()
    }
    fn fairness(&self) -> Vec<Fairness> {
        let weak = self.weak.iter().map(|set| Fairness::weak(format!("{set:?}"), set.clone()));
        let strong =
            self.strong.iter().map(|set| Fairness::strong(format!("{set:?}"), set.clone()));
        weak.chain(strong).collect()
    }
    fn may_rest(&self, _state: &u8) -> bool {
        true
    }
}

/// One worker, everything on.
pub fn thorough() -> Options {
    Options { workers: 2, liveness: Liveness::On, ..Options::default() }
}

/// The verdict on the only property.
pub fn verdict(model: &Drawn) -> Verdict {
    check("drawn", model, &thorough()).expect("the check runs").properties[0].verdict
}
