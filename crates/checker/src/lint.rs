//! Promises that could not have failed.

use crate::explore::Checks;
use crate::model::Model;
use crate::report::{Report, Verdict};
use crate::rng::Rng;

/// States tried at random before an invariant is called unbreakable.
const TRIES: usize = 20_000;

/// Calls an invariant vacuous if it held everywhere and no well-typed state at all breaks it,
/// reachable or not.
pub(crate) fn vacuous_invariants<M: Model>(
    model: &M,
    checks: &Checks<M::State>,
    report: &mut Report,
) {
    let mut rng = Rng::new(1);
    if model.arbitrary(&mut rng).is_none() {
        return;
    }
    let mut open: Vec<usize> = (0..checks.invariants.len())
        .filter(|place| {
            report.invariants[*place].verdict == Verdict::Holds
                && checks.invariants[*place].unbreakable.is_none()
        })
        .collect();
    for _ in 0..TRIES {
        let Some(state) = model.arbitrary(&mut rng) else { return };
        open.retain(|place| (checks.invariants[*place].holds)(&state));
        if open.is_empty() {
            return;
        }
    }
    for place in open {
        let finding = &mut report.invariants[place];
        finding.verdict = Verdict::Vacuous;
        finding.explanation = model
            .explain(&finding.name)
            .map(str::to_owned)
            .or_else(|| Some("no state of the model, reachable or not, could break it".to_owned()));
    }
}
