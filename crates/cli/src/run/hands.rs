//! What the agents of a cluster ask of this machine, and do to it.

use interlock_outside::processes::{
    self, Lock, Locking, Observed, Processes, Signal, Started as StartedProcess, Volume,
};
use interlock_placement::runtime::outside::{
    Answer, Deed, Ending, Held, Known, LockName, Machine, Question, Run, Started,
};
use interlock_placement::syncer::{Holding, Locks, LocksOf};
use interlock_shell::Hands;
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// A process is told under which epoch it runs.
const EPOCH_VARIABLE: &str = "INTERLOCK_EPOCH";

/// The processes of one cluster on this machine.
#[derive(Clone)]
pub(super) struct OnThisMachine {
    processes: Arc<Processes>,
    /// The name of the cluster, for the folders of its volumes.
    cluster: Arc<str>,
    /// Locks that were taken and not yet handed to a process. They are gone with this program, as
    /// they should be: the kernel frees them.
    locks: Arc<Mutex<HashMap<LockName, Lock>>>,
}

impl OnThisMachine {
    pub(super) fn new(processes: Arc<Processes>, cluster: &str) -> Self {
        OnThisMachine { processes, cluster: Arc::from(cluster), locks: Arc::default() }
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<LockName, Lock>> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs something that reads `/proc` and syncs files, where it holds nobody up.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OnThisMachine) -> Result<T, processes::Error> + Send + 'static,
    ) -> Result<T, String> {
        let own = self.clone();
        match tokio::task::spawn_blocking(move || work(&own)).await {
            Ok(done) => done.map_err(|error| in_words(&error)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn process(&self, pod: &str) -> Result<Known, processes::Error> {
        let observed = self.processes.observe(pod)?;
        let Some(run) = self.processes.leader(pod)?.map(started) else {
            return Ok(Known::Nothing);
        };
        let (ending, finished) = match observed {
            // The command has not run, and cannot run any more once somebody else has the lock.
            Observed::NoRecord | Observed::Starting => return Ok(Known::Nothing),
            Observed::Running { .. } => return self.living(pod, run),
            // What it started may have outlived it.
            Observed::Exited { .. } if !self.processes.is_gone(pod)? => {
                return self.living(pod, run);
            }
            Observed::Exited { ending, when } => (ending, when),
        };
        let ending = match ending {
            processes::Ending::Code(code) => Ending::Code(code),
            processes::Ending::Signal(signal) => Ending::Signal(signal),
            processes::Ending::Unknown => Ending::Unknown,
        };
        Ok(Known::Gone { run, ending, finished: finished.map(timestamp) })
    }

    fn living(&self, pod: &str, run: Started) -> Result<Known, processes::Error> {
        let asked = self.processes.asked(pod)?;
        Ok(match (asked.kill, asked.term) {
            (Some(_), _) => Known::Killed(run),
            (None, Some(_)) => Known::Stopping(run),
            (None, None) => Known::Lives(run),
        })
    }

    fn lock_state(&self, lock: &LockName) -> Result<Held, processes::Error> {
        if self.locks().contains_key(lock) {
            return Ok(Held::Mine);
        }
        let is_free = self.processes.is_free(&file_name(lock))?;
        Ok(if is_free { Held::Free } else { Held::Taken })
    }

    fn take(&self, lock: LockName) -> Result<(), processes::Error> {
        let mut locks = self.locks();
        if locks.contains_key(&lock) {
            return Ok(());
        }
        // If another one was faster, the next look says so.
        if let Locking::Taken(taken) = self.processes.lock(&file_name(&lock))? {
            locks.insert(lock, taken);
        }
        Ok(())
    }

    fn start(&self, run: &Run) -> Result<(), processes::Error> {
        let Some(lock) = self.locks().remove(&run.lock) else {
            // It was let go since: the next step takes it again, and looks again.
            return Ok(());
        };
        let id = &run.lock.pod;
        let is_over = matches!(self.processes.observe(id)?, Observed::Exited { .. });
        if is_over {
            self.processes.forget(id)?;
        }
        let mut env = run.env.clone();
        env.insert(EPOCH_VARIABLE.to_owned(), run.epoch.to_string());
        let mounts = run.mounts.iter().map(|mount| {
            let volume = Volume {
                cluster: &self.cluster,
                namespace: &run.lock.namespace,
                claim: &mount.claim_uid,
            };
            Ok(processes::Mount {
                name: mount.name.clone(),
                path: mount.path.clone(),
                directory: self.processes.create_volume(volume)?,
            })
        });
        let run = processes::Run {
            id: id.clone(),
            epoch: run.epoch,
            command: run.command.clone(),
            args: run.args.clone(),
            env,
            working_directory: run.working_directory.clone(),
            mounts: mounts.collect::<Result<_, processes::Error>>()?,
            log_file: self.processes.log_file(id)?,
            grace_seconds: run.grace_seconds,
        };
        self.processes.start(&run, lock).map(|_| ())
    }
}

impl Hands<Machine> for OnThisMachine {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        self.aside(move |own| match &question {
            Question::Process(pod) => own.process(pod).map(Answer::Process),
            Question::Lock(lock) => own.lock_state(lock).map(Answer::Lock),
        })
        .await
    }

    async fn perform(&self, deed: Deed) -> Result<(), String> {
        self.aside(move |own| match deed {
            Deed::TakeLock(lock) => own.take(lock),
            Deed::LetGo(lock) => {
                own.locks().remove(&lock);
                Ok(())
            }
            Deed::Start(run) => own.start(&run),
            Deed::Terminate(pod) => own.processes.signal(&pod, Signal::Term).map(|_| ()),
            Deed::Kill(pod) => own.processes.signal(&pod, Signal::Kill).map(|_| ()),
        })
        .await
    }
}

impl Hands<Locks> for OnThisMachine {
    async fn ask(&self, question: LocksOf) -> Result<Holding, String> {
        self.aside(move |own| {
            let of_namespace = format!("{}.", question.namespace);
            // A lock that we took ourselves and gave to nobody is held, too: a start may follow.
            let held = own.processes.holders_of_all(&of_namespace)?;
            Ok(match held {
                None => Holding::Free,
                Some(holders) => Holding::Held(holders.iter().map(|holder| holder.pid).collect()),
            })
        })
        .await
    }

    async fn perform(&self, deed: interlock_kernel::Nothing) -> Result<(), String> {
        match deed {}
    }
}

/// For a cluster whose pods are run by somebody else: the API shows all there is to see.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoLocks;

impl Hands<Locks> for NoLocks {
    async fn ask(&self, _: LocksOf) -> Result<Holding, String> {
        Ok(Holding::Free)
    }

    async fn perform(&self, deed: interlock_kernel::Nothing) -> Result<(), String> {
        match deed {}
    }
}

/// All locks of a namespace begin alike: no name of a namespace has a dot in it.
fn file_name(lock: &LockName) -> String {
    format!("{}.{}", lock.namespace, lock.pod)
}

fn started(run: StartedProcess) -> Started {
    Started { pid: run.pid, since: timestamp(run.since) }
}

fn timestamp(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// What went wrong, with all that lies behind it.
fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut behind = error.source();
    while let Some(source) = behind {
        words = format!("{words}: {source}");
        behind = source.source();
    }
    words
}
