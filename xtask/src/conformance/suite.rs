//! Upstream's test program: which tests it is to run, and what it reports of them.

use anyhow::{Context, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A test that takes longer does not end.
const LONGEST: &str = "40m";
/// Such tests change what others rest on.
const SERIAL: &str = "[Serial]";

/// The program, and a folder for its reports.
pub(super) struct Suite<'a> {
    pub(super) program: PathBuf,
    pub(super) folder: &'a Path,
}

/// What became of a test.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Passed,
    /// And why.
    Failed(String),
}

/// What one process reports, as far as it is read here.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    #[serde(default)]
    spec_reports: Option<Vec<Spec>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    #[serde(default)]
    failure: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    #[serde(default)]
    message: String,
}

impl Suite<'_> {
    /// Runs tests, several at once, and then those that must be alone.
    pub(super) fn run(
        &self,
        kubeconfig: &Path,
        asked: &[&str],
        jobs: usize,
    ) -> anyhow::Result<BTreeMap<String, Outcome>> {
        let (alone, others): (Vec<&str>, Vec<&str>) =
            asked.iter().partition(|name| name.contains(SERIAL));
        let mut shares = vec![Vec::new(); jobs.max(1)];
        for (place, name) in others.iter().enumerate() {
            shares[place % jobs.max(1)].push(*name);
        }
        let mut running = Vec::new();
        for (place, share) in shares.iter().enumerate().filter(|(_, share)| !share.is_empty()) {
            let name = format!("e2e-{place}");
            running.push((self.command(kubeconfig, share, &name)?.spawn()?, share, name));
        }
        let mut outcomes = BTreeMap::new();
        for (mut process, share, name) in running {
            process.wait()?;
            outcomes.extend(self.outcomes(&name, share)?);
        }
        if !alone.is_empty() {
            self.command(kubeconfig, &alone, "e2e-alone")?.status()?;
            outcomes.extend(self.outcomes("e2e-alone", &alone)?);
        }
        Ok(outcomes)
    }

    fn command(&self, kubeconfig: &Path, names: &[&str], log: &str) -> anyhow::Result<Command> {
        let escaped: Vec<String> = names.iter().map(|name| escaped(name)).collect();
        let file = File::create(self.folder.join(format!("{log}.log")))?;
        let mut command = Command::new(&self.program);
        command
            .args(["--provider", "skeleton", "--kubeconfig"])
            .arg(kubeconfig)
            // There are no nodes, and nothing runs in kube-system.
            .args(["--allowed-not-ready-nodes", "-1", "--minStartupPods", "0"])
            .args(["--system-pods-startup-timeout", "0", "--node-schedulable-timeout", "0"])
            .args(["--disable-log-dump", "--ginkgo.no-color", "--ginkgo.timeout", LONGEST])
            .args(["--ginkgo.focus", &escaped.join("|")])
            .arg("--ginkgo.json-report")
            .arg(self.folder.join(format!("{log}.json")))
            .current_dir(self.folder)
            .stdout(file.try_clone()?)
            .stderr(file);
        Ok(command)
    }

    fn outcomes(&self, log: &str, asked: &[&str]) -> anyhow::Result<BTreeMap<String, Outcome>> {
        let path = self.folder.join(format!("{log}.json"));
        let text = std::fs::read(&path).with_context(|| {
            format!(
                "the tests did not run: see {}",
                self.folder.join(format!("{log}.log")).display()
            )
        })?;
        let reports: Vec<Report> = serde_json::from_slice(&text)?;
        let outcomes = read(reports, asked);
        if outcomes.is_empty() {
            bail!("none of {} tests was run: see {}", asked.len(), path.display());
        }
        Ok(outcomes)
    }
}

/// What became of each test that was asked for. One that upstream does not have, or has left out here, did
/// not pass.
fn read(reports: Vec<Report>, asked: &[&str]) -> BTreeMap<String, Outcome> {
    let asked: BTreeSet<&str> = asked.iter().copied().collect();
    let never = || Outcome::Failed("was not run".to_owned());
    let mut outcomes: BTreeMap<String, Outcome> =
        asked.iter().map(|name| ((*name).to_owned(), never())).collect();
    let specs = reports.into_iter().filter_map(|report| report.spec_reports).flatten();
    for spec in specs.filter(|spec| spec.leaf_node_type == "It") {
        let name = spec.name();
        if asked.contains(&*name) {
            outcomes.insert(name, spec.outcome());
        }
    }
    outcomes
}

impl Spec {
    fn name(&self) -> String {
        let parts = self.container_hierarchy_texts.iter().flatten().chain([&self.leaf_node_text]);
        let words: Vec<&str> = parts.flat_map(|part| part.split_whitespace()).collect();
        words.join(" ")
    }

    fn outcome(&self) -> Outcome {
        if self.state == "passed" {
            return Outcome::Passed;
        }
        let said = self.failure.as_ref().map_or("", |failure| failure.message.trim());
        let words: Vec<&str> = said.split_whitespace().collect();
        let short: String = words.join(" ").chars().take(300).collect();
        Outcome::Failed(format!("{}: {short}", self.state))
    }
}

/// A name as a regular expression that nothing else matches but longer names.
fn escaped(name: &str) -> String {
    let special = |letter: char| "\\.+*?()|[]{}^$".contains(letter);
    let mut escaped = String::new();
    for letter in name.chars() {
        if special(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    // Upstream has two blanks here and there.
    escaped.replace(' ', " +")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_not_in_the_report_did_not_pass() {
        let report = r#"[{"SpecReports": [
            {"LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "passed"},
            {"ContainerHierarchyTexts": ["[sig-a] A "], "LeafNodeType": "It", "LeafNodeText": "works",
             "State": "passed"},
            {"ContainerHierarchyTexts": ["[sig-a] A"], "LeafNodeType": "It", "LeafNodeText": "waits",
             "State": "failed", "Failure": {"Message": "not\n in time"}},
            {"LeafNodeType": "It", "LeafNodeText": "[sig-a] other", "State": "skipped"}
        ]}]"#;
        let reports = serde_json::from_str(report).expect("it is JSON");
        let outcomes = read(reports, &["[sig-a] A works", "[sig-a] A waits", "[sig-a] A is gone"]);
        assert_eq!(outcomes["[sig-a] A works"], Outcome::Passed);
        assert_eq!(outcomes["[sig-a] A waits"], Outcome::Failed("failed: not in time".to_owned()));
        assert_eq!(outcomes["[sig-a] A is gone"], Outcome::Failed("was not run".to_owned()));
        assert_eq!(outcomes.len(), 3);
    }

    #[test]
    fn a_name_is_no_pattern() {
        assert_eq!(escaped("[sig-a] a (b) $1"), "\\[sig-a\\] +a +\\(b\\) +\\$1");
    }
}
