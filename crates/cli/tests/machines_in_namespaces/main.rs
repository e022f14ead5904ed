//! Machines behind DPUs, the whole chain: a hub, the control planes of two tenants, the controllers, and two `interlock
//! dpu-agent` with the Linux driver. DPUs and machines are network namespaces, and what passes is what arrives at machines.

#![allow(
    clippy::print_stdout,
    reason = "this is a test without a harness: it runs as root, and in a user namespace"
)]
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fleet;
#[path = "../harness/mod.rs"]
mod harness;
#[allow(dead_code, reason = "the tests of the driver use all of it")]
#[path = "../../../dpu/tests/real/mode.rs"]
mod mode;
#[allow(dead_code, reason = "the tests of the driver use all of it")]
#[path = "../../../dpu/tests/real/net.rs"]
mod net;
mod rack;
mod story;
mod traffic;

use std::process::ExitCode;

fn main() -> ExitCode {
    let binary = harness::interlock().get_program().into();
    mode::run_with(
        &[(
            "machines reach those of their tenant only, and change it with a silence between, also while their DPU is cut \
             off, fenced or without power",
            story::all,
        )],
        &[("INTERLOCK_BINARY", binary)],
    )
}
