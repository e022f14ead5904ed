//! The power of DPUs, as the platform's own command sees and switches it: types only.

use interlock_api::nodes::DpuName;
use interlock_kernel::Outside;
use serde::{Deserialize, Serialize};

/// The power of DPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Power {}

impl Outside for Power {
    type Question = IsOff;
    type Answer = PowerState;
    type Action = PowerOff;
}

/// Whether a DPU is off now. It is asked only after a node was seen with its floor raised, so an answer is never older
/// than the floor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IsOff(pub DpuName);

/// Turns a DPU off. All its ports are closed when it comes up again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PowerOff(pub DpuName);

/// What the command answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum PowerState {
    /// The DPU has no power.
    Off,
    /// The DPU has power.
    On,
    /// Nobody can tell, and why.
    Unknown(String),
}
