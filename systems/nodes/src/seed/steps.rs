//! The next-state relation of the seed, action by action.

use super::action::Family;
use super::layout::{APISERVER, DPU_NETWORK, ETCD, MGMT_NETWORK, QUORUM};
use super::{DpuMultiTenant, State};
use interlock_checker::Steps;

/// The bits of a set, one number each.
#[inline]
fn members(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let least = set.trailing_zeros() as usize;
        set &= set - 1;
        Some(least)
    })
}

impl DpuMultiTenant {
    #[inline]
    fn set(&self, state: u64, at: u32) -> u64 {
        state >> at & self.layout.node_mask
    }

    #[inline]
    fn put(&self, state: u64, at: u32, set: u64) -> u64 {
        state & !(self.layout.node_mask << at) | set << at
    }

    /// Whether any hardware has some node: as a set of nodes.
    #[inline]
    pub(super) fn programmed(&self, state: u64) -> u64 {
        let at = &self.layout;
        let mut nodes = 0;
        for t in 0..at.tenants {
            for r in 0..at.racks {
                for d in 0..at.dpus {
                    nodes |= self.set(state, at.hw(r, t, d));
                }
            }
        }
        nodes
    }

    #[inline]
    pub(super) fn normal_steps(&self, State(state): State, steps: &mut Steps<State>) {
        self.management(state, steps);
        for t in 0..self.layout.tenants {
            self.tenant(state, t, steps);
        }
        self.devices(state, steps);
    }

    /// MgmtAssign and MgmtReclaim.
    #[inline]
    fn management(&self, state: u64, steps: &mut Steps<State>) {
        let at = &self.layout;
        let pool = self.set(state, at.mgmt_nodes());
        let busy = if self.guards.reclaim_waits_for_hardware { self.programmed(state) } else { 0 };
        for t in 0..at.tenants {
            let needs = at.mgmt_up() | at.flag(t, MGMT_NETWORK);
            for n in members(pool) {
                let next = state & !(1 << (at.mgmt_nodes() as usize + n))
                    | 1 << (at.tenant_nodes(t) as usize + n)
                    | 1 << (at.tenant_events(t) as usize + n);
                let action = at.action(Family::MgmtAssign, n * at.tenants + t);
                steps.step_while(needs, action, State(next));
            }
            for n in members(self.set(state, at.tenant_nodes(t)) & !busy) {
                let mut next = state | 1 << (at.mgmt_nodes() as usize + n);
                next &= !(1 << (at.tenant_nodes(t) as usize + n));
                next &= !(1 << (at.tenant_events(t) as usize + n));
                for r in 0..at.racks {
                    next |= 1 << (at.queue(r, t) as usize + n);
                }
                let action = at.action(Family::MgmtReclaim, n * at.tenants + t);
                steps.step_while(needs, action, State(next));
            }
        }
    }

    /// TenantWatch, TenantFlush and TenantCleanup.
    #[inline]
    fn tenant(&self, state: u64, t: usize, steps: &mut Steps<State>) {
        let at = &self.layout;
        if state >> at.controller(t) & 1 == 0 {
            return;
        }
        let own = self.set(state, at.tenant_nodes(t));
        for n in members(self.set(state, at.tenant_events(t))) {
            let next = state & !(1 << (at.tenant_events(t) as usize + n))
                | 1 << (at.tenant_buffer(t) as usize + n);
            let action = at.action(Family::TenantWatch, n * at.tenants + t);
            steps.step_while(at.flag(t, APISERVER), action, State(next));
        }
        let can_write = at.flag(t, APISERVER) | at.flag(t, ETCD) | at.flag(t, QUORUM);
        let buffer = self.set(state, at.tenant_buffer(t));
        if buffer != 0 {
            let mut next = self.put(state, at.tenant_buffer(t), 0);
            for r in 0..at.racks {
                next |= (buffer & own & at.in_rack(r)) << at.crs(r, t);
            }
            steps.step_while(can_write, at.action(Family::TenantFlush, t), State(next));
        }
        // The seed asks for some rack with a stale record and then cleans all racks, so each such
        // rack is one way to take the same step.
        let stale = (0..at.racks).filter(|r| self.set(state, at.crs(*r, t)) & !own != 0).count();
        if stale > 0 {
            let mut next = state;
            for r in 0..at.racks {
                next = self.put(next, at.crs(r, t), self.set(state, at.crs(r, t)) & own);
            }
            for _ in 0..stale {
                steps.step_while(can_write, at.action(Family::TenantCleanup, t), State(next));
            }
        }
    }

    /// DPUReconcile and ProcessCRDeletion.
    #[inline]
    fn devices(&self, state: u64, steps: &mut Steps<State>) {
        let at = &self.layout;
        for r in 0..at.racks {
            for t in 0..at.tenants {
                let queue = self.set(state, at.queue(r, t));
                let records = self.set(state, at.crs(r, t));
                let valid =
                    if self.guards.reconcile_skips_deletions { records & !queue } else { records };
                for d in 0..at.dpus {
                    let running = state >> at.power(r) & state >> at.online(r, d) & 1 == 1;
                    let wanted = valid & at.members(r, d);
                    let has = self.set(state, at.hw(r, t, d));
                    let (stale, absent) = (has & !wanted, wanted & !has);
                    if !running || stale | absent == 0 {
                        continue;
                    }
                    // CHOOSE, as TLC reads it: the first node by name.
                    let node = if stale != 0 { stale } else { absent }.trailing_zeros();
                    let next = state ^ 1 << (at.hw(r, t, d) + node);
                    let place = (r * at.dpus + d) * at.tenants + t;
                    let action = at.action(Family::DPUReconcile, place);
                    steps.step_while(at.flag(t, DPU_NETWORK), action, State(next));
                }
                if queue != 0 {
                    let next = self.put(state, at.crs(r, t), records & !queue);
                    let next = self.put(next, at.queue(r, t), 0);
                    let action = at.action(Family::ProcessCRDeletion, r * at.tenants + t);
                    steps.step(action, State(next));
                }
            }
        }
    }

    /// The failures that touch data, and what ends them.
    #[inline]
    pub(super) fn core_faults(&self, State(state): State, steps: &mut Steps<State>) {
        let at = &self.layout;
        for t in 0..at.tenants {
            let up = 1 << at.controller(t);
            if state & up != 0 {
                let next = self.put(state & !up, at.tenant_buffer(t), 0);
                steps.step(at.action(Family::TenantCrash, t), State(next));
            } else {
                let own = self.set(state, at.tenant_nodes(t));
                let next = self.put(state | up, at.tenant_buffer(t), own);
                steps.step(at.action(Family::TenantRecover, t), State(next));
            }
        }
        for r in 0..at.racks {
            let power = 1 << at.power(r);
            let online: u64 = (0..at.dpus).fold(0, |bits, d| bits | 1 << at.online(r, d));
            if state & power == 0 {
                steps.step(at.action(Family::PowerOn, r), State(state | power | online));
                continue;
            }
            let mut next = state & !power & !online;
            for d in 0..at.dpus {
                next = self.forget(next, r, d);
                let up = 1 << at.online(r, d);
                let place = r * at.dpus + d;
                if state & up == 0 {
                    steps.step(at.action(Family::DPURecover, place), State(state | up));
                } else {
                    let crashed = self.forget(state & !up, r, d);
                    steps.step(at.action(Family::DPUCrash, place), State(crashed));
                }
            }
            steps.step(at.action(Family::PowerOff, r), State(next));
        }
    }

    /// The hardware of one DPU, cleared for all tenants.
    #[inline]
    fn forget(&self, state: u64, r: usize, d: usize) -> u64 {
        (0..self.layout.tenants).fold(state, |state, t| self.put(state, self.layout.hw(r, t, d), 0))
    }
}
