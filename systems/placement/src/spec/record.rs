//! The stage that ships: the same protocol where the permit is a record at the cluster.
//!
//! It is what the model of the shipped controllers is held against. The hub's part is the same. At a
//! cluster, a crash forgets no permit, and a step takes it back; a process may end at any time; what
//! copies data needs no syncer; and an epoch that was never filled is given back as it came.

use super::hub::{Extent, Hub, Phase};
use super::steps::{At, Moves, may_use};
use super::{Placement, Rules};

impl Placement {
    /// The stage that ships, with any number of faults.
    pub(crate) fn on_record(extent: Extent, force: bool) -> Self {
        Placement {
            extent,
            force,
            relist: true,
            faults: None,
            rules: Rules { permit_on_record: true, ..Rules::ALL },
        }
    }
}

impl Moves<'_> {
    /// What happens at one cluster.
    pub(super) fn on_record(&mut self, c: usize) {
        self.forget(c);
        if self.state.clusters[c].off {
            return self.power_on(c);
        }
        self.fill_on_record(c);
        self.permit(c);
        self.write(c);
        self.replicate(c);
        self.run_on_record(c);
        self.close_on_record(c);
        self.ack_on_record(c);
        if self.model.force {
            self.step_at(At::PowerOff, c, |cluster| {
                cluster.off = true;
                cluster.running = 0;
                cluster.permitted = 0;
            });
        }
    }

    /// A syncer crashes, and with it may go what it was about to permit; what is noted stays. It
    /// begins anew with nothing, or with any value of the past.
    fn forget(&mut self, c: usize) {
        let mut views = Vec::new();
        self.state.past.each(self.state.hub.epoch, |past| views.push(past));
        for view in views {
            for keeps in [true, false] {
                self.step_at(At::Crash, c, |cluster| {
                    cluster.view = view;
                    if !keeps {
                        cluster.permitted = 0;
                    }
                });
            }
        }
        if self.state.clusters[c].permitted != 0 {
            self.step_at(At::Withdraw, c, |cluster| cluster.permitted = 0);
        }
    }

    /// The volume of an epoch that is over is free for the pins of another.
    fn fill_on_record(&mut self, c: usize) {
        let (hub, cluster) = (self.state.hub, &self.state.clusters[c]);
        if cluster.running == 0 && cluster.filled < hub.epoch {
            let mut pins = vec![0];
            self.state.past.each(hub.epoch, |past| pins.push(past.pin));
            for pin in pins {
                self.step_at(At::FillBegin, c, |cluster| cluster.volume = pin);
            }
        }
        let view = cluster.view;
        if may_use(&view, cluster, c)
            && cluster.filled < view.epoch
            && view.pin & !cluster.volume == 0
        {
            self.step_at(At::FillEnd, c, |cluster| cluster.filled = view.epoch);
        }
    }

    fn run_on_record(&mut self, c: usize) {
        let cluster = &self.state.clusters[c];
        if cluster.running != 0 {
            self.step_at(At::Stop, c, |cluster| cluster.running = 0);
        } else if cluster.permitted > cluster.released {
            self.step_at(At::Start, c, |cluster| cluster.running = cluster.permitted);
        }
    }

    /// An epoch that the hub took back, and that does not run, can be made never to run again.
    fn close_on_record(&mut self, c: usize) {
        let (hub, cluster) = (self.state.hub, &self.state.clusters[c]);
        let is_granted = hub.is_owned_by(c) && hub.phase == Phase::Granted;
        let over = if is_granted { hub.epoch - 1 } else { hub.epoch };
        if cluster.running != 0 {
            return;
        }
        for epoch in cluster.released + 1..=over {
            self.step_at(At::Close, c, |cluster| {
                cluster.released = epoch;
                cluster.permitted = 0;
            });
        }
        let filled = cluster.filled;
        if filled != 0 && cluster.released >= filled && cluster.copied < filled {
            self.step(At::FinalSync, c, |next| {
                let volume = next.clusters[c].volume;
                next.set_image(filled, volume);
                next.clusters[c].copied = filled;
            });
        }
    }

    fn ack_on_record(&mut self, c: usize) {
        let (hub, cluster) = (self.state.hub, &self.state.clusters[c]);
        let is_revoked = hub.is_owned_by(c) && hub.phase == Phase::Revoking;
        if !is_revoked || cluster.released != hub.epoch {
            return;
        }
        let is_filled = cluster.filled == hub.epoch;
        if is_filled && cluster.copied != hub.epoch {
            return;
        }
        let pin = if is_filled { self.state.image(hub.epoch).writes } else { hub.pin };
        let released = Hub { phase: Phase::Released, pin, ..hub };
        self.write_hub(self.model.id(At::Ack, c), released, |_| ());
    }
}
