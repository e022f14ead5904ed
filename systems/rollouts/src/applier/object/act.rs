//! What is done about an object: one write, or one question.

use super::decide::{Decision, Refused};
use super::observe::Scene;
use crate::applier::ANNOTATION_PRUNE;
use crate::applier::outside::{Question, Reach};
use crate::kinds::ROLLOUT_REPORT;
use interlock_api::rollouts::{FailedObject, event};
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{Address, Event, Importance, Name, Place, Read, Step, Write};
use serde_json::json;
use std::time::Duration;

/// The most failures of a report.
pub(in crate::applier) const MOST_FAILED: usize = 20;
/// When an object that was written is read again if the report still names it. The report reads it before that, with all
/// others of its kind; a report that names it anew wakes the room.
const AFTER_WRITE: Duration = Duration::from_secs(10);

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Reach> {
    let live = |reads, because: &str| Step::LiveRead { reads, because: because.to_owned() };
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::Wait(because, seconds) => {
            Step::Wait { because: because.to_owned(), at_most: Duration::from_secs(seconds) }
        }
        Decision::AskBundles => live(scene.bundles.clone(), "the bundles say what the object is"),
        Decision::AskKind => match &scene.kind {
            Some((api_version, kind)) => {
                let asked = Question::Served(api_version.clone(), kind.clone());
                live(vec![Read::Ask(asked)], "the cluster says whether it serves the kind")
            }
            None => nothing(),
        },
        Decision::Read => match &scene.address {
            Some(address) => live(vec![Read::Object(address.clone())], "the object itself decides"),
            None => nothing(),
        },
        Decision::Try => match &scene.apply {
            Some(apply) => {
                let home = scene.home.clone().map(Read::Object);
                let reads = home.into_iter().chain([Read::DryRun(Box::new(apply.clone()))]);
                live(reads.collect(), "the server says what an apply would make")
            }
            None => nothing(),
        },
        Decision::Make => written(scene, "the target has the object, and there is none"),
        Decision::Change => {
            let step = written(scene, "the object differs from the target");
            telling_if_late(scene, step, "is as the target has it again")
        }
        Decision::Mark => marked(scene),
        Decision::Delete => deleted(scene),
        Decision::Note(refusal) => note(scene, refusal),
    }
}

fn nothing() -> Step<Reach> {
    Step::rest("the object is not known well enough")
}

fn written(scene: &Scene, because: &str) -> Step<Reach> {
    match &scene.apply {
        Some(apply) => Step::write(apply.write(), because).then_waiting(Some(AFTER_WRITE)),
        None => nothing(),
    }
}

fn marked(scene: &Scene) -> Step<Reach> {
    let (Some(address), Some(there)) = (&scene.address, &scene.there) else { return nothing() };
    let annotations = json!({ANNOTATION_PRUNE: scene.token.to_string()});
    let change = json!({"metadata": {"annotations": annotations}});
    let write = Write::patch(Place::CLUSTER, &address.kind, there, change);
    Step::write(write, "the target has no such object: it is marked before it is deleted")
}

fn deleted(scene: &Scene) -> Step<Reach> {
    let (Some(address), Some(there)) = (&scene.address, &scene.there) else { return nothing() };
    let write = Write::delete_seen(Place::CLUSTER, &address.kind, there);
    let step =
        Step::write(write, "the target has no such object, and it is marked under this token");
    telling_if_late(scene, step.then_waiting(Some(AFTER_WRITE)), "was deleted")
}

/// The same, with an event if what it takes back is a late write.
fn telling_if_late(scene: &Scene, step: Step<Reach>, done: &str) -> Step<Reach> {
    let Some(late) = scene.late else { return step };
    let Scene { id, token, .. } = scene;
    let note = format!(
        "{id} {done}: it was written under token {late}, after the fence was at {token} and the target of token \
         {token} was verified"
    );
    step.telling(tells(scene, event::LATE_WRITE_REMOVED, note))
}

/// An event about the report, which somebody should read.
fn tells(scene: &Scene, reason: &'static str, note: String) -> Event {
    Event {
        about: Address::new(Place::HUB, &ROLLOUT_REPORT, Name::of(&scene.report)),
        uid: uid_of(&scene.report).to_owned(),
        importance: Importance::Warning,
        reason,
        note,
    }
}

/// Adds the refusal to the report, over the version of the report that was seen.
fn note(scene: &Scene, refusal: Refused) -> Step<Reach> {
    let id = scene.id.to_string();
    let others = scene.said.failed.iter().filter(|failed| failed.id != id).cloned();
    let mut failed: Vec<FailedObject> = others.collect();
    failed.truncate(MOST_FAILED - 1);
    let because = format!("{id} is refused: {}", refusal.code);
    let Refused { code, message } = refusal;
    let event = tells(scene, event::REFUSED, format!("{id}: {message}"));
    failed.push(FailedObject { id, code, message });
    let change = json!({"status": {"failed": failed}});
    let write = Write::patch_status(Place::HUB, &ROLLOUT_REPORT, &scene.report, change);
    Step::write(write, because).telling(event)
}
