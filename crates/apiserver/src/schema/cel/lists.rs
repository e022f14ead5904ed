//! Functions of lists and sets.

use super::eval::{Evaluated, Evaluator, Fault, as_list, fault};
use super::operators::{self, find, is_equal, order};
use super::strings;
use super::value::Val;
use std::cmp::Ordering;

pub(super) fn method<'a>(
    evaluator: &mut Evaluator<'a>,
    name: &str,
    values: &[Val<'a>],
) -> Evaluated<'a> {
    let list = as_list(values.first().ok_or(Fault::NoSuchOverload)?)?;
    if let ("size", []) = (name, &values[1..]) {
        return Ok(Val::Int(i64::try_from(list.len()).unwrap_or(i64::MAX)));
    }
    evaluator.charge(list.len())?;
    let items: Vec<Val<'a>> = list.iter().collect();
    match (name, &values[1..]) {
        ("join", []) => strings::join(evaluator, &items, ""),
        ("join", [Val::String(between)]) => strings::join(evaluator, &items, between),
        ("isSorted", []) => {
            for pair in items.windows(2) {
                if order(evaluator, &pair[0], &pair[1])?.is_gt() {
                    return Ok(Val::Bool(false));
                }
            }
            Ok(Val::Bool(true))
        }
        ("sum", []) => sum(evaluator, items),
        ("min", []) => extreme(evaluator, items, Ordering::Less),
        ("max", []) => extreme(evaluator, items, Ordering::Greater),
        ("indexOf", [wanted]) => {
            let place = find(evaluator, &items, wanted)?;
            Ok(index(place))
        }
        ("lastIndexOf", [wanted]) => {
            let reversed: Vec<Val<'a>> = items.iter().rev().cloned().collect();
            let place = find(evaluator, &reversed, wanted)?;
            Ok(index(place.map(|place| items.len() - 1 - place)))
        }
        ("first", []) => Ok(items.into_iter().next().map_or(Val::Optional(None), Val::some)),
        ("last", []) => Ok(items.into_iter().next_back().map_or(Val::Optional(None), Val::some)),
        ("reverse", []) => Ok(Val::list(items.into_iter().rev().collect())),
        ("distinct", []) => {
            let mut out: Vec<Val<'a>> = Vec::new();
            for item in items {
                if find(evaluator, &out, &item)?.is_none() {
                    out.push(item);
                }
            }
            Ok(Val::list(out))
        }
        ("flatten", []) => flatten(evaluator, items, 1),
        ("flatten", [Val::Int(depth)]) => match u32::try_from(*depth) {
            Ok(depth) => flatten(evaluator, items, depth),
            Err(_) => fault("level must be non-negative"),
        },
        ("slice", [Val::Int(from), Val::Int(to)]) => slice(&items, *from, *to),
        ("sort", []) => {
            let pairs = items.into_iter().map(|item| (item.clone(), item)).collect();
            sort_by(evaluator, pairs)
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

fn index<'a>(place: Option<usize>) -> Val<'a> {
    Val::Int(place.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1))
}

fn sum<'a>(evaluator: &mut Evaluator<'a>, items: Vec<Val<'a>>) -> Evaluated<'a> {
    let mut total: Option<Val<'a>> = None;
    for item in items {
        total = Some(match total {
            None => item,
            Some(total) => operators::binary(evaluator, super::ast::Operator::Add, total, item)?,
        });
    }
    Ok(total.unwrap_or(Val::Int(0)))
}

fn extreme<'a>(
    evaluator: &mut Evaluator<'a>,
    items: Vec<Val<'a>>,
    wanted: Ordering,
) -> Evaluated<'a> {
    let mut best: Option<Val<'a>> = None;
    for item in items {
        best = Some(match best {
            Some(best) if order(evaluator, &item, &best)? != wanted => best,
            _ => item,
        });
    }
    match best {
        Some(best) => Ok(best),
        None if wanted.is_lt() => fault("min called on empty list"),
        None => fault("max called on empty list"),
    }
}

fn flatten<'a>(
    evaluator: &mut Evaluator<'a>,
    mut items: Vec<Val<'a>>,
    depth: u32,
) -> Evaluated<'a> {
    for _ in 0..depth {
        let mut out = Vec::with_capacity(items.len());
        let mut is_flat = true;
        for item in items {
            match item {
                Val::List(inner) => {
                    is_flat = false;
                    evaluator.charge(inner.len())?;
                    out.extend(inner.iter());
                }
                other => out.push(other),
            }
        }
        evaluator.charge(out.len())?;
        items = out;
        if is_flat {
            break;
        }
    }
    Ok(Val::list(items))
}

fn slice<'a>(items: &[Val<'a>], from: i64, to: i64) -> Evaluated<'a> {
    let (Ok(start), Ok(end)) = (usize::try_from(from), usize::try_from(to)) else {
        return fault(format!("cannot slice({from}, {to}), negative indexes not supported"));
    };
    match items.get(start..end) {
        Some(part) => Ok(Val::list(part.to_vec())),
        None => fault(format!("cannot slice({from}, {to}), list is length {}", items.len())),
    }
}

/// The second of each pair, in the order of the first.
pub(super) fn sort_by<'a>(
    evaluator: &mut Evaluator<'a>,
    mut pairs: Vec<(Val<'a>, Val<'a>)>,
) -> Evaluated<'a> {
    evaluator.charge(pairs.len().saturating_mul(16))?;
    let mut problem = None;
    pairs.sort_by(|(one, _), (other, _)| match order(evaluator, one, other) {
        Ok(order) => order,
        Err(fault) => {
            problem.get_or_insert(fault);
            Ordering::Equal
        }
    });
    match problem {
        Some(fault) => Err(fault),
        None => Ok(Val::list(pairs.into_iter().map(|(_, value)| value).collect())),
    }
}

pub(super) fn global<'a>(
    evaluator: &mut Evaluator<'a>,
    name: &str,
    values: &[Val<'a>],
) -> Evaluated<'a> {
    if let ("lists.range", [Val::Int(end)]) = (name, values) {
        let Ok(count) = usize::try_from(*end) else { return Ok(Val::list(Vec::new())) };
        evaluator.charge(count)?;
        return Ok(Val::list((0..*end).map(Val::Int).collect()));
    }
    let [left, right] = values else { return Err(Fault::NoSuchOverload) };
    let left: Vec<Val<'a>> = as_list(left)?.iter().collect();
    let right: Vec<Val<'a>> = as_list(right)?.iter().collect();
    match name {
        "sets.contains" => Ok(Val::Bool(holds_all(evaluator, &left, &right)?)),
        "sets.equivalent" => Ok(Val::Bool(
            holds_all(evaluator, &left, &right)? && holds_all(evaluator, &right, &left)?,
        )),
        "sets.intersects" => {
            for item in &left {
                for other in &right {
                    if is_equal(evaluator, item, other)? {
                        return Ok(Val::Bool(true));
                    }
                }
            }
            Ok(Val::Bool(false))
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

fn holds_all(
    evaluator: &mut Evaluator<'_>,
    set: &[Val<'_>],
    wanted: &[Val<'_>],
) -> Result<bool, Fault> {
    for item in wanted {
        if find(evaluator, set, item)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
