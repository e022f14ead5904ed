//! TLC beside us: the same modules, the same sizes, the same numbers.

use crate::record::Record;
use crate::tlc::{Said, Tlc};
use crate::{interlock, root, say};
use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One line of specs/runs.json.
#[derive(Debug, Deserialize)]
struct Run {
    id: String,
    module: String,
    config: String,
    /// Our model of the module; none where only TLC knows what is asked.
    model: Option<String>,
    size: String,
    /// The mutant of our model that does what the configuration does.
    mutant: Option<String>,
    check_deadlock: bool,
    stops_at_violation: bool,
    generated: Option<u64>,
    distinct: Option<u64>,
    depth: Option<u64>,
    trace_states: Option<u64>,
    verdicts: BTreeMap<String, String>,
    ci: bool,
}

/// How many TLCs run at once: each has one worker, which makes its counts exact.
const AT_ONCE: usize = 2;

/// Runs every module and compares; false if anything differs.
pub(crate) fn run(id: &str, all: bool) -> anyhow::Result<bool> {
    let path = root().join("specs/runs.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let runs: Vec<Run> = serde_json::from_str(&text).context("cannot read specs/runs.json")?;
    let chosen: Vec<&Run> =
        runs.iter().filter(|run| run.id.contains(id) && (all || run.ci)).collect();
    let binary = interlock::build()?;
    let bench = Bench { binary, tlc: Tlc::get()?, record: Record::read()?, is_anew: all };
    let (next, passed, failed) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(run) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let is_same = bench.report(run);
                    let counter = if is_same { &passed } else { &failed };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (passed, failed) = (passed.into_inner(), failed.into_inner());
    say(&format!("{passed} passed, {failed} failed"));
    Ok(failed == 0 && passed > 0)
}

/// The two checkers that are compared.
struct Bench {
    binary: PathBuf,
    tlc: Tlc,
    record: Record,
    /// TLC runs even if it is on record what it says of these files.
    is_anew: bool,
}

/// What TLC says of a run.
struct Told {
    said: Said,
    /// It was read from the record.
    is_on_record: bool,
}

impl Bench {
    /// Runs both, says how they compare, and whether they agree.
    fn report(&self, run: &Run) -> bool {
        let outcome = self.told(run);
        let outcome = outcome.and_then(|told| {
            let differences = self.differences(run, &told.said)?;
            Ok((figures(&told), differences))
        });
        match outcome {
            Ok((figures, differences)) if differences.is_empty() => {
                say(&format!("same    {}  {figures}", run.id));
                true
            }
            Ok((figures, differences)) => {
                let differences = differences.join("\n        ");
                say(&format!("DIFFERS {}  {figures}\n        {differences}", run.id));
                false
            }
            Err(error) => {
                say(&format!("FAILED  {}  {error:#}", run.id));
                false
            }
        }
    }

    /// What TLC says: from the record, unless it is the turn of this run to be asked again.
    fn told(&self, run: &Run) -> anyhow::Result<Told> {
        let key = self.tlc.key(&run.module, &run.config, run.check_deadlock)?;
        let on_record = self.record.said(&run.config, &key);
        if let Some(said) = &on_record
            && !self.is_anew
            && !self.record.is_due(&key)
        {
            return Ok(Told { said: said.clone(), is_on_record: true });
        }
        let said = self.tlc.run(&run.module, &run.config, run.check_deadlock, 1)?;
        if on_record.is_none() {
            self.record.keep(&run.config, key, said.clone())?;
        }
        Ok(Told { said, is_on_record: false })
    }

    fn differences(&self, run: &Run, said: &Said) -> anyhow::Result<Vec<String>> {
        let mut found = differences_from_record(run, said);
        let Some(model) = &run.model else { return Ok(found) };
        let mut args = vec!["check", model, "--size", &run.size];
        let Some(mutant) = &run.mutant else {
            let ours = interlock::ask(&self.binary, &args)?;
            compare_check(run, &ours, said, &mut found);
            return Ok(found);
        };
        args.extend(["--safety", "--mutant", mutant]);
        for (name, _) in run.verdicts.iter().filter(|(_, verdict)| *verdict == "violated") {
            args.extend(["--only", name]);
        }
        let ours = interlock::ask(&self.binary, &args)?;
        compare_mutant(&ours["mutants"]["mutants"][0], said, &mut found);
        Ok(found)
    }
}

fn figures(told: &Told) -> String {
    let shown = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let Told { said, is_on_record } = told;
    format!(
        "TLC: {} generated, {} distinct, depth {}, {}",
        shown(said.generated),
        shown(said.distinct),
        shown(said.depth),
        if *is_on_record { "on record".to_owned() } else { format!("{:.1} s", said.seconds) }
    )
}

/// What TLC says now and what specs/runs.json says that it says.
fn differences_from_record(run: &Run, said: &Said) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, noted: Option<u64>, now: Option<u64>| {
        if noted.is_some() && noted != now {
            found.push(format!("{what}: specs/runs.json says {noted:?}, TLC {now:?}"));
        }
    };
    compare("trace", run.trace_states, Some(said.trace_states));
    if !run.stops_at_violation {
        compare("generated", run.generated, said.generated);
        compare("distinct", run.distinct, said.distinct);
        compare("depth", run.depth, said.depth);
    }
    let breaks = run.verdicts.values().any(|verdict| verdict == "violated");
    let broke = said.violated_invariant.is_some() || said.temporal || said.deadlock;
    if breaks != broke {
        found
            .push(format!("specs/runs.json expects a violation: {breaks}, TLC found one: {broke}"));
    }
    found
}

fn compare_check(run: &Run, ours: &Value, said: &Said, found: &mut Vec<String>) {
    for (name, expected) in &run.verdicts {
        compare_verdict(name, expected, ours, found);
    }
    if run.stops_at_violation {
        compare_trace(ours, said, found);
        return;
    }
    let mut compare = |what: &str, ours: &Value, tlc: Option<u64>| {
        if tlc.is_some() && ours.as_u64() != tlc {
            found.push(format!("{what}: ours {ours}, TLC {tlc:?}"));
        }
    };
    compare("generated", &ours["generated_states"], said.generated);
    compare("distinct", &ours["distinct_states"], said.distinct);
    compare("depth", &ours["depth"], said.depth);
    if run.check_deadlock && ours["deadlock"].is_null() == said.deadlock {
        found.push(format!("deadlock: TLC {}, ours {}", said.deadlock, ours["deadlock"]));
    }
}

/// What we say of a promise: TLC knows no vacuity, so a vacuous one holds for it.
fn compare_verdict(name: &str, expected: &str, ours: &Value, found: &mut Vec<String>) {
    let verdict = if name == "deadlock" {
        Some(if ours["deadlock"].is_null() { "holds" } else { "violated" })
    } else {
        finding(ours, name).and_then(|finding| finding["verdict"].as_str())
    };
    match verdict {
        Some(verdict) if verdict == expected => {}
        Some("vacuous") if expected == "holds" => {}
        Some(verdict) => found.push(format!("{name}: TLC says {expected}, ours {verdict}")),
        None => found.push(format!("{name}: our model does not have it")),
    }
}

fn finding<'a>(ours: &'a Value, name: &str) -> Option<&'a Value> {
    let list = |key: &str| ours[key].as_array().into_iter().flatten();
    list("invariants").chain(list("properties")).find(|finding| finding["name"] == name)
}

/// A run that TLC ends at a violation: ours is as many states away. Loops may differ.
fn compare_trace(ours: &Value, said: &Said, found: &mut Vec<String>) {
    let states = if said.deadlock {
        ours["deadlock"]["states"].as_array().map(|states| states.len() as u64)
    } else if let Some(name) = &said.violated_invariant {
        let finding = finding(ours, name);
        let steps = finding.and_then(|f| f["steps"].as_u64().or(f["prefix_steps"].as_u64()));
        steps.map(|steps| steps + 1)
    } else {
        return;
    };
    if states != Some(said.trace_states) {
        found.push(format!("trace: TLC {} states, ours {states:?}", said.trace_states));
    }
}

fn compare_mutant(ours: &Value, said: &Said, found: &mut Vec<String>) {
    if ours["killed"] != true {
        found.push("our mutant survives".to_owned());
        return;
    }
    let states = ours["steps"].as_u64().map(|steps| steps + 1);
    if said.violated_invariant.is_some() && states != Some(said.trace_states) {
        found.push(format!("trace: TLC {} states, ours {states:?}", said.trace_states));
    }
}
