//! dpu_multi_tenant as written: management hands nodes to tenants, tenants write records, DPUs program
//! hardware from them; every part may fail. `specs/seed/dpu_multi_tenant.tla` is the text it follows.

mod action;
mod layout;
mod promises;
mod steps;
mod topology;

use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Flag, Invariant, Model, Mutant, Property, Reachable,
    Rng, Size, SizeError, SizeKey, Steps,
};
use layout::Layout;
use topology::Topology;

const NAME: &str = "seed/dpu-multi-tenant";
const KEYS: [SizeKey; 4] = [
    SizeKey::new("nodes", "physical nodes", 2, 1, 6),
    SizeKey::new("racks", "racks", 1, 1, 3),
    SizeKey::new("dpus", "DPUs in each rack", 1, 1, 3),
    SizeKey::new("tenants", "tenants", 1, 1, 4),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "nodes are assigned to tenants and programmed into DPUs; everything may fail",
    keys: &KEYS,
    words: &[
        ("faults", "none, core (crashes and power) or all (networks, API servers and etcd too)"),
        ("topology", "node by node: n1@r1:r1/d1+r1/d2 n2@r1:r1/d1"),
    ],
    seed_config: Some("nodes=3,dpus=2,tenants=2,faults=all"),
    build: |size| Ok(Box::new(DpuMultiTenant::from_size(size)?)),
};

/// Which failures there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Faults {
    /// Nothing fails.
    None,
    /// Those that touch data: controllers and DPUs crash, racks lose power.
    Core,
    /// Networks, API servers, etcd and the management controller too.
    All,
}

/// A state in bits; [`Layout`] says where everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State(u64);

/// The model, for some topology.
#[derive(Debug, Clone)]
pub struct DpuMultiTenant {
    topology: Topology,
    faults: Faults,
    layout: Layout,
    /// Guards that a mutant leaves out.
    guards: Guards,
}

/// The two guards that the seed's authors added after their races.
#[derive(Debug, Clone, Copy)]
struct Guards {
    /// MgmtReclaim waits until no hardware has the node.
    reclaim_waits_for_hardware: bool,
    /// DPUReconcile leaves records alone that are queued for deletion.
    reconcile_skips_deletions: bool,
}

impl DpuMultiTenant {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let mut size = size.clone();
        let faults = match size.take_word("faults").as_deref() {
            None | Some("all") => Faults::All,
            Some("core") => Faults::Core,
            Some("none") => Faults::None,
            Some(other) => {
                let text = format!("`faults={other}` means nothing: none, core or all");
                return Err(SizeError::Meaningless(text));
            }
        };
        let topology = size.take_word("topology");
        let [nodes, racks, dpus, tenants] = size.numbers(NAME, &KEYS)?.map(|n| n as usize);
        let topology = match topology {
            Some(text) => Topology::parse(&text, racks, dpus, tenants)?,
            None => Topology::usual(nodes, racks, dpus, tenants),
        };
        Self::new(topology, faults)
    }

    /// The seed's own configuration, which its authors could only sample.
    pub fn seed_config() -> Result<Self, SizeError> {
        Self::new(Topology::usual(3, 1, 2, 2), Faults::All)
    }

    fn new(topology: Topology, faults: Faults) -> Result<Self, SizeError> {
        let layout = Layout::new(&topology)?;
        let guards = Guards { reclaim_waits_for_hardware: true, reconcile_skips_deletions: true };
        Ok(DpuMultiTenant { topology, faults, layout, guards })
    }

    fn family(&self, family: &str) -> Vec<ActionId> {
        let of_family = |(_, action): &(usize, Action)| action.family() == family;
        self.actions()
            .into_iter()
            .enumerate()
            .filter(of_family)
            .map(|(id, _)| id as ActionId)
            .collect()
    }
}

impl Model for DpuMultiTenant {
    type State = State;
    type Packed = u64;

    fn covers(&self) -> interlock_checker::Covers {
        interlock_checker::Covers::Seed
    }

    fn size(&self) -> String {
        let faults = match self.faults {
            Faults::None => "none",
            Faults::Core => "core",
            Faults::All => "all",
        };
        format!("{},faults={faults}", self.topology)
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        promises::explain(name)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        coder.u64(&mut state.0, 64);
    }

    #[inline]
    fn pack(&self, state: &State) -> u64 {
        state.0
    }

    #[inline]
    fn unpack(&self, packed: &u64) -> State {
        State(*packed)
    }

    fn initial(&self) -> Vec<State> {
        vec![self.layout.initial(&self.topology)]
    }

    fn actions(&self) -> Vec<Action> {
        action::actions(self.layout.nodes, self.layout.racks, self.layout.dpus, self.layout.tenants)
    }

    #[inline]
    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.normal_steps(*state, steps);
        if self.faults >= Faults::Core {
            self.core_faults(*state, steps);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        self.layout.describe(*state)
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        promises::invariants(self)
    }

    fn reachable(&self) -> Vec<Reachable<State>> {
        promises::reachable(self)
    }

    fn properties(&self) -> Vec<Property<State>> {
        promises::properties(self)
    }

    fn fairness(&self) -> Vec<Fairness> {
        let weak =
            ["TenantWatch", "TenantFlush", "DPUReconcile", "TenantCleanup", "ProcessCRDeletion"];
        let strong = [
            "TenantRecover",
            "MgmtRecover",
            "ApiServerUp",
            "EtcdUp",
            "EtcdRegainQuorum",
            "PowerOn",
            "DPURecover",
            "MgmtTenantHeal",
            "TenantDPUHeal",
        ];
        let weak = weak.iter().map(|name| Fairness::weak(*name, self.family(name)));
        let strong = strong.iter().map(|name| Fairness::strong(*name, self.family(name)));
        weak.chain(strong).collect()
    }

    fn may_rest(&self, _state: &State) -> bool {
        // Without faults the seed ends in states where nothing is left to do; that is no defect.
        self.faults == Faults::None
    }

    fn flags(&self) -> Vec<Flag> {
        if self.faults < Faults::All { Vec::new() } else { self.layout.flags(&self.topology) }
    }

    #[inline]
    fn flag_bits(&self, state: &State) -> u64 {
        state.0 & self.layout.flag_mask
    }

    #[inline]
    fn with_flag_bits(&self, state: &State, flags: u64) -> State {
        State(state.0 & !self.layout.flag_mask | flags)
    }

    fn symmetries(&self) -> usize {
        self.layout.permutations.len()
    }

    #[inline]
    fn permute(&self, state: &State, permutation: usize) -> State {
        self.layout.permute(*state, permutation)
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(State(rng.bits() & self.layout.all_bits))
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        // A race is between two tenants: with one alone there is nothing to lose.
        let topology = Topology { tenants: self.topology.tenants.max(2), ..self.topology.clone() };
        let Ok(model) = DpuMultiTenant::new(topology, self.faults) else { return Vec::new() };
        let with = |guards: Guards| DpuMultiTenant { guards, ..model.clone() };
        vec![
            Mutant::new(
                "reclaim-ignores-hardware",
                "MgmtReclaim gives a node back while DPUs still have it (the seed's first race)",
                &["TenantIsolation"],
                with(Guards { reclaim_waits_for_hardware: false, ..self.guards }),
            ),
            Mutant::new(
                "reconcile-ignores-deletions",
                "DPUReconcile programs records that are queued for deletion (the seed's second race)",
                &["TenantIsolation"],
                with(Guards { reconcile_skips_deletions: false, ..self.guards }),
            ),
        ]
    }
}

#[cfg(test)]
mod tests;
