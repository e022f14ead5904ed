//! Updates of clusters: a bundle beside `kubectl apply --server-side` of the same manifests on the same server, the same
//! bundle once more, and one request for a whole fleet. Requests are counted by the API server, not by the applier.

mod bundle;
pub(crate) mod counted;
mod fleet;
mod manifests;
mod up;

use super::say_goals;
use crate::interlock;
use anyhow::bail;
use std::path::PathBuf;

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Only these parts [default: all of them]
    #[arg(long, value_name = "PART", value_delimiter = ',', value_enum)]
    only: Vec<Part>,
    /// How many objects the bundle has, step by step
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "100,1000")]
    objects: Vec<usize>,
    /// How many clusters the request for a fleet is for
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    clusters: usize,
    /// How often everything is measured; the fastest round counts
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    rounds: usize,
    /// The program to measure [default: a release build]
    #[arg(long, value_name = "FILE")]
    interlock: Option<PathBuf>,
}

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// A bundle on a cluster that has nothing of it
    Bundle,
    /// The same bundle once more: nothing is to be written
    Again,
    /// One request for many clusters
    Fleet,
}

impl Run {
    fn has(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Runs the benchmark.
pub(crate) fn run(run: &Run) -> anyhow::Result<bool> {
    if run.rounds == 0 || run.clusters == 0 || run.objects.contains(&0) {
        bail!("--rounds, --clusters and --objects begin with 1");
    }
    let binary = match &run.interlock {
        Some(binary) => binary.clone(),
        None => interlock::build()?,
    };
    let mut missed = Vec::new();
    if run.has(Part::Bundle) || run.has(Part::Again) {
        let shown = bundle::Shown { first: run.has(Part::Bundle), again: run.has(Part::Again) };
        missed.extend(bundle::run(&binary, &run.objects, run.rounds, shown)?);
    }
    if run.has(Part::Fleet) {
        missed.extend(fleet::run(&binary, run.clusters, run.rounds)?);
    }
    say_goals(
        "a bundle in at most the time of kubectl and with at most as many requests; once more, no object is written; \
         a cluster of a fleet takes at most 1.5 times the processor time of one alone",
        &missed,
    );
    Ok(missed.is_empty())
}
