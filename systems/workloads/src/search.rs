//! The shortest way to a broken promise; for tests.

use interlock_checker::{Liveness, Model, Options, check};

/// How many states the shortest trace has that breaks this invariant or step rule.
pub(crate) fn states_until_broken<M: Model<Packed: interlock_checker::Engine>>(
    model: &M,
    promise: &str,
) -> Option<u32> {
    let (only, liveness) = (vec![promise.to_owned()], Liveness::Off);
    let options = Options { only, liveness, first: true, ..Options::default() };
    let report = check("workloads", model, &options).expect("the model has this promise");
    let invariants = report.invariants.iter().map(|invariant| invariant.steps);
    let rules = report.properties.iter().map(|rule| rule.prefix_steps);
    invariants.chain(rules).flatten().next().map(|steps| steps + 1)
}
