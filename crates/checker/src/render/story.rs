//! A trace as a story: who did what, and what it changed.

use super::{changes, way, wrap};
use crate::report::{Trace, TraceState};
use std::fmt::Write;

/// Columns of a line.
const WIDTH: usize = 100;
/// Action names up to this long stand in one column.
const NAME: usize = 44;

/// The trace as a numbered story: the first state in full, then each step with what it changed.
pub fn story(name: &str, trace: &Trace) -> String {
    let mut out = format!("{name}: {}\n", way(trace));
    let number = trace.states.len().to_string().len();
    let names = trace.states.iter().filter_map(|state| state.action.as_ref());
    let column = names.map(|name| name.chars().count()).filter(|n| *n <= NAME).max().unwrap_or(0);
    let last = trace.states.len().saturating_sub(1);
    for (place, state) in trace.states.iter().enumerate() {
        let heading = heading(state, column);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:>number$}. {heading}", place + 1);
        if let Some(told) = &state.story {
            paragraph(&mut out, number + 2, "", told);
        }
        let lines = match place.checked_sub(1) {
            None => first(state),
            Some(before) => {
                let changes = changes(&trace.states[before].state, &state.state);
                changes
                    .iter()
                    .map(|change| (change.place.clone() + ":", change.what.clone()))
                    .collect()
            }
        };
        if lines.is_empty() && place > 0 {
            let _ = writeln!(out, "{:number$}    (changes nothing)", "");
        }
        for (place, what) in lines {
            paragraph(&mut out, number + 4, &place, &what);
        }
        if trace.loop_to == Some(place) && place < last {
            let _ = writeln!(out, "{:number$}  -- from here on for ever --", "");
        }
    }
    match trace.loop_to {
        Some(to) if to < last => {
            let _ = writeln!(out, "{:number$}  back to state {}", "", to + 1);
        }
        Some(_) if !trace.states.is_empty() => {
            let _ = writeln!(out, "{:number$}  and rests here for ever", "");
        }
        _ => {}
    }
    out
}

fn heading(state: &TraceState, column: usize) -> String {
    let Some(action) = &state.action else { return "the start".to_owned() };
    let who = match (&state.actor, &state.target) {
        (None, None) => return action.clone(),
        (None, Some(target)) => format!("upon {target}"),
        (Some(actor), Some(target)) if actor != target => format!("by {actor} upon {target}"),
        (Some(actor), _) => format!("by {actor}"),
    };
    format!("{action:column$}   {who}")
}

fn first(state: &TraceState) -> Vec<(String, String)> {
    state.state.0.iter().map(|(name, value)| (format!("{name} ="), value.clone())).collect()
}

/// A name and its text, which goes on below its own beginning.
fn paragraph(out: &mut String, indent: usize, name: &str, text: &str) {
    let hang = indent + 4;
    let whole = format!("{name} {text}").trim_start().to_owned();
    let mut lines = wrap(&whole, WIDTH.saturating_sub(indent)).into_iter();
    let start = lines.next().unwrap_or_default();
    let _ = writeln!(out, "{:indent$}{start}", "");
    let rest: Vec<String> = lines.collect();
    if rest.is_empty() {
        return;
    }
    for line in wrap(&rest.join(" "), WIDTH - hang) {
        let _ = writeln!(out, "{:hang$}{line}", "");
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{small, step};
    use super::*;

    #[test]
    fn a_story_tells_who_did_what_and_what_changed() {
        assert_eq!(
            story("NoMail", &small(None)),
            "\
NoMail: 3 steps
1. the start
     mail = {}
     seen = (a :> FALSE @@ b :> FALSE)
2. Send(a)    by client upon server a
     mail: {} -> {\"m\"}
3. Read(a)    by server a
     seen[a]: FALSE -> TRUE
4. Clear(a)   by server a
     seen[a]: TRUE -> FALSE
"
        );
    }

    #[test]
    fn a_loop_says_where_it_begins_and_where_it_goes_back_to() {
        let told = story("Rests", &small(Some(1)));
        let expected = "\
2. Send(a)    by client upon server a
     mail: {} -> {\"m\"}
   -- from here on for ever --
3. Read(a)    by server a
     seen[a]: FALSE -> TRUE
4. Clear(a)   by server a
     seen[a]: TRUE -> FALSE
   back to state 2
";
        assert!(told.starts_with("Rests: 1 step, then a loop of 2\n"), "{told}");
        assert!(told.ends_with(expected), "{told}");
    }

    #[test]
    fn a_behaviour_that_rests_says_so() {
        let told = story("Moves", &small(Some(3)));
        assert!(told.starts_with("Moves: 3 steps, then rests for ever\n"), "{told}");
        assert!(
            told.ends_with("     seen[a]: TRUE -> FALSE\n   and rests here for ever\n"),
            "{told}"
        );
    }

    #[test]
    fn a_step_that_changes_nothing_is_reported_too() {
        let states = vec![step("", "", &[("x", "1")]), step("Idle", "clock", &[("x", "1")])];
        assert_eq!(
            story("P", &Trace { states, loop_to: None }),
            "P: 1 step\n1. the start\n     x = 1\n2. Idle   by clock\n     (changes nothing)\n"
        );
    }

    #[test]
    fn one_state_and_none_at_all_are_stories() {
        let one = Trace { states: vec![step("", "", &[("x", "1")])], loop_to: None };
        assert_eq!(story("P", &one), "P: at the start\n1. the start\n     x = 1\n");
        let rests = Trace { loop_to: Some(0), ..one };
        assert!(story("P", &rests).ends_with("     x = 1\n   and rests here for ever\n"));
        for loop_to in [None, Some(0), Some(7)] {
            assert_eq!(story("P", &Trace { states: Vec::new(), loop_to }), "P: no states\n");
        }
    }

    #[test]
    fn long_values_go_on_below() {
        let value = format!("({})", ["<<\"r1\", \"d1\">> :> {\"n1\", \"n2\"}"; 6].join(" @@ "));
        let one = Trace { states: vec![step("", "", &[("dpu_hw", &value)])], loop_to: None };
        let told = story("P", &one);
        assert!(told.lines().all(|line| line.chars().count() <= WIDTH), "{told}");
        assert!(told.lines().nth(3).is_some_and(|line| line.starts_with("         ")), "{told}");
    }
}
