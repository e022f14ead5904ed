//! Reads the trust of one role without pause, and tries the token of every cluster, while a namespace moves.

use super::cloud::{Caller, trusted};
use super::harness::{Client, until};
use interlock_iam::{Credentials, Outcome};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Where the hub and the account are. It changes when they are started again.
pub(crate) struct Reach {
    pub(crate) hub: SocketAddr,
    pub(crate) endpoint: String,
    pub(crate) credentials: Credentials,
}

/// What is watched.
pub(crate) struct Watched {
    /// The path of the Grant.
    pub(crate) grant: String,
    /// The name of the cloud role.
    pub(crate) role: String,
    /// The issuer of each cluster, without its scheme.
    pub(crate) issuers: BTreeMap<String, String>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// How often the role was read.
    pub(crate) looks: usize,
    /// How many of these were while an epoch might run.
    pub(crate) while_ready: usize,
    /// How often the token of a cluster that had lost the namespace was refused, while another might run it.
    pub(crate) refused: usize,
    /// The epochs that might run.
    pub(crate) epochs: BTreeSet<i64>,
    /// ARN and id of the role.
    pub(crate) roles: BTreeSet<(String, String)>,
    /// What must never be.
    pub(crate) wrong: Vec<String>,
}

/// Watches until it is asked what it saw.
pub(crate) struct Watcher {
    told: Arc<Told>,
    task: JoinHandle<Seen>,
}

struct Told {
    is_over: AtomicBool,
    /// The last epoch that might run while everything was read and tried.
    epoch: AtomicI64,
    /// A token of the service account on each cluster, as far as there is one.
    tokens: Mutex<BTreeMap<String, String>>,
    watched: Watched,
}

impl Watcher {
    pub(crate) fn of(watched: Watched, reach: impl Fn() -> Reach + Send + 'static) -> Watcher {
        let (is_over, epoch) = (AtomicBool::new(false), AtomicI64::new(0));
        let told = Arc::new(Told { is_over, epoch, tokens: Mutex::default(), watched });
        let shared = Arc::clone(&told);
        let task = thread::spawn(move || {
            let mut seen = Seen::default();
            while !shared.is_over.load(Ordering::Relaxed) {
                shared.watch(&reach(), &mut seen);
            }
            seen
        });
        Watcher { told, task }
    }

    /// Gives it the token of a cluster.
    pub(crate) fn knows(&self, cluster: &str, token: String) {
        self.told.tokens.lock().expect("nobody panics with it").insert(cluster.to_owned(), token);
    }

    /// Waits until it has seen an epoch that might run.
    pub(crate) fn sees(&self, epoch: i64) {
        until(&format!("epoch {epoch} is seen"), || {
            let last = self.told.epoch.load(Ordering::Relaxed);
            if last == epoch { Ok(()) } else { Err(format!("epoch {last}")) }
        });
    }

    pub(crate) fn saw(self) -> Seen {
        self.told.is_over.store(true, Ordering::Relaxed);
        self.task.join().expect("it only looks")
    }
}

/// The epoch and its owner, if the Grant says that every role is ready for it.
pub(crate) fn ready(grant: &Value) -> Option<(i64, String)> {
    let status = &grant["status"];
    let epoch = status["epoch"].as_i64()?;
    let rights = status["rights"].as_array().filter(|rights| !rights.is_empty())?;
    let is_ready = |it: &Value| it["state"] == "Ready" && it["epoch"] == epoch;
    // An owner that leaves has its rights until it has released.
    let is_held = status["phase"] == "Granted" || status["phase"] == "Revoking";
    let owner = status["owner"]["name"].as_str()?.to_owned();
    (is_held && rights.iter().all(is_ready)).then_some((epoch, owner))
}

impl Told {
    /// Watches until somebody does not answer.
    fn watch(&self, reach: &Reach, seen: &mut Seen) {
        let mut hub = Client::new(reach.hub);
        let caller = Caller::of(&reach.endpoint, reach.credentials.clone());
        while !self.is_over.load(Ordering::Relaxed) {
            if self.look(&mut hub, &caller, seen).is_none() {
                // It is being started again: the pause between two tries.
                thread::sleep(Duration::from_millis(20));
                return;
            }
        }
    }

    fn grant(&self, hub: &mut Client) -> Option<Value> {
        let answer = hub.call("GET", &self.watched.grant, None).ok()?;
        (answer.status == 200).then(|| answer.json())
    }

    /// None: somebody did not answer.
    fn look(&self, hub: &mut Client, caller: &Caller, seen: &mut Seen) -> Option<()> {
        let before = ready(&self.grant(hub)?);
        let role = match caller.role(&self.watched.role) {
            Outcome::Done(role) => role,
            Outcome::Refused(refusal) if refusal.code == "NoSuchEntity" => {
                seen.wrong.push("there is no role".to_owned());
                return Some(());
            }
            Outcome::Refused(_) | Outcome::Unknown(_) => return None,
        };
        let tokens = self.tokens.lock().expect("nobody panics with it").clone();
        let mut tried = Vec::new();
        for (cluster, token) in &tokens {
            tried.push((cluster, accepted(caller, &role.arn, token)?));
        }
        let after = ready(&self.grant(hub)?);
        seen.looks += 1;
        seen.roles.insert((role.arn.clone(), role.id.clone()));
        let issuers = trusted(&role.trust);
        if issuers.len() > 1 {
            seen.wrong.push(format!("two issuers: {}", role.trust));
        }
        // All of it was read while this epoch might run.
        let Some((epoch, owner)) = before.filter(|before| after.as_ref() == Some(before)) else {
            return Some(());
        };
        seen.while_ready += 1;
        seen.epochs.insert(epoch);
        self.epoch.store(epoch, Ordering::Relaxed);
        if issuers != [self.watched.issuers[&owner].clone()] {
            seen.wrong.push(format!("epoch {epoch} is of {owner}: {}", role.trust));
        }
        for (cluster, accepted) in tried {
            let is_owner = *cluster == owner;
            seen.refused += usize::from(!is_owner && accepted.is_err());
            let wanted = if is_owner { Ok(()) } else { Err("AccessDenied".to_owned()) };
            if accepted != wanted {
                let what = format!("epoch {epoch} is of {owner}; {cluster} gets {accepted:?}");
                seen.wrong.push(what);
            }
        }
        Some(())
    }
}

/// Whether a token opens the role, or with which code it does not. None: nobody answered.
fn accepted(caller: &Caller, arn: &str, token: &str) -> Option<Result<(), String>> {
    match caller.assume(arn, token) {
        Outcome::Done(_) => Some(Ok(())),
        Outcome::Refused(refusal) if refusal.code.is_empty() => None,
        Outcome::Refused(refusal) => Some(Err(refusal.code)),
        Outcome::Unknown(_) => None,
    }
}
