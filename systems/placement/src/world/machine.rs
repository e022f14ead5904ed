//! The machine of a cluster: processes, locks and disks.

use super::claim_number;
use super::truth::Writes;
use crate::runtime::outside::{
    Answer, Deed, Ending, Held, Known, LockName, Machine as Processes, Question, Started,
};
use crate::syncer::{Holding, Locks, LocksOf};
use interlock_kernel::Nothing;
use interlock_world::Driver;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// When everything happens.
pub(super) fn start() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap_or_default()
}

/// How far the process of a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Life {
    Lives,
    Stopping,
    Gone,
}

/// The process of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) life: Life,
    /// The namespace on the cluster.
    namespace: String,
    pub(super) epoch: i64,
}

/// A machine. It has power from the start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Machine {
    /// How often power was lost.
    pub(super) boots: u8,
    pub(super) is_off: bool,
    /// By the uid of the pod.
    pub(super) processes: BTreeMap<String, Process>,
    /// Locks that the runtime has taken and given to no process, by the uid of the pod.
    in_hand: BTreeMap<String, (String, String)>,
    /// What is in volumes and snapshots: the epochs that wrote to it.
    pub(super) disks: BTreeMap<String, BTreeSet<i64>>,
    /// The volume that each epoch writes to, for each claim by its number.
    pub(super) mounted: BTreeMap<(i64, u8), String>,
}

impl Machine {
    /// The epochs of a namespace whose processes live.
    pub(super) fn running(&self, namespace: &str) -> BTreeSet<i64> {
        let own = self.processes.values().filter(|process| process.namespace == namespace);
        let living = own.filter(|process| process.life != Life::Gone);
        living.map(|process| process.epoch).collect()
    }

    /// What is in a volume or a snapshot of a claim.
    pub(super) fn written_to(&self, disk: &str, claim: u8) -> Writes {
        let content = self.disks.get(disk).into_iter().flatten();
        content.map(|epoch| (*epoch, claim)).collect()
    }

    /// Whether an epoch writes to a volume.
    pub(super) fn has_mounted(&self, epoch: i64, volume: &str) -> bool {
        self.mounted.iter().any(|((of, _), mounted)| *of == epoch && mounted == volume)
    }

    /// Whether the runtime has a lock of a namespace that it has given to no process.
    pub(super) fn has_lock_in_hand(&self, namespace: &str) -> bool {
        self.in_hand.values().any(|(of, _)| of == namespace)
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

    /// What is left when power is lost.
    pub(super) fn without_power(&self) -> Machine {
        let gone = |process: &Process| Process { life: Life::Gone, ..process.clone() };
        let processes = self.processes.iter().map(|(pod, it)| (pod.clone(), gone(it))).collect();
        Machine { is_off: true, processes, in_hand: BTreeMap::new(), ..self.clone() }
    }

    /// The machine after power returned.
    pub(super) fn started_again(&self) -> Machine {
        Machine { is_off: false, boots: self.boots + 1, ..self.clone() }
    }

    /// The machine after a process that was told to stop, or wanted to, ended.
    pub(super) fn ended(&self, pod: &str) -> Machine {
        let mut machine = self.clone();
        if let Some(process) = machine.processes.get_mut(pod) {
            process.life = Life::Gone;
        }
        machine
    }
}

impl Driver<Machine> for Locks {
    fn ask(machines: &[&Machine], here: usize, LocksOf { namespace, .. }: &LocksOf) -> Holding {
        let machine = machines[here];
        match machine.has_lock_in_hand(namespace) || !machine.running(namespace).is_empty() {
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
            // A start without the lock comes to nothing.
            Deed::Start(run) => {
                if machine.in_hand.remove(&run.lock.pod).is_some() {
                    let process = Process {
                        life: Life::Lives,
                        namespace: run.lock.namespace.clone(),
                        epoch: run.epoch,
                    };
                    machine.processes.insert(run.lock.pod.clone(), process);
                    for mount in &run.mounts {
                        let Some(handle) = mount.handle.clone() else { continue };
                        machine.disks.entry(handle.clone()).or_default().insert(run.epoch);
                        machine.mounted.insert((run.epoch, claim_number(&mount.claim)), handle);
                    }
                }
            }
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
