//! The shipped rules of filling in a hostile world: every order of news, crashes and people.
//!
//! The populator, the storage and the destination here are the `decide` functions that ship: each
//! step builds their facts from what a controller can see, asks them, and does to the world what the
//! real write or deed would do. Of the destination this is what it does with images: it takes them,
//! publishes them, deletes what is not held, over the version in which it was not, and goes. Which
//! images it can spare, the world says: all but the latest, where in truth the last two stay.
//!
//! * A crash between two effects, and a reply that is lost, leave a world in which the next step is
//!   decided from what is there: nothing is remembered, so every state is one of these.
//! * Old news shows an image that was once the latest; what rests on a fresh look is shown the truth.
//!   But between a look and its write a second populator may be stopped for as long as it takes to
//!   hurt: guards refuse what they guard, and what is made new or deleted by uid comes late.
//! * What the storage deletes on the disk comes as late as it likes, too.

mod actions;
mod effects;
mod facts;
mod flaws;
mod promises;
mod refine;
mod show;
mod state;
mod steps;

pub use state::State;

use flaws::Flaw;
use interlock_checker::{
    Action, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Reachable, Refinement, Rng,
    Size, SizeError, SizeKey, Steps,
};
use state::{MOST_CLAIMS, MOST_FAULTS, MOST_IMAGES};

const NAME: &str = "design/volumes";

const KEYS: [SizeKey; 7] = [
    SizeKey::new("images", "images that the destination takes", 2, 1, MOST_IMAGES as u64),
    SizeKey::new("claims", "claims that are to be filled", 1, 1, MOST_CLAIMS as u64),
    SizeKey::new("names", "1: all claims have one name, and each follows another", 1, 0, 1),
    SizeKey::new("vandals", "images that somebody deletes by hand", 1, 0, MOST_FAULTS),
    SizeKey::new("populators", "populators at once", 2, 1, 2),
    SizeKey::new(
        "faults",
        "choices by old news, and volumes that fail half-way",
        0,
        0,
        MOST_FAULTS,
    ),
    SizeKey::new("leave", "1: the destination and bound claims are deleted too", 0, 0, 1),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped rules of filling claims, whatever is deleted, fails or lags meanwhile",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::from_size(size)?)),
};

/// The world in some size, with flaws in its controllers or none.
#[derive(Debug, Clone)]
pub struct World {
    images: usize,
    claims: usize,
    /// All claims have one name: each may be made when those before it are gone.
    one_name: bool,
    /// How many images are deleted by hand.
    vandals: u8,
    /// A second populator may be stopped between its look and its write.
    two_populators: bool,
    /// How often old news is believed, or a volume fails half-way.
    faults: u8,
    /// The destination is deleted and made again, and so are claims that are bound.
    leave: bool,
    flaws: &'static [Flaw],
}

impl World {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [images, claims, names, vandals, populators, faults, leave] =
            size.numbers(NAME, &KEYS)?;
        Ok(World {
            images: images as usize,
            claims: claims as usize,
            one_name: names == 1,
            vandals: vandals as u8,
            two_populators: populators == 2,
            faults: faults as u8,
            leave: leave == 1,
            flaws: &[],
        })
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaws.contains(&flaw)
    }
}

impl Model for World {
    type State = State;
    type Packed = [u64; 4];

    fn size(&self) -> String {
        format!(
            "images={},claims={},names={},vandals={},populators={},faults={},leave={}",
            self.images,
            self.claims,
            u8::from(self.one_name),
            self.vandals,
            1 + u8::from(self.two_populators),
            self.faults,
            u8::from(self.leave)
        )
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        self.why(name)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        self.code_state(state, coder);
    }

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
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
        self.all_invariants()
    }

    fn reachable(&self) -> Vec<Reachable<State>> {
        self.all_reachable()
    }

    fn properties(&self) -> Vec<Property<State>> {
        self.all_properties()
    }

    fn fairness(&self) -> Vec<Fairness> {
        self.all_fairness()
    }

    /// When every claim is filled for good, or gone.
    fn may_rest(&self, state: &State) -> bool {
        state.claims[..self.claims].iter().all(|claim| claim.is_filled() || claim.is_gone())
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(self.any_state(rng))
    }

    fn refines(&self) -> Vec<Refinement<State>> {
        self.refined()
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        self.flawed()
    }
}

#[cfg(test)]
mod tests;
