//! A decision about a Policy as one step.

use super::decide::{Decision, Left, Report};
use super::observe::Scene;
use crate::kinds::POLICY;
use crate::outside::{Cloud, Request};
use crate::settings::Settings;
use crate::speak;
use crate::standing::{spec_arn_ignored, was_as_declared};
use interlock_api::identities::FINALIZER_POLICY;
use interlock_kernel::conditions::with;
use interlock_kernel::metadata::{put_finalizer, take_finalizer_off, uid_of};
use interlock_kernel::{Address, Importance, Name, Place, Read, Step, Write};
use serde_json::{Value, json};
use std::time::Duration;

/// The one effect of a decision.
pub(super) fn act(settings: &Settings, scene: &Scene, decision: Decision) -> Step<Cloud> {
    let policy = &scene.policy;
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::Wait(because, seconds) => Step::Wait {
            because: because.to_owned(),
            at_most: Duration::from_secs(u64::try_from(seconds).unwrap_or(1).max(1)),
        },
        Decision::Resync => Step::Wait {
            because: "the cloud is compared again later".to_owned(),
            at_most: settings.resync(policy),
        },
        Decision::AddFinalizer => {
            let change = put_finalizer(policy, FINALIZER_POLICY);
            let write = Write::patch(Place::HUB, &POLICY, policy, change);
            Step::write(write, "the finalizer is there before the first call")
        }
        Decision::LiveRead { places, whole } => live_read(scene, places, whole),
        Decision::Mark(mark) => {
            let change = json!({"mark": speak::mark(&mark)});
            status(scene, change, "calls of this process may be under way from now on")
        }
        Decision::Unmark { is_compared } => {
            let next = is_compared.then(|| settings.resync(policy));
            status(scene, json!({"mark": null}), "no call can be under way any more")
                .then_waiting(next)
        }
        Decision::Call(at, call) => {
            let because = format!("the cloud is not as declared: {}", call.name());
            let note = format!("{} of the cloud policy", call.name());
            let observed = scene.status.observed_generation;
            let is_drift = was_as_declared(policy, &scene.status.conditions, observed);
            let reason = speak::reason_of_call(is_drift);
            let event = speak::event(&POLICY, policy, Importance::Normal, reason);
            let about = uid_of(policy).to_owned();
            let request = Request { about, decided: scene.process.clone(), at, call };
            Step::outside(request, because).telling(speak::saying(event, note))
        }
        Decision::Report(report) => {
            let because = format!("the Policy is {:?}", report.standing.old());
            status(scene, reported(scene, &report), because)
        }
        Decision::RemoveFinalizer(left) => remove_finalizer(scene, left),
    }
}

/// The cloud first, then the Policy: a mark that is read after the cloud was there when it was read.
fn live_read(scene: &Scene, places: usize, whole: bool) -> Step<Cloud> {
    let address = Address::new(Place::HUB, &POLICY, Name::of(&scene.policy));
    if places == 0 {
        let because = "calls of this process may be under way".to_owned();
        let reads = vec![Read::Ask(scene.calls.clone()), Read::Object(address)];
        return Step::LiveRead { reads, because };
    }
    let questions = if whole { &scene.whole_questions } else { &scene.questions };
    let mut reads: Vec<Read<Cloud>> = Vec::new();
    reads.extend(questions.iter().take(places).cloned().map(Read::Ask));
    reads.push(Read::Object(address));
    Step::LiveRead { reads, because: "the cloud is compared with the Policy".to_owned() }
}

fn status(scene: &Scene, change: Value, because: impl Into<String>) -> Step<Cloud> {
    let change = json!({"status": change});
    Step::write(Write::patch_status(Place::HUB, &POLICY, &scene.policy, change), because)
}

fn reported(scene: &Scene, report: &Report) -> Value {
    let generation = scene.policy.metadata.generation;
    let before = &scene.status.conditions;
    let mut conditions = report.standing.added_to(before, scene.now, generation);
    if let Some(finding) = spec_arn_ignored(report.is_spec_arn_ignored) {
        conditions = with(&conditions, &finding, scene.now, generation);
    }
    let mut change = json!({
        "condition": report.standing.old(), "reason": report.standing.sentence(),
        "observedGeneration": generation, "conditions": conditions,
    });
    if let Some(known) = &report.known {
        change["arn"] = json!(known.arn);
        change["policyID"] = json!(known.id);
        change["versionID"] = json!(known.version);
        change["documentHash"] = json!(known.digest);
    }
    if let Some(mark) = &report.mark {
        change["mark"] = speak::mark(mark);
    }
    change
}

fn remove_finalizer(scene: &Scene, left: Left) -> Step<Cloud> {
    let policy = &scene.policy;
    let change = take_finalizer_off(policy, FINALIZER_POLICY);
    let write = Write::patch(Place::HUB, &POLICY, policy, change);
    let (because, reason) = match left {
        Left::Nothing => return Step::write(write, "nothing of the Policy is in the cloud"),
        Left::Retained => ("the cloud policy stays, as spec.deletionPolicy asks", "Retained"),
        Left::Foreign => ("the cloud policy of that name belongs to another", "Conflict"),
    };
    let event = speak::event(&POLICY, policy, Importance::Warning, reason);
    Step::write(write, because).telling(speak::saying(event, because.to_owned()))
}
