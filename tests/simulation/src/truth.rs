//! What the server really has: read after every write, and seen by nobody in the fleet.

use crate::line::{Lines, Sent};
use crate::world::{Broken, api_of, said};
use interlock_api::placement::Phase;
use interlock_kernel::Kind;
use interlock_placement::kinds::{CLAIM, FORCE_RELEASE, GRANT, NAMESPACE, POD, WORKLOAD_CLUSTER};
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use std::collections::{BTreeMap, BTreeSet};

/// The kinds that promises are about: at the hub, and at clusters.
static AT_HUB: [Kind; 6] = [GRANT, NAMESPACE, POD, CLAIM, FORCE_RELEASE, WORKLOAD_CLUSTER];
static AT_CLUSTER: [Kind; 3] = [NAMESPACE, POD, CLAIM];

/// What the server has.
#[derive(Default)]
pub(crate) struct Truth {
    /// The newest version.
    pub(crate) newest: u64,
    objects: BTreeMap<(String, String), Vec<DynamicObject>>,
    changed: BTreeMap<(String, String), u64>,
    clients: BTreeMap<String, Client>,
}

impl Truth {
    /// Everything of a kind.
    pub(crate) fn all(&self, at: &str, kind: &Kind) -> &[DynamicObject] {
        let found = self.objects.get(&(at.to_owned(), kind.plural.to_string()));
        found.map_or(&[], Vec::as_slice)
    }

    /// One object, by its namespace and name.
    pub(crate) fn get(
        &self,
        (at, kind): (&str, &Kind),
        (namespace, name): (Option<&str>, &str),
    ) -> Option<&DynamicObject> {
        let mut all = self.all(at, kind).iter();
        all.find(|object| {
            object.metadata.name.as_deref() == Some(name)
                && (namespace.is_none() || object.metadata.namespace.as_deref() == namespace)
        })
    }

    /// A grant by its name.
    pub(crate) fn grant(&self, name: &str) -> Option<Granted> {
        self.get((crate::HUB, &GRANT), (None, name)).map(Granted::of)
    }

    /// The version at which anything of a kind last changed, or later.
    pub(crate) fn changed(&self, at: &str, plural: &str) -> u64 {
        self.changed.get(&(at.to_owned(), plural.to_owned())).copied().unwrap_or(0)
    }

    /// Reads all there is.
    pub(crate) async fn read_all(&mut self, lines: &Lines) -> Result<(), Broken> {
        for at in [crate::HUB].into_iter().chain(crate::CLUSTERS) {
            for kind in kinds_at(at) {
                self.read(lines, at, kind).await?;
            }
        }
        Ok(())
    }

    /// Reads what these writes may have changed.
    pub(crate) async fn follow(&mut self, sent: &[Sent], lines: &Lines) -> Result<(), Broken> {
        let mut touched = BTreeSet::new();
        for sent in sent.iter().filter(|sent| sent.is_done) {
            touched.insert((sent.to.to_string(), plural(&sent.path).to_owned()));
        }
        let mut is_newest = touched.is_empty();
        for (at, plural) in &touched {
            let kind = kinds_at(at).iter().find(|kind| kind.plural == *plural);
            if let Some(kind) = kind {
                self.read(lines, at, kind).await?;
                is_newest = true;
            }
        }
        if !is_newest {
            self.read(lines, crate::HUB, &FORCE_RELEASE).await?;
        }
        for key in touched {
            self.changed.insert(key, self.newest);
        }
        Ok(())
    }

    /// The server did something by itself: anything may have changed.
    pub(crate) async fn after_duties(&mut self, lines: &Lines) -> Result<(), Broken> {
        let before = self.newest;
        self.read(lines, crate::HUB, &FORCE_RELEASE).await?;
        if self.newest == before {
            return Ok(());
        }
        self.read_all(lines).await?;
        let newest = self.newest;
        self.changed.values_mut().for_each(|changed| *changed = newest);
        Ok(())
    }

    async fn read(&mut self, lines: &Lines, at: &str, kind: &Kind) -> Result<(), Broken> {
        let made = || lines.client("truth", at).0;
        let client = self.clients.entry(at.to_owned()).or_insert_with(made);
        let list = api_of(client, kind, None).list(&ListParams::default()).await.map_err(said)?;
        let version = list.metadata.resource_version.unwrap_or_default();
        self.newest = self.newest.max(version.parse().unwrap_or(0));
        self.objects.insert((at.to_owned(), kind.plural.to_string()), list.items);
        Ok(())
    }
}

fn kinds_at(at: &str) -> &'static [Kind] {
    if at == crate::HUB { &AT_HUB } else { &AT_CLUSTER }
}

/// The plural in a path: `/api/v1/namespaces/a/pods/x/status` is about pods.
pub(crate) fn plural(path: &str) -> &str {
    let parts = parts(path);
    match parts.as_slice() {
        ["namespaces", _, "status" | "finalize"] => "namespaces",
        ["namespaces", _, plural, ..] | [plural, ..] => plural,
        [] => "",
    }
}

/// The namespace and name in a path, and the plural.
pub(crate) fn named(path: &str) -> (Option<&str>, &str) {
    match parts(path).as_slice() {
        ["namespaces", namespace, _, name, ..] => (Some(namespace), name),
        [_, name, ..] => (None, name),
        _ => (None, ""),
    }
}

fn parts(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let skipped = if parts.first() == Some(&"api") { 2 } else { 3 };
    parts.drain(..skipped.min(parts.len()));
    parts
}

/// What a grant says, as far as promises need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    /// What is true of the owner.
    pub(crate) phase: String,
    /// The uid of the owner.
    pub(crate) owner: String,
    /// How often it was granted.
    pub(crate) epoch: i64,
}

impl Granted {
    /// Reads a grant.
    pub(crate) fn of(grant: &DynamicObject) -> Granted {
        let status = &grant.data["status"];
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let phase = Some(text(&status["phase"])).filter(|phase| !phase.is_empty());
        Granted {
            phase: phase.unwrap_or_else(|| Phase::Unassigned.to_string()),
            owner: text(&status["owner"]["uid"]),
            epoch: status["epoch"].as_i64().unwrap_or(0),
        }
    }

    /// Whether a cluster has it now.
    pub(crate) fn is_held_by(&self, uid: &str) -> bool {
        self.owner == uid && matches!(self.phase.as_str(), "Granted" | "Revoking")
    }
}
