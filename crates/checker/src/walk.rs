//! What the engine knows of a model: packed states and numbered promises, no types of its own.
//!
//! The engine is compiled once for each width of packed states, not once for each model. A model is
//! entered through one call for each state, never for each step.

use crate::error::CheckError;
use crate::model::{Action, ActionId, Covers, Fairness, Flag, Formula};
use crate::rng::Rng;
use crate::space::FlagValues;

/// One step out of a state.
#[derive(Debug, Clone, Copy)]
pub struct Hop<W> {
    /// Which action.
    pub action: ActionId,
    /// The flags that must be up for it.
    pub needs: u64,
    /// Where it leads.
    pub to: W,
    /// The representative of that state; the state itself without symmetry.
    pub key: W,
}

/// What was seen at one state.
#[derive(Debug)]
pub struct Visit<W> {
    /// The steps out of it.
    pub hops: Vec<Hop<W>>,
    /// How many states it stands for.
    pub orbit: u64,
    /// The invariants that it breaks, as bits.
    pub broken: u64,
    /// What must be reachable and holds here, as bits.
    pub reached: u64,
    /// The steps that break a rule or leave a specification.
    pub bad_steps: Vec<BadStep>,
}

impl<W> Default for Visit<W> {
    fn default() -> Self {
        let (hops, bad_steps) = (Vec::with_capacity(64), Vec::new());
        Visit { hops, orbit: 1, broken: 0, reached: 0, bad_steps }
    }
}

/// A step that breaks something.
#[derive(Debug, Clone, Copy)]
pub struct BadStep {
    /// Its place among the steps.
    pub hop: usize,
    /// What it breaks.
    pub breaks: StepPromise,
}

/// A promise about steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepPromise {
    /// A step rule, by its number.
    Rule(usize),
    /// A specification to refine, by its number.
    Refinement(usize),
}

/// A promise by name.
#[derive(Debug, Clone)]
pub struct Promise {
    /// Its name in the specification.
    pub name: String,
    /// What it promises.
    pub sentence: String,
    /// Why no state could break it, where that is known and right.
    pub unbreakable: Option<&'static str>,
}

/// A temporal property by name, with the shapes of its formulas.
#[derive(Debug, Clone)]
pub struct Temporal {
    /// Its name in the specification.
    pub name: &'static str,
    /// What it promises.
    pub sentence: &'static str,
    /// One shape for each formula.
    pub shapes: Vec<Shape>,
}

/// The form of a temporal formula, its predicates left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `<>P`
    Eventually,
    /// `[]<>P`
    AlwaysEventually,
    /// `<>[]P`
    EventuallyAlways,
    /// `P ~> Q`
    LeadsTo,
    /// `([]P) ~> Q`
    AlwaysLeadsTo,
    /// `[]P => <>Q`
    AlwaysImpliesEventually,
    /// `<>[]P => <>[]Q`
    StableImpliesStable,
    /// `<>[][FALSE]_vars`
    ComesToRest,
}

impl Shape {
    /// The predicates that it has.
    pub(crate) fn sides(self) -> &'static [Side] {
        match self {
            Shape::Eventually | Shape::AlwaysEventually | Shape::EventuallyAlways => &[Side::P],
            Shape::LeadsTo
            | Shape::AlwaysLeadsTo
            | Shape::AlwaysImpliesEventually
            | Shape::StableImpliesStable => &[Side::P, Side::Q],
            Shape::ComesToRest => &[],
        }
    }
}

impl<S> Formula<S> {
    pub(crate) fn shape(&self) -> Shape {
        match self {
            Formula::Eventually(_) => Shape::Eventually,
            Formula::AlwaysEventually(_) => Shape::AlwaysEventually,
            Formula::EventuallyAlways(_) => Shape::EventuallyAlways,
            Formula::LeadsTo(..) => Shape::LeadsTo,
            Formula::AlwaysLeadsTo(..) => Shape::AlwaysLeadsTo,
            Formula::AlwaysImpliesEventually(..) => Shape::AlwaysImpliesEventually,
            Formula::StableImpliesStable(..) => Shape::StableImpliesStable,
            Formula::ComesToRest => Shape::ComesToRest,
        }
    }

    /// The truth of its first or second predicate; one that it does not have is false.
    pub(crate) fn holds(&self, side: Side, state: &S) -> bool {
        match (self, side) {
            (
                Formula::Eventually(p)
                | Formula::AlwaysEventually(p)
                | Formula::EventuallyAlways(p)
                | Formula::LeadsTo(p, _)
                | Formula::AlwaysLeadsTo(p, _)
                | Formula::AlwaysImpliesEventually(p, _)
                | Formula::StableImpliesStable(p, _),
                Side::P,
            ) => p(state),
            (
                Formula::LeadsTo(_, q)
                | Formula::AlwaysLeadsTo(_, q)
                | Formula::AlwaysImpliesEventually(_, q)
                | Formula::StableImpliesStable(_, q),
                Side::Q,
            ) => q(state),
            (Formula::Eventually(_) | Formula::AlwaysEventually(_), Side::Q)
            | (Formula::EventuallyAlways(_), Side::Q)
            | (Formula::ComesToRest, _) => false,
        }
    }
}

/// The first or the second predicate of a formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first.
    P,
    /// The second.
    Q,
}

/// A formula by its property and its number there.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The property.
    pub property: usize,
    /// Which of its formulas.
    pub formula: usize,
}

/// Everything about a model that does not change from state to state.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The size it was built in.
    pub size: String,
    /// Its actions.
    pub actions: Vec<Action>,
    /// Its flags.
    pub flags: Vec<Flag>,
    /// The values of the flags, when they are left out of the states.
    pub product: Option<FlagValues>,
    /// The permutations tried beside the identity; 0 without symmetry.
    pub permutations: usize,
    /// Whether deadlocks are looked for.
    pub deadlock: bool,
    /// The invariants that are checked.
    pub invariants: Vec<Promise>,
    /// The step rules that are checked.
    pub rules: Vec<Promise>,
    /// The specifications that are checked.
    pub refinements: Vec<Promise>,
    /// What must be reachable.
    pub reachable: Vec<Promise>,
    /// The temporal properties that are checked.
    pub properties: Vec<Temporal>,
    /// The fairness conditions.
    pub fairness: Vec<Fairness>,
}

/// A model as the engine walks it.
pub trait Walk<W>: Sync {
    /// What does not change.
    fn facts(&self) -> &Facts;
    /// A view for one thread.
    fn walker(&self) -> Box<dyn Walker<W> + '_>;
    /// The initial states.
    fn initial(&self) -> Vec<W>;
    /// The representative of a state.
    fn key(&self, word: &W) -> W;
    /// The specifications in which this state may not be initial, as bits.
    fn starts_badly(&self, word: &W) -> u64;
    /// Whether the model may rest here.
    fn may_rest(&self, word: &W) -> bool;
    /// Whether a predicate of a formula holds here.
    fn holds(&self, asked: Asked, side: Side, word: &W) -> bool;
    /// The same of all predicates of all formulas, in order.
    fn truths(&self, word: &W, truths: &mut Vec<bool>);
    /// The variables with their values.
    fn describe(&self, word: &W) -> Vec<(&'static str, String)>;
    /// A step in words.
    fn tell(&self, from: &W, action: ActionId, to: &W) -> Option<String>;
    /// What a check of the model says something about, and how often shipped code was called.
    fn coverage(&self) -> (Covers, u64);
    /// One sentence on a finding.
    fn explain(&self, name: &str) -> Option<&'static str>;
    /// Which of these invariants no random state breaks; none when there are no random states.
    fn unbroken_at_random(&self, invariants: Vec<usize>) -> Vec<usize>;
    /// The same model with its flags in every state and without symmetry.
    fn plain(&self) -> Box<dyn Walk<W> + '_>;
}

/// A model as one thread walks it.
pub trait Walker<W> {
    /// The steps out of a state.
    fn hops(&mut self, word: &W, hops: &mut Vec<Hop<W>>);
    /// The steps, and all that is promised of the state and of them.
    fn visit(&mut self, word: &W, visit: &mut Visit<W>);
    /// Holds the declarations of flags and symmetries against this state.
    fn verify(&mut self, word: &W, rng: &mut Rng) -> Result<(), CheckError>;
}
