//! Functions of texts.

use super::eval::{Evaluated, Evaluator, Fault, as_list, fault};
use super::printf;
use super::value::Val;
use crate::schema::checks::Pattern;

pub(super) fn method<'a>(
    evaluator: &mut Evaluator<'a>,
    name: &str,
    values: &[Val<'a>],
) -> Evaluated<'a> {
    let Some(Val::String(own)) = values.first() else { return Err(Fault::NoSuchOverload) };
    let own: &str = own;
    evaluator.charge_text(own.len())?;
    match (name, &values[1..]) {
        ("size", []) => Ok(count(own.chars().count())),
        ("contains", [Val::String(part)]) => Ok(Val::Bool(own.contains(&**part))),
        ("startsWith", [Val::String(part)]) => Ok(Val::Bool(own.starts_with(&**part))),
        ("endsWith", [Val::String(part)]) => Ok(Val::Bool(own.ends_with(&**part))),
        ("matches" | "find" | "findAll", [Val::String(pattern), rest @ ..]) => {
            // Matching is linear in the text, times the size of the pattern at worst.
            evaluator.charge((1 + own.len() / 10).saturating_mul(1 + pattern.len() / 4))?;
            search(name, own, &evaluator.pattern(pattern)?, rest)
        }
        ("lowerAscii", []) => Ok(Val::text(own.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Val::text(own.to_ascii_uppercase())),
        ("trim", []) => Ok(Val::text(own.trim())),
        ("charAt", [Val::Int(place)]) => {
            let length = own.chars().count();
            match usize::try_from(*place) {
                Ok(place) if place < length => {
                    Ok(Val::text(own.chars().nth(place).map(String::from).unwrap_or_default()))
                }
                Ok(place) if place == length => Ok(Val::text("")),
                _ => fault(format!("index out of range: {place}")),
            }
        }
        ("indexOf" | "lastIndexOf", [Val::String(part), rest @ ..]) => {
            position(own, part, rest, name == "lastIndexOf")
        }
        ("substring", [Val::Int(from)]) => substring(own, *from, None),
        ("substring", [Val::Int(from), Val::Int(to)]) => substring(own, *from, Some(*to)),
        ("replace", [Val::String(from), Val::String(to)]) => {
            replace(evaluator, own, &Replacement { from, to, most: -1 })
        }
        ("replace", [Val::String(from), Val::String(to), Val::Int(most)]) => {
            replace(evaluator, own, &Replacement { from, to, most: *most })
        }
        ("split", [Val::String(at)]) => split(evaluator, own, at, -1),
        ("split", [Val::String(at), Val::Int(most)]) => split(evaluator, own, at, *most),
        ("format", [list]) => {
            let items: Vec<Val<'a>> = as_list(list)?.iter().collect();
            printf::format(evaluator, own, &items)
        }
        ("reverse", []) => Ok(Val::text(own.chars().rev().collect::<String>())),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn count<'a>(value: usize) -> Val<'a> {
    Val::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

fn search<'a>(name: &str, own: &str, pattern: &Pattern, rest: &[Val<'a>]) -> Evaluated<'a> {
    let regex = pattern.regex();
    match (name, rest) {
        ("matches", []) => Ok(Val::Bool(regex.is_match(own))),
        ("find", []) => Ok(Val::text(regex.find(own).map_or("", |found| found.as_str()))),
        ("findAll", []) => {
            Ok(Val::list(regex.find_iter(own).map(|found| Val::text(found.as_str())).collect()))
        }
        ("findAll", [Val::Int(most)]) => {
            let most = usize::try_from(*most).unwrap_or(usize::MAX);
            let found = regex.find_iter(own).take(most);
            Ok(Val::list(found.map(|found| Val::text(found.as_str())).collect()))
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

/// The byte at which a character starts; the end of the text counts as one more.
fn byte_of(text: &str, character: i64) -> Option<usize> {
    let character = usize::try_from(character).ok()?;
    let mut places = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    places.nth(character)
}

fn position<'a>(own: &str, part: &str, rest: &[Val<'a>], is_last: bool) -> Evaluated<'a> {
    let start = match rest {
        [] => None,
        [Val::Int(start)] => Some(*start),
        _ => return Err(Fault::NoSuchOverload),
    };
    let found = match (start, is_last) {
        (None, false) => own.find(part),
        (None, true) => own.rfind(part),
        (Some(start), _) => {
            let Some(byte) = byte_of(own, start) else {
                return fault(format!("index out of range: {start}"));
            };
            if is_last {
                // The match may begin at the given place, so what it spans is read too.
                let mut end = (byte + part.len()).min(own.len());
                while !own.is_char_boundary(end) {
                    end += 1;
                }
                own[..end].rmatch_indices(part).map(|(at, _)| at).find(|at| *at <= byte)
            } else {
                own[byte..].find(part).map(|at| at + byte)
            }
        }
    };
    Ok(found.map_or(Val::Int(-1), |byte| count(own[..byte].chars().count())))
}

fn substring<'a>(own: &str, from: i64, to: Option<i64>) -> Evaluated<'a> {
    let end = match to {
        Some(to) => byte_of(own, to),
        None => Some(own.len()),
    };
    match (byte_of(own, from), end) {
        (Some(from), Some(to)) if from <= to => Ok(Val::text(&own[from..to])),
        (Some(_), Some(_)) => {
            fault(format!("invalid substring range. start: {from}, end: {}", to.unwrap_or(0)))
        }
        (None, _) => fault(format!("index out of range: {from}")),
        (_, None) => fault(format!("index out of range: {}", to.unwrap_or(0))),
    }
}

/// What is replaced by what, and how often at most; less than 0 is always.
struct Replacement<'r> {
    from: &'r str,
    to: &'r str,
    most: i64,
}

/// What is replaced may be nothing, and what is put in may be long: the result is paid for before
/// it is made.
fn replace<'a>(
    evaluator: &mut Evaluator<'a>,
    own: &str,
    replacement: &Replacement<'_>,
) -> Evaluated<'a> {
    let Replacement { from, to, most } = *replacement;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let times = own.matches(from).take(most).count();
    evaluator.charge_text(own.len().saturating_add(times.saturating_mul(to.len())))?;
    Ok(Val::text(own.replacen(from, to, most)))
}

fn split<'a>(evaluator: &mut Evaluator<'a>, own: &str, at: &str, most: i64) -> Evaluated<'a> {
    let parts: Vec<Val<'a>> = if at.is_empty() {
        evaluator.charge(own.len())?;
        let characters: Vec<char> = own.chars().collect();
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(characters.len());
        match most {
            0 => Vec::new(),
            _ => {
                let (single, rest) = characters.split_at(most - 1);
                let mut parts: Vec<Val<'a>> =
                    single.iter().map(|c| Val::text(c.to_string())).collect();
                parts.push(Val::text(rest.iter().collect::<String>()));
                parts
            }
        }
    } else {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        own.splitn(most, at).map(Val::text).collect()
    };
    evaluator.charge(parts.len())?;
    Ok(Val::list(parts))
}

/// Texts of a list, with something between them.
pub(super) fn join<'a>(
    evaluator: &mut Evaluator<'a>,
    items: &[Val<'a>],
    between: &str,
) -> Evaluated<'a> {
    let mut out = String::new();
    for (index, item) in items.iter().enumerate() {
        let Val::String(text) = item else { return Err(Fault::NoSuchOverload) };
        evaluator.charge_text(text.len() + between.len())?;
        if index > 0 {
            out.push_str(between);
        }
        out.push_str(text);
    }
    Ok(Val::text(out))
}
