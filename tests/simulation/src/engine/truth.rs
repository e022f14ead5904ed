//! What the server really has: read after every write, and seen by nobody in the fleet.

use super::Broken;
use super::line::{Lines, Sent};
use interlock_kernel::{GroupVersion, Kind, Object};
use interlock_shell::Server;
use std::collections::{BTreeMap, BTreeSet};

/// What every server has: it is read for the newest version, where nothing else was written that is known.
const NAMESPACE: Kind = Kind::cluster_wide(GroupVersion::new("", "v1"), "Namespace", "namespaces");

/// How the objects of a kind were, each time that they changed: the version, and all of them.
type History = Vec<(u64, Vec<Object>)>;

/// What the server has, and had.
#[derive(Default)]
pub(crate) struct Truth {
    /// The newest version.
    pub(crate) newest: u64,
    places: BTreeMap<&'static str, Kept>,
}

/// What is kept of one place.
struct Kept {
    server: Server,
    kinds: BTreeMap<Kind, History>,
}

impl Truth {
    /// Everything of a kind.
    pub(crate) fn all(&self, at: &str, kind: &Kind) -> &[Object] {
        self.history(at, kind).last().map_or(&[], |(_, objects)| objects.as_slice())
    }

    /// Everything of a kind as it was at a version.
    pub(crate) fn all_at(&self, at: &str, kind: &Kind, version: u64) -> &[Object] {
        let history = self.history(at, kind);
        let until = history.partition_point(|(changed, _)| *changed <= version);
        history[..until].last().map_or(&[], |(_, objects)| objects.as_slice())
    }

    fn history(&self, at: &str, kind: &Kind) -> &[(u64, Vec<Object>)] {
        let history = self.places.get(at).and_then(|kept| kept.kinds.get(kind));
        history.map_or(&[], Vec::as_slice)
    }

    /// One object, by its namespace and name.
    pub(crate) fn get(
        &self,
        at: &str,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<&Object> {
        let mut all = self.all(at, kind).iter();
        all.find(|object| {
            object.metadata.name.as_deref() == Some(name)
                && (namespace.is_none() || object.metadata.namespace.as_deref() == namespace)
        })
    }

    /// The version at which anything of a kind last changed, or later.
    pub(crate) fn changed(&self, at: &str, kind: &Kind) -> u64 {
        self.history(at, kind).last().map_or(0, |(changed, _)| *changed)
    }

    /// The versions at which anything of a kind changed.
    pub(crate) fn changes(&self, at: &str, kind: &Kind) -> Vec<u64> {
        self.history(at, kind).iter().map(|(changed, _)| *changed).collect()
    }

    /// Reads what the promises are about, for the first time.
    pub(crate) async fn begin(
        &mut self,
        lines: &Lines,
        at_hub: &[Kind],
        at_cluster: &[Kind],
    ) -> Result<(), Broken> {
        for at in [crate::HUB].into_iter().chain(crate::CLUSTERS) {
            let server = Server::new(at, lines.admin("truth", at));
            self.places.insert(at, Kept { server, kinds: BTreeMap::new() });
            let kinds = if at == crate::HUB { at_hub } else { at_cluster };
            for kind in kinds {
                self.know(at, kind).await?;
            }
        }
        Ok(())
    }

    /// Somebody has a cache of this kind: from now on it is read whenever it changed.
    pub(crate) async fn know(&mut self, at: &str, kind: &Kind) -> Result<(), Broken> {
        let is_known = self.places.get(at).is_some_and(|kept| kept.kinds.contains_key(kind));
        if is_known { Ok(()) } else { self.read(at, kind).await }
    }

    /// Reads what these writes may have changed.
    pub(crate) async fn follow(&mut self, sent: &[Sent]) -> Result<(), Broken> {
        let done = || sent.iter().filter(|sent| sent.is_done);
        if done().next().is_none() {
            return Ok(());
        }
        let before = self.newest;
        let touched: BTreeSet<(&str, &str)> =
            done().map(|sent| (&*sent.to, plural(&sent.path))).collect();
        for (at, plural) in touched {
            let kinds = self.places.get(at).into_iter().flat_map(|kept| kept.kinds.keys());
            let kind = kinds.clone().find(|kind| kind.plural == plural).cloned();
            self.read(at, &kind.unwrap_or(NAMESPACE)).await?;
        }
        // One write is one version: where there are more, the server wrote something by itself.
        if self.newest - before > done().count() as u64 {
            self.read_all(|_| true).await?;
        }
        Ok(())
    }

    /// The server may have done something by itself. All that it does then is to empty what is
    /// being deleted, so where nothing was, nothing is.
    pub(crate) async fn after_background(&mut self) -> Result<(), Broken> {
        let before = self.newest;
        self.read(crate::HUB, &NAMESPACE).await?;
        if self.newest == before {
            return Ok(());
        }
        self.read_all(|history| history.last().is_some_and(|(_, objects)| !objects.is_empty()))
            .await
    }

    async fn read_all(&mut self, is_read: impl Fn(&History) -> bool) -> Result<(), Broken> {
        let mut to_read = Vec::new();
        for (at, kept) in &self.places {
            let kinds = kept.kinds.iter().filter(|(_, history)| is_read(history));
            to_read.extend(kinds.map(|(kind, _)| (*at, kind.clone())));
        }
        for (at, kind) in to_read {
            self.read(at, &kind).await?;
        }
        Ok(())
    }

    async fn read(&mut self, at: &str, kind: &Kind) -> Result<(), Broken> {
        let kept = self.places.get_mut(at).ok_or_else(|| format!("there is no {at}"))?;
        let (objects, version) = kept.server.list(kind).await?;
        let version = version.parse().map_err(|_| format!("a list of version {version:?}"))?;
        self.newest = self.newest.max(version);
        let history = kept.kinds.entry(kind.clone()).or_default();
        if history.last().is_none_or(|(_, before)| !is_same(before, &objects)) {
            history.push((version, objects));
        }
        Ok(())
    }
}

/// Whether two lists show the same objects in the same versions.
fn is_same(one: &[Object], other: &[Object]) -> bool {
    let version =
        |object: &Object| (object.metadata.uid.clone(), object.metadata.resource_version.clone());
    one.iter().map(version).eq(other.iter().map(version))
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
