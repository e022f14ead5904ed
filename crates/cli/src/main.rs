//! The `interlock` command.

mod agents;
mod audit;
mod catalog;
mod check;
mod connection;
mod declare;
mod demo;
mod dpu_agent;
mod envtest;
mod fleet;
mod hub;
mod identity;
mod location;
mod manifests;
mod memory;
mod node;
mod output;
mod rollout;
mod run;
mod serve;
mod serving;
mod simulate;
mod up;
mod words;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// A fleet makes and drops millions of small texts and trees on several threads; decision 16 says what
/// that costs with the C library's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A fleet control plane for Kubernetes: every namespace has at most one owner cluster.
#[derive(Debug, Parser)]
#[command(name = "interlock", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit status: 0 success; 1 the check failed or something is blocked; 2 usage error; 130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a model exhaustively: every state that it can reach
    Check(check::Args),
    /// Check a model with seeded random walks
    Simulate(simulate::Args),
    /// Run a fleet on this machine: API server, controllers, workload clusters, tenants and machines
    Up(Box<up::Args>),
    /// Run the API server with logical clusters, with its store on this machine
    Serve(serve::Args),
    /// Run the API server in tests of controller-runtime, as the kube-apiserver of envtest
    Envtest(envtest::Args),
    /// Append numbered, synced records to a file: what `up --demo` runs
    #[command(hide = true)]
    WriteNumbers(demo::WriterArgs),
    /// Run the controllers of the hub against an existing API server
    Controllers(agents::ControllersArgs),
    /// Run the syncer of one workload cluster: start granted namespaces, stop revoked ones
    Syncer(agents::SyncerArgs),
    /// Run the agent of one DPU: open its ports for the tenants of its machines
    DpuAgent(dpu_agent::Args),
    /// Print the manifests that run controllers and syncers on your own clusters
    Manifests(manifests::Args),
    /// Move a namespace to another cluster
    Move(fleet::MoveArgs),
    /// Show clusters and namespaces, and what is blocked
    Status(fleet::StatusArgs),
    /// Explain why a namespace is on its cluster, and what it waits for
    Explain(fleet::ExplainArgs),
    /// Judge every recorded step of the fleet again, and name the first that is not explained
    Audit(audit::Args),
    /// Explain cloud identities, and find what is left over of them
    Identity(identity::Args),
    /// List machines, assign them to tenants, and take them back
    Node(node::Args),
    /// Update what runs on clusters: ask, watch, compare, cancel and go back
    Rollout(rollout::Args),
    /// Declare the owner of a namespace gone, so that another cluster may take over
    ForceRelease(fleet::ForceReleaseArgs),
    /// Print a completion script for your shell
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Check(args) => check::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Up(args) => up::run(&args),
        Command::WriteNumbers(args) => demo::write_numbers(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Envtest(args) => envtest::run(&args),
        Command::Controllers(args) => agents::controllers(&args),
        Command::Syncer(args) => agents::syncer(&args),
        Command::DpuAgent(args) => dpu_agent::run(&args),
        Command::Manifests(args) => manifests::run(&args),
        Command::Move(args) => fleet::run(&fleet::Task::Move(&args)),
        Command::Status(args) => fleet::run(&fleet::Task::Status(&args)),
        Command::Explain(args) => fleet::run(&fleet::Task::Explain(&args)),
        Command::ForceRelease(args) => fleet::run(&fleet::Task::ForceRelease(&args)),
        Command::Audit(args) => audit::run(&args),
        Command::Identity(args) => identity::run(&args),
        Command::Node(args) => node::run(&args),
        Command::Rollout(args) => rollout::run(&args),
        Command::Completions { shell } => completions(shell),
    };
    outcome.unwrap_or_else(|error| {
        output::complain(&format!("error: {error:#}"));
        ExitCode::from(2)
    })
}

fn completions(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "interlock", &mut script);
    output::say(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
