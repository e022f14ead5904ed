//! Mistakes that no promise speaks of, and that the comparison with the protocol notices.

use super::{CALM, but, conductor, in_phase, writing};
use crate::conductor::decide::decide;
use crate::conductor::facts::{Candidate, Facts, Preflight, Source};
use crate::conductor::{Conductor, Scene};
use crate::kinds::ROLLOUT_REPORT;
use crate::world::Rollouts;
use crate::world::refine::REFINED;
use interlock_api::rollouts::RolloutReportStatus;
use interlock_kernel::{
    Bent, LiveReads, Name, Nothing, Observed, Place, Room, Subject, View, Write, read_part,
};
use interlock_world::{Mistake, rewritten};
use serde_json::Value;

pub(super) fn mistakes() -> Vec<Mistake<Rollouts>> {
    let calm = || Rollouts::new(CALM);
    vec![
        Mistake {
            name: "start-unchecked",
            sentence: "a request starts before the agent has answered",
            breaks: &[REFINED],
            system: conductor(calm(), |facts| {
                decide(&but(facts, |facts| {
                    if let Some(report) = &mut facts.report
                        && report.preflight.is_none()
                    {
                        report.preflight = Some(Preflight { failures: 0, first: String::new() });
                    }
                }))
            }),
        },
        Mistake {
            name: "answer-for-another-request",
            sentence: "what the agent answered about the request before counts for the one that waits",
            breaks: &[REFINED],
            system: {
                let system = calm();
                let conductor: Bent<Conductor> = system.conductor.observing(with_any_answer);
                Rollouts { conductor, ..system }
            },
        },
        Mistake {
            name: "known-bad-is-queued",
            sentence: "content that is known to be bad gets a place in the queue",
            breaks: &[REFINED],
            system: conductor(Rollouts { requests: 3, ..calm() }, |facts| {
                decide(&but(facts, |facts| {
                    if let Candidate::Here(request) = &mut facts.candidate
                        && let Source::Bundle { bad, .. } = &mut request.source
                    {
                        *bad = None;
                    }
                }))
            }),
        },
        Mistake {
            name: "failure-is-not-remembered",
            sentence: "content that failed is not written down as bad",
            breaks: &[REFINED],
            system: writing(calm(), |room, scene, decision| {
                rewritten(room.act(scene, decision), |write| {
                    if let Some(status) = in_phase(write, "RollingBack") {
                        status["bad"] = Value::Null;
                    }
                })
            }),
        },
        Mistake {
            name: "degraded-is-not-said",
            sentence: "a rollback that is given up leaves no word that the cluster is Degraded",
            breaks: &[REFINED],
            system: writing(
                Rollouts { requests: 1, away: true, ..calm() },
                |room, scene, decision| {
                    rewritten(room.act(scene, decision), |write| {
                        let Write::Patch { change, .. } = write else { return };
                        if change["status"]["isDegraded"] == true {
                            change["status"]["isDegraded"] = Value::Null;
                        }
                    })
                },
            ),
        },
    ]
}

/// Whose answer it is does not matter.
fn with_any_answer(
    room: &Conductor,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let mut observed = room.observe(subject, view, live_reads);
    if let Observed::Seen { facts, .. } = &mut observed
        && let Some(report) = &mut facts.report
    {
        let found = view.get(Place::HUB, &ROLLOUT_REPORT, &Name::cluster_wide(subject));
        let said =
            found.and_then(|it| read_part::<RolloutReportStatus>(&it, "status").ok().flatten());
        let answer = said.and_then(|said| said.preflight);
        report.preflight = answer
            .map(|answer| Preflight { failures: answer.failures.len(), first: String::new() });
    }
    observed
}
