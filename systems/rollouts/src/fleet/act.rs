//! The decision as one write, one live read, or a reason to wait.

use super::decide::Decision;
use super::observe::Scene;
use crate::kinds::{CLUSTER_UPDATE, FLEET_UPDATE, WORKLOAD_CLUSTER};
use crate::record::{wait, whole_seconds};
use interlock_api::names::grant_name;
use interlock_api::rollouts::condition::{DEGRADED, PROGRESSING, READY};
use interlock_api::rollouts::{FleetPhase, FleetUpdateStatus, LABEL_FLEET_UPDATE};
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::metadata::{name_of, namespace_of, owner_reference, uid_of};
use interlock_kernel::{Address, Event, Importance, Name, Nothing, Place, Read, Step, Write};
use serde_json::{Value, json};

/// How long a cache may be behind before the clusters are read again.
const BEHIND_SECONDS: i64 = 5;

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::Wait(because) => {
            Step::Wait { because: because.to_owned(), at_most: wait(BEHIND_SECONDS) }
        }
        Decision::ReadClusters => {
            let fleet = Address::new(Place::HUB, &FLEET_UPDATE, Name::of(&scene.fleet));
            let clusters =
                Read::List { place: Place::HUB, kind: WORKLOAD_CLUSTER, namespace: None };
            let because = "a cluster that is drained counts as unavailable".to_owned();
            Step::LiveRead { reads: vec![Read::Object(fleet), clusters], because }
        }
        Decision::MakeChild(cluster) => make_child(scene, &cluster),
        Decision::CancelChild(uid) => {
            let Some(child) = scene.children.iter().find(|child| uid_of(child) == uid) else {
                return Step::rest("there is no such request");
            };
            let change = json!({ "spec": { "cancel": true } });
            let write = Write::patch(Place::HUB, &CLUSTER_UPDATE, child, change);
            Step::write(write, "the request for many clusters was cancelled")
        }
        Decision::Write(status) => write(scene, &status),
    }
}

/// The name of the ClusterUpdate of a cluster: no two FleetUpdates share one.
fn child_name(scene: &Scene, cluster: &str) -> String {
    grant_name(&format!("{}-{cluster}", name_of(&scene.fleet)), uid_of(&scene.fleet))
}

fn make_child(scene: &Scene, cluster: &str) -> Step<Nothing> {
    let fleet = &scene.fleet;
    let name = Name::within(namespace_of(fleet), &child_name(scene, cluster));
    let object = json!({
        "metadata": {
            "labels": { LABEL_FLEET_UPDATE: uid_of(fleet) },
            "ownerReferences": [owner_reference(&FLEET_UPDATE, fleet)],
        },
        "spec": scene.spec.update_of(cluster),
    });
    let address = Address::new(Place::HUB, &CLUSTER_UPDATE, name);
    Step::write(Write::Create { address, object }, format!("cluster {cluster} was chosen"))
}

fn findings(status: &FleetUpdateStatus) -> [Finding; 3] {
    let (phase, reason) = (status.phase, status.phase.as_str());
    let of = |kind: &'static str, holds: bool| Finding {
        holds: Some(holds),
        ..Finding::fails(kind, reason, status.message.clone())
    };
    [
        of(READY, phase == FleetPhase::Succeeded),
        of(PROGRESSING, phase == FleetPhase::Progressing),
        of(DEGRADED, status.failed > 0),
    ]
}

fn write(scene: &Scene, wanted: &FleetUpdateStatus) -> Step<Nothing> {
    let said = &scene.status;
    let is_new = wanted.phase != said.phase || said.phase_since.is_none();
    let mut next = wanted.clone();
    next.phase_since = match is_new {
        true => Some(whole_seconds(scene.now)),
        false => said.phase_since.clone(),
    };
    next.conditions = said.conditions.clone();
    for finding in findings(wanted) {
        if !finding.is_in(&next.conditions) {
            let generation = scene.fleet.metadata.generation;
            next.conditions = conditions::with(&next.conditions, &finding, scene.now, generation);
        }
    }
    let change = json!({ "status": whole(&next) });
    let write = Write::patch_status(Place::HUB, &FLEET_UPDATE, &scene.fleet, change);
    let chosen = wanted.children.iter().find(|child| {
        !said.children.iter().any(|known| known.cluster == child.cluster)
            && !child.phase.is_terminal()
    });
    let because = match chosen {
        Some(child) => format!("it is the turn of cluster {}", child.cluster),
        None => next.message.clone(),
    };
    let step = Step::write(write, because);
    if wanted.phase == said.phase {
        return step;
    }
    let is_bad = matches!(wanted.phase, FleetPhase::Paused | FleetPhase::Failed);
    step.telling(Event {
        about: Address::new(Place::HUB, &FLEET_UPDATE, Name::of(&scene.fleet)),
        uid: uid_of(&scene.fleet).to_owned(),
        importance: if is_bad { Importance::Warning } else { Importance::Normal },
        reason: wanted.phase.as_str(),
        note: next.message,
    })
}

/// A status as a merge patch that says of every field what it is: what is not there is taken out.
fn whole(status: &FleetUpdateStatus) -> Value {
    let mut patch = json!({
        "phaseSince": null, "reason": null, "message": null, "partition": null, "children": null,
        "conditions": null,
    });
    // A status is a struct of plain fields, which always has a form in JSON.
    let Ok(Value::Object(fields)) = serde_json::to_value(status) else { return Value::Null };
    for (key, value) in fields {
        patch[key] = value;
    }
    patch
}
