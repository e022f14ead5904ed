//! What must hold after every event: the promises of the checker's worlds, for three clusters at once.

use super::DEPLOYMENT;
use super::bundles::{self, LAST_BAD};
use super::decided::{Around, Change, Decided};
use crate::engine::Broken;
use crate::engine::truth::Truth;
use interlock_api::placement::Ref;
use interlock_api::rollouts::{
    ANNOTATION_TOKEN, FENCE_NAME, FINALIZER_ROLLOUT, LABEL_ROLLOUT, Requested, SYSTEM_NAMESPACE,
    UpdatePhase, record_name,
};
use interlock_kernel::metadata::{annotation, has_finalizer, is_deleting, label, name_of, uid_of};
use interlock_kernel::{Kind, Object};
use interlock_rollouts::fence::ANNOTATION_PRUNE;
use interlock_rollouts::kinds::{CLUSTER_ROLLOUT, CLUSTER_UPDATE, CONFIG_MAP, ROLLOUT_REPORT};
use kube::api::DynamicObject;
use std::collections::{BTreeMap, BTreeSet};

/// What must be remembered to see that a promise is broken.
pub(crate) struct Promises {
    /// The requests that somebody cancelled or deleted, by uid.
    pub(crate) cancelled: BTreeSet<String>,
    /// The objects that somebody deleted on a cluster, by the place of the cluster.
    pub(crate) deleted: BTreeSet<(usize, String)>,
    /// How many requests succeeded.
    pub(crate) updates: u64,
    /// How many were rolled back.
    pub(crate) rollbacks: u64,
    /// The version of each digest.
    pub(crate) numbers: BTreeMap<String, u64>,
    known: Vec<OfCluster>,
    /// At which version of the server all requests were held against their records.
    requests: u64,
}

/// What is known of a cluster.
#[derive(Default)]
struct OfCluster {
    /// The versions of its record and of its report.
    versions: [Option<String>; 2],
    decided: Decided,
    /// The contents that failed here, by digest.
    bad: BTreeSet<String>,
    /// Whether a record of it was deleted: what is said of requests may be of that one.
    has_lost_record: bool,
    /// At which version of the server its objects were read.
    read: u64,
    fence: i64,
    objects: BTreeMap<String, Ours>,
}

/// An object that the applier wrote.
#[derive(Debug, PartialEq, Eq)]
struct Ours {
    uid: String,
    /// The token that it was applied under last; -1: none.
    token: i64,
    /// The token that it was marked under; -1: it was not.
    mark: i64,
}

/// How far a request is, as it says itself.
fn phase_of(request: &DynamicObject) -> UpdatePhase {
    let said = request.data["status"]["phase"].as_str().unwrap_or_default();
    let found = UpdatePhase::ALL.into_iter().find(|phase| phase.as_str() == said);
    found.unwrap_or_default()
}

/// Whether a request says its outcome, be it for one cluster or for many.
pub(super) fn is_over(request: &DynamicObject) -> bool {
    phase_of(request).is_terminal()
}

impl Promises {
    /// Nothing is known yet.
    pub(crate) fn new() -> Promises {
        Promises {
            cancelled: BTreeSet::new(),
            deleted: BTreeSet::new(),
            updates: 0,
            rollbacks: 0,
            numbers: (1..=LAST_BAD).map(|number| (bundles::digest(number), number)).collect(),
            known: crate::CLUSTERS.map(|_| OfCluster::default()).into(),
            requests: 0,
        }
    }

    /// Whether a record of a cluster was deleted.
    pub(crate) fn has_lost_record(&self, place: usize) -> bool {
        self.known[place].has_lost_record
    }

    /// Holds what is true against what must be.
    pub(crate) fn check(&mut self, truth: &Truth, clusters: &[Ref]) -> Result<(), Broken> {
        for (place, cluster) in clusters.iter().enumerate() {
            self.check_objects(truth, place, cluster)?;
            self.check_record(truth, place, cluster)?;
        }
        let changed = [CLUSTER_UPDATE, CLUSTER_ROLLOUT].map(|it| truth.changed(crate::HUB, &it));
        let changed = changed.into_iter().max().unwrap_or(0);
        if self.requests == changed {
            return Ok(());
        }
        self.requests = changed;
        self.check_requests(truth)
    }

    /// What is on a cluster, and under which token each object was written.
    fn check_objects(&mut self, truth: &Truth, place: usize, cluster: &Ref) -> Result<(), Broken> {
        let at = crate::CLUSTERS[place];
        let kinds = [CONFIG_MAP, DEPLOYMENT];
        let changed = kinds.each_ref().map(|kind| truth.changed(at, kind));
        let changed = changed.into_iter().max().unwrap_or(0);
        let known = &mut self.known[place];
        if known.read == changed {
            return Ok(());
        }
        known.read = changed;
        let map = truth.get(at, &CONFIG_MAP, Some(SYSTEM_NAMESPACE), FENCE_NAME);
        let fence = map.and_then(|map| map.data["data"]["token"].as_str()?.parse::<i64>().ok());
        let (before, fence) = (known.fence, fence.unwrap_or(0));
        if fence < before {
            return Err(format!("FenceGrows: the fence of {at} fell from {before} to {fence}"));
        }
        let mut objects = BTreeMap::new();
        for kind in &kinds {
            let ours = truth.all(at, kind).iter();
            for object in ours.filter(|it| label(it, LABEL_ROLLOUT) == Some(cluster.uid.as_str())) {
                objects.insert(format!("{}/{}", kind.kind, name_of(object)), Ours::of(object));
            }
        }
        for (name, now) in &objects {
            let Some(stamp) = now.stamp_since(known.objects.get(name)) else { continue };
            if stamp < before {
                return Err(format!("NoLateWrite: {name} at {at}, fence {before}: {now:?}"));
            }
            if stamp > fence {
                return Err(format!("FenceComesFirst: {name} at {at}, fence {fence}: {now:?}"));
            }
        }
        for (name, gone) in known.objects.iter().filter(|(name, _)| !objects.contains_key(*name)) {
            let is_by_hand = self.deleted.remove(&(place, name.clone()));
            if !is_by_hand && gone.mark < before {
                return Err(format!(
                    "NoLateWrite: {name} is gone at {at}, fence {before}: {gone:?}"
                ));
            }
        }
        (known.fence, known.objects) = (fence, objects);
        Ok(())
    }

    fn check_record(&mut self, truth: &Truth, place: usize, cluster: &Ref) -> Result<(), Broken> {
        let name = record_name(&cluster.name, &cluster.uid);
        let version = |kind: &Kind| {
            let found = truth.get(crate::HUB, kind, None, &name);
            found.and_then(|it| it.metadata.resource_version.clone())
        };
        let versions = [version(&CLUSTER_ROLLOUT), version(&ROLLOUT_REPORT)];
        let known = &mut self.known[place];
        if known.versions == versions {
            return Ok(());
        }
        known.versions = versions;
        let after = Decided::of(truth, cluster);
        let before = std::mem::replace(&mut known.decided, after.clone());
        after.check()?;
        if before.uid != after.uid {
            known.has_lost_record |= !before.uid.is_empty();
            known.bad.clear();
            return Ok(());
        }
        let change = Change { before: &before, after: &after };
        let retries = |uid: &str| {
            let found = request(truth, uid);
            found.is_none_or(|it| it.data["spec"]["retryBad"] == true)
        };
        let (bad, numbers) = (&known.bad, &self.numbers);
        change.check(&Around { bad, numbers, retries: &retries })?;
        let is_asked = |it: &Requested| {
            let found = request(truth, &it.uid);
            self.cancelled.contains(&it.uid)
                || found.is_some_and(|it| it.data["spec"]["cancel"] == true || is_deleting(it))
        };
        if let Some(cancelled) = change.newly_cancelled().find(|it| !is_asked(it)) {
            return Err(format!("CancelledIsAsked: nobody cancelled {cancelled:?}"));
        }
        let failed = change.newly(UpdatePhase::RollingBack);
        let failed = failed.filter(|it| ["Unhealthy", "DeadlinePassed"].contains(&&*it.reason));
        known.bad.extend(failed.filter_map(|it| it.digest.clone()));
        self.updates += change.newly(UpdatePhase::Succeeded).count() as u64;
        self.rollbacks += change.newly(UpdatePhase::RolledBack).count() as u64;
        let token = after.status.target.token;
        if after.is_verified(token) && !before.is_verified(token) {
            return self.check_target(place, &after);
        }
        Ok(())
    }

    /// Of what may be on a cluster, exactly what the target has is there.
    fn check_target(&self, place: usize, decided: &Decided) -> Result<(), Broken> {
        let names = |digest: &String| {
            let number = self.numbers.get(digest);
            number.map(|number| bundles::names(*number)).unwrap_or_default()
        };
        let status = &decided.status;
        let wanted: Vec<String> = status.target.digest.iter().flat_map(names).collect();
        let others: Vec<String> = status.may_exist.iter().flat_map(names).collect();
        let mut there = self.known[place].objects.keys();
        match there.find(|name| others.contains(name) && !wanted.contains(name)) {
            Some(left) => {
                let at = crate::CLUSTERS[place];
                Err(format!("NothingIsLeftOver: {left} is at {at}: {}", decided.words()))
            }
            None => Ok(()),
        }
    }

    /// Requests are held until they have ended, and say what their records say.
    fn check_requests(&self, truth: &Truth) -> Result<(), Broken> {
        for update in truth.all(crate::HUB, &CLUSTER_UPDATE) {
            let cluster = update.data["spec"]["cluster"].as_str().unwrap_or_default();
            let place = crate::CLUSTERS.iter().position(|name| *name == cluster);
            let Some(known) = place.map(|place| &self.known[place]) else { continue };
            let Some(entry) = known.decided.status.request(uid_of(update)) else { continue };
            let (name, phase) = (name_of(update), phase_of(update));
            if !phase.is_terminal() && !has_finalizer(update, FINALIZER_ROLLOUT) {
                return Err(format!("HeldUntilItEnds: {name} is {phase}, and not held"));
            }
            if phase.is_terminal() && phase != entry.phase && !known.has_lost_record {
                return Err(format!("ShownIsDecided: {name} says {phase}: {entry:?}"));
            }
        }
        Ok(())
    }
}

fn request<'a>(truth: &'a Truth, uid: &str) -> Option<&'a Object> {
    truth.all(crate::HUB, &CLUSTER_UPDATE).iter().find(|it| uid_of(it) == uid)
}

impl Ours {
    fn of(object: &DynamicObject) -> Ours {
        let number = |key: &str| {
            let noted = annotation(object, key);
            noted.and_then(|it| it.parse().ok()).unwrap_or(-1)
        };
        let (token, mark) = (number(ANNOTATION_TOKEN), number(ANNOTATION_PRUNE));
        Ours { uid: uid_of(object).to_owned(), token, mark }
    }

    /// Under which token the applier has written the object since; None: it has not, as far as the object says.
    fn stamp_since(&self, before: Option<&Ours>) -> Option<i64> {
        match before.filter(|before| before.uid == self.uid) {
            Some(before) if before == self => None,
            Some(before) if before.token == self.token => Some(self.mark),
            Some(_) | None => Some(self.token),
        }
    }
}
