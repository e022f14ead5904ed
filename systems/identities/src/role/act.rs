//! A decision about a Role as one step.

use super::decide::{Change, Decision, Left, Report, Rights};
use super::observe::Scene;
use crate::kinds::{GRANT, ROLE};
use crate::outside::{Call, Cloud, Register, Request};
use crate::settings::Settings;
use crate::speak;
use crate::standing::{spec_arn_ignored, was_as_declared};
use interlock_api::identities::FINALIZER_ROLE;
use interlock_api::placement::{GrantStatus, RightsState};
use interlock_kernel::conditions::with;
use interlock_kernel::metadata::{put_finalizer, take_finalizer_off, uid_of};
use interlock_kernel::{Importance, Place, Read, Step, Write, read_part};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// The one effect of a decision.
pub(super) fn act(settings: &Settings, scene: &Scene, decision: Decision) -> Step<Cloud> {
    let role = &scene.role;
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::Wait(because, seconds) => Step::Wait {
            because: because.to_owned(),
            at_most: Duration::from_secs(u64::try_from(seconds).unwrap_or(1).max(1)),
        },
        Decision::Resync => Step::Wait {
            because: "the cloud is compared again later".to_owned(),
            at_most: settings.resync(role),
        },
        Decision::AddFinalizer => {
            let change = put_finalizer(role, FINALIZER_ROLE);
            let write = Write::patch(Place::HUB, &ROLE, role, change);
            Step::write(write, "the finalizer is there before the first call")
        }
        Decision::LiveRead { places } => live_read(scene, places),
        Decision::Mark(mark) => {
            let change = json!({"mark": speak::mark(&mark)});
            status(scene, change, "calls of this process may be under way from now on")
        }
        Decision::Begin { mark, attached } => {
            let change = json!({"mark": speak::mark(&mark), "attached": attached});
            status(scene, change, "calls of this process may be under way from now on")
        }
        Decision::Unmark { is_compared } => {
            let next = is_compared.then(|| settings.resync(role));
            status(scene, json!({"mark": null}), "no call can be under way any more")
                .then_waiting(next)
        }
        Decision::Record(attached) => {
            status(scene, json!({"attached": attached}), "these attachments are Interlock's own")
        }
        Decision::Fence { epoch, before } => fence(scene, epoch, before),
        Decision::Rights(rights) => write_rights(scene, &rights),
        Decision::Call(at, call) => {
            let because = format!("the cloud is not as declared: {}", call.name());
            let note = format!("{} of the cloud role", call.name());
            let reason = speak::reason_of_call(is_drift(scene, &call));
            let event = speak::event(&ROLE, role, Importance::Normal, reason);
            let about = uid_of(role).to_owned();
            let request = Request { about, decided: scene.process.clone(), at, call };
            Step::outside(request, because).telling(speak::saying(event, note))
        }
        Decision::Report(report) => {
            let because = format!("the Role is {:?}", report.standing.old());
            status(scene, reported(scene, &report), because)
        }
        Decision::RemoveFinalizer(left) => remove_finalizer(scene, left),
    }
}

/// Whether a call undoes what somebody else did. Trust and fences of a placed namespace follow its Grant: they
/// drift only from what the Grant has on record.
fn is_drift(scene: &Scene, call: &Call) -> bool {
    let observed = scene.status.observed_generation;
    if !was_as_declared(&scene.role, &scene.status.conditions, observed) {
        return false;
    }
    let follows = matches!(call.register(), Register::Trust | Register::Inline(_));
    let Some(grant) = scene.grant.as_ref().filter(|_| follows) else { return true };
    let status = read_part::<GrantStatus>(grant, "status").ok().flatten().unwrap_or_default();
    let own = status.rights.iter().find(|rights| rights.uid == uid_of(&scene.role));
    own.is_some_and(|own| own.state == RightsState::Ready && own.epoch == status.epoch)
}

/// The cloud first, then the Role, then what says whom it trusts: each was so after the cloud was read.
fn live_read(scene: &Scene, places: usize) -> Step<Cloud> {
    let mut reads: Vec<Read<Cloud>> = Vec::new();
    let because = match places {
        0 => {
            reads.push(Read::Ask(scene.calls.clone()));
            "calls of this process may be under way"
        }
        _ => {
            reads.extend(scene.questions.iter().take(places).cloned().map(Read::Ask));
            "the cloud is compared with the Role"
        }
    };
    reads.extend(scene.objects.iter().cloned().map(Read::Object));
    Step::LiveRead { reads, because: because.to_owned() }
}

fn status(scene: &Scene, change: Value, because: impl Into<String>) -> Step<Cloud> {
    let change = json!({"status": change});
    Step::write(Write::patch_status(Place::HUB, &ROLE, &scene.role, change), because)
}

fn fence(scene: &Scene, epoch: i64, before: Option<i64>) -> Step<Cloud> {
    let before = before.and_then(|before| Timestamp::from_second(before).ok());
    let because = match before {
        Some(_) => "sessions that were issued before this time are denied",
        None => "no session is left of an epoch that was ended by force",
    };
    let before = before.map(|before| before.to_string());
    status(scene, json!({"fence": {"epoch": epoch, "before": before}}), because)
}

/// The list of the Grant is written as a whole, over the version that was read: nobody else's entry changes.
fn write_rights(scene: &Scene, rights: &Rights) -> Step<Cloud> {
    let Some(grant) = &scene.grant else { return Step::rest("there is no Grant any more") };
    let (because, reason) = match rights.change {
        Change::Waiting => ("the owner has to wait for the cloud role", None),
        Change::Removed => ("the cloud role is gone", None),
        Change::Ready => ("the cloud role trusts the owner", Some("RightsMoved")),
        Change::Fenced => (
            "the sessions of an owner that lost the namespace by force are denied",
            Some("RightsFenced"),
        ),
    };
    let change = json!({"status": {"rights": rights.all}});
    let step = Step::write(Write::patch_status(Place::HUB, &GRANT, grant, change), because);
    let Some(reason) = reason else { return step };
    let event = speak::event(&ROLE, &scene.role, Importance::Normal, reason);
    step.telling(speak::saying(event, because.to_owned()))
}

fn reported(scene: &Scene, report: &Report) -> Value {
    let generation = scene.role.metadata.generation;
    let before = &scene.status.conditions;
    let mut conditions = report.standing.added_to(before, scene.now, generation);
    if let Some(finding) = spec_arn_ignored(report.is_spec_arn_ignored) {
        conditions = with(&conditions, &finding, scene.now, generation);
    }
    let mut change = json!({
        "condition": report.standing.old(), "reason": report.standing.sentence(),
        "observedGeneration": generation, "conditions": conditions,
    });
    if let Some((arn, id)) = &report.known {
        change["arn"] = json!(arn);
        change["roleID"] = json!(id);
    }
    if let Some(mark) = &report.mark {
        change["mark"] = speak::mark(mark);
    }
    change
}

fn remove_finalizer(scene: &Scene, left: Left) -> Step<Cloud> {
    let role = &scene.role;
    let change = take_finalizer_off(role, FINALIZER_ROLE);
    let write = Write::patch(Place::HUB, &ROLE, role, change);
    let (because, reason) = match left {
        Left::Nothing => return Step::write(write, "nothing of the Role is in the cloud"),
        Left::Retained => ("the cloud role stays, as spec.deletionPolicy asks", "Retained"),
        Left::Foreign => ("the cloud role of that name belongs to another", "Conflict"),
    };
    let event = speak::event(&ROLE, role, Importance::Warning, reason);
    Step::write(write, because).telling(speak::saying(event, because.to_owned()))
}
