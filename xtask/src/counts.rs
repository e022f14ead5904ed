//! Every model in its default size, and some in larger ones: do ours hold, and have they as many states as on record? A model
//! that shrank unnoticed still holds, and proves less.

use crate::{interlock, root, say};
use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `check -o json` says of a model, as far as it is on record.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Count {
    size: String,
    distinct_states: u64,
    generated_states: u64,
    depth: u64,
}

#[derive(Deserialize)]
struct Answer {
    model: String,
    #[serde(flatten)]
    count: Count,
}

type Counts = BTreeMap<String, Count>;

/// What is explored beyond the default sizes, with what no other size has: seconds here, and minutes in a test.
const LARGER: [(&str, &str); 21] = [
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
    ("nodes", "hub=1,tenants=1,flights=1"),
    ("nodes", "tenants=1,flights=1"),
    ("placement", "moves=1,flights=0,stale=0,crash=0,drains=1,live=1"),
    ("placement", "moves=1,flights=0,stale=0,crash=1,claims=1"),
    ("placement", "moves=1,flights=0,stale=1,crash=0,rights=1"),
    ("placement", "moves=1,flights=0,stale=0,crash=0,rights=1,force=1"),
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

/// Checks all models and compares, or writes the record anew; false if one of ours is broken or one
/// has another count.
pub(crate) fn run(write: bool) -> anyhow::Result<bool> {
    let (all_hold, now) = check()?;
    if write {
        std::fs::write(record(), serde_json::to_string_pretty(&now)? + "\n")
            .with_context(|| format!("cannot write {}", record().display()))?;
        return Ok(all_hold);
    }
    let text = std::fs::read_to_string(record())
        .with_context(|| format!("cannot read {}", record().display()))?;
    let recorded: Counts = serde_json::from_str(&text).context("cannot read the record")?;
    let changed = differences(&recorded, &now);
    for line in &changed {
        say(line);
    }
    if !changed.is_empty() {
        say("if that is meant: cargo xtask counts --write, and say why in the commit");
    }
    say(&format!("{} models, {} other than on record", now.len(), changed.len()));
    Ok(all_hold && changed.is_empty())
}

fn record() -> PathBuf {
    root().join("specs/counts.json")
}

/// Whether all of ours hold, and the counts of every model.
fn check() -> anyhow::Result<(bool, Counts)> {
    let program = interlock::build()?;
    let (mut all_hold, answers) = explore::<Vec<Answer>>(&program, &[])?;
    let mut counts: Counts =
        answers.into_iter().map(|answer| (answer.model, answer.count)).collect();
    for (model, size) in LARGER {
        let (holds, answer) = explore::<Answer>(&program, &[model, "--size", size])?;
        all_hold &= holds;
        counts.insert(format!("{model} {size}"), answer.count);
    }
    if !all_hold {
        say("some are broken: cargo run --release -- check");
    }
    for (model, count) in &counts {
        say(&format!("{model:26} {}", shown(count)));
    }
    Ok((all_hold, counts))
}

/// Whether all hold, and what was explored.
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

/// A line for each model that has changed, come or gone.
fn differences(recorded: &Counts, now: &Counts) -> Vec<String> {
    let was = |model: &String| recorded.get(model).map_or_else(|| "nothing".to_owned(), shown);
    let is = |model: &String| now.get(model).map_or_else(|| "nothing".to_owned(), shown);
    let models: std::collections::BTreeSet<&String> = recorded.keys().chain(now.keys()).collect();
    models
        .into_iter()
        .filter(|model| recorded.get(*model) != now.get(*model))
        .map(|model| format!("CHANGED {model}: on record {}; now {}", was(model), is(model)))
        .collect()
}

fn shown(count: &Count) -> String {
    let Count { size, distinct_states, generated_states, depth } = count;
    format!("{distinct_states} distinct, {generated_states} generated, depth {depth}  ({size})")
}

#[cfg(test)]
mod tests {
    use super::{Count, Counts, differences};

    fn counts(models: &[(&str, u64)]) -> Counts {
        let count = |states| Count {
            size: String::new(),
            distinct_states: states,
            generated_states: 9,
            depth: 2,
        };
        models.iter().map(|(model, states)| ((*model).to_owned(), count(*states))).collect()
    }

    #[test]
    fn a_model_that_changed_came_or_went_is_reported() {
        let recorded = counts(&[("gone", 5), ("same", 5), ("smaller", 5)]);
        let now = counts(&[("new", 5), ("same", 5), ("smaller", 4)]);
        let told: Vec<String> = differences(&recorded, &now)
            .iter()
            .map(|line| line.split(':').next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(told, ["CHANGED gone", "CHANGED new", "CHANGED smaller"]);
    }
}
