//! What a model is: states, steps, and what is promised of them.

use crate::rng::Rng;
use crate::word::{Coder, Word};
use serde::Serialize;
use std::fmt::Debug;
use std::sync::Arc;

/// Names one action instance, such as `TenantFlush(t1)`: its place in [`Model::actions`].
pub type ActionId = u16;

/// A specification that can be explored: initial states, steps, and promises.
///
/// The engine asks for the successors of a state and never for anything else about how they came to
/// be, so a model may be a transcription of a specification or a world around shipped code.
pub trait Model: Sync + Send {
    /// A state that can be read. Small, plain data.
    type State: Clone + PartialEq + Debug + Default + Send + Sync;
    /// The same state in a fixed number of bits. Two states are equal iff their packed forms are.
    type Packed: Word;

    /// The size it was built in, as a person would ask for it: `clusters=3`.
    fn size(&self) -> String;

    /// One sentence on why a promise breaks, means nothing, or is odd in this model; `name` is an
    /// invariant, a property, an action, or `deadlock`. Known findings of a specification go here.
    fn explain(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// Names every field of the state with its width, in a fixed order; runs in both directions.
    fn code(&self, state: &mut Self::State, coder: &mut Coder);

    /// The packed form of a state.
    #[inline]
    fn pack(&self, state: &Self::State) -> Self::Packed {
        let mut coder = Coder::writer();
        self.code(&mut state.clone(), &mut coder);
        coder.word()
    }

    /// The state behind a packed form.
    #[inline]
    fn unpack(&self, packed: &Self::Packed) -> Self::State {
        let mut state = Self::State::default();
        self.code(&mut state, &mut Coder::reader(packed));
        state
    }

    /// The initial states.
    fn initial(&self) -> Vec<Self::State>;

    /// Every action instance, once; the place in this list is its [`ActionId`].
    fn actions(&self) -> Vec<Action>;

    /// Every step from `state`, as the specification's next-state relation enumerates them:
    /// a successor that two ways lead to is given twice, a step that changes nothing is given too.
    fn next(&self, state: &Self::State, steps: &mut Steps<Self::State>);

    /// The variables of a state with their values as TLA+ would print them, in a fixed order.
    fn describe(&self, state: &Self::State) -> Vec<(&'static str, String)>;

    /// A step in words, where its name and the variables do not say enough.
    fn tell(&self, _from: &Self::State, _action: ActionId, _to: &Self::State) -> Option<String> {
        None
    }

    /// What a check of this model says something about.
    fn covers(&self) -> Covers {
        Covers::Protocol
    }

    /// How often shipped code was called so far; 0 for a model that calls none.
    fn calls(&self) -> u64 {
        0
    }

    /// What must hold in every state.
    fn invariants(&self) -> Vec<Invariant<Self::State>> {
        Vec::new()
    }

    /// What must be possible: states that some behaviour must reach.
    fn reachable(&self) -> Vec<Reachable<Self::State>> {
        Vec::new()
    }

    /// What must hold of every step that changes something (`[][...]_vars`).
    fn step_rules(&self) -> Vec<StepRule<Self::State>> {
        Vec::new()
    }

    /// What must hold of every fair behaviour.
    fn properties(&self) -> Vec<Property<Self::State>> {
        Vec::new()
    }

    /// Which actions may not be put off for ever.
    fn fairness(&self) -> Vec<Fairness> {
        Vec::new()
    }

    /// Whether the model may rest here: a state without successors that is not a deadlock.
    fn may_rest(&self, _state: &Self::State) -> bool {
        false
    }

    /// Free flags: see [`Flag`]. They are the bits of [`Model::flag_bits`].
    fn flags(&self) -> Vec<Flag> {
        Vec::new()
    }

    /// The flags of this state as bits; all ones at the start.
    fn flag_bits(&self, _state: &Self::State) -> u64 {
        0
    }

    /// The same state with other flags.
    fn with_flag_bits(&self, state: &Self::State, _flags: u64) -> Self::State {
        state.clone()
    }

    /// How many permutations of interchangeable values there are beside the identity.
    fn symmetries(&self) -> usize {
        0
    }

    /// The image of a state under one such permutation, `0..symmetries()`.
    fn permute(&self, state: &Self::State, _permutation: usize) -> Self::State {
        state.clone()
    }

    /// A well-typed state at random, reachable or not. With it the lint can tell an invariant that
    /// merely holds from one that no state could ever break.
    fn arbitrary(&self, _rng: &mut Rng) -> Option<Self::State> {
        None
    }

    /// Specifications that every step of this model must be a step of, or leave unchanged.
    fn refines(&self) -> Vec<Refinement<Self::State>> {
        Vec::new()
    }

    /// This model with one rule broken on purpose, one per rule.
    fn mutants(&self) -> Vec<Mutant<Self>>
    where
        Self: Sized,
    {
        Vec::new()
    }
}

/// What a check of a model says something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Covers {
    /// A specification as its author wrote it, defects included.
    Seed,
    /// A protocol that shipped code must follow.
    Protocol,
    /// The shipped code itself.
    Shipped,
}

impl Covers {
    /// The word that people and JSON have for it.
    pub fn word(self) -> &'static str {
        match self {
            Covers::Seed => "seed",
            Covers::Protocol => "protocol",
            Covers::Shipped => "shipped",
        }
    }
}

/// One action instance and who takes it, for traces and diagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// As the specification writes it: `TenantFlush(t1)`.
    pub name: String,
    /// Who acts: a lane of the sequence diagram.
    pub actor: String,
    /// Who is acted upon, if it is somebody else.
    pub target: Option<String>,
}

impl Action {
    /// An action of `actor` upon itself.
    pub fn new(name: impl Into<String>, actor: impl Into<String>) -> Self {
        Action { name: name.into(), actor: actor.into(), target: None }
    }

    /// The same, drawn as an arrow to `target`.
    pub fn to(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// The action without its arguments: `TenantFlush`.
    pub fn family(&self) -> &str {
        self.name.split('(').next().unwrap_or(&self.name)
    }
}

/// One step out of a state.
#[derive(Debug, Clone)]
pub struct Step<S> {
    /// Which action.
    pub action: ActionId,
    /// The flags that must be up for it (see [`Flag`]); 0 when none matters.
    pub needs: u64,
    /// Where it leads.
    pub to: S,
}

/// Collects the steps out of one state; reused from state to state.
#[derive(Debug)]
pub struct Steps<S>(Vec<Step<S>>);

impl<S> Default for Steps<S> {
    fn default() -> Self {
        Steps(Vec::with_capacity(64))
    }
}

impl<S> Steps<S> {
    /// A step that is possible whatever the flags are.
    #[inline]
    pub fn step(&mut self, action: ActionId, to: S) {
        self.0.push(Step { action, needs: 0, to });
    }

    /// A step that is possible while all flags in `needs` are up.
    #[inline]
    pub fn step_while(&mut self, needs: u64, action: ActionId, to: S) {
        self.0.push(Step { action, needs, to });
    }

    /// Forgets all steps, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The steps so far.
    #[inline]
    pub fn as_slice(&self) -> &[Step<S>] {
        &self.0
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&Step<S>) -> bool) {
        self.0.retain(keep);
    }
}

/// A predicate over states.
pub type Predicate<S> = Box<dyn Fn(&S) -> bool + Send + Sync>;
/// A predicate over steps: from, to.
pub type StepPredicate<S> = Box<dyn Fn(&S, &S) -> bool + Send + Sync>;

/// What must hold in every reachable state.
pub struct Invariant<S> {
    /// The name in the specification.
    pub name: &'static str,
    /// What it promises, in one sentence.
    pub sentence: &'static str,
    /// The predicate.
    pub holds: Predicate<S>,
    /// Why no state of this model could break it, where that is known and right
    /// (the types already say it, or it speaks of constants only): the lint then stays silent.
    pub unbreakable: Option<&'static str>,
}

impl<S> Invariant<S> {
    /// An invariant that some state could break.
    pub fn new(
        name: &'static str,
        sentence: &'static str,
        holds: impl Fn(&S) -> bool + Send + Sync + 'static,
    ) -> Self {
        Invariant { name, sentence, holds: Box::new(holds), unbreakable: None }
    }

    /// States why it is right that no state of the model can break it.
    pub fn unbreakable(self, why: &'static str) -> Self {
        self.unbreakable_if(true, why)
    }

    /// The same, in some sizes of the model only.
    pub fn unbreakable_if(mut self, so: bool, why: &'static str) -> Self {
        if so {
            self.unbreakable = Some(why);
        }
        self
    }
}

/// What must be possible: a state that some behaviour reaches.
pub struct Reachable<S> {
    /// A name.
    pub name: &'static str,
    /// What must be possible, in one sentence.
    pub sentence: &'static str,
    /// The predicate.
    pub holds: Predicate<S>,
}

impl<S> Reachable<S> {
    /// A state that must be possible.
    pub fn new(
        name: &'static str,
        sentence: &'static str,
        holds: impl Fn(&S) -> bool + Send + Sync + 'static,
    ) -> Self {
        Reachable { name, sentence, holds: Box::new(holds) }
    }
}

/// What must hold of every step that changes something.
pub struct StepRule<S> {
    /// The name in the specification.
    pub name: &'static str,
    /// What it promises, in one sentence.
    pub sentence: &'static str,
    /// The predicate over (from, to).
    pub allows: StepPredicate<S>,
}

impl<S> StepRule<S> {
    /// A rule for steps.
    pub fn new(
        name: &'static str,
        sentence: &'static str,
        allows: impl Fn(&S, &S) -> bool + Send + Sync + 'static,
    ) -> Self {
        StepRule { name, sentence, allows: Box::new(allows) }
    }
}

/// What must hold of every fair behaviour: one formula, or one for each value of a quantifier.
pub struct Property<S> {
    /// The name in the specification.
    pub name: &'static str,
    /// What it promises, in one sentence.
    pub sentence: &'static str,
    /// All of these must hold.
    pub formulas: Vec<Formula<S>>,
}

impl<S> Property<S> {
    /// A property that is one formula.
    pub fn new(name: &'static str, sentence: &'static str, formula: Formula<S>) -> Self {
        Property { name, sentence, formulas: vec![formula] }
    }

    /// A property that is quantified: one formula for each value.
    pub fn for_all(
        name: &'static str,
        sentence: &'static str,
        formulas: impl IntoIterator<Item = Formula<S>>,
    ) -> Self {
        Property { name, sentence, formulas: formulas.into_iter().collect() }
    }
}

/// The temporal formulas that can be checked.
pub enum Formula<S> {
    /// `<>Q`
    Eventually(Predicate<S>),
    /// `[]<>P`
    AlwaysEventually(Predicate<S>),
    /// `<>[]P`
    EventuallyAlways(Predicate<S>),
    /// `P ~> Q`
    LeadsTo(Predicate<S>, Predicate<S>),
    /// `([]P) ~> Q`: from any point on, if P holds for ever after, then Q in the end.
    AlwaysLeadsTo(Predicate<S>, Predicate<S>),
    /// `[]P => <>Q`, read in the first state only.
    AlwaysImpliesEventually(Predicate<S>, Predicate<S>),
    /// `<>[]P => <>[]Q`
    StableImpliesStable(Predicate<S>, Predicate<S>),
    /// `<>[][FALSE]_vars`: in the end nothing changes any more.
    ComesToRest,
}

impl<S> Formula<S> {
    /// `<>Q`
    pub fn eventually(q: impl Fn(&S) -> bool + Send + Sync + 'static) -> Self {
        Formula::Eventually(Box::new(q))
    }
    /// `[]<>P`
    pub fn always_eventually(p: impl Fn(&S) -> bool + Send + Sync + 'static) -> Self {
        Formula::AlwaysEventually(Box::new(p))
    }
    /// `<>[]P`
    pub fn eventually_always(p: impl Fn(&S) -> bool + Send + Sync + 'static) -> Self {
        Formula::EventuallyAlways(Box::new(p))
    }
    /// `P ~> Q`
    pub fn leads_to(
        p: impl Fn(&S) -> bool + Send + Sync + 'static,
        q: impl Fn(&S) -> bool + Send + Sync + 'static,
    ) -> Self {
        Formula::LeadsTo(Box::new(p), Box::new(q))
    }
    /// `([]P) ~> Q`
    pub fn always_leads_to(
        p: impl Fn(&S) -> bool + Send + Sync + 'static,
        q: impl Fn(&S) -> bool + Send + Sync + 'static,
    ) -> Self {
        Formula::AlwaysLeadsTo(Box::new(p), Box::new(q))
    }
    /// `[]P => <>Q`, in the first state
    pub fn always_implies_eventually(
        p: impl Fn(&S) -> bool + Send + Sync + 'static,
        q: impl Fn(&S) -> bool + Send + Sync + 'static,
    ) -> Self {
        Formula::AlwaysImpliesEventually(Box::new(p), Box::new(q))
    }
    /// `<>[]P => <>[]Q`
    pub fn stable_implies_stable(
        p: impl Fn(&S) -> bool + Send + Sync + 'static,
        q: impl Fn(&S) -> bool + Send + Sync + 'static,
    ) -> Self {
        Formula::StableImpliesStable(Box::new(p), Box::new(q))
    }
}

/// How strongly a set of actions insists on being taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// Not put off for ever while it stays possible.
    Weak,
    /// Not put off for ever while it is possible again and again.
    Strong,
}

/// `WF_vars(A)` or `SF_vars(A)`, where A is the union of some action instances.
#[derive(Debug, Clone)]
pub struct Fairness {
    /// As the specification writes it: `WF(TenantFlush)`.
    pub name: String,
    /// Weak or strong.
    pub strength: Strength,
    /// The action instances whose union it speaks of.
    pub actions: Vec<ActionId>,
}

impl Fairness {
    /// Weak fairness of the union of these instances.
    pub fn weak(name: impl Into<String>, actions: impl IntoIterator<Item = ActionId>) -> Self {
        Fairness {
            name: format!("WF({})", name.into()),
            strength: Strength::Weak,
            actions: actions.into_iter().collect(),
        }
    }
    /// Strong fairness of the union of these instances.
    pub fn strong(name: impl Into<String>, actions: impl IntoIterator<Item = ActionId>) -> Self {
        Fairness {
            name: format!("SF({})", name.into()),
            strength: Strength::Strong,
            actions: actions.into_iter().collect(),
        }
    }
}

/// A part of the state that the world changes as it likes: a network that may be cut and heal, a
/// process that may be down. It starts up, changes by its own moves only, in every state, and steps
/// of the model may *need* it up ([`Steps::step_while`]) but never read or change it otherwise.
///
/// Then the reachable states are exactly (states without flags) x (values of the flags), and the
/// engine explores the first factor only. It verifies the declaration while it does so.
#[derive(Debug, Clone)]
pub struct Flag {
    /// The variable it stands for: `mgmt_tenant_network[t1]`.
    pub name: String,
    /// Its bits in [`Model::flag_bits`].
    pub bits: u64,
    /// How it changes: from these bits, to those bits, by this action.
    pub moves: Vec<FlagMove>,
}

/// One way a flag changes.
#[derive(Debug, Clone, Copy)]
pub struct FlagMove {
    /// The flag's bits before.
    pub from: u64,
    /// The flag's bits after.
    pub to: u64,
    /// The action that does it.
    pub action: ActionId,
}

impl Flag {
    /// A flag of one bit that goes down by one action and up by another.
    pub fn up_down(name: impl Into<String>, bit: u64, down: ActionId, up: ActionId) -> Self {
        Flag {
            name: name.into(),
            bits: bit,
            moves: vec![
                FlagMove { from: bit, to: 0, action: down },
                FlagMove { from: 0, to: bit, action: up },
            ],
        }
    }
}

/// The steps from a state in which these flags are kept.
#[inline]
pub(crate) fn expand<M: Model>(
    model: &M,
    flags: &[Flag],
    state: &M::State,
    steps: &mut Steps<M::State>,
) {
    steps.clear();
    model.next(state, steps);
    if flags.is_empty() {
        return;
    }
    let up = model.flag_bits(state);
    steps.retain(|step| step.needs & !up == 0);
    for flag in flags {
        for change in flag.moves.iter().filter(|change| change.from == up & flag.bits) {
            let to = model.with_flag_bits(state, up & !flag.bits | change.to);
            steps.step(change.action, to);
        }
    }
}

/// A specification that a model must refine, reduced to two questions about mapped states.
pub struct Refinement<S> {
    /// The name of the specification.
    pub name: String,
    /// Whether the image of an initial state is initial there.
    pub starts: Predicate<S>,
    /// Whether the image of a step is a step there, or no change.
    pub steps: StepPredicate<S>,
}

impl<S: 'static> Refinement<S> {
    /// Every step of the model, seen through `map`, must be a step of `specification` or stutter.
    pub fn of<M: Model + 'static>(
        name: impl Into<String>,
        specification: M,
        map: impl Fn(&S) -> M::State + Send + Sync + Clone + 'static,
    ) -> Self {
        let flags = specification.flags();
        let specification = Arc::new(specification);
        let (spec, image) = (specification.clone(), map.clone());
        Refinement {
            name: name.into(),
            starts: Box::new(move |state| spec.initial().contains(&image(state))),
            steps: Box::new(move |from, to| {
                let (from, to) = (map(from), map(to));
                if from == to {
                    return true;
                }
                let mut steps = Steps::default();
                expand(&*specification, &flags, &from, &mut steps);
                steps.as_slice().iter().any(|step| step.to == to)
            }),
        }
    }
}

/// Whether a specification gets from one state to another in at most so many steps. One step of a
/// system may be several of its specification: what is written at once there is distinguished here.
pub fn reaches<M: Model>(specification: &M, from: &M::State, to: &M::State, most: usize) -> bool {
    reaches_between(specification, from, to, most, |_, _, _| true)
}

/// The same, by way of such states only as `between` allows: it is asked with where the way begins, a state on
/// it, and where it ends. Fewer states are expanded, and no way is found that is not one.
pub fn reaches_between<M: Model>(
    specification: &M,
    from: &M::State,
    to: &M::State,
    most: usize,
    between: fn(&M::State, &M::State, &M::State) -> bool,
) -> bool {
    if from == to {
        return true;
    }
    let flags = specification.flags();
    let (mut known, mut begun) = (vec![from.clone()], 0);
    let mut steps = Steps::default();
    for _ in 0..most {
        let mut found = Vec::new();
        for state in &known[begun..] {
            expand(specification, &flags, state, &mut steps);
            let allowed = steps.as_slice().iter().filter(|step| between(from, &step.to, to));
            found.extend(allowed.map(|step| step.to.clone()));
        }
        if found.contains(to) {
            return true;
        }
        begun = known.len();
        for state in found {
            if !known.contains(&state) {
                known.push(state);
            }
        }
    }
    false
}

/// A model with one rule broken on purpose.
pub struct Mutant<M> {
    /// A name to ask for it by.
    pub name: String,
    /// What was broken, in one sentence.
    pub sentence: String,
    /// The promises of which at least one must break; empty: any.
    pub breaks: Vec<&'static str>,
    /// The broken model.
    pub model: M,
}

impl<M> Mutant<M> {
    /// A mutant that must break at least one of `breaks`.
    pub fn new(
        name: impl Into<String>,
        sentence: impl Into<String>,
        breaks: &[&'static str],
        model: M,
    ) -> Self {
        Mutant { name: name.into(), sentence: sentence.into(), breaks: breaks.to_vec(), model }
    }
}
