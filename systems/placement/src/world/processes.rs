//! The processes of a machine and their locks, for every world in which a runtime starts pods.

use crate::runtime::outside::{
    Action, Answer, Ending, Held, Holder, Known, LockName, Machine as Outside, Question, Run,
    Started, TokenFiles, Verdicts,
};
use crate::syncer::{Holding, Locks, LocksOf};
use interlock_kernel::Nothing;
use interlock_world::Driver;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// When everything happens.
pub fn start() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap_or_default()
}

/// A machine that runs processes.
pub trait Runs: Clone + 'static {
    /// Its processes.
    fn processes(&self) -> &Processes;
    /// The same machine with other ones.
    #[must_use]
    fn with_processes(&self, processes: Processes) -> Self;
    /// The same machine after a process that was just started wrote to its volumes.
    #[must_use]
    fn written(&self, run: &Run) -> Self;
}

/// How far the process of a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Life {
    /// It runs.
    Lives,
    /// It was asked to stop.
    Stopping,
    /// It ended.
    Gone,
}

/// The process of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Process {
    life: Life,
    /// The namespace on the cluster.
    namespace: String,
    /// The name of the pod.
    name: String,
    epoch: i64,
}

impl Process {
    fn has_lock(&self, namespace: &str, name: &str) -> bool {
        self.life != Life::Gone && self.namespace == namespace && self.name == name
    }

    fn known(&self) -> Known {
        let run = Started { pid: 7, since: start() };
        match self.life {
            Life::Lives => Known::Lives(run),
            Life::Stopping => Known::Stopping { run, since: start() },
            Life::Gone => Known::Gone { run, ending: Ending::Signal(15), finished: Some(start()) },
        }
    }
}

/// Processes, and locks that the runtime has taken and given to none of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Processes {
    /// By the uid of the pod.
    by_pod: BTreeMap<String, Process>,
    /// By the uid of the pod: its namespace and its name.
    in_hand: BTreeMap<String, (String, String)>,
}

impl Processes {
    /// The uid of the pod of each process, and how far it is.
    pub fn lives(&self) -> impl Iterator<Item = (&str, Life)> {
        self.by_pod.iter().map(|(pod, process)| (pod.as_str(), process.life))
    }

    /// The epochs of a namespace whose processes live.
    pub fn running(&self, namespace: &str) -> BTreeSet<i64> {
        let own = self.by_pod.values().filter(|process| process.namespace == namespace);
        let living = own.filter(|process| process.life != Life::Gone);
        living.map(|process| process.epoch).collect()
    }

    /// The uid of the pod of each process that lives, and the epoch that it was started for.
    pub fn epochs(&self) -> impl Iterator<Item = (&str, i64)> {
        let living = self.by_pod.iter().filter(|(_, process)| process.life != Life::Gone);
        living.map(|(pod, process)| (pod.as_str(), process.epoch))
    }

    /// Whether the runtime has a lock of a namespace that it has given to no process.
    pub fn has_lock_in_hand(&self, namespace: &str) -> bool {
        self.in_hand.values().any(|(of, _)| of == namespace)
    }

    /// What is left when the runtime dies: it takes the locks with it that no process has.
    #[must_use]
    pub fn without_runtime(&self) -> Processes {
        Processes { in_hand: BTreeMap::new(), ..self.clone() }
    }

    /// What is left when power is lost.
    #[must_use]
    pub fn without_power(&self) -> Processes {
        let mut processes = self.without_runtime();
        processes.by_pod.values_mut().for_each(|process| process.life = Life::Gone);
        processes
    }

    /// What is left after a process that was asked to stop, or wanted to, ended.
    #[must_use]
    pub fn ended(&self, pod: &str) -> Processes {
        let mut processes = self.clone();
        if let Some(process) = processes.by_pod.get_mut(pod) {
            process.life = Life::Gone;
        }
        processes
    }

    fn lock(&self, lock: &LockName) -> Held {
        let (namespace, name) = (&lock.namespace, &lock.name);
        let is_in_other_hands = |(of, called): &(String, String)| of == namespace && called == name;
        if self.in_hand.contains_key(&lock.pod) {
            return Held::Mine;
        }
        match self.in_hand.values().any(is_in_other_hands) || self.holder(namespace, name).is_some()
        {
            true => Held::Taken,
            false => Held::Free,
        }
    }

    /// The process that has the lock of a name.
    fn holder(&self, namespace: &str, name: &str) -> Option<Holder> {
        let mut processes = self.by_pod.iter();
        let (pod, process) = processes.find(|(_, process)| process.has_lock(namespace, name))?;
        Some(Holder { pod: pod.clone(), run: pod.clone(), known: process.known() })
    }

    /// After a start; None: without the lock it comes to nothing.
    fn started(&self, run: &Run) -> Option<Processes> {
        let mut processes = self.clone();
        processes.in_hand.remove(&run.lock.pod)?;
        let LockName { namespace, name, .. } = run.lock.clone();
        let process = Process { life: Life::Lives, namespace, name, epoch: run.epoch };
        processes.by_pod.insert(run.lock.pod.clone(), process);
        Some(processes)
    }
}

impl<M: Runs> Driver<M> for Locks {
    fn ask(machines: &[&M], here: usize, LocksOf { namespace, .. }: &LocksOf) -> Holding {
        let processes = machines[here].processes();
        match processes.has_lock_in_hand(namespace) || !processes.running(namespace).is_empty() {
            true => Holding::Held(vec![7]),
            false => Holding::Free,
        }
    }

    fn perform(_: &[&M], _: usize, action: &Nothing) -> M {
        match *action {}
    }
}

impl<M: Runs> Driver<M> for Outside {
    fn ask(machines: &[&M], here: usize, question: &Question) -> Answer {
        let processes = machines[here].processes();
        match question {
            Question::Process(pod) => {
                let process = processes.by_pod.get(pod);
                Answer::Process(process.map_or(Known::Nothing, Process::known))
            }
            Question::Lock(lock) => Answer::Lock(processes.lock(lock)),
            Question::Holder { namespace, name } => {
                Answer::Holder(processes.holder(namespace, name))
            }
            // No pod here has init containers.
            Question::Inits { containers, .. } => {
                Answer::Inits(vec![Known::Nothing; containers.len()])
            }
            // No pod here has probes.
            Question::Health(_) => Answer::Health(Verdicts::default()),
            Question::InHand { namespace, name } => {
                let locks = processes.in_hand.iter().map(|(pod, (namespace, name))| LockName {
                    namespace: namespace.clone(),
                    pod: pod.clone(),
                    name: name.clone(),
                });
                let is_its = |lock: &LockName| lock.namespace == *namespace && lock.name == *name;
                Answer::InHand(locks.filter(is_its).collect())
            }
            // No pod here wants a token.
            Question::Tokens(_) => Answer::Tokens(TokenFiles::default()),
        }
    }

    fn perform(machines: &[&M], here: usize, action: &Action) -> M {
        let machine = machines[here];
        let mut processes = machine.processes().clone();
        match action {
            Action::TakeLock(lock) => {
                if processes.lock(lock) == Held::Free {
                    let of = (lock.namespace.clone(), lock.name.clone());
                    processes.in_hand.insert(lock.pod.clone(), of);
                }
            }
            Action::LetGo(lock) => {
                processes.in_hand.remove(&lock.pod);
            }
            Action::Start(run) => {
                return match processes.started(run) {
                    Some(processes) => machine.with_processes(processes).written(run),
                    None => machine.clone(),
                };
            }
            Action::Terminate(pod) => {
                if let Some(process) = processes.by_pod.get_mut(pod)
                    && process.life == Life::Lives
                {
                    process.life = Life::Stopping;
                }
            }
            Action::Kill(pod) => processes = processes.ended(pod),
            Action::WriteToken(_) | Action::RemoveTokens(_) => {}
        }
        machine.with_processes(processes)
    }
}
