//! What the seed promises, as it promises it.

use super::{DpuMultiTenant, State};
use interlock_checker::{Formula, Invariant, Property, Reachable};

const ONE_TENANT: &str = "with one tenant there is no other to share a node with";

/// One sentence on each finding.
pub(super) fn explain(name: &str) -> Option<&'static str> {
    match name {
        "EventualConsistency" => Some(
            "`[](assigned) => <>(programmed)` speaks of the first state only, where no node is assigned: \
             it would hold of any system",
        ),
        "ProgrammedCanBeReclaimed" => Some(
            "MgmtReclaim waits for hardware that only a crash or a power loss ever clears, since DPUs \
             remove a node only after it was reclaimed",
        ),
        "AssignedIsProgrammed" => Some(
            "fairness is promised to no single tenant or node; and even where every step is taken, a \
             deletion queued for an earlier assignment removes the record of the present one",
        ),
        "ConfigurationConsistency" => Some(
            "the topology names a DPU outside of the node's own rack, or one that does not exist",
        ),
        _ => None,
    }
}

pub(super) fn invariants(model: &DpuMultiTenant) -> Vec<Invariant<State>> {
    let (isolation, single, rack, dpu) =
        (model.clone(), model.clone(), model.clone(), model.clone());
    let consistent = model.topology.is_consistent();
    let (at, tenants) = (&model.layout, model.layout.tenants);
    let every_dpu_has_all =
        (0..at.racks).all(|r| (0..at.dpus).all(|d| at.members(r, d) == at.node_mask));
    vec![
        Invariant::new(
            "TenantIsolation",
            "no node is in the hardware of two tenants on one DPU",
            move |s: &State| isolation.is_isolated(s.0),
        )
        .unbreakable_if(tenants == 1, ONE_TENANT),
        Invariant::new(
            "NodeSingleAssignment",
            "no node is assigned to two tenants",
            move |s: &State| {
                let at = &single.layout;
                let mut seen = 0;
                (0..at.tenants).all(|t| {
                    let nodes = s.0 >> at.tenant_nodes(t) & at.node_mask;
                    let is_new = seen & nodes == 0;
                    seen |= nodes;
                    is_new
                })
            },
        )
        .unbreakable_if(tenants == 1, ONE_TENANT),
        Invariant::new(
            "RackAffinity",
            "hardware has only nodes of its own rack",
            move |s: &State| rack.hardware_within(s.0, |at, r, _| at.in_rack(r)),
        )
        .unbreakable_if(model.layout.racks == 1, "with one rack no node can be in another"),
        Invariant::new(
            "DPUAffinity",
            "a DPU has only nodes that belong to it",
            move |s: &State| dpu.hardware_within(s.0, |at, r, d| at.members(r, d)),
        )
        .unbreakable_if(every_dpu_has_all, "every node belongs to every DPU there is"),
        Invariant::new(
            "ConfigurationConsistency",
            "every DPU of a node exists and is in the node's rack",
            move |_: &State| consistent,
        )
        .unbreakable("it speaks of the topology, which no step changes"),
    ]
}

pub(super) fn reachable(model: &DpuMultiTenant) -> Vec<Reachable<State>> {
    let model = model.clone();
    vec![Reachable::new("Programmed", "some node is programmed into some DPU", move |s: &State| {
        model.programmed(s.0) != 0
    })]
}

pub(super) fn properties(model: &DpuMultiTenant) -> Vec<Property<State>> {
    let pairs: Vec<(usize, usize)> = (0..model.layout.nodes)
        .flat_map(|n| (0..model.layout.tenants).map(move |t| (n, t)))
        .collect();
    let assigned = |n: usize, t: usize| {
        let at = model.layout.tenant_nodes(t) as usize + n;
        move |s: &State| s.0 >> at & 1 == 1
    };
    let programmed = |n: usize, t: usize| {
        let model = model.clone();
        move |s: &State| model.is_programmed(s.0, n, t)
    };
    vec![
        Property::for_all(
            "EventualConsistency",
            "a node that stays assigned is programmed in the end (as the seed writes it)",
            pairs.iter().map(|(n, t)| {
                Formula::always_implies_eventually(assigned(*n, *t), programmed(*n, *t))
            }),
        ),
        Property::for_all(
            "AssignedIsProgrammed",
            "a node that stays assigned is programmed in the end (as the seed means it)",
            pairs
                .iter()
                .map(|(n, t)| Formula::always_leads_to(assigned(*n, *t), programmed(*n, *t))),
        ),
        Property::for_all(
            "ProgrammedCanBeReclaimed",
            "a programmed node does not stay programmed for ever (ours: the way back to the pool)",
            pairs.iter().map(|(n, t)| {
                let is_programmed = programmed(*n, *t);
                Formula::always_eventually(move |s: &State| !is_programmed(s))
            }),
        ),
    ]
}

impl DpuMultiTenant {
    fn is_isolated(&self, state: u64) -> bool {
        let at = &self.layout;
        for r in 0..at.racks {
            for d in 0..at.dpus {
                let mut seen = 0;
                for t in 0..at.tenants {
                    let nodes = state >> at.hw(r, t, d) & at.node_mask;
                    if seen & nodes != 0 {
                        return false;
                    }
                    seen |= nodes;
                }
            }
        }
        true
    }

    fn hardware_within(
        &self,
        state: u64,
        allowed: impl Fn(&super::Layout, usize, usize) -> u64,
    ) -> bool {
        let at = &self.layout;
        (0..at.tenants).all(|t| {
            (0..at.racks).all(|r| {
                (0..at.dpus).all(|d| {
                    let nodes = state >> at.hw(r, t, d) & at.node_mask;
                    nodes & !allowed(at, r, d) == 0
                })
            })
        })
    }

    /// In all DPUs of the node.
    fn is_programmed(&self, state: u64, node: usize, tenant: usize) -> bool {
        let at = &self.layout;
        (0..at.racks).all(|r| {
            (0..at.dpus).all(|d| {
                let belongs = at.members(r, d) >> node & 1 == 1;
                !belongs || state >> at.hw(r, tenant, d) as usize >> node & 1 == 1
            })
        })
    }
}
