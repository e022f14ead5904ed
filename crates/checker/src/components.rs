//! Strongly connected parts of the graph, and which of them a fair behaviour can stay in.

use crate::graph::{BitSet, Graph, Id};
use crate::liveness::{Fair, Question};
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
    inside: &BitSet,
    question: &Question,
) -> Option<Part> {
    let mut search = Search {
        graph,
        fair,
        question,
        number: vec![0; graph.len()],
        low: vec![0; graph.len()],
        group: vec![0; graph.len()],
        groups: 0,
        best: None,
    };
    search.run(inside.iter());
    search.best.map(|(_, part)| part)
}

struct Search<'a, W> {
    graph: &'a Graph<W>,
    fair: &'a Fair,
    question: &'a Question,
    /// Tarjan's numbers; 0: not visited.
    number: Vec<u32>,
    low: Vec<u32>,
    /// Which set of states is being split; a state is only looked at by the set it belongs to.
    group: Vec<u32>,
    groups: u32,
    best: Option<((u32, W), Part)>,
}

/// A state on the way down: the next edge to look at.
struct Frame {
    id: Id,
    edge: u32,
}

impl<W: Word> Search<'_, W> {
    /// Splits a set into its components and judges each.
    fn run(&mut self, states: impl Iterator<Item = Id>) {
        self.groups += 1;
        let group = self.groups;
        let states: Vec<Id> = states.collect();
        for id in &states {
            self.group[*id as usize] = group;
            self.number[*id as usize] = 0;
        }
        let (mut next, mut frames, mut stack) = (0, Vec::new(), Vec::new());
        for root in states {
            if self.group[root as usize] != group || self.number[root as usize] != 0 {
                continue;
            }
            self.visit(root, &mut next, &mut frames, &mut stack);
            while let Some(frame) = frames.last_mut() {
                let (id, edge) = (frame.id, frame.edge);
                let (to, _) = self.graph.edges(id);
                if let Some(to) = to.get(edge as usize).copied() {
                    frame.edge += 1;
                    if self.group[to as usize] != group {
                        continue;
                    }
                    if self.number[to as usize] == 0 {
                        self.visit(to, &mut next, &mut frames, &mut stack);
                    } else {
                        let seen = self.number[to as usize];
                        self.low[id as usize] = self.low[id as usize].min(seen);
                    }
                    continue;
                }
                frames.pop();
                let low = self.low[id as usize];
                if let Some(parent) = frames.last() {
                    let parent = parent.id as usize;
                    self.low[parent] = self.low[parent].min(low);
                }
                if low == self.number[id as usize] {
                    let start =
                        stack.iter().rposition(|s| *s == id).expect("a root is on the stack");
                    let component = stack.split_off(start);
                    self.judge(component);
                }
            }
        }
    }

    fn visit(&mut self, id: Id, next: &mut u32, frames: &mut Vec<Frame>, stack: &mut Vec<Id>) {
        *next += 1;
        self.number[id as usize] = *next;
        self.low[id as usize] = *next;
        frames.push(Frame { id, edge: 0 });
        stack.push(id);
    }

    /// Takes a component out of its set, and keeps it if it is fair and answers the question.
    fn judge(&mut self, component: Vec<Id>) {
        self.groups += 1;
        let group = self.groups;
        for id in &component {
            self.group[*id as usize] = group;
        }
        if self.question.changes && component.len() == 1 {
            return;
        }
        if let Some(witness) = &self.question.witness
            && !component.iter().any(|id| witness.contains(*id))
        {
            return;
        }
        let (mut possible, mut everywhere, mut met) = (0_u128, u128::MAX, 0_u128);
        for id in &component {
            let (here, inside) = self.conditions(*id, group);
            possible |= here;
            everywhere &= here;
            met |= inside;
        }
        if everywhere & !met & self.fair.weak != 0 {
            return;
        }
        let starved = possible & !met & self.fair.strong;
        if starved == 0 {
            self.keep(component);
            return;
        }
        let left: Vec<Id> = component
            .into_iter()
            .filter(|id| self.conditions(*id, group).0 & starved == 0)
            .collect();
        self.run(left.into_iter());
    }

    /// Keeps the part that is nearest to the start; among equals the one with the smallest state, so
    /// that the outcome does not depend on the order in which the states were found.
    fn keep(&mut self, mut states: Vec<Id>) {
        let Some(key) = states.iter().map(|id| self.graph.rank(*id)).min() else { return };
        if self.best.as_ref().is_none_or(|(best, _)| key < *best) {
            states.sort_unstable();
            self.best = Some((key, Part(states)));
        }
    }

    /// The conditions possible in a state, and those that a step inside the group meets.
    fn conditions(&self, id: Id, group: u32) -> (u128, u128) {
        let (to, actions) = self.graph.edges(id);
        let (mut possible, mut met) = (0, 0);
        for (to, action) in to.iter().zip(actions) {
            let conditions = self.fair.of_action[*action as usize];
            possible |= conditions;
            if self.group[*to as usize] == group {
                met |= conditions;
            }
        }
        (possible, met)
    }
}
