//! Mistakes that must be found.

mod dpus;
mod hub;

use super::Nodes;
use super::size::Size;
use interlock_world::Mistake;

/// A row: name, sentence, what breaks, the least size, and what is done otherwise.
struct Row {
    name: &'static str,
    sentence: &'static str,
    breaks: &'static [&'static str],
    size: Size,
    bend: fn(&mut Nodes),
}

impl Row {
    fn mistake(self) -> Mistake<Nodes> {
        let Row { name, sentence, breaks, size, bend } = self;
        let mut system = Nodes::of(size);
        bend(&mut system);
        Mistake { name, sentence, breaks, system }
    }
}

/// All of them, for a world in which so many steps may be late at once: with two there is one more, which takes
/// minutes to find.
pub(super) fn all(flights: u64) -> Vec<Mistake<Nodes>> {
    let mut rows = dpus::rows();
    rows.extend(hub::rows());
    rows.extend((flights == 2).then(dpus::of_two_late_steps));
    rows.into_iter().map(Row::mistake).collect()
}
