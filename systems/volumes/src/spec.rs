//! The protocol of filling: take, make ready, publish; hold, pour, hand over; let go.
//!
//! `specs/protocol/PopNow.tla` is the text it follows, state for state.

mod promises;
mod rules;
pub(crate) mod state;
mod steps;

pub use rules::Rules;
pub use state::{Destination, State};

use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Rng, Size, SizeError,
    SizeKey, Steps,
};
use state::{MOST_CLAIMS, MOST_IMAGES, MOST_VANDALS, Phase};

const NAME: &str = "spec/volumes";
const KEYS: [SizeKey; 3] = [
    SizeKey::new("images", "images that the destination takes", 2, 1, MOST_IMAGES as u64),
    SizeKey::new("claims", "claims that are to be filled", 1, 1, MOST_CLAIMS as u64),
    SizeKey::new("vandals", "images that somebody deletes by hand", 0, 0, MOST_VANDALS as u64),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "claims are filled from images that are superseded, deleted and held meanwhile",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(Volumes::from_size(size)?)),
};

/// The protocol in some size, with some rules broken or none.
#[derive(Debug, Clone)]
pub struct Volumes {
    images: usize,
    claims: usize,
    vandals: u8,
    rules: Rules,
    /// Whoever deletes images by hand spares neither the latest nor one that is not ready yet.
    spares_none: bool,
    /// How it begins.
    first: State,
}

impl Volumes {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [images, claims, vandals] = size.numbers(NAME, &KEYS)?;
        Ok(Volumes {
            images: images as usize,
            claims: claims as usize,
            vandals: vandals as u8,
            rules: Rules::ALL,
            spares_none: false,
            first: State::default(),
        })
    }

    /// The same protocol from some state on, where images are deleted by hand that the text spares.
    pub(crate) fn beginning_in(self, first: State) -> Volumes {
        Volumes { spares_none: true, first, ..self }
    }

    /// The protocol in some size, or in the largest there is.
    pub(crate) fn sized(images: usize, claims: usize, vandals: u8) -> Volumes {
        let (images, claims) = (images.min(MOST_IMAGES), claims.clamp(1, MOST_CLAIMS));
        let (rules, first) = (Rules::ALL, State::default());
        Volumes { images, claims, vandals, rules, spares_none: false, first }
    }
}

impl Model for Volumes {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        format!("images={},claims={},vandals={}", self.images, self.claims, self.vandals)
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        let family = name.split('(').next().unwrap_or(name);
        match family {
            "Vandal" | "HealPrime" | "HealHold" | "Reap" if self.vandals == 0 => {
                Some("nobody deletes a held image unless by hand: ask for vandals=1")
            }
            "Delete" if self.images == 1 => Some("the only image is the latest, which stays"),
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        self.code_state(state, coder);
    }

    fn initial(&self) -> Vec<State> {
        vec![self.first.clone()]
    }

    fn actions(&self) -> Vec<Action> {
        self.all_actions()
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.steps(state, steps);
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        self.show(state)
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        promises::invariants()
    }

    fn properties(&self) -> Vec<Property<State>> {
        self.all_properties()
    }

    fn fairness(&self) -> Vec<Fairness> {
        self.all_fairness()
    }

    /// When the destination is gone and every claim is bound or gone too.
    fn may_rest(&self, state: &State) -> bool {
        state.destination == Destination::Gone
            && state.claims[..self.claims]
                .iter()
                .all(|claim| matches!(claim.phase, Phase::Bound | Phase::Gone))
    }

    /// Nothing tells one image from another, or one claim from another, but their names.
    fn symmetries(&self) -> usize {
        arrangements(self.images) * arrangements(self.claims) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let number = permutation + 1;
        let images: [usize; MOST_IMAGES] =
            arrangement(self.images, number % arrangements(self.images));
        let claims: [usize; MOST_CLAIMS] =
            arrangement(self.claims, number / arrangements(self.images));
        self.rename(state, &images, &claims)
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(self.any_state(rng))
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        self.broken_rules()
    }
}

#[cfg(test)]
mod tests;
