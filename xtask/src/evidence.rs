//! docs/evidence.md: the table of its models is made of specs/counts.json, and each promise that it names is one of the model
//! that it names.

use crate::counts::{Count, Counts, recorded};
use crate::root;
use anyhow::Context;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The table is between these two lines.
const BEGINS: &str = "<!-- made by `cargo xtask counts --write` -->";
const ENDS: &str = "<!-- up to here -->";

/// A system, and the world of the simulation in which it runs.
struct System {
    name: &'static str,
    /// How the names of its models begin, up to the first `/` or `-`; those of protocols have `spec/` before that.
    models: &'static [&'static str],
    simulation: Option<&'static str>,
}

const SYSTEMS: [System; 8] = [
    System { name: "placement", models: &["placement", "one"], simulation: Some("fleet") },
    System { name: "volumes", models: &["volumes"], simulation: Some("fleet") },
    System { name: "nodes", models: &["nodes"], simulation: Some("nodes") },
    System { name: "identities", models: &["identities", "late"], simulation: Some("identities") },
    System { name: "rollouts", models: &["rollouts"], simulation: Some("rollouts") },
    System { name: "workloads", models: &["workloads"], simulation: None },
    System { name: "systems that meet", models: &["fleet"], simulation: None },
    System { name: "what all of them run on", models: &["kernel", "turns"], simulation: None },
];

/// The seeds and their corrections are in specs/README.md.
const ELSEWHERE: [&str; 2] = ["seed/", "fixed/"];
/// The beginning of the name of a protocol.
const PROTOCOL: &str = "spec/";

impl System {
    /// The system that a model is of.
    fn of(model: &str) -> anyhow::Result<&'static System> {
        let name = model.strip_prefix(PROTOCOL).unwrap_or(model);
        let begins = name.split(['/', '-']).next().unwrap_or(name);
        let found = SYSTEMS.iter().find(|system| system.models.contains(&begins));
        found.with_context(|| format!("{model} is of no system: name one in xtask/src/evidence.rs"))
    }
}

/// What is on record of one model, in all sizes.
struct Model<'a> {
    name: &'a str,
    default: &'a Count,
    /// The states of each larger size.
    larger: Vec<u64>,
    promises: BTreeSet<&'a String>,
}

impl Model<'_> {
    fn of<'a>(counts: &'a Counts, name: &'a str) -> anyhow::Result<Model<'a>> {
        let default = counts.get(name).with_context(|| format!("{name} is not on record"))?;
        let beginning = format!("{name} ");
        let larger = counts.iter().filter(|(key, _)| key.starts_with(&beginning));
        let larger: Vec<&Count> = larger.map(|(_, count)| count).collect();
        let all = larger.iter().copied().chain([default]);
        let promises = all.flat_map(|count| &count.promises).collect();
        let larger = larger.iter().map(|count| count.distinct_states).collect();
        Ok(Model { name, default, larger, promises })
    }

    fn row(&self, system: &str, simulation: &str) -> String {
        let Model { name, default, larger, promises } = self;
        let most = larger.iter().max().map_or_else(
            || "-".to_owned(),
            |most| format!("{}, up to {}", larger.len(), grouped(*most)),
        );
        format!(
            "| {system} | `{name}` | {} | {most} | {} | {} | {simulation} |\n",
            grouped(default.distinct_states),
            promises.len(),
            default.mutants.len(),
        )
    }
}

/// A number with a comma after each third digit from its end.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The table, a row for each model.
fn table(counts: &Counts) -> anyhow::Result<String> {
    let mut text =
        "| system | model | states | other sizes | promises | mutants | simulated in |\n\
                    |---|---|---|---|---|---|---|\n"
            .to_owned();
    let models = counts.keys().filter(|key| !key.contains(' '));
    let models = models.filter(|name| !ELSEWHERE.iter().any(|other| name.starts_with(other)));
    let models: Vec<&String> = models.collect();
    // A model that is of no system is an error, and not left out.
    models.iter().try_for_each(|name| System::of(name).map(|_| ()))?;
    for system in &SYSTEMS {
        let simulation = system.simulation.map(|world| format!("`--world {world}`"));
        let simulation = simulation.unwrap_or_else(|| "-".to_owned());
        let is_its = |name: &str| System::of(name).is_ok_and(|found| found.name == system.name);
        let (protocols, worlds): (Vec<&str>, Vec<&str>) = models
            .iter()
            .map(|name| name.as_str())
            .filter(|name| is_its(name))
            .partition(|name| name.starts_with(PROTOCOL));
        for name in worlds {
            text += &Model::of(counts, name)?.row(system.name, &simulation);
        }
        // Nothing of a protocol runs.
        for name in protocols {
            text += &Model::of(counts, name)?.row(system.name, "-");
        }
    }
    Ok(text)
}

fn page() -> PathBuf {
    root().join("docs/evidence.md")
}

/// The page with another table.
fn with_table(page: &str, table: &str) -> anyhow::Result<String> {
    let cut = || format!("docs/evidence.md has no {BEGINS:?}, or no {ENDS:?} after it");
    let (before, rest) = page.split_once(BEGINS).with_context(cut)?;
    let (_, after) = rest.split_once(ENDS).with_context(cut)?;
    Ok(format!("{before}{BEGINS}\n{table}{ENDS}{after}"))
}

/// Writes the table anew.
pub(crate) fn write() -> anyhow::Result<()> {
    let old = std::fs::read_to_string(page()).context("cannot read docs/evidence.md")?;
    let new = with_table(&old, &table(&recorded()?)?)?;
    std::fs::write(page(), new).context("cannot write docs/evidence.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promises of sizes that are not on record, which tests of their crates explore: the model, the promise, and the
    /// test.
    const IN_TESTS: [(&str, &str, &str); 4] = [
        ("volumes", "EventuallyBound", "systems/volumes/src/world/tests.rs"),
        ("nodes", "ReclaimCompletes", "systems/nodes/src/world/tests.rs"),
        ("fleet/machines", "ReclaimCompletes", "crates/programs/src/world/machines/tests.rs"),
        ("placement", "OwnEpoch", "systems/placement/src/world/tests.rs"),
    ];

    /// A row of a table of promises.
    struct Row<'a> {
        promises: Vec<&'a str>,
        worlds: Vec<&'a str>,
        protocols: Vec<&'a str>,
    }

    /// The names between backticks that are models, and no sizes.
    fn models(cell: &str) -> Vec<&str> {
        let quoted = cell.split('`').skip(1).step_by(2);
        quoted.filter(|word| !word.contains('=')).collect()
    }

    fn rows(page: &str) -> Vec<Row<'_>> {
        let lines = page.lines().filter_map(|line| line.strip_prefix("| "));
        let cells = lines.map(|line| line.split(" | ").collect::<Vec<&str>>());
        let promises = cells.filter(|cells| cells.len() == 6 && cells[0] != "promise");
        let row = promises.map(|cells| Row {
            promises: cells[0].split(", ").collect(),
            worlds: models(cells[2]),
            protocols: models(cells[3]),
        });
        row.collect()
    }

    fn text() -> String {
        std::fs::read_to_string(page()).expect("the page is there")
    }

    #[test]
    fn the_table_of_models_is_what_is_on_record() {
        let (page, counts) = (text(), recorded().expect("the record can be read"));
        let expected = table(&counts).expect("every model is on record");
        let expected = with_table(&page, &expected).expect("the page has a place for it");
        let is_same = page == expected;
        assert!(is_same, "docs/evidence.md is out of date: cargo xtask counts --write");
    }

    #[test]
    fn a_model_of_no_system_is_not_left_out() {
        let known = r#"{"placement": {"size": "", "distinct_states": 5, "generated_states": 9, "depth": 2}}"#;
        let counts: Counts = serde_json::from_str(known).expect("a record");
        let table = table(&counts).expect("it is of a system");
        assert!(
            table.ends_with("| placement | `placement` | 5 | - | 0 | 0 | `--world fleet` |\n"),
            "{table}"
        );
        let other = known.replace("placement", "spec/other-model");
        let counts: Counts = serde_json::from_str(&other).expect("a record");
        let error = super::table(&counts).expect_err("it is of none").to_string();
        assert!(error.contains("spec/other-model is of no system"), "{error}");
    }

    #[test]
    fn each_promise_of_the_page_is_one_of_the_models_beside_it() {
        let (page, counts) = (text(), recorded().expect("the record can be read"));
        let rows = rows(&page);
        assert!(rows.len() > 30, "the tables are read: {} rows", rows.len());
        let mut used: BTreeSet<&(&str, &str, &str)> = BTreeSet::new();
        for row in &rows {
            assert!(!row.worlds.is_empty(), "{:?} name no world", row.promises);
            for protocol in &row.protocols {
                assert!(counts.contains_key(*protocol), "{protocol} is not on record");
            }
            for world in &row.worlds {
                let model = Model::of(&counts, world).expect("it is on record");
                for promise in &row.promises {
                    let is_on_record = model.promises.iter().any(|name| name == promise);
                    let in_a_test =
                        IN_TESTS.iter().find(|(of, name, _)| (of, name) == (world, promise));
                    used.extend(in_a_test);
                    assert!(
                        is_on_record != in_a_test.is_some(),
                        "{promise} and {world}: a promise is on record, or in a test that IN_TESTS names, and not both"
                    );
                }
            }
        }
        assert_eq!(used.len(), IN_TESTS.len(), "a promise of IN_TESTS is not on the page");
        for (_, _, test) in IN_TESTS {
            assert!(root().join(test).is_file(), "there is no {test}");
        }
    }

    #[test]
    fn numbers_are_grouped_and_the_table_is_replaced() {
        assert_eq!([7, 1_000, 3_151_420].map(grouped), ["7", "1,000", "3,151,420"]);
        let old = format!("a\n{BEGINS}\nold\n{ENDS}\nb\n");
        let new = with_table(&old, "new\n").expect("it has a place for it");
        assert_eq!(new, format!("a\n{BEGINS}\nnew\n{ENDS}\nb\n"));
        assert!(with_table("a", "new\n").is_err());
    }
}
