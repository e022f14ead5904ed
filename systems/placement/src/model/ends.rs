//! What goes: namespaces that are deleted, clusters that are retired, volumes that nobody needs.
//!
//! The same shipped `decide` functions as in the world beside this one, which has every race of a
//! move. Here a move is coarse (what is permitted runs, what is closed has its images) and its ends
//! are fine: finalizers, copies, what a person strips or forgets, and what is made again under a
//! name that was there before.

mod actions;
mod flaws;
mod hub;
mod promises;
mod show;
mod state;
mod steps;
mod syncer;

pub use state::State;

use actions::Offsets;
use flaws::Flaw;
use interlock_checker::{
    Action, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Reachable, Rng, Size,
    SizeError, SizeKey, StepRule, Steps,
};
use state::MOST_EPOCHS;

const DELETION: &str = "design/placement-deletion";
const VOLUMES: &str = "design/placement-volumes";

const fn clusters(default: u64) -> SizeKey {
    SizeKey::new("clusters", "clusters that can own the namespace", default, 1, 2)
}

const fn epochs(default: u64) -> SizeKey {
    SizeKey::new("epochs", "how often it is granted", default, 1, MOST_EPOCHS as u64)
}

const fn faults(default: u64) -> SizeKey {
    SizeKey::new("faults", "faults that happen before all is calm", default, 0, 3)
}

const CRASH: SizeKey = SizeKey::new("crash", "1: a syncer crashes and loses its cache", 1, 0, 1);
const NAMESPACES: SizeKey =
    SizeKey::new("namespaces", "1: it is deleted; 2: and made again under its name", 1, 1, 2);
const RETIRE: SizeKey = SizeKey::new("retire", "1: clusters are deleted", 1, 0, 1);
const REPLACE: SizeKey =
    SizeKey::new("replace", "1: the second cluster comes later, by the name of the first", 0, 0, 1);
const STRIP: SizeKey = SizeKey::new("strip", "1: a person strips finalizers", 1, 0, 1);
const LAG: SizeKey =
    SizeKey::new("lag", "1: the scheduler hears late that a cluster is deleted", 0, 0, 1);
const FORCE: SizeKey = SizeKey::new("force", "1: power loss and ForceRelease happen", 1, 0, 1);
const LABELS: SizeKey = SizeKey::new("labels", "1: labels mirror the grant", 0, 0, 1);

const DELETION_KEYS: [SizeKey; 9] =
    [clusters(2), epochs(2), faults(1), CRASH, NAMESPACES, RETIRE, REPLACE, STRIP, LAG];
const VOLUMES_KEYS: [SizeKey; 6] = [clusters(2), epochs(2), faults(2), CRASH, FORCE, LABELS];

/// For the catalog: namespaces and clusters that are deleted, and come again by their names.
pub const DELETION_ENTRY: Entry = Entry {
    name: DELETION,
    summary: "namespaces and clusters that go, and come again by their names; nothing is inherited",
    keys: &DELETION_KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::deletion(size)?)),
};

/// For the catalog: what is left behind by moves.
pub const VOLUMES_ENTRY: Entry = Entry {
    name: VOLUMES,
    summary: "volumes that moves leave behind: kept until their successors settled, or for ever",
    keys: &VOLUMES_KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::volumes(size)?)),
};

/// The world in some size, with flaws in its controllers or none.
#[derive(Debug, Clone)]
pub struct World {
    clusters: usize,
    epochs: u8,
    /// How many faults there may be.
    faults: u8,
    /// Syncers may crash.
    crash: bool,
    /// How many namespaces there are, one after the other, under one name; all but the last are
    /// deleted, and so is the last where `is_deleted` says so.
    namespaces: usize,
    is_deleted: bool,
    /// Clusters may be deleted.
    retire: bool,
    /// The second cluster has the name of the first, and comes when that is gone.
    replace: bool,
    /// A person may strip finalizers off what is being deleted.
    strip: bool,
    /// The scheduler hears late that a cluster is deleted; what it notes and looks at before it
    /// grants are steps of their own.
    lag: bool,
    /// Power may be lost, and an operator may then declare an owner gone.
    force: bool,
    /// Owners may run for as long as old copies are kept.
    settle: bool,
    /// The labels of the namespace and of its claim are kept.
    labels: bool,
    flaws: &'static [Flaw],
    offsets: Offsets,
}

impl World {
    /// `placement-deletion` in the size that a person asked for.
    pub fn deletion(size: &Size) -> Result<Self, SizeError> {
        let [clusters, epochs, faults, crash, namespaces, retire, replace, strip, lag] =
            size.numbers(DELETION, &DELETION_KEYS)?;
        let world = World {
            crash: crash == 1,
            namespaces: namespaces as usize,
            is_deleted: namespaces == 1,
            retire: retire == 1,
            replace: replace == 1,
            strip: strip == 1,
            lag: lag == 1,
            ..World::bare(clusters as usize, epochs as u8, faults as u8)
        };
        Ok(world.numbered())
    }

    /// `placement-volumes` in the size that a person asked for.
    pub fn volumes(size: &Size) -> Result<Self, SizeError> {
        let [clusters, epochs, faults, crash, force, labels] =
            size.numbers(VOLUMES, &VOLUMES_KEYS)?;
        let world = World {
            crash: crash == 1,
            force: force == 1,
            labels: labels == 1,
            settle: true,
            ..World::bare(clusters as usize, epochs as u8, faults as u8)
        };
        Ok(world.numbered())
    }

    /// Planned moves and nothing else.
    fn bare(clusters: usize, epochs: u8, faults: u8) -> World {
        World {
            clusters,
            epochs,
            faults,
            crash: false,
            namespaces: 1,
            is_deleted: false,
            retire: false,
            replace: false,
            strip: false,
            lag: false,
            force: false,
            settle: false,
            labels: false,
            flaws: &[],
            offsets: Offsets::default(),
        }
    }

    fn numbered(mut self) -> World {
        self.offsets = Offsets::of(self.clusters, self.namespaces);
        self
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaws.contains(&flaw)
    }

    /// How often the namespace of that place may be granted. One that is made again need not move
    /// to show whether it inherits anything.
    fn epochs_of(&self, place: usize) -> u8 {
        if place == 0 { self.epochs } else { 1 }
    }
}

impl Model for World {
    type State = State;
    type Packed = [u64; 4];

    fn size(&self) -> String {
        let World { clusters, epochs, faults, namespaces, .. } = self;
        let crash = u8::from(self.crash);
        let extent = format!("clusters={clusters},epochs={epochs},faults={faults},crash={crash}");
        if self.settle {
            let [force, labels] = [self.force, self.labels].map(u8::from);
            return format!("{extent},force={force},labels={labels}");
        }
        let flags = [self.retire, self.replace, self.strip, self.lag];
        let [retire, replace, strip, lag] = flags.map(u8::from);
        format!(
            "{extent},namespaces={namespaces},retire={retire},replace={replace},strip={strip},lag={lag}"
        )
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        self.why(name)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        self.code_state(state, coder);
    }

    fn initial(&self) -> Vec<State> {
        vec![self.beginning()]
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

    /// Faults run out, and so does everything that follows from them.
    fn may_rest(&self, _state: &State) -> bool {
        true
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(self.any_state(rng))
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        self.flawed()
    }
}

#[cfg(test)]
mod tests;
