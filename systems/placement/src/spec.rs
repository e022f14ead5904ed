//! The protocol of a move: grant, fill, permit, run, revoke, close, copy, release; and by force.
//!
//! `specs/protocol/Placement.tla` and `PlacementLive.tla` are the text it follows, state for state;
//! `PlacementRecord.tla` for the stage that ships.

mod holder;
pub(crate) mod hub;
mod promises;
mod record;
mod rules;
pub(crate) mod state;
mod steps;

pub use holder::{Holders, OneHolder};
pub use rules::Rules;
pub use state::State;

use hub::{Extent, MOST_EPOCHS};
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Refinement, Rng, Size,
    SizeError, SizeKey, StepRule, Steps,
};
use state::MOST_CLUSTERS;

const NAME: &str = "spec/placement";
const LIVE_NAME: &str = "spec/placement-live";

// With these the packed state has no bit to spare.
const MOST_WRITES: u64 = 2;
const MOST_FAULTS: u64 = 3;

const CLUSTERS: SizeKey =
    SizeKey::new("clusters", "clusters that can own the namespace", 2, 1, MOST_CLUSTERS as u64);
const EPOCHS: SizeKey = SizeKey::new("epochs", "how often it is granted", 2, 1, MOST_EPOCHS as u64);
const WRITES: SizeKey = SizeKey::new("writes", "writes that the workload does", 1, 0, MOST_WRITES);
const FORCE: SizeKey = SizeKey::new("force", "1: power loss and ForceRelease happen", 1, 0, 1);
const RELIST: SizeKey =
    SizeKey::new("relist", "1: a restarted syncer may list any past value", 1, 0, 1);
const RECORD: SizeKey =
    SizeKey::new("record", "1: the permit is a record, as in the stage that ships", 0, 0, 1);
const FAULTS: SizeKey =
    SizeKey::new("faults", "faults that happen before all is calm", 1, 0, MOST_FAULTS);

const KEYS: [SizeKey; 6] = [CLUSTERS, EPOCHS, WRITES, FORCE, RELIST, RECORD];
const LIVE_KEYS: [SizeKey; 6] = [CLUSTERS, EPOCHS, WRITES, FORCE, RELIST, FAULTS];

/// For the catalog: any number of faults.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a namespace moves with its data from cluster to cluster, whatever crashes or lags",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(Placement::from_size(size)?)),
};

/// For the catalog: finitely many faults, and what must then happen.
pub const LIVE_ENTRY: Entry = Entry {
    name: LIVE_NAME,
    summary: "the same with a bounded number of faults: moves end, and grants run",
    keys: &LIVE_KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(Placement::live_from_size(size)?)),
};

/// The protocol in some size, with some rules broken or none.
#[derive(Debug, Clone)]
pub struct Placement {
    extent: Extent,
    /// Power may be lost, and an operator may then declare an owner dead.
    force: bool,
    /// A restarted syncer may see any value that the hub ever had.
    relist: bool,
    /// How many faults there may be; any number if it does not say.
    faults: Option<u8>,
    rules: Rules,
}

impl Placement {
    /// `spec/placement` in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [rest @ .., record] = size.numbers(NAME, &KEYS)?;
        let placement = Self::from_numbers(rest, None);
        if record == 0 {
            return Ok(placement);
        }
        if !placement.relist {
            let text = "with record=1 a crash is followed by a list of the past: leave relist at 1";
            return Err(SizeError::Meaningless(text.to_owned()));
        }
        Ok(Self::on_record(placement.extent, placement.force))
    }

    /// `spec/placement-live` in the size that a person asked for.
    pub fn live_from_size(size: &Size) -> Result<Self, SizeError> {
        let [clusters, epochs, writes, force, relist, faults] =
            size.numbers(LIVE_NAME, &LIVE_KEYS)?;
        Ok(Self::from_numbers([clusters, epochs, writes, force, relist], Some(faults as u8)))
    }

    fn from_numbers(
        [clusters, epochs, writes, force, relist]: [u64; 5],
        faults: Option<u8>,
    ) -> Self {
        Placement {
            extent: Extent {
                clusters: clusters as usize,
                epochs: epochs as u8,
                writes: writes as u8,
            },
            force: force == 1,
            relist: relist == 1,
            faults,
            rules: Rules::ALL,
        }
    }
}

/// The name of a cluster.
pub(crate) fn name_of(cluster: usize) -> &'static str {
    ["A", "B", "C", "D", "E", "F"][cluster]
}

impl Model for Placement {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        let Extent { clusters, epochs, writes } = self.extent;
        let (force, relist) = (u8::from(self.force), u8::from(self.relist));
        let faults = self.faults.map(|faults| format!(",faults={faults}")).unwrap_or_default();
        let extent = format!("clusters={clusters},epochs={epochs},writes={writes}");
        let record = if self.rules.permit_on_record { ",record=1" } else { "" };
        format!("{extent},force={force},relist={relist}{record}{faults}")
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        let family = name.split('(').next().unwrap_or(name);
        match family {
            "Inv_NSAtMostOneCluster" => Some(
                "the seed wrote one label per cluster; one record with one owner leaves nothing \
                 that could break it",
            ),
            "AskForce" | "Fence" | "PowerOff" | "PowerOn" if !self.force => {
                Some("this size has no power loss and no ForceRelease")
            }
            "Observe" | "Relist" if self.rules.permit_on_record => {
                Some("with the permit on record each crash may list the past or the present")
            }
            "Relist" if !self.relist => Some("in this size a syncer never lists the past"),
            _ => None,
        }
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

    fn step_rules(&self) -> Vec<StepRule<State>> {
        promises::step_rules()
    }

    fn properties(&self) -> Vec<Property<State>> {
        self.all_properties()
    }

    fn fairness(&self) -> Vec<Fairness> {
        self.all_fairness()
    }

    /// When all epochs are used up and the last one is given back.
    fn may_rest(&self, state: &State) -> bool {
        state.hub.epoch == self.extent.epochs && !state.hub.is_held()
    }

    fn symmetries(&self) -> usize {
        arrangements(self.extent.clusters) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let places: [usize; MOST_CLUSTERS] = arrangement(self.extent.clusters, permutation + 1);
        self.rename(state, &places)
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(self.any_state(rng))
    }

    fn refines(&self) -> Vec<Refinement<State>> {
        let who_runs = |state: &State| {
            let runs = state.clusters.iter().enumerate().filter(|(_, c)| c.running != 0);
            Holders(runs.fold(0, |holders, (c, _)| holders | 1 << c))
        };
        vec![Refinement::of("one-holder", OneHolder { clusters: self.extent.clusters }, who_runs)]
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        self.broken_rules()
    }
}

#[cfg(test)]
mod tests;
