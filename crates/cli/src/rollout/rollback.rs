//! `interlock rollout rollback`: asks for an older version again, as a request of its own.

use super::Common;
use super::picture::{RequestRow, short};
use super::record::{Known, one, open};
use super::submit::{Answered, create};
use super::wait::Waiting;
use anyhow::{Context, bail};
use interlock_api::rollouts::{ClusterUpdateSpec, Requested, Source, UpdatePhase};
use std::process::ExitCode;

pub(super) const EXPLAINED: &str = "\
A rollback is a new request for the bundle of an older one: it is checked, applied and verified like every other, and
the newest request wins. Without --to it is the last version before the present one that succeeded.

Exit status: 0 written, or with --wait: it succeeded; 1 it did not, or not in time; 2 usage error.";

/// Options of `rollout rollback`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The cluster
    cluster: String,
    /// The version to return to: see `interlock rollout history`
    #[arg(long, value_name = "VERSION")]
    to: Option<i64>,
    /// The namespace of the request
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// Roll the request in flight back first, and do not wait until it has ended
    #[arg(long)]
    preempt: bool,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let hub = open(&args.common).await?;
    let known = one(&hub, &args.cluster).await?;
    let older = older(&known, args.to)?;
    let digest = older.digest.clone().with_context(|| {
        format!("version {} has no bundle: it was {}", older.version, older.phase)
    })?;
    let mut spec = ClusterUpdateSpec::new(&args.cluster, Source::Revision(digest));
    spec.preempt = args.preempt;
    let name = format!("{}-back-to-{}", args.cluster, older.version);
    let asked = create(&hub, &args.namespace, &name, spec).await?;
    Answered { hub: &hub, waiting: &args.waiting, output: args.common.output }.of(asked).await
}

/// The request whose bundle is asked for again.
fn older(known: &Known, to: Option<i64>) -> anyhow::Result<Requested> {
    let requests = known.requests();
    let have = |requests: &[Requested]| {
        let rows: Vec<RequestRow> = requests.iter().map(RequestRow::from).collect();
        let named = rows.iter().map(|row| {
            let digest = row.digest.as_deref().map_or("no bundle".to_owned(), short);
            format!("{} ({}, {digest})", row.version.unwrap_or_default(), row.phase)
        });
        named.collect::<Vec<_>>().join(", ")
    };
    if let Some(version) = to {
        let found = requests.iter().find(|request| request.version == version);
        return found.cloned().with_context(|| {
            format!(
                "cluster {} has no version {version} in its history; it has: {}",
                known.cluster,
                have(&requests)
            )
        });
    }
    let status = known.record.as_ref().and_then(|record| record.status.as_ref());
    let good = status.and_then(|status| status.last_good.clone());
    let is_older = |request: &&Requested| {
        request.phase == UpdatePhase::Succeeded
            && good.as_ref().is_none_or(|good| {
                request.version < good.version
                    && request.digest.as_deref() != Some(good.digest.as_str())
            })
    };
    match requests.iter().find(is_older) {
        Some(found) => Ok(found.clone()),
        None => bail!(
            "cluster {} has no other version that succeeded; its history: {}\nnext: interlock rollout \
             history {}",
            known.cluster,
            if requests.is_empty() { "empty".to_owned() } else { have(&requests) },
            known.cluster
        ),
    }
}
