//! What Interlock does outside of the Kubernetes API.
//!
//! * [`processes`]: a Pod's command as a local process that holds the lock of its volumes.
//! * [`volumes`]: volumes and snapshots of volumes as folders of the machine.

#[cfg(not(target_os = "linux"))]
compile_error!("interlock-outside runs on Linux only: it relies on flock(2), pidfds and /proc");

mod durable;
mod names;
pub mod processes;
pub mod volumes;
