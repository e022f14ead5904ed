//! What one decision of the runtime rests on.

use super::Runtime;
use super::address::address_of;
use super::decide::{
    Asked, Description, Exit, Facts, Finding, Holder, Home, Lock, Orphan, Permit, Pod, Probing,
    Process, Report, RestartPolicy, Stamp, Stray, may_start,
};
use super::describe::{
    Describing, GRACE_SECONDS, Problem, grace_seconds, lock_of, restart_grace_seconds,
    without_effect,
};
use super::outside::{
    self, Answer, Held, Known, LockName, Machine, Question, Run, TokenFile, TokenFiles, Verdict,
    Verdicts, Watched,
};
use super::parts::{Containers, Part, inits_of};
use super::probes::watched;
use super::reported::{reported, was};
use super::status::{At, Container, Ended, PodSeen};
use super::tokens::{self, Tokens, Wanted};
use crate::kinds::{NAMESPACE, POD};
use crate::syncer::marks::{FINALIZER_PROCESS, LABEL_GRANT, from_uid, is_ours};
use crate::syncer::notes;
use crate::syncer::objects::compare::contains;
use crate::syncer::tenancy::Running;
use interlock_api::names::{ANNOTATION_EPOCH, ANNOTATION_GRANT};
use interlock_kernel::metadata::{annotation, has_finalizer, is_deleting, label, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Object, Observed, Place, View};
use jiff::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// An epoch that is never granted.
const NO_EPOCH: i64 = -1;

/// What one step is about.
#[derive(Debug)]
pub enum Scene {
    /// A pod that is not in the cache.
    NoPod {
        /// Its name.
        name: Name,
        /// A lock in our hands that was taken for a pod of that name.
        stray: Option<LockName>,
        /// The run of the process that has the lock.
        holder: Option<String>,
    },
    /// A pod that is ours to run.
    Pod(Box<PodScene>),
}

/// A pod, and what was made of it.
#[derive(Debug)]
pub struct PodScene {
    pub(super) at: At,
    pub(super) pod: Object,
    /// What the machine knows of its containers; nothing, if nobody asked.
    pub(super) containers: Containers,
    /// The same of the container that it is at.
    pub(super) known: Known,
    /// A lock in our hands that was taken for another pod of its name.
    pub(super) stray: Option<LockName>,
    /// The run of the process that has the lock, if it is another pod's.
    pub(super) holder: Option<String>,
    /// The run whose probes are asked for; None: it has none, or does not live.
    pub(super) watched: Option<Watched>,
    /// The run that it asks for, or why it cannot be; None: it was not asked for.
    pub(super) described: Option<Result<Run, Problem>>,
    /// Whether the machine may have files with tokens for it.
    pub(super) may_have_tokens: bool,
    /// The file that is in need of a token.
    pub(super) token: Option<TokenFile>,
}

impl PodScene {
    /// The status that says this of the process; None: there is none to say it of.
    pub(super) fn status_saying(&self, report: Report) -> Option<Value> {
        self.seen().reporting(report, &self.at)
    }

    /// The status that says why the pod does not start.
    pub(super) fn status_of(&self, problem: &Problem) -> Value {
        self.seen().waiting(problem, self.at.now)
    }

    /// The pod with what is known of it.
    pub(super) fn seen(&self) -> PodSeen<'_> {
        PodSeen { pod: &self.pod, containers: &self.containers }
    }

    /// What the machine calls the run of the container that the pod is at.
    pub(super) fn run_id(&self) -> String {
        self.containers.at().run_id(&self.pod)
    }

    pub(super) fn lock(&self) -> LockName {
        lock_of(&self.pod)
    }
}

/// The question for locks in our hands for pods of a name.
pub(super) fn in_hand(name: &Name) -> Question {
    let namespace = name.namespace.as_deref().unwrap_or_default().to_owned();
    Question::InHand { namespace, name: name.name.to_string() }
}

/// The question for the process that has the lock of a name.
pub(super) fn holder_of(name: &Name) -> Question {
    let namespace = name.namespace.as_deref().unwrap_or_default().to_owned();
    Question::Holder { namespace, name: name.name.to_string() }
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
    let pod = view.get(Place::CLUSTER, &POD, &name).filter(|pod| runtime.runs(pod));
    let Some(pod) = pod else { return without_pod(name, view.now(), live_reads) };
    let (facts, scene) = StepInputs { runtime, view, live_reads, pod: &pod }.seen();
    Observed::Seen { facts, scene: Scene::Pod(Box::new(scene)) }
}

fn without_pod(
    name: Name,
    now: Timestamp,
    live_reads: &LiveReads<Machine>,
) -> Observed<Facts, Scene> {
    let locks = locks_in_hand(&name, live_reads);
    let stray = locks.and_then(|locks| locks.first().cloned());
    let (holder, orphan) = holder(&name, None, now, live_reads);
    let facts = Facts::NoPod {
        stray: match (locks, &stray) {
            (None, _) => Stray::NotAsked,
            (Some(_), None) => Stray::None,
            (Some(_), Some(_)) => Stray::Held,
        },
        holder,
    };
    Observed::Seen { facts, scene: Scene::NoPod { name, stray, holder: orphan } }
}

/// The process that has the lock of a name, if it is not of the pod with this uid; and its run.
fn holder(
    name: &Name,
    own: Option<&str>,
    now: Timestamp,
    live_reads: &LiveReads<Machine>,
) -> (Holder, Option<String>) {
    let Some(Answer::Holder(found)) = live_reads.answers.get(&holder_of(name)) else {
        return (Holder::NotAsked, None);
    };
    let Some(found) = found.as_ref().filter(|found| own != Some(&*found.pod)) else {
        return (Holder::None, None);
    };
    let process = match found.known {
        Known::Lives(_) => Process::Lives,
        Known::Stopping { .. } => Process::Stopping,
        Known::Killed(_) => Process::Killed,
        Known::Nothing | Known::Gone { .. } => return (Holder::None, None),
    };
    let pod = Address::new(Place::CLUSTER, &POD, name.clone());
    let there = live_reads.objects.get(&pod);
    let is_pod_gone = there.map(|pod| pod.as_ref().is_none_or(|pod| uid_of(pod) != found.pod));
    let is_grace_over = is_over(found.known, GRACE_SECONDS, now);
    let orphan = Orphan { process, is_pod_gone, is_grace_over };
    (Holder::Process(orphan), Some(found.run.clone()))
}

/// Whether so many seconds are over since a process was asked to stop.
fn is_over(known: Known, grace_seconds: u64, now: Timestamp) -> bool {
    let Known::Stopping { since, .. } = known else { return false };
    let grace = i64::try_from(grace_seconds).unwrap_or(i64::MAX);
    now.as_second() >= since.as_second().saturating_add(grace)
}

/// The locks in our hands for pods of a name; None: nobody asked.
fn locks_in_hand<'a>(name: &Name, live_reads: &'a LiveReads<Machine>) -> Option<&'a [LockName]> {
    match live_reads.answers.get(&in_hand(name)) {
        Some(Answer::InHand(locks)) => Some(locks),
        Some(_) | None => None,
    }
}

/// What the machine answered about a pod.
struct Answers {
    containers: Containers,
    lock: Lock,
    stray: Option<LockName>,
    tokens: TokenFiles,
    verdicts: Verdicts,
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
        let at = At { now, address: address_of(self.pod, self.view) };
        let scene = PodScene {
            at,
            containers: Containers::unknown(&pod),
            pod,
            known: Known::Nothing,
            stray: None,
            holder: None,
            watched: watched(self.pod, self.view),
            described: None,
            may_have_tokens,
            token: None,
        };
        let Some(answers) = self.answers(may_have_tokens, scene.watched.as_ref()) else {
            return (Facts::NotAsked, scene);
        };
        let Answers { containers, lock, stray, tokens: files, verdicts } = answers;
        let seen = PodSeen { pod: self.pod, containers: &containers };
        let (part, container) = (containers.at(), seen.container());
        let known = containers.known(part);
        let process = self.process(container, known);
        let permit = self.permit().filter(|_| lock == Lock::Mine);
        let wanted = Wanted::of(container, self.view, &self.runtime.cloud).unwrap_or_default();
        let (tokens, token) = tokens::judge(&wanted.files, &files, now);
        let described = self.described(container, process, permit.as_ref());
        let described = described.map(|run| with_tokens(run, tokens, &files));
        let (holder, other) =
            holder(&Name::of(self.pod), Some(uid_of(self.pod)), now, self.live_reads);
        let facts = Asked {
            pod: self.pod_fact(),
            has_finalizer: has_finalizer(self.pod, FINALIZER_PROCESS),
            stage: containers.stage(),
            process,
            lock,
            holder,
            home: self.home_seen(),
            stamp: stamp_of(self.pod),
            is_stray_lock_held: stray.is_some(),
            permit,
            description: self.description(seen, described.as_ref()),
            has_fields_without_effect: without_effect(&self.pod.data["spec"]).is_some(),
            reported: reported(seen, process, &at),
            // Probes are those of the container that runs after the init containers.
            probing: self.probing(
                known,
                scene.watched.as_ref().filter(|_| part == Part::Main),
                verdicts,
            ),
            is_grace_over: self.is_grace_over(known),
            tokens,
            has_token_files: files.is_there,
        };
        let token = token.cloned();
        let scene = PodScene { containers, known, stray, holder: other, described, token, ..scene };
        (Facts::Asked(facts), scene)
    }

    /// None: the machine was not asked all of it.
    fn answers(&self, may_have_tokens: bool, watched: Option<&Watched>) -> Option<Answers> {
        let answer = |question: &Question| self.live_reads.answers.get(question);
        let process = Question::Process(uid_of(self.pod).to_owned());
        let Some(Answer::Process(known)) = answer(&process) else { return None };
        let inits = match inits_of(self.pod) {
            Some(question) => match answer(&question) {
                Some(Answer::Inits(inits)) => inits.clone(),
                _ => return None,
            },
            None => Vec::new(),
        };
        let lock = Question::Lock(lock_of(self.pod));
        let Some(Answer::Lock(held)) = answer(&lock) else { return None };
        let locks = locks_in_hand(&Name::of(self.pod), self.live_reads)?;
        let tokens = match answer(&Question::Tokens(uid_of(self.pod).to_owned())) {
            Some(Answer::Tokens(tokens)) => tokens.clone(),
            _ if may_have_tokens => return None,
            _ => TokenFiles::default(),
        };
        let health = watched.map(|watched| Question::Health(Box::new(watched.clone())));
        let verdicts = match health.map(|health| answer(&health)) {
            Some(Some(Answer::Health(verdicts))) => *verdicts,
            Some(_) => return None,
            None => Verdicts::default(),
        };
        Some(Answers {
            tokens,
            verdicts,
            containers: Containers { inits, main: *known },
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

    fn process(&self, container: Container<'_>, known: Known) -> Process {
        match known {
            Known::Nothing => Process::None,
            Known::Lives(_) => Process::Lives,
            Known::Stopping { .. } => Process::Stopping,
            Known::Killed(_) => Process::Killed,
            Known::Gone { run, ending, finished } => {
                let ended = Ended::of(container, run, ending, finished);
                Process::Gone(self.exit(container.part, &ended))
            }
        }
    }

    fn exit(&self, part: Part, ended: &Ended) -> Exit {
        let between = |from: Timestamp, to: Timestamp| {
            Duration::try_from(to.duration_since(from)).unwrap_or_default()
        };
        let now = self.view.now();
        let finished = ended.finished.unwrap_or(now);
        Exit {
            is_success: ended.is_success(),
            policy: match (self.pod.data["spec"]["restartPolicy"].as_str(), part) {
                (Some("Never"), _) => RestartPolicy::Never,
                // An init container that succeeded is done, whatever the pod says.
                (Some("OnFailure"), _) | (_, Part::Init(_)) => RestartPolicy::OnFailure,
                (_, Part::Main) => RestartPolicy::Always,
            },
            restarts: ended.restarts,
            ran: between(ended.run.since, finished),
            ago: between(finished, now),
        }
    }

    /// What the cache shows of the namespace.
    fn home_seen(&self) -> Home {
        let address = permit_address(self.pod);
        let namespace = self.view.get(Place::CLUSTER, &NAMESPACE, &address.name);
        self.home_of(namespace.as_ref())
    }

    /// What a live read of the namespace permits, and at the pod finds. It counts only if the lock
    /// was seen to be ours before: reads are made in the order in which they were asked for.
    fn permit(&self) -> Option<Permit> {
        let namespace = self.live_reads.objects.get(&permit_address(self.pod))?;
        let pod = self.live_reads.objects.get(&pod_address(self.pod))?;
        let is_there = |pod: &&Object| uid_of(pod) == uid_of(self.pod) && !is_deleting(pod);
        let pod = pod.as_ref().filter(is_there);
        Some(Permit {
            is_pod_there: pod.is_some(),
            home: self.home_of(namespace.as_ref()),
            stamp: stamp_of(pod.unwrap_or(self.pod)),
        })
    }

    fn home_of(&self, namespace: Option<&Object>) -> Home {
        let Some(namespace) = namespace else { return Home::Closed };
        let is_placed = annotation(namespace, ANNOTATION_GRANT).is_some()
            || label(namespace, LABEL_GRANT).is_some();
        if !is_placed {
            return if is_deleting(namespace) { Home::Closed } else { Home::Unplaced };
        }
        let notes = notes::parse(namespace, &self.runtime.boot_id);
        let (running, released) =
            notes.map_or((Running::Nothing, 0), |notes| (notes.running, notes.released));
        Home::Placed { running, released }
    }

    /// The run that the pod asks for, for the epoch that may run. One that lives was described when
    /// it was started.
    fn described(
        &self,
        container: Container<'_>,
        process: Process,
        permit: Option<&Permit>,
    ) -> Option<Result<Run, Problem>> {
        match process {
            Process::Lives | Process::Stopping | Process::Killed => None,
            Process::None | Process::Gone(_) => {
                let (home, stamp) = (self.home_seen(), stamp_of(self.pod));
                let live = permit.and_then(|permit| may_start(permit.home, permit.stamp).ok());
                let epoch = live.or_else(|| may_start(home, stamp).ok());
                let (view, runtime) = (self.view, self.runtime);
                let describing = Describing { container, view, runtime };
                Some(describing.run(epoch.unwrap_or_default()))
            }
        }
    }

    fn description(
        &self,
        seen: PodSeen<'_>,
        described: Option<&Result<Run, Problem>>,
    ) -> Description {
        let is_reported = |problem: &Problem| {
            let status = seen.waiting(problem, self.view.now());
            contains(&self.pod.data["status"], &status)
        };
        match described {
            None | Some(Ok(_)) => Description::Complete,
            Some(Err(problem @ Problem::Missing(_))) => {
                Description::Missing { is_reported: is_reported(problem) }
            }
            Some(Err(problem @ (Problem::NotSupported(_) | Problem::Unschedulable))) => {
                Description::NotSupported { is_reported: is_reported(problem) }
            }
        }
    }

    fn probing(&self, known: Known, watched: Option<&Watched>, found: Verdicts) -> Probing {
        let finding = |probe: Option<&outside::Probe>, verdict| match (probe, verdict) {
            (None, _) => Finding::NoProbe,
            (Some(_), None) => Finding::Nothing,
            (Some(_), Some(Verdict::Success)) => Finding::Success,
            (Some(_), Some(Verdict::Failure)) => Finding::Failure,
        };
        let probes = watched.map(|watched| &watched.probes);
        let probe = |of: fn(&outside::Probes) -> &Option<outside::Probe>| {
            probes.and_then(|probes| of(probes).as_ref())
        };
        Probing {
            startup: finding(probe(|probes| &probes.startup), found.startup),
            liveness: finding(probe(|probes| &probes.liveness), found.liveness),
            readiness: finding(probe(|probes| &probes.readiness), found.readiness),
            was: was(self.pod, known),
        }
    }

    /// The API server stamps a deletion with the end of its grace period. A pod without a node it
    /// gives no time at all, since nobody there has to stop it; here we have to, so its own time is
    /// counted from that stamp. What is stopped and not deleted has its time from when it was asked.
    fn is_grace_over(&self, known: Known) -> bool {
        let now = self.view.now();
        let Some(stamp) = &self.pod.metadata.deletion_timestamp else {
            return is_over(known, restart_grace_seconds(self.pod), now);
        };
        let node = self.pod.data["spec"]["nodeName"].as_str().unwrap_or_default();
        let own = if node.is_empty() { grace_seconds(self.pod) } else { 0 };
        let ends = stamp.0.as_second().saturating_add(i64::try_from(own).unwrap_or(i64::MAX));
        now.as_second() >= ends
    }
}

/// By whom a pod was made. A maker that does not say in which epoch it made a pod made it in none that may run.
fn stamp_of(pod: &Object) -> Stamp {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    if !is_ours(pod, namespace) {
        return Stamp::None;
    }
    let has_maker = |pod: &Object| {
        let mut owners = pod.metadata.owner_references.iter().flatten();
        owners.any(|owner| owner.controller == Some(true))
    };
    match annotation(pod, ANNOTATION_EPOCH) {
        Some(epoch) => Stamp::Epoch(epoch.parse().unwrap_or(NO_EPOCH)),
        None if has_maker(pod) && from_uid(pod).is_none() => Stamp::Epoch(NO_EPOCH),
        None => Stamp::Syncer,
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
