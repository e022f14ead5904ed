//! Explores the shipped controllers as they are, `observe` and `act` included.
//!
//! The state of a [`World`] is the API objects themselves (of the hub and of the clusters), what each
//! program's cache shows of them, the steps that are under way, and the machines outside of the API.
//! Every version of an object is interned as one number, a server is an interned list of such
//! numbers, and a state is a handful of numbers. A step of a controller is pure, so the world calls
//! it once for each distinct view and remembers what it said; the same holds for what a write does
//! to a server. [`World`] is a [`interlock_checker::Model`], so liveness under fairness, refinement,
//! mutants, reports and diagrams come with it.
//!
//! A system writes a [`System`]: its programs, the objects at the start, what people do, what
//! machines do by themselves, and its promises. It writes no facts and no effects of its own.
//!
//! * `system`: what a system says of its world. `scene`: what it may look at when it judges a state.
//! * `server`: objects, servers and writes as numbers.
//! * `actor`: a shipped controller whose steps are remembered. `subjects`: what it is asked about.
//! * `state`, `world`, `steps`: the states, and every step out of one. `flight`: steps under way.
//! * `model`: the world as a model of the checker. `story`: a step in words.
//! * `picture`: a state in the words of a specification.
//! * `rest`: where a world comes to rest, for another that begins there.
//! * `bent`: what mistakes made on purpose are made of.
//! * `intern`: each value once, by number.

mod actor;
mod bent;
mod can_do;
mod flight;
mod intern;
mod model;
mod picture;
mod recent;
mod rest;
mod scene;
mod server;
mod state;
mod steps;
mod story;
mod subjects;
mod system;
mod world;

pub use actor::{Actor, Driver, shipped};
pub use bent::{rewritten, unguarded};
pub use picture::{Basis, Comparison, Reading};
pub use rest::Rest;
pub use scene::{Objects, Scene};
pub use server::Servers;
pub use state::{CLUSTERS, State};
pub use system::{Chance, Crashes, Goal, Hostility, Mistake, Move, Program, Promise, Rule, System};
pub use world::World;
