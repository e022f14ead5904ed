//! Maintenance of clusters, one owner at a time; `docs/adding-a-system.md` walks through it.
//! * never: two turns of one cluster are open;
//! * eventually: every turn is opened, unless its owner gives it up before.

pub mod turn;
pub mod world;

/// All models, for the catalog.
pub fn models() -> Vec<interlock_checker::Entry> {
    vec![world::ENTRY]
}
