//! The ends of the world: clusters that start and release namespaces, agents, and people who send updates.

use super::{CLUSTER_UIDS, Drains, Machine, grant, record, submitted};
use interlock_api::rollouts::{ClusterRolloutStatus, RolloutReportStatus};
use interlock_kernel::{Kind, Name, read_part};
use interlock_placement::kinds::GRANT;
use interlock_placement::world::processes::start;
use interlock_rollouts::kinds::{CLUSTER_ROLLOUT, ROLLOUT_REPORT};
use interlock_world::{Chance, Move, Scene, System};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What happens by itself, who does it, and whether it must happen in the end.
pub(in crate::world) const MOVES: [(&str, &str, bool); 5] = [
    ("Start", "cluster", true),
    ("Release", "cluster", true),
    ("Check", "agent", true),
    ("Apply", "agent", true),
    ("Submit", "people", false),
];
/// A world with more of its own has these first.
const START: usize = 0;
const RELEASE: usize = 1;
const CHECK: usize = 2;
const APPLY: usize = 3;
pub(in crate::world) const SUBMIT: usize = 4;

/// That the request for a cluster was sent.
pub(in crate::world) fn sent(c: usize) -> Chance {
    1_u32 << c
}

/// What can happen now.
pub(super) fn next(system: &Drains, scene: &Scene<'_, Drains>) -> Vec<Move<Machine>> {
    let mut next: Vec<Move<Machine>> =
        (0..system.spaces).filter_map(|space| follow(scene, space)).collect();
    for c in 0..system.requests {
        next.extend(check(scene, c));
        next.extend(apply(scene, c));
    }
    for c in (0..system.requests).filter(|c| scene.chance & sent(*c) == 0) {
        let hub = submitted(scene.servers, scene.contents[0], c);
        next.push(Move { chance: scene.chance | sent(c), ..scene.at_hub(SUBMIT, hub) });
    }
    next
}

/// Which of the clusters is named; None: none is.
fn place_of(cluster: &Value) -> Option<usize> {
    CLUSTER_UIDS.iter().position(|uid| cluster["uid"] == *uid)
}

/// The owner starts what is granted, and releases what is revoked once it has stopped.
pub(in crate::world) fn follow<S: System<Machine = Machine>>(
    scene: &Scene<'_, S>,
    space: usize,
) -> Option<Move<Machine>> {
    let name = grant(space);
    let status = scene.hub().part(&GRANT, &Name::cluster_wide(&name), "status");
    let c = place_of(&status["owner"])?;
    let mut machine = Machine::clone(&scene.machines[c]);
    let mut found = match status["phase"].as_str()? {
        "Granted" if !machine.runs.contains(&name) => {
            machine.runs.insert(name);
            scene.at_hub(START, scene.contents[0])
        }
        "Revoking" => {
            machine.runs.remove(&name);
            scene.at_hub(RELEASE, released(scene, &name, &status, c))
        }
        _ => return None,
    };
    found.machines[c] = Some(machine);
    Some(found)
}

/// The hub after a cluster released a namespace without volumes: what it had is superseded.
fn released<S: System>(scene: &Scene<'_, S>, name: &str, status: &Value, c: usize) -> u32 {
    let mut copies = status["copies"].clone();
    for copy in copies.as_array_mut().into_iter().flatten() {
        if copy["cluster"]["uid"] == CLUSTER_UIDS[c] && copy["state"] == "Live" {
            copy["state"] = json!("Superseded");
        }
    }
    let at = start().to_string();
    let change = json!({"status": {"phase": "Released", "phaseSince": at, "copies": copies}});
    scene.servers.change(scene.contents[0], &GRANT, &Name::cluster_wide(name), &change)
}

/// The status of the record or of the report of a cluster.
fn status<T, S>(scene: &Scene<'_, S>, kind: &Kind, c: usize) -> T
where
    T: DeserializeOwned + Default,
    S: System,
{
    let found = scene.hub().get(kind, &record(c));
    found.and_then(|found| read_part(&found, "status").ok().flatten()).unwrap_or_default()
}

/// What the record of a cluster says.
pub(super) fn decided<S: System>(scene: &Scene<'_, S>, c: usize) -> ClusterRolloutStatus {
    status(scene, &CLUSTER_ROLLOUT, c)
}

/// What the report of a cluster says.
pub(super) fn said<S: System>(scene: &Scene<'_, S>, c: usize) -> RolloutReportStatus {
    status(scene, &ROLLOUT_REPORT, c)
}

fn says<S: System>(scene: &Scene<'_, S>, c: usize, change: &Value) -> u32 {
    let patch = json!({ "status": change });
    scene.servers.change(scene.contents[0], &ROLLOUT_REPORT, &record(c), &patch)
}

/// The agent finds nothing wrong with the update that it is asked about.
pub(in crate::world) fn check<S: System<Machine = Machine>>(
    scene: &Scene<'_, S>,
    c: usize,
) -> Option<Move<Machine>> {
    let asked = decided(scene, c).preflight?;
    let said = said(scene, c);
    let answered = said.preflight.as_ref().map(|it| (&it.uid, &it.digest));
    if answered == Some((&asked.uid, &asked.digest)) {
        return None;
    }
    let answer = json!({"uid": asked.uid, "digest": asked.digest, "failures": []});
    Some(scene.at_hub(CHECK, says(scene, c, &json!({ "preflight": answer }))))
}

/// The agent brings its cluster to the target, and all is healthy at once.
pub(in crate::world) fn apply<S: System<Machine = Machine>>(
    scene: &Scene<'_, S>,
    c: usize,
) -> Option<Move<Machine>> {
    let token = decided(scene, c).target.token;
    if said(scene, c).token == token {
        return None;
    }
    let fence = json!({"token": token, "mode": "Exact"});
    let change = json!({"token": token, "fence": fence, "verdict": "Soaked"});
    Some(scene.at_hub(APPLY, says(scene, c, &change)))
}
