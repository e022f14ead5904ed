//! TLC beside us: the same modules, the same sizes, the same numbers.

use crate::tlc::{Said, Tlc};
use crate::{interlock, root, say};
use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One line of specs/runs.json.
#[derive(Debug, Deserialize)]
struct Run {
    id: String,
    module: String,
    config: String,
    model: String,
    size: String,
    #[serde(default)]
    faults: Option<String>,
    check_deadlock: bool,
    #[serde(default)]
    stops_at_violation: bool,
    generated: Option<u64>,
    distinct: Option<u64>,
    depth: Option<u64>,
    verdicts: BTreeMap<String, String>,
    #[serde(default)]
    mutant: Option<String>,
    ci: bool,
}

/// Runs every module and compares; false if anything differs.
pub(crate) fn run(id: &str, all: bool) -> anyhow::Result<bool> {
    let path = root().join("specs/runs.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let runs: Vec<Run> = serde_json::from_str(&text).context("cannot read specs/runs.json")?;
    let chosen: Vec<&Run> =
        runs.iter().filter(|run| run.id.contains(id) && (all || run.ci)).collect();
    let binary = interlock::build()?;
    let tlc = Tlc::get()?;
    let (mut passed, mut failed) = (0, 0);
    for run in &chosen {
        let said = tlc.run(&run.module, &run.config, run.check_deadlock, 1)?;
        let differences = differences(&binary, run, &said)?;
        if differences.is_empty() {
            passed += 1;
            say(&format!("same    {}  {}", run.id, figures(&said)));
        } else {
            failed += 1;
            say(&format!("DIFFERS {}  {}", run.id, figures(&said)));
            differences.iter().for_each(|line| say(&format!("        {line}")));
        }
    }
    say(&format!("{passed} passed, {failed} failed"));
    Ok(failed == 0 && passed > 0)
}

fn figures(said: &Said) -> String {
    let shown = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
    format!(
        "TLC: {} generated, {} distinct, depth {}, {:.1} s",
        shown(said.generated),
        shown(said.distinct),
        shown(said.depth),
        said.seconds
    )
}

fn differences(binary: &PathBuf, run: &Run, said: &Said) -> anyhow::Result<Vec<String>> {
    let mut args = vec!["check", &run.model, "--size", &run.size];
    if let Some(faults) = &run.faults {
        args.extend(["--faults", faults]);
    }
    if run.mutant.is_some() {
        args.push("--mutants");
    }
    let ours = interlock::ask(binary, &args)?;
    let mut found = Vec::new();
    if let Some(mutant) = &run.mutant {
        compare_mutant(mutant, &ours, said, &mut found);
        return Ok(found);
    }
    if run.stops_at_violation {
        compare_violation(run, &ours, said, &mut found);
        return Ok(found);
    }
    for (what, ours, tlc, noted) in [
        ("generated", &ours["generated_states"], said.generated, run.generated),
        ("distinct", &ours["distinct_states"], said.distinct, run.distinct),
        ("depth", &ours["depth"], said.depth, run.depth),
    ] {
        if ours.as_u64() != tlc {
            found.push(format!("{what}: ours {ours}, TLC {tlc:?}"));
        }
        if noted.is_some() && noted != tlc {
            found.push(format!("{what}: specs/runs.json says {noted:?}, TLC {tlc:?}"));
        }
    }
    if run.check_deadlock && ours["deadlock"].is_null() == said.deadlock {
        found.push(format!("deadlock: TLC {}, ours {}", said.deadlock, ours["deadlock"]));
    }
    for (name, expected) in &run.verdicts {
        compare_verdict(name, expected, &ours, &mut found);
    }
    Ok(found)
}

/// The verdict on a promise: TLC knows no vacuity, so a vacuous one holds for it.
fn verdict<'a>(ours: &'a Value, name: &str) -> Option<&'a str> {
    let list = |key: &str| ours[key].as_array().into_iter().flatten();
    let finding =
        list("invariants").chain(list("properties")).find(|finding| finding["name"] == name)?;
    match finding["verdict"].as_str()? {
        "vacuous" => Some("holds"),
        other => Some(other),
    }
}

fn compare_verdict(name: &str, expected: &str, ours: &Value, found: &mut Vec<String>) {
    if name == "deadlock" {
        if ours["deadlock"].is_null() != (expected == "holds") {
            found.push(format!("deadlock: TLC says {expected}, ours {}", ours["deadlock"]));
        }
        return;
    }
    match verdict(ours, name) {
        Some(verdict) if verdict == expected => {}
        Some(verdict) => found.push(format!("{name}: TLC says {expected}, ours {verdict}")),
        None => found.push(format!("{name}: our model does not have it")),
    }
}

/// A run that TLC ends at a violation: the same promise breaks, after the same number of states.
fn compare_violation(run: &Run, ours: &Value, said: &Said, found: &mut Vec<String>) {
    for (name, expected) in &run.verdicts {
        compare_verdict(name, expected, ours, found);
    }
    let steps = if said.deadlock {
        ours["deadlock"]["states"].as_array().map(|states| states.len() as u64)
    } else if let Some(name) = &said.violated_invariant {
        let list = |key: &str| ours[key].as_array().into_iter().flatten();
        let finding = list("invariants").chain(list("properties")).find(|f| f["name"] == **name);
        let steps = finding.and_then(|f| f["steps"].as_u64().or(f["prefix_steps"].as_u64()));
        steps.map(|steps| steps + 1)
    } else {
        return;
    };
    if steps != Some(said.trace_states) {
        found.push(format!("trace: TLC {} states, ours {steps:?}", said.trace_states));
    }
}

fn compare_mutant(mutant: &str, ours: &Value, said: &Said, found: &mut Vec<String>) {
    let mutants = ours["mutants"]["mutants"].as_array().into_iter().flatten();
    let Some(ours) = mutants.into_iter().find(|m| m["name"] == mutant) else {
        found.push(format!("our model has no mutant {mutant}"));
        return;
    };
    if ours["killed"] != true {
        found.push(format!("{mutant} survives with us"));
        return;
    }
    let steps = ours["steps"].as_u64().map(|steps| steps + 1);
    if said.violated_invariant.is_some() && steps != Some(said.trace_states) {
        found.push(format!("{mutant}: TLC {} states, ours {steps:?}", said.trace_states));
    }
}
