//! The driver against the embedded IAM, over real connections, with and without faults.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod calls;
mod faults;
mod limits;
#[path = "../../../iam/tests/embedded/proxy.rs"]
#[allow(dead_code, reason = "the tests of IAM use the rest")]
mod proxy;
mod reading;
mod support;
