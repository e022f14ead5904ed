use super::*;
use interlock_checker::reference;
use interlock_checker::symmetry::assert_symmetric;

fn sized(clusters: usize) -> KcpStorageFixed {
    let size = Size::parse(&format!("clusters={clusters}")).unwrap();
    KcpStorageFixed::from_size(&size).unwrap()
}

#[test]
fn the_counts_are_those_of_tlc() {
    for (clusters, generated, distinct, depth) in
        [(1, 107, 50, 12), (2, 2_769, 752, 22), (3, 46_657, 8_960, 32)]
    {
        let counts = reference::explore(&sized(clusters));
        assert_eq!(
            (counts.generated, counts.distinct, counts.depth),
            (generated, distinct, depth),
            "clusters={clusters}"
        );
        assert_eq!((counts.violated, counts.deadlock), (vec![], None));
    }
}

#[test]
fn each_broken_rule_breaks_its_promise_after_as_many_states_as_in_tlc() {
    let broken = [
        ("release-unasked", vec![("Inv_OnlyOwnerUses", 5), ("Inv_UsableByAtMostOne", 11)]),
        ("assign-on-old-report", vec![("Inv_OnlyOwnerUses", 12), ("Inv_UsableByAtMostOne", 18)]),
        (
            "assign-twice",
            vec![
                ("Inv_NSAtMostOneCluster", 3),
                ("Inv_PVCAtMostOneCluster", 4),
                ("Inv_UsableByAtMostOne", 8),
            ],
        ),
        ("lists-the-past", vec![("Inv_OnlyOwnerUses", 10), ("Inv_UsableByAtMostOne", 15)]),
    ];
    for (mutant, (name, violated)) in sized(1).mutants().iter().zip(broken) {
        assert_eq!(mutant.name, name);
        assert_eq!(reference::explore(&mutant.model).violated, violated, "{name}");
    }
}

#[test]
fn links_are_cut_and_healed_without_touching_anything_else() {
    let model = sized(2);
    let mut steps = Steps::default();
    model.next(&State::default(), &mut steps);
    assert!(steps.as_slice().iter().all(|step| step.to.links == 0));
    let state = model.with_flag_bits(&State::default(), 2);
    assert_eq!((state.links, model.flag_bits(&state)), (2, 2));
}

#[test]
fn any_state_of_any_size_fits_and_comes_back_as_it_was() {
    let mut rng = Rng::new(1);
    for model in [sized(1), sized(MOST), sized(MOST).mutants().remove(3).model] {
        let arbitrary = (0..1_000).filter_map(|_| model.arbitrary(&mut rng));
        for state in model.initial().into_iter().chain(arbitrary) {
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn clusters_are_interchangeable() {
    assert_symmetric(&sized(3));
}
