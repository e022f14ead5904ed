//! A decision of the runtime as one step.

use super::decide::{Decision, Report, Why};
use super::describe::without_effect;
use super::observe::{PodScene, Scene, in_hand, permit_address, pod_address};
use super::outside::{Deed as MachineDeed, LockName, Machine, Question, Run};
use super::status::{FIELD_WITHOUT_EFFECT, reporting, waiting};
use crate::kinds::POD;
use crate::syncer::marks::FINALIZER_PROCESS;
use interlock_kernel::metadata::{take_finalizer_off, uid_of};
use interlock_kernel::{Deed, Effect, Event, Importance, Name, Part, Place, Read, Step, Write};
use serde_json::{Value, json};
use std::time::Duration;

/// How often a process that lives is looked at: its end is no news that the API brings.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The same for one that is about to end.
const LOOK_AGAIN_SOON: Duration = Duration::from_millis(200);
const NOT_IN_THE_CACHE: &str = "the pod is not in the cache, which proves nothing";

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Machine> {
    match scene {
        Scene::NoPod { name, stray } => without_pod(name, stray.as_ref(), decision),
        Scene::Pod(scene) => with_pod(scene, decision),
    }
}

/// A step about a pod that is not in the cache.
fn without_pod(name: &Name, stray: Option<&LockName>, decision: Decision) -> Step<Machine> {
    match decision {
        Decision::AskForStray => Step::Look {
            reads: vec![Read::Ask(in_hand(name))],
            because: "the pod is not in the cache: is a lock of it in our hands?".into(),
        },
        Decision::LetGoOfStray => let_go_of_stray(stray),
        Decision::Nothing(Why::NotInTheCache) => Step::rest(NOT_IN_THE_CACHE),
        decision => about_nothing(decision),
    }
}

fn with_pod(scene: &PodScene, decision: Decision) -> Step<Machine> {
    let pod = || uid_of(&scene.pod).to_owned();
    let let_go = |because| perform(MachineDeed::LetGo(scene.lock()), because);
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::AskMachine => Step::Look {
            reads: questions(scene),
            because: "only the machine knows its processes".into(),
        },
        Decision::TakeLock => perform(
            MachineDeed::TakeLock(scene.lock()),
            "the lock is taken before the permit is looked at",
        ),
        Decision::LookAtPermit => {
            // The lock is asked for once more: only a permit that is read after that counts.
            let mut reads = questions(scene);
            reads.push(Read::Object(permit_address(&scene.pod)));
            reads.push(Read::Object(pod_address(&scene.pod)));
            Step::Look { reads, because: "the lock is ours: may it run?".into() }
        }
        Decision::Start(epoch) => start(scene, epoch),
        Decision::StartAndTell(epoch) => start(scene, epoch).telling(no_effect(scene)),
        Decision::LetGo => let_go("nothing of the pod needs the lock"),
        Decision::LetGoUnstarted => let_go("it cannot be started"),
        Decision::LetGoOfStray => let_go_of_stray(scene.stray.as_ref()),
        Decision::Terminate => perform(MachineDeed::Terminate(pod()), "its pod is deleted"),
        Decision::Kill => perform(MachineDeed::Kill(pod()), "it did not stop in the time it had"),
        Decision::Report(report) => tell(scene, report),
        Decision::ReportProblem => tell_problem(scene),
        Decision::TakeFinalizerOff => {
            let change = take_finalizer_off(&scene.pod, FINALIZER_PROCESS);
            let write = Write::patch(Place::CLUSTER, &POD, &scene.pod, (Part::Main, change));
            Step::write(write, "no process of it is left")
        }
        Decision::DeletePod => delete(scene),
        decision @ Decision::AskForStray => about_nothing(decision),
    }
}

fn about_nothing(decision: Decision) -> Step<Machine> {
    Step::rest(format!("{decision:?} is about something that is not there"))
}

fn questions(scene: &PodScene) -> Vec<Read<Machine>> {
    let process = Question::Process(uid_of(&scene.pod).to_owned());
    let lock = Question::Lock(scene.lock());
    [process, lock, in_hand(&Name::of(&scene.pod))].map(Read::Ask).into()
}

fn let_go_of_stray(stray: Option<&LockName>) -> Step<Machine> {
    match stray {
        Some(lock) => {
            perform(MachineDeed::LetGo(lock.clone()), "the pod that it was taken for is not there")
        }
        None => about_nothing(Decision::LetGoOfStray),
    }
}

fn start(scene: &PodScene, epoch: i64) -> Step<Machine> {
    match &scene.described {
        Some(Ok(run)) => {
            let run = Box::new(Run { epoch, ..run.clone() });
            perform(MachineDeed::Start(run), "its epoch may run here")
        }
        Some(Err(_)) | None => about_nothing(Decision::Start(epoch)),
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

fn perform(deed: MachineDeed, because: &str) -> Step<Machine> {
    let because = because.to_owned();
    Step::Act(Box::new(Effect { deed: Deed::Outside(deed), because, event: None }))
}

fn write_status(scene: &PodScene, status: Value, because: &str) -> Step<Machine> {
    let change = json!({"status": status});
    let write = Write::patch(Place::CLUSTER, &POD, &scene.pod, (Part::Status, change));
    Step::write(write, because)
}

fn tell(scene: &PodScene, report: Report) -> Step<Machine> {
    match reporting(&scene.pod, scene.known, report, scene.now) {
        Some(status) => write_status(scene, status, "the status is not what is true"),
        None => about_nothing(Decision::Report(report)),
    }
}

fn tell_problem(scene: &PodScene) -> Step<Machine> {
    match &scene.described {
        Some(Err(problem)) => {
            let status = waiting(&scene.pod, problem, scene.now);
            write_status(scene, status, "people should know why it does not start")
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
    Step::write(write, "no process of it is left")
}

fn nothing(scene: &PodScene, why: Why) -> Step<Machine> {
    let wait = |because: &str, at_most| Step::Wait { because: because.to_owned(), at_most };
    match why {
        Why::NotInTheCache => Step::rest(NOT_IN_THE_CACHE),
        Why::Running => wait("it runs", LOOK_AGAIN),
        Why::Finished => Step::rest("it ran, and does not run again"),
        Why::LockTaken => wait("something else has its lock", LOOK_AGAIN),
        // The namespace is watched: the permit is news.
        Why::NotPermitted => Step::rest("its namespace does not permit it"),
        Why::CannotStart => Step::rest(match &scene.described {
            Some(Err(problem)) => problem.to_string(),
            Some(Ok(_)) | None => String::new(),
        }),
        Why::Stopping => wait("it may still stop by itself", LOOK_AGAIN_SOON),
        Why::WillNotDie => wait("it was killed, and the kernel does not let it go", LOOK_AGAIN),
        Why::BackingOff(left) => wait("it starts again in a while", left),
    }
}
