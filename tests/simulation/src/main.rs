//! Runs seeds of the simulation: many of them on all cores, or one of them aloud.

use clap::Parser;
use interlock_simulation::{Flaw, Red, Search, SimulatedWorld, Summary, run_aloud, run_many};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Runs seeds of the simulation. Exits 1 if a promise was broken.
#[derive(Debug, Parser)]
struct Arguments {
    /// What is simulated: fleet (placement and volumes), identities, nodes or rollouts; a flaw is run in its own world
    #[arg(long, value_name = "NAME", default_value = "fleet")]
    world: SimulatedWorld,
    /// Runs this one seed, and tells every event of it
    #[arg(long, conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
    /// How many seeds to run
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Takes the first seed from a commit instead, so that each commit is tried with seeds of its own
    #[arg(long, value_name = "HASH", value_parser = first_of, conflicts_with_all = ["seed", "first"])]
    commit: Option<u64>,
    /// Begins no seed after so many seconds; exits 1 if fewer than --seeds were run by then
    #[arg(long, conflicts_with_all = ["seed", "find"])]
    seconds: Option<u64>,
    /// What to break on purpose; only harm counts then, not what comes late
    #[arg(long, value_name = "NAME", default_value = "None")]
    flaw: Flaw,
    /// With --flaw: exits 0 if the flaw did harm, and 1 if no seed found it
    #[arg(long, requires = "flaw", conflicts_with = "seed")]
    find: bool,
}

/// Far enough apart that the seeds of two commits are not the same ones.
const SEEDS_OF_A_COMMIT: u64 = 1_000_000;

fn first_of(commit: &str) -> Result<u64, String> {
    let digits = commit.get(..8).ok_or("a commit has at least eight hexadecimal digits")?;
    let number = u32::from_str_radix(digits, 16).map_err(|error| error.to_string())?;
    Ok(u64::from(number) * SEEDS_OF_A_COMMIT + 1)
}

fn main() -> ExitCode {
    let Arguments { world, seed, seeds, first, commit, seconds, flaw, find } = Arguments::parse();
    let (said, is_green) = match seed {
        Some(seed) => one(world, seed, flaw),
        None => {
            let first = commit.unwrap_or(first);
            // With a time, `--seeds` is the least number, and the time says where it ends.
            let most = if seconds.is_some() { SEEDS_OF_A_COMMIT } else { seeds };
            let last = first.saturating_add(most.saturating_sub(1));
            let time = seconds.map(Duration::from_secs);
            many(&Search { world, seeds: first..=last, time, flaw }, seeds)
        }
    };
    // Whoever closed the pipe has seen enough.
    let _ = std::io::stdout().write_all(said.as_bytes());
    if is_green != find { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one(world: SimulatedWorld, seed: u64, flaw: Flaw) -> (String, bool) {
    match run_aloud(world, seed, flaw) {
        Ok(told) => {
            let history = told.history;
            (
                format!("seed {seed} kept every promise; history {history:016x}\n{}", told.counts),
                true,
            )
        }
        // The story was reported already.
        Err(Red { broken, .. }) => (format!("seed {seed}: {broken}\n"), false),
    }
}

fn many(search: &Search, least: u64) -> (String, bool) {
    let first = *search.seeds.start();
    let shown = Mutex::new(Instant::now());
    // On a terminal one line that changes; in a log a line every ten seconds.
    let is_terminal = std::io::stderr().is_terminal();
    let pause = if is_terminal { Duration::from_millis(200) } else { Duration::from_secs(10) };
    let goal = match search.time {
        Some(time) => format!("{} s", time.as_secs()),
        None => format!("{least} seeds"),
    };
    let summary = run_many(search, &|summary| {
        let Ok(mut shown) = shown.lock() else { return };
        if shown.elapsed() < pause {
            return;
        }
        *shown = Instant::now();
        let Summary { seeds, took, .. } = summary;
        let line = format!("{seeds} seeds in {} s of {goal}", took.as_secs());
        let (before, after) = if is_terminal { ("\r", "") } else { ("", "\n") };
        let _ = write!(std::io::stderr(), "{before}{line}{after}");
    });
    if is_terminal {
        let _ = writeln!(std::io::stderr());
    }
    let Summary { seeds, counts, red, took } = summary;
    let rate = seeds as f64 / took.as_secs_f64().max(0.001);
    let numbers = format!(
        "{seeds} seeds from {first} on in {:.1} s, {rate:.1} a second\n{counts}",
        took.as_secs_f64()
    );
    match red {
        Some(red) => (format!("{numbers}\n{red}"), false),
        None if seeds < least => {
            let words =
                "were run in the time: the machine is too slow, or the simulation became so";
            (format!("{numbers}fewer than {least} seeds {words}\n"), false)
        }
        None => (format!("{numbers}every promise was kept\n"), true),
    }
}
