//! `interlock identity`: what exists of a cloud identity, what its controllers do next, and what is left in the
//! account that nobody declares.

mod explain;
mod orphans;

use crate::fleet::{Found, Location};
use crate::output::Format;
use crate::run::identities;
use crate::serving::block_on;
use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand};
use kube::Client;
use std::process::ExitCode;

/// Options of `identity`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Explain what exists of a cloud identity, and what its controllers do next. Nothing is changed
    #[command(
        after_help = "Exit status: 0 as declared, or on its way; 1 it needs somebody; 2 usage error."
    )]
    Explain(ExplainArgs),
    /// List what the cloud account has of this fleet and no object declares. Nothing is changed
    #[command(after_help = "Exit status: 0 nothing is left over; 1 something is; 2 usage error.")]
    Orphans(Common),
}

/// Options of `identity explain`.
#[derive(Debug, ClapArgs)]
struct ExplainArgs {
    /// The IamRoleServiceAccount
    #[arg(value_name = "NAMESPACE/NAME")]
    identity: String,
    #[command(flatten)]
    common: Common,
}

/// What both need.
#[derive(Debug, ClapArgs)]
struct Common {
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    location: Location,
    #[command(flatten)]
    identities: identities::Args,
}

/// Runs `identity`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    block_on(async {
        match &args.task {
            Task::Explain(args) => explain::run(args).await,
            Task::Orphans(args) => orphans::run(args).await,
        }
    })
}

impl Common {
    async fn hub(&self) -> anyhow::Result<Client> {
        let Found { source, config, .. } = self.location.find().await?;
        Client::try_from(config).with_context(|| format!("cannot make a client of {source}"))
    }

    /// The account of the controllers: that of the environment, or of the `interlock up` on this machine.
    async fn account(&self) -> anyhow::Result<identities::Account> {
        match crate::run::iam::of_this_machine()? {
            Some(account) if !self.identities.has_endpoint() => Ok(account),
            _ => self.identities.account_of_environment().await,
        }
    }
}
