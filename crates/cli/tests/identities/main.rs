//! Cloud identities as they are run: `interlock up` with its embedded IAM, which is also called directly, as a
//! person or another program would.

#[path = "../harness/mod.rs"]
mod harness;

mod conflicts;
mod credentials;
mod following;
mod lifecycle;
mod restarts;
mod up;
