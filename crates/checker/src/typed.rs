//! The bridge from a model with its own types to what the engine walks.

use crate::error::CheckError;
use crate::model::{
    ActionId, Covers, Invariant, Model, Property, Reachable, Refinement, StepRule, Steps,
};
use crate::options::{Liveness, Options};
use crate::rng::Rng;
use crate::space::Space;
use crate::walk::{
    Asked, BadStep, Facts, Hop, Promise, Side, StepPromise, Temporal, Visit, Walk, Walker,
};

/// States tried at random before an invariant is called unbreakable.
const RANDOM_STATES: usize = 20_000;

/// A model with what is to be checked of it.
pub(crate) struct Typed<'a, M: Model> {
    space: Space<'a, M>,
    invariants: Vec<Invariant<M::State>>,
    rules: Vec<StepRule<M::State>>,
    refinements: Vec<Refinement<M::State>>,
    reachable: Vec<Reachable<M::State>>,
    properties: Vec<Property<M::State>>,
    facts: Facts,
}

impl<'a, M: Model> Typed<'a, M> {
    /// The model as the options want it explored.
    pub(crate) fn new(name: &str, model: &'a M, options: &Options) -> Result<Self, CheckError> {
        known_promises(name, model, options)?;
        let plain = options.liveness == Liveness::On || options.plain && !options.symmetry;
        let space =
            if plain { Space::plain(model) } else { Space::reduced(model, options.symmetry)? };
        let mut typed = Typed {
            facts: facts(&space, options.wants("deadlock")),
            space,
            invariants: model.invariants(),
            rules: model.step_rules(),
            refinements: model.refines(),
            reachable: model.reachable(),
            properties: model.properties(),
        };
        typed.invariants.retain(|check| options.wants(check.name));
        typed.rules.retain(|check| options.wants(check.name));
        typed.refinements.retain(|check| options.wants(&check.name));
        typed.reachable.retain(|check| options.wants(check.name));
        typed.properties.retain(|check| options.wants(check.name));
        typed.list_promises();
        let most = typed.invariants.len().max(typed.reachable.len()).max(typed.refinements.len());
        if most > 64 {
            let text =
                format!("{name} promises {most} things of one kind; at most 64 are possible");
            return Err(CheckError::Conflict(text));
        }
        Ok(typed)
    }

    fn list_promises(&mut self) {
        let promise = |name: &str, sentence: &str, unbreakable| Promise {
            name: name.to_owned(),
            sentence: sentence.to_owned(),
            unbreakable,
        };
        let facts = &mut self.facts;
        facts.invariants =
            self.invariants.iter().map(|p| promise(p.name, p.sentence, p.unbreakable)).collect();
        facts.rules = self.rules.iter().map(|p| promise(p.name, p.sentence, None)).collect();
        facts.reachable =
            self.reachable.iter().map(|p| promise(p.name, p.sentence, None)).collect();
        facts.refinements = self
            .refinements
            .iter()
            .map(|p| {
                let sentence =
                    format!("every step is a step of {} or changes nothing there", p.name);
                promise(&p.name, &sentence, None)
            })
            .collect();
        facts.properties = self
            .properties
            .iter()
            .map(|property| Temporal {
                name: property.name,
                sentence: property.sentence,
                shapes: property.formulas.iter().map(|formula| formula.shape()).collect(),
            })
            .collect();
    }
}

fn facts<M: Model>(space: &Space<'_, M>, deadlock: bool) -> Facts {
    Facts {
        size: Model::size(space.model),
        actions: space.model.actions(),
        flags: space.model.flags(),
        product: space.product.clone(),
        permutations: space.permutations,
        deadlock,
        invariants: Vec::new(),
        rules: Vec::new(),
        refinements: Vec::new(),
        reachable: Vec::new(),
        properties: Vec::new(),
        fairness: space.model.fairness(),
    }
}

fn known_promises<M: Model>(name: &str, model: &M, options: &Options) -> Result<(), CheckError> {
    if options.only.is_empty() {
        return Ok(());
    }
    let mut known = vec!["deadlock".to_owned()];
    known.extend(model.invariants().iter().map(|check| check.name.to_owned()));
    known.extend(model.step_rules().iter().map(|check| check.name.to_owned()));
    known.extend(model.properties().iter().map(|check| check.name.to_owned()));
    known.extend(model.refines().iter().map(|check| check.name.clone()));
    known.extend(model.reachable().iter().map(|check| check.name.to_owned()));
    match options.only.iter().find(|only| !known.contains(only)) {
        None => Ok(()),
        Some(unknown) => Err(CheckError::UnknownPromise {
            model: name.to_owned(),
            name: unknown.clone(),
            known: known.join(", "),
        }),
    }
}

/// The numbers of those that are true, as bits.
fn bits(truths: impl Iterator<Item = bool>) -> u64 {
    truths.enumerate().fold(0, |bits, (place, truth)| bits | u64::from(truth) << place)
}

impl<M: Model> Walk<M::Packed> for Typed<'_, M> {
    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn walker(&self) -> Box<dyn Walker<M::Packed> + '_> {
        Box::new(Legs { typed: self, steps: Steps::default() })
    }
    fn initial(&self) -> Vec<M::Packed> {
        self.space.model.initial().iter().map(|state| self.space.model.pack(state)).collect()
    }
    fn key(&self, word: &M::Packed) -> M::Packed {
        self.space.canonical(&self.space.model.unpack(word))
    }
    fn starts_badly(&self, word: &M::Packed) -> u64 {
        let state = self.space.model.unpack(word);
        bits(self.refinements.iter().map(|refinement| !(refinement.starts)(&state)))
    }
    fn may_rest(&self, word: &M::Packed) -> bool {
        self.space.model.may_rest(&self.space.model.unpack(word))
    }
    fn holds(&self, asked: Asked, side: Side, word: &M::Packed) -> bool {
        let formula = &self.properties[asked.property].formulas[asked.formula];
        formula.holds(side, &self.space.model.unpack(word))
    }
    fn truths(&self, word: &M::Packed, truths: &mut Vec<bool>) {
        let state = self.space.model.unpack(word);
        truths.clear();
        for formula in self.properties.iter().flat_map(|property| &property.formulas) {
            let sides = formula.shape().sides().iter();
            truths.extend(sides.map(|side| formula.holds(*side, &state)));
        }
    }
    fn describe(&self, word: &M::Packed) -> Vec<(&'static str, String)> {
        self.space.model.describe(&self.space.model.unpack(word))
    }
    fn tell(&self, from: &M::Packed, action: ActionId, to: &M::Packed) -> Option<String> {
        let model = self.space.model;
        model.tell(&model.unpack(from), action, &model.unpack(to))
    }
    fn coverage(&self) -> (Covers, u64) {
        (self.space.model.covers(), self.space.model.calls())
    }
    fn explain(&self, name: &str) -> Option<&'static str> {
        self.space.model.explain(name)
    }
    fn unbroken_at_random(&self, mut invariants: Vec<usize>) -> Vec<usize> {
        let mut rng = Rng::new(1);
        for _ in 0..RANDOM_STATES {
            let Some(state) = self.space.model.arbitrary(&mut rng) else { return Vec::new() };
            invariants.retain(|place| (self.invariants[*place].holds)(&state));
            if invariants.is_empty() {
                break;
            }
        }
        invariants
    }
    fn plain(&self) -> Box<dyn Walk<M::Packed> + '_> {
        let space = Space::plain(self.space.model);
        let mut facts = facts(&space, false);
        facts.properties = self.facts.properties.clone();
        Box::new(Typed {
            space,
            invariants: Vec::new(),
            rules: Vec::new(),
            refinements: Vec::new(),
            reachable: Vec::new(),
            properties: self
                .space
                .model
                .properties()
                .into_iter()
                .filter(|property| {
                    self.properties.iter().any(|wanted| wanted.name == property.name)
                })
                .collect(),
            facts,
        })
    }
}

/// What one thread needs to walk: room for the steps of one state.
struct Legs<'a, M: Model> {
    typed: &'a Typed<'a, M>,
    steps: Steps<M::State>,
}

impl<M: Model> Legs<'_, M> {
    /// The steps out of a state, packed.
    #[inline]
    fn step(&mut self, state: &M::State, hops: &mut Vec<Hop<M::Packed>>) {
        let space = &self.typed.space;
        space.expand(state, &mut self.steps);
        hops.clear();
        for step in self.steps.as_slice() {
            let to = space.model.pack(&step.to);
            let key = if space.permutations == 0 { to } else { space.canonical(&step.to) };
            hops.push(Hop { action: step.action, needs: step.needs, to, key });
        }
    }
}

impl<M: Model> Walker<M::Packed> for Legs<'_, M> {
    fn hops(&mut self, word: &M::Packed, hops: &mut Vec<Hop<M::Packed>>) {
        let state = self.typed.space.model.unpack(word);
        self.step(&state, hops);
    }

    fn visit(&mut self, word: &M::Packed, visit: &mut Visit<M::Packed>) {
        let typed = self.typed;
        let state = typed.space.model.unpack(word);
        visit.broken = bits(typed.invariants.iter().map(|check| !(check.holds)(&state)));
        visit.reached = bits(typed.reachable.iter().map(|check| (check.holds)(&state)));
        visit.orbit = typed.space.orbit(&state);
        visit.bad_steps.clear();
        self.step(&state, &mut visit.hops);
        if typed.rules.is_empty() && typed.refinements.is_empty() {
            return;
        }
        for (hop, step) in self.steps.as_slice().iter().enumerate() {
            if visit.hops[hop].to == *word {
                continue;
            }
            for (number, rule) in typed.rules.iter().enumerate() {
                if !(rule.allows)(&state, &step.to) {
                    visit.bad_steps.push(BadStep { hop, breaks: StepPromise::Rule(number) });
                }
            }
            for (number, spec) in typed.refinements.iter().enumerate() {
                if !(spec.steps)(&state, &step.to) {
                    visit.bad_steps.push(BadStep { hop, breaks: StepPromise::Refinement(number) });
                }
            }
        }
    }

    fn verify(&mut self, word: &M::Packed, rng: &mut Rng) -> Result<(), CheckError> {
        let state = self.typed.space.model.unpack(word);
        self.typed.space.verify(&state, &self.typed.invariants, rng)
    }
}
