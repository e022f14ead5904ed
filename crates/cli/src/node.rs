//! `interlock node`: which machines there are, whose they are, and how they change hands.

mod assign;
mod explain;
mod fence;
pub(crate) mod hub;
mod list;
pub(crate) mod picture;
mod reclaim;

use crate::location::Location;
use crate::output::Format;
use crate::serving::block_on;
use clap::{Args as ClapArgs, Subcommand};
use interlock_api::nodes::DpuName;
use std::process::ExitCode;

/// Options of `node`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List machines: phase, tenant, claim, time in the phase, and what they wait for
    #[command(
        after_help = "Exit status: 0 nothing needs a person; 1 a machine does; 2 usage error."
    )]
    List(list::Args),
    /// Ask for machines for a tenant: create a NodeClaim in its control plane, or change one
    #[command(after_help = assign::EXPLAINED)]
    Assign(assign::Args),
    /// Take machines back from their tenant
    #[command(after_help = reclaim::EXPLAINED)]
    Reclaim(reclaim::Args),
    /// Explain whose a machine is, what it waits for, and the next command
    #[command(
        after_help = "Exit status: 0 nobody has to act; 1 a person has to act; 2 usage error."
    )]
    Explain(explain::Args),
    /// Declare that a DPU or a machine is off, so that the machine can be released
    #[command(after_help = fence::EXPLAINED)]
    Fence(fence::Args),
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

/// A DPU as people write it: the option of `node fence`, and what `dpu-agent` serves.
pub(crate) fn dpu(text: &str) -> Result<DpuName, String> {
    match text.split_once('/') {
        Some((rack, dpu)) if !rack.is_empty() && !dpu.is_empty() => Ok(DpuName::new(rack, dpu)),
        _ => Err("write RACK/DPU, as in r1/d1".to_owned()),
    }
}

/// Runs `node`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    block_on(async {
        match &args.task {
            Task::List(args) => list::run(args).await,
            Task::Assign(args) => assign::run(args).await,
            Task::Reclaim(args) => reclaim::run(args).await,
            Task::Explain(args) => explain::run(args).await,
            Task::Fence(args) => fence::run(args).await,
        }
    })
}
