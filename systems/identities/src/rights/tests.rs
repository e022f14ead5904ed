use super::*;
use interlock_checker::symmetry::assert_symmetric;
use interlock_checker::{Options, check, check_mutants, reference};

/// The size in which TLC checked what happens in the end.
const LIVE: [u8; 5] = [2, 2, 1, 1, 0];
const DEFAULT: [u8; 5] = [2, 2, 1, 2, 0];

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in [
        (LIVE, (164_005, 47_625, 43)),
        ([2, 3, 0, 2, 0], (927_426, 201_780, 41)),
        (DEFAULT, (992_636, 232_713, 48)),
        ([2, 2, 1, 2, 1], (895_876, 215_417, 47)),
        ([2, 3, 1, 1, 0], (1_558_463, 414_241, 51)),
        ([2, 3, 2, 1, 0], (3_390_593, 863_329, 63)),
    ] {
        let counts = reference::explore(&IdentitiesRights::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn every_promise_holds_and_none_is_vacuous() {
    for size in [LIVE, DEFAULT] {
        let model = IdentitiesRights::new(size, Rules::ALL);
        let report = check(NAME, &model, &Options::default()).unwrap();
        assert!(report.all_hold(), "{report:#?}");
        let unused = &report.never_taken;
        assert!(unused.iter().all(|action| action.explanation.is_some()), "{unused:?}");
    }
}

/// The world of the rooms is compared with a protocol that does more than the text (decision 27): nothing that must
/// never happen happens in it. Who closes the trust for ever gets nothing done, so it is not asked what happens in
/// the end: the world asks that of the rooms.
#[test]
fn what_ships_may_close_the_trust_again_and_breaks_no_promise_by_it() {
    let more = More { closes_again: true, any_faults: false };
    for (size, of_the_text) in [(LIVE, 47_625), (DEFAULT, 232_713)] {
        let model = IdentitiesRights { more, ..IdentitiesRights::new(size, Rules::ALL) };
        let counts = reference::explore(&model);
        assert_eq!((counts.violated, counts.deadlock), (vec![], None));
        assert!(counts.distinct > of_the_text, "nothing more happens in {size:?}");
    }
}

/// The lengths are TLC's, of the same rules switched off in the same sizes.
#[test]
fn each_mutant_goes_wrong_as_in_tlc() {
    let expected = [
        ("rights-not-awaited", "RightsFollowTheGrant", 2),
        ("trust-before-release", "RightsFollowTheGrant", 13),
        ("cached-grant", "RightsFollowTheGrant", 15),
        ("others-mark-believed", "RightsFollowTheGrant", 15),
        ("mark-not-read-live", "RightsFollowTheGrant", 16),
        ("mark-taken-over-at-once", "RightsFollowTheGrant", 16),
        ("own-late-call-ignored", "RightsFollowTheGrant", 16),
        ("no-fence", "FencedHasNoRights", 10),
        ("fence-before-close", "FencedHasNoRights", 16),
        ("closed-believed-at-once", "FencedHasNoRights", 16),
        ("fence-without-propagation", "FencedHasNoRights", 20),
        ("one-name-for-all-fences", "FencedHasNoRights", 33),
        ("opened-before-the-fence", "OwnerNotDenied", 13),
    ];
    let model = IdentitiesRights::new(DEFAULT, Rules::ALL);
    assert_eq!(model.mutants().len(), expected.len());
    for (name, broken, states) in expected {
        let options = Options { mutant: Some(name.to_owned()), ..Options::default() };
        let report = check_mutants(NAME, &model, &options).unwrap();
        let mutant = &report.mutants[0];
        assert_eq!((&*mutant.name, mutant.broken.as_deref()), (name, Some(broken)));
        assert_eq!(mutant.steps.map(|steps| steps + 1), Some(states), "{name}");
    }
}

#[test]
fn processes_are_interchangeable() {
    assert_symmetric(&IdentitiesRights::new([2, 3, 2, 2, 0], Rules::ALL));
    let all_off = Rules { live_grant: false, own_mark: false, live_mark: false, ..Rules::ALL };
    assert_symmetric(&IdentitiesRights::new(DEFAULT, all_off));
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let largest = KEYS.map(|key| key.most as u8);
    let cached = Rules { live_grant: false, ..Rules::ALL };
    let mut rng = Rng::new(1);
    for model in [IdentitiesRights::new(largest, cached), IdentitiesRights::new(LIVE, Rules::ALL)] {
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn a_cache_shows_each_grant_with_the_forced_epoch_that_it_had() {
    let cached = Rules { live_grant: false, ..Rules::ALL };
    let model = IdentitiesRights::new(DEFAULT, cached);
    let mut state = State::first();
    for action in [REVOKE, FORCE, GRANT] {
        let mut steps = Steps::default();
        model.next(&state, &mut steps);
        let step = steps.as_slice().iter().find(|step| step.action == action);
        state = step.expect("the step is possible").to.clone();
    }
    let shown = model.describe(&state);
    let value = |name| &shown.iter().find(|(variable, _)| *variable == name).unwrap().1;
    assert_eq!(
        value("hist"),
        "{<<[e |-> 1, ph |-> \"Granted\"], 0>>, <<[e |-> 1, ph |-> \"Revoking\"], 0>>, \
         <<[e |-> 1, ph |-> \"Fenced\"], 1>>, <<[e |-> 2, ph |-> \"Granted\"], 1>>}"
    );
    assert_eq!(value("g"), "[e |-> 2, ph |-> \"Granted\"]");
    assert_eq!(value("run"), "(A :> 0 @@ B :> 0)");
    assert_eq!(
        value("pend"),
        "(i1 :> [a |-> \"idle\", k |-> \"-\", d |-> 0, done |-> FALSE] @@ \
         i2 :> [a |-> \"idle\", k |-> \"-\", d |-> 0, done |-> FALSE])"
    );
}
