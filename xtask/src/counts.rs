//! Every model in its default size: do ours hold, and have they as many states as on record? A model
//! that shrank unnoticed still holds, and proves less.

use crate::{interlock, root, say};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
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
    let output = Command::new(interlock::build()?)
        .args(["check", "-o", "json"])
        .output()
        .context("cannot start interlock")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    let all_hold = match output.status.code() {
        Some(0) => true,
        Some(1) => false,
        _ => bail!("interlock check: {}", complaint.trim()),
    };
    let answers: Vec<Answer> =
        serde_json::from_slice(&output.stdout).context("interlock check printed no JSON")?;
    if !all_hold {
        say("some are broken: cargo run --release -- check");
    }
    let counts: Counts = answers.into_iter().map(|answer| (answer.model, answer.count)).collect();
    for (model, count) in &counts {
        say(&format!("{model:26} {}", shown(count)));
    }
    Ok((all_hold, counts))
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
