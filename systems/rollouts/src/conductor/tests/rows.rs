//! The rows, in their order.

use super::facts::{active, asking, idle, options, queued};
use crate::conductor::decide::{Decision, decide};
use crate::conductor::facts::*;
use crate::record::{MOST_ENTRIES, MOST_WAITING, Waits, Why};
use interlock_api::rollouts::{
    FenceMode, FencePolicy, FirstInstallFailure, Good, UpdatePhase, Verdict,
};

use UpdatePhase::{
    Applying, Cancelled, Failed, Queued as Waiting, Rejected, RollingBack, Verifying,
};

fn bare(has_finalizer: bool, is_deleting: bool) -> Unnumbered {
    Unnumbered { uid: "n".to_owned(), has_finalizer, is_deleting }
}

fn bundle(revision: Revision) -> Source {
    Source::Bundle { digest: "new".to_owned(), bad: None, revision }
}

/// A request that waits for its number.
fn candidate(change: impl FnOnce(&mut Request)) -> Facts {
    let mut request = Request {
        uid: "n".to_owned(),
        namespace: "shop".to_owned(),
        is_cancelled: false,
        is_allowed: true,
        retry_bad: false,
        source: bundle(Revision::Complete),
    };
    change(&mut request);
    let candidate = Candidate::Here(Box::new(request));
    Facts { unnumbered: vec![bare(true, false)], candidate, ..idle() }
}

#[test]
fn a_cluster_that_nobody_asks_for_has_no_record() {
    let nobody = Facts { record: None, report: None, ..idle() };
    assert!(matches!(decide(&nobody), Decision::Rest(_)));
    let asked = Facts { unnumbered: vec![bare(false, false)], ..nobody.clone() };
    assert_eq!(decide(&asked), Decision::CreateRecord);
    let regretted = Facts { unnumbered: vec![bare(false, true)], ..nobody };
    assert!(matches!(decide(&regretted), Decision::Rest(_)));
    assert_eq!(decide(&Facts { report: None, ..idle() }), Decision::CreateReport);
}

#[test]
fn a_cluster_that_the_cache_does_not_show_is_read() {
    assert_eq!(decide(&Facts { cluster: Cluster::Unread, ..idle() }), Decision::ReadCluster);
    assert!(matches!(decide(&Facts { cluster: Cluster::Behind, ..idle() }), Decision::Rest(_)));
}

#[test]
fn a_cluster_that_is_gone_ends_its_requests() {
    let gone =
        |facts: Facts, is_replaced| Facts { cluster: Cluster::Gone { is_replaced }, ..facts };
    let flying = idle().flying(Applying, |_| {});
    let end = Decision::EndAll(Why::ClusterGone("west".to_owned()));
    assert_eq!(decide(&gone(flying.clone(), false)), end);
    let end = Decision::EndAll(Why::ClusterReplaced("west".to_owned()));
    assert_eq!(decide(&gone(flying, true)), end);
    assert_eq!(decide(&gone(idle().waiting(|_| {}), true)), end);
    let unread = Facts { candidate: Candidate::Unread("n".to_owned()), ..idle() };
    assert_eq!(decide(&gone(unread.clone(), false)), Decision::ReadCandidate);
    assert!(matches!(decide(&gone(unread, true)), Decision::Rest(_)), "another record has it");
    let refused = Decision::Number(Rejected, Why::UnknownCluster("west".to_owned()));
    assert_eq!(decide(&gone(candidate(|_| {}), false)), refused);
    let silent = Facts { is_said: false, ..idle() };
    assert_eq!(decide(&gone(silent, false)), Decision::Say);
}

#[test]
fn a_request_is_held_before_anything_else_happens_to_it() {
    let facts = Facts { unnumbered: vec![bare(true, false), bare(false, false)], ..idle() };
    assert_eq!(decide(&facts), Decision::AddFinalizer("n".to_owned()));
    let deleted = Facts { unnumbered: vec![bare(false, true)], ..idle() };
    assert!(matches!(decide(&deleted), Decision::Rest(_)), "nothing can be put on it");
}

#[test]
fn a_request_is_read_live_before_it_is_numbered() {
    let unread = Candidate::Unread("n".to_owned());
    let facts = Facts { unnumbered: vec![bare(true, false)], candidate: unread, ..idle() };
    assert_eq!(decide(&facts), Decision::ReadCandidate);
    let behind = Facts { candidate: Candidate::Behind, ..facts };
    assert!(matches!(decide(&behind), Decision::Rest(_)), "it has ended since");
}

#[test]
fn all_of_the_bundle_is_at_the_hub_before_the_request_is_numbered() {
    for (revision, decision) in [
        (Revision::Unread(vec![0, 1]), Decision::ReadParts(vec![0, 1])),
        (Revision::Lacks(1), Decision::CreatePart(1)),
        (Revision::Complete, Decision::Number(Waiting, Why::Valid)),
        (
            Revision::Broken("no".to_owned()),
            Decision::Number(Rejected, Why::RevisionMissing("no".to_owned())),
        ),
    ] {
        assert_eq!(decide(&candidate(|it| it.source = bundle(revision))), decision);
    }
}

#[test]
fn a_request_that_is_not_valid_is_rejected_with_the_reason() {
    let rejected = |change: fn(&mut Request)| match decide(&candidate(change)) {
        Decision::Number(Rejected, why) => why.reason(),
        other => panic!("{other:?}"),
    };
    assert_eq!(rejected(|it| it.is_cancelled = true), "Cancelled");
    assert_eq!(rejected(|it| it.is_allowed = false), "NamespaceNotAllowed");
    assert_eq!(rejected(|it| it.source = Source::Missing("no".to_owned())), "SourceMissing");
    assert_eq!(rejected(|it| it.source = Source::Invalid("no".to_owned())), "InvalidBundle");
    let bad = |revision| Source::Bundle {
        digest: "new".to_owned(),
        bad: Some("web is not ready".to_owned()),
        revision,
    };
    let known = candidate(|it| it.source = bad(Revision::Lacks(0)));
    assert!(matches!(decide(&known), Decision::Number(Rejected, Why::KnownBad(_))));
    let again = candidate(|it| {
        it.source = bad(Revision::Complete);
        it.retry_bad = true;
    });
    assert_eq!(decide(&again), Decision::Number(Waiting, Why::Valid));
    let many = candidate(|_| {}).with_record(|it| it.unmirrored = MOST_WAITING);
    assert!(matches!(decide(&many), Decision::Number(Rejected, Why::TooManyWaiting(_))));
    let full = candidate(|_| {}).with_record(|it| it.entries = MOST_ENTRIES);
    assert!(matches!(decide(&full), Decision::Rest(_)), "it waits for the mirror");
}

#[test]
fn a_fence_that_is_newer_than_the_record_raises_the_token() {
    let fence = |token| idle().with_report(|it| it.fence = Some((token, FenceMode::Exact)));
    assert_eq!(decide(&fence(9)), Decision::RaiseToken(10));
    assert_eq!(decide(&fence(i64::MAX)), Decision::RaiseToken(i64::MAX));
    assert!(matches!(decide(&fence(4)), Decision::Rest(_)));
}

#[test]
fn a_request_in_flight_that_is_not_wanted_is_rolled_back_and_its_bundle_is_not_bad() {
    for phase in [Applying, Verifying] {
        let cancelled = idle().flying(phase, |it| it.asked = asking(|it| it.is_cancelled = true));
        assert_eq!(decide(&cancelled), Decision::RollBack(Why::Cancelled, false));
        let unread = idle().flying(phase, |it| it.asked = Asked::Unread);
        assert_eq!(decide(&unread), Decision::ReadRequest("a".to_owned()));
        let gone = idle().flying(phase, |it| it.asked = Asked::Gone);
        assert_eq!(decide(&gone), Decision::RollBack(Why::Cancelled, false));
        let newer =
            idle().flying(phase, |_| {}).waiting(|it| it.asked = asking(|it| it.preempt = true));
        assert_eq!(decide(&newer), Decision::RollBack(Why::Preempted { by: 7 }, false));
        let waiting = idle().flying(phase, |_| {}).waiting(|_| {});
        assert!(matches!(decide(&waiting), Decision::Wait(..)));
    }
    let back = idle().flying(RollingBack, |it| it.asked = asking(|it| it.is_cancelled = true));
    assert!(matches!(decide(&back), Decision::Wait(_, 50)), "it is rolled back already");
}

#[test]
fn a_first_version_that_is_kept_has_nowhere_to_go() {
    let kept = idle().flying(Applying, |it| it.asked = Asked::Gone).with_record(|it| {
        it.good = None;
        it.first_install_failure = FirstInstallFailure::Keep;
    });
    assert!(matches!(decide(&kept), Decision::GiveUp(Why::KeptAsIs(_), false)));
    let removed = kept.with_record(|it| it.first_install_failure = FirstInstallFailure::Remove);
    assert_eq!(decide(&removed), Decision::RollBack(Why::Cancelled, false));
}

#[test]
fn a_request_that_waits_ends_for_a_stated_reason() {
    let ended = |facts: Facts| match decide(&facts) {
        Decision::EndQueued(phase, why) => (phase, why.reason()),
        other => panic!("{other:?}"),
    };
    let cancelled = idle().waiting(|it| it.asked = asking(|it| it.is_cancelled = true));
    assert_eq!(ended(cancelled), (Cancelled, "Cancelled"));
    assert_eq!(ended(idle().waiting(|it| it.asked = Asked::Gone)), (Cancelled, "Cancelled"));
    let unread = idle().waiting(|it| it.asked = Asked::Unread);
    assert_eq!(decide(&unread), Decision::ReadRequest("q".to_owned()));
    let bad = idle().waiting(|it| it.bad = Some("not ready".to_owned()));
    assert_eq!(ended(bad.clone()), (Failed, "KnownBad"));
    let again = idle().checked(|it| {
        it.bad = Some("not ready".to_owned());
        it.asked = asking(|it| it.retry_bad = true);
    });
    assert_eq!(decide(&again), Decision::Start);
    let failures = Some(Preflight { failures: 2, first: "no such kind".to_owned() });
    let checked = idle().waiting(|_| {}).with_report(|it| it.preflight = failures);
    assert_eq!(ended(checked), (Failed, "PreflightFailed"));
    let goes = idle().waiting(|_| {}).with_record(|it| it.is_terminating = true);
    assert_eq!(ended(goes), (Failed, "RecordDeleted"));
}

#[test]
fn a_request_that_cannot_start_in_time_says_what_it_waited_for() {
    let late = |it: &mut Queued| it.seconds = 3600;
    let reason = |facts: Facts| match decide(&facts) {
        Decision::EndQueued(Failed, why) => why.reason(),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(idle().waiting(late)), "AgentSilent");
    let flying = idle().flying(Applying, |_| {}).waiting(late);
    assert_eq!(reason(flying), "StartDeadline");
    let paused = idle().waiting(late).with_record(|it| it.is_paused = true);
    assert_eq!(reason(paused), "Paused");
    let bare = idle().checked(late).with_report(|it| it.fence = None);
    assert_eq!(reason(bare), "FenceMissing");
    let stuck = idle().checked(|it| {
        it.seconds = 3600;
        it.asked = asking(|it| it.drain_first = true);
    });
    assert_eq!(reason(stuck), "DrainStuck");
    let early = idle().waiting(|it| it.seconds = 3599);
    assert!(matches!(decide(&early), Decision::Wait(_, 1)));
}

#[test]
fn nothing_is_written_to_a_cluster_that_is_at_the_bundle_already() {
    let same = |facts: Facts| facts.waiting(|it| it.digest = "good".to_owned());
    assert_eq!(decide(&same(idle())), Decision::FoundThere);
    let unlike = [
        same(idle()).with_record(|it| it.is_degraded = true),
        same(idle()).with_report(|it| it.drifted = 1),
        same(idle()).with_report(|it| it.token = 3),
        same(idle()).with_report(|it| it.verdict = Verdict::Applied),
        same(idle()).flying(Applying, |_| {}),
        same(idle()).with_record(|it| it.good = None),
        idle().waiting(|it| {
            it.digest = "good".to_owned();
            it.asked = asking(|it| it.prune_data = true);
        }),
        idle().waiting(|it| {
            it.digest = "good".to_owned();
            it.asked = asking(|it| it.force = true);
        }),
    ];
    for facts in unlike {
        assert_ne!(decide(&facts), Decision::FoundThere, "{facts:?}");
    }
}

#[test]
fn the_agent_checks_a_request_before_the_cluster_is_drained_for_it() {
    let unnamed = idle().waiting(|it| it.is_named = false);
    assert_eq!(decide(&unnamed), Decision::NamePreflight);
    let drains = |it: &mut Queued| it.asked = asking(|it| it.drain_first = true);
    assert!(matches!(decide(&idle().waiting(drains)), Decision::Wait(..)), "it is not checked");
    assert_eq!(decide(&idle().checked(drains)), Decision::AddDrain);
    let paused = idle().checked(drains).with_record(|it| it.is_paused = true);
    assert_ne!(decide(&paused), Decision::AddDrain);
}

#[test]
fn a_drain_that_nobody_waits_for_is_taken_away_after_a_live_read_of_the_record() {
    let drained = |uid: &str, facts: Facts| {
        let uid = uid.to_owned();
        facts.with_cluster(|it| it.drains = vec![uid])
    };
    assert_eq!(decide(&drained("x", idle())), Decision::ReadRecord);
    let live = |is| drained("x", idle()).with_record(|it| it.is_live = Some(is));
    assert_eq!(decide(&live(true)), Decision::RemoveDrains);
    assert!(matches!(decide(&live(false)), Decision::Rest(_)), "the cache is behind");
    let degraded = drained("x", idle()).with_record(|it| it.is_degraded = true);
    assert!(matches!(decide(&degraded), Decision::Rest(_)), "nothing returns to it");
    assert!(matches!(decide(&drained("q", idle().waiting(|_| {}))), Decision::Wait(..)));
    let flying = idle().flying(Applying, |_| {});
    assert!(matches!(decide(&drained("a", flying)), Decision::Wait(..)));
}

#[test]
fn a_request_starts_once_it_is_checked_fenced_and_drained_and_nothing_is_in_flight() {
    let ready = || idle().checked(|_| {});
    assert_eq!(decide(&ready()), Decision::Start);
    let fence = |mode| ready().with_report(|it| it.fence = mode);
    assert_eq!(decide(&fence(Some((4, FenceMode::Probed)))), Decision::Start);
    let missing = Why::Waiting(Waits::Fence("west".to_owned()));
    for none in [None, Some((4, FenceMode::None))] {
        assert_eq!(decide(&fence(none)), Decision::Explain(missing.clone()));
        let anyway = fence(none).with_record(|it| it.fence = FencePolicy::BestEffort);
        assert_eq!(decide(&anyway), Decision::Start);
    }
    let paused = ready().with_record(|it| it.is_paused = true);
    assert!(matches!(decide(&paused), Decision::Explain(Why::Waiting(Waits::Paused(_)))));
    assert!(matches!(decide(&ready().flying(Verifying, |_| {})), Decision::Wait(..)));
    let answer = Some(Preflight { failures: 0, first: String::new() });
    let unnamed = idle().waiting(|it| it.is_named = false).with_report(|it| it.preflight = answer);
    assert_eq!(decide(&unnamed), Decision::NamePreflight);
}

#[test]
fn a_drained_cluster_is_read_live_before_its_update_starts() {
    let checked = || idle().checked(|it| it.asked = asking(|it| it.drain_first = true));
    let at = |drains: &[&str], drained: &[&str], is_live| {
        let own = |all: &[&str]| all.iter().map(|uid| (*uid).to_owned()).collect::<Vec<_>>();
        checked().with_cluster(|it| {
            it.drains = own(drains);
            it.drained = own(drained);
            it.is_live = is_live;
        })
    };
    assert!(matches!(
        decide(&at(&["q"], &[], true)),
        Decision::Explain(Why::Waiting(Waits::Drain(_)))
    ));
    assert_eq!(decide(&at(&["q"], &["q"], false)), Decision::ReadCluster);
    assert_eq!(decide(&at(&["q"], &["q"], true)), Decision::Start);
    assert_eq!(decide(&at(&[], &["q"], true)), Decision::AddDrain, "somebody took it away");
}

#[test]
fn a_verdict_counts_only_for_the_token_of_the_target() {
    let verify = idle().flying(Applying, |_| {}).answered(Verdict::Applied);
    assert_eq!(decide(&verify), Decision::Verify);
    let at_once = idle().flying(Applying, |_| {}).answered(Verdict::Soaked);
    assert_eq!(decide(&at_once), Decision::Verify);
    let well = idle().flying(Verifying, |_| {}).answered(Verdict::Soaked);
    assert_eq!(decide(&well), Decision::Succeed);
    let back = idle().flying(RollingBack, |_| {}).answered(Verdict::Soaked);
    assert_eq!(decide(&back), Decision::EndRolledBack);
    for facts in [verify, at_once, well, back] {
        let old = facts.with_report(|it| it.token = 4);
        assert!(matches!(decide(&old), Decision::Wait(..)), "{old:?}");
    }
    let soaking = idle().flying(Verifying, |_| {}).answered(Verdict::Applied);
    assert!(matches!(decide(&soaking), Decision::Wait(_, 580)));
}

#[test]
fn a_failure_or_a_deadline_rolls_back_and_proves_the_bundle_bad() {
    for phase in [Applying, Verifying] {
        let failed = idle().flying(phase, |_| {}).answered(Verdict::Applying);
        let failed = failed.with_report(|it| {
            it.failed = 2;
            it.first = "web".to_owned();
        });
        let why = Why::Unhealthy { count: 2, first: "web".to_owned() };
        assert_eq!(decide(&failed), Decision::RollBack(why, true));
        let old = failed.with_report(|it| it.token = 4);
        assert!(matches!(decide(&old), Decision::Wait(..)), "it is about another target");
    }
    let late = |it: &mut Active| it.started_seconds = 600;
    let answered = idle().flying(Verifying, late).answered(Verdict::Applied);
    let why = Why::DeadlinePassed { seconds: 600, first: String::new() };
    assert_eq!(decide(&answered), Decision::RollBack(why, true));
    let away = Decision::RollBack(Why::ClusterUnreachable { seconds: 600 }, false);
    let silent = answered.with_cluster(|it| it.is_reachable = false);
    assert_eq!(decide(&silent), away);
    assert_eq!(decide(&idle().flying(Applying, late)), away, "the agent never answered");
    let lost = idle().flying(Applying, |_| {}).answered(Verdict::Applying).with_report(|it| {
        it.failed = 1;
        it.is_revision_missing = true;
    });
    assert!(matches!(decide(&lost), Decision::RollBack(Why::RevisionMissing(_), false)));
}

#[test]
fn a_rollback_is_tried_again_and_then_given_up() {
    let late = |tries| {
        idle().flying(RollingBack, |it| {
            it.phase_seconds = 60;
            it.tries = tries;
        })
    };
    assert_eq!(decide(&late(0)), Decision::TryAgain);
    assert_eq!(decide(&late(1)), Decision::TryAgain);
    let given_up = Why::RollbackDeadline { tries: 3, first: String::new() };
    assert_eq!(decide(&late(2)), Decision::GiveUp(given_up, false));
    let lost = idle().flying(RollingBack, |_| {}).answered(Verdict::Applying);
    let lost = lost.with_report(|it| it.is_revision_missing = true);
    assert!(matches!(decide(&lost), Decision::GiveUp(Why::RevisionMissing(_), false)));
}

#[test]
fn entries_beyond_the_history_are_dropped_once_their_outcome_is_known() {
    let surplus = |uid: &str, is_mirrored| Surplus { uid: uid.to_owned(), is_mirrored };
    let with = |all: Vec<Surplus>| idle().with_record(|it| it.surplus = all);
    let both = with(vec![surplus("u", None), surplus("v", Some(true))]);
    assert_eq!(decide(&both), Decision::Forget(vec!["v".to_owned()]));
    let unread = with(vec![surplus("u", None), surplus("v", Some(false))]);
    assert_eq!(decide(&unread), Decision::ReadRequests(vec!["u".to_owned()]));
    let behind = with(vec![surplus("v", Some(false))]);
    assert!(matches!(decide(&behind), Decision::Rest(_)), "the mirror has not shown it");
}

#[test]
fn a_bundle_without_a_name_is_deleted_part_by_part() {
    let with = |found| {
        let unnamed = Some(Unnamed { digest: "old".to_owned(), found });
        idle().with_record(|it| it.unnamed = unnamed)
    };
    let old = || "old".to_owned();
    assert_eq!(decide(&with(Sweep::Unread)), Decision::ReadUnnamed(old()));
    assert_eq!(decide(&with(Sweep::There(1))), Decision::DeletePart(old()));
    assert_eq!(decide(&with(Sweep::Named)), Decision::Swept(old()));
    assert_eq!(decide(&with(Sweep::Gone)), Decision::Swept(old()));
    let later = idle().with_record(|it| it.unnamed_in = Some(40));
    assert!(matches!(decide(&later), Decision::Wait(_, 40)));
}

#[test]
fn a_record_that_is_deleted_stays_until_every_outcome_is_known() {
    let goes = |facts: Facts| facts.with_record(|it| it.is_terminating = true);
    assert_eq!(decide(&goes(idle())), Decision::TakeFinalizerOff);
    let unknown = goes(idle()).with_record(|it| it.unmirrored = 1);
    assert!(matches!(decide(&unknown), Decision::Rest(_)));
    assert!(matches!(decide(&goes(idle().flying(Applying, |_| {}))), Decision::Wait(..)));
    assert!(matches!(decide(&goes(candidate(|_| {}))), Decision::TakeFinalizerOff));
    let bare = goes(idle()).with_record(|it| it.has_finalizer = false);
    assert!(matches!(decide(&bare), Decision::Rest(_)));
}

#[test]
fn what_is_true_is_said_when_nothing_else_is_to_be_done() {
    let silent = |facts: Facts| Facts { is_said: false, ..facts };
    assert_eq!(decide(&silent(idle())), Decision::Say);
    assert_eq!(decide(&silent(idle().checked(|_| {}))), Decision::Start);
    let over = idle().checked(|it| it.reason = "Paused".to_owned()).flying(Applying, |_| {});
    assert_eq!(decide(&over), Decision::Explain(Why::Valid), "it is not paused any more");
}

#[test]
fn a_degraded_cluster_takes_the_next_request() {
    let degraded = |it: &mut Record| {
        it.is_degraded = true;
        it.good = Some(Good { version: 5, digest: "good".to_owned(), force: false });
    };
    assert_eq!(decide(&idle().checked(|_| {}).with_record(degraded)), Decision::Start);
}

#[test]
fn facts_are_read_back_as_they_were_written() {
    let facts = idle().flying(Applying, |_| {}).checked(|_| {});
    let text = serde_json::to_string(&facts).expect("facts can be written");
    assert_eq!(serde_json::from_str::<Facts>(&text).expect("and read"), facts);
    let (active, queued) = (active(Applying, |_| {}), queued(|_| {}));
    assert_eq!(facts.record.and_then(|it| it.active), Some(active));
    assert_eq!(queued.asked, Asked::Here(options()));
}
