//! Temporal properties under fairness.
//!
//! A property is broken iff some fair behaviour stays for ever inside a set of states (the table of
//! [`Question`]). Such behaviours are the strongly connected parts of the graph within that set, and
//! single states in which the model may stutter for ever; a part counts if the fairness conditions can
//! all be met inside it. Every counterexample is replayed before it is shown.

use crate::components::fair_parts;
use crate::error::CheckError;
use crate::explore::Explored;
use crate::graph::{BitSet, Graph};
use crate::lasso;
use crate::options::Options;
use crate::question::{Fair, Question};
use crate::replay;
use crate::report::{Path, PropertyFinding, Trace, Verdict};
use crate::walk::{Asked, Shape, Temporal, Walk};
use crate::word::Word;
use crate::workers;

/// Properties judged at once: each takes up to sixteen bytes for every state.
const MOST_JUDGES: usize = 4;

/// One formula of a property, and where it is.
struct Case<'a> {
    asked: Asked,
    shape: Shape,
    /// The states in which its predicates hold, the first and the second.
    truths: &'a [BitSet],
}

/// What came out of one formula.
enum Outcome<W> {
    Holds,
    Vacuous,
    Broken(Path<W>),
}

/// Judges all properties of an explored space.
pub(crate) fn check<W: Word>(
    walk: &dyn Walk<W>,
    explored: Explored<W>,
    options: &Options,
) -> Result<Vec<PropertyFinding>, CheckError> {
    let facts = walk.facts();
    let fair = Fair::new(facts.fairness.clone(), facts.actions.len())?;
    let graph = Graph::new(walk, explored, options.workers);
    let truths = graph.truths(walk, options.workers);
    let cases = cases(&facts.properties, &truths);
    // A worker takes a property, not a formula: one that is broken spares those after it.
    let judges = options.workers.min(MOST_JUDGES);
    let findings = workers::each(judges, facts.properties.len(), |number| {
        let property = &facts.properties[number];
        let mut outcomes = Vec::new();
        for case in &cases[number] {
            let outcome = judge(&graph, &fair, case);
            let Outcome::Broken(path) = &outcome else {
                outcomes.push(outcome);
                continue;
            };
            replay::lasso(walk, path, case.asked, case.shape)
                .map_err(|why| CheckError::Replay { name: property.name.to_owned(), why })?;
            outcomes.push(outcome);
            break;
        }
        Ok(finding(walk, property, &outcomes))
    });
    findings.into_iter().collect()
}

/// The formulas of each property.
fn cases<'a>(properties: &[Temporal], mut truths: &'a [BitSet]) -> Vec<Vec<Case<'a>>> {
    let mut cases = Vec::new();
    for (number, property) in properties.iter().enumerate() {
        let mut own = Vec::new();
        for (formula, shape) in property.shapes.iter().enumerate() {
            let (sides, others) = truths.split_at(shape.sides().len());
            truths = others;
            let asked = Asked { property: number, formula };
            own.push(Case { asked, shape: *shape, truths: sides });
        }
        cases.push(own);
    }
    cases
}

fn judge<W: Word>(graph: &Graph<W>, fair: &Fair, case: &Case<'_>) -> Outcome<W> {
    let question = ask(graph, case);
    if question.vacuous {
        return Outcome::Vacuous;
    }
    match fair_parts(graph, fair, &question) {
        None => Outcome::Holds,
        Some(part) => Outcome::Broken(lasso::of(graph, fair, &question, &part)),
    }
}

/// What the outcomes of its formulas say of a property: it is broken by the first that is.
fn finding<W: Word>(
    walk: &dyn Walk<W>,
    property: &Temporal,
    outcomes: &[Outcome<W>],
) -> PropertyFinding {
    let explain = || walk.explain(property.name).map(str::to_owned);
    let mut finding = PropertyFinding {
        name: property.name.to_owned(),
        verdict: Verdict::Holds,
        prefix_steps: None,
        loop_steps: None,
        sentence: property.sentence.to_owned(),
        explanation: None,
        fairness: Vec::new(),
        trace: None,
    };
    let broken = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Broken(path) => Some(path),
        Outcome::Holds | Outcome::Vacuous => None,
    });
    if let Some(path) = broken {
        let loop_to = path.loop_to.unwrap_or(path.steps.len() - 1);
        finding.verdict = Verdict::Violated;
        finding.prefix_steps = Some(loop_to as u32);
        finding.loop_steps = Some((path.steps.len() - 1 - loop_to) as u32);
        finding.explanation = explain();
        finding.fairness = replay::reasons(walk, path);
        finding.trace = Some(Trace::of(walk, path));
    } else if outcomes.iter().all(|outcome| matches!(outcome, Outcome::Vacuous)) {
        finding.verdict = Verdict::Vacuous;
        finding.explanation = explain();
    }
    finding
}

/// The set of states in which a behaviour must stay to break the formula.
fn ask<W: Word>(graph: &Graph<W>, case: &Case<'_>) -> Question {
    let all = || graph.all();
    let (p, q) = (|| &case.truths[0], || &case.truths[1]);
    let initial = || {
        let mut set = BitSet::new(graph.room());
        graph.initial.iter().for_each(|id| set.insert(*id));
        set
    };
    let question =
        |inside| Question { inside, starts: None, witness: None, changes: false, vacuous: false };
    match case.shape {
        Shape::Eventually => {
            let inside = all().without(p());
            Question { starts: Some(initial().and(&inside)), ..question(inside) }
        }
        Shape::AlwaysEventually => question(all().without(p())),
        Shape::EventuallyAlways => {
            Question { witness: Some(all().without(p())), ..question(all()) }
        }
        Shape::LeadsTo => {
            let (p, inside) = (p(), all().without(q()));
            let vacuous = p.is_empty();
            Question { starts: Some(p.and(&inside)), vacuous, ..question(inside) }
        }
        Shape::AlwaysLeadsTo => {
            let p = p();
            let vacuous = p.is_empty();
            Question { vacuous, ..question(p.without(q())) }
        }
        Shape::AlwaysImpliesEventually => {
            let p = p();
            let starts = initial().and(p);
            let vacuous = starts.is_empty();
            let inside = p.without(q());
            Question { starts: Some(starts.and(&inside)), vacuous, ..question(inside) }
        }
        Shape::StableImpliesStable => {
            let p = p();
            let vacuous = p.is_empty();
            Question { witness: Some(all().without(q())), vacuous, ..question(p.clone()) }
        }
        Shape::ComesToRest => Question { changes: true, ..question(all()) },
    }
}
