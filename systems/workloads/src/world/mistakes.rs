//! Mistakes that must be found.

use super::size::Size;
use super::{Bends, Workloads};
use crate::deployment::decide::{Decision as Done, Facts as Seen};
use crate::deployment::standing::Status;
use crate::deployment::{Deployments, decide as deployment};
use crate::replicaset::decide as set;
use crate::replicaset::decide::{Decision, Facts, Leaving};
use interlock_world::Mistake;

/// A row: name, sentence, what breaks, the least size, and what is done otherwise.
struct Row {
    name: &'static str,
    sentence: &'static str,
    breaks: &'static [&'static str],
    size: Size,
    bends: Bends,
}

const BOUNDED: &[&str] = &["PodsBounded"];
const FLOOR: &[&str] = &["ReadyFloor"];
const END: &[&str] = &["ChangesEnd"];

/// A change of the template.
const CHANGE: Size = Size { changes: 1, ..Size::SMALL };
/// The same, and back.
const UNDO: Size = Size { undos: 1, ..CHANGE };
/// In the middle of an undo.
const MIDWAY: Size = Size { desired: 2, midway: 1, ..Size::SMALL };
/// The same, with a second agent whose cache is out of date.
const STALE: Size = Size { agents: 2, stale: 1, ..MIDWAY };
/// The same, with a second agent whose steps are late.
const LATE: Size = Size { agents: 2, flights: 1, ..MIDWAY };
/// All must come to an end.
const LIVE: Size = Size { live: 1, ..CHANGE };

fn deployments(decide: fn(&Seen) -> Done) -> Bends {
    Bends { deployments: Some(decide), ..Bends::default() }
}

fn sets(decide: fn(&Facts) -> Decision) -> Bends {
    Bends { sets: Some(decide), ..Bends::default() }
}

pub(super) fn all() -> Vec<Mistake<Workloads>> {
    let rows = of_sets().into_iter().chain(of_deployments());
    let mistake = |row: Row| {
        let Row { name, sentence, breaks, size, bends } = row;
        Mistake { name, sentence, breaks, system: Workloads { size, bends } }
    };
    rows.map(mistake).collect()
}

fn of_sets() -> Vec<Row> {
    vec![
        Row {
            name: "any-name",
            sentence: "there is one name more for pods than there may be pods",
            breaks: BOUNDED,
            size: UNDO,
            bends: sets(|facts| {
                let mut facts = facts.clone();
                if let Ok(spec) = &mut facts.spec {
                    spec.slots = spec.slots.map(|slots| slots + 1);
                }
                set::decide(&facts)
            }),
        },
        Row {
            name: "deleted-unnamed",
            sentence: "a pod is deleted without being named on its ReplicaSet first",
            breaks: FLOOR,
            size: LATE,
            bends: sets(|facts| match set::decide(facts) {
                Decision::Name { uid, name } => {
                    let place = facts.pods.iter().position(|member| member.pod.uid == uid);
                    place.map_or(Decision::Name { uid, name }, Decision::DeleteNamed)
                }
                decision => decision,
            }),
        },
        Row {
            name: "surplus-by-cache",
            sentence: "which pod is deleted is decided by the cache",
            breaks: FLOOR,
            size: STALE,
            bends: sets(|facts| {
                set::decide(&Facts { live: Some(facts.pods.clone()), ..facts.clone() })
            }),
        },
        Row {
            name: "adopted-unasked",
            sentence: "a pod is adopted without asking whether the ReplicaSet still is there",
            breaks: &["AdoptedByTheLiving"],
            size: Size { alone: 1, orphans: 1, agents: 2, stale: 1, ..Size::SMALL },
            bends: sets(|facts| set::decide(&Facts { is_current: Some(true), ..facts.clone() })),
        },
        Row {
            name: "name-stays",
            sentence: "the name of a pod that is gone is not cleared",
            breaks: END,
            size: LIVE,
            bends: sets(|facts| match set::decide(facts) {
                Decision::ClearName => {
                    set::decide(&Facts { leaving: Leaving::Nobody, ..facts.clone() })
                }
                decision => decision,
            }),
        },
        Row {
            name: "failed-pod-stays",
            sentence: "a pod that failed is not replaced",
            breaks: END,
            size: Size { changes: 0, exits: 1, ..LIVE },
            bends: sets(|facts| match set::decide(facts) {
                Decision::DeleteEnded(_) => Decision::Rest(set::Why::Complete),
                decision => decision,
            }),
        },
    ]
}

fn of_deployments() -> Vec<Row> {
    vec![
        Row {
            name: "sizes-by-cache",
            sentence: "the next sizes are decided by the cache",
            breaks: FLOOR,
            size: Size { agents: 2, stale: 1, ..UNDO },
            bends: deployments(|facts| {
                deployment::decide(&Seen { live: Some(facts.sets.clone()), ..facts.clone() })
            }),
        },
        Row {
            name: "each-replicaset-for-itself",
            sentence: "the size of a ReplicaSet is decided without a plan for all",
            breaks: FLOOR,
            size: LATE,
            bends: deployments(|facts| match deployment::decide(facts) {
                Done::Plan(plan) => {
                    let differs = facts.sets.iter().position(|set| plan.size_of(set) != set.size);
                    differs.map_or(Done::Rest(deployment::Why::Changing), |place| Done::Carry {
                        set: place,
                        size: Some(plan.size_of(&facts.sets[place])),
                        revision: None,
                    })
                }
                decision => decision,
            }),
        },
        Row {
            name: "an-old-plan",
            sentence: "sizes are carried out without asking whether the plan is the present one",
            breaks: FLOOR,
            size: Size { scales: 1, agents: 2, stale: 1, ..Size::SMALL },
            bends: deployments(|facts| {
                deployment::decide(&Seen { is_current: Some(true), ..facts.clone() })
            }),
        },
        Row {
            name: "observed-before-the-work",
            sentence: "the status says the new generation before its pods are counted",
            breaks: &["SaidWhenDone"],
            size: CHANGE,
            bends: deployments(|facts| {
                if facts.said.generation == facts.generation {
                    return deployment::decide(facts);
                }
                let (generation, pods) = (facts.generation, facts.said.pods);
                Done::Report(Status { generation, pods, findings: Vec::new(), is_progress: false })
            }),
        },
        Row {
            name: "done-by-cache",
            sentence: "the status says that a change is over by what the cache shows",
            breaks: &["SaidWhenDone"],
            size: Size { agents: 2, stale: 1, ..UNDO },
            bends: deployments(|facts| {
                match <Deployments as interlock_kernel::Room>::decide(facts) {
                    Done::ReadSizes => deployment::decide(&Seen {
                        live: Some(facts.sets.clone()),
                        ..facts.clone()
                    }),
                    decision => decision,
                }
            }),
        },
        Row {
            name: "old-pods-stay",
            sentence: "the old ReplicaSet keeps its pods",
            breaks: END,
            size: LIVE,
            bends: deployments(|facts| match deployment::decide(facts) {
                Done::Plan(plan) => {
                    let is_fewer = |set: &deployment::Set| plan.size_of(set) < set.size;
                    match facts.sets.iter().any(is_fewer) {
                        true => Done::Rest(deployment::Why::Changing),
                        false => Done::Plan(plan),
                    }
                }
                decision => decision,
            }),
        },
    ]
}
