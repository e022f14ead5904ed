//! A second, naive explorer: one thread, one hash map, no tricks. Tests hold the engine against it.

use crate::explore::successors;
use crate::model::{Model, Steps};
use std::collections::HashMap;

/// What a plain breadth-first search saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// States seen for the first time.
    pub distinct: u64,
    /// Initial states and successors, repeats included.
    pub generated: u64,
    /// Levels of the search; the initial states are level 1.
    pub depth: u32,
    /// The name of each broken invariant, with the length in states of its shortest trace.
    pub violated: Vec<(&'static str, u32)>,
    /// The length in states of the shortest trace to a deadlock.
    pub deadlock: Option<u32>,
}

/// Explores all of a model.
pub fn explore<M: Model>(model: &M) -> Counts {
    let invariants = model.invariants();
    let mut counts = Counts::default();
    let mut level_of: HashMap<M::Packed, u32> = HashMap::new();
    let mut frontier = Vec::new();
    let mut steps = Steps::default();
    let mut see = |state: &M::State, level: u32, counts: &mut Counts| {
        counts.generated += 1;
        let packed = model.pack(state);
        if level_of.contains_key(&packed) {
            return None;
        }
        level_of.insert(packed, level);
        for invariant in &invariants {
            let known = counts.violated.iter().any(|(name, _)| *name == invariant.name);
            if !known && !(invariant.holds)(state) {
                counts.violated.push((invariant.name, level));
            }
        }
        counts.distinct += 1;
        counts.depth = level;
        Some(packed)
    };
    for state in model.initial() {
        frontier.extend(see(&state, 1, &mut counts));
    }
    let mut level = 1;
    while !frontier.is_empty() {
        level += 1;
        for packed in std::mem::take(&mut frontier) {
            let state = model.unpack(&packed);
            successors(model, &state, &mut steps);
            if steps.as_slice().is_empty() && !model.may_rest(&state) {
                counts.deadlock.get_or_insert(level - 1);
            }
            for step in steps.as_slice() {
                frontier.extend(see(&step.to, level, &mut counts));
            }
        }
    }
    counts
}
