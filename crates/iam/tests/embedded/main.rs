//! The client against the embedded server, over real connections.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod calls;
mod durable;
mod faults;
mod limits;
mod proxy;
#[allow(dead_code, reason = "other tests use the rest")]
mod support;
mod web_identity;
