//! The API server over HTTPS: `interlock serve` as a user starts it, with etcd's bare puts beside it.

use super::Run;
use super::etcd::{self, Etcd};
use super::load::Load;
use super::process::{Directory, Running};
use super::spread::{Rounds, count, grouped, time};
use crate::{interlock, say};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What is written, how it travels, and by how many at once.
const WRITES: [(&str, &str, &str); 10] = [
    ("create", "http1", "1"),
    ("create", "http1", "64"),
    ("create", "h2", "64"),
    ("update", "http1", "1"),
    ("update", "http1", "64"),
    ("update", "h2", "64"),
    ("apply", "http1", "1"),
    ("apply", "http1", "64"),
    ("get", "http1", "1"),
    ("get", "http1", "64"),
];

/// Who is measured, and with what.
struct Bench<'a> {
    run: &'a Run,
    load: Load,
    etcd: PathBuf,
    interlock: PathBuf,
}

/// A server that runs.
struct Server {
    running: Running,
    kubeconfig: PathBuf,
    start: Duration,
}

/// Runs the benchmark.
pub(crate) fn run(run: &Run) -> anyhow::Result<bool> {
    let bench = Bench {
        run,
        load: Load::build()?,
        etcd: etcd::get(run.etcd.as_ref())?,
        interlock: interlock::build()?,
    };
    let scratch = Directory::new("disk")?;
    say(&format!("etcd {}; {}", etcd::version(&bench.etcd)?, bench.load.disk(scratch.path())?));
    say("");
    bench.writes()?;
    say("");
    bench.watches_and_clusters()?;
    say("");
    bench.growth()?;
    Ok(true)
}

impl Bench<'_> {
    fn serve(&self, directory: &Path) -> anyhow::Result<Server> {
        let running = Running::start(
            Command::new(&self.interlock)
                .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
                .arg(directory),
        )?;
        let (start, _) = running.says(" ready ")?;
        Ok(Server { running, kubeconfig: directory.join("kubeconfig"), start })
    }

    fn ask(&self, server: &Server, what: &str, args: &[&str]) -> anyhow::Result<Value> {
        self.load.run(what, &server.kubeconfig, args)
    }

    /// Writes of objects, with etcd's puts of the same size beside them.
    fn writes(&self) -> anyhow::Result<()> {
        let (data, etcd_data) = (Directory::new("api-writes")?, Directory::new("etcd-writes")?);
        let server = self.serve(data.path())?;
        self.ask(&server, "api-prepare", &[])?;
        let etcd = Etcd::start(&self.etcd, etcd_data.path())?;
        let pids = (server.running.pid().to_string(), etcd.running.pid().to_string());
        let seconds = (self.run.seconds() * 0.8).to_string();
        let mut rounds = Rounds::default();
        for _ in 0..self.run.rounds() {
            for writers in ["1", "64"] {
                let args = ["--writers", writers, "--seconds", &seconds, "--bytes", "2048"];
                let args = [&args[..], &["--pid", &pids.1]].concat();
                let measured = self.load.run("etcd-puts", &etcd.address, &args)?;
                rounds.add(&format!("etcd {writers}"), &measured);
            }
            for (action, protocol, clients) in WRITES {
                let args = [action, protocol, "--writers", clients, "--seconds", &seconds];
                let args = [&args[..], &["--pid", &pids.0]].concat();
                let measured = self.ask(&server, "api-writes", &args)?;
                rounds.add(&format!("{action} {protocol} {clients}"), &measured);
            }
        }
        etcd.running.stop()?;
        server.running.stop()?;
        say("| clients | | per second | ratio to etcd's puts | p50 | p99 | processor each |");
        say("|---:|---|---:|---:|---:|---:|---:|");
        let row = |clients: &str, name: &str, what: &str| {
            let of = |key: &str| rounds.of(what, key);
            let base = rounds.of(&format!("etcd {clients}"), "per_second").median;
            say(&format!(
                "| {clients} | {name} | {} | {} | {} | {} | {} |",
                of("per_second").whole(),
                grouped(of("per_second").median / base),
                time(of("p50_us").median),
                time(of("p99_us").median),
                time(of("processor_us").median),
            ));
        };
        for clients in ["1", "64"] {
            row(clients, "etcd, guarded put of 2 KiB over gRPC", &format!("etcd {clients}"));
            for (action, protocol, _) in WRITES.iter().filter(|(.., it)| *it == clients) {
                let wire = if *protocol == "h2" { "HTTP/2" } else { "HTTP/1.1" };
                row(
                    clients,
                    &format!("{action}, {wire}"),
                    &format!("{action} {protocol} {clients}"),
                );
            }
        }
        Ok(())
    }

    /// Watch fan-out, then empty logical clusters.
    fn watches_and_clusters(&self) -> anyhow::Result<()> {
        let data = Directory::new("api-watches")?;
        let server = self.serve(data.path())?;
        let idle_bytes = server.running.resident_bytes();
        self.ask(&server, "api-prepare", &[])?;
        let pid = server.running.pid().to_string();
        let watchers = if self.run.quick { ["1", "10", "50"] } else { ["1", "100", "1000"] };
        let mut rounds = Rounds::default();
        for _ in 0..self.run.rounds() {
            for watchers in watchers {
                let args = [watchers, if self.run.quick { "5" } else { "20" }, &pid];
                rounds.add(watchers, &self.ask(&server, "api-watches", &args)?);
            }
        }
        server.running.stop()?;
        say(
            "| watchers | write sent to event seen, p50 | p99 | write answered, p50 | events/s in a burst | processor per event |",
        );
        say("|---:|---:|---:|---:|---:|---:|");
        for watchers in watchers {
            let of = |key: &str| rounds.of(watchers, key);
            say(&format!(
                "| {watchers} | {} | {} | {} | {} | {} |",
                time(of("event_p50_us").median),
                time(of("event_p99_us").median),
                time(of("answer_p50_us").median),
                of("events_per_second").whole(),
                time(of("processor_us").median),
            ));
        }
        say("");
        self.clusters(idle_bytes)
    }

    /// Empty logical clusters, each time in a server of its own: memory that was used once is used again.
    fn clusters(&self, idle_bytes: f64) -> anyhow::Result<()> {
        let sizes = if self.run.quick { ["10", "100"] } else { ["100", "1000"] };
        say(
            "| empty logical clusters | created/s | memory each | all deleted after | processor per deletion |",
        );
        say("|---:|---:|---:|---:|---:|");
        for clusters in sizes {
            let mut rounds = Rounds::default();
            for _ in 0..self.run.rounds() {
                let data = Directory::new("api-clusters")?;
                let server = self.serve(data.path())?;
                let pid = server.running.pid().to_string();
                rounds.add("", &self.ask(&server, "api-clusters", &[clusters, &pid])?);
                server.running.stop()?;
            }
            let of = |key: &str| rounds.of("", key);
            say(&format!(
                "| {clusters} | {} | {} KiB | {} | {} |",
                of("created_per_second").whole(),
                grouped(of("bytes").median / 1024.0),
                time(of("deleted_seconds").median * 1e6),
                time(of("deletion_processor_us").median),
            ));
        }
        say("");
        say(&format!("resident memory after the first start: {} MiB", grouped(idle_bytes / MIB)));
        Ok(())
    }

    /// Starts, memory and lists as the data grows.
    fn growth(&self) -> anyhow::Result<()> {
        let data = Directory::new("api-growth")?;
        let server = self.serve(data.path())?;
        self.ask(&server, "api-prepare", &[])?;
        server.running.stop()?;
        say(
            "| objects of 2 KiB | start to ready | memory | per object | list of 500 | list of 10,000 | MB/s | processor |",
        );
        say("|---:|---:|---:|---:|---:|---:|---:|---:|");
        let (mut from, mut idle_bytes) = (0, f64::NAN);
        let sizes = self.run.sizes();
        for objects in [0].into_iter().chain(sizes) {
            if objects > 0 {
                let server = self.serve(data.path())?;
                self.ask(&server, "api-fill", &[&from.to_string(), &objects.to_string()])?;
                server.running.stop()?;
                from = objects;
            }
            let mut rounds = Rounds::default();
            for _ in 0..self.run.rounds() {
                let server = self.serve(data.path())?;
                rounds.note("", "start_us", server.start.as_secs_f64() * 1e6);
                let bytes = server.running.resident_bytes();
                rounds.note("", "bytes", bytes);
                if objects > 0 {
                    let pid = server.running.pid().to_string();
                    rounds.add("", &self.ask(&server, "api-lists", &[&pid])?);
                }
                server.running.stop()?;
            }
            let of = |key: &str| rounds.of("", key).median;
            if objects == 0 {
                idle_bytes = of("bytes");
            }
            let each = (of("bytes") - idle_bytes) / objects as f64;
            say(&format!(
                "| {} | {} | {} MiB | {} B | {} | {} | {} | {} |",
                count(objects),
                time(of("start_us")),
                grouped(of("bytes") / MIB),
                grouped(each),
                time(of("list_500_us")),
                time(of("list_10000_us")),
                grouped(of("list_10000_bytes") / of("list_10000_us")),
                time(of("list_10000_processor_us")),
            ));
        }
        Ok(())
    }
}

const MIB: f64 = 1024.0 * 1024.0;
