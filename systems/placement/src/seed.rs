//! kcpStorage as written: one namespace, its volume, and a syncer in each cluster.
//!
//! Kept with its defects; `specs/seed/kcpStorage.tla` is the text it follows.

use interlock_checker::{
    Action, Coder, Entry, Fairness, Invariant, Model, Rng, Size, SizeError, SizeKey, Steps,
};

const NAME: &str = "seed/kcp-storage";
const KEYS: [SizeKey; 1] =
    [SizeKey::new("clusters", "clusters that a namespace can be assigned to", 3, 1, MOST as u64)];
const MOST: usize = 8;

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a namespace is assigned to clusters and taken away again; each syncer follows",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(KcpStorage::from_size(size)?)),
};

/// What a label says of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// Not assigned.
    #[default]
    Nil,
    /// Declared by the seed, never used.
    Empty,
    /// May be used.
    Sync,
}

const SYNC_STATES: [Sync; 3] = [Sync::Nil, Sync::Empty, Sync::Sync];

/// The three variables that change; `pc` never does, since every process loops on one label.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    ns: [Sync; MOST],
    pvc: [Sync; MOST],
    pvc_state: [Sync; MOST],
}

/// The model, for some number of clusters.
#[derive(Debug, Clone)]
pub struct KcpStorage {
    clusters: usize,
}

impl KcpStorage {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [clusters] = size.numbers(NAME, &KEYS)?;
        Ok(KcpStorage { clusters: clusters as usize })
    }

    fn in_sync(&self, labels: &[Sync; MOST]) -> usize {
        labels.iter().filter(|label| **label == Sync::Sync).count()
    }

    fn show(&self, labels: &[Sync; MOST]) -> String {
        let one = |c: usize| match labels[c] {
            Sync::Nil => format!("c{} :> \"nil\"", c + 1),
            Sync::Empty => format!("c{} :> \"Empty\"", c + 1),
            Sync::Sync => format!("c{} :> \"Sync\"", c + 1),
        };
        format!("({})", (0..self.clusters).map(one).collect::<Vec<_>>().join(" @@ "))
    }
}

// Action ids: the namespace controller, the PVC controller, then one syncer per cluster.
const NAMESPACE_CONTROLLER: u16 = 0;
const PVC_CONTROLLER: u16 = 1;
const SYNCER: u16 = 2;

impl Model for KcpStorage {
    type State = State;
    type Packed = u64;

    fn covers(&self) -> interlock_checker::Covers {
        interlock_checker::Covers::Seed
    }

    fn size(&self) -> String {
        format!("clusters={}", self.clusters)
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Inv_UsableByAtMostOne" => Some(
                "nothing waits for the old cluster's syncer: the namespace is taken away and assigned \
                 anew while the old syncer still acts on what it read before",
            ),
            "Inv_NSAtMostOneCluster" | "Inv_PVCAtMostOneCluster" => Some(
                "it counts a set with one boolean in it, so the count is 1 in every state there is",
            ),
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        for c in 0..self.clusters {
            coder.of(&mut state.ns[c], &SYNC_STATES);
            coder.of(&mut state.pvc[c], &SYNC_STATES);
            coder.of(&mut state.pvc_state[c], &SYNC_STATES);
        }
    }

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![
            Action::new("Start_", "namespace controller").to("namespace"),
            Action::new("Start_P", "PVC controller").to("claim"),
        ];
        actions.extend(
            (1..=self.clusters).map(|c| {
                Action::new(format!("Start(c{c})"), format!("syncer c{c}")).to("namespace")
            }),
        );
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        let clusters = 0..self.clusters;
        if clusters.clone().all(|c| state.ns[c] == Sync::Nil) {
            for c in clusters.clone() {
                let mut next = state.clone();
                next.ns[c] = Sync::Sync;
                steps.step(NAMESPACE_CONTROLLER, next);
            }
        }
        for c in clusters.clone().filter(|c| state.ns[*c] == Sync::Sync) {
            let mut next = state.clone();
            next.ns[c] = Sync::Nil;
            steps.step(NAMESPACE_CONTROLLER, next);
        }
        steps.step(PVC_CONTROLLER, State { pvc: state.ns, ..state.clone() });
        for c in clusters {
            let mut next = state.clone();
            next.pvc_state[c] = state.ns[c];
            steps.step(SYNCER + c as u16, next);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        vec![
            ("ns", self.show(&state.ns)),
            ("pvc", self.show(&state.pvc)),
            ("pvc_state", self.show(&state.pvc_state)),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        let this = self.clone();
        let clusters = self.clusters;
        // As written: the cardinality of a set that holds one boolean.
        let one_boolean = |_: bool| 1_usize;
        vec![
            Invariant::new("TypeOK", "ns maps every cluster to a sync state", |_| true)
                .unbreakable("the types of the model say it"),
            Invariant::new(
                "Inv_NSAtMostOneCluster",
                "a namespace is assigned to at most one cluster",
                move |s: &State| {
                    one_boolean(s.ns[..clusters].iter().all(|l| *l == Sync::Sync)) <= 1
                },
            ),
            Invariant::new(
                "Inv_PVCAtMostOneCluster",
                "a claim is assigned to at most one cluster",
                move |s: &State| {
                    one_boolean(s.pvc[..clusters].iter().all(|l| *l == Sync::Sync)) <= 1
                },
            ),
            Invariant::new(
                "Inv_UsableByAtMostOne",
                "at most one cluster believes that it may use the volume",
                move |s: &State| this.in_sync(&s.pvc_state) <= 1,
            )
            .unbreakable_if(clusters == 1, "with one cluster there is no second to use it"),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        vec![Fairness::weak("Next", 0..SYNCER + self.clusters as u16)]
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let mut state = State::default();
        for c in 0..self.clusters {
            state.ns[c] = SYNC_STATES[rng.below(3)];
            state.pvc[c] = SYNC_STATES[rng.below(3)];
            state.pvc_state[c] = SYNC_STATES[rng.below(3)];
        }
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_checker::reference;

    #[test]
    fn the_counts_are_those_of_tlc() {
        for (clusters, generated, distinct, depth) in
            [(1, 25, 8, 5), (2, 157, 36, 8), (3, 705, 128, 11), (4, 2_641, 400, 14)]
        {
            let counts = reference::explore(&KcpStorage { clusters });
            assert_eq!(
                (counts.generated, counts.distinct, counts.depth),
                (generated, distinct, depth),
                "clusters={clusters}"
            );
        }
    }

    #[test]
    fn two_clusters_may_use_the_volume_after_five_steps() {
        let counts = reference::explore(&KcpStorage { clusters: 2 });
        assert_eq!(counts.violated, [("Inv_UsableByAtMostOne", 6)]);
    }
}
