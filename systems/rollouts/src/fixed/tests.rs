use super::*;
use interlock_checker::reference;
use interlock_checker::symmetry::assert_symmetric;
use std::collections::HashSet;

fn mutant(requests: usize, workers: usize, name: &str) -> UpdateCluster {
    let mut mutants = UpdateCluster::new(requests, workers, 1).mutants();
    mutants.remove(mutants.iter().position(|mutant| mutant.name == name).unwrap()).model
}

fn broken_step_rules(model: &UpdateCluster) -> HashSet<&'static str> {
    let (rules, mut broken) = (model.step_rules(), HashSet::new());
    let (mut seen, mut steps) = (HashSet::new(), Steps::default());
    let mut open = model.initial();
    while let Some(state) = open.pop() {
        steps.clear();
        model.next(&state, &mut steps);
        for step in steps.as_slice() {
            let forbids = |rule: &&StepRule<State>| !(rule.allows)(&state, &step.to);
            broken.extend(rules.iter().filter(forbids).map(|rule| rule.name));
            if seen.insert(model.pack(&step.to)) {
                open.push(step.to.clone());
            }
        }
    }
    broken
}

#[test]
fn the_counts_are_those_of_tlc_and_all_invariants_hold() {
    for (requests, workers, crashes, generated, distinct, depth) in [
        (1, 1, 0, 19, 19, 10),
        (1, 1, 1, 35, 32, 11),
        (2, 1, 0, 428, 254, 19),
        (2, 1, 1, 920, 498, 20),
        (2, 2, 0, 670, 352, 19),
        (2, 2, 1, 1_556, 714, 20),
        (3, 2, 0, 17_024, 6_440, 28),
        (3, 2, 1, 40_106, 13_679, 29),
    ] {
        let model = UpdateCluster::new(requests, workers, crashes);
        let counts = reference::explore(&model);
        assert_eq!(
            (counts.generated, counts.distinct, counts.depth),
            (generated, distinct, depth),
            "{}",
            model.size()
        );
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{}", model.size());
        assert!(broken_step_rules(&model).is_empty(), "{}", model.size());
    }
}

#[test]
fn each_broken_rule_shows_in_the_invariant_that_guards_it() {
    for (name, violated) in [
        ("lock-never-taken", ("LockMeansWork", 5)),
        ("late-worker-keeps-lock", ("LockMeansWork", 9)),
        ("older-stays-queued", ("AtMostOneQueued", 7)),
        ("crash-unnoticed", ("PartialIffWorking", 7)),
        ("idle-spawn", ("LastOKSucceeded", 13)),
    ] {
        let counts = reference::explore(&mutant(2, 2, name));
        assert_eq!(counts.violated.first(), Some(&violated), "{name}");
    }
}

#[test]
fn each_rule_for_steps_can_be_broken() {
    for (name, rule) in [
        ("outdated-applied", "NoApplicationOfOutdatedReq"),
        ("applied-rejected", "FinalIsFinal"),
        ("lock-never-taken", "LastOKMonotone"),
    ] {
        let broken = broken_step_rules(&mutant(2, 2, name));
        assert!(broken.contains(rule), "{name} breaks {broken:?}");
    }
}

#[test]
fn without_rollback_the_cluster_is_left_failed() {
    assert_eq!(reference::explore(&mutant(1, 1, "no-rollback")).deadlock, Some(7));
}

#[test]
fn any_state_of_the_largest_size_comes_back_from_its_bits() {
    let model = UpdateCluster::new(MOST_REQUESTS, MOST_WORKERS, 3);
    let mut rng = Rng::new(1);
    for _ in 0..1_000 {
        let state = model.arbitrary(&mut rng).unwrap();
        assert_eq!(model.unpack(&model.pack(&state)), state);
    }
}

#[test]
fn requests_and_workers_are_interchangeable() {
    assert_symmetric(&UpdateCluster::new(3, 2, 1));
}
