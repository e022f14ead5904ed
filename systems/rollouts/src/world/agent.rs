//! The agent of the cluster, as far as the record and the report of it go.

use super::truth::Truth;
use super::{DEADLINE, Rollouts, START_DEADLINE, record};
use crate::kinds::{CLUSTER_ROLLOUT, ROLLOUT_REPORT};
use interlock_api::rollouts::{ClusterRolloutStatus, RolloutReportStatus, UpdatePhase, Verdict};
use interlock_kernel::read_part;
use interlock_world::{Chance, Move, Scene};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What it does. It answers and gets the cluster healthy in the end, unless something fails or it goes away.
pub(super) const MOVES: [(&str, &str, bool); 6] = [
    ("Check", "applier", true),
    ("Refuse", "applier", false),
    ("Apply", "applier", true),
    ("Soak", "applier", true),
    ("Fail", "applier", false),
    ("GoAway", "applier", false),
];
/// Where these begin among all moves.
const FIRST: usize = 2;
const CHECK: usize = FIRST;
const REFUSE: usize = FIRST + 1;
const APPLY: usize = FIRST + 2;
const SOAK: usize = FIRST + 3;
const FAIL: usize = FIRST + 4;
const GO_AWAY: usize = FIRST + 5;

/// That it went away.
const IS_AWAY: Chance = 1 << 3;

pub(super) fn is_away(chance: Chance) -> bool {
    chance & IS_AWAY != 0
}

fn status<T: DeserializeOwned + Default>(
    scene: &Scene<'_, Rollouts>,
    kind: &interlock_kernel::Kind,
) -> T {
    let found = scene.hub().get(kind, &record());
    found.and_then(|found| read_part(&found, "status").ok().flatten()).unwrap_or_default()
}

/// What the record says.
pub(super) fn decided(scene: &Scene<'_, Rollouts>) -> ClusterRolloutStatus {
    status(scene, &CLUSTER_ROLLOUT)
}

/// What the report says.
pub(super) fn said(scene: &Scene<'_, Rollouts>) -> RolloutReportStatus {
    status(scene, &ROLLOUT_REPORT)
}

/// When each request that was sent and has no outcome ends at the latest, or gets to its next phase; None: it has no number
/// yet, or does not say its outcome.
pub(super) fn due(scene: &Scene<'_, Rollouts>) -> Vec<Option<i64>> {
    let (decided, said) = (decided(scene), said(scene));
    let is_checked = |uid: &str| {
        let mut answers = said.preflight.iter();
        answers.any(|answer| answer.uid == uid && answer.failures.is_empty())
    };
    let at = |time: Option<&Time>, seconds: i64| Some(time?.0.as_second() + seconds);
    let open = Truth::of(scene).requests.into_iter().flatten().filter(|it| !it.is_over());
    let each = open.map(|request| {
        let entry = decided.request(&request.uid)?;
        match (entry.phase, &decided.active) {
            // It starts at once.
            (UpdatePhase::Queued, None) if is_checked(&request.uid) => None,
            (UpdatePhase::Queued, _) => at(entry.phase_since.as_ref(), START_DEADLINE),
            (UpdatePhase::RollingBack, Some(active)) => at(active.phase_since.as_ref(), DEADLINE),
            (_, Some(active)) => at(active.started_at.as_ref(), DEADLINE),
            (_, None) => None,
        }
    });
    each.collect()
}

pub(super) fn next(system: &Rollouts, scene: &Scene<'_, Rollouts>) -> Vec<Move<()>> {
    if is_away(scene.chance) {
        return Vec::new();
    }
    let (decided, said) = (decided(scene), said(scene));
    let says = |name: usize, change: Value| {
        let status = json!({"status": change});
        let hub = scene.servers.change(scene.contents[0], &ROLLOUT_REPORT, &record(), &status);
        scene.at_hub(name, hub)
    };
    let mut next = Vec::new();
    let answered = said.preflight.as_ref().map(|it| (&it.uid, &it.digest));
    let asked = decided.preflight.as_ref().filter(|it| Some((&it.uid, &it.digest)) != answered);
    if let Some(asked) = asked {
        let failure = json!({"id": "/ConfigMap/default/app", "code": "Forbidden", "message": ""});
        let answer = |failures: Value| {
            let preflight = json!({"uid": asked.uid, "digest": asked.digest, "failures": failures});
            json!({ "preflight": preflight })
        };
        next.push(says(CHECK, answer(json!([]))));
        if system.fails && is_second(&decided, &asked.uid) {
            next.push(says(REFUSE, answer(json!([failure]))));
        }
    }
    let token = decided.target.token;
    if said.token != token {
        // What it says is about the new token, and nothing of the old one is left.
        let fence = json!({"token": token, "mode": "Exact"});
        let about = json!({"token": token, "fence": fence, "verdict": "Applied", "failed": null});
        next.push(says(APPLY, about));
    } else if said.verdict == Verdict::Applied {
        next.push(says(SOAK, json!({"verdict": "Soaked"})));
        let active = decided.active.as_ref();
        let forward = active.filter(|active| active.phase != UpdatePhase::RollingBack);
        if system.fails && forward.is_some_and(|active| is_second(&decided, &active.uid)) {
            let failed = json!({"id": "/ConfigMap/default/app", "code": "Invalid", "message": ""});
            next.push(says(FAIL, json!({"verdict": "Applying", "failed": [failed]})));
        }
    }
    if system.away {
        next.push(Move {
            chance: scene.chance | IS_AWAY,
            ..scene.at_hub(GO_AWAY, scene.contents[0])
        });
    }
    next
}

/// Whether a request is not the first one.
fn is_second(decided: &ClusterRolloutStatus, uid: &str) -> bool {
    decided.request(uid).is_some_and(|entry| entry.name != super::people::name(0))
}
