//! Machines as their number grows: registered, assigned, released and assigned to others, by one `interlock up` with
//! the agents of all racks in it. Counted is each step of a controller that had an effect, a write or a call to a DPU.
//! What that is for each machine, and what it takes of the processor, should not depend on how many there are. The
//! agent of one rack runs in a process of its own, whose memory should not depend on it either.

mod hub;

use super::process::{Directory, Running, free_port};
use super::say_goals;
use super::spread::{count, grouped};
use crate::{interlock, say};
use anyhow::bail;
use hub::{Fleet, Hub};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const TOKEN: &str = "the-administrators-token";
/// The controllers whose effects are counted; heartbeats and what others do are not about machines.
const CONTROLLERS: [&str; 5] = ["pool", "claims", "tenant", "dpu", "attach"];
/// The design's bounds for one machine behind one DPU, to assign and to release. Decision 32 says why a release may
/// take one more.
const TO_ASSIGN: f64 = 5.0 + 3.0;
const TO_RELEASE: f64 = 6.0 + 4.0;
/// Reports of a DPU are about all its machines, and how many of them are in one is a matter of moments.
const SLACK: f64 = 1.1;

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// How many machines there are, step by step: 20 in each rack, and a tenant for every 50
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "100,1000,10000")]
    sizes: Vec<usize>,
    /// How long one step may take
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600)]
    timeout: u64,
    /// The program to measure [default: a release build]
    #[arg(long, value_name = "FILE")]
    interlock: Option<PathBuf>,
}

/// What is done to all machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Register,
    Assign,
    Release,
    Reassign,
}

impl Work {
    fn words(self) -> &'static str {
        match self {
            Work::Register => "register",
            Work::Assign => "assign",
            Work::Release => "release",
            Work::Reassign => "assign to others",
        }
    }

    /// The most effects for each machine.
    fn goal(self) -> Option<f64> {
        match self {
            Work::Register => None,
            Work::Assign | Work::Reassign => Some(TO_ASSIGN),
            Work::Release => Some(TO_RELEASE),
        }
    }
}

/// One line of the table.
struct Row {
    machines: usize,
    work: Work,
    seconds: f64,
    processor_seconds: f64,
    /// The effects of each controller.
    effects: Vec<f64>,
}

impl Row {
    fn each(&self) -> f64 {
        self.effects.iter().sum::<f64>() / self.machines as f64
    }

    fn processor_ms(&self) -> f64 {
        self.processor_seconds * 1e3 / self.machines as f64
    }
}

/// What a size took in memory.
struct Memory {
    machines: usize,
    /// All of `up`, for each machine, beyond what an empty fleet takes.
    each: f64,
    agent: f64,
}

/// Runs the benchmark.
pub(crate) fn run(run: &Run) -> anyhow::Result<bool> {
    let binary = match &run.interlock {
        Some(binary) => binary.clone(),
        None => interlock::build()?,
    };
    let (mut rows, mut memory) = (Vec::new(), Vec::new());
    let controllers = CONTROLLERS.map(|name| format!("nodes/{name}"));
    let head = ["machines", "", "seconds", "processor each", "effects each"];
    say(&format!("| {} | {} |", head.join(" | "), controllers.join(" | ")));
    say(&format!("|---:|---|{}", "---:|".repeat(3 + CONTROLLERS.len())));
    for machines in &run.sizes {
        let bench = Bench::start(&binary, *machines, Duration::from_secs(run.timeout))?;
        bench.measure(&mut rows, &mut memory)?;
    }
    say("\n| machines | memory each | agent of one DPU with 20 machines |");
    say("|---:|---:|---:|");
    for row in &memory {
        let kib = |bytes: f64| grouped(bytes / 1024.0);
        say(&format!(
            "| {} | {} KiB | {} KiB |",
            count(row.machines),
            kib(row.each),
            kib(row.agent)
        ));
    }
    let missed = missed(&rows, &memory);
    say_goals(
        "at most 8 effects to assign a machine and 10 to release it, as many and as much time of the processor at \
         10,000 as at 1,000 (within 1.1 and 1.2); an agent within 1.05 of its memory in the smallest fleet",
        &missed,
    );
    Ok(missed.is_empty())
}

fn missed(rows: &[Row], memory: &[Memory]) -> Vec<String> {
    let mut missed = Vec::new();
    for row in rows {
        if let Some(goal) = row.work.goal().filter(|goal| row.each() > *goal) {
            let (number, name) = (row.machines, row.work.words());
            missed.push(format!("{number}, {name}: {:.2} effects each, goal {goal}", row.each()));
        }
    }
    for work in [Work::Register, Work::Assign, Work::Release, Work::Reassign] {
        // What a hundred machines take is mostly what the fleet takes anyway.
        let mut of_work = rows.iter().filter(|row| row.work == work && row.machines >= 1_000);
        let (Some(first), Some(last)) = (of_work.next(), of_work.next_back()) else { continue };
        let name = work.words();
        if last.each() > first.each() * SLACK {
            missed.push(format!(
                "{name}: {:.2} effects each, then {:.2}",
                first.each(),
                last.each()
            ));
        }
        let (before, after) = (first.processor_ms(), last.processor_ms());
        if after > before * 1.2 {
            missed.push(format!("{name}: {before:.1} ms of the processor each, then {after:.1}"));
        }
    }
    if let (Some(first), Some(last)) = (memory.first(), memory.last())
        && last.agent > first.agent * 1.05
    {
        let [before, after] = [first, last].map(|it| grouped(it.agent / 1024.0));
        missed.push(format!("an agent: {before} KiB, then {after} KiB"));
    }
    missed
}

/// A fleet of one size, and the agent of one more rack.
struct Bench {
    fleet: Fleet,
    hub: Hub,
    up: Running,
    empty_bytes: f64,
    binary: PathBuf,
    timeout: Duration,
    directory: Directory,
}

impl Bench {
    fn start(binary: &PathBuf, machines: usize, timeout: Duration) -> anyhow::Result<Bench> {
        let directory = Directory::new("nodes")?;
        let (path, port) = (directory.path(), free_port()?);
        std::fs::write(path.join("tokens"), format!("{TOKEN},admin,1,\"system:masters\"\n"))?;
        let up = Running::start(
            Command::new(binary)
                .args(["up", "--insecure-http", "--listen", &format!("127.0.0.1:{port}")])
                .args(["--allow-root-processes", "--no-machines", "--clusters", "unused"])
                .arg("--token-file")
                .arg(path.join("tokens"))
                .arg("--data-dir")
                .arg(path.join("up")),
        )?;
        up.says(" ready ")?;
        let hub = Hub::new(([127, 0, 0, 1], port).into(), TOKEN);
        std::fs::write(path.join("config"), hub.kubeconfig())?;
        let empty_bytes = up.resident_bytes();
        let (fleet, binary) = (Fleet::of(machines), binary.clone());
        Ok(Bench { fleet, hub, up, empty_bytes, binary, timeout, directory })
    }

    fn measure(self, rows: &mut Vec<Row>, memory: &mut Vec<Memory>) -> anyhow::Result<()> {
        let fleet = self.fleet;
        self.hub.make_tenants(fleet)?;
        self.wait("tenants", || self.hub.tenants_are_ready(fleet))?;
        let mut add = |row: Row| {
            say(&line(&row));
            rows.push(row);
        };
        add(self.done(Work::Register, || self.hub.make_machines(fleet))?);
        add(self.done(Work::Assign, || self.hub.claim(fleet, 0))?);
        let agent = self.agent_bytes()?;
        let each = (self.up.resident_bytes() - self.empty_bytes) / fleet.machines as f64;
        memory.push(Memory { machines: fleet.machines, each, agent });
        add(self.done(Work::Release, || self.hub.release(fleet, 0))?);
        add(self.done(Work::Reassign, || self.hub.claim(fleet, 1))?);
        self.up.stop()
    }

    /// The memory of an agent in a process of its own, once all machines of its rack are programmed.
    fn agent_bytes(&self) -> anyhow::Result<f64> {
        let path = self.directory.path();
        self.hub.make_rack_apart(self.fleet)?;
        let agent = Running::start(
            Command::new(&self.binary)
                .args(["dpu-agent", "apart/d1", "--driver", "local", "--kubeconfig"])
                .arg(path.join("config"))
                .arg("--state-dir")
                .arg(path.join("agent"))
                .env("NO_COLOR", "1"),
        )?;
        self.wait("the rack apart", || self.hub.rack_apart_is_programmed())?;
        std::thread::sleep(Duration::from_secs(5));
        let bytes = agent.resident_bytes();
        agent.stop()?;
        Ok(bytes)
    }

    /// One work on all machines of the fleet, from its first request until the last machine is as it is to be.
    fn done(&self, work: Work, begin: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Row> {
        let (effects, processor, began) =
            (self.effects()?, self.up.processor_seconds()?, Instant::now());
        begin()?;
        self.wait(work.words(), || match work {
            Work::Register => self.hub.all_are(self.fleet, "Available"),
            Work::Release => Ok(self.hub.all_are(self.fleet, "Available")? && self.hub.is_quiet()?),
            Work::Assign | Work::Reassign => self.hub.all_are(self.fleet, "Bound"),
        })?;
        let seconds = began.elapsed().as_secs_f64();
        // What the last reports and finalizers still set off belongs to it.
        self.settles()?;
        let after = self.effects()?;
        let of = |name: &&str| after[*name] - effects[*name];
        Ok(Row {
            machines: self.fleet.machines,
            work,
            seconds,
            processor_seconds: self.up.processor_seconds()? - processor,
            effects: CONTROLLERS.iter().map(of).collect(),
        })
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
            let pause = (asked.elapsed() * 20).max(Duration::from_millis(250));
            std::thread::sleep(pause);
        }
    }

    /// Waits until no controller of machines has an effect any more.
    fn settles(&self) -> anyhow::Result<()> {
        self.wait("coming to rest", || {
            let before = self.effects()?;
            std::thread::sleep(Duration::from_secs(3));
            Ok(self.effects()? == before)
        })
    }

    fn effects(&self) -> anyhow::Result<BTreeMap<&'static str, f64>> {
        let page = self.hub.metrics()?;
        let of = |name: &'static str| {
            let labels = format!("{{controller=\"nodes/{name}\",end=\"done\"}}");
            let line = page.lines().find(|line| {
                line.starts_with("interlock_shell_steps_total") && line.contains(&labels)
            });
            let number = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
            (name, number.unwrap_or(0.0))
        };
        Ok(CONTROLLERS.into_iter().map(of).collect())
    }
}

fn line(row: &Row) -> String {
    let each = |effects: &f64| format!("{:.2}", effects / row.machines as f64);
    let effects: Vec<String> = row.effects.iter().map(each).collect();
    format!(
        "| {} | {} | {:.1} | {:.1} ms | {:.2} | {} |",
        count(row.machines),
        row.work.words(),
        row.seconds,
        row.processor_ms(),
        row.each(),
        effects.join(" | "),
    )
}
