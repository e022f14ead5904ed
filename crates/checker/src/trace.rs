//! From a state back to the start.
//!
//! No parents are kept. The states of a level lie together, so a predecessor is found by expanding the
//! level before until one of its steps leads to the state: a violation pays for its trace, at most
//! the price of one more exploration, and every other state stays small.

use crate::explore::{Explored, Sighting, read};
use crate::model::ActionId;
use crate::report::Path;
use crate::store::SHARDS;
use crate::walk::Walk;
use crate::word::Word;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The shortest path from an initial state to what was seen.
pub(crate) fn path_to<W: Word>(
    walk: &dyn Walk<W>,
    explored: &Explored<W>,
    sighting: &Sighting<W>,
    workers: usize,
) -> Path<W> {
    let mut keys = vec![sighting.state];
    for level in (1..sighting.level).rev() {
        let target = keys[keys.len() - 1];
        keys.push(predecessor(walk, explored, level, target, workers));
    }
    keys.reverse();
    let mut path = replay(walk, &keys);
    if let Some((action, key)) = sighting.step {
        let last = path.steps[path.steps.len() - 1].1;
        path.steps.push(step_to(walk, &last, key, Some(action)));
    }
    path
}

/// The smallest state of `level` from which a step leads to `target`.
fn predecessor<W: Word>(
    walk: &dyn Walk<W>,
    explored: &Explored<W>,
    level: u32,
    target: W,
    workers: usize,
) -> W {
    let next_shard = AtomicUsize::new(0);
    let search = || {
        let mut best: Option<W> = None;
        let (mut walker, mut hops) = (walk.walker(), Vec::new());
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
                walker.hops(&word, &mut hops);
                if hops.iter().any(|hop| hop.key == target) {
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
fn replay<W: Word>(walk: &dyn Walk<W>, keys: &[W]) -> Path<W> {
    let first = walk
        .initial()
        .into_iter()
        .find(|word| walk.key(word) == keys[0])
        .expect("a path begins at an initial state");
    let mut steps = vec![(None, first)];
    for key in &keys[1..] {
        let last = steps[steps.len() - 1].1;
        steps.push(step_to(walk, &last, *key, None));
    }
    Path { steps, loop_to: None }
}

fn step_to<W: Word>(
    walk: &dyn Walk<W>,
    from: &W,
    key: W,
    by: Option<ActionId>,
) -> (Option<ActionId>, W) {
    let mut hops = Vec::new();
    walk.walker().hops(from, &mut hops);
    let named = hops.iter().find(|hop| by.is_none_or(|by| by == hop.action) && hop.key == key);
    // Under symmetry the action that was seen may be the image of the one that is possible here.
    let found = named.or_else(|| hops.iter().find(|hop| hop.key == key));
    let hop = found.expect("the next state of a path is a successor");
    (Some(hop.action), hop.to)
}
