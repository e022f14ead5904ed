//! Runs seeds of the simulation: many of them on all cores, or one of them aloud.

use clap::Parser;
use interlock_simulation::{Flaw, Red, Summary, run_aloud, run_many};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Runs seeds of the simulation of placement. Exits 1 if a promise was broken.
#[derive(Debug, Parser)]
struct Arguments {
    /// Runs this one seed, and tells every event of it
    #[arg(long, conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
    /// How many seeds to run
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// What to break on purpose; only harm counts then, not what comes late
    #[arg(long, value_name = "NAME", default_value = "None")]
    flaw: Flaw,
    /// With --flaw: exits 0 if the flaw did harm, and 1 if no seed found it
    #[arg(long, requires = "flaw", conflicts_with = "seed")]
    find: bool,
}

fn main() -> ExitCode {
    let Arguments { seed, seeds, first, flaw, find } = Arguments::parse();
    let (said, is_green) = match seed {
        Some(seed) => one(seed, flaw),
        None => many(first..=first.saturating_add(seeds.saturating_sub(1)), flaw),
    };
    // Whoever closed the pipe has seen enough.
    let _ = std::io::stdout().write_all(said.as_bytes());
    if is_green != find { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one(seed: u64, flaw: Flaw) -> (String, bool) {
    match run_aloud(seed, flaw) {
        Ok(told) => {
            let history = told.history;
            (
                format!("seed {seed} kept every promise; history {history:016x}\n{}", told.counts),
                true,
            )
        }
        // The story was told already.
        Err(Red { broken, .. }) => (format!("seed {seed}: {broken}\n"), false),
    }
}

fn many(seeds: std::ops::RangeInclusive<u64>, flaw: Flaw) -> (String, bool) {
    let last = *seeds.end();
    let is_red = |red: &Red| flaw == Flaw::None || red.is_harm();
    let told = Mutex::new(Instant::now());
    // On a terminal one line that changes; in a log a line every ten seconds.
    let is_terminal = std::io::stderr().is_terminal();
    let pause = if is_terminal { Duration::from_millis(200) } else { Duration::from_secs(10) };
    let total = last - seeds.start() + 1;
    let summary = run_many(seeds, (flaw, &is_red), &|summary| {
        let Ok(mut told) = told.lock() else { return };
        if told.elapsed() < pause {
            return;
        }
        *told = Instant::now();
        let Summary { seeds, took, .. } = summary;
        let line = format!("{seeds} of {total} seeds in {} s", took.as_secs());
        let (before, after) = if is_terminal { ("\r", "") } else { ("", "\n") };
        let _ = write!(std::io::stderr(), "{before}{line}{after}");
    });
    if is_terminal {
        let _ = writeln!(std::io::stderr());
    }
    let Summary { seeds, counts, red, took } = summary;
    let rate = seeds as f64 / took.as_secs_f64().max(0.001);
    let numbers =
        format!("{seeds} seeds in {:.1} s, {rate:.1} a second\n{counts}", took.as_secs_f64());
    match red {
        None => (format!("{numbers}every promise was kept\n"), true),
        Some(red) => (format!("{numbers}\n{red}"), false),
    }
}
