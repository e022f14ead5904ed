//! A report as text for people: what was explored, each promise, the answer, the next command.

use super::{Ink, counted, duration, lasso, thousands, wrap};
use crate::model::Covers;
use crate::report::{Finding, PropertyFinding, Reduction, Report, Verdict};
use std::fmt::Write;

/// Columns of a line.
const WIDTH: usize = 100;
/// More unused actions than this are not listed one by one.
const MANY_ACTIONS: usize = 10;
/// How far explanations are set in.
const INDENT: usize = 6;

/// The report as a table for people. `command` is how this check was asked for, and begins the next
/// one; `color` for a terminal.
pub fn table(report: &Report, command: &str, color: bool) -> String {
    let mut page = Page { out: String::new(), color, column: column(report) };
    if !report.complete {
        let why = report.stopped.as_deref().unwrap_or("not every state was seen");
        let line = format!("not complete: {why}; the verdicts speak of the states seen so far");
        page.line(&Ink::Yellow.on(&line, color));
    }
    page.line(&format!("{}  {}", report.model, report.size));
    explored(&mut page, report);
    let safe = |f: &Finding| Row(f.name.clone(), safety_verdict(f, report.complete), Note::of(f));
    let property = |f: &PropertyFinding| {
        Row(f.name.clone(), property_verdict(f, report.complete), Note::of_property(f))
    };
    let possible = |f: &Finding| Row(f.name.clone(), reached(f), Note::of(f));
    let properties = report.properties.iter().map(property);
    page.section("promises", report.invariants.iter().map(safe).chain(properties));
    page.section("refines", report.refines.values().map(safe));
    page.section("must be possible", report.reachable.iter().map(possible));
    page.line("");
    deadlock(&mut page, report);
    never_taken(&mut page, report);
    let (ink, answer, next) = answer(report, command);
    let fits = answer.chars().count() + next.chars().count() + 10 <= WIDTH;
    let between = if fits { "    " } else { "\n" };
    page.line(&format!("\n{}{between}next: {next}", ink.on(&answer, color)));
    page.out
}

/// Lines under each other, the verdicts in one column.
struct Page {
    out: String,
    color: bool,
    column: usize,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn section(&mut self, title: &str, rows: impl Iterator<Item = Row>) {
        for (place, row) in rows.enumerate() {
            if place == 0 {
                self.line(&format!("\n{title}"));
            }
            self.row(&row);
        }
    }

    /// The verdict stands in the common column, the note beside it if there is room, else below.
    fn row(&mut self, Row(name, (ink, verdict), note): &Row) {
        let column = self.column;
        let mut line = format!("  {name:column$}  {}", ink.on(verdict, self.color));
        let used = column.max(name.chars().count()) + verdict.chars().count() + 8;
        match note {
            Note::None => self.line(&line),
            Note::Beside(text) if used + text.chars().count() <= WIDTH => {
                let _ = write!(line, "  {}", Ink::Dim.on(&format!("({text})"), self.color));
                self.line(&line);
            }
            Note::Beside(text) | Note::Below(text) => {
                self.line(&line);
                self.below(text);
            }
        }
    }

    fn below(&mut self, text: &str) {
        for line in wrap(text, WIDTH - INDENT) {
            let line = Ink::Dim.on(&line, self.color);
            self.line(&format!("{:INDENT$}{line}", ""));
        }
    }

    /// A line of the head: a label and a text that goes on under itself.
    fn fact(&mut self, label: &str, text: &str) {
        for (place, line) in wrap(text, WIDTH - 13).into_iter().enumerate() {
            let label = if place == 0 { label } else { "" };
            self.line(&format!("  {label:9}  {line}"));
        }
    }
}

/// A name, its verdict, and what else is said of it.
struct Row(String, (Ink, String), Note);

/// What is said of a finding beside its verdict.
enum Note {
    None,
    Beside(String),
    Below(String),
}

impl Note {
    fn of(finding: &Finding) -> Note {
        Note::new(finding.verdict, &finding.sentence, finding.explanation.as_deref())
    }

    fn of_property(finding: &PropertyFinding) -> Note {
        Note::new(finding.verdict, &finding.sentence, finding.explanation.as_deref())
    }

    fn new(verdict: Verdict, sentence: &str, explanation: Option<&str>) -> Note {
        match (verdict, explanation) {
            (Verdict::Holds | Verdict::Unchecked, Some(why)) => Note::Beside(why.to_owned()),
            (Verdict::Holds | Verdict::Unchecked, None) => Note::None,
            (Verdict::Violated | Verdict::Vacuous, Some(why)) => Note::Below(why.to_owned()),
            (Verdict::Violated | Verdict::Vacuous, None) if sentence.is_empty() => Note::None,
            (Verdict::Violated | Verdict::Vacuous, None) => {
                Note::Below(format!("promised: {sentence}"))
            }
        }
    }
}

fn column(report: &Report) -> usize {
    let names = report.invariants.iter().map(|finding| &finding.name);
    let names = names.chain(report.properties.iter().map(|finding| &finding.name));
    let names = names.chain(report.refines.keys());
    let names = names.chain(report.reachable.iter().map(|finding| &finding.name));
    let widths = names.map(|name| name.chars().count()).chain(["deadlock".len()]);
    widths.max().unwrap_or(0).min(48)
}

fn explored(page: &mut Page, report: &Report) {
    page.fact(
        "states",
        &format!(
            "{} distinct, {} generated, depth {}",
            thousands(report.distinct_states),
            thousands(report.generated_states),
            report.depth
        ),
    );
    if report.covers == Covers::Shipped {
        let calls = thousands(report.steps_called);
        page.fact("code", &format!("the controllers that ship, called {calls} times"));
    }
    let mut time = format!(
        "{}, {} states/s with {}",
        duration(report.seconds),
        thousands(report.states_per_second as u64),
        counted(report.workers, "worker")
    );
    if report.liveness_seconds > 0.0 {
        let _ = write!(time, "; temporal properties {}", duration(report.liveness_seconds));
    }
    page.fact("time", &time);
    let bytes = report.bytes_per_state;
    page.fact(
        "memory",
        &match &report.reduction {
            None => format!("{bytes:.1} bytes per state"),
            Some(reduction) => {
                let all = bytes * report.distinct_states as f64;
                let each = all / reduction.kept_states.max(1) as f64;
                format!("{} MiB, {each:.1} bytes for each state that is kept", all as u64 >> 20)
            }
        },
    );
    if let Some(odds) = report.collision_odds {
        let text = format!(
            "states are known by 64-bit fingerprints; the odds that two are one: {odds:.1e}"
        );
        page.fact("inexact", &text);
    }
    if let Some(reduction) = &report.reduction {
        page.fact("reduction", &reduced(reduction));
    }
}

fn reduced(reduction: &Reduction) -> String {
    let mut text = format!("{} states kept", thousands(reduction.kept_states));
    if reduction.flag_valuations > 1 {
        let flags = counted(reduction.flags.len(), "free flag");
        let each = thousands(reduction.flag_valuations);
        let _ = write!(text, ", each stands for {each} valuations of {flags}");
    }
    if reduction.permutations > 1 {
        let _ = write!(text, "; interchangeable values ({} permutations)", reduction.permutations);
    }
    let verified = thousands(reduction.verified_states);
    let _ = write!(text, "; declarations verified on {verified} states");
    text
}

fn verdict(verdict: Verdict, complete: bool, violated: impl Fn() -> String) -> (Ink, String) {
    match verdict {
        Verdict::Holds if complete => (Ink::Green, "holds".to_owned()),
        Verdict::Holds => (Ink::Yellow, "holds so far".to_owned()),
        Verdict::Violated => (Ink::Red, violated()),
        Verdict::Vacuous => (Ink::Yellow, "vacuous".to_owned()),
        Verdict::Unchecked => (Ink::Yellow, "not checked".to_owned()),
    }
}

fn after(verb: &str, steps: Option<u32>) -> String {
    match steps {
        None => verb.to_owned(),
        Some(0) => format!("{verb} at the start"),
        Some(steps) => format!("{verb} in {}", counted(steps as usize, "step")),
    }
}

fn safety_verdict(finding: &Finding, complete: bool) -> (Ink, String) {
    verdict(finding.verdict, complete, || after("violated", finding.steps))
}

fn property_verdict(finding: &PropertyFinding, complete: bool) -> (Ink, String) {
    verdict(finding.verdict, complete, || match (finding.prefix_steps, finding.loop_steps) {
        (Some(prefix), Some(circle)) => {
            format!("violated: {}", lasso(prefix as usize, circle as usize))
        }
        (steps, _) => after("violated", steps),
    })
}

fn reached(finding: &Finding) -> (Ink, String) {
    match finding.verdict {
        Verdict::Holds => (Ink::Green, after("reached", finding.steps)),
        Verdict::Violated | Verdict::Vacuous => (Ink::Red, "never reached".to_owned()),
        Verdict::Unchecked => (Ink::Yellow, "not reached so far".to_owned()),
    }
}

fn deadlock(page: &mut Page, report: &Report) {
    let verdict = match &report.deadlock {
        None if !report.deadlock_checked => return,
        None if report.complete => (Ink::Green, "none".to_owned()),
        None => (Ink::Yellow, "none so far".to_owned()),
        Some(trace) => {
            let steps = trace.states.len().saturating_sub(1);
            (Ink::Red, after("reached", u32::try_from(steps).ok()))
        }
    };
    let why = report.deadlock_explanation.clone();
    page.row(&Row("deadlock".to_owned(), verdict, why.map_or(Note::None, Note::Below)));
}

/// The actions that were never taken, those with the same explanation (or none) together.
fn never_taken(page: &mut Page, report: &Report) {
    let mut groups: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
    for unused in &report.never_taken {
        let why = unused.explanation.as_deref();
        match groups.iter_mut().find(|(known, _)| *known == why) {
            Some((_, actions)) => actions.push(&unused.action),
            None => groups.push((why, vec![&unused.action])),
        }
    }
    for (why, actions) in groups {
        let column = page.column;
        let words = Ink::Yellow.on("never taken", page.color);
        page.line(&format!("  {:column$}  {words}", counted(actions.len(), "action")));
        page.below(&listed(&actions).join(", "));
        if let Some(why) = why {
            page.below(&format!("because: {why}"));
        }
    }
}

/// The actions; where they are many, by their name and how many they are: `TenantCrash (2)`.
fn listed(actions: &[&str]) -> Vec<String> {
    if actions.len() <= MANY_ACTIONS {
        return actions.iter().map(|action| (*action).to_owned()).collect();
    }
    let family = |action: &&str| action.split('(').next().unwrap_or_default().to_owned();
    let mut families: Vec<String> = actions.iter().map(family).collect();
    families.dedup();
    let count = |name: &String| actions.iter().filter(|action| family(action) == *name).count();
    families.iter().map(|name| format!("{name} ({})", count(name))).collect()
}

/// The answer of the whole run, and what to run next.
fn answer(report: &Report, check: &str) -> (Ink, String, String) {
    let safety = || report.invariants.iter().chain(report.refines.values());
    let named = |wanted: Verdict| {
        let safety = safety().filter(|finding| finding.verdict == wanted).map(|f| f.name.as_str());
        let properties = report.properties.iter().filter(|finding| finding.verdict == wanted);
        safety.chain(properties.map(|f| f.name.as_str())).collect::<Vec<_>>()
    };
    let mut broken = named(Verdict::Violated);
    broken.extend(report.deadlock.iter().map(|_| "deadlock"));
    if !broken.is_empty() {
        return (Ink::Red, format!("broken: {}", broken.join(", ")), format!("{check} --trace"));
    }
    let impossible = report.reachable.iter().filter(|f| f.verdict == Verdict::Violated);
    let impossible: Vec<&str> = impossible.map(|finding| finding.name.as_str()).collect();
    if !impossible.is_empty() {
        let answer = format!("never possible: {}", impossible.join(", "));
        return (Ink::Red, answer, format!("{check} --mutants"));
    }
    if !report.complete {
        let answer = "nothing broken so far".to_owned();
        return (Ink::Yellow, answer, format!("{check} --checkpoint FILE"));
    }
    let vacuous = named(Verdict::Vacuous);
    if !vacuous.is_empty() {
        let answer = format!("means nothing: {}", vacuous.join(", "));
        return (Ink::Yellow, answer, format!("{check} --mutants"));
    }
    let unchecked = named(Verdict::Unchecked);
    if !unchecked.is_empty() {
        let answer = format!("nothing broken; not checked: {}", unchecked.join(", "));
        // The graph of more states than this fits in no machine that one would try it on.
        let option = if report.distinct_states < 200_000_000 { "--liveness" } else { "--mutants" };
        return (Ink::Yellow, answer, format!("{check} {option}"));
    }
    (Ink::Green, "every promise holds".to_owned(), format!("{check} --mutants"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::small;
    use super::*;
    use crate::report::Unused;

    fn finding(name: &str, verdict: Verdict, steps: Option<u32>, why: Option<&str>) -> Finding {
        Finding {
            name: name.to_owned(),
            verdict,
            steps,
            sentence: "one writer at a time".to_owned(),
            explanation: why.map(str::to_owned),
            trace: None,
        }
    }

    fn property(
        name: &str,
        verdict: Verdict,
        steps: (Option<u32>, Option<u32>),
    ) -> PropertyFinding {
        PropertyFinding {
            name: name.to_owned(),
            verdict,
            prefix_steps: steps.0,
            loop_steps: steps.1,
            sentence: "every request is answered".to_owned(),
            explanation: None,
            fairness: Vec::new(),
            trace: None,
        }
    }

    fn report() -> Report {
        Report {
            model: "seed/mail".to_owned(),
            size: "servers=2".to_owned(),
            covers: Covers::Seed,
            steps_called: 0,
            distinct_states: 43_080_348_672,
            generated_states: 1_234,
            depth: 12,
            seconds: 3.25,
            states_per_second: 1_203_401.7,
            bytes_per_state: 8.04,
            workers: 2,
            complete: true,
            stopped: None,
            reduction: None,
            collision_odds: None,
            deadlock: None,
            deadlock_checked: true,
            invariants: vec![finding("TypeOK", Verdict::Holds, None, Some("the types say it"))],
            properties: Vec::new(),
            refines: Default::default(),
            reachable: vec![finding("Sent", Verdict::Holds, Some(3), None)],
            never_taken: Vec::new(),
            liveness_seconds: 0.0,
            deadlock_explanation: None,
        }
    }

    #[test]
    fn a_good_report_is_short() {
        assert_eq!(
            table(&report(), "check seed/mail", false),
            "\
seed/mail  servers=2
  states     43,080,348,672 distinct, 1,234 generated, depth 12
  time       3.2 s, 1,203,401 states/s with 2 workers
  memory     8.0 bytes per state

promises
  TypeOK    holds  (the types say it)

must be possible
  Sent      reached in 3 steps

  deadlock  none

every promise holds    next: check seed/mail --mutants
"
        );
    }

    #[test]
    fn a_bad_report_says_what_broke_and_why() {
        let why = "nothing waits for the old writer, so that the new one begins while the old one still \
                   acts on what it read before, and both write";
        let mut report = report();
        report.invariants.push(finding("OneWriter", Verdict::Violated, Some(5), Some(why)));
        report.invariants.push(finding("OneReader", Verdict::Violated, Some(0), None));
        report.invariants.push(finding("Count", Verdict::Vacuous, None, Some("it counts a set")));
        report.properties = vec![
            property("Answered", Verdict::Violated, (Some(2), Some(18))),
            property("Settles", Verdict::Violated, (Some(4), Some(0))),
            property("Monotone", Verdict::Violated, (Some(1), None)),
            property("Later", Verdict::Unchecked, (None, None)),
        ];
        report.refines.insert("Abstract".into(), finding("Abstract", Verdict::Holds, None, None));
        report.reachable.push(finding("Lost", Verdict::Violated, None, None));
        let unused = |action: &str| Unused { action: action.to_owned(), explanation: None };
        report.never_taken = vec![unused("Drop(a)"), unused("Drop(b)")];
        report.deadlock = Some(small(None));
        report.deadlock_explanation = Some("both wait for the other".to_owned());
        let table = table(&report, "check seed/mail", false);
        let (_, verdicts) = table.split_once("\n\n").unwrap();
        assert_eq!(
            verdicts,
            "\
promises
  TypeOK     holds  (the types say it)
  OneWriter  violated in 5 steps
      nothing waits for the old writer, so that the new one begins while the old one still acts on
      what it read before, and both write
  OneReader  violated at the start
      promised: one writer at a time
  Count      vacuous
      it counts a set
  Answered   violated: 2 steps, then a loop of 18
      promised: every request is answered
  Settles    violated: 4 steps, then rests for ever
      promised: every request is answered
  Monotone   violated in 1 step
      promised: every request is answered
  Later      not checked

refines
  Abstract   holds

must be possible
  Sent       reached in 3 steps
  Lost       never reached
      promised: one writer at a time

  deadlock   reached in 3 steps
      both wait for the other
  2 actions  never taken
      Drop(a), Drop(b)

broken: OneWriter, OneReader, Answered, Settles, Monotone, deadlock    next: check seed/mail --trace
"
        );
    }

    #[test]
    fn what_was_not_finished_says_so_first() {
        let report = Report { complete: false, stopped: Some("interrupted".into()), ..report() };
        let table = table(&report, "check seed/mail", false);
        assert!(table.starts_with("not complete: interrupted; the verdicts speak of"), "{table}");
        assert!(table.contains("TypeOK    holds so far"), "{table}");
        assert!(table.contains("deadlock  none so far"), "{table}");
        assert!(
            table.ends_with("nothing broken so far    next: check seed/mail --checkpoint FILE\n")
        );
    }

    #[test]
    fn many_unused_actions_are_counted_by_name() {
        assert_eq!(listed(&["A(1)", "B"]), ["A(1)", "B"]);
        let many =
            ["A(1)", "A(2)", "A(3)", "A(4)", "A(5)", "A(6)", "A(7)", "A(8)", "A(9)", "B", "C"];
        assert_eq!(listed(&many), ["A (9)", "B (1)", "C (1)"]);
    }

    #[test]
    fn the_reduction_is_reported_in_one_sentence() {
        let reduction = Reduction {
            kept_states: 37_396_136,
            flag_valuations: 1_152,
            flags: vec!["network".to_owned(); 9],
            permutations: 2,
            verified_states: 2_346_209,
        };
        assert_eq!(
            reduced(&reduction),
            "37,396,136 states kept, each stands for 1,152 valuations of 9 free flags; \
             interchangeable values (2 permutations); declarations verified on 2,346,209 states"
        );
    }

    #[test]
    fn colour_is_only_there_when_asked_for() {
        assert!(!table(&report(), "check seed/mail", false).contains('\x1b'));
        let colored = table(&report(), "check seed/mail", true);
        assert!(colored.contains("  TypeOK    \x1b[32mholds\x1b[0m"), "{colored}");
    }
}
