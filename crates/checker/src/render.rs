//! Reports and traces, drawn: a table, a story, a sequence diagram, a TLA+ module.

mod diagram;
mod mutants;
mod story;
mod table;
mod tla;

pub use diagram::diagram;
pub use mutants::mutants;
pub use story::story;
pub use table::table;
pub use tla::{tla, tla_module_name};

use crate::report::{Trace, Variables};
use std::fmt;

/// Above this many characters, sets and sequences are shown by what they gain and lose.
const LONG: usize = 60;

/// One place of the state that a step changed: `dpu_online["r1", "d1"]: TRUE -> FALSE`.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    place: String,
    what: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// What differs between two states, as narrowly as the values can be read.
fn changes(before: &Variables, after: &Variables) -> Vec<Change> {
    let mut changes = Vec::new();
    for (name, new) in &after.0 {
        match before.0.iter().find(|(known, _)| known == name) {
            Some((_, old)) => narrow(name, old, new, &mut changes),
            None => changes.push(Change { place: (*name).to_owned(), what: format!("= {new}") }),
        }
    }
    changes
}

fn narrow(place: &str, before: &str, after: &str, changes: &mut Vec<Change>) {
    if before == after {
        return;
    }
    let mut change = |what| changes.push(Change { place: place.to_owned(), what });
    match (Parts::of(before), Parts::of(after)) {
        (Parts::Record(old), Parts::Record(new)) => {
            narrow_entries(&old, &new, &|key| format!("{place}.{key}"), changes);
        }
        (Parts::Function(old), Parts::Function(new)) => {
            let at = |key: &str| format!("{place}[{}]", inner(key, "<<", ">>").unwrap_or(key));
            narrow_entries(&old, &new, &at, changes);
        }
        (Parts::Set(old), Parts::Set(new)) if before.len() + after.len() > LONG => {
            let gained: Vec<&str> = new.iter().copied().filter(|x| !old.contains(x)).collect();
            let lost: Vec<&str> = old.iter().copied().filter(|x| !new.contains(x)).collect();
            let said = [("gains", gained), ("loses", lost)]
                .into_iter()
                .filter(|(_, members)| !members.is_empty())
                .map(|(verb, members)| format!("{verb} {{{}}}", members.join(", ")));
            change(said.collect::<Vec<_>>().join(", "));
        }
        (Parts::Sequence(old), Parts::Sequence(new)) if before.len() + after.len() > LONG => {
            change(moved(&old, &new).unwrap_or_else(|| format!("{before} -> {after}")));
        }
        _ => change(format!("{before} -> {after}")),
    }
}

/// What a sequence lost at its head and gained at its end, if that is all that happened to it.
fn moved(old: &[&str], new: &[&str]) -> Option<String> {
    let lost = (0..old.len()).find(|lost| new.starts_with(&old[*lost..]))?;
    let gained = &new[old.len() - lost..];
    let lost = &old[..lost];
    let said = [("loses its head", lost), ("appends", gained)]
        .into_iter()
        .filter(|(_, elements)| !elements.is_empty())
        .map(|(verb, elements)| format!("{verb} <<{}>>", elements.join(", ")));
    Some(said.collect::<Vec<_>>().join(", "))
}

fn narrow_entries(
    old: &[(&str, &str)],
    new: &[(&str, &str)],
    place: &dyn Fn(&str) -> String,
    changes: &mut Vec<Change>,
) {
    let find =
        |entries: &[(&str, &str)], key: &str| entries.iter().position(|(known, _)| *known == key);
    for (key, value) in new {
        match find(old, key) {
            Some(at) => narrow(&place(key), old[at].1, value, changes),
            None => changes.push(Change { place: place(key), what: format!("absent -> {value}") }),
        }
    }
    for (key, value) in old.iter().filter(|(key, _)| find(new, key).is_none()) {
        changes.push(Change { place: place(key), what: format!("{value} -> absent") });
    }
}

/// A TLA+ value taken apart at its outermost level.
enum Parts<'a> {
    Record(Vec<(&'a str, &'a str)>),
    Function(Vec<(&'a str, &'a str)>),
    Set(Vec<&'a str>),
    Sequence(Vec<&'a str>),
    Plain,
}

impl<'a> Parts<'a> {
    fn of(value: &'a str) -> Parts<'a> {
        let pairs = |text, between, within| {
            let parts = split(text, between).into_iter();
            parts.map(|part| split_once(part, within)).collect::<Option<Vec<_>>>()
        };
        if let Some(record) = inner(value, "[", "]").and_then(|text| pairs(text, ",", "|->")) {
            return Parts::Record(record);
        }
        if let Some(function) = inner(value, "(", ")").and_then(|text| pairs(text, "@@", ":>")) {
            return Parts::Function(function);
        }
        let items = |text: &'a str| if text.is_empty() { Vec::new() } else { split(text, ",") };
        if let Some(sequence) = inner(value, "<<", ">>") {
            return Parts::Sequence(items(sequence));
        }
        inner(value, "{", "}").map_or(Parts::Plain, |members| Parts::Set(items(members)))
    }
}

/// What is between a bracket and the one that closes it, if that is the whole text.
fn inner<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let inner = text.strip_prefix(open)?.strip_suffix(close)?;
    let mut lowest = 0;
    scan(inner, |_, depth| lowest = depth.min(lowest));
    (lowest == 0).then(|| inner.trim())
}

/// The parts of a text between separators that are in no bracket and in no string.
fn split<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let mut places = Vec::new();
    scan(text, |at, depth| {
        if depth == 0 && text.as_bytes()[at..].starts_with(separator.as_bytes()) {
            places.push(at);
        }
    });
    let mut parts = Vec::new();
    let mut start = 0;
    for place in places {
        parts.push(text[start..place].trim());
        start = place + separator.len();
    }
    parts.push(text[start..].trim());
    parts
}

fn split_once<'a>(text: &'a str, separator: &str) -> Option<(&'a str, &'a str)> {
    match split(text, separator)[..] {
        [key, value] => Some((key, value)),
        _ => None,
    }
}

/// Visits each place outside of strings with the number of brackets that are open there.
fn scan(text: &str, mut visit: impl FnMut(usize, i32)) {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut in_string) = (0, 0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let mut width = 1;
        match rest[0] {
            b'\\' if in_string => width = 2,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'<' | b'>' if rest.starts_with(b"<<") || rest.starts_with(b">>") => {
                depth += if rest[0] == b'<' { 1 } else { -1 };
                width = 2;
            }
            b'[' | b'(' | b'{' => depth += 1,
            b']' | b')' | b'}' => depth -= 1,
            _ => {}
        }
        if !in_string {
            visit(at, depth);
        }
        at += width;
    }
}

/// The colours of a terminal.
#[derive(Clone, Copy)]
enum Ink {
    Green,
    Red,
    Yellow,
    Dim,
}

impl Ink {
    fn on(self, text: &str, color: bool) -> String {
        let code = match self {
            Ink::Green => 32,
            Ink::Red => 31,
            Ink::Yellow => 33,
            Ink::Dim => 2,
        };
        if color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// How a trace goes, in words: `2 steps, then a loop of 18`.
fn way(trace: &Trace) -> String {
    let last = trace.states.len().saturating_sub(1);
    match trace.loop_to {
        _ if trace.states.is_empty() => "no states".to_owned(),
        None if last == 0 => "at the start".to_owned(),
        None => counted(last, "step"),
        Some(to) => lasso(to.min(last), last - to.min(last)),
    }
}

fn lasso(prefix: usize, circle: usize) -> String {
    match (prefix, circle) {
        (0, 0) => "rests at the start for ever".to_owned(),
        (0, _) => format!("a loop of {circle} from the start"),
        (_, 0) => format!("{}, then rests for ever", counted(prefix, "step")),
        _ => format!("{}, then a loop of {circle}", counted(prefix, "step")),
    }
}

fn counted(count: usize, what: &str) -> String {
    let number = thousands(count as u64);
    if count == 1 { format!("{number} {what}") } else { format!("{number} {what}s") }
}

/// A number with its thousands set apart: `86,159,297,664`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.01 => format!("{:.1} ms", s * 1e3),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s => format!("{} min {:02} s", s as u64 / 60, s as u64 % 60),
    }
}

/// The text in lines of at most `width` characters, broken at spaces where there are any.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
            used = 0;
        }
        while used == 0 && word.len() > width {
            let rest = word.split_off(width);
            lines.last_mut().into_iter().for_each(|line| line.extend(&word));
            lines.push(String::new());
            word = rest;
        }
        let line = lines.last_mut().into_iter();
        line.for_each(|line| {
            if used > 0 {
                line.push(' ');
            }
            line.extend(&word);
        });
        used += word.len() + usize::from(used > 0);
    }
    lines
}

/// The text, or its beginning if it is longer than `width` characters.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::TraceState;

    /// A step by `by` (`actor>target`), and the variables after it.
    pub(super) fn step(action: &str, by: &str, state: &[(&'static str, &str)]) -> TraceState {
        let (actor, target) = by.split_once('>').map_or((by, None), |(a, t)| (a, Some(t)));
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        TraceState {
            action: some(action),
            actor: some(actor),
            target: target.map(str::to_owned),
            story: None,
            state: Variables(state.iter().map(|(n, v)| (*n, (*v).to_owned())).collect()),
        }
    }

    /// A request that is sent, read, and asked for again for ever.
    pub(super) fn small(loop_to: Option<usize>) -> Trace {
        let state = |mail, seen| [("mail", mail), ("seen", seen)];
        Trace {
            states: vec![
                step("", "", &state("{}", "(a :> FALSE @@ b :> FALSE)")),
                step("Send(a)", "client>server a", &state("{\"m\"}", "(a :> FALSE @@ b :> FALSE)")),
                step("Read(a)", "server a", &state("{\"m\"}", "(a :> TRUE @@ b :> FALSE)")),
                step("Clear(a)", "server a", &state("{\"m\"}", "(a :> FALSE @@ b :> FALSE)")),
            ],
            loop_to,
        }
    }

    fn change(before: &str, after: &str) -> String {
        let state = |value: &str| Variables(vec![("x", value.to_owned())]);
        let lines: Vec<_> =
            changes(&state(before), &state(after)).iter().map(Change::to_string).collect();
        lines.join("; ")
    }

    #[test]
    fn only_the_entries_that_changed_are_shown() {
        assert_eq!(change("1", "1"), "");
        assert_eq!(change("1", "2"), "x: 1 -> 2");
        assert_eq!(change("[a |-> 1, b |-> 2]", "[a |-> 1, b |-> 3]"), "x.b: 2 -> 3");
        assert_eq!(
            change("(a :> 1 @@ b :> 2)", "(a :> 4 @@ b :> 3)"),
            "x[a]: 1 -> 4; x[b]: 2 -> 3"
        );
        assert_eq!(
            change("(<<\"r\", 1>> :> {} @@ k :> 2)", "(<<\"r\", 1>> :> {3} @@ k :> 2)"),
            "x[\"r\", 1]: {} -> {3}"
        );
        assert_eq!(
            change("(a :> [s |-> <<1, 2>>, t |-> 0])", "(a :> [s |-> <<1>>, t |-> 0])"),
            "x[a].s: <<1, 2>> -> <<1>>"
        );
    }

    #[test]
    fn entries_that_come_and_go_are_named() {
        assert_eq!(change("(a :> 1)", "(a :> 1 @@ b :> 2)"), "x[b]: absent -> 2");
        assert_eq!(change("[a |-> 1, b |-> 2]", "[b |-> 2]"), "x.a: 1 -> absent");
    }

    #[test]
    fn separators_inside_strings_and_brackets_do_not_count() {
        assert_eq!(
            change("[a |-> \", b |-> ]\\\"\", c |-> 1]", "[a |-> \", b |-> ]\\\"\", c |-> 2]"),
            "x.c: 1 -> 2"
        );
        assert_eq!(change("(a) + (b)", "(a) + (c)"), "x: (a) + (b) -> (a) + (c)");
        assert_eq!(change("[1 2", "]["), "x: [1 2 -> ][");
    }

    #[test]
    fn a_long_set_tells_what_it_gains_and_loses() {
        let set = |members: &[&str]| format!("{{{}}}", members.join(", "));
        let before = ["\"operator\"", "\"scheduler\"", "\"controller\""];
        let after = ["\"operator\"", "\"controller\"", "\"syncer\""];
        assert_eq!(
            change(&set(&before), &set(&after)),
            "x: gains {\"syncer\"}, loses {\"scheduler\"}"
        );
    }

    #[test]
    fn a_long_sequence_tells_what_it_appends_and_loses() {
        let (a, b, c) = ("[kind |-> \"request\"]", "[kind |-> \"reply\"]", "[kind |-> \"retry\"]");
        let sequence = |elements: &[&str]| format!("<<{}>>", elements.join(", "));
        let told = |old: &[&str], new: &[&str]| change(&sequence(old), &sequence(new));
        assert_eq!(told(&[a, b], &[a, b, c]), format!("x: appends <<{c}>>"));
        assert_eq!(told(&[a, b, c], &[b, c]), format!("x: loses its head <<{a}>>"));
        assert_eq!(told(&[a, b], &[b, c]), format!("x: loses its head <<{a}>>, appends <<{c}>>"));
        assert_eq!(told(&[a, b], &[c, b, a]), format!("x: <<{a}, {b}>> -> <<{c}, {b}, {a}>>"));
        assert_eq!(told(&[a, b, c], &[]), format!("x: <<{a}, {b}, {c}>> -> <<>>"));
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_break_anywhere() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(cut("größer", 4), "grö…");
    }

    #[test]
    fn numbers_and_lengths_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(37_396_136), "37,396,136");
        assert_eq!(way(&small(None)), "3 steps");
        assert_eq!(way(&small(Some(1))), "1 step, then a loop of 2");
        assert_eq!(way(&small(Some(3))), "3 steps, then rests for ever");
        assert_eq!(way(&small(Some(0))), "a loop of 3 from the start");
        assert_eq!(way(&Trace { states: Vec::new(), loop_to: Some(3) }), "no states");
    }
}
