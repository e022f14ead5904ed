//! A decision of the runtime as one step.

use super::decide::{Decision, FailedProbe, Report, Why};
use super::describe::without_effect;
use super::observe::{PodScene, Scene, holder_of, in_hand, permit_address, pod_address};
use super::outside::{Action as MachineAction, Ending, Known, LockName, Machine, Question, Run};
use super::parts::inits_of;
use super::status::FIELD_WITHOUT_EFFECT;
use super::tokens::request;
use crate::kinds::POD;
use crate::syncer::marks::FINALIZER_PROCESS;
use interlock_kernel::metadata::{put_finalizer, take_finalizer_off, uid_of};
use interlock_kernel::{Address, Event, Importance, Name, Place, Read, Step, Write};
use serde_json::{Value, json};
use std::time::Duration;

/// How often a process that lives is read: its end is no news that the API brings.
const REQUEUE_AFTER: Duration = Duration::from_secs(1);
/// The same for one that is about to end.
const REQUEUE_SOON: Duration = Duration::from_millis(200);
const NOT_IN_THE_CACHE: &str = "the pod is not in the cache; only a live read can show that it is \
    gone";

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Machine> {
    match scene {
        Scene::NoPod { name, stray, holder } => {
            let seen = Without { name, stray: stray.as_ref(), holder: holder.as_deref() };
            seen.act(decision)
        }
        Scene::Pod(scene) => with_pod(scene, decision),
    }
}

/// What is left of a pod that is not in the cache.
struct Without<'a> {
    name: &'a Name,
    stray: Option<&'a LockName>,
    /// The run that has the lock.
    holder: Option<&'a str>,
}

impl Without<'_> {
    fn act(&self, decision: Decision) -> Step<Machine> {
        match decision {
            Decision::AskForStray => Step::LiveRead {
                reads: vec![Read::Ask(in_hand(self.name)), Read::Ask(holder_of(self.name))],
                because:
                    "the pod is not in the cache; asking the machine whether its lock is held \
                    here"
                        .into(),
            },
            Decision::LetGoOfStray => let_go_of_stray(self.stray),
            Decision::Nothing(Why::NotInTheCache) => Step::rest(NOT_IN_THE_CACHE),
            Decision::Nothing(why @ (Why::Stopping | Why::WillNotDie | Why::LockTaken)) => {
                let (because, at_most) = stopping(why);
                Step::Wait { because: because.to_owned(), at_most }
            }
            decision => about_orphan(self.name, self.holder, decision),
        }
    }
}

/// A step about a process that has the lock of a name, and whose pod the cache does not show.
fn about_orphan(name: &Name, holder: Option<&str>, decision: Decision) -> Step<Machine> {
    const GONE: &str = "the pod of the process does not exist any more";
    match (decision, holder) {
        (Decision::ReadWhetherOrphan, _) => Step::LiveRead {
            reads: vec![Read::Object(Address::new(Place::CLUSTER, &POD, name.clone()))],
            because: "a process has the lock of another pod of this name; only a live read can \
                      show that the other pod is gone"
                .into(),
        },
        (Decision::TerminateOrphan, Some(run)) => {
            Step::outside(MachineAction::Terminate(run.to_owned()), GONE)
        }
        (Decision::KillOrphan, Some(run)) => {
            Step::outside(MachineAction::Kill(run.to_owned()), GONE)
        }
        (decision, _) => about_nothing(decision),
    }
}

fn with_pod(scene: &PodScene, decision: Decision) -> Step<Machine> {
    let pod = || uid_of(&scene.pod).to_owned();
    let let_go = |because| Step::outside(MachineAction::LetGo(scene.lock()), because);
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::AskMachine => Step::LiveRead {
            reads: questions(scene),
            because: "asking the machine for the processes of the pod".into(),
        },
        Decision::TakeLock => Step::outside(
            MachineAction::TakeLock(scene.lock()),
            "the lock is taken before the permit is read",
        ),
        Decision::ReadPermit => {
            // The lock is asked for once more: only a permit that is read after that counts.
            let mut reads = questions(scene);
            reads.push(Read::Object(permit_address(&scene.pod)));
            reads.push(Read::Object(pod_address(&scene.pod)));
            Step::LiveRead { reads, because: "the lock is held; reading the permit".into() }
        }
        Decision::Start(epoch) => start(scene, epoch),
        Decision::StartAndTell(epoch) => start(scene, epoch).telling(no_effect(scene)),
        Decision::WriteToken => write_token(scene),
        Decision::RemoveTokens => Step::outside(
            MachineAction::RemoveTokens(pod()),
            "no process reads the tokens of the pod",
        ),
        Decision::LetGo => let_go("the pod does not need the lock"),
        Decision::LetGoUnstarted => let_go("the pod cannot be started"),
        Decision::LetGoOfStray => let_go_of_stray(scene.stray.as_ref()),
        Decision::AskForHolder => Step::LiveRead {
            reads: vec![Read::Ask(holder_of(&Name::of(&scene.pod)))],
            because: "the lock of the pod is taken; asking the machine by which process".into(),
        },
        Decision::PutFinalizer => {
            let change = put_finalizer(&scene.pod, FINALIZER_PROCESS);
            let write = Write::patch(Place::CLUSTER, &POD, &scene.pod, change);
            Step::write(write, "the pod is to stay until its process is gone")
        }
        Decision::Terminate => {
            Step::outside(MachineAction::Terminate(scene.run_id()), "the pod is being deleted")
        }
        Decision::Restart(probe) => restart(scene, probe),
        Decision::Kill => Step::outside(
            MachineAction::Kill(scene.run_id()),
            "the process did not stop within its grace period",
        ),
        Decision::Report(report) => tell(scene, report),
        Decision::ReportProblem => tell_problem(scene),
        Decision::TakeFinalizerOff => {
            let change = take_finalizer_off(&scene.pod, FINALIZER_PROCESS);
            let write = Write::patch(Place::CLUSTER, &POD, &scene.pod, change);
            Step::write(write, "no process of the pod is left")
        }
        Decision::DeletePod => delete(scene),
        decision @ (Decision::ReadWhetherOrphan
        | Decision::TerminateOrphan
        | Decision::KillOrphan) => {
            about_orphan(&Name::of(&scene.pod), scene.holder.as_deref(), decision)
        }
        decision @ Decision::AskForStray => about_nothing(decision),
    }
}

fn restart(scene: &PodScene, probe: FailedProbe) -> Step<Machine> {
    let (because, note) = match probe {
        FailedProbe::Startup => {
            ("its startup probe failed", "the startup probe failed; the container is restarted")
        }
        FailedProbe::Liveness => {
            ("its liveness probe failed", "the liveness probe failed; the container is restarted")
        }
    };
    let event = Event {
        about: pod_address(&scene.pod),
        uid: uid_of(&scene.pod).to_owned(),
        importance: Importance::Warning,
        reason: "Unhealthy",
        note: note.to_owned(),
    };
    Step::outside(MachineAction::Terminate(scene.run_id()), because).telling(event)
}

fn about_nothing(decision: Decision) -> Step<Machine> {
    Step::rest(format!("the object of {decision:?} does not exist any more"))
}

fn questions(scene: &PodScene) -> Vec<Read<Machine>> {
    let process = Question::Process(uid_of(&scene.pod).to_owned());
    let lock = Question::Lock(scene.lock());
    let mut questions = vec![process, lock, in_hand(&Name::of(&scene.pod))];
    questions.extend(inits_of(&scene.pod));
    if scene.may_have_tokens {
        questions.push(Question::Tokens(uid_of(&scene.pod).to_owned()));
    }
    if let Some(watched) = &scene.watched {
        questions.push(Question::Health(Box::new(watched.clone())));
    }
    questions.into_iter().map(Read::Ask).collect()
}

fn let_go_of_stray(stray: Option<&LockName>) -> Step<Machine> {
    match stray {
        Some(lock) => Step::outside(
            MachineAction::LetGo(lock.clone()),
            "the pod of the lock does not exist any more",
        ),
        None => about_nothing(Decision::LetGoOfStray),
    }
}

fn start(scene: &PodScene, epoch: i64) -> Step<Machine> {
    match &scene.described {
        Some(Ok(run)) => {
            let run = Box::new(Run { epoch, ..run.clone() });
            Step::outside(MachineAction::Start(run), "the epoch may run on this cluster")
        }
        Some(Err(_)) | None => about_nothing(Decision::Start(epoch)),
    }
}

fn write_token(scene: &PodScene) -> Step<Machine> {
    match &scene.token {
        Some(file) => {
            let action = MachineAction::WriteToken(Box::new(request(&scene.pod, file)));
            Step::outside(action, "the token of the pod is missing, or most of its life is over")
        }
        None => about_nothing(Decision::WriteToken),
    }
}

fn no_effect(scene: &PodScene) -> Event {
    Event {
        about: pod_address(&scene.pod),
        uid: uid_of(&scene.pod).to_owned(),
        importance: Importance::Normal,
        reason: FIELD_WITHOUT_EFFECT,
        note: without_effect(&scene.pod.data["spec"]).unwrap_or_default(),
    }
}

fn write_status(scene: &PodScene, status: Value, because: &str) -> Step<Machine> {
    let change = json!({"status": status});
    let write = Write::patch_status(Place::CLUSTER, &POD, &scene.pod, change);
    Step::write(write, because)
}

fn tell(scene: &PodScene, report: Report) -> Step<Machine> {
    match scene.status_saying(report) {
        Some(status) => {
            let step = write_status(scene, status, "the status of the pod is out of date");
            match event_of_end(scene, report) {
                Some(event) => step.telling(event),
                None => step,
            }
        }
        None => about_nothing(Decision::Report(report)),
    }
}

/// The event about an end that is reported, as kubelet has it; None: the status says enough.
fn event_of_end(scene: &PodScene, report: Report) -> Option<Event> {
    let container = scene.seen().container();
    let Known::Gone { ending, .. } = scene.known else { return None };
    let (reason, note) = match (ending, report) {
        (Ending::NotExecuted(number), _) => {
            ("Failed", format!("Error: {}", container.why_not_executed(number)))
        }
        (_, Report::StartsAgain(seconds @ 1..)) => {
            let name = container.part.name(&scene.pod);
            let note = format!("Back-off restarting failed container {name}: {seconds} s");
            ("BackOff", note)
        }
        (
            _,
            Report::StartsAgain(0)
            | Report::Running(_)
            | Report::Initializing
            | Report::Succeeded
            | Report::Failed,
        ) => return None,
    };
    Some(Event {
        about: pod_address(&scene.pod),
        uid: uid_of(&scene.pod).to_owned(),
        importance: Importance::Warning,
        reason,
        note,
    })
}

fn tell_problem(scene: &PodScene) -> Step<Machine> {
    match &scene.described {
        Some(Err(problem)) => {
            let status = scene.status_of(problem);
            write_status(scene, status, "the status of the pod says why it does not start")
        }
        Some(Ok(_)) | None => about_nothing(Decision::ReportProblem),
    }
}

fn delete(scene: &PodScene) -> Step<Machine> {
    let write = Write::Delete {
        address: pod_address(&scene.pod),
        uid: uid_of(&scene.pod).to_owned(),
        resource_version: None,
        grace_seconds: Some(0),
    };
    Step::write(write, "no process of the pod is left")
}

fn nothing(scene: &PodScene, why: Why) -> Step<Machine> {
    let wait = |because: &str, at_most| Step::Wait { because: because.to_owned(), at_most };
    match why {
        Why::NotInTheCache => Step::rest(NOT_IN_THE_CACHE),
        Why::Running => wait("it runs", REQUEUE_AFTER),
        Why::Finished => Step::rest("the pod has finished, and is not restarted"),
        // The namespace is watched: the permit is news.
        Why::NotPermitted => Step::rest("the namespace has no permit for the pod"),
        Why::NamespaceCloses => Step::rest("the namespace does not exist, or is being deleted"),
        Why::NotOurs => Step::rest("the namespace is placed, and the pod was not placed with it"),
        Why::OtherEpoch => {
            Step::rest("the pod was made in another epoch than the one that may run")
        }
        Why::CannotStart => Step::rest(match &scene.described {
            Some(Err(problem)) => problem.to_string(),
            Some(Ok(_)) | None => String::new(),
        }),
        Why::TokenNotIssued => {
            wait("a token that the pod needs was not issued; it is asked for again", REQUEUE_AFTER)
        }
        Why::LockTaken | Why::Stopping | Why::WillNotDie => {
            let (because, at_most) = stopping(why);
            wait(because, at_most)
        }
        Why::BackingOff(left) => wait("the pod restarts after its backoff", left),
    }
}

/// What is waited for while a process is about to go, and for how long.
fn stopping(why: Why) -> (&'static str, Duration) {
    match why {
        Why::Stopping => ("the process may still stop by itself", REQUEUE_SOON),
        Why::WillNotDie => ("the process was killed and has not ended yet", REQUEUE_AFTER),
        _ => ("another process has the lock of the pod", REQUEUE_AFTER),
    }
}
