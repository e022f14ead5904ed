//! The next stage of a move: an owner that cannot be reached loses its lease, and stops by itself.
//!
//! `specs/protocol/Migrate.tla` and `MigrateT.tla` (where a syncer may list the past) are the text
//! it follows, state for state; `MigrateL.tla` is the calm one.

mod steps;

use crate::spec::hub::{
    Extent, Hub, MOST_EPOCHS, Past, Phase, PinOfGrant, Writes, show_writes, width,
};
use crate::spec::name_of;
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng, Size,
    SizeError, SizeKey, Steps,
};
use steps::FAIR;

const NAME: &str = "spec/placement-lease";
const LIVE_NAME: &str = "spec/placement-lease-live";
const MOST_CLUSTERS: usize = 3;

const CLUSTERS: SizeKey =
    SizeKey::new("clusters", "clusters that can own the namespace", 2, 1, MOST_CLUSTERS as u64);
const EPOCHS: SizeKey = SizeKey::new("epochs", "how often it is granted", 2, 1, MOST_EPOCHS as u64);
const WRITES: SizeKey = SizeKey::new("writes", "writes that the workload does", 2, 0, 3);
const LEASE: SizeKey = SizeKey::new("lease", "1: an owner runs only while it has a lease", 1, 0, 1);
const FORCE: SizeKey =
    SizeKey::new("force", "1: an owner whose lease ran out may be taken over", 1, 0, 1);
const RELIST: SizeKey =
    SizeKey::new("relist", "1: a restarted syncer may list any past value", 1, 0, 1);

const KEYS: [SizeKey; 6] = [CLUSTERS, EPOCHS, WRITES, LEASE, FORCE, RELIST];
const LIVE_KEYS: [SizeKey; 3] = [CLUSTERS, EPOCHS, WRITES];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a namespace moves, and is taken over when its owner's lease has run out",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(Lease::from_size(size)?)),
};

/// For the catalog: without faults, and what must then happen.
pub const LIVE_ENTRY: Entry = Entry {
    name: LIVE_NAME,
    summary: "the same without crashes and takeovers: moves end, and grants run",
    keys: &LIVE_KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(Lease::live_from_size(size)?)),
};

/// What the protocol insists on; a mutant gives one thing up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rules {
    /// `SelfFence`: when a lease runs out, what runs under it stops.
    self_fence: bool,
    /// `NeedAck`: nobody is granted what another still owns.
    need_ack: bool,
    /// `DurableRel`: a closed epoch is noted before the final copy.
    durable_rel: bool,
    /// `FinalSyncOn`: a last copy is taken before the release.
    final_sync: bool,
}

const ALL: Rules = Rules { self_fence: true, need_ack: true, durable_rel: true, final_sync: true };

/// The protocol in some size, with some rules broken or none.
#[derive(Debug, Clone)]
pub struct Lease {
    extent: Extent,
    /// `UseLease`
    lease: bool,
    /// `Force`
    force: bool,
    /// `TimeTravel`
    relist: bool,
    /// No crash, no lease that runs out, no takeover.
    calm: bool,
    rules: Rules,
}

/// What one cluster knows, has and does; the names of the specification in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cluster {
    /// What its syncer last saw of the hub (`view`).
    view: Hub,
    /// The highest epoch closed here (`rel`).
    released: u8,
    /// The epoch whose processes live (`run`).
    running: u8,
    /// The epoch that it has a lease for (`lease`).
    leased: u8,
    /// The epoch that the volume is filled for (`pop`).
    filled: u8,
    /// The epoch that has its final copy (`fin`).
    copied: u8,
    /// What is in the volume (`vol`).
    volume: Writes,
}

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    hub: Hub,
    /// Every value the hub had, where a syncer may list them (`hist`).
    past: Past,
    clusters: [Cluster; MOST_CLUSTERS],
    /// The images of epoch 1 and on; epoch 0 has none (`img`).
    images: [Writes; MOST_EPOCHS],
    /// How many writes there were (`nw`).
    written: u8,
    /// Writes acknowledged and not declared lost (`must`).
    must: Writes,
}

impl State {
    fn image(&self, epoch: u8) -> Writes {
        epoch.checked_sub(1).map_or(0, |place| self.images[usize::from(place)])
    }

    fn set_image(&mut self, epoch: u8, writes: Writes) {
        self.images[usize::from(epoch) - 1] = writes;
    }
}

impl Lease {
    /// `spec/placement-lease` in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [clusters, epochs, writes, lease, force, relist] = size.numbers(NAME, &KEYS)?;
        if lease == 0 && force == 1 {
            let why = "without leases nobody can be taken over: lease=0 goes with force=0";
            return Err(SizeError::Meaningless(why.to_owned()));
        }
        Ok(Lease {
            extent: extent(clusters, epochs, writes),
            lease: lease == 1,
            force: force == 1,
            relist: relist == 1,
            calm: false,
            rules: ALL,
        })
    }

    /// `spec/placement-lease-live` in the size that a person asked for.
    pub fn live_from_size(size: &Size) -> Result<Self, SizeError> {
        let [clusters, epochs, writes] = size.numbers(LIVE_NAME, &LIVE_KEYS)?;
        let extent = extent(clusters, epochs, writes);
        Ok(Lease { extent, lease: true, force: false, relist: false, calm: true, rules: ALL })
    }

    fn epochs_past(&self, state: &State) -> u8 {
        if self.relist { state.hub.epoch } else { 0 }
    }
}

fn extent(clusters: u64, epochs: u64, writes: u64) -> Extent {
    Extent { clusters: clusters as usize, epochs: epochs as u8, writes: writes as u8 }
}

impl Model for Lease {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        let Extent { clusters, epochs, writes } = self.extent;
        let [lease, force, relist] = [self.lease, self.force, self.relist].map(u8::from);
        let size = format!("clusters={clusters},epochs={epochs},writes={writes}");
        if self.calm {
            return size;
        }
        format!("{size},lease={lease},force={force},relist={relist}")
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        let extent = self.extent;
        state.hub.code(extent, coder);
        if self.relist {
            state.past.code(extent, state.hub.epoch, PinOfGrant::Chosen, coder);
        }
        for cluster in &mut state.clusters[..extent.clusters] {
            cluster.view.code(extent, coder);
            extent.code_epoch(&mut cluster.released, coder);
            extent.code_epoch(&mut cluster.running, coder);
            extent.code_epoch(&mut cluster.leased, coder);
            extent.code_epoch(&mut cluster.filled, coder);
            extent.code_epoch(&mut cluster.copied, coder);
            extent.code_writes(&mut cluster.volume, coder);
        }
        for image in &mut state.images[..extent.epochs.into()] {
            extent.code_writes(image, coder);
        }
        coder.u8(&mut state.written, width(extent.writes.into()));
        extent.code_writes(&mut state.must, coder);
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
        let Extent { clusters, epochs, .. } = self.extent;
        let per_cluster = |value: &dyn Fn(&Cluster) -> String| {
            let one = |c: usize| format!("{} :> {}", name_of(c), value(&state.clusters[c]));
            format!("({})", (0..clusters).map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let epoch = |field: &dyn Fn(&Cluster) -> u8| per_cluster(&|c| field(c).to_string());
        let image = |epoch: u8| format!("{epoch} :> {}", show_writes(state.image(epoch)));
        let images = (0..=epochs).map(image).collect::<Vec<_>>().join(" @@ ");
        let mut variables = vec![
            ("hub", state.hub.show()),
            ("view", per_cluster(&|c| c.view.show())),
            ("rel", epoch(&|c| c.released)),
            ("run", epoch(&|c| c.running)),
            ("lease", epoch(&|c| c.leased)),
            ("pop", epoch(&|c| c.filled)),
            ("fin", epoch(&|c| c.copied)),
            ("vol", per_cluster(&|c| show_writes(c.volume))),
            ("img", format!("({images})")),
            ("nw", state.written.to_string()),
            ("must", show_writes(state.must)),
        ];
        if self.relist {
            variables.push(("hist", state.past.show(state.hub.epoch)));
        }
        variables
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        vec![
            Invariant::new("TypeOK", "the hub is in one of five phases", |_| true)
                .unbreakable("the types of the model say it"),
            Invariant::new(
                "UsableByAtMostOne",
                "at most one cluster runs the namespace",
                |s: &State| s.clusters.iter().filter(|c| c.running != 0).count() <= 1,
            ),
            Invariant::new(
                "OnlyTheOwnerRuns",
                "whoever runs is the owner, in the present epoch",
                |s: &State| {
                    s.clusters.iter().enumerate().all(|(c, cluster)| {
                        cluster.running == 0
                            || s.hub.is_owned_by(c) && s.hub.epoch == cluster.running
                    })
                },
            ),
            Invariant::new(
                "NoLoss",
                "an owner that runs has every write that was acknowledged and not declared lost",
                |s: &State| {
                    s.clusters.iter().all(|c| {
                        c.running == 0 || c.running != s.hub.epoch || s.must & !c.volume == 0
                    })
                },
            ),
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        if !self.calm {
            return Vec::new();
        }
        let runs = |c: usize| {
            Formula::leads_to(
                move |s: &State| s.hub.is_owned_by(c) && s.hub.phase == Phase::Granted,
                move |s: &State| {
                    s.clusters[c].running == s.hub.epoch || s.hub.phase != Phase::Granted
                },
            )
        };
        vec![
            Property::new(
                "RevokeEnds",
                "a revocation ends",
                Formula::leads_to(
                    |s: &State| s.hub.phase == Phase::Revoking,
                    |s: &State| s.hub.phase != Phase::Revoking,
                ),
            ),
            Property::for_all(
                "GrantRuns",
                "a grant runs, unless it is taken back",
                (0..self.extent.clusters).map(runs),
            ),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        if !self.calm {
            return Vec::new();
        }
        let of_cluster = |c: usize| {
            FAIR.map(|at| Fairness::weak(format!("{at:?}({})", name_of(c)), [self.id(at, c)]))
        };
        (0..self.extent.clusters).flat_map(of_cluster).collect()
    }

    fn symmetries(&self) -> usize {
        arrangements(self.extent.clusters) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let places: [usize; MOST_CLUSTERS] = arrangement(self.extent.clusters, permutation + 1);
        let mut renamed = State {
            hub: state.hub.renamed(&places),
            past: state.past.renamed(self.epochs_past(state), &places),
            ..state.clone()
        };
        for (c, cluster) in state.clusters[..self.extent.clusters].iter().enumerate() {
            renamed.clusters[places[c]] =
                Cluster { view: cluster.view.renamed(&places), ..*cluster };
        }
        renamed
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let extent = self.extent;
        let mut state = State { hub: Hub::any(extent, rng), ..State::default() };
        state.past = Past::any(extent, self.epochs_past(&state), PinOfGrant::Chosen, rng);
        for cluster in &mut state.clusters[..extent.clusters] {
            *cluster = Cluster {
                view: Hub::any(extent, rng),
                released: extent.any_epoch(rng),
                running: extent.any_epoch(rng),
                leased: extent.any_epoch(rng),
                filled: extent.any_epoch(rng),
                copied: extent.any_epoch(rng),
                volume: extent.any_writes(rng),
            };
        }
        for image in &mut state.images[..extent.epochs.into()] {
            *image = extent.any_writes(rng);
        }
        state.written = rng.below(usize::from(extent.writes) + 1) as u8;
        state.must = extent.any_writes(rng);
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        self.broken_rules()
    }
}

#[cfg(test)]
mod tests;
