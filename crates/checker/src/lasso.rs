//! A behaviour that breaks a property: a way in, and a loop that meets every fairness condition.

use crate::components::{Part, possible};
use crate::graph::{Graph, Id};
use crate::model::ActionId;
use crate::question::{Fair, Question};
use crate::report::Path;
use crate::word::Word;
use std::collections::{HashMap, VecDeque};

/// One step of a walk: by which action, to which state.
type Hop = (ActionId, Id);

/// The lasso through `part` that answers the question.
pub(crate) fn of<W: Word>(
    graph: &Graph<W>,
    fair: &Fair,
    question: &Question,
    part: &Part,
) -> Path<W> {
    let (start, prefix) = way_in(graph, question, part);
    let entry = prefix.last().map_or(start, |hop| hop.1);
    let circle = circle(graph, fair, question, part, entry);
    let mut steps = vec![(None, graph.word(start))];
    let loop_to = prefix.len();
    for (action, id) in prefix.into_iter().chain(circle) {
        steps.push((Some(action), graph.word(id)));
    }
    Path { steps, loop_to: Some(loop_to) }
}

/// The shortest way from an initial state into the part that obeys the question: where it has
/// starting states, first to one of them and from there without leaving `inside`.
fn way_in<W: Word>(graph: &Graph<W>, question: &Question, part: &Part) -> (Id, Vec<Hop>) {
    let Some(starts) = &question.starts else {
        return walk(graph, graph.initial.clone(), |_| true, |id| part.contains(id))
            .expect("every state is reachable");
    };
    let inside = |id: Id| question.inside.contains(id);
    let mut nearest: Vec<Id> = starts.iter().collect();
    nearest.sort_by_cached_key(|id| graph.rank(*id));
    let (begin, to_part) = walk(graph, nearest, inside, |id| part.contains(id))
        .expect("the part was reached from a starting state");
    let (initial, mut hops) = walk(graph, graph.initial.clone(), |_| true, |id| id == begin)
        .expect("every state is reachable");
    hops.extend(to_part);
    (initial, hops)
}

/// Breadth-first from any of `from`, through allowed states, to the first that is wanted.
fn walk<W: Word>(
    graph: &Graph<W>,
    from: Vec<Id>,
    allowed: impl Fn(Id) -> bool,
    wanted: impl Fn(Id) -> bool,
) -> Option<(Id, Vec<Hop>)> {
    let mut came: HashMap<Id, Option<(Id, ActionId)>> = HashMap::new();
    let mut queue: VecDeque<Id> = VecDeque::new();
    for id in from {
        if came.insert(id, None).is_none() {
            queue.push_back(id);
        }
    }
    while let Some(id) = queue.pop_front() {
        if wanted(id) {
            let (mut hops, mut at) = (Vec::new(), id);
            while let Some((before, action)) = came[&at] {
                hops.push((action, at));
                at = before;
            }
            hops.reverse();
            return Some((at, hops));
        }
        let (to, actions) = graph.edges(id);
        for (to, action) in to.iter().zip(actions) {
            if allowed(*to) && !came.contains_key(to) {
                came.insert(*to, Some((id, *action)));
                queue.push_back(*to);
            }
        }
    }
    None
}

/// A walk inside the part, from `entry` back to it, that visits a witness and meets every condition.
fn circle<W: Word>(
    graph: &Graph<W>,
    fair: &Fair,
    question: &Question,
    part: &Part,
    entry: Id,
) -> Vec<Hop> {
    let mut circle = Circle { graph, fair, part, entry, hops: Vec::new() };
    if let Some(witness) = &question.witness {
        circle.go(|id| witness.contains(id));
    }
    for bit in 0..fair.conditions.len() {
        let condition = 1_u128 << bit;
        if fair.weak & condition != 0 && circle.passes(|id| circle.possible(id) & condition == 0) {
            continue;
        }
        if circle.meets(condition) {
            continue;
        }
        let rests = |id: Id| circle.possible(id) & condition == 0;
        if fair.weak & condition != 0 && part.0.iter().any(|id| rests(*id)) {
            let resting: Vec<Id> = part.0.iter().copied().filter(|id| rests(*id)).collect();
            circle.go(|id| resting.binary_search(&id).is_ok());
            continue;
        }
        circle.take(condition);
    }
    if question.changes && circle.hops.is_empty() {
        circle.leave();
    }
    circle.close();
    circle.hops
}

struct Circle<'a, W> {
    graph: &'a Graph<W>,
    fair: &'a Fair,
    part: &'a Part,
    entry: Id,
    hops: Vec<Hop>,
}

impl<W: Word> Circle<'_, W> {
    fn at(&self) -> Id {
        self.hops.last().map_or(self.entry, |hop| hop.1)
    }

    fn passes(&self, wanted: impl Fn(Id) -> bool) -> bool {
        wanted(self.entry) || self.hops.iter().any(|hop| wanted(hop.1))
    }

    fn meets(&self, condition: u128) -> bool {
        self.hops.iter().any(|hop| self.fair.of_action[hop.0 as usize] & condition != 0)
    }

    fn possible(&self, id: Id) -> u128 {
        possible(self.graph, self.fair, id)
    }

    /// On to the nearest state that is wanted.
    fn go(&mut self, wanted: impl Fn(Id) -> bool) {
        if self.passes(&wanted) {
            return;
        }
        let inside = |id: Id| self.part.contains(id);
        let (_, hops) = walk(self.graph, vec![self.at()], inside, wanted)
            .expect("a part is strongly connected");
        self.hops.extend(hops);
    }

    /// On to a step inside the part that meets the condition, and through it; a condition that is
    /// possible nowhere in the part needs nothing.
    fn take(&mut self, condition: u128) {
        let serves = |id: Id| {
            let (to, actions) = self.graph.edges(id);
            to.iter().zip(actions).find(|(to, action)| {
                self.part.contains(**to) && self.fair.of_action[**action as usize] & condition != 0
            })
        };
        if !self.part.0.iter().any(|id| serves(*id).is_some()) {
            return;
        }
        let inside = |id: Id| self.part.contains(id);
        let (_, hops) = walk(self.graph, vec![self.at()], inside, |id| serves(id).is_some())
            .expect("a part is strongly connected");
        let from = hops.last().map_or(self.at(), |hop| hop.1);
        let hop = serves(from).map(|(to, action)| (*action, *to));
        self.hops.extend(hops);
        self.hops.extend(hop);
    }

    /// Any step inside the part.
    fn leave(&mut self) {
        let (to, actions) = self.graph.edges(self.at());
        let hop = to.iter().zip(actions).find(|(to, _)| self.part.contains(**to));
        let hop = hop.map(|(to, action)| (*action, *to));
        self.hops.extend(hop);
    }

    /// Back to where the loop began.
    fn close(&mut self) {
        let inside = |id: Id| self.part.contains(id);
        let (_, hops) = walk(self.graph, vec![self.at()], inside, |id| id == self.entry)
            .expect("a part is strongly connected");
        self.hops.extend(hops);
    }
}
