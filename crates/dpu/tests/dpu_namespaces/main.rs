//! Two DPUs, four machines, two tenants with equal addresses, all in network namespaces of this kernel.

#![allow(
    clippy::print_stdout,
    reason = "this is a test without a harness: its agents have one thread"
)]
#![allow(clippy::unwrap_used, reason = "this is a test")]

#[allow(dead_code, reason = "each of the two tests uses its own part")]
#[path = "../real/agent.rs"]
mod agent;
mod frames;
#[path = "../real/mode.rs"]
mod mode;
mod moves;
#[allow(dead_code, reason = "each of the two tests uses its own part")]
#[path = "../real/net.rs"]
mod net;
mod pairs;
mod rack;

use std::process::ExitCode;

fn main() -> ExitCode {
    agent::serve_if_asked();
    mode::run(&[
        ("an agent enters a user and a network namespace that are not its own", pairs::entered),
        (
            "nothing passes at first; then the machines of a tenant reach each other only",
            pairs::isolated,
        ),
        ("of 18 kinds of frames the five legal ones pass", frames::of_18_kinds),
        ("a machine moves between tenants in the middle of its traffic", moves::under_traffic),
        (
            "an attach that is held until the machine has another tenant lets no frame through",
            moves::attach_held_until_reassigned,
        ),
        (
            "an attach that is held until the record is lost or another node is at the port lets no frame through",
            moves::attach_held_until_the_term_is_over,
        ),
    ])
}
