//! A fleet of separate processes to which one seed does what machines, networks and people do, judged from outside and
//! by the audit of all its recorded steps.

mod client;
mod deploy;
mod disk;
mod fleet;
mod ledger;
mod machines;
pub(crate) mod processes;
pub(crate) mod proxy;
mod run;
mod script;
mod updates;

use crate::{interlock, say, scratch};
use anyhow::Context;
use run::{Outcome, attempt, report};
use script::{Flaw, Script};
use std::path::PathBuf;

/// What is not done here, and why. A run that does not say so would promise more than it has seen.
const NOT_INJECTED: [&str; 4] = [
    "clock jumps: all programs read the clock of this machine, and setting it needs root",
    "power cuts: kill -9 leaves what the kernel has not written yet; tests/simulation has disks that lose it",
    "a hub restored from a backup: no command restores a store yet, and grants have no rule for it",
    "cloud roles: tests of their own, and tests/simulation",
];
/// What is not done without root.
const NO_DISK: &str =
    "full disks: a file system of the hub's own could not be mounted, which needs root";
/// How often a shorter script is tried before it counts as one that fails no more: processes never run twice the same.
const TRIES: usize = 2;

/// Options of `chaos`.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// How long the fleet is disturbed, before the quiet period
    #[arg(long, value_name = "N", default_value_t = 5, conflicts_with = "script")]
    minutes: u64,
    /// What chance begins with [default: the time]
    #[arg(long, conflicts_with = "script")]
    seed: Option<u64>,
    /// Make a mistake on purpose: the run must fail
    #[arg(long, value_enum, conflicts_with = "script")]
    flaw: Option<Flaw>,
    /// Repeat a run that fails with fewer events, until a short script remains
    #[arg(long)]
    shrink: bool,
    /// Do what this file says, as --shrink and each run print it
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// The binary to run, instead of a fresh release build
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Runs it; whether every promise was kept.
pub(crate) fn run(run: &Run) -> anyhow::Result<bool> {
    let binary = run.binary.clone().map_or_else(interlock::build, Ok)?.canonicalize()?;
    let folder = scratch().join("chaos");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let folder = folder.canonicalize()?;
    let script = run.script()?;
    let file = folder.join("script.txt");
    std::fs::write(&file, script.text())?;
    let seconds = script.ms.div_ceil(1_000);
    say(&format!("seed {}, {seconds} s; the script is {}", script.seed, file.display()));
    let at = Place { binary, fleet: folder.join("fleet") };
    let outcome = at.attempt(&script)?;
    report(&outcome);
    let no_disk = (!outcome.has_disk).then_some(&NO_DISK);
    let not_injected = no_disk.into_iter().chain(&NOT_INJECTED);
    not_injected.for_each(|line| say(&format!("  not injected: {line}")));
    if outcome.broken.is_empty() {
        say("every promise was kept");
        return Ok(true);
    }
    say(&format!("logs and recorded steps are in {}", at.fleet.display()));
    if run.shrink {
        let (shorter, broken) = at.shrunk(&script, outcome)?;
        let file = folder.join("shrunk.txt");
        std::fs::write(&file, shorter.text())?;
        say(&format!("\nthe shortest script that fails: {}\n{}", file.display(), shorter.text()));
        broken.iter().for_each(|line| say(&format!("  BROKEN: {line}")));
        say(&format!("cargo xtask chaos --script {}", file.display()));
    }
    Ok(false)
}

impl Run {
    fn script(&self) -> anyhow::Result<Script> {
        if let Some(path) = &self.script {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            return Script::read(&text).with_context(|| format!("in {}", path.display()));
        }
        let seed = self.seed.map_or_else(now, Ok)?;
        Ok(Script::drawn(seed, self.minutes.max(1) * 60_000, self.flaw))
    }
}

fn now() -> anyhow::Result<u64> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(now.as_secs())
}

/// What runs, and where.
struct Place {
    binary: PathBuf,
    fleet: PathBuf,
}

impl Place {
    fn attempt(&self, script: &Script) -> anyhow::Result<Outcome> {
        attempt(&self.binary, &self.fleet, script)
    }

    /// What a shorter script breaks, if it breaks something.
    fn fails(&self, script: &Script) -> anyhow::Result<Option<Outcome>> {
        for _ in 0..TRIES {
            let outcome = self.attempt(script)?;
            if !outcome.broken.is_empty() {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// The shortest script that was found to fail, and what it breaks. Halves are left out, then quarters, down to
    /// single events; people ask for the same all the time.
    fn shrunk(&self, script: &Script, found: Outcome) -> anyhow::Result<(Script, Vec<String>)> {
        let mut shortest = script.clone();
        let mut broken = found.broken;
        if let Some(ms) = found.found_at_ms {
            let shorter = shortest.until(ms);
            say(&format!("try the {} events up to {ms} ms", shorter.events.len()));
            if let Some(outcome) = self.fails(&shorter)? {
                (shortest, broken) = (shorter, outcome.broken);
            }
        }
        let mut size = shortest.injected().len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < shortest.injected().len() {
                let injected = shortest.injected();
                let out = &injected[from..injected.len().min(from + size)];
                let shorter = shortest.without(out);
                say(&format!("try without {} of {} injected events", out.len(), injected.len()));
                match self.fails(&shorter)? {
                    Some(outcome) => {
                        let end = outcome.found_at_ms.unwrap_or(shorter.ms);
                        (shortest, broken) = (shorter.until(end), outcome.broken);
                    }
                    None => from += size,
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        Ok((shortest, broken))
    }
}
