//! The operator's commands of placement: where each namespace is, why, and how to change it.
//!
//! * `client`, `picture`: what is asked of the hub, and what it looked like then.
//! * `health`: how it is with a namespace; `report`, `page`, `explain`: that told in three lengths.
//! * `progress`, `follow`: how far a move is; `volumes`: what each cluster has of claims and snapshots.
//! * `audit`: what the fleet's audit of itself says.
//! * `nodes`: machines, DPUs and tenants; `others`: machines, cloud roles and updates in a few lines.
//! * `board`: all of it in as many lines as a terminal has, for `interlock up`.
//! * `turns`: who may maintain a cluster; `rights`: whom the cloud roles of a namespace trust.
//! * `moving`, `showing`, `forcing`: the commands.

mod audit;
mod board;
mod client;
mod explain;
mod fit;
mod follow;
mod forcing;
mod health;
mod moving;
mod nodes;
mod others;
mod page;
mod picture;
pub(crate) mod progress;
mod report;
mod rights;
#[cfg(test)]
mod scene;
mod showing;
#[cfg(test)]
mod tests;
mod turns;
mod volumes;

pub(crate) use board::keep;
pub(crate) use forcing::Args as ForceReleaseArgs;
pub(crate) use moving::Args as MoveArgs;
pub(crate) use showing::{ExplainArgs, StatusArgs};

use anyhow::Context;
use std::process::ExitCode;

/// A command of an operator.
#[derive(Debug)]
pub(crate) enum Task<'a> {
    /// Moves namespaces.
    Move(&'a MoveArgs),
    /// Shows how it is.
    Status(&'a StatusArgs),
    /// Says why.
    Explain(&'a ExplainArgs),
    /// Declares an owner gone.
    ForceRelease(&'a ForceReleaseArgs),
}

/// Runs a command.
pub(crate) fn run(task: &Task<'_>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the client of the hub")?;
    runtime.block_on(async {
        match task {
            Task::Move(args) => moving::run(args).await,
            Task::Status(args) => showing::status(args).await,
            Task::Explain(args) => showing::explain(args).await,
            Task::ForceRelease(args) => forcing::run(args).await,
        }
    })
}
