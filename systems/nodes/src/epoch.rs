//! Epoch and floor alone: the smallest protocol that reclaims a programmed node safely.
//!
//! One node, its DPUs, and tenants whose writes may land late. `specs/protocol/NodesEpoch.tla` is
//! the text it follows; `spec` adds exact match, late reports, power and forged records.

mod steps;
#[cfg(test)]
mod tests;

use crate::one_holder::{Holders, OneHolder};
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property,
    Refinement, Rng, Size, SizeError, SizeKey, Steps,
};

const NAME: &str = "spec/nodes-epoch";
const MOST_TENANTS: usize = 3;
const MOST_DPUS: usize = 2;
const MOST_EPOCHS: u64 = 3;
const KEYS: [SizeKey; 4] = [
    SizeKey::new("tenants", "tenants that may be given the node", 2, 1, MOST_TENANTS as u64),
    SizeKey::new("dpus", "DPUs that the node is wired through", 2, 1, MOST_DPUS as u64),
    SizeKey::new("epochs", "times that the node is given away", 2, 1, MOST_EPOCHS),
    SizeKey::new("faults", "DPU crashes and cuts, together", 1, 0, 3),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a DPU programs only epochs above its floor, and tells when it has dropped the rest",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(NodesEpoch::from_size(size)?)),
};

/// Where the node stands at the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// In the pool.
    #[default]
    Available,
    /// Given to a tenant.
    Bound,
    /// Revoked, not yet acknowledged by all DPUs.
    Releasing,
}

const PHASES: [Phase; 3] = [Phase::Available, Phase::Bound, Phase::Releasing];

/// A set of epochs: bit `epoch - 1`.
type Epochs = u8;

/// The tenant's plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Tenant {
    /// Writes that have not landed.
    in_flight: Epochs,
    /// Records in its store.
    records: Epochs,
    is_cut_off: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Dpu {
    /// What is programmed for each tenant.
    programmed: [Epochs; MOST_TENANTS],
    /// The floor as it knows it.
    floor: u8,
    /// It has loaded the floor since it booted.
    is_ready: bool,
    is_down: bool,
    /// Floors that it acknowledged.
    acks: Epochs,
}

/// The variables of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    phase: Phase,
    owner: Option<u8>,
    epoch: u8,
    floor: u8,
    tenants: [Tenant; MOST_TENANTS],
    dpus: [Dpu; MOST_DPUS],
    is_hub_cut_off: bool,
    faults: u8,
}

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Nothing at or under the floor is programmed.
    pub floor_check: bool,
    /// Nothing is programmed before the floor was loaded since boot.
    pub loaded_check: bool,
    /// The node returns only when all its DPUs acknowledged the floor.
    pub acknowledged: bool,
    /// A DPU looks at the hub again after its first look.
    pub follow_hub: bool,
    /// A tenant does not clean up the record of the present assignment.
    pub spare_present: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        floor_check: true,
        loaded_check: true,
        acknowledged: true,
        follow_hub: true,
        spare_present: true,
    };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct NodesEpoch {
    tenants: usize,
    dpus: usize,
    epochs: u8,
    faults: u8,
    rules: Rules,
}

// Action ids: four of the hub and its network, then each kind for each tenant, each kind for each
// DPU, and each DPU programming each tenant.
const RELEASE_START: ActionId = 0;
const RELEASE_FINISH: ActionId = 1;
const CUT: ActionId = 2;
const HEAL_M: ActionId = 3;
const FIRST_OF_TENANT: ActionId = 4;
const OF_TENANT: [&str; 4] = ["Assign", "Flush", "Cleanup", "HealT"];
const ASSIGN: u16 = 0;
const FLUSH: u16 = 1;
const CLEANUP: u16 = 2;
const HEAL_T: u16 = 3;
const OF_DPU: [&str; 3] = ["Sync", "Crash", "Boot"];
const SYNC: u16 = 0;
const CRASH: u16 = 1;
const BOOT: u16 = 2;

fn bit(epoch: u8) -> Epochs {
    1 << (epoch - 1)
}

fn width(most: u8) -> u32 {
    u8::BITS - most.leading_zeros()
}

impl NodesEpoch {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(NodesEpoch::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([tenants, dpus, epochs, faults]: [u8; 4], rules: Rules) -> Self {
        let (tenants, dpus) = (usize::from(tenants), usize::from(dpus));
        NodesEpoch { tenants, dpus, epochs, faults, rules }
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    fn of_tenant(&self, kind: u16, tenant: usize) -> ActionId {
        FIRST_OF_TENANT + kind * self.tenants as u16 + tenant as u16
    }

    fn of_dpu(&self, kind: u16, dpu: usize) -> ActionId {
        self.of_tenant(OF_TENANT.len() as u16, 0) + kind * self.dpus as u16 + dpu as u16
    }

    fn program(&self, dpu: usize, tenant: usize) -> ActionId {
        self.of_dpu(OF_DPU.len() as u16, 0) + (dpu * self.tenants + tenant) as u16
    }

    fn each_epoch(&self, epochs: Epochs) -> impl Iterator<Item = u8> + use<> {
        (1..=self.epochs).filter(move |epoch| epochs & bit(*epoch) != 0)
    }

    fn programmed_for(&self, state: &State) -> Holders {
        let mut holders = Holders::default();
        for tenant in 0..self.tenants {
            if state.dpus[..self.dpus].iter().any(|dpu| dpu.programmed[tenant] != 0) {
                holders = holders.with(tenant as u8);
            }
        }
        holders
    }
}

impl Model for NodesEpoch {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        let NodesEpoch { tenants, dpus, epochs, faults, .. } = self;
        format!("tenants={tenants},dpus={dpus},epochs={epochs},faults={faults}")
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name.split('(').next() {
            Some("Crash" | "Boot" | "Cut" | "HealM" | "HealT") if self.faults == 0 => {
                Some("this size has no faults")
            }
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        let of_epochs = u32::from(self.epochs);
        let of_epoch = width(self.epochs);
        coder.of(&mut state.phase, &PHASES);
        let mut owner = state.owner.map_or(0, |tenant| tenant + 1);
        coder.u8(&mut owner, width(self.tenants as u8));
        state.owner = owner.checked_sub(1);
        coder.u8(&mut state.epoch, of_epoch);
        coder.u8(&mut state.floor, of_epoch);
        for tenant in &mut state.tenants[..self.tenants] {
            coder.u8(&mut tenant.in_flight, of_epochs);
            coder.u8(&mut tenant.records, of_epochs);
            coder.bool(&mut tenant.is_cut_off);
        }
        for dpu in &mut state.dpus[..self.dpus] {
            for epochs in &mut dpu.programmed[..self.tenants] {
                coder.u8(epochs, of_epochs);
            }
            coder.u8(&mut dpu.floor, of_epoch);
            coder.bool(&mut dpu.is_ready);
            coder.bool(&mut dpu.is_down);
            coder.u8(&mut dpu.acks, of_epochs);
        }
        coder.bool(&mut state.is_hub_cut_off);
        coder.u8(&mut state.faults, width(self.faults));
    }

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![
            Action::new("ReleaseStart", "hub"),
            Action::new("ReleaseFinish", "hub"),
            Action::new("Cut", "world"),
            Action::new("HealM", "world"),
        ];
        for (kind, name) in (0..).zip(OF_TENANT) {
            actions.extend((1..=self.tenants).map(|t| {
                let (name, tenant) = (format!("{name}(t{t})"), format!("tenant t{t}"));
                match kind {
                    ASSIGN => Action::new(name, "hub").to(tenant),
                    HEAL_T => Action::new(name, "world").to(tenant),
                    _ => Action::new(name, tenant),
                }
            }));
        }
        for (kind, name) in (0..).zip(OF_DPU) {
            actions.extend((1..=self.dpus).map(|d| {
                let (name, dpu) = (format!("{name}(d{d})"), format!("DPU d{d}"));
                match kind {
                    SYNC => Action::new(name, dpu).to("hub"),
                    CRASH => Action::new(name, "world").to(dpu),
                    _ => Action::new(name, dpu),
                }
            }));
        }
        for d in 1..=self.dpus {
            actions.extend((1..=self.tenants).map(|t| {
                Action::new(format!("Program(d{d}, t{t})"), format!("DPU d{d}"))
                    .to(format!("tenant t{t}"))
            }));
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.hub_steps(state, steps);
        for tenant in 0..self.tenants {
            self.tenant_steps(state, tenant, steps);
        }
        for dpu in 0..self.dpus {
            self.dpu_steps(state, dpu, steps);
            for tenant in 0..self.tenants {
                self.program_steps(state, dpu, tenant, steps);
            }
        }
        self.network_steps(state, steps);
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let of_tenants = |show: &dyn Fn(usize) -> String| {
            let one = |t: usize| format!("t{} :> {}", t + 1, show(t));
            format!("({})", (0..self.tenants).map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let of_dpus = |show: &dyn Fn(&Dpu) -> String| {
            let one = |d: usize| format!("d{} :> {}", d + 1, show(&state.dpus[d]));
            format!("({})", (0..self.dpus).map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let epochs = |epochs: Epochs| {
            let epochs = self.each_epoch(epochs).map(|epoch| epoch.to_string());
            format!("{{{}}}", epochs.collect::<Vec<_>>().join(", "))
        };
        let boolean = |value: bool| if value { "TRUE" } else { "FALSE" }.to_owned();
        let acks = (0..self.dpus).flat_map(|d| {
            let floors = self.each_epoch(state.dpus[d].acks);
            floors.map(move |floor| format!("<<d{}, {floor}>>", d + 1))
        });
        let owner = state.owner.map_or("\"none\"".to_owned(), |t| format!("t{}", t + 1));
        vec![
            ("st", format!("\"{:?}\"", state.phase)),
            ("owner", owner),
            ("epoch", state.epoch.to_string()),
            ("floor", state.floor.to_string()),
            ("inflight", of_tenants(&|t| epochs(state.tenants[t].in_flight))),
            ("crs", of_tenants(&|t| epochs(state.tenants[t].records))),
            ("hw", of_dpus(&|dpu| of_tenants(&|t| epochs(dpu.programmed[t])))),
            ("dfloor", of_dpus(&|dpu| dpu.floor.to_string())),
            ("ready", of_dpus(&|dpu| boolean(dpu.is_ready))),
            ("online", of_dpus(&|dpu| boolean(!dpu.is_down))),
            ("netM", boolean(!state.is_hub_cut_off)),
            ("netT", of_tenants(&|t| boolean(!state.tenants[t].is_cut_off))),
            ("acks", format!("{{{}}}", acks.collect::<Vec<_>>().join(", "))),
            ("crashes", state.faults.to_string()),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        let (all, pool) = (self.clone(), self.clone());
        let isolation = Invariant::new(
            "Isolation",
            "the node is programmed for at most one tenant, over all its DPUs together",
            move |s: &State| all.programmed_for(s).count() <= 1,
        );
        let pool_clean = Invariant::new(
            "PoolClean",
            "a node in the pool is programmed for nobody",
            move |s: &State| s.phase != Phase::Available || pool.programmed_for(s).count() == 0,
        );
        let one_tenant = self.tenants == 1;
        vec![
            if one_tenant { isolation.unbreakable("there is one tenant") } else { isolation },
            pool_clean,
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        let dpus = self.dpus;
        vec![
            Property::new(
                "Reclaimable",
                "a revoked node does not stay so",
                Formula::leads_to(
                    |s: &State| s.phase == Phase::Releasing,
                    |s: &State| s.phase != Phase::Releasing,
                ),
            ),
            Property::for_all(
                "Converges",
                "a node that stays given to a tenant is programmed for it in all its DPUs for good",
                (0..self.tenants).map(|tenant| {
                    Formula::stable_implies_stable(
                        move |s: &State| s.phase == Phase::Bound && s.owner == Some(tenant as u8),
                        move |s: &State| {
                            let mut dpus = s.dpus[..dpus].iter();
                            s.epoch > 0
                                && dpus.all(|dpu| dpu.programmed[tenant] & bit(s.epoch) != 0)
                        },
                    )
                }),
            ),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        let mut actions = vec![RELEASE_FINISH, HEAL_M];
        for tenant in 0..self.tenants {
            actions.extend([FLUSH, CLEANUP, HEAL_T].map(|kind| self.of_tenant(kind, tenant)));
        }
        for dpu in 0..self.dpus {
            actions.extend([SYNC, BOOT].map(|kind| self.of_dpu(kind, dpu)));
            actions.extend((0..self.tenants).map(|tenant| self.program(dpu, tenant)));
        }
        let all = self.actions();
        let fair = |action: ActionId| Fairness::weak(&*all[usize::from(action)].name, [action]);
        actions.into_iter().map(fair).collect()
    }

    fn may_rest(&self, state: &State) -> bool {
        state.phase == Phase::Available && state.epoch == self.epochs
    }

    fn symmetries(&self) -> usize {
        arrangements(self.tenants) * arrangements(self.dpus) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let number = permutation + 1;
        let of_tenants = arrangements(self.tenants);
        let tenants: [_; MOST_TENANTS] = arrangement(self.tenants, number % of_tenants);
        let dpus: [_; MOST_DPUS] = arrangement(self.dpus, number / of_tenants);
        let mut image = state.clone();
        image.owner = state.owner.map(|owner| tenants[usize::from(owner)] as u8);
        for t in 0..self.tenants {
            image.tenants[tenants[t]] = state.tenants[t];
        }
        for d in 0..self.dpus {
            image.dpus[dpus[d]] = state.dpus[d];
            for t in 0..self.tenants {
                image.dpus[dpus[d]].programmed[tenants[t]] = state.dpus[d].programmed[t];
            }
        }
        image
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let up_to = |rng: &mut Rng, most: u8| rng.below(usize::from(most) + 1) as u8;
        let epochs = |rng: &mut Rng| rng.below(1 << self.epochs) as Epochs;
        let phase = PHASES[rng.below(PHASES.len())];
        // Only a node that was never given is at epoch 0.
        let least = u8::from(phase != Phase::Available);
        let mut state = State {
            phase,
            owner: up_to(rng, self.tenants as u8).checked_sub(1),
            epoch: least + up_to(rng, self.epochs - least),
            floor: up_to(rng, self.epochs),
            is_hub_cut_off: rng.flip(),
            faults: up_to(rng, self.faults),
            ..State::default()
        };
        for tenant in &mut state.tenants[..self.tenants] {
            *tenant =
                Tenant { in_flight: epochs(rng), records: epochs(rng), is_cut_off: rng.flip() };
        }
        for dpu in &mut state.dpus[..self.dpus] {
            for programmed in &mut dpu.programmed[..self.tenants] {
                *programmed = epochs(rng);
            }
            dpu.floor = up_to(rng, self.epochs);
            (dpu.is_ready, dpu.is_down) = (rng.flip(), rng.flip());
            dpu.acks = epochs(rng);
        }
        Some(state)
    }

    fn refines(&self) -> Vec<Refinement<State>> {
        let this = self.clone();
        vec![Refinement::of("spec/one-holder", OneHolder::of(self.tenants as u8), move |s| {
            this.programmed_for(s)
        })]
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let faulty = NodesEpoch { faults: self.faults.max(1), ..self.clone() };
        vec![
            Mutant::new(
                "no-floor",
                "a DPU programs records at or under the floor",
                &["PoolClean"],
                self.without(|rules| rules.floor_check = false),
            ),
            Mutant::new(
                "floor-not-loaded",
                "a DPU that has just booted programs before it knows the floor",
                &["PoolClean"],
                faulty.without(|rules| rules.loaded_check = false),
            ),
            Mutant::new(
                "returned-unacknowledged",
                "a node returns to the pool as soon as it is revoked",
                &["PoolClean"],
                self.without(|rules| rules.acknowledged = false),
            ),
            Mutant::new(
                "looks-once",
                "a DPU looks at the hub when it boots, and not again",
                &["Reclaimable"],
                self.without(|rules| rules.follow_hub = false),
            ),
            Mutant::new(
                "cleans-up-present",
                "a tenant's clean-up takes the record of the present assignment too",
                &["Converges"],
                self.without(|rules| rules.spare_present = false),
            ),
        ]
    }
}
