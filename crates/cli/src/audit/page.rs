//! What an audit found, for people.

use crate::words::table;
use interlock_checker::render::thousands;
use interlock_programs::audit::{Finding, Report};
use serde_json::Value;

/// A value longer than this is cut: it is whole in the log, and with -o json.
const LONGEST: usize = 1200;

/// All that was found.
pub(crate) fn report(report: &Report) -> String {
    let (Some(since), Some(until)) = (report.since, report.until) else {
        return "no step is recorded\n".to_owned();
    };
    let mut text = format!(
        "{} steps from {since:.0} to {until:.0}; {} more were the same as the one before\n",
        thousands(report.steps),
        thousands(report.same)
    );
    if report.missing > 0 {
        let missing = thousands(report.missing);
        text += &format!("{missing} steps are missing: after them, promises are audited anew\n");
    }
    if report.unreadable > 0 {
        text += &format!("{} lines cannot be read\n", thousands(report.unreadable));
    }
    for (controller, steps) in &report.not_judged {
        let steps = thousands(*steps);
        text += &format!("{steps} steps of {controller} are not judged: this program has none\n");
    }
    let rows = report.promises.iter().map(|kept| {
        let since = kept.since.map_or_else(|| "-".to_owned(), |since| format!("{since:.0}"));
        vec![kept.promise.to_owned(), since, thousands(kept.broken)]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    text += &format!("\n{}", table(&["PROMISE", "AUDITED SINCE", "BROKEN"], &rows));
    match &report.first {
        None => text += "\nevery step is explained\n",
        Some(first) => {
            text += &format!("\nthe first step that is not explained:\n{}", finding(first))
        }
    }
    text
}

/// The promises.
pub(crate) fn promises(report: &Report) -> String {
    let rows: Vec<Vec<String>> = report
        .promises
        .iter()
        .map(|kept| vec![kept.promise.to_owned(), kept.sentence.to_owned()])
        .collect();
    table(&["PROMISE", "WHAT IT SAYS"], &rows)
}

/// A step that is not explained.
pub(crate) fn finding(finding: &Finding) -> String {
    let at: Vec<String> =
        finding.at.iter().map(|(place, name)| format!("{place} {name}")).collect();
    let mut rows = vec![
        ("promise", format!("{}: {}", finding.promise, finding.sentence)),
        ("wrong", finding.what.clone()),
        ("room", format!("{} ({})", finding.controller, at.join(", "))),
        ("subject", finding.subject.clone()),
        ("step", format!("{} at {}", finding.number, finding.time)),
        ("decided", short(&finding.decided)),
    ];
    rows.extend(finding.version.iter().map(|version| ("by version", version.clone())));
    rows.extend(finding.expected.iter().map(|expected| ("by the rules", short(expected))));
    for fact in &finding.turning_points {
        let value = finding.facts.pointer(fact).map(short).unwrap_or_default();
        rows.push(("fact", format!("{fact} is {value}; another value would explain the step")));
    }
    rows.push(("all facts", short(&finding.facts)));
    rows.iter().map(|(name, value)| format!("  {name:<13}{value}\n")).collect()
}

fn short(value: &Value) -> String {
    let mut text = value.to_string();
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text += " ...";
    }
    text
}
