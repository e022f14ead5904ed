//! A decision of the runtime as one step.

use super::decide::{Decision, Facts, Why, decide};
use super::describe::{Problem, without_effect};
use super::observe::{Scene, in_hand, stray_lock};
use super::outside::{Deed as MachineDeed, Known, LockName, Machine, Question, Run};
use super::status::{Ended, FIELD_WITHOUT_EFFECT, expected, waiting};
use crate::kinds::POD;
use crate::syncer::marks::{FINALIZER_PROCESS, has_finalizer, take_finalizer_off, uid};
use crate::syncer::objects::compare::contains;
use interlock_kernel::{
    Address, Deed, Effect, Event, Importance, Looks, Name, Part, Place, Read, Step, Write,
};
use serde_json::{Value, json};
use std::time::Duration;

/// How often a process that lives is looked at: its end is no news that the API brings.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The same for one that is about to end.
const LOOK_AGAIN_SOON: Duration = Duration::from_millis(200);

/// Asks the machine what the facts need.
pub(super) fn ask(scene: &Scene<'_>) -> Step<Machine> {
    Step::Look { reads: questions(scene), because: "only the machine knows its processes".into() }
}

fn questions(scene: &Scene<'_>) -> Vec<Read<Machine>> {
    let process = Question::Process(uid(&scene.pod).to_owned());
    let lock = Question::Lock(scene.lock());
    [process, lock, in_hand(&Name::of(&scene.pod))].map(Read::Ask).into()
}

/// A step about a pod that is not in the cache: all that can be left of it is a lock in our hands.
pub(super) fn without_pod(name: &Name, looks: &Looks<Machine>) -> Step<Machine> {
    let Some(stray) = stray_lock(name, "", looks) else {
        return Step::Look {
            reads: vec![Read::Ask(in_hand(name))],
            because: "the pod is not in the cache: is a lock of it in our hands?".into(),
        };
    };
    match (decide(&Facts::without_pod(stray.is_some())), stray) {
        (Decision::LetGoOfStray, Some(lock)) => let_go_of_stray(lock),
        _ => Step::rest("the pod is not in the cache, which proves nothing"),
    }
}

fn let_go_of_stray(lock: LockName) -> Step<Machine> {
    perform(MachineDeed::LetGo(lock), "the pod that it was taken for is not there")
}

pub(super) fn act(scene: &Scene<'_>, decision: Decision) -> Step<Machine> {
    let pod = || uid(&scene.pod).to_owned();
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::TakeLock => match scene.describe(scene.epoch_seen().unwrap_or(0)) {
            Ok(_) => perform(
                MachineDeed::TakeLock(scene.lock()),
                "the lock is taken before the permit is looked at",
            ),
            Err(problem) => cannot_start(scene, &problem),
        },
        Decision::LookAtPermit => {
            // The lock is asked for once more: only a permit that is read after that counts.
            let mut reads = questions(scene);
            reads.push(Read::Object(scene.permit_address()));
            reads.push(Read::Object(scene.pod_address()));
            Step::Look { reads, because: "the lock is ours: may it run?".into() }
        }
        Decision::Start(epoch) => match scene.describe(epoch) {
            Ok(run) => start(scene, run),
            Err(_) => perform(MachineDeed::LetGo(scene.lock()), "it cannot be started"),
        },
        Decision::LetGo => {
            perform(MachineDeed::LetGo(scene.lock()), "nothing of the pod needs the lock")
        }
        Decision::LetGoOfStray => match scene.stray_lock() {
            Some(Some(lock)) => let_go_of_stray(lock),
            Some(None) | None => ask(scene),
        },
        Decision::Terminate => perform(MachineDeed::Terminate(pod()), "its pod is deleted"),
        Decision::Kill => perform(MachineDeed::Kill(pod()), "it did not stop in the time it had"),
        Decision::Report => report(scene),
        Decision::ConfirmGone => confirm_gone(scene),
    }
}

/// What means nothing to a process is told once, with the first start.
fn start(scene: &Scene<'_>, run: Run) -> Step<Machine> {
    let step = perform(MachineDeed::Start(Box::new(run)), "its epoch may run here");
    let is_first = scene.known == Some(Known::Nothing);
    let note = without_effect(&scene.pod.data["spec"]).filter(|_| is_first);
    let Some(note) = note else { return step };
    step.telling(Event {
        about: Address::new(Place::CLUSTER, &POD, Name::of(&scene.pod)),
        uid: uid(&scene.pod).to_owned(),
        importance: Importance::Normal,
        reason: FIELD_WITHOUT_EFFECT,
        note,
    })
}

fn perform(deed: MachineDeed, because: &str) -> Step<Machine> {
    let because = because.to_owned();
    Step::Act(Box::new(Effect { deed: Deed::Outside(deed), because, event: None }))
}

fn write_status(scene: &Scene<'_>, status: Value, because: &str) -> Step<Machine> {
    let change = json!({"status": status});
    let write = Write::patch(Place::CLUSTER, &POD, &scene.pod, (Part::Status, change));
    Step::write(write, because)
}

fn report(scene: &Scene<'_>) -> Step<Machine> {
    let known = scene.known.unwrap_or(Known::Nothing);
    match expected(&scene.pod, known, scene.view.now()) {
        Some(status) => write_status(scene, status, "the status is not what is true"),
        None => Step::rest("there is nothing to say of it"),
    }
}

fn cannot_start(scene: &Scene<'_>, problem: &Problem) -> Step<Machine> {
    let (reason, message) = match problem {
        Problem::NotSupported(what) => (
            "NotSupported",
            format!("a process cannot have: {}; nothing was started", what.join(", ")),
        ),
        Problem::Missing(what) => ("CreateContainerConfigError", what.clone()),
    };
    let status = waiting(&scene.pod, (reason, &message), scene.view.now());
    // The status of a process that ended says how it ended; it is not said over.
    let is_first = scene.known == Some(Known::Nothing);
    if is_first && !contains(&scene.pod.data["status"], &status) {
        return write_status(scene, status, "people should know why it does not start");
    }
    Step::rest(message)
}

/// The process is gone: first our finalizer, then the pod.
fn confirm_gone(scene: &Scene<'_>) -> Step<Machine> {
    let because = "no process of it is left";
    if has_finalizer(&scene.pod, FINALIZER_PROCESS) {
        let change = take_finalizer_off(&scene.pod, FINALIZER_PROCESS);
        let write = Write::patch(Place::CLUSTER, &POD, &scene.pod, (Part::Main, change));
        return Step::write(write, because);
    }
    let write = Write::Delete {
        address: Address::new(Place::CLUSTER, &POD, Name::of(&scene.pod)),
        uid: uid(&scene.pod).to_owned(),
        resource_version: None,
        grace_seconds: Some(0),
    };
    Step::write(write, because)
}

fn nothing(scene: &Scene<'_>, why: Why) -> Step<Machine> {
    let wait = |because: &str, at_most| Step::Wait { because: because.to_owned(), at_most };
    match why {
        Why::NotInTheCache => Step::rest("the pod is not in the cache, which proves nothing"),
        Why::Running => wait("it runs", LOOK_AGAIN),
        Why::Finished => Step::rest("it ran, and does not run again"),
        Why::LockTaken => wait("something else has its lock", LOOK_AGAIN),
        // The namespace is watched: the permit is news.
        Why::NotPermitted => match scene.describe(0) {
            Err(problem @ Problem::NotSupported(_)) => cannot_start(scene, &problem),
            Ok(_) | Err(Problem::Missing(_)) => Step::rest("its namespace does not permit it"),
        },
        Why::Stopping => wait("it may still stop by itself", LOOK_AGAIN_SOON),
        Why::WillNotDie => wait("it was killed, and the kernel does not let it go", LOOK_AGAIN),
        Why::BackingOff => {
            let (known, now) = (scene.known.unwrap_or(Known::Nothing), scene.view.now());
            let ended = Ended::of(&scene.pod, known, now);
            let left = ended.map_or(LOOK_AGAIN, |ended| ended.restart(&scene.pod, now).1);
            wait("it starts again in a while", left)
        }
    }
}
