//! Mistakes about clusters that somebody needs empty.

use super::{Bend, Row, scheduled};
use crate::clusters::{Clusters, decide as clusters};
use crate::kinds::{GRANT, GRANTS_HELD_BY, GRANTS_IN_PLACE, GRANTS_TO_COME, WORKLOAD_CLUSTER};
use crate::scheduler::decide as schedule;
use crate::scheduler::{self, Scheduler};
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{
    Index, LiveReads, Name, Nothing, Object, Observed, Place, Room, Subject, View,
};

const EMPTY: &[&str] = &["DrainedIsEmpty"];

pub(super) const ROWS: &[Row] = &[
    Row(
        "live-read-blind-to-drains",
        "the scheduler grants to a cluster that its cache shows free, though a live read shows a drain",
        EMPTY,
        &[Bend::SchedulerDecides(|facts| {
            scheduled(facts, |facts| {
                for cluster in &mut facts.clusters {
                    let is_draining = cluster.live_state == Some(schedule::LiveState::Draining);
                    cluster.live_state = if is_draining {
                        Some(schedule::LiveState::Stays)
                    } else {
                        cluster.live_state
                    };
                }
            })
        })],
        "moves=0,flights=0,stale=1,crash=0,drains=1,hubs=2",
    ),
    Row(
        "drained-while-it-is-a-target",
        "a cluster says that it is empty while a grant that is to come names it",
        EMPTY,
        &[Bend::ClustersObserve(|room, subject, view, live_reads| {
            counting(room, subject, view, live_reads, &[&GRANTS_HELD_BY, &GRANTS_IN_PLACE])
        })],
        "moves=0,flights=1,stale=0,crash=0,drains=1",
    ),
    Row(
        "drained-with-volumes-in-place",
        "a cluster says that it is empty while volumes that were left in place there wait to be fetched",
        EMPTY,
        &[Bend::ClustersObserve(|room, subject, view, live_reads| {
            counting(room, subject, view, live_reads, &[&GRANTS_HELD_BY, &GRANTS_TO_COME])
        })],
        "moves=3,flights=0,stale=0,crash=0,claims=1,begun=3,drains=1",
    ),
    Row(
        "drained-by-the-cache",
        "a cluster says that it is empty because the cache shows no grant",
        EMPTY,
        &[Bend::ClustersDecide(|facts| {
            let mut facts = facts.clone();
            if let Some(drain) = &mut facts.drain {
                drain.is_surely_empty.get_or_insert(true);
            }
            Clusters::decide(&facts)
        })],
        "moves=0,flights=0,stale=1,crash=0,drains=1",
    ),
    Row(
        "drained-by-an-old-list",
        "a list of grants counts that was read before the cluster was asked for",
        EMPTY,
        &[Bend::ClustersObserve(|room, subject, view, live_reads| {
            counting(
                room,
                subject,
                view,
                live_reads,
                &[&GRANTS_HELD_BY, &GRANTS_TO_COME, &GRANTS_IN_PLACE],
            )
        })],
        "moves=0,flights=1,stale=0,crash=0,drains=2",
    ),
    Row(
        "drains-never-told",
        "a drain that waits for a target to go is waited for by the target",
        &["DrainIsAnswered", "SecondDrainIsAnswered"],
        &[Bend::SchedulerDecides(|facts| match Scheduler::decide(facts) {
            scheduler::Decision::Grant(schedule::Decision::Target(_)) if is_drained(facts) => {
                scheduler::Decision::Grant(schedule::Decision::Nothing(schedule::Why::NoneFits))
            }
            decision => decision,
        })],
        "moves=1,flights=0,stale=0,crash=0,drains=1,live=1",
    ),
];

fn is_drained(facts: &scheduler::Facts) -> bool {
    let scheduler::Facts::Grant(facts) = facts else { return false };
    facts.clusters.iter().any(|cluster| cluster.is_asked_to_drain)
}

/// The same, with other grants that count, and a list of them whenever it was read.
fn counting(
    room: &Clusters,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
    indexes: &[&Index],
) -> Observed<clusters::Facts, <Clusters as Room>::Scene> {
    let (mut facts, scene) = match room.observe(subject, view, live_reads) {
        Observed::Seen { facts, scene } => (facts, scene),
        nothing @ Observed::Nothing(_) => return nothing,
    };
    let cluster = view.get(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide(subject));
    let uid = cluster.as_ref().map(|cluster| uid_of(cluster).to_owned()).unwrap_or_default();
    let counts = |index: &Index| indexes.iter().any(|counted| counted.name == index.name);
    if !counts(&GRANTS_TO_COME) {
        facts.grants.to_come = 0;
    }
    if !counts(&GRANTS_IN_PLACE) {
        facts.grants.in_place = 0;
    }
    let keeps = |grant: &Object| indexes.iter().any(|index| (index.values)(grant).contains(&uid));
    let grants = live_reads.lists.get(&(Place::HUB, GRANT, None));
    if let Some(drain) = &mut facts.drain {
        drain.is_surely_empty = grants.map(|grants| !grants.iter().any(keeps));
    }
    Observed::Seen { facts, scene }
}
