//! How a model is walked: plainly, without its free flags, or up to symmetry; and the checks that keep
//! the last two honest.

use crate::error::CheckError;
use crate::model::{Flag, Invariant, Model, Steps, expand};
use crate::rng::Rng;

/// A model as it is explored.
pub(crate) struct Space<'a, M: Model> {
    pub(crate) model: &'a M,
    /// The declared flags; in a plain walk they are part of the state.
    flags: Vec<Flag>,
    /// The values of the flags, when they are left out of the states.
    pub(crate) product: Option<FlagValues>,
    /// How many permutations to try beside the identity; 0 without symmetry.
    pub(crate) permutations: usize,
}

/// The values that all flags can take, each flag by itself.
#[derive(Debug, Clone)]
pub struct FlagValues {
    /// All bits of all flags: their value at the start.
    pub(crate) all_up: u64,
    values: Vec<(u64, Vec<u64>)>,
    /// How many valuations there are.
    pub(crate) count: u64,
    /// How many moves there are, over all valuations.
    pub(crate) moves: u64,
    /// How many moves it takes at most to reach a valuation.
    pub(crate) depth: u32,
}

impl FlagValues {
    /// Works out the values that each flag reaches from "up" by its own moves.
    fn of(flags: &[Flag]) -> Result<Self, CheckError> {
        let all_up = flags.iter().fold(0, |bits, flag| bits | flag.bits);
        let mut values = Vec::new();
        let mut depth = 0;
        for flag in flags {
            let (reached, distance) = reach(flag);
            if let Some(stuck) = reached.iter().find(|v| !can_return(flag, **v)) {
                return Err(CheckError::FalseFlag {
                    flag: flag.name.clone(),
                    why: format!("it cannot come up again from {stuck:#b}"),
                });
            }
            if flags.iter().any(|other| other.name != flag.name && other.bits & flag.bits != 0) {
                return Err(CheckError::FalseFlag {
                    flag: flag.name.clone(),
                    why: "it shares bits with another flag".to_owned(),
                });
            }
            depth += distance;
            values.push((flag.bits, reached));
        }
        let count: u64 = values.iter().map(|(_, reached)| reached.len() as u64).product();
        let moves = flags
            .iter()
            .zip(&values)
            .map(|(flag, (_, reached))| {
                let out = flag.moves.iter().filter(|m| reached.contains(&m.from)).count() as u64;
                count / reached.len() as u64 * out
            })
            .sum();
        Ok(FlagValues { all_up, values, count, moves, depth })
    }

    /// In how many valuations all of `needs` is up.
    pub(crate) fn with_up(&self, needs: u64) -> u64 {
        if needs == 0 {
            return self.count;
        }
        let up = |(bits, reached): &(u64, Vec<u64>)| {
            reached.iter().filter(|value| needs & bits & !**value == 0).count() as u64
        };
        self.values.iter().map(up).product()
    }

    fn random(&self, rng: &mut Rng) -> u64 {
        self.values.iter().fold(0, |bits, (_, reached)| bits | reached[rng.below(reached.len())])
    }
}

fn reach(flag: &Flag) -> (Vec<u64>, u32) {
    let mut reached = vec![flag.bits];
    let mut depth = 0;
    let mut fresh = 0..1;
    while !fresh.is_empty() {
        for at in fresh.clone() {
            let from = reached[at];
            for change in flag.moves.iter().filter(|change| change.from == from) {
                if !reached.contains(&change.to) {
                    reached.push(change.to);
                }
            }
        }
        fresh = fresh.end..reached.len();
        depth += u32::from(!fresh.is_empty());
    }
    (reached, depth)
}

fn can_return(flag: &Flag, from: u64) -> bool {
    let start = Flag { bits: from, ..flag.clone() };
    reach(&start).0.contains(&flag.bits)
}

impl<'a, M: Model> Space<'a, M> {
    /// The model with its flags as part of each state.
    pub(crate) fn plain(model: &'a M) -> Self {
        Space { model, flags: model.flags(), product: None, permutations: 0 }
    }

    /// The model without its flags and up to symmetry, where it declares them.
    pub(crate) fn reduced(model: &'a M, symmetry: bool) -> Result<Self, CheckError> {
        let flags = model.flags();
        let product = if flags.is_empty() { None } else { Some(FlagValues::of(&flags)?) };
        if let Some(product) = &product
            && model.initial().iter().any(|state| model.flag_bits(state) != product.all_up)
        {
            return Err(CheckError::FalseFlag {
                flag: flags[0].name.clone(),
                why: "not every flag is up in every initial state".to_owned(),
            });
        }
        let permutations = if symmetry { model.symmetries() } else { 0 };
        Ok(Space { model, flags, product, permutations })
    }

    /// The steps from a state of this space.
    #[inline]
    pub(crate) fn expand(&self, state: &M::State, steps: &mut Steps<M::State>) {
        let flags = if self.product.is_some() { &[] } else { &self.flags[..] };
        expand(self.model, flags, state, steps);
    }

    /// The packed state that stands for this one and all its images.
    #[inline]
    pub(crate) fn canonical(&self, state: &M::State) -> M::Packed {
        let mut least = self.model.pack(state);
        for permutation in 0..self.permutations {
            least = least.min(self.model.pack(&self.model.permute(state, permutation)));
        }
        least
    }

    /// How many states the representative stands for.
    #[inline]
    pub(crate) fn orbit(&self, state: &M::State) -> u64 {
        if self.permutations == 0 {
            return 1;
        }
        let own = self.model.pack(state);
        if self.permutations == 1 {
            return 1 + u64::from(self.model.pack(&self.model.permute(state, 0)) != own);
        }
        let mut images: Vec<_> = (0..self.permutations)
            .map(|k| self.model.pack(&self.model.permute(state, k)))
            .collect();
        images.push(own);
        images.sort_unstable();
        images.dedup();
        images.len() as u64
    }

    /// Holds the declarations against one state: its steps and verdicts must be the same under other
    /// flags and under each permutation.
    pub(crate) fn verify(
        &self,
        state: &M::State,
        invariants: &[Invariant<M::State>],
        rng: &mut Rng,
    ) -> Result<(), CheckError> {
        let mut own = Steps::default();
        self.model.next(state, &mut own);
        if let Some(product) = &self.product {
            self.verify_flags(state, &own, invariants, product.random(rng))?;
        }
        if self.permutations > 0 {
            self.verify_symmetry(state, invariants, rng.below(self.permutations))?;
        }
        Ok(())
    }

    fn verify_flags(
        &self,
        state: &M::State,
        own: &Steps<M::State>,
        invariants: &[Invariant<M::State>],
        flags: u64,
    ) -> Result<(), CheckError> {
        let refuse = |why: String| {
            let down = self.flags.iter().find(|flag| flags & flag.bits != flag.bits);
            let flag = down.map_or_else(|| "a flag".to_owned(), |flag| flag.name.clone());
            Err(CheckError::FalseFlag { flag, why })
        };
        let other = self.model.with_flag_bits(state, flags);
        let mut steps = Steps::default();
        self.model.next(&other, &mut steps);
        if steps.as_slice().len() != own.as_slice().len() {
            return refuse("the model reads it to decide which steps there are".to_owned());
        }
        for (a, b) in own.as_slice().iter().zip(steps.as_slice()) {
            if self.model.flag_bits(&b.to) != flags {
                let action = &self.model.actions()[b.action as usize].name;
                return refuse(format!("the action {action} changes it"));
            }
            let same = a.action == b.action
                && a.needs == b.needs
                && self.model.with_flag_bits(&b.to, self.model.flag_bits(&a.to)) == a.to;
            if !same {
                let action = &self.model.actions()[a.action as usize].name;
                return refuse(format!("the action {action} reads it beyond needing it up"));
            }
        }
        for invariant in invariants {
            if (invariant.holds)(state) != (invariant.holds)(&other) {
                return refuse(format!("the invariant {} reads it", invariant.name));
            }
        }
        Ok(())
    }

    fn verify_symmetry(
        &self,
        state: &M::State,
        invariants: &[Invariant<M::State>],
        permutation: usize,
    ) -> Result<(), CheckError> {
        let image = self.model.permute(state, permutation);
        let why = |why: String| CheckError::FalseSymmetry { permutation, why };
        if self.canonical(&image) != self.canonical(state) {
            return Err(why("a state and its image have different representatives".to_owned()));
        }
        let after = |state: &M::State| {
            let mut steps = Steps::default();
            self.expand(state, &mut steps);
            let mut after: Vec<_> =
                steps.as_slice().iter().map(|step| self.canonical(&step.to)).collect();
            after.sort_unstable();
            after
        };
        if after(&image) != after(state) {
            return Err(why(format!("a state and its image have different steps: {state:?}")));
        }
        for invariant in invariants {
            if (invariant.holds)(state) != (invariant.holds)(&image) {
                return Err(why(format!("the invariant {} tells them apart", invariant.name)));
            }
        }
        Ok(())
    }
}
