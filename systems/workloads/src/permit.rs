//! Pods that controllers make in a placed namespace: names are the lock, and the permit decides what starts.
//!
//! A maker (a ReplicaSet, a StatefulSet) takes the names of its pods from a bounded set, so an old cache can only fail
//! to create. A pod that is made after the close never becomes a process, in this epoch or in a later one.
//! `specs/protocol/RolloutsWorkloads.tla` is the text it follows.

mod promises;
mod state;
mod steps;
#[cfg(test)]
mod tests;

pub use state::State;

use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Reachable, Rng,
    Size, SizeError, SizeKey, Steps,
};
use state::MOST_MAKERS;
use steps::{ALONE, OF_MAKER, OF_NAME};

const NAME: &str = "spec/workloads";
const KEYS: [SizeKey; 5] = [
    SizeKey::new("wanted", "pods that are wanted; there is one name more", 1, 1, 2),
    SizeKey::new("epochs", "times that the namespace is granted to this cluster", 2, 1, 3),
    SizeKey::new("pods", "pods that are made, together", 3, 1, 4),
    SizeKey::new("faults", "what goes wrong, all together", 1, 0, 3),
    SizeKey::new("makers", "controllers that make pods, each with its cache", 1, 1, 2),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "pods of controllers start under the permit of their epoch, and stop before a release",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(Workloads::from_size(size)?)),
};

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Names come from as many as there are wanted pods.
    pub slots: bool,
    /// The runtime reads the permit live after it has the lock.
    pub permit_read: bool,
    /// A pod starts under the permit of its own epoch.
    pub epoch_stamp: bool,
    /// The lock of a pod is by its name.
    pub lock_by_name: bool,
    /// The syncer withdraws the permit before it looks what is left.
    pub withdraw_first: bool,
    /// It asks for the locks, too.
    pub locks_seen: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        slots: true,
        permit_read: true,
        epoch_stamp: true,
        lock_by_name: true,
        withdraw_first: true,
        locks_seen: true,
    };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct Workloads {
    wanted: usize,
    epochs: u8,
    pods: u8,
    faults: u8,
    makers: usize,
    rules: Rules,
}

impl Workloads {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(Workloads::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([wanted, epochs, pods, faults, makers]: [u8; 5], rules: Rules) -> Self {
        let (wanted, makers) = (usize::from(wanted), usize::from(makers));
        Workloads { wanted, epochs, pods, faults, makers, rules }
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    /// The names that pods can have, by place: one more than is wanted.
    fn names(&self) -> std::ops::Range<usize> {
        0..self.wanted + 1
    }
}

impl Model for Workloads {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        let Workloads { wanted, epochs, pods, faults, makers, .. } = self;
        format!("wanted={wanted},epochs={epochs},pods={pods},faults={faults},makers={makers}")
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name.split('(').next()? {
            "Die" | "Exit" | "Delete" | "Strip" if self.faults == 0 => {
                Some("this size has no faults")
            }
            "Arrive" if self.epochs == 1 => Some("this size has one epoch"),
            family if OF_NAME.contains(&family) && self.rules.slots => {
                Some("no maker takes the last name, which is there for a rule taken away")
            }
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        state.code(self, coder);
    }

    fn initial(&self) -> Vec<State> {
        vec![State { epoch: 1, next_uid: 1, ..State::default() }]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions: Vec<Action> = ALONE
            .into_iter()
            .map(|name| match name {
                "Arrive" => Action::new(name, "hub").to("syncer"),
                "Permit" | "Bring" | "Revoke" | "Withdraw" | "DeleteMaker" | "LookLists"
                | "LookLocks" | "Close" => Action::new(name, "syncer"),
                "Cache" | "LetGo" | "LookPermit" | "Start" | "Stop" => Action::new(name, "runtime"),
                _ => Action::new(name, "world").to("runtime"),
            })
            .collect();
        for name in OF_NAME {
            let actor = match name {
                "DeletePod" => "syncer",
                "TakeLock" | "Confirm" => "runtime",
                "Collect" => "collector",
                _ => "people",
            };
            let each = self.names().map(|s| format!("{name}({})", s + 1));
            actions.extend(each.map(|name| Action::new(name, actor)));
        }
        for name in OF_MAKER {
            let each = (1..=self.makers).map(|m| (format!("{name}(m{m})"), format!("maker m{m}")));
            actions.extend(each.map(|(name, maker)| Action::new(name, maker)));
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.syncer_steps(state, steps);
        self.look_steps(state, steps);
        for s in self.names() {
            self.pod_steps(state, s, steps);
        }
        for m in 0..self.makers {
            self.maker_steps(state, m, steps);
        }
        self.runtime_steps(state, steps);
        self.process_steps(state, steps);
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        state.describe(self)
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

    /// Arrivals, pods and starts are not owed to anybody.
    fn fairness(&self) -> Vec<Fairness> {
        const FAIR: [&str; 11] = [
            "Permit",
            "Withdraw",
            "DeleteMaker",
            "LookLists",
            "LookLocks",
            "Close",
            "LetGo",
            "Stop",
            "DeletePod",
            "Confirm",
            "Collect",
        ];
        let actions = self.actions();
        let is_fair =
            |action: &Action| FAIR.contains(&action.family()) || action.family() == OF_MAKER[0];
        let all = (0..).zip(&actions).filter(|(_, action)| is_fair(action));
        all.map(|(id, action): (ActionId, _)| Fairness::weak(&*action.name, [id])).collect()
    }

    /// The last epoch is over, here; or a process runs whose pod a person stripped of its finalizer, until a person
    /// ends it.
    fn may_rest(&self, state: &State) -> bool {
        let is_over = state.epoch == self.epochs && state.released == state.epoch;
        is_over || self.faults > 0 && state.held.iter().any(|held| held.runs != 0)
    }

    fn symmetries(&self) -> usize {
        arrangements(self.makers) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let places: [_; MOST_MAKERS] = arrangement(self.makers, permutation + 1);
        let mut image = state.clone();
        for (view, place) in state.views.iter().zip(&places[..self.makers]) {
            image.views[*place] = *view;
        }
        image
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(State::arbitrary(self, rng))
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        self.all_mutants()
    }
}
