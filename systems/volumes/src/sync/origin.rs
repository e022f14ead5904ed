//! The source that a copy is of: named by a person, and what it took last.

use super::Here;
use super::repository::Unhealthy;
use super::snapshots::{SNAPSHOT_PREFIX, is_ready};
use crate::filed::SNAPSHOTS_BY_UID;
use crate::kinds::{SNAPSHOT_KIND, SOURCE};
use crate::objects::{is_deleting, namespace_of, text, uid_of};
use interlock_api::names::PROVIDER_COPY;
use interlock_kernel::{Name, Object, Place, View};

/// A ReplicationSource, as it is named: `<namespace>/<name>[@cluster]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    namespace: String,
    name: String,
    /// The name or the uid of the cluster that it is on; None: this one.
    cluster: Option<String>,
}

impl Origin {
    pub(super) fn read(named: &str) -> Result<Origin, String> {
        let (path, cluster) = match named.split_once('@') {
            Some((path, cluster)) => (path, Some(cluster.to_owned())),
            None => (named, None),
        };
        let is_word = |word: &str| !word.is_empty() && !word.contains(['/', '@']);
        match path.split_once('/') {
            Some((namespace, name))
                if is_word(namespace)
                    && is_word(name)
                    && cluster.as_deref().is_none_or(is_word) =>
            {
                Ok(Origin { namespace: namespace.to_owned(), name: name.to_owned(), cluster })
            }
            Some(_) | None => Err(format!(
                "spec.external.parameters.source {named:?} is not <namespace>/<name>[@cluster]"
            )),
        }
    }

    /// Why a destination in this namespace may not have it.
    pub(super) fn refused(&self, own: &str, here: &Here) -> Option<String> {
        let Origin { namespace, cluster, .. } = self;
        let is_here = |cluster: &str| cluster == here.name || cluster == here.uid;
        if namespace != own {
            return Some(format!(
                "spec.external.parameters.source: namespace {namespace} is not {own}; a source of \
                 another namespace cannot be copied, so name a source of {own}"
            ));
        }
        let elsewhere = cluster.as_deref().filter(|cluster| !is_here(cluster))?;
        Some(format!(
            "spec.external.parameters.source: {elsewhere} is another cluster, whose sources \
             cannot be read; set .cluster to its uid, and .snapshotUID to \
             status.external.snapshotUID of the source there"
        ))
    }

    /// The latest snapshot of the source, or why there is none.
    pub(super) fn latest_image(&self, view: &dyn View) -> Result<Object, Unhealthy> {
        let Origin { namespace, name, .. } = self;
        let missing = |what: &str| Err(Unhealthy::new("SourceMissing", what));
        let Some(source) = view.get(Place::CLUSTER, &SOURCE, &Name::within(namespace, name)) else {
            return missing(&format!("ReplicationSource {name} does not exist; create it"));
        };
        if text(&source.data, &["spec", "external", "provider"]) != PROVIDER_COPY {
            return missing(&format!(
                "ReplicationSource {name} keeps no snapshot; only sources of {PROVIDER_COPY} do"
            ));
        }
        let reported = |key: &str| text(&source.data, &["status", "external", key]);
        let (snapshot, uid) = (reported("snapshot"), reported("snapshotUID"));
        if snapshot.is_empty() || uid.is_empty() {
            return missing(&format!("ReplicationSource {name} has taken no snapshot yet"));
        }
        let found = view.get(Place::CLUSTER, &SNAPSHOT_KIND, &Name::within(namespace, snapshot));
        let is_there = |snapshot: &Object| {
            uid_of(snapshot) == uid && is_ready(snapshot) && !is_deleting(snapshot)
        };
        found.filter(is_there).ok_or_else(|| {
            let what = format!(
                "snapshot {snapshot} of ReplicationSource {name} was deleted; set a new trigger \
                 on the source"
            );
            Unhealthy::new("SnapshotGone", what)
        })
    }
}

/// Whether a snapshot that is named by its handle is another namespace's, as far as that is seen here.
pub(super) fn is_foreign(handle: &str, own: &str, view: &dyn View) -> bool {
    let Some(uid) = handle.strip_prefix(SNAPSHOT_PREFIX) else { return false };
    let found = view.find(Place::CLUSTER, &SNAPSHOTS_BY_UID, uid);
    found.iter().any(|snapshot| namespace_of(snapshot) != own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_by_its_namespace_its_name_and_perhaps_its_cluster() {
        let read = |named: &str| {
            let Origin { namespace, name, cluster } = Origin::read(named).ok()?;
            Some(format!("{namespace} {name} {}", cluster.unwrap_or_default()))
        };
        assert_eq!(read("shop/data").as_deref(), Some("shop data "));
        assert_eq!(read("shop/data@west").as_deref(), Some("shop data west"));
        for broken in ["", "data", "/data", "shop/", "a/b/c", "shop/data@", "a/b@c@d", "a@b/c"] {
            assert_eq!(read(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn only_a_source_of_its_own_namespace_and_cluster_is_given() {
        let here = Here { name: "west".into(), uid: "uid-west".into() };
        let refused = |named: &str| Origin::read(named).unwrap().refused("shop", &here);
        for own in ["shop/data", "shop/data@west", "shop/data@uid-west"] {
            assert_eq!(refused(own), None, "{own}");
        }
        let foreign = refused("bank/ledger").unwrap();
        assert!(foreign.contains("namespace bank is not shop"), "{foreign}");
        assert!(refused("bank/ledger@east").unwrap().contains("bank"));
        let elsewhere = refused("shop/data@east").unwrap();
        assert!(elsewhere.contains("east") && elsewhere.contains(".snapshotUID"), "{elsewhere}");
    }
}
