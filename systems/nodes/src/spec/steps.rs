//! The steps of the nodes protocol.

use super::NodesHub;
use super::state::{Dpu, Grant, Phase, State, View, bit};
use interlock_checker::{ActionId, Steps};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum OfTenant {
    Bind,
    Deliver,
    Land,
    Forge,
}

pub(super) const OF_TENANT: [(OfTenant, &str); 4] = [
    (OfTenant::Bind, "Bind"),
    (OfTenant::Deliver, "Deliver"),
    (OfTenant::Land, "Land"),
    (OfTenant::Forge, "Forge"),
];

#[derive(Clone, Copy, PartialEq)]
pub(super) enum OfDpu {
    View,
    Drop,
    Report,
    LandAck,
    Program,
    AgentCrash,
    AgentUp,
    Off,
    On,
    See,
    Cut,
    Heal,
}

pub(super) const OF_DPU: [(OfDpu, &str); 12] = [
    (OfDpu::View, "View"),
    (OfDpu::Drop, "Drop"),
    (OfDpu::Report, "Report"),
    (OfDpu::LandAck, "LandAck"),
    (OfDpu::Program, "Program"),
    (OfDpu::AgentCrash, "AgentCrash"),
    (OfDpu::AgentUp, "AgentUp"),
    (OfDpu::Off, "Off"),
    (OfDpu::On, "On"),
    (OfDpu::See, "See"),
    (OfDpu::Cut, "Cut"),
    (OfDpu::Heal, "Heal"),
];

// Action ids: two of the hub, then each kind for each tenant, then each kind for each DPU.
const REVOKE: ActionId = 0;
pub(super) const FINISH: ActionId = 1;
const FIRST_OF_TENANT: ActionId = 2;

impl NodesHub {
    pub(super) fn of_tenant(&self, kind: OfTenant, tenant: u8) -> ActionId {
        FIRST_OF_TENANT + kind as u16 * u16::from(self.tenants) + u16::from(tenant)
    }

    pub(super) fn of_dpu(&self, kind: OfDpu, dpu: usize) -> ActionId {
        let first = FIRST_OF_TENANT + OF_TENANT.len() as u16 * u16::from(self.tenants);
        first + kind as u16 * u16::from(self.dpus) + dpu as u16
    }

    /// In how many ways the hub can conclude that a DPU is clean.
    fn ways_clean(&self, state: &State, dpu: &Dpu) -> u32 {
        let this_or_later = u8::MAX << (state.epoch.max(1) - 1);
        let any = if self.rules.epoch_ack { 0 } else { dpu.acks.count_ones() };
        let seen_off = u32::from(dpu.evidence >= state.epoch);
        (dpu.acks & this_or_later).count_ones() + any + seen_off
    }

    pub(super) fn hub_steps(&self, state: &State, steps: &mut Steps<State>) {
        if state.phase == Phase::Available && state.epoch < self.epochs {
            for tenant in 0..self.tenants {
                let mut next = state.clone();
                next.epoch += 1;
                next.owner = Some(tenant);
                next.phase = Phase::Bound;
                next.given[usize::from(state.epoch)] = Some(tenant);
                steps.step(self.of_tenant(OfTenant::Bind, tenant), next);
            }
        }
        for Grant { tenant, epoch } in self.granted(state, !state.delivered) {
            let mut next = state.clone();
            next.delivered |= bit(epoch);
            next.late |= bit(epoch);
            steps.step(self.of_tenant(OfTenant::Deliver, tenant), next);
        }
        if state.phase == Phase::Bound {
            let next = State { phase: Phase::Releasing, floor: state.epoch, ..state.clone() };
            steps.step(REVOKE, next);
        }
        if state.phase == Phase::Releasing {
            let dpus = &state.dpus[self.each_dpu()];
            let ways: u32 = dpus.iter().map(|dpu| self.ways_clean(state, dpu)).product();
            for _ in 0..ways {
                let next = State { phase: Phase::Available, owner: None, ..state.clone() };
                steps.step(FINISH, next);
            }
        }
    }

    pub(super) fn tenant_steps(&self, state: &State, steps: &mut Steps<State>) {
        for grant in self.granted(state, state.late) {
            let mut next = state.clone();
            next.late &= !bit(grant.epoch);
            next.landed |= 1 << self.place(grant);
            steps.step(self.of_tenant(OfTenant::Land, grant.tenant), next);
        }
        if state.forged == self.forged {
            return;
        }
        for place in 0..self.places() {
            let mut next = state.clone();
            next.forged += 1;
            next.landed |= 1 << place;
            steps.step(self.of_tenant(OfTenant::Forge, self.grant_at(place).tenant), next);
        }
    }

    /// What the agent of one DPU does.
    pub(super) fn agent_steps(&self, state: &State, d: usize, steps: &mut Steps<State>) {
        let dpu = &state.dpus[d];
        let mut step = |kind: OfDpu, change: &dyn Fn(&mut Dpu)| {
            let mut next = state.clone();
            change(&mut next.dpus[d]);
            steps.step(self.of_dpu(kind, d), next);
        };
        for floor in (1..=self.epochs).filter(|floor| dpu.late_acks & bit(*floor) != 0) {
            if dpu.connected {
                step(OfDpu::LandAck, &|dpu| {
                    dpu.late_acks &= !bit(floor);
                    dpu.acks |= bit(floor);
                });
            }
        }
        if !dpu.online {
            if dpu.powered {
                step(OfDpu::AgentUp, &|dpu| dpu.online = true);
            }
            return;
        }
        for view in self.readable(state, dpu) {
            step(OfDpu::View, &|dpu| {
                dpu.loaded = true;
                dpu.view = view;
            });
        }
        if dpu.loaded && dpu.holds_revoked() && self.rules.drop_revoked {
            step(OfDpu::Drop, &|dpu| dpu.entry = None);
        }
        let floor = dpu.view.floor;
        let clean = !self.rules.read_back || !dpu.holds_revoked();
        if dpu.loaded && floor > 0 && clean && !dpu.reported(floor) {
            step(OfDpu::Report, &|dpu| dpu.late_acks |= bit(floor));
        }
        // Two ways to be allowed, once the rule is off: it was loaded, or nobody asks.
        let ways = u8::from(dpu.loaded) + u8::from(!self.rules.loaded_check);
        for _ in (0..ways).filter(|_| dpu.entry.is_none()) {
            for grant in self.landed(state).filter(|grant| self.may_program(dpu, grant)) {
                step(OfDpu::Program, &|dpu| dpu.entry = Some(grant));
            }
        }
    }

    /// What a read of the hub can give this DPU now.
    fn readable(&self, state: &State, dpu: &Dpu) -> impl Iterator<Item = View> + use<> {
        let now = View { epoch: state.epoch, owner: state.owner, floor: state.floor };
        let is_news = !dpu.loaded || (dpu.view != now && self.rules.follow_hub);
        let is_cached = !dpu.loaded && !self.rules.consistent_boot;
        let past = if is_cached { self.past_views(state) } else { Vec::new() };
        let connected = dpu.connected;
        let present = (is_news && !is_cached).then_some(now);
        past.into_iter().chain(present).filter(move |_| connected)
    }

    fn may_program(&self, dpu: &Dpu, grant: &Grant) -> bool {
        let above = grant.epoch > dpu.view.floor;
        let exact = dpu.view.owner == Some(grant.tenant) && dpu.view.epoch == grant.epoch;
        (above || !self.rules.floor_check) && (exact || !self.rules.exact_match)
    }

    pub(super) fn world_steps(&self, state: &State, d: usize, steps: &mut Steps<State>) {
        let dpu = &state.dpus[d];
        let mut step = |kind: OfDpu, faults: u8, change: &dyn Fn(&mut Dpu)| {
            let mut next = state.clone();
            next.faults += faults;
            change(&mut next.dpus[d]);
            steps.step(self.of_dpu(kind, d), next);
        };
        let may_fail = state.faults < self.faults;
        if dpu.online && may_fail {
            step(OfDpu::AgentCrash, 1, &Dpu::forget_view);
        }
        if dpu.powered && may_fail {
            step(OfDpu::Off, 1, &|dpu| {
                dpu.powered = false;
                dpu.forget_view();
                dpu.entry = dpu.entry.filter(|_| !self.rules.closed_boot);
            });
        }
        if dpu.connected && may_fail {
            step(OfDpu::Cut, 1, &|dpu| dpu.connected = false);
        }
        if !dpu.connected {
            step(OfDpu::Heal, 0, &|dpu| dpu.connected = true);
        }
        if !dpu.powered {
            step(OfDpu::On, 0, &|dpu| dpu.powered = true);
            let covers = if self.rules.fresh_evidence { state.floor } else { state.epoch };
            if dpu.evidence != covers {
                step(OfDpu::See, 0, &|dpu| dpu.evidence = covers);
            }
        }
    }
}
