//! `interlock audit`: every recorded step, judged again by the rules of this program and by what must never happen.

mod follower;
mod page;
mod state;

pub(crate) use follower::Follower;
pub(crate) use state::{KEY, NAME, State};

use crate::output::{Format, say, say_json, stop_on_interrupt};
use crate::serving::default_directory;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a log that is followed is read again.
const AGAIN: Duration = Duration::from_millis(300);

/// Options of `audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// Directory of a log of steps (may be repeated: logs of several programs are one story) [default: audit in the data directory]
    #[arg(long, value_name = "DIR")]
    log: Vec<PathBuf>,
    /// Follow the logs of a live fleet until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Stop at the first step that is not explained
    #[arg(long)]
    first: bool,
    /// List the promises, and exit
    #[arg(long, conflicts_with_all = ["log", "follow"])]
    promises: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

const AFTER: &str = "\
`interlock up` records every step, unless it was started with --no-audit, and audits itself all the time.
A program of its own records with --audit-dir: name each with --log.

Exit status: 0 every step is explained; 1 a step is not explained, or a line cannot be read; 2 usage error.";

/// The log of steps below a data directory.
pub(crate) fn log_directory(data: &Path) -> PathBuf {
    data.join("audit")
}

/// Runs `audit`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.promises {
        return promises(args.output);
    }
    let directories = match args.log.is_empty() {
        true => vec![log_directory(&default_directory()?)],
        false => args.log.clone(),
    };
    let mut follower = Follower::of_all(&directories)?;
    let is_over = stop_on_interrupt()?;
    loop {
        let found = follower.read(args.follow)?;
        for finding in &found {
            // The first of a log that is at its end is on the page below.
            if args.follow && args.output == Format::Text {
                say(&page::finding(finding))?;
            }
        }
        let is_enough = args.first && !found.is_empty();
        if !args.follow || is_enough || is_over.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(AGAIN);
    }
    let report = follower.end();
    match args.output {
        Format::Json => say_json(&report)?,
        Format::Text => say(&page::report(&report))?,
    }
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn promises(format: Format) -> anyhow::Result<ExitCode> {
    let none = interlock_programs::audit::Audit::default();
    match format {
        Format::Json => say_json(&none.report().promises)?,
        Format::Text => say(&page::promises(none.report()))?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
