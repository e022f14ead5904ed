use super::*;
use interlock_checker::reference;
use interlock_checker::symmetry::assert_symmetric;
use std::collections::HashSet;

fn model(size: &str) -> IrsaOperator {
    IrsaOperator::from_size(&Size::parse(size).unwrap()).unwrap()
}

fn mutant(size: &str, name: &str) -> IrsaOperator {
    let mut mutants = model(size).mutants();
    mutants.remove(mutants.iter().position(|mutant| mutant.name == name).unwrap()).model
}

#[test]
fn the_counts_are_those_of_tlc_and_all_invariants_hold() {
    for (size, generated, distinct, depth) in [
        ("workers=1,crashes=0,drifts=0,edits=0", 517, 318, 65),
        ("workers=2,crashes=0,drifts=0,edits=0", 22_293, 8_552, 62),
        ("workers=3,crashes=0,drifts=0,edits=0", 133_835, 39_402, 59),
        ("workers=1,crashes=1,drifts=1,edits=1", 245_212, 83_785, 89),
        ("workers=2,crashes=1,drifts=0,edits=0", 83_091, 28_002, 68),
    ] {
        let counts = reference::explore(&model(size));
        assert_eq!(
            (counts.generated, counts.distinct, counts.depth),
            (generated, distinct, depth),
            "{size}"
        );
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size}");
    }
}

#[test]
fn each_broken_rule_shows_in_the_invariant_that_guards_it() {
    let size = "workers=2,crashes=0,drifts=0,edits=0";
    for (name, violated) in [
        ("stuck-worker", vec![("NoWedge", 17)]),
        (
            "queue-without-memory",
            vec![("WorkqueueOK", 3), ("NoConcurrentProcessingOfSameResource", 10)],
        ),
        ("early-account", vec![("SaOnlyWithRole", 18)]),
    ] {
        assert_eq!(reference::explore(&mutant(size, name)).violated, violated, "{name}");
    }
}

#[test]
fn without_resync_a_drift_is_never_repaired() {
    let size = "workers=1,crashes=0,drifts=1,edits=0";
    assert_eq!(reference::explore(&model(size)).deadlock, None);
    assert_eq!(reference::explore(&mutant(size, "no-resync")).deadlock, Some(66));
}

fn can_converge(model: &IrsaOperator, from: State) -> bool {
    let (mut seen, mut steps) = (HashSet::from([model.pack(&from)]), Steps::default());
    let mut open = vec![from];
    while let Some(state) = open.pop() {
        if state.has_converged() {
            return true;
        }
        steps.clear();
        model.next(&state, &mut steps);
        let new = steps.as_slice().iter().filter(|step| seen.insert(model.pack(&step.to)));
        open.extend(new.map(|step| step.to.clone()));
    }
    false
}

#[test]
fn a_leftover_policy_that_is_not_compared_stays_wrong() {
    let size = "workers=1,crashes=0,drifts=0,edits=0";
    let [first, left_over] = model(size).initial().try_into().unwrap();
    assert!(can_converge(&model(size), left_over.clone()));
    assert!(can_converge(&mutant(size, "leftover-kept"), first));
    assert!(!can_converge(&mutant(size, "leftover-kept"), left_over));
}

#[test]
fn an_edit_that_does_not_reach_the_policy_is_never_carried_out() {
    let size = "workers=1,crashes=0,drifts=0,edits=1";
    let edited = || {
        let mut steps = Steps::default();
        let mut policy_exists = model(size).initial().remove(0);
        policy_exists.policy.statement = Some(Statement::S1);
        model(size).next(&policy_exists, &mut steps);
        steps.as_slice().iter().find(|step| step.action == EDIT).unwrap().to.clone()
    };
    assert!(can_converge(&model(size), edited()));
    assert!(!can_converge(&mutant(size, "edit-ignored"), edited()));
}

#[test]
fn any_state_of_the_largest_size_comes_back_from_its_bits() {
    let (model, mut rng) = (model("workers=4,crashes=3,drifts=3,edits=3"), Rng::new(1));
    for _ in 0..1_000 {
        let state = model.arbitrary(&mut rng).unwrap();
        assert_eq!(model.unpack(&model.pack(&state)), state);
    }
}

#[test]
fn the_workers_are_interchangeable() {
    assert_symmetric(&model("workers=3"));
}
