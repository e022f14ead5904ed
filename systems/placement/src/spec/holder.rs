//! One holder: the least that anyone may expect of a placement.

use super::name_of;
use interlock_checker::{Action, Coder, Invariant, Model, Rng, Steps};

/// A thing is held by nobody or by one cluster, and is left before it is taken again.
#[derive(Debug, Clone)]
pub struct OneHolder {
    pub(super) clusters: usize,
}

/// Who holds it, a bit for each cluster: a set, so that two holders can be told from one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holders(pub(super) u8);

const LEAVE: u16 = 0;
const TAKE: u16 = 1;

impl Model for OneHolder {
    type State = Holders;
    type Packed = u64;

    fn size(&self) -> String {
        format!("clusters={}", self.clusters)
    }

    fn code(&self, state: &mut Holders, coder: &mut Coder) {
        coder.u8(&mut state.0, self.clusters as u32);
    }

    fn initial(&self) -> Vec<Holders> {
        vec![Holders(0)]
    }

    fn actions(&self) -> Vec<Action> {
        let take = |c: usize| {
            Action::new(format!("Take({})", name_of(c)), format!("cluster {}", name_of(c)))
        };
        let leave = Action::new("Leave", "holder");
        std::iter::once(leave).chain((0..self.clusters).map(take)).collect()
    }

    fn next(&self, state: &Holders, steps: &mut Steps<Holders>) {
        if state.0 != 0 {
            return steps.step(LEAVE, Holders(0));
        }
        for c in 0..self.clusters {
            steps.step(TAKE + c as u16, Holders(1 << c));
        }
    }

    fn describe(&self, state: &Holders) -> Vec<(&'static str, String)> {
        let names = (0..self.clusters).filter(|c| state.0 >> c & 1 == 1).map(name_of);
        let holder = match names.collect::<Vec<_>>().as_slice() {
            [] => "none".to_owned(),
            [one] => (*one).to_owned(),
            several => format!("{{{}}}", several.join(", ")),
        };
        vec![("holder", holder)]
    }

    fn invariants(&self) -> Vec<Invariant<Holders>> {
        vec![Invariant::new("OneHolds", "at most one cluster holds it", |s: &Holders| {
            s.0.count_ones() <= 1
        })]
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<Holders> {
        Some(Holders(rng.below(1 << self.clusters) as u8))
    }
}
