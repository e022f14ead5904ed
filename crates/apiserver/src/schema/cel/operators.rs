//! Operators: arithmetic that never overflows in silence, equality and order across the sorts of
//! numbers.

use super::ast::Operator;
use super::eval::{Evaluated, Evaluator, Fault, fault};
use super::value::{ListVal, MapVal, Val};
use crate::schema::ListKind;
use crate::schema::formats::Moment;
use std::cmp::Ordering;

pub(super) fn binary<'a>(
    evaluator: &mut Evaluator<'a>,
    operator: Operator,
    left: Val<'a>,
    right: Val<'a>,
) -> Evaluated<'a> {
    match operator {
        Operator::Equal => Ok(Val::Bool(is_equal(evaluator, &left, &right)?)),
        Operator::NotEqual => Ok(Val::Bool(!is_equal(evaluator, &left, &right)?)),
        Operator::Less => Ok(Val::Bool(order(evaluator, &left, &right)?.is_lt())),
        Operator::LessOrEqual => Ok(Val::Bool(order(evaluator, &left, &right)?.is_le())),
        Operator::Greater => Ok(Val::Bool(order(evaluator, &left, &right)?.is_gt())),
        Operator::GreaterOrEqual => Ok(Val::Bool(order(evaluator, &left, &right)?.is_ge())),
        Operator::In => contains(evaluator, &left, &right),
        Operator::Add => add(evaluator, left, right),
        Operator::Subtract => subtract(&left, &right),
        Operator::Multiply => match (&left, &right) {
            (Val::Int(a), Val::Int(b)) => int(a.checked_mul(*b)),
            (Val::Uint(a), Val::Uint(b)) => uint(a.checked_mul(*b)),
            (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a * b)),
            _ => Err(Fault::NoSuchOverload),
        },
        Operator::Divide => match (&left, &right) {
            (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => fault("division by zero"),
            (Val::Int(a), Val::Int(b)) => int(a.checked_div(*b)),
            (Val::Uint(a), Val::Uint(b)) => uint(a.checked_div(*b)),
            (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a / b)),
            _ => Err(Fault::NoSuchOverload),
        },
        Operator::Modulo => match (&left, &right) {
            (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => fault("modulus by zero"),
            (Val::Int(a), Val::Int(b)) => int(a.checked_rem(*b)),
            (Val::Uint(a), Val::Uint(b)) => uint(a.checked_rem(*b)),
            _ => Err(Fault::NoSuchOverload),
        },
    }
}

pub(super) fn int<'a>(value: Option<i64>) -> Evaluated<'a> {
    value.map_or_else(|| fault("integer overflow"), |value| Ok(Val::Int(value)))
}

pub(super) fn uint<'a>(value: Option<u64>) -> Evaluated<'a> {
    value.map_or_else(|| fault("unsigned integer overflow"), |value| Ok(Val::Uint(value)))
}

fn duration<'a>(value: Option<i64>) -> Evaluated<'a> {
    value.map_or_else(|| fault("integer overflow"), |value| Ok(Val::Duration(value)))
}

pub(super) fn negate<'a>(value: &Val<'a>) -> Evaluated<'a> {
    match value {
        Val::Int(value) => int(value.checked_neg()),
        Val::Double(value) => Ok(Val::Double(-value)),
        Val::Duration(value) => duration(value.checked_neg()),
        _ => Err(Fault::NoSuchOverload),
    }
}

/// A moment some nanoseconds later.
fn later(moment: Moment, nanoseconds: i64) -> Option<Moment> {
    let total = i128::from(moment.seconds) * 1_000_000_000
        + i128::from(moment.nanoseconds)
        + i128::from(nanoseconds);
    let seconds = i64::try_from(total.div_euclid(1_000_000_000)).ok()?;
    let nanoseconds = u32::try_from(total.rem_euclid(1_000_000_000)).ok()?;
    // The years 1 to 9999.
    let range = -62_135_596_800..=253_402_300_799;
    range.contains(&seconds).then_some(Moment { seconds, nanoseconds })
}

fn moment<'a>(value: Option<Moment>) -> Evaluated<'a> {
    value.map_or_else(|| fault("timestamp overflow"), |value| Ok(Val::Timestamp(value)))
}

/// The sum. Sets and keyed lists are joined as such, other lists one behind the other.
fn add<'a>(evaluator: &mut Evaluator<'a>, left: Val<'a>, right: Val<'a>) -> Evaluated<'a> {
    match (&left, &right) {
        (Val::Int(a), Val::Int(b)) => int(a.checked_add(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_add(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::String(a), Val::String(b)) => {
            evaluator.charge_text(a.len() + b.len())?;
            Ok(Val::text([&**a, &**b].concat()))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            evaluator.charge_text(a.len() + b.len())?;
            Ok(Val::Bytes([&**a, &**b].concat().into()))
        }
        (Val::Duration(a), Val::Duration(b)) => duration(a.checked_add(*b)),
        (Val::Timestamp(at), Val::Duration(span)) | (Val::Duration(span), Val::Timestamp(at)) => {
            moment(later(*at, *span))
        }
        (Val::List(a), Val::List(b)) => join(evaluator, a, b),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn join<'a>(
    evaluator: &mut Evaluator<'a>,
    left: &ListVal<'a>,
    right: &ListVal<'a>,
) -> Evaluated<'a> {
    evaluator.charge(left.len() + right.len())?;
    let mut items: Vec<Val<'a>> = left.iter().collect();
    match left.kind() {
        ListKind::Atomic => items.extend(right.iter()),
        ListKind::Set => {
            let first = items.len();
            for item in right.iter() {
                if find(evaluator, &items[..first], &item)?.is_none() {
                    items.push(item);
                }
            }
        }
        ListKind::Keyed(keys) => {
            let first = items.len();
            for item in right.iter() {
                let mut place = None;
                for (index, other) in items[..first].iter().enumerate() {
                    if has_same_keys(evaluator, other, &item, keys)? {
                        place = Some(index);
                        break;
                    }
                }
                match place {
                    Some(index) => items[index] = item,
                    None => items.push(item),
                }
            }
        }
    }
    Ok(Val::list(items))
}

fn subtract<'a>(left: &Val<'a>, right: &Val<'a>) -> Evaluated<'a> {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => int(a.checked_sub(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_sub(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a - b)),
        (Val::Duration(a), Val::Duration(b)) => duration(a.checked_sub(*b)),
        (Val::Timestamp(at), Val::Duration(span)) => {
            moment(span.checked_neg().and_then(|span| later(*at, span)))
        }
        (Val::Timestamp(a), Val::Timestamp(b)) => {
            let span = (i128::from(a.seconds) - i128::from(b.seconds)) * 1_000_000_000
                + i128::from(a.nanoseconds)
                - i128::from(b.nanoseconds);
            duration(i64::try_from(span).ok())
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

/// Which comes first; numbers of all sorts have one order.
pub(super) fn order(
    evaluator: &mut Evaluator<'_>,
    left: &Val<'_>,
    right: &Val<'_>,
) -> Result<Ordering, Fault> {
    match (left, right) {
        (Val::String(a), Val::String(b)) => {
            evaluator.charge_text(a.len().min(b.len()))?;
            Ok((**a).cmp(&**b))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            evaluator.charge_text(a.len().min(b.len()))?;
            Ok(a.cmp(b))
        }
        (Val::Bool(a), Val::Bool(b)) => Ok(a.cmp(b)),
        (Val::Timestamp(a), Val::Timestamp(b)) => Ok(a.cmp(b)),
        (Val::Duration(a), Val::Duration(b)) => Ok(a.cmp(b)),
        _ => numeric_order(left, right)
            .ok_or(Fault::NoSuchOverload)?
            .ok_or_else(|| Fault::Other("NaN values cannot be ordered".to_owned())),
    }
}

/// The order of two numbers: nothing if they are none, and nothing inside if one is not a number at
/// all.
fn numeric_order(left: &Val<'_>, right: &Val<'_>) -> Option<Option<Ordering>> {
    Some(match (left, right) {
        (Val::Int(a), Val::Int(b)) => Some(a.cmp(b)),
        (Val::Uint(a), Val::Uint(b)) => Some(a.cmp(b)),
        (Val::Double(a), Val::Double(b)) => a.partial_cmp(b),
        (Val::Int(a), Val::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Val::Uint(a), Val::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Val::Int(a), Val::Double(b)) => whole_and_double(i128::from(*a), *b),
        (Val::Uint(a), Val::Double(b)) => whole_and_double(i128::from(*a), *b),
        (Val::Double(a), Val::Int(b)) => {
            whole_and_double(i128::from(*b), *a).map(Ordering::reverse)
        }
        (Val::Double(a), Val::Uint(b)) => {
            whole_and_double(i128::from(*b), *a).map(Ordering::reverse)
        }
        _ => return None,
    })
}

fn whole_and_double(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // The cast cuts what is out of range to the ends, which are beyond every whole number here.
    let cut = double.trunc() as i128;
    let fraction = if double.is_finite() { double.fract() } else { 0.0 };
    Some(whole.cmp(&cut).then(0.0.partial_cmp(&fraction).unwrap_or(Ordering::Equal)))
}

/// Whether two keys of maps are the same.
pub(super) fn is_same_scalar(left: &Val<'_>, right: &Val<'_>) -> bool {
    match (left, right) {
        (Val::String(a), Val::String(b)) => **a == **b,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        _ => numeric_order(left, right).flatten() == Some(Ordering::Equal),
    }
}

/// Equality, which is false for values of different sorts.
pub(super) fn is_equal(
    evaluator: &mut Evaluator<'_>,
    left: &Val<'_>,
    right: &Val<'_>,
) -> Result<bool, Fault> {
    evaluator.charge(1)?;
    Ok(match (left, right) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::String(a), Val::String(b)) => {
            evaluator.charge_text(a.len().min(b.len()))?;
            **a == **b
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            evaluator.charge_text(a.len().min(b.len()))?;
            a == b
        }
        (Val::Timestamp(a), Val::Timestamp(b)) => a == b,
        (Val::Duration(a), Val::Duration(b)) => a == b,
        (Val::List(a), Val::List(b)) => lists_are_equal(evaluator, a, b)?,
        (Val::Map(a), Val::Map(b)) => maps_are_equal(evaluator, a, b)?,
        (Val::Optional(a), Val::Optional(b)) => match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => is_equal(evaluator, a, b)?,
            _ => false,
        },
        (Val::Type(a), Val::Type(b)) | (Val::Format(a), Val::Format(b)) => a == b,
        (Val::Quantity(a), Val::Quantity(b)) => a == b,
        (Val::Semver(a), Val::Semver(b)) => a.precedence(b).is_eq(),
        (Val::Ip(a), Val::Ip(b)) => a == b,
        (Val::Cidr(a, n), Val::Cidr(b, m)) => a == b && n == m,
        (Val::Url(a), Val::Url(b)) => a == b,
        _ => numeric_order(left, right).flatten() == Some(Ordering::Equal),
    })
}

fn lists_are_equal(
    evaluator: &mut Evaluator<'_>,
    left: &ListVal<'_>,
    right: &ListVal<'_>,
) -> Result<bool, Fault> {
    if left.len() != right.len() {
        return Ok(false);
    }
    if *left.kind() == ListKind::Atomic {
        for (one, other) in left.iter().zip(right.iter()) {
            if !is_equal(evaluator, &one, &other)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    // In sets and keyed lists the order does not count.
    let others: Vec<Val<'_>> = right.iter().collect();
    for item in left.iter() {
        if find(evaluator, &others, &item)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps_are_equal(
    evaluator: &mut Evaluator<'_>,
    left: &MapVal<'_>,
    right: &MapVal<'_>,
) -> Result<bool, Fault> {
    let keys = left.keys();
    evaluator.charge(keys.len())?;
    if keys.len() != right.len() {
        return Ok(false);
    }
    for key in keys {
        if let MapVal::Made(entries) = right {
            evaluator.charge(entries.len())?;
        }
        let (Some(one), Some(other)) = (left.get(&key), right.get(&key)) else { return Ok(false) };
        if !is_equal(evaluator, &one, &other)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The place of the first equal element.
pub(super) fn find(
    evaluator: &mut Evaluator<'_>,
    items: &[Val<'_>],
    wanted: &Val<'_>,
) -> Result<Option<usize>, Fault> {
    for (index, item) in items.iter().enumerate() {
        if is_equal(evaluator, item, wanted)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn has_same_keys(
    evaluator: &mut Evaluator<'_>,
    left: &Val<'_>,
    right: &Val<'_>,
    keys: &[std::sync::Arc<str>],
) -> Result<bool, Fault> {
    let (Val::Map(left), Val::Map(right)) = (left, right) else { return Ok(false) };
    for key in keys {
        let is_same = match (left.field(key), right.field(key)) {
            (None, None) => true,
            (Some(one), Some(other)) => is_equal(evaluator, &one, &other)?,
            _ => false,
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `x in list` and `key in map`.
fn contains<'a>(
    evaluator: &mut Evaluator<'a>,
    wanted: &Val<'a>,
    container: &Val<'a>,
) -> Evaluated<'a> {
    match container {
        Val::List(list) => {
            for item in list.iter() {
                if is_equal(evaluator, &item, wanted)? {
                    return Ok(Val::Bool(true));
                }
            }
            Ok(Val::Bool(false))
        }
        Val::Map(map) => {
            if let MapVal::Made(entries) = map {
                evaluator.charge(entries.len())?;
            }
            Ok(Val::Bool(map.get(wanted).is_some()))
        }
        _ => Err(Fault::NoSuchOverload),
    }
}
