//! The shortest way to a broken promise, also in models that have no end; for tests.

use interlock_checker::{Model, Steps, explore};
use std::collections::HashSet;

/// How many states the shortest trace has that breaks this invariant or step rule.
pub(crate) fn states_until_broken<M: Model>(model: &M, promise: &str) -> Option<u32> {
    let mut invariants = model.invariants();
    let mut rules = model.step_rules();
    invariants.retain(|invariant| invariant.name == promise);
    rules.retain(|rule| rule.name == promise);
    let mut level = model.initial();
    let mut seen: HashSet<_> = level.iter().map(|state| model.pack(state)).collect();
    let mut steps = Steps::default();
    for length in 2.. {
        for state in std::mem::take(&mut level) {
            explore::successors(model, &state, &mut steps);
            for step in steps.as_slice() {
                let kept = rules.iter().all(|rule| (rule.allows)(&state, &step.to))
                    && invariants.iter().all(|invariant| (invariant.holds)(&step.to));
                if !kept {
                    return Some(length);
                }
                if seen.insert(model.pack(&step.to)) {
                    level.push(step.to.clone());
                }
            }
        }
        if level.is_empty() {
            break;
        }
    }
    None
}
