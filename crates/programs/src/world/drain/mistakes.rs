//! What a controller could do wrong in what it asks of the other system. Each must be found.

use super::Drains;
use interlock_checker::Size;
use interlock_kernel::{Room, Write};
use interlock_placement::clusters::Clusters;
use interlock_placement::scheduler::{self, Scheduler};
use interlock_rollouts::conductor::Conductor;
use interlock_rollouts::conductor::decide::Decision;
use interlock_rollouts::conductor::facts::Cluster;
use interlock_world::{Mistake, rewritten};
use serde_json::json;

/// A mistake: its name, its sentence, what must break, the least size in which it shows, and the system that makes it.
struct Row(&'static str, &'static str, &'static [&'static str], &'static str, fn(Drains) -> Drains);

pub(super) fn mistakes() -> Vec<Mistake<Drains>> {
    let made = |Row(name, sentence, breaks, size, bend): &Row| {
        let size = Size::parse(size).expect("the sizes here can be read");
        let system = Drains::from_size(&size).expect("the sizes here are in range");
        Mistake { name, sentence, breaks, system: bend(system) }
    };
    ROWS.iter().map(made).collect()
}

const ROWS: &[Row] = &[
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
            Drains { clusters, ..system }
        },
    ),
    Row(
        "asked-is-drained",
        "an update starts once its cluster is asked to be drained, whatever the cluster says",
        &["UpdatedIsEmpty"],
        "flights=0",
        |system| {
            let conductor = system.conductor.deciding(|facts| {
                let mut facts = facts.clone();
                if let Cluster::Here(here) = &mut facts.cluster {
                    here.drained = here.drains.clone();
                }
                Conductor::decide(&facts)
            });
            Drains { conductor, ..system }
        },
    ),
    Row(
        "drain-ends-with-the-start",
        "the drain is taken off when the update starts, and not when it ends",
        &["UpdatedIsEmpty"],
        "requests=2,begun=1,flights=0",
        |system| {
            let conductor = system.conductor.deciding(|facts| {
                let is_in_flight =
                    facts.record.as_ref().is_some_and(|record| record.active.is_some());
                let is_asked =
                    matches!(&facts.cluster, Cluster::Here(here) if !here.drains.is_empty());
                match Conductor::decide(facts) {
                    Decision::Rest(_) | Decision::Wait(..) if is_in_flight && is_asked => {
                        Decision::RemoveDrains
                    }
                    decision => decision,
                }
            });
            // The drain of the request in flight is taken off with the others.
            let conductor = conductor.acting(|room, scene, decision| {
                let is_removal = decision == Decision::RemoveDrains;
                let step = room.act(scene, decision);
                if is_removal { rewritten(step, take_all_off) } else { step }
            });
            Drains { conductor, ..system }
        },
    ),
    Row(
        "drain-is-kept",
        "a drain stays when its update has ended",
        &["EveryDrainEnds"],
        "flights=0,live=1",
        |system| {
            let conductor = system.conductor.deciding(|facts| match Conductor::decide(facts) {
                Decision::RemoveDrains => Decision::Rest("the drain stays"),
                decision => decision,
            });
            Drains { conductor, ..system }
        },
    ),
    Row(
        "drain-moves-nothing",
        "the scheduler leaves a namespace on a cluster that is to be drained",
        &["EveryUpdateEnds"],
        "flights=0,live=1",
        |system| {
            let scheduler = system.scheduler.deciding(|facts| {
                let mut facts = facts.clone();
                if let scheduler::Facts::Grant(facts) = &mut facts {
                    facts.clusters.iter_mut().for_each(|cluster| cluster.is_draining = false);
                }
                Scheduler::decide(&facts)
            });
            Drains { scheduler, ..system }
        },
    ),
    Row(
        "waits-for-ever",
        "an update waits for its drain beyond the deadline",
        &["EveryUpdateEnds"],
        "spaces=2,requests=2,begun=1,flights=0,live=1",
        |system| {
            let conductor = system.conductor.deciding(|facts| {
                let mut facts = facts.clone();
                let queued = facts.record.as_mut().and_then(|record| record.queued.as_mut());
                if let Some(queued) = queued {
                    queued.seconds = 0;
                }
                Conductor::decide(&facts)
            });
            Drains { conductor, ..system }
        },
    ),
];

fn take_all_off(write: &mut Write) {
    if let Write::Patch { change, .. } = write {
        change["spec"]["drains"] = json!([]);
    }
}
