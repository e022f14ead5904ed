use super::*;
use interlock_checker::reference;
use interlock_checker::symmetry::assert_symmetric;

const SMALLEST: [u8; 5] = [1, 1, 1, 0, UNLIMITED];

#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in [
        ([1, 1, 1, 9, UNLIMITED], (88_625, 6_336, 16)),
        ([2, 1, 2, 3, UNLIMITED], (651_315, 57_771, 24)),
        ([1, 2, 1, 4, UNLIMITED], (9_949, 968, 14)),
        ([1, 2, 1, 9, 2], (15_472, 3_364, 14)),
        ([1, 1, 2, 9, 1], (6_337, 1_666, 16)),
    ] {
        let counts = reference::explore(&DpuMultiTenant::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn each_mutant_goes_wrong_as_in_tlc() {
    let expected = [
        ("early-return", [1, 1, 2, 0, UNLIMITED], ("TenantIsolation", 11), (3_621, 900, 25)),
        ("finalize-programmed", SMALLEST, ("HardwareIsOwned", 9), (85, 36, 15)),
        ("program-deleting", SMALLEST, ("HardwareIsOwned", 10), (221, 87, 16)),
    ];
    for (name, size, violated, totals) in expected {
        let mutants = DpuMultiTenant::new(size, Rules::ALL).mutants();
        let mutant = mutants.iter().find(|mutant| mutant.name == name).unwrap();
        let counts = reference::explore(&mutant.model);
        assert!(counts.violated.contains(&violated), "{name}: {:?}", counts.violated);
        assert_eq!((counts.generated, counts.distinct, counts.depth), totals, "{name}");
    }
}

/// TLC says which promise breaks; that both have its states is all that can be seen here.
#[test]
fn the_mutants_that_merely_never_get_there_have_the_states_of_tlc() {
    let expected = [
        ("recovers-empty", "EventualConsistency", (171, 72, 13)),
        ("never-cleans-up", "ReclaimCompletes", (39, 21, 10)),
    ];
    let mutants = DpuMultiTenant::new(SMALLEST, Rules::ALL).mutants();
    for (mutant, (name, promise, totals)) in mutants.iter().skip(3).zip(expected) {
        let counts = reference::explore(&mutant.model);
        assert_eq!((mutant.name.as_str(), &*mutant.breaks), (name, &[promise][..]));
        assert!(mutant.model.properties().iter().any(|property| property.name == promise));
        assert_eq!((counts.generated, counts.distinct, counts.depth), totals, "{name}");
        assert_eq!(counts.violated, [], "{name}");
    }
    assert_eq!(mutants.len(), 3 + expected.len());
}

#[test]
fn each_mutant_breaks_in_the_smallest_size_too() {
    for mutant in DpuMultiTenant::new(SMALLEST, Rules::ALL).mutants().iter().take(3) {
        let violated = reference::explore(&mutant.model).violated;
        assert!(violated.iter().any(|(name, _)| mutant.breaks.contains(name)), "{}", mutant.name);
    }
}

#[test]
fn nodes_dpus_and_tenants_are_interchangeable() {
    assert_symmetric(&DpuMultiTenant::new([3, 2, 3, 9, 3], Rules::ALL));
    assert_symmetric(&DpuMultiTenant::new([2, 2, 2, 9, UNLIMITED], Rules::ALL));
    assert_eq!(DpuMultiTenant::new(SMALLEST, Rules::ALL).symmetries(), 0);
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let mut rng = Rng::new(1);
    let [nodes, dpus, tenants, kinds, _] = KEYS.map(|key| key.most as u8);
    // The counter is widest just below "any number", which needs none.
    for faults in [UNLIMITED - 1, UNLIMITED] {
        let model = DpuMultiTenant::new([nodes, dpus, tenants, kinds, faults], Rules::ALL);
        for _ in 0..1_000 {
            let state = State::arbitrary(&model, &mut rng);
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn every_invariant_could_be_broken_unless_it_says_why_not() {
    let model = DpuMultiTenant::new([2, 2, 2, 9, 1], Rules::ALL);
    let mut rng = Rng::new(1);
    let states: Vec<_> = (0..1_000).map(|_| State::arbitrary(&model, &mut rng)).collect();
    for invariant in model.invariants() {
        let could_break = states.iter().any(|state| !(invariant.holds)(state));
        assert_eq!(could_break, invariant.unbreakable.is_none(), "{}", invariant.name);
    }
}

#[test]
fn actions_are_numbered_in_the_order_of_their_names() {
    let model = DpuMultiTenant::new([2, 2, 2, 9, 1], Rules::ALL);
    let actions = model.actions();
    let name = |id: u16| actions[usize::from(id)].name.as_str();
    let about = actions::About { dpu: 1, tenant: 0, node: 1 };
    assert_eq!(name(model.numbering.id(Kind::DpuFinalize, about)), "DPUFinalize(r1, d2, t1, n2)");
    assert_eq!(name(model.numbering.id(Kind::PowerOff, about)), "PowerOff(r1)");
    assert_eq!(name(model.numbering.id(Kind::MgmtReturn, about)), "MgmtReturn(t1, n2)");
}
