//! The machine of a cluster: its processes and their locks, and its volumes.

use interlock_kernel::Nothing;
use interlock_placement::runtime::outside::{
    Answer, Deed, Ending, Held, Known, LockName, Machine as Processes, Question, Run, Started,
};
use interlock_placement::syncer::{Holding, Locks, LocksOf};
use interlock_volumes::world::disks::{Storage, Stores, Thing};
use interlock_world::Driver;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// When everything happens.
pub(super) fn start() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap_or_default()
}

/// How far the process of a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Life {
    Lives,
    Stopping,
    Gone,
}

/// The process of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Process {
    life: Life,
    /// The namespace on the cluster.
    namespace: String,
    epoch: i64,
}

/// A machine with power.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Machine {
    /// By the uid of the pod.
    processes: BTreeMap<String, Process>,
    /// Locks that the runtime has taken and given to no process, by the uid of the pod.
    in_hand: BTreeMap<String, (String, String)>,
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

impl Machine {
    /// The epochs of a namespace whose processes live.
    pub(super) fn running(&self, namespace: &str) -> BTreeSet<i64> {
        let own = self.processes.values().filter(|process| process.namespace == namespace);
        let living = own.filter(|process| process.life != Life::Gone);
        living.map(|process| process.epoch).collect()
    }

    fn holder(&self, pod: &str) -> Held {
        match self.processes.get(pod).map(|process| process.life) {
            _ if self.in_hand.contains_key(pod) => Held::Mine,
            Some(Life::Lives | Life::Stopping) => Held::Taken,
            Some(Life::Gone) | None => Held::Free,
        }
    }

    /// What is left when the runtime dies: it takes the locks with it that no process has.
    pub(super) fn without_runtime(&self) -> Machine {
        Machine { in_hand: BTreeMap::new(), ..self.clone() }
    }

    /// The machine after each process that was told to stop ended, for each of them.
    pub(super) fn endings(&self) -> Vec<Machine> {
        let stopping = self.processes.iter().filter(|(_, it)| it.life == Life::Stopping);
        stopping.map(|(pod, _)| self.ended(pod)).collect()
    }

    fn ended(&self, pod: &str) -> Machine {
        let mut machine = self.clone();
        if let Some(process) = machine.processes.get_mut(pod) {
            process.life = Life::Gone;
        }
        machine
    }

    /// A process starts, and writes to its volumes. Without the lock it comes to nothing.
    fn started(&self, run: &Run) -> Machine {
        let mut machine = self.clone();
        if machine.in_hand.remove(&run.lock.pod).is_none() {
            return machine;
        }
        let (namespace, epoch) = (run.lock.namespace.clone(), run.epoch);
        machine
            .processes
            .insert(run.lock.pod.clone(), Process { life: Life::Lives, namespace, epoch });
        for handle in run.mounts.iter().filter_map(|mount| mount.handle.clone()) {
            if let Some(Thing::Whole(copied)) = machine.storage.volumes.get_mut(&handle) {
                copied.data.insert(epoch);
            }
            machine.mounted.insert(epoch, handle);
        }
        machine
    }
}

impl Driver<Machine> for Locks {
    fn ask(machines: &[&Machine], here: usize, LocksOf { namespace, .. }: &LocksOf) -> Holding {
        let machine = machines[here];
        let is_in_hand = machine.in_hand.values().any(|(of, _)| of == namespace);
        match is_in_hand || !machine.running(namespace).is_empty() {
            true => Holding::Held(vec![7]),
            false => Holding::Free,
        }
    }

    fn perform(_: &[&Machine], _: usize, deed: &Nothing) -> Machine {
        match *deed {}
    }
}

impl Driver<Machine> for Processes {
    fn ask(machines: &[&Machine], here: usize, question: &Question) -> Answer {
        let machine = machines[here];
        let run = Started { pid: 7, since: start() };
        match question {
            Question::Process(pod) => {
                Answer::Process(match machine.processes.get(pod).map(|it| it.life) {
                    None => Known::Nothing,
                    Some(Life::Lives) => Known::Lives(run),
                    Some(Life::Stopping) => Known::Stopping(run),
                    Some(Life::Gone) => {
                        Known::Gone { run, ending: Ending::Signal(15), finished: Some(start()) }
                    }
                })
            }
            Question::Lock(lock) => Answer::Lock(machine.holder(&lock.pod)),
            Question::InHand { namespace, name } => {
                let locks = machine.in_hand.iter().map(|(pod, (namespace, name))| LockName {
                    namespace: namespace.clone(),
                    pod: pod.clone(),
                    name: name.clone(),
                });
                let is_its = |lock: &LockName| lock.namespace == *namespace && lock.name == *name;
                Answer::InHand(locks.filter(is_its).collect())
            }
        }
    }

    fn perform(machines: &[&Machine], here: usize, deed: &Deed) -> Machine {
        let mut machine = machines[here].clone();
        match deed {
            Deed::TakeLock(lock) => {
                if machine.holder(&lock.pod) == Held::Free {
                    let of = (lock.namespace.clone(), lock.name.clone());
                    machine.in_hand.insert(lock.pod.clone(), of);
                }
            }
            Deed::LetGo(lock) => {
                machine.in_hand.remove(&lock.pod);
            }
            Deed::Start(run) => machine = machine.started(run),
            Deed::Terminate(pod) => {
                if let Some(process) = machine.processes.get_mut(pod)
                    && process.life == Life::Lives
                {
                    process.life = Life::Stopping;
                }
            }
            Deed::Kill(pod) => machine = machine.ended(pod),
        }
        machine
    }
}
