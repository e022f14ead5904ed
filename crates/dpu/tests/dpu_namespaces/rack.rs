//! Two DPUs with two ports each, a machine at each port, and the underlay between the DPUs.

use crate::agent::{Agent, Start, Stop};
use crate::mode::script;
use crate::net::{Running, Space};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A machine: where it is wired, and what it was given. Machines 1 and 3 have one address in common, and 2 and 4.
pub(crate) struct Machine {
    pub(crate) space: Space,
    pub(crate) dpu: usize,
    pub(crate) port: &'static str,
    pub(crate) node: String,
    pub(crate) mac: String,
    /// The address that a machine of the other tenant has, too; one of its own; and one of version 6.
    pub(crate) addresses: [String; 3],
}

pub(crate) struct Rack {
    pub(crate) dpus: Vec<Space>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) machines: Vec<Machine>,
    pub(crate) folder: TempDir,
    _underlay: Space,
}

const PLACES: [(usize, &str); 4] = [(0, "p1"), (1, "p1"), (0, "p2"), (1, "p2")];

fn machine(number: usize, space: Space) -> Machine {
    let (dpu, port) = PLACES[number];
    let shared = 1 + number % 2;
    Machine {
        space,
        dpu,
        port,
        node: format!("5f0d3c3e-7a7e-4c55-8d0b-3c6a9f7b1e0{number}"),
        mac: format!("02:00:00:00:00:0{}", number + 1),
        addresses: [
            format!("10.0.0.{shared}"),
            format!("10.0.1.{}", number + 1),
            format!("fd00::{shared}"),
        ],
    }
}

/// Where the agents of a DPU, counted from 1, have their records.
fn records(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("dpu-{number}"))
}

fn agent(dpu: &Space, folder: &Path, number: usize) -> Agent {
    Agent::start(&Start {
        user: None,
        network: dpu.file("net"),
        folder: &records(folder, number),
        boot: "one",
        vtep: &format!("192.0.2.{number}"),
        ports: "p1,p2",
        nft: Path::new("nft"),
        stop: Stop::Never,
    })
}

impl Rack {
    pub(crate) fn new() -> Rack {
        let underlay = Space::new(false);
        underlay.run("ip link add under type bridge && ip link set under up");
        let folder = tempfile::tempdir().unwrap();
        let (mut dpus, mut agents) = (Vec::new(), Vec::new());
        for number in 1..=2 {
            let dpu = Space::new(false);
            dpu.cable("wire", &underlay, &format!("u{number}"));
            dpu.run(&format!("ip address add 192.0.2.{number}/24 dev wire && ip link set wire up"));
            underlay.run(&format!("ip link set u{number} master under up"));
            agents.push(agent(&dpu, folder.path(), number));
            dpus.push(dpu);
        }
        let mut machines = Vec::new();
        for number in 0..4 {
            let machine = machine(number, Space::new(false));
            dpus[machine.dpu].cable(machine.port, &machine.space, "eth0");
            let Machine { space, mac, addresses: [shared, own, six], .. } = &machine;
            space.run(&format!(
                "ip link set eth0 address {mac} && ip address add {shared}/16 dev eth0 && \
                 ip address add {own}/16 dev eth0 && ip address add {six}/64 dev eth0 nodad && \
                 ip link set eth0 up && ip link set lo up"
            ));
            machines.push(machine);
        }
        Rack { dpus, agents, machines, folder, _underlay: underlay }
    }

    /// One more agent of the DPU of a machine, with the same records.
    pub(crate) fn another_agent(&self, number: usize) -> Agent {
        let dpu = self.machines[number].dpu;
        agent(&self.dpus[dpu], self.folder.path(), dpu + 1)
    }

    /// The lock of the port of a machine.
    pub(crate) fn lock(&self, number: usize) -> PathBuf {
        let Machine { dpu, port, .. } = &self.machines[number];
        records(self.folder.path(), dpu + 1).join(format!("{port}.lock"))
    }

    pub(crate) fn adopt(&mut self, number: usize) {
        let machine = &self.machines[number];
        let agent = &mut self.agents[machine.dpu];
        agent.done("adopt", machine.port, &format!("{} 0", machine.node));
    }

    /// Opens the port of a machine, as its DPU is asked to.
    pub(crate) fn attach(&mut self, number: usize, epoch: i64, vni: u32) {
        let rest = self.entry(number, epoch, vni);
        let Machine { dpu, port, .. } = self.machines[number];
        self.agents[dpu].done("attach", port, &rest);
    }

    /// What an attach of a machine says after port and term.
    pub(crate) fn entry(&self, number: usize, epoch: i64, vni: u32) -> String {
        let Machine { dpu, node, mac, addresses, .. } = &self.machines[number];
        let (own, other) = (addresses.join(","), 2 - dpu);
        format!("{node} {epoch} {vni} {mac} {own} 192.0.2.{other}")
    }

    pub(crate) fn isolate(&mut self, number: usize, floor: i64) {
        let machine = &self.machines[number];
        let agent = &mut self.agents[machine.dpu];
        agent.done("isolate", machine.port, &format!("{} {floor}", machine.node));
    }

    /// Machines 1 and 2 are of one tenant, 3 and 4 of another one.
    pub(crate) fn open_all(&mut self) {
        for (number, vni) in [(0, 4096), (1, 4096), (2, 4097), (3, 4097)] {
            self.adopt(number);
            self.attach(number, 1, vni);
        }
    }

    /// What arrives at a machine from now on.
    pub(crate) fn sniff(&self, number: usize) -> Running {
        let script = script(self.folder.path(), "sniff.py", include_str!("../real/sniff.py"));
        let running =
            self.machines[number].space.start(&format!("python3 {} eth0", script.display()));
        running.prints("ready");
        running
    }
}
