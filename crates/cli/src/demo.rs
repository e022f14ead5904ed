//! `interlock up --demo`: one story through the systems, in which every promise is checked by something outside of the
//! component that makes it.
//!
//! * `machines`: a tenant gets two machines; later one of them is given to another tenant. The records of the ports say
//!   whom each is open for.
//! * `ledger`: a writer that never pauses (`interlock write-numbers`, in `records`) is moved around with its data. It
//!   appends numbered, synced records to a file in its claim, and after each one it says so in a log outside, which all
//!   clusters share: that record is acknowledged. It refuses to write where another one writes, and where a record is
//!   missing that was acknowledged. So two owners at once would show as a refusal, and so would a move that loses data;
//!   and after each move the volume that the writer has now is compared with the log. Beside the records there is a
//!   larger file, so that a move has something to carry.
//! * `roles`: the writer has a cloud role. After each move STS is asked: the token of the new owner opens the role, and
//!   the token of the old one is refused. Somebody changes the policy in the cloud, and it is put right.
//! * `updates`: a cluster goes to version 1 and to version 2; version 3 does not get healthy, and is rolled back and
//!   remembered. A log outside says which version's processes ran when.

mod ledger;
mod machines;
mod records;
mod roles;
mod updates;

pub(crate) use records::{WriterArgs, write_numbers};

use crate::output;
use crate::run::access::Who;
use crate::run::identities::Account;
use anyhow::Context;
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
            ledger.step(&self.clusters[at]).await?;
            if !ledger.check(&self.clusters[at]).await? {
                return Ok(false);
            }
            tokio::time::sleep(BETWEEN_MOVES).await;
        }
    }

    /// One round: false once a promise is broken.
    async fn story(&self) -> anyhow::Result<bool> {
        let first = self.clusters.first().context("a demonstration needs a cluster")?;
        let (machines, ledger) = (Machines { stage: self }, Ledger { stage: self });
        if !machines.assign().await? {
            return Ok(false);
        }
        ledger.place(first).await?;
        let roles = Roles::of(self)?;
        let mut before = roles.token(first).await?;
        for to in self.clusters.iter().skip(1).chain([first]) {
            ledger.step(to).await?;
            if !ledger.check(to).await? {
                return Ok(false);
            }
            let now = roles.token(to).await?;
            if !roles.check(&before, &now).await? {
                return Ok(false);
            }
            before = now;
        }
        if !roles.is_put_right().await? {
            return Ok(false);
        }
        // A cluster that is updated while the writer is elsewhere, and one to which it may come back.
        let updated = self.clusters.get(1).unwrap_or(first);
        if !(Updates { stage: self, cluster: updated }).tell().await? {
            return Ok(false);
        }
        machines.hand_over().await
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
