//! The local driver, from outside: refusals row by row, crashes at each call, many processes on one port.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod crashes;
mod given_up;
mod processes;
mod records;
mod refusals;
mod support;
