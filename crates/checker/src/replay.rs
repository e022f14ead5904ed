//! Counterexamples, checked again from nothing but the model: a second opinion before one is shown.

use crate::model::{ActionId, Fairness, Strength};
use crate::report::Path;
use crate::walk::{Asked, Shape, Side, Walk};
use crate::word::Word;

/// Whether the path is a behaviour of the model, its loop is fair, and it breaks the formula.
pub(crate) fn lasso<W: Word>(
    walk: &dyn Walk<W>,
    path: &Path<W>,
    asked: Asked,
    shape: Shape,
) -> Result<(), String> {
    behaviour(walk, path)?;
    let loop_to = path.loop_to.ok_or("it has no loop")?;
    if path.steps[loop_to].1 != path.steps[path.steps.len() - 1].1 {
        return Err("its loop does not close".to_owned());
    }
    for condition in &walk.facts().fairness {
        if why_fair(walk, path, loop_to, condition).is_none() {
            return Err(format!("{} is not met on its loop", condition.name));
        }
    }
    if breaks(walk, path, loop_to, asked, shape) {
        Ok(())
    } else {
        Err("it satisfies the property".to_owned())
    }
}

/// Whether every step of the path is a step of the model.
fn behaviour<W: Word>(walk: &dyn Walk<W>, path: &Path<W>) -> Result<(), String> {
    if !walk.initial().contains(&path.steps[0].1) {
        return Err("it does not begin in an initial state".to_owned());
    }
    let (mut walker, mut hops) = (walk.walker(), Vec::new());
    for (place, pair) in path.steps.windows(2).enumerate() {
        walker.hops(&pair[0].1, &mut hops);
        if !hops.iter().any(|hop| Some(hop.action) == pair[1].0 && hop.to == pair[1].1) {
            return Err(format!("step {} is not a step of the model", place + 1));
        }
    }
    Ok(())
}

/// For each fairness condition, why the loop meets it.
pub(crate) fn reasons<W: Word>(walk: &dyn Walk<W>, path: &Path<W>) -> Vec<String> {
    let Some(loop_to) = path.loop_to else { return Vec::new() };
    let reason = |condition: &Fairness| {
        let why = why_fair(walk, path, loop_to, condition)?;
        Some(format!("{}: {why}", condition.name))
    };
    walk.facts().fairness.iter().filter_map(reason).collect()
}

fn why_fair<W: Word>(
    walk: &dyn Walk<W>,
    path: &Path<W>,
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
    let mut resting = states.filter(|(_, (_, word))| !possible(walk, word, &condition.actions));
    let (place, _) = resting.next()?;
    let everywhere = 1 + resting.count() == path.steps.len() - loop_to;
    match condition.strength {
        _ if everywhere => Some("not possible anywhere on the loop".to_owned()),
        Strength::Weak => Some(format!("not possible in state {}", place + 1)),
        Strength::Strong => None,
    }
}

/// Whether one of the actions can change something here.
fn possible<W: Word>(walk: &dyn Walk<W>, word: &W, actions: &[ActionId]) -> bool {
    let mut hops = Vec::new();
    walk.walker().hops(word, &mut hops);
    hops.iter().any(|hop| actions.contains(&hop.action) && hop.to != *word)
}

/// Whether a lasso breaks a formula, straight from what the formula means.
fn breaks<W: Word>(
    walk: &dyn Walk<W>,
    path: &Path<W>,
    loop_to: usize,
    asked: Asked,
    shape: Shape,
) -> bool {
    let states: Vec<&W> = path.steps.iter().map(|(_, word)| word).collect();
    let circle = &states[loop_to..];
    let p = |word: &&W| walk.holds(asked, Side::P, word);
    let q = |word: &&W| walk.holds(asked, Side::Q, word);
    match shape {
        Shape::Eventually => !states.iter().any(p),
        Shape::AlwaysEventually => !circle.iter().any(p),
        Shape::EventuallyAlways => !circle.iter().all(p),
        Shape::LeadsTo => {
            let never_again =
                |place: usize| !states[place..].iter().any(q) && !circle.iter().any(q);
            (0..states.len()).any(|place| p(&states[place]) && never_again(place))
        }
        Shape::AlwaysLeadsTo => circle.iter().all(|word| p(word) && !q(word)),
        Shape::AlwaysImpliesEventually => states.iter().all(p) && !states.iter().any(q),
        Shape::StableImpliesStable => circle.iter().all(p) && !circle.iter().all(q),
        Shape::ComesToRest => circle.windows(2).any(|pair| pair[0] != pair[1]),
    }
}
