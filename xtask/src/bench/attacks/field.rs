//! Where an attack takes place: a server with two tenants, and what the attacker is answered.

use super::http::{Answer, Ask, Http, Place};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(super) const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
pub(super) const CLUSTERS: &str = "/apis/interlock.dev/v1alpha1/logicalclusters";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// A server with an attacker and a neighbour: each may do anything in a logical cluster of its own.
pub(super) struct Field {
    /// The administrator of the hub.
    pub(super) admin: Place,
    pub(super) loud: Place,
    pub(super) quiet: Place,
    pub(super) audit_log: PathBuf,
    /// How long an attack without an end of its own lasts.
    pub(super) duration: Duration,
    pub(super) is_quick: bool,
}

impl Field {
    /// Makes a logical cluster, and who shows a token there: the limits do not take them for the hub.
    pub(super) fn tenant(admin: &Place, cluster: &str) -> anyhow::Result<Place> {
        let object = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
            "metadata": {"name": cluster},
        });
        make(admin, CLUSTERS, &object)?;
        let place = Place { root: format!("/clusters/{cluster}"), ..admin.clone() };
        Field::account(&place, "tenant")
    }

    /// Makes an account that may do anything in its logical cluster.
    pub(super) fn account(admin: &Place, name: &str) -> anyhow::Result<Place> {
        make(admin, ACCOUNTS, &json!({"metadata": {"name": name}}))?;
        let binding = json!({
            "metadata": {"name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "cluster-admin"},
        });
        make(admin, BINDINGS, &binding)?;
        let token = make(admin, &format!("{ACCOUNTS}/{name}/token"), &json!({}))?;
        let token = token["status"]["token"].as_str().context("a TokenRequest without a token")?;
        Ok(Place { token: token.to_owned(), ..admin.clone() })
    }

    /// The administrator in the attacker's cluster.
    pub(super) fn admin_of_loud(&self) -> Place {
        Place { root: self.loud.root.clone(), ..self.admin.clone() }
    }

    /// Fills the attacker's cluster.
    pub(super) fn fill(&self, count: usize, bytes: usize) -> anyhow::Result<()> {
        for number in 0..count {
            let data = json!({"x": "y".repeat(bytes)});
            make(
                &self.loud,
                MAPS,
                &json!({"metadata": {"name": format!("large-{number}")}, "data": data}),
            )?;
        }
        Ok(())
    }

    /// Runs several attackers at once, each on a connection of its own, again and again until the time is over
    /// or nothing is left to do.
    pub(super) fn attack(
        &self,
        attackers: usize,
        attack: impl Fn(&mut Http, Turn) -> Option<anyhow::Result<Answer>> + Sync,
    ) -> anyhow::Result<Seen> {
        self.attack_for(self.duration, attackers, attack)
    }

    /// The same for so long.
    pub(super) fn attack_for(
        &self,
        duration: Duration,
        attackers: usize,
        attack: impl Fn(&mut Http, Turn) -> Option<anyhow::Result<Answer>> + Sync,
    ) -> anyhow::Result<Seen> {
        let deadline = Instant::now() + duration;
        let seen = Mutex::new(Seen::default());
        let note = |answer: anyhow::Result<Answer>| {
            let mut seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match answer {
                Ok(answer) => *seen.answers.entry(answer.status).or_default() += 1,
                Err(_) => seen.closed += 1,
            }
        };
        let one = |attacker: usize| -> anyhow::Result<()> {
            step_back()?;
            let (mut round, mut http) = (0, Http::connect(&self.loud)?);
            while Instant::now() < deadline {
                let turn = Turn { attacker, round };
                let Some(answer) = attack(&mut http, turn) else { break };
                round += 1;
                let is_closed = answer.is_err();
                note(answer);
                if is_closed {
                    http = Http::connect(&self.loud)?;
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..attackers).map(|number| scope.spawn(move || one(number))).collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().map_err(|_| anyhow::anyhow!("an attacker panicked"))?
            })
        })?;
        Ok(seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// Whose turn it is, and which one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) attacker: usize,
    pub(super) round: usize,
}

/// What came of an attack.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How often each status was answered.
    pub(super) answers: BTreeMap<u16, usize>,
    /// Streams and connections that the server ended.
    pub(super) closed: usize,
    /// What the attack itself found wrong.
    pub(super) wrong: Vec<String>,
}

impl Seen {
    /// Takes one answer in.
    pub(super) fn note(&mut self, status: u16) {
        *self.answers.entry(status).or_default() += 1;
    }
}

/// Makes an object, and gives what the server made of it.
pub(super) fn make(place: &Place, path: &str, object: &Value) -> anyhow::Result<Value> {
    let body = object.to_string();
    let answer = Http::connect(place)?.ask(Ask::post(path, body.as_bytes()))?;
    answer.good().with_context(|| format!("cannot create an object in {path}"))?.json()
}

/// The resourceVersion of the newest list.
pub(super) fn newest(place: &Place) -> anyhow::Result<String> {
    let list = Http::connect(place)?.ask(Ask::get(&format!("{MAPS}?limit=1")))?.good()?;
    let text = String::from_utf8_lossy(&list.body).into_owned();
    let after = text.split("\"resourceVersion\":\"").nth(1);
    let version = after.and_then(|rest| rest.split('"').next());
    Ok(version.context("a list without a resourceVersion")?.to_owned())
}

/// The attacker has a machine of its own elsewhere; here it leaves the processor to the server and the neighbour.
pub(super) fn step_back() -> anyhow::Result<()> {
    let thread = std::fs::read_link("/proc/thread-self")?;
    let number = thread.file_name().context("a thread without a number")?;
    let status = Command::new("renice")
        .args(["-n", "19", "-p"])
        .arg(number)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot start renice")?;
    if !status.success() {
        bail!("renice failed: an attacker runs at the neighbour's priority");
    }
    Ok(())
}
