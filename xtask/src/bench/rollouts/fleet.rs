//! One request for many clusters of one `interlock up`, all of them at once, beside a request for one cluster alone.

use super::counted::Requests;
use super::manifests;
use super::up::{HUB, Up};
use crate::bench::spread::{count, grouped};
use crate::say;
use anyhow::Context;
use std::path::Path;
use std::time::{Duration, Instant};

/// The namespace and nine ConfigMaps. There are no Secrets among them: those that are read are the packed bundles of requests.
const OBJECTS: usize = 10;
/// What only the hub has.
const AT_THE_HUB: [&str; 6] = [
    "bundlerevisions",
    "clusterrollouts",
    "clusterupdates",
    "fleetupdates",
    "rolloutreports",
    "secrets",
];
/// The cluster that is updated alone.
const ALONE: &str = "alone";
/// The label of all others.
const LABEL: &str = "bench";
const OTHERS: &str = "fleet";
/// A cluster among many may take so much more of the processor than one alone.
const MOST: f64 = 1.5;
/// The most that a FleetUpdate takes.
const MOST_UNAVAILABLE: usize = 1_000;
/// What a request still sets off after its end belongs to it.
const SETTLES: Duration = Duration::from_secs(2);
/// How long the fleet is watched while it has nothing to do.
const RESTS: Duration = Duration::from_secs(10);

/// What the fleet takes while it has nothing to do, for each second.
#[derive(Debug, Clone, Copy)]
struct Rest {
    processor_seconds: f64,
    requests: f64,
}

/// What a request took, for all of its clusters together.
#[derive(Debug, Clone, Copy)]
struct Taken {
    seconds: f64,
    /// Of `up`, without what the fleet takes at rest: the program that asks does so once, for one cluster or for all.
    processor_seconds: f64,
    requests: u64,
    hub_reads: u64,
    hub_writes: u64,
}

fn is_at_the_hub(resource: &str) -> bool {
    AT_THE_HUB.contains(&resource)
}

/// Runs it; returns which goals were missed.
pub(super) fn run(binary: &Path, clusters: usize, rounds: usize) -> anyhow::Result<Vec<String>> {
    let names: Vec<String> = (1..=clusters).map(|number| format!("c{number:04}")).collect();
    let all: Vec<String> = names.iter().cloned().chain([ALONE.to_owned()]).collect();
    eprintln!("starting {} clusters", all.len());
    let up = Up::start(binary, &all)?;
    for name in &names {
        up.label(name, LABEL, OTHERS)?;
    }
    std::thread::sleep(SETTLES);
    let bytes = up.resident_bytes();
    let rest = at_rest(&up)?;
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        // Each round has another version: all clusters have something to write.
        let bundle = up.path(&format!("bundle-{round}"));
        manifests::write(&bundle, OBJECTS, round)?;
        eprintln!("round {round}: one cluster, then {clusters}");
        alone.push(take(&up, rest, || {
            let name = up.submit(&[ALONE], &bundle)?;
            up.until_succeeded("clusterupdates", &name)
        })?);
        together.push(take(&up, rest, || {
            let selector = format!("{LABEL}={OTHERS}");
            let at_once = clusters.min(MOST_UNAVAILABLE).to_string();
            let words = ["--selector", selector.as_str(), "--max-unavailable", at_once.as_str()];
            let name = up.submit(&words, &bundle)?;
            up.until_succeeded("fleetupdates", &name)
        })?);
    }
    let afterwards = up.resident_bytes();
    let (started, ready) = (up.started.as_secs_f64(), up.ready.as_secs_f64());
    up.stop()?;
    let (alone, together) = (fastest(&alone)?, fastest(&together)?);
    say("");
    let columns = ["clusters", "seconds", "seconds each", "processor each", "ratio"];
    let counts = ["requests each", "reads at the hub each", "writes at the hub each"];
    say(&format!("| {} | {} |", columns.join(" | "), counts.join(" | ")));
    say(&format!("|{}", "---:|".repeat(columns.len() + counts.len())));
    let base = alone.processor_seconds;
    show(1, &alone, base);
    show(clusters, &together, base);
    let (mebibytes, later) = (bytes / f64::from(1 << 20), afterwards / f64::from(1 << 20));
    let each = bytes / 1024.0 / all.len() as f64;
    say(&format!(
        "\n`up` with {} clusters says that it is ready after {started:.2} s, and all clusters are ready after \
         {ready:.2} s; {} MiB, which is {} KiB for each with the hub, and {} MiB after all rounds. At rest: {:.1} % of \
         a core, {:.1} requests a second without leases and heartbeats.",
        all.len(),
        grouped(mebibytes),
        grouped(each),
        grouped(later),
        rest.processor_seconds * 100.0,
        rest.requests,
    ));
    let ratio = together.processor_seconds / clusters as f64 / base;
    let missed = (ratio > MOST).then(|| {
        format!("{} clusters: {ratio:.2} times the processor time of one alone", count(clusters))
    });
    Ok(missed.into_iter().collect())
}

fn at_rest(up: &Up) -> anyhow::Result<Rest> {
    eprintln!("watching it rest");
    let (before, processor) = (up.requests()?, up.own_processor_seconds()?);
    std::thread::sleep(RESTS);
    let processor = up.own_processor_seconds()? - processor;
    // One of them is our own.
    let requests = up.requests()?.since(&before).all().saturating_sub(1);
    let seconds = RESTS.as_secs_f64();
    Ok(Rest { processor_seconds: processor / seconds, requests: requests as f64 / seconds })
}

/// What is asked returns how often it read its own request until that had succeeded.
fn take(up: &Up, rest: Rest, ask: impl FnOnce() -> anyhow::Result<u64>) -> anyhow::Result<Taken> {
    let (before, log) = (up.requests()?, up.log()?);
    let (processor, began) = (up.own_processor_seconds()?, Instant::now());
    let own_reads = ask()?;
    let seconds = began.elapsed().as_secs_f64();
    std::thread::sleep(SETTLES);
    let at_rest = rest.processor_seconds * began.elapsed().as_secs_f64();
    let processor_seconds = up.own_processor_seconds()? - processor - at_rest;
    let requests: Requests = up.requests()?.since(&before);
    let written = log.writes(HUB, is_at_the_hub)?;
    let hub_reads = requests.number(&["get", "list"], is_at_the_hub);
    Ok(Taken {
        seconds,
        processor_seconds,
        // The first of the two that counted is our own, too.
        requests: requests.all().saturating_sub(own_reads + 1),
        hub_reads: hub_reads.saturating_sub(own_reads),
        hub_writes: written.dry_runs + written.writes,
    })
}

fn fastest(all: &[Taken]) -> anyhow::Result<Taken> {
    let fastest = all.iter().copied().min_by(|one, other| one.seconds.total_cmp(&other.seconds));
    fastest.context("there was no round")
}

/// One row; the processor time of one cluster alone is what the others are compared with.
fn show(clusters: usize, taken: &Taken, base: f64) {
    let each = |number: u64| grouped(number as f64 / clusters as f64);
    let processor = taken.processor_seconds / clusters as f64;
    let row = [
        count(clusters),
        grouped(taken.seconds),
        grouped(taken.seconds / clusters as f64),
        format!("{} ms", grouped(processor * 1e3)),
        format!("{:.2}", processor / base),
        each(taken.requests),
        each(taken.hub_reads),
        each(taken.hub_writes),
    ];
    say(&format!("| {} |", row.join(" | ")));
}
