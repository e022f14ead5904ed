//! A machine that is not there: its processes and locks are data. It is one of the two fakes of the
//! simulation; the other is its disk. It behaves as the real one does where the rooms look, and it is stricter: a start
//! without the lock, or beside one that lives, is noted as a broken promise.

use super::disk::Disks;
use super::flaws::Flaw;
use super::mover::OnDisk;
use crate::engine::chance::{Chance, SimulatedClock};
use crate::engine::line::{Errand, Gate, Way};
use interlock_kernel::Nothing;
use interlock_placement::heartbeat::{Discovery, WhoIssues};
use interlock_placement::runtime::outside::{
    Action, Answer, Ending, Held, Holder, Known, LockName, Machine as Processes, Question, Run,
    Started, TokenFiles, Verdicts,
};
use interlock_placement::syncer::{Holding, Locks, LocksOf};
use interlock_shell::Driver;
use interlock_volumes::outside::{
    Disk, DiskAction, DiskQuestion, Made, Mover, MoverAction, Sync, SyncId,
};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What became of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Lives,
    /// It was asked to stop, and does so then, or never by itself.
    Stopping(Option<Timestamp>),
    Killed,
    Gone(Ending, Option<Timestamp>),
}

/// A process.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    /// The namespace on the cluster that it is of.
    pub(crate) namespace: String,
    /// The name of its pod.
    pub(crate) name: String,
    /// The epoch that it was started for.
    pub(crate) epoch: i64,
    /// The claims that it writes to, and their volumes.
    pub(crate) mounts: Vec<(String, String)>,
    run: Started,
    life: Life,
    /// The number that it writes next.
    next: usize,
}

impl Process {
    /// Whether it can write.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.life, Life::Gone(..))
    }
}

/// What all processes ever wrote: for each pod, under which cluster and epoch each number was.
#[derive(Debug, Default)]
pub(crate) struct Records(BTreeMap<(String, String), Vec<(String, i64)>>);

/// A machine.
pub(crate) struct Machine {
    /// The cluster that it serves.
    pub(crate) cluster: String,
    clock: Arc<SimulatedClock>,
    chance: Arc<Chance>,
    flaw: Flaw,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_off: bool,
    boots: u64,
    pids: i32,
    processes: BTreeMap<String, Process>,
    /// Locks that a runtime took and gave to no process yet, and which runtime.
    taken: Vec<(LockName, u64)>,
    broken: Vec<String>,
}

impl State {
    /// The pod whose process has the lock of a name.
    fn holder(&self, namespace: &str, name: &str) -> Option<String> {
        let has_it = |process: &Process| {
            process.is_alive() && process.namespace == namespace && process.name == name
        };
        let mut processes = self.processes.iter();
        processes.find(|(_, process)| has_it(process)).map(|(pod, _)| pod.clone())
    }
}

impl Machine {
    /// A machine that is on.
    pub(crate) fn new(
        cluster: &str,
        clock: &Arc<SimulatedClock>,
        chance: &Arc<Chance>,
        flaw: Flaw,
    ) -> Arc<Machine> {
        Arc::new(Machine {
            cluster: cluster.to_owned(),
            clock: Arc::clone(clock),
            chance: Arc::clone(chance),
            flaw,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is off.
    pub(crate) fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// Which boot this is.
    pub(crate) fn boot_id(&self) -> String {
        match self.flaw {
            Flaw::BootIdStays => format!("{}-boot", self.cluster),
            _ => format!("{}-boot-{}", self.cluster, self.state().boots),
        }
    }

    /// The power fails: every process is gone, and so are all locks.
    pub(crate) fn power_off(&self) {
        let mut state = self.state();
        state.is_off = true;
        state.taken.clear();
        for process in state.processes.values_mut().filter(|process| process.is_alive()) {
            process.life = Life::Gone(Ending::Unknown, None);
        }
    }

    /// The power is back.
    pub(crate) fn power_on(&self) {
        let mut state = self.state();
        if state.is_off {
            state.is_off = false;
            state.boots += 1;
        }
    }

    /// A runtime died: what it held in its hands is free, and what it started lives on.
    pub(crate) fn lost_runtime(&self, instance: u64) {
        self.state().taken.retain(|(_, by)| *by != instance);
    }

    /// What runs.
    pub(crate) fn alive(&self) -> Vec<Process> {
        self.state().processes.values().filter(|process| process.is_alive()).cloned().collect()
    }

    /// Promises that the machine itself saw broken.
    pub(crate) fn take_broken(&self) -> Vec<String> {
        std::mem::take(&mut self.state().broken)
    }

    /// Time passed: those who were asked to stop may have, and each that lives writes one number, and
    /// one to each of its volumes.
    pub(crate) fn tick(&self, records: &mut Records, place: usize, disks: &mut Disks) {
        let now = self.clock.now();
        let mut state = self.state();
        let State { processes, broken, .. } = &mut *state;
        for process in processes.values_mut().filter(|process| process.is_alive()) {
            let key = (process.namespace.clone(), process.name.clone());
            let written = records.0.entry(key).or_default();
            let is_last = written.last().is_none_or(|(_, epoch)| *epoch <= process.epoch);
            if written.len() != process.next || !is_last {
                broken.push(format!(
                    "{} of {} on {} writes number {} of epoch {} after {} numbers, the last by {:?}",
                    process.name,
                    process.namespace,
                    self.cluster,
                    process.next,
                    process.epoch,
                    written.len(),
                    written.last(),
                ));
            }
            written.push((self.cluster.clone(), process.epoch));
            process.next = written.len();
            for (claim, handle) in &process.mounts {
                disks.write(place, handle, &process.namespace, claim);
            }
            match process.life {
                Life::Killed => process.life = Life::Gone(Ending::Signal(9), Some(now)),
                Life::Stopping(Some(end)) if end <= now => {
                    process.life = Life::Gone(Ending::Signal(15), Some(now));
                }
                Life::Lives if self.chance.once_in(150) => {
                    process.life = Life::Gone(Ending::Code(1), Some(now));
                }
                Life::Lives | Life::Stopping(_) | Life::Gone(..) => {}
            }
        }
    }

    fn known(&self, pod: &str) -> Known {
        let state = self.state();
        let Some(process) = state.processes.get(pod) else { return Known::Nothing };
        let run = process.run;
        match process.life {
            Life::Lives => Known::Lives(run),
            Life::Stopping(_) if self.flaw == Flaw::GoneTooEarly => {
                Known::Gone { run, ending: Ending::Unknown, finished: None }
            }
            // Only a probe that failed makes anybody count from there, and no pod here has one.
            Life::Stopping(_) => Known::Stopping { run, since: self.clock.now() },
            Life::Killed => Known::Killed(run),
            Life::Gone(ending, finished) => Known::Gone { run, ending, finished },
        }
    }

    fn held(&self, lock: &LockName, instance: u64) -> Held {
        let of_name =
            |taken: &LockName| taken.namespace == lock.namespace && taken.name == lock.name;
        let state = self.state();
        match state.taken.iter().find(|(taken, _)| of_name(taken)) {
            Some((taken, by)) if *by == instance && taken == lock => Held::Mine,
            Some(_) => Held::Taken,
            None if state.holder(&lock.namespace, &lock.name).is_some() => Held::Taken,
            None => Held::Free,
        }
    }

    fn holder(&self, namespace: &str, name: &str) -> Option<Holder> {
        let pod = self.state().holder(namespace, name)?;
        Some(Holder { known: self.known(&pod), run: pod.clone(), pod })
    }

    /// What a runtime is reported about a lock.
    fn answer(&self, lock: &LockName, instance: u64) -> Held {
        match self.held(lock, instance) {
            Held::Taken if self.flaw == Flaw::LocksAreAlwaysFree => Held::Free,
            held => held,
        }
    }

    fn holding(&self, namespace: &str) -> Holding {
        let is_lie = matches!(
            self.flaw,
            Flaw::GoneTooEarly | Flaw::LocksAreAlwaysFree | Flaw::SyncerSeesNoLocks
        );
        if is_lie {
            return Holding::Free;
        }
        let state = self.state();
        let is_taken = state.taken.iter().any(|(lock, _)| lock.namespace == namespace);
        let living = state.processes.values().filter(|process| process.is_alive());
        let living = living.filter(|process| process.namespace == namespace);
        let pids: Vec<i32> = living.map(|process| process.run.pid).collect();
        if is_taken || !pids.is_empty() { Holding::Held(pids) } else { Holding::Free }
    }

    fn start(&self, run: Run, instance: u64, records: &Mutex<Records>) {
        let is_mine = self.held(&run.lock, instance) == Held::Mine;
        let now = self.clock.now();
        let mut state = self.state();
        let is_alive = state.processes.get(&run.lock.pod).is_some_and(Process::is_alive);
        if !is_mine || is_alive {
            let why = if is_alive { "beside one that lives" } else { "without its lock" };
            state.broken.push(format!("{} starts on {} {why}", run.lock.name, self.cluster));
            return;
        }
        state.taken.retain(|(lock, _)| *lock != run.lock);
        state.pids += 1;
        let key = (run.lock.namespace.clone(), run.lock.name.clone());
        let records = records.lock().unwrap_or_else(PoisonError::into_inner);
        let process = Process {
            namespace: run.lock.namespace.clone(),
            name: run.lock.name.clone(),
            epoch: run.epoch,
            mounts: run.mounts.into_iter().filter_map(|of| Some((of.claim, of.handle?))).collect(),
            run: Started { pid: state.pids, since: now },
            life: Life::Lives,
            next: records.0.get(&key).map_or(0, Vec::len),
        };
        state.processes.insert(run.lock.pod, process);
    }

    fn stop(&self, pod: &str, is_kill: bool) {
        let after = self.chance.below(9);
        let ends = self.clock.now().checked_add(SignedDuration::from_secs(after as i64)).ok();
        let mut state = self.state();
        let Some(process) = state.processes.get_mut(pod) else { return };
        match process.life {
            Life::Gone(..) => {}
            _ if is_kill => process.life = Life::Killed,
            // Some do not listen.
            Life::Lives => process.life = Life::Stopping(ends.filter(|_| after < 8)),
            Life::Stopping(_) | Life::Killed => {}
        }
    }
}

/// What the agents of a cluster have of its machine.
#[derive(Clone)]
pub(crate) struct OnMachine {
    /// The machine.
    pub(crate) machine: Arc<Machine>,
    /// Which program this is: locks in its hands are its own.
    pub(crate) instance: u64,
    /// Where questions and actions wait.
    pub(crate) gate: Arc<Gate>,
    /// What processes write to.
    pub(crate) records: Arc<Mutex<Records>>,
    /// Its disk, if volumes are made there.
    pub(crate) disk: Option<OnDisk>,
}

impl OnMachine {
    fn disk(&self) -> Result<&OnDisk, String> {
        self.disk.as_ref().ok_or_else(|| "no volumes are made on this machine".to_owned())
    }

    fn take_lock(&self, lock: LockName) {
        if self.machine.held(&lock, self.instance) == Held::Free {
            self.machine.state().taken.push((lock, self.instance));
        }
    }

    /// Starts a process on its volumes, none of which is made here.
    fn start(&self, run: Run) -> Result<(), String> {
        let on_disk = run.mounts.iter().filter_map(|of| Some((self.disk.as_ref()?, of)));
        for (disk, of) in on_disk {
            let none = || format!("claim {} has no volume on this machine", of.claim);
            let handle = of.handle.as_ref().ok_or_else(none)?;
            let mut disks = disk.disks.lock().unwrap_or_else(PoisonError::into_inner);
            disks.mount(disk.whose.place, handle, &run.lock.namespace, &of.claim)?;
        }
        self.machine.start(run, self.instance, &self.records);
        Ok(())
    }
}

impl Driver<Processes> for OnMachine {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        self.gate.turn(Errand::Any).await;
        Ok(match question {
            Question::Process(pod) => Answer::Process(self.machine.known(&pod)),
            Question::Lock(lock) => Answer::Lock(self.machine.answer(&lock, self.instance)),
            Question::InHand { namespace, name } => {
                let state = self.machine.state();
                let of_pod = |lock: &LockName| lock.namespace == namespace && lock.name == name;
                let mine = state.taken.iter().filter(|(_, by)| *by == self.instance);
                let locks = mine.map(|(lock, _)| lock).filter(|lock| of_pod(lock));
                Answer::InHand(locks.cloned().collect())
            }
            Question::Holder { namespace, name } => {
                Answer::Holder(self.machine.holder(&namespace, &name))
            }
            // No pod here has init containers.
            Question::Inits { containers, .. } => {
                Answer::Inits(vec![Known::Nothing; containers.len()])
            }
            // No pod here wants a token, or has probes.
            Question::Tokens(_) => Answer::Tokens(TokenFiles::default()),
            Question::Health(_) => Answer::Health(Verdicts::default()),
        })
    }

    async fn perform(&self, action: Action) -> Result<(), String> {
        let errand = match action {
            Action::Start(_) => Errand::Start,
            Action::TakeLock(_)
            | Action::LetGo(_)
            | Action::Terminate(_)
            | Action::Kill(_)
            | Action::WriteToken(_)
            | Action::RemoveTokens(_) => Errand::Any,
        };
        let way = self.gate.turn(errand).await;
        if way == Way::RequestLost {
            return Err("it could not be done".to_owned());
        }
        match action {
            Action::TakeLock(lock) => self.take_lock(lock),
            Action::LetGo(lock) => {
                self.machine.state().taken.retain(|taken| *taken != (lock.clone(), self.instance));
            }
            Action::Start(run) => return self.start(*run),
            Action::Terminate(pod) => self.machine.stop(&pod, false),
            Action::Kill(pod) => self.machine.stop(&pod, true),
            Action::WriteToken(_) | Action::RemoveTokens(_) => {}
        }
        Ok(())
    }
}

impl Driver<Locks> for OnMachine {
    async fn ask(&self, question: LocksOf) -> Result<Holding, String> {
        self.gate.turn(Errand::Any).await;
        Ok(self.machine.holding(&question.namespace))
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}

/// Nobody in this world asks who issues tokens, so the answer takes no turn of the simulation.
impl Driver<Discovery> for OnMachine {
    async fn ask(&self, _: WhoIssues) -> Result<Option<String>, String> {
        Ok(None)
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}

impl Driver<Nothing> for OnMachine {
    async fn ask(&self, question: Nothing) -> Result<Nothing, String> {
        match question {}
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}

impl Driver<Disk> for OnMachine {
    async fn ask(&self, question: DiskQuestion) -> Result<Made, String> {
        Driver::<Disk>::ask(self.disk()?, question).await
    }

    async fn perform(&self, action: DiskAction) -> Result<(), String> {
        Driver::<Disk>::perform(self.disk()?, action).await
    }
}

impl Driver<Mover> for OnMachine {
    async fn ask(&self, id: SyncId) -> Result<Sync, String> {
        Driver::<Mover>::ask(self.disk()?, id).await
    }

    async fn perform(&self, action: MoverAction) -> Result<(), String> {
        Driver::<Mover>::perform(self.disk()?, action).await
    }
}
