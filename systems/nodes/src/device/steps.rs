//! The steps of the device protocol.

use super::NodesDevice;
use super::state::{Floor, Grant, Phase, Port, State, places};
use interlock_checker::{ActionId, Steps};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum OfDpu {
    LookAttach,
    CachedAttach,
    LookAdopt,
    LandAttach,
    Program,
    LandAdopt,
    Isolate,
    Report,
    LandReport,
    See,
    Restart,
    Lose,
    Close,
    Off,
    On,
    Cut,
    Heal,
}

pub(super) const OF_DPU: [(OfDpu, &str); 17] = [
    (OfDpu::LookAttach, "LookAttach"),
    (OfDpu::CachedAttach, "CachedAttach"),
    (OfDpu::LookAdopt, "LookAdopt"),
    (OfDpu::LandAttach, "LandAttach"),
    (OfDpu::Program, "Program"),
    (OfDpu::LandAdopt, "LandAdopt"),
    (OfDpu::Isolate, "Isolate"),
    (OfDpu::Report, "Report"),
    (OfDpu::LandReport, "LandReport"),
    (OfDpu::See, "See"),
    (OfDpu::Restart, "Restart"),
    (OfDpu::Lose, "Lose"),
    (OfDpu::Close, "Close"),
    (OfDpu::Off, "Off"),
    (OfDpu::On, "On"),
    (OfDpu::Cut, "Cut"),
    (OfDpu::Heal, "Heal"),
];

// Action ids: three of the hub, one for each tenant, then each kind for each DPU.
const REVOKE: ActionId = 0;
pub(super) const FINISH: ActionId = 1;
const REPLACE: ActionId = 2;
const BIND: ActionId = 3;

impl NodesDevice {
    pub(super) fn of_dpu(&self, kind: OfDpu, dpu: usize) -> ActionId {
        let first = BIND + u16::from(self.tenants);
        first + kind as u16 * u16::from(self.dpus) + dpu as u16
    }

    /// In how many ways the hub can conclude that a DPU is clean: TLC counts each.
    fn ways_clean(&self, state: &State, port: &Port) -> usize {
        let counts = |uid: u8| !self.rules.report_uid || uid == state.uid;
        let reported = (1..=self.uids)
            .filter(|uid| counts(*uid) && port.acked(*uid) >= Some(state.epoch))
            .count();
        let seen_off = port.evidence.is_some_and(|it| it.floor >= state.epoch && counts(it.uid));
        reported + usize::from(seen_off)
    }

    pub(super) fn hub_steps(&self, state: &State, steps: &mut Steps<State>) {
        if state.phase == Phase::Available && state.epoch < self.epochs {
            let epoch = state.epoch + 1;
            for tenant in 0..self.tenants {
                let owner = Some(tenant);
                let mut next = State { phase: Phase::Bound, owner, epoch, ..state.clone() };
                if !self.rules.look_first {
                    next.past |= 1 << self.place(Grant { uid: state.uid, tenant, epoch });
                }
                steps.step(BIND + u16::from(tenant), next);
            }
        }
        if state.phase == Phase::Bound {
            let next = State { phase: Phase::Releasing, floor: state.epoch, ..state.clone() };
            steps.step(REVOKE, next);
        }
        if state.phase == Phase::Releasing {
            let ports = &state.ports[self.each_dpu()];
            let ways: usize = ports.iter().map(|port| self.ways_clean(state, port)).product();
            for _ in 0..ways {
                let next = State { phase: Phase::Available, owner: None, ..state.clone() };
                steps.step(FINISH, self.after_release(next));
            }
        }
        if self.rules.shipped && state.phase == Phase::Available {
            steps.step(REVOKE, State { phase: Phase::Releasing, ..state.clone() });
        }
        if state.uid < self.uids && state.faults < self.faults {
            let next = State {
                phase: Phase::Releasing,
                uid: state.uid + 1,
                owner: None,
                epoch: 0,
                floor: 0,
                faults: self.after_fault(state),
                ..state.clone()
            };
            steps.step(REPLACE, self.after_release(next));
        }
    }

    fn after_fault(&self, state: &State) -> u8 {
        if self.rules.shipped { state.faults } else { state.faults + 1 }
    }

    /// What is known of power once nobody waits for it any more.
    fn after_release(&self, mut state: State) -> State {
        if self.rules.shipped {
            state.ports.iter_mut().for_each(|port| port.evidence = None);
        }
        state
    }

    /// Live reads that send a call; what is on its way already is not sent twice.
    pub(super) fn agent_steps(&self, state: &State, d: usize, steps: &mut Steps<State>) {
        let port = &state.ports[d];
        if !port.powered {
            return;
        }
        let mut send = |kind: OfDpu, grant: Grant| {
            let bit = 1 << self.place(grant);
            if port.attaches & bit == 0 {
                let mut next = state.clone();
                next.ports[d].attaches |= bit;
                steps.step(self.of_dpu(kind, d), next);
            }
        };
        let (uid, epoch) = (state.uid, state.epoch);
        let is_owned = !self.rules.tag_uid || port.node == uid;
        if port.connected && port.entry.is_none() && state.phase == Phase::Bound && is_owned {
            let may_name = |tenant: &u8| !self.rules.exact_match || state.owner == Some(*tenant);
            for tenant in (0..self.tenants).filter(may_name) {
                send(OfDpu::LookAttach, Grant { uid, tenant, epoch });
            }
        }
        if port.entry.is_none() {
            for place in places(state.past) {
                send(OfDpu::CachedAttach, self.grant_at(place));
            }
        }
        if self.rules.adopts && port.connected && port.node != uid {
            let floor = if self.rules.adopt_floor { state.floor } else { 0 };
            let bit = 1 << self.place_of_floor(Floor { uid, floor });
            if port.adopts & bit == 0 {
                let mut next = state.clone();
                next.ports[d].adopts |= bit;
                steps.step(self.of_dpu(OfDpu::LookAdopt, d), next);
            }
        }
    }

    fn accepts(&self, port: &Port, grant: Grant) -> bool {
        (!self.rules.tag_uid || grant.uid == port.node)
            && (!self.rules.device_floor || grant.epoch > port.floor)
    }

    /// The calls that a new record leaves on their way.
    fn after_new_term(&self, port: &Port) -> Port {
        if self.rules.term { port.calls_dropped() } else { *port }
    }

    /// Calls land, under the lock of the port; each may land again, for another agent may have sent the same.
    pub(super) fn driver_steps(&self, state: &State, d: usize, steps: &mut Steps<State>) {
        let port = &state.ports[d];
        if !port.powered {
            return;
        }
        let mut step = |kind: OfDpu, port: Port| {
            let mut next = state.clone();
            next.ports[d] = port;
            steps.step(self.of_dpu(kind, d), next);
        };
        for place in places(port.attaches) {
            let grant = self.grant_at(place);
            let mut landed = *port;
            if self.accepts(port, grant) && port.entry.is_none() {
                match self.rules.port_lock {
                    true => landed.entry = Some(grant),
                    false => landed.passed |= 1 << place,
                }
            }
            step(OfDpu::LandAttach, landed);
            landed.attaches &= !(1 << place);
            step(OfDpu::LandAttach, landed);
        }
        if port.entry.is_none() {
            for place in places(port.passed) {
                let mut programmed = Port { entry: Some(self.grant_at(place)), ..*port };
                programmed.passed &= !(1 << place);
                step(OfDpu::Program, programmed);
            }
        }
        for place in places(port.adopts) {
            let Floor { uid, floor } = self.floor_at(place);
            let mut adopted = Port { entry: None, node: uid, floor, ..self.after_new_term(port) };
            step(OfDpu::LandAdopt, adopted);
            if adopted.adopts & 1 << place != 0 {
                adopted.adopts &= !(1 << place);
                step(OfDpu::LandAdopt, adopted);
            }
        }
        self.isolate(state, d, steps);
    }

    /// Closes what is at or under the floor, and raises the floor of the port.
    fn isolate(&self, state: &State, d: usize, steps: &mut Steps<State>) {
        let port = &state.ports[d];
        if self.rules.shipped && port.node != 0 {
            self.isolate_by_cache(state, d, steps);
        }
        if !port.connected || self.rules.tag_uid && port.node != state.uid {
            return;
        }
        let floor = if self.rules.floor_of_hub { state.floor } else { state.epoch };
        let is_bad = port.entry.is_some_and(|it| it.uid != state.uid || it.epoch <= floor);
        let closes = self.rules.close_first || port.floor >= floor;
        // TLC counts each reason.
        let reasons = [port.floor < floor, is_bad];
        for _ in reasons.iter().filter(|reason| **reason) {
            let mut next = state.clone();
            next.ports[d].entry = port.entry.filter(|_| !is_bad || !closes);
            next.ports[d].floor = port.floor.max(floor);
            steps.step(self.of_dpu(OfDpu::Isolate, d), next);
        }
    }

    /// The same at any floor that a cache may show of the node in the record.
    fn isolate_by_cache(&self, state: &State, d: usize, steps: &mut Steps<State>) {
        let port = &state.ports[d];
        let highest = if port.node == state.uid { state.floor } else { self.epochs };
        for floor in port.floor..=highest {
            let mut next = state.clone();
            next.ports[d].entry = port.entry.filter(|it| it.uid == port.node && it.epoch > floor);
            next.ports[d].floor = floor;
            if next.ports[d] != *port {
                steps.step(self.of_dpu(OfDpu::Isolate, d), next);
            }
        }
    }

    /// What was read back under the lock: the record, and nothing programmed that it forbids.
    pub(super) fn report_steps(&self, state: &State, d: usize, steps: &mut Steps<State>) {
        let port = &state.ports[d];
        let (uid, floor) = match self.rules.raise_first {
            true => (port.node, port.floor),
            false => (state.uid, state.floor),
        };
        // TLC counts each disjunct of `RaiseFirst \/ net[d]` that is true.
        let ways = usize::from(self.rules.raise_first) + usize::from(port.connected);
        if port.powered && port.node != 0 {
            let bit = 1 << self.place_of_floor(Floor { uid, floor });
            let is_clean = port.entry.is_none_or(|it| it.uid == uid && it.epoch > floor);
            let is_news = Some(floor) > port.acked(uid) && port.late & bit == 0;
            let may_report = is_news && (is_clean || !self.rules.read_back);
            for _ in (0..ways).filter(|_| may_report) {
                let mut next = state.clone();
                next.ports[d].late |= bit;
                steps.step(self.of_dpu(OfDpu::Report, d), next);
            }
        }
        for place in places(port.late).filter(|_| port.connected) {
            let Floor { uid, floor } = self.floor_at(place);
            let mut next = state.clone();
            next.ports[d].late &= !(1 << place);
            let acked = &mut next.ports[d].acked[usize::from(uid) - 1];
            *acked = (*acked).max(Some(floor));
            steps.step(self.of_dpu(OfDpu::LandReport, d), next);
        }
    }

    pub(super) fn fault_steps(&self, state: &State, d: usize, steps: &mut Steps<State>) {
        if state.faults == self.faults {
            return;
        }
        let port = &state.ports[d];
        let mut step = |kind: OfDpu, port: Port| {
            let mut next = State { faults: self.after_fault(state), ..state.clone() };
            next.ports[d] = port;
            steps.step(self.of_dpu(kind, d), next);
        };
        if port.connected {
            step(OfDpu::Cut, Port { connected: false, ..*port });
        }
        if !port.powered {
            return;
        }
        let has_calls = port.attaches | port.adopts != 0;
        match self.rules.durable_floor {
            true if has_calls => step(OfDpu::Restart, port.calls_dropped()),
            true => {}
            false => step(OfDpu::Restart, Port { floor: 0, ..*port }),
        }
        if port.node != 0 {
            step(OfDpu::Lose, Port { node: 0, floor: 0, ..self.after_new_term(port) });
        }
        if port.entry.is_some() {
            step(OfDpu::Close, Port { entry: None, ..*port });
        }
        // The disk may be empty after the power loss, or an old one.
        for node in (0..=port.node).filter(|_| self.rules.power_fails) {
            let highest = if node == 0 { 0 } else { port.floor };
            for floor in 0..=highest {
                let entry = port.entry.filter(|_| !self.rules.closed_boot);
                let after = self.after_new_term(port);
                step(OfDpu::Off, Port { entry, node, floor, powered: false, ..after });
            }
        }
    }

    /// Power and network return, and the hub asks the power supply.
    pub(super) fn repair_steps(&self, state: &State, d: usize, steps: &mut Steps<State>) {
        let port = &state.ports[d];
        let mut step = |kind: OfDpu, port: Port| {
            let mut next = state.clone();
            next.ports[d] = port;
            steps.step(self.of_dpu(kind, d), next);
        };
        if !port.connected {
            step(OfDpu::Heal, Port { connected: true, ..*port });
        }
        if port.powered {
            return;
        }
        step(OfDpu::On, Port { powered: true, ..*port });
        let floor = if self.rules.fresh_evidence { state.floor } else { state.epoch };
        let seen = Some(Floor { uid: state.uid, floor });
        if port.evidence != seen {
            step(OfDpu::See, Port { evidence: seen, ..*port });
        }
    }
}
