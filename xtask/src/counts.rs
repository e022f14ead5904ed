//! Every model in its default size, and some in larger ones: do ours hold, and have they as many states as on record, the same
//! promises and the same mutants? A model that shrank unnoticed still holds, and proves less; so does one without its mutants.

use crate::{evidence, interlock, root, say};
use anyhow::{Context, bail};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) type Names = BTreeSet<String>;

/// What is on record of a model in one size.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Count {
    size: String,
    pub(crate) distinct_states: u64,
    generated_states: u64,
    depth: u64,
    /// What it promises; of a larger size, what the default size does not promise.
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub(crate) promises: Names,
    /// Its mutants by name, of the default size only: `check --mutants` checks them, each in a size of its own.
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub(crate) mutants: Names,
}

/// What `check -o json` says of a model, as far as it goes on record.
#[derive(Deserialize)]
struct Answer {
    model: String,
    size: String,
    distinct_states: u64,
    generated_states: u64,
    depth: u64,
    invariants: Vec<Promise>,
    properties: Vec<Promise>,
    reachable: Vec<Promise>,
    refines: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize)]
struct Promise {
    name: String,
}

/// What `check --list -o json` says of a model, as far as it goes on record.
#[derive(Deserialize)]
struct Listed {
    model: String,
    mutants: Names,
}

impl Answer {
    fn count(self) -> Count {
        let Answer { size, distinct_states, generated_states, depth, .. } = self;
        let named = [self.invariants, self.properties, self.reachable].into_iter().flatten();
        let promises = named.map(|promise| promise.name).chain(self.refines.into_keys());
        let (promises, mutants) = (promises.collect(), Names::new());
        Count { size, distinct_states, generated_states, depth, promises, mutants }
    }
}

pub(crate) type Counts = BTreeMap<String, Count>;

/// What is explored beyond the default sizes, with what no other size has: seconds here, and minutes in a test.
const LARGER: [(&str, &str); 28] = [
    ("fleet/drain", "requests=2,begun=1,flights=0,live=1"),
    ("fleet/drain", "stale=1,crash=1"),
    ("fleet/rights", "moves=0,force=1,elapses=5,flights=0,live=1"),
    ("identities/placed", "crash=0,faults=0,epochs=3,forced=2,elapses=4"),
    ("identities/placed", "crash=0,faults=0,flights=1"),
    (
        "identities/placed",
        "processes=2,crash=0,faults=0,deletes=1,epochs=1,forced=0,elapses=1,flights=1",
    ),
    (
        "identities/placed",
        "processes=2,crash=0,faults=0,deletes=1,live=1,epochs=1,forced=0,elapses=0,flights=1",
    ),
    ("nodes", "hub=1,tenants=1,epochs=1,lost=1,flights=1,agents=2"),
    ("nodes", "hub=1,tenants=1,flights=1"),
    ("nodes", "tenants=1,flights=1"),
    ("placement", "moves=1,flights=0,stale=0,crash=0,drains=1,live=1"),
    ("placement", "moves=1,flights=0,stale=0,crash=1,claims=1"),
    ("placement", "moves=1,flights=0,stale=1,crash=0,rights=1"),
    ("placement", "moves=1,flights=0,stale=0,crash=0,rights=1,force=1"),
    ("placement", "moves=2"),
    ("placement-and-volumes", "half=1,flights=1,stale=1,crash=1"),
    ("placement-and-volumes", "half=2,flights=1"),
    ("rollouts", "flights=0,stale=0,live=1,cancels=1"),
    ("rollouts", "flights=0,stale=0,live=1,away=1"),
    ("rollouts", "programs=2,requests=1"),
    ("spec/nodes-device", "epochs=1,uids=2,faults=2"),
    ("spec/nodes-device", "epochs=3"),
    ("spec/nodes-device", "faults=2"),
    ("spec/placement", "force=0,epochs=3"),
    ("spec/placement", "force=0,clusters=3"),
    ("spec/placement", "writes=2"),
    ("spec/workloads", "wanted=2,makers=2"),
    ("spec/workloads-surge", "unavailable=1"),
];

/// Checks all models and compares, or writes the record anew; false if one of ours is broken, or if one
/// has another count, other promises or other mutants.
pub(crate) fn run(write: bool) -> anyhow::Result<bool> {
    let (all_hold, now) = check()?;
    if write {
        std::fs::write(record(), serde_json::to_string_pretty(&now)? + "\n")
            .with_context(|| format!("cannot write {}", record().display()))?;
        evidence::write()?;
        return Ok(all_hold);
    }
    let recorded = recorded()?;
    let changed = differences(&recorded, &now);
    for line in &changed {
        say(line);
    }
    if !changed.is_empty() {
        say("if that is meant: cargo xtask counts --write, and say why in the commit");
    }
    say(&format!("{} models and sizes, {} differences from the record", now.len(), changed.len()));
    Ok(all_hold && changed.is_empty())
}

/// What is on record.
pub(crate) fn recorded() -> anyhow::Result<Counts> {
    let text = std::fs::read_to_string(record())
        .with_context(|| format!("cannot read {}", record().display()))?;
    serde_json::from_str(&text).context("cannot read the record")
}

fn record() -> PathBuf {
    root().join("specs/counts.json")
}

/// Whether all of ours hold, and the counts of every model.
fn check() -> anyhow::Result<(bool, Counts)> {
    let program = interlock::build()?;
    let (mut all_hold, answers) = explore::<Vec<Answer>>(&program, &[])?;
    let mut counts: Counts =
        answers.into_iter().map(|answer| (answer.model.clone(), answer.count())).collect();
    let (_, listed) = explore::<Vec<Listed>>(&program, &["--list"])?;
    for Listed { model, mutants } in listed {
        let count = counts.get_mut(&model);
        count.with_context(|| format!("{model} is listed and was not checked"))?.mutants = mutants;
    }
    for (model, size) in LARGER {
        let (holds, answer) = explore::<Answer>(&program, &[model, "--size", size])?;
        all_hold &= holds;
        let mut count = answer.count();
        if let Some(default) = counts.get(model) {
            count.promises.retain(|promise| !default.promises.contains(promise));
        }
        counts.insert(format!("{model} {size}"), count);
    }
    if !all_hold {
        say("some are broken: cargo run --release -- check");
    }
    for (model, count) in &counts {
        say(&format!("{model:26} {}", shown(count)));
    }
    Ok((all_hold, counts))
}

/// What the program says, and whether all hold.
fn explore<T: DeserializeOwned>(program: &Path, asked: &[&str]) -> anyhow::Result<(bool, T)> {
    let output = Command::new(program)
        .arg("check")
        .args(asked)
        .args(["-o", "json"])
        .output()
        .context("cannot start interlock")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    let all_hold = match output.status.code() {
        Some(0) => true,
        Some(1) => false,
        _ => bail!("interlock check {}: {}", asked.join(" "), complaint.trim()),
    };
    let explored =
        serde_json::from_slice(&output.stdout).context("interlock check printed no JSON")?;
    Ok((all_hold, explored))
}

/// A line for each model that has changed, come or gone, and for its promises and its mutants that have.
fn differences(recorded: &Counts, now: &Counts) -> Vec<String> {
    let models: BTreeSet<&String> = recorded.keys().chain(now.keys()).collect();
    let mut lines = Vec::new();
    for model in models {
        let (was, is) = (recorded.get(model), now.get(model));
        let [was_shown, is_shown] =
            [was, is].map(|count| count.map_or_else(|| "nothing".to_owned(), shown));
        if was_shown != is_shown {
            lines.push(format!("CHANGED {model}: on record {was_shown}; now {is_shown}"));
        }
        if let (Some(was), Some(is)) = (was, is) {
            lines.extend(renamed(&format!("{model}: promise"), &was.promises, &is.promises));
            lines.extend(renamed(&format!("{model}: mutant"), &was.mutants, &is.mutants));
        }
    }
    lines
}

/// What is gone, and what is new; `what` says whose names they are.
fn renamed(what: &str, recorded: &Names, now: &Names) -> Vec<String> {
    let without = |all: &Names, others: &Names| {
        let names: Vec<&str> = all.difference(others).map(String::as_str).collect();
        names.join(", ")
    };
    let (gone, new) = (without(recorded, now), without(now, recorded));
    let mut lines = Vec::new();
    if !gone.is_empty() {
        lines.push(format!(
            "GONE    {what} {gone}: on record, and the model has it no more: restore it, or take it off the record \
             with --write and say in the commit why nothing is lost"
        ));
    }
    if !new.is_empty() {
        lines.push(format!(
            "NEW     {what} {new}: the model has it, and it is not on record: put it on record with --write"
        ));
    }
    lines
}

fn shown(count: &Count) -> String {
    let Count { size, distinct_states, generated_states, depth, promises: _, mutants: _ } = count;
    format!("{distinct_states} distinct, {generated_states} generated, depth {depth}  ({size})")
}

#[cfg(test)]
mod tests {
    use super::{Answer, Count, Counts, Names, differences};
    use serde_json::json;

    fn names(names: &[&str]) -> Names {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn count(distinct_states: u64, promises: &[&str], mutants: &[&str]) -> Count {
        let (promises, mutants) = (names(promises), names(mutants));
        let size = String::new();
        Count { size, distinct_states, generated_states: 9, depth: 2, promises, mutants }
    }

    fn counts(models: &[(&str, u64)]) -> Counts {
        let named = |(model, states): &(&str, u64)| ((*model).to_owned(), count(*states, &[], &[]));
        models.iter().map(named).collect()
    }

    /// The lines, up to what is to be done.
    fn told(recorded: &Counts, now: &Counts) -> Vec<String> {
        let beginning = |line: &String| line.split(": on record").next().map(str::to_owned);
        differences(recorded, now).iter().filter_map(beginning).collect()
    }

    #[test]
    fn a_model_that_changed_came_or_went_is_reported() {
        let recorded = counts(&[("gone", 5), ("same", 5), ("smaller", 5)]);
        let now = counts(&[("new", 5), ("same", 5), ("smaller", 4)]);
        let expected = ["CHANGED gone", "CHANGED new", "CHANGED smaller"];
        assert_eq!(told(&recorded, &now), expected);
    }

    #[test]
    fn a_promise_or_a_mutant_that_is_gone_is_reported_by_name() {
        let of = |count| Counts::from([("placement".to_owned(), count)]);
        let recorded = of(count(5, &["AtMostOne", "NoLoss"], &["boot-ignored", "target-kept"]));
        let now = of(count(5, &["AtMostOne"], &["target-kept"]));
        let expected =
            ["GONE    placement: promise NoLoss", "GONE    placement: mutant boot-ignored"];
        assert_eq!(told(&recorded, &now), expected);
        let lines = differences(&recorded, &now);
        assert!(lines.iter().all(|line| line.contains("restore it") && line.contains("--write")));
        assert!(differences(&now, &now).is_empty());
    }

    #[test]
    fn a_new_promise_or_mutant_is_put_on_record() {
        let of = |count| Counts::from([("placement".to_owned(), count)]);
        // A record from before names were in it.
        let recorded = json!({"placement": {"size": "", "distinct_states": 5,
            "generated_states": 9, "depth": 2}});
        let recorded: Counts = serde_json::from_value(recorded).expect("it can be read");
        let now = of(count(5, &["NoLoss"], &["boot-ignored", "target-kept"]));
        let lines = differences(&recorded, &now);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("NEW     placement: promise NoLoss: "), "{lines:?}");
        assert!(lines[1].contains("boot-ignored, target-kept"), "{lines:?}");
        assert!(lines.iter().all(|line| line.contains("--write")), "{lines:?}");
    }

    #[test]
    fn all_that_a_model_promises_goes_on_record() {
        let one = |name: &str| json!([{"name": name, "verdict": "holds"}]);
        let answer = json!({"model": "m", "size": "n=1", "distinct_states": 5,
            "generated_states": 9, "depth": 2, "invariants": one("Always"),
            "properties": one("InTheEnd"), "reachable": one("Possible"),
            "refines": {"spec/m": {"name": "spec/m"}}});
        let answer: Answer = serde_json::from_value(answer).expect("it can be read");
        let promises = answer.count().promises;
        assert_eq!(promises, names(&["Always", "InTheEnd", "Possible", "spec/m"]));
    }
}
