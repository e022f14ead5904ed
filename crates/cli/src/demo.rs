//! `interlock up --demo`: one story through the systems, in which every promise is checked by something outside of the
//! component that makes it.
//!
//! * `machines`: a tenant gets two machines; later a cluster runs on them, and one of them is given to another tenant, once
//!   the cluster is drained. The records of the ports say whom each is open for.
//! * `ledger`: a Deployment with a writer that never pauses (`interlock write-numbers`, in `records`) is moved around with
//!   its data. The writer appends numbered, synced records to a file in its claim, and after each one it says so in a log
//!   outside, which all clusters share: that record is acknowledged. It refuses to write where another one writes, and where
//!   a record is missing that was acknowledged. So two owners at once would show as a refusal, and so would a move that
//!   loses data; and after each move the volume that the writer has now is compared with the log. Beside the records there
//!   is a larger file, so that a move has something to carry. In the middle of one move the agents of both clusters are
//!   killed, as a crash of their processes would.
//! * `roles`: the writer has a cloud role. After each move its own process asks STS (`session`): its token opens the role,
//!   and the token that the process had on the cluster before is refused. Somebody changes the policy in the cloud, and it
//!   is put right.
//! * `updates`: a cluster is updated to version 1; it is drained, so that the ledger moves away, and updated to version 2,
//!   and by its records the ledger wrote nothing there after that. Version 3 does not get healthy, and is rolled back and
//!   remembered. A log outside says which version's processes ran when.

mod ledger;
mod machines;
mod records;
mod roles;
mod session;
mod updates;

pub(crate) use records::{WriterArgs, write_numbers};

use crate::output;
use crate::run::access::Who;
use crate::run::identities::Account;
use crate::run::supervisor::Killer;
use anyhow::{Context, bail};
use kube::Client;
use ledger::Ledger;
use machines::Machines;
use roles::Roles;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use updates::Updates;

/// The pause between two moves, after the story.
const BETWEEN_MOVES: Duration = Duration::from_millis(500);

/// What the story has to do with.
pub(crate) struct Stage {
    pub(crate) hub: Client,
    /// The server of the fleet: logical clusters are reached through it.
    pub(crate) server: interlock_apiserver::Server,
    /// Where those who are watched from outside say what they did.
    pub(crate) directory: PathBuf,
    /// Where the volumes of all clusters are.
    pub(crate) volumes: PathBuf,
    /// Where the drivers of DPUs keep the records of their ports.
    pub(crate) dpus: PathBuf,
    /// The cloud account of the fleet.
    pub(crate) cloud: Account,
    /// Where the writer is placed, one after the other.
    pub(crate) clusters: Vec<String>,
    /// Kills the agents of clusters.
    pub(crate) killer: Killer,
    /// Whether one round is enough.
    pub(crate) is_once: bool,
}

impl Stage {
    /// A client of a logical cluster, for whoever started it all.
    fn client_of(&self, logical_cluster: &str) -> Client {
        Who::Owner.client(&self.server, logical_cluster)
    }

    /// Tells the story; whether every promise was kept.
    pub(crate) async fn run(&self) -> anyhow::Result<bool> {
        std::fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot make {}", self.directory.display()))?;
        let began = Instant::now();
        let is_kept = self.story().await?;
        if !is_kept {
            return Ok(false);
        }
        if self.is_once {
            let seconds = began.elapsed().as_secs_f64();
            output::say(&format!("\nevery promise was kept, in {seconds:.0} s\n"))?;
            return Ok(true);
        }
        let (mut at, ledger) = (0, Ledger { stage: self });
        loop {
            at = (at + 1) % self.clusters.len();
            if !ledger.step(&self.clusters[at]).await? {
                return Ok(false);
            }
            tokio::time::sleep(BETWEEN_MOVES).await;
        }
    }

    /// One round: false once a promise is broken.
    async fn story(&self) -> anyhow::Result<bool> {
        let [first, second, ..] = &self.clusters[..] else {
            bail!("the story needs two clusters, to move between: name them with --clusters");
        };
        let (machines, ledger) = (Machines { stage: self }, Ledger { stage: self });
        if !machines.assign().await? || !ledger.place(first).await? {
            return Ok(false);
        }
        let roles = Roles::of(self)?;
        if !roles.follow(first, ledger.epoch()).await? {
            return Ok(false);
        }
        for to in self.clusters.iter().skip(1).chain([first]) {
            if !ledger.step(to).await? || !roles.follow(to, ledger.epoch()).await? {
                return Ok(false);
            }
        }
        if !roles.is_put_right().await?
            || !ledger.step_disturbed(second).await?
            || !roles.follow(second, ledger.epoch()).await?
        {
            return Ok(false);
        }
        let updates = Updates { stage: self, cluster: second, ledger: &ledger };
        let Some(elsewhere) = updates.drain().await? else { return Ok(false) };
        let is_kept = roles.follow(&elsewhere, ledger.epoch()).await?
            && updates.roll_back().await?
            && ledger.step(second).await?
            && roles.follow(second, ledger.epoch()).await?;
        Ok(is_kept && machines.hand_over(second, &ledger).await?)
    }
}

/// Whether an object was made, or was there already.
fn made<K>(created: kube::Result<K>) -> anyhow::Result<bool> {
    match created {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error).context("cannot create the objects of the demonstration"),
    }
}

/// Prints what was seen, or what is broken; whether nothing is.
fn judged(broken: &[String], kept: &str) -> anyhow::Result<bool> {
    for words in broken {
        output::say(&format!("  BROKEN: {words}\n"))?;
    }
    if broken.is_empty() {
        output::say(&format!("  kept: {kept}\n"))?;
    }
    Ok(broken.is_empty())
}
