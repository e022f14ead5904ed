//! The `interlock` command.

mod catalog;
mod check;
mod memory;
mod output;
mod serve;
mod simulate;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// A fleet control plane for Kubernetes that never lets two owners hold one thing.
#[derive(Debug, Parser)]
#[command(name = "interlock", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit status: 0 yes; 1 no, a promise is broken; 2 asked wrongly; 130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a model exhaustively: every interleaving, every promise
    Check(check::Args),
    /// Walk a model at random: deep, seeded, many walks at once
    Simulate(simulate::Args),
    /// Serve a Kubernetes API with logical clusters, from a store on this machine
    Serve(serve::Args),
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
        Command::Serve(args) => serve::run(&args),
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
