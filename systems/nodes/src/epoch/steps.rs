//! The steps of the protocol with epoch and floor alone.

use super::{
    ASSIGN, BOOT, CLEANUP, CRASH, CUT, Dpu, Epochs, FLUSH, HEAL_M, HEAL_T, NodesEpoch, Phase,
    RELEASE_FINISH, RELEASE_START, SYNC, State, Tenant, bit,
};
use interlock_checker::Steps;

impl NodesEpoch {
    pub(super) fn hub_steps(&self, state: &State, steps: &mut Steps<State>) {
        let is_acknowledged =
            || state.dpus[..self.dpus].iter().all(|dpu| dpu.acks & bit(state.epoch) != 0);
        match state.phase {
            Phase::Available if state.epoch < self.epochs => {
                for tenant in 0..self.tenants {
                    let mut next = State { phase: Phase::Bound, ..state.clone() };
                    next.epoch += 1;
                    next.owner = Some(tenant as u8);
                    next.tenants[tenant].in_flight |= bit(next.epoch);
                    steps.step(self.of_tenant(ASSIGN, tenant), next);
                }
            }
            Phase::Bound => {
                let next = State { phase: Phase::Releasing, floor: state.epoch, ..state.clone() };
                steps.step(RELEASE_START, next);
            }
            Phase::Releasing if !self.rules.acknowledged || is_acknowledged() => {
                let next = State { phase: Phase::Available, owner: None, ..state.clone() };
                steps.step(RELEASE_FINISH, next);
            }
            Phase::Available | Phase::Releasing => {}
        }
    }

    pub(super) fn tenant_steps(&self, state: &State, t: usize, steps: &mut Steps<State>) {
        let tenant = &state.tenants[t];
        let mut step = |kind: u16, change: &dyn Fn(&mut Tenant)| {
            let mut next = state.clone();
            change(&mut next.tenants[t]);
            steps.step(self.of_tenant(kind, t), next);
        };
        for epoch in self.each_epoch(tenant.in_flight) {
            step(FLUSH, &|tenant| {
                tenant.in_flight &= !bit(epoch);
                tenant.records |= bit(epoch);
            });
        }
        let is_owner = state.phase == Phase::Bound && state.owner == Some(t as u8);
        for epoch in self.each_epoch(tenant.records) {
            let is_present = is_owner && state.epoch == epoch;
            if !is_present || !self.rules.spare_present {
                step(CLEANUP, &|tenant| tenant.records &= !bit(epoch));
            }
        }
        if tenant.is_cut_off {
            step(HEAL_T, &|tenant| tenant.is_cut_off = false);
        }
    }

    pub(super) fn dpu_steps(&self, state: &State, d: usize, steps: &mut Steps<State>) {
        let dpu = &state.dpus[d];
        let mut step = |kind: u16, faults: u8, change: &dyn Fn(&mut Dpu)| {
            let mut next = state.clone();
            next.faults += faults;
            change(&mut next.dpus[d]);
            steps.step(self.of_dpu(kind, d), next);
        };
        if dpu.is_down {
            return step(BOOT, 0, &|dpu| dpu.is_down = false);
        }
        if state.faults < self.faults {
            step(CRASH, 1, &|dpu| *dpu = Dpu { is_down: true, acks: dpu.acks, ..Dpu::default() });
        }
        let at_or_under = ((1_u16 << state.floor) - 1) as Epochs;
        // Each reason to look at the hub is a way of its own.
        let unheard = state.floor > 0 && dpu.acks & bit(state.floor) == 0;
        let follows = self.rules.follow_hub;
        let reasons = [!dpu.is_ready, follows && dpu.floor != state.floor, follows && unheard];
        for _ in reasons.iter().filter(|reason| **reason && !state.is_hub_cut_off) {
            step(SYNC, 0, &|dpu| {
                dpu.floor = state.floor;
                dpu.is_ready = true;
                dpu.programmed = dpu.programmed.map(|epochs| epochs & !at_or_under);
                dpu.acks |= if state.floor > 0 { bit(state.floor) } else { 0 };
            });
        }
    }

    pub(super) fn program_steps(
        &self,
        state: &State,
        d: usize,
        t: usize,
        steps: &mut Steps<State>,
    ) {
        let (dpu, tenant) = (&state.dpus[d], &state.tenants[t]);
        let may_act = !dpu.is_down && (dpu.is_ready || !self.rules.loaded_check);
        if !may_act || tenant.is_cut_off {
            return;
        }
        let mut toggle = |epoch: u8| {
            let mut next = state.clone();
            next.dpus[d].programmed[t] ^= bit(epoch);
            steps.step(self.program(d, t), next);
        };
        let is_free = (0..self.tenants).all(|other| other == t || dpu.programmed[other] == 0);
        for epoch in self.each_epoch(tenant.records & !dpu.programmed[t]) {
            if is_free && (epoch > dpu.floor || !self.rules.floor_check) {
                toggle(epoch);
            }
        }
        for epoch in self.each_epoch(dpu.programmed[t] & !tenant.records) {
            toggle(epoch);
        }
    }

    pub(super) fn network_steps(&self, state: &State, steps: &mut Steps<State>) {
        if state.is_hub_cut_off {
            steps.step(HEAL_M, State { is_hub_cut_off: false, ..state.clone() });
        }
        if state.faults == self.faults {
            return;
        }
        let faulty = State { faults: state.faults + 1, ..state.clone() };
        if !state.is_hub_cut_off {
            steps.step(CUT, State { is_hub_cut_off: true, ..faulty.clone() });
        }
        for tenant in (0..self.tenants).filter(|tenant| !state.tenants[*tenant].is_cut_off) {
            let mut next = faulty.clone();
            next.tenants[tenant].is_cut_off = true;
            steps.step(CUT, next);
        }
    }
}
