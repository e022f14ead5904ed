//! What is done about a report: one write, or one live read.

use super::decide::Decision;
use super::next::BUNDLE;
use super::observe::Scene;
use crate::applier::fenced;
use crate::applier::outside::Reach;
use crate::kinds::ROLLOUT_REPORT;
use interlock_api::rollouts::{FailedObject, RolloutReportStatus, event};
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{Address, Event, Importance, Name, Place, Step, Write};
use serde_json::{Value, json};
use std::time::Duration;

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Reach> {
    let live = |reads, because: &str| Step::LiveRead { reads, because: because.to_owned() };
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::Wait(because, seconds) => {
            let at_most = Duration::from_secs(u64::try_from(seconds).unwrap_or(1).max(1));
            Step::Wait { because: because.to_owned(), at_most }
        }
        Decision::ReadFence => live(fenced::reads(), "the fence decides what may be written"),
        Decision::AskBundles => live(scene.bundles.clone(), "the bundles say what is wanted"),
        Decision::AskKinds => live(scene.kinds.clone(), "the cluster says which kinds it serves"),
        Decision::List => live(scene.lists.clone(), "what is there now decides"),
        Decision::Try => live(scene.dry_runs.clone(), "the server says what an apply would make"),
        Decision::Write(next) => write(scene, &next),
    }
}

fn write(scene: &Scene, next: &RolloutReportStatus) -> Step<Reach> {
    let because = format!(
        "token {}: {}, wave {}, {} of {} applied",
        next.token, next.verdict, next.wave, next.objects.applied, next.objects.wanted
    );
    let change = json!({ "status": whole(next) });
    let step = Step::write(
        Write::patch_status(Place::HUB, &ROLLOUT_REPORT, &scene.report, change),
        because,
    );
    match news(&scene.said, next) {
        Some(News { importance, reason, note }) => step.telling(Event {
            about: Address::new(Place::HUB, &ROLLOUT_REPORT, Name::of(&scene.report)),
            uid: uid_of(&scene.report).to_owned(),
            importance,
            reason,
            note,
        }),
        None => step,
    }
}

/// What somebody should read of a report.
struct News {
    importance: Importance,
    reason: &'static str,
    note: String,
}

/// What is new in a report after the one before: objects that failed, or drift that is over. What the API server refused has an
/// event where it is refused.
fn news(said: &RolloutReportStatus, next: &RolloutReportStatus) -> Option<News> {
    let is_about_it = said.token == next.token;
    let is_known = |id: &str| is_about_it && said.failed.iter().any(|failed| failed.id == id);
    let broken = next.failed.iter().filter(|it| it.id != BUNDLE && !is_known(&it.id));
    let broken: Vec<&FailedObject> = broken.collect();
    if let Some(first) = broken.first() {
        let more = match broken.len() - 1 {
            0 => String::new(),
            more => format!("; so do {more} more"),
        };
        let FailedObject { id, code, message } = first;
        let note = format!("{id} does not get healthy: {code}: {message}{more}");
        return Some(News { importance: Importance::Warning, reason: event::UNHEALTHY, note });
    }
    let is_repaired = is_about_it && !said.drifted.is_empty() && next.drifted.is_empty();
    is_repaired.then(|| News {
        importance: Importance::Normal,
        reason: event::DRIFT_REPAIRED,
        note: "the objects are as the target has them again".to_owned(),
    })
}

/// A report as a merge patch that says of every field what it is: what is not there is taken out.
fn whole(next: &RolloutReportStatus) -> Value {
    let mut patch = json!({
        "fence": null, "healthySince": null, "notReady": null, "failed": null, "kept": null,
        "drifted": null, "pending": null, "observedAt": null, "preflight": null,
    });
    // A status is a struct of plain fields, which always has a form in JSON.
    let Ok(Value::Object(fields)) = serde_json::to_value(next) else { return Value::Null };
    for (key, value) in fields {
        patch[key] = value;
    }
    if patch["fence"].is_object() && next.fence.as_ref().is_none_or(|it| it.proven_at.is_none()) {
        patch["fence"]["provenAt"] = Value::Null;
    }
    if patch["preflight"].is_object() && patch["preflight"]["failures"].is_null() {
        patch["preflight"]["failures"] = Value::Null;
    }
    patch
}
