//! Counterexamples, checked again from nothing but the model: a second opinion before one is shown.

use crate::model::{ActionId, Fairness, Formula, Model, Steps, Strength};
use crate::report::Path;
use crate::space::Space;

/// Whether the path is a behaviour of the model, its loop is fair, and it breaks the formula.
pub(crate) fn lasso<M: Model>(
    space: &Space<'_, M>,
    path: &Path<M::State>,
    formula: &Formula<M::State>,
    fairness: &[Fairness],
) -> Result<(), String> {
    behaviour(space, path)?;
    let loop_to = path.loop_to.ok_or("it has no loop")?;
    let last = &path.steps[path.steps.len() - 1].1;
    if path.steps[loop_to].1 != *last {
        return Err("its loop does not close".to_owned());
    }
    for condition in fairness {
        if why_fair(space, path, loop_to, condition).is_none() {
            return Err(format!("{} is not met on its loop", condition.name));
        }
    }
    if breaks(path, loop_to, formula) {
        Ok(())
    } else {
        Err("it satisfies the property".to_owned())
    }
}

/// Whether every step of the path is a step of the model.
pub(crate) fn behaviour<M: Model>(
    space: &Space<'_, M>,
    path: &Path<M::State>,
) -> Result<(), String> {
    if !space.model.initial().contains(&path.steps[0].1) {
        return Err("it does not begin in an initial state".to_owned());
    }
    let mut steps = Steps::default();
    for (place, pair) in path.steps.windows(2).enumerate() {
        space.expand(&pair[0].1, &mut steps);
        let is_step = |step: &crate::model::Step<M::State>| {
            Some(step.action) == pair[1].0 && step.to == pair[1].1
        };
        if !steps.as_slice().iter().any(is_step) {
            return Err(format!("step {} is not a step of the model", place + 1));
        }
    }
    Ok(())
}

/// For each fairness condition, why the loop meets it.
pub(crate) fn reasons<M: Model>(
    space: &Space<'_, M>,
    path: &Path<M::State>,
    fairness: &[Fairness],
) -> Vec<String> {
    let Some(loop_to) = path.loop_to else { return Vec::new() };
    let reason = |condition: &Fairness| {
        let why = why_fair(space, path, loop_to, condition)?;
        Some(format!("{}: {why}", condition.name))
    };
    fairness.iter().filter_map(reason).collect()
}

fn why_fair<M: Model>(
    space: &Space<'_, M>,
    path: &Path<M::State>,
    loop_to: usize,
    condition: &Fairness,
) -> Option<String> {
    for (place, pair) in path.steps.windows(2).enumerate().skip(loop_to) {
        let action = pair[1].0?;
        if condition.actions.contains(&action) && pair[0].1 != pair[1].1 {
            return Some(format!("taken in step {}", place + 1));
        }
    }
    let states = path.steps.iter().enumerate().skip(loop_to);
    let mut resting = states.filter(|(_, (_, state))| !possible(space, state, &condition.actions));
    let (place, _) = resting.next()?;
    let everywhere = 1 + resting.count() == path.steps.len() - loop_to;
    match condition.strength {
        _ if everywhere => Some("not possible anywhere on the loop".to_owned()),
        Strength::Weak => Some(format!("not possible in state {}", place + 1)),
        Strength::Strong => None,
    }
}

/// Whether one of the actions can change something here.
fn possible<M: Model>(space: &Space<'_, M>, state: &M::State, actions: &[ActionId]) -> bool {
    let mut steps = Steps::default();
    space.expand(state, &mut steps);
    steps.as_slice().iter().any(|step| actions.contains(&step.action) && step.to != *state)
}

/// Whether a lasso breaks a formula, straight from what the formula means.
fn breaks<S: PartialEq>(path: &Path<S>, loop_to: usize, formula: &Formula<S>) -> bool {
    let states: Vec<&S> = path.steps.iter().map(|(_, state)| state).collect();
    let circle = &states[loop_to..];
    match formula {
        Formula::Eventually(q) => !states.iter().any(|s| q(s)),
        Formula::AlwaysEventually(p) => !circle.iter().any(|s| p(s)),
        Formula::EventuallyAlways(p) => !circle.iter().all(|s| p(s)),
        Formula::LeadsTo(p, q) => {
            let never_again = |place: usize| {
                !states[place..].iter().any(|s| q(s)) && !circle.iter().any(|s| q(s))
            };
            (0..states.len()).any(|place| p(states[place]) && never_again(place))
        }
        Formula::AlwaysLeadsTo(p, q) => circle.iter().all(|s| p(s) && !q(s)),
        Formula::AlwaysImpliesEventually(p, q) => {
            states.iter().all(|s| p(s)) && !states.iter().any(|s| q(s))
        }
        Formula::StableImpliesStable(p, q) => {
            circle.iter().all(|s| p(s)) && !circle.iter().all(|s| q(s))
        }
        Formula::ComesToRest => circle.windows(2).any(|pair| pair[0] != pair[1]),
    }
}
