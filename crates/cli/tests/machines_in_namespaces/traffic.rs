//! A machine that does not stop sending, and what arrives of it in the networks of both tenants.

use crate::fleet::{Fleet, Tenant};
use crate::harness::until;
use crate::mode::script;
use crate::net::{Running, marks};
use std::thread::sleep;
use std::time::Duration;

/// A frame that arrived: when, and which one it was.
type Arrived = (u64, u64);

/// Numbered broadcasts of the first machine, one every two milliseconds, and sniffers at the second machine, which is blue's,
/// and at the fourth one, which is green's.
pub(crate) struct Traffic {
    _stream: Running,
    blue: Running,
    green: Running,
}

/// What arrives at a machine from now on.
pub(crate) fn sniff(fleet: &Fleet, machine: usize) -> Running {
    let text = include_str!("../../../dpu/tests/real/sniff.py");
    let script = script(&fleet.folder(), "sniff.py", text);
    let space = &fleet.rack.machines[machine].space;
    let running = space.start(&format!("python3 {} eth0", script.display()));
    running.prints("ready");
    running
}

impl Traffic {
    pub(crate) fn start(fleet: &Fleet) -> Traffic {
        let (blue, green) = (sniff(fleet, 1), sniff(fleet, 3));
        let text = include_str!("../../../dpu/tests/real/stream.py");
        let script = script(&fleet.folder(), "stream.py", text);
        let machine = &fleet.rack.machines[0];
        let (mac, address) = (&machine.mac, &machine.addresses[1]);
        let line = format!("python3 {} eth0 {mac} {address}", script.display());
        let stream = machine.space.start(&line);
        stream.prints("ready");
        Traffic { _stream: stream, blue, green }
    }

    /// What has arrived in the network of a tenant, in this order.
    fn arrived(&self, tenant: Tenant) -> Vec<Arrived> {
        let sniffer = match tenant {
            Tenant::Blue => &self.blue,
            Tenant::Green => &self.green,
        };
        let marks = marks(sniffer).into_iter();
        marks.filter_map(|(when, mark)| Some((when, mark.parse().ok()?))).collect()
    }

    pub(crate) fn count(&self, tenant: Tenant) -> usize {
        self.arrived(tenant).len()
    }

    /// Waits until the machine reaches a tenant.
    pub(crate) fn arrives(&self, tenant: Tenant) {
        let before = self.count(tenant);
        until(&format!("frames arrive at {}", tenant.name()), || match self.count(tenant) {
            now if now > before + 20 => Ok(()),
            now => Err(format!("{before} frames, and then {now}")),
        });
    }

    /// The machine sends, and reaches no tenant; how many frames each of them has had.
    pub(crate) fn is_silent(&self) -> [usize; 2] {
        let counted = || [Tenant::Blue, Tenant::Green].map(|tenant| self.count(tenant));
        // What a sniffer had not printed yet.
        sleep(Duration::from_millis(500));
        let before = counted();
        sleep(Duration::from_millis(500));
        assert_eq!(counted(), before, "frames arrive at a tenant that does not have the machine");
        before
    }

    /// The last frame that one tenant received was sent before the first one that the other tenant received.
    pub(crate) fn went_over(&self, from: Tenant, to: Tenant) {
        let (before, after) = (self.arrived(from), self.arrived(to));
        let (last, first) = (before.last().unwrap(), after.first().unwrap());
        assert!(
            last.1 < first.1,
            "frame {} is {}'s, and {} {}'s",
            last.1,
            from.name(),
            first.1,
            to.name()
        );
        assert!(last.0 < first.0, "no silence between");
        println!(
            "    from {} to {}: silent for {} ms",
            from.name(),
            to.name(),
            (first.0 - last.0) / 1_000_000
        );
    }
}
