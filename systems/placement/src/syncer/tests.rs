//! Tests of the syncer: each row of its table, and whole moves in a little world.

mod fuzz;
mod moves;
mod rows;
pub(crate) mod world;
