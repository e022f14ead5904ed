//! Volumes as a user meets them: `interlock up`, claims with data in them, VolSync's kinds, and
//! repositories that are folders of the machine.

#[path = "../harness/mod.rs"]
mod harness;

mod backing_up;
mod contents;
mod copying;
mod examples;
mod failing;
mod filling;
mod locked;
mod moving;
mod showing;
mod up;
mod with_restic;
