//! Upstream's own end-to-end tests against `interlock serve`: those on record must pass, and the record only grows.

mod record;
mod suite;

use crate::program::{Program, output};
use crate::serving::Serving;
use crate::{interlock, say, scratch, upstream};
use anyhow::Context;
use record::Record;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use suite::{Outcome, Suite};

/// What the tests expect to be done about objects, and an API server does not do. Namespaces, garbage and
/// quotas are the server's own work.
const CONTROLLERS: &str = "deployment-controller,replicaset-controller,\
    replicationcontroller-controller,statefulset-controller,daemonset-controller,job-controller,\
    cronjob-controller,disruption-controller,endpoints-controller,endpointslice-controller,\
    endpointslice-mirroring-controller,\
    clusterrole-aggregation-controller,persistentvolume-protection-controller,\
    persistentvolumeclaim-protection-controller";

/// What is run.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The binary to serve with, instead of a fresh release build
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Only tests whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Also the tests that do not pass yet: one that does is reported
    #[arg(long)]
    missing: bool,
    /// Put tests that pass now on record (with --missing)
    #[arg(long, requires = "missing")]
    write: bool,
    /// How many tests run at once
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    jobs: usize,
}

/// Runs them; false if one that is on record does not pass.
pub(crate) fn run(run: &Run) -> anyhow::Result<bool> {
    let mut record = Record::read()?;
    let upstream = upstream::tests()?;
    let binary = run.binary.clone().map_or_else(interlock::build, Ok)?.canonicalize()?;
    let folder = scratch().join("conformance");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    say(&format!("logs are in {}", folder.display()));
    let serving = Serving::start(&binary, &folder)?;
    let _controllers = controllers(&upstream, &serving, &folder)?;
    bring_node(&serving, &folder)?;
    let missing = record.missing.keys().filter(|_| run.missing);
    let asked = record.passing.iter().chain(missing).filter(|name| name.contains(&run.only));
    let asked: Vec<&str> = asked.map(String::as_str).collect();
    say(&format!("{} tests of Kubernetes {}", asked.len(), upstream::VERSION));
    let suite = Suite { program: upstream.join(upstream::E2E_TEST), folder: &folder };
    let outcomes = suite.run(serving.kubeconfig(), &asked, run.jobs)?;
    let (passed, failed) = tell(&record, &outcomes);
    if run.write {
        record.add(&passed);
        record.write()?;
    }
    let lost = failed.iter().filter(|name| record.passing.contains(*name)).count();
    say(&format!(
        "{} passed, {} failed; on record are {} that pass and {} that do not; {lost} of those on record \
         did not pass",
        passed.len(),
        failed.len(),
        record.passing.len(),
        record.missing.len(),
    ));
    Ok(lost == 0)
}

fn controllers(upstream: &Path, serving: &Serving, folder: &Path) -> anyhow::Result<Program> {
    let mut manager = Command::new(upstream.join(upstream::CONTROLLER_MANAGER));
    manager.args(["--secure-port", "0", "--leader-elect=false", "--controllers", CONTROLLERS]);
    manager.arg("--kubeconfig").arg(serving.kubeconfig());
    Program::start(&mut manager, folder, upstream::CONTROLLER_MANAGER)
}

/// The tests begin only where there is a node that could take pods. Nothing runs on this one.
fn bring_node(serving: &Serving, folder: &Path) -> anyhow::Result<()> {
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "nobody"},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Pretended"}]},
    });
    let file = folder.join("node.json");
    let name = file.to_string_lossy();
    let put = |node: &Value, words: &[&str]| {
        std::fs::write(&file, node.to_string())?;
        let mut kubectl = Command::new("kubectl");
        kubectl.arg("--kubeconfig").arg(serving.kubeconfig()).args(words);
        output(kubectl.args(["-f", &name]), folder)
            .context("kubectl is needed: apt-get install --yes kubernetes-client")
    };
    put(&node, &["create"])?;
    // A node that is new is tainted until a controller takes that away.
    node["spec"] = json!({"taints": []});
    put(&node, &["replace", "--raw", "/api/v1/nodes/nobody"])?;
    put(&node, &["replace", "--raw", "/api/v1/nodes/nobody/status"]).map(drop)
}

/// Says what is other than on record; the names of those that passed, and of the others.
fn tell(record: &Record, outcomes: &BTreeMap<String, Outcome>) -> (Vec<String>, Vec<String>) {
    let (mut passed, mut failed) = (Vec::new(), Vec::new());
    for (name, outcome) in outcomes {
        let is_on_record = record.passing.contains(name);
        match outcome {
            Outcome::Passed => {
                if !is_on_record {
                    say(&format!("passes now  {name}"));
                }
                passed.push(name.clone());
            }
            Outcome::Failed(because) => {
                let verdict = if is_on_record { "FAILED" } else { "fails" };
                say(&format!("{verdict:10}  {name}\n            {because}"));
                failed.push(name.clone());
            }
        }
    }
    (passed, failed)
}
