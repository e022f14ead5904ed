//! What must hold after every event.

use super::data::may_go;
use super::granted::Granted;
use super::machine::Machine;
use crate::engine::Broken;
use crate::engine::line::Sent;
use crate::engine::truth::{Truth, named, plural};
use http::Method;
use interlock_api::names::{ANNOTATION_GRANT, ANNOTATION_RELEASED, ANNOTATION_RUNNING, Permit};
use interlock_api::placement::Ref;
use interlock_placement::kinds::{GRANT, NAMESPACE, POD};
use kube::api::DynamicObject;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What must be remembered to see that a promise is broken.
#[derive(Default)]
pub(crate) struct Promises {
    /// The grants of all namespaces that there ever were, by name.
    pub(crate) known: BTreeSet<String>,
    /// The grants of those that a person deleted.
    pub(crate) deleted: BTreeSet<String>,
    /// The pods that a person deleted, by uid at the hub, and by namespace and name.
    pub(crate) deleted_pods: BTreeSet<String>,
    /// The same by namespace and name.
    pub(crate) deleted_pod_names: BTreeSet<(String, String)>,
    /// How often a namespace went from one cluster to another.
    pub(crate) moves: u64,
    /// The version of the server that was checked last.
    checked: u64,
    grants: BTreeMap<String, Granted>,
    released: BTreeMap<(String, String), i64>,
    /// The epoch that was permitted when a pod came to a cluster, by the uid that it has there.
    pods: BTreeMap<String, Option<i64>>,
}

impl Promises {
    /// Holds what is true against what must be.
    pub(crate) fn check(
        &mut self,
        truth: &Truth,
        machines: &[Arc<Machine>],
        clusters: &[Ref],
    ) -> Result<(), Broken> {
        for machine in machines {
            if let Some(broken) = machine.take_broken().into_iter().next() {
                return Err(broken);
            }
        }
        only_the_owner_runs(truth, machines, clusters)?;
        // All else is about what was written.
        if self.checked == truth.newest {
            return Ok(());
        }
        self.checked = truth.newest;
        for grant in truth.all(crate::HUB, &GRANT) {
            self.epochs_only_grow(grant)?;
        }
        for cluster in clusters {
            for namespace in truth.all(&cluster.name, &NAMESPACE) {
                self.released_never_falls(cluster, namespace)?;
            }
            for pod in truth.all(&cluster.name, &POD) {
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                if !self.pods.contains_key(uid) {
                    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                    let epoch = permitted(truth, cluster, namespace);
                    self.pods.insert(uid.to_owned(), epoch);
                }
            }
        }
        Ok(())
    }

    fn epochs_only_grow(&mut self, grant: &DynamicObject) -> Result<(), Broken> {
        let now = Granted::of(grant);
        let name = grant.metadata.name.as_deref().unwrap_or_default();
        let uid = grant.metadata.uid.clone().unwrap_or_default();
        let Some(before) = self.grants.insert(uid, now.clone()) else {
            if now.epoch > 0 || !now.owner.is_empty() || !self.known.contains(name) {
                return Err(format!("grant {name} inherits what it never had: {now:?}"));
            }
            return Ok(());
        };
        let is_same_owner = before.owner == now.owner && before.epoch == now.epoch;
        let is_next = now.epoch == before.epoch + 1
            && matches!(before.phase.as_str(), "Unassigned" | "Released" | "Fenced");
        if is_same_owner || is_next {
            let is_move = is_next && before.owner != now.owner && !before.owner.is_empty();
            self.moves += u64::from(is_move);
            return Ok(());
        }
        Err(format!("grant {name} went from {before:?} to {now:?}"))
    }

    fn released_never_falls(
        &mut self,
        cluster: &Ref,
        namespace: &DynamicObject,
    ) -> Result<(), Broken> {
        let notes = namespace.metadata.annotations.as_ref();
        let note = |key: &str| notes.and_then(|notes| notes.get(key));
        if note(ANNOTATION_GRANT).is_none() {
            return Ok(());
        }
        let released = note(ANNOTATION_RELEASED).and_then(|text| text.parse().ok()).unwrap_or(0);
        let uid = namespace.metadata.uid.clone().unwrap_or_default();
        let before = self.released.insert((cluster.name.clone(), uid), released);
        if before.is_some_and(|before| before > released) {
            let name = namespace.metadata.name.as_deref().unwrap_or_default();
            return Err(format!("released of {name} on {cluster} fell to {released}"));
        }
        Ok(())
    }

    /// Nothing is deleted at a cluster, and no grant, unless a person deleted it or it moved.
    /// `truth` is from before these writes.
    pub(crate) fn check_deletions(
        &self,
        sent: &[Sent],
        truth: &Truth,
        clusters: &[Ref],
    ) -> Result<(), Broken> {
        let deletions = sent.iter().filter(|sent| sent.method == Method::DELETE && sent.is_done);
        for sent in deletions.filter(|sent| &*sent.who != "user") {
            let (namespace, name) = named(&sent.path);
            let cluster = clusters.iter().find(|cluster| *cluster.name == *sent.to);
            let is_right = match (plural(&sent.path), namespace, cluster) {
                ("grants" | "namespaces", _, _) => self.deleted.contains(name),
                ("pods", Some(namespace), Some(cluster)) => {
                    self.may_stop(namespace, name, truth, cluster)
                }
                (_, Some(namespace), _) if self.deleted.contains(namespace) => true,
                (_, _, Some(_)) => may_go(sent, truth),
                _ => false,
            };
            if !is_right {
                return Err(format!(
                    "{} deletes {} at {} for no reason",
                    sent.who, sent.path, sent.to
                ));
            }
        }
        Ok(())
    }

    fn may_stop(&self, grant: &str, pod: &str, truth: &Truth, cluster: &Ref) -> bool {
        let here = truth.get(&cluster.name, &POD, Some(grant), pod);
        let is_terminating = here.is_none_or(|here| here.metadata.deletion_timestamp.is_some());
        let epoch = here.and_then(|here| *self.pods.get(here.metadata.uid.as_deref()?)?);
        let is_in_use = Granted::named(truth, grant).is_some_and(|granted| {
            granted.phase == "Granted"
                && granted.owner == cluster.uid
                && Some(granted.epoch) == epoch
        });
        let namespace = grant.rsplit_once('-').map_or(grant, |(name, _)| name).to_owned();
        is_terminating
            || !is_in_use
            || self.deleted.contains(grant)
            || self.deleted_pod_names.contains(&(namespace, pod.to_owned()))
    }
}

/// The epoch that may run in a namespace on a cluster.
fn permitted(truth: &Truth, cluster: &Ref, namespace: &str) -> Option<i64> {
    let found = truth.get(&cluster.name, &NAMESPACE, None, namespace)?;
    let running = found.metadata.annotations.as_ref()?.get(ANNOTATION_RUNNING)?;
    Permit::read(running).map(|permit| permit.epoch)
}

/// Never two machines, and never one that is not the owner at the present epoch.
fn only_the_owner_runs(
    truth: &Truth,
    machines: &[Arc<Machine>],
    clusters: &[Ref],
) -> Result<(), Broken> {
    let mut runs: BTreeMap<String, &str> = BTreeMap::new();
    for (machine, cluster) in machines.iter().zip(clusters) {
        for process in machine.alive() {
            let other = runs.insert(process.namespace.clone(), &cluster.name);
            if let Some(other) = other.filter(|other| *other != cluster.name) {
                return Err(format!("{} runs on {other} and on {cluster}", process.namespace));
            }
            let granted = Granted::named(truth, &process.namespace);
            let is_owner = granted.as_ref().is_some_and(|granted| {
                granted.is_held_by(&cluster.uid) && granted.epoch == process.epoch
            });
            if !is_owner {
                return Err(format!(
                    "{} of {} runs on {cluster} under epoch {}, and the grant says {granted:?}",
                    process.name, process.namespace, process.epoch
                ));
            }
        }
    }
    Ok(())
}
