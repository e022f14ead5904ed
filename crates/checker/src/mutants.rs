//! Models with one rule broken on purpose: each must be caught, or the promises are too weak.

use crate::check::{Engine, check};
use crate::error::CheckError;
use crate::model::{Model, Mutant};
use crate::options::{Liveness, Options};
use crate::report::{Report, Trace, Verdict};
use serde::Serialize;

/// What became of all mutants of a model.
#[derive(Debug, Clone, Serialize)]
pub struct MutantsReport {
    /// The model's name in the catalog.
    pub model: String,
    /// The size it was built in.
    pub size: String,
    /// Every mutant.
    pub mutants: Vec<MutantReport>,
    /// Promises that no mutant breaks.
    pub unbroken: Vec<String>,
}

/// What became of one mutant.
#[derive(Debug, Clone, Serialize)]
pub struct MutantReport {
    /// Its name.
    pub name: String,
    /// What was broken.
    pub sentence: String,
    /// The size in which it was checked.
    pub size: String,
    /// Whether a promise broke.
    pub killed: bool,
    /// Which one.
    pub broken: Option<String>,
    /// Steps to break it; to the loop, for a temporal property.
    pub steps: Option<u32>,
    /// States seen.
    pub distinct_states: u64,
    /// Time taken.
    pub seconds: f64,
    /// How it breaks.
    pub trace: Option<Trace>,
}

impl MutantsReport {
    /// Whether every mutant was caught.
    pub fn all_killed(&self) -> bool {
        self.mutants.iter().all(|mutant| mutant.killed)
    }
}

/// Memory for the second look at a mutant, which is taken only to learn what else it breaks.
const SECOND_LOOK_BYTES: usize = 8 << 20;

/// Checks every mutant of a model until it breaks one of the promises that it must break, and then
/// whether it also breaks invariants that no mutant has broken yet.
pub fn check_mutants<M: Model<Packed: Engine>>(
    name: &str,
    model: &M,
    options: &Options,
) -> Result<MutantsReport, CheckError> {
    let mut unbroken: Vec<String> = model
        .invariants()
        .iter()
        .filter(|invariant| invariant.unbreakable.is_none())
        .map(|invariant| invariant.name.to_owned())
        .collect();
    let mut mutants = Vec::new();
    let mut models = Vec::new();
    for mutant in chosen(name, model, options)? {
        if options.is_stopped() {
            break;
        }
        let report = check(name, &mutant.model, &first_look(&mutant, options))?;
        let fate = fate(mutant.name, mutant.sentence, &report);
        unbroken.retain(|promise| Some(promise) != fate.broken.as_ref());
        mutants.push(fate);
        models.push(mutant.model);
    }
    // Who asks about one mutant or one promise does not ask about the others.
    if options.mutant.is_some() || !options.only.is_empty() {
        unbroken.clear();
    }
    for mutant in &models {
        if unbroken.is_empty() || options.is_stopped() {
            break;
        }
        let known: Vec<_> = mutant.invariants().iter().map(|check| check.name.to_owned()).collect();
        let only: Vec<_> = unbroken.iter().filter(|name| known.contains(name)).cloned().collect();
        let max_memory = options.max_memory.map_or(SECOND_LOOK_BYTES, |m| m.min(SECOND_LOOK_BYTES));
        let second_look = Options {
            only,
            first: false,
            liveness: Liveness::Off,
            max_memory: Some(max_memory),
            ..options.clone()
        };
        let report = check(name, mutant, &second_look)?;
        let is_broken = |name: &String| {
            let finding = report.invariants.iter().find(|finding| finding.name == *name);
            finding.is_some_and(|finding| finding.verdict == Verdict::Violated)
        };
        unbroken.retain(|name| !is_broken(name));
    }
    Ok(MutantsReport { model: name.to_owned(), size: Model::size(model), mutants, unbroken })
}

fn chosen<M: Model>(
    name: &str,
    model: &M,
    options: &Options,
) -> Result<Vec<Mutant<M>>, CheckError> {
    let mut mutants = model.mutants();
    let Some(wanted) = &options.mutant else { return Ok(mutants) };
    let known: Vec<_> = mutants.iter().map(|mutant| mutant.name.clone()).collect();
    mutants.retain(|mutant| mutant.name == *wanted);
    if mutants.is_empty() {
        let known = known.join(", ");
        let text = format!("{name} has no mutant `{wanted}`; it has: {known}");
        return Err(CheckError::Conflict(text));
    }
    Ok(mutants)
}

/// Looks for what the mutant must break, or for what was asked for by name.
fn first_look<M: Model>(mutant: &Mutant<M>, options: &Options) -> Options {
    let breaks = || mutant.breaks.iter().map(|name| (*name).to_owned()).collect();
    let only: Vec<String> = if options.only.is_empty() { breaks() } else { options.only.clone() };
    let temporal = mutant.model.properties();
    let is_temporal = only.iter().any(|name| temporal.iter().any(|p| p.name == *name));
    Options {
        only,
        first: !is_temporal,
        liveness: if is_temporal { Liveness::On } else { Liveness::Off },
        symmetry: options.symmetry && !is_temporal,
        fingerprints: options.fingerprints && !is_temporal,
        ..options.clone()
    }
}

fn fate(name: String, sentence: String, report: &Report) -> MutantReport {
    let invariants = report.invariants.iter().map(|f| (f.verdict, &f.name, f.steps, &f.trace));
    let rules = report.properties.iter().map(|f| (f.verdict, &f.name, f.prefix_steps, &f.trace));
    let refines = report.refines.values().map(|f| (f.verdict, &f.name, f.steps, &f.trace));
    let broken = invariants
        .chain(rules)
        .chain(refines)
        .filter(|(verdict, ..)| *verdict == Verdict::Violated)
        .min_by_key(|(_, _, steps, _)| *steps);
    MutantReport {
        name,
        sentence,
        size: report.size.clone(),
        killed: broken.is_some(),
        broken: broken.map(|(_, name, ..)| name.clone()),
        steps: broken.and_then(|(_, _, steps, _)| steps),
        distinct_states: report.distinct_states,
        seconds: report.seconds + report.liveness_seconds,
        trace: broken.and_then(|(.., trace)| trace.clone()),
    }
}
