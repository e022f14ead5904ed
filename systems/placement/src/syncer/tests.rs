//! Tests of the syncer: each row of its table, and whole moves in a little world.

mod fuzz;
mod moves;
mod repository;
mod rights;
mod rows;
mod volumes;
pub(crate) mod world;
