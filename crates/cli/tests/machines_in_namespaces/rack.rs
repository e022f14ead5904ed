//! A rack of network namespaces: two DPUs, two machines at each, the network between the DPUs, and the network to the hub.

use crate::net::Space;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Where each machine is wired: at which DPU, counted from 1, and at which port.
const PLACES: [(usize, &str); 4] = [(1, "p1"), (2, "p1"), (1, "p2"), (2, "p2")];

/// Where the agents find the hub.
pub(crate) const HUB: &str = "203.0.113.1:6443";

/// A machine. The first and the third one have one address in common, and so have the second and the fourth one.
pub(crate) struct Machine {
    pub(crate) space: Space,
    pub(crate) name: String,
    pub(crate) mac: String,
    pub(crate) addresses: [String; 2],
    dpu: usize,
    port: &'static str,
}

impl Machine {
    fn new(number: usize) -> Machine {
        let (dpu, port) = PLACES[number];
        Machine {
            space: Space::new(false),
            name: format!("n{}", number + 1),
            mac: format!("02:00:00:00:00:0{}", number + 1),
            addresses: [format!("10.0.0.{}", 1 + number % 2), format!("10.0.1.{}", number + 1)],
            dpu,
            port,
        }
    }

    /// How it is wired, as its PhysicalNode says.
    pub(crate) fn spec(&self) -> Value {
        let dpu = format!("d{}", self.dpu);
        let port = json!({"rack": "r1", "dpu": dpu, "port": self.port, "mac": self.mac});
        json!({"rack": "r1", "dpus": [port]})
    }
}

/// A cable of the first DPU.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cable {
    ToHub,
    ToOtherDpu,
}

pub(crate) struct Rack {
    pub(crate) machines: Vec<Machine>,
    dpus: [Space; 2],
    between: Space,
    /// Where this test is, and the hub.
    pub(crate) here: Space,
}

impl Rack {
    pub(crate) fn new() -> Rack {
        let (here, between) = (Space::here(), Space::new(false));
        here.run(
            "ip link set lo up && ip link add hub type bridge && \
             ip address add 203.0.113.1/24 dev hub && ip link set hub up",
        );
        between.run("ip link add wire type bridge && ip link set wire up");
        let dpus = [1, 2].map(|number| {
            let dpu = Space::new(false);
            dpu.cable("hub", &here, &format!("hub{number}"));
            dpu.cable("wire", &between, &format!("wire{number}"));
            dpu.run(&format!(
                "ip link set lo up && ip address add 203.0.113.1{number}/24 dev hub && \
                 ip link set hub up && ip address add 192.0.2.{number}/24 dev wire && \
                 ip link set wire up"
            ));
            here.run(&format!("ip link set hub{number} master hub up"));
            between.run(&format!("ip link set wire{number} master wire up"));
            dpu
        });
        let machines: Vec<Machine> = (0..PLACES.len()).map(Machine::new).collect();
        for Machine { space, mac, addresses: [shared, own], dpu, port, .. } in &machines {
            dpus[dpu - 1].cable(port, space, "eth0");
            space.run(&format!(
                "ip link set eth0 address {mac} && ip address add {shared}/16 dev eth0 && \
                 ip address add {own}/16 dev eth0 && ip link set eth0 up && ip link set lo up"
            ));
        }
        Rack { machines, dpus, between, here }
    }

    /// The network namespace of a DPU, counted from 1.
    pub(crate) fn namespace(&self, dpu: usize) -> PathBuf {
        self.dpus[dpu - 1].file("net")
    }

    pub(crate) fn unplug(&self, cable: Cable) {
        self.set(cable, "down");
    }

    pub(crate) fn plug(&self, cable: Cable) {
        self.set(cable, "up");
    }

    fn set(&self, cable: Cable, state: &str) {
        let (space, link) = match cable {
            Cable::ToHub => (&self.here, "hub1"),
            Cable::ToOtherDpu => (&self.between, "wire1"),
        };
        space.run(&format!("ip link set {link} {state}"));
    }

    /// Whether the port of the first machine is open for this epoch, as the kernel has it.
    pub(crate) fn is_open_for(&self, epoch: i64) -> bool {
        let link = self.dpus[0].run("ip link show dev p1");
        link.contains(" master ilb") && link.contains(&format!(" epoch={epoch} "))
    }

    /// What the kernel of the first DPU has after a loss of power: nothing that Interlock made.
    pub(crate) fn forget(&self) {
        self.dpus[0].run(
            "nft delete table bridge interlock && ip link delete group 18764 && \
             for port in p1 p2; do ip link set $port down && ip link set $port alias ''; done",
        );
    }

    /// The pairs of machines, counted from 1, of which the first one reaches the second one at the address that is only its.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        let mut reached = Vec::new();
        for (one, from) in self.machines.iter().enumerate() {
            for (other, to) in self.machines.iter().enumerate() {
                if other != one && from.space.reaches(&to.addresses[1]) {
                    reached.push((one + 1, other + 1));
                }
            }
        }
        reached
    }
}
