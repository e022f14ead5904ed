//! Temporal properties under fairness.
//!
//! A property is broken iff some fair behaviour stays for ever inside a set of states (the table of
//! [`Question`]). Such behaviours are the strongly connected parts of the graph within that set, and
//! single states in which the model may stutter for ever; a part counts if the fairness conditions can
//! all be met inside it. Every counterexample is replayed before it is shown.

use crate::components::{Part, fair_parts};
use crate::explore::{CheckError, Explored, hold};
use crate::graph::{BitSet, Graph, Id};
use crate::lasso;
use crate::model::{Fairness, Strength};
use crate::options::Options;
use crate::replay;
use crate::report::{PropertyFinding, Trace, Verdict};
use crate::walk::{Asked, Shape, Side, Temporal, Walk};
use crate::word::Word;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Properties judged at once: each takes twelve bytes for every state.
const MOST_JUDGES: usize = 4;

/// Which behaviours break a formula.
pub(crate) struct Question {
    /// They stay here from some point on.
    pub(crate) inside: BitSet,
    /// They come here first and then never leave `inside`; none: from anywhere.
    pub(crate) starts: Option<BitSet>,
    /// They visit one of these again and again.
    pub(crate) witness: Option<BitSet>,
    /// They go on changing for ever.
    pub(crate) changes: bool,
    /// The formula asks nothing of any behaviour: what it speaks of never happens.
    pub(crate) vacuous: bool,
}

/// The fairness conditions as bits: which of them an action serves.
#[derive(Debug, Clone)]
pub(crate) struct Fair {
    pub(crate) conditions: Vec<Fairness>,
    /// For each action, the conditions that it is part of.
    pub(crate) of_action: Vec<u128>,
    pub(crate) weak: u128,
    pub(crate) strong: u128,
}

impl Fair {
    pub(crate) fn new(conditions: Vec<Fairness>, actions: usize) -> Result<Self, CheckError> {
        if conditions.len() > 128 {
            let text =
                format!("{} fairness conditions; at most 128 are possible", conditions.len());
            return Err(CheckError::Conflict(text));
        }
        let mut fair =
            Fair { of_action: vec![0; actions], weak: 0, strong: 0, conditions: Vec::new() };
        for (bit, condition) in conditions.iter().enumerate() {
            for action in &condition.actions {
                fair.of_action[*action as usize] |= 1 << bit;
            }
            match condition.strength {
                Strength::Weak => fair.weak |= 1 << bit,
                Strength::Strong => fair.strong |= 1 << bit,
            }
        }
        fair.conditions = conditions;
        Ok(fair)
    }
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
    let next = AtomicUsize::new(0);
    let findings: Mutex<BTreeMap<usize, Result<PropertyFinding, CheckError>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..options.workers.clamp(1, MOST_JUDGES) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(property) = facts.properties.get(number) else { return };
                    let finding = judge(walk, &graph, &fair, number, property);
                    hold(&findings).insert(number, finding);
                }
            });
        }
    });
    findings.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

fn judge<W: Word>(
    walk: &dyn Walk<W>,
    graph: &Graph<W>,
    fair: &Fair,
    number: usize,
    property: &Temporal,
) -> Result<PropertyFinding, CheckError> {
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
    let mut meaningful = false;
    for (formula, shape) in property.shapes.iter().enumerate() {
        let asked = Asked { property: number, formula };
        let question = ask(walk, graph, asked, *shape);
        meaningful |= !question.vacuous;
        let Some(part) = broken_by(graph, fair, &question) else { continue };
        let path = lasso::of(graph, fair, &question, &part);
        replay::lasso(walk, &path, asked, *shape)
            .map_err(|why| CheckError::Replay { name: property.name.to_owned(), why })?;
        let loop_to = path.loop_to.unwrap_or(path.steps.len() - 1);
        finding.verdict = Verdict::Violated;
        finding.prefix_steps = Some(loop_to as u32);
        finding.loop_steps = Some((path.steps.len() - 1 - loop_to) as u32);
        finding.explanation = explain();
        finding.fairness = replay::reasons(walk, &path);
        finding.trace = Some(Trace::of(walk, &path));
        return Ok(finding);
    }
    if !meaningful {
        finding.verdict = Verdict::Vacuous;
        finding.explanation = explain();
    }
    Ok(finding)
}

/// The set of states in which a behaviour must stay to break the formula.
fn ask<W: Word>(walk: &dyn Walk<W>, graph: &Graph<W>, asked: Asked, shape: Shape) -> Question {
    let all = || BitSet::full(graph.len());
    let p = || graph.where_holds(|word| walk.holds(asked, Side::P, word));
    let q = || graph.where_holds(|word| walk.holds(asked, Side::Q, word));
    let initial = || {
        let mut set = BitSet::new(graph.len());
        graph.initial.iter().for_each(|id| set.insert(*id));
        set
    };
    let question =
        |inside| Question { inside, starts: None, witness: None, changes: false, vacuous: false };
    match shape {
        Shape::Eventually => {
            let inside = all().without(&p());
            Question { starts: Some(initial().and(&inside)), ..question(inside) }
        }
        Shape::AlwaysEventually => question(all().without(&p())),
        Shape::EventuallyAlways => {
            Question { witness: Some(all().without(&p())), ..question(all()) }
        }
        Shape::LeadsTo => {
            let (p, inside) = (p(), all().without(&q()));
            let vacuous = p.is_empty();
            Question { starts: Some(p.and(&inside)), vacuous, ..question(inside) }
        }
        Shape::AlwaysLeadsTo => {
            let p = p();
            let vacuous = p.is_empty();
            Question { vacuous, ..question(p.without(&q())) }
        }
        Shape::AlwaysImpliesEventually => {
            let p = p();
            let starts = initial().and(&p);
            let vacuous = starts.is_empty();
            let inside = p.without(&q());
            Question { starts: Some(starts.and(&inside)), vacuous, ..question(inside) }
        }
        Shape::StableImpliesStable => {
            let p = p();
            let vacuous = p.is_empty();
            Question { witness: Some(all().without(&q())), vacuous, ..question(p) }
        }
        Shape::ComesToRest => Question { changes: true, ..question(all()) },
    }
}

/// The fair part nearest to the start that breaks the formula, if there is one.
fn broken_by<W: Word>(graph: &Graph<W>, fair: &Fair, question: &Question) -> Option<Part> {
    let reached;
    let inside = match &question.starts {
        None => &question.inside,
        Some(starts) => {
            reached = reach_within(graph, starts, &question.inside);
            &reached
        }
    };
    fair_parts(graph, fair, inside, question)
}

fn reach_within<W: Word>(graph: &Graph<W>, starts: &BitSet, inside: &BitSet) -> BitSet {
    let mut reached = starts.clone();
    let mut stack: Vec<Id> = starts.iter().collect();
    while let Some(id) = stack.pop() {
        for to in graph.edges(id).0 {
            if inside.contains(*to) && !reached.contains(*to) {
                reached.insert(*to);
                stack.push(*to);
            }
        }
    }
    reached
}
