//! `interlock force-release`: a person declares that the owner of a namespace is gone.

use super::client::{Fleet, New};
use super::page::last_snapshot;
use super::picture::{Picture, Subject, unreachable};
use crate::declare::{confirm, reason, requester, short_id};
use crate::location::Location;
use crate::output::{complain, say};
use crate::words::{age, table};
use anyhow::{Context, bail};
use interlock_api::placement::{
    Attestation, ForceOutcome, ForceRelease, ForceReleaseSpec, GrantStatus, Ref,
};
use kube::ResourceExt;
use std::process::ExitCode;
use std::time::Duration;

/// Options of `force-release`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXPLAINED)]
pub(crate) struct Args {
    /// The namespace
    namespace: String,
    /// The cluster to declare gone; it must own the namespace
    #[arg(long, value_name = "CLUSTER")]
    owner: String,
    /// The epoch of the grant; the command is refused if the grant has another epoch
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    epoch: i64,
    /// The state of the owner; it must be true now
    #[arg(long, alias = "attestation", value_enum, value_name = "WHAT")]
    attest: Attest,
    /// The reason, for the record: at least ten characters
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    /// How long to wait for the outcome
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::words::time)]
    timeout: Duration,
    #[command(flatten)]
    location: Location,
}

/// What is known about the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Attest {
    /// The machines of the owner are off
    #[value(alias = "PoweredOff")]
    PoweredOff,
    /// The owner cannot reach its storage, so its pods cannot write
    #[value(alias = "StorageFenced")]
    StorageFenced,
    /// The state is unknown: two clusters may write, and writes of the old owner may be lost
    #[value(alias = "AcceptDivergence")]
    AcceptDivergence,
}

impl Attest {
    fn as_attestation(self) -> Attestation {
        match self {
            Attest::PoweredOff => Attestation::PoweredOff,
            Attest::StorageFenced => Attestation::StorageFenced,
            Attest::AcceptDivergence => Attestation::AcceptDivergence,
        }
    }
}

const EXPLAINED: &str = "\
The safe way is a planned move: `interlock move NAMESPACE --to CLUSTER`. Use this command only for an owner
that does not answer. Another cluster then starts from the last complete snapshots. Data that was written
after those snapshots is lost; the command shows the loss before it asks for confirmation.

The attestation must be true when you run the command. A cluster that comes back later reads the grant
before it starts anything.
  powered-off        the machines of the owner are off
  storage-fenced     the owner cannot reach its storage
  accept-divergence  the state of the owner is unknown: two clusters may write until the old owner sends a
                     heartbeat again

Exit status: 0 applied; 1 refused, or no outcome in time; 2 usage error, or not confirmed.";

/// Runs the command.
pub(crate) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let fleet = Fleet::open(&args.location).await?;
    let picture = fleet.picture_of(&args.namespace).await?;
    let subject = picture.subjects.first().context("a picture of a namespace has it")?;
    let (grant, owner) = checked(args, subject)?;
    let is_heard = picture.cluster_of(&owner).is_some_and(|cluster| unreachable(cluster).is_none());
    if is_heard {
        let words = format!(
            "{owner} sends heartbeats: the safe way is `interlock move {} --to CLUSTER`",
            args.namespace
        );
        if !args.yes {
            bail!("{words}\nif it must be forced all the same, add --yes");
        }
        complain(&format!("warning: {words}"));
    }
    complain(&losses(&picture, subject));
    if !args.yes {
        let declared = format!("{owner} gone for {} at epoch {}", args.namespace, args.epoch);
        confirm(&declared, "namespace", &args.namespace)?;
    }
    let spec = ForceReleaseSpec {
        grant: grant.clone(),
        owner: owner.clone(),
        epoch: args.epoch,
        attestation: args.attest.as_attestation(),
        reason: args.reason.clone(),
        requester: requester(&fleet.user),
    };
    let name = format!("{}-{}-{}", grant.name, args.epoch, short_id());
    let force = fleet.force(&ForceRelease::new(&name, spec)).await?;
    outcome(&fleet, args, &force).await
}

/// What is there, if it is what was named.
fn checked(args: &Args, subject: &Subject) -> anyhow::Result<(Ref, Ref)> {
    let name = &args.namespace;
    let Some(grant) = &subject.grant else {
        bail!("namespace `{name}` has no grant, so there is nothing to release");
    };
    let status = grant.status_or_default();
    let GrantStatus { phase, owner, epoch, .. } = status;
    let Some(owner) = owner.filter(|_| phase.is_held()) else {
        bail!(
            "the grant of `{name}` has no owner ({phase}, epoch {epoch}), so there is nothing to \
             release"
        );
    };
    let there = format!("the owner is {owner} at epoch {epoch} ({phase})");
    if owner.name != args.owner {
        bail!("{} does not own `{name}`: {there}", args.owner);
    }
    if epoch != args.epoch {
        bail!("the epoch of `{name}` is {epoch}, and --epoch is {}: {there}", args.epoch);
    }
    let uid = grant.metadata.uid.clone().unwrap_or_default();
    Ok((Ref::new(grant.name_any(), uid), owner))
}

/// What a forced release loses at most, claim by claim.
fn losses(picture: &Picture, subject: &Subject) -> String {
    let status = subject.grant.as_ref().map(|grant| grant.status_or_default()).unwrap_or_default();
    if status.claims.is_empty() {
        return "no data is lost: the namespace has no claims".to_owned();
    }
    let rows: Vec<Vec<String>> = status
        .claims
        .iter()
        .map(|claim| {
            let taken = last_snapshot(&status, claim).map(|pin| pin.taken.0);
            let lost = match taken {
                Some(taken) => {
                    format!("the writes of the last {}", age(picture.now, taken))
                }
                None => "all writes since the grant: there is no snapshot".to_owned(),
            };
            let snapshot = taken.map_or_else(
                || "none".to_owned(),
                |taken| format!("{} ago", age(picture.now, taken)),
            );
            vec![claim.name.clone(), snapshot, lost]
        })
        .collect();
    format!(
        "what is lost at most\n{}",
        table(&["CLAIM", "LAST SNAPSHOT", "LOST"], &rows).trim_end()
    )
}

async fn outcome(fleet: &Fleet, args: &Args, force: &ForceRelease) -> anyhow::Result<ExitCode> {
    let (name, namespace) = (force.name_any(), &args.namespace);
    let mut news = fleet.follow_force(&name);
    let answered = async {
        loop {
            if let New::Is(force) = news.next().await
                && force.status_or_default().outcome != ForceOutcome::Pending
            {
                return force.status_or_default();
            }
        }
    };
    let Ok(status) = tokio::time::timeout(args.timeout, answered).await else {
        say(&format!(
            "ForceRelease {name} is not answered after {} s; it stays, and is answered once the hub's \
             controllers run\nnext: kubectl get forcerelease {name} -o wide\n",
            args.timeout.as_secs()
        ))?;
        return Ok(ExitCode::FAILURE);
    };
    let because = status.because.map_or_else(String::new, |because| format!(": {because}"));
    match status.outcome {
        ForceOutcome::Applied => {
            say(&format!(
                "applied: {} is declared gone for {namespace} at epoch {}{because}\n\
                 next: interlock status {namespace} --watch\n",
                args.owner, args.epoch
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        ForceOutcome::Refused | ForceOutcome::Pending => {
            say(&format!("refused{because}\nnext: interlock explain {namespace}\n"))?;
            Ok(ExitCode::FAILURE)
        }
    }
}
