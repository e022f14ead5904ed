//! The sizes of a Deployment's ReplicaSets: how many pods there may be at once, and how many stay ready.
//!
//! Two templates with a ReplicaSet each, and any number of controllers without memory: what one decides on a live read
//! may be written much later, and fails if the object that guards it has changed since. The template may change back.
//! `specs/protocol/RolloutsSurge.tla` is the text it follows.

mod state;
mod steps;
#[cfg(test)]
mod tests;

pub use state::State;

use interlock_checker::{
    Action, Coder, Entry, Invariant, Model, Mutant, Reachable, Rng, Size, SizeError, SizeKey, Steps,
};
use state::{MOST_NAMES, REPLICA_SETS};
use steps::{ALONE, OF_NAME, OF_REPLICA_SET, OF_WRITE};

const NAME: &str = "spec/workloads-surge";
const KEYS: [SizeKey; 6] = [
    SizeKey::new("desired", "pods that are wanted", 2, 1, 2),
    SizeKey::new("surge", "pods that there may be above that", 1, 0, 1),
    SizeKey::new("unavailable", "pods of these that need not be ready", 0, 0, 1),
    SizeKey::new("undos", "times that the template changes back", 1, 0, 2),
    SizeKey::new("pending", "writes that are decided and not yet sent", 3, 1, 3),
    SizeKey::new("pods", "pods that are made, the first ones included", 5, 3, 6),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a Deployment changes its pods, never too many at once and never too few ready",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(Surge::from_size(size)?)),
};

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Sizes are decided on the Deployment, one plan after the other.
    pub plan: bool,
    /// A pod that is to be deleted is named on its ReplicaSet first.
    pub naming: bool,
    /// Names of pods come from as many as there may be pods.
    pub slots: bool,
}

impl Rules {
    const ALL: Rules = Rules { plan: true, naming: true, slots: true };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct Surge {
    desired: u8,
    surge: u8,
    unavailable: u8,
    undos: u8,
    pending: usize,
    pods: u8,
    rules: Rules,
}

impl Surge {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(Surge::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([desired, surge, unavailable, undos, pending, pods]: [u8; 6], rules: Rules) -> Self {
        Surge { desired, surge, unavailable, undos, pending: pending.into(), pods, rules }
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    /// How many pods there may be at once.
    fn most(&self) -> u8 {
        self.desired + self.surge
    }

    /// How many pods stay ready.
    fn floor(&self) -> u8 {
        self.desired - self.unavailable
    }

    /// The names of pods, by place.
    fn names(&self) -> std::ops::Range<usize> {
        0..usize::from(self.most()) + usize::from(!self.rules.slots)
    }
}

impl Model for Surge {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        let Surge { desired, surge, unavailable, undos, pending, pods, .. } = self;
        format!(
            "desired={desired},surge={surge},unavailable={unavailable},undos={undos},\
             pending={pending},pods={pods}"
        )
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Undo" if self.undos == 0 => Some("the template never changes back in this size"),
            _ if self.surge == 0 && self.unavailable == 0 => {
                Some("with no surge and none unavailable nothing may change")
            }
            _ if !self.rules.naming => Some("nothing is named without that rule"),
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        state.code(self, coder);
    }

    fn initial(&self) -> Vec<State> {
        vec![State::first(self)]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![
            Action::new(ALONE[0], "deployment controller"),
            Action::new(ALONE[1], "people").to("API server"),
        ];
        for name in OF_REPLICA_SET {
            let actor = match name {
                "DecideSpec" => "deployment controller",
                _ => "replicaset controller",
            };
            actions.extend((1..=REPLICA_SETS).map(|i| Action::new(format!("{name}({i})"), actor)));
        }
        for name in OF_WRITE {
            let actor = match name {
                "plan" | "spec" => "deployment controller",
                _ => "replicaset controller",
            };
            actions.push(Action::new(format!("Write({name})"), actor).to("API server"));
        }
        for name in OF_NAME {
            let each = self.names().map(|s| format!("{name}({})", s + 1));
            actions.extend(each.map(|name| Action::new(name, "runtime").to("API server")));
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.deployment_steps(state, steps);
        for i in 0..REPLICA_SETS {
            self.spec_steps(state, i, steps);
            self.replica_set_steps(state, i, steps);
            self.leaving_steps(state, i, steps);
        }
        self.write_steps(state, steps);
        self.pod_steps(state, steps);
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        state.describe(self)
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        let (most, floor) = (usize::from(self.most()), usize::from(self.floor()));
        vec![
            Invariant::new(
                "PodsBounded",
                "there are never more pods than desired and surge together, terminating ones too",
                move |s: &State| s.pods.iter().filter(|pod| pod.exists()).count() <= most,
            )
            .unbreakable_if(self.rules.slots, "there are as many names"),
            Invariant::new(
                "ReadyFloor",
                "the pods that are ready are never fewer than the floor",
                move |s: &State| {
                    s.pods.iter().filter(|pod| pod.is_ready_to_stay()).count() >= floor
                },
            )
            .unbreakable_if(self.floor() == 0, "the floor is 0"),
        ]
    }

    fn reachable(&self) -> Vec<Reachable<State>> {
        if self.surge == 0 && self.unavailable == 0 || self.pods < 2 * self.desired {
            return Vec::new();
        }
        let desired = self.desired;
        let is_over = move |s: &State, new: u8| {
            s.replaced_by(new)
                && s.pods.iter().filter(|pod| pod.is_ready_of(new)).count() == usize::from(desired)
        };
        let mut reachable = vec![Reachable::new(
            "Done",
            "all pods are of the new template, and ready",
            move |s: &State| s.template == 2 && is_over(s, 2),
        )];
        if self.undos > 0 {
            reachable.push(Reachable::new(
                "Undone",
                "the template changed back, and all pods are of the old one again",
                move |s: &State| {
                    s.undos == 1 && s.template == 1 && is_over(s, 1) && s.next_id > desired + 1
                },
            ));
        }
        reachable
    }

    /// What is left to do there needs more pods than the size has.
    fn may_rest(&self, state: &State) -> bool {
        state.pending.is_empty()
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(State::arbitrary(self, rng))
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let mutant = |name, sentence, broken, change: fn(&mut Rules)| {
            // Two pending writes are enough, and three are many states.
            let least = Surge {
                desired: 2,
                surge: 1,
                unavailable: 0,
                undos: self.undos.max(1),
                pending: 2,
                pods: self.pods.max(5),
                rules: self.rules,
            };
            Mutant::new(name, sentence, &[broken], least.without(change))
        };
        vec![
            mutant(
                "any-name",
                "the name of a pod is one of more than there may be pods",
                "PodsBounded",
                |rules| rules.slots = false,
            ),
            mutant(
                "each-replicaset-for-itself",
                "the size of a ReplicaSet is decided without a plan for both",
                "ReadyFloor",
                |rules| rules.plan = false,
            ),
            mutant(
                "deleted-unnamed",
                "a pod is deleted without being named on its ReplicaSet first",
                "ReadyFloor",
                |rules| rules.naming = false,
            ),
        ]
    }
}

const _: () = assert!(MOST_NAMES == 4);
