//! Exhaustive exploration.

use crate::model::{Model, Steps};

/// Every step from `state`, those of the flags included.
pub fn successors<M: Model>(model: &M, state: &M::State, steps: &mut Steps<M::State>) {
    steps.clear();
    model.next(state, steps);
    let flags = model.flags();
    if flags.is_empty() {
        return;
    }
    let up = model.flag_bits(state);
    steps.retain(|step| step.needs & !up == 0);
    for flag in &flags {
        for change in flag.moves.iter().filter(|change| change.from == up & flag.bits) {
            steps.step(change.action, model.with_flag_bits(state, up & !flag.bits | change.to));
        }
    }
}
