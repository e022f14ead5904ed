//! The rooms of rollouts, each bent in one place: mistakes that the simulation must find.

use crate::Flaw;
use interlock_kernel::{Act, Action, Bent, Decide, Nothing, Room, Step, Write};
use interlock_rollouts::applier::Serves;
use interlock_rollouts::applier::report::Reports;
use interlock_rollouts::applier::report::decide as reports;
use interlock_rollouts::conductor::decide::{Decision, decide};
use interlock_rollouts::conductor::facts::{Asked, Facts};
use interlock_rollouts::conductor::{Conductor, Scene};
use interlock_rollouts::health::{Health, State};
use serde_json::{Value, json};

/// Conductors that decide otherwise.
const DECIDING: [(Flaw, Decide<Conductor>); 4] = [
    (Flaw::UpdatesRunTogether, start_beside),
    (Flaw::BadIsNotRemembered, without_memory),
    (Flaw::OldReportsCount, by_old_reports),
    (Flaw::AbsenceIsACancel, by_absence),
];

/// Conductors that write something else than they decided.
const ACTING: [(Flaw, Act<Conductor>); 2] =
    [(Flaw::SupersededWaits, without_supersession), (Flaw::RollbackStays, without_return)];

/// Reports of the applier that decide otherwise.
const REPORTING: [(Flaw, Decide<Reports>); 3] = [
    (Flaw::WritesBeforeTheFence, before_the_fence),
    (Flaw::NothingIsPruned, without_extra),
    (Flaw::UnseenIsHealthy, unseen_is_well),
];

/// The conductor, if the flaw is about it.
pub(super) fn conductor(flaw: Flaw) -> Option<Bent<Conductor>> {
    let deciding = DECIDING.into_iter().find(|(of, _)| *of == flaw);
    let acting = ACTING.into_iter().find(|(of, _)| *of == flaw);
    let shipped = Bent::new(Conductor);
    let decides = deciding.map(|(_, decide)| shipped.deciding(decide));
    decides.or_else(|| acting.map(|(_, act)| shipped.acting(act)))
}

/// The reports of a cluster, if the flaw is about them.
pub(super) fn report(flaw: Flaw, serves: &Serves) -> Option<Bent<Reports>> {
    let (_, decide) = REPORTING.into_iter().find(|(of, _)| *of == flaw)?;
    Some(Bent::new(Reports::new(serves.clone())).deciding(decide))
}

/// The request that waits starts although another one is in flight.
fn start_beside(facts: &Facts) -> Decision {
    let mut alone = facts.clone();
    alone.record.iter_mut().for_each(|record| record.active = None);
    match decide(&alone) {
        Decision::Start => Decision::Start,
        _ => decide(facts),
    }
}

/// A rollback does not remember what failed.
fn without_memory(facts: &Facts) -> Decision {
    match decide(facts) {
        Decision::RollBack(why, _) => Decision::RollBack(why, false),
        Decision::GiveUp(why, _) => Decision::GiveUp(why, false),
        decision => decision,
    }
}

/// What the report says of the target before counts for the new one.
fn by_old_reports(facts: &Facts) -> Decision {
    let mut facts = facts.clone();
    let token = facts.record.as_ref().map_or(0, |record| record.token);
    facts.report.iter_mut().for_each(|report| report.token = token);
    decide(&facts)
}

/// A request that the cache does not show counts as deleted.
fn by_absence(facts: &Facts) -> Decision {
    let mut facts = facts.clone();
    if let Some(record) = &mut facts.record {
        let queued = record.queued.iter_mut().map(|queued| &mut queued.asked);
        let active = record.active.iter_mut().map(|active| &mut active.asked);
        for asked in queued.chain(active).filter(|asked| **asked == Asked::Unread) {
            *asked = Asked::Gone;
        }
    }
    decide(&facts)
}

/// A request that gets its number leaves the one before it in the queue.
fn without_supersession(room: &Conductor, scene: &Scene, decision: Decision) -> Step<Nothing> {
    rewritten(room.act(scene, decision), superseded_waits)
}

/// The token of the target grows, and the target stays what failed.
fn without_return(room: &Conductor, scene: &Scene, decision: Decision) -> Step<Nothing> {
    rewritten(room.act(scene, decision), rollback_stays)
}

/// The same step with another patch.
fn rewritten(mut step: Step<Nothing>, rewrite: fn(&mut Value)) -> Step<Nothing> {
    if let Step::Act(effect) = &mut step
        && let Action::Write(Write::Patch { change, .. }) = &mut effect.action
    {
        rewrite(change);
    }
    step
}

fn superseded_waits(change: &mut Value) {
    let requests = change.pointer_mut("/status/requests").and_then(Value::as_array_mut);
    for entry in requests.into_iter().flatten() {
        if entry["phase"] == "Superseded" {
            entry["phase"] = json!("Queued");
        }
    }
}

fn rollback_stays(change: &mut Value) {
    let Some(status) = change.get_mut("status") else { return };
    if status["active"]["phase"] == "RollingBack" {
        status["target"]["digest"] = status["active"]["digest"].clone();
    }
}

/// Objects are named, and so written, before the fence is raised to the token.
fn before_the_fence(facts: &reports::Facts) -> reports::Decision {
    let mut facts = facts.clone();
    let token = facts.token;
    if let Some(fence) = facts.fence.as_mut().filter(|fence| fence.token < Some(token)) {
        fence.token = Some(token);
    }
    reports::decide(&facts)
}

/// What the target does not have stays, and is said to be verified.
fn without_extra(facts: &reports::Facts) -> reports::Decision {
    let mut facts = facts.clone();
    facts.listed.iter_mut().for_each(|listed| listed.extra.clear());
    reports::decide(&facts)
}

/// What a controller said of an older generation counts.
fn unseen_is_well(facts: &reports::Facts) -> reports::Decision {
    let mut facts = facts.clone();
    let all = facts.listed.iter_mut().flat_map(|listed| &mut listed.wanted);
    for object in all.filter(|it| it.health.reason == "LatestGenerationNotObserved") {
        object.health =
            Health { state: State::Current, reason: String::new(), message: String::new() };
    }
    reports::decide(&facts)
}
