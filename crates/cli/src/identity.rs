//! `interlock identity`: what exists of a cloud identity, what its controllers do next, what they would do to all of
//! them, and what is left in the account that nobody declares.

mod explain;
mod orphans;
mod plan;

use crate::location::{Found, Location};
use crate::output::{Format, complain};
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
    /// Plan what the controllers would do about every identity: create, adopt, change, delete. Nothing is changed
    #[command(
        after_help = "Exit status: 0 the controllers can do all of it; 1 something needs somebody; 2 usage error."
    )]
    Plan(PlanArgs),
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

/// Options of `identity plan`.
#[derive(Debug, ClapArgs)]
struct PlanArgs {
    /// Only these identities [default: all]
    #[arg(value_name = "NAMESPACE/NAME")]
    only: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// What all need.
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
            Task::Plan(args) => {
                let scene = args.common.scene().await?;
                plan::run(&scene, &args.only, args.common.output).await
            }
            Task::Orphans(args) => orphans::run(args).await,
        }
    })
}

/// What `interlock controllers --dry-run` prints: what the controllers of identities would do.
pub(crate) async fn dry_run(hub: Client, given: &identities::Args) -> anyhow::Result<ExitCode> {
    plan::run(&Scene::of(hub, given).await?, &[], Format::Text).await
}

/// Where somebody looks: the hub, the account, and what the controllers there work by.
struct Scene {
    hub: Client,
    account: identities::Account,
    identities: identities::Args,
}

impl Common {
    async fn scene(&self) -> anyhow::Result<Scene> {
        let Found { source, config, .. } = self.location.find().await?;
        let hub = Client::try_from(config);
        let hub = hub.with_context(|| format!("cannot make a client of {source}"))?;
        Scene::of(hub, &self.identities).await
    }
}

impl Scene {
    async fn of(hub: Client, given: &identities::Args) -> anyhow::Result<Scene> {
        let (identities, differences) = given.of_reader(&hub).await?;
        differences.iter().for_each(|line| complain(&format!("warning: {line}")));
        // The account of the controllers: that of the environment, or of the `interlock up` on this machine.
        let account = match crate::run::iam::of_this_machine()? {
            Some(account) if !identities.has_endpoint() => account,
            _ => identities.account_of_environment().await?,
        };
        Ok(Scene { hub, account, identities })
    }
}
