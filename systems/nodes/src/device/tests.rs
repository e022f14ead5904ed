use super::*;
use interlock_checker::symmetry::assert_symmetric;
use interlock_checker::{Options, check, check_mutants, reference};

const DEFAULT: [u8; 6] = [2, 2, 2, 1, 1, 0];

fn without(change: fn(&mut Rules)) -> Rules {
    let mut rules = Rules::ALL;
    change(&mut rules);
    rules
}

/// The larger sizes are in `specs/runs.json` and `cargo xtask counts`.
#[test]
fn the_counts_are_those_of_tlc() {
    for (size, expected) in
        [([2, 1, 2, 2, 2, 0], (119_607, 29_281, 40)), (DEFAULT, (332_027, 51_390, 34))]
    {
        let counts = reference::explore(&NodesDevice::new(size, Rules::ALL));
        assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{size:?}");
        assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size:?}");
    }
}

#[test]
fn every_promise_holds_and_none_is_vacuous() {
    for size in [[2, 1, 2, 2, 2, 0], DEFAULT] {
        let model = NodesDevice::new(size, Rules::ALL);
        let report = check(NAME, &model, &Options::default()).unwrap();
        assert!(report.all_hold(), "{report:#?}");
        let unused = &report.never_taken;
        assert!(unused.iter().all(|action| action.explanation.is_some()), "{unused:?}");
    }
}

/// The lengths are TLC's, of the same rules switched off in the same sizes.
#[test]
fn each_mutant_goes_wrong_as_in_tlc() {
    const CLEAN: &str = "PoolIsClean";
    const ISOLATION: &str = "TenantIsolation";
    const OWNED: &str = "HardwareIsOwned";
    const REPORTS: &str = "ReportsStayTrue";
    let (bare, faulty, replaced) = ([2, 2, 2, 1, 0, 1], [2, 2, 2, 1, 1, 1], [2, 2, 1, 2, 1, 1]);
    let expected = [
        ("no-floor", bare, vec![(CLEAN, 12), (ISOLATION, 15), (REPORTS, 8)]),
        ("report-before-raise", bare, vec![(CLEAN, 10), (ISOLATION, 13), (REPORTS, 7)]),
        ("compare-then-program", bare, vec![(CLEAN, 13), (ISOLATION, 17), (REPORTS, 9)]),
        ("forged-tenant", bare, vec![(OWNED, 4), (ISOLATION, 6)]),
        ("raise-to-epoch", bare, vec![("FloorsInOrder", 3)]),
        ("close-late-and-report-unread", bare, vec![(CLEAN, 12), (ISOLATION, 15), (REPORTS, 8)]),
        ("floor-not-durable", faulty, vec![(CLEAN, 13), (ISOLATION, 16), (REPORTS, 9)]),
        ("cached-attach", faulty, vec![(CLEAN, 12), (ISOLATION, 15), (REPORTS, 10)]),
        ("no-term", faulty, vec![(CLEAN, 12), (ISOLATION, 15), (REPORTS, 10)]),
        ("open-boot", faulty, vec![(CLEAN, 12), (ISOLATION, 15)]),
        ("old-evidence", faulty, vec![(CLEAN, 12), (ISOLATION, 15)]),
        ("adopted-at-zero-from-cache", faulty, vec![(REPORTS, 11)]),
        ("no-uid", replaced, vec![(CLEAN, 6), (ISOLATION, 9)]),
        ("report-of-any-uid", replaced, vec![(CLEAN, 6), (ISOLATION, 11)]),
    ];
    for (name, size, broken) in expected {
        let mutants = NodesDevice::new(size, Rules::ALL).mutants();
        let mutant = mutants.iter().find(|mutant| mutant.name == name).unwrap();
        assert_eq!(mutant.model.size(), NodesDevice::new(size, Rules::ALL).size(), "{name}");
        assert_eq!(*mutant.breaks, [broken[0].0], "{name}");
        let violated = reference::explore(&mutant.model).violated;
        for one in broken {
            assert!(violated.contains(&one), "{name}: {one:?} is not in {violated:?}");
        }
    }
}

#[test]
fn every_mutant_is_killed_from_the_default_size_too() {
    let model = NodesDevice::new(DEFAULT, Rules::ALL);
    let report = check_mutants(NAME, &model, &Options::default()).unwrap();
    for mutant in &report.mutants {
        assert!(mutant.killed, "{}", mutant.name);
    }
    assert_eq!(report.mutants.len(), 15);
    assert_eq!(report.unbroken, [""; 0]);
}

#[test]
fn a_lost_record_that_is_never_made_anew_keeps_the_node_from_the_pool() {
    let size = [2, 1, 1, 1, 1, 1];
    let model = NodesDevice::new(size, without(|rules| rules.adopts = false));
    assert_eq!(reference::explore(&model).distinct, 243);
    let options = Options { mutant: Some("never-adopts".to_owned()), ..Options::default() };
    let report = check_mutants(NAME, &NodesDevice::new(size, Rules::ALL), &options).unwrap();
    assert_eq!(report.mutants[0].broken.as_deref(), Some("ReclaimCompletes"));
}

/// Another rule covers each of them, so nothing breaks; but the states are other ones, and they are TLC's.
#[test]
fn what_another_rule_covers_has_the_states_of_tlc() {
    for (size, rules, distinct) in [
        (DEFAULT, without(|rules| rules.read_back = false), 51_390),
        (DEFAULT, without(|rules| rules.close_first = false), 65_334),
        (DEFAULT, without(|rules| rules.adopt_floor = false), 49_310),
        ([2, 2, 1, 2, 1, 0], without(|rules| rules.tag_uid = false), 16_141),
        (
            [2, 2, 2, 1, 1, 1],
            without(|rules| (rules.look_first, rules.power_fails) = (false, false)),
            16_232,
        ),
    ] {
        let counts = reference::explore(&NodesDevice::new(size, rules));
        assert_eq!((counts.distinct, counts.violated), (distinct, vec![]), "{rules:?}");
    }
}

/// The world refines the protocol with the steps that the controllers have beside it. Faults are not counted there, so
/// these are all states that any number of them leads to.
#[test]
fn the_steps_that_ship_beside_the_text_break_no_promise() {
    let counts = reference::explore(&NodesDevice::shipped(2, 1, 1, false));
    assert_eq!((counts.distinct, counts.violated), (27_024, vec![]));
}

#[test]
fn tenants_and_dpus_are_interchangeable() {
    assert_symmetric(&NodesDevice::new([2, 2, 3, 2, 2, 0], Rules::ALL));
    let cached = without(|rules| (rules.look_first, rules.port_lock) = (false, false));
    assert_symmetric(&NodesDevice::new(DEFAULT, cached));
    assert_eq!(NodesDevice::new(DEFAULT, Rules::ALL).symmetries(), 3);
}

#[test]
fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
    let largest = NodesDevice::new(KEYS.map(|key| key.most as u8), Rules::ALL);
    let mut models: Vec<_> = largest.mutants().into_iter().map(|mutant| mutant.model).collect();
    models.extend([largest, NodesDevice::new(DEFAULT, Rules::ALL)]);
    let mut rng = Rng::new(1);
    for model in models {
        for _ in 0..300 {
            let state = State::arbitrary(&model, &mut rng);
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}

#[test]
fn a_state_is_shown_as_tla_writes_it() {
    let model = NodesDevice::new([2, 2, 2, 1, 1, 1], Rules::ALL);
    let names = model.actions();
    let mut state = model.initial().remove(0);
    for wanted in ["Bind(t2)", "LookAttach(d1)", "LandAttach(d1)"] {
        let mut steps = Steps::default();
        model.next(&state, &mut steps);
        let is_wanted = |action: u16| names[usize::from(action)].name == wanted;
        let step = steps.as_slice().iter().find(|step| is_wanted(step.action));
        state = step.expect("the step is possible").to.clone();
    }
    let shown = model.describe(&state);
    let value = |name| &shown.iter().find(|(variable, _)| *variable == name).unwrap().1;
    assert_eq!(value("st"), "\"Bound\"");
    assert_eq!(value("owner"), "t2");
    assert_eq!(value("hw"), "(d1 :> {<<1, t2, 1>>} @@ d2 :> {})");
    assert_eq!(value("flight"), "{[k |-> \"attach\", d |-> d1, u |-> 1, t |-> t2, e |-> 1]}");
    assert_eq!(value("acked"), "(d1 :> <<0>> @@ d2 :> <<0>>)");
    assert_eq!(value("evid"), "(d1 :> <<0, 0>> @@ d2 :> <<0, 0>>)");
}
