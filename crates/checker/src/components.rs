//! Strongly connected parts of the graph, and which of them a fair behaviour can stay in.
//!
//! One depth-first search (Gabow's: parts of the path that turn out to be connected are tied together)
//! looks at every step once, and on the way gathers all that decides whether a component is fair.

use crate::graph::{Graph, Id};
use crate::question::{Fair, Question};
use crate::word::Word;

/// States that a fair behaviour can visit again and again, and no others; sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part(pub(crate) Vec<Id>);

impl Part {
    pub(crate) fn contains(&self, id: Id) -> bool {
        self.0.binary_search(&id).is_ok()
    }
}

/// The part nearest to the start among those that answer the question.
///
/// Maximal components are enough for weak fairness. For strong fairness a component in which a
/// condition is possible but never met loses the states where it is possible, and is split again.
pub(crate) fn fair_parts<W: Word>(
    graph: &Graph<W>,
    fair: &Fair,
    question: &Question,
) -> Option<Part> {
    let mut search = Search {
        graph,
        fair,
        question,
        marks: vec![DONE; graph.room()],
        stack: Vec::new(),
        frames: Vec::new(),
        knots: Vec::new(),
        to_split: Vec::new(),
        best: None,
    };
    search.mark(question.inside.iter(), WAITING);
    match &question.starts {
        None => search.run(question.inside.iter()),
        Some(starts) => {
            search.run(starts.iter());
            // The others cannot be reached from a start without leaving `inside`.
            search.mark(question.inside.iter(), DONE);
        }
    }
    while let Some(states) = search.to_split.pop() {
        search.mark(states.iter().copied(), WAITING);
        search.run(states.into_iter());
    }
    search.best.map(|(_, part)| part)
}

/// Marks of states: outside of what is being split, or in a component already;
const DONE: u32 = 0;
/// inside and not visited;
const WAITING: u32 = 1;
/// and from here on: on the stack, at this place.
const FIRST: u32 = 2;

struct Search<'a, W> {
    graph: &'a Graph<W>,
    fair: &'a Fair,
    question: &'a Question,
    marks: Vec<u32>,
    /// Visited states whose component is not yet known.
    stack: Vec<Id>,
    /// The path from the root to where the search is.
    frames: Vec<Frame>,
    /// The stack in pieces, each of states that are surely in one component.
    knots: Vec<Knot>,
    to_split: Vec<Vec<Id>>,
    best: Option<((u32, W), Part)>,
}

/// A state on the path, and its steps that were not read yet.
struct Frame {
    id: Id,
    next: u32,
    end: u32,
}

/// States that lead to each other, and the fairness conditions there.
struct Knot {
    /// The mark of its first state.
    first: u32,
    /// The conditions that are possible somewhere, possible everywhere, and met by a step inside.
    possible: u128,
    everywhere: u128,
    met: u128,
    /// Whether one of the states is a witness.
    witnessed: bool,
}

impl<W: Word> Search<'_, W> {
    fn mark(&mut self, states: impl Iterator<Item = Id>, mark: u32) {
        states.for_each(|id| self.marks[id as usize] = mark);
    }

    /// Splits what is waiting and can be reached from the roots into components, and judges each.
    fn run(&mut self, roots: impl Iterator<Item = Id>) {
        for root in roots {
            if self.marks[root as usize] == WAITING {
                self.enter(root);
            }
            while let Some(frame) = self.frames.last_mut() {
                match follow(self.graph, self.fair, &self.marks, &mut self.knots, frame) {
                    Some(to) => self.enter(to),
                    None => self.leave(),
                }
            }
        }
    }

    fn enter(&mut self, id: Id) {
        let first = FIRST + self.stack.len() as u32;
        let possible = possible(self.graph, self.fair, id);
        let witnessed = self.question.witness.as_ref().is_some_and(|set| set.contains(id));
        self.marks[id as usize] = first;
        self.stack.push(id);
        self.knots.push(Knot { first, possible, everywhere: possible, met: 0, witnessed });
        let steps = self.graph.steps(id);
        self.frames.push(Frame { id, next: steps.start, end: steps.end });
    }

    /// All steps of the last state on the path were read: if it is the first of its knot, that is
    /// a component.
    fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        let first = self.marks[frame.id as usize];
        let Some(knot) = self.knots.pop_if(|knot| knot.first == first) else { return };
        let start = (first - FIRST) as usize;
        self.stack[start..].iter().for_each(|id| self.marks[*id as usize] = DONE);
        self.judge(&knot, start);
        self.stack.truncate(start);
    }

    /// Keeps the component that the stack has from `start` on, if it is fair and answers the question.
    fn judge(&mut self, knot: &Knot, start: usize) {
        let component = &self.stack[start..];
        let is_still = self.question.changes && component.len() == 1;
        let is_missed = self.question.witness.is_some() && !knot.witnessed;
        if is_still || is_missed || knot.everywhere & !knot.met & self.fair.weak != 0 {
            return;
        }
        let starved = knot.possible & !knot.met & self.fair.strong;
        if starved != 0 {
            let rests = |id: &Id| possible(self.graph, self.fair, *id) & starved == 0;
            self.to_split.push(component.iter().copied().filter(rests).collect());
            return;
        }
        // The nearest to the start; among equals the one with the smallest state, so that the outcome
        // does not depend on the order in which the states were found.
        let Some(key) = component.iter().map(|id| self.graph.rank(*id)).min() else { return };
        if self.best.as_ref().is_none_or(|(best, _)| key < *best) {
            let mut states = component.to_vec();
            states.sort_unstable();
            self.best = Some((key, Part(states)));
        }
    }
}

/// Looks at the steps of the state on top of the path, up to one that leads to a state not visited
/// yet. That step is checked again when the state was left: only then is it known whether it stays
/// inside a component.
#[inline]
fn follow<W: Word>(
    graph: &Graph<W>,
    fair: &Fair,
    marks: &[u32],
    knots: &mut Vec<Knot>,
    frame: &mut Frame,
) -> Option<Id> {
    let (to, actions) = graph.steps_of(frame.id, frame.next..frame.end);
    for (at, (to, action)) in (frame.next..).zip(to.iter().zip(actions)) {
        match marks[*to as usize] {
            DONE => {}
            WAITING => {
                frame.next = at;
                return Some(*to);
            }
            place => tie(knots, place).met |= fair.of_action[*action as usize],
        }
    }
    None
}

/// A step leads back to this place of the stack: from there on all is one knot.
#[inline]
fn tie(knots: &mut Vec<Knot>, place: u32) -> &mut Knot {
    while let Some(top) = knots.pop_if(|top| top.first > place) {
        let below = knots.last_mut().expect("the knot of a state on the stack");
        below.possible |= top.possible;
        below.everywhere &= top.everywhere;
        below.met |= top.met;
        below.witnessed |= top.witnessed;
    }
    knots.last_mut().expect("the knot of a state on the stack")
}

/// The conditions that a step out of this state would meet.
pub(crate) fn possible<W: Word>(graph: &Graph<W>, fair: &Fair, id: Id) -> u128 {
    graph.edges(id).1.iter().fold(0, |set, action| set | fair.of_action[*action as usize])
}
