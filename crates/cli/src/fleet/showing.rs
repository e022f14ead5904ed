//! `interlock status` and `interlock explain`: what the fleet is like, and why.

use super::client::Fleet;
use super::health::Health;
use super::others::Others;
use super::{audit, explain, nodes, page, report, volumes};
use crate::location::Location;
use crate::output::{Format, color, complain, say, say_json};
use anyhow::Context;
use interlock_api::placement::WorkloadCluster;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

/// Changes that come together are shown together.
const TOGETHER: Duration = Duration::from_secs(1);

/// Options of `status`.
#[derive(Debug, clap::Args)]
#[command(after_help = STATUS_EXIT, args_conflicts_with_subcommands = true)]
pub(crate) struct StatusArgs {
    #[command(subcommand)]
    part: Option<Part>,
    /// Show this namespace in detail
    #[arg(conflicts_with = "clusters")]
    namespace: Option<String>,
    /// Show only the clusters
    #[arg(long)]
    clusters: bool,
    /// Print the status again on every change, until Ctrl-C
    #[arg(long, short)]
    watch: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    location: Location,
}

/// A part of the fleet.
#[derive(Debug, clap::Subcommand)]
enum Part {
    /// Show claims, ReplicationSources, ReplicationDestinations and snapshots of every cluster
    Volumes(volumes::Args),
    /// Show machines by phase, DPUs, tenants, and which machines wait for something
    #[command(
        after_help = "Exit status: 0 nobody has to act; 1 a machine or a DPU needs a person; 2 usage error."
    )]
    Nodes(nodes::Args),
}

const STATUS_EXIT: &str = "\
Exit status: 0 everything is settled or moving; 1 something is blocked; 2 usage error.";

/// Options of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = STATUS_EXIT)]
pub(crate) struct ExplainArgs {
    /// The namespace
    namespace: String,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    location: Location,
}

fn code(health: Health) -> ExitCode {
    match health {
        Health::Settled | Health::Moving => ExitCode::SUCCESS,
        Health::Blocked => ExitCode::FAILURE,
    }
}

/// Runs `status`.
pub(crate) async fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    match &args.part {
        Some(Part::Volumes(args)) => return volumes::run(args).await,
        Some(Part::Nodes(args)) => return nodes::run(args).await,
        None => {}
    }
    let fleet = Fleet::open(&args.location).await?;
    if !args.watch {
        return show(&fleet, args).await;
    }
    let mut grants = fleet.follow_grants(None);
    let mut clusters = fleet.follow_all::<WorkloadCluster>();
    let mut turns = fleet.follow_all::<interlock_api::turns::MaintenanceTurn>();
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        if std::io::stdout().is_terminal() && args.output == Format::Text {
            say("\x1b[H\x1b[2J")?;
        }
        let code = show(&fleet, args).await?;
        let mut pause = Box::pin(tokio::time::sleep(TOGETHER));
        let mut is_changed = false;
        // Whatever comes within the pause is in the next picture.
        while !is_changed || !pause.is_elapsed() {
            tokio::select! {
                _ = grants.next() => is_changed = true,
                _ = clusters.next() => is_changed = true,
                _ = turns.next() => is_changed = true,
                () = &mut pause, if !pause.is_elapsed() => {}
                stopped = &mut interrupted => {
                    stopped.context("cannot listen for Ctrl-C")?;
                    return Ok(code);
                }
            }
        }
    }
}

async fn show(fleet: &Fleet, args: &StatusArgs) -> anyhow::Result<ExitCode> {
    match &args.namespace {
        Some(namespace) => show_one(fleet, namespace, args.output).await,
        None => show_all(fleet, args).await,
    }
}

async fn show_one(fleet: &Fleet, name: &str, format: Format) -> anyhow::Result<ExitCode> {
    let picture = fleet.picture_of(name).await?;
    let subject = picture.subjects.first().context("a picture of a namespace has it")?;
    let page = page::page(&picture, subject);
    match format {
        Format::Json => say_json(&page)?,
        Format::Text => say(&page::text(&picture, subject, color()))?,
    }
    Ok(code(page.row.health))
}

async fn show_all(fleet: &Fleet, args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let picture = fleet.picture().await?;
    let report = report::fleet(&picture);
    let (others, state) = match args.clusters {
        true => (Others::default(), None),
        false => (Others::of(fleet).await?, audit::state(fleet).await),
    };
    let state = state.as_ref();
    match (args.output, args.clusters) {
        (Format::Json, false) => {
            say_json(&audit::Audited { report: &report, others: &others, audit: state })?;
        }
        (Format::Json, true) => say_json(&report.clusters)?,
        (Format::Text, false) => {
            let others = others.text(picture.now) + &audit::text(state, picture.now);
            say(&report::text(&picture, &report, &others, color()))?;
        }
        (Format::Text, true) => say(&report::clusters_text(&picture, &report))?,
    }
    if audit::is_broken(state) || others.need_a_person() {
        return Ok(ExitCode::FAILURE);
    }
    if !args.clusters {
        return Ok(code(report.health));
    }
    let silent = report.clusters.iter().any(|row| row.reachable == Some(false));
    Ok(if silent { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs `explain`.
pub(crate) async fn explain(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let fleet = Fleet::open(&args.location).await?;
    let picture = fleet.picture_of(&args.namespace).await?;
    let subject = picture.subjects.first().context("a picture of a namespace has it")?;
    let told = explain::explain(&picture, subject);
    match args.output {
        Format::Json => say_json(&told)?,
        Format::Text => say(&explain::text(&picture, &told, color()))?,
    }
    if subject.namespace.is_none() {
        complain(&format!("note: namespace {} is gone", args.namespace));
    }
    Ok(code(told.health))
}
