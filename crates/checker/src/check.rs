//! One check from beginning to end: explore, judge, and explain.

use crate::error::CheckError;
use crate::explore::{Explored, Sighting, Stop, explore};
use crate::liveness;
use crate::model::{Action, Covers, Model};
use crate::options::{Liveness, Options};
use crate::report::{Finding, PropertyFinding, Reduction, Report, Trace, Unused, Verdict};
use crate::trace::path_to;
use crate::typed::Typed;
use crate::walk::{Facts, Promise, Walk};
use crate::word::Word;
use std::time::Instant;

/// Above this many states, temporal properties are checked only when asked for: the graph of all
/// steps must fit in memory.
const LIVENESS_STATES: u64 = 20_000_000;

/// The engine for packed states of one width: compiled here once for the usual widths, so that models
/// need not compile it each for itself.
pub trait Engine: Word {
    /// Checks a model whose states have this width.
    #[doc(hidden)]
    fn check(name: &str, walk: &dyn Walk<Self>, options: &Options) -> Result<Report, CheckError>;
}

impl Engine for u64 {
    fn check(name: &str, walk: &dyn Walk<Self>, options: &Options) -> Result<Report, CheckError> {
        check_walk(name, walk, options)
    }
}

impl Engine for u128 {
    fn check(name: &str, walk: &dyn Walk<Self>, options: &Options) -> Result<Report, CheckError> {
        check_walk(name, walk, options)
    }
}

impl<const N: usize> Engine for [u64; N]
where
    [u64; N]: Default,
{
    fn check(name: &str, walk: &dyn Walk<Self>, options: &Options) -> Result<Report, CheckError> {
        check_walk(name, walk, options)
    }
}

/// Checks a model; `name` is how the report calls it.
pub fn check<M>(name: &str, model: &M, options: &Options) -> Result<Report, CheckError>
where
    M: Model<Packed: Engine>,
{
    if options.liveness == Liveness::On && options.symmetry {
        return Err(CheckError::Conflict(
            "symmetry joins states that a fair loop must tell apart: check temporal properties \
             without it"
                .to_owned(),
        ));
    }
    if options.fingerprints && (options.liveness == Liveness::On || options.checkpoint.is_some()) {
        return Err(CheckError::Conflict(
            "states that are known by fingerprints only are forgotten: there is no graph of them for \
             temporal properties, and nothing to keep in a checkpoint"
                .to_owned(),
        ));
    }
    if model.covers() == Covers::Shipped && options.checkpoint.is_some() {
        return Err(CheckError::Conflict(
            "the states of a world of shipped code are numbers that only this run knows: they cannot \
             be kept in a checkpoint; take a smaller --size, or allow more with --max-memory"
                .to_owned(),
        ));
    }
    M::Packed::check(name, &Typed::new(name, model, options)?, options)
}

/// The check itself, for one width of packed states; [`Engine::check`] leads here.
fn check_walk<W: Word>(
    name: &str,
    walk: &dyn Walk<W>,
    options: &Options,
) -> Result<Report, CheckError> {
    let from = crate::checkpoint::resume(name, walk, options)?;
    let explored = explore(walk, options, from, noted_states(walk.facts(), options))?;
    crate::checkpoint::keep(name, walk, options, &explored)?;
    let mut report = summary(name, walk, &explored, options);
    judge(walk, &explored, options, &mut report)?;
    call_vacuous(walk, &mut report);
    let wants_liveness = match options.liveness {
        Liveness::On => true,
        Liveness::Off => false,
        Liveness::Automatic => {
            let is_whole = !options.symmetry && !options.fingerprints;
            is_whole && report.distinct_states <= LIVENESS_STATES
        }
    };
    let ready = wants_liveness && explored.stop.is_none();
    check_properties(walk, explored, options, ready, &mut report)?;
    Ok(report)
}

/// Up to how many states the steps between them are worth noting for temporal properties.
fn noted_states(facts: &Facts, options: &Options) -> u64 {
    let is_plain = facts.product.is_none() && facts.permutations == 0;
    match options.liveness {
        _ if facts.properties.is_empty() || !is_plain || options.fingerprints => 0,
        Liveness::On => u64::MAX,
        Liveness::Off => 0,
        Liveness::Automatic => LIVENESS_STATES,
    }
}

fn summary<W: Word>(
    name: &str,
    walk: &dyn Walk<W>,
    explored: &Explored<W>,
    options: &Options,
) -> Report {
    let (facts, seen) = (walk.facts(), &explored.seen);
    let seconds = explored.elapsed.as_secs_f64();
    let stored = explored.stored() as u64;
    let each = facts.product.as_ref().map_or(1, |product| product.count);
    // What is queued was found but not expanded: it counts as seen, as TLC counts it.
    let distinct = seen.distinct + (stored - seen.expanded) * each;
    let is_reduced = facts.product.is_some() || facts.permutations > 0;
    Report {
        model: name.to_owned(),
        size: facts.size.clone(),
        covers: walk.coverage().0,
        steps_called: walk.coverage().1,
        distinct_states: distinct,
        generated_states: seen.generated,
        depth: explored.depth + facts.product.as_ref().map_or(0, |product| product.depth),
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
                Stop::Depth => "as many levels were explored as were asked for",
            }
            .to_owned()
        }),
        reduction: is_reduced.then(|| Reduction {
            kept_states: stored,
            flag_valuations: each,
            flags: facts.flags.iter().map(|flag| flag.name.clone()).collect(),
            permutations: facts.permutations + 1,
            verified_states: seen.verified,
        }),
        collision_odds: options.fingerprints.then(|| collision_odds(stored)),
        deadlock: None,
        deadlock_checked: facts.deadlock,
        invariants: Vec::new(),
        properties: Vec::new(),
        refines: Default::default(),
        reachable: Vec::new(),
        never_taken: if explored.stop.is_none() { unused(walk, &seen.actions) } else { Vec::new() },
        liveness_seconds: 0.0,
        deadlock_explanation: None,
    }
}

/// The odds that among so many states two have the same 64-bit fingerprint, at most.
fn collision_odds(states: u64) -> f64 {
    let states = states as f64;
    states * (states - 1.0) / 2.0 / 2_f64.powi(64)
}

/// The actions that no state enables. Those of flags that were left out are taken by their nature.
fn unused<W: Word>(walk: &dyn Walk<W>, taken: &[u64]) -> Vec<Unused> {
    let facts = walk.facts();
    let moves = facts.flags.iter().flat_map(|flag| flag.moves.iter().map(|change| change.action));
    let moves: Vec<u16> = if facts.product.is_some() { moves.collect() } else { Vec::new() };
    let unused = |(id, action): (usize, &Action)| {
        let is_idle = taken[id] == 0 && !moves.contains(&(id as u16));
        is_idle.then(|| Unused {
            action: action.name.clone(),
            explanation: walk.explain(action.family()).map(str::to_owned),
        })
    };
    facts.actions.iter().enumerate().filter_map(unused).collect()
}

fn judge<W: Word>(
    walk: &dyn Walk<W>,
    explored: &Explored<W>,
    options: &Options,
    report: &mut Report,
) -> Result<(), CheckError> {
    let (facts, seen) = (walk.facts(), &explored.seen);
    // States that were forgotten are explored once more, exactly, as far as the traces need them.
    let again = match (options.fingerprints, seen.last_violation()) {
        (true, Some(level)) => {
            let exactly = Options {
                fingerprints: false,
                first: false,
                max_depth: Some(level),
                ..options.clone()
            };
            Some(explore(walk, &exactly, None, 0)?)
        }
        _ => None,
    };
    let explored = again.as_ref().unwrap_or(explored);
    let is_whole = report.complete;
    let explain = |name: &str| walk.explain(name).map(str::to_owned);
    let trace = |sighting: &Sighting<W>| {
        Trace::of(walk, &path_to(walk, explored, sighting, options.workers))
    };
    let finding = |promise: &Promise, sighting: &Option<Sighting<W>>| Finding {
        name: promise.name.clone(),
        verdict: if sighting.is_some() { Verdict::Violated } else { Verdict::Holds },
        steps: sighting.map(|s| s.level - 1 + u32::from(s.step.is_some())),
        sentence: promise.sentence.clone(),
        explanation: match sighting {
            Some(_) => explain(&promise.name),
            None => promise.unbreakable.map(str::to_owned),
        },
        trace: sighting.as_ref().map(&trace),
    };
    for (promise, sighting) in facts.invariants.iter().zip(&seen.invariants) {
        report.invariants.push(finding(promise, sighting));
    }
    for (promise, sighting) in facts.refinements.iter().zip(&seen.refinements) {
        report.refines.insert(promise.name.clone(), finding(promise, sighting));
    }
    for (promise, sighting) in facts.rules.iter().zip(&seen.rules) {
        let finding = finding(promise, sighting);
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
    for (promise, sighting) in facts.reachable.iter().zip(&seen.reachable) {
        let verdict = match sighting {
            Some(_) => Verdict::Holds,
            None if !is_whole => Verdict::Unchecked,
            None => Verdict::Violated,
        };
        report.reachable.push(Finding {
            name: promise.name.clone(),
            verdict,
            steps: sighting.map(|s| s.level - 1),
            sentence: promise.sentence.clone(),
            explanation: sighting.is_none().then(|| explain(&promise.name)).flatten(),
            trace: None,
        });
    }
    report.deadlock = seen.deadlock.as_ref().map(&trace);
    report.deadlock_explanation = seen.deadlock.and_then(|_| explain("deadlock"));
    Ok(())
}

/// Calls an invariant vacuous if it held everywhere and no well-typed state at all breaks it,
/// reachable or not.
fn call_vacuous<W: Word>(walk: &dyn Walk<W>, report: &mut Report) {
    let open = report.invariants.iter().zip(&walk.facts().invariants).enumerate();
    let open = open.filter(|(_, (finding, promise))| {
        finding.verdict == Verdict::Holds && promise.unbreakable.is_none()
    });
    let open: Vec<usize> = open.map(|(place, _)| place).collect();
    for place in walk.unbroken_at_random(open) {
        let finding = &mut report.invariants[place];
        finding.verdict = Verdict::Vacuous;
        finding.explanation = walk
            .explain(&finding.name)
            .map(str::to_owned)
            .or_else(|| Some("no state of the model, reachable or not, could break it".to_owned()));
    }
}

fn check_properties<W: Word>(
    walk: &dyn Walk<W>,
    explored: Explored<W>,
    options: &Options,
    ready: bool,
    report: &mut Report,
) -> Result<(), CheckError> {
    let facts = walk.facts();
    if facts.properties.is_empty() {
        return Ok(());
    }
    if !ready {
        report.properties.extend(facts.properties.iter().map(|property| PropertyFinding {
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
    if facts.product.is_none() {
        report.properties.extend(liveness::check(walk, explored, options)?);
    } else {
        // A loop is made of whole states: those without flags are explored again with them.
        drop(explored);
        let plain = walk.plain();
        let explored = explore(&*plain, options, None, u64::MAX)?;
        report.properties.extend(liveness::check(&*plain, explored, options)?);
    }
    report.liveness_seconds = started.elapsed().as_secs_f64();
    Ok(())
}
