//! The variables of the corrected model, how they are packed and how they are shown.

use super::DpuMultiTenant;
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{Coder, Rng};

pub(super) const MOST_NODES: usize = 3;
pub(super) const MOST_DPUS: usize = 2;
pub(super) const MOST_TENANTS: usize = 3;

/// A set of nodes, as a bit mask.
pub(super) type Nodes = u8;

pub(super) fn each(nodes: Nodes) -> impl Iterator<Item = usize> {
    (0..MOST_NODES).filter(move |node| nodes & (1 << node) != 0)
}

// What is up, as bits: the management controller, then five for each tenant.
pub(super) const MANAGEMENT: u16 = 1;
const OF_TENANT: u32 = 5;

/// A link or a server of one tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    ManagementNetwork,
    ApiServer,
    Etcd,
    Quorum,
    DpuNetwork,
}

impl Link {
    pub(super) fn bit(self, tenant: usize) -> u16 {
        1 << (1 + OF_TENANT * tenant as u32 + self as u32)
    }
}

/// A tenant's plane, and what the DPUs hold for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tenant {
    pub(super) nodes: Nodes,
    pub(super) deleting: Nodes,
    pub(super) events: Nodes,
    pub(super) buffer: Nodes,
    pub(super) is_down: bool,
    pub(super) records: Nodes,
    pub(super) records_deleting: Nodes,
    /// The records that each DPU still holds by its finalizer.
    pub(super) finalizers: [Nodes; MOST_DPUS],
    /// What each DPU has programmed.
    pub(super) programmed: [Nodes; MOST_DPUS],
}

/// The variables of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub(super) pool: Nodes,
    /// What is up: see [`MANAGEMENT`] and [`Link::bit`].
    pub(super) up: u16,
    pub(super) tenants: [Tenant; MOST_TENANTS],
    /// The DPUs that are online, as a bit mask.
    pub(super) online: u8,
    pub(super) is_powered: bool,
    pub(super) faults: u8,
}

fn width(most: u8) -> u32 {
    u8::BITS - most.leading_zeros()
}

impl State {
    pub(super) fn is_programmed(&self, model: &DpuMultiTenant, node: usize, tenant: usize) -> bool {
        let programmed = &self.tenants[tenant].programmed[..model.dpus];
        programmed.iter().all(|nodes| nodes & (1 << node) != 0)
    }

    pub(super) fn code(&mut self, model: &DpuMultiTenant, coder: &mut Coder) {
        let of_nodes = model.nodes as u32;
        coder.u8(&mut self.pool, of_nodes);
        coder.u16(&mut self.up, 1 + OF_TENANT * model.tenants as u32);
        for tenant in &mut self.tenants[..model.tenants] {
            coder.u8(&mut tenant.nodes, of_nodes);
            coder.u8(&mut tenant.deleting, of_nodes);
            coder.u8(&mut tenant.events, of_nodes);
            coder.u8(&mut tenant.buffer, of_nodes);
            coder.bool(&mut tenant.is_down);
            coder.u8(&mut tenant.records, of_nodes);
            coder.u8(&mut tenant.records_deleting, of_nodes);
            for d in 0..model.dpus {
                coder.u8(&mut tenant.finalizers[d], of_nodes);
                coder.u8(&mut tenant.programmed[d], of_nodes);
            }
        }
        coder.u8(&mut self.online, model.dpus as u32);
        coder.bool(&mut self.is_powered);
        if !model.is_unlimited() {
            coder.u8(&mut self.faults, width(model.faults));
        }
    }

    pub(super) fn initial(model: &DpuMultiTenant) -> State {
        State {
            pool: (1 << model.nodes) - 1,
            up: model.all_up(),
            online: (1 << model.dpus) - 1,
            is_powered: true,
            ..State::default()
        }
    }

    pub(super) fn describe(&self, model: &DpuMultiTenant) -> Vec<(&'static str, String)> {
        let tenants = |show: &dyn Fn(usize) -> String| {
            let one = |t: usize| format!("t{} |-> {}", t + 1, show(t));
            format!("[{}]", (0..model.tenants).map(one).collect::<Vec<_>>().join(", "))
        };
        let nodes = |of: &dyn Fn(&Tenant) -> Nodes| tenants(&|t| set(names(of(&self.tenants[t]))));
        let links = |link: Link| tenants(&|t| boolean(self.up & link.bit(t) != 0));
        let racks = |show: &dyn Fn(&Tenant) -> String| {
            let one =
                |t: usize| format!("<<\"r1\", \"t{}\">> :> {}", t + 1, show(&self.tenants[t]));
            format!("({})", (0..model.tenants).map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let finalizers = |tenant: &Tenant| {
            set((0..model.dpus).flat_map(|d| {
                let held = each(tenant.finalizers[d]);
                held.map(move |n| format!("<<\"n{}\", \"d{}\">>", n + 1, d + 1))
            }))
        };
        let hardware = (0..model.tenants).flat_map(|t| {
            (0..model.dpus).map(move |d| {
                let programmed = set(names(self.tenants[t].programmed[d]));
                format!("<<\"r1\", \"t{}\", \"d{}\">> :> {programmed}", t + 1, d + 1)
            })
        });
        let online = (0..model.dpus).map(|d| {
            format!("<<\"r1\", \"d{}\">> :> {}", d + 1, boolean(self.online & (1 << d) != 0))
        });
        vec![
            ("mgmt_nodes", set(names(self.pool))),
            ("mgmt_controller_up", boolean(self.up & MANAGEMENT != 0)),
            ("mgmt_tenant_network", links(Link::ManagementNetwork)),
            ("tenant_nodes", nodes(&|tenant| tenant.nodes)),
            ("tenant_deleting", nodes(&|tenant| tenant.deleting)),
            ("tenant_events", nodes(&|tenant| tenant.events)),
            ("tenant_buffer", nodes(&|tenant| tenant.buffer)),
            ("tenant_controller_up", tenants(&|t| boolean(!self.tenants[t].is_down))),
            ("tenant_apiserver_up", links(Link::ApiServer)),
            ("tenant_etcd_up", links(Link::Etcd)),
            ("tenant_etcd_quorum", links(Link::Quorum)),
            ("tenant_dpu_network", links(Link::DpuNetwork)),
            ("dpu_crs", racks(&|tenant| set(names(tenant.records)))),
            ("dpu_crs_deleting", racks(&|tenant| set(names(tenant.records_deleting)))),
            ("dpu_fin", racks(&finalizers)),
            ("dpu_hw", format!("({})", hardware.collect::<Vec<_>>().join(" @@ "))),
            ("dpu_online", format!("({})", online.collect::<Vec<_>>().join(" @@ "))),
            ("rack_power", format!("[r1 |-> {}]", boolean(self.is_powered))),
            ("faults", self.faults.to_string()),
        ]
    }

    /// The state with nodes, DPUs and tenants renamed, in the `number`-th way of all.
    pub(super) fn permuted(&self, model: &DpuMultiTenant, number: usize) -> State {
        let (of_nodes, of_dpus) = (arrangements(model.nodes), arrangements(model.dpus));
        let nodes: [_; MOST_NODES] = arrangement(model.nodes, number % of_nodes);
        let dpus: [_; MOST_DPUS] = arrangement(model.dpus, number / of_nodes % of_dpus);
        let tenants: [_; MOST_TENANTS] = arrangement(model.tenants, number / of_nodes / of_dpus);
        let rename = |set: Nodes| each(set).fold(0, |image, node| image | 1 << nodes[node]);
        let mut image = State { pool: rename(self.pool), online: 0, ..self.clone() };
        image.up = self.up & MANAGEMENT;
        let links = (1 << OF_TENANT) - 1;
        for t in 0..model.tenants {
            let old = &self.tenants[t];
            let place = |tenant: usize| 1 + OF_TENANT * tenant as u32;
            image.up |= (self.up >> place(t) & links) << place(tenants[t]);
            let new = &mut image.tenants[tenants[t]];
            *new = Tenant {
                nodes: rename(old.nodes),
                deleting: rename(old.deleting),
                events: rename(old.events),
                buffer: rename(old.buffer),
                is_down: old.is_down,
                records: rename(old.records),
                records_deleting: rename(old.records_deleting),
                ..Tenant::default()
            };
            for d in 0..model.dpus {
                new.finalizers[dpus[d]] = rename(old.finalizers[d]);
                new.programmed[dpus[d]] = rename(old.programmed[d]);
            }
        }
        for (d, new) in dpus.into_iter().enumerate().take(model.dpus) {
            image.online |= (self.online >> d & 1) << new;
        }
        image
    }

    pub(super) fn arbitrary(model: &DpuMultiTenant, rng: &mut Rng) -> State {
        let nodes = |rng: &mut Rng| rng.below(1 << model.nodes) as Nodes;
        let most_faults = if model.is_unlimited() { 0 } else { model.faults };
        let mut state = State {
            pool: nodes(rng),
            up: rng.below(usize::from(model.all_up()) + 1) as u16,
            online: rng.below(1 << model.dpus) as u8,
            is_powered: rng.flip(),
            faults: rng.below(usize::from(most_faults) + 1) as u8,
            ..State::default()
        };
        for tenant in &mut state.tenants[..model.tenants] {
            *tenant = Tenant {
                nodes: nodes(rng),
                deleting: nodes(rng),
                events: nodes(rng),
                buffer: nodes(rng),
                is_down: rng.flip(),
                records: nodes(rng),
                records_deleting: nodes(rng),
                ..Tenant::default()
            };
            for d in 0..model.dpus {
                tenant.finalizers[d] = nodes(rng);
                tenant.programmed[d] = nodes(rng);
            }
        }
        state
    }
}

fn boolean(value: bool) -> String {
    if value { "TRUE" } else { "FALSE" }.to_owned()
}

fn names(nodes: Nodes) -> impl Iterator<Item = String> {
    each(nodes).map(|node| format!("\"n{}\"", node + 1))
}

fn set(members: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}
