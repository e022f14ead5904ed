//! What happens to the identities and around them, and in which order: drawn from a seed.

use super::harness::random::Random;
use std::collections::VecDeque;

/// How often each identity is updated: past the limit of five versions.
pub(crate) const UPDATES: u8 = 7;
/// How often somebody changes all roles and policies in the cloud.
const DRIFTS: u64 = 3;
const KILLS_OF_CONTROLLERS: usize = 7;

/// Something that happens. Identities, namespaces and clusters are numbers here: places in the lists of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Create { identity: usize },
    Update { identity: usize, version: u8 },
    Delete { identity: usize },
    Move { namespace: usize, cluster: usize },
    Drift { number: u64 },
    KillControllers,
    KillSyncer { cluster: usize },
}

/// How many of everything there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Many {
    pub(crate) identities: usize,
    /// Namespaces that move from the first cluster to each other one, and back.
    pub(crate) placed: usize,
    pub(crate) clusters: usize,
}

/// All that happens, in an order by the seed. Only what happens to one identity or to one namespace has an order of
/// its own: between two steps of it there may be any number of steps of others.
pub(crate) fn drawn(seed: u64, many: Many) -> Vec<Step> {
    let mut lines = lines(many);
    let mut left: usize = lines.iter().map(VecDeque::len).sum();
    // Small seeds are alike in their first numbers.
    let mut random = Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut steps = Vec::with_capacity(left);
    while left > 0 {
        // Each step that is left is equally likely, so that a line with many steps ends with the others.
        let mut place = random.below(left as u64) as usize;
        let line = lines.iter_mut().find(|line| {
            let is_here = place < line.len();
            place = place.saturating_sub(line.len());
            is_here
        });
        steps.extend(line.and_then(VecDeque::pop_front));
        left -= 1;
    }
    steps
}

/// What happens one after the other: to each identity, to each namespace, and around them.
fn lines(many: Many) -> Vec<VecDeque<Step>> {
    let of_identity = |identity| {
        let updates = (1..=UPDATES).map(move |version| Step::Update { identity, version });
        [Step::Create { identity }]
            .into_iter()
            .chain(updates)
            .chain([Step::Delete { identity }])
            .collect::<VecDeque<Step>>()
    };
    let of_namespace = |namespace| {
        let there_and_back = (1..many.clusters).chain([0]);
        there_and_back
            .map(move |cluster| Step::Move { namespace, cluster })
            .collect::<VecDeque<Step>>()
    };
    let of_cluster = |cluster| VecDeque::from([Step::KillSyncer { cluster }]);
    let mut lines: Vec<VecDeque<Step>> = (0..many.identities).map(of_identity).collect();
    lines.extend((0..many.placed).map(of_namespace));
    lines.extend((0..many.clusters).map(of_cluster));
    lines.push((0..DRIFTS).map(|number| Step::Drift { number }).collect());
    lines.push([Step::KillControllers; KILLS_OF_CONTROLLERS].into());
    lines
}

const FEW: Many = Many { identities: 12, placed: 2, clusters: 2 };

#[test]
fn the_same_seed_draws_the_same_order_and_another_one_another() {
    let all: Vec<Vec<Step>> = (1..=20).map(|seed| drawn(seed, FEW)).collect();
    for (place, one) in all.iter().enumerate() {
        assert_eq!(*one, drawn(place as u64 + 1, FEW));
        assert!(all[..place].iter().all(|other| other != one), "seed {}", place + 1);
    }
}

#[test]
fn everything_happens_once_and_an_identity_is_made_before_it_is_changed_and_deleted() {
    let steps = drawn(1, FEW);
    assert_eq!(steps.len(), lines(FEW).iter().map(VecDeque::len).sum::<usize>());
    for line in lines(FEW) {
        let mut next = steps.iter();
        let is_there = line.iter().all(|step| next.any(|other| other == step));
        assert!(is_there, "{line:?} is in this order in {steps:?}");
    }
}

/// Operations are mixed: one identity is deleted before another one is made, and drift, moves and kills come in between.
#[test]
fn an_identity_is_deleted_while_others_are_still_made_and_updated() {
    let is_mixed = |seed: u64| {
        let steps = drawn(seed, FEW);
        let first = |is_meant: fn(&Step) -> bool| steps.iter().position(is_meant);
        let last = |is_meant: fn(&Step) -> bool| steps.iter().rposition(is_meant);
        let deleted = first(|step| matches!(step, Step::Delete { .. }));
        deleted < last(|step| matches!(step, Step::Update { .. }))
            && first(|step| matches!(step, Step::Drift { .. }))
                < last(|step| matches!(step, Step::Move { .. }))
    };
    let mixed = (1..=20).filter(|seed| is_mixed(*seed)).count();
    assert!(mixed > 15, "{mixed} of 20 seeds");
}
