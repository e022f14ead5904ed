//! Rearrangements of interchangeable values, for models that declare them.

use crate::model::{Model, Steps};
use crate::rng::Rng;

/// In how many ways `count` things can be arranged.
pub fn arrangements(count: usize) -> usize {
    (1..=count).product()
}

/// The `number`-th of them: where each thing goes. Number 0 leaves all in their places.
pub fn arrangement<const N: usize>(count: usize, mut number: usize) -> [usize; N] {
    let mut places = std::array::from_fn(|place| place);
    for last in (1..count).rev() {
        places.swap(last, last - number % (last + 1));
        number /= last + 1;
    }
    places
}

/// Panics unless renaming before a step or after it comes to the same, in random states whatever:
/// for the tests of a model that declares symmetries and gives [`Model::arbitrary`].
pub fn assert_symmetric<M: Model>(model: &M) {
    let mut rng = Rng::new(7);
    let mut steps = Steps::default();
    let mut successors = |state: &M::State, renamed: &dyn Fn(&M::State) -> M::State| {
        steps.clear();
        model.next(state, &mut steps);
        let mut all: Vec<M::Packed> =
            steps.as_slice().iter().map(|step| model.pack(&renamed(&step.to))).collect();
        all.sort();
        all
    };
    for _ in 0..2_000 {
        let state = model.arbitrary(&mut rng).expect("the model gives random states");
        let permutation = rng.below(model.symmetries());
        let image = model.permute(&state, permutation);
        assert_eq!(
            successors(&image, &|to| to.clone()),
            successors(&state, &|to| model.permute(to, permutation)),
            "{state:?} under permutation {permutation}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_arrangement_comes_once_and_the_first_changes_nothing() {
        let all: BTreeSet<[usize; 4]> = (0..arrangements(4)).map(|n| arrangement(4, n)).collect();
        assert_eq!(all.len(), 24);
        assert_eq!(arrangement(4, 0), [0, 1, 2, 3]);
        assert!((0..arrangements(3)).all(|n| arrangement::<4>(3, n)[3] == 3));
    }
}
