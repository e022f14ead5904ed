//! One DPU with two ports, a machine at each.

use crate::agent::{Agent, Start, Stop};
use crate::net::Space;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) const NODE: &str = "5f0d3c3e-7a7e-4c55-8d0b-3c6a9f7b1e01";
pub(crate) const OTHER: &str = "5f0d3c3e-7a7e-4c55-8d0b-3c6a9f7b1e02";

pub(crate) struct Scene {
    pub(crate) dpu: Space,
    pub(crate) folder: TempDir,
    pub(crate) nft: PathBuf,
    _machine: Space,
}

/// What an attach of an epoch says after port and term.
pub(crate) fn entry(epoch: i64) -> String {
    entry_in(epoch, 4096)
}

pub(crate) fn entry_in(epoch: i64, vni: u32) -> String {
    format!("{NODE} {epoch} {vni} 02:00:00:00:00:01 10.0.0.2,fd00::1,10.0.0.1 192.0.2.2,192.0.2.3")
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let (dpu, machine) = (Space::new(false), Space::new(false));
        wire(&dpu, &machine);
        Scene { dpu, folder: tempfile::tempdir().unwrap(), nft: "nft".into(), _machine: machine }
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.folder.path().join("records")
    }

    pub(crate) fn agent(&self) -> Agent {
        self.agent_that(Stop::Never, "one")
    }

    pub(crate) fn agent_that(&self, stop: Stop, boot: &str) -> Agent {
        self.agent_with(&self.nft, stop, boot)
    }

    pub(crate) fn agent_with(&self, nft: &Path, stop: Stop, boot: &str) -> Agent {
        Agent::start(&Start {
            user: None,
            network: self.dpu.file("net"),
            folder: &self.records(),
            boot,
            vtep: "192.0.2.1",
            ports: "p1,p2",
            nft,
            stop,
        })
    }

    /// What the kernel itself says of a port: whether it is up, and in which bridge.
    pub(crate) fn link(&self, port: &str) -> (bool, String) {
        let text = self.dpu.run(&format!("ip -o link show {port}"));
        let is_up = text.split(['<', '>']).nth(1).unwrap().split(',').any(|flag| flag == "UP");
        let master = text.split(" master ").nth(1).and_then(|rest| rest.split(' ').next());
        (is_up, master.unwrap_or("none").to_owned())
    }

    /// All that may matter, closed, the records gone.
    pub(crate) fn reset(&self) {
        for port in ["p1", "p2"] {
            self.dpu.run(&format!("ip link set {port} down nomaster alias ''"));
        }
        self.dpu.try_run("ip link delete ilx4096; ip link delete ilb4096; nft flush ruleset");
        let _ = std::fs::remove_dir_all(self.records());
    }
}

/// Puts two ports into a namespace.
pub(crate) fn wire(dpu: &Space, machine: &Space) {
    for port in ["1", "2"] {
        dpu.cable(&format!("p{port}"), machine, &format!("m{port}"));
        machine.run(&format!("ip link set m{port} up"));
    }
}
