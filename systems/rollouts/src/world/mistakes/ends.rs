//! Mistakes of how requests wait, start and end.

use super::{CALM, STALE, conductor, in_phase, writing};
use crate::conductor::decide::{Decision, decide};
use crate::kinds::CLUSTER_ROLLOUT;
use crate::mirror::Mirror;
use crate::world::Rollouts;
use interlock_kernel::{Bent, Room, Write};
use interlock_world::{Hostility, Mistake, rewritten, unguarded};
use serde_json::{Value, json};

/// What is decided is written late, and nothing is out of date.
const LATE: Hostility = Hostility { stale: 0, ..Hostility::HARSH };

pub(super) fn mistakes() -> Vec<Mistake<Rollouts>> {
    let calm = || Rollouts::new(CALM);
    let live = || Rollouts { requests: 1, ..Rollouts::new(Hostility::LIVE) };
    vec![
        Mistake {
            name: "record-written-over",
            sentence: "the conductor writes the record, whatever it says by now",
            breaks: &["NoApplicationOfOutdatedReq"],
            system: writing(
                Rollouts { requests: 1, programs: 2, ..Rollouts::new(LATE) },
                |room, scene, decision| {
                    unguarded(room.act(scene, decision), |write| {
                        write.address().kind == CLUSTER_ROLLOUT
                    })
                },
            ),
        },
        Mistake {
            name: "agent-is-not-asked",
            sentence: "a request waits for a check that nobody asks the agent for",
            breaks: &["EveryReqInQueueIsProcessed"],
            system: conductor(live(), |facts| match decide(facts) {
                Decision::NamePreflight => Decision::Rest("the agent has not answered"),
                decision => decision,
            }),
        },
        Mistake {
            name: "rollback-tried-for-ever",
            sentence: "a rollback that takes too long is tried again, however often it was",
            breaks: &["NoPartialUpdateTermination"],
            system: conductor(Rollouts { away: true, ..live() }, |facts| match decide(facts) {
                Decision::GiveUp(..) => Decision::TryAgain,
                decision => decision,
            }),
        },
        Mistake {
            name: "superseded-by-rejected",
            sentence: "a request that is rejected supersedes the one that waits",
            breaks: &["SupersededByValid"],
            system: writing(
                Rollouts { cancels: true, ..Rollouts::new(STALE) },
                |room, scene, decision| {
                    rewritten(room.act(scene, decision), |write| {
                        let Write::Patch { change, .. } = write else { return };
                        let entries = change["status"]["requests"].as_array_mut();
                        let Some(entries) = entries else { return };
                        let newest = entries.last().map(|newest| newest["phase"].clone());
                        if newest == Some(json!("Rejected")) {
                            move_entries(entries, "Queued", "Superseded");
                        }
                    })
                },
            ),
        },
        Mistake {
            name: "failed-without-rollback",
            sentence: "a request that fails in flight ends at once, as if nothing had been changed",
            breaks: &["RefusedNeverApplied"],
            system: writing(calm(), |room, scene, decision| {
                rewritten(room.act(scene, decision), |write| {
                    let Some(status) = in_phase(write, "RollingBack") else { return };
                    status["active"] = Value::Null;
                    if let Some(entries) = status["requests"].as_array_mut() {
                        move_entries(entries, "RollingBack", "Failed");
                    }
                })
            }),
        },
        Mistake {
            name: "rolled-back-is-success",
            sentence: "a cluster that is healthy after a rollback counts as one at the version that failed",
            breaks: &["IdleIsGood"],
            system: conductor(calm(), |facts| match decide(facts) {
                Decision::EndRolledBack => Decision::Succeed,
                decision => decision,
            }),
        },
        Mistake {
            name: "success-is-shown-early",
            sentence: "the mirror shows a success once all objects are applied",
            breaks: &["ShownIsDecided"],
            system: {
                let system = Rollouts { requests: 1, ..calm() };
                let mirror: Bent<Mirror> = system.mirror.acting(|room, scene, decision| {
                    rewritten(room.act(scene, decision), |write| {
                        let Write::Patch { change, .. } = write else { return };
                        if change["status"]["phase"] == "Verifying" {
                            change["status"]["phase"] = json!("Succeeded");
                        }
                    })
                });
                Rollouts { mirror, ..system }
            },
        },
    ]
}

/// The entries of one phase get another.
fn move_entries(entries: &mut [Value], old: &str, new: &str) {
    for entry in entries {
        if entry["phase"] == old {
            entry["phase"] = json!(new);
        }
    }
}
