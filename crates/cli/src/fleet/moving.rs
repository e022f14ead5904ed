//! `interlock move`: asks for another cluster, and follows until the namespace runs there.

use super::client::Fleet;
use super::fit::unfit_reason_if_desired;
use super::follow::{Tracked, follow};
use super::picture::{Picture, Subject, annotation, condition_if, conditions_of};
use super::progress::{Follower, Goal};
use crate::location::Location;
use crate::output::{complain, say};
use crate::words::{count, did_you_mean, names as listed};
use anyhow::{Context, bail};
use interlock_api::names::{ANNOTATION_CLUSTER, LABEL_PLACED};
use interlock_api::placement::{Fill, Phase, Transport, WorkloadCluster, condition};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use std::process::ExitCode;
use std::time::Duration;

/// Options of `move`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The namespace to move
    #[arg(required_unless_present = "all_from", conflicts_with = "all_from")]
    namespace: Option<String>,
    /// The desired cluster of the namespace
    #[arg(long, value_name = "CLUSTER", required_unless_present = "all_from")]
    to: Option<String>,
    /// Move all namespaces away from this cluster; without --to, drain the cluster: each namespace moves to a cluster that fits
    #[arg(long, value_name = "CLUSTER")]
    all_from: Option<String>,
    /// Wait until the namespace runs on the desired cluster
    #[arg(long)]
    wait: bool,
    /// How long to wait, such as 90s, 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = crate::words::time)]
    timeout: Duration,
    #[command(flatten)]
    location: Location,
}

const EXAMPLES: &str = "\
The owner stops the namespace and hands it over; then the desired cluster fills the claims and starts it.
Two clusters never use the volumes of a namespace at the same time. If the desired cluster does not fit,
the namespace is not stopped.

Examples:
  interlock move shop --to east --wait
  interlock move --all-from west --wait --timeout 1h

Exit status: 0 the move was requested (with --wait: the namespace runs there); 1 the move is blocked, or
the timeout has passed; 2 usage error; 130 interrupted: the move continues.";

/// Runs the command.
pub(crate) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let fleet = Fleet::open(&args.location).await?;
    let tracked = match (&args.namespace, &args.to, &args.all_from) {
        (Some(namespace), Some(to), _) => move_one(&fleet, namespace, to).await?,
        (_, to, Some(from)) => move_all(&fleet, from, to.as_deref()).await?,
        (_, _, None) => bail!("name a namespace and --to CLUSTER; see `interlock move --help`"),
    };
    if tracked.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if args.wait {
        return follow(&fleet, tracked, args.timeout).await;
    }
    let next = match &args.namespace {
        Some(namespace) => format!("next: interlock status {namespace} --watch\n"),
        None => "next: interlock status --watch\n".to_owned(),
    };
    say(&next)?;
    Ok(ExitCode::SUCCESS)
}

/// The cluster of this name, or what to say.
fn known_cluster<'a>(picture: &'a Picture, name: &str) -> anyhow::Result<&'a WorkloadCluster> {
    if let Some(cluster) = picture.cluster(name) {
        return Ok(cluster);
    }
    let known: Vec<String> = picture.clusters.iter().map(ResourceExt::name_any).collect();
    bail!("cluster `{name}` does not exist{}", did_you_mean(name, &known))
}

/// The namespace, if it can be moved at all.
fn movable(subject: &Subject) -> anyhow::Result<&Namespace> {
    let name = &subject.name;
    let namespace = subject.namespace.as_ref().with_context(|| {
        format!("namespace `{name}` was deleted and cannot move; its grant still exists")
    })?;
    if subject.is_deleting() {
        bail!("namespace `{name}` is being deleted, and cannot move");
    }
    if !subject.is_placed() {
        bail!(
            "namespace `{name}` is not placed: it has no label {LABEL_PLACED}=true\n\
             next: kubectl label namespace {name} {LABEL_PLACED}=true"
        );
    }
    Ok(namespace)
}

async fn move_one(fleet: &Fleet, name: &str, to: &str) -> anyhow::Result<Vec<Tracked>> {
    let picture = fleet.picture_of(name).await?;
    let subject = picture.subjects.first().context("a picture of a namespace has it")?;
    let cluster = known_cluster(&picture, to)?;
    let namespace = movable(subject)?;
    let is_desired = annotation(&namespace.metadata, ANNOTATION_CLUSTER) == Some(to);
    if is_desired && runs_on(subject, to) {
        say(&format!("{name} already runs on {to}\n"))?;
        return Ok(Vec::new());
    }
    let is_there = subject.holder().is_some_and(|owner| owner.name == to);
    let unfit_reason = unfit_reason_if_desired(&picture, subject, cluster);
    if let Some(unfit_reason) = unfit_reason.filter(|_| !is_there) {
        complain(&format!(
            "warning: cluster {to} does not fit: {unfit_reason}; {name} is not stopped until it does"
        ));
    }
    if !is_there {
        repository_is_there(fleet, subject).await?;
    }
    if !is_desired {
        fleet.annotate(namespace, ANNOTATION_CLUSTER, Some(to)).await?;
    }
    say(&what_happens(subject, to))?;
    let mut follower = Follower::new(Goal::On(to.to_owned()), subject.grant.as_ref());
    if is_desired {
        follower.believe_all();
    }
    Ok(vec![Tracked::new(name, &namespace.uid().unwrap_or_default(), follower)])
}

/// Without the Secret of the repository, the namespace would stop and could not start again.
async fn repository_is_there(fleet: &Fleet, subject: &Subject) -> anyhow::Result<()> {
    let Some(grant) = &subject.grant else { return Ok(()) };
    let (policy, status) = (&grant.spec.volumes, grant.status_or_default());
    let has_data = status.claims.iter().any(|claim| claim.fill == Fill::Filled);
    let secret = policy.repository.as_ref();
    let secret = secret.filter(|_| has_data && policy.transport == Transport::Restic);
    let Some(secret) = secret else { return Ok(()) };
    if fleet.lacks_secret(&subject.name, secret).await? {
        let name = &subject.name;
        bail!(
            "the data of `{name}` moves through a repository, and its Secret {secret} does not \
                exist; the namespace was not stopped\n\
             next: kubectl create secret generic {secret} -n {name} \
             --from-literal=RESTIC_REPOSITORY=... --from-literal=RESTIC_PASSWORD=..."
        );
    }
    Ok(())
}

fn runs_on(subject: &Subject, cluster: &str) -> bool {
    let Some(grant) = &subject.grant else { return false };
    let status = grant.status_or_default();
    status.phase == Phase::Granted
        && status.owner.is_some_and(|owner| owner.name == cluster)
        && condition_if(conditions_of(grant), condition::RUNNING, true).is_some()
}

/// What asking for a cluster leads to.
fn what_happens(subject: &Subject, to: &str) -> String {
    let name = &subject.name;
    let status = subject.grant.as_ref().map(|grant| grant.status_or_default()).unwrap_or_default();
    match (status.phase, status.owner) {
        (Phase::Granted, Some(owner)) if owner.name == to => {
            format!(
                "the desired cluster of {name} is {to}, which owns it (epoch \
                {})\n",
                status.epoch
            )
        }
        (Phase::Granted, Some(owner)) => format!(
            "the desired cluster of {name} is {to}; the owner is {owner} (epoch {})\n\
             {owner} stops {name} and hands it over; then {to} fills the claims and starts {name}\n",
            status.epoch
        ),
        (Phase::Revoking, Some(owner)) => format!(
            "the desired cluster of {name} is {to}; {owner} is stopping it (epoch {})\n\
             when {owner} has handed {name} over, {to} fills the claims and starts {name}\n",
            status.epoch
        ),
        (_, _) => format!("the desired cluster of {name} is {to}; the grant has no owner now\n"),
    }
}

async fn move_all(fleet: &Fleet, from: &str, to: Option<&str>) -> anyhow::Result<Vec<Tracked>> {
    let picture = fleet.picture().await?;
    if to == Some(from) {
        bail!("--all-from and --to name the same cluster `{from}`");
    }
    // One that was deleted can still own grants: then only a name is left of it.
    let leaving = match picture.cluster(from) {
        Some(cluster) => Some(cluster),
        None if picture.subjects.iter().any(|subject| is_on(subject, from)) => None,
        None => Some(known_cluster(&picture, from)?),
    };
    if let Some(to) = to {
        known_cluster(&picture, to)?;
    }
    if let (None, Some(cluster)) = (to, leaving) {
        fleet.drain(cluster).await?;
    }
    let goal = match to {
        Some(to) => Goal::On(to.to_owned()),
        None => Goal::AwayFrom(from.to_owned()),
    };
    let (mut tracked, mut stay) = (Vec::new(), Vec::new());
    for subject in picture.subjects.iter().filter(|subject| is_on(subject, from)) {
        let Ok(namespace) = movable(subject) else {
            stay.push(subject.name.as_str());
            continue;
        };
        let desired = annotation(&namespace.metadata, ANNOTATION_CLUSTER);
        // An annotation with this very cluster would hold it there, whatever is drained.
        let is_written = match to {
            Some(to) => desired != Some(to),
            None => desired == Some(from),
        };
        if is_written {
            fleet.annotate(namespace, ANNOTATION_CLUSTER, to).await?;
        }
        let follower = Follower::new(goal.clone(), subject.grant.as_ref());
        tracked.push(Tracked::new(&subject.name, &namespace.uid().unwrap_or_default(), follower));
    }
    say(&moves_of_all(from, to, tracked.len()))?;
    if !stay.is_empty() {
        complain(&format!(
            "warning: {} on {from} cannot move (not placed, or being deleted): {}",
            count(stay.len(), "namespace"),
            listed(stay.into_iter())
        ));
    }
    Ok(tracked)
}

fn is_on(subject: &Subject, cluster: &str) -> bool {
    subject.holder().is_some_and(|owner| owner.name == cluster)
}

fn moves_of_all(from: &str, to: Option<&str>, number: usize) -> String {
    let place = to.map_or_else(|| "to clusters that fit".to_owned(), |to| format!("to {to}"));
    let mut text = match number {
        0 => format!("no namespace is on {from}\n"),
        number => format!("{} move from {from} {place}\n", count(number, "namespace")),
    };
    if to.is_none() {
        text += &format!(
            "{from} is drained: it accepts no new namespaces until you run\n  \
             kubectl patch workloadcluster {from} --type merge -p '{{\"spec\":{{\"drain\":false}}}}'\n"
        );
    }
    text
}
