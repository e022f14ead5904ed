//! Cloud identities as their number grows: the calls that each costs, how much of the rate limit is used, and
//! what an identity takes in memory. The calls are counted by a proxy in front of the IAM, not by the
//! controllers.

mod counting;
mod hub;

use super::process::{Directory, Running, free_port};
use super::say_goals;
use super::spread::{count, grouped};
use crate::{interlock, say};
use anyhow::{Context, bail};
use counting::{Calls, Proxy};
use hub::Hub;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const TOKEN: &str = "the-administrators-token";
/// Whoever has sent nothing for so long after the late-call window has nothing more to do: the marks are gone.
const QUIET: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(1_800);
/// A policy has at most so many versions.
const MOST_VERSIONS: usize = 5;

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// How many identities there are, step by step
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "10,100,1000")]
    sizes: Vec<usize>,
    /// How often the account may be called
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    calls_per_second: u32,
    /// How long after it was sent a call may take effect: what was sent is known for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    late_call_window: u32,
    /// The program to measure [default: a release build]
    #[arg(long, value_name = "FILE")]
    interlock: Option<PathBuf>,
}

/// What is done to all identities, and what it may cost each: writes and reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Create,
    Resync,
    Update,
    UpdateAtLimit,
    Delete,
}

const WORKS: [Work; 5] =
    [Work::Create, Work::Resync, Work::Delete, Work::Update, Work::UpdateAtLimit];

impl Work {
    fn words(self) -> &'static str {
        match self {
            Work::Create => "create",
            Work::Resync => "resync, no change",
            Work::Update => "update",
            Work::UpdateAtLimit => "update, 5 versions",
            Work::Delete => "delete",
        }
    }

    /// The design's figures.
    fn goal(self) -> (f64, f64) {
        match self {
            Work::Create => (3.0, 8.0),
            Work::Resync => (0.0, 3.0),
            Work::Update => (1.0, 4.0),
            Work::UpdateAtLimit => (2.0, 6.0),
            Work::Delete => (3.0, 9.0),
        }
    }
}

/// One line of the table.
struct Row {
    identities: usize,
    work: Work,
    calls: Calls,
    /// How much of the rate was used while there was work.
    used: f64,
    /// The most that a window had above the rate; at most the burst is allowed.
    above: f64,
}

impl Row {
    /// Whether it took so long that it says something about the rate.
    fn is_long(&self) -> bool {
        self.calls.seconds > 10.0
    }

    fn each(&self, number: usize) -> f64 {
        number as f64 / self.identities as f64
    }
}

/// Runs the benchmark.
pub(crate) fn run(run: &Run) -> anyhow::Result<bool> {
    let binary = match &run.interlock {
        Some(binary) => binary.clone(),
        None => interlock::build()?,
    };
    let bench = Bench::start(binary, run)?;
    let (mut rows, mut memory) = (Vec::new(), Vec::new());
    let columns = ["identities", "", "writes each", "reads each", "goal", "seconds", "rate used"];
    say(&format!("| {} | above the rate |", columns.join(" | ")));
    say("|---:|---|---:|---:|---|---:|---:|---:|");
    for identities in &run.sizes {
        bench.measure(*identities, &mut rows, &mut memory)?;
    }
    bench.say_memory(&memory);
    let missed = missed(&rows, run.calls_per_second);
    say_goals(
        "the calls of the design; at 1,000 within 1.05 of those at 10; 90 % of the rate used, and never more \
         than rate and burst",
        &missed,
    );
    Ok(missed.is_empty())
}

fn missed(rows: &[Row], per_second: u32) -> Vec<String> {
    let mut missed = Vec::new();
    for row in rows {
        let (name, (writes, reads)) = (row.work.words(), row.work.goal());
        let (did_write, did_read) = (row.each(row.calls.writes), row.each(row.calls.reads));
        // Who is calling is asked once by each process.
        let once = 1.0 / row.identities as f64;
        if did_write > writes + 0.001 || did_read > reads + once + 0.001 {
            let number = row.identities;
            missed.push(format!("{number}, {name}: {did_write:.2} writes, {did_read:.2} reads"));
        }
        if row.is_long() && row.used < 0.9 {
            missed.push(format!("{}, {name}: {:.0} % used", row.identities, row.used * 100.0));
        }
        if row.above > f64::from(2 * per_second) {
            missed.push(format!("{}, {name}: {:.0} above the rate", row.identities, row.above));
        }
    }
    for work in WORKS {
        let of_work = rows.iter().filter(|row| row.work == work);
        let each: Vec<f64> =
            of_work.map(|row| row.each(row.calls.writes + row.calls.reads)).collect();
        if let (Some(first), Some(last)) = (each.first(), each.last())
            && last / first > 1.05
        {
            missed.push(format!("{}: {first:.2} calls each, then {last:.2}", work.words()));
        }
    }
    missed
}

/// A hub, an account with a proxy before it, and what starts controllers between them.
struct Bench {
    binary: PathBuf,
    directory: Directory,
    hub: Hub,
    proxy: Proxy,
    keys: [(&'static str, String); 2],
    per_second: u32,
    window: Duration,
    _servers: [Running; 2],
}

impl Bench {
    fn start(binary: PathBuf, run: &Run) -> anyhow::Result<Bench> {
        let directory = Directory::new("identities")?;
        let path = directory.path();
        std::fs::write(path.join("tokens"), format!("{TOKEN},admin,1,\"system:masters\"\n"))?;
        // Its fleet has nothing to do: only its account is used.
        let (cloud, account) = (path.join("cloud"), free_port()?);
        let cloud_runs = Running::start(
            Command::new(&binary)
                .args(["up", "--listen", "127.0.0.1:0", "--allow-root-processes", "--no-machines"])
                .args(["--clusters", "unused", "--iam-listen", &format!("127.0.0.1:{account}")])
                .arg("--data-dir")
                .arg(&cloud),
        )?;
        cloud_runs.says(" ready ")?;
        let port = free_port()?;
        let hub_runs = Running::start(
            Command::new(&binary)
                .args(["serve", "--insecure-http", "--listen", &format!("127.0.0.1:{port}")])
                .arg("--token-file")
                .arg(path.join("tokens"))
                .arg("--data-dir")
                .arg(path.join("hub")),
        )?;
        let hub = Hub::new(([127, 0, 0, 1], port).into(), TOKEN);
        hub_runs.becomes(|| hub.is_ready())?;
        std::fs::write(path.join("config"), hub.kubeconfig())?;
        let proxy = Proxy::start(([127, 0, 0, 1], account).into())?;
        let config = std::fs::read_to_string(cloud.join("aws-config"))?;
        let key = |name: &str| {
            let line = config.lines().find_map(|line| line.strip_prefix(name));
            let value = line.and_then(|line| line.trim_start().strip_prefix('='));
            value.map(|value| value.trim().to_owned()).with_context(|| format!("no {name}"))
        };
        let keys = [
            ("AWS_ACCESS_KEY_ID", key("aws_access_key_id")?),
            ("AWS_SECRET_ACCESS_KEY", key("aws_secret_access_key")?),
        ];
        let _servers = [cloud_runs, hub_runs];
        let (per_second, window) =
            (run.calls_per_second, Duration::from_secs(u64::from(run.late_call_window)));
        Ok(Bench { binary, directory, hub, proxy, keys, per_second, window, _servers })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn controllers(&self) -> anyhow::Result<Running> {
        let window = format!("{}s", self.window.as_secs());
        let running = Running::start(
            Command::new(&self.binary)
                .arg("controllers")
                .arg("--kubeconfig")
                .arg(self.path().join("config"))
                .args(["--lease", "3s", "--fleet", "bench", "--late-call-window", &window])
                .args(["--iam-endpoint", &format!("http://{}", self.proxy.address())])
                .args(["--oidc-provider-arn", "arn:aws:iam::000000000000:oidc-provider/bench"])
                .args(["--resync", "24h"])
                .args(["--iam-calls-per-second", &self.per_second.to_string()])
                .envs(self.keys.iter().map(|(name, value)| (name, value)))
                .env("NO_COLOR", "1"),
        )?;
        Ok(running)
    }

    fn measure(
        &self,
        identities: usize,
        rows: &mut Vec<Row>,
        memory: &mut Vec<(usize, f64)>,
    ) -> anyhow::Result<()> {
        let mut add = |work: Work, calls: Calls| {
            let row = self.row(identities, work, calls);
            say(&self.line(&row));
            rows.push(row);
        };
        let running = self.controllers()?;
        self.hub.wait_for_kinds(TIMEOUT)?;
        self.proxy.begin();
        self.hub.create(identities)?;
        add(Work::Create, self.done(|| self.hub.all_are_at(identities, 1))?);
        running.stop()?;

        let before = self.hub.versions()?;
        self.proxy.begin();
        let running = self.controllers()?;
        add(Work::Resync, self.done(|| Ok(self.proxy.so_far() >= 3 * identities))?);
        if self.hub.versions()? != before {
            bail!("a resync without a change wrote to the hub");
        }
        memory.push((identities, running.resident_bytes()));

        self.proxy.begin();
        self.hub.delete(identities)?;
        add(Work::Delete, self.done(|| self.hub.all_are_gone())?);

        self.hub.create(identities)?;
        self.done(|| self.hub.all_are_at(identities, 1))?;
        for version in 2..=MOST_VERSIONS + 1 {
            self.proxy.begin();
            self.hub.update(identities, version)?;
            let calls = self.done(|| self.hub.all_are_at(identities, version))?;
            match version {
                2 => add(Work::Update, calls),
                last if last > MOST_VERSIONS => add(Work::UpdateAtLimit, calls),
                _ => {}
            }
        }
        self.hub.delete(identities)?;
        self.done(|| self.hub.all_are_gone())?;
        running.stop()
    }

    /// Waits until something is so, and then until nothing is called any more.
    fn done(&self, mut is_so: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<Calls> {
        let began = Instant::now();
        while !is_so()? || self.proxy.quiet_for() < self.window + QUIET {
            if began.elapsed() > TIMEOUT {
                bail!("not done after {TIMEOUT:?}: {} calls", self.proxy.so_far());
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        Ok(self.proxy.calls())
    }

    fn row(&self, identities: usize, work: Work, calls: Calls) -> Row {
        let rate = f64::from(self.per_second);
        // Of the burst nobody knows how much was there: what was sent in the time after the first burst.
        let burst = 2.0 * rate;
        let sent = (calls.reads + calls.writes) as f64;
        let used = (sent / (calls.seconds * rate + burst).max(1.0)).min(1.0);
        let above = calls.most_above(rate);
        Row { identities, work, used, above, calls }
    }

    fn line(&self, row: &Row) -> String {
        let (writes, reads) = row.work.goal();
        let used = match row.is_long() {
            true => format!("{:.0} %", row.used * 100.0),
            false => "-".to_owned(),
        };
        format!(
            "| {} | {} | {:.2} | {:.2} | {writes} + {reads} | {:.1} | {used} | {:.0} of {} |",
            count(row.identities),
            row.work.words(),
            row.each(row.calls.writes),
            row.each(row.calls.reads),
            row.calls.seconds,
            row.above,
            2 * self.per_second,
        )
    }

    /// The controllers have nothing but caches, queues and records: what they take more than with the
    /// fewest identities is what these take.
    fn say_memory(&self, memory: &[(usize, f64)]) {
        let Some((fewest, least)) = memory.first() else { return };
        say("\n| identities | memory of the controllers | each, beyond the first row |");
        say("|---:|---:|---:|");
        for (identities, bytes) in memory {
            let more = identities.saturating_sub(*fewest);
            let each = match more {
                0 => "-".to_owned(),
                more => format!("{} KiB", grouped((bytes - least) / 1024.0 / more as f64)),
            };
            let all = grouped(bytes / 1024.0);
            say(&format!("| {} | {all} KiB | {each} |", count(*identities)));
        }
    }
}
