//! A fleet as `interlock up` runs it: namespaces are placed, one is moved and then many at once, and
//! then nothing happens. What each costs should not depend on how many there are. At the end the fleet
//! is started again with all of them.

use super::load::Load;
use super::number;
use super::process::{Directory, Running};
use super::spread::{count, grouped, time};
use crate::{interlock, say};
use std::path::PathBuf;
use std::process::Command;

const CLUSTERS: usize = 20;
const COLUMNS: [&str; 11] = [
    "namespaces",
    "placed/s",
    "processor each",
    "memory each",
    "one moved in",
    "moved at once",
    "moves/s",
    "processor each",
    "writes each",
    "at rest: writes/s",
    "processor",
];

/// `1000:100`: how many namespaces, and how many of them move at once.
pub(crate) fn size(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once(':').map(|(all, moves)| (all.parse(), moves.parse()));
    match parts {
        Some((Ok(all), Ok(moves))) if (1..=all).contains(&moves) => Ok((all, moves)),
        _ => Err("say NAMESPACES:MOVES, with at most as many moves as namespaces".to_owned()),
    }
}

/// Runs the benchmark.
pub(crate) fn run(sizes: &[(usize, usize)]) -> anyhow::Result<bool> {
    let (load, interlock) = (Load::build()?, interlock::build()?);
    let data = Directory::new("fleet")?;
    let fleet = Fleet { interlock, data, load, options: &[] };
    let running = fleet.start()?;
    say(&format!("| {} |", COLUMNS.join(" | ")));
    say(&format!("|{}", "---:|".repeat(COLUMNS.len())));
    let mut from = 0;
    for (round, (namespaces, moves)) in sizes.iter().enumerate() {
        let pid = running.pid().to_string();
        say(&fleet.grow(&pid, Growth { round, from, to: *namespaces, moves: *moves })?);
        from = *namespaces;
    }
    running.stop()?;
    say(&fleet.restart(from)?);
    Ok(true)
}

/// From how many namespaces to how many a fleet grows in a round, and how many move at once then.
struct Growth {
    round: usize,
    from: usize,
    to: usize,
    moves: usize,
}

/// A fleet of twenty clusters, and what drives it.
pub(super) struct Fleet {
    pub(super) interlock: PathBuf,
    pub(super) data: Directory,
    pub(super) load: Load,
    /// Options of `up` besides the usual ones.
    pub(super) options: &'static [&'static str],
}

impl Fleet {
    pub(super) fn start(&self) -> anyhow::Result<Running> {
        let names: Vec<String> = (0..CLUSTERS).map(cluster).collect();
        let running = Running::start(
            Command::new(&self.interlock)
                .args(["up", "--listen", "127.0.0.1:0", "--allow-root-processes", "--no-machines"])
                .args(self.options)
                .args(["--clusters", &names.join(","), "--data-dir"])
                .arg(self.data.path()),
        )?;
        running.says(" ready ")?;
        Ok(running)
    }

    pub(super) fn measure(&self, what: &str, args: &[&str]) -> anyhow::Result<serde_json::Value> {
        self.load.run(what, self.data.path().join("kubeconfig"), args)
    }

    /// More namespaces, then moves, then rest: a row of the table.
    fn grow(&self, pid: &str, growth: Growth) -> anyhow::Result<String> {
        let Growth { round, from, to, moves } = growth;
        eprintln!("placing {} namespaces", count(to - from));
        let placed = self.measure("fleet-place", &[&from.to_string(), &to.to_string(), pid])?;
        eprintln!("moving one, then {} at once", count(moves));
        let alone = self.measure("fleet-move", &["1", &cluster(2 * round), pid])?;
        let moves_text = moves.to_string();
        let together = [moves_text.as_str(), &cluster(2 * round + 1), pid];
        let moved = self.measure("fleet-move", &together)?;
        eprintln!("watching it rest");
        let rest = self.measure("fleet-rest", &[pid])?;
        Ok(format!(
            "| {} | {:.0} | {} | {} KiB | {} | {} | {:.0} | {} | {} | {} | {:.1} % |",
            count(to),
            number(&placed, "placed_per_second"),
            time(number(&placed, "processor_us")),
            grouped(number(&placed, "bytes") / 1024.0),
            time(number(&alone, "seconds") * 1e6),
            count(moves),
            number(&moved, "moves_per_second"),
            time(number(&moved, "processor_us")),
            grouped(number(&moved, "writes")),
            grouped(number(&rest, "writes_per_second")),
            number(&rest, "processor_us") / 1e4,
        ))
    }

    /// The same fleet, started again: how long until it decides, and what it takes without the
    /// history of how it came to be.
    fn restart(&self, namespaces: usize) -> anyhow::Result<String> {
        eprintln!("starting it again");
        let running = self.start()?;
        let decided = self.measure("fleet-decide", &[&cluster(CLUSTERS - 1)])?;
        self.measure("fleet-rest", &[&running.pid().to_string()])?;
        let bytes = running.resident_bytes();
        running.stop()?;
        Ok(format!(
            "\nStarted again with {}: a decision {} after it was ready, where a list of all namespaces and grants \
             takes {}; {} KiB of memory each, the empty fleet included.",
            count(namespaces),
            time(number(&decided, "decided_us")),
            time(number(&decided, "list_us")),
            grouped(bytes / 1024.0 / namespaces as f64),
        ))
    }
}

/// The name of a cluster.
pub(super) fn cluster(number: usize) -> String {
    format!("c{:02}", number % CLUSTERS + 1)
}
