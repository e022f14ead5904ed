//! The machine of a cluster: processes with their locks, and disks.

use super::claim_number;
use super::processes::{Processes, Runs};
use super::truth::Writes;
use crate::runtime::outside::Run;
use std::collections::{BTreeMap, BTreeSet};

/// A machine. It has power from the start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Machine {
    /// How often power was lost.
    pub(super) boots: u8,
    pub(super) is_off: bool,
    pub(super) processes: Processes,
    /// What is in volumes and snapshots: the epochs that wrote to it.
    pub(super) disks: BTreeMap<String, BTreeSet<i64>>,
    /// The volume that each epoch writes to, for each claim by its number.
    pub(super) mounted: BTreeMap<(i64, u8), String>,
}

impl Runs for Machine {
    fn processes(&self) -> &Processes {
        &self.processes
    }

    fn with_processes(&self, processes: Processes) -> Machine {
        Machine { processes, ..self.clone() }
    }

    fn written(&self, run: &Run) -> Machine {
        let mut machine = self.clone();
        for mount in &run.mounts {
            let Some(handle) = mount.handle.clone() else { continue };
            machine.disks.entry(handle.clone()).or_default().insert(run.epoch);
            machine.mounted.insert((run.epoch, claim_number(&mount.claim)), handle);
        }
        machine
    }
}

impl Machine {
    /// What is in a volume or a snapshot of a claim.
    pub(super) fn written_to(&self, disk: &str, claim: u8) -> Writes {
        let content = self.disks.get(disk).into_iter().flatten();
        content.map(|epoch| (*epoch, claim)).collect()
    }

    /// Whether an epoch writes to a volume.
    pub(super) fn has_mounted(&self, epoch: i64, volume: &str) -> bool {
        self.mounted.iter().any(|((of, _), mounted)| *of == epoch && mounted == volume)
    }

    /// What is left when power is lost.
    pub(super) fn without_power(&self) -> Machine {
        Machine { is_off: true, ..self.with_processes(self.processes.without_power()) }
    }

    /// The machine after power returned.
    pub(super) fn started_again(&self) -> Machine {
        Machine { is_off: false, boots: self.boots + 1, ..self.clone() }
    }
}
