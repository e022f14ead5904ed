//! The operator's commands of placement, against a real API server over a socket; the tests
//! play the controllers.

#[path = "../harness/mod.rs"]
mod harness;

mod finding;
mod forcing;
mod moving;
mod showing;
mod world;
