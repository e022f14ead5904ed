//! `interlock rollout`: what runs on a cluster, which update is in flight, and how one is asked for.

mod cancel;
mod diff;
mod folder;
mod history;
mod picture;
mod record;
mod rollback;
mod status;
mod submit;
mod wait;

pub(crate) use picture::{ClusterRow, cluster, objects_cell};
pub(crate) use record::together;

use crate::location::Location;
use crate::output::Format;
use crate::serving::block_on;
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

/// Options of `rollout`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Ask for a version of what runs on a cluster, or on many
    #[command(after_help = submit::EXPLAINED)]
    Submit(Box<submit::Args>),
    /// Show each cluster with its version and the update in flight, or one cluster with what is not healthy yet
    #[command(
        after_help = "Exit status: 0 nothing needs a person; 1 a cluster does; 2 usage error."
    )]
    Status(status::Args),
    /// List the requests of a cluster, the newest first, and how each ended
    History(history::Args),
    /// Show what a bundle would change against what the cluster is to run
    #[command(after_help = "Exit status: 0 no difference; 1 there are differences; 2 usage error.")]
    Diff(diff::Args),
    /// End a request: one in flight is rolled back
    #[command(
        after_help = "Exit status: 0 written, or with --wait: ended; 1 not in time; 2 usage error."
    )]
    Cancel(cancel::Args),
    /// Ask for an older version of a cluster again
    #[command(after_help = rollback::EXPLAINED)]
    Rollback(rollback::Args),
}

/// What all need.
#[derive(Debug, ClapArgs)]
struct Common {
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    location: Location,
}

/// Runs `rollout`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    block_on(async {
        match &args.task {
            Task::Submit(args) => submit::run(args).await,
            Task::Status(args) => status::run(args).await,
            Task::History(args) => history::run(args).await,
            Task::Diff(args) => diff::run(args).await,
            Task::Cancel(args) => cancel::run(args).await,
            Task::Rollback(args) => rollback::run(args).await,
        }
    })
}
