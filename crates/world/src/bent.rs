//! What mistakes in `act` are made of: the same step with another write.

use interlock_kernel::{Action, Outside, Step, Write};

/// The same step with another write.
pub fn rewritten<O: Outside>(mut step: Step<O>, rewrite: fn(&mut Write)) -> Step<O> {
    if let Step::Act(effect) = &mut step
        && let Action::Write(write) = &mut effect.action
    {
        rewrite(write);
    }
    step
}

/// The same step without the version that its patch rests on.
pub fn unguarded<O: Outside>(mut step: Step<O>, is_bent: fn(&Write) -> bool) -> Step<O> {
    let Step::Act(effect) = &mut step else { return step };
    let Action::Write(write) = &effect.action else { return step };
    let Write::Patch { address, part, change, .. } = write else { return step };
    if is_bent(write) {
        let (address, object) = (address.clone(), change.clone());
        let mut bent = Write::apply(address, object, None);
        if let Write::Apply { part: bent, .. } = &mut bent {
            *bent = *part;
        }
        effect.action = Action::Write(bent);
    }
    step
}
