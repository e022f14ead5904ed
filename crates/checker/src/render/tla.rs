//! A trace as a TLA+ module, for TLC and other tools to read.

use crate::report::Trace;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Names that mean something already where the trace is written: a model value of that name gets an
/// underscore.
const TAKEN: [&str; 34] = [
    "Trace",
    "Actions",
    "LoopTo",
    "Naturals",
    "Integers",
    "Sequences",
    "TLC",
    "Seq",
    "Len",
    "Append",
    "Head",
    "Tail",
    "SubSeq",
    "SelectSeq",
    "Print",
    "PrintT",
    "Assert",
    "JavaTime",
    "TLCGet",
    "TLCSet",
    "Permutations",
    "SortSeq",
    "RandomElement",
    "Any",
    "ToString",
    "TLCEval",
    "LET",
    "IN",
    "IF",
    "THEN",
    "ELSE",
    "CASE",
    "CHOOSE",
    "DOMAIN",
];

/// Names that stand for themselves.
const BUILT_IN: [&str; 6] = ["TRUE", "FALSE", "BOOLEAN", "STRING", "Nat", "Int"];

/// The trace as a TLA+ module: its states, its actions, and the place it loops back to. It belongs
/// in a file named after [`tla_module_name`].
pub fn tla(module: &str, trace: &Trace) -> String {
    let module = tla_module_name(module);
    let mut constants = BTreeSet::new();
    let mut has_negative = false;
    let mut states = Vec::new();
    for state in &trace.states {
        let variables = state.state.0.iter().map(|(name, value)| {
            let value = Value::read(value, &module);
            constants.extend(value.constants);
            has_negative |= value.has_negative;
            format!("{} |-> {}", identifier(name), value.text)
        });
        states.push(format!("[ {} ]", variables.collect::<Vec<_>>().join(",\n    ")));
    }
    let actions: Vec<String> = trace
        .states
        .iter()
        .map(|state| quoted(state.action.as_deref().unwrap_or("Init")))
        .collect();
    let numbers = if has_negative { "Integers" } else { "Naturals" };
    let mut out = format!("---- MODULE {module} ----\nEXTENDS {numbers}, Sequences, TLC\n\n");
    // Writing to a string cannot fail.
    if !constants.is_empty() {
        let names: Vec<String> = constants.into_iter().collect();
        let _ = writeln!(out, "CONSTANTS {}\n", names.join(", "));
    }
    let _ = writeln!(out, "\\* The states, the initial one first.\n{}", sequence("Trace", &states));
    let _ = writeln!(out, "\\* The actions that led to them.\n{}", sequence("Actions", &actions));
    let loop_to = trace.loop_to.filter(|to| *to < trace.states.len()).map_or(0, |to| to + 1);
    let _ = writeln!(
        out,
        "\\* The last state is this one again, and so on for ever; 0 if the trace just ends.\n\
         LoopTo == {loop_to}\n===="
    );
    out
}

/// The nearest name that a TLA+ module can have.
pub fn tla_module_name(text: &str) -> String {
    let name = identifier(text);
    match name.as_str() {
        "" => "Counterexample".to_owned(),
        name if TAKEN.contains(&name) || BUILT_IN.contains(&name) => format!("{name}_"),
        _ => name,
    }
}

fn identifier(text: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = text.chars().map(legal).collect();
    match name.trim_matches('_') {
        "" => String::new(),
        // `WF_` and `SF_` begin fairness conditions, a digit begins a number.
        trimmed
            if trimmed.starts_with(|c: char| c.is_ascii_digit())
                || trimmed.starts_with("WF_")
                || trimmed.starts_with("SF_") =>
        {
            format!("M{name}")
        }
        _ => name,
    }
}

fn sequence(name: &str, items: &[String]) -> String {
    if items.is_empty() {
        return format!("{name} == << >>\n");
    }
    format!("{name} == <<\n  {}\n>>\n", items.join(",\n  "))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A value, and what it needs to be read.
struct Value {
    text: String,
    constants: BTreeSet<String>,
    has_negative: bool,
}

impl Value {
    fn read(text: &str, module: &str) -> Value {
        let mut value =
            Value { text: String::new(), constants: BTreeSet::new(), has_negative: false };
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = token(rest, first);
            let (word, after) = rest.split_at(length);
            let negative =
                first == '-' && after.trim_start().starts_with(|c: char| c.is_ascii_digit());
            value.has_negative |= negative || word == "Int";
            value.word(word, after, module);
            rest = after;
        }
        value
    }

    fn word(&mut self, word: &str, after: &str, module: &str) {
        self.text.push_str(word);
        let is_name = word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && word.contains(|c: char| c.is_ascii_alphabetic());
        if !is_name || BUILT_IN.contains(&word) || after.trim_start().starts_with("|->") {
            return;
        }
        let mut name = word.to_owned();
        if TAKEN.contains(&word) || word == module {
            self.text.push('_');
            name.push('_');
        }
        self.constants.insert(name);
    }
}

/// How long the string, the name or the number at the beginning is; anything else is one character.
fn token(text: &str, first: char) -> usize {
    if first == '"' {
        let mut escaped = false;
        for (at, c) in text.char_indices().skip(1) {
            match c {
                '"' if !escaped => return at + 1,
                _ => escaped = c == '\\' && !escaped,
            }
        }
        return text.len();
    }
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if in_name(first) {
        return text.find(|c: char| !in_name(c)).unwrap_or(text.len());
    }
    // An arrow is no minus sign.
    if text.starts_with("|->") { 3 } else { first.len_utf8() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{small, step};
    use super::*;

    #[test]
    fn a_trace_is_a_module() {
        assert_eq!(
            tla("NoMail", &small(Some(1))),
            r#"---- MODULE NoMail ----
EXTENDS Naturals, Sequences, TLC

CONSTANTS a, b

\* The states, the initial one first.
Trace == <<
  [ mail |-> {},
    seen |-> (a :> FALSE @@ b :> FALSE) ],
  [ mail |-> {"m"},
    seen |-> (a :> FALSE @@ b :> FALSE) ],
  [ mail |-> {"m"},
    seen |-> (a :> TRUE @@ b :> FALSE) ],
  [ mail |-> {"m"},
    seen |-> (a :> FALSE @@ b :> FALSE) ]
>>

\* The actions that led to them.
Actions == <<
  "Init",
  "Send(a)",
  "Read(a)",
  "Clear(a)"
>>

\* The last state is this one again, and so on for ever; 0 if the trace just ends.
LoopTo == 2
====
"#
        );
    }

    fn constants(value: &str) -> Vec<String> {
        Value::read(value, "M").constants.into_iter().collect()
    }

    #[test]
    fn bare_names_are_constants_but_fields_strings_and_numbers_are_not() {
        assert_eq!(constants("(c1 :> nil @@ c2 :> A)"), ["A", "c1", "c2", "nil"]);
        assert_eq!(constants("[t1 |-> TRUE, t2|->x_1, n |-> 12]"), ["x_1"]);
        assert_eq!(constants(r#"<<"a \" b", "c">>"#), Vec::<String>::new());
        assert_eq!(constants(r#"{"\\", d}"#), ["d"]);
        assert_eq!(constants("\"never closed"), Vec::<String>::new());
    }

    #[test]
    fn names_that_are_taken_get_an_underscore() {
        let value = Value::read("{Len, Trace, M, fine, [Len |-> 1]}", "M");
        assert_eq!(value.text, "{Len_, Trace_, M_, fine, [Len |-> 1]}");
        assert_eq!(
            value.constants.into_iter().collect::<Vec<_>>(),
            ["Len_", "M_", "Trace_", "fine"]
        );
    }

    #[test]
    fn negative_numbers_need_the_integers() {
        let of = |value| Trace { states: vec![step("", "", &[("x", value)])], loop_to: None };
        assert!(tla("M", &of("[a |-> -1]")).contains("EXTENDS Integers, "));
        assert!(tla("M", &of("[a |-> 1]")).contains("EXTENDS Naturals, "));
    }

    #[test]
    fn module_names_are_made_legal() {
        assert_eq!(tla_module_name("seed/kcp-storage: Inv A"), "seed_kcp_storage__Inv_A");
        assert_eq!(tla_module_name("2pc"), "M2pc");
        assert_eq!(tla_module_name("WF_x"), "MWF_x");
        assert_eq!(tla_module_name("Trace"), "Trace_");
        assert_eq!(tla_module_name("-"), "Counterexample");
        assert_eq!(tla_module_name(""), "Counterexample");
    }

    #[test]
    fn action_names_are_quoted() {
        assert_eq!(quoted("Say(\"a\\b\")"), r#""Say(\"a\\b\")""#);
    }

    #[test]
    fn an_empty_trace_is_a_module_too() {
        let text = tla("M", &Trace { states: Vec::new(), loop_to: Some(4) });
        assert!(text.contains("Trace == << >>\n"), "{text}");
        assert!(text.contains("Actions == << >>\n"), "{text}");
        assert!(text.contains("LoopTo == 0\n"), "{text}");
    }
}
