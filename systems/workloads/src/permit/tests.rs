use super::*;
use crate::search::states_until_broken;
use interlock_checker::symmetry::assert_symmetric;
use interlock_checker::{Options, check, check_mutants, reference};

const DEFAULT: [u8; 5] = [1, 2, 3, 1, 1];
const LIVE: [u8; 5] = [1, 2, 3, 0, 2];

/// The larger size is in `specs/runs.json` and `cargo xtask counts`.
#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in [(DEFAULT, (25_699, 6_366, 32)), (LIVE, (70_424, 16_418, 32))] {
        let counts = reference::explore(&Workloads::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn every_promise_holds_and_none_is_vacuous() {
    for size in [DEFAULT, LIVE] {
        let report = check(NAME, &Workloads::new(size, Rules::ALL), &Options::default()).unwrap();
        assert!(report.all_hold(), "{report:#?}");
        let unused = &report.never_taken;
        assert!(unused.iter().all(|action| action.explanation.is_some()), "{unused:?}");
    }
}

/// The lengths are TLC's, of the same rules switched off in the same sizes.
#[test]
fn each_mutant_goes_wrong_as_in_tlc() {
    let expected = [
        ("any-name", "PodsBounded", 6),
        ("cached-permit", "ReleasedIsStill", 15),
        ("look-before-withdrawing", "ReleasedIsStill", 14),
        ("locks-unread", "ReleasedIsStill", 16),
        ("pod-of-any-epoch", "OwnEpoch", 16),
        ("lock-by-uid", "OnePerName", 14),
    ];
    let mutants = Workloads::new(DEFAULT, Rules::ALL).mutants();
    for (mutant, (name, promise, states)) in mutants.iter().zip(expected) {
        assert_eq!((mutant.name.as_str(), &*mutant.breaks), (name, &[promise][..]));
        assert_eq!(states_until_broken(&mutant.model, promise), Some(states), "{name}");
    }
    assert_eq!(mutants.len(), expected.len());
}

#[test]
fn every_mutant_is_killed() {
    let model = Workloads::new(DEFAULT, Rules::ALL);
    let report = check_mutants(NAME, &model, &Options::default()).unwrap();
    assert!(report.all_killed());
    assert_eq!(report.unbroken, [""; 0]);
}

#[test]
fn makers_are_interchangeable() {
    assert_symmetric(&Workloads::new([2, 2, 3, 1, 2], Rules::ALL));
    let off = Rules { slots: false, permit_read: false, lock_by_name: false, ..Rules::ALL };
    assert_symmetric(&Workloads::new([2, 2, 3, 1, 2], off));
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let mut rng = Rng::new(1);
    for size in [KEYS.map(|key| key.most as u8), DEFAULT] {
        let model = Workloads::new(size, Rules::ALL);
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn a_state_is_shown_as_tla_writes_it() {
    let model = Workloads::new(LIVE, Rules::ALL);
    let names = model.actions();
    let mut state = model.initial().remove(0);
    for wanted in
        ["Permit", "Bring", "Observe(m2)", "Create(m2)", "TakeLock(1)", "LookPermit", "Start"]
    {
        let mut steps = Steps::default();
        model.next(&state, &mut steps);
        let is_wanted = |action: u16| names[usize::from(action)].name == wanted;
        let step = steps.as_slice().iter().find(|step| is_wanted(step.action));
        state = step.expect("the step is possible").to.clone();
    }
    let shown = model.describe(&state);
    let value = |name| &shown.iter().find(|(variable, _)| *variable == name).unwrap().1;
    assert_eq!(
        value("pods"),
        "<<[uid |-> 1, ep |-> 1, go |-> FALSE], [uid |-> 0, ep |-> 0, go |-> FALSE]>>"
    );
    assert_eq!(value("mv"), "[m1 |-> [mk |-> 0, names |-> {}], m2 |-> [mk |-> 1, names |-> {}]]");
    assert_eq!(value("hand"), "{}");
    assert_eq!(value("proc"), "{[s |-> 1, u |-> 1, ep |-> 1, of |-> 1]}");
    assert_eq!(value("still"), "\"no\"");
}
