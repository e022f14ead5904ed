//! Temporal properties: the mistakes that checkers are known for, and a second opinion by brute force.

mod support;

use interlock_checker::{Rng, Verdict, check};
use support::{Drawn, Shape, thorough, verdict};

fn graph(edges: &[(u8, u16, u8)], formula: Shape) -> Drawn {
    let states = edges.iter().map(|(from, _, to)| from.max(to) + 1).max().unwrap_or(1);
    let actions = edges.iter().map(|(_, action, _)| action + 1).max().unwrap_or(1);
    let (initial, edges) = (vec![0], edges.to_vec());
    Drawn { states, initial, actions, edges, formulas: vec![formula], ..Drawn::default() }
}

#[test]
fn eventually_always_is_not_dropped() {
    let mut model = graph(&[(0, 0, 1), (1, 0, 0)], Shape::EventuallyAlways(0b10));
    model.weak = vec![vec![0]];
    assert_eq!(verdict(&model), Verdict::Violated);
    model.edges = vec![(0, 0, 1)];
    assert_eq!(verdict(&model), Verdict::Holds);
}

#[test]
fn a_model_may_stutter_for_ever_unless_fairness_forbids_it() {
    let mut model = graph(&[(0, 0, 1)], Shape::Eventually(0b10));
    assert_eq!(verdict(&model), Verdict::Violated);
    model.weak = vec![vec![0]];
    assert_eq!(verdict(&model), Verdict::Holds);
}

#[test]
fn a_deadlock_is_a_stutter_for_ever() {
    let mut model = graph(&[(0, 0, 1)], Shape::AlwaysEventually(0b01));
    model.weak = vec![vec![0]];
    let report = check("drawn", &model, &thorough()).unwrap();
    assert_eq!(report.properties[0].verdict, Verdict::Violated);
    assert_eq!(report.properties[0].prefix_steps, Some(1));
    assert_eq!(report.properties[0].loop_steps, Some(0));
}

#[test]
fn fairness_is_judged_on_the_part_where_the_goal_is_missed_not_on_the_whole_component() {
    // 0 and 1 and 2 are one component, in which action 1 is taken (1 -> 2). Inside "never 2" it is
    // not, so the loop 0, 1 is unfair to it and the property holds.
    let mut model = graph(
        &[(0, 0, 1), (1, 0, 0), (0, 1, 2), (1, 1, 2), (2, 0, 0)],
        Shape::AlwaysEventually(0b100),
    );
    model.weak = vec![vec![0], vec![1]];
    assert_eq!(verdict(&model), Verdict::Holds);
    // If leaving is possible in one state only, weak fairness lets the loop go on; strong does not.
    model.edges.retain(|edge| *edge != (0, 1, 2));
    assert_eq!(verdict(&model), Verdict::Violated);
    model.strong = vec![model.weak.remove(1)];
    assert_eq!(verdict(&model), Verdict::Holds);
}

#[test]
fn an_unfair_loop_is_not_reported() {
    let mut model = graph(&[(0, 0, 0), (0, 1, 1)], Shape::Eventually(0b10));
    model.weak = vec![vec![1]];
    assert_eq!(verdict(&model), Verdict::Holds);
}

#[test]
fn a_step_that_changes_nothing_is_neither_possible_nor_taken() {
    // Fairness of a stuttering action asks for nothing.
    let mut model = graph(&[(0, 0, 0), (0, 1, 1)], Shape::Eventually(0b10));
    model.weak = vec![vec![0]];
    assert_eq!(verdict(&model), Verdict::Violated);
}

#[test]
fn the_loop_that_is_shown_is_a_path_of_the_model() {
    // A component whose depth-first order is no path: 0 -> 1, 0 -> 2, both back to 0.
    let mut model =
        graph(&[(0, 0, 1), (1, 0, 0), (0, 1, 2), (2, 1, 0)], Shape::EventuallyAlways(0b001));
    model.weak = vec![vec![0], vec![1]];
    let report = check("drawn", &model, &thorough()).unwrap();
    let trace = report.properties[0].trace.as_ref().unwrap();
    let at = |place: usize| trace.states[place].state.0[0].1.parse::<u8>().unwrap();
    for place in 1..trace.states.len() {
        let edge = |(from, _, to): &(u8, u16, u8)| (*from, *to) == (at(place - 1), at(place));
        assert!(model.edges.iter().any(edge), "step {place}");
    }
    assert_eq!(at(trace.loop_to.unwrap()), at(trace.states.len() - 1));
}

#[test]
fn quantified_fairness_is_one_condition_for_each_value() {
    // Two processes; only a condition for each keeps the second from starving.
    let edges = [(0, 0, 1), (1, 0, 0), (0, 1, 2), (1, 1, 2)];
    let mut model = graph(&edges, Shape::Eventually(0b100));
    model.weak = vec![vec![0, 1]];
    assert_eq!(verdict(&model), Verdict::Violated);
    model.weak = vec![vec![0], vec![1]];
    assert_eq!(verdict(&model), Verdict::Holds);
}

#[test]
fn symmetry_is_refused_together_with_liveness() {
    let model = graph(&[(0, 0, 1)], Shape::Eventually(0b10));
    let options = interlock_checker::Options { symmetry: true, ..thorough() };
    let error = check("drawn", &model, &options).unwrap_err().to_string();
    assert!(error.contains("without it"), "{error}");
}

#[test]
fn a_property_of_what_never_happens_is_vacuous() {
    let model = graph(&[(0, 0, 1)], Shape::LeadsTo(0b1000, 0b10));
    assert_eq!(verdict(&model), Verdict::Vacuous);
    let model = graph(&[(0, 0, 1)], Shape::AlwaysImpliesEventually(0b10, 0b1));
    assert_eq!(verdict(&model), Verdict::Vacuous);
}

#[test]
fn brute_force_agrees_on_thousands_of_small_graphs() {
    let mut rng = Rng::new(2026);
    let (mut violated, mut held) = (0, 0);
    for round in 0..4_000 {
        let model = random_graph(&mut rng);
        let report = check("drawn", &model, &thorough()).unwrap();
        for (finding, shape) in report.properties.iter().zip(&model.formulas) {
            let broken = breaks(&model, *shape);
            let said = finding.verdict == Verdict::Violated;
            assert_eq!(said, broken, "round {round}: {shape:?} of {model:?}");
            if broken { violated += 1 } else { held += 1 }
        }
    }
    assert!(violated > 3_000 && held > 3_000, "{violated} violated, {held} held");
}

fn random_graph(rng: &mut Rng) -> Drawn {
    let states = 1 + rng.below(7) as u8;
    let actions = 1 + rng.below(4) as u16;
    let edge = |rng: &mut Rng| {
        let end = |rng: &mut Rng| rng.below(states as usize) as u8;
        (end(rng), rng.below(actions as usize) as u16, end(rng))
    };
    let set = |rng: &mut Rng| rng.bits() & rng.bits() & 0x7f;
    let class = |rng: &mut Rng| {
        let certain = rng.below(actions as usize) as u16;
        (0..actions).filter(|action| *action == certain || rng.flip()).collect()
    };
    Drawn {
        states,
        initial: vec![0],
        actions,
        edges: (0..rng.below(16)).map(|_| edge(rng)).collect(),
        weak: (0..rng.below(3)).map(|_| class(rng)).collect(),
        strong: (0..rng.below(3)).map(|_| class(rng)).collect(),
        formulas: vec![
            Shape::Eventually(set(rng)),
            Shape::AlwaysEventually(set(rng)),
            Shape::EventuallyAlways(rng.bits()),
            Shape::LeadsTo(rng.bits(), set(rng)),
            Shape::AlwaysLeadsTo(rng.bits(), set(rng)),
            Shape::AlwaysImpliesEventually(rng.bits() | 1, set(rng)),
            Shape::StableImpliesStable(rng.bits(), rng.bits()),
            Shape::ComesToRest,
        ],
        bad: 0,
    }
}

/// Whether some fair lasso breaks the formula: every set of states is tried as the set that the loop
/// visits, with every step inside it taken, which is the fairest loop through those states.
fn breaks(model: &Drawn, shape: Shape) -> bool {
    let all = (1_u64 << model.states) - 1;
    let from_start = reach(model, 1, all);
    (1..=all).any(|set| {
        set & !from_start == 0
            && is_connected(model, set)
            && is_fair(model, set)
            && answers(model, shape, set, all)
    })
}

fn answers(model: &Drawn, shape: Shape, set: u64, all: u64) -> bool {
    let from_start = reach(model, 1, all);
    match shape {
        Shape::Eventually(q) => q & 1 == 0 && set & !reach(model, 1, all & !q) == 0,
        Shape::AlwaysEventually(p) => set & p == 0,
        Shape::EventuallyAlways(p) => set & !p != 0,
        Shape::LeadsTo(p, q) => set & !reach(model, from_start & p & !q, all & !q) == 0,
        Shape::AlwaysLeadsTo(p, q) => set & !(p & !q) == 0,
        Shape::AlwaysImpliesEventually(p, q) => {
            p & !q & 1 == 1 && set & !reach(model, 1, p & !q) == 0
        }
        Shape::StableImpliesStable(p, q) => set & !p == 0 && set & !q != 0,
        Shape::ComesToRest => set.count_ones() > 1,
    }
}

/// States reachable from `from` without leaving `inside`; `from` itself must lie inside.
fn reach(model: &Drawn, from: u64, inside: u64) -> u64 {
    let mut reached = from & inside;
    loop {
        let before = reached;
        for (a, _, b) in &model.edges {
            if reached >> a & 1 == 1 && inside >> b & 1 == 1 {
                reached |= 1 << b;
            }
        }
        if reached == before {
            return reached;
        }
    }
}

fn is_connected(model: &Drawn, set: u64) -> bool {
    (0..model.states).filter(|s| set >> s & 1 == 1).all(|s| reach(model, 1 << s, set) == set)
}

fn is_fair(model: &Drawn, set: u64) -> bool {
    let steps: Vec<_> = model.edges.iter().filter(|(a, _, b)| a != b).collect();
    let possible =
        |class: &[u16], s: u8| steps.iter().any(|(a, x, _)| *a == s && class.contains(x));
    let taken = |class: &[u16]| {
        steps.iter().any(|(a, x, b)| class.contains(x) && set >> a & 1 == 1 && set >> b & 1 == 1)
    };
    let mut members = (0..model.states).filter(|s| set >> s & 1 == 1);
    let members: Vec<u8> = members.by_ref().collect();
    model.weak.iter().all(|c| taken(c) || members.iter().any(|s| !possible(c, *s)))
        && model.strong.iter().all(|c| taken(c) || members.iter().all(|s| !possible(c, *s)))
}
