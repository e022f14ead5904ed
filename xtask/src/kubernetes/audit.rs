//! What an agent asked the API servers of a cluster to do with ConfigMaps of `default`, by their audit logs.

use anyhow::Context;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The account whose requests are recorded.
const ACCOUNT: &str = "system:serviceaccount:interlock-system:interlock-syncer";
const WRITES: [&str; 4] = ["create", "update", "patch", "delete"];

/// What the API servers record. The namespace is no part of it: the probes and the fence are recorded, too.
pub(super) fn policy() -> Value {
    let maps = json!({"group": "", "resources": ["configmaps"]});
    json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
        "rules": [
            {"level": "Metadata", "users": [ACCOUNT], "resources": [maps]},
            {"level": "None"},
        ],
    })
}

/// The audit logs of the API servers of a cluster.
pub(super) struct Audit {
    pub(super) logs: [PathBuf; 2],
}

/// A moment: how long the logs were.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark([u64; 2]);

/// A request to write.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// The object.
    pub(super) name: String,
    pub(super) verb: String,
    pub(super) is_dry_run: bool,
    /// What was answered; None: nothing yet.
    pub(super) code: Option<u64>,
    /// Why it was refused.
    pub(super) message: String,
}

impl Asked {
    /// Whether it was a write, and was done.
    pub(super) fn is_done(&self) -> bool {
        !self.is_dry_run && self.code.is_some_and(|code| code < 300)
    }

    /// Whether it was refused because it is older than the fence.
    pub(super) fn is_fenced(&self) -> bool {
        self.code.is_some_and(|code| code >= 400)
            && self.message.contains("denied request: Fenced:")
    }
}

impl Audit {
    /// This moment.
    pub(super) fn now(&self) -> anyhow::Result<Mark> {
        Ok(Mark([length(&self.logs[0])?, length(&self.logs[1])?]))
    }

    /// How many requests about ConfigMaps each server has answered since a moment. Probes are not counted, the only ones that
    /// are no applies: they are sent to every server.
    pub(super) fn counts(&self, since: Mark) -> anyhow::Result<[usize; 2]> {
        let count = |server: usize| -> anyhow::Result<usize> {
            let events = events(&self.logs[server], since.0[server])?;
            let is_over = |it: &&Value| it["stage"] == "ResponseComplete" && it["verb"] != "create";
            Ok(events.iter().filter(is_over).count())
        };
        Ok([count(0)?, count(1)?])
    }

    /// The requests since a moment to write ConfigMaps of `default`, dry runs among them. Probes of the fence are not
    /// among them: they ask for no object of a bundle.
    pub(super) fn since(&self, mark: Mark) -> anyhow::Result<Vec<Asked>> {
        let mut found = BTreeMap::new();
        for (log, from) in self.logs.iter().zip(mark.0) {
            for event in events(log, from)? {
                let id = event["auditID"].as_str().unwrap_or_default().to_owned();
                if let Some(asked) = asked(&event) {
                    // The last event of a request says most.
                    found.insert(id, asked);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// The writes since a moment that were done.
    pub(super) fn done(&self, since: Mark) -> anyhow::Result<Vec<Asked>> {
        Ok(self.since(since)?.into_iter().filter(Asked::is_done).collect())
    }
}

fn length(log: &Path) -> anyhow::Result<u64> {
    let metadata = std::fs::metadata(log);
    Ok(metadata.with_context(|| format!("there is no audit log {}", log.display()))?.len())
}

/// The events of a log from a place on. The last line may not be whole yet.
fn events(log: &Path, from: u64) -> anyhow::Result<Vec<Value>> {
    let mut file = std::fs::File::open(log)?;
    file.seek(SeekFrom::Start(from))?;
    let lines = BufReader::new(file).lines().collect::<Result<Vec<_>, _>>()?;
    Ok(lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn asked(event: &Value) -> Option<Asked> {
    let about = &event["objectRef"];
    let (verb, name) = (event["verb"].as_str()?, about["name"].as_str()?);
    let is_it = about["namespace"] == "default" && WRITES.contains(&verb) && !is_probe(name);
    let is_dry_run = event["requestURI"].as_str()?.contains("dryRun=All");
    let is_over = event["stage"] == "ResponseComplete";
    let status = &event["responseStatus"];
    is_it.then(|| Asked {
        name: name.to_owned(),
        verb: verb.to_owned(),
        is_dry_run,
        code: status["code"].as_u64().filter(|_| is_over),
        message: status["message"].as_str().unwrap_or_default().to_owned(),
    })
}

fn is_probe(name: &str) -> bool {
    name == "interlock-rollout-probe"
}
