//! What became of the mutants, as text for people.

use super::{Ink, counted, wrap};
use crate::mutants::MutantsReport;
use std::fmt::Write;

/// One line for each mutant, what it breaks, and the answer; `color` for a terminal.
pub fn mutants(report: &MutantsReport, color: bool) -> String {
    let column = report.mutants.iter().map(|mutant| mutant.name.len()).max().unwrap_or(0);
    let mut text = format!("mutants of {}\n", report.model);
    for mutant in &report.mutants {
        let verdict = match (&mutant.broken, mutant.steps) {
            (Some(promise), Some(steps)) => {
                let how = counted(steps as usize, "step");
                Ink::Green.on(&format!("killed: {promise} broken in {how}"), color)
            }
            _ => Ink::Red.on("SURVIVED: no promise breaks", color),
        };
        let _ = writeln!(text, "  {:column$}  {verdict}", mutant.name);
        for line in wrap(&mutant.sentence, 94) {
            let _ = writeln!(text, "      {}", Ink::Dim.on(&line, color));
        }
    }
    if !report.unbroken.is_empty() {
        let _ = writeln!(text, "  no mutant breaks: {}", report.unbroken.join(", "));
    }
    let killed = report.mutants.iter().filter(|mutant| mutant.killed).count();
    let all = report.mutants.len();
    let answer = if killed == all {
        Ink::Green.on(&format!("all {all} mutants are killed"), color)
    } else {
        Ink::Red.on(&format!("{} of {all} mutants survive", all - killed), color)
    };
    let _ = writeln!(text, "\n{answer}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::MutantReport;

    fn mutant(name: &str, broken: Option<&str>) -> MutantReport {
        MutantReport {
            name: name.to_owned(),
            sentence: "a rule is left out".to_owned(),
            size: String::new(),
            killed: broken.is_some(),
            broken: broken.map(str::to_owned),
            steps: broken.map(|_| 9),
            distinct_states: 1,
            seconds: 0.0,
            trace: None,
        }
    }

    #[test]
    fn a_survivor_stands_out() {
        let report = MutantsReport {
            model: "m".to_owned(),
            size: String::new(),
            mutants: vec![mutant("no-ack", Some("OneOwner")), mutant("no-lock", None)],
            unbroken: vec!["Other".to_owned()],
        };
        assert_eq!(
            mutants(&report, false),
            "mutants of m\n  \
             no-ack   killed: OneOwner broken in 9 steps\n      a rule is left out\n  \
             no-lock  SURVIVED: no promise breaks\n      a rule is left out\n  \
             no mutant breaks: Other\n\n\
             1 of 2 mutants survive\n"
        );
    }
}
