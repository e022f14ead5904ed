//! The steps of the corrected model.

use super::actions::{About, Kind};
use super::state::{Link, MANAGEMENT, MOST_DPUS, State, Tenant, each};
use super::{DpuMultiTenant, Fault};
use interlock_checker::{ActionId, FlagMove, Steps};

/// How a link or a server fails and recovers.
#[derive(Debug, Clone)]
pub(super) struct LinkMoves {
    pub(super) name: String,
    pub(super) bits: u64,
    pub(super) moves: Vec<FlagMove>,
}

/// A change that takes something down.
pub(super) fn is_fault(change: &FlagMove) -> bool {
    change.from & !change.to != 0
}

/// The API server answers.
fn reads(tenant: usize) -> u16 {
    Link::ApiServer.bit(tenant) | Link::Etcd.bit(tenant)
}

/// The API server takes writes.
fn writes(tenant: usize) -> u16 {
    reads(tenant) | Link::Quorum.bit(tenant)
}

/// What happens, and the state after it.
struct Step {
    action: ActionId,
    to: State,
}

impl DpuMultiTenant {
    /// A step that needs these links: with unlimited faults they are flags, and the engine asks.
    fn offer(&self, state: &State, needs: u16, step: Step, steps: &mut Steps<State>) {
        let Step { action, to } = step;
        if self.is_unlimited() {
            return steps.step_while(u64::from(needs) & self.flag_mask(), action, to);
        }
        if needs & !state.up == 0 {
            steps.step(action, to);
        }
    }

    fn with_tenant(&self, state: &State, t: usize, change: impl FnOnce(&mut Tenant)) -> State {
        let mut next = state.clone();
        change(&mut next.tenants[t]);
        next
    }

    pub(super) fn management_steps(&self, state: &State, t: usize, steps: &mut Steps<State>) {
        let needs = MANAGEMENT | Link::ManagementNetwork.bit(t) | writes(t);
        let tenant = &state.tenants[t];
        for node in each(state.pool) {
            let mut next = self.with_tenant(state, t, |tenant| {
                tenant.nodes |= 1 << node;
                tenant.events |= 1 << node;
            });
            next.pool &= !(1 << node);
            let action = self.numbering.of_tenant(Kind::MgmtAssign, t);
            self.offer(state, needs, Step { action, to: next }, steps);
        }
        for node in each(tenant.nodes & !tenant.deleting) {
            let next = self.with_tenant(state, t, |tenant| tenant.deleting |= 1 << node);
            let action = self.numbering.of_tenant(Kind::MgmtReclaim, t);
            self.offer(state, needs, Step { action, to: next }, steps);
        }
        for node in each(tenant.deleting) {
            let is_released = tenant.records & (1 << node) == 0;
            let ways = u8::from(is_released) + u8::from(!self.rules.return_when_released);
            for _ in 0..ways {
                let mut next = self.with_tenant(state, t, |tenant| {
                    tenant.nodes &= !(1 << node);
                    tenant.deleting &= !(1 << node);
                    tenant.events &= !(1 << node);
                });
                next.pool |= 1 << node;
                let about = About { tenant: t, node, ..About::default() };
                let action = self.numbering.id(Kind::MgmtReturn, about);
                self.offer(state, needs, Step { action, to: next }, steps);
            }
        }
    }

    pub(super) fn tenant_steps(&self, state: &State, t: usize, steps: &mut Steps<State>) {
        let tenant = &state.tenants[t];
        let id = |kind| self.numbering.of_tenant(kind, t);
        if tenant.is_down {
            let next = self.with_tenant(state, t, |tenant| {
                tenant.is_down = false;
                let listed = tenant.nodes & !tenant.deleting;
                tenant.buffer = if self.rules.list_on_recovery { listed } else { 0 };
            });
            return self.offer(
                state,
                reads(t),
                Step { action: id(Kind::TenantRecover), to: next },
                steps,
            );
        }
        for node in each(tenant.events) {
            let next = self.with_tenant(state, t, |tenant| {
                tenant.buffer |= 1 << node;
                tenant.events &= !(1 << node);
            });
            let about = About { tenant: t, node, ..About::default() };
            let action = self.numbering.id(Kind::TenantWatch, about);
            self.offer(state, reads(t), Step { action, to: next }, steps);
        }
        if tenant.buffer != 0 {
            let wanted = tenant.buffer & tenant.nodes & !tenant.deleting;
            let new = wanted & !tenant.records;
            let next = self.with_tenant(state, t, |tenant| {
                tenant.records |= new;
                for finalizers in &mut tenant.finalizers[..self.dpus] {
                    *finalizers |= new;
                }
                tenant.buffer = 0;
            });
            self.offer(state, writes(t), Step { action: id(Kind::TenantFlush), to: next }, steps);
        }
        let stale = tenant.records & tenant.deleting & !tenant.records_deleting;
        if stale != 0 && self.rules.clean_up {
            let next = self.with_tenant(state, t, |tenant| tenant.records_deleting |= stale);
            self.offer(state, writes(t), Step { action: id(Kind::TenantCleanup), to: next }, steps);
        }
        for next in self.failures(state, Fault::Tenant) {
            let next = self.with_tenant(&next, t, |tenant| {
                tenant.is_down = true;
                tenant.buffer = 0;
            });
            steps.step(id(Kind::TenantCrash), next);
        }
    }

    pub(super) fn dpu_steps(&self, state: &State, dpu: usize, steps: &mut Steps<State>) {
        let about = About { dpu, ..About::default() };
        let id = |kind| self.numbering.id(kind, about);
        if !state.is_powered {
            return;
        }
        if state.online & (1 << dpu) == 0 {
            let next = State { online: state.online | 1 << dpu, ..state.clone() };
            return steps.step(id(Kind::DpuRecover), next);
        }
        for tenant in 0..self.tenants {
            for node in 0..self.nodes {
                self.program_steps(state, About { dpu, tenant, node }, steps);
            }
        }
        for failed in self.failures(state, Fault::Dpu) {
            let mut next = State { online: state.online & !(1 << dpu), ..failed };
            // The table may or may not survive the crash.
            steps.step(id(Kind::DpuCrash), next.clone());
            for tenant in &mut next.tenants {
                tenant.programmed[dpu] = 0;
            }
            steps.step(id(Kind::DpuCrash), next);
        }
    }

    /// One DPU, one tenant, one node: program or remove it, and release its record.
    fn program_steps(&self, state: &State, about: About, steps: &mut Steps<State>) {
        let About { dpu, tenant: t, node } = about;
        let (tenant, node) = (&state.tenants[t], 1 << node);
        let skipped = if self.rules.skip_deleting { tenant.records_deleting } else { 0 };
        let is_wanted = tenant.records & !skipped & node != 0;
        let is_programmed = tenant.programmed[dpu] & node != 0;
        let network = Link::DpuNetwork.bit(t);
        if is_wanted != is_programmed {
            let next = self.with_tenant(state, t, |tenant| tenant.programmed[dpu] ^= node);
            let action = self.numbering.id(Kind::DpuReconcile, about);
            self.offer(state, network | reads(t), Step { action, to: next }, steps);
        }
        let is_held = tenant.records_deleting & tenant.finalizers[dpu] & node != 0;
        if is_held && (!is_programmed || !self.rules.finalize_when_clean) {
            let next = self.with_tenant(state, t, |tenant| {
                tenant.finalizers[dpu] &= !node;
                if tenant.finalizers[..self.dpus].iter().all(|held| held & node == 0) {
                    tenant.records &= !node;
                    tenant.records_deleting &= !node;
                }
            });
            let action = self.numbering.id(Kind::DpuFinalize, about);
            self.offer(state, network | writes(t), Step { action, to: next }, steps);
        }
    }

    pub(super) fn power_steps(&self, state: &State, steps: &mut Steps<State>) {
        let id = |kind| self.numbering.id(kind, About::default());
        if !state.is_powered {
            let next = State { is_powered: true, online: (1 << self.dpus) - 1, ..state.clone() };
            return steps.step(id(Kind::PowerOn), next);
        }
        for failed in self.failures(state, Fault::Power) {
            let mut next = State { is_powered: false, online: 0, ..failed };
            for tenant in &mut next.tenants {
                tenant.programmed = [0; MOST_DPUS];
            }
            steps.step(id(Kind::PowerOff), next);
        }
    }

    /// Links fail and recover. With unlimited faults they are flags, which the engine moves.
    pub(super) fn link_steps(&self, state: &State, steps: &mut Steps<State>) {
        if self.is_unlimited() {
            return;
        }
        for link in &self.links {
            let up = u64::from(state.up);
            for change in link.moves.iter().filter(|change| change.from == up & link.bits) {
                if is_fault(change) && state.faults == self.faults {
                    continue;
                }
                let faults = state.faults + u8::from(is_fault(change));
                let up = (up & !link.bits | change.to) as u16;
                steps.step(change.action, State { up, faults, ..state.clone() });
            }
        }
    }

    /// The state with one more fault counted, once for each way that the specification allows it:
    /// two when the number is not limited, since its counter then stands still below the limit.
    fn failures(&self, state: &State, fault: Fault) -> impl Iterator<Item = State> + use<> {
        let ways = match self.is_unlimited() {
            true => 2,
            false => usize::from(state.faults < self.faults),
        };
        let ways = if self.has(fault) { ways } else { 0 };
        let faults = state.faults + u8::from(!self.is_unlimited());
        std::iter::repeat_n(State { faults, ..state.clone() }, ways)
    }

    pub(super) fn links(&self) -> Vec<LinkMoves> {
        let mut links = Vec::new();
        let id = |kind, tenant| self.numbering.of_tenant(kind, tenant);
        let mut up_down = |name: String, bit: u16, down: ActionId, up: ActionId| {
            let bits = u64::from(bit);
            let moves = vec![
                FlagMove { from: bits, to: 0, action: down },
                FlagMove { from: 0, to: bits, action: up },
            ];
            links.push(LinkMoves { name, bits, moves });
        };
        if self.has(Fault::Management) {
            let (down, up) = (id(Kind::MgmtCrash, 0), id(Kind::MgmtRecover, 0));
            up_down("mgmt_controller_up".to_owned(), MANAGEMENT, down, up);
        }
        for t in 0..self.tenants {
            let name = |name: &str| format!("{name}[t{}]", t + 1);
            if self.has(Fault::ManagementNetwork) {
                let (down, up) = (id(Kind::MgmtTenantPartition, t), id(Kind::MgmtTenantHeal, t));
                up_down(name("mgmt_tenant_network"), Link::ManagementNetwork.bit(t), down, up);
            }
            if self.has(Fault::ApiServer) {
                let (down, up) = (id(Kind::ApiServerDown, t), id(Kind::ApiServerUp, t));
                up_down(name("tenant_apiserver_up"), Link::ApiServer.bit(t), down, up);
            }
            if self.has(Fault::DpuNetwork) {
                let (down, up) = (id(Kind::TenantDpuPartition, t), id(Kind::TenantDpuHeal, t));
                up_down(name("tenant_dpu_network"), Link::DpuNetwork.bit(t), down, up);
            }
        }
        links.extend((0..self.tenants).filter_map(|tenant| self.etcd_moves(tenant)));
        links
    }

    /// Up with quorum, up without, or down.
    fn etcd_moves(&self, tenant: usize) -> Option<LinkMoves> {
        let id = |kind| self.numbering.of_tenant(kind, tenant);
        let quorum = u64::from(Link::Etcd.bit(tenant) | Link::Quorum.bit(tenant));
        let alone = u64::from(Link::Etcd.bit(tenant));
        let mut moves = Vec::new();
        if self.has(Fault::Etcd) {
            moves.push(FlagMove { from: quorum, to: 0, action: id(Kind::EtcdDown) });
            moves.push(FlagMove { from: 0, to: quorum, action: id(Kind::EtcdUp) });
        }
        if self.has(Fault::Quorum) {
            moves.push(FlagMove { from: quorum, to: alone, action: id(Kind::EtcdLoseQuorum) });
            moves.push(FlagMove { from: alone, to: quorum, action: id(Kind::EtcdRegainQuorum) });
            if self.has(Fault::Etcd) {
                moves.push(FlagMove { from: alone, to: 0, action: id(Kind::EtcdDown) });
            }
        }
        let name = format!("tenant_etcd_up[t{}]", tenant + 1);
        (!moves.is_empty()).then_some(LinkMoves { name, bits: quorum, moves })
    }
}
