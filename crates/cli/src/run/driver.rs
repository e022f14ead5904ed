//! What the agents of a cluster ask of this machine, and do to it.

use super::tokens::Tokens;
use interlock_outside::processes::{
    self, Lock, Locking, Observed, PreStop, Prober, Processes, Signal, Started as StartedProcess,
    VolumeFile,
};
use interlock_outside::volumes::LocalVolumes;
use interlock_placement::runtime::outside::{
    Action, Answer, Check, Ending, FileText, FilesMount, Held, Holder, Known, LockName, Machine,
    Mount, Probe, Question, Run, Started, TokenRequest, Verdict, Verdicts, Watched, init_run,
    pod_of_run,
};
use interlock_placement::syncer::{Holding, Locks, LocksOf};
use interlock_shell::Driver;
use jiff::Timestamp;
use kube::Client;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// A process is reported under which epoch it runs.
const EPOCH_VARIABLE: &str = "INTERLOCK_EPOCH";
/// The longest name that a lock may have beside what is said of it.
const LONGEST_LOCK_NAME: usize = 200;

/// The processes of one cluster on this machine.
#[derive(Clone)]
pub(crate) struct OnThisMachine {
    processes: Arc<Processes>,
    /// Where the volumes of the cluster are.
    volumes: Arc<LocalVolumes>,
    /// Locks that were taken and not yet handed to a process. They are gone with this program, as
    /// they should be: the kernel frees them.
    locks: Arc<Mutex<HashMap<LockName, Lock>>>,
    tokens: Tokens,
    prober: Arc<Prober>,
    /// The runs whose preStop hooks are at work.
    hooks: Arc<Mutex<HashSet<String>>>,
}

impl OnThisMachine {
    pub(super) fn new(processes: Arc<Processes>, volumes: Arc<LocalVolumes>) -> Self {
        let tokens = Tokens::new(Arc::clone(&processes));
        let prober = Arc::new(Prober::new(Arc::clone(&processes)));
        let (locks, hooks) = (Arc::default(), Arc::default());
        OnThisMachine { processes, volumes, locks, tokens, prober, hooks }
    }

    fn hooks(&self) -> MutexGuard<'_, HashSet<String>> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<LockName, Lock>> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs something that reads `/proc` and syncs files, where it holds nobody up.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OnThisMachine) -> Result<T, processes::Error> + Send + 'static,
    ) -> Result<T, String> {
        self.aside_in_words(move |own| work(own).map_err(|error| in_words(&error))).await
    }

    async fn aside_in_words<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OnThisMachine) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let own = self.clone();
        match tokio::task::spawn_blocking(move || work(&own)).await {
            Ok(done) => done,
            Err(error) => Err(error.to_string()),
        }
    }

    /// What is known of a run, which has the uid of its pod as its name, or is of an init container.
    fn process(&self, id: &str) -> Result<Known, processes::Error> {
        let observed = self.processes.observe(id)?;
        let Some(run) = self.processes.leader(id)?.map(started) else {
            return Ok(Known::Nothing);
        };
        match observed {
            // The command has not run, and cannot run any more once somebody else has the lock.
            Observed::NoRecord | Observed::Starting => Ok(Known::Nothing),
            Observed::Running { .. } => self.living(id, run),
            // What it started may have outlived it.
            Observed::Exited { .. } if !self.processes.is_gone(id)? => self.living(id, run),
            Observed::Exited { ending, when } => Ok(gone(run, ending, when)),
        }
    }

    /// What is known of the init containers of a pod. One after which another container was started is gone with
    /// all that it started: no process has to be looked for.
    fn inits(&self, pod: &str, containers: &[String]) -> Result<Vec<Known>, processes::Error> {
        let mut is_passed = self.processes.leader(pod)?.is_some();
        let mut known = Vec::new();
        for container in containers.iter().rev() {
            let id = init_run(pod, container);
            let run = self.processes.leader(&id)?;
            known.push(match (run, self.processes.observe(&id)?) {
                (Some(run), Observed::Exited { ending, when }) if is_passed => {
                    gone(started(run), ending, when)
                }
                _ => self.process(&id)?,
            });
            is_passed |= run.is_some();
        }
        known.reverse();
        Ok(known)
    }

    fn living(&self, id: &str, run: Started) -> Result<Known, processes::Error> {
        let asked = self.processes.asked(id)?;
        // A hook that was begun by a program that died is not begun again: the run is asked to stop.
        let hook = asked.pre_stop.filter(|_| asked.term.is_some() || self.hooks().contains(id));
        Ok(match (asked.kill, hook.or(asked.term)) {
            (Some(_), _) => Known::Killed(run),
            (None, Some(since)) => Known::Stopping { run, since: timestamp(since) },
            (None, None) => Known::Lives(run),
        })
    }

    /// The process that has a lock, if it lives.
    fn holder(&self, lock_name: &str) -> Result<Option<Holder>, processes::Error> {
        let Some(run) = self.processes.last_run_of(lock_name)? else { return Ok(None) };
        let known = self.process(&run)?;
        let lives = !matches!(known, Known::Nothing | Known::Gone { .. });
        Ok(lives.then_some(Holder { pod: pod_of_run(&run).to_owned(), run, known }))
    }

    /// Asks a run to stop, after what it wants to be done before that.
    fn terminate(&self, pod: &str) -> Result<(), processes::Error> {
        if self.hooks().contains(pod) {
            return Ok(());
        }
        let Some(hook) = self.processes.begin_pre_stop(pod)? else {
            return self.processes.signal(pod, Signal::Term).map(|_| ());
        };
        self.hooks().insert(pod.to_owned());
        let (own, id) = (self.clone(), pod.to_owned());
        let work = move || own.finish(&id, &hook);
        if let Err(error) = std::thread::Builder::new().name("pre-stop".to_owned()).spawn(work) {
            tracing::warn!(pod, %error, "a preStop hook is left out");
            self.hooks().remove(pod);
            return self.processes.signal(pod, Signal::Term).map(|_| ());
        }
        Ok(())
    }

    fn finish(&self, pod: &str, hook: &PreStop) {
        if let Err(error) = self.processes.finish_pre_stop(pod, hook) {
            tracing::warn!(pod, because = in_words(&error), "a run was not asked to stop");
        }
        self.hooks().remove(pod);
    }

    fn lock_state(&self, lock: &LockName) -> Result<Held, processes::Error> {
        if self.locks().contains_key(lock) {
            return Ok(Held::Mine);
        }
        let is_free = self.processes.is_free_with_all_beside(&file_name(lock))?;
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

    /// The folders of a run. None is made here: a volume that is not there is not begun anew.
    fn mounts(&self, run: &Run) -> Result<Vec<processes::Mount>, String> {
        let mount = |mount: &Mount| {
            let claim = &mount.claim;
            let none = || format!("claim {claim} has no volume on this machine");
            let handle = mount.handle.as_ref().ok_or_else(none)?;
            let directory = self.volumes.volume_path(handle).map_err(|error| in_words(&error))?;
            if !directory.is_dir() {
                return Err(format!(
                    "volume {handle} of claim {claim} does not exist: {}",
                    directory.display()
                ));
            }
            let (name, path) = (mount.name.clone(), mount.path.clone());
            Ok(processes::Mount { name, path, directory })
        };
        let volumes: Result<Vec<processes::Mount>, String> = run.mounts.iter().map(mount).collect();
        let mut mounts = volumes?;
        for mount in &run.token_mounts {
            let (name, path) = (mount.name.clone(), mount.path.clone());
            let directory = self.processes.token_folder(&run.lock.pod, &name);
            let directory = directory.map_err(|error| in_words(&error))?;
            mounts.push(processes::Mount { name, path, directory });
        }
        for mount in &run.files {
            let made = self.files(&run.lock.pod, mount);
            mounts.extend(made.map_err(|error| in_words(&error))?);
        }
        Ok(mounts)
    }

    /// Makes a volume of files. One with tokens in it is mounted with them.
    fn files(
        &self,
        pod: &str,
        mount: &FilesMount,
    ) -> Result<Option<processes::Mount>, processes::Error> {
        let FilesMount { name, path, part, has_tokens, files } = mount;
        let file = |file: &FileText| {
            let FileText { path, bytes, mode } = file.clone();
            VolumeFile { path, bytes, mode }
        };
        let files = files.as_ref().map(|files| files.iter().map(file).collect::<Vec<_>>());
        let volume = match files {
            None => self.processes.make_empty_volume(pod, name)?,
            Some(files) if *has_tokens => {
                self.processes.put_beside_tokens(pod, name, &files)?;
                return Ok(None);
            }
            Some(files) => self.processes.make_files(pod, name, &files)?,
        };
        let directory = self.processes.part_of_volume(pod, &volume, part)?;
        // Two parts of one volume appear at two places; a variable is for the whole.
        let name = if part.is_empty() { name.clone() } else { format!("{name}/{part}") };
        Ok(Some(processes::Mount { name, path: path.clone(), directory }))
    }

    /// The environment of a run, with what only this machine knows.
    fn environment(&self, run: &Run) -> Result<BTreeMap<String, String>, processes::Error> {
        let mut env = run.env.clone();
        // What is not placed has no epoch.
        if run.epoch > 0 {
            env.insert(EPOCH_VARIABLE.to_owned(), run.epoch.to_string());
        }
        for mount in &run.token_mounts {
            let Some(variable) = &mount.variable else { continue };
            let folder = self.processes.token_folder(&run.lock.pod, &mount.name)?;
            let path = folder.join(&variable.file).display().to_string();
            env.insert(variable.name.clone(), path);
        }
        Ok(env)
    }

    fn start(&self, run: &Run) -> Result<(), String> {
        let mounts = self.mounts(run)?;
        self.start_with(run, mounts).map_err(|error| in_words(&error))
    }

    fn start_with(&self, run: &Run, mounts: Vec<processes::Mount>) -> Result<(), processes::Error> {
        let Some(lock) = self.locks().remove(&run.lock) else {
            // It was let go since: the next step takes it again, and reads again.
            return Ok(());
        };
        let id = &run.id;
        let is_over = matches!(self.processes.observe(id)?, Observed::Exited { .. });
        if is_over {
            // What the start before wrote is what `kubectl logs --previous` shows.
            self.processes.set_log_aside(id)?;
            self.processes.forget(id)?;
        }
        let env = self.environment(run)?;
        let run = processes::Run {
            id: id.clone(),
            epoch: run.epoch,
            command: run.command.clone(),
            args: run.args.clone(),
            env,
            working_directory: run.working_directory.clone(),
            mounts,
            log_file: self.processes.log_file(id)?,
            pre_stop: run.pre_stop.clone(),
            grace_seconds: run.grace_seconds,
        };
        self.processes.start(&run, lock).map(|_| ())
    }
}

impl OnThisMachine {
    /// Has a token issued by the cluster, as this client, and puts it into its file.
    pub(super) async fn write_token(&self, client: Option<&Client>, request: TokenRequest) {
        self.tokens.write(client, request).await;
    }
}

impl Driver<Machine> for OnThisMachine {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        self.aside(move |own| match &question {
            Question::Process(pod) => own.process(pod).map(Answer::Process),
            Question::Inits { pod, containers } => own.inits(pod, containers).map(Answer::Inits),
            Question::Lock(lock) => own.lock_state(lock).map(Answer::Lock),
            Question::InHand { namespace, name } => {
                let of_pod = |lock: &&LockName| lock.namespace == *namespace && lock.name == *name;
                Ok(Answer::InHand(own.locks().keys().filter(of_pod).cloned().collect()))
            }
            Question::Holder { namespace, name } => {
                own.holder(&lock_called(namespace, name)).map(Answer::Holder)
            }
            Question::Tokens(pod) => {
                let mut files = own.tokens.of(pod)?;
                files.is_there |= own.processes.has_files(pod)?;
                Ok(Answer::Tokens(files))
            }
            Question::Health(watched) => {
                own.prober.verdicts(&probed(watched)).map(verdicts).map(Answer::Health)
            }
        })
        .await
    }

    async fn perform(&self, action: Action) -> Result<(), String> {
        if let Action::Start(run) = action {
            return self.aside_in_words(move |own| own.start(&run)).await;
        }
        self.aside(move |own| match action {
            Action::TakeLock(lock) => own.take(lock),
            Action::LetGo(lock) => {
                own.locks().remove(&lock);
                Ok(())
            }
            // The first is done above, and whoever can ask for a token does the second.
            Action::Start(_) | Action::WriteToken(_) => Ok(()),
            Action::RemoveTokens(pod) => {
                own.processes.remove_files(&pod)?;
                own.tokens.remove(&pod)
            }
            Action::Terminate(run) => own.terminate(&run),
            Action::Kill(run) => own.processes.signal(&run, Signal::Kill).map(|_| ()),
        })
        .await
    }
}

impl Driver<Locks> for OnThisMachine {
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

    async fn perform(&self, action: interlock_kernel::Nothing) -> Result<(), String> {
        match action {}
    }
}

fn file_name(lock: &LockName) -> String {
    lock_called(&lock.namespace, &lock.name)
}

/// All locks of a namespace begin alike: no name of a namespace has a dot in it. Two long names may come to
/// the same: then one of the two pods waits for the other.
fn lock_called(namespace: &str, name: &str) -> String {
    let called = format!("{namespace}.{name}");
    if called.len() <= LONGEST_LOCK_NAME {
        return called;
    }
    let digest = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let front: String = name.chars().take(100).collect();
    format!("{namespace}.{front}-{digest:016x}")
}

/// Probes, in the words of who runs them.
fn probed(watched: &Watched) -> processes::Watched {
    let probe = |probe: &Probe| processes::Probe {
        check: match probe.check.clone() {
            Check::Exec(command) => processes::Check::Exec(command),
            Check::Http { host, port, path, headers } => {
                processes::Check::Http { host, port, path, headers }
            }
            Check::Tcp { host, port } => processes::Check::Tcp { host, port },
        },
        initial_delay: Duration::from_secs(probe.initial_delay_seconds),
        period: Duration::from_secs(probe.period_seconds),
        timeout: Duration::from_secs(probe.timeout_seconds),
        successes: probe.successes,
        failures: probe.failures,
    };
    let probes = &watched.probes;
    processes::Watched {
        id: watched.id.clone(),
        probes: processes::Probes {
            startup: probes.startup.as_ref().map(probe),
            liveness: probes.liveness.as_ref().map(probe),
            readiness: probes.readiness.as_ref().map(probe),
        },
        is_started: watched.is_started,
    }
}

fn verdicts(found: processes::Verdicts) -> Verdicts {
    let verdict = |verdict| match verdict {
        processes::Verdict::Success => Verdict::Success,
        processes::Verdict::Failure => Verdict::Failure,
    };
    Verdicts {
        startup: found.startup.map(verdict),
        liveness: found.liveness.map(verdict),
        readiness: found.readiness.map(verdict),
    }
}

/// A run that is gone, and when it ended if one of us was there to see it.
fn gone(run: Started, ending: processes::Ending, when: Option<SystemTime>) -> Known {
    let ending = match ending {
        processes::Ending::Code(code) => Ending::Code(code),
        processes::Ending::Signal(signal) => Ending::Signal(signal),
        processes::Ending::NotExecuted(number) => Ending::NotExecuted(number),
        processes::Ending::Unknown => Ending::Unknown,
    };
    Known::Gone { run, ending, finished: when.map(timestamp) }
}

fn started(run: StartedProcess) -> Started {
    Started { pid: run.pid, since: timestamp(run.since) }
}

fn timestamp(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// What went wrong, with all that lies behind it.
pub(super) fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut behind = error.source();
    while let Some(source) = behind {
        words = format!("{words}: {source}");
        behind = source.source();
    }
    words
}
