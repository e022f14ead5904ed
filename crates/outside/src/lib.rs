//! What Interlock does outside of the Kubernetes API.
//!
//! * [`processes`]: a Pod's command as a local process that holds the lock of its volumes.

#[cfg(not(target_os = "linux"))]
compile_error!("interlock-outside runs on Linux only: it relies on flock(2), pidfds and /proc");

pub mod processes;
