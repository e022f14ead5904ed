use super::state::{Prime, Snapshot};
use super::*;
use interlock_checker::reference;
use interlock_checker::symmetry::assert_symmetric;
use std::collections::HashSet;

fn sized(size: &str) -> Volumes {
    Volumes::from_size(&Size::parse(size).unwrap()).unwrap()
}

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, generated, distinct, depth) in [
        ("images=1", 149, 76, 16),
        ("images=2", 1_190, 468, 18),
        ("images=3", 8_447, 2_668, 21),
        ("images=2,claims=2", 29_115, 7_856, 28),
        ("images=3,claims=2", 271_712, 61_780, 30),
        ("images=2,vandals=1", 2_033, 762, 21),
        ("images=3,vandals=1", 19_550, 5_732, 23),
    ] {
        let counts = reference::explore(&sized(size));
        let found = (counts.generated, counts.distinct, counts.depth);
        assert_eq!(found, (generated, distinct, depth), "{size}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size}");
    }
}

/// As TLC finds them, where the promise is one of the text.
const BROKEN: [(&str, &str, u32); 11] = [
    ("hold-late", "SourceLives", 9),
    ("hold-ignored", "SourceLives", 10),
    ("destination-goes-early", "SourceLives", 10),
    ("hold-no-finalizer", "HeldExists", 9),
    ("latest-deleted", "LIExists", 5),
    ("publish-before-ready", "LatestIsReady", 3),
    ("hold-before-ready", "BoundIsPopulated", 12),
    ("use-before-ready", "BoundIsPopulated", 10),
    ("drop-before-bound", "NeverLost", 10),
    ("no-retain", "HandedOverIsKept", 9),
    ("drop-without-retain", "NeverLost", 9),
];

#[test]
fn each_broken_rule_breaks_its_promise_after_as_many_states_as_in_tlc() {
    for mutant in sized("images=1").mutants() {
        let violated = reference::explore(&mutant.model).violated;
        let Some((name, promise, length)) =
            BROKEN.into_iter().find(|(name, ..)| *name == mutant.name)
        else {
            assert!(["EventuallyBound", "HoldsEnd"].contains(&mutant.breaks[0]), "{}", mutant.name);
            assert_eq!(violated, [], "{}", mutant.name);
            continue;
        };
        assert_eq!(mutant.breaks, [promise], "{name}");
        assert!(violated.contains(&(promise, length)), "{name}: {violated:?}");
    }
}

#[test]
fn a_claim_waits_for_ever_when_nothing_heals_it() {
    let mutants = sized("").mutants();
    let mutant = mutants.iter().find(|mutant| mutant.name == "no-second-choice").unwrap();
    let image = 0;
    let mut state = State { latest: Some(1), taken: 3, vandalised: 1, ..State::default() };
    state.snapshots[..2].copy_from_slice(&[Snapshot::Dying, Snapshot::Ready]);
    state.claims[0].phase = Phase::Pending;
    state.claims[0].holds = 1 << image;
    state.claims[0].prime = Prime::Pending(image);
    let by_populator = |model: &Volumes| {
        let mut steps = Steps::default();
        model.next(&state, &mut steps);
        let fair = model.populator_steps(0);
        steps.as_slice().iter().any(|step| fair.contains(&step.action))
    };
    assert!(!by_populator(&mutant.model));
    assert!(by_populator(&sized("vandals=1")));
}

#[test]
fn any_state_of_any_size_fits_and_comes_back_as_it_was() {
    let mut rng = Rng::new(1);
    for model in [sized(""), sized("images=6,claims=4,vandals=3"), sized("images=1")] {
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state, "{}", model.size());
        }
    }
}

#[test]
fn each_invariant_can_fail() {
    let mut rng = Rng::new(2);
    let model = sized("");
    let states: Vec<_> = (0..1_000).map(|_| model.arbitrary(&mut rng).unwrap()).collect();
    for invariant in model.invariants() {
        assert!(!states.iter().all(&invariant.holds), "{}", invariant.name);
    }
}

#[test]
fn whoever_deletes_even_the_latest_image_by_hand_breaks_only_what_speaks_of_it() {
    let model = Volumes { spares_none: true, ..sized("images=2,vandals=1") };
    let violated = reference::explore(&model).violated;
    let broken: Vec<_> = violated.iter().map(|(promise, _)| *promise).collect();
    assert_eq!(broken, ["LIExists", "LatestIsReady"]);
}

#[test]
fn images_and_claims_are_interchangeable() {
    assert_symmetric(&sized("images=3,claims=2,vandals=1"));
}

#[test]
fn every_action_has_its_own_name_and_the_populator_its_own_steps() {
    let model = sized("images=3,claims=2");
    let actions = model.actions();
    let names: HashSet<_> = actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(names.len(), actions.len());
    let steps = model.populator_steps(1);
    let mut families: Vec<_> =
        steps.iter().map(|id| actions[usize::from(*id)].name.replace("p2", "p")).collect();
    families.sort();
    assert_eq!(
        families.join(" "),
        "Drop(p) DropPrime(p) Gone(p) HealHold(p) HealPrime(p) Hold(p, s1) Hold(p, s2) Hold(p, s3) \
         Prime(p, s1) Prime(p, s2) Prime(p, s3) Rebind(p) Retain(p) Undo(p)"
    );
}
