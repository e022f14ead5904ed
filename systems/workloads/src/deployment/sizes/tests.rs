//! Which sizes may follow.

use super::*;
use crate::deployment::decide::Counts;
use crate::owned::Claim;

fn spec(replicas: u32, surge: u32, unavailable: u32) -> Spec {
    let strategy = Strategy::Rolling { surge, unavailable };
    Spec { replicas, strategy, is_paused: false, history: 10, deadline_seconds: None }
}

/// ReplicaSets, the oldest first, each with its size and how many of its pods are available; the last is the new one.
fn sets(sizes: &[(u32, u32)]) -> Vec<Set> {
    let set = |(place, (size, available)): (usize, &(u32, u32))| Set {
        name: format!("s{place}"),
        claim: Claim::Own,
        is_new: place + 1 == sizes.len(),
        is_terminating: false,
        size: *size,
        revision: place as u64 + 1,
        is_noted: true,
        is_pod_named: false,
        failure: None,
        pods: Counts { all: *size, active: *size, ready: *available, available: *available },
    };
    sizes.iter().enumerate().map(set).collect()
}

fn plan_of(desired: u32, sets: &[Set]) -> Plan {
    Plan { desired, sizes: sets.iter().map(|set| (set.name.clone(), set.size)).collect() }
}

fn after(spec: &Spec, desired_before: u32, sizes: &[(u32, u32)]) -> Option<Vec<u32>> {
    let sets = sets(sizes);
    let plan = plan_of(desired_before, &sets);
    let next = next(spec, Some(&plan), &sets)?;
    assert_eq!(next.desired, spec.replicas);
    Some(next.sizes.values().copied().collect())
}

fn rolled(spec: &Spec, sizes: &[(u32, u32)]) -> Option<Vec<u32>> {
    after(spec, spec.replicas, sizes)
}

#[test]
fn the_new_one_grows_while_there_is_room() {
    assert_eq!(rolled(&spec(3, 1, 0), &[(0, 0)]), Some(vec![3]), "the first of all");
    assert_eq!(rolled(&spec(3, 1, 0), &[(3, 3), (0, 0)]), Some(vec![3, 1]));
    assert_eq!(rolled(&spec(3, 2, 0), &[(3, 3), (0, 0)]), Some(vec![3, 2]));
    assert_eq!(rolled(&spec(3, 3, 0), &[(3, 3), (2, 0)]), Some(vec![3, 3]));
}

#[test]
fn an_old_one_shrinks_as_far_as_the_floor_allows() {
    assert_eq!(rolled(&spec(3, 1, 0), &[(3, 3), (1, 0)]), None, "the new pod is not available");
    assert_eq!(rolled(&spec(3, 1, 0), &[(3, 3), (1, 1)]), Some(vec![2, 1]));
    assert_eq!(rolled(&spec(3, 0, 1), &[(3, 3), (0, 0)]), Some(vec![2, 0]));
    assert_eq!(rolled(&spec(4, 0, 3), &[(4, 4), (0, 0)]), Some(vec![1, 0]));
    assert_eq!(rolled(&spec(3, 1, 0), &[(1, 1), (3, 3)]), Some(vec![0, 3]));
    assert_eq!(rolled(&spec(3, 1, 0), &[(0, 0), (3, 3)]), None, "all is done");
}

#[test]
fn pods_that_are_not_available_go_first_and_the_oldest_before_others() {
    assert_eq!(rolled(&spec(3, 1, 0), &[(1, 1), (2, 1), (1, 1)]), Some(vec![1, 1, 1]));
    assert_eq!(rolled(&spec(3, 1, 0), &[(1, 1), (2, 2), (1, 1)]), Some(vec![0, 2, 1]));
    assert_eq!(rolled(&spec(3, 1, 0), &[(3, 1), (1, 1)]), Some(vec![2, 1]), "as far as it helps");
}

#[test]
fn a_huge_size_is_worked_out_at_once() {
    let most = i32::MAX as u32;
    assert_eq!(rolled(&spec(3, 1, 0), &[(most, 3), (1, 1)]), Some(vec![2, 1]));
    assert_eq!(
        after(&spec(2, 1, 0), 5, &[(most, 1), (most, 1)]).map(|it| it.iter().sum::<u32>()),
        Some(3)
    );
    assert_eq!(rolled(&spec(3, 1, 0), &[(most, most), (most, most)]), Some(vec![most, 3]));
}

#[test]
fn a_new_one_that_is_too_large_shrinks() {
    assert_eq!(rolled(&spec(2, 1, 0), &[(5, 5)]), Some(vec![2]));
}

#[test]
fn of_one_replica_set_the_size_is_what_is_asked_for() {
    assert_eq!(after(&spec(5, 1, 0), 3, &[(0, 0), (3, 3)]), Some(vec![0, 5]));
    assert_eq!(after(&spec(1, 1, 0), 3, &[(3, 3), (0, 0)]), Some(vec![1, 0]));
    assert_eq!(after(&spec(2, 1, 0), 0, &[(0, 0), (0, 0)]), Some(vec![0, 2]));
    assert_eq!(after(&spec(0, 1, 0), 3, &[(3, 3)]), Some(vec![0]));
}

#[test]
fn of_several_each_gets_its_share() {
    assert_eq!(after(&spec(15, 3, 2), 10, &[(8, 8), (5, 2)]), Some(vec![11, 7]), "18 in all");
    assert_eq!(after(&spec(0, 1, 0), 3, &[(2, 2), (2, 1)]), Some(vec![0, 0]));
    let paused = Spec { is_paused: true, ..spec(6, 0, 1) };
    assert_eq!(after(&paused, 3, &[(2, 2), (1, 1)]), Some(vec![4, 2]), "paused or not");
}

#[test]
fn fewer_are_asked_for_and_what_is_available_stays() {
    // In proportion one available pod would go, and two that nobody can use would stay.
    assert_eq!(after(&spec(2, 0, 0), 4, &[(2, 2), (2, 0)]), Some(vec![2, 0]));
    assert_eq!(after(&spec(2, 1, 0), 4, &[(3, 3), (2, 2)]), Some(vec![2, 1]));
}

#[test]
fn while_paused_nothing_rolls() {
    let paused = Spec { is_paused: true, ..spec(3, 1, 0) };
    assert_eq!(rolled(&paused, &[(3, 3), (1, 1)]), None);
}

#[test]
fn recreated_pods_come_when_no_old_one_is_left() {
    let spec = Spec { strategy: Strategy::Recreate, ..spec(3, 0, 0) };
    assert_eq!(rolled(&spec, &[(3, 3), (0, 0)]), Some(vec![0, 0]));
    let mut going = sets(&[(0, 0), (0, 0)]);
    let plan = plan_of(3, &going);
    going[0].pods.all = 1;
    assert_eq!(next(&spec, Some(&plan), &going), None, "one is still going");
    going[0].pods.all = 0;
    let next = next(&spec, Some(&plan), &going).expect("there is room");
    assert_eq!(next.sizes.values().copied().collect::<Vec<_>>(), [0, 3]);
}

#[test]
fn a_plan_is_carried_out_when_no_pod_is_too_much_and_none_is_named() {
    let done = sets(&[(1, 1), (2, 2)]);
    let plan = plan_of(3, &done);
    assert!(is_carried_out(Some(&plan), &done) && is_carried_out(None, &done));
    let mut others = done.clone();
    others[0].size = 2;
    assert!(!is_carried_out(Some(&plan), &others));
    let mut named = done.clone();
    named[1].is_pod_named = true;
    assert!(!is_carried_out(Some(&plan), &named));
    let mut many = done.clone();
    many[1].pods.active = 3;
    assert!(!is_carried_out(Some(&plan), &many));
    many[1].is_terminating = true;
    assert!(is_carried_out(Some(&plan), &many), "that one is the collector's");
}
