//! What a controller could do wrong in what it asks of the other systems. Each must be found.

use super::Machines;
use interlock_api::nodes::condition::RELEASE_BLOCKED;
use interlock_checker::Size;
use interlock_kernel::{Decide, Room};
use interlock_nodes::claims::{self, Claims, decide as of_claims};
use interlock_nodes::pool::decide::Decision as OfNode;
use interlock_nodes::pool::facts::{Live, Node, OnCluster};
use interlock_nodes::pool::{self, Pool};
use interlock_nodes::record::Revocation;
use interlock_placement::clusters::Clusters;
use interlock_placement::scheduler::decide::{LiveState, Owner, UnfitReason};
use interlock_placement::scheduler::{self, Scheduler};
use interlock_world::Mistake;

/// A mistake: its name, its sentence, what must break, the least size in which it shows, and the system that makes it.
struct Row(
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
    fn(Machines) -> Machines,
);

pub(super) fn mistakes() -> Vec<Mistake<Machines>> {
    let made = |Row(name, sentence, breaks, size, bend): &Row| {
        let size = Size::parse(size).expect("the sizes here can be read");
        let system = Machines::from_size(&size).expect("the sizes here are in range");
        Mistake { name, sentence, breaks, system: bend(system) }
    };
    OF_NODES.iter().chain(OF_PLACEMENT).map(made).collect()
}

/// What the pool decides, with another decision about a node.
fn otherwise(facts: &pool::Facts, change: fn(OfNode) -> OfNode) -> pool::Decision {
    match Pool::decide(facts) {
        pool::Decision::Node(decision) => pool::Decision::Node(change(decision)),
        decision @ pool::Decision::Rack(_) => decision,
    }
}

/// What the pool decides by other facts about a node.
fn by_other_facts(facts: &pool::Facts, change: fn(&mut Node)) -> pool::Decision {
    let mut facts = facts.clone();
    if let pool::Facts::Node(facts) = &mut facts
        && let Some(node) = &mut facts.node
    {
        change(node);
    }
    Pool::decide(&facts)
}

/// Mistakes of nodes, in what they ask of placement.
const OF_NODES: &[Row] = &[
    Row(
        "revoked-without-a-drain",
        "the pool ends the epoch of a machine at once, whatever runs on the cluster on it",
        &["MachineIsTenants"],
        "flights=0",
        |system| {
            let pool = system.pool.deciding(|facts| {
                otherwise(facts, |decision| match decision {
                    OfNode::Revoke(_, why) => OfNode::Revoke(Revocation::AtOnce, why),
                    decision => decision,
                })
            });
            Machines { pool, ..system }
        },
    ),
    Row(
        "claim-ends-without-a-drain",
        "the epoch of a machine ends at once when the tenant deletes its claim",
        &["MachineIsTenants"],
        "reclaims=0,deletes=1,flights=0",
        |system| {
            let claims: Decide<Claims> = |facts| match Claims::decide(facts) {
                claims::Decision::Claim(of_claims::Decision::Revoke(name, _, why)) => {
                    let at_once = of_claims::Decision::Revoke(name, Revocation::AtOnce, why);
                    claims::Decision::Claim(at_once)
                }
                decision => decision,
            };
            Machines { claims: Some(claims), ..system }
        },
    ),
    Row(
        "asked-is-drained",
        "the pool takes a cluster for drained that was only asked",
        &["MachineIsTenants"],
        "flights=0",
        |system| {
            let pool = system.pool.deciding(|facts| {
                by_other_facts(facts, |node| {
                    let Some(cluster) = &mut node.cluster else { return };
                    let seen = [Some(&mut cluster.cached), cluster.live.as_mut()];
                    for seen in seen.into_iter().flatten() {
                        if *seen == OnCluster::Draining {
                            *seen = OnCluster::Drained;
                        }
                    }
                })
            });
            Machines { pool, ..system }
        },
    ),
    Row(
        "drain-is-not-asked-for",
        "the pool waits for a cluster to be drained, and asks nobody",
        &["ReclaimCompletes"],
        "flights=0,live=1",
        |system| {
            let pool = system.pool.deciding(|facts| {
                otherwise(facts, |decision| match decision {
                    OfNode::AddDrain => OfNode::Rest("nobody is asked"),
                    decision => decision,
                })
            });
            Machines { pool, ..system }
        },
    ),
    Row(
        "drain-is-kept",
        "a drain stays when the epoch that it was for has ended",
        &["EveryDrainEnds"],
        "flights=0,live=1",
        |system| {
            let pool = system.pool.deciding(|facts| {
                otherwise(facts, |decision| match decision {
                    OfNode::RemoveDrain(_) => OfNode::Rest("the drain stays"),
                    decision => decision,
                })
            });
            Machines { pool, ..system }
        },
    ),
    Row(
        "drain-is-taken-back-from-the-cache",
        "a pool whose cache does not show that a machine is being drained takes its drain off",
        &["DrainedIsEmpty"],
        "nodes=2,pools=2,stale=1,late=2,flights=0",
        |system| Machines { pool: system.pool.deciding(trusting_the_cache), ..system },
    ),
    Row(
        "blocked-is-not-reported",
        "a machine whose cluster is not drained in time does not say so",
        &["ReclaimCompletes"],
        "alone=1,flights=0,live=1",
        |system| {
            let pool = system.pool.deciding(|facts| {
                otherwise(facts, |decision| match decision {
                    OfNode::Say(finding) if finding.kind == RELEASE_BLOCKED => {
                        OfNode::Rest("nobody needs to know")
                    }
                    decision => decision,
                })
            });
            Machines { pool, ..system }
        },
    ),
];

/// The node counts as read, and as the cache has it.
fn trusting_the_cache(facts: &pool::Facts) -> pool::Decision {
    let mut facts = facts.clone();
    if let pool::Facts::Node(facts) = &mut facts {
        let in_vain = facts.node.as_ref().filter(|node| !node.drained_in_vain.is_empty());
        facts.live = in_vain.map(|node| Live::There(node.state.clone())).or(facts.live.take());
    }
    Pool::decide(&facts)
}

/// Mistakes of placement, in what nodes ask of it.
const OF_PLACEMENT: &[Row] = &[
    Row(
        "drained-when-asked",
        "a cluster says that it is drained as soon as somebody asks",
        &["DrainedIsEmpty"],
        "flights=0",
        |system| {
            let clusters = system.clusters.deciding(|facts| {
                let mut facts = facts.clone();
                if let Some(drain) = &mut facts.drain {
                    drain.is_surely_empty = Some(true);
                }
                Clusters::decide(&facts)
            });
            Machines { clusters, ..system }
        },
    ),
    Row(
        "drain-moves-nothing",
        "the scheduler leaves a namespace on a cluster that is to be drained",
        &["ReclaimCompletes"],
        "flights=0,live=1",
        |system| {
            let scheduler = system.scheduler.deciding(|facts| {
                let mut facts = facts.clone();
                if let scheduler::Facts::Grant(facts) = &mut facts {
                    facts.clusters.iter_mut().for_each(|cluster| cluster.is_draining = false);
                }
                Scheduler::decide(&facts)
            });
            Machines { scheduler, ..system }
        },
    ),
    Row(
        "granted-to-a-drained-cluster",
        "the scheduler grants a namespace to a cluster that somebody needs empty",
        &["DrainedIsEmpty"],
        "nodes=2,flights=0",
        |system| Machines { scheduler: system.scheduler.deciding(blind_to_drains), ..system },
    ),
];

/// Every cluster but the owner takes the namespace, whoever needs it empty.
fn blind_to_drains(facts: &scheduler::Facts) -> <Scheduler as Room>::Decision {
    let mut facts = facts.clone();
    if let scheduler::Facts::Grant(facts) = &mut facts {
        let owner = facts.grant.as_ref().and_then(|grant| grant.owner);
        for (c, cluster) in facts.clusters.iter_mut().enumerate() {
            if owner == Some(Owner::Cluster(c)) {
                continue;
            }
            (cluster.is_draining, cluster.is_asked_to_drain) = (false, false);
            if cluster.unfit_reason == Some(UnfitReason::Draining) {
                cluster.unfit_reason = None;
            }
            if cluster.live_state == Some(LiveState::Draining) {
                cluster.live_state = Some(LiveState::Stays);
            }
        }
    }
    Scheduler::decide(&facts)
}
