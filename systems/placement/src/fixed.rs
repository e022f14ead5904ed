//! kcpStorage corrected: a cluster is released only after its own syncer has said so.
//!
//! "Empty", declared and never used in the seed, here means: no longer to be used. Syncers act on
//! a cached copy and may be cut off for any time. `specs/fixed/kcpStorageFixed.tla` is its text.

use crate::seed::Sync;
use crate::spec::hub::{show_bool, show_set};
use crate::spec::name_of;
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Flag, Formula, Invariant, Model, Mutant, Property,
    Rng, Size, SizeError, SizeKey, Steps,
};

const NAME: &str = "fixed/kcp-storage";
const KEYS: [SizeKey; 1] =
    [SizeKey::new("clusters", "clusters that a namespace can be assigned to", 2, 1, MOST as u64)];
const MOST: usize = 6;

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the seed with an acknowledged hand-over: drain, report, release, assign",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(KcpStorageFixed::from_size(size)?)),
};

const LABELS: [Sync; 3] = [Sync::Nil, Sync::Empty, Sync::Sync];

/// The labels of one cluster, from the desired state to the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cluster {
    /// What the namespace controller wants (`ns`).
    wanted: Sync,
    /// The label on the claim, which follows (`pvc`).
    label: Sync,
    /// What the syncer last saw of that label (`cache`).
    cached: Sync,
    /// What the syncer acts on (`pvc_state`).
    acted_on: Sync,
    /// What it last reported (`ack`).
    reported: Sync,
    /// Every value that the label has had, a bit each; kept only where a syncer may list them.
    past: u8,
}

/// The labels of all clusters, and who can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    clusters: [Cluster; MOST],
    /// A bit for each cluster that is connected (`link`).
    links: u8,
}

impl State {
    fn with(&self, c: usize, change: impl FnOnce(&mut Cluster)) -> State {
        let mut next = self.clone();
        change(&mut next.clusters[c]);
        next
    }
}

/// The model, for some number of clusters.
#[derive(Debug, Clone)]
pub struct KcpStorageFixed {
    clusters: usize,
    /// `WaitRelease`: a cluster is released after it has reported "Empty".
    wait_release: bool,
    /// The namespace is assigned while no cluster has it.
    wait_free: bool,
    /// `WaitIdle`: a cluster is assigned after it has reported "nil".
    wait_idle: bool,
    /// Off here: a restarted syncer may see a label of the past.
    relist: bool,
}

// Action ids: the PVC controller, then rows with one action for each cluster.
const PVC_CONTROLLER: ActionId = 0;

#[derive(Debug, Clone, Copy)]
enum At {
    Assign,
    Drain,
    Release,
    Watch,
    Apply,
    Report,
    Cut,
    Heal,
    Relist,
}

// Relist is last, since only a mutant has it.
const ALL: [At; 9] = [
    At::Assign,
    At::Drain,
    At::Release,
    At::Watch,
    At::Apply,
    At::Report,
    At::Cut,
    At::Heal,
    At::Relist,
];

fn show_label(label: Sync) -> &'static str {
    match label {
        Sync::Nil => "\"nil\"",
        Sync::Empty => "\"Empty\"",
        Sync::Sync => "\"Sync\"",
    }
}

fn past_bit(label: Sync) -> u8 {
    1 << label as u8
}

impl KcpStorageFixed {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [clusters] = size.numbers(NAME, &KEYS)?;
        Ok(KcpStorageFixed {
            clusters: clusters as usize,
            wait_release: true,
            wait_free: true,
            wait_idle: true,
            relist: false,
        })
    }

    fn id(&self, at: At, c: usize) -> ActionId {
        1 + (at as usize * self.clusters + c) as ActionId
    }

    fn step(&self, at: At, c: usize, next: State, steps: &mut Steps<State>) {
        let needs = match at {
            At::Watch | At::Report => 1 << c,
            At::Assign | At::Drain | At::Release | At::Apply | At::Cut | At::Heal | At::Relist => 0,
        };
        steps.step_while(needs, self.id(at, c), next);
    }

    fn controller_steps(&self, state: &State, steps: &mut Steps<State>) {
        let clusters = &state.clusters[..self.clusters];
        if clusters.iter().any(|cluster| cluster.label != cluster.wanted) {
            let mut next = state.clone();
            for cluster in &mut next.clusters[..self.clusters] {
                cluster.label = cluster.wanted;
                if self.relist {
                    cluster.past |= past_bit(cluster.wanted);
                }
            }
            steps.step(PVC_CONTROLLER, next);
        }
        let is_free = !self.wait_free || clusters.iter().all(|cluster| cluster.wanted == Sync::Nil);
        for (c, cluster) in clusters.iter().enumerate() {
            if is_free
                && cluster.wanted == Sync::Nil
                && (!self.wait_idle || cluster.reported == Sync::Nil)
            {
                self.step(At::Assign, c, state.with(c, |next| next.wanted = Sync::Sync), steps);
            }
            if cluster.wanted == Sync::Sync {
                self.step(At::Drain, c, state.with(c, |next| next.wanted = Sync::Empty), steps);
            }
            let is_drained = !self.wait_release || cluster.reported == Sync::Empty;
            if cluster.wanted == Sync::Empty && is_drained {
                self.step(At::Release, c, state.with(c, |next| next.wanted = Sync::Nil), steps);
            }
        }
    }

    fn syncer_steps(&self, state: &State, c: usize, steps: &mut Steps<State>) {
        let cluster = state.clusters[c];
        if cluster.cached != cluster.label {
            self.step(At::Watch, c, state.with(c, |next| next.cached = next.label), steps);
        }
        if cluster.acted_on != cluster.cached {
            self.step(At::Apply, c, state.with(c, |next| next.acted_on = next.cached), steps);
        }
        if cluster.reported != cluster.acted_on {
            self.step(At::Report, c, state.with(c, |next| next.reported = next.acted_on), steps);
        }
        for label in LABELS {
            if self.relist && cluster.past & past_bit(label) != 0 {
                self.step(At::Relist, c, state.with(c, |next| next.cached = label), steps);
            }
        }
    }

    fn each_leads_to(
        &self,
        name: &'static str,
        sentence: &'static str,
        from: fn(&Cluster) -> bool,
        to: fn(&Cluster) -> bool,
    ) -> Property<State> {
        let formula = |c: usize| {
            Formula::leads_to(
                move |s: &State| from(&s.clusters[c]),
                move |s: &State| to(&s.clusters[c]),
            )
        };
        Property::for_all(name, sentence, (0..self.clusters).map(formula))
    }
}

fn at_most_one(
    name: &'static str,
    sentence: &'static str,
    counts: fn(&Cluster) -> bool,
) -> Invariant<State> {
    Invariant::new(name, sentence, move |s: &State| {
        s.clusters.iter().filter(|cluster| counts(cluster)).count() <= 1
    })
}

impl Model for KcpStorageFixed {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        format!("clusters={}", self.clusters)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        for cluster in &mut state.clusters[..self.clusters] {
            coder.of(&mut cluster.wanted, &LABELS);
            coder.of(&mut cluster.label, &LABELS);
            coder.of(&mut cluster.cached, &LABELS);
            coder.of(&mut cluster.acted_on, &LABELS);
            coder.of(&mut cluster.reported, &LABELS);
            coder.u8(&mut cluster.past, if self.relist { LABELS.len() as u32 } else { 0 });
        }
        coder.u8(&mut state.links, self.clusters as u32);
    }

    fn initial(&self) -> Vec<State> {
        let mut state = State { links: (1 << self.clusters) - 1, ..State::default() };
        if self.relist {
            state.clusters[..self.clusters].iter_mut().for_each(|c| c.past = past_bit(Sync::Nil));
        }
        vec![state]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![Action::new("PVCController", "PVC controller").to("claim")];
        let rows = if self.relist { &ALL[..] } else { &ALL[..ALL.len() - 1] };
        for at in rows {
            for c in (0..self.clusters).map(name_of) {
                let (name, syncer) = (format!("{at:?}({c})"), format!("syncer {c}"));
                actions.push(match at {
                    At::Assign | At::Drain | At::Release => {
                        Action::new(name, "namespace controller").to("namespace")
                    }
                    At::Watch | At::Relist => Action::new(name, syncer).to("claim"),
                    At::Report => Action::new(name, syncer).to("namespace"),
                    At::Apply => Action::new(name, syncer).to(format!("cluster {c}")),
                    At::Cut | At::Heal => Action::new(name, "network").to(syncer),
                });
            }
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.controller_steps(state, steps);
        for c in 0..self.clusters {
            self.syncer_steps(state, c, steps);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let show = |value: &dyn Fn(usize) -> String| {
            let one = |c: usize| format!("{} :> {}", name_of(c), value(c));
            format!("({})", (0..self.clusters).map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let label = |field: &dyn Fn(&Cluster) -> Sync| {
            show(&|c| show_label(field(&state.clusters[c])).to_owned())
        };
        let link = |c: usize| show_bool(state.links >> c & 1 == 1);
        let mut variables = vec![
            ("ns", label(&|c| c.wanted)),
            ("pvc", label(&|c| c.label)),
            ("cache", label(&|c| c.cached)),
            ("pvc_state", label(&|c| c.acted_on)),
            ("ack", label(&|c| c.reported)),
            ("link", show(&|c| link(c).to_owned())),
        ];
        if self.relist {
            let past = |c: usize| {
                let seen = LABELS.iter().filter(|l| state.clusters[c].past & past_bit(**l) != 0);
                show_set(seen.map(|label| show_label(*label).to_owned()))
            };
            variables.push(("seen", show(&past)));
        }
        variables
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        vec![
            Invariant::new("TypeOK", "every label is a sync state", |_| true)
                .unbreakable("the types of the model say it"),
            at_most_one(
                "Inv_NSAtMostOneCluster",
                "the namespace is assigned to at most one cluster",
                |c| c.wanted != Sync::Nil,
            ),
            at_most_one(
                "Inv_PVCAtMostOneCluster",
                "the claim is assigned to at most one cluster",
                |c| c.label == Sync::Sync,
            ),
            at_most_one(
                "Inv_UsableByAtMostOne",
                "at most one cluster believes that it may use the volume",
                |c| c.acted_on == Sync::Sync,
            ),
            Invariant::new(
                "Inv_OnlyOwnerUses",
                "nobody but the owner uses the volume, or could come to from old knowledge",
                |s: &State| {
                    s.clusters.iter().all(|c| {
                        c.wanted != Sync::Nil
                            || ![c.acted_on, c.cached, c.label].contains(&Sync::Sync)
                    })
                },
            ),
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        vec![
            self.each_leads_to(
                "DrainCompletes",
                "a cluster that is drained is released",
                |c| c.wanted == Sync::Empty,
                |c| c.wanted == Sync::Nil,
            ),
            self.each_leads_to(
                "AssignedUses",
                "a cluster that is assigned comes to use the volume, unless it is drained",
                |c| c.wanted == Sync::Sync,
                |c| c.acted_on == Sync::Sync || c.wanted != Sync::Sync,
            ),
            self.each_leads_to(
                "IdleAgain",
                "a cluster that was released reports it, unless it is assigned again",
                |c| c.wanted == Sync::Nil,
                |c| c.reported == Sync::Nil || c.wanted != Sync::Nil,
            ),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        let mut fairness = vec![Fairness::weak("PVCController", [PVC_CONTROLLER])];
        for c in 0..self.clusters {
            let name = |at: At| format!("{at:?}({})", name_of(c));
            for at in [At::Release, At::Apply, At::Heal] {
                fairness.push(Fairness::weak(name(at), [self.id(at, c)]));
            }
            for at in [At::Watch, At::Report] {
                fairness.push(Fairness::strong(name(at), [self.id(at, c)]));
            }
        }
        fairness
    }

    fn flags(&self) -> Vec<Flag> {
        let link = |c: usize| {
            let name = format!("link[{}]", name_of(c));
            Flag::up_down(name, 1 << c, self.id(At::Cut, c), self.id(At::Heal, c))
        };
        (0..self.clusters).map(link).collect()
    }

    fn flag_bits(&self, state: &State) -> u64 {
        state.links.into()
    }

    fn with_flag_bits(&self, state: &State, flags: u64) -> State {
        State { links: flags as u8, ..state.clone() }
    }

    fn symmetries(&self) -> usize {
        arrangements(self.clusters) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let places: [usize; MOST] = arrangement(self.clusters, permutation + 1);
        let mut renamed = State::default();
        for (c, place) in places[..self.clusters].iter().enumerate() {
            renamed.clusters[*place] = state.clusters[c];
            renamed.links |= (state.links >> c & 1) << place;
        }
        renamed
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let mut state = State { links: rng.below(1 << self.clusters) as u8, ..State::default() };
        for cluster in &mut state.clusters[..self.clusters] {
            let [wanted, label, cached, acted_on, reported] =
                std::array::from_fn(|_| LABELS[rng.below(LABELS.len())]);
            let past = if self.relist { rng.below(1 << LABELS.len()) as u8 } else { 0 };
            *cluster = Cluster { wanted, label, cached, acted_on, reported, past };
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let protocol = KcpStorageFixed { clusters: self.clusters.max(2), ..self.clone() };
        vec![
            Mutant::new(
                "release-unasked",
                "a cluster is released before its syncer has reported that it is empty",
                &["Inv_UsableByAtMostOne", "Inv_OnlyOwnerUses"],
                KcpStorageFixed { wait_release: false, ..protocol.clone() },
            ),
            Mutant::new(
                "assign-on-old-report",
                "a cluster is assigned again although its last report is of the time before",
                &["Inv_UsableByAtMostOne", "Inv_OnlyOwnerUses"],
                KcpStorageFixed { wait_idle: false, ..protocol.clone() },
            ),
            Mutant::new(
                "assign-twice",
                "the namespace is assigned to a second cluster while the first one has it",
                &["Inv_NSAtMostOneCluster", "Inv_PVCAtMostOneCluster"],
                KcpStorageFixed { wait_free: false, ..protocol.clone() },
            ),
            Mutant::new(
                "lists-the-past",
                "a syncer that restarts may list an old label: no rule about labels survives that, \
                 so the protocol has epochs",
                &["Inv_UsableByAtMostOne", "Inv_OnlyOwnerUses"],
                KcpStorageFixed { relist: true, ..protocol },
            ),
        ]
    }
}

#[cfg(test)]
mod tests;
