//! The machine of a cluster: its processes and their locks, and its volumes.

use interlock_placement::runtime::outside::Run;
use interlock_placement::world::processes::{Life, Processes, Runs};
use interlock_volumes::world::disks::{Storage, Stores, Thing};
use std::collections::BTreeMap;

/// A machine with power.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Machine {
    pub(super) processes: Processes,
    /// The volume that each epoch writes to.
    pub(super) mounted: BTreeMap<i64, String>,
    pub(super) storage: Storage,
}

impl Stores for Machine {
    fn storage(&self) -> &Storage {
        &self.storage
    }
    fn with_storage(&self, storage: Storage) -> Machine {
        Machine { storage, ..self.clone() }
    }
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
        for handle in run.mounts.iter().filter_map(|mount| mount.handle.clone()) {
            if let Some(Thing::Whole(copied)) = machine.storage.volumes.get_mut(&handle) {
                copied.data.insert(run.epoch);
            }
            machine.mounted.insert(run.epoch, handle);
        }
        machine
    }
}

impl Machine {
    /// The machine after each process that was asked to stop ended, for each of them.
    pub(super) fn endings(&self) -> Vec<Machine> {
        let stopping = self.processes.lives().filter(|(_, life)| *life == Life::Stopping);
        stopping.map(|(pod, _)| self.with_processes(self.processes.ended(pod))).collect()
    }
}
