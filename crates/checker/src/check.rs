//! One check from beginning to end: explore, judge, and explain.

use crate::explore::{CheckError, Checks, Explored, Sighting, Stop, explore};
use crate::lint;
use crate::liveness;
use crate::model::Model;
use crate::options::{Liveness, Options};
use crate::report::{Finding, PropertyFinding, Reduction, Report, Trace, Unused, Verdict};
use crate::space::Space;
use crate::trace::path_to;
use std::time::Instant;

/// Above this many states, temporal properties are checked only when asked for: the graph of all
/// steps must fit in memory.
const LIVENESS_STATES: u64 = 20_000_000;

/// Checks a model; `name` is how the report calls it.
pub fn check<M: Model>(name: &str, model: &M, options: &Options) -> Result<Report, CheckError> {
    known_promises(name, model, options)?;
    if options.liveness == Liveness::On && options.symmetry {
        return Err(CheckError::Conflict(
            "symmetry joins states that a fair loop must tell apart: check temporal properties \
             without it"
                .to_owned(),
        ));
    }
    let space = if options.liveness == Liveness::On || options.plain && !options.symmetry {
        Space::plain(model)
    } else {
        Space::reduced(model, options.symmetry)?
    };
    let checks = wanted_checks(model, options);
    let from = crate::checkpoint::resume(name, &space, options)?;
    let explored = explore(&space, &checks, options, from, noted_states(&space, options))?;
    crate::checkpoint::keep(name, &space, options, &explored)?;
    let mut report = summary(name, &space, &explored, options);
    judge(&space, &checks, &explored, options, &mut report);
    lint::vacuous_invariants(model, &checks, &mut report);
    let wants_liveness = match options.liveness {
        Liveness::On => true,
        Liveness::Off => false,
        Liveness::Automatic => !options.symmetry && report.distinct_states <= LIVENESS_STATES,
    };
    let ready = wants_liveness && explored.stop.is_none();
    check_properties(&space, explored, options, ready, &mut report)?;
    Ok(report)
}

/// Up to how many states the steps between them are worth noting for temporal properties.
fn noted_states<M: Model>(space: &Space<'_, M>, options: &Options) -> u64 {
    let has_properties = space.model.properties().iter().any(|p| options.wants(p.name));
    let is_plain = space.product.is_none() && !space.is_symmetric();
    match options.liveness {
        _ if !has_properties || !is_plain => 0,
        Liveness::On => u64::MAX,
        Liveness::Off => 0,
        Liveness::Automatic => LIVENESS_STATES,
    }
}

fn wanted_checks<M: Model>(model: &M, options: &Options) -> Checks<M::State> {
    let mut checks = Checks {
        invariants: model.invariants(),
        rules: model.step_rules(),
        refinements: model.refines(),
        reachable: model.reachable(),
        deadlock: options.wants("deadlock"),
    };
    checks.invariants.retain(|check| options.wants(check.name));
    checks.rules.retain(|check| options.wants(check.name));
    checks.refinements.retain(|check| options.wants(&check.name));
    checks.reachable.retain(|check| options.wants(check.name));
    checks
}

fn known_promises<M: Model>(name: &str, model: &M, options: &Options) -> Result<(), CheckError> {
    let mut known = vec!["deadlock".to_owned()];
    known.extend(model.invariants().iter().map(|check| check.name.to_owned()));
    known.extend(model.step_rules().iter().map(|check| check.name.to_owned()));
    known.extend(model.properties().iter().map(|check| check.name.to_owned()));
    known.extend(model.refines().iter().map(|check| check.name.clone()));
    known.extend(model.reachable().iter().map(|check| check.name.to_owned()));
    match options.only.iter().find(|only| !known.contains(only)) {
        None => Ok(()),
        Some(unknown) => Err(CheckError::UnknownPromise {
            model: name.to_owned(),
            name: unknown.clone(),
            known: known.join(", "),
        }),
    }
}

fn summary<M: Model>(
    name: &str,
    space: &Space<'_, M>,
    explored: &Explored<M::Packed>,
    options: &Options,
) -> Report {
    let seen = &explored.seen;
    let seconds = explored.elapsed.as_secs_f64();
    let stored = explored.stored() as u64;
    let each = space.product.as_ref().map_or(1, |product| product.count);
    // What is queued was found but not expanded: it counts as seen, as TLC counts it.
    let distinct = seen.distinct + (stored - seen.expanded) * each;
    let reduction = (space.product.is_some() || space.is_symmetric()).then(|| Reduction {
        kept_states: stored,
        flag_valuations: each,
        flags: space.model.flags().into_iter().map(|flag| flag.name).collect(),
        permutations: if space.is_symmetric() { space.model.symmetries() + 1 } else { 1 },
        verified_states: seen.verified,
    });
    let actions = space.model.actions();
    let flag_actions: Vec<u16> = space
        .model
        .flags()
        .iter()
        .flat_map(|flag| flag.moves.iter().map(|change| change.action))
        .collect();
    let unused = |(id, action): (usize, &crate::model::Action)| {
        let idle = seen.actions[id] == 0
            && !(space.product.is_some() && flag_actions.contains(&(id as u16)));
        idle.then(|| Unused {
            action: action.name.clone(),
            explanation: space.model.explain(action.family()).map(str::to_owned),
        })
    };
    Report {
        model: name.to_owned(),
        size: Model::size(space.model),
        distinct_states: distinct,
        generated_states: seen.generated,
        depth: explored.depth + space.product.as_ref().map_or(0, |product| product.depth),
        seconds,
        states_per_second: distinct as f64 / seconds.max(1e-9),
        bytes_per_state: explored.peak_bytes as f64 / distinct.max(1) as f64,
        workers: options.workers,
        complete: explored.stop.is_none(),
        stopped: explored.stop.map(|stop| {
            match stop {
                Stop::Interrupted => "interrupted",
                Stop::Memory => "the allowed memory is used up",
                Stop::FirstViolation => "stopped at the first violation",
            }
            .to_owned()
        }),
        reduction,
        deadlock: None,
        deadlock_checked: options.wants("deadlock"),
        invariants: Vec::new(),
        properties: Vec::new(),
        refines: Default::default(),
        reachable: Vec::new(),
        never_taken: if explored.stop.is_none() {
            actions.iter().enumerate().filter_map(unused).collect()
        } else {
            Vec::new()
        },
        liveness_seconds: 0.0,
        deadlock_explanation: None,
    }
}

fn judge<M: Model>(
    space: &Space<'_, M>,
    checks: &Checks<M::State>,
    explored: &Explored<M::Packed>,
    options: &Options,
    report: &mut Report,
) {
    let seen = &explored.seen;
    let explain = |name: &str| space.model.explain(name).map(str::to_owned);
    let trace = |sighting: &Sighting<M::Packed>| {
        Trace::of(space.model, &path_to(space, explored, sighting, options.workers))
    };
    let finding = |name: &str, sentence: &str, sighting: &Option<Sighting<M::Packed>>| Finding {
        name: name.to_owned(),
        verdict: if sighting.is_some() { Verdict::Violated } else { Verdict::Holds },
        steps: sighting.map(|s| s.level - 1 + u32::from(s.step.is_some())),
        sentence: sentence.to_owned(),
        explanation: sighting.and_then(|_| explain(name)),
        trace: sighting.as_ref().map(&trace),
    };
    for (check, sighting) in checks.invariants.iter().zip(&seen.invariants) {
        let mut finding = finding(check.name, check.sentence, sighting);
        if finding.verdict == Verdict::Holds {
            finding.explanation = check.unbreakable.map(str::to_owned);
        }
        report.invariants.push(finding);
    }
    for (check, sighting) in checks.refinements.iter().zip(&seen.refinements) {
        let sentence = format!("every step is a step of {} or changes nothing there", check.name);
        report.refines.insert(check.name.clone(), finding(&check.name, &sentence, sighting));
    }
    for (check, sighting) in checks.rules.iter().zip(&seen.rules) {
        let finding = finding(check.name, check.sentence, sighting);
        report.properties.push(PropertyFinding {
            name: finding.name,
            verdict: finding.verdict,
            prefix_steps: finding.steps,
            loop_steps: None,
            sentence: finding.sentence,
            explanation: finding.explanation,
            fairness: Vec::new(),
            trace: finding.trace,
        });
    }
    for (check, sighting) in checks.reachable.iter().zip(&seen.reachable) {
        let verdict = match sighting {
            Some(_) => Verdict::Holds,
            None if explored.stop.is_some() => Verdict::Unchecked,
            None => Verdict::Violated,
        };
        report.reachable.push(Finding {
            name: check.name.to_owned(),
            verdict,
            steps: sighting.map(|s| s.level - 1),
            sentence: check.sentence.to_owned(),
            explanation: sighting.is_none().then(|| explain(check.name)).flatten(),
            trace: None,
        });
    }
    report.deadlock = seen.deadlock.as_ref().map(&trace);
    report.deadlock_explanation = seen.deadlock.and_then(|_| explain("deadlock"));
}

fn check_properties<M: Model>(
    space: &Space<'_, M>,
    explored: Explored<M::Packed>,
    options: &Options,
    ready: bool,
    report: &mut Report,
) -> Result<(), CheckError> {
    let mut properties = space.model.properties();
    properties.retain(|property| options.wants(property.name));
    if properties.is_empty() {
        return Ok(());
    }
    if !ready {
        report.properties.extend(properties.iter().map(|property| PropertyFinding {
            name: property.name.to_owned(),
            verdict: Verdict::Unchecked,
            prefix_steps: None,
            loop_steps: None,
            sentence: property.sentence.to_owned(),
            explanation: None,
            fairness: Vec::new(),
            trace: None,
        }));
        return Ok(());
    }
    let started = Instant::now();
    // A loop is made of whole states: those without flags are explored again with them.
    let (plain, explored) = if space.product.is_some() {
        drop(explored);
        let plain = Space::plain(space.model);
        let checks = Checks {
            invariants: Vec::new(),
            rules: Vec::new(),
            refinements: Vec::new(),
            reachable: Vec::new(),
            deadlock: false,
        };
        let explored = explore(&plain, &checks, options, None, u64::MAX)?;
        (plain, explored)
    } else {
        (Space::plain(space.model), explored)
    };
    report.properties.extend(liveness::check(&plain, explored, &properties, options)?);
    report.liveness_seconds = started.elapsed().as_secs_f64();
    Ok(())
}
