//! An update that drains its cluster first, and placement, which grants nothing there meanwhile.
//!
//! Scheduler, clusters controller and conductors act on caches; each write is guarded by the version that was seen.
//! `specs/protocol/RolloutsDrain.tla` is the text it follows.

mod promises;
mod state;
mod steps;
#[cfg(test)]
mod tests;

pub use state::State;

use interlock_checker::symmetry::arrangements;
use interlock_checker::{
    Action, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Reachable, Rng, Size,
    SizeError, SizeKey, Steps,
};
use state::{MOST_CLUSTERS, MOST_SPACES};
use steps::{OF_CLUSTER, OF_SPACE, OfCluster, OfSpace};

const NAME: &str = "spec/rollouts-drain";
const KEYS: [SizeKey; 5] = [
    SizeKey::new("clusters", "workload clusters", 2, 2, MOST_CLUSTERS as u64),
    SizeKey::new("spaces", "placed namespaces", 1, 1, MOST_SPACES as u64),
    SizeKey::new("requests", "requests for each cluster, one after the other", 2, 1, 2),
    SizeKey::new("unavailable", "clusters that may be out of service at once", 1, 1, 3),
    SizeKey::new("flaps", "volumes left in place, and targets noted from an old cache", 1, 0, 3),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "an update starts on a drained cluster, and nothing is granted there until it ends",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(RolloutsDrain::from_size(size)?)),
};

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The scheduler's live read asks whether the cluster drains.
    pub sees_drains: bool,
    /// The target is noted before that live read.
    pub target_first: bool,
    /// A cluster is drained by a live list of Grants.
    pub live_list: bool,
    /// Volumes that were left in place count.
    pub counts_in_place: bool,
    /// Drained names the drain that it is about.
    pub names_drain: bool,
    /// A drain is taken off when its request has ended.
    pub ends_drain: bool,
    /// A request that does not start in time ends.
    pub deadline: bool,
    /// A cluster that still drains counts against what may be out of service.
    pub counts_drained: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        sees_drains: true,
        target_first: true,
        live_list: true,
        counts_in_place: true,
        names_drain: true,
        ends_drain: true,
        deadline: true,
        counts_drained: true,
    };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct RolloutsDrain {
    clusters: usize,
    spaces: usize,
    requests: u8,
    unavailable: usize,
    flaps: u8,
    rules: Rules,
}

impl RolloutsDrain {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(RolloutsDrain::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([clusters, spaces, requests, unavailable, flaps]: [u8; 5], rules: Rules) -> Self {
        let (clusters, spaces) = (usize::from(clusters), usize::from(spaces));
        RolloutsDrain { clusters, spaces, requests, unavailable: unavailable.into(), flaps, rules }
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }
}

impl Model for RolloutsDrain {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        let RolloutsDrain { clusters, spaces, requests, unavailable, flaps, .. } = self;
        format!(
            "clusters={clusters},spaces={spaces},requests={requests},unavailable={unavailable},\
             flaps={flaps}"
        )
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name.split('(').next()? {
            "LookAny" | "Untarget" => Some("only with a rule taken away"),
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        state.code(self, coder);
    }

    /// Each namespace is granted to some cluster.
    fn initial(&self) -> Vec<State> {
        let mut all = vec![State::default()];
        for n in 0..self.spaces {
            let begin = |state: &State, c: usize| {
                let mut state = state.clone();
                state.spaces[n].owner = c as u8;
                state.spaces[n].target = Some(c as u8);
                state
            };
            all = all
                .iter()
                .flat_map(|state| (0..self.clusters).map(move |c| begin(state, c)))
                .collect();
        }
        all
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (kind, name) in OF_SPACE {
            actions.extend(state::SPACES[..self.spaces].iter().map(|n| {
                let name = format!("{name}({n})");
                match kind {
                    OfSpace::Release => Action::new(name, "syncer").to("hub"),
                    OfSpace::Revoke
                    | OfSpace::Look
                    | OfSpace::Grant
                    | OfSpace::Target
                    | OfSpace::LookAny
                    | OfSpace::Untarget => Action::new(name, "scheduler").to("hub"),
                }
            }));
        }
        for (kind, name) in OF_CLUSTER {
            actions.extend(state::CLUSTERS[..self.clusters].iter().map(|c| {
                let name = format!("{name}({c})");
                let actor = match kind {
                    OfCluster::LookEmpty | OfCluster::SayDrained | OfCluster::Unsay => {
                        "clusters controller"
                    }
                    OfCluster::Submit => "fleet controller",
                    OfCluster::AddDrain
                    | OfCluster::Start
                    | OfCluster::End
                    | OfCluster::StartDeadline
                    | OfCluster::RemoveDrain => "conductor",
                };
                Action::new(name, actor).to("hub")
            }));
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        for n in 0..self.spaces {
            self.grant_steps(state, n, steps);
            self.target_steps(state, n, steps);
            self.look_steps(state, n, steps);
        }
        for c in 0..self.clusters {
            self.drained_steps(state, c, steps);
            self.conductor_steps(state, c, steps);
        }
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

    fn fairness(&self) -> Vec<Fairness> {
        let actions = self.actions();
        let one = |id: u16| Fairness::weak(&*actions[usize::from(id)].name, [id]);
        let mut fairness = Vec::new();
        for n in 0..self.spaces {
            let fair =
                [OfSpace::Revoke, OfSpace::Release, OfSpace::Look, OfSpace::Grant, OfSpace::Target];
            fairness.extend(fair.map(|kind| one(self.of_space(kind, n))));
        }
        for c in 0..self.clusters {
            let fair = [
                OfCluster::LookEmpty,
                OfCluster::SayDrained,
                OfCluster::Unsay,
                OfCluster::AddDrain,
                OfCluster::End,
                OfCluster::RemoveDrain,
            ];
            fairness.extend(fair.map(|kind| one(self.of_cluster(kind, c))));
            let ends = [OfCluster::Start, OfCluster::StartDeadline];
            let ends = ends.map(|kind| self.of_cluster(kind, c));
            let name = format!("Start \\/ StartDeadline({})", state::CLUSTERS[c]);
            fairness.push(Fairness::weak(name, ends));
        }
        fairness
    }

    fn may_rest(&self, state: &State) -> bool {
        let clusters = &state.clusters[..self.clusters];
        state.spaces[..self.spaces].iter().all(state::Space::runs)
            && clusters.iter().all(|cluster| !cluster.is_at_work() && cluster.drains == 0)
    }

    fn symmetries(&self) -> usize {
        arrangements(self.clusters) * arrangements(self.spaces) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        state.permuted(self, permutation + 1)
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(State::arbitrary(self, rng))
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        self.all_mutants()
    }
}
