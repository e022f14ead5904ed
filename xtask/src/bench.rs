//! Measurements with a peer beside us: the same work, the same machine, one run, as ratios.

mod apiserver;
mod attacks;
mod audit;
mod checker;
mod clone;
mod cost;
pub(crate) mod etcd;
mod files;
mod identities;
mod kube_apiserver;
mod load;
mod nodes;
mod placement;
mod plain;
mod pods;
pub(crate) mod process;
mod restic;
mod rollouts;
mod spread;
mod store;

use crate::{root, say, scratch};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::path::PathBuf;

/// What can be measured.
#[derive(Debug, Subcommand)]
pub(crate) enum Subject {
    /// The checker against TLC and stateright
    Checker,
    /// The store against etcd
    Store(Run),
    /// The API server over HTTPS, with etcd beside it
    Apiserver(Run),
    /// The API server against kube-apiserver with etcd
    KubeApiserver(Size),
    /// Attacks by one tenant on the API server, with a neighbour beside them: memory, latency, refusals
    Attacks(Size),
    /// A fleet of twenty clusters, as it grows
    Placement {
        /// How many namespaces there are, and how many of them move at once, step by step
        #[arg(
            long,
            value_name = "NAMESPACES:MOVES",
            value_delimiter = ',',
            value_parser = placement::size,
            default_value = "100:100,1000:1000,10000:1000"
        )]
        sizes: Vec<(usize, usize)>,
    },
    /// What recording and judging every step adds to a move
    Audit(audit::Run),
    /// Cloud identities: calls of each, the share of the rate limit that is used, memory
    Identities(identities::Run),
    /// Machines: effects of controllers for each, processor, memory of an agent
    Nodes(nodes::Run),
    /// Pods of Deployments on one machine: started, rolled to another version and deleted, and what is written at rest
    Pods(pods::Run),
    /// Updates: a bundle against `kubectl apply --server-side`, the same once more, and a fleet of clusters
    Rollouts(rollouts::Run),
    /// The mover against the restic program
    Restic(Size),
    /// Snapshots and volumes from snapshots against `cp -a`, as they grow
    Clone(Size),
}

/// How much is measured.
#[derive(Debug, Args)]
pub(crate) struct Size {
    /// Small sizes: whether it works, not how fast
    #[arg(long)]
    quick: bool,
}

/// How a server is measured.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Small sizes and one round: whether it works, not how fast
    #[arg(long)]
    quick: bool,
    /// The etcd to measure against; without it Debian's package is fetched
    #[arg(long, value_name = "FILE")]
    etcd: Option<PathBuf>,
}

impl Run {
    /// How often everything is measured, in turn.
    fn rounds(&self) -> usize {
        if self.quick { 1 } else { 5 }
    }

    /// How long one measurement lasts.
    fn seconds(&self) -> f64 {
        if self.quick { 0.3 } else { 1.0 }
    }

    /// So much data, ten times as much, and a hundred times as much.
    fn sizes(&self) -> [usize; 3] {
        if self.quick { [20, 200, 2_000] } else { [1_000, 10_000, 100_000] }
    }
}

/// Runs a benchmark.
pub(crate) fn run(subject: &Subject) -> anyhow::Result<bool> {
    match subject {
        Subject::Checker => checker::run(),
        Subject::Store(run) => store::run(run),
        Subject::Apiserver(run) => apiserver::run(run),
        Subject::KubeApiserver(size) => kube_apiserver::run(&Run { quick: size.quick, etcd: None }),
        Subject::Attacks(size) => attacks::run(size),
        Subject::Placement { sizes } => placement::run(sizes),
        Subject::Audit(run) => audit::run(run),
        Subject::Identities(run) => identities::run(run),
        Subject::Nodes(run) => nodes::run(run),
        Subject::Pods(run) => pods::run(run),
        Subject::Rollouts(run) => rollouts::run(run),
        Subject::Restic(size) => restic::run(size.quick),
        Subject::Clone(size) => clone::run(size.quick),
    }
}

/// Builds a program of ours that measures. They live outside of the workspace, so that nobody who builds
/// ours builds their dependencies too.
fn build_peer(folder: &str, binary: &str) -> anyhow::Result<PathBuf> {
    let target = scratch().join(folder);
    let status = crate::cargo()
        .args(["build", "--release", "--quiet"])
        .env("CARGO_TARGET_DIR", &target)
        .current_dir(root().join("benches").join(folder))
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("benches/{folder} does not build");
    }
    Ok(target.join("release").join(binary))
}

/// Builds an example of one of our crates, as it would be shipped.
fn build_example(package: &str, name: &str) -> anyhow::Result<PathBuf> {
    let status = crate::cargo()
        .args(["build", "--release", "--quiet", "--package", package, "--example", name])
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("example {name} of {package} does not build");
    }
    // Beside the scratch directory, which is in the target directory.
    Ok(scratch().with_file_name("release").join("examples").join(name))
}

/// Says which goals of the design were missed.
fn say_goals(goal: &str, missed: &[String]) {
    say(&format!("\ngoal: {goal}"));
    match missed {
        [] => say("met by all"),
        missed => missed.iter().for_each(|line| say(&format!("missed: {line}"))),
    }
}

fn number(answer: &Value, key: &str) -> f64 {
    answer[key].as_f64().unwrap_or(f64::NAN)
}
