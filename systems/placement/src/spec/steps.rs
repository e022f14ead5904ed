//! The steps of a move: what the hub, the operator, the syncers and the world do.

use super::hub::{Hub, Phase};
use super::state::{Cluster, State};
use super::{Placement, name_of};
use interlock_checker::{Action, ActionId, Steps};

const REVOKE: ActionId = 0;
const ASK_FORCE: ActionId = 1;
pub(super) const FENCE: ActionId = 2;
const OF_CLUSTERS: ActionId = 3;

/// What happens at, or to, one cluster.
#[derive(Debug, Clone, Copy)]
pub(super) enum At {
    Grant,
    Observe,
    Relist,
    FillBegin,
    FillEnd,
    Permit,
    Start,
    Write,
    Replicate,
    Stop,
    Close,
    FinalSync,
    Ack,
    Crash,
    PowerOff,
    PowerOn,
    /// In the stage that ships only.
    Withdraw,
}

const ALL: [At; 16] = [
    At::Grant,
    At::Observe,
    At::Relist,
    At::FillBegin,
    At::FillEnd,
    At::Permit,
    At::Start,
    At::Write,
    At::Replicate,
    At::Stop,
    At::Close,
    At::FinalSync,
    At::Ack,
    At::Crash,
    At::PowerOff,
    At::PowerOn,
];

/// What may not be put off for ever at a cluster.
pub(super) const FAIR: [At; 10] = [
    At::Observe,
    At::FillBegin,
    At::FillEnd,
    At::Permit,
    At::Start,
    At::Stop,
    At::Close,
    At::FinalSync,
    At::Ack,
    At::PowerOn,
];

/// TLC takes a step once for each alternative of its guard that holds.
fn ways<const N: usize>(alternatives: [bool; N]) -> usize {
    alternatives.into_iter().filter(|holds| *holds).count()
}

pub(super) fn may_use(grant: &Hub, cluster: &Cluster, c: usize) -> bool {
    grant.is_owned_by(c) && grant.phase == Phase::Granted && grant.epoch > cluster.released
}

fn is_leaving(cluster: &Cluster, c: usize) -> bool {
    !cluster.off && cluster.view.is_owned_by(c) && cluster.view.phase == Phase::Revoking
}

impl Placement {
    pub(super) fn id(&self, at: At, c: usize) -> ActionId {
        OF_CLUSTERS + (at as usize * self.extent.clusters + c) as ActionId
    }

    pub(super) fn all_actions(&self) -> Vec<Action> {
        let mut actions = vec![
            Action::new("Revoke", "hub"),
            Action::new("AskForce", "operator").to("hub"),
            Action::new("Fence", "hub"),
        ];
        let on_record = self.rules.permit_on_record.then_some(At::Withdraw);
        for at in ALL.into_iter().chain(on_record) {
            for c in (0..self.extent.clusters).map(name_of) {
                let (syncer, cluster) = (format!("syncer {c}"), format!("cluster {c}"));
                let name = format!("{at:?}({c})");
                actions.push(match at {
                    At::Grant => Action::new(name, "hub"),
                    At::Observe | At::Relist | At::Permit | At::Ack => {
                        Action::new(name, syncer).to("hub")
                    }
                    At::FillBegin | At::FillEnd | At::Stop => Action::new(name, syncer).to(cluster),
                    At::Replicate | At::FinalSync => Action::new(name, syncer).to("images"),
                    At::Close | At::Crash | At::Withdraw => Action::new(name, syncer),
                    At::Start | At::Write | At::PowerOff | At::PowerOn => {
                        Action::new(name, cluster)
                    }
                });
            }
        }
        actions
    }

    pub(super) fn steps(&self, state: &State, steps: &mut Steps<State>) {
        let mut moves = Moves { model: self, state, steps };
        for c in 0..self.extent.clusters {
            moves.grant(c);
        }
        moves.revoke();
        moves.ask_force();
        moves.fence();
        for c in 0..self.extent.clusters {
            if self.rules.permit_on_record {
                moves.on_record(c);
                continue;
            }
            moves.observe(c);
            moves.relist(c);
            moves.fill_begin(c);
            moves.fill_end(c);
            moves.permit(c);
            moves.start(c);
            moves.write(c);
            moves.replicate(c);
            moves.stop(c);
            moves.close(c);
            moves.final_sync(c);
            moves.ack(c);
            moves.crash(c);
            moves.power_off(c);
            moves.power_on(c);
        }
    }
}

/// The steps out of one state, as they are found.
pub(super) struct Moves<'a> {
    pub(super) model: &'a Placement,
    pub(super) state: &'a State,
    steps: &'a mut Steps<State>,
}

impl Moves<'_> {
    pub(super) fn step(&mut self, at: At, c: usize, change: impl FnOnce(&mut State)) {
        let mut next = self.state.clone();
        change(&mut next);
        self.steps.step(self.model.id(at, c), next);
    }

    pub(super) fn step_at(&mut self, at: At, c: usize, change: impl FnOnce(&mut Cluster)) {
        self.step(at, c, |next| change(&mut next.clusters[c]));
    }

    pub(super) fn write_hub(
        &mut self,
        action: ActionId,
        hub: Hub,
        change: impl FnOnce(&mut State),
    ) {
        let mut next = self.state.clone();
        change(&mut next);
        next.hub = hub;
        if self.model.relist {
            next.past.remember(hub);
        }
        self.steps.step(action, next);
    }

    /// The state with one more fault in it, if there may be one more.
    fn faulted(&self) -> Option<State> {
        let mut next = self.state.clone();
        if let Some(budget) = self.model.faults {
            if next.faults == budget {
                return None;
            }
            next.faults += 1;
        }
        Some(next)
    }

    fn grant(&mut self, c: usize) {
        let hub = self.state.hub;
        let seized = !self.model.rules.need_ack && !hub.is_owned_by(c);
        if hub.epoch == self.model.extent.epochs || hub.is_held() && !seized {
            return;
        }
        let is_reused = hub.epoch != 0 && !self.model.rules.new_epochs;
        let epoch = if is_reused { hub.epoch } else { hub.epoch + 1 };
        let grant = Hub { epoch, owner: c as u8, phase: Phase::Granted, pin: hub.pin };
        self.write_hub(self.model.id(At::Grant, c), grant, |_| ());
    }

    fn revoke(&mut self) {
        if self.state.hub.phase == Phase::Granted {
            self.write_hub(REVOKE, Hub { phase: Phase::Revoking, ..self.state.hub }, |_| ());
        }
    }

    fn ask_force(&mut self) {
        let hub = self.state.hub;
        let owner = usize::from(hub.owner);
        let attested = !self.model.rules.truthful || self.state.clusters[owner].off;
        if !self.model.force || !hub.is_held() || !attested {
            return;
        }
        let Some(mut next) = self.faulted() else { return };
        next.force(owner, hub.epoch);
        self.steps.step(ASK_FORCE, next);
    }

    fn fence(&mut self) {
        let hub = self.state.hub;
        let rules = &self.model.rules;
        if !hub.is_held() || !rules.fence_ends_grants && hub.phase == Phase::Granted {
            return;
        }
        let image = self.state.image(hub.epoch);
        let pin = if image.made { image.writes } else { hub.pin };
        for epoch in 1..=self.model.extent.epochs {
            let named = self.state.is_forced(hub.owner.into(), epoch);
            if named && (!rules.force_bound || epoch == hub.epoch) {
                let fenced = Hub { phase: Phase::Fenced, pin, ..hub };
                self.write_hub(FENCE, fenced, |next| next.must = pin);
            }
        }
    }

    fn observe(&mut self, c: usize) {
        let (hub, cluster) = (self.state.hub, &self.state.clusters[c]);
        if !cluster.off && cluster.view != hub {
            self.step_at(At::Observe, c, |cluster| cluster.view = hub);
        }
    }

    fn relist(&mut self, c: usize) {
        if !self.model.relist || self.state.clusters[c].off {
            return;
        }
        let Some(faulted) = self.faulted() else { return };
        self.state.past.each(self.state.hub.epoch, |past| {
            if past != self.state.clusters[c].view {
                let mut next = faulted.clone();
                next.clusters[c].view = past;
                self.steps.step(self.model.id(At::Relist, c), next);
            }
        });
    }

    fn fill_begin(&mut self, c: usize) {
        let cluster = &self.state.clusters[c];
        let epoch = cluster.view.epoch;
        if !cluster.off
            && may_use(&cluster.view, cluster, c)
            && cluster.filled < epoch
            && cluster.filling < epoch
            && cluster.running == 0
        {
            self.step_at(At::FillBegin, c, |cluster| {
                cluster.filling = epoch;
                cluster.volume = 0;
            });
        }
    }

    fn fill_end(&mut self, c: usize) {
        let cluster = &self.state.clusters[c];
        if !cluster.off
            && cluster.filling != 0
            && cluster.view.epoch == cluster.filling
            && may_use(&cluster.view, cluster, c)
            && cluster.filled < cluster.filling
        {
            self.step_at(At::FillEnd, c, |cluster| {
                cluster.volume = cluster.view.pin;
                cluster.filled = cluster.filling;
            });
        }
    }

    pub(super) fn permit(&mut self, c: usize) {
        let (rules, cluster) = (&self.model.rules, &self.state.clusters[c]);
        let grant = if rules.permit_fresh { self.state.hub } else { cluster.view };
        let ready = if rules.fill_marked { cluster.filled } else { cluster.filling };
        if !cluster.off
            && cluster.permitted == 0
            && cluster.running == 0
            && may_use(&grant, cluster, c)
            && ready == grant.epoch
            && !(rules.permit_sees_force && self.state.is_forced(c, grant.epoch))
        {
            self.step_at(At::Permit, c, |cluster| cluster.permitted = grant.epoch);
        }
    }

    fn start(&mut self, c: usize) {
        let cluster = &self.state.clusters[c];
        if cluster.off || cluster.permitted == 0 || cluster.running != 0 {
            return;
        }
        let starts = !self.model.rules.start_checks_rel || cluster.released < cluster.permitted;
        self.step_at(At::Start, c, |cluster| {
            if starts {
                cluster.running = cluster.permitted;
                cluster.restarts = cluster.permitted;
            }
            cluster.permitted = 0;
        });
    }

    pub(super) fn write(&mut self, c: usize) {
        if self.state.clusters[c].running != 0 && self.state.written < self.model.extent.writes {
            self.step(At::Write, c, |next| {
                let write = 1 << next.written;
                next.written += 1;
                next.clusters[c].volume |= write;
                next.must |= write;
            });
        }
    }

    pub(super) fn replicate(&mut self, c: usize) {
        let cluster = &self.state.clusters[c];
        let (epoch, volume) = (cluster.filled, cluster.volume);
        if !cluster.off
            && epoch != 0
            && cluster.released < epoch
            && self.state.image(epoch).writes != volume
        {
            self.step(At::Replicate, c, |next| next.set_image(epoch, volume));
        }
    }

    fn stop(&mut self, c: usize) {
        let cluster = &self.state.clusters[c];
        if cluster.off {
            return;
        }
        let restarts = self.model.rules.stop_ends_restarts && cluster.restarts != 0;
        let unwanted = [
            !cluster.view.is_owned_by(c),
            cluster.view.phase != Phase::Granted,
            cluster.view.epoch != cluster.running,
        ];
        for _ in 0..ways([cluster.running != 0, restarts]) * ways(unwanted) {
            self.step_at(At::Stop, c, |cluster| {
                cluster.running = 0;
                cluster.restarts = 0;
            });
        }
    }

    fn close(&mut self, c: usize) {
        let cluster = &self.state.clusters[c];
        let stopped = cluster.running == 0 && cluster.restarts == 0;
        if is_leaving(cluster, c)
            && (stopped || !self.model.rules.stop_first)
            && cluster.released < cluster.view.epoch
        {
            self.step_at(At::Close, c, |cluster| cluster.released = cluster.view.epoch);
        }
    }

    fn final_sync(&mut self, c: usize) {
        let (rules, cluster) = (&self.model.rules, &self.state.clusters[c]);
        let epoch = cluster.view.epoch;
        let still =
            if rules.close_first { cluster.released >= epoch } else { cluster.running == 0 };
        if !is_leaving(cluster, c) || cluster.copied >= epoch || !still {
            return;
        }
        let writes = if cluster.filled != epoch {
            cluster.view.pin
        } else if rules.final_sync {
            cluster.volume
        } else {
            self.state.image(epoch).writes
        };
        self.step(At::FinalSync, c, |next| {
            next.set_image(epoch, writes);
            next.clusters[c].copied = epoch;
        });
    }

    fn ack(&mut self, c: usize) {
        let (rules, cluster, hub) = (&self.model.rules, &self.state.clusters[c], self.state.hub);
        let revoked = hub.is_owned_by(c) && hub.phase == Phase::Revoking;
        if cluster.off || !revoked || cluster.copied != hub.epoch {
            return;
        }
        let closed = cluster.released == hub.epoch;
        let pin = if rules.pins_complete { self.state.image(hub.epoch).writes } else { hub.pin };
        for _ in 0..ways([rules.close_first, closed]) {
            let released = Hub { phase: Phase::Released, pin, ..hub };
            self.write_hub(self.model.id(At::Ack, c), released, |next| {
                if !rules.loss_needs_fence {
                    next.must = pin;
                }
            });
        }
    }

    fn crash(&mut self, c: usize) {
        let cluster = &self.state.clusters[c];
        let Some(mut next) = self.faulted() else { return };
        self.lose_memory(&mut next.clusters[c]);
        for _ in 0..ways([cluster.view != Hub::default(), cluster.permitted != 0]) {
            self.steps.step(self.model.id(At::Crash, c), next.clone());
        }
    }

    fn power_off(&mut self, c: usize) {
        if !self.model.force || self.state.clusters[c].off {
            return;
        }
        let Some(mut next) = self.faulted() else { return };
        self.lose_memory(&mut next.clusters[c]);
        next.clusters[c].off = true;
        next.clusters[c].running = 0;
        self.steps.step(self.model.id(At::PowerOff, c), next);
    }

    fn lose_memory(&self, cluster: &mut Cluster) {
        cluster.view = Hub::default();
        cluster.permitted = 0;
        if !self.model.rules.durable_rel {
            cluster.released = 0;
        }
    }

    pub(super) fn power_on(&mut self, c: usize) {
        if self.state.clusters[c].off {
            let needs_permit = self.model.rules.boot_needs_permit;
            self.step_at(At::PowerOn, c, |cluster| {
                cluster.off = false;
                if !needs_permit {
                    cluster.running = cluster.restarts;
                }
            });
        }
    }
}
