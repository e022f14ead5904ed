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

pub(super) fn all() -> Vec<Mistake<Nodes>> {
    let mut rows = dpus::rows();
    rows.extend(hub::rows());
    rows.into_iter().map(Row::mistake).collect()
}
