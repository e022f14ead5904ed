//! From a state back to the start.
//!
//! No parents are kept. The states of a level lie together, so a predecessor is found by expanding the
//! level before until one of its steps leads to the state: a violation pays for its trace, at most
//! the price of one more exploration, and every other state stays small.

use crate::explore::{Explored, Sighting, read};
use crate::model::{ActionId, Model, Steps};
use crate::report::Path;
use crate::space::Space;
use crate::store::SHARDS;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The shortest path from an initial state to what was seen.
pub(crate) fn path_to<M: Model>(
    space: &Space<'_, M>,
    explored: &Explored<M::Packed>,
    sighting: &Sighting<M::Packed>,
    workers: usize,
) -> Path<M::State> {
    let mut words = vec![sighting.state];
    for level in (1..sighting.level).rev() {
        let target = words[words.len() - 1];
        words.push(predecessor(space, explored, level, target, workers));
    }
    words.reverse();
    let mut path = replay(space, &words);
    if let Some((action, to)) = sighting.step {
        let last = path.steps[path.steps.len() - 1].1.clone();
        let to = step_to(space, &last, to, Some(action));
        path.steps.push(to);
    }
    path
}

/// The smallest state of `level` from which a step leads to `target`.
fn predecessor<M: Model>(
    space: &Space<'_, M>,
    explored: &Explored<M::Packed>,
    level: u32,
    target: M::Packed,
    workers: usize,
) -> M::Packed {
    let next_shard = AtomicUsize::new(0);
    let search = || {
        let mut best: Option<M::Packed> = None;
        let mut steps = Steps::default();
        loop {
            let shard = next_shard.fetch_add(1, Ordering::Relaxed);
            if shard >= SHARDS {
                return best;
            }
            let shard = read(&explored.shards[shard]);
            for index in shard.level(level) {
                let word = shard.get(index);
                if best.is_some_and(|best| best <= word) {
                    continue;
                }
                space.expand(&space.model.unpack(&word), &mut steps);
                if steps.as_slice().iter().any(|step| space.canonical(&step.to) == target) {
                    best = Some(word);
                }
            }
        }
    };
    let found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers.max(1)).map(|_| scope.spawn(search)).collect();
        let mine = search();
        let theirs = others.into_iter().filter_map(|handle| handle.join().ok().flatten());
        theirs.chain(mine).min()
    });
    found.expect("a state of a level was found by expanding the level before")
}

/// The real states behind a path of representatives: under symmetry each is chosen among its images
/// so that it follows from the one before.
fn replay<M: Model>(space: &Space<'_, M>, words: &[M::Packed]) -> Path<M::State> {
    let first = space
        .model
        .initial()
        .into_iter()
        .find(|state| space.canonical(state) == words[0])
        .expect("a path begins at an initial state");
    let mut steps = vec![(None, first)];
    for word in &words[1..] {
        let (_, last) = &steps[steps.len() - 1];
        steps.push(step_to(space, last, *word, None));
    }
    Path { steps, loop_to: None }
}

fn step_to<M: Model>(
    space: &Space<'_, M>,
    from: &M::State,
    to: M::Packed,
    by: Option<ActionId>,
) -> (Option<ActionId>, M::State) {
    let mut steps = Steps::default();
    space.expand(from, &mut steps);
    let found = steps
        .as_slice()
        .iter()
        .find(|step| by.is_none_or(|by| by == step.action) && space.canonical(&step.to) == to)
        .or_else(|| steps.as_slice().iter().find(|step| space.canonical(&step.to) == to))
        .expect("the next state of a path is a successor");
    (Some(found.action), found.to.clone())
}
