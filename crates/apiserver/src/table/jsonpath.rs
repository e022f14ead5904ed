//! JSONPath, as far as printer columns need it: `.spec.x`, `['x']`, `[0]`, `[?(@.type=="Ready")]`.
//!
//! It follows client-go's dialect, with its oddities: a dot inside `['x.y']` still separates fields
//! unless it is written `\.`, and a list that is indexed beyond its end makes the whole path come
//! to nothing.

use serde_json::Value;
use std::cmp::Ordering;

/// No column needs more; a longer one is refused like one that does not parse.
const LONGEST_TEXT: usize = 4_096;
/// Filters and unions inside each other.
const DEEPEST_NESTING: usize = 4;
/// `..` visits the same value often. A path that finds more than this comes to nothing.
const MOST_RESULTS: usize = 10_000;

/// A path that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

/// The text is no path, or one of a kind that columns do not use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotAPath;

/// The path does not fit the object: a field of a text, an index beyond the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DoesNotFit;

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Union(Vec<Vec<Step>>),
    Filter { left: Vec<Step>, comparison: Option<(Operator, Vec<Step>)> },
    Literal(Value),
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: End,
    step: Option<i64>,
}

/// Where a slice ends: `[2]` ends one after its start, `[2:]` at the end of the list.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    OneAfterStart,
    OfList,
    At(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Reads a path without its braces.
    pub(crate) fn parse(text: &str) -> Result<JsonPath, NotAPath> {
        if text.len() > LONGEST_TEXT {
            return Err(NotAPath);
        }
        Ok(JsonPath { steps: steps(text, 0)? })
    }

    /// The first thing that the path leads to.
    pub(crate) fn first<'a>(&'a self, object: &'a Value) -> Option<&'a Value> {
        walk(&self.steps, vec![object]).ok()?.into_iter().next()
    }
}

fn steps(text: &str, nesting: usize) -> Result<Vec<Step>, NotAPath> {
    if nesting > DEEPEST_NESTING {
        return Err(NotAPath);
    }
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        rest = match next {
            ' ' | '@' | '$' => &rest[1..],
            '[' if rest.starts_with("[?(") => filter(rest, nesting, &mut steps)?,
            '[' => brackets(rest, nesting, &mut steps)?,
            '.' if rest.starts_with("..") => recursive(rest, &mut steps)?,
            '.' => field(&rest[1..], &mut steps),
            '"' | '\'' => quoted(rest, next, &mut steps)?,
            '+' | '-' | '0'..='9' => literal_number(rest, &mut steps)?,
            _ if rest.starts_with("true") => literal_bool(rest, true, &mut steps),
            _ if rest.starts_with("false") => literal_bool(rest, false, &mut steps),
            _ => return Err(NotAPath),
        };
    }
    Ok(steps)
}

fn is_end_of_field(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> &'a str {
    let mut name = String::new();
    let mut letters = text.char_indices();
    let mut end = text.len();
    while let Some((place, letter)) = letters.next() {
        if letter == '\\' {
            if let Some((_, escaped)) = letters.next() {
                name.push(escaped);
            }
            continue;
        }
        if is_end_of_field(letter) {
            end = place;
            break;
        }
        name.push(letter);
    }
    steps.push(if name == "*" { Step::Wildcard } else { Step::Field(name) });
    &text[end..]
}

fn recursive<'a>(text: &'a str, steps: &mut Vec<Step>) -> Result<&'a str, NotAPath> {
    if steps.last() == Some(&Step::Recursive) {
        return Err(NotAPath);
    }
    steps.push(Step::Recursive);
    let rest = &text[2..];
    match rest.chars().next() {
        Some(letter) if letter == '_' || letter.is_alphanumeric() => Ok(field(rest, steps)),
        _ => Ok(rest),
    }
}

fn quoted<'a>(text: &'a str, quote: char, steps: &mut Vec<Step>) -> Result<&'a str, NotAPath> {
    let mut content = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((place, letter)) = letters.next() {
        if letter == quote {
            steps.push(Step::Literal(Value::String(content)));
            return Ok(&text[place + 1..]);
        }
        let letter = match letter {
            '\n' => return Err(NotAPath),
            '\\' => match letters.next() {
                Some((_, 'n')) => '\n',
                Some((_, 't')) => '\t',
                Some((_, escaped @ ('\\' | '"' | '\''))) => escaped,
                _ => return Err(NotAPath),
            },
            plain => plain,
        };
        content.push(letter);
    }
    Err(NotAPath)
}

fn literal_number<'a>(text: &'a str, steps: &mut Vec<Step>) -> Result<&'a str, NotAPath> {
    let signs = usize::from(text.starts_with(['+', '-']));
    let end = text[signs..]
        .find(|letter: char| letter != '.' && !letter.is_ascii_digit())
        .map_or(text.len(), |end| end + signs);
    let number = &text[..end];
    let value = match number.parse::<i64>() {
        Ok(whole) => Value::from(whole),
        Err(_) => Value::from(number.parse::<f64>().map_err(|_| NotAPath)?),
    };
    steps.push(Step::Literal(value));
    Ok(&text[end..])
}

fn literal_bool<'a>(text: &'a str, value: bool, steps: &mut Vec<Step>) -> &'a str {
    steps.push(Step::Literal(Value::Bool(value)));
    &text[if value { 4 } else { 5 }..]
}

fn brackets<'a>(text: &'a str, nesting: usize, into: &mut Vec<Step>) -> Result<&'a str, NotAPath> {
    let end = text.find(']').ok_or(NotAPath)?;
    let (inside, rest) = (&text[1..end], &text[end + 1..]);
    if inside.contains('\n') {
        return Err(NotAPath);
    }
    if inside.contains(',') {
        let members: Result<Vec<_>, _> =
            inside.split(',').map(|one| steps(&format!("[{}]", one.trim()), nesting + 1)).collect();
        into.push(Step::Union(members?));
        return Ok(rest);
    }
    let key = inside.strip_prefix('\'').and_then(|inside| inside.strip_suffix('\''));
    if let Some(key) = key.filter(|key| !key.contains('\'')) {
        into.extend(steps(&format!(".{key}"), nesting + 1)?);
        return Ok(rest);
    }
    into.push(Step::Slice(slice(if inside == "*" { ":" } else { inside })?));
    Ok(rest)
}

fn slice(text: &str) -> Result<Slice, NotAPath> {
    let bound = |text: &str| -> Result<Option<i64>, NotAPath> {
        if text.is_empty() {
            return Ok(None);
        }
        text.parse::<i32>().map(|number| Some(i64::from(number))).map_err(|_| NotAPath)
    };
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        [""] => Err(NotAPath),
        [index] => Ok(Slice { start: bound(index)?, end: End::OneAfterStart, step: None }),
        [start, end] | [start, end, ""] => Ok(Slice {
            start: bound(start)?,
            end: bound(end)?.map_or(End::OfList, End::At),
            step: None,
        }),
        [start, end, step] => Ok(Slice {
            start: bound(start)?,
            end: bound(end)?.map_or(End::OfList, End::At),
            step: bound(step)?,
        }),
        _ => Err(NotAPath),
    }
}

fn filter<'a>(text: &'a str, nesting: usize, into: &mut Vec<Step>) -> Result<&'a str, NotAPath> {
    let inside = &text[3..];
    let end = end_of_filter(inside).ok_or(NotAPath)?;
    let rest = inside[end + 1..].strip_prefix(']').ok_or(NotAPath)?;
    let inside = &inside[..end];
    let is_comparing = |letter: char| matches!(letter, '!' | '<' | '>' | '=');
    let Some(start) = inside.find(is_comparing).filter(|start| *start > 0) else {
        into.push(Step::Filter { left: steps(inside, nesting + 1)?, comparison: None });
        return Ok(rest);
    };
    let (left, right) = inside.split_at(start);
    let length = right.find(|letter| !is_comparing(letter)).ok_or(NotAPath)?;
    let operator = match &right[..length] {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        _ => return Err(NotAPath),
    };
    into.push(Step::Filter {
        left: steps(left, nesting + 1)?,
        comparison: Some((operator, steps(&right[length..], nesting + 1)?)),
    });
    Ok(rest)
}

/// The place of the parenthesis that closes a filter; those in quotes do not count.
fn end_of_filter(text: &str) -> Option<usize> {
    let mut open_quote = None;
    let mut before = ' ';
    for (place, letter) in text.char_indices() {
        match (letter, open_quote) {
            ('\n', _) => return None,
            ('"' | '\'', None) => open_quote = Some(letter),
            ('"' | '\'', Some(quote)) if quote == letter && before != '\\' => open_quote = None,
            (')', None) => return Some(place),
            _ => {}
        }
        before = letter;
    }
    None
}

fn walk<'a>(steps: &'a [Step], from: Vec<&'a Value>) -> Result<Vec<&'a Value>, DoesNotFit> {
    let mut here = from;
    for step in steps {
        let mut next = Vec::new();
        for value in here {
            take(step, value, &mut next)?;
            if next.len() > MOST_RESULTS {
                return Err(DoesNotFit);
            }
        }
        here = next;
    }
    Ok(here)
}

fn take<'a>(step: &'a Step, value: &'a Value, into: &mut Vec<&'a Value>) -> Result<(), DoesNotFit> {
    match step {
        Step::Literal(literal) => into.push(literal),
        Step::Field(name) => into.extend(value.get(name.as_str())),
        Step::Wildcard => into.extend(children(value)),
        Step::Recursive => descend(value, into)?,
        Step::Slice(slice) => {
            if !value.is_null() {
                cut(value.as_array().ok_or(DoesNotFit)?, *slice, into)?;
            }
        }
        Step::Union(members) => {
            for member in members {
                into.extend(walk(member, vec![value])?);
            }
        }
        Step::Filter { left, comparison } => {
            for element in value.as_array().ok_or(DoesNotFit)? {
                if passes(left, comparison.as_ref(), element)? {
                    into.push(element);
                }
            }
        }
    }
    Ok(())
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(object) => Box::new(object.values()),
        Value::Array(list) => Box::new(list.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Box::new(std::iter::empty())
        }
    }
}

/// The value and everything below it that has something below it. Objects are no deeper than the
/// decoder lets them be.
fn descend<'a>(value: &'a Value, into: &mut Vec<&'a Value>) -> Result<(), DoesNotFit> {
    if into.len() > MOST_RESULTS {
        return Err(DoesNotFit);
    }
    if children(value).next().is_none() {
        return Ok(());
    }
    into.push(value);
    children(value).try_for_each(|child| descend(child, into))
}

fn cut<'a>(list: &'a [Value], slice: Slice, into: &mut Vec<&'a Value>) -> Result<(), DoesNotFit> {
    let length = i64::try_from(list.len()).map_err(|_| DoesNotFit)?;
    let from_end = |place: i64| if place < 0 { place + length } else { place };
    let first = from_end(slice.start.unwrap_or(0));
    let last = match slice.end {
        End::OneAfterStart => first + 1,
        End::OfList => length,
        End::At(place) => from_end(place),
    };
    if first == last {
        return Ok(());
    }
    if first < 0 || first >= length || last < first || last > length {
        return Err(DoesNotFit);
    }
    let step = usize::try_from(slice.step.unwrap_or(1)).map_err(|_| DoesNotFit)?;
    if step == 0 {
        return Err(DoesNotFit);
    }
    let range = usize::try_from(first).map_err(|_| DoesNotFit)?
        ..usize::try_from(last).map_err(|_| DoesNotFit)?;
    into.extend(list.get(range).ok_or(DoesNotFit)?.iter().step_by(step));
    Ok(())
}

fn passes<'a>(
    left: &'a [Step],
    comparison: Option<&'a (Operator, Vec<Step>)>,
    element: &'a Value,
) -> Result<bool, DoesNotFit> {
    let Some((operator, right)) = comparison else {
        return Ok(walk(left, vec![element]).is_ok_and(|found| !found.is_empty()));
    };
    let (lefts, rights) = (walk(left, vec![element])?, walk(right, vec![element])?);
    match (&lefts[..], &rights[..]) {
        ([], _) => Ok(false),
        ([_], []) => Ok(false),
        ([left], [right]) => compares(*operator, left, right),
        _ => Err(DoesNotFit),
    }
}

fn compares(operator: Operator, left: &Value, right: &Value) -> Result<bool, DoesNotFit> {
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => match operator {
            Operator::Equal | Operator::NotEqual => left.cmp(right),
            Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => return Err(DoesNotFit),
        },
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => {
            match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => left.cmp(&right),
                _ => left.as_f64().partial_cmp(&right.as_f64()).ok_or(DoesNotFit)?,
            }
        }
        _ => return Err(DoesNotFit),
    };
    Ok(match operator {
        Operator::Equal => order == Ordering::Equal,
        Operator::NotEqual => order != Ordering::Equal,
        Operator::Less => order == Ordering::Less,
        Operator::LessOrEqual => order != Ordering::Greater,
        Operator::Greater => order == Ordering::Greater,
        Operator::GreaterOrEqual => order != Ordering::Less,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(path: &str) -> Value {
        let object = json!({
            "spec": {
                "replicas": 3, "a.b": "dotted", "nodes": ["x", "y", "z"], "deep": {"name": "n"},
            },
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "age": 5},
                {"type": "Seen", "status": "False", "age": 9},
            ]},
        });
        let Ok(path) = JsonPath::parse(path) else { return json!("not a path") };
        path.first(&object).cloned().unwrap_or_default()
    }

    #[test]
    fn paths_lead_where_client_go_leads() {
        for (path, value) in [
            (".spec.replicas", json!(3)),
            (".spec['replicas']", json!(3)),
            (".spec['a\\.b']", json!("dotted")),
            (".spec.a\\.b", json!("dotted")),
            (".spec['deep.name']", json!("n")),
            (".spec.nodes[1]", json!("y")),
            (".spec.nodes[-1]", json!("z")),
            (".spec.nodes[1:]", json!("y")),
            (".spec.nodes[*]", json!("x")),
            (".spec.nodes[2,0]", json!("z")),
            (".spec.nodes[7]", json!(null)),
            (".spec.nodes.name", json!(null)),
            (".spec..name", json!("n")),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
            (".status.conditions[?(@.type=='Seen')].status", json!("False")),
            (".status.conditions[?(@.type != \"Ready\")].status", json!("False")),
            (".status.conditions[?(@.age>5)].type", json!("Seen")),
            (".status.conditions[?(@.age>=5)].type", json!("Ready")),
            (".status.conditions[?(@.missing)].type", json!(null)),
            (".status.conditions[?(@.age)].type", json!("Ready")),
            (".status.conditions[?(@.age==\"5\")].type", json!(null)),
            (".spec[?(@.type==\"Ready\")]", json!(null)),
            (".spec.nodes[", json!("not a path")),
            (".spec.nodes[x]", json!("not a path")),
            (".spec.nodes[?(@.a==\"b\"]", json!("not a path")),
            (".a....b", json!("not a path")),
        ] {
            assert_eq!(found(path), value, "{path}");
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        let mut state: u64 = 0x2545_F491_4F6C_DD1D;
        let words = [
            ".",
            "..",
            "[",
            "]",
            "[?(",
            ")]",
            "@",
            "$",
            "'",
            "\"",
            "\\",
            "spec",
            "nodes",
            "*",
            ":",
            "-1",
            "0",
            "==",
            "<",
            "true",
            ",",
            "é",
            " ",
            "\n",
            "{",
            "(",
            "9999999999999",
        ];
        let object = json!({"spec": {"nodes": [[1], {"spec": [true, null]}, "é"]}});
        for _ in 0..20_000 {
            let mut text = String::from(".spec");
            for _ in 0..12 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                text.push_str(words[(state % words.len() as u64) as usize]);
            }
            if let Ok(path) = JsonPath::parse(&text) {
                let _ = path.first(&object);
            }
        }
    }
}
