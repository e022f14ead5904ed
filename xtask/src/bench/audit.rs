//! What the audit costs: the same namespaces are moved by an `interlock up` that records and judges every step, and by one
//! that does neither, in turn, so that both meet the same machine.

use super::load::Load;
use super::placement::{Fleet, cluster};
use super::process::Directory;
use super::spread::time;
use super::{number, say_goals};
use crate::{interlock, say};
use std::path::PathBuf;

/// A move may take this much more of the processor, and this much longer, because it is audited.
const MOST: f64 = 1.05;

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// How many namespaces there are; all of them are moved at once
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    namespaces: usize,
    /// How often, for each of the two
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    rounds: usize,
    /// How many times they are moved in a round
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    moves: usize,
    /// The program to measure [default: a release build]
    #[arg(long, value_name = "FILE")]
    interlock: Option<PathBuf>,
}

/// What one move took.
#[derive(Debug, Clone, Copy)]
struct Taken {
    processor_us: f64,
    us: f64,
}

/// Runs the benchmark.
pub(crate) fn run(run: &Run) -> anyhow::Result<bool> {
    let interlock = match &run.interlock {
        Some(binary) => binary.clone(),
        None => interlock::build()?,
    };
    say("| round | audit | processor for each move | time for each move |");
    say("|---:|---|---:|---:|");
    let (mut audited, mut plain) = (Vec::new(), Vec::new());
    for round in 1..=run.rounds {
        for (name, options, all) in
            [("on", &[][..], &mut audited), ("off", &["--no-audit"][..], &mut plain)]
        {
            let fleet = Fleet {
                interlock: interlock.clone(),
                data: Directory::new("audit")?,
                load: Load::build()?,
                options,
            };
            let taken = moves(&fleet, run)?;
            let Taken { processor_us, us } = taken;
            say(&format!("| {round} | {name} | {} | {} |", time(processor_us), time(us)));
            all.push(taken);
        }
    }
    let ratio = |of: fn(&Taken) -> f64| median(&audited, of) / median(&plain, of);
    let (processor, elapsed) = (ratio(|it| it.processor_us), ratio(|it| it.us));
    say(&format!(
        "\nwith the audit: {processor:.3} of the processor time, {elapsed:.3} of the time"
    ));
    let missed = [("processor time", processor), ("time", elapsed)]
        .into_iter()
        .filter(|(_, ratio)| *ratio > MOST)
        .map(|(what, ratio)| format!("{what}: {ratio:.3}"))
        .collect::<Vec<_>>();
    say_goals("at most 1.05 of either", &missed);
    Ok(missed.is_empty())
}

/// Places all namespaces, and moves all of them a few times.
fn moves(fleet: &Fleet, run: &Run) -> anyhow::Result<Taken> {
    let running = fleet.start()?;
    let pid = running.pid().to_string();
    let all = run.namespaces.to_string();
    fleet.measure("fleet-place", &["0", &all, &pid])?;
    let (mut processor_us, mut us) = (0.0, 0.0);
    for to in 0..run.moves {
        let moved = fleet.measure("fleet-move", &[&all, &cluster(to), &pid])?;
        processor_us += number(&moved, "processor_us");
        us += 1e6 / number(&moved, "moves_per_second");
    }
    running.stop()?;
    let moves = run.moves as f64;
    Ok(Taken { processor_us: processor_us / moves, us: us / moves })
}

fn median(all: &[Taken], of: fn(&Taken) -> f64) -> f64 {
    let mut values: Vec<f64> = all.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
