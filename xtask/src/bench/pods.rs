//! Pods on one machine as their number grows: Deployments of a cheap process on one cluster of `interlock up`, made, rolled
//! to another version and deleted. What a stage takes for each pod should not depend on how many there are, and at rest
//! nothing is written.

mod cluster;

use super::process::{Directory, Running, free_port};
use super::rollouts::counted::Requests;
use super::say_goals;
use super::spread::{count, grouped, time};
use crate::{interlock, say};
use anyhow::bail;
use cluster::{CLUSTER, Cluster, IN_EACH};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const TOKEN: &str = "the-administrators-token";
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// The cluster is at rest when nothing was written for so long.
const QUIET: Duration = Duration::from_secs(3);

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// How many pods there are, step by step: 10 in each Deployment
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "100,1000")]
    sizes: Vec<usize>,
    /// How long the pods are watched at rest
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    rest: u64,
    /// How long one stage may take
    #[arg(long, value_name = "SECONDS", default_value_t = 1_800)]
    timeout: u64,
    /// The program to measure [default: a release build]
    #[arg(long, value_name = "FILE")]
    interlock: Option<PathBuf>,
}

/// What is measured of all pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// From the first Deployment until the process of every pod runs.
    Started,
    /// From the first Deployment until every Deployment is available.
    Ready,
    /// From the first change until only pods of the new version are there, all of them available.
    Rolled,
    /// From the first deletion until no pod is there.
    Deleted,
}

impl Stage {
    fn words(self) -> &'static str {
        match self {
            Stage::Started => "started",
            Stage::Ready => "ready",
            Stage::Rolled => "rolled to a new version",
            Stage::Deleted => "deleted",
        }
    }
}

/// Runs the benchmark.
pub(crate) fn run(run: &Run) -> anyhow::Result<bool> {
    if let Some(size) = run.sizes.iter().find(|size| **size == 0 || !size.is_multiple_of(IN_EACH)) {
        bail!("--sizes {size}: name a multiple of {}", IN_EACH);
    }
    let binary = match &run.interlock {
        Some(binary) => binary.clone(),
        None => interlock::build()?,
    };
    say("| pods | | seconds | each | processor each | writes each | memory of `up` each |");
    say("|---:|---|---:|---:|---:|---:|---:|");
    let mut missed = Vec::new();
    for pods in &run.sizes {
        let bench = Bench::start(&binary, *pods, Duration::from_secs(run.timeout))?;
        let writes = bench.measure(Duration::from_secs(run.rest))?;
        if writes > 0 {
            missed.push(format!("{pods} pods: {writes} writes in {} s at rest", run.rest));
        }
    }
    say_goals("at rest nothing is written", &missed);
    Ok(missed.is_empty())
}

/// One `up` with pods of one number.
struct Bench {
    pods: usize,
    cluster: Cluster,
    up: Running,
    empty_bytes: f64,
    timeout: Duration,
    /// Gone when the fleet is.
    _directory: Directory,
}

/// A moment from which a stage is measured.
struct Mark {
    began: Instant,
    processor_seconds: f64,
    requests: Requests,
}

impl Bench {
    fn start(binary: &PathBuf, pods: usize, timeout: Duration) -> anyhow::Result<Bench> {
        let directory = Directory::new("pods")?;
        let (path, port) = (directory.path(), free_port()?);
        std::fs::write(path.join("tokens"), format!("{TOKEN},admin,1,\"system:masters\"\n"))?;
        let up = Running::start(
            Command::new(binary)
                .args(["up", "--insecure-http", "--listen", &format!("127.0.0.1:{port}")])
                .args(["--allow-root-processes", "--no-machines", "--clusters", CLUSTER])
                .arg("--token-file")
                .arg(path.join("tokens"))
                .arg("--data-dir")
                .arg(path.join("up")),
        )?;
        up.says(" ready ")?;
        let cluster = Cluster::new(([127, 0, 0, 1], port).into(), TOKEN);
        let empty_bytes = up.resident_bytes();
        let bench = Bench { pods, cluster, up, empty_bytes, timeout, _directory: directory };
        bench.wait("the cluster", || bench.cluster.is_ready())?;
        bench.settle()?;
        Ok(bench)
    }

    /// All stages; how many writes there were at rest.
    fn measure(self, rest: Duration) -> anyhow::Result<u64> {
        let writes = self.stages(rest);
        // Whatever happened, no process is left behind.
        self.up.stop()?;
        writes
    }

    fn stages(&self, rest: Duration) -> anyhow::Result<u64> {
        let mark = self.mark()?;
        self.cluster.make(self.pods)?;
        self.wait("starting", || self.cluster.runs(self.pods))?;
        self.row(Stage::Started, &mark)?;
        self.wait("becoming ready", || self.cluster.is_as_declared())?;
        self.row(Stage::Ready, &mark)?;
        self.settle()?;
        let writes = self.rest(rest)?;
        let mark = self.mark()?;
        self.cluster.roll(self.pods)?;
        self.wait("rolling", || self.cluster.is_as_declared())?;
        self.row(Stage::Rolled, &mark)?;
        self.settle()?;
        let mark = self.mark()?;
        self.cluster.delete(self.pods)?;
        self.wait("deleting", || self.cluster.is_empty())?;
        self.row(Stage::Deleted, &mark)?;
        Ok(writes)
    }

    fn mark(&self) -> anyhow::Result<Mark> {
        let (processor_seconds, requests) = (self.up.processor_seconds()?, self.requests()?);
        Ok(Mark { began: Instant::now(), processor_seconds, requests })
    }

    fn requests(&self) -> anyhow::Result<Requests> {
        Ok(Requests::of(&self.cluster.metrics()?))
    }

    /// The writes since a mark, without leases, heartbeats and events.
    fn writes_since(&self, mark: &Mark) -> anyhow::Result<u64> {
        Ok(self.requests()?.since(&mark.requests).number(&WRITES, |_| true))
    }

    /// Says what a stage took that ends now.
    fn row(&self, stage: Stage, mark: &Mark) -> anyhow::Result<()> {
        let (seconds, pods) = (mark.began.elapsed().as_secs_f64(), self.pods as f64);
        let processor_seconds = self.up.processor_seconds()? - mark.processor_seconds;
        let bytes = self.up.resident_bytes() - self.empty_bytes;
        say(&format!(
            "| {} | {} | {} | {} | {} | {} | {} KiB |",
            count(self.pods),
            stage.words(),
            grouped(seconds),
            time(seconds * 1e6 / pods),
            time(processor_seconds * 1e6 / pods),
            grouped(self.writes_since(mark)? as f64 / pods),
            grouped(bytes / 1024.0 / pods),
        ));
        Ok(())
    }

    /// Watches the pods while nothing happens; how many writes there were all the same.
    fn rest(&self, rest: Duration) -> anyhow::Result<u64> {
        let mark = self.mark()?;
        std::thread::sleep(rest);
        let seconds = mark.began.elapsed().as_secs_f64();
        let processor = (self.up.processor_seconds()? - mark.processor_seconds) / seconds;
        let writes = self.writes_since(&mark)?;
        say(&format!(
            "| {} | at rest | {} | | {:.1} % of one | {writes} in all | |",
            count(self.pods),
            grouped(seconds),
            processor * 100.0,
        ));
        Ok(writes)
    }

    fn wait(&self, what: &str, is_so: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let asked = Instant::now();
            if is_so()? {
                return Ok(());
            }
            if began.elapsed() > self.timeout {
                bail!("{what}: not done after {} s", self.timeout.as_secs());
            }
            // To ask should not be what is measured.
            std::thread::sleep((asked.elapsed() * 20).max(Duration::from_millis(50)));
        }
    }

    /// Waits until nothing is written any more: what a stage still sets off belongs to it and not to the next one.
    fn settle(&self) -> anyhow::Result<()> {
        self.wait("coming to rest", || {
            let mark = self.mark()?;
            std::thread::sleep(QUIET);
            Ok(self.writes_since(&mark)? == 0)
        })
    }
}
