//! `interlock force-release`: a person declares that the owner of a namespace is gone.

use super::client::{Fleet, New};
use super::location::Location;
use super::page::last_image;
use super::picture::{Picture, Subject, unreachable};
use super::words::{age, table};
use crate::output::{complain, say};
use anyhow::{Context, bail};
use interlock_api::placement::{
    Attestation, ForceOutcome, ForceRelease, ForceReleaseSpec, GrantStatus, Ref,
};
use kube::ResourceExt;
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Options of `force-release`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXPLAINED)]
pub(crate) struct Args {
    /// The namespace
    namespace: String,
    /// The cluster that is declared gone; it must own the namespace
    #[arg(long, value_name = "CLUSTER")]
    owner: String,
    /// The epoch that it owns; another one means that the namespace has changed hands since
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    epoch: i64,
    /// What you know about the owner; it must be true now
    #[arg(long, alias = "attestation", value_enum, value_name = "WHAT")]
    attest: Attest,
    /// Why, for those who read it later: at least ten characters
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Do not ask again
    #[arg(long, short)]
    yes: bool,
    /// How long to wait for the outcome
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::time)]
    timeout: Duration,
    #[command(flatten)]
    location: Location,
}

/// What is known about the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Attest {
    /// Its machines are off, and nothing of the namespace runs there
    #[value(alias = "PoweredOff")]
    PoweredOff,
    /// It cannot reach its storage any more: whatever runs there cannot write
    #[value(alias = "StorageFenced")]
    StorageFenced,
    /// Nothing is known: two clusters may write, and what the old one writes may be lost
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
The safe way is a planned move: `interlock move NAMESPACE --to CLUSTER`. This command is for an owner that
will not answer. Another cluster then starts from the last complete images; what was written after them
is lost, and the loss is shown before anything is done.

The attestation must be true when you give it; what happens later does not matter, because a cluster that
comes back asks before it starts anything.
  powered-off        its machines are off
  storage-fenced     it is cut off from its storage
  accept-divergence  you do not know: two clusters may write, and the promise that only one does is void
                     until the old one has been heard of

Exit status: 0 applied; 1 refused, or not answered in time; 2 usage error, or nobody confirmed.";

fn reason(text: &str) -> Result<String, String> {
    match text.trim().chars().count() {
        0..10 => Err("at least ten characters: it is read by those who come later".to_owned()),
        10..=1024 => Ok(text.trim().to_owned()),
        _ => Err("at most 1024 characters".to_owned()),
    }
}

/// Runs the command.
pub(crate) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let fleet = Fleet::open(&args.location).await?;
    let picture = fleet.picture_of(&args.namespace).await?;
    let subject = picture.subjects.first().context("a picture of a namespace has it")?;
    let (grant, owner) = look(args, subject)?;
    let is_heard = picture.cluster_of(&owner).is_some_and(|cluster| unreachable(cluster).is_none());
    if is_heard {
        let words = format!(
            "{owner} is heard of: the safe way is `interlock move {} --to CLUSTER`",
            args.namespace
        );
        if !args.yes {
            bail!("{words}\nif it must be forced all the same, add --yes");
        }
        complain(&format!("warning: {words}"));
    }
    complain(&losses(&picture, subject));
    confirm(args, &owner)?;
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
fn look(args: &Args, subject: &Subject) -> anyhow::Result<(Ref, Ref)> {
    let name = &args.namespace;
    let Some(grant) = &subject.grant else {
        bail!("namespace `{name}` has no grant: nobody has it, and there is nothing to release");
    };
    let status = grant.status_or_default();
    let GrantStatus { phase, owner, epoch, .. } = status;
    let Some(owner) = owner.filter(|_| phase.is_held()) else {
        bail!("nobody has `{name}` now ({phase}, epoch {epoch}): there is nothing to release");
    };
    let there = format!("{owner} has it at epoch {epoch} ({phase})");
    if owner.name != args.owner {
        bail!("{} does not have `{name}`: {there}", args.owner);
    }
    if epoch != args.epoch {
        bail!("the epoch of `{name}` is {epoch}, you named {}: {there}", args.epoch);
    }
    let uid = grant.metadata.uid.clone().unwrap_or_default();
    Ok((Ref::new(grant.name_any(), uid), owner))
}

/// What a forced release loses at most, claim by claim.
fn losses(picture: &Picture, subject: &Subject) -> String {
    let status = subject.grant.as_ref().map(|grant| grant.status_or_default()).unwrap_or_default();
    if status.claims.is_empty() {
        return "what is lost: nothing, it has no claims".to_owned();
    }
    let rows: Vec<Vec<String>> = status
        .claims
        .iter()
        .map(|claim| {
            let taken = last_image(&status, claim).map(|pin| pin.taken.0);
            let lost = match taken {
                Some(taken) => {
                    format!("what was written in the last {}", age(picture.now, taken))
                }
                None => "everything written since the grant: there is no image".to_owned(),
            };
            let image = taken.map_or_else(
                || "none".to_owned(),
                |taken| format!("{} ago", age(picture.now, taken)),
            );
            vec![claim.name.clone(), image, lost]
        })
        .collect();
    format!("what is lost at most\n{}", table(&["CLAIM", "LAST IMAGE", "LOST"], &rows).trim_end())
}

/// A person has to say so: by the name of the namespace, or by --yes.
fn confirm(args: &Args, owner: &Ref) -> anyhow::Result<()> {
    if args.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        bail!("nobody is there to confirm: add --yes");
    }
    let name = &args.namespace;
    let mut terminal = std::io::stderr().lock();
    let _ = write!(
        terminal,
        "this declares {owner} gone for {name} at epoch {}, for ever; type the namespace's name to confirm: ",
        args.epoch
    );
    let _ = terminal.flush();
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    if answer.trim() != name {
        bail!("not confirmed: nothing was done");
    }
    Ok(())
}

/// Who asks, for the record: the person at this machine, and who they are at the hub.
fn requester(user: &str) -> String {
    let person = ["USER", "LOGNAME"].iter().find_map(|key| std::env::var(key).ok());
    let person = person.filter(|person| !person.is_empty());
    let words = match (person, user) {
        (Some(person), "") => person,
        (Some(person), user) => format!("{person} as {user}"),
        (None, "") => "unknown".to_owned(),
        (None, user) => user.to_owned(),
    };
    words.chars().take(253).collect()
}

/// Five letters that tell two declarations about one epoch apart. The server refuses a name that is
/// taken, so a clash costs another try and nothing else.
fn short_id() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let clock = jiff::Timestamp::now().as_nanosecond().unsigned_abs();
    let mut left = clock ^ (u128::from(std::process::id()) << 20);
    let mut id = String::new();
    for _ in 0..5 {
        let place = usize::try_from(left % LETTERS.len() as u128).unwrap_or_default();
        id.push(char::from(LETTERS[place]));
        left /= LETTERS.len() as u128;
    }
    id
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
