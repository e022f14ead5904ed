//! Where each variable of the seed is in the 64 bits of a state, and the names of its actions.
//!
//! From the lowest bit: the flags, then one block for each tenant, then what is shared. A tenant's
//! variables stand together, so that two tenants change places by swapping two blocks.

use super::State;
use super::action::{Family, bases};
use super::topology::Topology;
use interlock_checker::{ActionId, Flag, FlagMove, SizeError};

/// Flags of one tenant, in this order.
pub(super) const MGMT_NETWORK: u32 = 0;
pub(super) const APISERVER: u32 = 1;
pub(super) const ETCD: u32 = 2;
pub(super) const QUORUM: u32 = 3;
pub(super) const DPU_NETWORK: u32 = 4;
const TENANT_FLAGS: u32 = 5;

/// Positions, widths and masks.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) nodes: usize,
    pub(super) racks: usize,
    pub(super) dpus: usize,
    pub(super) tenants: usize,
    /// The bits of one set of nodes.
    pub(super) node_mask: u64,
    pub(super) flag_mask: u64,
    pub(super) all_bits: u64,
    first_block: u32,
    block: u32,
    shared: u32,
    /// Every arrangement of the tenants but the identity.
    pub(super) permutations: Vec<Vec<usize>>,
    /// For each DPU (rack, dpu): the nodes that belong to it.
    members: Vec<u64>,
    /// For each rack: the nodes in it.
    in_rack: Vec<u64>,
    /// The first action id of each family.
    bases: Vec<ActionId>,
}

impl Layout {
    pub(super) fn new(topology: &Topology) -> Result<Self, SizeError> {
        let Topology { racks, dpus, tenants, .. } = *topology;
        let nodes = topology.nodes.len();
        let first_block = 1 + TENANT_FLAGS * tenants as u32;
        let block = (nodes * (3 + racks * (2 + dpus)) + 1) as u32;
        let shared = first_block + block * tenants as u32;
        let bits = shared + (nodes + racks * dpus + racks) as u32;
        if bits > 64 {
            return Err(SizeError::Meaningless(format!(
                "a state of this size needs {bits} bits and there are 64: take fewer nodes, \
                 DPUs or tenants"
            )));
        }
        let set = |belongs: &dyn Fn(&super::topology::Node) -> bool| {
            topology.nodes.iter().rev().fold(0, |set, node| set << 1 | u64::from(belongs(node)))
        };
        let members = (0..racks * dpus)
            .map(|at| set(&|node| node.dpus.contains(&(at / dpus, at % dpus))))
            .collect();
        let in_rack = (0..racks).map(|rack| set(&|node| node.rack == rack)).collect();
        Ok(Layout {
            nodes,
            racks,
            dpus,
            tenants,
            node_mask: (1 << nodes) - 1,
            flag_mask: (1 << first_block) - 1,
            all_bits: if bits == 64 { u64::MAX } else { (1 << bits) - 1 },
            first_block,
            block,
            shared,
            permutations: arrangements(tenants),
            members,
            in_rack,
            bases: bases(nodes, racks, dpus, tenants),
        })
    }

    #[inline]
    fn tenant(&self, t: usize) -> u32 {
        self.first_block + self.block * t as u32
    }
    #[inline]
    pub(super) fn tenant_nodes(&self, t: usize) -> u32 {
        self.tenant(t)
    }
    #[inline]
    pub(super) fn tenant_events(&self, t: usize) -> u32 {
        self.tenant(t) + self.nodes as u32
    }
    #[inline]
    pub(super) fn tenant_buffer(&self, t: usize) -> u32 {
        self.tenant(t) + 2 * self.nodes as u32
    }
    #[inline]
    pub(super) fn crs(&self, r: usize, t: usize) -> u32 {
        self.tenant(t) + (self.nodes * (3 + r)) as u32
    }
    #[inline]
    pub(super) fn queue(&self, r: usize, t: usize) -> u32 {
        self.tenant(t) + (self.nodes * (3 + self.racks + r)) as u32
    }
    #[inline]
    pub(super) fn hw(&self, r: usize, t: usize, d: usize) -> u32 {
        self.tenant(t) + (self.nodes * (3 + 2 * self.racks + r * self.dpus + d)) as u32
    }
    #[inline]
    pub(super) fn controller(&self, t: usize) -> u32 {
        self.tenant(t) + self.block - 1
    }
    #[inline]
    pub(super) fn mgmt_nodes(&self) -> u32 {
        self.shared
    }
    #[inline]
    pub(super) fn online(&self, r: usize, d: usize) -> u32 {
        self.shared + (self.nodes + r * self.dpus + d) as u32
    }
    #[inline]
    pub(super) fn power(&self, r: usize) -> u32 {
        self.shared + (self.nodes + self.racks * self.dpus + r) as u32
    }
    /// The flag of a tenant, as a bit of the state.
    #[inline]
    pub(super) fn flag(&self, t: usize, which: u32) -> u64 {
        1 << (1 + TENANT_FLAGS * t as u32 + which)
    }
    /// mgmt_controller_up
    #[inline]
    pub(super) fn mgmt_up(&self) -> u64 {
        1
    }
    /// The nodes that belong to a DPU.
    #[inline]
    pub(super) fn members(&self, r: usize, d: usize) -> u64 {
        self.members[r * self.dpus + d]
    }
    #[inline]
    pub(super) fn in_rack(&self, r: usize) -> u64 {
        self.in_rack[r]
    }

    pub(super) fn initial(&self, topology: &Topology) -> State {
        let mut state = self.flag_mask | self.node_mask << self.mgmt_nodes();
        for t in 0..topology.tenants {
            state |= 1 << self.controller(t);
        }
        for r in 0..self.racks {
            state |= 1 << self.power(r);
            for d in 0..self.dpus {
                state |= 1 << self.online(r, d);
            }
        }
        State(state)
    }

    /// The state with tenant `order[t]` where tenant t was.
    #[inline]
    pub(super) fn permute(&self, state: State, permutation: usize) -> State {
        let order = &self.permutations[permutation];
        let block = (1 << self.block) - 1;
        let flags = (1 << TENANT_FLAGS) - 1;
        let mut image = state.0 & (1 | !((1 << self.shared) - 1));
        for (t, from) in order.iter().enumerate() {
            image |= (state.0 >> self.tenant(*from) & block) << self.tenant(t);
            let (to, from) = (1 + TENANT_FLAGS * t as u32, 1 + TENANT_FLAGS * *from as u32);
            image |= (state.0 >> from & flags) << to;
        }
        State(image)
    }
}

fn arrangements(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for _ in 0..count {
        all = all
            .into_iter()
            .flat_map(|head: Vec<usize>| {
                (0..count)
                    .filter(|t| !head.contains(t))
                    .map(|t| [&head[..], &[t]].concat())
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    all.retain(|order| !order.is_sorted());
    all
}

/// The action ids and the flags.
impl Layout {
    /// The id of an action by its place among those of its family.
    #[inline]
    pub(super) fn action(&self, family: Family, place: usize) -> ActionId {
        self.bases[family as usize] + place as ActionId
    }

    /// The flags that change as they like: see the seed's failures that touch no data.
    pub(super) fn flags(&self, topology: &Topology) -> Vec<Flag> {
        let action = |family, t| self.action(family, t);
        let mut flags = vec![Flag::up_down(
            "mgmt_controller_up",
            self.mgmt_up(),
            action(Family::MgmtCrash, 0),
            action(Family::MgmtRecover, 0),
        )];
        for t in 0..topology.tenants {
            let tenant = t + 1;
            flags.push(Flag::up_down(
                format!("mgmt_tenant_network[t{tenant}]"),
                self.flag(t, MGMT_NETWORK),
                action(Family::MgmtTenantPartition, t),
                action(Family::MgmtTenantHeal, t),
            ));
            flags.push(Flag::up_down(
                format!("tenant_apiserver_up[t{tenant}]"),
                self.flag(t, APISERVER),
                action(Family::ApiServerDown, t),
                action(Family::ApiServerUp, t),
            ));
            let (up, quorum) = (self.flag(t, ETCD), self.flag(t, QUORUM));
            let change = |from, to, family| FlagMove { from, to, action: action(family, t) };
            flags.push(Flag {
                name: format!("tenant_etcd_up, tenant_etcd_quorum[t{tenant}]"),
                bits: up | quorum,
                moves: vec![
                    change(up | quorum, 0, Family::EtcdDown),
                    change(up, 0, Family::EtcdDown),
                    change(0, up | quorum, Family::EtcdUp),
                    change(up | quorum, up, Family::EtcdLoseQuorum),
                    change(up, up | quorum, Family::EtcdRegainQuorum),
                ],
            });
            flags.push(Flag::up_down(
                format!("tenant_dpu_network[t{tenant}]"),
                self.flag(t, DPU_NETWORK),
                action(Family::TenantDPUPartition, t),
                action(Family::TenantDPUHeal, t),
            ));
        }
        flags
    }
}

/// A state as TLA+ would print it.
impl Layout {
    pub(super) fn describe(&self, state: State) -> Vec<(&'static str, String)> {
        let set = |at: u32| {
            let members = (0..self.nodes).filter(|n| state.0 >> at >> n & 1 == 1);
            let members: Vec<_> = members.map(|n| format!("\"n{}\"", n + 1)).collect();
            format!("{{{}}}", members.join(", "))
        };
        let truth = |bit: u64| if state.0 & bit == 0 { "FALSE" } else { "TRUE" }.to_owned();
        let by_tenant = |value: &dyn Fn(usize) -> String| {
            let parts: Vec<_> =
                (0..self.tenants).map(|t| format!("t{} |-> {}", t + 1, value(t))).collect();
            format!("[{}]", parts.join(", "))
        };
        let flag = |which| by_tenant(&|t| truth(self.flag(t, which)));
        let map = |parts: Vec<String>| format!("({})", parts.join(" @@ "));
        let by_rack_tenant = |value: &dyn Fn(usize, usize) -> String| {
            let pairs = (0..self.racks).flat_map(|r| (0..self.tenants).map(move |t| (r, t)));
            map(pairs
                .map(|(r, t)| format!("<<\"r{}\", \"t{}\">> :> {}", r + 1, t + 1, value(r, t)))
                .collect())
        };
        let by_dpu = |value: &dyn Fn(usize, usize) -> Vec<String>| {
            let pairs = (0..self.racks).flat_map(|r| (0..self.dpus).map(move |d| (r, d)));
            map(pairs.flat_map(|(r, d)| value(r, d)).collect())
        };
        vec![
            ("mgmt_nodes", set(self.mgmt_nodes())),
            ("mgmt_controller_up", truth(self.mgmt_up())),
            ("mgmt_tenant_network", flag(MGMT_NETWORK)),
            ("tenant_nodes", by_tenant(&|t| set(self.tenant_nodes(t)))),
            ("tenant_events", by_tenant(&|t| set(self.tenant_events(t)))),
            ("tenant_buffer", by_tenant(&|t| set(self.tenant_buffer(t)))),
            ("tenant_controller_up", by_tenant(&|t| truth(1 << self.controller(t)))),
            ("tenant_apiserver_up", flag(APISERVER)),
            ("tenant_etcd_up", flag(ETCD)),
            ("tenant_etcd_quorum", flag(QUORUM)),
            ("tenant_dpu_network", flag(DPU_NETWORK)),
            ("dpu_crs", by_rack_tenant(&|r, t| set(self.crs(r, t)))),
            ("dpu_crs_delete_queue", by_rack_tenant(&|r, t| set(self.queue(r, t)))),
            (
                "dpu_hw",
                by_dpu(&|r, d| {
                    let one = |t: usize| {
                        let index = format!("<<\"r{}\", \"t{}\", \"d{}\">>", r + 1, t + 1, d + 1);
                        format!("{index} :> {}", set(self.hw(r, t, d)))
                    };
                    (0..self.tenants).map(one).collect()
                }),
            ),
            (
                "dpu_online",
                by_dpu(&|r, d| {
                    let value = truth(1 << self.online(r, d));
                    vec![format!("<<\"r{}\", \"d{}\">> :> {value}", r + 1, d + 1)]
                }),
            ),
            (
                "rack_power",
                format!(
                    "[{}]",
                    (0..self.racks)
                        .map(|r| format!("r{} |-> {}", r + 1, truth(1 << self.power(r))))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            ),
        ]
    }
}
