//! The Linux driver against the kernel, one DPU: states, refusals, a crash at each call, other people's interfaces.

#![allow(
    clippy::print_stdout,
    reason = "this is a test without a harness: its agents have one thread"
)]
#![allow(clippy::unwrap_used, reason = "this is a test")]

#[allow(dead_code, reason = "each of the two tests uses its own part")]
#[path = "../real/agent.rs"]
mod agent;
mod crashes;
mod foreign;
mod late;
#[path = "../real/mode.rs"]
mod mode;
#[allow(dead_code, reason = "each of the two tests uses its own part")]
#[path = "../real/net.rs"]
mod net;
mod random;
mod scene;
mod states;

use std::process::ExitCode;

fn main() -> ExitCode {
    agent::serve_if_asked();
    mode::run(&[
        ("a port is opened, read back and closed", states::opened_and_closed),
        ("a port and its networks are read as they are", states::networks),
        ("without nft no port is opened, and all are closed and read", states::without_nft),
        ("after a loss of power ports are closed under a new term", late::power_loss),
        ("an attach that is held until the node is reassigned is refused", late::held_back),
        ("two agents: one waits for the other's lock", late::under_the_lock),
        (
            "an agent is killed while nft runs: nothing is reported before nft has ended",
            late::nft_goes_on,
        ),
        ("other people's interfaces are left alone", foreign::interfaces),
        ("what was changed by somebody else is not said to be open", foreign::changes),
        ("eight agents with random calls do not contradict each other", random::eight_agents),
        ("a crash before each call leaves the port closed or right", crashes::at_each_call),
    ])
}
