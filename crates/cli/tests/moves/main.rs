//! Placement as it is run: the server, the hub's controllers and each syncer are processes of their
//! own, the workload is a real writer, and what is promised is watched from outside.

#[path = "../harness/mod.rs"]
mod harness;

mod carrying;
mod chaos;
mod counting;
mod deleting;
mod demo;
mod endings;
mod evicting;
mod fleet;
mod forcing;
mod initializing;
mod machines;
mod machines_apart;
mod measuring;
mod numbers;
mod ordinals;
mod processes;
mod reaching;
mod registering;
mod repository;
mod resuming;
mod rights;
mod rollouts;
mod serving;
mod tokens;
mod turns;
mod updates;
mod workloads;
