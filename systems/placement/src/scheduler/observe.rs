//! What the scheduler sees: objects of the hub as its caches show them, and the facts in them.

use super::decide::{
    Claim, Cluster, Desired, Facts, Grant, LiveState, Namespace, Owner, Pinned, Snapshots, Truth,
    UnfitReason,
};
use super::fit::{Needs, Seeking, is_asked_to_drain, is_draining, unfit_reason};
use super::selector::is_selected;
use super::{Limits, LiveReadsAtHub, findings, policy};
use crate::kinds::{
    CLAIM, GRANT, GRANTS_COUNTED_ON, GRANTS_MOVING, NAMESPACE, NAMESPACES_BY_GRANT, PLACEMENT,
    WORKLOAD_CLUSTER, YES,
};
use crate::record::{GrantRecord, is_condition_true, syncers};
use interlock_api::names::{
    ANNOTATION_CLUSTER, FINALIZER_CLAIM, FINALIZER_GRANT, LABEL_PLACED, PLACED_TRUE,
};
use interlock_api::placement::condition::REACHABLE;
use interlock_api::placement::{Fill, PlacementSpec, Ref, Snapshot, Transport};
use interlock_kernel::metadata::{has_finalizer, is_deleting, name_of, uid_of};
use interlock_kernel::{Address, Name, Object, Place, View, nearest, read_part};
use jiff::Timestamp;

/// The objects that a step about a grant is about.
#[derive(Debug)]
pub struct Scene {
    pub(crate) now: Timestamp,
    pub(crate) limits: Limits,
    /// The name of the grant, whether there is one or not.
    pub(crate) grant_name: String,
    /// The namespace that the grant is for, or that has none yet.
    pub(crate) namespace: Option<Object>,
    pub(crate) grant: Option<GrantRecord>,
    /// All clusters, by name: the places in the facts.
    pub(crate) clusters: Vec<Object>,
    /// Why each of them cannot take the namespace, if it cannot.
    pub(crate) unfit_reasons: Vec<Option<UnfitReason>>,
    /// The claims of the namespace that are there to stay, by name.
    pub(crate) claims: Vec<Object>,
    /// The Placement that counts.
    pub(crate) rules: Option<Rules>,
}

/// The Placement that counts for a namespace.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) name: String,
    /// The next one that selects the namespace too, if there is one.
    pub(crate) rival: Option<String>,
    pub(crate) spec: PlacementSpec,
}

impl Scene {
    pub(crate) fn cluster(&self, place: usize) -> Ref {
        self.clusters.get(place).map(|cluster| crate::record::ref_to(cluster)).unwrap_or_default()
    }

    /// The name of the cluster that the namespace asks for, if it asks for one.
    pub(crate) fn asked_for(&self) -> Option<&str> {
        asked_for(self.namespace.as_ref()?)
    }

    /// The clusters that may have been meant by one that does not exist.
    pub(crate) fn nearest_clusters(&self) -> Vec<&str> {
        let known = self.clusters.iter().map(|cluster| name_of(cluster));
        nearest(self.asked_for().unwrap_or_default(), known)
    }
}

/// Where a grant is, whether it is there or not.
pub(crate) fn grant_address(name: &str) -> Address {
    Address::new(Place::HUB, &GRANT, Name::cluster_wide(name))
}

/// Where the namespace of a grant is, whether it is there or not.
pub(crate) fn namespace_address(grant: &GrantRecord) -> Address {
    Address::new(Place::HUB, &NAMESPACE, Name::cluster_wide(&grant.spec.namespace.name))
}

/// Where a cluster is, whether it is there or not.
pub(crate) fn cluster_address(name: &str) -> Address {
    Address::new(Place::HUB, &WORKLOAD_CLUSTER, Name::cluster_wide(name))
}

/// Reads what a step is about; the error says in words which object cannot be read.
pub(crate) fn observe(
    limits: Limits,
    grant_name: &str,
    view: &dyn View,
    live_reads: &LiveReadsAtHub,
) -> Result<(Facts, Scene), String> {
    let found = view.get(Place::HUB, &GRANT, &Name::cluster_wide(grant_name));
    let grant = found.as_ref().map(GrantRecord::read).transpose()?;
    let namespace = namespace_of(grant_name, grant.as_ref(), view);
    let claims = namespace.as_ref().map(|found| claims_of(found, view)).unwrap_or_default();
    let rules = namespace.as_ref().and_then(|namespace| rules_for(namespace, view));
    let clusters = view.list(Place::HUB, &WORKLOAD_CLUSTER, None);
    let needs = Needs::of(&Seeking {
        rules: rules.as_ref().map(|rules| &rules.spec),
        is_by_name: namespace.as_ref().is_some_and(|found| asked_for(found).is_some()),
        claims: &claims,
        grant: grant.as_ref().map(|grant| &grant.status),
    });
    let scene = Scene {
        now: view.now(),
        limits,
        grant_name: grant_name.to_owned(),
        unfit_reasons: clusters.iter().map(|cluster| unfit_reason(cluster, &needs)).collect(),
        clusters,
        claims,
        rules,
        namespace,
        grant,
    };
    Ok((facts(&scene, view, live_reads), scene))
}

fn facts(scene: &Scene, view: &dyn View, live_reads: &LiveReadsAtHub) -> Facts {
    let namespace = scene.namespace.as_ref();
    let moving = view.count(Place::HUB, &GRANTS_MOVING, YES);
    let claim = |claim: &Object| Claim {
        is_held: has_finalizer(claim, FINALIZER_CLAIM),
        is_listed: scene.grant.as_ref().is_some_and(|grant| grant.lists(uid_of(claim))),
    };
    Facts {
        namespace: standing(scene, live_reads),
        has_finalizer: namespace.is_some_and(|found| has_finalizer(found, FINALIZER_GRANT)),
        has_syncers: namespace.is_some_and(|found| syncers(found).next().is_some()),
        grant: scene.grant.as_ref().map(|grant| grant_facts(scene, grant)),
        truth: truth(scene, live_reads),
        clusters: cluster_facts(scene, view, live_reads),
        desired: desired(scene),
        has_room_for_move: moving < scene.limits.moves,
        can_copy: scene.limits.can_copy && can_take_snapshots(scene),
        claims: scene.claims.iter().map(claim).collect(),
        is_ambiguous: findings::ambiguous(scene).is_some(),
    }
}

/// The namespace of that name, if there is a grant; else the one that would have this grant.
fn namespace_of(grant_name: &str, grant: Option<&GrantRecord>, view: &dyn View) -> Option<Object> {
    let Some(grant) = grant else {
        return view.find(Place::HUB, &NAMESPACES_BY_GRANT, grant_name).into_iter().next();
    };
    view.get(Place::HUB, &NAMESPACE, &Name::cluster_wide(&grant.spec.namespace.name))
}

fn standing(scene: &Scene, live_reads: &LiveReadsAtHub) -> Namespace {
    let grant = scene.grant.as_ref();
    let Some(namespace) = &scene.namespace else {
        return grant.map_or(Namespace::Unknown, |grant| looked_for(grant, live_reads));
    };
    // One of that name may be the one that was there before: the cache of namespaces can be older than
    // that of grants.
    let is_of = |grant: &&GrantRecord| grant.spec.namespace.uid == uid_of(namespace);
    if let Some(grant) = grant.filter(|grant| !is_of(grant)) {
        return looked_for(grant, live_reads);
    }
    if is_deleting(namespace) {
        return Namespace::Deleting;
    }
    let label = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(LABEL_PLACED));
    if label.is_some_and(|value| value == PLACED_TRUE) {
        return Namespace::Placed;
    }
    Namespace::Unplaced
}

/// What a live read showed of a namespace that the cache does not have.
fn looked_for(grant: &GrantRecord, live_reads: &LiveReadsAtHub) -> Namespace {
    match live_reads.objects.get(&namespace_address(grant)) {
        None => Namespace::Unknown,
        Some(Some(found)) if uid_of(found) == grant.spec.namespace.uid => Namespace::Unseen,
        Some(_) => Namespace::Gone,
    }
}

/// The claims of a namespace. One that is being deleted is left alone.
fn claims_of(namespace: &Object, view: &dyn View) -> Vec<Object> {
    let claims = view.list(Place::HUB, &CLAIM, Some(name_of(namespace)));
    claims.into_iter().filter(|claim| !is_deleting(claim)).collect()
}

/// The first Placement by name that selects a namespace. One that cannot be read selects nothing.
fn rules_for(namespace: &Object, view: &dyn View) -> Option<Rules> {
    let placements = view.list(Place::HUB, &PLACEMENT, None);
    let mut selecting = placements.iter().filter(|found| !is_deleting(found)).filter_map(|found| {
        let spec: PlacementSpec = read_part(found, "spec").ok()??;
        let labels = namespace.metadata.labels.as_ref();
        is_selected(&spec.namespace_selector, labels).then(|| (name_of(found).to_owned(), spec))
    });
    let (name, spec) = selecting.next()?;
    Some(Rules { name, spec, rival: selecting.next().map(|(name, _)| name) })
}

fn asked_for(namespace: &Object) -> Option<&str> {
    let annotations = namespace.metadata.annotations.as_ref()?;
    annotations.get(ANNOTATION_CLUSTER).map(String::as_str).filter(|name| !name.is_empty())
}

/// Where the namespace asks to run.
pub(crate) fn desired(scene: &Scene) -> Desired {
    let Some(name) = scene.asked_for() else { return Desired::Any };
    let place = scene.clusters.iter().position(|cluster| name_of(cluster) == name);
    place.map_or(Desired::Unknown, Desired::On)
}

fn cluster_facts(scene: &Scene, view: &dyn View, live_reads: &LiveReadsAtHub) -> Vec<Cluster> {
    let copies = |cluster: &Object| {
        let all = scene.grant.iter().flat_map(|grant| &grant.status.copies);
        let here = all.filter(|copy| copy.cluster.uid == uid_of(cluster));
        here.map(|copy| copy.state).collect()
    };
    let of = |(cluster, unfit_reason): (&Object, &Option<UnfitReason>)| Cluster {
        unfit_reason: unfit_reason.clone(),
        is_reachable: is_condition_true(cluster, REACHABLE),
        is_draining: is_draining(cluster),
        is_asked_to_drain: is_asked_to_drain(cluster),
        grants: view.count(Place::HUB, &GRANTS_COUNTED_ON, uid_of(cluster)),
        live_state: live_reads
            .objects
            .get(&cluster_address(name_of(cluster)))
            .map(|found| live_state(scene, cluster, found.as_ref())),
        copies: copies(cluster),
    };
    scene.clusters.iter().zip(&scene.unfit_reasons).map(of).collect()
}

/// What is there under the name of a cluster.
fn live_state(scene: &Scene, cluster: &Object, found: Option<&Object>) -> LiveState {
    let uid = uid_of(cluster);
    let copies = scene.grant.iter().flat_map(|grant| &grant.status.copies);
    let Some(found) = found.filter(|found| uid_of(found) == uid) else {
        return LiveState::MayBeGone;
    };
    match is_deleting(found) {
        false if is_asked_to_drain(found) => LiveState::Draining,
        false => LiveState::Stays,
        // Whoever gives the copy up writes to the grant, and so comes before or after us.
        true if copies.into_iter().any(|copy| copy.cluster.uid == uid) => LiveState::Kept,
        true => LiveState::MayBeGone,
    }
}

fn grant_facts(scene: &Scene, grant: &GrantRecord) -> Grant {
    let place = |found: &Ref| scene.clusters.iter().position(|c| uid_of(c) == found.uid);
    let status = &grant.status;
    Grant {
        phase: status.phase,
        owner: status
            .owner
            .as_ref()
            .map(|owner| place(owner).map_or(Owner::Replaced, Owner::Cluster)),
        target: grant.spec.target.as_ref().and_then(place),
        snapshots: snapshots(scene, grant),
        because: status.because,
        pins: status.claims.iter().map(|claim| pinned(grant, &claim.uid)).collect(),
        is_written: is_written(grant),
        has_copies: !status.copies.is_empty(),
        is_policy_current: policy::is_current(scene, grant),
        said: findings::said(scene, grant),
    }
}

fn pinned(grant: &GrantRecord, claim_uid: &str) -> Pinned {
    let mut pins = grant.status.pins.iter().filter(|pin| pin.claim_uid == claim_uid).peekable();
    if pins.peek().is_none() {
        return Pinned::Nothing;
    }
    match pins.any(|pin| matches!(pin.snapshot, Snapshot::InPlace { .. })) {
        true => Pinned::InPlace,
        false => Pinned::Snapshot,
    }
}

/// Whether snapshots can be taken of all that the owner may have written to. Whether another cluster can
/// be filled from them is asked of each by [`unfit_reason`].
fn can_take_snapshots(scene: &Scene) -> bool {
    let Some(grant) = &scene.grant else { return true };
    // What goes into a repository is read from the volume itself.
    if grant.spec.volumes.transport == Transport::Restic {
        return true;
    }
    let owner = grant.status.owner.as_ref();
    let owner = owner.and_then(|owner| scene.clusters.iter().find(|c| uid_of(c) == owner.uid));
    let Some(owner) = owner else { return false };
    let known = owner.data["status"]["storageClasses"].as_array();
    let is_written = |claim: &&Object| {
        let mut listed = grant.status.claims.iter().filter(|listed| listed.fill == Fill::Filled);
        listed.any(|listed| listed.uid == uid_of(claim))
    };
    scene.claims.iter().filter(is_written).all(|claim| {
        let wanted = claim.data["spec"]["storageClassName"].as_str();
        let mapped = &grant.spec.volumes.storage_classes;
        let wanted = wanted.map(|class| mapped.get(class).map_or(class, String::as_str));
        let mut classes = known.into_iter().flatten();
        let class = classes.find(|class| match wanted {
            Some(wanted) => class["name"] == wanted,
            None => class["isDefault"] == true,
        });
        class.is_some_and(|class| class["canSnapshot"] == true)
    })
}

/// Whether the owner has data that a move would have to carry. A volume that was left in place is
/// such data even before anybody said that it is filled.
fn is_written(grant: &GrantRecord) -> bool {
    let status = &grant.status;
    status.claims.iter().any(|claim| claim.fill == Fill::Filled)
        || status.pins.iter().any(|pin| matches!(pin.snapshot, Snapshot::InPlace { .. }))
}

/// Where the snapshots of the claims that the grant lists can be used. While a cluster has it, what it
/// will hand over is not known yet, and holds nothing back.
fn snapshots(scene: &Scene, grant: &GrantRecord) -> Snapshots {
    if grant.is_held() {
        return Snapshots::Anywhere;
    }
    let mut all = Snapshots::Anywhere;
    for claim in &grant.status.claims {
        let pin = grant.status.pins.iter().find(|pin| pin.claim_uid == claim.uid);
        let one = match pin.map(|pin| &pin.snapshot) {
            Some(Snapshot::Fresh {}) => continue,
            // It was used, and nobody knows where its data is: it must not begin empty.
            None if claim.fill == Fill::Filled => return Snapshots::Nowhere,
            None => continue,
            Some(Snapshot::VolumeSnapshot { .. } | Snapshot::Restic { .. })
                if scene.limits.can_copy =>
            {
                continue;
            }
            Some(Snapshot::VolumeSnapshot { .. } | Snapshot::Restic { .. }) => {
                return Snapshots::Nowhere;
            }
            Some(Snapshot::InPlace { cluster, .. }) => {
                let place = scene.clusters.iter().position(|c| uid_of(c) == cluster.uid);
                place.map_or(Snapshots::Nowhere, Snapshots::Only)
            }
        };
        all = match (all, one) {
            (Snapshots::Anywhere, one) => one,
            (all, one) if all == one => all,
            _ => return Snapshots::Nowhere,
        };
    }
    all
}

fn truth(scene: &Scene, live_reads: &LiveReadsAtHub) -> Option<Truth> {
    let seen = live_reads.objects.get(&grant_address(&scene.grant_name))?;
    let namespace = scene.namespace.as_ref().map(|found| uid_of(found)).unwrap_or_default();
    // A grant that has our name for another namespace is not ours, and ours has no other name.
    let is_ours = |grant: &Object| grant.data["spec"]["namespace"]["uid"] == namespace;
    Some(if seen.as_ref().is_some_and(is_ours) { Truth::Granted } else { Truth::NoGrant })
}
