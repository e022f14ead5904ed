//! What is done about an object: one write, or one question.

use super::decide::{Decision, Refused};
use super::observe::{Scene, home};
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
                let home = home(&apply.address).map(Read::Object);
                let reads = home.into_iter().chain([Read::DryRun(Box::new(apply.clone()))]);
                live(reads.collect(), "the server says what an apply would make")
            }
            None => nothing(),
        },
        Decision::Make => written(scene, "the target has the object, and there is none"),
        Decision::Change => written(scene, "the object differs from the target"),
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
        Some(apply) => Step::write(apply.write(), because),
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
    Step::write(write, "the target has no such object, and it is marked under this token")
}

/// Adds the refusal to the report, over the version of the report that was seen.
fn note(scene: &Scene, refusal: Refused) -> Step<Reach> {
    let id = scene.id.to_string();
    let others = scene.said.failed.iter().filter(|failed| failed.id != id).cloned();
    let mut failed: Vec<FailedObject> = others.collect();
    failed.truncate(MOST_FAILED - 1);
    let because = format!("{id} is refused: {}", refusal.code);
    let Refused { code, message } = refusal;
    let event = Event {
        about: Address::new(Place::HUB, &ROLLOUT_REPORT, Name::of(&scene.report)),
        uid: uid_of(&scene.report).to_owned(),
        importance: Importance::Warning,
        reason: event::REFUSED,
        note: format!("{id}: {message}"),
    };
    failed.push(FailedObject { id, code, message });
    let change = json!({"status": {"failed": failed}});
    let write = Write::patch_status(Place::HUB, &ROLLOUT_REPORT, &scene.report, change);
    Step::write(write, because).telling(event)
}
