//! What is granted, listed and said, and when.

use super::*;

/// A grant that its owner keeps, with nothing to say that was not said.
fn kept() -> Facts {
    let cluster = Cluster {
        unfit_reason: None,
        is_reachable: true,
        is_draining: false,
        is_asked_to_drain: false,
        grants: 1,
        live_state: Some(LiveState::Stays),
        copies: Vec::new(),
    };
    let grant = Grant {
        phase: Phase::Granted,
        owner: Some(Owner::Cluster(0)),
        target: Some(0),
        snapshots: Snapshots::Anywhere,
        because: None,
        pins: Vec::new(),
        is_written: true,
        has_copies: true,
        is_policy_current: true,
        said: Said { placed: current(Reason::Granted), ..Said::default() },
    };
    Facts {
        namespace: Namespace::Placed,
        has_finalizer: true,
        has_syncers: true,
        grant: Some(grant),
        truth: None,
        clusters: vec![cluster.clone(), cluster],
        desired: Desired::On(0),
        has_room_for_move: true,
        can_copy: true,
        claims: Vec::new(),
        is_ambiguous: false,
    }
}

fn current(reason: Reason) -> Option<SaidPlaced> {
    Some(SaidPlaced { reason, is_current: true })
}

fn with(change: impl FnOnce(&mut Facts, &mut Grant)) -> Facts {
    let mut facts = kept();
    let mut grant = facts.grant.take().expect("there is a grant");
    change(&mut facts, &mut grant);
    facts.grant = Some(grant);
    facts
}

fn told(why: Why, is_owner_back: bool, event: Option<News>) -> Decision {
    Decision::Tell(Tell { why, is_owner_back, event })
}

#[test]
fn what_the_placement_says_is_written_with_the_next_target_or_alone() {
    assert_eq!(decide(&kept()), Decision::Nothing(Why::Placed));
    let changed = |desired| {
        with(|facts, grant| {
            facts.desired = desired;
            grant.is_policy_current = false;
        })
    };
    assert_eq!(decide(&changed(Desired::On(0))), Decision::UpdatePolicy);
    assert_eq!(decide(&changed(Desired::On(1))), Decision::TargetWithPolicy(1));
    assert_eq!(decide(&with(|facts, _| facts.desired = Desired::On(1))), Decision::Target(1));
}

#[test]
fn only_claims_that_cannot_vanish_are_listed() {
    let claim = |is_held, is_listed| Claim { is_held, is_listed };
    let claims = vec![claim(true, true), claim(true, false), claim(false, false)];
    let listing = |phase| {
        with(|facts, grant| {
            facts.claims = claims.clone();
            grant.phase = phase;
        })
    };
    assert_eq!(decide(&listing(Phase::Granted)), Decision::ListClaims(vec![1]));
    let stops = told(Why::OwnerStops, false, None);
    assert_eq!(decide(&listing(Phase::Revoking)), stops, "an owner that stops makes none");
}

#[test]
fn a_second_placement_is_reported_with_the_grant_and_once_after_that() {
    let without_grant = |is_ambiguous| Facts { grant: None, is_ambiguous, ..kept() };
    assert_eq!(decide(&without_grant(false)), Decision::CreateGrant);
    assert_eq!(decide(&without_grant(true)), Decision::CreateAmbiguousGrant);
    for (is_reported, event) in [(false, Some(News::PlacementAmbiguous)), (true, None)] {
        let ambiguous = with(|facts, grant| {
            facts.is_ambiguous = true;
            grant.said.placed = Some(SaidPlaced { reason: Reason::Granted, is_current: false });
            grant.said.is_ambiguity_told = is_reported;
        });
        assert_eq!(decide(&ambiguous), told(Why::Placed, false, event));
    }
}

#[test]
fn a_claim_begins_with_its_pin_and_a_lone_copy_is_kept_beside_the_new_one() {
    use CopyState::{Diverged, Live, Superseded, Unclosed};
    let released = with(|facts, grant| {
        grant.phase = Phase::Released;
        grant.pins = vec![Pinned::Snapshot, Pinned::InPlace, Pinned::Nothing];
        grant.said.is_fenced = true;
        let missed = Some(Missed::NoHeartbeat);
        let said = SaidUnreachable { is_true: true, reason: missed, is_current: true };
        grant.said.unreachable = Some(said);
        facts.clusters[0].copies = vec![Superseded, Diverged, Live, Unclosed];
    });
    let giving = Giving {
        to: 0,
        begins: vec![Begin::Pinned, Begin::InPlace, Begin::Empty],
        taken_over: vec![Superseded, Live],
        is_owner_back: true,
        is_fence_over: true,
    };
    assert_eq!(decide(&released), Decision::Grant(giving));
}

#[test]
fn why_nothing_is_done_is_said_once_and_news_only_at_first() {
    let desired_unknown = |placed| {
        with(|facts, grant| {
            facts.desired = Desired::Unknown;
            grant.said.placed = placed;
        })
    };
    let why = Why::UnknownCluster;
    let reworded = Some(SaidPlaced { reason: Reason::UnknownCluster, is_current: false });
    let delayed = Some(News::MoveDelayed);
    for (placed, wanted) in [
        (None, told(why, false, delayed)),
        (current(Reason::Granted), told(why, false, delayed)),
        (reworded, told(why, false, None)),
        (current(Reason::UnknownCluster), Decision::Nothing(why)),
    ] {
        assert_eq!(decide(&desired_unknown(placed)), wanted, "{placed:?}");
        let mut unheld = desired_unknown(placed);
        unheld.grant.iter_mut().for_each(|grant| grant.phase = Phase::Released);
        let wanted = if wanted == Decision::Nothing(why) { wanted } else { told(why, false, None) };
        assert_eq!(decide(&unheld), wanted, "nothing moves: {placed:?}");
    }
}

#[test]
fn a_move_that_waits_for_others_is_no_warning_and_is_checked_again() {
    let full = |placed| {
        with(|facts, grant| {
            (facts.desired, grant.target) = (Desired::On(1), Some(1));
            facts.has_room_for_move = false;
            grant.said.placed = placed;
        })
    };
    let queued = told(Why::MovesFull, false, Some(News::MoveQueued));
    assert_eq!(decide(&full(None)), queued);
    let waits = Decision::Wait(Why::MovesFull, For::Moves);
    assert_eq!(decide(&full(current(Reason::MovesFull))), waits);
}

#[test]
fn room_on_a_cluster_is_checked_again_where_it_is_all_that_lacks() {
    let none_fits = |unfit_reason: UnfitReason| {
        with(|facts, grant| {
            (facts.desired, grant.phase, grant.target) = (Desired::Any, Phase::Released, None);
            facts
                .clusters
                .iter_mut()
                .for_each(|cluster| cluster.unfit_reason = Some(unfit_reason.clone()));
            grant.said.placed = current(Reason::NoneFits);
        })
    };
    let small = UnfitReason::TooSmall { needed_bytes: 2, free_bytes: 1 };
    assert_eq!(decide(&none_fits(small)), Decision::Wait(Why::NoneFits, For::Room));
    assert_eq!(decide(&none_fits(UnfitReason::NotReady)), Decision::Nothing(Why::NoneFits));
}

#[test]
fn an_owner_that_is_missed_is_news_and_so_that_it_is_back_is_written() {
    let said = |is_true, reason, is_current| Some(SaidUnreachable { is_true, reason, is_current });
    let missed = Some(Missed::NoHeartbeat);
    let why = Why::OwnerUnreachable;
    for (unreachable, wanted) in [
        (None, told(why, false, Some(News::OwnerUnreachable))),
        (said(false, None, false), told(why, false, Some(News::OwnerUnreachable))),
        (said(true, missed, false), told(why, false, None)),
        (said(true, missed, true), Decision::Nothing(why)),
    ] {
        let silent = with(|facts, grant| {
            facts.clusters[0].is_reachable = false;
            grant.said.unreachable = unreachable;
        });
        assert_eq!(decide(&silent), wanted, "{unreachable:?}");
    }
    let back = with(|_, grant| grant.said.unreachable = said(true, missed, true));
    assert_eq!(decide(&back), told(Why::Placed, true, None));
}
