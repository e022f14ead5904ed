//! Mistakes about what goes: namespaces and clusters that are deleted, and copies that are given up.

use super::{Bend, Row, scheduled, synced};
use crate::clusters::Clusters;
use crate::clusters::decide as retire;
use crate::kinds::{GRANT, GRANTS_BY_COPY, GRANTS_HELD_BY};
use crate::scheduler::decide as schedule;
use crate::scheduler::{self, Scheduler};
use crate::syncer::Syncer;
use crate::syncer::decide::Decision as Syncs;
use interlock_api::placement::{CopyState, Phase};
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{LiveReads, Name, Nothing, Object, Observed, Place, Room, Subject, View};

const STAYS: &[&str] = &["NamespaceStays", "CopiesAreListed"];
const CALM: &str = "moves=0,flights=0,stale=0,crash=0,deletes=1";
const CALM_LIVE: &str = "moves=0,flights=0,stale=0,crash=0,deletes=1,live=1";
const RETIRE: &str = "moves=0,flights=0,stale=0,crash=0,retire=1";

pub(super) const ROWS: &[Row] = &[
    Row(
        "a-deletion-waits-for-a-move",
        "a namespace that is deleted in the middle of a move goes only after its data was handed over",
        &["DeletedGoes"],
        &[Bend::SchedulerDecides(|facts| {
            let is_repeated = match facts {
                scheduler::Facts::Grant(it) => {
                    it.grant.as_ref().is_some_and(|grant| grant.phase == Phase::Revoking)
                }
                scheduler::Facts::Placement(_) => false,
            };
            match Scheduler::decide(facts) {
                scheduler::Decision::Grant(schedule::Decision::Revoke(_)) if is_repeated => {
                    scheduler::Decision::Grant(schedule::Decision::Nothing(
                        schedule::Why::OwnerStops,
                    ))
                }
                decision => decision,
            }
        })],
        "moves=1,flights=0,stale=0,crash=0,claims=1,slow=2,deletes=1,begun=3,live=1",
    ),
    Row(
        "key-by-name",
        "a namespace that is made again under its name finds the grant of the one before",
        &["NothingInherited"],
        &[Bend::NamespacesByName],
        "moves=0,flights=0,stale=0,crash=0,deletes=2,strip=1",
    ),
    Row(
        "cluster-by-name",
        "a cluster that is made again under its name takes the grants of the one before for its own",
        &["OnlyTheOwnerRuns"],
        &[Bend::ClustersByName],
        "moves=0,flights=0,stale=0,crash=0,retire=1,replace=1,strip=1",
    ),
    Row(
        "gone-cluster-is-release",
        "an owner whose cluster is not at the hub any more is taken for one that has stopped",
        &["OnlyTheOwnerRuns"],
        &[Bend::SchedulerDecides(|facts| {
            scheduled(facts, |facts| {
                let is_gone =
                    |it: &&mut schedule::Grant| it.owner == Some(schedule::Owner::Replaced);
                if let Some(grant) = facts.grant.as_mut().filter(is_gone)
                    && grant.phase.is_held()
                {
                    grant.phase = Phase::Released;
                }
            })
        })],
        "moves=1,flights=0,stale=0,crash=0,retire=1,strip=1",
    ),
    Row(
        "finalizer-stripped-with-the-cluster",
        "a cluster that is deleted is let go with the grants that it owns",
        &["ClusterStays"],
        &[Bend::ClustersDecide(|facts| {
            let grants = retire::Grants { owned: 0, copies: 0, to_come: 0, in_place: 0 };
            let is_surely_empty = Some(true);
            Clusters::decide(&retire::Facts { grants, is_surely_empty, ..facts.clone() })
        })],
        RETIRE,
    ),
    Row(
        "granted-to-a-cluster-that-was-let-go",
        "the scheduler grants to a cluster that its cache still has, without a live read",
        &["ClusterStays"],
        &[Bend::SchedulerDecides(|facts| {
            scheduled(facts, |facts| {
                for cluster in &mut facts.clusters {
                    cluster.live_state = Some(schedule::LiveState::Stays);
                }
            })
        })],
        "moves=0,flights=0,stale=1,crash=0,retire=1,hubs=2",
    ),
    Row(
        "let-go-under-a-grant",
        "a cluster is let go between the live read of the scheduler and its grant",
        &["ClusterStays"],
        &[Bend::ClustersObserve(targets_do_not_hold)],
        "moves=0,flights=1,stale=0,crash=0,retire=1",
    ),
    Row(
        "target-kept",
        "a cluster that is deleted stays the target of a grant, and so stays for ever",
        &["DeletedClusterTerminating"],
        &[Bend::SchedulerDecides(|facts| match Scheduler::decide(facts) {
            scheduler::Decision::Grant(schedule::Decision::Untarget) => scheduler::Decision::Grant(
                schedule::Decision::Nothing(schedule::Why::ClusterTerminating),
            ),
            decision => decision,
        })],
        "moves=0,flights=0,stale=0,crash=0,retire=1,live=1",
    ),
    Row(
        "namespace-let-go-on-absence",
        "the finalizer comes off because the cache has no grant, and no syncer put one of its own \
         on: each alone would cover for the other",
        &["NamespaceStays"],
        &[
            Bend::SchedulerDecides(|facts| {
                scheduled(facts, |facts| facts.truth = Some(schedule::Truth::NoGrant))
            }),
            Bend::SyncerDecides(|facts| {
                synced(facts, |facts| {
                    if let Some(namespace) = &mut facts.namespace {
                        namespace.has_finalizer |= facts.grant.is_some();
                    }
                })
            }),
        ],
        "moves=0,flights=0,stale=1,crash=0,deletes=1,hubs=2",
    ),
    Row(
        "owners-copy-forgotten",
        "a person asks for a copy to be forgotten, and it is the owner's",
        &["OwnersCopyStays"],
        &[Bend::ClustersDecide(|facts| match Clusters::decide(facts) {
            retire::Decision::RefuseToForget => {
                retire::Decision::ForgetCopies(vec![CopyState::Live])
            }
            decision => decision,
        })],
        "moves=0,flights=0,stale=0,crash=0,forget=1",
    ),
    Row(
        "copy-overlooked",
        "the hub is informed that nothing is left while the cluster has something",
        STAYS,
        &[Bend::SyncerDecides(|facts| match Syncer::decide(facts) {
            Syncs::CleanUp { .. } | Syncs::DeleteNamespace => Syncs::ForgetCopy,
            decision => decision,
        })],
        CALM,
    ),
    Row(
        "namespace-let-go-first",
        "a syncer lets go of a namespace whose objects it holds, which its cache does not show",
        &["HeldIsFound"],
        &[Bend::SyncerDecides(|facts| synced(facts, |facts| facts.finalized_read = Some(false)))],
        "moves=0,flights=0,stale=1,crash=0,deletes=1",
    ),
    Row(
        "held-by-the-cache",
        "an epoch begins with a finalizer on the namespace that only the cache still shows",
        &["HeldIsFound"],
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| facts.has_finalizer_still = Some(true))
        })],
        "moves=2,flights=0,stale=1,crash=0",
    ),
    Row(
        "mirror-beside-tenancy",
        "what a syncer carries has a queue of its own, beside the one that lets go of the namespace",
        &["HeldIsFound"],
        &[Bend::SyncerInTwo],
        "moves=1,flights=1,stale=0,crash=0",
    ),
    Row(
        "copies-never-gone",
        "the grant waits for copies that are gone, and its namespace with it",
        &["DeletedGoes"],
        &[Bend::SchedulerDecides(copies_never_gone)],
        CALM_LIVE,
    ),
    Row(
        "syncer-left-behind",
        "the grant is deleted while a syncer whose copy was given up holds the namespace: nothing \
         tells it to let go",
        &["DeletedGoes"],
        &[Bend::SchedulerDecides(|facts| scheduled(facts, |facts| facts.has_syncers = false))],
        "moves=0,flights=0,stale=0,crash=0,deletes=1,forget=1,live=1",
    ),
    Row(
        "old-grant-orphaned",
        "the grant of a namespace that was replaced waits for copies that are gone",
        &["OldGrantEnds"],
        &[Bend::SchedulerDecides(copies_never_gone)],
        "moves=0,flights=0,stale=0,crash=0,deletes=2,strip=1,live=1",
    ),
];

fn copies_never_gone(facts: &scheduler::Facts) -> scheduler::Decision {
    scheduled(facts, |facts| {
        if let Some(grant) = &mut facts.grant {
            grant.has_copies = true;
        }
    })
}

/// What lets a cluster go that a grant is about to be granted to: only what it has counts.
fn targets_do_not_hold(
    room: &Clusters,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<retire::Facts, <Clusters as Room>::Scene> {
    let (mut facts, scene) = match room.observe(subject, view, live_reads) {
        Observed::Seen { facts, scene } => (facts, scene),
        nothing @ Observed::Nothing(_) => return nothing,
    };
    facts.grants.to_come = 0;
    let cluster =
        view.get(Place::HUB, &crate::kinds::WORKLOAD_CLUSTER, &Name::cluster_wide(subject));
    let uid = cluster.as_ref().map(|cluster| uid_of(cluster).to_owned()).unwrap_or_default();
    let has_it = |grant: &Object| {
        let values = [GRANTS_HELD_BY.values, GRANTS_BY_COPY.values];
        values.iter().any(|of| of(grant).contains(&uid))
    };
    let grants = live_reads.lists.get(&(Place::HUB, GRANT, None));
    facts.is_surely_empty = grants.map(|grants| !grants.iter().any(has_it));
    Observed::Seen { facts, scene }
}
