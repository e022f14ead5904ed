//! The nodes protocol: a node is given with an epoch, revoked by raising its floor to that epoch,
//! and returned once each of its DPUs has shown that nothing at or under the floor is programmed.
//!
//! One node, its DPUs, and tenants that want it. `specs/protocol/Nodes.tla` is the text it follows.

mod state;
mod steps;
#[cfg(test)]
mod tests;

pub use state::{Phase, State};

use crate::one_holder::{Holders, OneHolder};
use interlock_checker::symmetry::arrangements;
use interlock_checker::{
    Action, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Refinement, Rng,
    Size, SizeError, SizeKey, Steps,
};
use state::{Dpu, Grant, MOST_DPUS, MOST_EPOCHS, MOST_TENANTS};
use steps::{FINISH, OF_DPU, OF_TENANT, OfDpu, OfTenant};

const NAME: &str = "spec/nodes";
const KEYS: [SizeKey; 5] = [
    SizeKey::new("tenants", "tenants that may be given the node", 2, 1, MOST_TENANTS as u64),
    SizeKey::new("dpus", "DPUs that the node is wired through", 2, 1, MOST_DPUS as u64),
    SizeKey::new("epochs", "times that the node is given away", 2, 1, MOST_EPOCHS as u64),
    SizeKey::new("faults", "agent crashes, power losses and cuts, together", 1, 0, 7),
    SizeKey::new("forged", "attachments that a tenant invents", 0, 0, 3),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a node is given under an epoch, fenced by a floor, returned when its DPUs are clean",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(NodesHub::from_size(size)?)),
};

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// An attachment is programmed only if it equals the assignment that the DPU sees.
    pub exact_match: bool,
    /// Nothing at or under the floor is programmed.
    pub floor_check: bool,
    /// Nothing is programmed before the hub was read since the agent started.
    pub loaded_check: bool,
    /// The first read after a start is consistent, not from a cache.
    pub consistent_boot: bool,
    /// Power seen off counts for epochs revoked before the look.
    pub fresh_evidence: bool,
    /// Hardware comes up closed.
    pub closed_boot: bool,
    /// A report counts for the epoch that it names.
    pub epoch_ack: bool,
    /// A DPU reports clean only after it read that back.
    pub read_back: bool,
    /// A DPU drops what is at or under the floor.
    pub drop_revoked: bool,
    /// A DPU reads the hub again when something changed there.
    pub follow_hub: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        exact_match: true,
        floor_check: true,
        loaded_check: true,
        consistent_boot: true,
        fresh_evidence: true,
        closed_boot: true,
        epoch_ack: true,
        read_back: true,
        drop_revoked: true,
        follow_hub: true,
    };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct NodesHub {
    tenants: u8,
    dpus: u8,
    epochs: u8,
    faults: u8,
    forged: u8,
    rules: Rules,
}

impl NodesHub {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(NodesHub::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([tenants, dpus, epochs, faults, forged]: [u8; 5], rules: Rules) -> Self {
        NodesHub { tenants, dpus, epochs, faults, forged, rules }
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    fn each_dpu(&self) -> std::ops::Range<usize> {
        0..usize::from(self.dpus)
    }

    fn programmed_for(&self, state: &State) -> Holders {
        let live = state.dpus[self.each_dpu()].iter().filter_map(Dpu::live);
        live.fold(Holders::default(), |holders, entry| holders.with(entry.tenant))
    }
}

impl Model for NodesHub {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        format!(
            "tenants={},dpus={},epochs={},faults={},forged={}",
            self.tenants, self.dpus, self.epochs, self.faults, self.forged
        )
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        const NEED_FAULTS: [&str; 7] = ["AgentCrash", "AgentUp", "Off", "On", "See", "Cut", "Heal"];
        match name.split('(').next() {
            Some("Forge") if self.forged == 0 => Some("this size has no forged attachments"),
            Some(family) if self.faults == 0 && NEED_FAULTS.contains(&family) => {
                Some("this size has no faults")
            }
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        state.code(self, coder);
    }

    fn initial(&self) -> Vec<State> {
        let mut state = State::default();
        for dpu in &mut state.dpus[self.each_dpu()] {
            (dpu.online, dpu.powered, dpu.connected) = (true, true, true);
        }
        vec![state]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![Action::new("Revoke", "hub"), Action::new("Finish", "hub")];
        for (kind, name) in OF_TENANT {
            for t in 1..=self.tenants {
                let (name, tenant) = (format!("{name}(t{t})"), format!("tenant t{t}"));
                actions.push(match kind {
                    OfTenant::Bind => Action::new(name, "hub"),
                    OfTenant::Deliver => Action::new(name, "hub").to(tenant),
                    OfTenant::Land | OfTenant::Forge => Action::new(name, tenant),
                });
            }
        }
        for (kind, name) in OF_DPU {
            for d in 1..=self.dpus {
                let (name, dpu) = (format!("{name}(d{d})"), format!("DPU d{d}"));
                actions.push(match kind {
                    OfDpu::View | OfDpu::LandAck => Action::new(name, dpu).to("hub"),
                    OfDpu::See => Action::new(name, "hub").to(dpu),
                    OfDpu::Drop | OfDpu::Report | OfDpu::Program | OfDpu::AgentUp => {
                        Action::new(name, dpu)
                    }
                    OfDpu::AgentCrash | OfDpu::Off | OfDpu::On | OfDpu::Cut | OfDpu::Heal => {
                        Action::new(name, "world").to(dpu)
                    }
                });
            }
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.hub_steps(state, steps);
        self.tenant_steps(state, steps);
        for d in self.each_dpu() {
            self.agent_steps(state, d, steps);
            self.world_steps(state, d, steps);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        state.describe(self)
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        let (pool, all) = (self.clone(), self.clone());
        let dpus = usize::from(self.dpus);
        let isolation = Invariant::new(
            "Isolation",
            "the node is programmed for at most one tenant, over all its DPUs together",
            move |s: &State| all.programmed_for(s).count() <= 1,
        );
        vec![
            if self.tenants == 1 {
                isolation.unbreakable("there is one tenant")
            } else {
                isolation
            },
            Invariant::new(
                "PoolClean",
                "a node in the pool is programmed for nobody",
                move |s: &State| s.phase != Phase::Available || pool.programmed_for(s).count() == 0,
            ),
            Invariant::new(
                "Owned",
                "what is programmed was given, under the present epoch",
                move |s: &State| {
                    s.dpus[..dpus].iter().filter_map(Dpu::live).all(|entry| {
                        let given = s.given.get(usize::from(entry.epoch) - 1);
                        entry.epoch == s.epoch && given == Some(&Some(entry.tenant))
                    })
                },
            ),
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        let dpus = usize::from(self.dpus);
        vec![
            Property::new(
                "Reclaims",
                "a revoked node returns to the pool",
                Formula::leads_to(
                    |s: &State| s.phase == Phase::Releasing,
                    |s: &State| s.phase == Phase::Available,
                ),
            ),
            Property::for_all(
                "Converges",
                "a node that stays given to a tenant is programmed for it in all its DPUs for good",
                (0..self.tenants).map(|tenant| {
                    Formula::stable_implies_stable(
                        move |s: &State| s.phase == Phase::Bound && s.owner == Some(tenant),
                        move |s: &State| {
                            let grant = Grant { tenant, epoch: s.epoch };
                            s.dpus[..dpus].iter().all(|dpu| dpu.live() == Some(grant))
                        },
                    )
                }),
            ),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        const FAIR: [OfDpu; 7] = [
            OfDpu::View,
            OfDpu::Drop,
            OfDpu::Report,
            OfDpu::Program,
            OfDpu::AgentUp,
            OfDpu::On,
            OfDpu::Heal,
        ];
        let tenants = |kind| (0..self.tenants).map(move |t| self.of_tenant(kind, t));
        let late_reports = self.each_dpu().map(|d| self.of_dpu(OfDpu::LandAck, d));
        let mut fairness = vec![
            Fairness::weak("Deliver", tenants(OfTenant::Deliver)),
            Fairness::weak("Land", tenants(OfTenant::Land)),
            Fairness::weak("Finish", [FINISH]),
            Fairness::weak("LandAck", late_reports),
        ];
        let actions = self.actions();
        for kind in FAIR {
            for action in self.each_dpu().map(|d| self.of_dpu(kind, d)) {
                fairness.push(Fairness::weak(&*actions[usize::from(action)].name, [action]));
            }
        }
        fairness
    }

    fn may_rest(&self, state: &State) -> bool {
        state.phase == Phase::Available && state.epoch == self.epochs
    }

    fn symmetries(&self) -> usize {
        arrangements(self.tenants.into()) * arrangements(self.dpus.into()) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        state.permuted(self, permutation + 1)
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(State::arbitrary(self, rng))
    }

    fn refines(&self) -> Vec<Refinement<State>> {
        let this = self.clone();
        vec![Refinement::of("spec/one-holder", OneHolder::of(self.tenants), move |s| {
            this.programmed_for(s)
        })]
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        const UNCLEAN: [&str; 1] = ["PoolClean"];
        // Some rules matter only where there is a forged record, a fault or a second epoch.
        let forging = NodesHub { forged: self.forged.max(1), ..self.clone() };
        let faulty = NodesHub { faults: self.faults.max(1), ..self.clone() };
        let again = NodesHub { epochs: self.epochs.max(2), ..self.clone() };
        vec![
            Mutant::new(
                "forged-attachment",
                "a DPU compares an attachment with the floor only, not with the assignment",
                &["PoolClean", "Owned"],
                forging.without(|rules| rules.exact_match = false),
            ),
            Mutant::new(
                "no-floor",
                "a DPU programs what it sees assigned even at or under the floor",
                &UNCLEAN,
                self.without(|rules| rules.floor_check = false),
            ),
            Mutant::new(
                "programs-unread",
                "an agent that has not read the hub since its start trusts the attachments alone",
                &UNCLEAN,
                faulty.without(|rules| (rules.loaded_check, rules.exact_match) = (false, false)),
            ),
            Mutant::new(
                "boot-from-cache",
                "the first read after a start may show any past state of the hub",
                &UNCLEAN,
                faulty.without(|rules| rules.consistent_boot = false),
            ),
            Mutant::new(
                "old-evidence",
                "power seen off before the revocation counts for it",
                &UNCLEAN,
                faulty.without(|rules| rules.fresh_evidence = false),
            ),
            Mutant::new(
                "open-boot",
                "hardware comes up with the entries it had",
                &UNCLEAN,
                faulty.without(|rules| rules.closed_boot = false),
            ),
            Mutant::new(
                "any-report",
                "a clean report counts for whatever epoch is being released",
                &UNCLEAN,
                again.without(|rules| rules.epoch_ack = false),
            ),
            Mutant::new(
                "report-before-read-back",
                "a DPU reports clean while it still holds what was revoked",
                &UNCLEAN,
                self.without(|rules| rules.read_back = false),
            ),
            Mutant::new(
                "never-drops",
                "a DPU keeps what was revoked, and so can never report clean",
                &["Reclaims"],
                self.without(|rules| rules.drop_revoked = false),
            ),
            Mutant::new(
                "reads-once",
                "a DPU reads the hub when its agent starts, and not again",
                &["Converges"],
                self.without(|rules| rules.follow_hub = false),
            ),
        ]
    }
}
