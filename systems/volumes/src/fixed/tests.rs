use super::*;
use interlock_checker::reference;
use interlock_checker::symmetry::assert_symmetric;

#[test]
fn the_counts_are_those_of_tlc_and_all_invariants_hold() {
    for (ids, claims, generated, distinct, depth) in [
        (4, 1, 149, 125, 7),
        (5, 1, 4_666, 2_926, 10),
        (6, 1, 98_107, 42_367, 13),
        (6, 2, 9_487, 4_987, 11),
        (7, 2, 701_072, 297_557, 14),
    ] {
        let counts = reference::explore(&VolSyncPopulator::new(ids, claims));
        assert_eq!(
            (counts.generated, counts.distinct, counts.depth),
            (generated, distinct, depth),
            "ids={ids},claims={claims}"
        );
        assert_eq!((counts.violated, counts.deadlock), (vec![], None));
    }
}

#[test]
fn every_rule_is_needed() {
    let broken: Vec<_> = VolSyncPopulator::new(5, 1)
        .mutants()
        .into_iter()
        .map(|mutant| {
            let counts = reference::explore(&mutant.model);
            (mutant.name, counts.violated.first().copied(), counts.deadlock.is_some())
        })
        .collect();
    let expected = [
        ("delete-latest", Some(("LatestImageExists", 4)), false),
        ("unrecorded-finish", Some(("OnePVperClaim", 8)), true),
        ("early-bind", Some(("BoundIsPopulated", 6)), true),
        ("unprotected", Some(("ImageInUseExists", 8)), true),
        ("collect-held", Some(("ImageInUseExists", 9)), true),
        // No state is wrong, but it comes to rest with an old image that nobody will remove.
        ("endless-hold", None, true),
    ];
    assert_eq!(broken, expected.map(|(name, first, rests)| (name.to_owned(), first, rests)));
}

#[test]
fn too_few_ids_for_the_claims_are_refused() {
    let size = Size::parse("ids=5,claims=2").unwrap();
    assert!(matches!(VolSyncPopulator::from_size(&size), Err(SizeError::Meaningless(_))));
}

#[test]
fn any_state_of_the_largest_size_comes_back_from_its_bits() {
    let (model, mut rng) = (VolSyncPopulator::new(MOST, 2), Rng::new(1));
    let claim = Object::Claim { source: 6, phase: Phase::Bound, image: Some(6), volume: Some(6) };
    let widest = State { objects: [claim; MOST], used: 0x7f, choice: [Some(6); MOST] };
    assert_eq!(model.unpack(&model.pack(&widest)), widest);
    for _ in 0..1_000 {
        let state = model.arbitrary(&mut rng).unwrap();
        assert_eq!(model.unpack(&model.pack(&state)), state);
    }
}

#[test]
fn the_ids_are_interchangeable() {
    assert_symmetric(&VolSyncPopulator::new(5, 1));
}
