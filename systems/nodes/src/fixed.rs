//! dpu_multi_tenant with a two-phase reclaim: the record is deleted first, each DPU takes its
//! finalizer off once it is clean, and the node returns when no record of it is left.
//!
//! One rack; every node is wired through every DPU. `specs/fixed/dpu_multi_tenant_fixed.tla` is the
//! text it follows.

mod actions;
mod state;
mod steps;
#[cfg(test)]
mod tests;

pub use state::State;

use actions::{Kind, Numbering};
use interlock_checker::symmetry::arrangements;
use interlock_checker::{
    Action, Coder, Entry, Fairness, Flag, Formula, Invariant, Model, Mutant, Property, Rng, Size,
    SizeError, SizeKey, Steps,
};
use state::{Link, MOST_DPUS, MOST_NODES, MOST_TENANTS, Tenant};
use steps::{LinkMoves, is_fault};

const NAME: &str = "fixed/dpu-multi-tenant";
/// As many faults as the world likes.
const UNLIMITED: u8 = 99;
const KEYS: [SizeKey; 5] = [
    SizeKey::new("nodes", "nodes that can be given away", 1, 1, MOST_NODES as u64),
    SizeKey::new("dpus", "DPUs of the rack", 1, 1, MOST_DPUS as u64),
    SizeKey::new("tenants", "tenants that nodes are given to", 1, 1, MOST_TENANTS as u64),
    SizeKey::new(
        "kinds",
        "kinds of faults: tenant, power, dpu, etcd, quorum, api, mgmt, mgmtnet, dpunet",
        9,
        0,
        9,
    ),
    SizeKey::new("faults", "faults in all; 99 is any number", UNLIMITED as u64, 0, 99),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a node returns to the pool only when each of its DPUs has released its record",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(DpuMultiTenant::from_size(size)?)),
};

/// The kinds of faults, in the order in which a size takes them in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Fault {
    Tenant,
    Power,
    Dpu,
    Etcd,
    Quorum,
    ApiServer,
    Management,
    ManagementNetwork,
    DpuNetwork,
}

/// What the correction insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// A node returns only when its tenant has no record of it left.
    pub return_when_released: bool,
    /// A DPU releases a record only when the node is out of its hardware.
    pub finalize_when_clean: bool,
    /// A record that is being deleted is not programmed.
    pub skip_deleting: bool,
    /// A tenant that comes back lists its nodes.
    pub list_on_recovery: bool,
    /// A tenant deletes the records of nodes that are reclaimed.
    pub clean_up: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        return_when_released: true,
        finalize_when_clean: true,
        skip_deleting: true,
        list_on_recovery: true,
        clean_up: true,
    };
}

/// The corrected model in some size.
#[derive(Debug, Clone)]
pub struct DpuMultiTenant {
    nodes: usize,
    dpus: usize,
    tenants: usize,
    kinds: u8,
    faults: u8,
    rules: Rules,
    numbering: Numbering,
    links: Vec<LinkMoves>,
}

impl DpuMultiTenant {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(DpuMultiTenant::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([nodes, dpus, tenants, kinds, faults]: [u8; 5], rules: Rules) -> Self {
        let (nodes, dpus, tenants) = (nodes.into(), dpus.into(), tenants.into());
        let numbering = Numbering::new(nodes, dpus, tenants);
        let links = Vec::new();
        let mut model =
            DpuMultiTenant { nodes, dpus, tenants, kinds, faults, rules, numbering, links };
        model.links = model.links();
        model
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    fn is_unlimited(&self) -> bool {
        self.faults == UNLIMITED
    }

    fn has(&self, fault: Fault) -> bool {
        (fault as u8) < self.kinds
    }

    /// Everything that can be up, up.
    fn all_up(&self) -> u16 {
        let last = Link::DpuNetwork.bit(self.tenants - 1);
        last | (last - 1)
    }

    /// The links that fail and recover as they like.
    fn flag_mask(&self) -> u64 {
        if !self.is_unlimited() {
            return 0;
        }
        self.links.iter().fold(0, |mask, link| mask | link.bits)
    }

    fn invariant(
        &self,
        name: &'static str,
        sentence: &'static str,
        holds: impl Fn(&State, &Tenant) -> bool + Send + Sync + 'static,
    ) -> Invariant<State> {
        let tenants = self.tenants;
        Invariant::new(name, sentence, move |s: &State| {
            s.tenants[..tenants].iter().all(|tenant| holds(s, tenant))
        })
    }
}

/// All nodes that are programmed for a tenant in some DPU.
fn programmed(tenant: &Tenant) -> u8 {
    tenant.programmed.iter().fold(0, |all, nodes| all | nodes)
}

/// Whether no node is in two of these sets.
fn are_disjoint(sets: impl Iterator<Item = u8>) -> bool {
    let mut seen = 0;
    for set in sets {
        if seen & set != 0 {
            return false;
        }
        seen |= set;
    }
    true
}

impl Model for DpuMultiTenant {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        let DpuMultiTenant { nodes, dpus, tenants, kinds, faults, .. } = self;
        format!("nodes={nodes},dpus={dpus},tenants={tenants},kinds={kinds},faults={faults}")
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        state.code(self, coder);
    }

    fn initial(&self) -> Vec<State> {
        vec![State::initial(self)]
    }

    fn actions(&self) -> Vec<Action> {
        self.numbering.actions()
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        for tenant in 0..self.tenants {
            self.management_steps(state, tenant, steps);
            self.tenant_steps(state, tenant, steps);
        }
        for dpu in 0..self.dpus {
            self.dpu_steps(state, dpu, steps);
        }
        self.power_steps(state, steps);
        self.link_steps(state, steps);
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        state.describe(self)
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        let (tenants, dpus) = (self.tenants, self.dpus);
        let all_nodes = (1 << self.nodes) - 1;
        let everywhere = "there is one rack, and every node is wired through every DPU";
        let isolation = Invariant::new(
            "TenantIsolation",
            "a node is programmed for at most one tenant, over all DPUs together",
            move |s: &State| are_disjoint(s.tenants[..tenants].iter().map(programmed)),
        );
        vec![
            if tenants == 1 { isolation.unbreakable("there is one tenant") } else { isolation },
            Invariant::new(
                "NodeSingleAssignment",
                "a node is in the pool or has one owner",
                move |s: &State| {
                    let owned = s.tenants[..tenants].iter().map(|tenant| tenant.nodes);
                    let all = owned.clone().fold(s.pool, |all, nodes| all | nodes);
                    all == all_nodes && are_disjoint(owned.chain([s.pool]))
                },
            ),
            Invariant::new("RackAffinity", "a node is programmed in its own rack only", |_| true)
                .unbreakable(everywhere),
            Invariant::new("DPUAffinity", "a node is programmed in its own DPUs only", |_| true)
                .unbreakable(everywhere),
            self.invariant(
                "HardwareIsOwned",
                "what is programmed for a tenant is assigned to it",
                |_, tenant| programmed(tenant) & !tenant.nodes == 0,
            ),
            self.invariant(
                "PoolIsClean",
                "of a node in the pool there is no record, and it is in no hardware",
                |s, tenant| s.pool & (tenant.records | programmed(tenant)) == 0,
            ),
            self.invariant(
                "FinalizersOK",
                "a record is there as long as some DPU holds it",
                move |_, tenant| {
                    let held = tenant.finalizers[..dpus].iter().fold(0, |all, held| all | held);
                    tenant.records_deleting & !tenant.records == 0 && held == tenant.records
                },
            ),
        ]
    }

    /// None while faults never stop: a world that fails for ever owes nothing.
    fn properties(&self) -> Vec<Property<State>> {
        if self.is_unlimited() {
            return Vec::new();
        }
        let pairs =
            (0..self.nodes).flat_map(|node| (0..self.tenants).map(move |tenant| (node, tenant)));
        let consistent = pairs.clone().map(|(node, t)| {
            let this = self.clone();
            Formula::leads_to(
                move |s: &State| s.tenants[t].nodes & (1 << node) != 0,
                move |s: &State| {
                    let Tenant { nodes, deleting, .. } = s.tenants[t];
                    let stays = nodes & !deleting & (1 << node) != 0;
                    !stays || s.is_programmed(&this, node, t)
                },
            )
        });
        let reclaimed = pairs.map(|(node, t)| {
            Formula::leads_to(
                move |s: &State| s.tenants[t].deleting & (1 << node) != 0,
                move |s: &State| s.pool & (1 << node) != 0,
            )
        });
        vec![
            Property::for_all(
                "EventualConsistency",
                "an assigned node is programmed in all its DPUs, or taken back",
                consistent,
            ),
            Property::for_all("ReclaimCompletes", "a reclaimed node returns", reclaimed),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        const FAIR: [Kind; 15] = [
            Kind::MgmtRecover,
            Kind::TenantRecover,
            Kind::EtcdUp,
            Kind::EtcdRegainQuorum,
            Kind::ApiServerUp,
            Kind::MgmtTenantHeal,
            Kind::TenantDpuHeal,
            Kind::TenantFlush,
            Kind::MgmtReturn,
            Kind::TenantWatch,
            Kind::PowerOn,
            Kind::DpuRecover,
            Kind::TenantCleanup,
            Kind::DpuReconcile,
            Kind::DpuFinalize,
        ];
        let all = self.actions();
        let instances = FAIR.into_iter().flat_map(|kind| self.numbering.all_of(kind));
        instances.map(|id| Fairness::weak(&*all[usize::from(id)].name, [id])).collect()
    }

    fn flags(&self) -> Vec<Flag> {
        if !self.is_unlimited() {
            return Vec::new();
        }
        let flag = |link: &LinkMoves| {
            let mut moves = link.moves.clone();
            // The specification has two ways to allow a fault when their number is not limited.
            moves.extend(link.moves.iter().filter(|change| is_fault(change)));
            Flag { name: link.name.clone(), bits: link.bits, moves }
        };
        self.links.iter().map(flag).collect()
    }

    fn flag_bits(&self, state: &State) -> u64 {
        u64::from(state.up) & self.flag_mask()
    }

    fn with_flag_bits(&self, state: &State, flags: u64) -> State {
        let up = u64::from(state.up) & !self.flag_mask() | flags;
        State { up: up as u16, ..state.clone() }
    }

    fn symmetries(&self) -> usize {
        arrangements(self.nodes) * arrangements(self.dpus) * arrangements(self.tenants) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        state.permuted(self, permutation + 1)
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(State::arbitrary(self, rng))
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let [nodes, dpus, tenants] = [self.nodes, self.dpus, self.tenants].map(|n| n as u8);
        let two_dpus =
            DpuMultiTenant::new([nodes, 2, tenants, self.kinds, self.faults], self.rules);
        // Only where faults end is there a promise that something happens.
        let crashing = DpuMultiTenant::new([nodes, dpus, tenants, 1, 1], self.rules);
        let faultless = DpuMultiTenant::new([nodes, dpus, tenants, 0, 0], self.rules);
        vec![
            Mutant::new(
                "early-return",
                "a node returns to the pool while its tenant still has its record",
                &["PoolIsClean"],
                self.without(|rules| rules.return_when_released = false),
            ),
            Mutant::new(
                "finalize-programmed",
                "a DPU releases a record while the node is in its hardware",
                &["HardwareIsOwned", "PoolIsClean"],
                self.without(|rules| rules.finalize_when_clean = false),
            ),
            Mutant::new(
                "program-deleting",
                "a DPU programs a record that it has released but another DPU still holds",
                &["HardwareIsOwned", "PoolIsClean"],
                two_dpus.without(|rules| rules.skip_deleting = false),
            ),
            Mutant::new(
                "recovers-empty",
                "a tenant that comes back waits for events that it has missed",
                &["EventualConsistency"],
                crashing.without(|rules| rules.list_on_recovery = false),
            ),
            Mutant::new(
                "never-cleans-up",
                "a tenant keeps the records of nodes that are reclaimed",
                &["ReclaimCompletes"],
                faultless.without(|rules| rules.clean_up = false),
            ),
        ]
    }
}
