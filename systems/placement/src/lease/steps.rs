//! The steps under leases, and the rules about them broken on purpose.

use super::{ALL as ALL_RULES, Cluster, Lease, Rules, State};
use crate::spec::hub::{Extent, Hub, Phase};
use crate::spec::name_of;
use interlock_checker::{Action, ActionId, Mutant, Steps};

const REVOKE: ActionId = 0;
const FENCE: ActionId = 1;
const OF_CLUSTERS: ActionId = 2;

/// What happens at, or to, one cluster.
#[derive(Debug, Clone, Copy)]
pub(super) enum At {
    Grant,
    Observe,
    Renew,
    Expire,
    Populate,
    Start,
    Write,
    Replicate,
    Stop,
    FinalSync,
    Ack,
    Crash,
    TimeWarp,
}

const ALL: [At; 13] = [
    At::Grant,
    At::Observe,
    At::Renew,
    At::Expire,
    At::Populate,
    At::Start,
    At::Write,
    At::Replicate,
    At::Stop,
    At::FinalSync,
    At::Ack,
    At::Crash,
    At::TimeWarp,
];

/// What may not be put off for ever at a cluster.
pub(super) const FAIR: [At; 7] =
    [At::Observe, At::Renew, At::Populate, At::Start, At::Stop, At::FinalSync, At::Ack];

impl Lease {
    pub(super) fn id(&self, at: At, c: usize) -> ActionId {
        OF_CLUSTERS + (at as usize * self.extent.clusters + c) as ActionId
    }

    pub(super) fn all_actions(&self) -> Vec<Action> {
        let mut actions = vec![Action::new("Revoke", "hub"), Action::new("Fence", "hub")];
        for at in ALL {
            for c in (0..self.extent.clusters).map(name_of) {
                let (syncer, cluster) = (format!("syncer {c}"), format!("cluster {c}"));
                let name = format!("{at:?}({c})");
                actions.push(match at {
                    At::Grant => Action::new(name, "hub"),
                    At::Observe | At::TimeWarp | At::Renew | At::Ack => {
                        Action::new(name, syncer).to("hub")
                    }
                    At::Populate | At::Start | At::Stop => Action::new(name, syncer).to(cluster),
                    At::Replicate | At::FinalSync => Action::new(name, syncer).to("images"),
                    At::Crash => Action::new(name, syncer),
                    At::Write | At::Expire => Action::new(name, cluster),
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
        // The calm specification has Revoke under its quantifier over clusters.
        for _ in 0..if self.calm { self.extent.clusters } else { 1 } {
            moves.revoke();
        }
        moves.fence();
        for c in 0..self.extent.clusters {
            moves.see(c);
            moves.lease(c);
            moves.populate(c);
            moves.start(c);
            moves.write(c);
            moves.replicate(c);
            moves.stop(c);
            moves.final_sync(c);
            moves.ack(c);
        }
    }

    fn broken(&self, rules: Rules) -> Lease {
        let extent = Extent {
            clusters: self.extent.clusters.max(2),
            epochs: self.extent.epochs.max(2),
            writes: self.extent.writes.max(1),
        };
        Lease { extent, rules, ..self.clone() }
    }

    pub(super) fn broken_rules(&self) -> Vec<Mutant<Lease>> {
        if self.calm {
            return Vec::new();
        }
        let forced = |rules| Lease { force: true, ..self.broken(rules) };
        let planned = |rules| Lease { force: false, relist: true, ..self.broken(rules) };
        vec![
            Mutant::new(
                "grant-without-release",
                "the namespace is granted to the next cluster while another still owns it",
                &["OnlyTheOwnerRuns"],
                self.broken(Rules { need_ack: false, ..ALL_RULES }),
            ),
            Mutant::new(
                "takeover-without-lease",
                "an owner is taken over although nothing says that it has stopped",
                &["OnlyTheOwnerRuns"],
                Lease { lease: false, ..forced(ALL_RULES) },
            ),
            Mutant::new(
                "lease-stops-nothing",
                "a lease runs out, and what runs under it runs on",
                &["OnlyTheOwnerRuns"],
                Lease { lease: true, ..forced(Rules { self_fence: false, ..ALL_RULES }) },
            ),
            Mutant::new(
                "released-not-noted",
                "the closed epoch is not noted, and a syncer that lists the past starts it again",
                &["OnlyTheOwnerRuns"],
                Lease { lease: false, ..planned(Rules { durable_rel: false, ..ALL_RULES }) },
            ),
            Mutant::new(
                "released-not-noted-leased",
                "the same under a lease, which outlives the release",
                &["OnlyTheOwnerRuns"],
                Lease { lease: true, ..planned(Rules { durable_rel: false, ..ALL_RULES }) },
            ),
            Mutant::new(
                "no-final-copy",
                "the namespace is released with whatever the last background copy had",
                &["NoLoss"],
                planned(Rules { final_sync: false, ..ALL_RULES }),
            ),
        ]
    }
}

/// The steps out of one state, as they are found.
struct Moves<'a> {
    model: &'a Lease,
    state: &'a State,
    steps: &'a mut Steps<State>,
}

impl Moves<'_> {
    fn step(&mut self, at: At, c: usize, change: impl FnOnce(&mut State, usize)) {
        let mut next = self.state.clone();
        change(&mut next, c);
        self.steps.step(self.model.id(at, c), next);
    }

    fn step_at(&mut self, at: At, c: usize, change: impl FnOnce(&mut Cluster)) {
        self.step(at, c, |next, c| change(&mut next.clusters[c]));
    }

    fn write_hub(&mut self, action: ActionId, hub: Hub, change: impl FnOnce(&mut State)) {
        let mut next = self.state.clone();
        change(&mut next);
        next.hub = hub;
        if self.model.relist {
            next.past.remember(hub);
        }
        self.steps.step(action, next);
    }

    fn grant(&mut self, c: usize) {
        let hub = self.state.hub;
        let seized = !self.model.rules.need_ack && !hub.is_owned_by(c);
        if hub.epoch == self.model.extent.epochs || hub.is_held() && !seized {
            return;
        }
        let is_fenced = hub.phase == Phase::Fenced;
        let pin = if is_fenced { hub.pin } else { self.state.image(hub.epoch) };
        let grant = Hub { epoch: hub.epoch + 1, owner: c as u8, phase: Phase::Granted, pin };
        self.write_hub(self.model.id(At::Grant, c), grant, |_| ());
    }

    fn revoke(&mut self) {
        let hub = self.state.hub;
        if hub.phase == Phase::Granted {
            self.write_hub(REVOKE, Hub { phase: Phase::Revoking, ..hub }, |_| ());
        }
    }

    fn fence(&mut self) {
        let hub = self.state.hub;
        if !self.model.force || !hub.is_held() {
            return;
        }
        let owner = self.state.clusters[usize::from(hub.owner)];
        if self.model.lease && owner.leased == hub.epoch {
            return;
        }
        let image = self.state.image(hub.epoch);
        let never_filled = image == 0 && owner.filled != hub.epoch;
        let pin = if never_filled { hub.pin } else { image };
        let fenced = Hub { phase: Phase::Fenced, pin, ..hub };
        self.write_hub(FENCE, fenced, |next| next.must = pin);
    }

    /// What a syncer sees: the present, nothing after a crash, or any past value.
    fn see(&mut self, c: usize) {
        let hub = self.state.hub;
        self.step_at(At::Observe, c, |cluster| cluster.view = hub);
        if !self.model.calm {
            self.step_at(At::Crash, c, |cluster| cluster.view = Hub::default());
        }
        if self.model.relist {
            self.state.past.each(hub.epoch, |past| {
                self.step_at(At::TimeWarp, c, |cluster| cluster.view = past);
            });
        }
    }

    fn lease(&mut self, c: usize) {
        let hub = self.state.hub;
        if self.model.lease && hub.is_owned_by(c) && hub.is_held() {
            self.step_at(At::Renew, c, |cluster| cluster.leased = hub.epoch);
        }
        if self.state.clusters[c].leased != 0 && !self.model.calm {
            let stops = self.model.rules.self_fence;
            self.step_at(At::Expire, c, |cluster| {
                cluster.leased = 0;
                if stops {
                    cluster.running = 0;
                }
            });
        }
    }

    fn may_use(&self, c: usize) -> bool {
        let cluster = &self.state.clusters[c];
        cluster.view.is_owned_by(c)
            && cluster.view.phase == Phase::Granted
            && cluster.view.epoch > cluster.released
            && cluster.running == 0
            && (!self.model.lease || cluster.leased == cluster.view.epoch)
    }

    fn populate(&mut self, c: usize) {
        let Hub { epoch, pin, .. } = self.state.clusters[c].view;
        if self.may_use(c) && self.state.clusters[c].filled < epoch {
            self.step(At::Populate, c, |next, c| {
                next.clusters[c].volume = pin;
                next.clusters[c].filled = epoch;
                next.set_image(epoch, pin);
            });
        }
    }

    fn start(&mut self, c: usize) {
        let epoch = self.state.clusters[c].view.epoch;
        if self.may_use(c) && self.state.clusters[c].filled == epoch {
            self.step_at(At::Start, c, |cluster| cluster.running = epoch);
        }
    }

    fn write(&mut self, c: usize) {
        let writes_left = self.state.written < self.model.extent.writes;
        if self.state.clusters[c].running != 0 && writes_left {
            self.step(At::Write, c, |next, c| {
                let write = 1 << next.written;
                next.written += 1;
                next.clusters[c].volume |= write;
                next.must |= write;
            });
        }
    }

    fn replicate(&mut self, c: usize) {
        let Cluster { filled, released, volume, .. } = self.state.clusters[c];
        if filled != 0 && released < filled {
            self.step(At::Replicate, c, |next, _| next.set_image(filled, volume));
        }
    }

    fn stop(&mut self, c: usize) {
        let Cluster { view, running, .. } = self.state.clusters[c];
        if running == 0 {
            return;
        }
        // TLC takes the step once for each reason that there is.
        let reasons = [!view.is_owned_by(c), view.phase != Phase::Granted, view.epoch != running];
        for _ in reasons.into_iter().filter(|holds| *holds) {
            self.step_at(At::Stop, c, |cluster| cluster.running = 0);
        }
    }

    fn final_sync(&mut self, c: usize) {
        let Cluster { view, running, filled, copied, volume, .. } = self.state.clusters[c];
        let is_leaving = view.is_owned_by(c) && view.phase == Phase::Revoking;
        if !is_leaving || running != 0 || copied >= view.epoch {
            return;
        }
        let rules = self.model.rules;
        self.step(At::FinalSync, c, |next, c| {
            if rules.durable_rel {
                next.clusters[c].released = view.epoch;
            }
            if filled != view.epoch {
                next.set_image(view.epoch, view.pin);
            } else if rules.final_sync {
                next.set_image(view.epoch, volume);
            }
            next.clusters[c].copied = view.epoch;
        });
    }

    fn ack(&mut self, c: usize) {
        let hub = self.state.hub;
        let is_revoked = hub.is_owned_by(c) && hub.phase == Phase::Revoking;
        if is_revoked && self.state.clusters[c].copied == hub.epoch {
            let released = Hub { phase: Phase::Released, ..hub };
            self.write_hub(self.model.id(At::Ack, c), released, |_| ());
        }
    }
}
