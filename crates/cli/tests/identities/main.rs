//! Cloud identities as they are run: `interlock up` with its embedded IAM, which is also called directly, as a
//! person or another program would.

#[path = "../harness/mod.rs"]
mod harness;

#[allow(dead_code, reason = "the tests of moves use all of it")]
#[path = "../moves/fleet.rs"]
mod fleet;
#[allow(dead_code, reason = "the tests of moves use all of it")]
#[path = "../moves/numbers.rs"]
mod numbers;
#[allow(dead_code, reason = "the tests of moves use all of it")]
#[path = "../moves/processes.rs"]
mod processes;

mod apart;
mod cloud;
mod conflicts;
mod credentials;
mod following;
mod forcing;
mod late;
mod lifecycle;
mod moving;
mod planning;
mod restarts;
mod sharing;
mod up;
mod watching;
