//! The shipped rules of placement in a hostile world: every order of crashes, lags and power loss.
//!
//! The controllers here are the `decide` functions that ship: each step builds their facts from what
//! a controller can see, asks them, and does to the world what the real write would do. What the
//! world leaves out, and why that hides nothing, is in `docs/checking.md`.

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

use crate::spec::hub::{Extent, MOST_EPOCHS};
use flaws::Flaw;
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Reachable, Refinement, Rng,
    Size, SizeError, SizeKey, StepRule, Steps,
};
use state::{MOST_CLAIMS, MOST_CLUSTERS};

const NAME: &str = "design/placement";
const LIVE_NAME: &str = "design/placement-live";

const MOST_WRITES: u64 = 2;
const MOST_FAULTS: u64 = 3;

const CLUSTERS: SizeKey =
    SizeKey::new("clusters", "clusters that can own the namespace", 2, 1, MOST_CLUSTERS as u64);
const EPOCHS: SizeKey = SizeKey::new("epochs", "how often it is granted", 2, 1, MOST_EPOCHS as u64);
const WRITES: SizeKey = SizeKey::new("writes", "writes that the workload does", 1, 0, MOST_WRITES);
const CLAIMS: SizeKey =
    SizeKey::new("claims", "claims; the second one may be added late", 1, 1, MOST_CLAIMS as u64);
const FORCE: SizeKey = SizeKey::new("force", "1: power loss and ForceRelease happen", 1, 0, 1);
const RELIST: SizeKey =
    SizeKey::new("relist", "1: a restarted syncer may list any past value", 0, 0, 1);
const CRASH: SizeKey = SizeKey::new("crash", "1: syncers and runtimes crash", 1, 0, 1);
const SYNCERS: SizeKey = SizeKey::new("syncers", "syncers of a cluster at once", 2, 1, 2);
const UNFIT: SizeKey = SizeKey::new("unfit", "clusters that fit no namespace", 0, 0, 1);
const SLOW: SizeKey = SizeKey::new("slow", "1: background copies take their time", 0, 0, 1);
const FAULTS: SizeKey =
    SizeKey::new("faults", "faults that happen before all is calm", 3, 0, MOST_FAULTS);

const KEYS: [SizeKey; 10] =
    [CLUSTERS, EPOCHS, WRITES, CLAIMS, FORCE, RELIST, CRASH, SYNCERS, UNFIT, SLOW];
const LIVE_KEYS: [SizeKey; 11] =
    [CLUSTERS, EPOCHS, WRITES, CLAIMS, FORCE, RELIST, CRASH, SYNCERS, UNFIT, SLOW, FAULTS];

/// For the catalog: any number of faults.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the decisions of placement in an abstract world, whatever crashes, lags or loses power",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::from_size(size)?)),
};

/// For the catalog: finitely many faults, and what must then happen.
pub const LIVE_ENTRY: Entry = Entry {
    name: LIVE_NAME,
    summary: "the same with a bounded number of faults: wishes are met, and all comes to its end",
    keys: &LIVE_KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::live_from_size(size)?)),
};

/// The world in some size, with flaws in its controllers or none.
#[derive(Debug, Clone)]
pub struct World {
    extent: Extent,
    claims: u8,
    /// Power may be lost, and an operator may then declare an owner gone.
    force: bool,
    /// A restarted syncer may see any value that the Grant ever had.
    relist: bool,
    /// Syncers and runtimes may crash.
    crash: bool,
    /// A second syncer of a cluster may act while a first one is between its look and its write.
    two_syncers: bool,
    /// The last cluster takes nothing.
    unfit: bool,
    /// A background copy has what was there when it began.
    slow: bool,
    /// Caches show the past; only a test does without.
    lag: bool,
    /// An owner may be silent and run; only a test does without.
    partition: bool,
    /// The reply to a write may be lost after it took effect; only a test does without.
    lost_replies: bool,
    /// How many faults there may be; any number if it does not say.
    faults: Option<u8>,
    flaws: &'static [Flaw],
}

impl World {
    /// `placement` in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        Ok(Self::from_numbers(size.numbers(NAME, &KEYS)?, None))
    }

    /// `placement-live` in the size that a person asked for.
    pub fn live_from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(LIVE_NAME, &LIVE_KEYS)?;
        let [rest @ .., faults] = numbers;
        Ok(Self::from_numbers(rest, Some(faults as u8)))
    }

    fn from_numbers(numbers: [u64; 10], faults: Option<u8>) -> Self {
        let [clusters, epochs, writes, claims, force, relist, crash, syncers, unfit, slow] =
            numbers;
        World {
            extent: Extent {
                clusters: clusters as usize,
                epochs: epochs as u8,
                writes: writes as u8,
            },
            claims: claims as u8,
            force: force == 1,
            relist: relist == 1,
            crash: crash == 1,
            two_syncers: syncers == 2,
            unfit: unfit == 1,
            slow: slow == 1,
            lag: true,
            partition: true,
            lost_replies: true,
            faults,
            flaws: &[],
        }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaws.contains(&flaw)
    }
}

impl Model for World {
    type State = State;
    type Packed = [u64; 3];

    fn size(&self) -> String {
        let Extent { clusters, epochs, writes } = self.extent;
        let flags = [self.force, self.relist, self.crash].map(u8::from);
        let [force, relist, crash] = flags;
        let (syncers, unfit) = (1 + u8::from(self.two_syncers), u8::from(self.unfit));
        let faults = self.faults.map(|faults| format!(",faults={faults}")).unwrap_or_default();
        let claims = self.claims;
        let extent = format!("clusters={clusters},epochs={epochs},writes={writes},claims={claims}");
        let world = format!("force={force},relist={relist},crash={crash},syncers={syncers}");
        let slow = u8::from(self.slow);
        format!("{extent},{world},unfit={unfit},slow={slow}{faults}")
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        self.why(name)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        self.code_state(state, coder);
    }

    fn initial(&self) -> Vec<State> {
        let begin = State { all_listed: self.claims == 1, ..State::default() };
        let wishes = if self.faults.is_some() { self.extent.clusters } else { 1 };
        (0..wishes).map(|wish| State { wish: wish as u8, ..begin.clone() }).collect()
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

    fn step_rules(&self) -> Vec<StepRule<State>> {
        self.all_step_rules()
    }

    fn properties(&self) -> Vec<Property<State>> {
        self.all_properties()
    }

    fn fairness(&self) -> Vec<Fairness> {
        self.all_fairness()
    }

    /// When every cluster has done what it was asked for, and there is no fault left to come.
    fn may_rest(&self, state: &State) -> bool {
        self.faults.is_some() || state.epoch == self.extent.epochs && !state.is_held()
    }

    fn symmetries(&self) -> usize {
        // A cluster that takes nothing cannot be exchanged for one that does.
        if self.unfit { 0 } else { arrangements(self.extent.clusters) - 1 }
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let places: [usize; MOST_CLUSTERS] = arrangement(self.extent.clusters, permutation + 1);
        self.rename(state, &places)
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
