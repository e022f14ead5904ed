//! What one decision of the runtime rests on.

use super::Runtime;
use super::decide::{
    Asked, Description, Exit, Facts, Lock, Permit, Pod, Process, Report, RestartPolicy, Stray,
    back_off,
};
use super::describe::{Problem, describe, grace_seconds, lock_of, without_effect};
use super::outside::{
    Answer, Held, Known, LockName, Machine, Question, Run, TokenFile, TokenFiles,
};
use super::status::{Ended, reporting, waiting};
use super::tokens::{self, Tokens, Wanted};
use crate::kinds::{NAMESPACE, POD};
use crate::syncer::marks::FINALIZER_PROCESS;
use crate::syncer::notes;
use crate::syncer::objects::compare::contains;
use crate::syncer::tenancy::Running;
use interlock_kernel::metadata::{has_finalizer, is_deleting, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Object, Observed, Place, View};
use jiff::Timestamp;
use std::time::Duration;

/// What one step is about.
#[derive(Debug)]
pub enum Scene {
    /// A pod that is not in the cache.
    NoPod {
        /// Its name.
        name: Name,
        /// A lock in our hands that was taken for a pod of that name.
        stray: Option<LockName>,
    },
    /// A pod that is ours to run.
    Pod(Box<PodScene>),
}

/// A pod, and what was made of it.
#[derive(Debug)]
pub struct PodScene {
    pub(super) now: Timestamp,
    pub(super) pod: Object,
    /// What the machine knows of its process; nothing, if nobody asked.
    pub(super) known: Known,
    /// A lock in our hands that was taken for another pod of its name.
    pub(super) stray: Option<LockName>,
    /// The run that it asks for, or why it cannot be; None: it was not asked for.
    pub(super) described: Option<Result<Run, Problem>>,
    /// Whether the machine may have files with tokens for it.
    pub(super) may_have_tokens: bool,
    /// The file that is in need of a token.
    pub(super) token: Option<TokenFile>,
}

impl PodScene {
    pub(super) fn lock(&self) -> LockName {
        lock_of(&self.pod)
    }
}

/// The question for locks in our hands for pods of a name.
pub(super) fn in_hand(name: &Name) -> Question {
    let namespace = name.namespace.as_deref().unwrap_or_default().to_owned();
    Question::InHand { namespace, name: name.name.to_string() }
}

/// Where the permit of a pod is.
pub(super) fn permit_address(pod: &Object) -> Address {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    Address::new(Place::CLUSTER, &NAMESPACE, Name::cluster_wide(namespace))
}

/// Where a pod is.
pub(super) fn pod_address(pod: &Object) -> Address {
    Address::new(Place::CLUSTER, &POD, Name::of(pod))
}

/// Reads what a step is about.
pub(super) fn observe(
    runtime: &Runtime,
    name: Name,
    view: &dyn View,
    live_reads: &LiveReads<Machine>,
) -> Observed<Facts, Scene> {
    let Some(pod) = view.get(Place::CLUSTER, &POD, &name).filter(super::is_process) else {
        return without_pod(name, live_reads);
    };
    let (facts, scene) = StepInputs { runtime, view, live_reads, pod: &pod }.seen();
    Observed::Seen { facts, scene: Scene::Pod(Box::new(scene)) }
}

fn without_pod(name: Name, live_reads: &LiveReads<Machine>) -> Observed<Facts, Scene> {
    let locks = locks_in_hand(&name, live_reads);
    let stray = locks.and_then(|locks| locks.first().cloned());
    let facts = Facts::NoPod(match (locks, &stray) {
        (None, _) => Stray::NotAsked,
        (Some(_), None) => Stray::None,
        (Some(_), Some(_)) => Stray::Held,
    });
    Observed::Seen { facts, scene: Scene::NoPod { name, stray } }
}

/// The locks in our hands for pods of a name; None: nobody asked.
fn locks_in_hand<'a>(name: &Name, live_reads: &'a LiveReads<Machine>) -> Option<&'a [LockName]> {
    match live_reads.answers.get(&in_hand(name)) {
        Some(Answer::InHand(locks)) => Some(locks),
        Some(Answer::Process(_) | Answer::Lock(_) | Answer::Tokens(_)) | None => None,
    }
}

/// What the machine answered about a pod.
struct Answers {
    known: Known,
    lock: Lock,
    stray: Option<LockName>,
    tokens: TokenFiles,
}

/// Everything that a step about a pod sees.
struct StepInputs<'a> {
    runtime: &'a Runtime,
    view: &'a dyn View,
    live_reads: &'a LiveReads<Machine>,
    pod: &'a Object,
}

impl StepInputs<'_> {
    fn seen(&self) -> (Facts, PodScene) {
        let (now, pod) = (self.view.now(), self.pod.clone());
        let may_have_tokens = tokens::may_have(self.pod, self.view);
        let scene = PodScene {
            now,
            pod,
            known: Known::Nothing,
            stray: None,
            described: None,
            may_have_tokens,
            token: None,
        };
        let Some(Answers { known, lock, stray, tokens: files }) = self.answers(may_have_tokens)
        else {
            return (Facts::NotAsked, scene);
        };
        let process = self.process(known);
        let permit = self.permit().filter(|_| lock == Lock::Mine);
        let wanted = Wanted::of(self.pod, self.view, &self.runtime.cloud).unwrap_or_default();
        let (tokens, token) = tokens::judge(&wanted.files, &files, now);
        let described = self.described(process, permit.as_ref());
        let described = described.map(|run| with_tokens(run, tokens, &files));
        let facts = Asked {
            pod: self.pod_fact(),
            has_finalizer: has_finalizer(self.pod, FINALIZER_PROCESS),
            process,
            lock,
            is_permit_seen: self.epoch_seen().is_some(),
            is_stray_lock_held: stray.is_some(),
            permit,
            description: self.description(described.as_ref()),
            has_fields_without_effect: without_effect(&self.pod.data["spec"]).is_some(),
            reported: self.reported(known, process),
            is_grace_over: self.is_grace_over(),
            tokens,
            has_token_files: files.is_there,
        };
        let token = token.cloned();
        (Facts::Asked(facts), PodScene { known, stray, described, token, ..scene })
    }

    /// None: the machine was not asked all of it.
    fn answers(&self, may_have_tokens: bool) -> Option<Answers> {
        let answer = |question: &Question| self.live_reads.answers.get(question);
        let process = Question::Process(uid_of(self.pod).to_owned());
        let Some(Answer::Process(known)) = answer(&process) else { return None };
        let lock = Question::Lock(lock_of(self.pod));
        let Some(Answer::Lock(held)) = answer(&lock) else { return None };
        let locks = locks_in_hand(&Name::of(self.pod), self.live_reads)?;
        let tokens = match answer(&Question::Tokens(uid_of(self.pod).to_owned())) {
            Some(Answer::Tokens(tokens)) => tokens.clone(),
            _ if may_have_tokens => return None,
            _ => TokenFiles::default(),
        };
        Some(Answers {
            tokens,
            known: *known,
            lock: match held {
                Held::Free => Lock::Free,
                Held::Mine => Lock::Mine,
                Held::Taken => Lock::Taken,
            },
            stray: locks.iter().find(|lock| lock.pod != uid_of(self.pod)).cloned(),
        })
    }

    fn pod_fact(&self) -> Pod {
        if is_deleting(self.pod) {
            return Pod::Leaving;
        }
        match self.pod.data["status"]["phase"].as_str() {
            Some("Succeeded" | "Failed") => Pod::Finished,
            _ => Pod::Wanted,
        }
    }

    fn process(&self, known: Known) -> Process {
        match known {
            Known::Nothing => Process::None,
            Known::Lives(_) => Process::Lives,
            Known::Stopping(_) => Process::Stopping,
            Known::Killed(_) => Process::Killed,
            Known::Gone { run, ending, finished } => {
                Process::Gone(self.exit(&Ended::of(self.pod, run, ending, finished)))
            }
        }
    }

    fn exit(&self, ended: &Ended) -> Exit {
        let between = |from: Timestamp, to: Timestamp| {
            Duration::try_from(to.duration_since(from)).unwrap_or_default()
        };
        let now = self.view.now();
        let finished = ended.finished.unwrap_or(now);
        Exit {
            is_success: ended.is_success(),
            policy: match self.pod.data["spec"]["restartPolicy"].as_str() {
                Some("Never") => RestartPolicy::Never,
                Some("OnFailure") => RestartPolicy::OnFailure,
                _ => RestartPolicy::Always,
            },
            restarts: ended.restarts,
            ran: between(ended.run.since, finished),
            ago: between(finished, now),
        }
    }

    /// The epoch that the cache says may run.
    fn epoch_seen(&self) -> Option<i64> {
        let address = permit_address(self.pod);
        let namespace = self.view.get(Place::CLUSTER, &NAMESPACE, &address.name);
        epoch_of(&self.permit_of(namespace.as_ref(), true))
    }

    /// What a live read of the namespace permits, and at the pod finds. It counts only if the lock
    /// was seen to be ours before: reads are made in the order in which they were asked for.
    fn permit(&self) -> Option<Permit> {
        let namespace = self.live_reads.objects.get(&permit_address(self.pod))?;
        let pod = self.live_reads.objects.get(&pod_address(self.pod))?;
        let is_there = |pod: &Object| uid_of(pod) == uid_of(self.pod) && !is_deleting(pod);
        Some(self.permit_of(namespace.as_ref(), pod.as_ref().is_some_and(is_there)))
    }

    fn permit_of(&self, namespace: Option<&Object>, is_pod_there: bool) -> Permit {
        let notes = namespace.and_then(|found| notes::parse(found, &self.runtime.boot_id));
        let (running, released) =
            notes.map_or((Running::Nothing, 0), |notes| (notes.running, notes.released));
        Permit { is_pod_there, running, released }
    }

    /// The run that the pod asks for, for the epoch that may run. One that lives was described when
    /// it was started.
    fn described(&self, process: Process, permit: Option<&Permit>) -> Option<Result<Run, Problem>> {
        match process {
            Process::Lives | Process::Stopping | Process::Killed => None,
            Process::None | Process::Gone(_) => {
                let epoch = permit.and_then(epoch_of).or_else(|| self.epoch_seen());
                Some(describe(self.pod, self.view, self.runtime, epoch.unwrap_or(0)))
            }
        }
    }

    fn description(&self, described: Option<&Result<Run, Problem>>) -> Description {
        let is_reported = |problem: &Problem| {
            let status = waiting(self.pod, problem, self.view.now());
            contains(&self.pod.data["status"], &status)
        };
        match described {
            None | Some(Ok(_)) => Description::Complete,
            Some(Err(problem @ Problem::Missing(_))) => {
                Description::Missing { is_reported: is_reported(problem) }
            }
            Some(Err(problem @ Problem::NotSupported(_))) => {
                Description::NotSupported { is_reported: is_reported(problem) }
            }
        }
    }

    fn reported(&self, known: Known, process: Process) -> Option<Report> {
        let reports: Vec<Report> = match process {
            Process::None => Vec::new(),
            Process::Lives | Process::Stopping | Process::Killed => vec![Report::Running],
            Process::Gone(exit) => {
                let again = Report::StartsAgain(back_off(&exit).as_secs());
                vec![again, Report::Succeeded, Report::Failed]
            }
        };
        let is_said = |report: &Report| {
            let status = reporting(self.pod, known, *report, self.view.now());
            status.is_some_and(|status| contains(&self.pod.data["status"], &status))
        };
        reports.into_iter().find(is_said)
    }

    /// The API server stamps a deletion with the end of its grace period. A pod without a node it
    /// gives no time at all, since nobody there has to stop it; here we have to, so its own time is
    /// counted from that stamp.
    fn is_grace_over(&self) -> bool {
        let Some(stamp) = &self.pod.metadata.deletion_timestamp else { return false };
        let node = self.pod.data["spec"]["nodeName"].as_str().unwrap_or_default();
        let own = if node.is_empty() { grace_seconds(self.pod) } else { 0 };
        let ends = stamp.0.as_second().saturating_add(i64::try_from(own).unwrap_or(i64::MAX));
        self.view.now().as_second() >= ends
    }
}

/// A pod does not start without its tokens.
fn with_tokens(
    run: Result<Run, Problem>,
    tokens: Tokens,
    files: &TokenFiles,
) -> Result<Run, Problem> {
    match (tokens, &files.failed) {
        (Tokens::Failing { is_missing: true }, Some(failed)) => run.and_then(|_| {
            Err(Problem::Missing(format!("a token was not issued: {}", failed.because)))
        }),
        _ => run,
    }
}

/// The epoch that a permit lets run.
fn epoch_of(permit: &Permit) -> Option<i64> {
    match permit.running {
        Running::Permitted(epoch) if permit.released < epoch => Some(epoch),
        Running::Permitted(_) | Running::Nothing | Running::Lapsed(_) => None,
    }
}
